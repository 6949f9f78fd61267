"""The compiled side of shape.py: places for results, joining small tensors, scattered sums."""

cimport numpy as cnp
from libc.string cimport memcpy

from extensor._apply cimport (
    as_result, bare, checked_out, is_float, note_team, pointer, simple, team_for,
)
from extensor._kernels.types cimport MAX_AXES
from extensor._memory cimport new_array
from extensor._tensor cimport ExTensor, wrap

from extensor import _cpu
from extensor._apply import empty_tensor

cnp.import_array()


def output_tensor(str function, object out, tuple shape, object dtype) -> ExTensor:
    """Where a result goes: a new tensor, or ``out``, checked."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef int i
    if out is None:
        return empty_tensor(function, shape, dtype)
    if len(shape) > MAX_AXES:
        raise ValueError(f"{function}: {len(shape)} axes are more than the {MAX_AXES} supported")
    for i in range(len(shape)):
        sizes[i] = shape[i]
    return as_result(out, checked_out(function, out, len(shape), sizes, dtype.num))


# ---------------------------------------------------------------- scattered sums

ctypedef int (*Scatter)(
    const void*, const Py_ssize_t*, void*, Py_ssize_t, Py_ssize_t, Py_ssize_t, int, int*) noexcept nogil

_indexing = _cpu.kernels("indexing")
cdef Scatter scatter_sum_f16 = <Scatter> pointer(_indexing["scatter_sum_f16"])
cdef Scatter scatter_sum_f32 = <Scatter> pointer(_indexing["scatter_sum_f32"])
cdef Scatter scatter_sum_f64 = <Scatter> pointer(_indexing["scatter_sum_f64"])


def scatter_sum(str function, cnp.ndarray rows, cnp.ndarray positions, cnp.ndarray place) -> None:
    """place[p] = Σ rows[i] over the i with positions[i] = p.

    ``rows`` and ``place`` are C-contiguous, of one float dtype and two axes; ``positions`` are
    C-contiguous intp within the rows of ``place``.
    """
    cdef Py_ssize_t n = cnp.PyArray_DIM(rows, 0), width = cnp.PyArray_DIM(rows, 1)
    cdef Py_ssize_t count = cnp.PyArray_DIM(place, 0)
    cdef int typenum = cnp.PyArray_TYPE(rows), team = 1, status
    cdef int threads = team_for(<double> (n + count) * width)   # about 1 ns an element
    cdef const void* x = cnp.PyArray_DATA(rows)
    cdef const Py_ssize_t* where = <const Py_ssize_t*> cnp.PyArray_DATA(positions)
    cdef void* y = cnp.PyArray_DATA(place)
    cdef Scatter run = scatter_sum_f64 if typenum == cnp.NPY_DOUBLE else (
        scatter_sum_f32 if typenum == cnp.NPY_FLOAT else scatter_sum_f16)
    with nogil:
        status = run(x, where, y, n, count, width, threads, &team)
    note_team(team)
    if status < 0:
        raise MemoryError(f"{function}: no memory for scratch")


# ---------------------------------------------------------------- joining small tensors

cdef enum:
    QUICK_JOIN = 1 << 20        # bytes of a result from which on threads are worth a thought


cdef void interleave(
    char* to, const char* source, Py_ssize_t outer, Py_ssize_t chunk, Py_ssize_t step,
) noexcept:
    """Copy ``outer`` chunks of bytes to places ``step`` bytes apart."""
    cdef Py_ssize_t i
    if chunk == 4:
        for i in range(outer):
            memcpy(to + i * step, source + i * 4, 4)
    elif chunk == 8:
        for i in range(outer):
            memcpy(to + i * step, source + i * 8, 8)
    else:
        for i in range(outer):
            memcpy(to + i * step, source + i * chunk, chunk)


def quick_join(object tensors, object axis, bint new_axis) -> object:
    """Small contiguous tensors of one dtype joined along an axis; None where that is not so."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef cnp.ndarray first, array, result
    cdef Py_ssize_t outer = 1, inner, chunk, step, total = 0
    cdef int ndim, along, k
    cdef char* to
    cdef list arrays = []
    if (type(tensors) is not list and type(tensors) is not tuple) or type(axis) is not int:
        return None
    for item in tensors:
        array = bare(item)
        if array is None or not simple(array):
            return None
        arrays.append(array)
    if not arrays:
        return None
    first = arrays[0]
    inner = cnp.PyArray_ITEMSIZE(first)
    ndim = cnp.PyArray_NDIM(first) + new_axis
    if ndim == 0 or ndim > MAX_AXES or not -ndim <= axis < ndim:
        return None
    if cnp.PyArray_TYPE(first) > cnp.NPY_ULONGLONG and not is_float(cnp.PyArray_TYPE(first)):
        return None
    along = axis + ndim if axis < 0 else axis
    for array in arrays:
        if cnp.PyArray_TYPE(array) != cnp.PyArray_TYPE(first) or (
                cnp.PyArray_NDIM(array) != cnp.PyArray_NDIM(first)):
            return None
        for k in range(cnp.PyArray_NDIM(first)):
            if cnp.PyArray_DIM(array, k) != cnp.PyArray_DIM(first, k) and (new_axis or k != along):
                return None
        total += 1 if new_axis else cnp.PyArray_DIM(array, along)
    for k in range(ndim):
        sizes[k] = total if k == along else cnp.PyArray_DIM(first, k - 1 if new_axis and k > along else k)
        if k < along:
            outer *= sizes[k]
        elif k > along:
            inner *= sizes[k]
    step = total * inner
    if outer * step > QUICK_JOIN:
        return None
    result = new_array(ndim, sizes, cnp.PyArray_TYPE(first))
    to = cnp.PyArray_BYTES(result)
    if outer * step:
        for array in arrays:
            chunk = inner if new_axis else inner * cnp.PyArray_DIM(array, along)
            interleave(to, cnp.PyArray_BYTES(array), outer, chunk, step)
            to += chunk
    return wrap(result)
