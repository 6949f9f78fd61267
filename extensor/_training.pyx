"""The apply layer of the losses and the optimizers: checks, conversions, memory, one kernel call.

Everything that can be wrong is found before the first write, so that a failed call changes nothing.
"""

import operator

import numpy as np

cimport cython
cimport numpy as cnp
from libc.math cimport INFINITY, NAN, isfinite, pow, sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from extensor._apply cimport (
    Gradient, Op, as_result, checked_out, convert_into, converted, float_for, is_float, note_team, pointer,
    shape_of, team_for, upstream,
)
from extensor._kernels.training cimport (
    RULE_VALUES, STORED_F16, STORED_F32, STORED_F64, CrossEntropy, CrossEntropyDriver, LossDriver,
    LossJob, NormDriver, Update, UpdateDriver,
)
from extensor._memory cimport new_array
from extensor._tensor cimport ExTensor, aligned_copy, plain_array

from extensor import _cpu
from extensor._apply import backward, call2

cnp.import_array()

_losses = _cpu.kernels("losses")
_optimizers = _cpu.kernels("optimizers")
cdef LossDriver run_loss_f32 = <LossDriver> pointer(_losses["loss"][0])
cdef LossDriver run_loss_f64 = <LossDriver> pointer(_losses["loss"][1])
cdef CrossEntropyDriver run_entropy_f32 = <CrossEntropyDriver> pointer(_losses["cross_entropy"][0])
cdef CrossEntropyDriver run_entropy_f64 = <CrossEntropyDriver> pointer(_losses["cross_entropy"][1])
cdef UpdateDriver run_updates = <UpdateDriver> pointer(_optimizers["update"])
cdef NormDriver run_norm = <NormDriver> pointer(_optimizers["norm"])

cdef double NOGIL_NS = 2000.0
cdef enum:
    FEW = 32                # tensors whose list needs no memory of its own


cdef inline bint is_plain(cnp.ndarray array) noexcept:
    """Contiguous, aligned, native: what a kernel reads where it lies."""
    return cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_CARRAY_RO) and cnp.PyArray_ISNOTSWAPPED(array)


cdef inline bint same_shape(cnp.ndarray a, cnp.ndarray b) noexcept:
    cdef int axis, ndim = cnp.PyArray_NDIM(a)
    if cnp.PyArray_NDIM(b) != ndim:
        return False
    for axis in range(ndim):
        if cnp.PyArray_DIM(a, axis) != cnp.PyArray_DIM(b, axis):
            return False
    return True


cdef cnp.ndarray contiguous(cnp.ndarray array, int typenum):
    """The array itself where it is contiguous and of the dtype, else a copy that is."""
    cdef cnp.ndarray copy
    if cnp.PyArray_TYPE(array) == typenum and is_plain(array):
        return array
    if cnp.PyArray_TYPE(array) == typenum:
        return aligned_copy(array)
    copy = new_array(
        cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), typenum)
    convert_into(copy, array)
    return copy


cdef inline int work_type(int typenum) noexcept:
    return cnp.NPY_DOUBLE if typenum == cnp.NPY_DOUBLE else cnp.NPY_FLOAT


# ---------------------------------------------------------------- reductions of a loss

cdef enum Reduction:
    NONE
    MEAN
    SUM


cdef Reduction reduction_of(str function, object reduction) except *:
    if isinstance(reduction, str):
        if reduction == "mean":
            return MEAN
        if reduction == "none":
            return NONE
        if reduction == "sum":
            return SUM
    raise ValueError(f"{function}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


cdef object scalar_result(str function, object out, double value, int typenum):
    """A reduced loss: a 0-d tensor, or the 0-d out."""
    cdef cnp.ndarray array
    if out is None:
        array = new_array(0, NULL, typenum)
    else:
        array = checked_out(function, out, 0, NULL, typenum)
    if typenum == cnp.NPY_FLOAT and cnp.PyArray_ISALIGNED(array):
        (<float*> cnp.PyArray_DATA(array))[0] = <float> value
    elif typenum == cnp.NPY_DOUBLE and cnp.PyArray_ISALIGNED(array):
        (<double*> cnp.PyArray_DATA(array))[0] = value
    else:
        convert_into(array, np.asarray(value))
    return as_result(out, array)


cdef double scalar_upstream(str function, object grad_output, int* typenum) except? -1.0:
    """grad_output of a reduced loss, a 0-d float."""
    cdef cnp.ndarray g
    if type(grad_output) is float:
        typenum[0] = cnp.NPY_FLOAT      # weak: it matters only beside integers
        return grad_output
    g = upstream(function, grad_output)
    if cnp.PyArray_NDIM(g) != 0:
        raise ValueError(
            f"{function}: grad_output has shape {shape_of(g)}, the forward result has shape ()")
    typenum[0] = cnp.PyArray_TYPE(g)
    if typenum[0] == cnp.NPY_FLOAT:
        return (<float*> cnp.PyArray_DATA(g))[0]
    if typenum[0] == cnp.NPY_DOUBLE:
        return (<double*> cnp.PyArray_DATA(g))[0]
    return float(g)


# ---------------------------------------------------------------- element-wise losses

cdef class Loss:
    """An element-wise loss: its blocks, their cost, and a check of the predictions."""
    cdef str name
    cdef str backward_name
    cdef tuple names
    cdef Op op
    cdef tuple gradients
    cdef void* forward[2]
    cdef void* backward[2]
    cdef void* check[2]
    cdef double cost

    def __init__(self, str name, str names, str block, *, cost="memory", check=None):
        self.name = name
        self.backward_name = name + "_backward"
        self.names = tuple(names.split())
        self.op = Op(name, _losses[block], names, cost=cost, float_only=True)
        grad = _losses[block + "_grad"]
        self.gradients = (Gradient(grad, (0, 1, 2), cost),)
        self.cost = self.op.cost
        for i in range(2):
            self.forward[i] = pointer(_losses[block][i])
            self.backward[i] = pointer(grad[i])
            self.check[i] = pointer(_losses[check][i]) if check is not None else NULL


cdef int loss_operands(
    str function, Loss rule, object predictions, object targets, list arrays, int* given,
) except -1:
    """Both operands in the dtype of the result, which is returned; ``given``: the predictions'."""
    cdef cnp.ndarray x = plain_array(predictions, function, rule.names[0])
    cdef cnp.ndarray t = plain_array(targets, function, rule.names[1])
    cdef int typenum
    given[0] = cnp.PyArray_TYPE(x)
    typenum = float_for(given[0])
    if not same_shape(x, t):
        raise ValueError(
            f"{function}: {rule.names[0]} has shape {shape_of(x)} and {rule.names[1]} has shape "
            f"{shape_of(t)}; they must be equal")
    arrays.append(converted(x, typenum))
    arrays.append(converted(t, typenum))
    return typenum


cdef int execute_loss(LossJob* job, int typenum, double cost, str function) except -1:
    cdef int status
    cdef LossDriver driver = run_loss_f64 if typenum == cnp.NPY_DOUBLE else run_loss_f32
    cost *= job.n
    if typenum == cnp.NPY_DOUBLE:
        cost *= 2
    job.threads = team_for(cost)
    if cost > NOGIL_NS:
        with nogil:
            status = driver(job)
    else:
        status = driver(job)
    note_team(job.team)
    if status < 0:
        raise MemoryError(f"{function}: no memory for scratch")
    return 0


cdef object refuse_outside(str function, Loss rule, cnp.ndarray x):
    bad = x[~((x >= 0) & (x <= 1))]
    raise ValueError(
        f"{function}: {rule.names[0]} must lie in [0, 1], found {float(bad.flat[0])} "
        f"({bad.size} of {x.size} values are outside)")


cpdef object loss(
    Loss rule, object predictions, object targets, object reduction, object out=None, tuple params=(),
):
    """An element-wise loss of two tensors of one shape, unreduced or reduced."""
    cdef LossJob job
    cdef double values[4]
    cdef list arrays = []
    cdef Reduction how = reduction_of(rule.name, reduction)
    cdef int given, i
    cdef int typenum = loss_operands(rule.name, rule, predictions, targets, arrays, &given)
    cdef int wide = typenum == cnp.NPY_DOUBLE
    cdef cnp.ndarray x = arrays[0], t
    for i in range(len(params)):
        values[i] = params[i]
    if how == NONE and rule.check[0] == NULL:
        return call2(rule.op, x, arrays[1], out, params)
    x = contiguous(x, typenum)
    t = contiguous(arrays[1], typenum)
    job.block = rule.forward[wide]
    job.check = rule.check[wide]
    job.x = cnp.PyArray_DATA(x)
    job.t = cnp.PyArray_DATA(t)
    job.y = NULL
    job.n = cnp.PyArray_SIZE(x)
    job.half = typenum == cnp.NPY_FLOAT16
    job.params = values
    if how == NONE:
        job.block = NULL        # the check alone, before anything is written
    execute_loss(&job, typenum, 0.08 if how == NONE else rule.cost, rule.name)
    if job.refused:
        refuse_outside(rule.name, rule, x)
    if how == NONE:
        return call2(rule.op, x, t, out, params)
    if how == MEAN:
        job.total = job.total / <double> job.n if job.n else NAN
    return scalar_result(rule.name, out, job.total, typenum)


cpdef object loss_backward(
    Loss rule, object grad_output, object predictions, object targets, object reduction,
    object out=None, tuple params=(),
):
    """The gradient of an element-wise loss with respect to the predictions."""
    cdef LossJob job
    cdef double values[4]
    cdef list arrays = []
    cdef str function = rule.backward_name
    cdef Reduction how = reduction_of(function, reduction)
    cdef int typenum, given, i, final, g_type = cnp.NPY_FLOAT
    cdef cnp.ndarray x, t, target, place
    typenum = loss_operands(function, rule, predictions, targets, arrays, &given)
    x = arrays[0]
    if how == NONE:
        saved = x if is_float(given) else predictions       # whose gradient has its dtype, or g's
        return backward(
            function, rule.gradients, grad_output, (saved, arrays[1]), rule.names, None, None, out,
            params)
    job.g = scalar_upstream(function, grad_output, &g_type)
    final = given if is_float(given) else g_type
    if out is None:
        target = new_array(cnp.PyArray_NDIM(x), <Py_ssize_t*> cnp.PyArray_DIMS(x), final)
    else:
        target = checked_out(
            function, out, cnp.PyArray_NDIM(x), <Py_ssize_t*> cnp.PyArray_DIMS(x), final)
    t = contiguous(arrays[1], typenum)
    x = contiguous(x, typenum)
    place = place_for(target, typenum, x, t)
    for i in range(len(params)):
        values[i] = params[i]
    job.block = rule.backward[typenum == cnp.NPY_DOUBLE]
    job.check = NULL
    job.x = cnp.PyArray_DATA(x)
    job.t = cnp.PyArray_DATA(t)
    job.y = cnp.PyArray_DATA(place)
    job.n = cnp.PyArray_SIZE(x)
    job.half = typenum == cnp.NPY_FLOAT16
    job.params = values
    if how == MEAN and job.n:
        job.g /= <double> job.n
    if job.n:
        execute_loss(&job, typenum, rule.cost, function)
    if place is not target:
        convert_into(target, place)
    return as_result(out, target)


cdef cnp.ndarray place_for(cnp.ndarray target, int typenum, cnp.ndarray x, cnp.ndarray t):
    """Where a kernel may write a result of typenum that ends up in target, x and t being read."""
    if (cnp.PyArray_TYPE(target) == typenum and is_plain(target)
            and apart_or_same(target, x) and (t is None or apart_or_same(target, t))):
        return target
    return new_array(cnp.PyArray_NDIM(target), <Py_ssize_t*> cnp.PyArray_DIMS(target), typenum)


cdef inline bint apart_or_same(cnp.ndarray a, cnp.ndarray b) noexcept:
    """For contiguous arrays: no shared memory, or the very same."""
    cdef char* start = cnp.PyArray_BYTES(a)
    cdef char* other = cnp.PyArray_BYTES(b)
    if start == other:
        return cnp.PyArray_NBYTES(a) == cnp.PyArray_NBYTES(b)
    return start + cnp.PyArray_NBYTES(a) <= other or other + cnp.PyArray_NBYTES(b) <= start


# ---------------------------------------------------------------- cross-entropy

cdef int class_axis(str function, object axis, int ndim) except -1:
    cdef Py_ssize_t index
    try:
        index = operator.index(axis)
    except TypeError:
        raise TypeError(f"{function}: axis must be an int, got {axis!r}") from None
    if index < -ndim or index >= ndim:
        raise np.exceptions.AxisError(index, ndim, f"{function}: logits")
    return index + ndim if index < 0 else index


cdef Py_ssize_t check_ids(
    const int64_t* ids, Py_ssize_t n, Py_ssize_t classes, bint ignoring, int64_t ignored,
    Py_ssize_t* bad,
) noexcept nogil:
    """How many ids are not ignored; in ``bad`` the first that is no class, or −1."""
    cdef Py_ssize_t i, kept = 0
    bad[0] = -1
    for i in range(n):
        if ignoring and ids[i] == ignored:
            continue
        if ids[i] < 0 or ids[i] >= classes:
            bad[0] = i
            return 0
        kept += 1
    return kept


cdef cnp.ndarray ids_of(str function, cnp.ndarray t, Py_ssize_t classes):
    """Class ids as contiguous int64."""
    cdef int typenum = cnp.PyArray_TYPE(t)
    if typenum == cnp.NPY_BOOL or is_float(typenum):
        raise TypeError(
            f"{function}: targets without the class axis are class ids of an integer dtype, got "
            f"{t.dtype}; weights have the shape of logits")
    if cnp.PyArray_ITEMSIZE(t) == 8 and t.dtype.kind == "u" and cnp.PyArray_SIZE(t):
        largest = t.max()
        if largest > np.iinfo(np.int64).max:
            raise ValueError(
                f"{function}: targets holds class id {largest}, the classes are 0 … {classes - 1}")
    if typenum == cnp.NPY_INT64 and is_plain(t):
        return t
    return np.ascontiguousarray(t, np.int64)


cpdef object cross_entropy(
    object grad_output, object logits, object targets, object axis, object ignore_index,
    object reduction, object out, bint gradient,
):
    """Cross-entropy, or (``gradient``) its gradient with respect to the logits."""
    cdef str function = "cross_entropy_backward" if gradient else "cross_entropy"
    cdef Reduction how = reduction_of(function, reduction)
    cdef CrossEntropy job
    cdef Py_ssize_t shape[64]
    cdef cnp.ndarray x, t, g, target, place, ids = None
    cdef Py_ssize_t results, kept, bad
    cdef int i, place_axis, ndim, typenum, work, final, g_type, status
    cdef double cost, value, g_value = 0
    cdef float g_float
    cdef bint by_id
    if gradient and how == NONE:
        g = upstream(function, grad_output)
    x = plain_array(logits, function, "logits")
    t = plain_array(targets, function, "targets")
    ndim = cnp.PyArray_NDIM(x)
    place_axis = class_axis(function, axis, ndim)
    typenum = float_for(cnp.PyArray_TYPE(x))
    work = work_type(typenum)
    job.outer = 1
    job.inner = 1
    job.classes = cnp.PyArray_DIM(x, place_axis)
    for i in range(ndim):
        if i < place_axis:
            job.outer *= cnp.PyArray_DIM(x, i)
            shape[i] = cnp.PyArray_DIM(x, i)
        elif i > place_axis:
            job.inner *= cnp.PyArray_DIM(x, i)
            shape[i - 1] = cnp.PyArray_DIM(x, i)
    results = job.outer * job.inner
    kept = results
    by_id = cnp.PyArray_NDIM(t) == ndim - 1
    if by_id:
        for i in range(ndim - 1):
            by_id = by_id and cnp.PyArray_DIM(t, i) == shape[i]
    if not by_id and not same_shape(x, t):
        raise ValueError(
            f"{function}: logits has shape {shape_of(x)} and targets has shape {shape_of(t)}; "
            f"targets must have the same shape (weights), or that without axis {place_axis} "
            f"(class ids): {tuple([shape[i] for i in range(ndim - 1)])}")
    job.ignoring = ignore_index is not None
    job.ignored = 0
    if job.ignoring:
        if not by_id:
            raise ValueError(f"{function}: ignore_index goes with class ids, targets are weights")
        try:
            job.ignored = operator.index(ignore_index)
        except TypeError:
            raise TypeError(
                f"{function}: ignore_index must be an int or None, got {ignore_index!r}") from None
    job.ids = NULL
    job.weights = NULL
    if by_id:
        ids = ids_of(function, t, job.classes)
        job.ids = <const int64_t*> cnp.PyArray_DATA(ids)
        kept = check_ids(job.ids, results, job.classes, job.ignoring, job.ignored, &bad)
        if bad >= 0:
            raise ValueError(
                f"{function}: targets holds class id {job.ids[bad]}, the classes are 0 … "
                f"{job.classes - 1}"
                + (f" and ignore_index is {job.ignored}" if job.ignoring else ""))
    # grad_output, and where the result goes
    if gradient:
        if how == NONE:
            if shape_of(g) != tuple([shape[i] for i in range(ndim - 1)]):
                raise ValueError(
                    f"{function}: grad_output has shape {shape_of(g)}, the forward result has "
                    f"shape {tuple([shape[i] for i in range(ndim - 1)])}")
            g_type = cnp.PyArray_TYPE(g)
        else:
            g_value = scalar_upstream(function, grad_output, &g_type)
            if how == MEAN and kept:
                g_value /= <double> kept
        final = cnp.PyArray_TYPE(x) if is_float(cnp.PyArray_TYPE(x)) else g_type
        if out is None:
            target = new_array(ndim, <Py_ssize_t*> cnp.PyArray_DIMS(x), final)
        else:
            target = checked_out(function, out, ndim, <Py_ssize_t*> cnp.PyArray_DIMS(x), final)
    elif how == NONE:
        if out is None:
            target = new_array(ndim - 1, shape, typenum)
        else:
            target = checked_out(function, out, ndim - 1, shape, typenum)
    x = contiguous(x, work)
    job.x = cnp.PyArray_DATA(x)
    if not by_id:
        t = contiguous(t, work)
        job.weights = cnp.PyArray_DATA(t)
    else:
        t = ids
    job.backward = gradient
    job.y = NULL
    job.total = 0
    job.g = NULL
    job.g_step = 0
    if gradient:
        if how == NONE:
            g = contiguous(g, work)
            job.g = cnp.PyArray_DATA(g)
            job.g_step = 1
        else:
            g_float = <float> g_value
            job.g = <void*> &g_value if work == cnp.NPY_DOUBLE else <void*> &g_float
    if gradient or how == NONE:
        if cnp.PyArray_NDIM(target) == ndim:
            place = place_for(target, work, x, t)
            if how == NONE and place is target and not apart(target, g):
                place = new_array(ndim, <Py_ssize_t*> cnp.PyArray_DIMS(target), work)
        elif cnp.PyArray_TYPE(target) == work and is_plain(target) and apart(target, x) and apart(target, t):
            place = target
        else:
            place = new_array(ndim - 1, shape, work)
        job.y = cnp.PyArray_DATA(place)
    if results and job.classes:
        cost = (0.6 if work == cnp.NPY_FLOAT else 1.5) * (results * job.classes)
        job.threads = team_for(cost)
        if cost > NOGIL_NS:
            with nogil:
                status = (run_entropy_f64 if work == cnp.NPY_DOUBLE else run_entropy_f32)(&job)
        else:
            status = (run_entropy_f64 if work == cnp.NPY_DOUBLE else run_entropy_f32)(&job)
        note_team(job.team)
        if status < 0:
            raise MemoryError(f"{function}: no memory for scratch")
    elif job.y != NULL:
        place.fill(0)
    if job.y != NULL:
        if place is not target:
            convert_into(target, place)
        return as_result(out, target)
    value = job.total
    if how == MEAN:
        value = value / <double> kept if kept else NAN
    return scalar_result(function, out, value, typenum)


cdef inline bint apart(cnp.ndarray a, cnp.ndarray b) noexcept:
    """For contiguous arrays: no shared memory."""
    cdef char* start = cnp.PyArray_BYTES(a)
    cdef char* other = cnp.PyArray_BYTES(b)
    return start + cnp.PyArray_NBYTES(a) <= other or other + cnp.PyArray_NBYTES(b) <= start


# ---------------------------------------------------------------- the pure step

_DESCEND = Op("sgd_step", _optimizers["descend"], "params grad", float_only=True)


def descend(object params, object grad, double lr, object out=None) -> ExTensor:
    """params − lr·grad as a new tensor."""
    cdef cnp.ndarray p = plain_array(params, "sgd_step", "params")
    cdef cnp.ndarray g = plain_array(grad, "sgd_step", "grad")
    if not is_float(cnp.PyArray_TYPE(p)) or not is_float(cnp.PyArray_TYPE(g)):
        raise TypeError(
            f"sgd_step: params has dtype {p.dtype} and grad has dtype {g.dtype}; both must be "
            "float16, float32 or float64")
    if not same_shape(p, g):
        raise ValueError(
            f"sgd_step: params has shape {shape_of(p)} and grad has shape {shape_of(g)}; they must "
            "be equal")
    return call2(_DESCEND, p, converted(g, cnp.PyArray_TYPE(p)), out, (lr,))


# ---------------------------------------------------------------- optimizers

cdef enum Family:
    PLAIN           # the values are the same for every tensor
    ADAM            # they depend on how many steps a tensor has had
    ADAMW


cdef class Rule:
    """An optimizer's update: its blocks and how many tensors of state it keeps."""
    cdef void* f32
    cdef void* f64
    cdef readonly int states
    cdef int family
    cdef double cost

    def __init__(self, str name, int states, double cost):
        block = _optimizers[name]
        self.f32 = pointer(block[0])
        self.f64 = pointer(block[1])
        self.states = states
        self.cost = cost
        self.family = ADAMW if name == "adamw" else ADAM if name == "adam" else PLAIN


@cython.final
cdef class Slot:
    """One parameter of an optimizer, with its state."""
    cdef readonly object owner
    cdef readonly bint boxed            # a Parameter, not a bare tensor
    cdef public long long steps
    cdef public object first
    cdef public object second

    def __init__(self, object owner, bint boxed):
        self.owner = owner
        self.boxed = boxed
        self.steps = 0

    cdef cnp.ndarray array(self):
        cdef object data = self.owner._data if self.boxed else self.owner
        return (<ExTensor> data)._array if type(data) is ExTensor else data


cdef int stored(int typenum) noexcept:
    if typenum == cnp.NPY_FLOAT16:
        return STORED_F16
    return STORED_F64 if typenum == cnp.NPY_DOUBLE else STORED_F32


cdef cnp.ndarray writable(str function, str what, Py_ssize_t index, cnp.ndarray array):
    """An array that a step may write, or an error."""
    if not is_float(cnp.PyArray_TYPE(array)):
        raise TypeError(
            f"{function}: {what} {index} has dtype {array.dtype}; it must be float16, float32 or float64")
    if not cnp.PyArray_ISWRITEABLE(array):
        raise ValueError(f"{function}: {what} {index} is read-only")
    return array


cdef inline cnp.ndarray state_for(cnp.ndarray p, object state):
    """The state of a parameter: zeros at first; float64 for float64, else float32."""
    cdef cnp.ndarray fresh
    cdef int typenum = work_type(cnp.PyArray_TYPE(p))
    if state is not None:
        return state if cnp.PyArray_TYPE(state) == typenum else contiguous(state, typenum)
    fresh = new_array(cnp.PyArray_NDIM(p), <Py_ssize_t*> cnp.PyArray_DIMS(p), typenum)
    fresh.fill(0)
    return fresh


cdef int step_values(Rule rule, Slot slot, tuple hyper, const Update* before, long long steps, double* v) except -1:
    """What the rule needs for a tensor at its next step; Adam's corrections, once per step count."""
    cdef int i
    cdef double lr, decay, b1, b2
    if before != NULL and (rule.family == PLAIN or steps == slot.steps):
        for i in range(RULE_VALUES):
            v[i] = before.values[i]
        return 0
    if rule.family == PLAIN:
        for i in range(len(hyper)):
            v[i] = hyper[i]
        return 0
    lr, decay, b1, b2 = hyper[0], hyper[1], hyper[2], hyper[3]
    v[0] = lr / (1 - pow(b1, <double> (slot.steps + 1)))
    v[1] = 1 - lr * decay if rule.family == ADAMW else decay
    v[2] = b1
    v[3] = 1 - b1
    v[4] = b2
    v[5] = 1 - b2
    v[6] = sqrt(1 - pow(b2, <double> (slot.steps + 1)))
    v[7] = hyper[4]
    return 0


cdef cnp.ndarray gradient_for(str function, Py_ssize_t index, cnp.ndarray p, object grad):
    """The gradient of one parameter: checked, contiguous, in a dtype the kernel reads beside p."""
    cdef cnp.ndarray g
    cdef int typenum, own = cnp.PyArray_TYPE(p)
    if type(grad) is ExTensor:
        g = (<ExTensor> grad)._array
    else:
        g = plain_array(grad, function, f"grads[{index}]")
    typenum = cnp.PyArray_TYPE(g)
    if not is_float(typenum):
        raise TypeError(
            f"{function}: grads[{index}] has dtype {g.dtype}; it must be float16, float32 or float64")
    if not same_shape(p, g):
        raise ValueError(
            f"{function}: grads[{index}] has shape {shape_of(g)}, its parameter has shape {shape_of(p)}")
    if typenum == own and is_plain(g):
        return g
    if own == cnp.NPY_DOUBLE or typenum == cnp.NPY_DOUBLE:
        return contiguous(g, work_type(own))
    return contiguous(g, typenum)       # float16 and float32 go with each other


def run_step(str function, Rule rule, list slots, object grads, tuple hyper) -> None:
    """One step of an optimizer over its parameters; None gradients are skipped."""
    cdef Update few[FEW]
    cdef Update* updates = few
    cdef Update* before
    cdef Update* u
    cdef Py_ssize_t count = len(slots), used = 0, i
    cdef list given, active = [], keep = [], copies = []
    cdef Slot slot
    cdef cnp.ndarray p, g, own
    cdef double cost = 0
    cdef long long steps = -1
    cdef int team
    if grads is None:
        given = []
        for i in range(count):
            slot = slots[i]
            if not slot.boxed:
                raise TypeError(
                    f"{function}: parameter {i} is a bare tensor without .grad; pass step(grads)")
            given.append(slot.owner._grad)
    else:
        given = list_of(function, "grads", grads)
        if len(given) != count:
            raise ValueError(f"{function}: {len(given)} grads for {count} parameters")
    # Every check before the first write.
    for i in range(count):
        slot = slots[i]
        if given[i] is None or (slot.boxed and not slot.owner.requires_grad):
            continue
        p = writable(function, "parameter", i, slot.array())
        keep.append(gradient_for(function, i, p, given[i]))
        if slot.first is not None and not same_shape(p, slot.first):
            raise ValueError(
                f"{function}: parameter {i} has shape {shape_of(p)}, its state has shape "
                f"{shape_of(slot.first)}")
        if not is_plain(p):
            own = p
            p = aligned_copy(p)
            copies.append((own, p))
        active.append(slot)
        keep.append(p)
        used += 1
    if used == 0:
        return
    if used > FEW:
        updates = <Update*> malloc(used * sizeof(Update))
        if updates == NULL:
            raise MemoryError(f"{function}: no memory for {used} updates")
    try:
        before = NULL
        for i in range(used):
            slot = active[i]
            g = keep[2 * i]
            p = keep[2 * i + 1]
            u = &updates[i]
            u.p = cnp.PyArray_DATA(p)
            u.g = cnp.PyArray_DATA(g)
            u.n = cnp.PyArray_SIZE(p)
            u.p_stored = stored(cnp.PyArray_TYPE(p))
            u.g_stored = stored(cnp.PyArray_TYPE(g))
            u.first = NULL
            u.second = NULL
            if rule.states > 0:
                slot.first = state_for(p, slot.first)
                u.first = cnp.PyArray_DATA(slot.first)
            if rule.states > 1:
                slot.second = state_for(p, slot.second)
                u.second = cnp.PyArray_DATA(slot.second)
            step_values(rule, slot, hyper, before, steps, u.values)
            steps = slot.steps
            before = u
            cost += rule.cost * u.n * (2 if u.p_stored == STORED_F64 else 1)
        if cost > NOGIL_NS:
            with nogil:
                team = run_updates(updates, used, rule.f32, rule.f64, team_for(cost))
        else:
            team = run_updates(updates, used, rule.f32, rule.f64, 1)
        note_team(team)
    finally:
        if updates != few:
            free(updates)
    for own, p in copies:
        cnp.PyArray_CopyInto(own, p)
    for slot in active:
        slot.steps += 1


cdef list list_of(str function, str name, object tensors):
    if type(tensors) is list:
        return tensors
    if isinstance(tensors, (ExTensor, np.ndarray, str, dict)):
        raise TypeError(f"{function}: {name} must be a list of tensors, not {type(tensors).__name__}")
    try:
        return list(tensors)
    except TypeError:
        raise TypeError(
            f"{function}: {name} must be a list of tensors, not {type(tensors).__name__}") from None


# ---------------------------------------------------------------- clipping

cdef class Gradients:
    """Gradients that are looked at and changed in place."""
    cdef Update* updates
    cdef Py_ssize_t count
    cdef list keep
    cdef list copies
    cdef double cost
    cdef str function

    def __init__(self, str function, object grads):
        cdef cnp.ndarray array, own
        cdef Py_ssize_t i
        self.function = function
        self.keep = []
        self.copies = []
        seen = set()
        if isinstance(grads, (ExTensor, np.ndarray)):
            grads = [grads]
        for i, grad in enumerate(list_of(function, "grads", grads)):
            if grad is not None and hasattr(grad, "requires_grad"):
                grad = grad.grad            # a Parameter stands for its gradient
            if grad is None:
                continue
            if isinstance(grad, ExTensor):
                array = (<ExTensor> grad)._array
            elif isinstance(grad, np.ndarray):
                array = grad
            else:
                raise TypeError(
                    f"{function}: gradient {i} must be an ExTensor or ndarray, not "
                    f"{type(grad).__name__}: it is changed in place")
            writable(function, "gradient", i, array)
            if id(array) in seen:
                raise ValueError(f"{function}: gradient {i} is in the list twice")
            seen.add(id(array))
            if not is_plain(array):
                own = array
                array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=True))
                self.copies.append((own, array))
            self.keep.append(array)
        self.count = len(self.keep)
        self.updates = <Update*> malloc((self.count + 1) * sizeof(Update))
        if self.updates == NULL:
            raise MemoryError(f"{function}: no memory for {self.count} gradients")
        self.cost = 0
        for i in range(self.count):
            array = self.keep[i]
            self.updates[i].p = cnp.PyArray_DATA(array)
            self.updates[i].g = NULL
            self.updates[i].first = NULL
            self.updates[i].second = NULL
            self.updates[i].n = cnp.PyArray_SIZE(array)
            self.updates[i].p_stored = stored(cnp.PyArray_TYPE(array))
            self.updates[i].g_stored = self.updates[i].p_stored
            self.cost += 0.07 * self.updates[i].n

    def __dealloc__(self):
        free(self.updates)

    cdef double norm(self) except -1:
        """√Σ x² over all; scaled by the largest where the squares overflow or vanish."""
        cdef double norm, largest, scale
        cdef int team, threads = team_for(self.cost)
        with nogil:
            team = run_norm(self.updates, self.count, threads, 1.0, &norm, &largest)
        if team > 0 and not (1e-140 < norm < 1e150) and norm == norm:
            with nogil:
                team = run_norm(self.updates, self.count, threads, 0.0, &norm, &largest)
                if team > 0 and 0 < largest < INFINITY:
                    scale = 1 / largest if largest > 1e-300 else 1e300
                    team = run_norm(self.updates, self.count, threads, scale, &norm, &largest)
                    norm /= scale
                else:
                    norm = largest
        if team < 0:
            raise MemoryError(f"{self.function}: no memory for partial sums")
        note_team(team)
        return norm

    cdef int change(self, Rule rule, double value) except -1:
        cdef Py_ssize_t i
        cdef int team
        for i in range(self.count):
            self.updates[i].values[0] = value
        with nogil:
            team = run_updates(self.updates, self.count, rule.f32, rule.f64, team_for(self.cost))
        note_team(team)
        for own, array in self.copies:
            own[...] = array
        return 0


_SCALE = Rule("scale", 0, 0.1)
_LIMIT = Rule("limit", 0, 0.1)


def clip_norm(object grads, double max_norm) -> float:
    """Scale gradients in place so that their global norm is at most max_norm; the norm before."""
    cdef Gradients found = Gradients("clip_grad_norm", grads)
    cdef double norm = found.norm()
    if isfinite(norm) and norm > max_norm:
        found.change(_SCALE, max_norm / norm)
    return norm


def clip_value(object grads, double limit) -> None:
    """Limit every gradient in place to [−limit, limit]; NaN stays NaN."""
    Gradients("clip_grad_value", grads).change(_LIMIT, limit)
