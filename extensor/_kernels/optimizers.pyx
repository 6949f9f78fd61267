"""Optimizer updates in place, one fused pass over parameter, gradient and state; gradient norms.

A step is a list of ``Update``s. The tensors are cut into tiles of 8192 elements, the tiles of all
of them are shared out among the threads, so that one large tensor and many small ones go equally
well. Float16 parameters and gradients are widened tile by tile; their state is float32.
"""

from cython.parallel cimport prange
from libc.stdint cimport uint16_t
from libc.stdlib cimport free, malloc

from extensor._kernels.training cimport (
    STORED_F16, STORED_F32, STORED_F64, Update, UpdateBlock32, UpdateBlock64,
)
from extensor._kernels.types cimport export, floating, pair

cdef extern from "half.h" nogil:
    void ex_half_to_float(const uint16_t* x, float* y, Py_ssize_t n)
    void ex_float_to_half(const float* x, uint16_t* y, Py_ssize_t n)

cdef extern from "<math.h>" nogil:
    float sqrtf(float)
    double sqrt(double)
    float fabsf(float)
    double fabs(double)

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    static int ex_team(void) { return omp_get_num_threads(); }
    #else
    static int ex_team(void) { return 1; }
    #endif
    """
    int ex_team() noexcept nogil

cdef enum:
    TILE = 8192         # elements of a tile
    HALF_TILE = 2048    # of a tile on its way through float32
    LANES = 16          # partial sums of squares within a tile


cdef inline floating root(floating x) noexcept nogil:
    return sqrtf(x) if floating is float else sqrt(x)


# ---------------------------------------------------------------- rules

# v = lr, weight decay, momentum, 1 for Nesterov
cdef void sgd(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
) noexcept nogil:
    cdef floating lr = <floating> v[0], decay = <floating> v[1]
    cdef Py_ssize_t i
    if decay == 0:
        for i in range(n):
            p[i] = p[i] - lr * g[i]
    else:
        for i in range(n):
            p[i] = p[i] - lr * (g[i] + decay * p[i])


cdef void sgd_momentum(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
) noexcept nogil:
    cdef floating lr = <floating> v[0], decay = <floating> v[1], momentum = <floating> v[2], slope
    cdef Py_ssize_t i
    if v[3] != 0:
        for i in range(n):
            slope = g[i] + decay * p[i]
            first[i] = momentum * first[i] + slope
            p[i] = p[i] - lr * (slope + momentum * first[i])
    else:
        for i in range(n):
            first[i] = momentum * first[i] + (g[i] + decay * p[i])
            p[i] = p[i] - lr * first[i]


# v = lr/(1 − β1^t), L2 decay, β1, 1 − β1, β2, 1 − β2, √(1 − β2^t), eps; the decoupled decay of
# AdamW comes as 1 − lr·decay in the slot of the L2 decay.
cdef inline void adam_rule(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
    bint decoupled,
) noexcept nogil:
    cdef floating lr = <floating> v[0], decay = <floating> v[1], eps = <floating> v[7]
    cdef floating b1 = <floating> v[2], c1 = <floating> v[3], b2 = <floating> v[4], c2 = <floating> v[5]
    cdef floating correction = <floating> v[6], slope, old
    cdef Py_ssize_t i
    for i in range(n):
        if decoupled:
            old = p[i] * decay
            slope = g[i]
        else:
            old = p[i]
            slope = g[i] + decay * p[i]
        first[i] = b1 * first[i] + c1 * slope
        second[i] = b2 * second[i] + c2 * (slope * slope)
        p[i] = old - lr * (first[i] / (root(second[i]) / correction + eps))


cdef void adam(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
) noexcept nogil:
    adam_rule(p, g, first, second, n, v, False)


cdef void adamw(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
) noexcept nogil:
    adam_rule(p, g, first, second, n, v, True)


# v = lr, weight decay, momentum, alpha, 1 − alpha, eps
cdef void rmsprop(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
) noexcept nogil:
    cdef floating lr = <floating> v[0], decay = <floating> v[1], alpha = <floating> v[3]
    cdef floating rest = <floating> v[4], eps = <floating> v[5], slope
    cdef Py_ssize_t i
    for i in range(n):
        slope = g[i] + decay * p[i]
        first[i] = alpha * first[i] + rest * (slope * slope)
        p[i] = p[i] - lr * (slope / (root(first[i]) + eps))


cdef void rmsprop_momentum(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
) noexcept nogil:
    cdef floating lr = <floating> v[0], decay = <floating> v[1], momentum = <floating> v[2]
    cdef floating alpha = <floating> v[3], rest = <floating> v[4], eps = <floating> v[5], slope
    cdef Py_ssize_t i
    for i in range(n):
        slope = g[i] + decay * p[i]
        first[i] = alpha * first[i] + rest * (slope * slope)
        second[i] = momentum * second[i] + slope / (root(first[i]) + eps)
        p[i] = p[i] - lr * second[i]


# Gradient clipping: p is the gradient. v = factor, or limit.
cdef void scale(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
) noexcept nogil:
    cdef floating factor = <floating> v[0]
    cdef Py_ssize_t i
    for i in range(n):
        p[i] = p[i] * factor


cdef void limit(
    floating* p, const floating* g, floating* first, floating* second, Py_ssize_t n, const double* v,
) noexcept nogil:
    cdef floating bound = <floating> v[0]
    cdef Py_ssize_t i
    for i in range(n):
        p[i] = bound if p[i] > bound else (-bound if p[i] < -bound else p[i])


# The pure step: a block for the map driver.
cdef void descend(
    const floating* x, const floating* g, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating lr = <floating> p[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] - lr * g[i]


# ---------------------------------------------------------------- the step

cdef void update_halves(
    const Update* u, Py_ssize_t start, Py_ssize_t n, UpdateBlock32 block,
) noexcept nogil:
    """A tile of float16 parameters, or of float32 ones with float16 gradients."""
    cdef float p[HALF_TILE]
    cdef float g[HALF_TILE]
    cdef const float* slope
    cdef float* value
    cdef Py_ssize_t take, end = start + n
    while start < end:
        take = min(end - start, HALF_TILE)
        slope = g
        if u.g == NULL:
            slope = NULL
        elif u.g_stored == STORED_F16:
            ex_half_to_float(<const uint16_t*> u.g + start, g, take)
        else:
            slope = <const float*> u.g + start
        value = p
        if u.p_stored == STORED_F16:
            ex_half_to_float(<const uint16_t*> u.p + start, p, take)
        else:
            value = <float*> u.p + start
        block(value, slope,
              <float*> u.first + start if u.first != NULL else NULL,
              <float*> u.second + start if u.second != NULL else NULL, take, u.values)
        if u.p_stored == STORED_F16:
            ex_float_to_half(p, <uint16_t*> u.p + start, take)
        start += take


cdef void update_tile(
    const Update* u, Py_ssize_t start, Py_ssize_t n, void* f32, void* f64,
) noexcept nogil:
    if u.p_stored == STORED_F64:
        (<UpdateBlock64> f64)(
            <double*> u.p + start, <const double*> u.g + start if u.g != NULL else NULL,
            <double*> u.first + start if u.first != NULL else NULL,
            <double*> u.second + start if u.second != NULL else NULL, n, u.values)
    elif u.p_stored == STORED_F16 or u.g_stored == STORED_F16:
        update_halves(u, start, n, <UpdateBlock32> f32)
    else:
        (<UpdateBlock32> f32)(
            <float*> u.p + start, <const float*> u.g + start if u.g != NULL else NULL,
            <float*> u.first + start if u.first != NULL else NULL,
            <float*> u.second + start if u.second != NULL else NULL, n, u.values)


cdef void update_span(
    const Update* updates, Py_ssize_t count, Py_ssize_t first, Py_ssize_t last, void* f32, void* f64,
) noexcept nogil:
    """The tiles first … last−1 of the whole list."""
    cdef Py_ssize_t k, tiles, passed = 0, tile
    for k in range(count):
        tiles = (updates[k].n + TILE - 1) // TILE
        for tile in range(max(first - passed, 0), min(last - passed, tiles)):
            update_tile(&updates[k], tile * TILE, min(TILE, updates[k].n - tile * TILE), f32, f64)
        passed += tiles
        if passed >= last:
            return


cdef Py_ssize_t all_tiles(const Update* updates, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t k, tiles = 0
    for k in range(count):
        tiles += (updates[k].n + TILE - 1) // TILE
    return tiles


cdef int run_updates(
    Update* updates, Py_ssize_t count, void* f32, void* f64, int threads,
) noexcept nogil:
    """Run a rule over a list; returns how many threads took part."""
    cdef Py_ssize_t t, tiles = all_tiles(updates, count)
    cdef int team = 1
    cdef int* told = &team
    if threads <= 1 or tiles < 2:
        for t in range(count):
            update_tile(&updates[t], 0, updates[t].n, f32, f64)
        return 1
    for t in prange(threads, schedule="static", chunksize=1, num_threads=threads):
        if t == 0:
            told[0] = ex_team()
        update_span(updates, count, tiles * t // threads, tiles * (t + 1) // threads, f32, f64)
    return team


# ---------------------------------------------------------------- norms

cdef double square_tile(const floating* x, Py_ssize_t n, double scale, double* largest) noexcept nogil:
    """Σ (scale·x)² in float64: lanes, then a tree. A scale of 0 looks for the largest |x| instead."""
    cdef double lane[LANES]
    cdef double value
    cdef Py_ssize_t i, k
    for k in range(LANES):
        lane[k] = 0
    if scale == 0:
        for i in range(n):
            value = fabs(<double> x[i])
            largest[0] = value if value > largest[0] else largest[0]
        return 0
    i = 0
    while i + LANES <= n:
        for k in range(LANES):
            value = scale * <double> x[i + k]
            lane[k] += value * value
        i += LANES
    for k in range(n - i):
        value = scale * <double> x[i + k]
        lane[k] += value * value
    k = LANES
    while k > 1:
        k //= 2
        for i in range(k):
            lane[i] += lane[i + k]
    return lane[0]


cdef double square_stored(const Update* u, Py_ssize_t start, Py_ssize_t n, double scale, double* largest) noexcept nogil:
    cdef float wide[HALF_TILE]
    cdef double total = 0
    cdef Py_ssize_t take, end = start + n
    if u.p_stored == STORED_F64:
        return square_tile(<const double*> u.p + start, n, scale, largest)
    if u.p_stored == STORED_F32:
        return square_tile(<const float*> u.p + start, n, scale, largest)
    while start < end:
        take = min(end - start, HALF_TILE)
        ex_half_to_float(<const uint16_t*> u.p + start, wide, take)
        total += square_tile(<const float*> wide, take, scale, largest)
        start += take
    return total


cdef void square_span(
    const Update* updates, Py_ssize_t count, Py_ssize_t first, Py_ssize_t last, double scale,
    double* partial, double* largest,
) noexcept nogil:
    cdef Py_ssize_t k, tiles, passed = 0, tile
    for k in range(count):
        tiles = (updates[k].n + TILE - 1) // TILE
        for tile in range(max(first - passed, 0), min(last - passed, tiles)):
            largest[passed + tile] = 0
            partial[passed + tile] = square_stored(
                &updates[k], tile * TILE, min(TILE, updates[k].n - tile * TILE), scale,
                &largest[passed + tile])
        passed += tiles
        if passed >= last:
            return


cdef int run_norm(
    Update* updates, Py_ssize_t count, int threads, double scale, double* norm, double* largest,
) noexcept nogil:
    """√Σ (scale·x)² over all tensors, or with scale 0 the largest |x|; the team, or −1."""
    cdef Py_ssize_t t, half, tiles = all_tiles(updates, count)
    cdef int team = 1
    cdef int* told = &team
    cdef double* partial = <double*> malloc((2 * tiles + 1) * sizeof(double))
    cdef double* top
    if partial == NULL:
        return -1
    top = partial + tiles
    norm[0] = 0
    largest[0] = 0
    if threads <= 1 or tiles < 2:
        square_span(updates, count, 0, tiles, scale, partial, top)
    else:
        for t in prange(threads, schedule="static", chunksize=1, num_threads=threads):
            if t == 0:
                told[0] = ex_team()
            square_span(updates, count, tiles * t // threads, tiles * (t + 1) // threads, scale,
                        partial, top)
    for t in range(tiles):
        largest[0] = top[t] if top[t] > largest[0] else largest[0]
    while tiles > 1:            # a tree over the tiles, the same for every thread count
        half = (tiles + 1) // 2
        for t in range(tiles - half):
            partial[t] += partial[half + t]
        tiles = half
    if tiles:
        norm[0] = sqrt(partial[0])
    free(partial)
    return team


EXPORTS = {
    "sgd": pair(<void*> sgd[float], <void*> sgd[double]),
    "sgd_momentum": pair(<void*> sgd_momentum[float], <void*> sgd_momentum[double]),
    "adam": pair(<void*> adam[float], <void*> adam[double]),
    "adamw": pair(<void*> adamw[float], <void*> adamw[double]),
    "rmsprop": pair(<void*> rmsprop[float], <void*> rmsprop[double]),
    "rmsprop_momentum": pair(<void*> rmsprop_momentum[float], <void*> rmsprop_momentum[double]),
    "scale": pair(<void*> scale[float], <void*> scale[double]),
    "limit": pair(<void*> limit[float], <void*> limit[double]),
    "descend": pair(<void*> descend[float], <void*> descend[double]),
    "update": export(<void*> run_updates),
    "norm": export(<void*> run_norm),
}
