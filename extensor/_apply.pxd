"""The apply layer's parts that other compiled modules of this package use."""

cimport numpy as cnp

from extensor._kernels.types cimport Job


cdef class Op:
    cdef readonly str name
    cdef readonly tuple names           # of the operands, for messages
    cdef readonly object numpy          # NumPy's loop for integers and bools, or None
    cdef void* f32
    cdef void* f64
    cdef int arity
    cdef int args[4]
    cdef double cost                    # nanoseconds an element, float32, one core
    cdef bint gives_bool
    cdef bint float_only                # integers are converted as np.exp converts them
    cdef bint mask_first                # the first operand is a condition


cdef class Gradient:
    """One gradient of a backward function: a block on (grad_output, *saved)."""
    cdef void* f32
    cdef void* f64
    cdef int arity
    cdef int args[4]
    cdef double cost


cdef void* pointer(object capsule) except NULL
cdef int team_for(double nanoseconds) noexcept nogil
cdef void note_team(int team) noexcept nogil
cdef int fill_operand(Job* job, int slot, bint output, cnp.ndarray array, int ndim, Py_ssize_t* shape) except -1
