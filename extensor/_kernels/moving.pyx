"""Memory from one layout or float dtype to another, and tensors put side by side.

A copy whose innermost axis is contiguous on both sides is a list of runs; one that is contiguous
along different axes is a transpose, done in tiles that stay in cache. The threads share runs, tiles
or bytes; which thread moves an element makes no difference to it.
"""

from cython.parallel cimport prange
from libc.stdint cimport uint16_t
from libc.string cimport memcpy

from extensor._kernels.moves cimport Join, Move
from extensor._kernels.types cimport export


cdef extern from "half.h" nogil:
    void ex_half_to_float(const uint16_t* x, float* y, Py_ssize_t n)
    void ex_float_to_half(const float* x, uint16_t* y, Py_ssize_t n)

cdef extern from "transpose.h" nogil:
    void ex_transpose_1(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void ex_transpose_2(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void ex_transpose_4(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void ex_transpose_8(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t, Py_ssize_t)

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
    SIDE = 128          # of a transposed tile: 64 KiB of float32 read, 64 KiB written
    SHORT = 32          # bytes of a run from which on runs are copied one by one
    BAND = 1 << 15      # bytes of joined rows that are filled part by part
    HALVES = 512        # float16 elements on their way to float64


# ---------------------------------------------------------------- conversions

cdef void f32_to_f64(const float* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i]


cdef void f64_to_f32(const double* x, float* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <float> x[i]


cdef void f16_to_f32(const uint16_t* x, float* y, Py_ssize_t n) noexcept nogil:
    ex_half_to_float(x, y, n)


cdef void f32_to_f16(const float* x, uint16_t* y, Py_ssize_t n) noexcept nogil:
    ex_float_to_half(x, y, n)


cdef void f16_to_f64(const uint16_t* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef float values[HALVES]
    cdef Py_ssize_t start = 0, count
    while start < n:
        count = min(<Py_ssize_t> HALVES, n - start)
        ex_half_to_float(x + start, values, count)
        f32_to_f64(values, y + start, count)
        start += count


# ---------------------------------------------------------------- copies

cdef inline Py_ssize_t offset(
    const Move* m, const Py_ssize_t* strides, Py_ssize_t index, int last, int skipped,
) noexcept nogil:
    """Bytes to an element of the axes before ``last``, ``skipped`` left out, flattened."""
    cdef Py_ssize_t total = 0, quotient
    cdef int axis = last - 1
    while axis >= 0 and index:
        if axis != skipped:
            quotient = index // m.shape[axis]
            total += (index - quotient * m.shape[axis]) * strides[axis]
            index = quotient
        axis -= 1
    return total


cdef void move_runs(const Move* m, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """The elements first … last−1, in runs along the innermost axis."""
    cdef Py_ssize_t run = m.shape[m.ndim - 1], row, col, n
    cdef const char* x
    cdef char* y
    while first < last:
        row = first // run
        col = first - row * run
        n = min(run - col, last - first)
        x = m.x + offset(m, m.x_strides, row, m.ndim - 1, -1) + col * m.x_size
        y = m.y + offset(m, m.y_strides, row, m.ndim - 1, -1) + col * m.y_size
        if m.convert != NULL:
            m.convert(x, y, n)
        else:
            memcpy(y, x, n * m.x_size)
        first += n


cdef void move_tiles(
    const Move* m, int axis, Py_ssize_t across, Py_ssize_t down, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Tiles of planes that are contiguous in x along ``axis`` and in y along the innermost one."""
    cdef int inner = m.ndim - 1
    cdef Py_ssize_t t, plane, r, c, rows, cols, x_step = m.x_strides[inner], y_step = m.y_strides[axis]
    cdef const char* x
    cdef char* y
    for t in range(first, last):
        plane = t // (across * down)
        r = t % across * SIDE
        c = t // across % down * SIDE
        rows = min(<Py_ssize_t> SIDE, m.shape[inner] - r)
        cols = min(<Py_ssize_t> SIDE, m.shape[axis] - c)
        x = m.x + offset(m, m.x_strides, plane, inner, axis) + r * x_step + c * m.x_size
        y = m.y + offset(m, m.y_strides, plane, inner, axis) + c * y_step + r * m.x_size
        if m.x_size == 4:
            ex_transpose_4(x, x_step, y, y_step, rows, cols)
        elif m.x_size == 8:
            ex_transpose_8(x, x_step, y, y_step, rows, cols)
        elif m.x_size == 2:
            ex_transpose_2(x, x_step, y, y_step, rows, cols)
        else:
            ex_transpose_1(x, x_step, y, y_step, rows, cols)


cdef int run_move(Move* m) noexcept nogil:
    """Move everything; -1, and nothing moved, where the layout is neither runs nor a transpose."""
    cdef Py_ssize_t n = 1, t, across, down, tiles, T = m.threads
    cdef int inner = m.ndim - 1, axis = -1, i
    m.team = 1
    for i in range(m.ndim):
        n *= m.shape[i]
        if m.x_strides[i] == m.x_size:
            axis = i
    if axis < 0 or m.y_strides[inner] != m.y_size:
        return -1
    if m.x_strides[inner] == m.x_size:
        if inner > 0 and m.shape[inner] * m.x_size < SHORT:
            return -1
        if T <= 1:
            move_runs(m, 0, n)
            return 0
        for t in prange(T, schedule="static", chunksize=1, num_threads=m.threads):
            if t == 0:
                m.team = ex_team()
            move_runs(m, n // 64 * t // T * 64, n if t == T - 1 else n // 64 * (t + 1) // T * 64)
        return 0
    if m.convert != NULL:
        return -1
    across = (m.shape[inner] + SIDE - 1) // SIDE
    down = (m.shape[axis] + SIDE - 1) // SIDE
    tiles = n // (m.shape[inner] * m.shape[axis]) * across * down
    if T <= 1 or tiles < 2:
        move_tiles(m, axis, across, down, 0, tiles)
        return 0
    for t in prange(T, schedule="static", chunksize=1, num_threads=m.threads):
        if t == 0:
            m.team = ex_team()
        move_tiles(m, axis, across, down, tiles * t // T, tiles * (t + 1) // T)
    return 0


# ---------------------------------------------------------------- joins

cdef inline void interleave(
    char* y, const char* x, Py_ssize_t rows, Py_ssize_t chunk, Py_ssize_t step,
) noexcept nogil:
    """Chunks of bytes to places ``step`` bytes apart."""
    cdef Py_ssize_t i
    if chunk == 4:
        for i in range(rows):
            memcpy(y + i * step, x + i * 4, 4)
    elif chunk == 8:
        for i in range(rows):
            memcpy(y + i * step, x + i * 8, 8)
    else:
        for i in range(rows):
            memcpy(y + i * step, x + i * chunk, chunk)


cdef void join_span(const Join* j, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """The bytes first … last−1 of the result: whole rows in bands, pieces of rows at the ends."""
    cdef Py_ssize_t row, col, rows, n, i
    while first < last:
        row = first // j.step
        col = first - row * j.step
        i = 0
        if col == 0 and last - first >= j.step:
            rows = min((last - first) // j.step, max(<Py_ssize_t> 1, BAND // j.step))
            for i in range(j.count):
                interleave(j.y + first + col, j.parts[i] + row * j.chunks[i], rows, j.chunks[i], j.step)
                col += j.chunks[i]
            first += rows * j.step
            continue
        while col >= j.chunks[i]:
            col -= j.chunks[i]
            i += 1
        n = min(j.chunks[i] - col, last - first)
        memcpy(j.y + first, j.parts[i] + row * j.chunks[i] + col, n)
        first += n


cdef void run_join(Join* j) noexcept nogil:
    cdef Py_ssize_t n = j.outer * j.step, t, T = j.threads
    j.team = 1
    if T <= 1:
        join_span(j, 0, n)
        return
    for t in prange(T, schedule="static", chunksize=1, num_threads=j.threads):
        if t == 0:
            j.team = ex_team()
        join_span(j, n // 64 * t // T * 64, n if t == T - 1 else n // 64 * (t + 1) // T * 64)


EXPORTS = {
    "move": export(<const void*> run_move),
    "join": export(<const void*> run_join),
    "f32_to_f64": export(<const void*> f32_to_f64),
    "f64_to_f32": export(<const void*> f64_to_f32),
    "f16_to_f32": export(<const void*> f16_to_f32),
    "f32_to_f16": export(<const void*> f32_to_f16),
    "f16_to_f64": export(<const void*> f16_to_f64),
}
