"""Sums of rows that are scattered by position: the gradient of indexing with arrays.

Rows of several columns are first put in order of their positions by counting, which keeps their
own order among equal positions; then each position's rows are added up, one position at a time.
Narrow rows are added where they belong in one pass, on one thread: putting them in order would
cost more than the adding (a million floats onto ten thousand places: 4.1 ms against 0.4). Either
way a result depends on the rows alone, never on the threads.

A sum may have any number of terms, so it is kept in double precision: plainly for float16 and
float32, whose own rounding is far coarser, and with the lost low parts carried along for float64.
"""

from cython.parallel cimport prange
from libc.math cimport isfinite
from libc.stdint cimport uint16_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from extensor._kernels.types cimport export


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
    TILE = 256          # columns added up at once: 2 KiB of sums, 2 KiB of low parts
    NARROW = 4          # rows of fewer columns are added in place
    PIECES = 64         # shares of the positions that the threads take in turn

ctypedef fused stored:
    uint16_t            # float16
    float
    double


cdef inline void add_row(const stored* x, double* high, double* low, Py_ssize_t n) noexcept nogil:
    cdef float values[TILE]
    cdef Py_ssize_t i
    cdef double total, part
    if stored is uint16_t:
        ex_half_to_float(x, values, n)
        for i in range(n):
            high[i] += values[i]
    elif stored is float:
        for i in range(n):
            high[i] += x[i]
    else:
        for i in range(n):
            total = high[i] + x[i]
            part = total - high[i]
            low[i] += (high[i] - (total - part)) + (x[i] - part)
            high[i] = total


cdef inline void put_row(const double* high, const double* low, stored* y, Py_ssize_t n) noexcept nogil:
    cdef float values[TILE]
    cdef Py_ssize_t i
    if stored is uint16_t:
        for i in range(n):
            values[i] = <float> high[i]
        ex_float_to_half(values, y, n)
    elif stored is float:
        for i in range(n):
            y[i] = <float> high[i]
    else:
        for i in range(n):      # the low part of an infinite sum is NaN
            y[i] = high[i] + low[i] if isfinite(low[i]) else high[i]


cdef inline void put_one(const stored* x, stored* y, Py_ssize_t n) noexcept nogil:
    """The sum of one row: itself, but −0 becomes 0 as in a sum that starts from 0."""
    cdef Py_ssize_t i
    for i in range(n):
        if stored is uint16_t:
            y[i] = 0 if x[i] == 0x8000 else x[i] | ((x[i] & 0x7fff) > 0x7c00) << 9     # quiet NaN
        elif stored is float:
            y[i] = x[i] + <float> 0
        else:
            y[i] = x[i] + <double> 0


cdef void sum_positions(
    const stored* x, const Py_ssize_t* order, const Py_ssize_t* ends, stored* y,
    Py_ssize_t first, Py_ssize_t last, Py_ssize_t width,
) noexcept nogil:
    """The sums of positions first … last−1; those without rows are zero."""
    cdef double high[TILE]
    cdef double low[TILE]
    cdef Py_ssize_t position, k, column, n, begin = ends[first - 1] if first else 0
    for position in range(first, last):
        if ends[position] == begin:
            memset(y + position * width, 0, width * sizeof(stored))
        elif ends[position] == begin + 1:
            put_one(x + order[begin] * width, y + position * width, width)
        else:
            column = 0
            while column < width:
                n = min(<Py_ssize_t> TILE, width - column)
                memset(high, 0, n * sizeof(double))
                memset(low, 0, n * sizeof(double))
                for k in range(begin, ends[position]):
                    add_row(x + order[k] * width + column, high, low, n)
                put_row(high, low, y + position * width + column, n)
                column += n
        begin = ends[position]


cdef int scatter_narrow(
    const stored* x, const Py_ssize_t* positions, stored* y, Py_ssize_t rows, Py_ssize_t count,
    Py_ssize_t width,
) noexcept nogil:
    cdef Py_ssize_t size = count * width, i, n
    cdef double* high = <double*> calloc(max(size, 1), sizeof(double))
    cdef double* low = high
    if stored is double:
        low = <double*> calloc(max(size, 1), sizeof(double))
    if high == NULL or low == NULL:
        free(high)
        if stored is double:
            free(low)
        return -1
    if width == 1:
        for i in range(rows):
            add_row(x + i, high + positions[i], low + positions[i], 1)
    else:
        for i in range(rows):
            add_row(x + i * width, high + positions[i] * width, low + positions[i] * width, width)
    i = 0
    while i < size:
        n = min(<Py_ssize_t> TILE, size - i)
        put_row(high + i, low + i, y + i, n)
        i += n
    free(high)
    if stored is double:
        free(low)
    return 0


cdef int scatter_sum(
    const stored* x, const Py_ssize_t* positions, stored* y, Py_ssize_t rows,
    Py_ssize_t count, Py_ssize_t width, int threads, int* team,
) noexcept nogil:
    """y[p] = Σ x[i] over the rows i with positions[i] = p, for p < count; -1 without memory."""
    cdef Py_ssize_t* ends
    cdef Py_ssize_t* order
    cdef Py_ssize_t i, t
    team[0] = 1
    if width < NARROW:
        return scatter_narrow(x, positions, y, rows, count, width)
    ends = <Py_ssize_t*> calloc(count + 1, sizeof(Py_ssize_t))
    order = <Py_ssize_t*> malloc(max(rows, 1) * sizeof(Py_ssize_t))
    if ends == NULL or order == NULL:
        free(ends)
        free(order)
        return -1
    for i in range(rows):
        ends[positions[i] + 1] += 1
    for i in range(count):
        ends[i + 1] += ends[i]
    for i in range(rows):       # turns the start of each position into its end
        order[ends[positions[i]]] = i
        ends[positions[i]] += 1
    if threads <= 1:
        sum_positions(x, order, ends, y, 0, count, width)
    else:
        for t in prange(PIECES, schedule="dynamic", num_threads=threads):
            if t == 0:
                team[0] = ex_team()
            sum_positions(x, order, ends, y, count * t // PIECES, count * (t + 1) // PIECES, width)
    free(ends)
    free(order)
    return 0


cdef int scatter_sum_f16(
    const void* x, const Py_ssize_t* positions, void* y, Py_ssize_t rows, Py_ssize_t count,
    Py_ssize_t width, int threads, int* team,
) noexcept nogil:
    return scatter_sum(<const uint16_t*> x, positions, <uint16_t*> y, rows, count, width, threads, team)


cdef int scatter_sum_f32(
    const void* x, const Py_ssize_t* positions, void* y, Py_ssize_t rows, Py_ssize_t count,
    Py_ssize_t width, int threads, int* team,
) noexcept nogil:
    return scatter_sum(<const float*> x, positions, <float*> y, rows, count, width, threads, team)


cdef int scatter_sum_f64(
    const void* x, const Py_ssize_t* positions, void* y, Py_ssize_t rows, Py_ssize_t count,
    Py_ssize_t width, int threads, int* team,
) noexcept nogil:
    return scatter_sum(<const double*> x, positions, <double*> y, rows, count, width, threads, team)


EXPORTS = {
    "scatter_sum_f16": export(<const void*> scatter_sum_f16),
    "scatter_sum_f32": export(<const void*> scatter_sum_f32),
    "scatter_sum_f64": export(<const void*> scatter_sum_f64),
}
