"""The public Cython API: see ``cython_api.pxd`` for the rules and ``docs/embedding.md`` for an example.

Every function is one call of a kernel of the CPU level in use, whose address is taken from the kernel
modules when this module is imported.
"""

import os

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport log as c_log
from libc.math cimport pow, sqrt

from extensor._kernels.types cimport Block1, Block2, Block3

from extensor import _cpu

cdef extern from "gemm.h" nogil:
    ctypedef struct ex_gemm_job:
        Py_ssize_t m, n, k
        const void* a
        const void* b
        void* c
        const void* bias
        Py_ssize_t a_row, a_col, b_row, b_col, c_row, c_col
        int nbatch_axes
        const Py_ssize_t* batch_shape
        const Py_ssize_t* a_batch
        const Py_ssize_t* b_batch
        const Py_ssize_t* c_batch
        int accumulate
        int threads

ctypedef void (*Rows)(const void*, void*, Py_ssize_t, Py_ssize_t, bint) noexcept nogil
ctypedef void (*RowsBackward)(const void*, const void*, void*, Py_ssize_t, Py_ssize_t, bint) noexcept nogil
ctypedef float (*Sum32)(const float*, Py_ssize_t) noexcept nogil
ctypedef double (*Sum64)(const double*, Py_ssize_t) noexcept nogil
ctypedef void (*Update)(void*, const void*, void*, void*, Py_ssize_t, const double*) noexcept nogil
ctypedef int (*Gemm)(const ex_gemm_job*) noexcept nogil

cdef struct Kernel:
    void* f32
    void* f64


cdef Kernel kernel(tuple pair) except *:
    """A kernel's two versions, from the capsules that EXPORTS holds."""
    cdef Kernel found
    found.f32 = PyCapsule_GetPointer(pair[0], "extensor.kernel")
    found.f64 = PyCapsule_GetPointer(pair[1], "extensor.kernel")
    return found


_arithmetic = _cpu.kernels("arithmetic")
_elementwise = _cpu.kernels("elementwise")
_activations = _cpu.kernels("activations")
_reduction = _cpu.kernels("reduction")
_drive = _cpu.kernels("drive")
_matrix = _cpu.kernels("matrix")
_optimizers = _cpu.kernels("optimizers")

cdef double INV_LN2 = 1 / c_log(2.0), INV_LN10 = 1 / c_log(10.0)

# OpenMP's runtime cannot start a team in the child of a fork: it would hang.
cdef int forked = 0


def _after_fork_in_child():
    global forked
    forked = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


cdef int ex_api_version() noexcept nogil:
    return 1


# ---------------------------------------------------------------- arithmetic

cdef Kernel add = kernel(_arithmetic["add"])
cdef Kernel subtract = kernel(_arithmetic["subtract"])
cdef Kernel multiply = kernel(_arithmetic["multiply"])
cdef Kernel divide = kernel(_arithmetic["divide"])
cdef Kernel divide_grad_b = kernel(_arithmetic["divide_grad_b"])
cdef Kernel negative = kernel(_arithmetic["negative"])
cdef Kernel reciprocal = kernel(_arithmetic["reciprocal"])
cdef Kernel reciprocal_grad = kernel(_arithmetic["reciprocal_grad"])
cdef Kernel copy = kernel(_arithmetic["copy"])
cdef Kernel zero = kernel(_arithmetic["zero"])
cdef Kernel floor_divide = kernel(_arithmetic["floor_divide"])
cdef Kernel modulo = kernel(_arithmetic["modulo"])
cdef Kernel modulo_grad_b = kernel(_arithmetic["modulo_grad_b"])
cdef Kernel power = kernel(_arithmetic["power"])
cdef Kernel power_grad_a = kernel(_arithmetic["power_grad_a"])
cdef Kernel power_grad_b = kernel(_arithmetic["power_grad_b"])
cdef Kernel maximum = kernel(_arithmetic["maximum"])
cdef Kernel minimum = kernel(_arithmetic["minimum"])
cdef Kernel maximum_grad = kernel(_arithmetic["maximum_grad"])
cdef Kernel minimum_grad = kernel(_arithmetic["minimum_grad"])
cdef Kernel where = kernel(_arithmetic["where"])
cdef Kernel where_grad_a = kernel(_arithmetic["where_grad_a"])
cdef Kernel where_grad_b = kernel(_arithmetic["where_grad_b"])


cdef void ex_add_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> add.f32)(a, b, y, n, NULL)

cdef void ex_add_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> add.f64)(a, b, y, n, NULL)

cdef void ex_add_backward_f32(const float* grad_output, float* grad_a, float* grad_b, Py_ssize_t n) noexcept nogil:
    if grad_a != NULL:
        (<Block1> copy.f32)(grad_output, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block1> copy.f32)(grad_output, grad_b, n, NULL)

cdef void ex_add_backward_f64(const double* grad_output, double* grad_a, double* grad_b, Py_ssize_t n) noexcept nogil:
    if grad_a != NULL:
        (<Block1> copy.f64)(grad_output, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block1> copy.f64)(grad_output, grad_b, n, NULL)

cdef void ex_subtract_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> subtract.f32)(a, b, y, n, NULL)

cdef void ex_subtract_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> subtract.f64)(a, b, y, n, NULL)

cdef void ex_subtract_backward_f32(
    const float* grad_output, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block1> copy.f32)(grad_output, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block1> negative.f32)(grad_output, grad_b, n, NULL)

cdef void ex_subtract_backward_f64(
    const double* grad_output, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block1> copy.f64)(grad_output, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block1> negative.f64)(grad_output, grad_b, n, NULL)

cdef void ex_multiply_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> multiply.f32)(a, b, y, n, NULL)

cdef void ex_multiply_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> multiply.f64)(a, b, y, n, NULL)

cdef void ex_multiply_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block2> multiply.f32)(grad_output, b, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block2> multiply.f32)(grad_output, a, grad_b, n, NULL)

cdef void ex_multiply_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block2> multiply.f64)(grad_output, b, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block2> multiply.f64)(grad_output, a, grad_b, n, NULL)

cdef void ex_divide_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> divide.f32)(a, b, y, n, NULL)

cdef void ex_divide_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> divide.f64)(a, b, y, n, NULL)

cdef void ex_divide_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
    double eps,
) noexcept nogil:
    cdef double[2] p = [eps, sqrt(eps)]
    if grad_a != NULL:
        (<Block2> divide.f32)(grad_output, b, grad_a, n, p)
    if grad_b != NULL:
        (<Block3> divide_grad_b.f32)(grad_output, a, b, grad_b, n, p)

cdef void ex_divide_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
    double eps,
) noexcept nogil:
    cdef double[2] p = [eps, sqrt(eps)]
    if grad_a != NULL:
        (<Block2> divide.f64)(grad_output, b, grad_a, n, p)
    if grad_b != NULL:
        (<Block3> divide_grad_b.f64)(grad_output, a, b, grad_b, n, p)

cdef void ex_power_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> power.f32)(a, b, y, n, NULL)

cdef void ex_power_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> power.f64)(a, b, y, n, NULL)

cdef void ex_power_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block3> power_grad_a.f32)(grad_output, a, b, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block3> power_grad_b.f32)(grad_output, a, b, grad_b, n, NULL)

cdef void ex_power_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block3> power_grad_a.f64)(grad_output, a, b, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block3> power_grad_b.f64)(grad_output, a, b, grad_b, n, NULL)

cdef void ex_floor_divide_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> floor_divide.f32)(a, b, y, n, NULL)

cdef void ex_floor_divide_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> floor_divide.f64)(a, b, y, n, NULL)

cdef void ex_floor_divide_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block1> zero.f32)(grad_output, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block1> zero.f32)(grad_output, grad_b, n, NULL)

cdef void ex_floor_divide_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block1> zero.f64)(grad_output, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block1> zero.f64)(grad_output, grad_b, n, NULL)

cdef void ex_modulo_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> modulo.f32)(a, b, y, n, NULL)

cdef void ex_modulo_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> modulo.f64)(a, b, y, n, NULL)

cdef void ex_modulo_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block1> copy.f32)(grad_output, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block3> modulo_grad_b.f32)(grad_output, a, b, grad_b, n, NULL)

cdef void ex_modulo_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block1> copy.f64)(grad_output, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block3> modulo_grad_b.f64)(grad_output, a, b, grad_b, n, NULL)

cdef void ex_negative_f32(const float* a, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> negative.f32)(a, y, n, NULL)

cdef void ex_negative_f64(const double* a, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> negative.f64)(a, y, n, NULL)

cdef void ex_negative_backward_f32(const float* grad_output, float* grad_a, Py_ssize_t n) noexcept nogil:
    (<Block1> negative.f32)(grad_output, grad_a, n, NULL)

cdef void ex_negative_backward_f64(const double* grad_output, double* grad_a, Py_ssize_t n) noexcept nogil:
    (<Block1> negative.f64)(grad_output, grad_a, n, NULL)

cdef void ex_reciprocal_f32(const float* a, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> reciprocal.f32)(a, y, n, NULL)

cdef void ex_reciprocal_f64(const double* a, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> reciprocal.f64)(a, y, n, NULL)

cdef void ex_reciprocal_backward_f32(
    const float* grad_output, const float* output, float* grad_a, Py_ssize_t n,
) noexcept nogil:
    (<Block2> reciprocal_grad.f32)(grad_output, output, grad_a, n, NULL)

cdef void ex_reciprocal_backward_f64(
    const double* grad_output, const double* output, double* grad_a, Py_ssize_t n,
) noexcept nogil:
    (<Block2> reciprocal_grad.f64)(grad_output, output, grad_a, n, NULL)

cdef void ex_maximum_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> maximum.f32)(a, b, y, n, NULL)

cdef void ex_maximum_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> maximum.f64)(a, b, y, n, NULL)

cdef void ex_maximum_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block3> maximum_grad.f32)(grad_output, a, b, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block3> maximum_grad.f32)(grad_output, b, a, grad_b, n, NULL)

cdef void ex_maximum_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block3> maximum_grad.f64)(grad_output, a, b, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block3> maximum_grad.f64)(grad_output, b, a, grad_b, n, NULL)

cdef void ex_minimum_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> minimum.f32)(a, b, y, n, NULL)

cdef void ex_minimum_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> minimum.f64)(a, b, y, n, NULL)

cdef void ex_minimum_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block3> minimum_grad.f32)(grad_output, a, b, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block3> minimum_grad.f32)(grad_output, b, a, grad_b, n, NULL)

cdef void ex_minimum_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block3> minimum_grad.f64)(grad_output, a, b, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block3> minimum_grad.f64)(grad_output, b, a, grad_b, n, NULL)

cdef void ex_where_f32(
    const unsigned char* cond, const float* a, const float* b, float* y, Py_ssize_t n,
) noexcept nogil:
    (<Block3> where.f32)(cond, a, b, y, n, NULL)

cdef void ex_where_f64(
    const unsigned char* cond, const double* a, const double* b, double* y, Py_ssize_t n,
) noexcept nogil:
    (<Block3> where.f64)(cond, a, b, y, n, NULL)

cdef void ex_where_backward_f32(
    const float* grad_output, const unsigned char* cond, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block2> where_grad_a.f32)(grad_output, cond, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block2> where_grad_b.f32)(grad_output, cond, grad_b, n, NULL)

cdef void ex_where_backward_f64(
    const double* grad_output, const unsigned char* cond, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil:
    if grad_a != NULL:
        (<Block2> where_grad_a.f64)(grad_output, cond, grad_a, n, NULL)
    if grad_b != NULL:
        (<Block2> where_grad_b.f64)(grad_output, cond, grad_b, n, NULL)

# ---------------------------------------------------------------- comparison and logic

cdef Kernel equal = kernel(_arithmetic["equal"])
cdef Kernel not_equal = kernel(_arithmetic["not_equal"])
cdef Kernel less = kernel(_arithmetic["less"])
cdef Kernel less_equal = kernel(_arithmetic["less_equal"])
cdef Kernel isnan = kernel(_elementwise["isnan"])
cdef Kernel isinf = kernel(_elementwise["isinf"])
cdef Kernel isfinite = kernel(_elementwise["isfinite"])
cdef Kernel logical_and = kernel(_elementwise["logical_and"])
cdef Kernel logical_or = kernel(_elementwise["logical_or"])
cdef Kernel logical_xor = kernel(_elementwise["logical_xor"])
cdef Kernel logical_not = kernel(_elementwise["logical_not"])


cdef void ex_equal_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> equal.f32)(a, b, y, n, NULL)

cdef void ex_equal_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> equal.f64)(a, b, y, n, NULL)

cdef void ex_not_equal_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> not_equal.f32)(a, b, y, n, NULL)

cdef void ex_not_equal_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> not_equal.f64)(a, b, y, n, NULL)

cdef void ex_less_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> less.f32)(a, b, y, n, NULL)

cdef void ex_less_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> less.f64)(a, b, y, n, NULL)

cdef void ex_less_equal_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> less_equal.f32)(a, b, y, n, NULL)

cdef void ex_less_equal_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> less_equal.f64)(a, b, y, n, NULL)

cdef void ex_greater_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> less.f32)(b, a, y, n, NULL)

cdef void ex_greater_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> less.f64)(b, a, y, n, NULL)

cdef void ex_greater_equal_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> less_equal.f32)(b, a, y, n, NULL)

cdef void ex_greater_equal_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> less_equal.f64)(b, a, y, n, NULL)

cdef void ex_logical_and_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> logical_and.f32)(a, b, y, n, NULL)

cdef void ex_logical_and_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> logical_and.f64)(a, b, y, n, NULL)

cdef void ex_logical_or_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> logical_or.f32)(a, b, y, n, NULL)

cdef void ex_logical_or_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> logical_or.f64)(a, b, y, n, NULL)

cdef void ex_logical_xor_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> logical_xor.f32)(a, b, y, n, NULL)

cdef void ex_logical_xor_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block2> logical_xor.f64)(a, b, y, n, NULL)

cdef void ex_logical_not_f32(const float* x, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block1> logical_not.f32)(x, y, n, NULL)

cdef void ex_logical_not_f64(const double* x, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block1> logical_not.f64)(x, y, n, NULL)

cdef void ex_isnan_f32(const float* x, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block1> isnan.f32)(x, y, n, NULL)

cdef void ex_isnan_f64(const double* x, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block1> isnan.f64)(x, y, n, NULL)

cdef void ex_isinf_f32(const float* x, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block1> isinf.f32)(x, y, n, NULL)

cdef void ex_isinf_f64(const double* x, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block1> isinf.f64)(x, y, n, NULL)

cdef void ex_isfinite_f32(const float* x, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block1> isfinite.f32)(x, y, n, NULL)

cdef void ex_isfinite_f64(const double* x, unsigned char* y, Py_ssize_t n) noexcept nogil:
    (<Block1> isfinite.f64)(x, y, n, NULL)

# ---------------------------------------------------------------- elementwise

cdef Kernel absolute = kernel(_elementwise["absolute"])
cdef Kernel absolute_grad = kernel(_elementwise["absolute_grad"])
cdef Kernel sign = kernel(_elementwise["sign"])
cdef Kernel exp = kernel(_elementwise["exp"])
cdef Kernel expm1 = kernel(_elementwise["expm1"])
cdef Kernel expm1_grad = kernel(_elementwise["expm1_grad"])
cdef Kernel log = kernel(_elementwise["log"])
cdef Kernel log_grad = kernel(_elementwise["log_grad"])
cdef Kernel log1p = kernel(_elementwise["log1p"])
cdef Kernel log1p_grad = kernel(_elementwise["log1p_grad"])
cdef Kernel log2 = kernel(_elementwise["log2"])
cdef Kernel log10 = kernel(_elementwise["log10"])
cdef Kernel log_base_grad = kernel(_elementwise["log_base_grad"])
cdef Kernel square_root = kernel(_elementwise["sqrt"])
cdef Kernel sqrt_grad = kernel(_elementwise["sqrt_grad"])
cdef Kernel square = kernel(_elementwise["square"])
cdef Kernel square_grad = kernel(_elementwise["square_grad"])
cdef Kernel sin = kernel(_elementwise["sin"])
cdef Kernel sin_grad = kernel(_elementwise["sin_grad"])
cdef Kernel cos = kernel(_elementwise["cos"])
cdef Kernel cos_grad = kernel(_elementwise["cos_grad"])
cdef Kernel tanh = kernel(_elementwise["tanh"])
cdef Kernel tanh_grad = kernel(_elementwise["tanh_grad"])
cdef Kernel erf = kernel(_elementwise["erf"])
cdef Kernel erf_grad = kernel(_elementwise["erf_grad"])
cdef Kernel clip = kernel(_elementwise["clip"])
cdef Kernel clip_grad = kernel(_elementwise["clip_grad"])
cdef Kernel ceil = kernel(_elementwise["ceil"])
cdef Kernel floor = kernel(_elementwise["floor"])
cdef Kernel round_even = kernel(_elementwise["round_even"])
cdef Kernel trunc = kernel(_elementwise["trunc"])


cdef void ex_abs_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> absolute.f32)(x, y, n, NULL)

cdef void ex_abs_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> absolute.f64)(x, y, n, NULL)

cdef void ex_abs_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> absolute_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_abs_backward_f64(const double* grad_output, const double* x, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> absolute_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_sign_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> sign.f32)(x, y, n, NULL)

cdef void ex_sign_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> sign.f64)(x, y, n, NULL)

cdef void ex_sign_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f32)(grad_output, grad_x, n, NULL)

cdef void ex_sign_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f64)(grad_output, grad_x, n, NULL)

cdef void ex_exp_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> exp.f32)(x, y, n, NULL)

cdef void ex_exp_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> exp.f64)(x, y, n, NULL)

cdef void ex_exp_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> multiply.f32)(grad_output, output, grad_x, n, NULL)

cdef void ex_exp_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> multiply.f64)(grad_output, output, grad_x, n, NULL)

cdef void ex_expm1_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> expm1.f32)(x, y, n, NULL)

cdef void ex_expm1_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> expm1.f64)(x, y, n, NULL)

cdef void ex_expm1_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> expm1_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_expm1_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> expm1_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_log_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> log.f32)(x, y, n, NULL)

cdef void ex_log_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> log.f64)(x, y, n, NULL)

cdef void ex_log_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double eps,
) noexcept nogil:
    (<Block2> log_grad.f32)(grad_output, x, grad_x, n, &eps)

cdef void ex_log_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double eps,
) noexcept nogil:
    (<Block2> log_grad.f64)(grad_output, x, grad_x, n, &eps)

cdef void ex_log1p_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> log1p.f32)(x, y, n, NULL)

cdef void ex_log1p_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> log1p.f64)(x, y, n, NULL)

cdef void ex_log1p_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> log1p_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_log1p_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> log1p_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_log2_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> log2.f32)(x, y, n, NULL)

cdef void ex_log2_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> log2.f64)(x, y, n, NULL)

cdef void ex_log2_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double eps,
) noexcept nogil:
    cdef double[2] p = [eps, INV_LN2]
    (<Block2> log_base_grad.f32)(grad_output, x, grad_x, n, p)

cdef void ex_log2_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double eps,
) noexcept nogil:
    cdef double[2] p = [eps, INV_LN2]
    (<Block2> log_base_grad.f64)(grad_output, x, grad_x, n, p)

cdef void ex_log10_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> log10.f32)(x, y, n, NULL)

cdef void ex_log10_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> log10.f64)(x, y, n, NULL)

cdef void ex_log10_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double eps,
) noexcept nogil:
    cdef double[2] p = [eps, INV_LN10]
    (<Block2> log_base_grad.f32)(grad_output, x, grad_x, n, p)

cdef void ex_log10_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double eps,
) noexcept nogil:
    cdef double[2] p = [eps, INV_LN10]
    (<Block2> log_base_grad.f64)(grad_output, x, grad_x, n, p)

cdef void ex_sqrt_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> square_root.f32)(x, y, n, NULL)

cdef void ex_sqrt_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> square_root.f64)(x, y, n, NULL)

cdef void ex_sqrt_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t n, double eps,
) noexcept nogil:
    (<Block2> sqrt_grad.f32)(grad_output, output, grad_x, n, &eps)

cdef void ex_sqrt_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t n, double eps,
) noexcept nogil:
    (<Block2> sqrt_grad.f64)(grad_output, output, grad_x, n, &eps)

cdef void ex_square_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> square.f32)(x, y, n, NULL)

cdef void ex_square_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> square.f64)(x, y, n, NULL)

cdef void ex_square_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> square_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_square_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> square_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_sin_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> sin.f32)(x, y, n, NULL)

cdef void ex_sin_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> sin.f64)(x, y, n, NULL)

cdef void ex_sin_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> sin_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_sin_backward_f64(const double* grad_output, const double* x, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> sin_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_cos_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> cos.f32)(x, y, n, NULL)

cdef void ex_cos_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> cos.f64)(x, y, n, NULL)

cdef void ex_cos_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> cos_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_cos_backward_f64(const double* grad_output, const double* x, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> cos_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_tanh_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> tanh.f32)(x, y, n, NULL)

cdef void ex_tanh_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> tanh.f64)(x, y, n, NULL)

cdef void ex_tanh_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> tanh_grad.f32)(grad_output, output, grad_x, n, NULL)

cdef void ex_tanh_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> tanh_grad.f64)(grad_output, output, grad_x, n, NULL)

cdef void ex_erf_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> erf.f32)(x, y, n, NULL)

cdef void ex_erf_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> erf.f64)(x, y, n, NULL)

cdef void ex_erf_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> erf_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_erf_backward_f64(const double* grad_output, const double* x, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> erf_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_clip_f32(const float* x, float* y, Py_ssize_t n, double low, double high) noexcept nogil:
    cdef double[2] p = [low, high]
    (<Block1> clip.f32)(x, y, n, p)

cdef void ex_clip_f64(const double* x, double* y, Py_ssize_t n, double low, double high) noexcept nogil:
    cdef double[2] p = [low, high]
    (<Block1> clip.f64)(x, y, n, p)

cdef void ex_clip_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double low, double high,
) noexcept nogil:
    cdef double[2] p = [low, high]
    (<Block2> clip_grad.f32)(grad_output, x, grad_x, n, p)

cdef void ex_clip_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double low, double high,
) noexcept nogil:
    cdef double[2] p = [low, high]
    (<Block2> clip_grad.f64)(grad_output, x, grad_x, n, p)

cdef void ex_ceil_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> ceil.f32)(x, y, n, NULL)

cdef void ex_ceil_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> ceil.f64)(x, y, n, NULL)

cdef void ex_ceil_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f32)(grad_output, grad_x, n, NULL)

cdef void ex_ceil_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f64)(grad_output, grad_x, n, NULL)

cdef void ex_floor_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> floor.f32)(x, y, n, NULL)

cdef void ex_floor_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> floor.f64)(x, y, n, NULL)

cdef void ex_floor_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f32)(grad_output, grad_x, n, NULL)

cdef void ex_floor_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f64)(grad_output, grad_x, n, NULL)

cdef void ex_round_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> round_even.f32)(x, y, n, NULL)

cdef void ex_round_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> round_even.f64)(x, y, n, NULL)

cdef void ex_round_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f32)(grad_output, grad_x, n, NULL)

cdef void ex_round_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f64)(grad_output, grad_x, n, NULL)

cdef void ex_trunc_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> trunc.f32)(x, y, n, NULL)

cdef void ex_trunc_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> trunc.f64)(x, y, n, NULL)

cdef void ex_trunc_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f32)(grad_output, grad_x, n, NULL)

cdef void ex_trunc_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block1> zero.f64)(grad_output, grad_x, n, NULL)

# ---------------------------------------------------------------- activations

cdef Kernel relu = kernel(_activations["relu"])
cdef Kernel relu_grad = kernel(_activations["relu_grad"])
cdef Kernel leaky_relu = kernel(_activations["leaky_relu"])
cdef Kernel leaky_relu_grad = kernel(_activations["leaky_relu_grad"])
cdef Kernel prelu = kernel(_activations["prelu"])
cdef Kernel prelu_grad_x = kernel(_activations["prelu_grad_x"])
cdef Kernel prelu_grad_alpha = kernel(_activations["prelu_grad_alpha"])
cdef Kernel sigmoid = kernel(_activations["sigmoid"])
cdef Kernel sigmoid_grad = kernel(_activations["sigmoid_grad"])
cdef Kernel gelu = kernel(_activations["gelu"])
cdef Kernel gelu_grad = kernel(_activations["gelu_grad"])
cdef Kernel gelu_tanh = kernel(_activations["gelu_tanh"])
cdef Kernel gelu_tanh_grad = kernel(_activations["gelu_tanh_grad"])
cdef Kernel swish = kernel(_activations["swish"])
cdef Kernel swish_grad = kernel(_activations["swish_grad"])
cdef Kernel mish = kernel(_activations["mish"])
cdef Kernel mish_grad = kernel(_activations["mish_grad"])
cdef Kernel softplus = kernel(_activations["softplus"])
cdef Kernel softplus_grad = kernel(_activations["softplus_grad"])
cdef Kernel elu = kernel(_activations["elu"])
cdef Kernel elu_grad = kernel(_activations["elu_grad"])


cdef void ex_relu_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> relu.f32)(x, y, n, NULL)

cdef void ex_relu_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> relu.f64)(x, y, n, NULL)

cdef void ex_relu_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> relu_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_relu_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> relu_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_leaky_relu_f32(const float* x, float* y, Py_ssize_t n, double alpha) noexcept nogil:
    (<Block1> leaky_relu.f32)(x, y, n, &alpha)

cdef void ex_leaky_relu_f64(const double* x, double* y, Py_ssize_t n, double alpha) noexcept nogil:
    (<Block1> leaky_relu.f64)(x, y, n, &alpha)

cdef void ex_leaky_relu_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double alpha,
) noexcept nogil:
    (<Block2> leaky_relu_grad.f32)(grad_output, x, grad_x, n, &alpha)

cdef void ex_leaky_relu_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double alpha,
) noexcept nogil:
    (<Block2> leaky_relu_grad.f64)(grad_output, x, grad_x, n, &alpha)

cdef void ex_prelu_f32(const float* x, const float* alpha, float* y, Py_ssize_t n) noexcept nogil:
    (<Block2> prelu.f32)(x, alpha, y, n, NULL)

cdef void ex_prelu_f64(const double* x, const double* alpha, double* y, Py_ssize_t n) noexcept nogil:
    (<Block2> prelu.f64)(x, alpha, y, n, NULL)

cdef void ex_prelu_backward_f32(
    const float* grad_output, const float* x, const float* alpha, float* grad_x, float* grad_alpha,
    Py_ssize_t n,
) noexcept nogil:
    if grad_x != NULL:
        (<Block3> prelu_grad_x.f32)(grad_output, x, alpha, grad_x, n, NULL)
    if grad_alpha != NULL:
        (<Block2> prelu_grad_alpha.f32)(grad_output, x, grad_alpha, n, NULL)

cdef void ex_prelu_backward_f64(
    const double* grad_output, const double* x, const double* alpha, double* grad_x, double* grad_alpha,
    Py_ssize_t n,
) noexcept nogil:
    if grad_x != NULL:
        (<Block3> prelu_grad_x.f64)(grad_output, x, alpha, grad_x, n, NULL)
    if grad_alpha != NULL:
        (<Block2> prelu_grad_alpha.f64)(grad_output, x, grad_alpha, n, NULL)

cdef void ex_sigmoid_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> sigmoid.f32)(x, y, n, NULL)

cdef void ex_sigmoid_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> sigmoid.f64)(x, y, n, NULL)

cdef void ex_sigmoid_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> sigmoid_grad.f32)(grad_output, output, grad_x, n, NULL)

cdef void ex_sigmoid_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> sigmoid_grad.f64)(grad_output, output, grad_x, n, NULL)

cdef void ex_gelu_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> gelu.f32)(x, y, n, NULL)

cdef void ex_gelu_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> gelu.f64)(x, y, n, NULL)

cdef void ex_gelu_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> gelu_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_gelu_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> gelu_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_gelu_tanh_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> gelu_tanh.f32)(x, y, n, NULL)

cdef void ex_gelu_tanh_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> gelu_tanh.f64)(x, y, n, NULL)

cdef void ex_gelu_tanh_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> gelu_tanh_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_gelu_tanh_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> gelu_tanh_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_swish_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> swish.f32)(x, y, n, NULL)

cdef void ex_swish_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> swish.f64)(x, y, n, NULL)

cdef void ex_swish_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> swish_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_swish_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> swish_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_mish_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> mish.f32)(x, y, n, NULL)

cdef void ex_mish_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> mish.f64)(x, y, n, NULL)

cdef void ex_mish_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil:
    (<Block2> mish_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_mish_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> mish_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_softplus_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil:
    (<Block1> softplus.f32)(x, y, n, NULL)

cdef void ex_softplus_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    (<Block1> softplus.f64)(x, y, n, NULL)

cdef void ex_softplus_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> softplus_grad.f32)(grad_output, x, grad_x, n, NULL)

cdef void ex_softplus_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil:
    (<Block2> softplus_grad.f64)(grad_output, x, grad_x, n, NULL)

cdef void ex_elu_f32(const float* x, float* y, Py_ssize_t n, double alpha) noexcept nogil:
    (<Block1> elu.f32)(x, y, n, &alpha)

cdef void ex_elu_f64(const double* x, double* y, Py_ssize_t n, double alpha) noexcept nogil:
    (<Block1> elu.f64)(x, y, n, &alpha)

cdef void ex_elu_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double alpha,
) noexcept nogil:
    (<Block2> elu_grad.f32)(grad_output, x, grad_x, n, &alpha)

cdef void ex_elu_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double alpha,
) noexcept nogil:
    (<Block2> elu_grad.f64)(grad_output, x, grad_x, n, &alpha)

# ---------------------------------------------------------------- rows

cdef Kernel softmax_rows = kernel(_reduction["softmax_rows"])
cdef Kernel softmax_rows_backward = kernel(_reduction["softmax_rows_backward"])


cdef void ex_softmax_f32(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    (<Rows> softmax_rows.f32)(x, y, rows, n, 0)

cdef void ex_softmax_f64(const double* x, double* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    (<Rows> softmax_rows.f64)(x, y, rows, n, 0)

cdef void ex_softmax_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t rows, Py_ssize_t n,
) noexcept nogil:
    (<RowsBackward> softmax_rows_backward.f32)(grad_output, output, grad_x, rows, n, 0)

cdef void ex_softmax_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t rows, Py_ssize_t n,
) noexcept nogil:
    (<RowsBackward> softmax_rows_backward.f64)(grad_output, output, grad_x, rows, n, 0)

cdef void ex_log_softmax_f32(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    (<Rows> softmax_rows.f32)(x, y, rows, n, 1)

cdef void ex_log_softmax_f64(const double* x, double* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    (<Rows> softmax_rows.f64)(x, y, rows, n, 1)

cdef void ex_log_softmax_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t rows, Py_ssize_t n,
) noexcept nogil:
    (<RowsBackward> softmax_rows_backward.f32)(grad_output, output, grad_x, rows, n, 1)

cdef void ex_log_softmax_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t rows, Py_ssize_t n,
) noexcept nogil:
    (<RowsBackward> softmax_rows_backward.f64)(grad_output, output, grad_x, rows, n, 1)

# ---------------------------------------------------------------- sum

cdef Kernel total = kernel(_drive["sum"])


cdef float ex_sum_f32(const float* x, Py_ssize_t n) noexcept nogil:
    return (<Sum32> total.f32)(x, n)


cdef double ex_sum_f64(const double* x, Py_ssize_t n) noexcept nogil:
    return (<Sum64> total.f64)(x, n)


# ---------------------------------------------------------------- matrix product

cdef Gemm gemm_f32 = <Gemm> PyCapsule_GetPointer(_matrix["gemm_f32"], "extensor.kernel")
cdef Gemm gemm_f64 = <Gemm> PyCapsule_GetPointer(_matrix["gemm_f64"], "extensor.kernel")


cdef inline int product(
    Gemm run, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const void* a, Py_ssize_t a_row, Py_ssize_t a_col,
    const void* b, Py_ssize_t b_row, Py_ssize_t b_col, void* c, Py_ssize_t c_row, Py_ssize_t c_col,
    const void* bias, int accumulate, int threads,
) noexcept nogil:
    cdef ex_gemm_job job
    job.m, job.n, job.k = m, n, k
    job.a, job.a_row, job.a_col = a, a_row, a_col
    job.b, job.b_row, job.b_col = b, b_row, b_col
    job.c, job.c_row, job.c_col = c, c_row, c_col
    job.bias, job.accumulate = bias, accumulate
    job.threads = 1 if forked else threads
    job.nbatch_axes = 0
    job.batch_shape = job.a_batch = job.b_batch = job.c_batch = NULL
    return -1 if run(&job) < 0 else 0


cdef int ex_gemm_f32(
    Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float* a, Py_ssize_t a_row, Py_ssize_t a_col,
    const float* b, Py_ssize_t b_row, Py_ssize_t b_col, float* c, Py_ssize_t c_row, Py_ssize_t c_col,
    const float* bias, int accumulate, int threads,
) noexcept nogil:
    return product(
        gemm_f32, m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, c_col, bias, accumulate, threads)

cdef int ex_gemm_f64(
    Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const double* a, Py_ssize_t a_row, Py_ssize_t a_col,
    const double* b, Py_ssize_t b_row, Py_ssize_t b_col, double* c, Py_ssize_t c_row, Py_ssize_t c_col,
    const double* bias, int accumulate, int threads,
) noexcept nogil:
    return product(
        gemm_f64, m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, c_col, bias, accumulate, threads)

# ---------------------------------------------------------------- optimizer updates

cdef Kernel sgd = kernel(_optimizers["sgd"])
cdef Kernel sgd_momentum = kernel(_optimizers["sgd_momentum"])
cdef Kernel adam = kernel(_optimizers["adam"])
cdef Kernel adamw = kernel(_optimizers["adamw"])
cdef Kernel rmsprop = kernel(_optimizers["rmsprop"])
cdef Kernel rmsprop_momentum = kernel(_optimizers["rmsprop_momentum"])


cdef inline void adam_values(
    double* v, Py_ssize_t step, double lr, double beta1, double beta2, double eps, double decay,
) noexcept nogil:
    v[0], v[1], v[7] = lr / (1 - pow(beta1, <double> step)), decay, eps
    v[2], v[3], v[4], v[5] = beta1, 1 - beta1, beta2, 1 - beta2
    v[6] = sqrt(1 - pow(beta2, <double> step))


cdef void ex_sgd_f32(
    float* param, const float* grad, float* momentum_buffer, Py_ssize_t n, double lr, double momentum,
    int nesterov, double weight_decay,
) noexcept nogil:
    cdef double[4] v = [lr, weight_decay, momentum, 1.0 if nesterov else 0.0]
    (<Update> (sgd.f32 if momentum_buffer == NULL else sgd_momentum.f32))(param, grad, momentum_buffer, NULL, n, v)

cdef void ex_sgd_f64(
    double* param, const double* grad, double* momentum_buffer, Py_ssize_t n, double lr, double momentum,
    int nesterov, double weight_decay,
) noexcept nogil:
    cdef double[4] v = [lr, weight_decay, momentum, 1.0 if nesterov else 0.0]
    (<Update> (sgd.f64 if momentum_buffer == NULL else sgd_momentum.f64))(param, grad, momentum_buffer, NULL, n, v)

cdef void ex_adam_f32(
    float* param, const float* grad, float* exp_avg, float* exp_avg_sq, Py_ssize_t n, Py_ssize_t step,
    double lr, double beta1, double beta2, double eps, double weight_decay,
) noexcept nogil:
    cdef double[8] v
    adam_values(v, step, lr, beta1, beta2, eps, weight_decay)
    (<Update> adam.f32)(param, grad, exp_avg, exp_avg_sq, n, v)

cdef void ex_adam_f64(
    double* param, const double* grad, double* exp_avg, double* exp_avg_sq, Py_ssize_t n, Py_ssize_t step,
    double lr, double beta1, double beta2, double eps, double weight_decay,
) noexcept nogil:
    cdef double[8] v
    adam_values(v, step, lr, beta1, beta2, eps, weight_decay)
    (<Update> adam.f64)(param, grad, exp_avg, exp_avg_sq, n, v)

cdef void ex_adamw_f32(
    float* param, const float* grad, float* exp_avg, float* exp_avg_sq, Py_ssize_t n, Py_ssize_t step,
    double lr, double beta1, double beta2, double eps, double weight_decay,
) noexcept nogil:
    cdef double[8] v
    adam_values(v, step, lr, beta1, beta2, eps, 1 - lr * weight_decay)
    (<Update> adamw.f32)(param, grad, exp_avg, exp_avg_sq, n, v)

cdef void ex_adamw_f64(
    double* param, const double* grad, double* exp_avg, double* exp_avg_sq, Py_ssize_t n, Py_ssize_t step,
    double lr, double beta1, double beta2, double eps, double weight_decay,
) noexcept nogil:
    cdef double[8] v
    adam_values(v, step, lr, beta1, beta2, eps, 1 - lr * weight_decay)
    (<Update> adamw.f64)(param, grad, exp_avg, exp_avg_sq, n, v)

cdef void ex_rmsprop_f32(
    float* param, const float* grad, float* square_avg, float* momentum_buffer, Py_ssize_t n, double lr,
    double alpha, double eps, double momentum, double weight_decay,
) noexcept nogil:
    cdef double[6] v = [lr, weight_decay, momentum, alpha, 1 - alpha, eps]
    (<Update> (rmsprop.f32 if momentum_buffer == NULL else rmsprop_momentum.f32))(
        param, grad, square_avg, momentum_buffer, n, v)

cdef void ex_rmsprop_f64(
    double* param, const double* grad, double* square_avg, double* momentum_buffer, Py_ssize_t n, double lr,
    double alpha, double eps, double momentum, double weight_decay,
) noexcept nogil:
    cdef double[6] v = [lr, weight_decay, momentum, alpha, 1 - alpha, eps]
    (<Update> (rmsprop.f64 if momentum_buffer == NULL else rmsprop_momentum.f64))(
        param, grad, square_avg, momentum_buffer, n, v)
