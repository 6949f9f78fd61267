"""Blocks of the element-wise functions and of their gradients.

Every block is one loop over contiguous memory that the compiler vectorises: no branches, no calls
that are not inlined. A gradient block gets grad_output ``g`` first, then the saved operand. The
mathematics is in ``vecmath.h``. Numbers in an expression are cast to ``floating``, or variables:
a bare ``1 - x`` is computed in double.
"""

from libc.string cimport memcpy

from extensor._kernels cimport vecmath as vm
from extensor._kernels.types cimport floating, pair

cdef enum:
    CHUNK = 256         # elements looked over at a time for those that need more work

cdef extern from "<math.h>" nogil:
    float fabsf(float)
    double fabs(double)
    float sqrtf(float)
    double c_sqrt "sqrt"(double)
    float ceilf(float)
    double c_ceil "ceil"(double)
    float floorf(float)
    double c_floor "floor"(double)
    float rintf(float)
    double rint(double)
    float truncf(float)
    double c_trunc "trunc"(double)
    const float INFINITY


# ---------------------------------------------------------------- sign and size

cdef void absolute(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = fabsf(x[i]) if floating is float else fabs(x[i])


cdef void absolute_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # 0 at 0, whatever g is; NaN at NaN.
    cdef Py_ssize_t i
    cdef floating side
    for i in range(n):
        side = g[i] if x[i] > 0 else -g[i]
        side = <floating> 0 if x[i] == 0 else side
        y[i] = side if x[i] == x[i] else x[i]


cdef void sign(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    cdef floating side
    for i in range(n):
        side = <floating> 1 if x[i] > 0 else <floating> -1
        side = <floating> 0 if x[i] == 0 else side
        y[i] = side if x[i] == x[i] else x[i]


cdef void square(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] * x[i]


cdef void square_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # Doubled last: 2·x overflows where the gradient does not.
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] * x[i] + g[i] * x[i]


cdef void sqrt(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = sqrtf(x[i]) if floating is float else c_sqrt(x[i])


cdef void sqrt_grad(
    const floating* g, const floating* out, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating eps = <floating> p[0], twice
    cdef Py_ssize_t i
    for i in range(n):
        twice = out[i] + out[i]
        y[i] = g[i] / (eps if twice < eps else twice)


# ---------------------------------------------------------------- exponentials and logarithms

cdef void exp(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.exp(x[i])


cdef void expm1(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.expm1(x[i])


cdef inline bint any_far_exp(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int far = 0
    for i in range(n):
        far |= vm.exp_is_far(x[i])
    return far


cdef void expm1_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_far_exp(x, size):
            for i in range(size):
                y[i] = vm.expm1_backward(g[i], x[i])
        else:
            for i in range(size):
                y[i] = vm.expm1_near_backward(g[i], x[i])
        g += size
        x += size
        y += size
        n -= size


# Logarithms, chunk by chunk: where every element is normal, positive and finite, special values need no thought.

cdef inline bint any_rare_log(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int rare = 0
    for i in range(n):
        rare |= vm.log_is_rare(x[i])
    return rare


cdef void log(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_rare_log(x, size):
            for i in range(size):
                y[i] = vm.log(x[i])
        else:
            for i in range(size):
                y[i] = vm.log_usual(x[i])
        x += size
        y += size
        n -= size


cdef void log1p(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i, size
    cdef int rare
    while n > 0:
        size = n if n < CHUNK else CHUNK
        rare = 0
        for i in range(size):
            rare |= vm.log1p_is_rare(x[i])
        if rare:
            for i in range(size):
                y[i] = vm.log1p(x[i])
        else:
            for i in range(size):
                y[i] = vm.log1p_usual(x[i])
        x += size
        y += size
        n -= size


cdef void log2(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_rare_log(x, size):
            for i in range(size):
                y[i] = vm.log2(x[i])
        else:
            for i in range(size):
                y[i] = vm.log2_usual(x[i])
        x += size
        y += size
        n -= size


cdef void log10(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_rare_log(x, size):
            for i in range(size):
                y[i] = vm.log10(x[i])
        else:
            for i in range(size):
                y[i] = vm.log10_usual(x[i])
        x += size
        y += size
        n -= size


cdef inline floating guarded(floating x, floating eps) noexcept nogil:
    """x, but ±eps by its sign (+ for either zero) where abs(x) < eps."""
    cdef floating near = -eps if x < 0 else eps
    return near if (x < eps) & (x > -eps) else x


cdef void log_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating eps = <floating> p[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] / guarded(x[i], eps)


cdef void log_base_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # p[1] = 1/ln(base). Neither x·ln(base) nor g/ln(base) nor g/x is safe from over- and underflow
    # on the way; g/4/x is, where g is not subnormal, and g/x is where it is.
    cdef floating eps = <floating> p[0], factor = <floating> p[1]
    cdef floating smallest = <floating> (1e-36 if floating is float else 1e-306)
    cdef floating larger = 4 * factor, before, after
    cdef bint usual
    cdef Py_ssize_t i
    for i in range(n):
        usual = (g[i] > smallest) | (g[i] < -smallest)
        before = <floating> 0.25 if usual else <floating> 1
        after = larger if usual else factor
        y[i] = g[i] * before / guarded(x[i], eps) * after


cdef void log1p_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] / (<floating> 1 + x[i])


# ---------------------------------------------------------------- sin, cos, tanh, erf

# Huge arguments need a reduction that does not vectorise. Chunk by chunk: all elements the fast way,
# then the rare ones again, from a copy of the input because it may lie where the output does.

cdef void sin(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating kept[CHUNK]
    cdef Py_ssize_t i, size
    cdef int rare
    while n > 0:
        size = n if n < CHUNK else CHUNK
        rare = 0
        for i in range(size):
            rare |= vm.sin_is_rare(x[i])
        if rare:
            memcpy(kept, x, size * sizeof(floating))
        for i in range(size):
            y[i] = vm.sin(x[i])
        if rare:
            for i in range(size):
                if vm.sin_is_rare(kept[i]):
                    y[i] = vm.sin_rare(kept[i])
        x += size
        y += size
        n -= size


cdef void cos(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating kept[CHUNK]
    cdef Py_ssize_t i, size
    cdef int rare
    while n > 0:
        size = n if n < CHUNK else CHUNK
        rare = 0
        for i in range(size):
            rare |= vm.cos_is_rare(x[i])
        if rare:
            memcpy(kept, x, size * sizeof(floating))
        for i in range(size):
            y[i] = vm.cos(x[i])
        if rare:
            for i in range(size):
                if vm.cos_is_rare(kept[i]):
                    y[i] = vm.cos_rare(kept[i])
        x += size
        y += size
        n -= size


cdef void sin_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating slope[CHUNK]
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        cos(x, slope, size, p)
        for i in range(size):
            y[i] = g[i] * slope[i]
        g += size
        x += size
        y += size
        n -= size


cdef void cos_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating slope[CHUNK]
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        sin(x, slope, size, p)
        for i in range(size):
            y[i] = -g[i] * slope[i]
        g += size
        x += size
        y += size
        n -= size


cdef void tanh(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.tanh(x[i])


cdef void tanh_grad(
    const floating* g, const floating* out, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # (1 − y)(1 + y): 1 − y² loses half its digits near ±1.
    cdef floating one = 1
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] * ((one - out[i]) * (one + out[i]))


cdef void erf(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.erf(x[i])


cdef void erf_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.erf_backward(g[i], x[i])


# ---------------------------------------------------------------- whole numbers

cdef void ceil(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = ceilf(x[i]) if floating is float else c_ceil(x[i])


cdef void floor(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = floorf(x[i]) if floating is float else c_floor(x[i])


cdef void round_even(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = rintf(x[i]) if floating is float else rint(x[i])


cdef void trunc(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = truncf(x[i]) if floating is float else c_trunc(x[i])


# ---------------------------------------------------------------- clip
# minimum(maximum(x, low), high), a NaN of any of the three going through. Two versions: the bounds
# as parameters, which is the common case, and as operands.

cdef inline floating between(floating x, floating low, floating high) noexcept nogil:
    """x within bounds that are no NaN; a NaN x stays."""
    cdef floating y = low if x < low else x
    return high if y > high else y


cdef inline floating passed(floating g, floating x, floating low, floating high) noexcept nogil:
    """g where x is within the bounds, which are inclusive; 0 where anything is NaN."""
    return g if (x >= low) & (x <= high) else <floating> 0


cdef void clip(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating low = <floating> p[0], high = <floating> p[1]
    cdef Py_ssize_t i
    if low != low or high != high:
        for i in range(n):
            y[i] = low + high
        return
    for i in range(n):
        y[i] = between(x[i], low, high)


cdef void clip_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating low = <floating> p[0], high = <floating> p[1]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = passed(g[i], x[i], low, high)


cdef void clip_between(
    const floating* x, const floating* low, const floating* high, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef floating bounds, inside
    for i in range(n):
        bounds = low[i] + high[i]
        inside = between(x[i], low[i], high[i])
        y[i] = inside if (low[i] == low[i]) & (high[i] == high[i]) else bounds


cdef void clip_between_grad(
    const floating* g, const floating* x, const floating* low, const floating* high, floating* y,
    Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = passed(g[i], x[i], low[i], high[i])


# ---------------------------------------------------------------- bool results

cdef void isnan(const floating* x, unsigned char* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] != x[i]


cdef void isinf(const floating* x, unsigned char* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating inf = <floating> INFINITY
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[i] == inf) | (x[i] == -inf)


cdef void isfinite(const floating* x, unsigned char* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating inf = <floating> INFINITY
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[i] < inf) & (x[i] > -inf)


cdef void logical_and(
    const floating* a, const floating* b, unsigned char* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] != 0) & (b[i] != 0)


cdef void logical_or(
    const floating* a, const floating* b, unsigned char* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] != 0) | (b[i] != 0)


cdef void logical_xor(
    const floating* a, const floating* b, unsigned char* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] != 0) ^ (b[i] != 0)


cdef void logical_not(const floating* x, unsigned char* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] == 0


# The same on bools; any byte but 0 is true.
ctypedef unsigned char byte


cdef void logical_and_bool(const byte* a, const byte* b, byte* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] != 0) & (b[i] != 0)


cdef void logical_or_bool(const byte* a, const byte* b, byte* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] | b[i]) != 0


cdef void logical_xor_bool(const byte* a, const byte* b, byte* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] != 0) ^ (b[i] != 0)


cdef void logical_not_bool(const byte* x, byte* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] == 0


EXPORTS = {
    "absolute": pair(<void*> absolute[float], <void*> absolute[double]),
    "absolute_grad": pair(<void*> absolute_grad[float], <void*> absolute_grad[double]),
    "sign": pair(<void*> sign[float], <void*> sign[double]),
    "square": pair(<void*> square[float], <void*> square[double]),
    "square_grad": pair(<void*> square_grad[float], <void*> square_grad[double]),
    "sqrt": pair(<void*> sqrt[float], <void*> sqrt[double]),
    "sqrt_grad": pair(<void*> sqrt_grad[float], <void*> sqrt_grad[double]),
    "exp": pair(<void*> exp[float], <void*> exp[double]),
    "expm1": pair(<void*> expm1[float], <void*> expm1[double]),
    "expm1_grad": pair(<void*> expm1_grad[float], <void*> expm1_grad[double]),
    "log": pair(<void*> log[float], <void*> log[double]),
    "log1p": pair(<void*> log1p[float], <void*> log1p[double]),
    "log2": pair(<void*> log2[float], <void*> log2[double]),
    "log10": pair(<void*> log10[float], <void*> log10[double]),
    "log_grad": pair(<void*> log_grad[float], <void*> log_grad[double]),
    "log_base_grad": pair(<void*> log_base_grad[float], <void*> log_base_grad[double]),
    "log1p_grad": pair(<void*> log1p_grad[float], <void*> log1p_grad[double]),
    "sin": pair(<void*> sin[float], <void*> sin[double]),
    "sin_grad": pair(<void*> sin_grad[float], <void*> sin_grad[double]),
    "cos": pair(<void*> cos[float], <void*> cos[double]),
    "cos_grad": pair(<void*> cos_grad[float], <void*> cos_grad[double]),
    "tanh": pair(<void*> tanh[float], <void*> tanh[double]),
    "tanh_grad": pair(<void*> tanh_grad[float], <void*> tanh_grad[double]),
    "erf": pair(<void*> erf[float], <void*> erf[double]),
    "erf_grad": pair(<void*> erf_grad[float], <void*> erf_grad[double]),
    "ceil": pair(<void*> ceil[float], <void*> ceil[double]),
    "floor": pair(<void*> floor[float], <void*> floor[double]),
    "round_even": pair(<void*> round_even[float], <void*> round_even[double]),
    "trunc": pair(<void*> trunc[float], <void*> trunc[double]),
    "clip": pair(<void*> clip[float], <void*> clip[double]),
    "clip_grad": pair(<void*> clip_grad[float], <void*> clip_grad[double]),
    "clip_between": pair(<void*> clip_between[float], <void*> clip_between[double]),
    "clip_between_grad": pair(<void*> clip_between_grad[float], <void*> clip_between_grad[double]),
    "isnan": pair(<void*> isnan[float], <void*> isnan[double]),
    "isinf": pair(<void*> isinf[float], <void*> isinf[double]),
    "isfinite": pair(<void*> isfinite[float], <void*> isfinite[double]),
    "logical_and": pair(<void*> logical_and[float], <void*> logical_and[double]),
    "logical_or": pair(<void*> logical_or[float], <void*> logical_or[double]),
    "logical_xor": pair(<void*> logical_xor[float], <void*> logical_xor[double]),
    "logical_not": pair(<void*> logical_not[float], <void*> logical_not[double]),
    "logical_and_bool": pair(<void*> logical_and_bool, <void*> logical_and_bool),
    "logical_or_bool": pair(<void*> logical_or_bool, <void*> logical_or_bool),
    "logical_xor_bool": pair(<void*> logical_xor_bool, <void*> logical_xor_bool),
    "logical_not_bool": pair(<void*> logical_not_bool, <void*> logical_not_bool),
}
