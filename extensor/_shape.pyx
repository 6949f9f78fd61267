"""The compiled side of shape.py: copies, views, joins and scattered sums.

The ``quick_…`` functions serve tensors and arrays with arguments of plain ints; for anything else,
and for every error, they return None, and shape.py goes the long way.
"""

import numpy as np

cimport numpy as cnp
from cpython.long cimport PyLong_AsLongAndOverflow
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from extensor._apply cimport (
    as_result, bare, checked_out, is_float, map_into, note_team, pointer, reduce_axis, simple, team_for,
)
from extensor._kernels.moves cimport Convert, Join, Joiner, Move, Mover
from extensor._kernels.types cimport MAX_AXES, SUM
from extensor._memory cimport new_array
from extensor._tensor cimport ExTensor, wrap
from extensor cimport _tensor

from extensor import _cpu
from extensor._apply import IDENTITY, empty_tensor

cnp.import_array()

cdef extern from *:
    """
    static PyObject *ex_view(PyArrayObject *base, int ndim, Py_ssize_t *shape, Py_ssize_t *strides,
                             char *data, int flags) {
        PyArray_Descr *descr = PyArray_DESCR(base);
        PyObject *view;
        Py_INCREF(descr);
        view = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, (npy_intp *)shape,
                                    (npy_intp *)strides, data, flags, NULL);
        if (view == NULL) return NULL;
        Py_INCREF(base);
        if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)base) < 0) {
            Py_DECREF(view);
            return NULL;
        }
        return view;
    }
    """
    object ex_view(cnp.ndarray base, int ndim, Py_ssize_t* shape, Py_ssize_t* strides, char* data, int flags)

cdef enum:
    SMALL = 1 << 12     # elements of a copy that is over before the GIL could be released
    TILED = 1 << 16     # elements from which on the drivers' tiles and threads beat NumPy's copy
# Nanoseconds a byte read or written on one core, for the decision to use threads: 0.004 for copies
# that stay in L2 to 0.008 for transposes, casts and joins (measured on an AVX-512 core, 1e5 elements).
cdef double MOVE_NS = 0.006


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


# ---------------------------------------------------------------- copies

_moving = _cpu.kernels("moving")
cdef Mover run_move = <Mover> pointer(_moving["move"])
cdef Joiner run_join = <Joiner> pointer(_moving["join"])
cdef Convert f32_to_f64 = <Convert> pointer(_moving["f32_to_f64"])
cdef Convert f64_to_f32 = <Convert> pointer(_moving["f64_to_f32"])
cdef Convert f16_to_f32 = <Convert> pointer(_moving["f16_to_f32"])
cdef Convert f32_to_f16 = <Convert> pointer(_moving["f32_to_f16"])
cdef Convert f16_to_f64 = <Convert> pointer(_moving["f16_to_f64"])


cdef Convert converter(int own, int wanted) noexcept:
    """From one float dtype to another; NULL where NumPy converts (float64 to float16 rounds once)."""
    if own == cnp.NPY_FLOAT:
        return f32_to_f64 if wanted == cnp.NPY_DOUBLE else f32_to_f16 if wanted == cnp.NPY_FLOAT16 else NULL
    if own == cnp.NPY_FLOAT16:
        return f16_to_f32 if wanted == cnp.NPY_FLOAT else f16_to_f64 if wanted == cnp.NPY_DOUBLE else NULL
    return f64_to_f32 if own == cnp.NPY_DOUBLE and wanted == cnp.NPY_FLOAT else NULL


cdef void fill_move(Move* m, cnp.ndarray place, cnp.ndarray source) noexcept:
    """Describe a copy: the axes as they lie in ``place``, neighbours merged where both allow it."""
    cdef int axis, k, count = 0, merged = 0
    cdef Py_ssize_t size, x_stride, y_stride
    m.x = cnp.PyArray_BYTES(source)
    m.y = cnp.PyArray_BYTES(place)
    m.x_size = cnp.PyArray_ITEMSIZE(source)
    m.y_size = cnp.PyArray_ITEMSIZE(place)
    for axis in range(cnp.PyArray_NDIM(place)):
        size = cnp.PyArray_DIM(place, axis)
        if size == 1:
            continue
        x_stride, y_stride = cnp.PyArray_STRIDE(source, axis), cnp.PyArray_STRIDE(place, axis)
        k = count
        while k > 0 and abs(m.y_strides[k - 1]) < abs(y_stride):
            m.shape[k], m.x_strides[k], m.y_strides[k] = m.shape[k - 1], m.x_strides[k - 1], m.y_strides[k - 1]
            k -= 1
        m.shape[k], m.x_strides[k], m.y_strides[k] = size, x_stride, y_stride
        count += 1
    for k in range(count):
        if merged and m.x_strides[merged - 1] == m.x_strides[k] * m.shape[k] and (
                m.y_strides[merged - 1] == m.y_strides[k] * m.shape[k]):
            m.shape[merged - 1] *= m.shape[k]
        else:
            m.shape[merged] = m.shape[k]
            merged += 1
        m.x_strides[merged - 1], m.y_strides[merged - 1] = m.x_strides[k], m.y_strides[k]
    if merged == 0:
        m.shape[0], m.x_strides[0], m.y_strides[0] = 1, m.x_size, m.y_size
        merged = 1
    m.ndim = merged


cdef int copy_into(cnp.ndarray place, cnp.ndarray source) except -1:
    """Copy into an array of the same shape, apart from the source, converting where dtypes differ."""
    cdef Move m
    cdef int own = cnp.PyArray_TYPE(source), wanted = cnp.PyArray_TYPE(place), status
    cdef Py_ssize_t n = cnp.PyArray_SIZE(place), moved
    cdef bint aligned = cnp.PyArray_ISALIGNED(place) and cnp.PyArray_ISALIGNED(source)
    m.convert = NULL if own == wanted else converter(own, wanted)
    if n == 0:
        return 0
    if (own == wanted or (m.convert != NULL and aligned)) and (
            cnp.PyArray_ISNOTSWAPPED(place) and cnp.PyArray_ISNOTSWAPPED(source)):
        if n <= SMALL and cnp.PyArray_IS_C_CONTIGUOUS(place) and cnp.PyArray_IS_C_CONTIGUOUS(source):
            if own == wanted:
                memcpy(cnp.PyArray_DATA(place), cnp.PyArray_DATA(source), n * cnp.PyArray_ITEMSIZE(place))
            else:
                m.convert(cnp.PyArray_DATA(source), cnp.PyArray_DATA(place), n)
            note_team(1)
            return 0
        fill_move(&m, place, source)
        moved = n * (m.x_size + m.y_size)
        if n <= SMALL:
            m.threads = 1
            status = run_move(&m)
        else:
            m.threads = team_for(MOVE_NS * moved)
            with nogil:
                status = run_move(&m)
        if status == 0:
            note_team(m.team)
            return 0
        if own == wanted and aligned and n >= TILED and (own == cnp.NPY_FLOAT or own == cnp.NPY_DOUBLE):
            return map_into("copy", IDENTITY, [source], place, ())
    note_team(1)
    if own == wanted or cnp.PyArray_CanCastSafely(own, wanted):
        cnp.PyArray_CopyInto(place, source)
    else:
        with np.errstate(all="ignore"):
            cnp.PyArray_CopyInto(place, source)
    return 0


_tensor.copy_hook = copy_into


def copy(cnp.ndarray place, cnp.ndarray source) -> None:
    """Copy into memory apart from the source's, converting where the dtypes differ."""
    copy_into(place, source)


cdef int dtype_number(object dtype) noexcept:
    """The number of a dtype that is given as a dtype or a NumPy scalar type; -1 for others."""
    cdef int typenum
    if cnp.PyArray_DescrCheck(dtype):
        typenum = (<cnp.dtype> dtype).type_num
        if (<cnp.dtype> dtype).byteorder == b">" or (<cnp.dtype> dtype).byteorder == b"<":
            return -1
        return typenum if typenum <= cnp.NPY_ULONGLONG or is_float(typenum) else -1
    return _numbers.get(dtype, -1) if type(dtype) is type else -1


cdef dict _numbers = {kind: np.dtype(kind).num for kind in (
    np.float16, np.float32, np.float64, np.bool_, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64)}


def quick_cast(object x, object dtype, bint gradient) -> object:
    """A copy in another dtype; a gradient stays in its own where that dtype is an integer."""
    cdef cnp.ndarray array = bare(x), result
    cdef int typenum = dtype_number(dtype)
    if array is None or not usable(array) or typenum < 0:
        return None
    if gradient:
        if not is_float(cnp.PyArray_TYPE(array)):
            return None
        if not is_float(typenum):
            typenum = cnp.PyArray_TYPE(array)
    result = new_array(cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), typenum)
    copy_into(result, array)
    return wrap(result)


# ---------------------------------------------------------------- views

cdef inline bint usable(cnp.ndarray a) noexcept:
    """An array of our dtypes, aligned and in native byte order, in any layout."""
    cdef int typenum = cnp.PyArray_TYPE(a)
    return (typenum <= cnp.NPY_ULONGLONG or is_float(typenum)) and cnp.PyArray_ISBEHAVED_RO(a)


cdef inline ExTensor view(
    cnp.ndarray array, int ndim, Py_ssize_t* shape, Py_ssize_t* strides, Py_ssize_t start=0,
    bint read_only=False,
):
    """A tensor over an array's memory, ``start`` bytes into it."""
    return wrap(ex_view(
        array, ndim, shape, strides, cnp.PyArray_BYTES(array) + start,
        0 if read_only else cnp.PyArray_FLAGS(array) & cnp.NPY_ARRAY_WRITEABLE))


cdef ExTensor dense_view(cnp.ndarray array, int ndim, Py_ssize_t* shape):
    """A C-contiguous array in another shape of as many elements."""
    cdef Py_ssize_t strides[MAX_AXES]
    cdef Py_ssize_t stride = cnp.PyArray_ITEMSIZE(array)
    cdef int axis = ndim - 1
    while axis >= 0:
        strides[axis] = stride
        stride *= shape[axis]
        axis -= 1
    return view(array, ndim, shape, strides)


cdef int plain_ints(object value, Py_ssize_t* to, bint one) noexcept:
    """The ints of a tuple or list (or ``one`` int alone) and their number; -1 for anything else."""
    cdef int i, count, overflow = 0
    if type(value) is tuple:
        count = len(<tuple> value)
    elif type(value) is list:
        count = len(<list> value)
    elif one and type(value) is int:
        to[0] = PyLong_AsLongAndOverflow(value, &overflow)
        return -1 if overflow else 1
    else:
        return -1
    if count > MAX_AXES:
        return -1
    for i in range(count):
        item = (<tuple> value)[i] if type(value) is tuple else (<list> value)[i]
        if type(item) is not int:
            return -1
        to[i] = PyLong_AsLongAndOverflow(item, &overflow)
        if overflow:
            return -1
    return count


cdef int front_axis(object axis, int ndim) noexcept:
    """An axis counted from the front; -1 where it is not a plain int in range."""
    cdef Py_ssize_t index = 0
    if type(axis) is not int or plain_ints(axis, &index, True) < 0 or not -ndim <= index < ndim:
        return -1
    return <int> index + (ndim if index < 0 else 0)


cdef bint fills(int ndim, Py_ssize_t* shape, Py_ssize_t n) noexcept:
    """Whether a shape has n > 0 elements, after its one −1 has been filled in."""
    cdef int axis, open_axis = -1
    cdef Py_ssize_t known = 1
    if n == 0:
        return False
    for axis in range(ndim):
        if shape[axis] == -1 and open_axis < 0:
            open_axis = axis
        elif shape[axis] < 1 or <double> known * <double> shape[axis] > n:
            return False
        else:
            known *= shape[axis]
    if open_axis >= 0:
        shape[open_axis] = n // known
        known *= shape[open_axis]
    return known == n


def quick_reshape(object x, object shape) -> object:
    """A view of a contiguous tensor in another shape."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef cnp.ndarray array = bare(x)
    cdef int ndim
    if array is None or not simple(array):
        return None
    ndim = plain_ints(shape, sizes, True)
    if ndim < 0 or not fills(ndim, sizes, cnp.PyArray_SIZE(array)):
        return None
    return dense_view(array, ndim, sizes)


def quick_flat(object x, bint copy) -> object:
    """All elements along one axis: a view of a contiguous tensor, or a copy."""
    cdef cnp.ndarray array = bare(x), result
    cdef Py_ssize_t n
    if array is None or not (usable(array) if copy else simple(array)):
        return None
    n = cnp.PyArray_SIZE(array)
    if not copy:
        return dense_view(array, 1, &n)
    result = new_array(1, &n, cnp.PyArray_TYPE(array))
    if cnp.PyArray_NDIM(array) == 1:
        copy_into(result, array)
    else:
        copy_into(dense_view(
            result, cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array))._array, array)
    return wrap(result)


cdef int target_shape(object input_shape, cnp.ndarray g, Py_ssize_t* sizes) noexcept:
    """The sizes of an input given as its shape or as itself; -1 where its dtype is another float."""
    cdef cnp.ndarray like = bare(input_shape)
    cdef int axis
    if like is None:
        return plain_ints(input_shape, sizes, False)
    if cnp.PyArray_TYPE(like) != cnp.PyArray_TYPE(g) and (
            is_float(cnp.PyArray_TYPE(like)) or not usable(like)):
        return -1
    for axis in range(cnp.PyArray_NDIM(like)):
        sizes[axis] = cnp.PyArray_DIM(like, axis)
    return cnp.PyArray_NDIM(like)


cdef bint drops_ones(int ndim, Py_ssize_t* shape, int fewer, Py_ssize_t* smaller) noexcept:
    """Whether removing axes of size 1 can turn one shape into another."""
    cdef int axis, found = 0
    for axis in range(ndim):
        if found < fewer and smaller[found] == shape[axis]:
            found += 1
        elif shape[axis] != 1:
            return False
    return found == fewer


cdef enum:              # how the input was reshaped
    RESHAPE
    FLATTEN
    SQUEEZE
    UNSQUEEZE

RESHAPED, FLATTENED, SQUEEZED, UNSQUEEZED = RESHAPE, FLATTEN, SQUEEZE, UNSQUEEZE


def quick_shape_gradient(object grad_output, object input_shape, int how) -> object:
    """A contiguous gradient seen in the shape of the input that was reshaped in some way."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef cnp.ndarray g = bare(grad_output)
    cdef Py_ssize_t* own
    cdef int ndim, axis
    if g is None or not simple(g) or not is_float(cnp.PyArray_TYPE(g)):
        return None
    ndim = target_shape(input_shape, g, sizes)
    for axis in range(ndim):
        if sizes[axis] < 0:
            return None
    if ndim < 0 or not fills(ndim, sizes, cnp.PyArray_SIZE(g)):
        return None
    own = <Py_ssize_t*> cnp.PyArray_DIMS(g)
    if how == FLATTEN and cnp.PyArray_NDIM(g) != 1:
        return None
    if how == SQUEEZE and not drops_ones(ndim, sizes, cnp.PyArray_NDIM(g), own):
        return None
    if how == UNSQUEEZE and not drops_ones(cnp.PyArray_NDIM(g), own, ndim, sizes):
        return None
    return dense_view(g, ndim, sizes)


def quick_squeeze(object x, object axis) -> object:
    """A view without the axes of size 1, or without one of them."""
    cdef Py_ssize_t shape[MAX_AXES]
    cdef Py_ssize_t strides[MAX_AXES]
    cdef cnp.ndarray array = bare(x)
    cdef int i, ndim, chosen = -1, kept = 0
    if array is None or not usable(array):
        return None
    ndim = cnp.PyArray_NDIM(array)
    if axis is not None:
        chosen = front_axis(axis, ndim)
        if chosen < 0 or cnp.PyArray_DIM(array, chosen) != 1:
            return None
    for i in range(ndim):
        if (i != chosen if axis is not None else cnp.PyArray_DIM(array, i) != 1):
            shape[kept] = cnp.PyArray_DIM(array, i)
            strides[kept] = cnp.PyArray_STRIDE(array, i)
            kept += 1
    return wrap(array) if kept == ndim else view(array, kept, shape, strides)


def quick_unsqueeze(object x, object axis) -> object:
    """A view with one more axis of size 1."""
    cdef Py_ssize_t shape[MAX_AXES]
    cdef Py_ssize_t strides[MAX_AXES]
    cdef cnp.ndarray array = bare(x)
    cdef int i, ndim, place
    if array is None or not usable(array):
        return None
    ndim = cnp.PyArray_NDIM(array) + 1
    place = front_axis(axis, ndim)
    if ndim > MAX_AXES or place < 0:
        return None
    for i in range(ndim):
        if i == place:
            shape[i] = 1
            strides[i] = cnp.PyArray_ITEMSIZE(array)
        else:
            shape[i] = cnp.PyArray_DIM(array, i - (i > place))
            strides[i] = cnp.PyArray_STRIDE(array, i - (i > place))
    return view(array, ndim, shape, strides)


def quick_permute(object x, object axes, bint gradient) -> object:
    """A view with its axes in another order, or a gradient's brought back."""
    return None if axes is None else permuted(x, axes, gradient)


def quick_transpose(object x, object axes, bint gradient) -> object:
    """The same; without axes they are reversed."""
    return permuted(x, axes, gradient)


cdef object permuted(object x, object axes, bint gradient):
    cdef Py_ssize_t order[MAX_AXES]
    cdef Py_ssize_t shape[MAX_AXES]
    cdef Py_ssize_t strides[MAX_AXES]
    cdef cnp.ndarray array = bare(x)
    cdef int i, k, ndim
    if array is None or not usable(array) or (gradient and not is_float(cnp.PyArray_TYPE(array))):
        return None
    ndim = cnp.PyArray_NDIM(array)
    if axes is None:
        for i in range(ndim):
            order[i] = ndim - 1 - i
    elif plain_ints(axes, order, False) != ndim:
        return None
    for i in range(ndim):
        shape[i] = -1
    for i in range(ndim):
        if not -ndim <= order[i] < ndim:
            return None
        k = <int> order[i] + (ndim if order[i] < 0 else 0)
        if gradient:
            if shape[k] >= 0:
                return None
            shape[k], strides[k] = cnp.PyArray_DIM(array, i), cnp.PyArray_STRIDE(array, i)
        else:
            shape[i], strides[i] = cnp.PyArray_DIM(array, k), cnp.PyArray_STRIDE(array, k)
            order[i] = k
    if not gradient:
        for i in range(ndim):
            for k in range(i):
                if order[i] == order[k]:
                    return None
    return view(array, ndim, shape, strides)


def quick_broadcast(object x, object full) -> object:
    """A read-only view, repeated along axes to fill a shape."""
    cdef Py_ssize_t shape[MAX_AXES]
    cdef Py_ssize_t strides[MAX_AXES]
    cdef cnp.ndarray array = bare(x)
    cdef int axis, ndim, missing
    if array is None or not usable(array):
        return None
    ndim = plain_ints(full, shape, True)
    missing = ndim - cnp.PyArray_NDIM(array)
    if missing < 0:
        return None
    for axis in range(ndim):
        if shape[axis] < 1:
            return None
        if axis < missing or cnp.PyArray_DIM(array, axis - missing) == 1:
            strides[axis] = 0
        elif cnp.PyArray_DIM(array, axis - missing) == shape[axis]:
            strides[axis] = cnp.PyArray_STRIDE(array, axis - missing)
        else:
            return None
    return view(array, ndim, shape, strides, 0, True)


cdef inline ExTensor part(cnp.ndarray array, int along, Py_ssize_t start, Py_ssize_t size):
    """A view of the elements start … start+size−1 along an axis."""
    cdef Py_ssize_t shape[MAX_AXES]
    memcpy(shape, cnp.PyArray_DIMS(array), cnp.PyArray_NDIM(array) * sizeof(Py_ssize_t))
    shape[along] = size
    return view(
        array, cnp.PyArray_NDIM(array), shape, <Py_ssize_t*> cnp.PyArray_STRIDES(array),
        start * cnp.PyArray_STRIDE(array, along) if size else 0)


def quick_split(object x, object sections, object axis) -> object:
    """Equal parts along an axis, as views."""
    cdef cnp.ndarray array = bare(x)
    cdef Py_ssize_t count = 0, size, i
    cdef int along
    cdef list parts = []
    if array is None or not usable(array) or type(sections) is not int:
        return None
    along = front_axis(axis, cnp.PyArray_NDIM(array))
    if along < 0 or plain_ints(sections, &count, True) < 0 or count < 1:
        return None
    size = cnp.PyArray_DIM(array, along)
    if size % count:
        return None
    for i in range(count):
        parts.append(part(array, along, size // count * i, size // count))
    return parts


def quick_parts(object grad_output, object shapes, object axis) -> object:
    """The parts of a gradient that belong to tensors of these shapes, as views."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef cnp.ndarray g = bare(grad_output)
    cdef Py_ssize_t start = 0
    cdef int along, ndim, k
    cdef list parts = []
    if g is None or not usable(g) or not is_float(cnp.PyArray_TYPE(g)):
        return None
    ndim = cnp.PyArray_NDIM(g)
    along = front_axis(axis, ndim)
    if along < 0 or (type(shapes) is not list and type(shapes) is not tuple):
        return None
    for item in shapes:
        if target_shape(item, g, sizes) != ndim:
            return None
        for k in range(ndim):
            if k != along and sizes[k] != cnp.PyArray_DIM(g, k):
                return None
        if not 0 <= sizes[along] <= cnp.PyArray_DIM(g, along) - start:
            return None
        parts.append(part(g, along, start, sizes[along]))
        start += sizes[along]
    return parts if parts and start == cnp.PyArray_DIM(g, along) else None


def quick_slices(object grad_output, object axis) -> object:
    """The slices of a gradient along an axis, as views."""
    cdef Py_ssize_t shape[MAX_AXES]
    cdef Py_ssize_t strides[MAX_AXES]
    cdef cnp.ndarray g = bare(grad_output)
    cdef Py_ssize_t i
    cdef int along, k, ndim
    if g is None or not usable(g) or not is_float(cnp.PyArray_TYPE(g)):
        return None
    ndim = cnp.PyArray_NDIM(g)
    along = front_axis(axis, ndim)
    if along < 0 or cnp.PyArray_SIZE(g) == 0:
        return None
    for k in range(ndim - 1):
        shape[k] = cnp.PyArray_DIM(g, k + (k >= along))
        strides[k] = cnp.PyArray_STRIDE(g, k + (k >= along))
    return [view(g, ndim - 1, shape, strides, i * cnp.PyArray_STRIDE(g, along))
            for i in range(cnp.PyArray_DIM(g, along))]


def quick_broadcast_gradient(object grad_output, object input_shape) -> object:
    """A gradient summed over the one axis that its input was repeated along."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef cnp.ndarray g = bare(grad_output)
    cdef int ndim, missing, axis, reduced = -1
    if g is None or not simple(g) or not is_float(cnp.PyArray_TYPE(g)) or cnp.PyArray_SIZE(g) == 0:
        return None
    ndim = cnp.PyArray_NDIM(g)
    missing = ndim - target_shape(input_shape, g, sizes)
    if missing < 0 or missing > 1:
        return None
    for axis in range(ndim):
        if axis < missing or sizes[axis - missing] != cnp.PyArray_DIM(g, axis):
            if reduced >= 0 or (axis >= missing and sizes[axis - missing] != 1):
                return None
            reduced = axis
    if reduced < 0:
        return None
    return wrap(reduce_axis("broadcast_to_backward", g, reduced, missing == 0, SUM, False))


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
    scatter_rows(
        function, rows, <const Py_ssize_t*> cnp.PyArray_DATA(positions), place,
        cnp.PyArray_DIM(rows, 0), cnp.PyArray_DIM(place, 0), cnp.PyArray_DIM(rows, 1))


cdef int scatter_rows(
    str function, cnp.ndarray rows, const Py_ssize_t* where, cnp.ndarray place,
    Py_ssize_t n, Py_ssize_t count, Py_ssize_t width,
) except -1:
    """The same for n rows of a width, onto ``count`` places."""
    cdef int typenum = cnp.PyArray_TYPE(rows), team = 1, status
    # A row that is alone on its place is moved; those beyond the places are added up, 0.3 ns an element.
    cdef double cost = MOVE_NS * cnp.PyArray_ITEMSIZE(rows) * (n + count) + 0.3 * max(n - count, 0)
    cdef int threads = team_for(cost * width)
    cdef const void* x = cnp.PyArray_DATA(rows)
    cdef void* y = cnp.PyArray_DATA(place)
    cdef Scatter run = scatter_sum_f64 if typenum == cnp.NPY_DOUBLE else (
        scatter_sum_f32 if typenum == cnp.NPY_FLOAT else scatter_sum_f16)
    with nogil:
        status = run(x, where, y, n, count, width, threads, &team)
    note_team(team)
    if status < 0:
        raise MemoryError(f"{function}: no memory for scratch")
    return 0


def quick_rows_gradient(object grad_output, object index, object input_shape) -> object:
    """The gradient of x[index] for an array of integers along the first axis, none negative."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef cnp.ndarray g = bare(grad_output), rows = bare(index), result
    cdef Py_ssize_t i, n, width = 1
    cdef const Py_ssize_t* where
    cdef int ndim, k, leading
    if g is None or rows is None or not simple(g) or not simple(rows):
        return None
    if not is_float(cnp.PyArray_TYPE(g)) or cnp.PyArray_TYPE(rows) != cnp.NPY_INTP:
        return None
    ndim = target_shape(input_shape, g, sizes)
    leading = cnp.PyArray_NDIM(rows)
    if ndim < 1 or leading < 1 or cnp.PyArray_NDIM(g) != leading + ndim - 1 or cnp.PyArray_SIZE(g) == 0:
        return None
    for k in range(leading):
        if cnp.PyArray_DIM(g, k) != cnp.PyArray_DIM(rows, k):
            return None
    for k in range(1, ndim):
        if cnp.PyArray_DIM(g, leading + k - 1) != sizes[k]:
            return None
        width *= sizes[k]
    n = cnp.PyArray_SIZE(rows)
    where = <const Py_ssize_t*> cnp.PyArray_DATA(rows)
    for i in range(n):
        if where[i] < 0 or where[i] >= sizes[0]:
            return None
    result = new_array(ndim, sizes, cnp.PyArray_TYPE(g))
    scatter_rows("getitem_backward", g, where, result, n, sizes[0], width)
    return wrap(result)


# ---------------------------------------------------------------- joins

def quick_join(object tensors, object axis, bint new_axis, bint gradient=False) -> object:
    """Contiguous tensors of one dtype joined along an axis; gradients are floats."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef cnp.ndarray first, array, result
    cdef Py_ssize_t inner, total = 0, i
    cdef int ndim, along, k
    cdef Join j
    cdef list arrays = []
    if type(tensors) is not list and type(tensors) is not tuple:
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
    along = front_axis(axis, ndim)
    if ndim > MAX_AXES or along < 0 or (gradient and not is_float(cnp.PyArray_TYPE(first))):
        return None
    for array in arrays:
        if cnp.PyArray_TYPE(array) != cnp.PyArray_TYPE(first) or (
                cnp.PyArray_NDIM(array) != cnp.PyArray_NDIM(first)):
            return None
        for k in range(cnp.PyArray_NDIM(first)):
            if cnp.PyArray_DIM(array, k) != cnp.PyArray_DIM(first, k) and (new_axis or k != along):
                return None
        total += 1 if new_axis else cnp.PyArray_DIM(array, along)
    j.outer = 1
    for k in range(ndim):
        sizes[k] = total if k == along else cnp.PyArray_DIM(first, k - 1 if new_axis and k > along else k)
        if k < along:
            j.outer *= sizes[k]
        elif k > along:
            inner *= sizes[k]
    j.step = total * inner
    result = new_array(ndim, sizes, cnp.PyArray_TYPE(first))
    if j.outer * j.step == 0:
        return wrap(result)
    j.y = cnp.PyArray_BYTES(result)
    j.count = len(arrays)
    cdef void* memory = malloc(j.count * (sizeof(char*) + sizeof(Py_ssize_t)))
    if memory == NULL:
        raise MemoryError("no memory for a list of tensors")
    j.parts = <const char**> memory
    j.chunks = <const Py_ssize_t*> (j.parts + j.count)
    for i in range(j.count):
        array = arrays[i]
        j.parts[i] = cnp.PyArray_BYTES(array)
        (<Py_ssize_t*> j.chunks)[i] = inner if new_axis else inner * cnp.PyArray_DIM(array, along)
    if j.outer * j.step <= 4 * SMALL:
        j.threads = 1
        run_join(&j)
    else:
        j.threads = team_for(2 * MOVE_NS * j.outer * j.step)
        with nogil:
            run_join(&j)
    free(memory)
    note_team(j.team)
    return wrap(result)
