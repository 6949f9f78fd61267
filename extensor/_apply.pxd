"""The apply layer's parts that the other compiled modules of this package use."""

cimport numpy as cnp


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
    cdef bint keeps_dtype               # integers: NumPy's loop never warns and keeps the dtype
    cdef bint float_only                # integers are converted as np.exp converts them
    cdef bint mask_first                # the first operand is a condition


cdef class Gradient:
    """One gradient of a backward function: a block on (grad_output, *saved)."""
    cdef void* f32
    cdef void* f64
    cdef int arity
    cdef int args[4]
    cdef double cost
    cdef bint mask                      # a bool operand is a condition, read as bytes


cdef enum Overlap:
    APART
    SAME            # the output is the input itself
    TANGLED         # they share memory in another way


cdef void* pointer(object capsule) except NULL
cdef int team_for(double nanoseconds) noexcept nogil
cdef void note_team(int team) noexcept nogil
cdef bint is_float(int typenum) noexcept
cdef int float_for(int typenum) noexcept
cdef object shape_of(cnp.ndarray array)
cdef cnp.ndarray bare(object x)
cdef bint simple(cnp.ndarray a) noexcept
cdef cnp.ndarray converted(cnp.ndarray array, int typenum)
cdef int convert_into(cnp.ndarray target, cnp.ndarray source) except -1
cdef cnp.ndarray upstream(str function, object grad_output, int beside=*)
cdef cnp.ndarray checked_out(str function, object out, int ndim, Py_ssize_t* shape, int typenum)
cdef object as_result(object out, cnp.ndarray array)
cdef Overlap overlap(cnp.ndarray x, cnp.ndarray y) noexcept
cdef int map_into(str function, Gradient block, list arrays, cnp.ndarray place, tuple params) except -1
cdef int reduce_into(
    str function, Gradient block, list arrays, tuple shape, cnp.ndarray place, int how,
    double divisor, tuple params) except -1
cdef int reduce_flat(str function, cnp.ndarray array, cnp.ndarray place, int how, double divisor) except -1
cdef cnp.ndarray reduce_axis(
    str function, cnp.ndarray array, int axis, bint keepdims, int how, bint mean)
