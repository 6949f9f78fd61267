"""Joining many values into one: sum, maximum or minimum, the same way everywhere.

Lanes of at most DEPTH elements, then a tree: the error of a sum of n values is at most
(16 + log2 n) roundings of the sum of their magnitudes, and the order depends on n alone.
"""

from libc.math cimport INFINITY

from extensor._kernels.types cimport MAX, SUM, floating

cdef enum:
    DEPTH = 16          # elements in a row within one lane
    LANES = 64          # lanes of a contiguous reduction: four 512-bit registers of float32
    PARTS = 8           # pieces of DEPTH * LANES in the largest tile
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


cdef inline floating extreme_lanes(
    const floating* x, Py_ssize_t n, floating* lane, int how,
) noexcept nogil:
    """The extreme of at least LANES elements: plain comparisons, which the CPU has an instruction
    for. They lose a NaN, but the sum of the elements is NaN then: the exact way decides."""
    cdef floating probe[LANES]
    cdef Py_ssize_t i, start = LANES
    cdef int width = LANES
    for i in range(LANES):
        lane[i] = x[i]
        probe[i] = x[i]
    while start + LANES <= n:
        if how == MAX:
            for i in range(LANES):
                lane[i] = x[start + i] if x[start + i] > lane[i] else lane[i]
                probe[i] += x[start + i]
        else:
            for i in range(LANES):
                lane[i] = x[start + i] if x[start + i] < lane[i] else lane[i]
                probe[i] += x[start + i]
        start += LANES
    for i in range(n - start):
        lane[i] = join(lane[i], x[start + i], how)
        probe[i] += x[start + i]
    while width > 1:
        width //= 2
        for i in range(width):
            lane[i] = join(lane[i], lane[i + width], how)
            probe[i] += probe[i + width]
    if probe[0] == probe[0]:
        return lane[0]
    return lane_join(x, n, lane, LANES, how)


cdef inline floating tile_join(const floating* x, Py_ssize_t n, int how) noexcept nogil:
    """Join one tile of contiguous values."""
    cdef floating lane[LANES]
    cdef floating part[PARTS]
    cdef floating total
    cdef Py_ssize_t i, parts = 0, start = 0
    if n <= DEPTH:
        total = neutral(how, x[0])
        for i in range(n):
            total = join(total, x[i], how)
        return total
    if n <= DEPTH * 16:
        return lane_join(x, n, lane, 16, how)
    if how != SUM:
        return extreme_lanes(x, n, lane, how)
    while start < n:
        part[parts] = lane_join(x + start, min(n - start, DEPTH * LANES), lane, LANES, how)
        parts += 1
        start += DEPTH * LANES
    return tree_join(part, parts, 1, how)


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
