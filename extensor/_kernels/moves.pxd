"""Job descriptions of the kernels that move memory: copies between layouts and dtypes, joins."""

from extensor._kernels.types cimport MAX_AXES

ctypedef void (*Convert)(const void*, void*, Py_ssize_t) noexcept nogil

ctypedef struct Move:
    const char* x
    char* y
    Convert convert                 # NULL: the elements stay as they are
    Py_ssize_t x_size               # bytes of an element
    Py_ssize_t y_size
    int ndim                        # axes in the order of y's memory, none of size 1
    Py_ssize_t shape[MAX_AXES]
    Py_ssize_t x_strides[MAX_AXES]
    Py_ssize_t y_strides[MAX_AXES]
    int threads
    int team                        # out

# Parts side by side: y is ``outer`` rows of ``step`` bytes, and each part fills chunks[i] of them.
ctypedef struct Join:
    const char** parts
    const Py_ssize_t* chunks
    Py_ssize_t count
    char* y
    Py_ssize_t outer
    Py_ssize_t step
    int threads
    int team                        # out

ctypedef int (*Mover)(Move*) noexcept nogil
ctypedef void (*Joiner)(Join*) noexcept nogil
