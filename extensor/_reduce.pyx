"""The apply layer of functions along axes: reductions, softmax and their gradients.

Sums, maxima and everything else that joins values in any order go through the reduce driver with
any strides and any set of axes. Functions that need a whole slice at once (softmax, the gradients
of max and min, arg-max) see the tensor as (outer, n, inner).
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport NAN

from extensor._apply cimport (
    APART, Gradient, as_result, bare, checked_out, converted, float_for, is_float, map_into,
    note_team, overlap, pointer, reduce_axis,
    reduce_flat, reduce_into, shape_of, simple, team_for, upstream,
)
from extensor._kernels.types cimport MAX, MAX_AXES, MIN, SUM
from extensor._memory cimport new_array
from extensor._tensor cimport plain_array, wrap

from extensor import _cpu
from extensor._apply import IDENTITY, shape_target

cnp.import_array()

_rows = _cpu.kernels("reduction")
_simple = _cpu.kernels("arithmetic")
cdef tuple _softmax = _rows["softmax"]
cdef tuple _softmax_backward = _rows["softmax_backward"]
cdef tuple _extreme_backward = _rows["extreme_backward"]
cdef tuple _arg = _rows["arg"]
cdef tuple _variance = _rows["variance"]
cdef Gradient _identity = IDENTITY
cdef Gradient _divide = Gradient(_simple["divide"], (0, 1), "divide")
cdef Gradient _subtract = Gradient(_simple["subtract"], (0, 1))
cdef Gradient _multiply = Gradient(_simple["multiply"], (0, 1))
cdef Gradient _square_deviation = Gradient(_rows["square_deviation"], (0, 1))
cdef Gradient _variance_finish = Gradient(_rows["variance_finish"], (0, 1), "divide")
cdef Gradient _variance_grad = Gradient(_rows["variance_grad"], (0, 1, 2), "divide")
cdef Gradient _std_grad = Gradient(_rows["std_grad"], (0, 1, 2, 3), "divide")
cdef Gradient _root = Gradient(_rows["root"], (0,), "divide")
cdef Gradient _softmax_shift = Gradient(_rows["softmax_shift"], (0,))
cdef Gradient _finite_shift = Gradient(_rows["finite_shift"], (0,))
cdef Gradient _exp_shifted = Gradient(_rows["exp_shifted"], (0, 1), "math")
cdef Gradient _add_log = Gradient(_rows["add_log"], (0, 1), "math")
cdef Gradient _log_softmax_finish = Gradient(_rows["log_softmax_finish"], (0, 1, 2), "math")
cdef Gradient _logsumexp_grad = Gradient(_rows["logsumexp_grad"], (0, 1, 2), "math")
cdef Gradient _softmax_grad = Gradient(_rows["softmax_grad"], (0, 1, 2))
cdef Gradient _log_softmax_grad = Gradient(_rows["log_softmax_grad"], (0, 1, 2), "math")

# Row functions by pointer, for calls too small to spend time on views: [float, double].
ctypedef void (*SoftmaxRows)(const void*, void*, Py_ssize_t, Py_ssize_t, bint) noexcept nogil
ctypedef void (*BackwardRows)(
    const void*, const void*, void*, Py_ssize_t, Py_ssize_t, bint) noexcept nogil
ctypedef void (*VarianceRows)(const void*, void*, Py_ssize_t, Py_ssize_t, double, bint) noexcept nogil
ctypedef void (*LogsumexpRows)(const void*, void*, Py_ssize_t, Py_ssize_t) noexcept nogil
cdef void* _softmax_rows[2]
cdef void* _softmax_rows_backward[2]
cdef void* _extreme_rows_backward[2]
cdef void* _arg_rows[2]
cdef void* _variance_rows[2]
cdef void* _logsumexp_rows[2]
for _i in range(2):
    _softmax_rows[_i] = pointer(_rows["softmax_rows"][_i])
    _softmax_rows_backward[_i] = pointer(_rows["softmax_rows_backward"][_i])
    _extreme_rows_backward[_i] = pointer(_rows["extreme_rows_backward"][_i])
    _arg_rows[_i] = pointer(_rows["arg_rows"][_i])
    _variance_rows[_i] = pointer(_rows["variance_rows"][_i])
    _logsumexp_rows[_i] = pointer(_rows["logsumexp_rows"][_i])

# Nanoseconds an element on one core, float32, for the decision to use threads.
cdef double SOFTMAX_NS = 0.3
cdef double PASS_NS = 0.15
cdef Py_ssize_t LONG_SLICE = 1 << 16    # elements of one slice from which it is worth cutting up
# One slice of this much work goes through the drivers, whose cuts depend on its size alone.
cdef double ONE_SLICE_NS = 15000.0


# ---------------------------------------------------------------- axes

cdef tuple checked_axes(str function, object axis, int ndim):
    """The axes to reduce, in ascending order."""
    cdef list axes = []
    if axis is None:
        return tuple(range(ndim))
    for one in axis if isinstance(axis, (tuple, list)) else (axis,):
        if isinstance(one, (bool, np.bool_)) or not hasattr(one, "__index__"):
            raise TypeError(f"{function}: axis must be an int, a tuple of ints or None, got {axis!r}")
        index = one.__index__()
        if not -ndim <= index < ndim:
            raise np.exceptions.AxisError(index, ndim, f"{function}: axis")
        index = index + ndim if index < 0 else index
        if index in axes:
            raise ValueError(f"{function}: axis {one} is given twice in {axis!r}")
        axes.append(index)
    return tuple(sorted(axes))


cdef tuple kept_shape(tuple shape, tuple axes, bint keepdims):
    if keepdims:
        return tuple([1 if i in axes else shape[i] for i in range(len(shape))])
    return tuple([shape[i] for i in range(len(shape)) if i not in axes])


cdef Py_ssize_t count_of(tuple shape, tuple axes):
    cdef Py_ssize_t n = 1
    for axis in axes:
        n *= <Py_ssize_t> shape[axis]
    return n


cdef cnp.ndarray fresh(tuple shape, int typenum):
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef int i
    for i in range(len(shape)):
        sizes[i] = shape[i]
    return new_array(len(shape), sizes, typenum)


cdef cnp.ndarray result_place(str function, object out, tuple shape, int typenum):
    """The array a result goes to: new, or the caller's."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef int i
    for i in range(len(shape)):
        sizes[i] = shape[i]
    if out is None:
        return new_array(len(shape), sizes, typenum)
    return checked_out(function, out, len(shape), sizes, typenum)


cdef cnp.ndarray floating_input(str function, object x, bint as_exp):
    """An operand as a floating array; integers as np.exp or as np.mean converts them."""
    cdef cnp.ndarray array = bare(x)
    if array is None or not simple(array):
        array = plain_array(x, function, "x")
    cdef int typenum = cnp.PyArray_TYPE(array)
    if not is_float(typenum):
        array = converted(array, float_for(typenum) if as_exp else cnp.NPY_DOUBLE)
    return array


cdef inline int computed(int typenum):
    """The dtype that intermediate results of a dtype are kept in."""
    return cnp.NPY_FLOAT if typenum == cnp.NPY_FLOAT16 else typenum


cdef cnp.ndarray slice_gradient(
    str function, object grad_output, tuple shape, tuple axes, int beside,
):
    """grad_output of a reduction, given with or without the kept axes, in the keepdims shape."""
    cdef cnp.ndarray g = upstream(function, grad_output, beside)
    cdef tuple given = shape_of(g), kept = kept_shape(shape, axes, True)
    if given == kept:
        return g
    if given != kept_shape(shape, axes, False):
        raise ValueError(
            f"{function}: grad_output has shape {given}; for an input of shape {shape} and axis "
            f"{axes} it must be {kept_shape(shape, axes, False)} or {kept}")
    return g.reshape(kept)


# ---------------------------------------------------------------- small calls

cdef enum:
    SMALL = 16384           # elements up to which a row function runs at once, on one thread


cdef Py_ssize_t small_row(cnp.ndarray array, object axis) noexcept:
    """The length of the rows where a small contiguous tensor is taken along its last axis; else 0."""
    cdef int ndim, typenum
    if array is None:
        return 0
    typenum = cnp.PyArray_TYPE(array)
    ndim = cnp.PyArray_NDIM(array)
    if (typenum != cnp.NPY_FLOAT and typenum != cnp.NPY_DOUBLE) or not simple(array):
        return 0
    if not 0 < cnp.PyArray_SIZE(array) <= SMALL:
        return 0
    if axis is None:
        return cnp.PyArray_SIZE(array)
    if type(axis) is int and ndim > 0 and (axis == -1 or axis == ndim - 1):
        return cnp.PyArray_DIM(array, ndim - 1)
    return 0


cdef cnp.ndarray row_results(cnp.ndarray array, object axis, int typenum):
    """An array for one result per row."""
    return new_array(0 if axis is None else cnp.PyArray_NDIM(array) - 1,
                     <Py_ssize_t*> cnp.PyArray_DIMS(array), typenum)


cdef inline cnp.ndarray same_as(cnp.ndarray array):
    return new_array(cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), cnp.PyArray_TYPE(array))


cdef bint alike(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Two small operands that a row function takes as they are."""
    cdef int axis
    if (a is None or cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(b) or not simple(a)
            or cnp.PyArray_NDIM(a) != cnp.PyArray_NDIM(b)):
        return False
    for axis in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, axis) != cnp.PyArray_DIM(b, axis):
            return False
    return True


cdef bint one_per_row(cnp.ndarray g, cnp.ndarray array, object axis) noexcept:
    """Whether grad_output has the shape of the row results, without the kept axes."""
    cdef int i
    if g is None or cnp.PyArray_TYPE(g) != cnp.PyArray_TYPE(array) or not simple(g):
        return False
    if cnp.PyArray_NDIM(g) != (0 if axis is None else cnp.PyArray_NDIM(array) - 1):
        return False
    for i in range(cnp.PyArray_NDIM(g)):
        if cnp.PyArray_DIM(g, i) != cnp.PyArray_DIM(array, i):
            return False
    return True


# ---------------------------------------------------------------- sum, mean, max, min

cdef bint whole(cnp.ndarray array, object axis, bint keepdims, object out):
    """The common case of a contiguous float tensor reduced to one number."""
    return (
        axis is None and not keepdims and out is None and is_float(cnp.PyArray_TYPE(array))
        and simple(array) and cnp.PyArray_SIZE(array) > 0)


cdef bint single(cnp.ndarray array, object axis, object out):
    """The other common case: one axis of a float tensor."""
    return (
        type(axis) is int and out is None and is_float(cnp.PyArray_TYPE(array))
        and cnp.PyArray_SIZE(array) > 0
        and -cnp.PyArray_NDIM(array) <= axis < cnp.PyArray_NDIM(array))


cdef inline int along(cnp.ndarray array, object axis):
    return axis + cnp.PyArray_NDIM(array) if axis < 0 else axis


def total(str function, object x, object axis, bint keepdims, object out, bint mean):
    """Sum or mean."""
    cdef cnp.ndarray array = bare(x), target, place
    cdef tuple shape, axes
    cdef double divisor
    cdef int typenum
    if array is None or not simple(array):
        array = plain_array(x, function, "x")
    if whole(array, axis, keepdims, out):
        target = new_array(0, NULL, cnp.PyArray_TYPE(array))
        reduce_flat(function, array, target, SUM, cnp.PyArray_SIZE(array) if mean else 1)
        return wrap(target)
    if single(array, axis, out):
        return wrap(reduce_axis(function, array, along(array, axis), keepdims, SUM, mean))
    shape = shape_of(array)
    axes = checked_axes(function, axis, len(shape))
    typenum = cnp.PyArray_TYPE(array)
    if not is_float(typenum):
        if not mean:
            with np.errstate(all="ignore"):
                summed = np.asarray(np.sum(array, axis=axes, keepdims=keepdims))
            target = result_place(function, out, shape_of(summed), summed.dtype.num)
            np.copyto(target, summed)
            return as_result(out, target)
        array = converted(array, cnp.NPY_DOUBLE)
        typenum = cnp.NPY_DOUBLE
    divisor = count_of(shape, axes) if mean else 1
    target = result_place(function, out, kept_shape(shape, axes, keepdims), typenum)
    if cnp.PyArray_SIZE(array) == 0:
        target.fill(NAN if mean and divisor == 0 else 0)
        return as_result(out, target)
    place = target
    if out is not None and overlap(array, target) != APART:
        place = fresh(shape_of(target), typenum)
    reduce_into(function, _identity, [array], shape,
                place if keepdims or not axes else place.reshape(kept_shape(shape, axes, True)),
                SUM, divisor, ())
    if place is not target:
        cnp.PyArray_CopyInto(target, place)
    return as_result(out, target)


def extreme(str function, object x, object axis, bint keepdims, object out, bint least):
    """Maximum or minimum."""
    cdef cnp.ndarray array = bare(x), target, place
    cdef tuple shape, axes
    cdef int typenum
    if array is None or not simple(array):
        array = plain_array(x, function, "x")
    if whole(array, axis, keepdims, out):
        target = new_array(0, NULL, cnp.PyArray_TYPE(array))
        reduce_flat(function, array, target, MIN if least else MAX, 1)
        return wrap(target)
    if single(array, axis, out):
        return wrap(reduce_axis(function, array, along(array, axis), keepdims, MIN if least else MAX, False))
    shape = shape_of(array)
    axes = checked_axes(function, axis, len(shape))
    typenum = cnp.PyArray_TYPE(array)
    refuse_empty(function, shape, axes)
    target = result_place(function, out, kept_shape(shape, axes, keepdims), typenum)
    if cnp.PyArray_SIZE(array) == 0:
        return as_result(out, target)
    if not is_float(typenum):
        reduced = np.minimum if least else np.maximum
        np.copyto(target, reduced.reduce(array, axis=axes, keepdims=keepdims))
        return as_result(out, target)
    place = target
    if out is not None and overlap(array, target) != APART:
        place = fresh(shape_of(target), typenum)
    reduce_into(function, _identity, [array], shape,
                place if keepdims or not axes else place.reshape(kept_shape(shape, axes, True)),
                MIN if least else MAX, 1.0, ())
    if place is not target:
        cnp.PyArray_CopyInto(target, place)
    return as_result(out, target)


cdef int refuse_empty(str function, tuple shape, tuple axes) except -1:
    if count_of(shape, axes) == 0 and 0 not in kept_shape(shape, axes, False):
        raise ValueError(
            f"{function}: the axes {axes} of shape {shape} hold no elements, and an empty slice "
            "has no extreme")
    return 0


def spread(str function, object grad_output, object input_shape, object axis, object out, bint mean):
    """Gradient of sum and mean: grad_output again along the reduced axes."""
    cdef object goal = shape_target(function, "input_shape", input_shape)
    cdef tuple shape = goal.shape
    cdef tuple axes = checked_axes(function, axis, len(shape))
    cdef cnp.ndarray g = slice_gradient(
        function, grad_output, shape, axes, goal.typenum), target, place
    cdef int typenum = cnp.PyArray_TYPE(g)
    cdef int final = goal.typenum if goal.typenum >= 0 else typenum
    target = result_place(function, out, shape, final)
    place = target
    if final != typenum or (out is not None and overlap(g, target) != APART):
        place = fresh(shape, typenum)
    if mean:
        divisor = np.full((), <double> count_of(shape, axes), np.float64 if typenum == cnp.NPY_DOUBLE else np.float32)
        map_into(function, _divide, [g, divisor], place, ())
    else:
        map_into(function, _identity, [g], place, ())
    if place is not target:
        with np.errstate(all="ignore"):
            np.copyto(target, place, casting="unsafe")
    return as_result(out, target)


# ---------------------------------------------------------------- tensors as (outer, n, inner)

cdef class Slices:
    """A contiguous tensor seen along its axes; permuted first where the axes are apart."""
    cdef cnp.ndarray array          # (outer, n, inner), C-contiguous
    cdef tuple order                # of the permuted axes, None where nothing moved
    cdef tuple shape                # before the reshape
    cdef Py_ssize_t outer, n, inner


cdef Slices sliced(cnp.ndarray array, tuple axes):
    cdef Slices s = Slices.__new__(Slices)
    cdef tuple shape = shape_of(array)
    cdef int ndim = len(shape), i
    s.n = count_of(shape, axes)
    s.outer = 1
    s.inner = 1
    if axes and <int> axes[-1] - <int> axes[0] == len(axes) - 1:
        s.order = None
        for i in range(<int> axes[0]):
            s.outer *= <Py_ssize_t> shape[i]
        for i in range(<int> axes[-1] + 1, ndim):
            s.inner *= <Py_ssize_t> shape[i]
    else:
        s.order = tuple([i for i in range(ndim) if i not in axes]) + axes
        array = array.transpose(s.order)
        s.outer = cnp.PyArray_SIZE(array) // s.n if s.n else 0
    s.shape = shape_of(array)
    s.array = three(array, s)
    return s


cdef cnp.ndarray three(cnp.ndarray array, Slices s):
    """An array of the same layout as (outer, n, inner)."""
    cdef cnp.npy_intp sizes[3]
    cdef cnp.PyArray_Dims dims
    if not cnp.PyArray_IS_C_CONTIGUOUS(array):
        array = np.ascontiguousarray(array)
    sizes[0] = s.outer
    sizes[1] = s.n
    sizes[2] = s.inner
    dims.ptr = sizes
    dims.len = 3
    return cnp.PyArray_Newshape(array, &dims, cnp.NPY_CORDER)


cdef cnp.ndarray like(cnp.ndarray array, Slices s):
    """Another operand of the same tensor, in the same view."""
    return three(array if s.order is None else array.transpose(s.order), s)


cdef int unsliced(cnp.ndarray result, Slices s, cnp.ndarray target) except -1:
    """Bring a result of the (outer, n, inner) view back to the tensor's own axes."""
    cdef cnp.ndarray back = result.reshape(s.shape)
    if s.order is not None:
        back = back.transpose(np.argsort(s.order))
    with np.errstate(all="ignore"):
        np.copyto(target, back, casting="same_kind")
    return 0


cdef int team_of(Slices s, double cost) noexcept:
    cdef int team = team_for(cost * s.outer * s.n * s.inner)
    note_team(team)
    return team


cdef bint one_slice(Slices s) noexcept:
    """Too few slices to share out among threads, yet work enough for them.

    By size alone: the number of threads must not choose the order of a sum.
    """
    return s.outer * ((s.inner + 127) // 128) < 2 and s.n * s.inner > LONG_SLICE


cdef cnp.ndarray slice_place(object out, cnp.ndarray target, Slices s, int typenum, list inputs):
    """A contiguous (outer, n, inner) array to compute into: the target's own memory where it can."""
    cdef cnp.ndarray x
    if s.order is None and cnp.PyArray_TYPE(target) == typenum and simple(target):
        for x in inputs:
            if out is not None and overlap(x, target) != APART:
                return fresh((s.outer, s.n, s.inner), typenum)
        return three(target, s)
    return fresh((s.outer, s.n, s.inner), typenum)


# ---------------------------------------------------------------- softmax

def softmax(str function, object x, object axis, object out, bint log):
    """softmax or log-softmax along one axis, several or all."""
    cdef cnp.ndarray array = bare(x), target, place
    cdef Py_ssize_t row = small_row(array, axis) if out is None else 0
    if row:
        target = same_as(array)
        (<SoftmaxRows> _softmax_rows[cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE])(
            cnp.PyArray_DATA(array), cnp.PyArray_DATA(target), cnp.PyArray_SIZE(array) // row, row, log)
        note_team(1)
        return wrap(target)
    array = floating_input(function, x, True)
    cdef tuple shape = shape_of(array), axes = checked_axes(function, axis, len(shape))
    cdef int typenum = cnp.PyArray_TYPE(array), work = computed(typenum)
    cdef Slices s
    target = result_place(function, out, shape, typenum)
    if cnp.PyArray_SIZE(array) == 0:
        return as_result(out, target)
    s = sliced(converted(array, work), axes)
    place = slice_place(out, target, s, work, [array])
    if one_slice(s):
        softmax_in_parts(function, s.array, place, log)
    else:
        _softmax[work == cnp.NPY_DOUBLE](s.array, place, log, team_of(s, SOFTMAX_NS))
    if not shares(place, target):
        unsliced(converted(place, typenum), s, target)
    return as_result(out, target)


cdef bint shares(cnp.ndarray place, cnp.ndarray target) noexcept:
    return cnp.PyArray_DATA(place) == cnp.PyArray_DATA(target)


cdef int softmax_in_parts(str function, cnp.ndarray x, cnp.ndarray y, bint log) except -1:
    """One long slice: four passes, each shared out among the threads."""
    cdef tuple shape = shape_of(x), kept = (shape[0], 1, shape[2])
    cdef int typenum = cnp.PyArray_TYPE(x)
    cdef cnp.ndarray top = fresh(kept, typenum), total = fresh(kept, typenum)
    reduce_into(function, _identity, [x], shape, top, MAX, 1.0, ())
    map_into(function, _softmax_shift, [top], top, ())
    if log:
        reduce_into(function, _exp_shifted, [x, top], shape, total, SUM, 1.0, ())
        map_into(function, _log_softmax_finish, [x, top, total], y, ())
    else:
        map_into(function, _exp_shifted, [x, top], y, ())
        reduce_into(function, _identity, [y], shape, total, SUM, 1.0, ())
        map_into(function, _divide, [y, total], y, ())
    return 0


def softmax_backward(str function, object grad_output, object output, object axis, object out, bint log):
    cdef cnp.ndarray g = bare(grad_output), y = bare(output), target, place, gs, total
    cdef int typenum, final, work
    cdef Py_ssize_t row = small_row(y, axis) if out is None else 0
    if row and alike(g, y):
        target = same_as(y)
        (<BackwardRows> _softmax_rows_backward[cnp.PyArray_TYPE(y) == cnp.NPY_DOUBLE])(
            cnp.PyArray_DATA(g), cnp.PyArray_DATA(y), cnp.PyArray_DATA(target),
            cnp.PyArray_SIZE(y) // row, row, log)
        note_team(1)
        return wrap(target)
    g = upstream(function, grad_output)
    y = plain_array(output, function, "output")
    if shape_of(g) != shape_of(y):
        raise ValueError(
            f"{function}: grad_output has shape {shape_of(g)}, output has shape {shape_of(y)}")
    cdef tuple axes = checked_axes(function, axis, cnp.PyArray_NDIM(y))
    final = cnp.PyArray_TYPE(y) if is_float(cnp.PyArray_TYPE(y)) else cnp.PyArray_TYPE(g)
    typenum = np.result_type(g.dtype, y.dtype).num if cnp.PyArray_TYPE(y) != cnp.PyArray_TYPE(g) else final
    work = computed(typenum)
    target = result_place(function, out, shape_of(y), final)
    if cnp.PyArray_SIZE(y) == 0:
        return as_result(out, target)
    cdef Slices s = sliced(converted(y, work), axes)
    gs = like(converted(g, work), s)
    place = slice_place(out, target, s, work, [g, y])
    if one_slice(s):
        total = fresh((s.outer, 1, s.inner), work)
        if log:
            reduce_into(function, _identity, [gs], shape_of(gs), total, SUM, 1.0, ())
        else:
            reduce_into(function, _multiply, [gs, s.array], shape_of(gs), total, SUM, 1.0, ())
        map_into(function, _log_softmax_grad if log else _softmax_grad, [gs, s.array, total], place, ())
    else:
        _softmax_backward[work == cnp.NPY_DOUBLE](
            gs, s.array, place, log, team_of(s, SOFTMAX_NS if log else PASS_NS))
    if not shares(place, target):
        unsliced(converted(place, final), s, target)
    return as_result(out, target)


# ---------------------------------------------------------------- max and min: gradient, position

def extreme_backward(str function, object grad_output, object x, object axis, object out, bint least):
    cdef cnp.ndarray array = bare(x), g = bare(grad_output), target, place, flat
    cdef Py_ssize_t row = small_row(array, axis) if out is None else 0
    if row and one_per_row(g, array, axis):
        target = same_as(array)
        (<BackwardRows> _extreme_rows_backward[cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE])(
            cnp.PyArray_DATA(g), cnp.PyArray_DATA(array), cnp.PyArray_DATA(target),
            cnp.PyArray_SIZE(array) // row, row, least)
        note_team(1)
        return wrap(target)
    array = plain_array(x, function, "x")
    cdef tuple shape = shape_of(array), axes = checked_axes(function, axis, len(shape))
    cdef int final, typenum, work
    g = slice_gradient(function, grad_output, shape, axes, cnp.PyArray_TYPE(array))
    refuse_empty(function, shape, axes)
    final = cnp.PyArray_TYPE(array) if is_float(cnp.PyArray_TYPE(array)) else cnp.PyArray_TYPE(g)
    typenum = np.result_type(g.dtype, array.dtype).num
    work = computed(typenum)
    target = result_place(function, out, shape, final)
    if cnp.PyArray_SIZE(array) == 0:
        return as_result(out, target)
    cdef Slices s = sliced(converted(array, work), axes)
    flat = np.ascontiguousarray(converted(g, work)).reshape(s.outer, s.inner)
    place = slice_place(out, target, s, work, [g, array])
    _extreme_backward[work == cnp.NPY_DOUBLE](s.array, flat, place, least, team_of(s, PASS_NS))
    if not shares(place, target):
        unsliced(converted(place, final), s, target)
    return as_result(out, target)


def position(str function, object x, object axis, bint keepdims, object out, bint least):
    """argmax or argmin: the first place of the extreme, NaN first of all."""
    cdef cnp.ndarray array = bare(x), target, place
    cdef Py_ssize_t row = small_row(array, axis) if out is None and not keepdims else 0
    if row:
        target = row_results(array, axis, cnp.NPY_INT64)
        (<SoftmaxRows> _arg_rows[cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE])(
            cnp.PyArray_DATA(array), cnp.PyArray_DATA(target), cnp.PyArray_SIZE(array) // row, row, least)
        note_team(1)
        return wrap(target)
    array = plain_array(x, function, "x")
    cdef tuple shape = shape_of(array), axes
    cdef int typenum = cnp.PyArray_TYPE(array), work
    if axis is not None and (isinstance(axis, (tuple, list)) or not hasattr(axis, "__index__")):
        raise TypeError(f"{function}: axis must be an int or None, got {axis!r}")
    axes = checked_axes(function, axis, len(shape))
    refuse_empty(function, shape, axes)
    target = result_place(function, out, kept_shape(shape, axes, keepdims), cnp.NPY_INT64)
    if cnp.PyArray_SIZE(target) == 0:
        return as_result(out, target)
    if not is_float(typenum):
        found = np.argmin(array, axis=axis) if least else np.argmax(array, axis=axis)
        np.copyto(target, np.reshape(found, shape_of(target)))
        return as_result(out, target)
    work = computed(typenum)
    cdef Slices s = sliced(converted(array, work), axes)
    place = fresh((s.outer, s.inner), cnp.NPY_LONGLONG)
    _arg[work == cnp.NPY_DOUBLE](s.array, place, least, team_of(s, PASS_NS))
    np.copyto(target, place.reshape(shape_of(target)))
    return as_result(out, target)


def truth(str function, object x, object axis, bint keepdims, object out, bint every):
    """any or all; every number but zero is true, NaN too."""
    cdef cnp.ndarray array = plain_array(x, function, "x"), target
    cdef tuple shape = shape_of(array), axes = checked_axes(function, axis, len(shape))
    target = result_place(function, out, kept_shape(shape, axes, keepdims), cnp.NPY_BOOL)
    joined = np.logical_and if every else np.logical_or
    np.copyto(target, joined.reduce(array.astype(bool, copy=False), axis=axes, keepdims=keepdims))
    return as_result(out, target)


# ---------------------------------------------------------------- variance

cdef double degrees(str function, tuple shape, tuple axes, object ddof) except? -1:
    """max(n − ddof, 0), the divisor of a variance."""
    if isinstance(ddof, (str, bytes)) or not isinstance(ddof, (int, float, np.number)):
        raise TypeError(f"{function}: ddof must be a number, got {ddof!r}")
    cdef double freedom = <double> count_of(shape, axes) - <double> ddof
    if freedom != freedom:
        raise ValueError(f"{function}: ddof must not be NaN")
    return freedom if freedom > 0 else 0


cdef cnp.ndarray mean_of(str function, cnp.ndarray array, tuple axes, int work):
    """The mean along axes with the axes kept."""
    cdef tuple shape = shape_of(array)
    cdef cnp.ndarray mean = fresh(kept_shape(shape, axes, True), work)
    reduce_into(function, _identity, [array], shape, mean, SUM, count_of(shape, axes), ())
    return mean


def variance(str function, object x, object axis, bint keepdims, object ddof, object out, bint root):
    """Variance or standard deviation."""
    cdef cnp.ndarray array = bare(x), target, place, mean, squares, plain
    cdef Py_ssize_t row = small_row(array, axis) if out is None and not keepdims and type(ddof) is int else 0
    if row:
        target = row_results(array, axis, cnp.PyArray_TYPE(array))
        (<VarianceRows> _variance_rows[cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE])(
            cnp.PyArray_DATA(array), cnp.PyArray_DATA(target), cnp.PyArray_SIZE(array) // row, row,
            max(<double> row - <double> ddof, 0), root)
        note_team(1)
        return wrap(target)
    array = floating_input(function, x, False)
    cdef tuple shape = shape_of(array), axes = checked_axes(function, axis, len(shape)), kept
    cdef int typenum = cnp.PyArray_TYPE(array), work = computed(typenum)
    cdef double divisor = degrees(function, shape, axes, ddof)
    cdef Slices s
    target = result_place(function, out, kept_shape(shape, axes, keepdims), typenum)
    if cnp.PyArray_SIZE(array) == 0:
        target.fill(NAN)
        return as_result(out, target)
    kept = kept_shape(shape, axes, True)
    if contiguous_rows(array, axes) and work == typenum:
        s = sliced(array, axes)
        place = fresh((s.outer,), work)
        if not one_slice(s):
            _variance[work == cnp.NPY_DOUBLE](
                s.array.reshape(s.outer, s.n), place, divisor, team_of(s, 2 * PASS_NS))
            if root:
                map_into(function, _root, [place], place, ())
            np.copyto(target, place.reshape(shape_of(target)))
            return as_result(out, target)
    mean = mean_of(function, array, axes, work)
    squares = fresh(kept, work)
    plain = fresh(kept, work)
    reduce_into(function, _square_deviation, [array, mean], shape, squares, SUM, 1.0, ())
    reduce_into(function, _subtract, [array, mean], shape, plain, SUM, 1.0, ())
    map_into(function, _variance_finish, [squares, plain], squares, (count_of(shape, axes), divisor))
    if root:
        map_into(function, _root, [squares], squares, ())
    np.copyto(target, converted(squares, typenum).reshape(shape_of(target)))
    return as_result(out, target)


cdef bint contiguous_rows(cnp.ndarray array, tuple axes):
    """Whether the axes are the last ones of a C-contiguous array."""
    return bool(axes) and cnp.PyArray_IS_C_CONTIGUOUS(array) and (
        <int> axes[0] == cnp.PyArray_NDIM(array) - len(axes))


def variance_backward(
    str function, object grad_output, object x, object output, object axis, object ddof, object out,
    bint root,
):
    cdef cnp.ndarray given = plain_array(x, function, "x"), array, g, target, place, saved
    cdef tuple shape = shape_of(given), axes = checked_axes(function, axis, len(shape))
    cdef int final, typenum, work
    cdef double divisor = degrees(function, shape, axes, ddof)
    g = slice_gradient(function, grad_output, shape, axes, cnp.PyArray_TYPE(given))
    final = cnp.PyArray_TYPE(given) if is_float(cnp.PyArray_TYPE(given)) else cnp.PyArray_TYPE(g)
    typenum = np.result_type(g.dtype, given.dtype).num
    if root:
        saved = slice_output(function, output, shape, axes)
        typenum = np.result_type(cnp.PyArray_DescrFromType(typenum), saved.dtype).num
        saved = converted(saved, typenum)
    work = computed(typenum)
    target = result_place(function, out, shape, final)
    if cnp.PyArray_SIZE(given) == 0:
        return as_result(out, target)
    array = converted(given, typenum)
    g = converted(g, typenum)
    place = target
    if final != typenum or (out is not None and (
            overlap(g, target) != APART or overlap(array, target) != APART)):
        place = fresh(shape, typenum)
    mean = mean_of(function, array, axes, work)
    if root:
        map_into(function, _std_grad, [g, array, mean, saved], place, (divisor, 1e-10))
    else:
        map_into(function, _variance_grad, [g, array, mean], place, (divisor,))
    if place is not target:
        with np.errstate(all="ignore"):
            np.copyto(target, place, casting="unsafe")
    return as_result(out, target)


cdef cnp.ndarray slice_output(str function, object output, tuple shape, tuple axes):
    """The saved output of a reduction, with or without the kept axes, in the keepdims shape."""
    cdef cnp.ndarray saved = plain_array(output, function, "output")
    cdef tuple kept = kept_shape(shape, axes, True)
    if shape_of(saved) not in (kept, kept_shape(shape, axes, False)):
        raise ValueError(
            f"{function}: output has shape {shape_of(saved)}; for an input of shape {shape} and "
            f"axis {axes} it must be {kept_shape(shape, axes, False)} or {kept}")
    return saved.reshape(kept)


# ---------------------------------------------------------------- log-sum-exp

def logsumexp(str function, object x, object axis, bint keepdims, object out):
    cdef cnp.ndarray array = bare(x), target, top, shift, total
    cdef Py_ssize_t row = small_row(array, axis) if out is None and not keepdims else 0
    if row:
        target = row_results(array, axis, cnp.PyArray_TYPE(array))
        (<LogsumexpRows> _logsumexp_rows[cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE])(
            cnp.PyArray_DATA(array), cnp.PyArray_DATA(target), cnp.PyArray_SIZE(array) // row, row)
        note_team(1)
        return wrap(target)
    array = floating_input(function, x, True)
    cdef tuple shape = shape_of(array), axes = checked_axes(function, axis, len(shape)), kept
    cdef int typenum = cnp.PyArray_TYPE(array), work = computed(typenum)
    target = result_place(function, out, kept_shape(shape, axes, keepdims), typenum)
    if cnp.PyArray_SIZE(array) == 0:
        target.fill(-np.inf)
        return as_result(out, target)
    kept = kept_shape(shape, axes, True)
    top = fresh(kept, work)
    shift = fresh(kept, work)
    total = fresh(kept, work)
    reduce_into(function, _identity, [array], shape, top, MAX, 1.0, ())
    map_into(function, _finite_shift, [top], shift, ())
    reduce_into(function, _exp_shifted, [array, shift], shape, total, SUM, 1.0, ())
    map_into(function, _add_log, [total, top], total, ())
    np.copyto(target, converted(total, typenum).reshape(shape_of(target)))
    return as_result(out, target)


def logsumexp_backward(str function, object grad_output, object x, object output, object axis, object out):
    cdef cnp.ndarray given = plain_array(x, function, "x"), g, saved, target, place
    cdef tuple shape = shape_of(given), axes = checked_axes(function, axis, len(shape))
    cdef int final, typenum
    g = slice_gradient(function, grad_output, shape, axes, cnp.PyArray_TYPE(given))
    saved = slice_output(function, output, shape, axes)
    final = cnp.PyArray_TYPE(given) if is_float(cnp.PyArray_TYPE(given)) else cnp.PyArray_TYPE(g)
    typenum = np.result_type(g.dtype, given.dtype, saved.dtype).num
    target = result_place(function, out, shape, final)
    if cnp.PyArray_SIZE(given) == 0:
        return as_result(out, target)
    place = target
    if final != typenum or (out is not None and (
            overlap(g, target) != APART or overlap(given, target) != APART
            or overlap(saved, target) != APART)):
        place = fresh(shape, typenum)
    map_into(function, _logsumexp_grad,
             [converted(g, typenum), converted(given, typenum), converted(saved, typenum)], place, ())
    if place is not target:
        with np.errstate(all="ignore"):
            np.copyto(target, place, casting="unsafe")
    return as_result(out, target)
