"""Blocks of the arithmetic and comparison functions and of their gradients.

Every block is one loop over contiguous memory that the compiler vectorises. A gradient block
computes the gradient of one operand from grad_output ``g`` and the saved operands ``a`` and ``b``.
"""

from libc.math cimport INFINITY, fmod, fmodf
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

# Loops that do one thing each: with the selections in the same loop, power would not vectorise.

cdef void powers(const floating* a, const floating* b, floating* y, Py_ssize_t n) noexcept nogil:
    """a^b; by multiplication where the exponent is 1, 2, 3 or −1, whatever its neighbours are."""
    cdef floating one = 1
    cdef Py_ssize_t i, others = 0
    cdef floating e = b[0], r
    for i in range(n):
        others += b[i] != e
    if others == 0 and (e == 1 or e == 2 or e == 3 or e == -1):
        for i in range(n):
            y[i] = a[i]
    else:
        for i in range(n):
            y[i] = vm.power(a[i], b[i])
    for i in range(n):
        r = y[i]
        r = a[i] if b[i] == 1 else r
        r = a[i] * a[i] if b[i] == 2 else r
        r = a[i] * a[i] * a[i] if b[i] == 3 else r
        y[i] = one / a[i] if b[i] == -1 else r


cdef void power(const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating result[PIECE]     # y may be a or b
    cdef Py_ssize_t start = 0, size
    while start < n:
        size = min(PIECE, n - start)
        powers(a + start, b + start, result, size)
        memcpy(y + start, result, size * sizeof(floating))
        start += size


cdef void power_grad_a(
    const floating* g, const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    """g·b·a^(b−1). The exponent b−1 is rounded; what it lost, times ln a, mends the power."""
    cdef floating less[PIECE]
    cdef floating lost[PIECE]
    cdef floating slope[PIECE]
    cdef floating result[PIECE]
    cdef floating one = 1, back, size_of_a
    cdef Py_ssize_t i, k, start = 0, size
    cdef int rounded
    while start < n:
        size = min(PIECE, n - start)
        rounded = 0
        for i in range(size):
            less[i] = b[start + i] - one
            back = less[i] + one
            lost[i] = (b[start + i] - back) + ((back - less[i]) - one)
            lost[i] = lost[i] if lost[i] == lost[i] else <floating> 0       # an infinite exponent
            rounded |= lost[i] != 0
        powers(a + start, less, result, size)
        if rounded:
            for i in range(size):
                size_of_a = a[start + i] if a[start + i] > 0 else -a[start + i]
                slope[i] = vm.log(size_of_a)
            for i in range(size):       # ln a is infinite at 0 and inf: nothing to mend there
                back = result[i] + result[i] * (lost[i] * slope[i])
                result[i] = back if (lost[i] != 0) & (slope[i] > -INFINITY) & (slope[i] < INFINITY) else result[i]
        for i in range(size):
            k = start + i
            y[k] = <floating> 0 if b[k] == 0 else g[k] * (b[k] * result[i])
        start += size


cdef void power_grad_b(
    const floating* g, const floating* a, const floating* b, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating slope[PIECE]
    cdef floating result[PIECE]
    cdef Py_ssize_t i, k, start = 0, size
    while start < n:
        size = min(PIECE, n - start)
        for i in range(size):
            slope[i] = vm.log(a[start + i])     # NaN where a < 0
        powers(a + start, b + start, result, size)
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
