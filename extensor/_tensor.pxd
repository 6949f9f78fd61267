cimport numpy as cnp


cdef class ExTensor:
    cdef readonly cnp.ndarray _array
    cdef object __weakref__


# How an operator reaches the apply layer: set once, when that layer is imported.
ctypedef object (*BinaryHook)(object op, object a, object b, object out)

cdef BinaryHook binary_hook

# How a copy reaches the kernels, likewise: into an array of the same shape, in its dtype.
ctypedef int (*CopyHook)(cnp.ndarray place, cnp.ndarray source) except -1

cdef CopyHook copy_hook

cdef ExTensor wrap(cnp.ndarray array)
cdef cnp.ndarray plain_array(object obj, str function, str argument)
cdef cnp.ndarray aligned_copy(cnp.ndarray array)
