"""Functions along slices for float16: some slices at a time, as float32 in scratch that stays in cache.

The slices are cut into chunks by shape alone, so the results do not depend on the threads.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t, uint16_t
from libc.stdlib cimport free, malloc

from extensor._kernels.types cimport EACH, PLACES, WHOLE, Along, AlongKernel, Roles, export


cdef extern from "half.h" nogil:
    void ex_half_to_float(const uint16_t* x, float* y, Py_ssize_t n)
    void ex_float_to_half(const float* x, uint16_t* y, Py_ssize_t n)

cdef enum:
    CHUNK = 4096        # elements: 16 KiB of float32 for each operand
    STRIP = 32          # columns that are taken together at least

cdef struct Chunk:
    Py_ssize_t slices           # how many, and the number of the first one
    Py_ssize_t first
    Py_ssize_t rows             # runs of elements, how long and how far apart
    Py_ssize_t length
    Py_ssize_t step
    Py_ssize_t start


cdef Py_ssize_t width_of(const Along* a) noexcept nogil:
    """How many slices make a chunk."""
    if a.inner == 1:
        return max(1, min(a.outer, CHUNK // a.n))
    return min(a.inner, max(STRIP, CHUNK // a.n))


cdef Chunk chunk_of(const Along* a, Py_ssize_t index) noexcept nogil:
    cdef Chunk c
    cdef Py_ssize_t width = width_of(a), strips, outer
    if a.inner == 1:
        c.first = index * width
        c.slices = min(width, a.outer - c.first)
        c.rows, c.length, c.step, c.start = 1, c.slices * a.n, 0, c.first * a.n
        return c
    strips = (a.inner + width - 1) // width
    outer = index // strips
    c.start = (index - outer * strips) * width
    c.slices = min(width, a.inner - c.start)
    c.first = outer * a.inner + c.start
    c.rows, c.length, c.step = a.n, c.slices, a.inner
    c.start += outer * a.n * a.inner
    return c


cdef const float* widened(const void* x, int role, const Chunk* c, float* to) noexcept nogil:
    """The part of an operand that belongs to a chunk; NULL where there is none."""
    cdef Py_ssize_t r
    if x == NULL:
        return NULL
    if role == WHOLE:
        for r in range(c.rows):
            ex_half_to_float(<const uint16_t*> x + c.start + r * c.step, to + r * c.length, c.length)
    elif role == EACH:
        ex_half_to_float(<const uint16_t*> x + c.first, to, c.slices)
    return to


cdef int work(const Along* a, AlongKernel call, const Roles* roles, Py_ssize_t index, float* scratch) noexcept nogil:
    cdef Chunk c = chunk_of(a, index)
    cdef Along part = a[0]
    cdef Py_ssize_t size = width_of(a) * a.n, r
    cdef float* y = scratch + 3 * size
    cdef int status
    part.threads = 1
    if a.inner == 1:
        part.outer = c.slices
    else:
        part.outer, part.inner = 1, c.slices
    part.x = widened(a.x, roles.x, &c, scratch)
    part.g = widened(a.g, roles.g, &c, scratch + size)
    part.saved = widened(a.saved, roles.saved, &c, scratch + 2 * size)
    part.y = y
    if roles.y == PLACES:
        part.y = <int64_t*> a.y + c.first
    status = call(&part, NULL)
    if roles.y == WHOLE:
        for r in range(c.rows):
            ex_float_to_half(y + r * c.length, <uint16_t*> a.y + c.start + r * c.step, c.length)
    elif roles.y == EACH:
        ex_float_to_half(y, <uint16_t*> a.y + c.first, c.slices)
    return status


cdef int along_halves(const Along* a, AlongKernel call, const Roles* roles) noexcept nogil:
    """Run a float32 kernel on float16 operands; -1 when there is no memory for scratch."""
    cdef Py_ssize_t width = width_of(a), count, i, need = 4 * width * a.n
    cdef float* scratch = <float*> malloc(need * max(1, a.threads) * sizeof(float))
    cdef int status = 0
    if scratch == NULL:
        return -1
    count = (a.outer + width - 1) // width if a.inner == 1 else a.outer * ((a.inner + width - 1) // width)
    if a.threads <= 1 or count < 2:
        for i in range(count):
            if work(a, call, roles, i, scratch) < 0:
                status = -1
    else:
        for i in prange(count, schedule="static", num_threads=a.threads):
            if work(a, call, roles, i, scratch + threadid() * need) < 0:
                status += -1
    free(scratch)
    return -1 if status < 0 else 0


EXPORTS = {"along": export(<void*> along_halves)}
