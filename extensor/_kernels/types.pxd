"""Types that the kernels and the apply layer share. One fused type, one job description."""

from cpython.pycapsule cimport PyCapsule_New

ctypedef fused floating:
    float
    double

cdef enum:
    MAX_AXES = 64       # NumPy's own limit
    MAX_INPUTS = 4
    MAX_OUTPUTS = 3

cdef enum:              # how a reduction joins two elements; NaN wins in MAX and MIN
    SUM
    MAX
    MIN

# A block is one loop over contiguous memory. Its pointers are float* or double* (bool operands:
# unsigned char*); the casts to void* happen where a block is exported and where it is called.
ctypedef void (*Block1)(const void*, void*, Py_ssize_t, const double*) noexcept nogil
ctypedef void (*Block2)(const void*, const void*, void*, Py_ssize_t, const double*) noexcept nogil
ctypedef void (*Block3)(
    const void*, const void*, const void*, void*, Py_ssize_t, const double*) noexcept nogil
ctypedef void (*Block4)(
    const void*, const void*, const void*, const void*, void*, Py_ssize_t, const double*
) noexcept nogil

ctypedef struct Operand:
    char* data
    Py_ssize_t itemsize             # bytes of one stored element
    bint half                       # stored as float16, computed as float32
    bint dense                      # C-contiguous over the whole iteration space
    bint same_rows                  # every row of the space reads the same memory
    Py_ssize_t strides[MAX_AXES]    # bytes per axis of the space; 0 where broadcast

ctypedef struct Call:               # one block on some of the inputs, giving one output
    void* block                     # NULL: the identity
    int arity
    int args[MAX_INPUTS]

# The iteration space is a list of axes; the last one is the column, the others flatten into rows.
ctypedef struct Job:
    int ndim
    Py_ssize_t shape[MAX_AXES]
    int inputs
    int outputs
    Operand x[MAX_INPUTS]
    Operand y[MAX_OUTPUTS]
    Call calls[MAX_OUTPUTS]
    const double* params
    bint stage                      # outputs go through scratch: one of them is also an input
    int threads                     # 1 = serial
    int team                        # out: how many threads ran
    bint failed                     # out: no memory for scratch
    # Reductions only. Row mode: axes [kept…, reduced…]. Column mode: [kept…, reduced…, one kept].
    int how                         # SUM, MAX or MIN
    int kept                        # leading kept axes
    bint column_mode
    double divisor
    int kept_axes                   # the kept axes again, as the output sees them
    Py_ssize_t kept_shape[MAX_AXES]

ctypedef int (*Driver)(Job*) noexcept nogil

# A function along slices: contiguous tensors seen as (outer, n, inner), worked on along n.
ctypedef struct Along:
    const void* x
    const void* g                   # grad_output
    const void* saved               # the forward result, or a mean or shift of each slice
    void* y
    Py_ssize_t outer
    Py_ssize_t n
    Py_ssize_t inner
    bint flag                       # log-softmax; least; every; take the root
    double divisor
    int threads

ctypedef int (*AlongKernel)(const Along*, void* unused) noexcept nogil

# What an operand of such a function holds.
cdef enum Role:
    ABSENT
    WHOLE                           # the elements of the slices
    EACH                            # one element for each slice
    PLACES                          # one int64 for each slice

ctypedef struct Roles:
    int x
    int g
    int saved
    int y

ctypedef int (*HalvesDriver)(const Along*, AlongKernel, const Roles*) noexcept nogil


cdef inline object export(const void* pointer):
    return PyCapsule_New(<void*> pointer, "extensor.kernel", NULL)


cdef inline tuple pair(const void* f32, const void* f64):
    """A block's two versions, as EXPORTS holds them."""
    return (export(f32), export(f64))


# Blocks of arity n, for the driver and for small contiguous calls that need no driver.
cdef inline void call_block(
    const Call* call, const void** x, void* y, Py_ssize_t n, const double* params
) noexcept nogil:
    cdef const int* a = call.args
    if call.arity == 0:
        (<Block1> call.block)(NULL, y, n, params)
    elif call.arity == 1:
        (<Block1> call.block)(x[a[0]], y, n, params)
    elif call.arity == 2:
        (<Block2> call.block)(x[a[0]], x[a[1]], y, n, params)
    elif call.arity == 3:
        (<Block3> call.block)(x[a[0]], x[a[1]], x[a[2]], y, n, params)
    else:
        (<Block4> call.block)(x[a[0]], x[a[1]], x[a[2]], x[a[3]], y, n, params)
