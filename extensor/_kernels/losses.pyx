"""Losses: blocks of the element-wise ones, and the fused passes of cross-entropy.

The element-wise losses are blocks. Unreduced they run under the map driver of ``drive``; summed,
and their gradients for a scalar grad_output, under ``run_loss`` here: tiles of contiguous memory,
computed and added up while they are in cache.

Cross-entropy has loops of its own. Few classes: tiles of 64 results are gathered with the classes
as rows, so that vectors run over the results, whatever the class axis was. Many classes: along the
row where the classes are neighbours, else across columns. Sums over classes are compensated, or
lanes and a tree; sums over results are trees cut by size alone.
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY, NAN
from libc.stdint cimport uint16_t
from libc.stdlib cimport free, malloc

from extensor._kernels cimport vecmath as vm
from extensor._kernels.joining cimport tile_join, tree_join
from extensor._kernels.training cimport CrossEntropy, LossJob
from extensor._kernels.types cimport SUM, Block1, Block2, Block3, floating, pair

cdef extern from "half.h" nogil:
    void ex_half_to_float(const uint16_t* x, float* y, Py_ssize_t n)
    void ex_float_to_half(const float* x, uint16_t* y, Py_ssize_t n)

cdef extern from "vecmath.h" nogil:
    float exm_exp_f32(float)
    double exm_exp_f64(double)
    float exm_log_f32(float)
    double exm_log_f64(double)
    float exm_log1p_f32(float)
    double exm_log1p_f64(double)

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
    FEW = 64            # classes up to which results are gathered into tiles
    TILE = 64           # results of such a tile: 16 KiB of float32 at most
    ACROSS = 256        # columns taken together where classes are many and apart
    CHUNK = 2048        # exponentials added up at once along a row
    ROWS = 32           # rows of an item where classes are many and neighbours
    FLAT = 2048         # elements of a tile of an element-wise loss
    PART = 256          # elements of one step where a loss works in several passes


cdef inline floating c_exp(floating x) noexcept nogil:
    return exm_exp_f32(x) if floating is float else exm_exp_f64(x)


cdef inline floating c_log(floating x) noexcept nogil:
    return exm_log_f32(x) if floating is float else exm_log_f64(x)


cdef inline floating c_log1p(floating x) noexcept nogil:
    return exm_log1p_f32(x) if floating is float else exm_log1p_f64(x)


# ---------------------------------------------------------------- regression

cdef void squared_error(
    const floating* x, const floating* t, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef floating d
    for i in range(n):
        d = x[i] - t[i]
        y[i] = d * d


cdef void squared_error_grad(
    const floating* g, const floating* x, const floating* t, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] * (<floating> 2 * (x[i] - t[i]))


cdef void smooth_l1(
    const floating* x, const floating* t, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # ½d·(d/β), not ½d²/β: d² overflows where the loss does not. β = 0 never takes that branch.
    cdef floating beta = <floating> p[0], inverse = <floating> 1 / <floating> p[0], d, a
    cdef Py_ssize_t i
    for i in range(n):
        d = x[i] - t[i]
        a = d if d > 0 else -d
        y[i] = (<floating> 0.5) * a * (a * inverse) if a < beta else a - (<floating> 0.5) * beta


cdef void smooth_l1_grad(
    const floating* g, const floating* x, const floating* t, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # d/β, cut at ±1; β = 0 gives ±∞ before the cut.
    cdef floating inverse = <floating> 1 / <floating> p[0], d, slope
    cdef Py_ssize_t i
    for i in range(n):
        d = x[i] - t[i]
        slope = d * inverse
        slope = <floating> 1 if slope > 1 else (<floating> -1 if slope < -1 else slope)
        y[i] = <floating> 0 if d == 0 else g[i] * slope


# ---------------------------------------------------------------- two classes

cdef void outside(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    """1 for everything that is no probability, NaN included."""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating> 0 if (x[i] >= 0) & (x[i] <= 1) else <floating> 1


cdef void binary(
    const floating* x, const floating* t, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # ln(1−p) as log1p(−p): 1−p has lost the digits of a small p. In loops that do one thing each.
    cdef floating eps = <floating> p[0], floor = c_log(<floating> p[0]), one, zero, rest
    cdef floating ones[PART]
    cdef floating zeros[PART]
    cdef Py_ssize_t i, size
    cdef int rare
    while n > 0:
        size = min(PART, n)
        rare = 0
        for i in range(size):
            rest = <floating> 1 - x[i]
            rare |= vm.log_is_rare(x[i]) | (not (x[i] > eps)) | (not (rest > eps))
        if rare:
            for i in range(size):
                ones[i] = c_log(x[i]) if x[i] > eps else floor
                zeros[i] = c_log1p(-x[i]) if <floating> 1 - x[i] > eps else floor
            for i in range(size):
                rest = <floating> 1 - t[i]
                one = <floating> 0 if t[i] == 0 else t[i] * ones[i]
                zero = <floating> 0 if rest == 0 else rest * zeros[i]
                y[i] = <floating> 0 - (one + zero)
        else:
            for i in range(size):
                ones[i] = vm.log_usual(x[i])
            for i in range(size):
                rest = -x[i]
                zeros[i] = vm.log1p_usual(rest)
            for i in range(size):
                rest = <floating> 1 - t[i]
                y[i] = <floating> 0 - (t[i] * ones[i] + rest * zeros[i])
        x += size
        t += size
        y += size
        n -= size


cdef void binary_grad(
    const floating* g, const floating* x, const floating* t, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating eps = <floating> p[0], one, zero, rest, other
    cdef Py_ssize_t i
    for i in range(n):
        rest = <floating> 1 - t[i]
        other = <floating> 1 - x[i]
        one = x[i] if (x[i] > eps) | (x[i] != x[i]) else eps
        zero = other if (other > eps) | (other != other) else eps
        one = <floating> 0 if t[i] == 0 else t[i] / one
        zero = <floating> 0 if rest == 0 else rest / zero
        y[i] = g[i] * (zero - one)


cdef void binary_logits(
    const floating* x, const floating* t, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # softplus(±x) = max(±x, 0) + log1p(exp(−|x|)): one exponential and one logarithm for both.
    cdef floating tail[PART]
    cdef floating above, below, rest, up, down
    cdef Py_ssize_t i, size
    while n > 0:
        size = min(PART, n)
        for i in range(size):
            tail[i] = vm.softplus_tail(x[i])
        for i in range(size):
            rest = <floating> 1 - t[i]
            above = <floating> 0 if x[i] < 0 else x[i]
            below = <floating> 0 if x[i] > 0 else -x[i]
            up = <floating> 0 if rest == 0 else rest * (above + tail[i])
            down = <floating> 0 if t[i] == 0 else t[i] * (below + tail[i])
            y[i] = up + down
        x += size
        t += size
        y += size
        n -= size


cdef void binary_logits_grad(
    const floating* g, const floating* x, const floating* t, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    # σ(|x|) = 1/(1+e) and σ(−|x|) = e/(1+e), e = exp(−|x|).
    cdef floating e, large, small, above, below
    cdef Py_ssize_t i
    for i in range(n):
        e = c_exp(-x[i] if x[i] > 0 else x[i])
        large = <floating> 1 / (<floating> 1 + e)
        small = e / (<floating> 1 + e)
        above = large if x[i] > 0 else small
        below = small if x[i] > 0 else large
        y[i] = g[i] * ((<floating> 1 - t[i]) * above - t[i] * below)


# ---------------------------------------------------------------- sums of element-wise losses

cdef void loss_tile(
    LossJob* job, Py_ssize_t tile, const floating* g, floating* partial,
) noexcept nogil:
    """One tile: its sum into partial[tile], or its gradient into y."""
    cdef floating wide_x[FLAT]
    cdef floating wide_t[FLAT]
    cdef floating values[FLAT]
    cdef Py_ssize_t start = tile * FLAT, n = min(FLAT, job.n - tile * FLAT)
    cdef const floating* x = <const floating*> job.x + start
    cdef const floating* t = <const floating*> job.t + start
    cdef floating* y = <floating*> job.y + start
    if floating is float:
        if job.half:
            ex_half_to_float(<const uint16_t*> job.x + start, wide_x, n)
            ex_half_to_float(<const uint16_t*> job.t + start, wide_t, n)
            x = wide_x
            t = wide_t
            y = values
    if job.check != NULL:
        (<Block1> job.check)(x, values, n, job.params)
        if tile_join(<const floating*> values, n, SUM) != 0:
            job.refused = True
    if job.block == NULL:
        partial[tile] = 0
    elif partial != NULL:
        (<Block2> job.block)(x, t, values, n, job.params)
        partial[tile] = tile_join(<const floating*> values, n, SUM)
    else:
        (<Block3> job.block)(g, x, t, y, n, job.params)
        if floating is float:
            if job.half:
                ex_float_to_half(values, <uint16_t*> job.y + start, n)


cdef void loss_span(
    LossJob* job, Py_ssize_t first, Py_ssize_t last, floating* partial,
) noexcept nogil:
    cdef floating g[FLAT]
    cdef Py_ssize_t i
    if partial == NULL:
        for i in range(min(FLAT, job.n)):
            g[i] = <floating> job.g
    for i in range(first, last):
        loss_tile(job, i, g, partial)


cdef int run_loss(LossJob* job, floating* unused) noexcept nogil:
    cdef Py_ssize_t tiles = (job.n + FLAT - 1) // FLAT, t, spans = job.threads
    cdef floating few[16]
    cdef floating* partial = NULL
    job.team = 1
    job.refused = False
    job.total = 0
    if job.y == NULL:
        partial = few
        if tiles > 16:
            partial = <floating*> malloc(tiles * sizeof(floating))
        if partial == NULL:
            return -1
    if spans <= 1 or tiles < 2:
        loss_span[floating](job, 0, tiles, partial)
    else:
        for t in prange(spans, schedule="static", chunksize=1, num_threads=job.threads):
            if t == 0:
                job.team = ex_team()
            loss_span[floating](job, tiles * t // spans, tiles * (t + 1) // spans, partial)
    if partial != NULL:
        job.total = tree_join(partial, tiles, 1, SUM) if tiles else <floating> 0
        if tiles > 16:
            free(partial)
    return 0


cdef int loss_f32(LossJob* job) noexcept nogil:
    return run_loss[float](job, NULL)


cdef int loss_f64(LossJob* job) noexcept nogil:
    return run_loss[double](job, NULL)


# ---------------------------------------------------------------- cross-entropy

cdef inline floating finite_or_zero(floating x) noexcept nogil:
    return x if (x < <floating> INFINITY) & (x > -<floating> INFINITY) else <floating> 0


cdef inline floating inverse(floating total) noexcept nogil:
    """1/total; NaN for a row with NaN, +inf or only −inf, whose softmax is NaN."""
    return <floating> 1 / total if (total > 0) & (total < <floating> INFINITY) else <floating> NAN


cdef inline bint is_ignored(const CrossEntropy* job, Py_ssize_t r) noexcept nogil:
    return job.ignoring and job.ids[r] == job.ignored


cdef inline floating upstream(const CrossEntropy* job, Py_ssize_t r, floating* unused) noexcept nogil:
    return (<const floating*> job.g)[r * job.g_step]


cdef inline void add_to(floating* total, floating* lost, floating term) noexcept nogil:
    """Compensated addition; an infinite total stays infinite."""
    cdef floating corrected = term - lost[0]
    cdef floating sum = total[0] + corrected
    cdef floating rest = (sum - total[0]) - corrected
    lost[0] = rest if rest == rest else <floating> 0
    total[0] = sum


cdef void column_sums(
    const floating* x, Py_ssize_t stride, Py_ssize_t classes, Py_ssize_t width,
    floating* exponentials, floating* tops, floating* totals,
) noexcept nogil:
    """Σ exp(x − top) of columns x[c·stride + j], j < width, compensated; top = max x if finite.

    The exponentials are kept where a place is given; it may be x itself.
    """
    cdef floating top[ACROSS]
    cdef floating total[ACROSS]
    cdef floating lost[ACROSS]
    cdef const floating* row
    cdef floating* kept
    cdef Py_ssize_t c, j
    for j in range(width):
        top[j] = x[j]
        total[j] = 0
        lost[j] = 0
    for c in range(1, classes):
        row = x + c * stride
        for j in range(width):
            top[j] = row[j] if row[j] > top[j] else top[j]
    for j in range(width):
        top[j] = finite_or_zero(top[j])
    for c in range(classes):
        row = x + c * stride
        kept = exponentials + c * stride if exponentials != NULL else totals
        for j in range(width):
            kept[j] = c_exp(row[j] - top[j])
        for j in range(width):
            add_to(&total[j], &lost[j], kept[j])
    for j in range(width):
        tops[j] = top[j]
        totals[j] = total[j]


cdef void column_losses(
    const CrossEntropy* job, const floating* x, const floating* weights, Py_ssize_t stride,
    Py_ssize_t r, Py_ssize_t n, Py_ssize_t width, floating* loss,
) noexcept nogil:
    """Losses of n columns, of the results from r on."""
    cdef floating top[ACROSS]
    cdef floating total[ACROSS]
    cdef floating lost[ACROSS]
    cdef floating term
    cdef Py_ssize_t c, j
    column_sums(x, stride, job.classes, width, <floating*> NULL, top, total)
    for j in range(width):
        total[j] = c_log(total[j])
        loss[j] = 0
        lost[j] = 0
    if job.ids != NULL:
        for j in range(n):      # top − x first: exact where the two are close
            if not is_ignored(job, r + j):
                loss[j] = total[j] + (top[j] - x[job.ids[r + j] * stride + j])
        return
    for c in range(job.classes):
        for j in range(width):
            term = weights[c * stride + j] * (total[j] + (top[j] - x[c * stride + j]))
            add_to(&loss[j], &lost[j], <floating> 0 if weights[c * stride + j] == 0 else term)


cdef void column_gradients(
    const CrossEntropy* job, const floating* x, const floating* weights, floating* y,
    Py_ssize_t stride, Py_ssize_t r, Py_ssize_t n, Py_ssize_t width,
) noexcept nogil:
    """Gradients of n columns; y may be x or the weights."""
    cdef floating top[ACROSS]
    cdef floating total[ACROSS]
    cdef floating mass[ACROSS]
    cdef floating lost[ACROSS]
    cdef floating g[ACROSS]
    cdef floating term
    cdef Py_ssize_t c, j
    for j in range(width):
        g[j] = upstream[floating](job, r + j, NULL) if j < n else <floating> 0
    if weights == NULL:
        column_sums(x, stride, job.classes, width, y, top, total)
        for j in range(width):
            total[j] = inverse(total[j])
        for j in range(n):      # σ − 1 at the class itself, set aside
            top[j] = g[j] * (y[job.ids[r + j] * stride + j] * total[j] - 1) if (
                not is_ignored(job, r + j)) else <floating> 0
        for c in range(job.classes):
            for j in range(width):
                y[c * stride + j] = g[j] * (y[c * stride + j] * total[j])
        for j in range(n):
            if is_ignored(job, r + j):
                for c in range(job.classes):
                    y[c * stride + j] = 0
            else:
                y[job.ids[r + j] * stride + j] = top[j]
        return
    column_sums(x, stride, job.classes, width, <floating*> NULL, top, total)
    for j in range(width):
        mass[j] = 0
        lost[j] = 0
    for c in range(job.classes):
        for j in range(width):
            add_to(&mass[j], &lost[j], weights[c * stride + j])
    for j in range(width):
        total[j] = mass[j] * inverse(total[j])
    for c in range(job.classes):
        for j in range(width):
            term = c_exp(x[c * stride + j] - top[j]) * total[j]
            y[c * stride + j] = g[j] * (term - weights[c * stride + j])


cdef void gather_tile(
    const CrossEntropy* job, const floating* x, floating* tile, Py_ssize_t r, Py_ssize_t n,
    Py_ssize_t width,
) noexcept nogil:
    """Results r … r+n−1 with the classes as rows of TILE columns; zeros up to width."""
    cdef Py_ssize_t classes = job.classes, inner = job.inner, j = 0, c, k, take
    cdef const floating* source
    if inner == 1:
        for j in range(n):
            source = x + (r + j) * classes
            for c in range(classes):
                tile[c * TILE + j] = source[c]
    else:
        while j < n:
            take = min(inner - (r + j) % inner, n - j)
            source = x + (r + j) // inner * classes * inner + (r + j) % inner
            for c in range(classes):
                for k in range(take):
                    tile[c * TILE + j + k] = source[c * inner + k]
            j += take
    for c in range(classes):
        for j in range(n, width):
            tile[c * TILE + j] = 0


cdef void scatter_tile(
    const CrossEntropy* job, const floating* tile, floating* y, Py_ssize_t r, Py_ssize_t n,
) noexcept nogil:
    cdef Py_ssize_t classes = job.classes, inner = job.inner, j = 0, c, k, take
    cdef floating* place
    if inner == 1:
        for j in range(n):
            place = y + (r + j) * classes
            for c in range(classes):
                place[c] = tile[c * TILE + j]
        return
    while j < n:
        take = min(inner - (r + j) % inner, n - j)
        place = y + (r + j) // inner * classes * inner + (r + j) % inner
        for c in range(classes):
            for k in range(take):
                place[c * inner + k] = tile[c * TILE + j + k]
        j += take


cdef void tile_item(const CrossEntropy* job, Py_ssize_t r, Py_ssize_t n, floating* loss) noexcept nogil:
    """Few classes: up to TILE results, wherever their classes lie."""
    cdef floating x[FEW * TILE]
    cdef floating t[FEW * TILE]
    cdef floating* weights = NULL
    cdef Py_ssize_t width = (n + 15) // 16 * 16
    gather_tile(job, <const floating*> job.x, x, r, n, width)
    if job.weights != NULL:
        weights = t
        gather_tile(job, <const floating*> job.weights, t, r, n, width)
    if job.backward:
        column_gradients(job, x, weights, x, TILE, r, n, width)
        scatter_tile(job, x, <floating*> job.y, r, n)
    else:
        column_losses(job, x, weights, TILE, r, n, width, loss)


cdef floating row_top(const floating* x, Py_ssize_t n) noexcept nogil:
    """The largest value of a row of TILE or more; 0 where it is not finite."""
    cdef floating lane[TILE]
    cdef Py_ssize_t i, start = TILE
    for i in range(TILE):
        lane[i] = x[i]
    while start < n:
        start = min(start, n - TILE)        # the last vector overlaps the one before
        for i in range(TILE):
            lane[i] = x[start + i] if x[start + i] > lane[i] else lane[i]
        start += TILE
    start = TILE
    while start > 1:
        start //= 2
        for i in range(start):
            lane[i] = lane[i] if lane[i] > lane[i + start] else lane[i + start]
    return finite_or_zero(lane[0])


cdef inline Py_ssize_t exponentials(
    const floating* x, Py_ssize_t n, floating top, floating* to,
) noexcept nogil:
    """exp(x − top), with zeros up to a multiple of 16, the number returned; ``to`` has 16 more.

    Whole vectors only: the last one overlaps the one before.
    """
    cdef Py_ssize_t i, k, start = n // 16 * 16
    for i in range(n // 16):
        for k in range(16):
            to[16 * i + k] = c_exp(x[16 * i + k] - top)
    if start == n:
        return n
    if n > 16:
        for k in range(16):
            to[n - 16 + k] = c_exp(x[n - 16 + k] - top)
    else:
        for k in range(n):
            to[k] = c_exp(x[k] - top)
    for k in range(16):
        to[n + k] = 0
    return start + 16


cdef floating row_sum(
    const floating* x, Py_ssize_t classes, floating top, floating* chunk,
) noexcept nogil:
    """Σ exp(x − top) of a row; the exponentials of its last chunk are left in ``chunk``."""
    cdef floating total = 0, lost = 0
    cdef Py_ssize_t start = 0, n
    while start < classes:
        n = exponentials(x + start, min(classes - start, CHUNK), top, chunk)
        add_to(&total, &lost, tile_join(<const floating*> chunk, n, SUM))
        start += CHUNK
    return total


cdef floating row_mass(const floating* t, Py_ssize_t classes) noexcept nogil:
    """The sum of a row's weights."""
    cdef floating total = 0, lost = 0
    cdef Py_ssize_t start = 0
    while start < classes:
        add_to(&total, &lost, tile_join(t + start, min(classes - start, CHUNK), SUM))
        start += CHUNK
    return total


cdef floating weighted_row(
    const floating* x, const floating* t, Py_ssize_t classes, floating top, floating logarithm,
    floating* chunk,
) noexcept nogil:
    """Σ t·(logsumexp(x) − x) of a row, terms of weight 0 left out."""
    cdef floating total = 0, lost = 0
    cdef Py_ssize_t start = 0, n, i
    while start < classes:
        n = min(classes - start, CHUNK)
        for i in range(n):
            chunk[i] = t[start + i] * (logarithm + (top - x[start + i]))
            chunk[i] = <floating> 0 if t[start + i] == 0 else chunk[i]
        add_to(&total, &lost, tile_join(<const floating*> chunk, n, SUM))
        start += CHUNK
    return total


cdef void row_losses(
    const CrossEntropy* job, Py_ssize_t r, Py_ssize_t n, floating* loss,
) noexcept nogil:
    """Many classes side by side: n results."""
    cdef floating chunk[CHUNK + 16]
    cdef floating top[ROWS]
    cdef Py_ssize_t classes = job.classes, i
    cdef const floating* x = <const floating*> job.x + r * classes
    for i in range(n):
        top[i] = row_top(x + i * classes, classes)
    for i in range(n):
        loss[i] = row_sum(x + i * classes, classes, top[i], chunk)
    for i in range(n):
        loss[i] = c_log(loss[i])
    for i in range(n):
        if job.weights != NULL:
            loss[i] = weighted_row(
                x + i * classes, <const floating*> job.weights + (r + i) * classes, classes,
                top[i], loss[i], chunk)
        elif is_ignored(job, r + i):
            loss[i] = 0
        else:       # top − x first: exact where the two are close
            loss[i] = loss[i] + (top[i] - x[i * classes + job.ids[r + i]])


cdef void row_gradient(const CrossEntropy* job, Py_ssize_t r, floating* unused) noexcept nogil:
    """Many classes side by side: the gradient of one result; y may be x or the weights."""
    cdef floating chunk[CHUNK + 16]
    cdef Py_ssize_t classes = job.classes, start = 0, n, i
    cdef const floating* x = <const floating*> job.x + r * classes
    cdef const floating* t = NULL
    cdef floating* y = <floating*> job.y + r * classes
    cdef floating top, factor, g = upstream[floating](job, r, NULL), special = 0
    if job.weights != NULL:
        t = <const floating*> job.weights + r * classes
    elif is_ignored(job, r):
        for i in range(classes):
            y[i] = 0
        return
    top = row_top(x, classes)
    factor = inverse(row_sum(x, classes, top, chunk))
    if t != NULL:
        factor = factor * row_mass(t, classes)
    else:
        special = g * (c_exp(x[job.ids[r]] - top) * factor - 1)
    while start < classes:
        n = min(classes - start, CHUNK)
        if classes > CHUNK:         # else the exponentials are still there
            exponentials(x + start, n, top, chunk)
        if t == NULL:
            for i in range(n):
                y[start + i] = g * (chunk[i] * factor)
        else:
            for i in range(n):
                y[start + i] = g * (chunk[i] * factor - t[start + i])
        start += CHUNK
    if t == NULL:
        y[job.ids[r]] = special


cdef Py_ssize_t plan(const CrossEntropy* job, Py_ssize_t* size) noexcept nogil:
    """Number of items and the results of one, by shape alone."""
    cdef Py_ssize_t results = job.outer * job.inner
    if job.classes <= FEW:
        size[0] = TILE
    elif job.inner == 1:
        size[0] = max(1, min(ROWS, 16384 // job.classes))
    else:
        size[0] = ACROSS
        return job.outer * ((job.inner + ACROSS - 1) // ACROSS)
    return (results + size[0] - 1) // size[0]


cdef void run_item(
    const CrossEntropy* job, Py_ssize_t item, Py_ssize_t size, floating* partial,
) noexcept nogil:
    cdef floating loss[ACROSS]
    cdef floating* y = <floating*> job.y
    cdef Py_ssize_t r = item * size, n, across, o, i, offset
    if job.classes > FEW and job.inner > 1:
        across = (job.inner + ACROSS - 1) // ACROSS
        o = item // across
        i = item % across * ACROSS
        n = min(job.inner - i, ACROSS)
        r = o * job.inner + i
        offset = o * job.classes * job.inner + i
        if job.backward:
            column_gradients(
                job, <const floating*> job.x + offset,
                <const floating*> job.weights + offset if job.weights != NULL else NULL,
                y + offset, job.inner, r, n, n)
            return
        column_losses(
            job, <const floating*> job.x + offset,
            <const floating*> job.weights + offset if job.weights != NULL else NULL,
            job.inner, r, n, n, loss)
    else:
        n = min(size, job.outer * job.inner - r)
        if job.classes <= FEW:
            tile_item(job, r, n, loss)
        elif job.backward:
            for i in range(n):
                row_gradient[floating](job, r + i, NULL)
        else:
            row_losses(job, r, n, loss)
        if job.backward:
            return
    if y != NULL:
        for i in range(n):
            y[r + i] = loss[i]
    else:
        partial[item] = tile_join(<const floating*> loss, n, SUM)


cdef int run_entropy(CrossEntropy* job, floating* unused) noexcept nogil:
    cdef Py_ssize_t size, items = plan(job, &size), t, item, spans = job.threads
    cdef floating* partial = NULL
    if not job.backward and job.y == NULL:
        partial = <floating*> malloc(items * sizeof(floating))
        if partial == NULL:
            return -1
    job.team = 1
    if spans <= 1 or items < 2:
        for item in range(items):
            run_item(job, item, size, partial)
    else:
        for t in prange(spans, schedule="static", chunksize=1, num_threads=job.threads):
            if t == 0:
                job.team = ex_team()
            run_items(job, items * t // spans, items * (t + 1) // spans, size, partial)
    if partial != NULL:
        job.total = tree_join(partial, items, 1, SUM) if items else <floating> 0
        free(partial)
    return 0


cdef void run_items(
    const CrossEntropy* job, Py_ssize_t first, Py_ssize_t last, Py_ssize_t size, floating* partial,
) noexcept nogil:
    cdef Py_ssize_t item
    for item in range(first, last):
        run_item(job, item, size, partial)


cdef int cross_entropy_f32(CrossEntropy* job) noexcept nogil:
    return run_entropy[float](job, NULL)


cdef int cross_entropy_f64(CrossEntropy* job) noexcept nogil:
    return run_entropy[double](job, NULL)


EXPORTS = {
    "squared_error": pair(<void*> squared_error[float], <void*> squared_error[double]),
    "squared_error_grad": pair(<void*> squared_error_grad[float], <void*> squared_error_grad[double]),
    "smooth_l1": pair(<void*> smooth_l1[float], <void*> smooth_l1[double]),
    "smooth_l1_grad": pair(<void*> smooth_l1_grad[float], <void*> smooth_l1_grad[double]),
    "outside": pair(<void*> outside[float], <void*> outside[double]),
    "binary": pair(<void*> binary[float], <void*> binary[double]),
    "binary_grad": pair(<void*> binary_grad[float], <void*> binary_grad[double]),
    "binary_logits": pair(<void*> binary_logits[float], <void*> binary_logits[double]),
    "binary_logits_grad": pair(<void*> binary_logits_grad[float], <void*> binary_logits_grad[double]),
    "loss": pair(<void*> loss_f32, <void*> loss_f64),
    "cross_entropy": pair(<void*> cross_entropy_f32, <void*> cross_entropy_f64),
}
