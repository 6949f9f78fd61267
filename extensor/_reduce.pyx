"""The apply layer of functions along axes: reductions, softmax and their gradients.

Sums, maxima and everything else that joins values in any order go through the reduce driver with
any strides and any set of axes. Functions that need a whole slice at once (softmax, the gradients
of max and min, arg-max) see the tensor as (outer, n, inner).
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport NAN

from extensor._apply cimport (
    APART, Gradient, as_result, bare, checked_out, convert_into, converted, float_for, is_float, map_into,
    note_team, overlap, pointer, reduce_axis,
    reduce_flat, reduce_into, shape_of, simple, team_for, upstream,
)
from extensor._kernels.types cimport (
    ABSENT, EACH, MAX, MAX_AXES, MIN, PLACES, SUM, WHOLE, Along, AlongKernel, HalvesDriver, Roles,
)
from extensor._memory cimport new_array
from extensor._tensor cimport plain_array, wrap

from extensor import _cpu
from extensor._apply import IDENTITY, shape_target

cnp.import_array()

_rows = _cpu.kernels("reduction")
_simple = _cpu.kernels("arithmetic")
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

# A function along slices: its kernels for float and double, and what its operands hold.
ctypedef struct Function:
    AlongKernel call[2]
    Roles roles

cdef Function _softmax
cdef Function _softmax_backward
cdef Function _extreme_backward
cdef Function _arg
cdef Function _variance
cdef Function _long_variance
cdef Function _variance_backward
cdef Function _long_variance_backward
cdef Function _logsumexp
cdef Function _long_logsumexp
cdef Function _logsumexp_backward
cdef Function _spread
cdef Function _tree_rows
cdef Function _truth


cdef int load(str name, Function* to, int y=EACH, int g=ABSENT, int saved=ABSENT) except -1:
    cdef int i
    for i in range(2):
        to.call[i] = <AlongKernel> pointer(_rows[name][i])
    to.roles.x, to.roles.y, to.roles.g, to.roles.saved = WHOLE, y, g, saved
    return 0


load("softmax", &_softmax, WHOLE)
load("softmax_backward", &_softmax_backward, WHOLE, WHOLE)
load("extreme_backward", &_extreme_backward, WHOLE, EACH)
load("arg", &_arg, PLACES)
load("variance", &_variance)
load("long_variance", &_long_variance)
load("variance_backward", &_variance_backward, WHOLE, EACH, EACH)
load("long_variance_backward", &_long_variance_backward, WHOLE, EACH, EACH)
load("logsumexp", &_logsumexp)
load("long_logsumexp", &_long_logsumexp)
load("logsumexp_backward", &_logsumexp_backward, WHOLE, EACH, EACH)
load("spread", &_spread)
load("tree_rows", &_tree_rows)
load("truth", &_truth)

# Nanoseconds an element on one core, float32, for the decision to use threads (AVX-512).
cdef double SOFTMAX_NS = 0.25
cdef double PASS_NS = 0.12
cdef double READ_NS = 0.06
cdef double FILL_NS = 0.04
cdef double BYTE_NS = 0.015
cdef double NOGIL_NS = 2000.0           # as in the apply layer
cdef HalvesDriver run_halves = <HalvesDriver> pointer(_cpu.kernels("halves")["along"])
cdef enum:
    LONG_SLICE = 1 << 16    # elements of one slice from which it is worth cutting up
    PART = 1024             # rows of a column that the kernels take in one piece
    NARROW = 8              # columns below which the drivers do better: they put rows side by side


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


# ---------------------------------------------------------------- contiguous tensors, along one axis or all

cdef bint cut_axis(int ndim, const Py_ssize_t* shape, object axis, Along* a) noexcept:
    """See a shape as (outer, n, inner) along an axis; False where axis is no plain int or None."""
    cdef int i, along = -1
    if axis is not None:
        if type(axis) is not int or not -ndim <= axis < ndim:
            return False
        along = axis + ndim if axis < 0 else axis
    a.outer = 1
    a.n = 1
    a.inner = 1
    for i in range(ndim):
        if axis is None or i == along:
            a.n *= shape[i]
        elif i < along:
            a.outer *= shape[i]
        else:
            a.inner *= shape[i]
    return a.outer * a.n * a.inner > 0


cdef bint cut_array(cnp.ndarray array, object axis, Along* a) noexcept:
    """The same for a contiguous float32 or float64 tensor; False for any other."""
    cdef int typenum
    if array is None:
        return False
    typenum = cnp.PyArray_TYPE(array)
    if (typenum != cnp.NPY_FLOAT and typenum != cnp.NPY_DOUBLE) or not simple(array):
        return False
    a.x = cnp.PyArray_DATA(array)
    return cut_axis(cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), axis, a)


cdef bint cut_halves(cnp.ndarray array, object axis, Along* a) noexcept:
    """The same for a contiguous float16 tensor whose slices are not too long to be widened at once."""
    if array is None or cnp.PyArray_TYPE(array) != cnp.NPY_FLOAT16 or not simple(array):
        return False
    a.x = cnp.PyArray_DATA(array)
    return cut_axis(cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), axis, a) and (
        a.n <= LONG_SLICE)


cdef bint cut_axes(cnp.ndarray array, tuple axes, Along* a):
    """The same along neighbouring axes."""
    cdef int i, first, last
    if not axes or not cut_array(array, None, a):
        return False
    first, last = axes[0], axes[-1]
    if last - first != len(axes) - 1:
        return False
    a.n = 1
    for i in range(cnp.PyArray_NDIM(array)):
        if i < first:
            a.outer *= cnp.PyArray_DIM(array, i)
        elif i > last:
            a.inner *= cnp.PyArray_DIM(array, i)
        else:
            a.n *= cnp.PyArray_DIM(array, i)
    return True


cdef bint one_slice(const Along* a) noexcept:
    """Too few slices to share out among threads, yet work enough for them.

    By size alone: the number of threads must not choose the order of a sum.
    """
    return a.outer * ((a.inner + 127) // 128) < 2 and a.n * a.inner > LONG_SLICE


cdef bint well_shaped(const Along* a) noexcept:
    """Rows, or columns enough for the kernels along slices (or a call too small to matter)."""
    return a.inner == 1 or a.inner >= NARROW or a.outer * a.n * a.inner <= PART


cdef int run(str function, Function* along, Along* a, int typenum, double cost) except -1:
    cdef AlongKernel call = along.call[typenum == cnp.NPY_DOUBLE]
    cdef int status
    cost *= <double> (a.outer * a.n * a.inner) * (2 if typenum == cnp.NPY_DOUBLE else 1)
    a.threads = team_for(cost)
    if typenum == cnp.NPY_FLOAT16:
        with nogil:
            status = run_halves(a, call, &along.roles)
    elif cost > NOGIL_NS:
        with nogil:
            status = call(a, NULL)
    else:
        status = call(a, NULL)
    note_team(a.threads)
    if status < 0:
        raise MemoryError(f"{function}: no memory for scratch")
    return 0


cdef cnp.ndarray slice_results(cnp.ndarray array, object axis, bint keepdims, int typenum):
    """An array for one result per slice."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef int i, count = 0, ndim = cnp.PyArray_NDIM(array), along = -1
    if axis is not None:
        along = axis + ndim if axis < 0 else axis
    for i in range(ndim):
        if axis is not None and i != along:
            sizes[count] = cnp.PyArray_DIM(array, i)
            count += 1
        elif keepdims:
            sizes[count] = 1
            count += 1
    return new_array(count, sizes, typenum)


cdef inline cnp.ndarray same_as(cnp.ndarray array):
    return new_array(cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), cnp.PyArray_TYPE(array))


cdef bint alike(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Two contiguous operands of one dtype and shape."""
    cdef int axis
    if (a is None or cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(b) or not simple(a)
            or cnp.PyArray_NDIM(a) != cnp.PyArray_NDIM(b)):
        return False
    for axis in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, axis) != cnp.PyArray_DIM(b, axis):
            return False
    return True


cdef bint one_per_slice(cnp.ndarray g, int typenum, int ndim, const Py_ssize_t* shape, object axis) noexcept:
    """Whether a contiguous tensor has the shape of the results, with or without the kept axes."""
    cdef int i, k = 0, along = -1
    cdef bint kept
    if g is None or cnp.PyArray_TYPE(g) != typenum or not simple(g):
        return False
    if axis is not None:
        along = axis + ndim if axis < 0 else axis
    kept = cnp.PyArray_NDIM(g) == ndim
    if not kept and cnp.PyArray_NDIM(g) != (0 if axis is None else ndim - 1):
        return False
    for i in range(ndim):
        if axis is None or i == along:
            if kept and cnp.PyArray_DIM(g, i) != 1:
                return False
            k += kept
        else:
            if cnp.PyArray_DIM(g, k) != shape[i]:
                return False
            k += 1
    return True


cdef bint results_of(cnp.ndarray g, cnp.ndarray array, object axis) noexcept:
    return one_per_slice(g, cnp.PyArray_TYPE(array), cnp.PyArray_NDIM(array),
                         <Py_ssize_t*> cnp.PyArray_DIMS(array), axis)


cdef cnp.ndarray as_three(cnp.ndarray array, const Along* a):
    """A contiguous array as (outer, n, inner)."""
    cdef cnp.npy_intp sizes[3]
    cdef cnp.PyArray_Dims dims
    sizes[0] = a.outer
    sizes[1] = a.n
    sizes[2] = a.inner
    dims.ptr = sizes
    dims.len = 3
    return cnp.PyArray_Newshape(array, &dims, cnp.NPY_CORDER)


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
    if around(array, axes):
        np.copyto(target, total_around(function, array, axes, divisor).reshape(shape_of(target)))
        return as_result(out, target)
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


cdef bint around(cnp.ndarray array, tuple axes):
    """Whether the axes are the first and the last ones of a contiguous tensor, with some between."""
    cdef int ndim = cnp.PyArray_NDIM(array), count = len(axes), first = 0
    if (count < 2 or count == ndim or cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT16
            or not simple(array) or cnp.PyArray_SIZE(array) == 0):
        return False
    while first < count and <int> axes[first] == first:
        first += 1
    return 0 < first < count and <int> axes[first] == ndim - (count - first) and (
        count_of(shape_of(array), axes[first:]) >= 32)


cdef cnp.ndarray total_around(str function, cnp.ndarray array, tuple axes, double divisor):
    """Such a sum: the last axes first, which lie together in memory, then a tree over the others."""
    cdef tuple shape = shape_of(array)
    cdef int first = 0, typenum = cnp.PyArray_TYPE(array)
    cdef Along a
    cdef cnp.ndarray sums
    while <int> axes[first] == first:
        first += 1
    a.outer = count_of(shape, axes[:first])
    a.n = count_of(shape, axes[first:])
    a.inner = cnp.PyArray_SIZE(array) // (a.outer * a.n)
    sums = fresh((a.outer * a.inner, 1), typenum)
    reduce_into(function, _identity, [array.reshape(a.outer * a.inner, a.n)], (a.outer * a.inner, a.n),
                sums, SUM, 1.0, ())
    a.y = cnp.PyArray_DATA(sums)
    a.n = 1
    a.divisor = divisor
    _tree_rows.call[typenum == cnp.NPY_DOUBLE](&a, NULL)
    return sums[:a.inner]


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


cdef object quick_spread(str function, object grad_output, object input_shape, object axis, bint mean):
    """The common case of contiguous tensors and one axis or all; None for any other."""
    cdef cnp.ndarray g = bare(grad_output), like, target
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef int i, ndim, typenum
    cdef Along a
    if g is None or not is_float(cnp.PyArray_TYPE(g)) or cnp.PyArray_TYPE(g) == cnp.NPY_FLOAT16:
        return None
    typenum = cnp.PyArray_TYPE(g)
    if type(input_shape) is tuple:
        ndim = len(input_shape)
        if ndim > MAX_AXES:
            return None
        for i in range(ndim):
            if type(input_shape[i]) is not int or input_shape[i] < 0:
                return None
            sizes[i] = input_shape[i]
    else:
        like = bare(input_shape)
        if like is None or cnp.PyArray_TYPE(like) != typenum:
            return None
        ndim = cnp.PyArray_NDIM(like)
        for i in range(ndim):
            sizes[i] = cnp.PyArray_DIM(like, i)
    if not cut_axis(ndim, sizes, axis, &a) or not well_shaped(&a):
        return None
    if not one_per_slice(g, typenum, ndim, sizes, axis):
        return None
    target = new_array(ndim, sizes, typenum)
    a.g = cnp.PyArray_DATA(g)
    a.y = cnp.PyArray_DATA(target)
    a.divisor = a.n if mean else 1
    run(function, &_spread, &a, typenum, FILL_NS)
    return wrap(target)


def spread(str function, object grad_output, object input_shape, object axis, object out, bint mean):
    """Gradient of sum and mean: grad_output again along the reduced axes."""
    cdef object quick = quick_spread(function, grad_output, input_shape, axis, mean) if out is None else None
    if quick is not None:
        return quick
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
        convert_into(target, place)
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
    cdef Along a
    if not cnp.PyArray_IS_C_CONTIGUOUS(array):
        array = np.ascontiguousarray(array)
    fill(s, &a)
    return as_three(array, &a)


cdef void fill(Slices s, Along* a) noexcept:
    a.outer = s.outer
    a.n = s.n
    a.inner = s.inner


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
    cdef Along a
    a.flag = log
    if out is None and (cut_array(array, axis, &a) and not one_slice(&a) or cut_halves(array, axis, &a)):
        target = same_as(array)
        a.y = cnp.PyArray_DATA(target)
        run(function, &_softmax, &a, cnp.PyArray_TYPE(array), SOFTMAX_NS)
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
    fill(s, &a)
    if one_slice(&a):
        softmax_in_parts(function, s.array, place, log)
    else:
        a.x = cnp.PyArray_DATA(s.array)
        a.y = cnp.PyArray_DATA(place)
        run(function, &_softmax, &a, work, SOFTMAX_NS)
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
    cdef double cost = SOFTMAX_NS if log else PASS_NS
    cdef Along a
    a.flag = log
    if (out is None and (cut_array(y, axis, &a) and not one_slice(&a) or cut_halves(y, axis, &a))
            and alike(g, y)):
        target = same_as(y)
        a.g = cnp.PyArray_DATA(g)
        a.y = cnp.PyArray_DATA(target)
        run(function, &_softmax_backward, &a, cnp.PyArray_TYPE(y), cost)
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
    fill(s, &a)
    if one_slice(&a):
        total = fresh((s.outer, 1, s.inner), work)
        if log:
            reduce_into(function, _identity, [gs], shape_of(gs), total, SUM, 1.0, ())
        else:
            reduce_into(function, _multiply, [gs, s.array], shape_of(gs), total, SUM, 1.0, ())
        map_into(function, _log_softmax_grad if log else _softmax_grad, [gs, s.array, total], place, ())
    else:
        a.g = cnp.PyArray_DATA(gs)
        a.x = cnp.PyArray_DATA(s.array)
        a.y = cnp.PyArray_DATA(place)
        run(function, &_softmax_backward, &a, work, cost)
    if not shares(place, target):
        unsliced(converted(place, final), s, target)
    return as_result(out, target)


# ---------------------------------------------------------------- max and min: gradient, position

def extreme_backward(str function, object grad_output, object x, object axis, object out, bint least):
    cdef cnp.ndarray array = bare(x), g = bare(grad_output), target, place, flat
    cdef Along a
    a.flag = least
    if (out is None and (cut_array(array, axis, &a) or cut_halves(array, axis, &a))
            and results_of(g, array, axis)):
        target = same_as(array)
        a.g = cnp.PyArray_DATA(g)
        a.y = cnp.PyArray_DATA(target)
        run(function, &_extreme_backward, &a, cnp.PyArray_TYPE(array), PASS_NS)
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
    fill(s, &a)
    a.x = cnp.PyArray_DATA(s.array)
    a.g = cnp.PyArray_DATA(flat)
    a.y = cnp.PyArray_DATA(place)
    run(function, &_extreme_backward, &a, work, PASS_NS)
    if not shares(place, target):
        unsliced(converted(place, final), s, target)
    return as_result(out, target)


def position(str function, object x, object axis, bint keepdims, object out, bint least):
    """argmax or argmin: the first place of the extreme, NaN first of all."""
    cdef cnp.ndarray array = bare(x), target, place
    cdef Along a
    a.flag = least
    if out is None and (cut_array(array, axis, &a) or cut_halves(array, axis, &a)):
        target = slice_results(array, axis, keepdims, cnp.NPY_INT64)
        a.y = cnp.PyArray_DATA(target)
        run(function, &_arg, &a, cnp.PyArray_TYPE(array), READ_NS if a.inner == 1 else PASS_NS)
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
    fill(s, &a)
    a.x = cnp.PyArray_DATA(s.array)
    a.y = cnp.PyArray_DATA(place)
    run(function, &_arg, &a, work, PASS_NS)
    np.copyto(target, place.reshape(shape_of(target)))
    return as_result(out, target)


def truth(str function, object x, object axis, bint keepdims, object out, bint every):
    """any or all; every number but zero is true, NaN too."""
    cdef cnp.ndarray array = bare(x), target
    cdef Along a
    if (out is None and array is not None and cnp.PyArray_TYPE(array) == cnp.NPY_BOOL and simple(array)
            and cut_axis(cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), axis, &a)):
        target = slice_results(array, axis, keepdims, cnp.NPY_BOOL)
        a.x = cnp.PyArray_DATA(array)
        a.y = cnp.PyArray_DATA(target)
        a.flag = every
        run(function, &_truth, &a, cnp.NPY_BOOL, BYTE_NS)
        return wrap(target)
    array = plain_array(x, function, "x")
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


cdef int variance_along(str function, Along* a, cnp.ndarray array, cnp.ndarray place) except -1:
    """The variance (or its root, by the flag) of a contiguous array along (outer, n, inner)."""
    cdef cnp.ndarray mean
    cdef int typenum = cnp.PyArray_TYPE(array)
    a.x = cnp.PyArray_DATA(array)
    a.y = cnp.PyArray_DATA(place)
    if one_piece(a):
        return run(function, &_variance, a, typenum, PASS_NS)
    mean = fresh((a.outer, 1, a.inner), typenum)
    reduce_into(function, _identity, [as_three(array, a)], (a.outer, a.n, a.inner), mean, SUM, a.n, ())
    a.saved = cnp.PyArray_DATA(mean)
    return run(function, &_long_variance, a, typenum, READ_NS)


def variance(str function, object x, object axis, bint keepdims, object ddof, object out, bint root):
    """Variance or standard deviation."""
    cdef cnp.ndarray array = bare(x), target, place, mean, squares, plain
    cdef Along a
    a.flag = root
    if (out is None and type(ddof) is int and cut_array(array, axis, &a) and well_shaped(&a)):
        a.divisor = max(<double> a.n - <double> ddof, 0)
        target = slice_results(array, axis, keepdims, cnp.PyArray_TYPE(array))
        variance_along(function, &a, array, target)
        return wrap(target)
    if out is None and type(ddof) is int and cut_halves(array, axis, &a) and one_piece(&a):
        a.divisor = max(<double> a.n - <double> ddof, 0)
        target = slice_results(array, axis, keepdims, cnp.NPY_FLOAT16)
        a.y = cnp.PyArray_DATA(target)
        run(function, &_variance, &a, cnp.NPY_FLOAT16, PASS_NS)
        return wrap(target)
    array = floating_input(function, x, False)
    cdef tuple shape = shape_of(array), axes = checked_axes(function, axis, len(shape)), kept
    cdef int typenum = cnp.PyArray_TYPE(array), work = computed(typenum)
    cdef double divisor = degrees(function, shape, axes, ddof)
    target = result_place(function, out, kept_shape(shape, axes, keepdims), typenum)
    if cnp.PyArray_SIZE(array) == 0:
        target.fill(NAN)
        return as_result(out, target)
    kept = kept_shape(shape, axes, True)
    if cut_axes(array, axes, &a) and well_shaped(&a):
        a.divisor = divisor
        place = fresh((a.outer, a.inner), work)
        variance_along(function, &a, array, place)
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


cdef bint one_piece(const Along* a) noexcept:
    """Slices that a kernel handles whole, mean and all."""
    return well_shaped(a) and not one_slice(a) and (a.inner == 1 or a.n <= PART)


def variance_backward(
    str function, object grad_output, object x, object output, object axis, object ddof, object out,
    bint root,
):
    cdef cnp.ndarray given = bare(x), array, g = bare(grad_output), target, place, saved, known
    cdef Along a
    if (out is None and type(ddof) is int
            and (cut_array(given, axis, &a) or cut_halves(given, axis, &a)) and one_piece(&a)
            and results_of(g, given, axis) and (not root or results_of(bare(output), given, axis))):
        target = same_as(given)
        a.g = cnp.PyArray_DATA(g)
        a.saved = cnp.PyArray_DATA(bare(output)) if root else NULL
        a.y = cnp.PyArray_DATA(target)
        a.flag = root
        a.divisor = max(<double> a.n - <double> ddof, 0)
        run(function, &_variance_backward, &a, cnp.PyArray_TYPE(given), PASS_NS)
        return wrap(target)
    given = plain_array(x, function, "x")
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
    if cut_axes(array, axes, &a) and (one_piece(&a) or a.n == cnp.PyArray_SIZE(array)):
        if not simple(place):
            place = fresh(shape, typenum)
        g = np.ascontiguousarray(g)
        a.g = cnp.PyArray_DATA(g)
        if root:
            saved = np.ascontiguousarray(saved)
            a.saved = cnp.PyArray_DATA(saved)
        a.y = cnp.PyArray_DATA(place)
        a.flag = root
        a.divisor = divisor
        if one_piece(&a):
            run(function, &_variance_backward, &a, typenum, PASS_NS)
        else:
            known = np.array([mean_of(function, array, axes, work).item(), saved.item() if root else 0],
                             array.dtype)
            a.saved = cnp.PyArray_DATA(known)
            run(function, &_long_variance_backward, &a, typenum, PASS_NS)
        if place is not target:
            convert_into(target, place)
        return as_result(out, target)
    mean = mean_of(function, array, axes, work)
    if root:
        map_into(function, _std_grad, [g, array, mean, saved], place, (divisor, 1e-10))
    else:
        map_into(function, _variance_grad, [g, array, mean], place, (divisor,))
    if place is not target:
        convert_into(target, place)
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

cdef int logsumexp_along(str function, Along* a, cnp.ndarray array, cnp.ndarray place) except -1:
    """Of a contiguous array along (outer, n, inner), other than one long slice."""
    cdef int typenum = cnp.PyArray_TYPE(array)
    cdef cnp.ndarray top
    a.y = cnp.PyArray_DATA(place)
    if one_piece(a):
        return run(function, &_logsumexp, a, typenum, SOFTMAX_NS)
    top = fresh((a.outer, 1, a.inner), typenum)
    reduce_into(function, _identity, [as_three(array, a)], (a.outer, a.n, a.inner), top, MAX, 1.0, ())
    a.saved = cnp.PyArray_DATA(top)
    return run(function, &_long_logsumexp, a, typenum, SOFTMAX_NS)


def logsumexp(str function, object x, object axis, bint keepdims, object out):
    cdef cnp.ndarray array = bare(x), target, top, shift, total
    cdef Along a
    if out is None and cut_array(array, axis, &a) and well_shaped(&a) and not one_slice(&a):
        target = slice_results(array, axis, keepdims, cnp.PyArray_TYPE(array))
        logsumexp_along(function, &a, array, target)
        return wrap(target)
    array = floating_input(function, x, True)
    cdef tuple shape = shape_of(array), axes = checked_axes(function, axis, len(shape)), kept
    cdef int typenum = cnp.PyArray_TYPE(array), work = computed(typenum)
    target = result_place(function, out, kept_shape(shape, axes, keepdims), typenum)
    if cnp.PyArray_SIZE(array) == 0:
        target.fill(-np.inf)
        return as_result(out, target)
    kept = kept_shape(shape, axes, True)
    if cut_axes(array, axes, &a) and well_shaped(&a) and not one_slice(&a):
        total = fresh((a.outer, a.inner), work)
        logsumexp_along(function, &a, array, total)
        np.copyto(target, total.reshape(shape_of(target)))
        return as_result(out, target)
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
    cdef cnp.ndarray given = bare(x), g = bare(grad_output), saved = bare(output), target, place
    cdef Along a
    if (out is None and (cut_array(given, axis, &a) and well_shaped(&a) and not one_slice(&a)
                         or cut_halves(given, axis, &a))
            and results_of(g, given, axis) and results_of(saved, given, axis)):
        target = same_as(given)
        a.g = cnp.PyArray_DATA(g)
        a.saved = cnp.PyArray_DATA(saved)
        a.y = cnp.PyArray_DATA(target)
        run(function, &_logsumexp_backward, &a, cnp.PyArray_TYPE(given), SOFTMAX_NS)
        return wrap(target)
    given = plain_array(x, function, "x")
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
        convert_into(target, place)
    return as_result(out, target)
