"""The apply layer: the one place that checks, promotes, broadcasts, coalesces and allocates.

A public function names an ``Op`` (or the ``Gradient`` parts of a backward function) and hands its
arguments over; here they become a ``Job`` for a kernel driver. Small contiguous operands of one
dtype go straight to the block.
"""

import numpy as np

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.string cimport memcpy, memset

from extensor._kernels.types cimport (
    MAX_AXES, MAX_INPUTS, SUM, Block1, Block2, Call, Driver, Job, Operand, call_block,
)
from extensor._memory cimport new_array
from extensor._tensor cimport ExTensor, plain_array, wrap
from extensor cimport _tensor

from extensor import _cpu

cnp.import_array()

cdef extern from "threads.h" nogil:
    int ex_threads()
    int omp_get_max_threads()
    int ex_process_threads
    int ex_forked
    int ex_default_threads
    int ex_own_threads
    int ex_last_team
    int ex_widest_team

# Starting a team of two costs about 1 µs when the cores are free and the team is awake, 5 µs and
# more when not; work of less than 5 µs on one core is not worth it (measured on two AVX-512
# cores, add and exp of 1e3 … 1e6 elements).
cdef double PARALLEL_NS = 5000.0
# Releasing the GIL costs some 30 ns; below this the call is over before another thread gets going.
cdef double NOGIL_NS = 2000.0
cdef enum:
    REPEATED = 1024     # elements up to which a Python number is repeated rather than broadcast

ex_default_threads = omp_get_max_threads()


# ---------------------------------------------------------------- kernels and ops

cdef void* pointer(object capsule) except NULL:
    return PyCapsule_GetPointer(capsule, "extensor.kernel")


_drive = _cpu.kernels("drive")
cdef Driver run_map = <Driver> pointer(_drive["map"])
cdef Driver run_reduce_f32 = <Driver> pointer(_drive["reduce_f32"])
cdef Driver run_reduce_f64 = <Driver> pointer(_drive["reduce_f64"])

# NumPy's integer loops that never warn, and whose result has the operands' dtype.
cdef set _SILENT = {np.add, np.subtract, np.multiply, np.negative, np.maximum, np.minimum}

# Cost classes: nanoseconds an element of float32 on one core, for the decision to use threads.
COSTS = {"memory": 0.08, "divide": 0.15, "math": 0.3, "heavy": 1.0, "libm": 5.0}


cdef class Op:
    """An element-wise function: its block, its operands, and how integers are treated."""

    def __init__(
        self, str name, tuple block, str names, *, args=None, cost="memory", numpy=None,
        gives_bool=False, float_only=False, mask_first=False,
    ):
        self.name = name
        self.names = tuple(names.split())
        self.numpy = numpy
        self.f32 = pointer(block[0])
        self.f64 = pointer(block[1])
        self.arity = len(self.names)
        for i, arg in enumerate(range(self.arity) if args is None else args):
            self.args[i] = arg
        self.cost = COSTS[cost]
        self.gives_bool = gives_bool
        self.keeps_dtype = numpy in _SILENT
        self.float_only = float_only
        self.mask_first = mask_first


cdef class Gradient:
    def __init__(self, tuple block, tuple args, cost="memory", mask=False):
        self.f32 = pointer(block[0])
        self.f64 = pointer(block[1])
        self.arity = len(args)
        for i, arg in enumerate(args):
            self.args[i] = arg
        self.cost = COSTS[cost]
        self.mask = mask


# ---------------------------------------------------------------- threads

cdef int team_for(double nanoseconds) noexcept nogil:
    """How many threads a piece of work is worth."""
    return ex_threads() if nanoseconds > PARALLEL_NS else 1


cdef void note_team(int team) noexcept nogil:
    global ex_last_team, ex_widest_team
    ex_last_team = team
    if team > ex_widest_team:
        ex_widest_team = team


def last_team() -> int:
    """How many threads took part in this Python thread's last call."""
    return ex_last_team


def widest_team() -> int:
    """The most threads that took part in anything since the last question."""
    global ex_widest_team
    team = ex_widest_team
    ex_widest_team = 0
    return team


def current_threads() -> int:
    return ex_threads()


def set_process_threads(int count) -> None:
    global ex_process_threads
    ex_process_threads = count


def exchange_own_threads(int count) -> int:
    """Set the calling thread's own count (0 = none) and return the one before."""
    global ex_own_threads
    cdef int before = ex_own_threads
    ex_own_threads = count
    return before


def set_forked() -> None:
    global ex_forked
    ex_forked = 1


# ---------------------------------------------------------------- operands

cdef enum Kind:
    ARRAY
    WEAK_BOOL
    WEAK_INT
    WEAK_FLOAT


cdef inline Kind weak_kind(object x):
    if type(x) is float:
        return WEAK_FLOAT
    if type(x) is int:
        return WEAK_INT
    if type(x) is bool:
        return WEAK_BOOL
    return ARRAY


cdef bint is_float(int typenum) noexcept:
    return typenum == cnp.NPY_FLOAT or typenum == cnp.NPY_DOUBLE or typenum == cnp.NPY_FLOAT16


cdef object shape_of(cnp.ndarray array):
    return tuple([array.shape[i] for i in range(array.ndim)])


cdef int promoted(str function, list items, int* kinds, int first) except -1:
    """The common dtype of the operands from ``first`` on, Python scalars being weak."""
    cdef int i, typenum = -1, strongest = WEAK_BOOL
    cdef bint same = True
    for i in range(first, len(items)):
        if kinds[i] != ARRAY:
            strongest = max(strongest, kinds[i])
        elif typenum < 0:
            typenum = cnp.PyArray_TYPE(items[i])
        elif typenum != cnp.PyArray_TYPE(items[i]):
            same = False
    if typenum < 0:
        if strongest == WEAK_FLOAT:
            return cnp.NPY_FLOAT
        return cnp.NPY_INT64 if strongest == WEAK_INT else cnp.NPY_BOOL
    if same and is_float(typenum):
        return typenum
    dtypes = []
    for i in range(first, len(items)):
        if kinds[i] == ARRAY:
            dtypes.append((<cnp.ndarray> items[i]).dtype)
        else:
            dtypes.append(False if kinds[i] == WEAK_BOOL else 0 if kinds[i] == WEAK_INT else 0.0)
    result = np.result_type(*dtypes)
    if result.num > cnp.NPY_ULONGLONG and not is_float(result.num):
        raise TypeError(f"{function}: operands of dtypes {dtypes} have no common dtype here")
    return result.num


cdef int float_for(int typenum) noexcept:
    """The float dtype in which np.exp computes an integer or bool dtype."""
    if is_float(typenum):
        return typenum
    if typenum <= cnp.NPY_UINT8:        # bool, int8, uint8
        return cnp.NPY_FLOAT16
    return cnp.NPY_FLOAT if typenum <= cnp.NPY_UINT16 else cnp.NPY_DOUBLE


cdef cnp.ndarray converted(cnp.ndarray array, int typenum):
    """An array in another dtype; float16 to float32 and back through the kernels."""
    cdef int own = cnp.PyArray_TYPE(array)
    cdef cnp.ndarray place
    if own == typenum:
        return array
    if ((own == cnp.NPY_FLOAT16 and typenum == cnp.NPY_FLOAT)
            or (own == cnp.NPY_FLOAT and typenum == cnp.NPY_FLOAT16)):
        place = new_array(cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), typenum)
        map_into("conversion", IDENTITY, [array], place, ())
        return place
    with np.errstate(all="ignore"):
        return array.astype(cnp.PyArray_DescrFromType(typenum))


cdef int convert_into(cnp.ndarray target, cnp.ndarray source) except -1:
    """Copy into an array of the same shape apart from the source's, whatever the dtypes.

    NumPy's conversion to float16 raises a flag for each result that underflows, at some 50 ns; ours
    has no such cost.
    """
    cdef int to = cnp.PyArray_TYPE(target), own = cnp.PyArray_TYPE(source)
    if (to == cnp.NPY_FLOAT16 and own == cnp.NPY_FLOAT) or (to == cnp.NPY_FLOAT and own == cnp.NPY_FLOAT16):
        if cnp.PyArray_ISBEHAVED(target) and cnp.PyArray_ISBEHAVED_RO(source):
            return map_into("conversion", IDENTITY, [source], target, ())
    with np.errstate(all="ignore"):
        np.copyto(target, source, casting="unsafe")
    return 0


cdef str operands_text(str function, tuple names, list shapes):
    parts = [f"{name} has shape {shape}" for name, shape in zip(names, shapes)]
    return f"{function}: " + " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


cdef int broadcast(str function, tuple names, list shapes, Py_ssize_t* out) except -1:
    """NumPy's broadcast of several shapes into ``out``; returns the number of axes."""
    cdef int ndim = 0, axis, offset
    cdef Py_ssize_t size, have
    for shape in shapes:
        ndim = max(ndim, len(shape))
    if ndim > MAX_AXES:
        raise ValueError(f"{function}: {ndim} axes are more than the {MAX_AXES} supported")
    for axis in range(ndim):
        out[axis] = 1
    for shape in shapes:
        offset = ndim - len(shape)
        for axis in range(len(shape)):
            size = shape[axis]
            have = out[offset + axis]
            if have == 1:
                out[offset + axis] = size
            elif size != 1 and size != have:
                raise ValueError(
                    operands_text(function, names, shapes)
                    + f", which do not broadcast: axis {offset + axis - ndim} is {have} in one "
                    f"and {size} in another")
    return ndim


cdef int broadcast_items(str function, tuple names, list items, int* kinds, Py_ssize_t* out) except -1:
    """The broadcast shape of operands; their shapes become Python objects only for an error."""
    cdef int i, axis, offset, ndim = 0
    cdef Py_ssize_t size
    cdef cnp.ndarray array
    for i in range(len(items)):
        if kinds[i] == ARRAY:
            ndim = max(ndim, cnp.PyArray_NDIM(items[i]))
    for axis in range(ndim):
        out[axis] = 1
    for i in range(len(items)):
        if kinds[i] != ARRAY:
            continue
        array = items[i]
        offset = ndim - cnp.PyArray_NDIM(array)
        for axis in range(cnp.PyArray_NDIM(array)):
            size = cnp.PyArray_DIM(array, axis)
            if out[offset + axis] == 1:
                out[offset + axis] = size
            elif size != 1 and size != out[offset + axis]:
                shapes = [() if kinds[k] != ARRAY else shape_of(items[k]) for k in range(len(items))]
                return broadcast(function, names, shapes, out)      # raises
    return ndim


cdef int fill_operand(
    Job* job, int slot, bint output, cnp.ndarray array, int ndim, Py_ssize_t* shape,
) except -1:
    """Describe one array as an operand of a space of ``ndim`` axes, broadcast where it is smaller."""
    cdef Operand* x = &job.y[slot] if output else &job.x[slot]
    cdef int axis, offset = ndim - cnp.PyArray_NDIM(array)
    x.data = cnp.PyArray_BYTES(array)
    x.itemsize = cnp.PyArray_ITEMSIZE(array)
    x.half = cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT16
    for axis in range(ndim):
        if axis < offset or cnp.PyArray_DIM(array, axis - offset) == 1:
            x.strides[axis] = 0
        else:
            x.strides[axis] = cnp.PyArray_STRIDE(array, axis - offset)
    return 0


cdef void fill_scalar(Job* job, int slot, double value, void* store, bint double_precision) noexcept:
    """Describe a Python scalar as an operand that has stride 0 everywhere."""
    cdef Operand* x = &job.x[slot]
    cdef int axis
    if double_precision:
        (<double*> store)[0] = value
    else:
        (<float*> store)[0] = <float> value
    x.data = <char*> store
    x.itemsize = 8 if double_precision else 4
    x.half = False
    for axis in range(job.ndim):
        x.strides[axis] = 0


cdef inline bint mergeable(const Operand* x, int axis, Py_ssize_t inner) noexcept nogil:
    return x.strides[axis] == x.strides[axis + 1] * inner


cdef void note_layout(Job* job, Operand* x, int ndim, const Py_ssize_t* shape) noexcept nogil:
    cdef Py_ssize_t expected = x.itemsize
    cdef int axis = ndim - 1
    x.dense = True
    x.same_rows = True
    while axis >= 0:
        if x.strides[axis] != expected:
            x.dense = False
        if axis < ndim - 1 and x.strides[axis] != 0:
            x.same_rows = False
        expected *= shape[axis]
        axis -= 1


cdef void coalesce(Job* job, int first, int* last) noexcept nogil:
    """Drop axes of size 1 and merge neighbours that every operand walks through evenly.

    Works on the axes first … last−1 of the job, whose outputs share the input axes.
    """
    cdef int axis, to = first, i
    cdef bint even
    for axis in range(first, last[0]):
        if job.shape[axis] == 1:
            continue
        job.shape[to] = job.shape[axis]
        for i in range(job.inputs):
            job.x[i].strides[to] = job.x[i].strides[axis]
        for i in range(job.outputs):
            job.y[i].strides[to] = job.y[i].strides[axis]
        to += 1
    last[0] = to
    axis = to - 2
    while axis >= first:
        even = True
        for i in range(job.inputs):
            even &= mergeable(&job.x[i], axis, job.shape[axis + 1])
        for i in range(job.outputs):
            even &= mergeable(&job.y[i], axis, job.shape[axis + 1])
        if even:
            job.shape[axis] *= job.shape[axis + 1]
            for i in range(job.inputs):
                job.x[i].strides[axis] = job.x[i].strides[axis + 1]
            for i in range(job.outputs):
                job.y[i].strides[axis] = job.y[i].strides[axis + 1]
            shift_axes(job, axis + 1, last)
        axis -= 1


cdef void shift_axes(Job* job, int axis, int* last) noexcept nogil:
    """Remove one axis."""
    cdef int k, i
    for k in range(axis, last[0] - 1):
        job.shape[k] = job.shape[k + 1]
        for i in range(job.inputs):
            job.x[i].strides[k] = job.x[i].strides[k + 1]
        for i in range(job.outputs):
            job.y[i].strides[k] = job.y[i].strides[k + 1]
    last[0] -= 1


cdef int execute(Job* job, Driver driver, double cost, Py_ssize_t n, str function) except -1:
    """Hand a job to a driver, with threads and without the GIL where it pays."""
    cdef int status
    job.threads = team_for(cost * n)
    if cost * n > NOGIL_NS:
        with nogil:
            status = driver(job)
    else:
        status = driver(job)
    note_team(job.team)
    if status < 0:
        raise MemoryError(f"{function}: no memory for scratch")
    return 0


cdef int map_job(Job* job, double cost, Py_ssize_t n, str function) except -1:
    """Coalesce a filled job and run it."""
    cdef int i
    coalesce(job, 0, &job.ndim)
    if job.ndim == 0:
        job.ndim = 1
        job.shape[0] = 1
        for i in range(job.inputs):
            job.x[i].strides[0] = job.x[i].itemsize
        for i in range(job.outputs):
            job.y[i].strides[0] = job.y[i].itemsize
    for i in range(job.inputs):
        note_layout(job, &job.x[i], job.ndim, job.shape)
    for i in range(job.outputs):
        note_layout(job, &job.y[i], job.ndim, job.shape)
    return execute(job, run_map, cost, n, function)


# ---------------------------------------------------------------- outputs

cdef void extent(cnp.ndarray x, char** low, char** high) noexcept:
    """The bytes between an array's first and last element, whatever its strides."""
    cdef int axis
    cdef Py_ssize_t reach
    low[0] = cnp.PyArray_BYTES(x)
    high[0] = low[0] + cnp.PyArray_ITEMSIZE(x)
    for axis in range(cnp.PyArray_NDIM(x)):
        if cnp.PyArray_DIM(x, axis) == 0:
            high[0] = low[0]
            return
        reach = (cnp.PyArray_DIM(x, axis) - 1) * cnp.PyArray_STRIDE(x, axis)
        if reach < 0:
            low[0] += reach
        else:
            high[0] += reach


cdef Overlap overlap(cnp.ndarray x, cnp.ndarray y) noexcept:
    cdef int axis
    cdef char* x_low
    cdef char* x_high
    cdef char* y_low
    cdef char* y_high
    if x is y:
        return SAME
    extent(x, &x_low, &x_high)
    extent(y, &y_low, &y_high)
    if x_high <= y_low or y_high <= x_low:
        return APART
    if (cnp.PyArray_BYTES(x) == cnp.PyArray_BYTES(y) and cnp.PyArray_NDIM(x) == cnp.PyArray_NDIM(y)
            and cnp.PyArray_TYPE(x) == cnp.PyArray_TYPE(y)):
        for axis in range(cnp.PyArray_NDIM(x)):
            if (cnp.PyArray_DIM(x, axis) != cnp.PyArray_DIM(y, axis)
                    or cnp.PyArray_STRIDE(x, axis) != cnp.PyArray_STRIDE(y, axis)):
                return TANGLED
        return SAME
    return TANGLED


cdef cnp.ndarray checked_out(str function, object out, int ndim, Py_ssize_t* shape, int typenum):
    """The array of an ``out`` argument, right in every way, or an error."""
    cdef cnp.ndarray array
    cdef int axis
    if isinstance(out, ExTensor):
        array = (<ExTensor> out)._array
    elif isinstance(out, np.ndarray):
        array = out
    else:
        raise TypeError(f"{function}: out must be an ExTensor or ndarray, not {type(out).__name__}")
    wanted = tuple([shape[axis] for axis in range(ndim)])
    if shape_of(array) != wanted:
        raise ValueError(f"{function}: out has shape {shape_of(array)}, the result has shape {wanted}")
    if cnp.PyArray_TYPE(array) != typenum or not array.dtype.isnative:
        raise TypeError(
            f"{function}: out has dtype {array.dtype}, the result has dtype "
            f"{cnp.PyArray_DescrFromType(typenum)}")
    if not cnp.PyArray_ISWRITEABLE(array):
        raise ValueError(f"{function}: out is read-only")
    for axis in range(ndim):
        if cnp.PyArray_STRIDE(array, axis) == 0 and shape[axis] > 1 and cnp.PyArray_SIZE(array):
            raise ValueError(f"{function}: out is a broadcast view; its elements share memory")
    return array


cdef object as_result(object out, cnp.ndarray array):
    """What a call returns: the caller's own ``out``, or a new tensor."""
    if out is None:
        return wrap(array)
    return out if isinstance(out, ExTensor) else wrap(array)


# ---------------------------------------------------------------- forward

cdef object collect(str function, tuple names, tuple inputs, list items, int* kinds):
    """Arguments as arrays and Python scalars."""
    cdef int i
    for i in range(len(inputs)):
        x = inputs[i]
        if type(x) is ExTensor:
            kinds[i] = ARRAY
            items.append((<ExTensor> x)._array)
            if not cnp.PyArray_ISBEHAVED_RO(items[i]):
                items[i] = plain_array(x, function, names[i])
            continue
        kinds[i] = weak_kind(x)
        items.append(plain_array(x, function, names[i]) if kinds[i] == ARRAY else x)


cdef object forward(Op op, tuple inputs, object out, tuple params):
    """The general path of an element-wise function."""
    cdef Job job
    cdef int kinds[MAX_INPUTS]
    cdef double store[MAX_INPUTS]
    cdef double values[8]
    cdef Py_ssize_t shape[MAX_AXES]
    cdef Py_ssize_t n = 1
    cdef int i, typenum, result, ndim, first = 1 if op.mask_first else 0
    cdef cnp.ndarray target, place
    cdef list items = []
    collect(op.name, op.names, inputs, items, kinds)
    typenum = promoted(op.name, items, kinds, first)
    ndim = broadcast_items(op.name, op.names, items, kinds, shape)
    if op.gives_bool and op.numpy is not None and whole_numbers(items, kinds):
        return integers(op, items, out, ndim, shape, typenum)       # int64 beside uint64 is exact
    if not is_float(typenum):
        if not op.float_only:
            return integers(op, items, out, ndim, shape, typenum)
        typenum = cnp.NPY_DOUBLE if op.numpy is np.true_divide else float_for(typenum)
    result = cnp.NPY_BOOL if op.gives_bool else typenum
    for i in range(first, op.arity):
        if kinds[i] == ARRAY:
            items[i] = converted(items[i], typenum)
        else:
            items[i] = scalar_value(op.name, op.names[i], items[i])
    if op.mask_first:
        items[0] = np.asarray(items[0]).astype(bool, copy=False)
        kinds[0] = ARRAY
    if out is None:
        target = new_array(ndim, shape, result)
        place = target
    else:
        target = checked_out(op.name, out, ndim, shape, result)
        place = target
        for i in range(op.arity):
            if kinds[i] == ARRAY and overlap(items[i], target) == TANGLED:
                place = new_array(ndim, shape, result)
                break
        if not cnp.PyArray_ISALIGNED(place):
            place = new_array(ndim, shape, result)
    for i in range(ndim):
        n *= shape[i]
    if n:
        job.ndim = ndim
        memcpy(job.shape, shape, ndim * sizeof(Py_ssize_t))
        job.inputs = op.arity
        job.outputs = 1
        job.stage = False
        for i in range(len(params)):
            values[i] = params[i]
        job.params = values
        for i in range(op.arity):
            if kinds[i] == ARRAY:
                fill_operand(&job, i, False, items[i], ndim, shape)
            else:
                fill_scalar(&job, i, items[i], &store[i], typenum == cnp.NPY_DOUBLE)
        fill_operand(&job, 0, True, place, ndim, shape)
        job.calls[0].block = op.f64 if typenum == cnp.NPY_DOUBLE else op.f32
        job.calls[0].arity = op.arity
        memcpy(job.calls[0].args, op.args, sizeof(op.args))
        map_job(&job, op.cost, n, op.name)
    if place is not target:
        cnp.PyArray_CopyInto(target, place)
    return as_result(out, target)


cdef bint whole_numbers(list items, int* kinds):
    cdef int i
    for i in range(len(items)):
        if kinds[i] == WEAK_FLOAT or (kinds[i] == ARRAY and is_float(cnp.PyArray_TYPE(items[i]))):
            return False
    return True


cdef double scalar_value(str function, str name, object value) except? -1.0:
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(f"{function}: {name}: the Python int is too large for a float") from None


cdef bint one_dtype(list items, int typenum):
    """Whether every operand is an array of one integer dtype (bool has rules of its own)."""
    for item in items:
        if not isinstance(item, np.ndarray) or cnp.PyArray_TYPE(item) != typenum:
            return False
    return typenum != cnp.NPY_BOOL


cdef object integers(Op op, list items, object out, int ndim, Py_ssize_t* shape, int typenum):
    """Integer and bool results: NumPy's own loops, with this library's memory and errors."""
    cdef cnp.ndarray target
    if op.numpy is None:
        raise TypeError(f"{op.name}: dtype {cnp.PyArray_DescrFromType(typenum)} is not supported")
    try:
        if op.gives_bool:
            typenum = cnp.NPY_BOOL
        elif isinstance(op.numpy, np.ufunc) and not (op.keeps_dtype and one_dtype(items, typenum)):
            dtypes = [item.dtype if isinstance(item, np.ndarray) else type(item) for item in items]
            if not any([isinstance(item, np.ndarray) for item in items]):
                items = [np.asarray(item, cnp.PyArray_DescrFromType(typenum)) for item in items]
                dtypes = [item.dtype for item in items]
            dtypes = [np.dtype(bool) if dtype is bool else dtype for dtype in dtypes]
            typenum = op.numpy.resolve_dtypes((*dtypes, None))[-1].num
        target = new_array(ndim, shape, typenum) if out is None else checked_out(
            op.name, out, ndim, shape, typenum)
        if op.keeps_dtype or op.gives_bool:
            op.numpy(*items, out=target)
        else:
            if op.numpy is np.power and np.less(items[1], 0).any():     # NumPy would write some first
                raise ValueError("integers to negative integer powers are not allowed")
            zeros = np.equal(items[0], 0) if op.numpy is np.reciprocal else None
            with np.errstate(all="ignore"):
                op.numpy(*items, out=target)
            if zeros is not None:
                target[zeros] = 0
    except (TypeError, ValueError, OverflowError) as error:
        if str(error).startswith(op.name + ":"):
            raise
        kind = OverflowError if isinstance(error, OverflowError) else (
            ValueError if isinstance(error, ValueError) else TypeError)
        dtypes = [item.dtype.name if isinstance(item, np.ndarray) else type(item).__name__ for item in items]
        raise kind(f"{op.name}: {error} (operands: {', '.join(dtypes)})") from None
    return as_result(out, target)


cdef bint simple(cnp.ndarray a) noexcept:
    """An array of our dtypes that lies in memory as a C array does."""
    cdef int typenum = cnp.PyArray_TYPE(a)
    return (
        (typenum <= cnp.NPY_DOUBLE or typenum == cnp.NPY_FLOAT16)
        and cnp.PyArray_CHKFLAGS(a, cnp.NPY_ARRAY_CARRAY_RO) and cnp.PyArray_ISNOTSWAPPED(a))


cdef inline bint same_shape(cnp.ndarray a, cnp.ndarray b) noexcept:
    cdef int axis, ndim = cnp.PyArray_NDIM(a)
    if cnp.PyArray_NDIM(b) != ndim:
        return False
    for axis in range(ndim):
        if cnp.PyArray_DIM(a, axis) != cnp.PyArray_DIM(b, axis):
            return False
    return True


cdef cnp.ndarray bare(object x):
    """The array inside a tensor, an array itself, None for anything else."""
    if type(x) is ExTensor:
        return (<ExTensor> x)._array
    if cnp.PyArray_CheckExact(x):
        return x
    return None


cdef cnp.ndarray quick_place(Op op, cnp.ndarray a, object out, int typenum):
    """Where a direct call writes: a new array, or an ``out`` that fits as it is; else None."""
    cdef cnp.ndarray y
    if op.gives_bool:
        typenum = cnp.NPY_BOOL
    if out is None:
        return new_array(cnp.PyArray_NDIM(a), <Py_ssize_t*> cnp.PyArray_DIMS(a), typenum)
    y = bare(out)
    if (y is None or cnp.PyArray_TYPE(y) != typenum or not cnp.PyArray_CHKFLAGS(y, cnp.NPY_ARRAY_CARRAY)
            or not cnp.PyArray_ISNOTSWAPPED(y) or not same_shape(a, y) or overlap(a, y) == TANGLED):
        return None
    return y


cpdef object call1(Op op, object x, object out=None, tuple params=()):
    """An element-wise function of one operand, with parameters."""
    cdef cnp.ndarray a = bare(x), y
    cdef double values[8]
    cdef Py_ssize_t n
    cdef int typenum, i
    cdef Block1 block
    cdef void* source
    cdef void* to
    if a is not None:
        typenum = cnp.PyArray_TYPE(a)
        n = cnp.PyArray_SIZE(a)
        if ((typenum == cnp.NPY_FLOAT or typenum == cnp.NPY_DOUBLE) and simple(a)
                and op.cost * n <= PARALLEL_NS):
            y = quick_place(op, a, out, typenum)
            if y is not None:
                for i in range(len(params)):
                    values[i] = params[i]
                block = <Block1> (op.f32 if typenum == cnp.NPY_FLOAT else op.f64)
                source, to = cnp.PyArray_DATA(a), cnp.PyArray_DATA(y)
                if op.cost * n > NOGIL_NS:
                    with nogil:
                        block(source, to, n, values)
                else:
                    block(source, to, n, values)
                note_team(1)
                return as_result(out, y)
    return forward(op, (x,), out, params)


cdef cnp.ndarray quick_scalar(Op op, object z, int typenum, Py_ssize_t n):
    """A Python number as a short array of equal elements; None if it is no number."""
    cdef cnp.ndarray b
    cdef double value
    cdef Py_ssize_t i
    if weak_kind(z) == ARRAY or n > REPEATED:
        return None
    value = scalar_value(op.name, "a Python number", z)
    b = new_array(1, &n, typenum)
    if typenum == cnp.NPY_FLOAT:
        for i in range(n):
            (<float*> cnp.PyArray_DATA(b))[i] = <float> value
    else:
        for i in range(n):
            (<double*> cnp.PyArray_DATA(b))[i] = value
    return b


cpdef object call2(Op op, object x, object z, object out=None, tuple params=()):
    """An element-wise function of two operands, with parameters."""
    cdef cnp.ndarray a = bare(x), b = bare(z), y
    cdef Py_ssize_t n
    cdef int typenum
    cdef Block2 block
    cdef void* first
    cdef void* second
    cdef void* to
    cdef double values[8]
    cdef int i
    cdef bint swap = op.args[0] != 0, plain
    if a is None and b is not None:     # a number on the left
        a, b = b, a
        x, z = z, x
        swap = not swap
        turned = True
    else:
        turned = False
    if a is not None:
        typenum = cnp.PyArray_TYPE(a)
        n = cnp.PyArray_SIZE(a)
        if ((typenum == cnp.NPY_FLOAT or typenum == cnp.NPY_DOUBLE) and simple(a)
                and op.cost * n <= PARALLEL_NS):
            if b is None:
                b = quick_scalar(op, z, typenum, n)
                plain = b is not None
            else:
                plain = typenum == cnp.PyArray_TYPE(b) and same_shape(a, b) and simple(b)
            if plain:
                y = quick_place(op, a, out, typenum)
                if y is not None and (out is None or overlap(b, y) != TANGLED):
                    block = <Block2> (op.f32 if typenum == cnp.NPY_FLOAT else op.f64)
                    first, second = cnp.PyArray_DATA(a), cnp.PyArray_DATA(b)
                    to = cnp.PyArray_DATA(y)
                    if swap:
                        first, second = second, first
                    for i in range(len(params)):
                        values[i] = params[i]
                    if op.cost * n > NOGIL_NS:
                        with nogil:
                            block(first, second, to, n, values)
                    else:
                        block(first, second, to, n, values)
                    note_team(1)
                    return as_result(out, y)
    return forward(op, (z, x) if turned else (x, z), out, params)


cpdef object calln(Op op, tuple inputs, object out=None, tuple params=()):
    """An element-wise function of any number of operands, with parameters."""
    return forward(op, inputs, out, params)


cdef object _binary(object op, object a, object b, object out):
    return call2(op, a, b, out)


_tensor.binary_hook = _binary


# ---------------------------------------------------------------- backward

cdef class Target:
    """What a gradient must look like: the shape of its input, and its dtype."""
    cdef readonly tuple shape
    cdef readonly int typenum       # -1: grad_output's

    def __init__(self, tuple shape, int typenum):
        self.shape = shape
        self.typenum = typenum


cdef Target target_of(str function, str name, object x, bint shape_allowed):
    """The target for an input given as a tensor, or as a shape where that is allowed."""
    cdef cnp.ndarray array = bare(x)
    if array is None and shape_allowed:
        if isinstance(x, (tuple, list)):
            try:
                shape = tuple([int(size.__index__()) for size in x])
            except AttributeError:
                raise TypeError(
                    f"{function}: {name} must be a shape (ints) or the tensor, got {x!r}"[:200]
                ) from None
            if any([size < 0 for size in shape]):
                raise ValueError(f"{function}: {name} has a negative size: {shape}")
            return Target(shape, -1)
        if not isinstance(x, np.ndarray):
            raise TypeError(
                f"{function}: {name} must be a shape (a tuple or list of ints) or the tensor, "
                f"not {type(x).__name__}")
    if array is None:
        if weak_kind(x) != ARRAY:
            return Target((), -1)
        array = plain_array(x, function, name)
    return Target(shape_of(array), cnp.PyArray_TYPE(array) if is_float(cnp.PyArray_TYPE(array)) else -1)


def shape_target(str function, str name, object x) -> Target:
    return target_of(function, name, x, True)


cdef cnp.ndarray upstream(str function, object grad_output, int beside=-1):
    """grad_output as a floating array, or an error; a Python float is weak ``beside`` a dtype."""
    cdef cnp.ndarray array = bare(grad_output)
    if type(grad_output) is float:
        return np.asarray(grad_output, np.float64 if beside == cnp.NPY_DOUBLE else np.float32)
    if array is None or not simple(array):
        array = plain_array(grad_output, function, "grad_output")
    if not is_float(cnp.PyArray_TYPE(array)):
        raise TypeError(
            f"{function}: grad_output has dtype {array.dtype}; it must be float16, float32 or float64")
    return array


cdef object checked_needs(str function, object needs, int count):
    if needs is None:
        return (True,) * count
    if not isinstance(needs, (tuple, list)) or len(needs) != count:
        raise ValueError(f"{function}: needs must be a tuple of {count} bools, got {needs!r}")
    for need in needs:
        if not isinstance(need, (bool, np.bool_)):
            raise TypeError(f"{function}: needs must be a tuple of {count} bools, got {needs!r}")
    return tuple(needs)


cdef object checked_outs(str function, object out, int count):
    if out is None:
        return (None,) * count
    if count == 1:
        return (out,)
    if not isinstance(out, (tuple, list)) or len(out) != count:
        raise TypeError(
            f"{function}: out must be a tuple of {count}, one for each gradient (None to allocate)")
    return tuple(out)


cpdef object backward(
    str function, tuple gradients, object grad_output, tuple saved, tuple names,
    tuple targets=None, object needs=None, object out=None, tuple params=(),
):
    """The gradients of an element-wise function, summed back to the shapes of broadcast operands.

    ``gradients`` has one Gradient per input, each a block on (grad_output, *saved). ``targets``
    says for each what shape and dtype its result has, as a shape, a tensor or a Target; by default
    those of the saved operands.
    """
    cdef int kinds[MAX_INPUTS]
    cdef Py_ssize_t shape[MAX_AXES]
    cdef int count = len(gradients), i, k, typenum, ndim, final
    cdef bint masked = (<Gradient> gradients[0]).mask
    if out is None and needs is None:
        quick = quick_backward(gradients, grad_output, saved, targets, params)
        if quick is None:
            quick = direct_backward(function, gradients, grad_output, saved, targets, params)
        if quick is not None:
            return quick
    if targets is not None:
        targets = tuple([
            x if type(x) is Target else target_of(function, names[len(saved) + i], x, True)
            for i, x in enumerate(targets)])
    cdef cnp.ndarray g = upstream(function, grad_output, widest(saved, targets))
    cdef list items = [g], shapes = [], places = [None] * count, results = [None] * count
    cdef Target target
    cdef tuple wanted, outs
    wanted = checked_needs(function, needs, count)
    outs = checked_outs(function, out, count)
    if targets is None:
        targets = tuple([target_of(function, names[i], saved[i], False) for i in range(count)])
    kinds[0] = ARRAY
    for i in range(len(saved)):
        x = saved[i]
        kinds[i + 1] = weak_kind(x)
        if kinds[i + 1] == ARRAY:
            x = plain_array(x, function, names[i])
        items.append(x)
        shapes.append(() if kinds[i + 1] != ARRAY else shape_of(x))
    for target in targets:
        shapes.append(target.shape)
    if shapes:
        ndim = broadcast(function, names, shapes, shape)
        if shape_of(g) != tuple([shape[i] for i in range(ndim)]):
            raise ValueError(
                f"{function}: grad_output has shape {shape_of(g)}, the forward result has shape "
                f"{tuple([shape[i] for i in range(ndim)])}")
    else:
        ndim = cnp.PyArray_NDIM(g)
        memcpy(shape, cnp.PyArray_DIMS(g), ndim * sizeof(Py_ssize_t))
    typenum = float_kind(function, items, kinds)
    for i in range(len(items)):
        if kinds[i] == ARRAY and not (masked and cnp.PyArray_TYPE(items[i]) == cnp.NPY_BOOL):
            items[i] = converted(items[i], typenum)
        elif kinds[i] != ARRAY:
            items[i] = scalar_value(function, names[i - 1], items[i])
    # Every check before the first write: a failed call leaves the outputs untouched.
    for k in range(count):
        if not wanted[k]:
            continue
        target = targets[k] if targets else Target(shape_of(g), -1)
        final = target.typenum if target.typenum >= 0 else cnp.PyArray_TYPE(g)
        places[k] = gradient_place(function, outs[k], target.shape, final, typenum, items, kinds)
    if out is not None:
        refuse_shared(function, places)
    run_gradients(
        function, gradients, items, kinds, params, typenum, ndim, shape, places, out is not None)
    for k in range(count):
        if places[k] is None:
            continue
        array, place = places[k]
        if place is not array:
            convert_into(array, place)
        results[k] = as_result(outs[k], array)
    return results[0] if count == 1 else tuple(results)


cdef int widest(tuple saved, tuple targets):
    """float64 if an operand has it: what a Python float as grad_output stands for."""
    cdef cnp.ndarray array
    cdef Target target
    for x in saved:
        array = bare(x)
        if type(x) is np.float64 or (array is not None and cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE):
            return cnp.NPY_DOUBLE
    for target in targets if targets is not None else ():
        if target.typenum == cnp.NPY_DOUBLE:
            return cnp.NPY_DOUBLE
    return cnp.NPY_FLOAT


cdef bint target_sizes(object x, int typenum, Py_ssize_t* sizes, int* ndim):
    """The sizes of a target given as a tuple of ints, or as a tensor of no other float dtype.

    False for anything else, which ``target_of`` takes or refuses.
    """
    cdef cnp.ndarray array = bare(x)
    cdef int i
    if array is not None:
        if cnp.PyArray_TYPE(array) != typenum and is_float(cnp.PyArray_TYPE(array)):
            return False
        ndim[0] = cnp.PyArray_NDIM(array)
        if ndim[0] > MAX_AXES:
            return False
        memcpy(sizes, cnp.PyArray_DIMS(array), ndim[0] * sizeof(Py_ssize_t))
        return True
    if type(x) is Target:
        if (<Target> x).typenum != typenum and (<Target> x).typenum >= 0:
            return False
        x = (<Target> x).shape
    if type(x) is not tuple or len(<tuple> x) > MAX_AXES:
        return False
    ndim[0] = len(<tuple> x)
    for i in range(ndim[0]):
        size = (<tuple> x)[i]
        if type(size) is not int:
            return False
        try:
            sizes[i] = size
        except OverflowError:
            return False
        if sizes[i] < 0:
            return False
    return True


cdef object quick_backward(
    tuple gradients, object grad_output, tuple saved, tuple targets, tuple params,
):
    """Small contiguous operands of one shape and dtype straight to the blocks; None if not so."""
    cdef cnp.ndarray g = bare(grad_output), x, y
    cdef const void* data[MAX_INPUTS]
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef double values[8]
    cdef Py_ssize_t n
    cdef int i, k, ndim, typenum, count = len(gradients)
    cdef double cost = 0
    cdef Gradient gradient
    cdef Call call
    cdef void* to
    if g is None or not simple(g):
        return None
    typenum = cnp.PyArray_TYPE(g)
    n = cnp.PyArray_SIZE(g)
    if typenum != cnp.NPY_FLOAT and typenum != cnp.NPY_DOUBLE:
        return None
    for k in range(count):
        cost += (<Gradient> gradients[k]).cost
    if cost * n > PARALLEL_NS:
        return None
    data[0] = cnp.PyArray_DATA(g)
    for i in range(len(saved)):
        x = bare(saved[i])
        if x is None or cnp.PyArray_TYPE(x) != typenum or not simple(x) or not same_shape(g, x):
            return None
        data[i + 1] = cnp.PyArray_DATA(x)
    if targets is not None:
        for k in range(len(targets)):
            if not target_sizes(targets[k], typenum, sizes, &ndim) or ndim != cnp.PyArray_NDIM(g):
                return None
            for i in range(ndim):
                if sizes[i] != cnp.PyArray_DIM(g, i):
                    return None
    for i in range(len(params)):
        values[i] = params[i]
    results = None
    for k in range(count):
        gradient = gradients[k]
        call.block = gradient.f64 if typenum == cnp.NPY_DOUBLE else gradient.f32
        call.arity = gradient.arity
        memcpy(call.args, gradient.args, sizeof(gradient.args))
        y = new_array(cnp.PyArray_NDIM(g), <Py_ssize_t*> cnp.PyArray_DIMS(g), typenum)
        to = cnp.PyArray_DATA(y)
        if cost * n > NOGIL_NS:
            with nogil:
                call_block(&call, data, to, n, values)
        else:
            call_block(&call, data, to, n, values)
        if count == 1:
            return wrap(y)
        if count == 2 and k == 1:
            return (results, wrap(y))
        if k == 0:
            results = wrap(y) if count == 2 else [wrap(y)]
        else:
            results.append(wrap(y))
    return tuple(results)


cdef bint fits(cnp.ndarray g, int ndim, const Py_ssize_t* sizes, bint* filled) noexcept:
    """Whether a shape broadcasts to that of g; marks the axes that it fills."""
    cdef int axis, offset = cnp.PyArray_NDIM(g) - ndim
    if offset < 0:
        return False
    for axis in range(ndim):
        if sizes[axis] == cnp.PyArray_DIM(g, offset + axis):
            filled[offset + axis] = True
        elif sizes[axis] != 1:
            return False
    return True


cdef object direct_backward(
    str function, tuple gradients, object grad_output, tuple saved, tuple targets, tuple params,
):
    """Operands of one float dtype that broadcast, in any layout; None where there is more to see to."""
    cdef cnp.ndarray g = bare(grad_output), x, y
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef bint filled[MAX_AXES]
    cdef int kinds[MAX_INPUTS]
    cdef int i, k, nd, ndim, typenum, count = len(gradients)
    cdef bint masked = (<Gradient> gradients[0]).mask
    cdef list items = [g], places = []
    if g is None or not cnp.PyArray_ISBEHAVED_RO(g) or cnp.PyArray_NDIM(g) > MAX_AXES:
        return None
    typenum = cnp.PyArray_TYPE(g)
    if typenum != cnp.NPY_FLOAT and typenum != cnp.NPY_DOUBLE:
        return None
    ndim = cnp.PyArray_NDIM(g)
    for i in range(ndim):
        filled[i] = False
    kinds[0] = ARRAY
    for i in range(len(saved)):
        x = bare(saved[i])
        if x is None or not cnp.PyArray_ISBEHAVED_RO(x):
            return None
        if cnp.PyArray_TYPE(x) != typenum and not (masked and cnp.PyArray_TYPE(x) == cnp.NPY_BOOL):
            return None
        if not fits(g, cnp.PyArray_NDIM(x), <const Py_ssize_t*> cnp.PyArray_DIMS(x), filled):
            return None
        kinds[i + 1] = ARRAY
        items.append(x)
    if targets is None:
        targets = saved
    for k in range(count):
        target = targets[k] if len(targets) else g
        if not target_sizes(target, typenum, sizes, &nd) or not fits(g, nd, sizes, filled):
            return None
        y = new_array(nd, sizes, typenum)
        places.append((y, y))
    if len(saved) or len(targets):
        for i in range(ndim):
            if not filled[i]:
                return None
    run_gradients(
        function, gradients, items, kinds, params, typenum, ndim,
        <Py_ssize_t*> cnp.PyArray_DIMS(g), places, False)
    if count == 1:
        return wrap((<tuple> places[0])[0])
    return tuple([wrap((<tuple> place)[0]) for place in places])


cdef int float_kind(str function, list items, int* kinds) except -1:
    """The dtype to compute a gradient in: common to grad_output and the saved operands."""
    cdef list kept = []
    cdef int own[MAX_INPUTS]
    cdef int i
    for i in range(len(items)):
        if kinds[i] == ARRAY and cnp.PyArray_TYPE(items[i]) == cnp.NPY_BOOL:
            continue        # a condition, or a bool operand: no say in the dtype
        own[len(kept)] = kinds[i]
        kept.append(items[i])
    return promoted(function, kept, own, 0)


cdef object gradient_place(
    str function, object out, tuple shape, int final, int computed, list items, int* kinds,
):
    """Where a gradient goes: (its array, the array to compute into)."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef cnp.ndarray array, place
    cdef int i, ndim = len(shape)
    for i in range(ndim):
        sizes[i] = shape[i]
    if out is None:
        array = new_array(ndim, sizes, final)
        place = array
    else:
        array = checked_out(function, out, ndim, sizes, final)
        place = array
        for i in range(len(items)):
            if kinds[i] == ARRAY and overlap(items[i], array) == TANGLED:
                place = new_array(ndim, sizes, computed)
                break
        if not cnp.PyArray_ISALIGNED(place):
            place = new_array(ndim, sizes, computed)
    if final != computed and place is array:
        place = new_array(ndim, sizes, computed)
    return (array, place)


cdef int refuse_shared(str function, list places) except -1:
    cdef int i, k
    for i in range(len(places)):
        for k in range(i):
            if places[i] is not None and places[k] is not None:
                if overlap(places[i][0], places[k][0]) != APART:
                    raise ValueError(f"{function}: two of the out tensors share memory")
    return 0


cdef int run_gradients(
    str function, tuple gradients, list items, int* kinds, tuple params, int typenum,
    int ndim, Py_ssize_t* shape, list places, bint shared,
) except -1:
    """Full-size gradients in one pass together, each summed one in a pass of its own."""
    cdef Job job
    cdef double store[MAX_INPUTS]
    cdef double values[8]
    cdef Py_ssize_t n = 1
    cdef int i, k
    cdef double cost = 0
    cdef Gradient gradient
    cdef cnp.ndarray place
    cdef list full = [], summed = []
    for i in range(ndim):
        n *= shape[i]
    for k in range(len(gradients)):
        if places[k] is None:
            continue
        place = places[k][1]
        if cnp.PyArray_SIZE(place) == n:
            full.append(k)
        elif n == 0:
            place.fill(0)
        else:
            summed.append(k)
    if n == 0:
        return 0
    for i in range(len(params)):
        values[i] = params[i]
    # A summed gradient that is written into an input (out=) must not be seen by the other passes.
    for k in summed if shared else ():
        place = places[k][1]
        for i in range(len(items)):
            if kinds[i] == ARRAY and place is places[k][0] and overlap(items[i], place) != APART:
                places[k] = (place, np.empty_like(place))
                break
    for k in summed:
        gradient = gradients[k]
        fill_inputs(&job, items, kinds, store, values, typenum, ndim, shape)
        fill_call(&job, 0, gradient, typenum)
        if gradient is IDENTITY:
            job.calls[0].block = NULL       # summed where it lies
        run_reduce(&job, places[k][1], ndim, shape, gradient.cost, n, SUM, 1.0, typenum, function)
    if full:
        fill_inputs(&job, items, kinds, store, values, typenum, ndim, shape)
        job.outputs = len(full)
        job.stage = False
        for i, k in enumerate(full):
            gradient = gradients[k]
            place = places[k][1]
            fill_operand(&job, i, True, expanded(place, ndim, shape), ndim, shape)
            fill_call(&job, i, gradient, typenum)
            cost += gradient.cost
            if shared and len(full) > 1:
                for item in items:
                    if isinstance(item, np.ndarray) and overlap(item, place) == SAME:
                        job.stage = True
        map_job(&job, cost, n, function)
    return 0


cdef cnp.ndarray expanded(cnp.ndarray place, int ndim, Py_ssize_t* shape):
    """A gradient of the full size, seen in the full shape (it may lack leading axes of size 1)."""
    if cnp.PyArray_NDIM(place) == ndim:
        return place
    return place.reshape(tuple([shape[i] for i in range(ndim)]))


cdef int fill_inputs(
    Job* job, list items, int* kinds, double* store, double* params, int typenum,
    int ndim, Py_ssize_t* shape,
) except -1:
    cdef int i
    job.ndim = ndim
    memcpy(job.shape, shape, ndim * sizeof(Py_ssize_t))
    job.inputs = len(items)
    job.outputs = 1
    job.params = params
    job.stage = False
    for i in range(len(items)):
        if kinds[i] == ARRAY:
            fill_operand(job, i, False, items[i], ndim, shape)
        else:
            fill_scalar(job, i, items[i], &store[i], typenum == cnp.NPY_DOUBLE)
    return 0


cdef int fill_call(Job* job, int slot, Gradient gradient, int typenum) except -1:
    job.calls[slot].block = gradient.f64 if typenum == cnp.NPY_DOUBLE else gradient.f32
    job.calls[slot].arity = gradient.arity
    memcpy(job.calls[slot].args, gradient.args, sizeof(gradient.args))
    return 0


# ---------------------------------------------------------------- reductions

cdef struct Axis:
    Py_ssize_t size
    Py_ssize_t weight               # how far apart neighbours lie, over all operands
    Py_ssize_t x[MAX_INPUTS]
    Py_ssize_t y


cdef int take_axes(Job* job, int ndim, Py_ssize_t* shape, bint* reduced, bint which, Axis* to) noexcept:
    """The kept or the reduced axes, largest strides first, merged where every operand allows it."""
    cdef int axis, i, k, count = 0, merged = 0
    cdef Axis entry
    cdef bint even
    for axis in range(ndim):
        if reduced[axis] != which or shape[axis] == 1:
            continue
        entry.size = shape[axis]
        entry.y = job.y[0].strides[axis]
        entry.weight = 0
        for i in range(job.inputs):
            entry.x[i] = job.x[i].strides[axis]
            entry.weight += abs(entry.x[i])
        k = count
        while k > 0 and to[k - 1].weight < entry.weight:
            to[k] = to[k - 1]
            k -= 1
        to[k] = entry
        count += 1
    for k in range(count):
        if merged:
            even = which or to[merged - 1].y == to[k].y * to[k].size
            for i in range(job.inputs):
                even &= to[merged - 1].x[i] == to[k].x[i] * to[k].size
            if even:
                to[merged - 1].size *= to[k].size
                to[merged - 1].weight = to[k].weight
                to[merged - 1].y = to[k].y
                for i in range(job.inputs):
                    to[merged - 1].x[i] = to[k].x[i]
                continue
        to[merged] = to[k]
        merged += 1
    return merged


cdef void put_axis(Job* job, const Axis* axis) noexcept:
    cdef int i
    job.shape[job.ndim] = axis.size
    for i in range(job.inputs):
        job.x[i].strides[job.ndim] = axis.x[i]
    job.ndim += 1


cdef int run_reduce(
    Job* job, cnp.ndarray place, int ndim, Py_ssize_t* shape, double cost, Py_ssize_t n,
    int how, double divisor, int typenum, str function,
) except -1:
    """Reduce the job's call over the axes that ``place`` lacks (size 1 or absent there)."""
    cdef bint reduced[MAX_AXES]
    cdef int axis, offset = ndim - cnp.PyArray_NDIM(place)
    for axis in range(ndim):
        reduced[axis] = axis < offset or cnp.PyArray_DIM(place, axis - offset) != shape[axis]
    fill_operand(job, 0, True, place, ndim, shape)
    return reduce_axes(job, reduced, ndim, shape, cost, n, how, divisor, typenum, function)


cdef int reduce_axes(
    Job* job, bint* reduced, int ndim, Py_ssize_t* shape, double cost, Py_ssize_t n,
    int how, double divisor, int typenum, str function,
) except -1:
    """Reduce the job's call over marked axes into its output."""
    cdef Axis kept[MAX_AXES]
    cdef Axis gone[MAX_AXES]
    cdef int i, kept_count, gone_count
    kept_count = take_axes(job, ndim, shape, reduced, False, kept)
    gone_count = take_axes(job, ndim, shape, reduced, True, gone)
    job.column_mode = (
        kept_count > 0 and gone_count > 0
        and kept[kept_count - 1].weight < gone[gone_count - 1].weight)
    job.kept = kept_count - 1 if job.column_mode else kept_count
    job.how = how
    job.divisor = divisor
    job.kept_axes = kept_count
    job.ndim = 0
    for i in range(kept_count):
        job.kept_shape[i] = kept[i].size
        job.y[0].strides[i] = kept[i].y
        if i < job.kept:
            put_axis(job, &kept[i])
    for i in range(gone_count):
        put_axis(job, &gone[i])
    if job.column_mode:
        put_axis(job, &kept[kept_count - 1])
    elif gone_count == 0:       # nothing to add up: one term each
        kept[0].size = 1
        for i in range(job.inputs):
            kept[0].x[i] = job.x[i].itemsize
        put_axis(job, &kept[0])
    for i in range(job.inputs):
        note_layout(job, &job.x[i], job.ndim, job.shape)
    note_layout(job, &job.y[0], kept_count, job.kept_shape)
    return execute(
        job, run_reduce_f64 if typenum == cnp.NPY_DOUBLE else run_reduce_f32, cost, n, function)


# ---------------------------------------------------------------- blocks on arrays, checked already

cdef int array_job(Job* job, list arrays, int ndim, Py_ssize_t* shape, tuple params, double* values) except -1:
    cdef int i
    job.ndim = ndim
    memcpy(job.shape, shape, ndim * sizeof(Py_ssize_t))
    job.inputs = len(arrays)
    job.outputs = 1
    job.stage = False
    job.params = values
    for i in range(len(params)):
        values[i] = params[i]
    for i in range(len(arrays)):
        fill_operand(job, i, False, arrays[i], ndim, shape)
    return 0


cdef int map_into(str function, Gradient block, list arrays, cnp.ndarray place, tuple params) except -1:
    """Fill an array with a block's results; the operands broadcast to its shape."""
    cdef Job job
    cdef double values[8]
    cdef int typenum = cnp.PyArray_TYPE(place)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(place)
    if n == 0:
        return 0
    array_job(&job, arrays, cnp.PyArray_NDIM(place), <Py_ssize_t*> cnp.PyArray_DIMS(place), params, values)
    fill_operand(&job, 0, True, place, job.ndim, job.shape)
    fill_call(&job, 0, block, typenum)
    return map_job(&job, block.cost, n, function)


cdef int reduce_into(
    str function, Gradient block, list arrays, tuple shape, cnp.ndarray place, int how,
    double divisor, tuple params,
) except -1:
    """Reduce a block's results over the axes in which ``place`` has size 1 and ``shape`` has not."""
    cdef Job job
    cdef double values[8]
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef Py_ssize_t n = 1
    cdef int i, ndim = len(shape), typenum = cnp.PyArray_TYPE(place)
    for i in range(ndim):
        sizes[i] = shape[i]
        n *= sizes[i]
    array_job(&job, arrays, ndim, sizes, params, values)
    fill_call(&job, 0, block, typenum)
    if block is IDENTITY:
        job.calls[0].block = NULL       # joined where it lies
    return run_reduce(&job, place, ndim, sizes, block.cost, n, how, divisor, typenum, function)


cdef int reduce_flat(str function, cnp.ndarray array, cnp.ndarray place, int how, double divisor) except -1:
    """Reduce a whole C-contiguous array to the one element of ``place``."""
    cdef Job job
    cdef int typenum = cnp.PyArray_TYPE(place)
    job.ndim = 1
    job.shape[0] = cnp.PyArray_SIZE(array)
    job.inputs = 1
    job.outputs = 1
    job.stage = False
    job.x[0].data = cnp.PyArray_BYTES(array)
    job.x[0].itemsize = cnp.PyArray_ITEMSIZE(array)
    job.x[0].half = cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT16
    job.x[0].strides[0] = job.x[0].itemsize
    job.x[0].dense = True
    job.x[0].same_rows = True
    job.y[0] = job.x[0]
    job.y[0].data = cnp.PyArray_BYTES(place)
    job.y[0].itemsize = cnp.PyArray_ITEMSIZE(place)
    job.y[0].half = typenum == cnp.NPY_FLOAT16
    job.calls[0].block = NULL
    job.calls[0].arity = 1
    job.calls[0].args[0] = 0
    job.how = how
    job.kept = 0
    job.column_mode = False
    job.divisor = divisor
    job.kept_axes = 0
    return execute(
        &job, run_reduce_f64 if typenum == cnp.NPY_DOUBLE else run_reduce_f32, 0.08, job.shape[0], function)


cdef cnp.ndarray reduce_axis(
    str function, cnp.ndarray array, int axis, bint keepdims, int how, bint mean,
):
    """A float array that is not empty reduced along one axis."""
    cdef Job job
    cdef bint reduced[MAX_AXES]
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef int i, k = 0, ndim = cnp.PyArray_NDIM(array), typenum = cnp.PyArray_TYPE(array)
    cdef Py_ssize_t* shape = <Py_ssize_t*> cnp.PyArray_DIMS(array)
    cdef cnp.ndarray place
    for i in range(ndim):
        reduced[i] = i == axis
        if i != axis or keepdims:
            sizes[k] = 1 if i == axis else shape[i]
            k += 1
    place = new_array(k, sizes, typenum)
    job.inputs = 1
    job.outputs = 1
    job.stage = False
    fill_operand(&job, 0, False, array, ndim, shape)
    k = 0
    for i in range(ndim):       # the output's strides as the input's axes see them
        job.y[0].strides[i] = 0
        if i != axis:
            job.y[0].strides[i] = cnp.PyArray_STRIDE(place, k)
        if i != axis or keepdims:
            k += 1
    job.y[0].data = cnp.PyArray_BYTES(place)
    job.y[0].itemsize = cnp.PyArray_ITEMSIZE(place)
    job.y[0].half = typenum == cnp.NPY_FLOAT16
    job.calls[0].block = NULL
    job.calls[0].arity = 1
    job.calls[0].args[0] = 0
    reduce_axes(&job, reduced, ndim, shape, 0.08, cnp.PyArray_SIZE(array), how,
                shape[axis] if mean else 1, typenum, function)
    return place


cpdef object sum_to(str function, object grad, tuple original, object out=None):
    """Sum a tensor back to the shape it was broadcast from."""
    cdef cnp.ndarray array = plain_array(grad, function, "grad"), target, place
    cdef Py_ssize_t shape[MAX_AXES]
    cdef tuple full = shape_of(array)
    cdef int i, ndim = broadcast(function, ("original_shape", "grad"), [original, full], shape)
    cdef int missing = ndim - len(original), typenum = cnp.PyArray_TYPE(array)
    if tuple([shape[i] for i in range(ndim)]) != full:
        raise ValueError(
            f"{function}: grad of shape {full} does not come from broadcasting {original}")
    for i in range(len(original)):
        shape[i] = original[i]
    target = new_array(len(original), shape, typenum) if out is None else checked_out(
        function, out, len(original), shape, typenum)
    place = target
    if out is not None and (overlap(array, target) != APART or not cnp.PyArray_ISALIGNED(target)):
        place = new_array(len(original), shape, typenum)
    if not is_float(typenum):
        axes = tuple(range(missing)) + tuple([
            missing + i for i in range(len(original)) if original[i] == 1 and full[missing + i] != 1])
        summed = np.add.reduce(array, axis=axes, dtype=array.dtype, keepdims=True)
        np.copyto(place, summed.reshape(original))
    elif cnp.PyArray_SIZE(array) == 0:
        place.fill(0)
    else:
        reduce_into(function, IDENTITY, [array], full, place, SUM, 1.0, ())
    if place is not target:
        cnp.PyArray_CopyInto(target, place)
    return as_result(out, target)


_blocks = _cpu.kernels("arithmetic")
IDENTITY = Gradient(_blocks["copy"], (0,))


# ---------------------------------------------------------------- new tensors

def empty_tensor(str function, object shape, object dtype, bint zeroed=False) -> ExTensor:
    """A tensor of a shape given as an int or a sequence of ints; uninitialised, or of zeros."""
    cdef Py_ssize_t sizes[MAX_AXES]
    cdef int i, ndim
    cdef cnp.ndarray array
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"{function}: shape must be an int or a tuple or list of ints, got {shape!r}")
    ndim = len(shape)
    if ndim > MAX_AXES:
        raise ValueError(f"{function}: {ndim} axes are more than the {MAX_AXES} supported")
    for i in range(ndim):
        try:
            sizes[i] = shape[i].__index__()
        except AttributeError:
            raise TypeError(f"{function}: shape must hold ints, got {shape!r}") from None
        except OverflowError:
            raise ValueError(f"{function}: shape {shape!r} does not fit in memory") from None
        if sizes[i] < 0:
            raise ValueError(f"{function}: shape {tuple(shape)} has a negative size")
    try:
        array = new_array(ndim, sizes, dtype.num)
        if zeroed:
            memset(cnp.PyArray_DATA(array), 0, cnp.PyArray_NBYTES(array))
        return wrap(array)
    except (ValueError, MemoryError) as error:
        raise type(error)(f"{function}: {error}") from None


def check_needs(str function, object needs, int count) -> tuple:
    """The ``needs`` argument of a backward function as a tuple of bools."""
    return checked_needs(function, needs, count)


def check_outs(str function, object out, int count) -> tuple:
    """The ``out`` argument of a function with several results as a tuple."""
    return checked_outs(function, out, count)
