"""Job descriptions of the kernels that train: cross-entropy and the optimizers' updates."""

from libc.stdint cimport int64_t

# An element-wise loss over n contiguous elements: summed, or its gradient for a scalar grad_output.
ctypedef struct LossJob:
    void* block                     # forward: on (x, t); backward: on (g, x, t)
    void* check                     # NULL, or a block that gives 1 where x is not allowed
    const void* x
    const void* t
    void* y                         # backward: the gradient; forward: NULL
    double g                        # backward: grad_output, divided for a mean
    Py_ssize_t n
    bint half                       # x, t, y are float16
    const double* params
    int threads
    int team                        # out
    double total                    # out: the sum
    bint refused                    # out: the check found something

ctypedef int (*LossDriver)(LossJob*) noexcept nogil

# Logits seen as (outer, classes, inner), contiguous; results as (outer, inner).
ctypedef struct CrossEntropy:
    const void* x
    const int64_t* ids              # class ids of the results, or NULL
    const void* weights             # of the logits' shape, or NULL
    const void* g                   # backward: one value, or one for each result
    Py_ssize_t g_step               # 0 or 1
    void* y                         # losses, or the gradient; NULL where only the sum is wanted
    Py_ssize_t outer
    Py_ssize_t classes
    Py_ssize_t inner
    bint ignoring
    int64_t ignored
    bint backward
    int threads
    int team                        # out
    double total                    # out: the sum of the losses

ctypedef int (*CrossEntropyDriver)(CrossEntropy*) noexcept nogil

cdef enum Stored:
    STORED_F32
    STORED_F64
    STORED_F16

cdef enum:
    RULE_VALUES = 8

# One parameter tensor of an optimizer step, or one gradient of a clipping.
ctypedef struct Update:
    void* p
    const void* g
    void* first                     # state: float32 for float16 parameters; NULL where unused
    void* second
    Py_ssize_t n
    int p_stored
    int g_stored
    double values[RULE_VALUES]      # what the rule needs: rates, decay, corrections

# One step: `rule` is a table of blocks for float and double.
ctypedef void (*UpdateBlock32)(
    float* p, const float* g, float* first, float* second, Py_ssize_t n, const double* v) noexcept nogil
ctypedef void (*UpdateBlock64)(
    double* p, const double* g, double* first, double* second, Py_ssize_t n, const double* v) noexcept nogil
ctypedef int (*UpdateDriver)(
    Update* updates, Py_ssize_t count, void* f32, void* f64, int threads) noexcept nogil
ctypedef int (*NormDriver)(
    Update* updates, Py_ssize_t count, int threads, double scale, double* norm, double* largest) noexcept nogil
