"""The two drivers of element-wise work: ``run_map`` and ``run_reduce``.

Both cut the iteration space into tiles of a few thousand elements by shape alone, hand each tile
to the blocks as contiguous memory and share the tiles out among the threads. An operand that is
contiguous in the tile is passed where it lies; any other (strided, broadcast, float16) is first
gathered into a buffer that stays in cache. Strides, broadcasting, float16 and threads exist only
here.

``run_reduce`` joins the blocks' results (sum, maximum or minimum) while they are computed: lanes of
at most 16 elements, then a tree, the same tree for every thread count. The error of a sum is at
most (16 + log2 n) roundings.
"""

from cython.parallel cimport prange
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from extensor._kernels.joining cimport DEPTH, join, neutral, tile_join, tree_join
from extensor._kernels.types cimport (
    MAX_INPUTS, SUM, Call, Job, Operand, call_block, export, floating, pair,
)


cdef extern from "half.h" nogil:
    void ex_half_to_float(const uint16_t* x, float* y, Py_ssize_t n)
    void ex_float_to_half(const float* x, uint16_t* y, Py_ssize_t n)

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
    TILE = 4096         # elements of a map tile: 16 KiB of float32, a third of a 48 KiB L1
    SMALL_TILE = 2048   # where copies are many (float16) or wide (float64): they should stay in L1
    SQUARE = 64         # side of a tile where an operand runs across the rows (transposed)
    LONG_ROW = 256      # elements from which on a block is called row by row rather than on copies
    WIDTH = 1024        # columns of a column-mode tile
    GROUP = 16          # column tiles joined in one work item
    LARGE_TILE = 16384    # DEPTH * WIDTH: the largest tile

ctypedef fused word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

# Scratch of one operand within one span of tiles.
cdef struct Scratch:
    char* values            # as the block sees them
    uint16_t* halves        # float16 on its way in or out
    const char* key         # what `values` holds, where it can be used again
    Py_ssize_t rows
    Py_ssize_t cols

cdef struct Span:
    char* memory
    Scratch x[4]
    Scratch y[3]


# ---------------------------------------------------------------- tiles in and out of memory

cdef void gather_words(
    word* to, const char* source, Py_ssize_t rows, Py_ssize_t cols,
    Py_ssize_t row_stride, Py_ssize_t col_stride,
) noexcept nogil:
    cdef Py_ssize_t r, c
    cdef const char* row
    cdef word value
    if col_stride == sizeof(word):
        for r in range(rows):
            row = source + r * row_stride
            for c in range(cols):
                to[r * cols + c] = (<const word*> row)[c]
    elif col_stride == 0:
        for r in range(rows):
            value = (<const word*> (source + r * row_stride))[0]
            for c in range(cols):
                to[r * cols + c] = value
    elif col_stride == 2 * <Py_ssize_t> sizeof(word):       # every other element
        for r in range(rows):
            row = source + r * row_stride
            for c in range(cols):
                to[r * cols + c] = (<const word*> row)[2 * c]
    elif col_stride == -<Py_ssize_t> sizeof(word):          # reversed
        for r in range(rows):
            row = source + r * row_stride
            for c in range(cols):
                to[r * cols + c] = (<const word*> row)[-c]
    elif rows > 1 and row_stride * row_stride < col_stride * col_stride:
        for c in range(cols):
            row = source + c * col_stride
            for r in range(rows):
                to[r * cols + c] = (<const word*> (row + r * row_stride))[0]
    else:
        for r in range(rows):
            row = source + r * row_stride
            for c in range(cols):
                to[r * cols + c] = (<const word*> (row + c * col_stride))[0]


cdef void scatter_words(
    const word* source, char* to, Py_ssize_t rows, Py_ssize_t cols,
    Py_ssize_t row_stride, Py_ssize_t col_stride,
) noexcept nogil:
    cdef Py_ssize_t r, c
    cdef char* row
    for r in range(rows):
        row = to + r * row_stride
        if col_stride == sizeof(word):
            for c in range(cols):
                (<word*> row)[c] = source[r * cols + c]
        else:
            for c in range(cols):
                (<word*> (row + c * col_stride))[0] = source[r * cols + c]


cdef inline Py_ssize_t row_offset(const Job* job, const Operand* x, Py_ssize_t row) noexcept nogil:
    """Bytes from the operand's start to the first column of a flattened row."""
    cdef int axis = job.ndim - 2
    cdef Py_ssize_t offset = 0, quotient
    while axis > 0:
        quotient = row // job.shape[axis]
        offset += (row - quotient * job.shape[axis]) * x.strides[axis]
        row = quotient
        axis -= 1
    return offset + row * x.strides[0] if job.ndim > 1 else 0


cdef void move_tile(
    const Job* job, const Operand* x, void* tile, bint gather,
    Py_ssize_t row, Py_ssize_t col, Py_ssize_t rows, Py_ssize_t cols,
) noexcept nogil:
    """Copy a tile between an operand and contiguous memory, one run of rows at a time."""
    cdef Py_ssize_t col_stride = x.strides[job.ndim - 1]
    cdef Py_ssize_t inner = job.shape[job.ndim - 2] if job.ndim > 1 else 1
    cdef Py_ssize_t row_stride = x.strides[job.ndim - 2] if job.ndim > 1 else 0
    cdef Py_ssize_t take
    cdef char* place
    cdef char* memory = <char*> tile
    while rows > 0:
        take = inner - row % inner
        if take > rows:
            take = rows
        place = x.data + row_offset(job, x, row) + col * col_stride
        if gather:
            if x.itemsize == 4:
                gather_words(<uint32_t*> memory, place, take, cols, row_stride, col_stride)
            elif x.itemsize == 8:
                gather_words(<uint64_t*> memory, place, take, cols, row_stride, col_stride)
            elif x.itemsize == 2:
                gather_words(<uint16_t*> memory, place, take, cols, row_stride, col_stride)
            else:
                gather_words(<uint8_t*> memory, place, take, cols, row_stride, col_stride)
        elif x.itemsize == 4:
            scatter_words(<const uint32_t*> memory, place, take, cols, row_stride, col_stride)
        elif x.itemsize == 8:
            scatter_words(<const uint64_t*> memory, place, take, cols, row_stride, col_stride)
        elif x.itemsize == 2:
            scatter_words(<const uint16_t*> memory, place, take, cols, row_stride, col_stride)
        else:
            scatter_words(<const uint8_t*> memory, place, take, cols, row_stride, col_stride)
        memory += take * cols * x.itemsize
        row += take
        rows -= take


cdef inline char* place_of(
    const Job* job, const Operand* x, Py_ssize_t row, Py_ssize_t col, Py_ssize_t rows, Py_ssize_t cols,
) noexcept nogil:
    """Where a tile lies in an operand's own memory, if it is contiguous there; else NULL."""
    cdef Py_ssize_t columns = job.shape[job.ndim - 1]
    if x.dense and (rows == 1 or cols == columns):
        return x.data + (row * columns + col) * x.itemsize
    if rows == 1 and x.strides[job.ndim - 1] == x.itemsize:
        return x.data + row_offset(job, x, row) + col * x.itemsize
    return NULL


cdef const void* fetch(
    const Job* job, const Operand* x, Scratch* scratch,
    Py_ssize_t row, Py_ssize_t col, Py_ssize_t rows, Py_ssize_t cols,
) noexcept nogil:
    """A tile of an input as contiguous float32, float64 or bool."""
    cdef const char* place = place_of(job, x, row, col, rows, cols)
    cdef const char* key
    if place != NULL:
        if not x.half:
            return place
        ex_half_to_float(<const uint16_t*> place, <float*> scratch.values, rows * cols)
        scratch.key = NULL
        return scratch.values
    key = NULL
    if rows == 1 or x.same_rows:
        key = x.data + row_offset(job, x, row) + col * x.strides[job.ndim - 1]
        if key == scratch.key and cols == scratch.cols and rows <= scratch.rows:
            return scratch.values
    if x.half:
        move_tile(job, x, scratch.halves, True, row, col, rows, cols)
        ex_half_to_float(scratch.halves, <float*> scratch.values, rows * cols)
    else:
        move_tile(job, x, scratch.values, True, row, col, rows, cols)
    scratch.key = key
    scratch.rows = rows
    scratch.cols = cols
    return scratch.values


cdef inline void fetch_arguments(
    const Job* job, const Call* call, Span* span, const void** x,
    Py_ssize_t row, Py_ssize_t col, Py_ssize_t rows, Py_ssize_t cols,
) noexcept nogil:
    """The inputs that a call takes, unless they are here already."""
    cdef int i, k
    for i in range(call.arity):
        k = call.args[i]
        if x[k] == NULL:
            x[k] = fetch(job, &job.x[k], &span.x[k], row, col, rows, cols)


cdef bint needs_scratch(const Job* job) noexcept nogil:
    cdef int i
    if job.stage:
        return True
    for i in range(job.inputs):
        if job.x[i].half or not job.x[i].dense:
            return True
    for i in range(job.outputs):
        if job.y[i].half or not job.y[i].dense:
            return True
    return False


cdef bint open_span(const Job* job, Span* span, Py_ssize_t elements) noexcept nogil:
    """Scratch for one span of tiles, in one piece; False when there is no memory."""
    cdef Py_ssize_t each = elements * 10 + 64     # eight bytes computed, two as float16
    cdef char* memory = <char*> malloc((job.inputs + job.outputs) * each + 64)
    cdef Scratch* scratch
    cdef int i
    span.memory = memory
    if memory == NULL:
        return False
    memory += 64 - (<size_t> memory) % 64
    for i in range(job.inputs + job.outputs):
        scratch = &span.x[i] if i < job.inputs else &span.y[i - job.inputs]
        scratch.values = memory
        scratch.halves = <uint16_t*> (memory + elements * 8)
        scratch.key = NULL
        memory += (each + 63) // 64 * 64 if i + 1 < job.inputs + job.outputs else 0
    return True


# ---------------------------------------------------------------- map

cdef struct Plan:
    Py_ssize_t rows         # of one tile
    Py_ssize_t cols
    Py_ssize_t tiles        # in all
    Py_ssize_t across       # tiles side by side in a row
    Py_ssize_t down         # tiles one below the other in a plane (the last two axes)
    bint full_rows          # a tile is a run of whole rows, over planes too


cdef bint runs_across(const Job* job, const Operand* x) noexcept nogil:
    cdef Py_ssize_t r, c
    if job.ndim < 2:
        return False
    r = x.strides[job.ndim - 2]
    c = x.strides[job.ndim - 1]
    return r != 0 and r * r < c * c


cdef bint lies_in_rows(const Job* job, const Operand* x) noexcept nogil:
    """Whether an operand is contiguous within each row, and the rows lie apart."""
    return not (x.dense or x.same_rows or x.half) and x.strides[job.ndim - 1] == x.itemsize


cdef Plan plan_map(const Job* job) noexcept nogil:
    cdef Plan plan
    cdef Py_ssize_t columns = job.shape[job.ndim - 1], all_rows = 1
    cdef Py_ssize_t inner = job.shape[job.ndim - 2] if job.ndim > 1 else 1
    cdef Py_ssize_t size = TILE
    cdef bint across = False, by_row = False
    cdef int i
    for i in range(job.ndim - 1):
        all_rows *= job.shape[i]
    for i in range(job.inputs):
        across |= runs_across(job, &job.x[i])
        by_row |= lies_in_rows(job, &job.x[i])
        if job.x[i].half or (job.x[i].itemsize == 8 and not job.x[i].dense):
            size = SMALL_TILE
    for i in range(job.outputs):
        across |= runs_across(job, &job.y[i])
    plan.full_rows = columns <= size // 2 and not (across and columns >= SQUARE // 2 and inner >= 8)
    if plan.full_rows:
        plan.rows = 1 if by_row and columns >= LONG_ROW else size // columns
        plan.cols = columns
        plan.across = 1
        plan.down = 0
        plan.tiles = (all_rows + plan.rows - 1) // plan.rows
        return plan
    plan.rows = SQUARE if across and inner >= 8 else 1
    plan.cols = (TILE if across else size) // plan.rows
    plan.across = (columns + plan.cols - 1) // plan.cols
    plan.down = (inner + plan.rows - 1) // plan.rows
    plan.tiles = plan.across * plan.down * (all_rows // inner)
    return plan


cdef void map_tile(
    const Job* job, Span* span, Py_ssize_t row, Py_ssize_t col, Py_ssize_t rows, Py_ssize_t cols,
) noexcept nogil:
    cdef const void* x[MAX_INPUTS]
    cdef const Operand* y
    cdef char* place
    cdef Py_ssize_t n = rows * cols
    cdef int i
    for i in range(job.inputs):
        x[i] = NULL
    for i in range(job.outputs):
        y = &job.y[i]
        fetch_arguments(job, &job.calls[i], span, x, row, col, rows, cols)
        place = place_of(job, y, row, col, rows, cols)
        if place != NULL and job.calls[i].arity == 0 and not job.stage:      # zero, in every dtype
            memset(place, 0, n * y.itemsize)
        elif place != NULL and not y.half and not job.stage:
            call_block(&job.calls[i], x, place, n, job.params)
        else:
            call_block(&job.calls[i], x, span.y[i].values, n, job.params)
            if not job.stage:
                store(job, y, &span.y[i], place, row, col, rows, cols)
    if job.stage:       # every output is computed before the first one overwrites an input
        for i in range(job.outputs):
            place = place_of(job, &job.y[i], row, col, rows, cols)
            store(job, &job.y[i], &span.y[i], place, row, col, rows, cols)


cdef void store(
    const Job* job, const Operand* y, Scratch* scratch, char* place,
    Py_ssize_t row, Py_ssize_t col, Py_ssize_t rows, Py_ssize_t cols,
) noexcept nogil:
    """Bring a computed tile to where the output lies."""
    cdef Py_ssize_t n = rows * cols
    cdef char* values = scratch.values
    if y.half:
        values = place if place != NULL else <char*> scratch.halves
        ex_float_to_half(<const float*> scratch.values, <uint16_t*> values, n)
    elif place != NULL:
        memcpy(place, values, n * y.itemsize)
    if place == NULL:
        move_tile(job, y, values, False, row, col, rows, cols)


cdef int map_span(const Job* job, const Plan* plan, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Span span
    cdef Py_ssize_t i, columns = job.shape[job.ndim - 1], all_rows = 1, inner, plane, within
    cdef Py_ssize_t row, col
    cdef int axis
    if first >= last:
        return 0
    span.memory = NULL
    if needs_scratch(job) and not open_span(job, &span, TILE):
        return -1
    inner = job.shape[job.ndim - 2] if job.ndim > 1 else 1
    for axis in range(job.ndim - 1):
        all_rows *= job.shape[axis]
    for i in range(first, last):
        if plan.full_rows:
            row = i * plan.rows
            map_tile(job, &span, row, 0, min(plan.rows, all_rows - row), columns)
        else:
            plane = i // (plan.across * plan.down)
            within = i - plane * plan.across * plan.down
            row = within // plan.across * plan.rows
            col = within % plan.across * plan.cols
            map_tile(job, &span, plane * inner + row, col,
                     min(plan.rows, inner - row), min(plan.cols, columns - col))
    free(span.memory)
    return 0


cdef int run_map(Job* job) noexcept nogil:
    """Run the job's blocks over its space; -1 when there is no memory for scratch."""
    cdef Plan plan = plan_map(job)
    cdef Py_ssize_t t, spans = job.threads
    job.failed = False
    job.team = 1
    if spans <= 1 or plan.tiles < 2:
        return map_span(job, &plan, 0, plan.tiles)
    for t in prange(spans, schedule="static", chunksize=1, num_threads=job.threads):
        if t == 0:
            job.team = ex_team()
        if map_span(job, &plan, plan.tiles * t // spans, plan.tiles * (t + 1) // spans) < 0:
            job.failed = True
    return -1 if job.failed else 0


# ---------------------------------------------------------------- reduce

cdef void put(const Job* job, floating* values, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    """Write n finished results to the output, from a flattened kept index on."""
    cdef const Operand* y = &job.y[0]
    cdef Py_ssize_t i, k, quotient, offset
    cdef uint16_t half
    cdef int axis
    if job.divisor != 1:
        for i in range(n):
            values[i] /= <floating> job.divisor
    if y.dense and not y.half:
        memcpy(y.data + first * y.itemsize, values, n * sizeof(floating))
        return
    for i in range(n):
        offset = 0
        k = first + i
        axis = job.kept_axes - 1
        while axis >= 0:
            quotient = k // job.kept_shape[axis]
            offset += (k - quotient * job.kept_shape[axis]) * y.strides[axis]
            k = quotient
            axis -= 1
        if floating is float:
            if y.half:
                ex_float_to_half(&values[i], &half, 1)
                (<uint16_t*> (y.data + offset))[0] = half
                continue
        (<floating*> (y.data + offset))[0] = values[i]


cdef const floating* mapped(
    const Job* job, Span* span, Py_ssize_t row, Py_ssize_t col, Py_ssize_t rows, Py_ssize_t cols,
    floating* unused,
) noexcept nogil:
    """The tile whose elements are to be added up."""
    cdef const void* x[MAX_INPUTS]
    cdef const Call* call = &job.calls[0]
    cdef int i
    for i in range(job.inputs):
        x[i] = NULL
    fetch_arguments(job, call, span, x, row, col, rows, cols)
    if call.block == NULL:
        return <const floating*> x[call.args[0]]
    call_block(call, x, span.y[0].values, rows * cols, job.params)
    return <const floating*> span.y[0].values


cdef struct ReducePlan:
    Py_ssize_t items            # pieces of work
    Py_ssize_t parts            # partial sums of one kept element (or vector)
    Py_ssize_t kept             # row mode: kept elements; column mode: kept vectors
    Py_ssize_t reduced          # row mode: elements reduced; column mode: rows reduced
    Py_ssize_t group            # row mode: kept elements in one item, where parts == 1
    Py_ssize_t rows             # of one tile
    Py_ssize_t cols
    Py_ssize_t across           # tiles side by side
    Py_ssize_t fold             # column mode: rows side by side in one lane vector


cdef ReducePlan plan_reduce(const Job* job) noexcept nogil:
    cdef ReducePlan plan
    cdef Py_ssize_t columns = job.shape[job.ndim - 1], rows
    cdef int i
    plan.kept = 1
    plan.reduced = 1
    plan.group = 1
    plan.across = 1
    plan.fold = 1
    for i in range(job.kept):
        plan.kept *= job.shape[i]
    for i in range(job.kept, job.ndim):
        plan.reduced *= job.shape[i]
    if job.column_mode:
        plan.reduced //= columns
        plan.cols = min(columns, WIDTH)
        plan.fold = max(1, WIDTH // columns)
        plan.rows = DEPTH * plan.fold
        plan.across = (columns + plan.cols - 1) // plan.cols
        plan.parts = (plan.reduced + plan.rows * GROUP - 1) // (plan.rows * GROUP)
        plan.items = plan.kept * plan.parts * plan.across
        return plan
    rows = plan.reduced // columns       # of one kept element
    if plan.reduced <= TILE:
        plan.group = TILE // plan.reduced
        plan.rows = rows
        plan.cols = columns
        plan.parts = 1
        plan.items = (plan.kept + plan.group - 1) // plan.group
        return plan
    if columns >= TILE // 4:
        plan.rows = 1
        plan.cols = min(columns, TILE)
        plan.across = (columns + plan.cols - 1) // plan.cols
    else:
        plan.rows = TILE // columns
        plan.cols = columns
    plan.parts = (rows + plan.rows - 1) // plan.rows * plan.across
    plan.items = plan.kept * plan.parts
    return plan


cdef void reduce_group(
    const Job* job, const ReducePlan* plan, Span* span, Py_ssize_t item, floating* unused,
) noexcept nogil:
    """Row mode, short rows: whole kept elements, several in one tile."""
    cdef Py_ssize_t first = item * plan.group, i
    cdef Py_ssize_t count = min(plan.group, plan.kept - first)
    cdef floating sums[TILE]
    cdef const floating* tile = mapped[floating](
        job, span, first * plan.rows, 0, count * plan.rows, plan.cols, NULL)
    for i in range(count):
        sums[i] = tile_join(tile + i * plan.reduced, plan.reduced, job.how)
    put(job, sums, first, count)


cdef void reduce_part(
    const Job* job, const ReducePlan* plan, Span* span, Py_ssize_t item, floating* partial,
) noexcept nogil:
    """Row mode, long rows: one tile of one kept element."""
    cdef Py_ssize_t k = item // plan.parts, part = item - item // plan.parts * plan.parts
    cdef Py_ssize_t rows_of_k = plan.reduced // job.shape[job.ndim - 1]
    cdef Py_ssize_t row = part // plan.across * plan.rows
    cdef Py_ssize_t col = part % plan.across * plan.cols
    cdef Py_ssize_t rows = min(plan.rows, rows_of_k - row)
    cdef Py_ssize_t cols = min(plan.cols, job.shape[job.ndim - 1] - col)
    cdef const floating* tile = mapped[floating](
        job, span, k * rows_of_k + row, col, rows, cols, NULL)
    partial[item] = tile_join(tile, rows * cols, job.how)


cdef void join_rows(
    const Job* job, const ReducePlan* plan, Span* span, floating* sums,
    Py_ssize_t row, Py_ssize_t col, Py_ssize_t rows, Py_ssize_t cols,
) noexcept nogil:
    """Column mode: one tile, joined row by row into sums[0:cols]."""
    cdef Py_ssize_t width = cols * plan.fold, n = rows * cols, i, start = 0, r
    cdef floating zero = 0
    cdef const floating* tile
    for i in range(width):
        sums[i] = neutral(job.how, zero)
    if plan.fold == 1:      # rows are long: each is taken where it lies
        for r in range(rows):
            tile = mapped[floating](job, span, row + r, col, 1, cols, NULL)
            for i in range(cols):
                sums[i] = join(sums[i], tile[i], job.how)
        return
    tile = mapped[floating](job, span, row, col, rows, cols, NULL)
    while start + width <= n:
        for i in range(width):
            sums[i] = join(sums[i], tile[start + i], job.how)
        start += width
    for i in range(n - start):
        sums[i] = join(sums[i], tile[start + i], job.how)
    tree_join(sums, plan.fold, cols, job.how)


cdef void reduce_columns(
    const Job* job, const ReducePlan* plan, Span* span, Py_ssize_t item, floating* partial,
) noexcept nogil:
    """Column mode: GROUP tiles one below the other, joined pairwise as a binary counter does."""
    cdef floating level[5 * WIDTH]      # log2(GROUP) + 1 vectors
    cdef Py_ssize_t columns = job.shape[job.ndim - 1]
    cdef Py_ssize_t k = item // (plan.parts * plan.across)
    cdef Py_ssize_t part = item // plan.across % plan.parts
    cdef Py_ssize_t col = item % plan.across * plan.cols
    cdef Py_ssize_t cols = min(plan.cols, columns - col)
    cdef Py_ssize_t row = part * plan.rows * GROUP
    cdef Py_ssize_t end = min(row + plan.rows * GROUP, plan.reduced)
    cdef Py_ssize_t tiles = 0, depth = 0, carry, i
    while row < end:
        join_rows(job, plan, span, &level[depth * WIDTH],
                  k * plan.reduced + row, col, min(plan.rows, end - row), cols)
        depth += 1
        tiles += 1
        row += plan.rows
        carry = tiles
        while depth > 1 and (carry % 2 == 0 or row >= end):
            for i in range(cols):
                level[(depth - 2) * WIDTH + i] = join(
                    level[(depth - 2) * WIDTH + i], level[(depth - 1) * WIDTH + i], job.how)
            depth -= 1
            carry //= 2
    if plan.parts == 1:
        put(job, level, k * columns + col, cols)
    else:
        memcpy(partial + (k * plan.parts + part) * columns + col, level, cols * sizeof(floating))


cdef int reduce_span(
    const Job* job, const ReducePlan* plan, Py_ssize_t first, Py_ssize_t last, floating* partial,
) noexcept nogil:
    cdef Span span
    cdef Py_ssize_t item
    if first >= last:
        return 0
    span.memory = NULL
    if job.calls[0].block != NULL or job.x[0].half or not job.x[0].dense:
        if not open_span(job, &span, LARGE_TILE):
            return -1
    for item in range(first, last):
        if job.column_mode:
            reduce_columns[floating](job, plan, &span, item, partial)
        elif plan.parts == 1:
            reduce_group[floating](job, plan, &span, item, NULL)
        else:
            reduce_part[floating](job, plan, &span, item, partial)
    free(span.memory)
    return 0


cdef int reduce_job(Job* job, floating* unused) noexcept nogil:
    cdef ReducePlan plan = plan_reduce(job)
    cdef Py_ssize_t t, k, spans = job.threads
    cdef Py_ssize_t vector = job.shape[job.ndim - 1] if job.column_mode else 1
    cdef floating* partial = NULL
    if plan.parts > 1:
        partial = <floating*> malloc(plan.kept * plan.parts * vector * sizeof(floating))
        if partial == NULL:
            return -1
    job.team = 1
    job.failed = False
    if spans <= 1 or plan.items < 2:
        if reduce_span[floating](job, &plan, 0, plan.items, partial) < 0:
            job.failed = True
    else:
        for t in prange(spans, schedule="static", chunksize=1, num_threads=job.threads):
            if t == 0:
                job.team = ex_team()
            if reduce_span[floating](
                    job, &plan, plan.items * t // spans, plan.items * (t + 1) // spans, partial) < 0:
                job.failed = True
    if plan.parts > 1 and not job.failed:
        for k in range(plan.kept):
            tree_join(partial + k * plan.parts * vector, plan.parts, vector, job.how)
            put(job, partial + k * plan.parts * vector, k * vector, vector)
    free(partial)
    return -1 if job.failed else 0


cdef int run_reduce_f32(Job* job) noexcept nogil:
    return reduce_job[float](job, NULL)


cdef int run_reduce_f64(Job* job) noexcept nogil:
    return reduce_job[double](job, NULL)


# ---------------------------------------------------------------- the sum of a contiguous array

cdef floating tree_sum(const floating* x, Py_ssize_t n, Py_ssize_t i, int level) noexcept nogil:
    """Node i of a level of the tree that reduce_job builds over an array's tiles, without its scratch.

    Level 0 has the tiles; each further level half as many nodes, i and i + half joined.
    """
    cdef Py_ssize_t tiles = (n + TILE - 1) // TILE, nodes, half
    cdef floating total
    if level == 0:
        return tile_join(x + i * TILE, min(TILE, n - i * TILE), SUM)
    nodes = (tiles + (<Py_ssize_t> 1 << (level - 1)) - 1) >> (level - 1)
    half = (nodes + 1) // 2
    total = tree_sum[floating](x, n, i, level - 1)
    if half + i < nodes:
        total = join(total, tree_sum[floating](x, n, half + i, level - 1), SUM)
    return total


cdef floating sum_flat(const floating* x, Py_ssize_t n) noexcept nogil:
    """The sum of n contiguous values on the caller's thread, with the bits of a reduction."""
    cdef int level = 0
    if n <= 0:
        return 0
    while (<Py_ssize_t> TILE << level) < n:
        level += 1
    return tree_sum[floating](x, n, 0, level)


EXPORTS = {
    "map": export(<void*> run_map),
    "reduce_f32": export(<void*> run_reduce_f32),
    "reduce_f64": export(<void*> run_reduce_f64),
    "sum": pair(<void*> sum_flat[float], <void*> sum_flat[double]),
}
