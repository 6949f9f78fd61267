"""Blocks of the arithmetic and comparison functions and of their gradients.

Every block is one loop over contiguous memory that the compiler vectorises. A gradient block
computes the gradient of one operand from grad_output ``g`` and the saved operands ``a`` and ``b``.
"""

from libc.math cimport NAN, fmod, fmodf
from libc.string cimport memcpy

from extensor._kernels cimport vecmath as vm
from extensor._kernels.types cimport floating, pair

cdef extern from "division.h" nogil:
    int ex_quotient_is_rare_f32(float a, float b)
    int ex_quotient_is_rare_f64(double a, double b)
    float ex_fmod_f32(float a, float b)
    double ex_fmod_f64(double a, double b)
    float ex_modulo_f32(float rest, float b)
    double ex_modulo_f64(double rest, double b)
    float ex_floor_divide_f32(float a, float b, float rest)
    double ex_floor_divide_f64(double a, double b, double rest)

cdef double LN2 = 0.6931471805599453

cdef enum:
    PIECE = 512         # elements of one step where a block works in several passes


# ---------------------------------------------------------------- the four operations

cdef void add(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] + b[i]


cdef void subtract(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] - b[i]


cdef void multiply(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] * b[i]


cdef void divide(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] / b[i]


cdef void divide_grad_b(
    const floating* g, const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # −(g/b)·(a/b): b² would overflow beyond √max. Near zero −g·a/eps, bounded.
    cdef floating eps = <floating> p[0], root = <floating> p[1], near, far
    cdef Py_ssize_t i
    for i in range(n):
        far = -(g[i] / b[i]) * (a[i] / b[i])
        near = -(g[i] * a[i]) / eps
        y[i] = near if (b[i] < root) & (b[i] > -root) else far


cdef void negative(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = -x[i]


cdef void reciprocal(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating> 1 / x[i]


cdef void reciprocal_grad(const floating* g, const floating* out, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    # (g·y)·y, not g·y²: y² overflows where the gradient does not.
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = -(g[i] * out[i]) * out[i]


cdef void copy(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i]


cdef void zero(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = 0


# ---------------------------------------------------------------- division with a floor

cdef inline bint rare_quotient(floating a, floating b) noexcept nogil:
    return ex_quotient_is_rare_f32(a, b) if floating is float else ex_quotient_is_rare_f64(a, b)


cdef void remainders(const floating* a, const floating* b, floating* rest, Py_ssize_t n) noexcept nogil:
    """fmod(a, b): a vectorised pass, and the C library's function where a quotient is rare."""
    cdef Py_ssize_t i
    cdef int rare = 0
    for i in range(n):
        rest[i] = ex_fmod_f32(a[i], b[i]) if floating is float else ex_fmod_f64(a[i], b[i])
    for i in range(n):
        rare |= rare_quotient(a[i], b[i])
    if rare:
        for i in range(n):
            if rare_quotient(a[i], b[i]):
                rest[i] = fmodf(a[i], b[i]) if floating is float else fmod(a[i], b[i])


cdef void floor_divide(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating rest[PIECE]
    cdef Py_ssize_t i, start = 0, size
    while start < n:
        size = min(PIECE, n - start)
        remainders(a + start, b + start, rest, size)
        for i in range(start, start + size):
            y[i] = ex_floor_divide_f32(a[i], b[i], rest[i - start]) if floating is float else (
                ex_floor_divide_f64(a[i], b[i], rest[i - start]))
        start += size


cdef void modulo(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating rest[PIECE]
    cdef Py_ssize_t i, start = 0, size
    while start < n:
        size = min(PIECE, n - start)
        remainders(a + start, b + start, rest, size)
        for i in range(start, start + size):
            y[i] = ex_modulo_f32(rest[i - start], b[i]) if floating is float else (
                ex_modulo_f64(rest[i - start], b[i]))
        start += size


cdef void modulo_grad_b(
    const floating* g, const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating whole[PIECE]
    cdef Py_ssize_t i, start = 0, size
    while start < n:
        size = min(PIECE, n - start)
        floor_divide(a + start, b + start, whole, size, p)
        for i in range(size):
            y[start + i] = -g[start + i] * whole[i]
        start += size


# ---------------------------------------------------------------- power

# A piece at a time, in loops that do one thing each. What a piece does not hold (zeros, infinities, negative
# bases, exponents by multiplication) has no loop run for it; an element's result is the same either way.

cdef void logarithms(const floating* a, double* high, double* low, Py_ssize_t n, bint rare) noexcept nogil:
    """log|a|, float32 to base 2, float64 as a sum of two numbers."""
    cdef vm.exm_sum_f64 s
    cdef Py_ssize_t i
    if floating is float:
        if rare:
            for i in range(n):
                high[i] = vm.exm_power_log_any_f32(a[i])
        else:
            for i in range(n):
                high[i] = vm.exm_power_log_f32(a[i])
    elif rare:
        for i in range(n):
            s = vm.exm_power_log_any_f64(a[i])
            high[i] = s.high
            low[i] = s.low
    else:
        for i in range(n):
            s = vm.exm_power_ratio_f64(a[i])
            high[i] = s.high
            low[i] = s.low
        for i in range(n):
            s.high = high[i]
            s.low = low[i]
            s = vm.exm_power_log_f64(a[i], s)
            high[i] = s.high
            low[i] = s.low


cdef void exponents(const floating* b, double less, double* high, double* low, Py_ssize_t n) noexcept nogil:
    """The logarithms times b − less, 0 or 1: exact in double, or with what it loses. 0 stays 0."""
    cdef vm.exm_sum_f64 s
    cdef Py_ssize_t i
    if floating is float:
        for i in range(n):
            high[i] = vm.exm_power_product_f32(<double> b[i] - less, high[i])
    elif less == 0:
        for i in range(n):
            s.high = high[i]
            s.low = low[i]
            s = vm.exm_power_product_f64(b[i], s)
            high[i] = s.high
            low[i] = s.low
    else:
        for i in range(n):
            s.high = high[i]
            s.low = low[i]
            s = vm.exm_power_product_less_f64(b[i], s)
            high[i] = s.high
            low[i] = s.low


cdef void exponentials(const double* high, const double* low, floating* y, Py_ssize_t n) noexcept nogil:
    cdef vm.exm_sum_f64 e
    cdef Py_ssize_t i
    for i in range(n):
        if floating is float:
            y[i] = vm.exm_power_exp_f32(high[i])
        else:
            e.high = high[i]
            e.low = low[i]
            y[i] = vm.exm_power_exp_f64(e)


cdef void slopes(
    const floating* a, const double* high, const double* low, floating* slope, Py_ssize_t n,
) noexcept nogil:
    """ln a."""
    cdef floating r
    cdef Py_ssize_t i
    for i in range(n):
        r = <floating> (high[i] * LN2) if floating is float else high[i] + low[i]
        slope[i] = r if a[i] >= 0 else <floating> NAN


cdef bint is_simple(floating e) noexcept nogil:
    """Whether a power to e is a multiplication or two or a division."""
    return (e == 1) | (e == 2) | (e == 3) | (e == -1)


cdef void simple_powers(const floating* a, floating e, floating* y, Py_ssize_t n) noexcept nogil:
    cdef floating one = 1
    cdef Py_ssize_t i
    if e == 1:
        for i in range(n):
            y[i] = a[i]
    elif e == 2:
        for i in range(n):
            y[i] = a[i] * a[i]
    elif e == 3:
        for i in range(n):
            y[i] = a[i] * a[i] * a[i]
    else:
        for i in range(n):
            y[i] = one / a[i]


cdef void powers(
    const floating* a, const floating* b, int less, floating* y, floating* slope, Py_ssize_t n,
) noexcept nogil:
    """a^(b − less) of a piece, by multiplication where the exponent is 1, 2, 3 or −1; ln a where it is asked for."""
    cdef double high[PIECE]
    cdef double low[PIECE]
    cdef floating power[PIECE]      # y may be a or b
    cdef floating one = 1, first = b[0] - less, e, r
    cdef int unusual = 0, rare = 0, negative = 0, simple = 0, others = 0
    cdef Py_ssize_t i
    if slope == NULL and is_simple(first) and b[n - 1] == b[0]:
        for i in range(n):
            others |= b[i] != b[0]
        if not others:
            simple_powers(a, first, y, n)
            return
    for i in range(n):
        unusual |= vm.power_is_unusual(a[i], b[i])
    if not unusual:
        logarithms(a, high, low, n, False)
        if slope != NULL:
            slopes(a, high, low, slope, n)
        exponents(b, less, high, low, n)
        exponentials(high, low, y, n)
        return
    for i in range(n):
        e = b[i] - less
        simple |= is_simple(e)
        negative |= a[i] < 0
        rare |= vm.power_is_rare(a[i], b[i])
    logarithms(a, high, low, n, rare)
    if slope != NULL:
        slopes(a, high, low, slope, n)
    exponents(b, less, high, low, n)
    exponentials(high, low, power, n)
    if rare or negative:
        for i in range(n):
            e = b[i] - less
            power[i] = vm.power_special(a[i], e, power[i])
    if simple:
        for i in range(n):
            e = b[i] - less
            r = a[i] if e == 1 else power[i]
            r = a[i] * a[i] if e == 2 else r
            r = a[i] * a[i] * a[i] if e == 3 else r
            power[i] = one / a[i] if e == -1 else r
    memcpy(y, power, n * sizeof(floating))


cdef void power(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t start = 0, size
    while start < n:
        size = min(PIECE, n - start)
        powers(a + start, b + start, 0, y + start, <floating*> NULL, size)
        start += size


cdef void power_grad_a(
    const floating* g, const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    """g·b·a^(b−1)."""
    cdef floating result[PIECE]
    cdef Py_ssize_t i, k, start = 0, size
    while start < n:
        size = min(PIECE, n - start)
        powers(a + start, b + start, 1, result, <floating*> NULL, size)
        for i in range(size):
            k = start + i
            y[k] = <floating> 0 if b[k] == 0 else g[k] * (b[k] * result[i])
        start += size


cdef void power_grad_b(
    const floating* g, const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    """g·a^b·ln a."""
    cdef floating slope[PIECE]
    cdef floating result[PIECE]
    cdef Py_ssize_t i, k, start = 0, size
    while start < n:
        size = min(PIECE, n - start)
        powers(a + start, b + start, 0, result, slope, size)
        for i in range(size):
            k = start + i
            y[k] = <floating> 0 if (a[k] == 0) & (b[k] >= 0) else g[k] * (result[i] * slope[i])
        start += size


# ---------------------------------------------------------------- selection

cdef void maximum(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] if (a[i] >= b[i]) | (a[i] != a[i]) else b[i]


cdef void minimum(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] if (a[i] <= b[i]) | (a[i] != a[i]) else b[i]


# The gradient goes to the winner, in halves where both are equal or both are NaN. ``this`` is the
# operand whose gradient is computed; of maximum its win is this > other.
cdef void maximum_grad(
    const floating* g, const floating* this, const floating* other, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint tie, win
    for i in range(n):
        tie = (this[i] == other[i]) | ((this[i] != this[i]) & (other[i] != other[i]))
        win = (this[i] > other[i]) | ((this[i] != this[i]) & (other[i] == other[i]))
        y[i] = (<floating> 0.5) * g[i] if tie else (g[i] if win else <floating> 0)


cdef void minimum_grad(
    const floating* g, const floating* this, const floating* other, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint tie, win
    for i in range(n):
        tie = (this[i] == other[i]) | ((this[i] != this[i]) & (other[i] != other[i]))
        win = (this[i] < other[i]) | ((this[i] != this[i]) & (other[i] == other[i]))
        y[i] = (<floating> 0.5) * g[i] if tie else (g[i] if win else <floating> 0)


cdef void where(
    const unsigned char* c, const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] if c[i] else b[i]


cdef void where_grad_a(const floating* g, const unsigned char* c, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] if c[i] else <floating> 0


cdef void where_grad_b(const floating* g, const unsigned char* c, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating> 0 if c[i] else g[i]


# ---------------------------------------------------------------- comparison: bool results

cdef void equal(const floating* a, const floating* b, unsigned char* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] == b[i]


cdef void not_equal(const floating* a, const floating* b, unsigned char* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] != b[i]


cdef void less(const floating* a, const floating* b, unsigned char* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] < b[i]


cdef void less_equal(const floating* a, const floating* b, unsigned char* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] <= b[i]


EXPORTS = {
    "add": pair(<void*> add[float], <void*> add[double]),
    "subtract": pair(<void*> subtract[float], <void*> subtract[double]),
    "multiply": pair(<void*> multiply[float], <void*> multiply[double]),
    "divide": pair(<void*> divide[float], <void*> divide[double]),
    "divide_grad_b": pair(<void*> divide_grad_b[float], <void*> divide_grad_b[double]),
    "negative": pair(<void*> negative[float], <void*> negative[double]),
    "reciprocal": pair(<void*> reciprocal[float], <void*> reciprocal[double]),
    "reciprocal_grad": pair(<void*> reciprocal_grad[float], <void*> reciprocal_grad[double]),
    "copy": pair(<void*> copy[float], <void*> copy[double]),
    "zero": pair(<void*> zero[float], <void*> zero[double]),
    "floor_divide": pair(<void*> floor_divide[float], <void*> floor_divide[double]),
    "modulo": pair(<void*> modulo[float], <void*> modulo[double]),
    "modulo_grad_b": pair(<void*> modulo_grad_b[float], <void*> modulo_grad_b[double]),
    "power": pair(<void*> power[float], <void*> power[double]),
    "power_grad_a": pair(<void*> power_grad_a[float], <void*> power_grad_a[double]),
    "power_grad_b": pair(<void*> power_grad_b[float], <void*> power_grad_b[double]),
    "maximum": pair(<void*> maximum[float], <void*> maximum[double]),
    "minimum": pair(<void*> minimum[float], <void*> minimum[double]),
    "maximum_grad": pair(<void*> maximum_grad[float], <void*> maximum_grad[double]),
    "minimum_grad": pair(<void*> minimum_grad[float], <void*> minimum_grad[double]),
    "where": pair(<void*> where[float], <void*> where[double]),
    "where_grad_a": pair(<void*> where_grad_a[float], <void*> where_grad_a[double]),
    "where_grad_b": pair(<void*> where_grad_b[float], <void*> where_grad_b[double]),
    "equal": pair(<void*> equal[float], <void*> equal[double]),
    "not_equal": pair(<void*> not_equal[float], <void*> not_equal[double]),
    "less": pair(<void*> less[float], <void*> less[double]),
    "less_equal": pair(<void*> less_equal[float], <void*> less_equal[double]),
}
