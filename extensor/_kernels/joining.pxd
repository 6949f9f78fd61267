"""Joining many values into one: sum, maximum or minimum, the same way everywhere.

Lanes of at most DEPTH elements, then a tree: the error of a sum of n values is at most
(16 + log2 n) roundings of the sum of their magnitudes, and the order depends on n alone.
"""

from libc.math cimport INFINITY

from extensor._kernels.types cimport MAX, SUM, floating

cdef extern from "lanes.h" nogil:
    float ex_lane_sum_f32(const float* x, Py_ssize_t n)
    double ex_lane_sum_f64(const double* x, Py_ssize_t n)
    float ex_lane_squares_f32(const float* x, float shift, Py_ssize_t n, float* plain)
    double ex_lane_squares_f64(const double* x, double shift, Py_ssize_t n, double* plain)
    float ex_lane_products_f32(const float* x, const float* other, Py_ssize_t n)
    double ex_lane_products_f64(const double* x, const double* other, Py_ssize_t n)
    float ex_lane_extreme_f32(const float* x, Py_ssize_t n, bint least, float* probe)
    double ex_lane_extreme_f64(const double* x, Py_ssize_t n, bint least, double* probe)
    Py_ssize_t ex_find_f32(const float* x, Py_ssize_t n, float value)
    Py_ssize_t ex_find_f64(const double* x, Py_ssize_t n, double value)

cdef enum:
    DEPTH = 16          # elements in a row within one lane
    PARTS = 16          # pieces in the largest tile
    RUN = 4096          # elements of a long run that are joined as one tile
    LEVELS = 52         # log2 of the longest run over RUN, and one more


cdef inline floating join(floating a, floating b, int how) noexcept nogil:
    if how == SUM:
        return a + b
    if how == MAX:
        return a if (a >= b) | (a != a) else b
    return a if (a <= b) | (a != a) else b


cdef inline floating neutral(int how, floating unused) noexcept nogil:
    """What joining leaves unchanged."""
    return 0 if how == SUM else -INFINITY if how == MAX else INFINITY


cdef inline floating lane_join(
    const floating* x, Py_ssize_t n, floating* lane, int lanes, int how,
) noexcept nogil:
    """Join at most DEPTH * lanes elements: lanes first, then a tree over them."""
    cdef Py_ssize_t i, start = 0
    cdef int width = lanes
    for i in range(lanes):
        lane[i] = neutral(how, x[0])
    while start + lanes <= n:
        for i in range(lanes):
            lane[i] = join(lane[i], x[start + i], how)
        start += lanes
    for i in range(n - start):
        lane[i] = join(lane[i], x[start + i], how)
    while width > 1:
        width //= 2
        for i in range(width):
            lane[i] = join(lane[i], lane[i + width], how)
    return lane[0]


cdef inline floating tree_join(floating* x, Py_ssize_t n, Py_ssize_t vector, int how) noexcept nogil:
    """Join n vectors pairwise, in place; the result is left in the first."""
    cdef Py_ssize_t half, i
    while n > 1:
        half = (n + 1) // 2
        for i in range((n - half) * vector):
            x[i] = join(x[i], x[half * vector + i], how)
        n = half
    return x[0]


cdef inline floating lane_extreme(const floating* x, Py_ssize_t n, int how) noexcept nogil:
    """The extreme of more than DEPTH elements. The fast way loses a NaN but notes that there was
    one; the exact way decides then."""
    cdef floating lane[DEPTH]
    cdef floating probe, top
    if floating is float:
        top = ex_lane_extreme_f32(x, n, how != MAX, &probe)
    else:
        top = ex_lane_extreme_f64(x, n, how != MAX, &probe)
    return top if probe == probe else lane_join(x, n, lane, DEPTH, how)


cdef inline floating short_join(const floating* x, Py_ssize_t n, int how) noexcept nogil:
    cdef floating total = neutral(how, x[0])
    cdef Py_ssize_t i
    for i in range(n):
        total = join(total, x[i], how)
    return total


cdef inline floating piece_sum(const floating* x, Py_ssize_t n) noexcept nogil:
    if n <= DEPTH:
        return short_join(x, n, SUM)
    if floating is float:
        return ex_lane_sum_f32(x, n)
    else:
        return ex_lane_sum_f64(x, n)


cdef inline floating tile_join(const floating* x, Py_ssize_t n, int how) noexcept nogil:
    """Join one tile of contiguous values."""
    cdef floating part[PARTS]
    cdef Py_ssize_t parts = 0, start = 0, piece = DEPTH * (64 if floating is float else 32)
    if n <= DEPTH:
        return short_join(x, n, how)
    if how != SUM:
        return lane_extreme(x, n, how)
    if n <= piece:
        return piece_sum(x, n)
    while start < n:
        part[parts] = piece_sum(x + start, min(n - start, piece))
        parts += 1
        start += piece
    return tree_join(part, parts, 1, how)


cdef inline Py_ssize_t half_piece(floating unused) noexcept nogil:
    """Elements whose products or squares are added up at once: two sums share the registers."""
    return DEPTH * (32 if floating is float else 16)


cdef inline floating product_piece(const floating* x, const floating* other, Py_ssize_t n) noexcept nogil:
    cdef floating total = 0
    cdef Py_ssize_t i
    if n > DEPTH:
        if floating is float:
            return ex_lane_products_f32(x, other, n)
        else:
            return ex_lane_products_f64(x, other, n)
    for i in range(n):
        total += x[i] * other[i]
    return total


cdef inline floating square_piece(
    const floating* x, floating shift, Py_ssize_t n, floating* plain,
) noexcept nogil:
    """The sum of the squares of x − shift, and of x − shift itself."""
    cdef floating total = 0, d
    cdef Py_ssize_t i
    if n > DEPTH:
        if floating is float:
            return ex_lane_squares_f32(x, shift, n, plain)
        else:
            return ex_lane_squares_f64(x, shift, n, plain)
    plain[0] = 0
    for i in range(n):
        d = x[i] - shift
        plain[0] += d
        total += d * d
    return total


# A sum over tiles of unknown number: each tile's value is entered, and equal numbers of tiles are
# joined pairwise, as a binary counter carries. The result is level[0] after the last one.
cdef struct Tally:
    Py_ssize_t tiles
    int depth


cdef inline void enter(floating value, floating* level, Tally* tally, bint last, int how) noexcept nogil:
    cdef Py_ssize_t carry
    level[tally.depth] = value
    tally.depth += 1
    tally.tiles += 1
    carry = tally.tiles
    while tally.depth > 1 and (carry % 2 == 0 or last):
        level[tally.depth - 2] = join(level[tally.depth - 2], level[tally.depth - 1], how)
        tally.depth -= 1
        carry //= 2


cdef inline floating long_join(const floating* x, Py_ssize_t n, int how) noexcept nogil:
    """Join a contiguous run of any length."""
    cdef floating level[LEVELS]
    cdef Tally tally = Tally(0, 0)
    cdef Py_ssize_t start = 0
    if n <= RUN:
        return tile_join(x, n, how)
    while start < n:
        enter(tile_join(x + start, min(n - start, RUN), how), level, &tally, start + RUN >= n, how)
        start += RUN
    return level[0]
