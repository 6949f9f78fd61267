"""Functions along one axis: softmax, log-softmax, arg-max, gradients of max and min, variance.

A tensor is seen as (outer, n, inner) and reduced or normalised along n. Where inner is 1 the axis
is contiguous and a row is handled while it lies in cache; otherwise tiles of neighbouring columns
are, with the loop over the columns innermost, so that nothing is transposed.
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY, NAN, sqrt, sqrtf

from extensor._kernels.joining cimport (
    DEPTH, LEVELS, RUN, Tally, enter, ex_find_f32, ex_find_f64, join, long_join, tile_join,
)
from extensor._kernels.types cimport MAX, MIN, SUM, floating, pair

cdef extern from "vecmath.h" nogil:
    float exm_exp_f32(float x)
    double exm_exp_f64(double x)
    float exm_log_f32(float x)
    double exm_log_f64(double x)

# Loops in functions of their own: inlined beside others the compiler leaves them scalar.
cdef extern from *:
    """
    #define EX_LOOPS(real, type) \\
    EXL_FUNC void ex_exp_##type(real* y, Py_ssize_t n) \\
    { \\
        for (Py_ssize_t i = 0; i < n; i++) y[i] = exm_exp_##type(y[i]); \\
    } \\
    EXL_FUNC void ex_exp_minus_##type(const real* x, real shift, real* y, Py_ssize_t n) \\
    { \\
        for (Py_ssize_t i = 0; i < n; i++) y[i] = exm_exp_##type(x[i] - shift); \\
    } \\
    EXL_FUNC void ex_log_grad_##type(const real* g, const real* x, real total, real* y, Py_ssize_t n) \\
    { \\
        for (Py_ssize_t i = 0; i < n; i++) y[i] = g[i] - exm_exp_##type(x[i]) * total; \\
    }
    EX_LOOPS(float, f32)
    EX_LOOPS(double, f64)
    """
    void ex_exp_f32(float* y, Py_ssize_t n) noexcept nogil
    void ex_exp_f64(double* y, Py_ssize_t n) noexcept nogil
    void ex_exp_minus_f32(const float* x, float shift, float* y, Py_ssize_t n) noexcept nogil
    void ex_exp_minus_f64(const double* x, double shift, double* y, Py_ssize_t n) noexcept nogil
    void ex_log_grad_f32(
        const float* g, const float* x, float total, float* y, Py_ssize_t n) noexcept nogil
    void ex_log_grad_f64(
        const double* g, const double* x, double total, double* y, Py_ssize_t n) noexcept nogil

cdef enum:
    COLUMNS = 128       # of a tile where the axis is not contiguous
    SHORT = 512         # rows up to this length are handled several at a time
    GROUP = 2048        # elements of such a group of rows
    NARROW = 16         # rows up to this length are turned: one lane each (DEPTH at the most)
    TOGETHER = 64       # such rows at a time
    PIECES = 64         # of one long row, for as many threads
    CARRY = 1 << 22     # rows after which counts are carried over into doubles


cdef inline floating c_exp(floating x) noexcept nogil:
    return exm_exp_f32(x) if floating is float else exm_exp_f64(x)


cdef inline floating c_log(floating x) noexcept nogil:
    return exm_log_f32(x) if floating is float else exm_log_f64(x)


cdef inline void exp_loop(floating* y, Py_ssize_t n) noexcept nogil:
    if floating is float:
        ex_exp_f32(y, n)
    else:
        ex_exp_f64(y, n)


cdef inline void exp_minus(const floating* x, floating shift, floating* y, Py_ssize_t n) noexcept nogil:
    if floating is float:
        ex_exp_minus_f32(x, shift, y, n)
    else:
        ex_exp_minus_f64(x, shift, y, n)


cdef inline void log_grad_loop(
    const floating* g, const floating* x, floating total, floating* y, Py_ssize_t n,
) noexcept nogil:
    if floating is float:
        ex_log_grad_f32(g, x, total, y, n)
    else:
        ex_log_grad_f64(g, x, total, y, n)


# ---------------------------------------------------------------- softmax

# A row's shift: its maximum. A row with NaN, +inf or only −inf has no softmax: NaN in every place.
cdef inline floating shift_of(floating top) noexcept nogil:
    return top if (top > -INFINITY) & (top < INFINITY) else <floating> NAN


cdef void softmax_narrow(
    const floating* x, floating* y, Py_ssize_t rows, Py_ssize_t n, bint log,
) noexcept nogil:
    """Rows of a few elements, turned so that the loops run over the rows."""
    cdef floating tile[NARROW * TOGETHER]
    cdef floating power[NARROW * TOGETHER]
    cdef floating top[TOGETHER]
    cdef floating total[TOGETHER]
    cdef floating one = 1
    cdef Py_ssize_t r, j
    for j in range(n):
        for r in range(rows):
            tile[j * TOGETHER + r] = x[r * n + j]
    for r in range(rows):
        top[r] = tile[r]
    for j in range(1, n):
        for r in range(rows):
            top[r] = join(top[r], tile[j * TOGETHER + r], MAX)
    for r in range(rows):
        top[r] = shift_of(top[r])
        total[r] = 0
    for j in range(n):
        for r in range(rows):
            tile[j * TOGETHER + r] -= top[r]
        for r in range(rows):
            power[j * TOGETHER + r] = c_exp(tile[j * TOGETHER + r])
        for r in range(rows):
            total[r] += power[j * TOGETHER + r]
    if log:
        for r in range(rows):
            total[r] = c_log(total[r])
        for j in range(n):
            for r in range(rows):
                y[r * n + j] = tile[j * TOGETHER + r] - total[r]
    else:
        for r in range(rows):
            total[r] = one / total[r]
        for j in range(n):
            for r in range(rows):
                y[r * n + j] = power[j * TOGETHER + r] * total[r]


cdef void softmax_group(
    const floating* x, floating* y, Py_ssize_t rows, Py_ssize_t n, bint log,
) noexcept nogil:
    """A few short rows together: the exponentials run over all of them as one."""
    cdef floating top[GROUP]
    cdef floating scale, one = 1
    cdef Py_ssize_t r, i
    for r in range(rows):
        top[r] = shift_of(tile_join(x + r * n, n, MAX))
        for i in range(n):
            y[r * n + i] = x[r * n + i] - top[r]
    exp_loop(y, rows * n)
    for r in range(rows):
        scale = tile_join(y + r * n, n, SUM)
        if log:
            scale = c_log(scale)
            for i in range(n):
                y[r * n + i] = (x[r * n + i] - top[r]) - scale
        else:
            scale = one / scale
            for i in range(n):
                y[r * n + i] *= scale


cdef void softmax_row(const floating* x, floating* y, Py_ssize_t n, bint log) noexcept nogil:
    cdef floating top = shift_of(long_join(x, n, MAX)), scale, one = 1
    cdef Py_ssize_t i
    exp_minus(x, top, y, n)
    scale = long_join(y, n, SUM)
    if log:
        scale = c_log(scale)
        for i in range(n):
            y[i] = (x[i] - top) - scale
    else:
        scale = one / scale
        for i in range(n):
            y[i] *= scale


# Column sums along the axis: rows are pushed one by one; DEPTH of them are added in place, then
# the partial sums pairwise, as a binary counter carries.
cdef struct Counter:
    Py_ssize_t rows
    int depth


cdef inline void push(
    floating* level, Counter* counter, const floating* values, Py_ssize_t width, bint last,
) noexcept nogil:
    cdef Py_ssize_t c, carry
    cdef floating* to
    if counter.rows % DEPTH == 0:
        to = level + counter.depth * COLUMNS
        for c in range(width):
            to[c] = values[c]
        counter.depth += 1
    else:
        to = level + (counter.depth - 1) * COLUMNS
        for c in range(width):
            to[c] += values[c]
    counter.rows += 1
    if counter.rows % DEPTH and not last:
        return
    carry = counter.rows // DEPTH
    while counter.depth > 1 and (carry % 2 == 0 or last):
        to = level + (counter.depth - 2) * COLUMNS
        for c in range(width):
            to[c] += to[COLUMNS + c]
        counter.depth -= 1
        carry //= 2


cdef void softmax_columns(
    const floating* x, floating* y, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, bint log,
) noexcept nogil:
    """One tile of columns, each normalised along n rows that lie ``inner`` apart."""
    cdef floating top[COLUMNS]
    cdef floating level[LEVELS * COLUMNS]
    cdef const floating* row
    cdef floating* to
    cdef floating one = 1
    cdef Py_ssize_t j, c
    cdef Counter counter
    for c in range(width):
        top[c] = x[c]
    for j in range(1, n):
        row = x + j * inner
        for c in range(width):
            top[c] = join(top[c], row[c], MAX)
    for c in range(width):
        top[c] = shift_of(top[c])
    counter.rows = 0
    counter.depth = 0
    for j in range(n):
        row = x + j * inner
        to = y + j * inner
        for c in range(width):
            to[c] = c_exp(row[c] - top[c])
        push(level, &counter, to, width, j == n - 1)
    for c in range(width):
        level[c] = c_log(level[c]) if log else one / level[c]
    for j in range(n):
        row = x + j * inner
        to = y + j * inner
        if log:
            for c in range(width):
                to[c] = (row[c] - top[c]) - level[c]
        else:
            for c in range(width):
                to[c] *= level[c]


cdef void softmax_span(
    const floating* x, floating* y, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
    Py_ssize_t first, Py_ssize_t last, bint log,
) noexcept nogil:
    """The work items first … last: groups of rows, or tiles of columns."""
    cdef Py_ssize_t across = (inner + COLUMNS - 1) // COLUMNS, k, start, o, rows
    for k in range(first, last):
        if inner > 1:
            o = k // across
            start = (k - o * across) * COLUMNS
            softmax_columns(x + o * n * inner + start, y + o * n * inner + start,
                            n, inner, min(COLUMNS, inner - start), log)
        elif n <= SHORT:
            rows = rows_together(n)
            start = k * rows
            if n <= NARROW:
                softmax_narrow(x + start * n, y + start * n, min(rows, outer - start), n, log)
                continue
            softmax_group(x + start * n, y + start * n, min(rows, outer - start), n, log)
        else:
            softmax_row(x + k * n, y + k * n, n, log)


cdef inline Py_ssize_t rows_together(Py_ssize_t n) noexcept nogil:
    return 1 if n > SHORT else GROUP // n if n > NARROW else TOGETHER


cdef Py_ssize_t work_items(Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    cdef Py_ssize_t rows
    if inner > 1:
        return outer * ((inner + COLUMNS - 1) // COLUMNS)
    rows = rows_together(n)
    return (outer + rows - 1) // rows


cdef void softmax_run(
    const floating[:, :, ::1] x, floating[:, :, ::1] y, bint log, int threads,
) noexcept nogil:
    cdef Py_ssize_t outer = x.shape[0], n = x.shape[1], inner = x.shape[2], t
    cdef Py_ssize_t items = work_items(outer, n, inner)
    if threads <= 1 or items < 2:
        softmax_span(&x[0, 0, 0], &y[0, 0, 0], outer, n, inner, 0, items, log)
        return
    for t in prange(threads, schedule="static", chunksize=1, num_threads=threads):
        softmax_span(&x[0, 0, 0], &y[0, 0, 0], outer, n, inner,
                     items * t // threads, items * (t + 1) // threads, log)


# ---------------------------------------------------------------- softmax backward

cdef inline floating product_sum(
    const floating* g, const floating* y, Py_ssize_t n, bint log,
) noexcept nogil:
    """Σ g·y of a row (softmax) or Σ g (log-softmax), tile by tile."""
    cdef floating product[RUN]
    cdef floating level[LEVELS]
    cdef Tally tally = Tally(0, 0)
    cdef Py_ssize_t start = 0, i, size
    if log:
        return long_join(g, n, SUM)
    while start < n:
        size = min(n - start, RUN)
        for i in range(size):
            product[i] = g[start + i] * y[start + i]
        enter(tile_join(product, size, SUM), level, &tally, start + RUN >= n, SUM)
        start += RUN
    return level[0]


cdef void backward_row(
    const floating* g, const floating* y, floating* to, Py_ssize_t n, bint log,
) noexcept nogil:
    cdef floating total = product_sum(g, y, n, log)
    cdef Py_ssize_t i
    if log:
        log_grad_loop(g, y, total, to, n)
    else:
        for i in range(n):
            to[i] = y[i] * (g[i] - total)


cdef void backward_columns(
    const floating* g, const floating* y, floating* to, Py_ssize_t n, Py_ssize_t inner,
    Py_ssize_t width, bint log,
) noexcept nogil:
    cdef floating term[COLUMNS]
    cdef floating level[LEVELS * COLUMNS]
    cdef Py_ssize_t j, c
    cdef Counter counter
    counter.rows = 0
    counter.depth = 0
    for j in range(n):
        if log:
            push(level, &counter, g + j * inner, width, j == n - 1)
        else:
            for c in range(width):
                term[c] = g[j * inner + c] * y[j * inner + c]
            push(level, &counter, term, width, j == n - 1)
    for j in range(n):
        if log:
            for c in range(width):
                to[j * inner + c] = g[j * inner + c] - c_exp(y[j * inner + c]) * level[c]
        else:
            for c in range(width):
                to[j * inner + c] = y[j * inner + c] * (g[j * inner + c] - level[c])


cdef void backward_span(
    const floating* g, const floating* y, floating* to, Py_ssize_t n, Py_ssize_t inner,
    Py_ssize_t first, Py_ssize_t last, bint log,
) noexcept nogil:
    cdef Py_ssize_t across = (inner + COLUMNS - 1) // COLUMNS, k, place
    for k in range(first, last):
        if inner == 1:
            backward_row(g + k * n, y + k * n, to + k * n, n, log)
        else:
            place = k // across * n * inner + k % across * COLUMNS
            backward_columns(g + place, y + place, to + place, n, inner,
                             min(COLUMNS, inner - k % across * COLUMNS), log)


cdef void softmax_backward_run(
    const floating[:, :, ::1] g, const floating[:, :, ::1] y, floating[:, :, ::1] to, bint log,
    int threads,
) noexcept nogil:
    cdef Py_ssize_t n = g.shape[1], inner = g.shape[2], t
    cdef Py_ssize_t items = g.shape[0] * ((inner + COLUMNS - 1) // COLUMNS)
    if threads <= 1 or items < 2:
        backward_span(&g[0, 0, 0], &y[0, 0, 0], &to[0, 0, 0], n, inner, 0, items, log)
        return
    for t in prange(threads, schedule="static", chunksize=1, num_threads=threads):
        backward_span(&g[0, 0, 0], &y[0, 0, 0], &to[0, 0, 0], n, inner,
                      items * t // threads, items * (t + 1) // threads, log)


# ---------------------------------------------------------------- max and min: gradient, position

cdef inline bint ties(floating value, floating top) noexcept nogil:
    """Whether a value is the extreme of its slice; a NaN is where there is one."""
    return (value == top) | ((value != value) & (top != top))


cdef void extreme_row(
    const floating* x, floating g, floating* to, Py_ssize_t n, int how,
) noexcept nogil:
    cdef floating top = long_join(x, n, how), share
    cdef Py_ssize_t i, count = 0
    for i in range(n):
        count += ties(x[i], top)
    share = g / <floating> count
    for i in range(n):
        to[i] = share if ties(x[i], top) else <floating> 0


cdef inline void extreme_step(
    const floating* x, floating* top, floating* count, Py_ssize_t width, int how,
) noexcept nogil:
    """One more row: the extremes so far, and how often each was met."""
    cdef floating value
    cdef bint wins, tie
    cdef Py_ssize_t c
    for c in range(width):
        value = x[c]
        wins = (value > top[c] if how == MAX else value < top[c]) | (
            (value != value) & (top[c] == top[c]))
        tie = ties(value, top[c])
        count[c] += <floating> 1 if tie else <floating> 0
        count[c] = <floating> 1 if wins else count[c]
        top[c] = value if wins else top[c]


cdef void extreme_columns(
    const floating* x, const floating* g, floating* to, Py_ssize_t n, Py_ssize_t inner,
    Py_ssize_t width, int how,
) noexcept nogil:
    """Find and count in one pass over memory, write in a second."""
    cdef floating top[COLUMNS]
    cdef floating count[COLUMNS]
    cdef floating then[COLUMNS]     # the extremes when the counts were last carried over
    cdef double carried[COLUMNS]    # float32 counts no further than 2**24
    cdef Py_ssize_t j, c
    for c in range(width):
        top[c] = x[c]
        then[c] = x[c]
        count[c] = 1
        carried[c] = 0
    for j in range(1, n):
        if how == MAX:
            extreme_step(x + j * inner, top, count, width, MAX)
        else:
            extreme_step(x + j * inner, top, count, width, MIN)
        if j % CARRY == 0:
            for c in range(width):
                carried[c] = (carried[c] if ties(top[c], then[c]) else 0) + count[c]
                then[c] = top[c]
                count[c] = 0
    for c in range(width):
        carried[c] = (carried[c] if ties(top[c], then[c]) else 0) + count[c]
        count[c] = <floating> (g[c] / carried[c])
    for j in range(n):
        for c in range(width):
            to[j * inner + c] = count[c] if ties(x[j * inner + c], top[c]) else <floating> 0


cdef void extreme_span(
    const floating* x, const floating* g, floating* to, Py_ssize_t n, Py_ssize_t inner,
    Py_ssize_t first, Py_ssize_t last, int how,
) noexcept nogil:
    cdef Py_ssize_t across = (inner + COLUMNS - 1) // COLUMNS, k, o, start
    for k in range(first, last):
        if inner == 1:
            extreme_row(x + k * n, g[k], to + k * n, n, how)
        else:
            o = k // across
            start = (k - o * across) * COLUMNS
            extreme_columns(x + o * n * inner + start, g + o * inner + start,
                            to + o * n * inner + start, n, inner, min(COLUMNS, inner - start), how)


cdef void extreme_backward_run(
    const floating[:, :, ::1] x, const floating[:, ::1] g, floating[:, :, ::1] to, int how, int threads,
) noexcept nogil:
    cdef Py_ssize_t n = x.shape[1], inner = x.shape[2], t
    cdef Py_ssize_t items = x.shape[0] * ((inner + COLUMNS - 1) // COLUMNS)
    if threads <= 1 or items < 2:
        extreme_span(&x[0, 0, 0], &g[0, 0], &to[0, 0, 0], n, inner, 0, items, how)
        return
    for t in prange(threads, schedule="static", chunksize=1, num_threads=threads):
        extreme_span(&x[0, 0, 0], &g[0, 0], &to[0, 0, 0], n, inner,
                     items * t // threads, items * (t + 1) // threads, how)


cdef inline Py_ssize_t find(const floating* x, Py_ssize_t n, floating top) noexcept nogil:
    """The first place of an extreme."""
    cdef Py_ssize_t i
    if top != top:
        for i in range(n):
            if x[i] != x[i]:
                return i
        return 0
    if floating is float:
        return ex_find_f32(x, n, top)
    else:
        return ex_find_f64(x, n, top)


cdef inline bint beats(floating value, floating top, int how) noexcept nogil:
    """Whether a value comes before the extreme so far; NaN before all."""
    return ((value > top) if how == MAX else (value < top)) | ((value != value) & (top == top))


cdef Py_ssize_t arg_row(const floating* x, Py_ssize_t n, int how) noexcept nogil:
    """Piece by piece, so that only one piece is read again to find the place."""
    cdef floating value, top = tile_join(x, min(n, RUN), how)
    cdef Py_ssize_t best = 0, start = RUN
    while start < n:
        value = tile_join(x + start, min(n - start, RUN), how)
        if beats(value, top, how):
            top = value
            best = start
        start += RUN
    return best + find(x + best, min(n - best, RUN), top)


cdef void arg_columns(
    const floating* x, long long* to, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, int how,
) noexcept nogil:
    cdef floating top[COLUMNS]
    cdef floating value
    cdef long long place[COLUMNS]
    cdef Py_ssize_t j, c
    cdef bint wins
    for c in range(width):
        top[c] = x[c]
        place[c] = 0
    for j in range(1, n):
        for c in range(width):
            value = x[j * inner + c]
            wins = beats(value, top[c], how)
            top[c] = value if wins else top[c]
            place[c] = j if wins else place[c]
    for c in range(width):
        to[c] = place[c]


cdef void arg_span(
    const floating* x, long long* to, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t first,
    Py_ssize_t last, int how,
) noexcept nogil:
    cdef Py_ssize_t across = (inner + COLUMNS - 1) // COLUMNS, k, o, start
    for k in range(first, last):
        if inner == 1:
            to[k] = arg_row(x + k * n, n, how)
        else:
            o = k // across
            start = (k - o * across) * COLUMNS
            arg_columns(x + o * n * inner + start, to + o * inner + start, n, inner,
                        min(COLUMNS, inner - start), how)


cdef Py_ssize_t arg_long(const floating* x, Py_ssize_t n, int how, int threads) noexcept nogil:
    """One row, a piece for each thread."""
    cdef Py_ssize_t found[PIECES]
    cdef Py_ssize_t pieces = min(threads, PIECES), best, t
    for t in prange(pieces, schedule="static", chunksize=1, num_threads=threads):
        found[t] = n * t // pieces + arg_row(
            x + n * t // pieces, n * (t + 1) // pieces - n * t // pieces, how)
    best = found[0]
    for t in range(1, pieces):
        if beats(x[found[t]], x[best], how):
            best = found[t]
    return best


cdef void arg_run(
    const floating[:, :, ::1] x, long long[:, ::1] to, int how, int threads,
) noexcept nogil:
    cdef Py_ssize_t n = x.shape[1], inner = x.shape[2], t
    cdef Py_ssize_t items = x.shape[0] * ((inner + COLUMNS - 1) // COLUMNS)
    if threads > 1 and items == 1 and inner == 1:
        to[0, 0] = arg_long(&x[0, 0, 0], n, how, threads)
        return
    if threads <= 1 or items < 2:
        arg_span(&x[0, 0, 0], &to[0, 0], n, inner, 0, items, how)
        return
    for t in prange(threads, schedule="static", chunksize=1, num_threads=threads):
        arg_span(&x[0, 0, 0], &to[0, 0], n, inner,
                 items * t // threads, items * (t + 1) // threads, how)


# ---------------------------------------------------------------- variance of rows

cdef floating variance_row(const floating* x, Py_ssize_t n, double divisor) noexcept nogil:
    """Corrected two-pass: Σd² − (Σd)²/n over deviations d from the rounded mean."""
    cdef floating d[RUN]
    cdef floating squares[LEVELS]
    cdef floating plain[LEVELS]
    cdef Tally tally_squares = Tally(0, 0), tally_plain = Tally(0, 0)
    cdef floating mean = long_join(x, n, SUM) / <floating> n
    cdef Py_ssize_t start = 0, i, size
    cdef bint last
    while start < n:
        size = min(n - start, RUN)
        last = start + RUN >= n
        for i in range(size):
            d[i] = x[start + i] - mean
        enter(tile_join(d, size, SUM), plain, &tally_plain, last, SUM)
        for i in range(size):
            d[i] *= d[i]
        enter(tile_join(d, size, SUM), squares, &tally_squares, last, SUM)
        start += RUN
    return (squares[0] - plain[0] * (plain[0] / <floating> n)) / <floating> divisor


cdef void variance_run(
    const floating[:, ::1] x, floating[::1] to, double divisor, int threads,
) noexcept nogil:
    cdef Py_ssize_t n = x.shape[1], k
    if threads <= 1:
        for k in range(x.shape[0]):
            to[k] = variance_row(&x[k, 0], n, divisor)
        return
    for k in prange(x.shape[0], schedule="static", num_threads=threads):
        to[k] = variance_row(&x[k, 0], n, divisor)


# ---------------------------------------------------------------- blocks for the map and reduce drivers

cdef void square_deviation(const floating* x, const floating* mean, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    cdef floating d
    for i in range(n):
        d = x[i] - mean[i]
        y[i] = d * d


cdef void variance_finish(const floating* squares, const floating* plain, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating count = <floating> p[0], divisor = <floating> p[1]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (squares[i] - plain[i] * (plain[i] / count)) / divisor


cdef void variance_grad(
    const floating* g, const floating* x, const floating* mean, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating divisor = <floating> p[0], d
    cdef Py_ssize_t i
    for i in range(n):
        d = x[i] - mean[i]
        y[i] = g[i] * ((d + d) / divisor)


cdef void std_grad(
    const floating* g, const floating* x, const floating* mean, const floating* out, floating* y,
    Py_ssize_t n, const double* p,
) noexcept nogil:
    # g/(2·out) · 2·(x − mean)/divisor; the first factor is g/eps where 2·out < eps.
    cdef floating divisor = <floating> p[0], eps = <floating> p[1], twice, d
    cdef Py_ssize_t i
    for i in range(n):
        twice = out[i] + out[i]
        twice = eps if twice < eps else twice
        d = x[i] - mean[i]
        d = (g[i] / twice) * ((d + d) / divisor)
        y[i] = <floating> 0 if out[i] == 0 else d


cdef void root(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = sqrtf(x[i]) if floating is float else sqrt(x[i])


cdef void softmax_shift(const floating* top, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = shift_of(top[i])


cdef void finite_shift(const floating* top, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    # log-sum-exp of a slice whose maximum is ±inf or NaN is that maximum: nothing to shift by.
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = top[i] if (top[i] > -INFINITY) & (top[i] < INFINITY) else <floating> 0


cdef void exp_shifted(const floating* x, const floating* shift, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = c_exp(x[i] - shift[i])


cdef void add_log(const floating* total, const floating* top, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = top[i] + c_log(total[i]) if (top[i] > -INFINITY) & (top[i] < INFINITY) else top[i]


cdef void log_softmax_finish(
    const floating* x, const floating* shift, const floating* total, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[i] - shift[i]) - c_log(total[i])


cdef void logsumexp_grad(
    const floating* g, const floating* x, const floating* out, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] * c_exp(x[i] - out[i])


cdef void softmax_grad(
    const floating* g, const floating* out, const floating* total, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = out[i] * (g[i] - total[i])


cdef void log_softmax_grad(
    const floating* g, const floating* out, const floating* total, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] - c_exp(out[i]) * total[i]


# ---------------------------------------------------------------- rows: small calls, and the Cython API

cdef void softmax_rows(
    const floating* x, floating* y, Py_ssize_t rows, Py_ssize_t n, bint log,
) noexcept nogil:
    if rows > 0 and n > 0:
        softmax_span(x, y, rows, n, 1, 0, work_items(rows, n, 1), log)


cdef void softmax_rows_backward(
    const floating* g, const floating* y, floating* to, Py_ssize_t rows, Py_ssize_t n, bint log,
) noexcept nogil:
    if rows > 0 and n > 0:
        backward_span(g, y, to, n, 1, 0, rows, log)


cdef void extreme_rows_backward(
    const floating* g, const floating* x, floating* to, Py_ssize_t rows, Py_ssize_t n, bint least,
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(rows):
        extreme_row(x + k * n, g[k], to + k * n, n, MIN if least else MAX)


cdef void arg_rows(
    const floating* x, long long* to, Py_ssize_t rows, Py_ssize_t n, bint least,
) noexcept nogil:
    arg_span(x, to, n, 1, 0, rows, MIN if least else MAX)


cdef void variance_rows(
    const floating* x, floating* to, Py_ssize_t rows, Py_ssize_t n, double divisor, bint take_root,
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(rows):
        to[k] = variance_row(x + k * n, n, divisor)
    if take_root:
        root(to, to, rows, NULL)


cdef void logsumexp_rows(const floating* x, floating* to, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    cdef floating power[RUN]
    cdef floating level[LEVELS]
    cdef floating top, shift
    cdef Tally tally
    cdef Py_ssize_t k, start, size
    for k in range(rows):
        top = long_join(x + k * n, n, MAX)
        finite_shift(&top, &shift, 1, NULL)
        tally = Tally(0, 0)
        start = 0
        while start < n:
            size = min(n - start, RUN)
            exp_minus(x + k * n + start, shift, power, size)
            enter(tile_join(power, size, SUM), level, &tally, start + RUN >= n, SUM)
            start += RUN
        add_log(&level[0], &top, &to[k], 1, NULL)


# ---------------------------------------------------------------- entry points, one per dtype

def softmax_f32(const float[:, :, ::1] x, float[:, :, ::1] y, bint log, int threads):
    with nogil:
        softmax_run(x, y, log, threads)


def softmax_f64(const double[:, :, ::1] x, double[:, :, ::1] y, bint log, int threads):
    with nogil:
        softmax_run(x, y, log, threads)


def softmax_backward_f32(
    const float[:, :, ::1] g, const float[:, :, ::1] y, float[:, :, ::1] to, bint log, int threads,
):
    with nogil:
        softmax_backward_run(g, y, to, log, threads)


def softmax_backward_f64(
    const double[:, :, ::1] g, const double[:, :, ::1] y, double[:, :, ::1] to, bint log, int threads,
):
    with nogil:
        softmax_backward_run(g, y, to, log, threads)


def extreme_backward_f32(
    const float[:, :, ::1] x, const float[:, ::1] g, float[:, :, ::1] to, bint least, int threads,
):
    with nogil:
        extreme_backward_run(x, g, to, MIN if least else MAX, threads)


def extreme_backward_f64(
    const double[:, :, ::1] x, const double[:, ::1] g, double[:, :, ::1] to, bint least, int threads,
):
    with nogil:
        extreme_backward_run(x, g, to, MIN if least else MAX, threads)


def arg_f32(const float[:, :, ::1] x, long long[:, ::1] to, bint least, int threads):
    with nogil:
        arg_run(x, to, MIN if least else MAX, threads)


def arg_f64(const double[:, :, ::1] x, long long[:, ::1] to, bint least, int threads):
    with nogil:
        arg_run(x, to, MIN if least else MAX, threads)


def variance_f32(const float[:, ::1] x, float[::1] to, double divisor, int threads):
    with nogil:
        variance_run(x, to, divisor, threads)


def variance_f64(const double[:, ::1] x, double[::1] to, double divisor, int threads):
    with nogil:
        variance_run(x, to, divisor, threads)


EXPORTS = {
    "softmax": (softmax_f32, softmax_f64),
    "softmax_backward": (softmax_backward_f32, softmax_backward_f64),
    "softmax_rows": pair(<void*> softmax_rows[float], <void*> softmax_rows[double]),
    "softmax_rows_backward": pair(
        <void*> softmax_rows_backward[float], <void*> softmax_rows_backward[double]),
    "extreme_rows_backward": pair(
        <void*> extreme_rows_backward[float], <void*> extreme_rows_backward[double]),
    "arg_rows": pair(<void*> arg_rows[float], <void*> arg_rows[double]),
    "variance_rows": pair(<void*> variance_rows[float], <void*> variance_rows[double]),
    "logsumexp_rows": pair(<void*> logsumexp_rows[float], <void*> logsumexp_rows[double]),
    "extreme_backward": (extreme_backward_f32, extreme_backward_f64),
    "arg": (arg_f32, arg_f64),
    "variance": (variance_f32, variance_f64),
    "square_deviation": pair(<void*> square_deviation[float], <void*> square_deviation[double]),
    "variance_finish": pair(<void*> variance_finish[float], <void*> variance_finish[double]),
    "variance_grad": pair(<void*> variance_grad[float], <void*> variance_grad[double]),
    "std_grad": pair(<void*> std_grad[float], <void*> std_grad[double]),
    "root": pair(<void*> root[float], <void*> root[double]),
    "softmax_shift": pair(<void*> softmax_shift[float], <void*> softmax_shift[double]),
    "finite_shift": pair(<void*> finite_shift[float], <void*> finite_shift[double]),
    "exp_shifted": pair(<void*> exp_shifted[float], <void*> exp_shifted[double]),
    "add_log": pair(<void*> add_log[float], <void*> add_log[double]),
    "log_softmax_finish": pair(<void*> log_softmax_finish[float], <void*> log_softmax_finish[double]),
    "logsumexp_grad": pair(<void*> logsumexp_grad[float], <void*> logsumexp_grad[double]),
    "softmax_grad": pair(<void*> softmax_grad[float], <void*> softmax_grad[double]),
    "log_softmax_grad": pair(<void*> log_softmax_grad[float], <void*> log_softmax_grad[double]),
}
