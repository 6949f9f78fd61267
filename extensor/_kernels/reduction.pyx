"""Functions along one axis: softmax, log-softmax, arg-max, gradients of max and min, variance.

A tensor is seen as (outer, n, inner) and reduced or normalised along n. Where inner is 1 the axis
is contiguous and a row is handled while it lies in cache; otherwise tiles of neighbouring columns
are, with the loop over the columns innermost, so that nothing is transposed.
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY, NAN, sqrt, sqrtf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from extensor._kernels.joining cimport (
    DEPTH, LEVELS, RUN, Tally, enter, ex_column_squares_f32, ex_column_squares_f64, ex_find_f32,
    ex_find_f64, half_piece, join, long_join, product_piece, square_piece, tile_join, tree_join,
)
from extensor._kernels.types cimport MAX, MIN, SUM, Along, floating, pair

cdef extern from *:
    """
    #include "vecmath.h"
    /* By the argument's precision. Macros: a function is not always inlined, and then the loop around
       it stays scalar. */
    #define c_exp(x) _Generic((x), float: exm_exp_f32, double: exm_exp_f64)(x)
    #define c_log(x) _Generic((x), float: exm_log_f32, double: exm_log_f64)(x)
    """
    double c_exp(double x) noexcept nogil
    double c_log(double x) noexcept nogil

cdef enum:
    COLUMNS = 128       # of a tile where the axis is not contiguous
    SHORT = 512         # rows up to this length are handled several at a time
    GROUP = 2048        # elements of such a group of rows
    NARROW = 16         # rows up to this length are turned: one lane each (DEPTH at the most)
    TOGETHER = 64       # such rows at a time
    PIECES = 64         # of one long row, for as many threads
    STRIP = 512         # columns of a part in float64, twice as many in float32
    PART = 1024         # rows of a part: DEPTH * 64
    PART_LEVELS = 8     # log2(64) + 2
    BYTES = 512         # columns of a tile of bools
    CARRY = 1 << 22     # rows after which counts are carried over into doubles


# ---------------------------------------------------------------- work items

ctypedef void (*Span)(const Along*, Py_ssize_t, Py_ssize_t, void*) noexcept nogil


cdef void share_out(const Along* a, Span span, Py_ssize_t items) noexcept nogil:
    """Run the work items on the threads; none of them depends on another."""
    cdef Py_ssize_t t
    if a.threads <= 1 or items < 2:
        span(a, 0, items, NULL)
        return
    for t in prange(a.threads, schedule="static", chunksize=1, num_threads=a.threads):
        span(a, items * t // a.threads, items * (t + 1) // a.threads, NULL)


cdef Py_ssize_t tile_width(const Along* a) noexcept nogil:
    """Columns of a tile: COLUMNS, or less so that every thread gets its share."""
    cdef Py_ssize_t tiles = (a.inner + COLUMNS - 1) // COLUMNS
    if a.outer < a.threads:
        tiles = (tiles + a.threads - 1) // a.threads * a.threads
    return ((a.inner + tiles - 1) // tiles + 15) // 16 * 16


cdef inline Py_ssize_t tiles_across(const Along* a) noexcept nogil:
    cdef Py_ssize_t width = tile_width(a)
    return (a.inner + width - 1) // width


# Where work item k begins: its slice, its first column and how many columns it has.
cdef struct Item:
    Py_ssize_t outer
    Py_ssize_t col
    Py_ssize_t width
    Py_ssize_t place        # the first element in a tensor of the full shape
    Py_ssize_t kept         # the same with one element per slice


cdef inline Item item_at(const Along* a, Py_ssize_t k) noexcept nogil:
    cdef Item item
    cdef Py_ssize_t width = tile_width(a), across = (a.inner + width - 1) // width
    item.outer = k // across
    item.col = (k - item.outer * across) * width
    item.width = min(width, a.inner - item.col)
    item.place = item.outer * a.n * a.inner + item.col
    item.kept = item.outer * a.inner + item.col
    return item


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
    for i in range(rows * n):
        y[i] = c_exp(y[i])
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
    for i in range(n):
        y[i] = c_exp(x[i] - top)
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
    floating* level, Py_ssize_t stride, Counter* counter, const floating* values, Py_ssize_t width,
    bint last,
) noexcept nogil:
    cdef Py_ssize_t c, carry
    cdef floating* to
    if counter.rows % DEPTH == 0:
        to = level + counter.depth * stride
        for c in range(width):
            to[c] = values[c]
        counter.depth += 1
    else:
        to = level + (counter.depth - 1) * stride
        for c in range(width):
            to[c] += values[c]
    counter.rows += 1
    if counter.rows % DEPTH and not last:
        return
    carry = counter.rows // DEPTH
    while counter.depth > 1 and (carry % 2 == 0 or last):
        to = level + (counter.depth - 2) * stride
        for c in range(width):
            to[c] += to[stride + c]
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
        push(level, COLUMNS, &counter, to, width, j == n - 1)
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


cdef inline Py_ssize_t rows_together(Py_ssize_t n) noexcept nogil:
    return 1 if n > SHORT else GROUP // n if n > NARROW else TOGETHER


cdef void softmax_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    """The work items first … last: groups of rows, or tiles of columns."""
    cdef const floating* x = <const floating*> a.x
    cdef floating* y = <floating*> a.y
    cdef Py_ssize_t n = a.n, k, start, rows = rows_together(n), count
    cdef Item item
    for k in range(first, last):
        if a.inner > 1:
            item = item_at(a, k)
            softmax_columns(x + item.place, y + item.place, n, a.inner, item.width, a.flag)
            continue
        start = k * rows
        count = min(rows, a.outer - start)
        if n <= NARROW:
            softmax_narrow(x + start * n, y + start * n, count, n, a.flag)
        elif n <= SHORT:
            softmax_group(x + start * n, y + start * n, count, n, a.flag)
        else:
            softmax_row(x + start * n, y + start * n, n, a.flag)


cdef int softmax(const Along* a, floating* unused) noexcept nogil:
    cdef Py_ssize_t rows = rows_together(a.n)
    share_out(a, <Span> softmax_span[floating],
              a.outer * tiles_across(a) if a.inner > 1 else (a.outer + rows - 1) // rows)
    return 0


# ---------------------------------------------------------------- softmax backward

cdef inline floating product_sum(const floating* g, const floating* y, Py_ssize_t n) noexcept nogil:
    """Σ g·y of a row."""
    cdef floating level[LEVELS]
    cdef Tally tally = Tally(0, 0)
    cdef Py_ssize_t start = 0, piece = half_piece(g[0])
    if n <= piece:
        return product_piece(g, y, n)
    while start < n:
        enter(product_piece(g + start, y + start, min(n - start, piece)),
              level, &tally, start + piece >= n, SUM)
        start += piece
    return level[0]


cdef void backward_row(
    const floating* g, const floating* y, floating* to, Py_ssize_t n, bint log,
) noexcept nogil:
    cdef floating total = long_join(g, n, SUM) if log else product_sum(g, y, n)
    cdef Py_ssize_t i
    if log:
        for i in range(n):
            to[i] = g[i] - c_exp(y[i]) * total
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
            push(level, COLUMNS, &counter, g + j * inner, width, j == n - 1)
        else:
            for c in range(width):
                term[c] = g[j * inner + c] * y[j * inner + c]
            push(level, COLUMNS, &counter, term, width, j == n - 1)
    for j in range(n):
        if log:
            for c in range(width):
                to[j * inner + c] = g[j * inner + c] - c_exp(y[j * inner + c]) * level[c]
        else:
            for c in range(width):
                to[j * inner + c] = y[j * inner + c] * (g[j * inner + c] - level[c])


cdef void backward_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* g = <const floating*> a.g
    cdef const floating* x = <const floating*> a.x
    cdef floating* y = <floating*> a.y
    cdef Py_ssize_t k
    cdef Item item
    for k in range(first, last):
        item = item_at(a, k)
        if a.inner == 1:
            backward_row(g + item.place, x + item.place, y + item.place, a.n, a.flag)
        else:
            backward_columns(g + item.place, x + item.place, y + item.place, a.n, a.inner,
                             item.width, a.flag)


cdef int softmax_backward(const Along* a, floating* unused) noexcept nogil:
    share_out(a, <Span> backward_span[floating], a.outer * tiles_across(a))
    return 0


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
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* x = <const floating*> a.x
    cdef const floating* g = <const floating*> a.g
    cdef floating* y = <floating*> a.y
    cdef int how = MIN if a.flag else MAX
    cdef Py_ssize_t k
    cdef Item item
    for k in range(first, last):
        item = item_at(a, k)
        if a.inner == 1:
            extreme_row(x + item.place, g[item.kept], y + item.place, a.n, how)
        else:
            extreme_columns(x + item.place, g + item.kept, y + item.place, a.n, a.inner, item.width, how)


cdef int extreme_backward(const Along* a, floating* unused) noexcept nogil:
    share_out(a, <Span> extreme_span[floating], a.outer * tiles_across(a))
    return 0


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
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* x = <const floating*> a.x
    cdef long long* y = <long long*> a.y
    cdef int how = MIN if a.flag else MAX
    cdef Py_ssize_t k
    cdef Item item
    for k in range(first, last):
        item = item_at(a, k)
        if a.inner == 1:
            y[item.kept] = arg_row(x + item.place, a.n, how)
        else:
            arg_columns(x + item.place, y + item.kept, a.n, a.inner, item.width, how)


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


cdef int arg(const Along* a, floating* unused) noexcept nogil:
    if a.threads > 1 and a.outer == 1 and a.inner == 1:
        (<long long*> a.y)[0] = arg_long(
            <const floating*> a.x, a.n, MIN if a.flag else MAX, a.threads)
    else:
        share_out(a, <Span> arg_span[floating], a.outer * tiles_across(a))
    return 0


# ---------------------------------------------------------------- any and all: bools as bytes

cdef bint truth_row(const unsigned char* x, Py_ssize_t n, bint every) noexcept nogil:
    cdef Py_ssize_t start = 0, i
    cdef unsigned char found
    while start < n:
        found = 0
        if every:
            for i in range(start, min(start + RUN, n)):
                found |= x[i] == 0
        else:
            for i in range(start, min(start + RUN, n)):
                found |= x[i]
        if found:
            return not every
        start += RUN
    return every


cdef void truth_columns(
    const unsigned char* x, unsigned char* y, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, bint every,
) noexcept nogil:
    """Any: the rows joined by or; all: the least of the rows. Four rows at a time."""
    cdef unsigned char found[BYTES]
    cdef const unsigned char* row
    cdef Py_ssize_t j = 0, c
    for c in range(width):
        found[c] = every
    while j < n:
        row = x + j * inner
        if every and j + 4 <= n:
            for c in range(width):
                found[c] = min(min(min(row[c], row[inner + c]),
                                   min(row[2 * inner + c], row[3 * inner + c])), found[c])
        elif every:
            for c in range(width):
                found[c] = min(row[c], found[c])
        elif j + 4 <= n:
            for c in range(width):
                found[c] |= row[c] | row[inner + c] | row[2 * inner + c] | row[3 * inner + c]
        else:
            for c in range(width):
                found[c] |= row[c]
        j += 4 if j + 4 <= n else 1
    for c in range(width):
        y[c] = found[c] != 0


cdef void truth_span(const Along* a, Py_ssize_t first, Py_ssize_t last, void* unused) noexcept nogil:
    cdef const unsigned char* x = <const unsigned char*> a.x
    cdef unsigned char* y = <unsigned char*> a.y
    cdef Py_ssize_t k, o, col, across = (a.inner + BYTES - 1) // BYTES
    for k in range(first, last):
        if a.inner == 1:
            y[k] = truth_row(x + k * a.n, a.n, a.flag)
        else:
            o = k // across
            col = (k - o * across) * BYTES
            truth_columns(x + o * a.n * a.inner + col, y + o * a.inner + col, a.n, a.inner,
                          min(BYTES, a.inner - col), a.flag)


cdef int truth(const Along* a, void* unused) noexcept nogil:
    cdef unsigned char part[PIECES]
    cdef Py_ssize_t pieces = min(a.threads, PIECES), t
    if a.outer > 1 or a.inner > 1 or pieces < 2:
        share_out(a, <Span> truth_span, a.outer * ((a.inner + BYTES - 1) // BYTES))
        return 0
    for t in prange(pieces, schedule="static", chunksize=1, num_threads=a.threads):
        part[t] = truth_row(<const unsigned char*> a.x + a.n * t // pieces,
                            a.n * (t + 1) // pieces - a.n * t // pieces, a.flag)
    (<unsigned char*> a.y)[0] = truth_row(part, pieces, a.flag)
    return 0


# ---------------------------------------------------------------- variance and log-sum-exp

# Corrected two-pass: Σd² − (Σd)²/n over deviations d from the rounded mean.
cdef inline floating finished(
    floating squares, floating plain, Py_ssize_t n, double divisor, bint take_root,
) noexcept nogil:
    cdef floating y = (squares - plain * (plain / <floating> n)) / <floating> divisor
    if take_root:
        return sqrtf(y) if floating is float else sqrt(y)
    return y


cdef floating variance_row(const floating* x, Py_ssize_t n, double divisor, bint take_root) noexcept nogil:
    cdef floating squares[LEVELS]
    cdef floating plain[LEVELS]
    cdef Tally of_squares = Tally(0, 0), of_plain = Tally(0, 0)
    cdef floating mean = long_join(x, n, SUM) / <floating> n, sum_squares, sum_plain
    cdef Py_ssize_t start = 0, piece = half_piece(x[0])
    cdef bint last
    while start < n:
        last = start + piece >= n
        sum_squares = square_piece(x + start, mean, min(n - start, piece), &sum_plain)
        enter(sum_squares, squares, &of_squares, last, SUM)
        enter(sum_plain, plain, &of_plain, last, SUM)
        start += piece
    return finished(squares[0], plain[0], n, divisor, take_root)


cdef floating logsumexp_row(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef floating power[RUN]
    cdef floating level[LEVELS]
    cdef floating top = long_join(x, n, MAX), shift, y
    cdef Tally tally = Tally(0, 0)
    cdef Py_ssize_t start = 0, size, i
    finite_shift(&top, &shift, 1, NULL)
    while start < n:
        size = min(n - start, RUN)
        for i in range(size):
            power[i] = c_exp(x[start + i] - shift)
        enter(tile_join(power, size, SUM), level, &tally, start + RUN >= n, SUM)
        start += RUN
    add_log(&level[0], &top, &y, 1, NULL)
    return y


cdef void square_part(
    const floating* x, const floating* shift, Py_ssize_t rows, Py_ssize_t inner, Py_ssize_t width,
    floating* squares, floating* plain,
) noexcept nogil:
    """Σ(x − shift)² and Σ(x − shift) of the columns of at most PART rows."""
    cdef double memory[2 * PART_LEVELS * STRIP]
    cdef Py_ssize_t strip = strip_width(x[0]), j = 0, c, carry, depth = 0, groups = 0
    cdef floating* of_squares = <floating*> memory
    cdef floating* of_plain = of_squares + PART_LEVELS * strip
    while j < rows:
        if floating is float:
            ex_column_squares_f32(x + j * inner, inner, min(DEPTH, rows - j), shift, width,
                                  of_squares + depth * strip, of_plain + depth * strip)
        else:
            ex_column_squares_f64(x + j * inner, inner, min(DEPTH, rows - j), shift, width,
                                  of_squares + depth * strip, of_plain + depth * strip)
        depth += 1
        groups += 1
        j += DEPTH
        carry = groups
        while depth > 1 and (carry % 2 == 0 or j >= rows):
            depth -= 1
            for c in range(width):
                of_squares[(depth - 1) * strip + c] += of_squares[depth * strip + c]
            for c in range(width):
                of_plain[(depth - 1) * strip + c] += of_plain[depth * strip + c]
            carry //= 2
    for c in range(width):
        squares[c] = of_squares[c]
        plain[c] = of_plain[c]


cdef void power_part(
    const floating* x, const floating* shift, Py_ssize_t rows, Py_ssize_t inner, Py_ssize_t width,
    floating* total,
) noexcept nogil:
    """Σ exp(x − shift) of the columns of at most PART rows."""
    cdef double memory[(PART_LEVELS + 1) * STRIP]
    cdef Py_ssize_t strip = strip_width(x[0]), j, c
    cdef floating* level = <floating*> memory
    cdef floating* term = level + PART_LEVELS * strip
    cdef Counter counter
    counter.rows = 0
    counter.depth = 0
    for j in range(rows):
        exp_shifted(x + j * inner, shift, term, width, NULL)
        push(level, strip, &counter, term, width, j == rows - 1)
    for c in range(width):
        total[c] = level[c]


cdef inline Py_ssize_t strip_width(floating unused) noexcept nogil:
    return 2 * STRIP if floating is float else STRIP


cdef void variance_columns(
    const floating* x, floating* y, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, double divisor,
    bint take_root,
) noexcept nogil:
    """One tile of columns, at most PART rows."""
    cdef floating mean[COLUMNS]
    cdef floating squares[COLUMNS]
    cdef floating plain[COLUMNS]
    cdef Py_ssize_t c
    for c in range(COLUMNS):
        mean[c] = 0
    square_part(x, mean, n, inner, width, squares, plain)
    for c in range(width):
        mean[c] = plain[c] / <floating> n
    square_part(x, mean, n, inner, width, squares, plain)
    for c in range(width):
        y[c] = finished(squares[c], plain[c], n, divisor, take_root)


cdef void logsumexp_columns(
    const floating* x, floating* y, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width,
) noexcept nogil:
    cdef floating top[COLUMNS]
    cdef floating shift[COLUMNS]
    cdef floating total[COLUMNS]
    cdef Py_ssize_t j, c
    for c in range(width):
        top[c] = x[c]
    for j in range(1, n):
        for c in range(width):
            top[c] = join(top[c], x[j * inner + c], MAX)
    finite_shift(top, shift, width, NULL)
    power_part(x, shift, n, inner, width, total)
    add_log(total, top, y, width, NULL)


cdef void variance_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* x = <const floating*> a.x
    cdef floating* y = <floating*> a.y
    cdef Py_ssize_t k
    cdef Item item
    for k in range(first, last):
        item = item_at(a, k)
        if a.inner == 1:
            y[item.kept] = variance_row(x + item.place, a.n, a.divisor, a.flag)
        else:
            variance_columns(x + item.place, y + item.kept, a.n, a.inner, item.width, a.divisor, a.flag)


cdef void logsumexp_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* x = <const floating*> a.x
    cdef floating* y = <floating*> a.y
    cdef Py_ssize_t k
    cdef Item item
    for k in range(first, last):
        item = item_at(a, k)
        if a.inner == 1:
            y[item.kept] = logsumexp_row(x + item.place, a.n)
        else:
            logsumexp_columns(x + item.place, y + item.kept, a.n, a.inner, item.width)


cdef int variance(const Along* a, floating* unused) noexcept nogil:
    """Rows, or columns of at most PART elements."""
    share_out(a, <Span> variance_span[floating], a.outer * tiles_across(a))
    return 0


cdef int logsumexp(const Along* a, floating* unused) noexcept nogil:
    share_out(a, <Span> logsumexp_span[floating], a.outer * tiles_across(a))
    return 0


# Long slices, whose mean or maximum is known already (a.saved): the sums of parts of their rows go
# to (outer, parts, vectors, inner) and are joined there as a tree. flag: powers, not deviations.
cdef Py_ssize_t part_rows(const Along* a, floating unused) noexcept nogil:
    return half_piece(unused) if a.inner == 1 else PART


cdef void parts_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* x = <const floating*> a.x
    cdef const floating* shift = <const floating*> a.saved
    cdef floating* y = <floating*> a.y
    cdef floating* to
    cdef Py_ssize_t strip = strip_width(<floating> 0), across = (a.inner + strip - 1) // strip
    cdef Py_ssize_t size = part_rows(a, <floating> 0), parts = (a.n + size - 1) // size
    cdef Py_ssize_t vectors = 1 if a.flag else 2, k, o, part, col, row, rows, width, place
    for k in range(first, last):
        o = k // (across * parts)
        part = k // across - o * parts
        col = k % across * strip
        width = min(strip, a.inner - col)
        row = part * size
        rows = min(size, a.n - row)
        place = (o * a.n + row) * a.inner + col
        to = y + (o * parts + part) * vectors * a.inner + col
        if a.flag:
            power_part(x + place, shift + o * a.inner + col, rows, a.inner, width, to)
        elif a.inner == 1:
            to[0] = square_piece(x + place, shift[o], rows, &to[1])
        else:
            square_part(x + place, shift + o * a.inner + col, rows, a.inner, width, to, to + a.inner)


cdef floating* sum_parts(
    const Along* a, const floating* shift, bint powers, Py_ssize_t* stride,
) noexcept nogil:
    """The joined sums of every slice, ``stride`` apart; NULL when there is no memory."""
    cdef Along b = a[0]
    cdef Py_ssize_t size = part_rows(a, shift[0]), parts = (a.n + size - 1) // size, o
    cdef Py_ssize_t vectors = 1 if powers else 2, strip = strip_width(shift[0])
    cdef floating* sums
    stride[0] = parts * vectors * a.inner
    sums = <floating*> malloc(a.outer * stride[0] * sizeof(floating))
    if sums == NULL:
        return NULL
    b.saved = shift
    b.y = sums
    b.flag = powers
    share_out(&b, <Span> parts_span[floating],
              a.outer * parts * ((a.inner + strip - 1) // strip))
    for o in range(a.outer):
        tree_join(sums + o * stride[0], parts, vectors * a.inner, SUM)
    return sums


cdef int long_variance(const Along* a, floating* unused) noexcept nogil:
    cdef Py_ssize_t o, c, stride
    cdef floating* sums = sum_parts(a, <const floating*> a.saved, False, &stride)
    cdef floating* y = <floating*> a.y
    if sums == NULL:
        return -1
    for o in range(a.outer):
        for c in range(a.inner):
            y[o * a.inner + c] = finished(
                sums[o * stride + c], sums[o * stride + a.inner + c], a.n, a.divisor, a.flag)
    free(sums)
    return 0


cdef int long_logsumexp(const Along* a, floating* unused) noexcept nogil:
    cdef const floating* top = <const floating*> a.saved
    cdef floating* y = <floating*> a.y
    cdef floating* sums
    cdef Py_ssize_t o, stride
    finite_shift(top, y, a.outer * a.inner, NULL)
    sums = sum_parts(a, <const floating*> y, True, &stride)
    if sums == NULL:
        return -1
    for o in range(a.outer):
        add_log(sums + o * stride, top + o * a.inner, y + o * a.inner, a.inner, NULL)
    free(sums)
    return 0


# A sum over the first and the last axes of (outer, n, inner), the last one summed up already.
cdef int tree_rows(const Along* a, floating* unused) noexcept nogil:
    """The outer × inner sums in a.y joined over outer, as a tree; the first inner ones hold the result."""
    cdef floating* y = <floating*> a.y
    cdef Py_ssize_t c
    tree_join(y, a.outer, a.inner, SUM)
    for c in range(a.inner):
        y[c] /= <floating> a.divisor
    return 0


# ---------------------------------------------------------------- gradients along slices

cdef void logsumexp_backward_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* x = <const floating*> a.x
    cdef const floating* g = <const floating*> a.g
    cdef const floating* saved = <const floating*> a.saved
    cdef floating* y = <floating*> a.y
    cdef floating scale, shift
    cdef Py_ssize_t k, j, i
    cdef Item item
    for k in range(first, last):
        item = item_at(a, k)
        if a.inner > 1:
            for j in range(a.n):
                logsumexp_grad(g + item.kept, x + item.place + j * a.inner, saved + item.kept,
                               y + item.place + j * a.inner, item.width, NULL)
            continue
        scale = g[k]
        shift = saved[k]
        for i in range(item.place, item.place + a.n):
            y[i] = scale * c_exp(x[i] - shift)


cdef int logsumexp_backward(const Along* a, floating* unused) noexcept nogil:
    share_out(a, <Span> logsumexp_backward_span[floating], a.outer * tiles_across(a))
    return 0


cdef void variance_backward_columns(
    const Along* a, Item item, const floating* x, const floating* g, const floating* saved, floating* y,
) noexcept nogil:
    """One tile of columns, at most PART rows."""
    cdef floating mean[COLUMNS]
    cdef floating scale[COLUMNS]
    cdef floating unused[COLUMNS]
    cdef floating d, divisor = <floating> a.divisor
    cdef Py_ssize_t c, j, width = item.width
    for c in range(COLUMNS):
        mean[c] = 0
    square_part(x, mean, a.n, a.inner, width, unused, mean)
    for c in range(width):
        mean[c] /= <floating> a.n
    for c in range(width):
        scale[c] = g[c] if saved == NULL else root_scale(g[c], saved[c])
    for j in range(a.n):
        for c in range(width):
            d = x[j * a.inner + c] - mean[c]
            y[j * a.inner + c] = scale[c] * ((d + d) / divisor)
        if saved != NULL:
            for c in range(width):
                y[j * a.inner + c] = <floating> 0 if saved[c] == 0 else y[j * a.inner + c]


cdef void variance_backward_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    """g·2(x − mean)/divisor, for the root of a variance g/(2·root) in place of g."""
    cdef const floating* x = <const floating*> a.x
    cdef const floating* g = <const floating*> a.g
    cdef const floating* saved = <const floating*> a.saved
    cdef floating* y = <floating*> a.y
    cdef floating scale, d, mean
    cdef Py_ssize_t k, i
    cdef Item item
    for k in range(first, last):
        item = item_at(a, k)
        if a.inner > 1:
            variance_backward_columns(a, item, x + item.place, g + item.kept,
                                      saved + item.kept if a.flag else NULL, y + item.place)
            continue
        mean = long_join(x + item.place, a.n, SUM) / <floating> a.n
        scale = root_scale(g[k], saved[k]) if a.flag else g[k]
        if a.flag and saved[k] == 0:
            for i in range(item.place, item.place + a.n):
                y[i] = 0
            continue
        for i in range(item.place, item.place + a.n):
            d = x[i] - mean
            y[i] = scale * ((d + d) / <floating> a.divisor)


cdef inline floating root_scale(floating g, floating saved) noexcept nogil:
    cdef floating twice = saved + saved, eps = <floating> 1e-10
    return g / (eps if twice < eps else twice)


cdef void long_variance_backward_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* x = <const floating*> a.x
    cdef const floating* saved = <const floating*> a.saved
    cdef floating* y = <floating*> a.y
    cdef floating mean = saved[0], scale = (<const floating*> a.g)[0], d
    cdef Py_ssize_t i
    cdef bint none = a.flag and saved[1] == 0
    if a.flag:
        scale = root_scale(scale, saved[1])
    for i in range(first * RUN, min(last * RUN, a.n)):
        d = x[i] - mean
        d = scale * ((d + d) / <floating> a.divisor)
        y[i] = <floating> 0 if none else d


cdef int long_variance_backward(const Along* a, floating* unused) noexcept nogil:
    """One slice, whose mean is a.saved[0], and its root a.saved[1]."""
    share_out(a, <Span> long_variance_backward_span[floating], (a.n + RUN - 1) // RUN)
    return 0


cdef int variance_backward(const Along* a, floating* unused) noexcept nogil:
    share_out(a, <Span> variance_backward_span[floating], a.outer * tiles_across(a))
    return 0


cdef void spread_span(
    const Along* a, Py_ssize_t first, Py_ssize_t last, floating* unused,
) noexcept nogil:
    cdef const floating* g = <const floating*> a.g
    cdef floating* y = <floating*> a.y
    cdef floating value, divisor = <floating> a.divisor
    cdef Py_ssize_t k, o, i
    if a.outer == 1 and a.inner == 1:
        value = g[0] / divisor
        for i in range(first * RUN, min(last * RUN, a.n)):
            y[i] = value
        return
    for k in range(first, last):        # rows of the result; where inner is 1, whole slices
        if a.inner == 1:
            value = g[k] / divisor
            for i in range(k * a.n, (k + 1) * a.n):
                y[i] = value
        elif k == first or k % a.n == 0:
            o = k // a.n
            for i in range(a.inner):
                y[k * a.inner + i] = g[o * a.inner + i] / divisor
        else:
            memcpy(y + k * a.inner, y + max(first, k - k % a.n) * a.inner, a.inner * sizeof(floating))


cdef int spread(const Along* a, floating* unused) noexcept nogil:
    cdef Py_ssize_t items = a.outer if a.inner == 1 else a.outer * a.n
    share_out(a, <Span> spread_span[floating], (a.n + RUN - 1) // RUN if items == 1 else items)
    return 0


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


# ---------------------------------------------------------------- rows, for the Cython API

cdef void softmax_rows(
    const floating* x, floating* y, Py_ssize_t rows, Py_ssize_t n, bint log,
) noexcept nogil:
    cdef Along a
    a.x, a.y = x, y
    a.outer, a.n, a.inner = rows, n, 1
    a.flag, a.threads = log, 1
    if rows > 0 and n > 0:
        softmax[floating](&a, NULL)


cdef void softmax_rows_backward(
    const floating* g, const floating* y, floating* to, Py_ssize_t rows, Py_ssize_t n, bint log,
) noexcept nogil:
    cdef Along a
    a.g, a.x, a.y = g, y, to
    a.outer, a.n, a.inner = rows, n, 1
    a.flag, a.threads = log, 1
    if rows > 0 and n > 0:
        softmax_backward[floating](&a, NULL)


EXPORTS = {
    "softmax": pair(<void*> softmax[float], <void*> softmax[double]),
    "softmax_backward": pair(<void*> softmax_backward[float], <void*> softmax_backward[double]),
    "extreme_backward": pair(<void*> extreme_backward[float], <void*> extreme_backward[double]),
    "arg": pair(<void*> arg[float], <void*> arg[double]),
    "variance": pair(<void*> variance[float], <void*> variance[double]),
    "long_variance": pair(<void*> long_variance[float], <void*> long_variance[double]),
    "variance_backward": pair(<void*> variance_backward[float], <void*> variance_backward[double]),
    "long_variance_backward": pair(
        <void*> long_variance_backward[float], <void*> long_variance_backward[double]),
    "logsumexp": pair(<void*> logsumexp[float], <void*> logsumexp[double]),
    "long_logsumexp": pair(<void*> long_logsumexp[float], <void*> long_logsumexp[double]),
    "logsumexp_backward": pair(
        <void*> logsumexp_backward[float], <void*> logsumexp_backward[double]),
    "spread": pair(<void*> spread[float], <void*> spread[double]),
    "tree_rows": pair(<void*> tree_rows[float], <void*> tree_rows[double]),
    "softmax_rows": pair(<void*> softmax_rows[float], <void*> softmax_rows[double]),
    "softmax_rows_backward": pair(
        <void*> softmax_rows_backward[float], <void*> softmax_rows_backward[double]),
    "truth": pair(<void*> truth, <void*> truth),
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
