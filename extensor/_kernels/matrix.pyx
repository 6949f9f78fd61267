# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""Matrix product: blocking loops, threads and choice of path.

The micro-kernels and the packing are in gemm.h, the explanation with a drawing in
docs/gemm.md. The caller hands over one ``ex_gemm_job`` with valid buffers; 0 comes
back, or -1 when there is no memory for the packing buffers (C is then unchanged).

Paths, chosen by shape and strides alone, never by the number of threads:

row     m = 1 (or n = 1, turned around): no packing, streams the matrix once
outer   k = 1: no packing, streams the result once
tiles   small and medium products, batches, half precision: every task computes one
        tile of one product over the whole of k; A is read where it lies, B too
        where that pays, else one panel at a time is packed privately
shared  large products: all threads pack A and B together, then share the tiles

Tiles and shared add in the same order and give the same bits.
"""
from cpython.pycapsule cimport PyCapsule_New
from cython.parallel cimport parallel, prange, threadid
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
    void ex_rows_f32(Py_ssize_t kc, Py_ssize_t n, const float* x, Py_ssize_t x_stride, const float* b,
                     Py_ssize_t b_row, float* acc)
    void ex_rows_f64(Py_ssize_t kc, Py_ssize_t n, const double* x, Py_ssize_t x_stride, const double* b,
                     Py_ssize_t b_row, double* acc)
    void ex_dots_f32(Py_ssize_t count, Py_ssize_t kc, const float* x, const float* b, Py_ssize_t b_col, float* out)
    void ex_dots_f64(Py_ssize_t count, Py_ssize_t kc, const double* x, const double* b, Py_ssize_t b_col, double* out)
    void ex_outer_f32(Py_ssize_t n, float x, const float* b, float* c, int fresh, const float* bias)
    void ex_outer_f64(Py_ssize_t n, double x, const double* b, double* c, int fresh, const double* bias)
    void ex_halves_to_floats(const uint16_t* s, Py_ssize_t stride, Py_ssize_t n, float* d)
    void ex_floats_to_halves(const float* s, Py_ssize_t n, uint16_t* d, Py_ssize_t stride)


cdef enum:
    # Rows of A and columns of B packed at once on the shared path: with KC = 384 at most
    # 4.7 MB and 6.3 MB (float32).
    SHARED_ROWS = 3072
    SHARED_COLUMNS = 4096
    # A tile of the shared path, in panels of the micro-kernel: 120 x 256 of float32 on
    # AVX-512. Large enough to reuse what lies in the caches, small enough to balance.
    TILE_ROW_PANELS = 10
    TILE_COLUMN_PANELS = 8
    PACK_PANELS = 4
    # Rows of a tile of the tiles path, and columns of a half precision tile.
    TILE_ROWS = 240
    HALF_COLUMNS = 256
    # Columns of one task of the row path (accumulators on the stack), and the number
    # of x values that are copied when x is strided.
    ROW_COLUMNS = 1024
    DOT_STEPS = 2048
    # Work from which a second thread pays: multiply-adds, or elements streamed.
    PARALLEL_PRODUCTS = 600000
    PARALLEL_STREAM = 60000


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
cdef void tile(const Plan* p, Py_ssize_t batch, Py_ssize_t i0, Py_ssize_t m, Py_ssize_t j0, Py_ssize_t n,
               floating* scratch) noexcept nogil:
    """C[i0:i0+m, j0:j0+n] of one batch. scratch: see tile_scratch."""
    cdef Py_ssize_t mr = panel_rows(scratch), nr = panel_columns(scratch), w = lanes(scratch)
    cdef Py_ssize_t step = block_steps(scratch)
    cdef Py_ssize_t panels = parts(m, mr), columns, row, rows, i, j, k0, kc, b_k, a_row, a_k, c_row, c_col
    cdef Py_ssize_t blocks = parts(p.k, step) if p.k > 0 else 1, s, block, jp
    cdef Offset at, more
    cdef floating* packed_b = scratch
    cdef floating* packed_a = scratch + step * nr
    cdef floating* c
    cdef const floating* a
    cdef const floating* b
    cdef const floating* bias
    cdef const char* from_a
    cdef const char* from_b
    cdef char* to_c
    cdef bint fresh = not p.accumulate, last
    at = offset(&p.kept, batch)
    to_c = p.c + (at.c + i0 * p.c_row + j0 * p.c_col) * p.item
    c, c_row, c_col = <floating*>to_c, p.c_row, p.c_col
    if p.half:  # sums are kept in a float tile behind the packed rows and rounded at the end
        c, c_row, c_col = packed_a + step * TILE_ROWS, HALF_COLUMNS, 1
        if p.accumulate:
            for i in range(m):
                ex_halves_to_floats(<const uint16_t*>to_c + i * p.c_row, p.c_col, n, <float*>c + i * c_row)
    for s in range(p.summed.size):
        more = offset(&p.summed, s)
        for block in range(blocks):
            k0 = cut(p.k, blocks, block)
            kc = cut(p.k, blocks, block + 1) - k0
            last = s == p.summed.size - 1 and block == blocks - 1
            from_a = p.a + (at.a + more.a + i0 * p.a_row + k0 * p.a_col) * p.item
            from_b = p.b + (at.b + more.b + j0 * p.b_col + k0 * p.b_row) * p.item
            if p.half:
                pack_panels(from_a, True, p.a_row, p.a_col, m, panels, 0, 0, panels, kc, packed_a)
            for jp in range(parts(n, nr)):
                j = jp * nr
                columns = smaller(nr, n - j)
                if p.direct_b and columns % w == 0:
                    b, b_k = <const floating*>from_b + j, p.b_row
                else:
                    b_k = parts(columns, w) * w
                    pack(from_b + j * p.b_col * p.item, p.half, p.b_col, p.b_row, columns, b_k, kc, packed_b)
                    b = packed_b
                bias = NULL
                if last and p.bias != NULL and not p.half:
                    bias = <const floating*>p.bias + j0 + j
                row = 0
                for i in range(panels):
                    rows = cut(m, panels, i + 1) - row
                    if p.half:
                        a, a_row, a_k = packed_a + row * kc, 1, rows
                    else:
                        a, a_row, a_k = <const floating*>from_a + row * p.a_row, p.a_row, p.a_col
                    run(rows, columns, kc, a, a_row, a_k, b, b_k, c + row * c_row + j * c_col, c_row, c_col,
                        fresh, bias)
                    row = row + rows
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
    """Elements of private scratch a task needs: a panel of B, for half precision also A and C of the tile."""
    cdef Py_ssize_t need = block_steps(x) * panel_columns(x)
    if p.half:
        need += block_steps(x) * TILE_ROWS + TILE_ROWS * HALF_COLUMNS
    return need


cdef int tiles(const Plan* p, const floating* x) noexcept nogil:
    cdef Py_ssize_t nr = panel_columns(x), mr = panel_rows(x)
    cdef Py_ssize_t row_tiles = parts(p.m, TILE_ROWS), column_panels = parts(p.n, nr), column_tiles = 1
    cdef Py_ssize_t wanted, tasks, t, need = 0
    cdef int threads = p.threads
    cdef floating* scratch = NULL
    if p.half:
        column_tiles = parts(p.n, HALF_COLUMNS)
    if (<double>p.m * p.n) * (<double>p.k * p.summed.size + 8) * p.kept.size < PARALLEL_PRODUCTS:
        threads = 1
    if threads > 1:  # cuts of C change no bits: enough tasks for every thread, columns first
        wanted = parts(4 * threads, p.kept.size)
        if row_tiles * column_tiles < wanted:
            column_tiles = smaller(column_panels, parts(wanted, row_tiles))
        if row_tiles * column_tiles < wanted:
            row_tiles = smaller(parts(p.m, mr), parts(wanted, column_tiles))
    tasks = row_tiles * column_tiles * p.kept.size
    if not p.direct_b or p.n % lanes(x) != 0:
        need = tile_scratch(p, x)
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
    return 0


cdef inline void tile_number(const Plan* p, Py_ssize_t t, Py_ssize_t row_tiles, Py_ssize_t column_tiles,
                             Py_ssize_t column_panels, floating* scratch) noexcept nogil:
    cdef Py_ssize_t nr = panel_columns(scratch), per_batch = row_tiles * column_tiles
    cdef Py_ssize_t batch = t // per_batch, rest = t % per_batch
    cdef Py_ssize_t r = rest % row_tiles, q = rest // row_tiles
    cdef Py_ssize_t i0 = cut(p.m, row_tiles, r), i1 = cut(p.m, row_tiles, r + 1)
    cdef Py_ssize_t j0 = cut(column_panels, column_tiles, q) * nr
    cdef Py_ssize_t j1 = smaller(p.n, cut(column_panels, column_tiles, q + 1) * nr)
    tile(p, batch, i0, i1 - i0, j0, j1 - j0, scratch)


# ---- shared: all threads pack, then all threads multiply ------------------------------
cdef void pack_panels(const char* s, bint half, Py_ssize_t lane_stride, Py_ssize_t k_stride, Py_ssize_t total,
                      Py_ssize_t panels, Py_ssize_t width, Py_ssize_t first, Py_ssize_t last, Py_ssize_t kc,
                      floating* d) noexcept nogil:
    """Panels first..last of a packed block of `total` lanes.

    width is 0 for A (panels as equal as possible, unpadded) and the panel width for B
    (the last panel padded to whole vectors). Where lanes lie side by side in memory,
    eight steps of k go through all the panels before the next eight: with rows a power
    of two apart that keeps their cache lines until all panels have used them (0.30
    against 0.52 cycles an element at a stride of 4096 bytes, 0.29 against 0.33 at 2048).
    """
    cdef Py_ssize_t item = 2 if half else sizeof(floating), w = lanes(d)
    cdef Py_ssize_t strip = 8 if lane_stride == 1 else kc, i0, k0, steps, i, lane, count, padded
    for i0 in range(parts(kc, strip) if kc > 0 else 0):
        k0 = i0 * strip
        steps = smaller(strip, kc - k0)
        for i in range(first, last):
            if width == 0:
                lane = cut(total, panels, i)
                count = padded = cut(total, panels, i + 1) - lane
            else:
                lane = i * width
                count = smaller(width, total - lane)
                padded = parts(count, w) * w
            pack(s + (lane * lane_stride + k0 * k_stride) * item, half, lane_stride, k_stride, count, padded, steps,
                 d + lane * kc + k0 * padded)


cdef void pack_task(const Plan* p, Py_ssize_t index, Py_ssize_t panels_a, Py_ssize_t panels_b, Py_ssize_t m,
                    Py_ssize_t n, Py_ssize_t kc, const floating* a, const floating* b, floating* packed_a,
                    floating* packed_b) noexcept nogil:
    """Four panels of A (unless A is read where it lies), or of B."""
    cdef Py_ssize_t tasks_a = 0 if p.direct_a else parts(panels_a, PACK_PANELS)
    if index < tasks_a:
        index = index * PACK_PANELS
        pack_panels(<const char*>a, False, p.a_row, p.a_col, m, panels_a, 0, index,
                    smaller(panels_a, index + PACK_PANELS), kc, packed_a)
    else:
        index = (index - tasks_a) * PACK_PANELS
        pack_panels(<const char*>b, False, p.b_col, p.b_row, n, panels_b, panel_columns(a), index,
                    smaller(panels_b, index + PACK_PANELS), kc, packed_b)


cdef void multiply_panels(const Plan* p, Py_ssize_t i0, Py_ssize_t i1, Py_ssize_t j0, Py_ssize_t j1,
                          Py_ssize_t panels_a, Py_ssize_t m, Py_ssize_t n, Py_ssize_t kc, const floating* a,
                          const floating* packed_a, const floating* packed_b, floating* c, bint fresh, const floating* bias) noexcept nogil:
    """Row panels i0..i1 times column panels j0..j1 of the packed block."""
    cdef Py_ssize_t nr = panel_columns(packed_a), w = lanes(packed_a), i, j, row, rows, column, columns, a_row, a_k
    cdef const floating* from_a
    for j in range(j0, j1):
        column = j * nr
        columns = smaller(nr, n - column)
        row = cut(m, panels_a, i0)
        for i in range(i0, i1):
            rows = cut(m, panels_a, i + 1) - row
            if p.direct_a:
                from_a, a_row, a_k = a + row * p.a_row, p.a_row, p.a_col
            else:
                from_a, a_row, a_k = packed_a + row * kc, 1, rows
            run(rows, columns, kc, from_a, a_row, a_k, packed_b + column * kc, parts(columns, w) * w,
                c + row * p.c_row + column * p.c_col, p.c_row, p.c_col, fresh,
                bias + column if bias != NULL else NULL)
            row = row + rows


cdef int shared(const Plan* p, const floating* x) noexcept nogil:
    cdef Py_ssize_t mr = panel_rows(x), nr = panel_columns(x), step = block_steps(x)
    cdef Py_ssize_t blocks = parts(p.k, step)
    cdef Py_ssize_t size_a = 0 if p.direct_a else parts(smaller(p.m, SHARED_ROWS) * smaller(p.k, step), 16) * 16
    cdef Py_ssize_t size_b = parts(smaller(p.n, SHARED_COLUMNS), nr) * nr * smaller(p.k, step)
    cdef Py_ssize_t batch, column_block, row_block, block, s, i, j, k0, kc, m, n, t, tasks, panels_a, panels_b, tiles_a, tiles_b
    cdef Offset at, more
    cdef bint fresh, last
    cdef const floating* a
    cdef const floating* b
    cdef const floating* bias
    cdef floating* c
    cdef floating* packed_a = <floating*>ex_scratch_get((size_a + size_b) * sizeof(floating))
    cdef floating* packed_b = packed_a + size_a
    if packed_a == NULL:
        return -1
    with parallel(num_threads=p.threads, use_threads_if=p.threads > 1):
        for batch in range(p.kept.size):
            at = offset(&p.kept, batch)
            for column_block in range(parts(p.n, SHARED_COLUMNS)):
                j = column_block * SHARED_COLUMNS
                n = smaller(SHARED_COLUMNS, p.n - j)
                panels_b = parts(n, nr)
                tiles_b = parts(panels_b, TILE_COLUMN_PANELS)
                for s in range(p.summed.size):
                    more = offset(&p.summed, s)
                    for block in range(blocks):
                        k0 = cut(p.k, blocks, block)
                        kc = cut(p.k, blocks, block + 1) - k0
                        fresh = s == 0 and block == 0 and not p.accumulate
                        last = s == p.summed.size - 1 and block == blocks - 1
                        b = <const floating*>p.b + at.b + more.b + j * p.b_col + k0 * p.b_row
                        bias = <const floating*>p.bias + j if last and p.bias != NULL else NULL
                        for row_block in range(parts(p.m, SHARED_ROWS)):
                            i = row_block * SHARED_ROWS
                            m = smaller(SHARED_ROWS, p.m - i)
                            panels_a = parts(m, mr)
                            tiles_a = parts(panels_a, TILE_ROW_PANELS)
                            a = <const floating*>p.a + at.a + more.a + i * p.a_row + k0 * p.a_col
                            c = <floating*>p.c + at.c + i * p.c_row + j * p.c_col
                            tasks = parts(0 if p.direct_a else panels_a, PACK_PANELS)
                            tasks = tasks + parts(panels_b if i == 0 else 0, PACK_PANELS)
                            for t in prange(tasks, schedule="dynamic"):
                                pack_task(p, t, panels_a, panels_b, m, n, kc, a, b, packed_a, packed_b)
                            # the end of a prange is a barrier
                            tasks = tiles_a * tiles_b
                            for t in prange(tasks, schedule="dynamic"):
                                multiply_panels(
                                    p, cut(panels_a, tiles_a, t % tiles_a), cut(panels_a, tiles_a, t % tiles_a + 1),
                                    cut(panels_b, tiles_b, t // tiles_a), cut(panels_b, tiles_b, t // tiles_a + 1),
                                    panels_a, m, n, kc, a, packed_a, packed_b, c, fresh, bias)
    ex_scratch_put(packed_a)
    return 0


# ---- one row times a matrix ------------------------------------------------------------
cdef void row_task(const Plan* p, Py_ssize_t batch, Py_ssize_t j0, Py_ssize_t n, const floating* _) noexcept nogil:
    """C[0, j0:j0+n] of one batch, n <= ROW_COLUMNS."""
    cdef floating[ROW_COLUMNS] acc
    cdef floating[DOT_STEPS] copied
    cdef floating[ROW_COLUMNS] part
    cdef Py_ssize_t s, j, q, block, k0, kc
    cdef Offset at, more
    cdef const floating* x
    cdef const floating* b
    cdef const floating* bias = <const floating*>p.bias
    cdef floating* c
    cdef floating value
    at = offset(&p.kept, batch)
    c = <floating*>p.c + at.c + j0 * p.c_col
    for j in range(n):
        acc[j] = 0
    for s in range(p.summed.size):
        more = offset(&p.summed, s)
        x = <const floating*>p.a + at.a + more.a
        b = <const floating*>p.b + at.b + more.b + j0 * p.b_col
        if p.b_col == 1 and not p.b_row == 1:
            if floating is float:
                ex_rows_f32(p.k, n, x, p.a_col, b, p.b_row, acc)
            else:
                ex_rows_f64(p.k, n, x, p.a_col, b, p.b_row, acc)
            continue
        for block in range(parts(p.k, DOT_STEPS)):
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
    for j in range(n):
        value = acc[j]
        if p.accumulate:
            value = c[j * p.c_col] + value
        if bias != NULL:
            value = value + bias[(j0 + j) * p.bias_col]
        c[j * p.c_col] = value


cdef int rows_times(const Plan* p, const floating* x) noexcept nogil:
    cdef Py_ssize_t pieces = parts(p.n, ROW_COLUMNS), t
    cdef double work = <double>p.k * p.n * p.summed.size * p.kept.size
    cdef int threads = p.threads if work >= PARALLEL_STREAM else 1
    if threads > 1 and pieces * p.kept.size < 2 * threads:
        pieces = smaller(parts(p.n, 64), parts(2 * threads, p.kept.size))
    if threads == 1 or pieces * p.kept.size == 1:
        for t in range(pieces * p.kept.size):
            row_task(p, t // pieces, cut(p.n, pieces, t % pieces),
                     cut(p.n, pieces, t % pieces + 1) - cut(p.n, pieces, t % pieces), x)
    else:
        for t in prange(pieces * p.kept.size, num_threads=threads, schedule="dynamic"):
            row_task(p, t // pieces, cut(p.n, pieces, t % pieces),
                     cut(p.n, pieces, t % pieces + 1) - cut(p.n, pieces, t % pieces), x)
    return 0


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
    cdef int threads = p.threads if <double>p.m * p.n * p.kept.size >= PARALLEL_STREAM else 1
    if threads == 1:
        for t in range(p.kept.size):
            outer_task(p, t, 0, p.m, x)
    else:
        pieces = smaller(p.m, parts(4 * threads, p.kept.size))
        for t in prange(pieces * p.kept.size, num_threads=threads, schedule="dynamic"):
            outer_task(p, t // pieces, cut(p.m, pieces, t % pieces), cut(p.m, pieces, t % pieces + 1), x)
    return 0


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


cdef int gemm(const ex_gemm_job* job, const floating* x, bint half) noexcept nogil:
    cdef Plan p
    cdef int axis
    cdef Py_ssize_t size, a, b, c
    cdef double products
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
        return 0
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
        if p.m == 1 and (p.b_col == 1 or p.b_row == 1):
            return rows_times(&p, x)
    p.direct_a = not half and p.a_col == 1
    p.direct_b = not half and p.b_col == 1
    products = <double>p.m * p.n * p.k
    if not half and p.k > 0 and products >= SHARED_PRODUCTS and p.m >= 32 and p.n >= 32:
        return shared(&p, x)
    return tiles(&p, x)


cdef double SHARED_PRODUCTS = 30e6


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
