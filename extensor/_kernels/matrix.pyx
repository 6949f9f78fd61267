# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""Matrix product: blocking loops, threads and choice of path.

The micro-kernels and the packing are in gemm.h, the explanation with a drawing in
docs/gemm.md. The caller hands over one ``ex_gemm_job`` with valid buffers; the number of
threads comes back, or -1 when there is no memory for the packing buffers (C is then unchanged).

Paths, chosen by shape and strides alone, never by the number of threads:

rows    m = 1 (or n = 1, turned around), and few rows times a large matrix: streams
        the matrix once, along its rows
outer   k = 1: streams the result once
tiles   everything else: a task computes one tile of one product over the whole of k.
        A and B are read where they lie or packed, whichever is faster.

Threads share nothing but the list of tasks. Letting them pack together and read each
other's panels was tried: one barrier per block and panels coming from another core's
cache cost 10 to 20 % on two cores (464 against 536 GF at 512 x 512 x 512, float32).
"""
from cpython.pycapsule cimport PyCapsule_New
from cython.parallel cimport prange, threadid
from libc.stdint cimport uint16_t

from extensor._kernels.types cimport floating


cdef extern from "gemm.h" nogil:
    ctypedef struct ex_gemm_job:
        Py_ssize_t m
        Py_ssize_t n
        Py_ssize_t k
        const void* a
        const void* b
        void* c
        const void* bias
        Py_ssize_t a_row
        Py_ssize_t a_col
        Py_ssize_t b_row
        Py_ssize_t b_col
        Py_ssize_t c_row
        Py_ssize_t c_col
        int nbatch_axes
        const Py_ssize_t* batch_shape
        const Py_ssize_t* a_batch
        const Py_ssize_t* b_batch
        const Py_ssize_t* c_batch
        int accumulate
        int threads

    enum:
        EX_MAX_AXES
        EX_MR_F32
        EX_MR_F64
        EX_W_F32
        EX_W_F64
        EX_NR_F32
        EX_NR_F64
        EX_KC_F32
        EX_KC_F64

    void* ex_scratch_get(size_t size)
    void ex_scratch_put(void* p)

    void ex_run_f32(int rows, int vectors, Py_ssize_t kc, const float* a, Py_ssize_t a_row, Py_ssize_t a_k,
                    const float* b, Py_ssize_t b_k, float* c, Py_ssize_t c_row, Py_ssize_t c_col,
                    Py_ssize_t columns, int fresh, const float* bias)
    void ex_run_f64(int rows, int vectors, Py_ssize_t kc, const double* a, Py_ssize_t a_row, Py_ssize_t a_k,
                    const double* b, Py_ssize_t b_k, double* c, Py_ssize_t c_row, Py_ssize_t c_col,
                    Py_ssize_t columns, int fresh, const double* bias)
    void ex_pack_f32(const float* s, Py_ssize_t lane_stride, Py_ssize_t k_stride, Py_ssize_t lanes,
                     Py_ssize_t padded, Py_ssize_t kc, float* d)
    void ex_pack_f64(const double* s, Py_ssize_t lane_stride, Py_ssize_t k_stride, Py_ssize_t lanes,
                     Py_ssize_t padded, Py_ssize_t kc, double* d)
    void ex_pack_f16(const uint16_t* s, Py_ssize_t lane_stride, Py_ssize_t k_stride, Py_ssize_t lanes,
                     Py_ssize_t padded, Py_ssize_t kc, float* d)
    void ex_rows_f32(Py_ssize_t rows, Py_ssize_t kc, Py_ssize_t n, const float* x, Py_ssize_t x_row, Py_ssize_t x_k,
                     const float* b, Py_ssize_t b_row, float* acc, Py_ssize_t acc_row)
    void ex_rows_f64(Py_ssize_t rows, Py_ssize_t kc, Py_ssize_t n, const double* x, Py_ssize_t x_row, Py_ssize_t x_k,
                     const double* b, Py_ssize_t b_row, double* acc, Py_ssize_t acc_row)
    void ex_dots_f32(Py_ssize_t count, Py_ssize_t kc, const float* x, const float* b, Py_ssize_t b_col, float* out)
    void ex_dots_f64(Py_ssize_t count, Py_ssize_t kc, const double* x, const double* b, Py_ssize_t b_col, double* out)
    void ex_outer_f32(Py_ssize_t n, float x, const float* b, float* c, int fresh, const float* bias)
    void ex_outer_f64(Py_ssize_t n, double x, const double* b, double* c, int fresh, const double* bias)
    void ex_halves_to_floats(const uint16_t* s, Py_ssize_t stride, Py_ssize_t n, float* d)
    void ex_floats_to_halves(const float* s, Py_ssize_t n, uint16_t* d, Py_ssize_t stride)


cdef enum:
    # A task packs at most BLOCK_ROWS rows of A and PACK_BYTES of each row of B at a time: packed B
    # (512 steps of 1024 bytes) and the block of A stay in a second-level cache of 1 MiB together.
    # AVX-512, two cores, float64, GF at 512 / 1024 / 2048 cubed: 120 rows and 2048 bytes
    # 241 / 241 / 245, 120 and 1024: 268 / 263 / 253, 60 and 1024: 268 / 266 / 257.
    BLOCK_ROWS = 60
    PACK_BYTES = 1024
    PACK_PANELS = 4
    TILE_ROWS = 2048
    # Columns of one task of the row path (accumulators on the stack), and the number
    # of x values that are copied when x is strided.
    ROW_COLUMNS = 1024
    ROW_SUMS = 4096
    # From here on 5 to 8 rows stream B instead of tiling it. Float32 GF on one core, streamed / tiled:
    # 2x256x256 134 / 87, 2x2048x2048 83 / 25, 4x64x64 147 / 206, 4x256x256 260 / 252,
    # 4x1024x1024 186 / 81, 8x512x512 277 / 274, 8x2048x2048 180 / 141.
    FEW_ROWS_BYTES = 1048576
    DOT_STEPS = 2048
    DOT_PART = 16384        # of a long dot product: one piece of work
    # Work from which a second thread pays: multiply-adds per lane of a vector (about 6
    # microseconds of one core), and bytes streamed. Not swept; estimated from one and two
    # threads at 96 cubed (6.4 and 4.3 microseconds) and 128 cubed (15.2 and 10.7), float32.
    PARALLEL_PRODUCTS = 50000
    PARALLEL_BYTES = 262144


cdef struct Axes:
    int count
    Py_ssize_t size
    Py_ssize_t[EX_MAX_AXES] shape
    Py_ssize_t[EX_MAX_AXES] a
    Py_ssize_t[EX_MAX_AXES] b
    Py_ssize_t[EX_MAX_AXES] c


cdef struct Offset:
    Py_ssize_t a
    Py_ssize_t b
    Py_ssize_t c


cdef struct Plan:
    Py_ssize_t m
    Py_ssize_t n
    Py_ssize_t k
    Py_ssize_t a_row
    Py_ssize_t a_col
    Py_ssize_t b_row
    Py_ssize_t b_col
    Py_ssize_t c_row
    Py_ssize_t c_col
    Py_ssize_t bias_col  # 1, or 0 where one element serves all columns
    const char* a
    const char* b
    char* c
    const char* bias
    Py_ssize_t item
    bint half
    bint accumulate
    bint direct_a  # read where it lies, without packing
    bint direct_b
    int threads
    Axes kept
    Axes summed


# ---- one name for both element types ------------------------------------------------
cdef inline Py_ssize_t panel_rows(const floating* _) noexcept nogil:
    return EX_MR_F32 if floating is float else EX_MR_F64


cdef inline Py_ssize_t panel_columns(const floating* _) noexcept nogil:
    return EX_NR_F32 if floating is float else EX_NR_F64


cdef inline Py_ssize_t pack_columns(const floating* _) noexcept nogil:
    return PACK_BYTES // sizeof(floating)


cdef inline Py_ssize_t lanes(const floating* _) noexcept nogil:
    return EX_W_F32 if floating is float else EX_W_F64


cdef inline Py_ssize_t block_steps(const floating* _) noexcept nogil:
    return EX_KC_F32 if floating is float else EX_KC_F64


cdef inline void run(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t kc, const floating* a, Py_ssize_t a_row,
                     Py_ssize_t a_k, const floating* b, Py_ssize_t b_k, floating* c, Py_ssize_t c_row,
                     Py_ssize_t c_col, bint fresh, const floating* bias) noexcept nogil:
    cdef Py_ssize_t w = lanes(a)
    cdef int vectors = <int>((columns + w - 1) // w)
    if floating is float:
        ex_run_f32(<int>rows, vectors, kc, a, a_row, a_k, b, b_k, c, c_row, c_col, columns, fresh, bias)
    else:
        ex_run_f64(<int>rows, vectors, kc, a, a_row, a_k, b, b_k, c, c_row, c_col, columns, fresh, bias)


cdef inline void pack(const char* s, bint half, Py_ssize_t lane_stride, Py_ssize_t k_stride, Py_ssize_t count,
                      Py_ssize_t padded, Py_ssize_t kc, floating* d) noexcept nogil:
    if floating is float:
        if half:
            ex_pack_f16(<const uint16_t*>s, lane_stride, k_stride, count, padded, kc, d)
        else:
            ex_pack_f32(<const float*>s, lane_stride, k_stride, count, padded, kc, d)
    else:
        ex_pack_f64(<const double*>s, lane_stride, k_stride, count, padded, kc, d)


cdef inline Py_ssize_t smaller(Py_ssize_t x, Py_ssize_t y) noexcept nogil:
    return x if x < y else y


cdef inline Py_ssize_t parts(Py_ssize_t total, Py_ssize_t size) noexcept nogil:
    return (total + size - 1) // size


cdef inline Py_ssize_t cut(Py_ssize_t total, Py_ssize_t count, Py_ssize_t index) noexcept nogil:
    """Where part `index` begins when `total` is cut into `count` parts that differ by at most one."""
    cdef Py_ssize_t size = total // count
    return index * size + smaller(index, total - size * count)


cdef inline Offset offset(const Axes* axes, Py_ssize_t index) noexcept nogil:
    """Where the batch with this flat index lies; the last axis runs fastest."""
    cdef Offset at
    cdef int x
    cdef Py_ssize_t i
    at.a = at.b = at.c = 0
    for x in range(axes.count - 1, -1, -1):
        i = index % axes.shape[x]
        index = index // axes.shape[x]
        at.a += i * axes.a[x]
        at.b += i * axes.b[x]
        at.c += i * axes.c[x]
    return at


# ---- tiles: one task is one tile of C over the whole of k ----------------------------
cdef void pack_panels(const char* s, bint half, Py_ssize_t lane_stride, Py_ssize_t k_stride, Py_ssize_t total,
                      Py_ssize_t panels, Py_ssize_t width, Py_ssize_t first, Py_ssize_t kc,
                      floating* d) noexcept nogil:
    """Pack `total` lanes, from panel `first` on.

    width is 0 for A (panels as equal as possible, unpadded) and the panel width for B
    (the last panel padded to whole vectors). Where lanes lie side by side in memory,
    eight steps of k go through four panels before the next eight: with rows a power
    of two apart that keeps their cache lines until all panels have used them (0.30
    against 0.52 cycles an element at a stride of 4096 bytes, 0.29 against 0.33 at 2048).
    """
    cdef Py_ssize_t item = 2 if half else sizeof(floating), w = lanes(d)
    cdef Py_ssize_t strip = 8 if lane_stride == 1 and kc > 8 else kc, group, x, k0, steps, i, lane, count, padded
    if kc == 0:
        return
    for group in range(parts(panels - first, PACK_PANELS)):
        for x in range(parts(kc, strip)):
            k0 = x * strip
            steps = smaller(strip, kc - k0)
            for i in range(first + group * PACK_PANELS, smaller(panels, first + (group + 1) * PACK_PANELS)):
                if width == 0:
                    lane = cut(total, panels, i)
                    count = padded = cut(total, panels, i + 1) - lane
                else:
                    lane = i * width
                    count = smaller(width, total - lane)
                    padded = parts(count, w) * w
                pack(s + (lane * lane_stride + k0 * k_stride) * item, half, lane_stride, k_stride, count, padded,
                     steps, d + lane * kc + k0 * padded)


cdef void tile(const Plan* p, Py_ssize_t batch, Py_ssize_t i0, Py_ssize_t m, Py_ssize_t j0, Py_ssize_t n,
               floating* scratch) noexcept nogil:
    """C[i0:i0+m, j0:j0+n] of one batch. scratch: see tile_scratch."""
    cdef Py_ssize_t nr = panel_columns(scratch), w = lanes(scratch), step = block_steps(scratch)
    cdef Py_ssize_t blocks = parts(p.k, step) if p.k > 0 else 1, panels_b = parts(n, nr)
    cdef Py_ssize_t row_blocks = parts(m, BLOCK_ROWS), panels_a, first_packed
    cdef Py_ssize_t s, block, r, row0, rows, i, j, row, count, column, columns, k0, kc, b_k, a_row, a_k, c_row, c_col
    cdef Offset at = offset(&p.kept, batch), more
    cdef floating* packed_a = scratch
    cdef floating* packed_b = scratch if p.direct_a else scratch + step * BLOCK_ROWS
    cdef floating* c
    cdef const floating* a
    cdef const floating* b
    cdef const floating* bias
    cdef const char* from_a
    cdef const char* from_b
    cdef char* to_c = p.c + (at.c + i0 * p.c_row + j0 * p.c_col) * p.item
    cdef bint fresh = not p.accumulate, last
    c, c_row, c_col = <floating*>to_c, p.c_row, p.c_col
    if p.half:  # sums are kept in a float tile behind the packed panels and rounded at the end
        c, c_row, c_col = packed_b + step * pack_columns(scratch), pack_columns(scratch), 1
        if p.accumulate:
            for i in range(m):
                ex_halves_to_floats(<const uint16_t*>to_c + i * p.c_row, p.c_col, n, <float*>c + i * c_row)
    first_packed = 0
    if p.direct_b:  # what is left over beyond whole vectors is packed all the same
        first_packed = panels_b if n % w == 0 else panels_b - 1
    for s in range(p.summed.size):
        more = offset(&p.summed, s)
        for block in range(blocks):
            k0 = cut(p.k, blocks, block)
            kc = cut(p.k, blocks, block + 1) - k0
            last = s == p.summed.size - 1 and block == blocks - 1
            from_b = p.b + (at.b + more.b + j0 * p.b_col + k0 * p.b_row) * p.item
            pack_panels(from_b, p.half, p.b_col, p.b_row, n, panels_b, nr, first_packed, kc,
                        packed_b - first_packed * nr * kc)
            for r in range(row_blocks):
                row0 = cut(m, row_blocks, r)
                rows = cut(m, row_blocks, r + 1) - row0
                panels_a = parts(rows, panel_rows(scratch))
                from_a = p.a + (at.a + more.a + (i0 + row0) * p.a_row + k0 * p.a_col) * p.item
                if not p.direct_a:
                    pack_panels(from_a, p.half, p.a_row, p.a_col, rows, panels_a, 0, 0, kc, packed_a)
                for j in range(panels_b):
                    column = j * nr
                    columns = smaller(nr, n - column)
                    if j < first_packed:
                        b, b_k = <const floating*>from_b + column, p.b_row
                    else:
                        b, b_k = packed_b + (column - first_packed * nr) * kc, parts(columns, w) * w
                    bias = NULL
                    if last and p.bias != NULL and not p.half:
                        bias = <const floating*>p.bias + j0 + column
                    row = 0
                    for i in range(panels_a):
                        count = cut(rows, panels_a, i + 1) - row
                        if p.direct_a:
                            a, a_row, a_k = <const floating*>from_a + row * p.a_row, p.a_row, p.a_col
                        else:
                            a, a_row, a_k = packed_a + row * kc, 1, count
                        run(count, columns, kc, a, a_row, a_k, b, b_k,
                            c + (row0 + row) * c_row + column * c_col, c_row, c_col, fresh, bias)
                        row = row + count
            fresh = False
    if p.half:
        if p.bias != NULL:
            ex_halves_to_floats(<const uint16_t*>p.bias + j0, 1, n, <float*>packed_b)
            for i in range(m):
                for j in range(n):
                    c[i * c_row + j] = c[i * c_row + j] + packed_b[j]
        for i in range(m):
            ex_floats_to_halves(<const float*>c + i * c_row, n, <uint16_t*>to_c + i * p.c_row, p.c_col)


cdef inline Py_ssize_t tile_scratch(const Plan* p, const floating* x) noexcept nogil:
    """Elements of private scratch a task needs for packed A, packed B and the float tile of half precision."""
    cdef Py_ssize_t step = block_steps(x), need = 0
    if not p.direct_a:
        need += step * BLOCK_ROWS
    if not p.direct_b:
        need += step * pack_columns(x)
    elif p.n % lanes(x) != 0:
        need += step * panel_columns(x)
    if p.half:
        need += BLOCK_ROWS * pack_columns(x)
    return need


cdef inline void tile_number(const Plan* p, Py_ssize_t t, Py_ssize_t row_tiles, Py_ssize_t column_tiles,
                             Py_ssize_t column_panels, floating* scratch) noexcept nogil:
    cdef Py_ssize_t nr = panel_columns(scratch), per_batch = row_tiles * column_tiles
    cdef Py_ssize_t batch = t // per_batch, rest = t % per_batch
    cdef Py_ssize_t r = rest % row_tiles, q = rest // row_tiles
    cdef Py_ssize_t i0 = cut(p.m, row_tiles, r), i1 = cut(p.m, row_tiles, r + 1)
    cdef Py_ssize_t j0 = cut(column_panels, column_tiles, q) * nr
    cdef Py_ssize_t j1 = smaller(p.n, cut(column_panels, column_tiles, q + 1) * nr)
    tile(p, batch, i0, i1 - i0, j0, j1 - j0, scratch)


cdef int tiles(Plan* p, const floating* x) noexcept nogil:
    cdef Py_ssize_t mr = panel_rows(x), nr = panel_columns(x), column_panels = parts(p.n, nr)
    cdef Py_ssize_t row_tiles = parts(p.m, BLOCK_ROWS if p.half else TILE_ROWS)
    cdef Py_ssize_t column_tiles = parts(column_panels, pack_columns(x) // nr)
    cdef Py_ssize_t wanted, tasks, t, need
    cdef int threads = p.threads
    cdef floating* scratch = NULL
    if (<double>p.m * p.n) * (<double>p.k * p.summed.size + 8) * p.kept.size < PARALLEL_PRODUCTS * lanes(x):
        threads = 1
    if threads > 1:  # cuts of C change no bits: enough tasks for every thread, columns first
        wanted = parts(4 * threads, p.kept.size)
        if row_tiles * column_tiles < wanted:
            column_tiles = smaller(column_panels, parts(wanted, row_tiles))
        if row_tiles * column_tiles < wanted:
            row_tiles = smaller(parts(p.m, mr), parts(wanted, column_tiles))
    tasks = row_tiles * column_tiles * p.kept.size
    need = tile_scratch(p, x)
    if need > 0:
        scratch = <floating*>ex_scratch_get(need * threads * sizeof(floating))
        if scratch == NULL:
            return -1
    if threads == 1:
        for t in range(tasks):
            tile_number(p, t, row_tiles, column_tiles, column_panels, scratch)
    else:
        for t in prange(tasks, num_threads=threads, schedule="dynamic"):
            tile_number(p, t, row_tiles, column_tiles, column_panels, scratch + threadid() * need)
    ex_scratch_put(scratch)
    return threads


# ---- a few rows times a matrix -----------------------------------------------------------
cdef void row_task(const Plan* p, Py_ssize_t batch, Py_ssize_t j0, Py_ssize_t n, const floating* _) noexcept nogil:
    """C[:, j0:j0+n] of one batch; m * n <= ROW_SUMS with n rounded up to whole vectors."""
    cdef floating[ROW_SUMS] acc
    cdef floating[DOT_STEPS] copied
    cdef floating[ROW_COLUMNS] part
    cdef Py_ssize_t width = parts(n, lanes(_)) * lanes(_), s, i, j, q, block, k0, kc
    cdef Offset at = offset(&p.kept, batch), more
    cdef const floating* x
    cdef const floating* b
    cdef const floating* bias = <const floating*>p.bias
    cdef floating* c = <floating*>p.c + at.c + j0 * p.c_col
    cdef floating value
    for i in range(p.m * width):
        acc[i] = 0
    for s in range(p.summed.size):
        more = offset(&p.summed, s)
        x = <const floating*>p.a + at.a + more.a
        b = <const floating*>p.b + at.b + more.b + j0 * p.b_col
        if p.b_col == 1 and (p.m > 1 or p.b_row != 1):
            if floating is float:
                ex_rows_f32(p.m, p.k, n, x, p.a_row, p.a_col, b, p.b_row, acc, width)
            else:
                ex_rows_f64(p.m, p.k, n, x, p.a_row, p.a_col, b, p.b_row, acc, width)
            continue
        for block in range(parts(p.k, DOT_STEPS)):  # one row, columns of B contiguous
            k0 = block * DOT_STEPS
            kc = smaller(DOT_STEPS, p.k - k0)
            if p.a_col != 1:
                for q in range(kc):
                    copied[q] = x[(k0 + q) * p.a_col]
            if floating is float:
                ex_dots_f32(n, kc, x + k0 if p.a_col == 1 else copied, b + k0, p.b_col, part)
            else:
                ex_dots_f64(n, kc, x + k0 if p.a_col == 1 else copied, b + k0, p.b_col, part)
            for j in range(n):
                acc[j] = acc[j] + part[j]
    for i in range(p.m):
        for j in range(n):
            value = acc[i * width + j]
            if p.accumulate:
                value = c[i * p.c_row + j * p.c_col] + value
            if bias != NULL:
                value = value + bias[(j0 + j) * p.bias_col]
            c[i * p.c_row + j * p.c_col] = value


cdef floating dot_part(const floating* a, const floating* b, Py_ssize_t k0, Py_ssize_t end) noexcept nogil:
    cdef floating total = 0, part = 0
    while k0 < end:
        if floating is float:
            ex_dots_f32(1, smaller(DOT_STEPS, end - k0), a + k0, b + k0, 0, &part)
        else:
            ex_dots_f64(1, smaller(DOT_STEPS, end - k0), a + k0, b + k0, 0, &part)
        total = total + part
        k0 = k0 + DOT_STEPS
    return total


cdef int long_dot(const Plan* p, const floating* _) noexcept nogil:
    """One row times one column, both contiguous: parts of fixed length, added in order."""
    cdef Py_ssize_t count = parts(p.k, DOT_PART), t
    cdef const floating* a = <const floating*>p.a
    cdef const floating* b = <const floating*>p.b
    cdef floating* c = <floating*>p.c
    cdef floating* sums = <floating*>ex_scratch_get(count * sizeof(floating))
    cdef floating total = 0
    cdef int threads = p.threads if p.k * <Py_ssize_t>sizeof(floating) >= PARALLEL_BYTES else 1
    if sums == NULL:
        return -1
    if threads == 1:
        for t in range(count):
            sums[t] = dot_part(a, b, t * DOT_PART, smaller(p.k, (t + 1) * DOT_PART))
    else:
        for t in prange(count, num_threads=threads, schedule="static"):
            sums[t] = dot_part(a, b, t * DOT_PART, smaller(p.k, (t + 1) * DOT_PART))
    for t in range(count):
        total = total + sums[t]
    ex_scratch_put(sums)
    if p.accumulate:
        total = c[0] + total
    c[0] = total + (<const floating*>p.bias)[0] if p.bias != NULL else total
    return threads


cdef int few_rows(const Plan* p, const floating* x) noexcept nogil:
    cdef Py_ssize_t w = lanes(x), pieces = parts(p.n, smaller(ROW_COLUMNS, ROW_SUMS // p.m // w * w)), more, t
    cdef double work = <double>p.k * p.n * p.summed.size * p.kept.size
    cdef int threads = p.threads if work * sizeof(floating) >= PARALLEL_BYTES else 1
    if threads > 1 and pieces * p.kept.size < 2 * threads:
        more = smaller(parts(p.n, 64), parts(2 * threads, p.kept.size))
        pieces = more if more > pieces else pieces
    if threads == 1 or pieces * p.kept.size == 1:
        threads = 1
        for t in range(pieces * p.kept.size):
            row_task(p, t // pieces, cut(p.n, pieces, t % pieces),
                     cut(p.n, pieces, t % pieces + 1) - cut(p.n, pieces, t % pieces), x)
    else:
        for t in prange(pieces * p.kept.size, num_threads=threads, schedule="dynamic"):
            row_task(p, t // pieces, cut(p.n, pieces, t % pieces),
                     cut(p.n, pieces, t % pieces + 1) - cut(p.n, pieces, t % pieces), x)
    return threads


# ---- column times row --------------------------------------------------------------------
cdef void outer_task(const Plan* p, Py_ssize_t batch, Py_ssize_t i0, Py_ssize_t i1, const floating* _) noexcept nogil:
    cdef Py_ssize_t i
    cdef Offset at
    cdef const floating* a
    cdef const floating* b
    cdef floating* c
    at = offset(&p.kept, batch)
    a = <const floating*>p.a + at.a
    b = <const floating*>p.b + at.b
    c = <floating*>p.c + at.c
    for i in range(i0, i1):
        if floating is float:
            ex_outer_f32(p.n, a[i * p.a_row], b, c + i * p.c_row, not p.accumulate, <const float*>p.bias)
        else:
            ex_outer_f64(p.n, a[i * p.a_row], b, c + i * p.c_row, not p.accumulate, <const double*>p.bias)


cdef int outer(const Plan* p, const floating* x) noexcept nogil:
    cdef Py_ssize_t pieces = 1, t
    cdef double work = <double>p.m * p.n * p.kept.size
    cdef int threads = p.threads if work * sizeof(floating) >= PARALLEL_BYTES else 1
    if threads == 1:
        for t in range(p.kept.size):
            outer_task(p, t, 0, p.m, x)
    else:
        pieces = smaller(p.m, parts(4 * threads, p.kept.size))
        for t in prange(pieces * p.kept.size, num_threads=threads, schedule="dynamic"):
            outer_task(p, t // pieces, cut(p.m, pieces, t % pieces), cut(p.m, pieces, t % pieces + 1), x)
    return threads


# ---- the plan ------------------------------------------------------------------------------
cdef inline void turn(Plan* p) noexcept nogil:
    """C = A B becomes C^T = B^T A^T."""
    cdef int x
    p.m, p.n = p.n, p.m
    p.a, p.b = p.b, p.a
    p.a_row, p.a_col, p.b_row, p.b_col = p.b_col, p.b_row, p.a_col, p.a_row
    p.c_row, p.c_col = p.c_col, p.c_row
    for x in range(p.kept.count):
        p.kept.a[x], p.kept.b[x] = p.kept.b[x], p.kept.a[x]
    for x in range(p.summed.count):
        p.summed.a[x], p.summed.b[x] = p.summed.b[x], p.summed.a[x]


cdef inline void add_axis(Axes* axes, Py_ssize_t size, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c) noexcept nogil:
    axes.shape[axes.count], axes.a[axes.count], axes.b[axes.count], axes.c[axes.count] = size, a, b, c
    axes.count += 1
    axes.size *= size


cdef inline void reverse(Axes* axes) noexcept nogil:
    cdef int x, y
    for x in range(axes.count // 2):
        y = axes.count - 1 - x
        axes.shape[x], axes.shape[y] = axes.shape[y], axes.shape[x]
        axes.a[x], axes.a[y] = axes.a[y], axes.a[x]
        axes.b[x], axes.b[y] = axes.b[y], axes.b[x]
        axes.c[x], axes.c[y] = axes.c[y], axes.c[x]


cdef inline bint collides(const Plan* p, Py_ssize_t stride) noexcept nogil:
    """Elements this far apart share one set of the first-level cache."""
    return stride != 0 and stride * p.item % 4096 == 0


cdef inline void choose(Plan* p, const floating* _) noexcept nogil:
    """Which operands are read where they lie.

    The micro-kernel takes A by single elements and B by vectors along n, from any row
    stride, so packing is only for data that would come badly through the caches.
    Measured on one core (AVX-512, peak 285 GF), float32, GF direct / packed:

    B, rows 4000 bytes apart   48 rows of A 277 / 230   192: 278 / 265   384: 276 / 271
    B, rows 4096 bytes apart   48 rows of A 266 / 230    96: 246 / 253   384: 244 / 270
    A transposed               256: 267 / 247  768: 271 / 252  1000: 271 / 248
    A transposed, 4096 apart   1024: 234 / 251
    """
    p.direct_a = not p.half
    if p.a_col != 1 and p.n >= 64 and (collides(p, p.a_col) or p.a_row != 1 and p.n >= 256):
        p.direct_a = False
    p.direct_b = not p.half and p.b_col == 1 and p.m < (72 if collides(p, p.b_row) else 512)


cdef int gemm(const ex_gemm_job* job, const floating* x, bint half) noexcept nogil:
    cdef Plan p
    cdef int axis
    cdef Py_ssize_t size, a, b, c
    p.m, p.n, p.k = job.m, job.n, job.k
    p.a, p.b, p.c, p.bias = <const char*>job.a, <const char*>job.b, <char*>job.c, <const char*>job.bias
    p.a_row, p.a_col, p.b_row, p.b_col = job.a_row, job.a_col, job.b_row, job.b_col
    p.c_row, p.c_col, p.bias_col = job.c_row, job.c_col, 1
    p.half, p.accumulate, p.threads = half, job.accumulate != 0, job.threads if job.threads > 1 else 1
    p.item = 2 if half else sizeof(floating)
    p.kept.count = p.summed.count = 0
    p.kept.size = p.summed.size = 1
    for axis in range(job.nbatch_axes - 1, -1, -1):
        size, a, b, c = job.batch_shape[axis], job.a_batch[axis], job.b_batch[axis], job.c_batch[axis]
        if size == 1:
            continue
        if c == 0:
            # Batches that follow one another along k are one product with a longer k.
            if p.summed.count == 0 and a == p.k * p.a_col and b == p.k * p.b_row:
                p.k *= size
            else:
                add_axis(&p.summed, size, a, b, 0)
        elif b == 0 and a == p.m * p.a_row and c == p.m * p.c_row:
            p.m *= size  # one B for batches whose rows follow one another
        elif a == 0 and b == p.n * p.b_col and c == p.n * p.c_col and p.bias == NULL:
            p.n *= size
        else:
            add_axis(&p.kept, size, a, b, c)
    reverse(&p.kept)
    reverse(&p.summed)
    if p.m == 0 or p.n == 0 or p.kept.size == 0:
        return 1
    if p.k == 0 or p.summed.size == 0:  # an empty sum: one step of nothing
        p.k, p.summed.count, p.summed.size = 0, 0, 1
    if not half and p.k > 0:
        if p.n == 1 and p.m > 1 and (p.a_row == 1 or p.a_col == 1):
            turn(&p)
            p.bias_col = 0
        elif p.c_col != 1 and p.c_row == 1 and p.m > 1 and p.n > 1 and p.bias == NULL:
            turn(&p)
        if p.n == 1 and p.b_row != 1:
            p.b_col = 1  # there is one column only, any stride is true
        if p.k == 1 and p.summed.size == 1 and p.b_col == 1 and p.c_col == 1 and (p.bias == NULL or p.bias_col == 1):
            return outer(&p, x)
        if p.m == 1 and p.n == 1 and p.k > DOT_PART and p.a_col == 1 and p.b_row == 1 and (
                p.kept.size == 1 and p.summed.size == 1):
            return long_dot(&p, x)
        if p.m == 1 and (p.b_col == 1 or p.b_row == 1):
            return few_rows(&p, x)
        size = p.k * p.n
        if p.b_col == 1 and p.n >= 64 and (
                p.m <= 2 or p.m <= 4 and size >= 16384 or p.m <= 8 and size * p.item >= FEW_ROWS_BYTES):
            return few_rows(&p, x)
    choose(&p, x)
    return tiles(&p, x)


cdef int gemm_f32(const ex_gemm_job* job) noexcept nogil:
    return gemm(job, <const float*>NULL, False)


cdef int gemm_f64(const ex_gemm_job* job) noexcept nogil:
    return gemm(job, <const double*>NULL, False)


cdef int gemm_f16(const ex_gemm_job* job) noexcept nogil:
    return gemm(job, <const float*>NULL, True)


EXPORTS = {
    "gemm_f32": PyCapsule_New(<void*>gemm_f32, "extensor.kernel", NULL),
    "gemm_f64": PyCapsule_New(<void*>gemm_f64, "extensor.kernel", NULL),
    "gemm_f16": PyCapsule_New(<void*>gemm_f16, "extensor.kernel", NULL),
}
