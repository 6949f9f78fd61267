"""Memory of results: 64-byte aligned, with a bounded pool of large freed buffers.

A fresh large buffer costs more in page faults than most kernels take to fill it, so buffers of
64 KiB and more are kept when they are freed, up to ``EXTENSOR_POOL_MB`` (default 256, 0 turns the
pool off), and handed out again. ``release_memory`` gives them back to the system.

The buffers belong to ordinary NumPy arrays: each array carries our memory handler (NEP 49), so
NumPy itself returns the buffer here when the last array or view of it goes.
"""

import os

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

cnp.import_array()

cdef extern from *:
    """
    #include <stdlib.h>
    #if defined(__linux__)
    #include <sys/mman.h>
    #define EX_HUGE(p, n) madvise((p), (n), MADV_HUGEPAGE)
    #else
    #define EX_HUGE(p, n) ((void)0)
    #endif

    /* Header in front of every buffer's data. */
    typedef struct { void *raw; size_t capacity; } ex_header;
    #define EX_HEADER(data) ((ex_header *)((char *)(data) - sizeof(ex_header)))

    static volatile char ex_pool_flag = 0;
    static void ex_pool_lock(void) { while (__atomic_test_and_set(&ex_pool_flag, __ATOMIC_ACQUIRE)) {} }
    static void ex_pool_unlock(void) { __atomic_clear(&ex_pool_flag, __ATOMIC_RELEASE); }

    static void ex_own(PyArrayObject *array, PyObject *handler) {
        Py_INCREF(handler);
        ((PyArrayObject_fields *)array)->mem_handler = handler;
        PyArray_ENABLEFLAGS(array, NPY_ARRAY_OWNDATA);
    }
    """
    ctypedef struct ex_header:
        void* raw
        size_t capacity
    ex_header* EX_HEADER(void*) noexcept nogil
    void EX_HUGE(void*, size_t) noexcept nogil
    void ex_pool_lock() noexcept nogil
    void ex_pool_unlock() noexcept nogil
    void ex_own(cnp.ndarray, object)

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyDataMemAllocator:
        void* ctx
        void* (*malloc)(void*, size_t) noexcept nogil
        void* (*calloc)(void*, size_t, size_t) noexcept nogil
        void* (*realloc)(void*, void*, size_t) noexcept nogil
        void (*free)(void*, void*, size_t) noexcept nogil
    ctypedef struct PyDataMem_Handler:
        char name[127]
        uint8_t version
        PyDataMemAllocator allocator

cdef enum:
    ALIGN = 64
    SLOTS = 64              # buffers in the pool at the most
    POOLED = 1 << 16        # from this size on a buffer is pooled
    HUGE_PAGE = 1 << 21
    HUGE_FROM = 1 << 22     # from this size on the kernel is asked for huge pages, as NumPy does

cdef size_t _pool_limit = <size_t> max(0, int(os.environ.get("EXTENSOR_POOL_MB", "256"))) << 20
cdef size_t _pool_bytes = 0
cdef int _pool_count = 0
cdef void* _pool[SLOTS]     # oldest first


cdef void* _fresh(size_t size) noexcept nogil:
    cdef size_t align = HUGE_PAGE if size >= HUGE_FROM else ALIGN
    cdef char* raw = <char*> malloc(size + align + sizeof(ex_header))
    cdef char* data
    if raw == NULL:
        return NULL
    data = raw + sizeof(ex_header) + align - 1
    data -= <size_t> data % align
    if size >= HUGE_FROM:
        EX_HUGE(data, size - size % HUGE_PAGE)
    EX_HEADER(data).raw = raw
    EX_HEADER(data).capacity = size
    return data


cdef void* _take(size_t size) noexcept nogil:
    """The smallest pooled buffer that fits and wastes no more than a quarter; NULL if none."""
    cdef int i, best = -1
    cdef size_t capacity, least = size + size // 4 + 1
    cdef void* data = NULL
    global _pool_count, _pool_bytes
    ex_pool_lock()
    for i in range(_pool_count):
        capacity = EX_HEADER(_pool[i]).capacity
        if size <= capacity < least:
            least = capacity
            best = i
    if best >= 0:
        data = _pool[best]
        _pool_bytes -= least
        _pool_count -= 1
        for i in range(best, _pool_count):
            _pool[i] = _pool[i + 1]
    ex_pool_unlock()
    return data


cdef void _keep(void* data) noexcept nogil:
    """Put a freed buffer into the pool; the oldest ones make room."""
    cdef void* drop[SLOTS]
    cdef int dropped = 0, i
    cdef size_t size = EX_HEADER(data).capacity
    global _pool_count, _pool_bytes
    ex_pool_lock()
    while _pool_count and (_pool_count == SLOTS or _pool_bytes + size > _pool_limit):
        drop[dropped] = _pool[0]
        dropped += 1
        _pool_bytes -= EX_HEADER(_pool[0]).capacity
        _pool_count -= 1
        for i in range(_pool_count):
            _pool[i] = _pool[i + 1]
    _pool[_pool_count] = data
    _pool_count += 1
    _pool_bytes += size
    ex_pool_unlock()
    for i in range(dropped):
        free(EX_HEADER(drop[i]).raw)


cdef void* _allocate(void* context, size_t size) noexcept nogil:
    cdef void* data = NULL
    if size >= POOLED and _pool_limit:
        data = _take(size)
    return data if data != NULL else _fresh(size)


cdef void* _allocate_zeroed(void* context, size_t count, size_t size) noexcept nogil:
    cdef void* data = _allocate(context, count * size)
    if data != NULL:
        memset(data, 0, count * size)
    return data


cdef void _free(void* context, void* data, size_t size) noexcept nogil:
    if data == NULL:
        return
    if POOLED <= EX_HEADER(data).capacity <= _pool_limit:
        _keep(data)
    else:
        free(EX_HEADER(data).raw)


cdef void* _reallocate(void* context, void* data, size_t size) noexcept nogil:
    cdef void* bigger
    if data != NULL and size <= EX_HEADER(data).capacity:
        return data
    bigger = _allocate(context, size)
    if bigger != NULL and data != NULL:
        memcpy(bigger, data, EX_HEADER(data).capacity)
        _free(context, data, 0)
    return bigger


cdef PyDataMem_Handler _table
cdef const char* _name = "extensor"
memcpy(_table.name, _name, 9)
_table.version = 1
_table.allocator.ctx = NULL
_table.allocator.malloc = _allocate
_table.allocator.calloc = _allocate_zeroed
_table.allocator.realloc = _reallocate
_table.allocator.free = _free
cdef object _handler = PyCapsule_New(&_table, "mem_handler", NULL)


cdef object new_array(int ndim, Py_ssize_t* shape, int typenum):
    """An uninitialised C-contiguous array whose buffer comes from here."""
    cdef cnp.dtype descr = cnp.PyArray_DescrFromType(typenum)
    cdef size_t size = cnp.PyDataType_ELSIZE(descr), limit = <size_t> 1 << 62
    cdef int i
    cdef void* data
    for i in range(ndim):
        if shape[i] and size > limit // <size_t> shape[i]:
            raise ValueError(
                f"a result of shape {tuple([shape[i] for i in range(ndim)])} does not fit in memory")
        size *= shape[i]
    data = _allocate(NULL, size)
    if data == NULL:
        raise MemoryError(
            f"no memory for a result of shape {tuple([shape[i] for i in range(ndim)])} "
            f"and dtype {descr} ({size} bytes)")
    cdef cnp.ndarray array = cnp.PyArray_SimpleNewFromData(
        ndim, <cnp.npy_intp*> shape, typenum, data)
    ex_own(array, _handler)
    return array


def release_memory() -> int:
    """Give the pooled buffers back to the system.

    Returns
    -------
    int
        The number of bytes released.

    Examples
    --------
    >>> import extensor as ex
    >>> x = ex.zeros((512, 512))
    >>> del x
    >>> ex.release_memory() >= 512 * 512 * 4
    True
    >>> ex.release_memory()
    0
    """
    cdef void* drop[SLOTS]
    cdef int i, count
    cdef size_t released
    global _pool_count, _pool_bytes
    ex_pool_lock()
    count = _pool_count
    released = _pool_bytes
    memcpy(drop, _pool, count * sizeof(void*))
    _pool_count = 0
    _pool_bytes = 0
    ex_pool_unlock()
    for i in range(count):
        free(EX_HEADER(drop[i]).raw)
    return released
