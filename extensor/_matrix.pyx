"""The apply layer of matrix products: shapes, strides and batches become one gemm job.

A product is C = A·B over matrices that may lie anywhere with any strides, so transposes, slices
and broadcast batches are read where they are. Where C lacks a batch axis, the products along it
are summed: that is the gradient of a broadcast operand.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY

from extensor._apply cimport (
    APART, Gradient, as_result, bare, checked_out, converted, is_float, map_into, note_team, overlap, pointer,
    reduce_into, shape_of, simple, team_for, upstream,
)
from extensor._kernels.types cimport MAX_AXES, SUM
from extensor._memory cimport new_array
from extensor._tensor cimport ExTensor, plain_array, wrap

from extensor import _cpu
from extensor._apply import IDENTITY, check_needs, check_outs

cnp.import_array()

cdef extern from "gemm.h" nogil:
    ctypedef struct ex_gemm_job:
        Py_ssize_t m, n, k
        const void* a
        const void* b
        void* c
        const void* bias
        Py_ssize_t a_row, a_col, b_row, b_col, c_row, c_col
        int nbatch_axes
        const Py_ssize_t* batch_shape
        const Py_ssize_t* a_batch
        const Py_ssize_t* b_batch
        const Py_ssize_t* c_batch
        int accumulate
        int threads

ctypedef int (*Gemm)(const ex_gemm_job*) noexcept nogil

_kernels = _cpu.kernels("matrix")
cdef Gradient _multiply = Gradient(_cpu.kernels("arithmetic")["multiply"], (0, 1))
cdef Gemm gemm_f32 = <Gemm> pointer(_kernels["gemm_f32"])
cdef Gemm gemm_f64 = <Gemm> pointer(_kernels["gemm_f64"])
cdef Gemm gemm_f16 = <Gemm> pointer(_kernels["gemm_f16"])

cdef double NOGIL_FLOPS = 50000.0       # some 2 µs of work; below it the GIL is kept


# A stack of matrices somewhere in memory; strides in elements, 0 where broadcast.
cdef struct View:
    char* data
    Py_ssize_t rows, cols, row, col
    int batch_axes
    Py_ssize_t shape[MAX_AXES]
    Py_ssize_t strides[MAX_AXES]


cdef bint even_strides(cnp.ndarray x) noexcept:
    """Whether every stride is a whole number of elements."""
    cdef int axis
    for axis in range(cnp.PyArray_NDIM(x)):
        if cnp.PyArray_STRIDE(x, axis) % cnp.PyArray_ITEMSIZE(x):
            return False
    return True


cdef void look(cnp.ndarray x, View* view, bint column) noexcept:
    """A tensor as a stack of matrices; a vector is one row, or one column."""
    cdef int ndim = cnp.PyArray_NDIM(x), axis
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(x)
    view.data = cnp.PyArray_BYTES(x)
    view.batch_axes = 0
    if ndim == 1:
        view.rows, view.cols = 1, cnp.PyArray_DIM(x, 0)
        view.row, view.col = 0, cnp.PyArray_STRIDE(x, 0) // size
        if column:
            turn(view)
        return
    view.rows, view.cols = cnp.PyArray_DIM(x, ndim - 2), cnp.PyArray_DIM(x, ndim - 1)
    view.row = cnp.PyArray_STRIDE(x, ndim - 2) // size
    view.col = cnp.PyArray_STRIDE(x, ndim - 1) // size
    view.batch_axes = ndim - 2
    for axis in range(ndim - 2):
        view.shape[axis] = cnp.PyArray_DIM(x, axis)
        view.strides[axis] = cnp.PyArray_STRIDE(x, axis) // size


cdef void turn(View* view) noexcept:
    """The transpose: nothing moves."""
    view.rows, view.cols = view.cols, view.rows
    view.row, view.col = view.col, view.row


cdef void expand(View* view, int batch_axes, const Py_ssize_t* shape) noexcept:
    """Broadcast the batch axes: stride 0 where an axis is missing or has size 1."""
    cdef int missing = batch_axes - view.batch_axes, axis
    axis = batch_axes - 1
    while axis >= 0:
        if axis < missing or (view.shape[axis - missing] == 1 and shape[axis] != 1):
            view.strides[axis] = 0
        else:
            view.strides[axis] = view.strides[axis - missing]
        axis -= 1
    for axis in range(batch_axes):
        view.shape[axis] = shape[axis]
    view.batch_axes = batch_axes


cdef void fold(View* a, View* b, View* c) noexcept:
    """Take batch axes into the matrices: rows of A and C side by side, or a longer sum over K."""
    cdef int last
    cdef Py_ssize_t size
    while a.batch_axes:
        last = a.batch_axes - 1
        size = a.shape[last]
        if size == 1:
            pass
        elif (b.strides[last] == 0 and a.strides[last] == a.row * a.rows
                and c.strides[last] == c.row * c.rows):
            a.rows *= size
            c.rows *= size
        elif (c.strides[last] == 0 and a.strides[last] == a.col * a.cols
                and b.strides[last] == b.row * b.rows):
            a.cols *= size
            b.rows *= size
        else:
            return
        a.batch_axes -= 1
        b.batch_axes -= 1
        c.batch_axes -= 1


cdef int product(str function, View* a, View* b, View* c, const void* bias, int typenum) except -1:
    """C = A·B (+ bias), the views expanded to the same batch axes."""
    cdef ex_gemm_job job
    cdef Gemm gemm = gemm_f64 if typenum == cnp.NPY_DOUBLE else (
        gemm_f32 if typenum == cnp.NPY_FLOAT else gemm_f16)
    cdef double flops
    cdef int axis, status
    fold(a, b, c)
    flops = 2.0 * c.rows * c.cols * a.cols
    for axis in range(a.batch_axes):
        flops *= a.shape[axis]
    job.m, job.n, job.k = c.rows, c.cols, a.cols
    job.a, job.b, job.c, job.bias = a.data, b.data, c.data, bias
    job.a_row, job.a_col = a.row, a.col
    job.b_row, job.b_col = b.row, b.col
    job.c_row, job.c_col = c.row, c.col
    job.nbatch_axes = a.batch_axes
    job.batch_shape, job.a_batch, job.b_batch, job.c_batch = a.shape, a.strides, b.strides, c.strides
    job.accumulate = 0
    job.threads = team_for(INFINITY)
    if flops > NOGIL_FLOPS:
        with nogil:
            status = gemm(&job)
    else:
        status = gemm(&job)
    if status < 0:
        raise MemoryError(f"{function}: no memory for the packing buffers")
    note_team(status)
    return 0


# ---------------------------------------------------------------- operands and results

cdef cnp.ndarray operand(str function, object x, str name):
    cdef cnp.ndarray array = bare(x)
    if array is None or not simple(array):
        array = plain_array(x, function, name)
    return array


cdef cnp.ndarray ready(cnp.ndarray array, int typenum):
    """An operand in the dtype of the product, readable with element strides."""
    array = converted(array, typenum)
    return array if even_strides(array) else np.ascontiguousarray(array)


cdef cnp.ndarray place_for(str function, object out, int ndim, Py_ssize_t* shape, int typenum):
    if out is None:
        return new_array(ndim, shape, typenum)
    return checked_out(function, out, ndim, shape, typenum)


cdef cnp.ndarray work_place(object out, cnp.ndarray target, int typenum, list inputs):
    """The array to compute into: the target, or a new one where it cannot be written directly."""
    cdef bint direct = cnp.PyArray_TYPE(target) == typenum
    cdef cnp.ndarray x
    if direct and out is not None:
        direct = cnp.PyArray_ISALIGNED(target) and even_strides(target)
        for x in inputs:
            direct = direct and overlap(x, target) == APART
    if direct:
        return target
    return new_array(cnp.PyArray_NDIM(target), <Py_ssize_t*> cnp.PyArray_DIMS(target), typenum)


cdef int deliver(cnp.ndarray place, cnp.ndarray target) except -1:
    if place is not target:
        with np.errstate(all="ignore"):
            np.copyto(target, converted(place, cnp.PyArray_TYPE(target)), casting="same_kind")
    return 0


cdef int common(cnp.ndarray a, cnp.ndarray b):
    cdef int typenum = cnp.PyArray_TYPE(a)
    if typenum == cnp.PyArray_TYPE(b):
        return typenum
    return np.result_type(a.dtype, b.dtype).num


cdef int batch_of(str function, cnp.ndarray a, cnp.ndarray b, Py_ssize_t* shape) except -1:
    """The broadcast batch axes of two operands."""
    cdef int na = max(cnp.PyArray_NDIM(a) - 2, 0), nb = max(cnp.PyArray_NDIM(b) - 2, 0)
    cdef int n = max(na, nb), axis
    cdef Py_ssize_t x, y
    for axis in range(n):
        x = cnp.PyArray_DIM(a, axis - (n - na)) if axis >= n - na else 1
        y = cnp.PyArray_DIM(b, axis - (n - nb)) if axis >= n - nb else 1
        if x != y and x != 1 and y != 1:
            raise ValueError(
                f"{function}: a has shape {shape_of(a)} and b has shape {shape_of(b)}; their batch "
                f"axes do not broadcast: axis {axis - n - 2} is {x} in a and {y} in b")
        shape[axis] = y if x == 1 else x
    return n


cdef int result_shape(str function, cnp.ndarray a, cnp.ndarray b, Py_ssize_t* shape) except -1:
    """The shape of a·b, or an error that names both shapes and the axes that disagree."""
    cdef int na = cnp.PyArray_NDIM(a), nb = cnp.PyArray_NDIM(b), n
    cdef Py_ssize_t k_a, k_b
    if na == 0 or nb == 0:
        raise ValueError(
            f"{function}: a has shape {shape_of(a)} and b has shape {shape_of(b)}; both need at "
            "least one axis (multiply takes scalars)")
    k_a = cnp.PyArray_DIM(a, na - 1)
    k_b = cnp.PyArray_DIM(b, nb - 2 if nb > 1 else 0)
    if k_a != k_b:
        raise ValueError(
            f"{function}: a has shape {shape_of(a)} and b has shape {shape_of(b)}; the last axis "
            f"of a ({k_a}) and axis {-2 if nb > 1 else 0} of b ({k_b}) must be equal")
    n = batch_of(function, a, b, shape)
    if na > 1:
        shape[n] = cnp.PyArray_DIM(a, na - 2)
        n += 1
    if nb > 1:
        shape[n] = cnp.PyArray_DIM(b, nb - 1)
        n += 1
    return n


cdef void result_view(cnp.ndarray c, View* view, bint a_vector, bint b_vector) noexcept:
    """The result as a stack of matrices: a vector operand left out its axis."""
    cdef int ndim = cnp.PyArray_NDIM(c), axis, end = ndim
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(c)
    view.data = cnp.PyArray_BYTES(c)
    view.rows, view.cols, view.row, view.col = 1, 1, 0, 0
    if not b_vector:
        end -= 1
        view.cols, view.col = cnp.PyArray_DIM(c, end), cnp.PyArray_STRIDE(c, end) // size
    if not a_vector:
        end -= 1
        view.rows, view.row = cnp.PyArray_DIM(c, end), cnp.PyArray_STRIDE(c, end) // size
    view.batch_axes = end
    for axis in range(end):
        view.shape[axis] = cnp.PyArray_DIM(c, axis)
        view.strides[axis] = cnp.PyArray_STRIDE(c, axis) // size


# ---------------------------------------------------------------- matmul

cpdef object matmul(str function, object x, object z, object out=None, int only=0):
    """a·b with NumPy's semantics; ``only`` = 1 takes vectors alone (dot)."""
    cdef cnp.ndarray a = operand(function, x, "a"), b = operand(function, z, "b"), target, place
    cdef Py_ssize_t shape[MAX_AXES]
    cdef int typenum = common(a, b), ndim
    cdef View va, vb, vc
    if only and (cnp.PyArray_NDIM(a) != 1 or cnp.PyArray_NDIM(b) != 1):
        raise ValueError(
            f"{function}: a and b must have one axis each, got shapes {shape_of(a)} and {shape_of(b)}")
    ndim = result_shape(function, a, b, shape)
    target = place_for(function, out, ndim, shape, typenum)
    if not is_float(typenum):
        np.copyto(target, np.matmul(a, b))       # integers: NumPy's own loops
        return as_result(out, target)
    if cnp.PyArray_SIZE(target) == 0:
        return as_result(out, target)
    place = work_place(out, target, typenum, [a, b] if out is not None else [])
    a = ready(a, typenum)
    b = ready(b, typenum)
    look(a, &va, False)
    look(b, &vb, True)
    result_view(place, &vc, cnp.PyArray_NDIM(a) == 1, cnp.PyArray_NDIM(b) == 1)
    expand(&va, vc.batch_axes, vc.shape)
    expand(&vb, vc.batch_axes, vc.shape)
    product(function, &va, &vb, &vc, NULL, typenum)
    deliver(place, target)
    return as_result(out, target)


cdef cnp.ndarray shaped_upstream(
    str function, object grad_output, int ndim, Py_ssize_t* shape, int beside,
):
    cdef cnp.ndarray g = upstream(function, grad_output, beside)
    cdef tuple wanted = tuple([shape[i] for i in range(ndim)])
    if shape_of(g) != wanted:
        raise ValueError(
            f"{function}: grad_output has shape {shape_of(g)}, the forward result has shape {wanted}")
    return g


cdef inline int final_dtype(cnp.ndarray x, cnp.ndarray g) noexcept:
    return cnp.PyArray_TYPE(x) if is_float(cnp.PyArray_TYPE(x)) else cnp.PyArray_TYPE(g)


cdef bint alike(cnp.ndarray g, cnp.ndarray a, cnp.ndarray b):
    """Whether three operands lie as C arrays of one dtype, float32 or float64, and a and b are vectors."""
    cdef int typenum
    if g is None or a is None or b is None:
        return False
    typenum = cnp.PyArray_TYPE(g)
    return (
        (typenum == cnp.NPY_FLOAT or typenum == cnp.NPY_DOUBLE)
        and cnp.PyArray_TYPE(a) == typenum and cnp.PyArray_TYPE(b) == typenum
        and cnp.PyArray_NDIM(a) == 1 and cnp.PyArray_NDIM(b) == 1
        and simple(g) and simple(a) and simple(b))


cdef object vector_gradients(str function, cnp.ndarray g, cnp.ndarray a, cnp.ndarray b):
    """g·b and gᵀ·a in the shapes of a and b: the gradients of dot (g a scalar) and of outer."""
    cdef cnp.ndarray ga = new_array(1, <Py_ssize_t*> cnp.PyArray_DIMS(a), cnp.PyArray_TYPE(g))
    cdef cnp.ndarray gb = new_array(1, <Py_ssize_t*> cnp.PyArray_DIMS(b), cnp.PyArray_TYPE(g))
    cdef View vg, vector, result
    if cnp.PyArray_NDIM(g) == 0:
        map_into(function, _multiply, [g, b], ga, ())
        map_into(function, _multiply, [g, a], gb, ())
        return wrap(ga), wrap(gb)
    look(g, &vg, False)
    look(b, &vector, True)
    look(ga, &result, True)
    product(function, &vg, &vector, &result, NULL, cnp.PyArray_TYPE(g))
    look(g, &vg, False)
    turn(&vg)
    look(a, &vector, True)
    look(gb, &result, True)
    product(function, &vg, &vector, &result, NULL, cnp.PyArray_TYPE(g))
    return wrap(ga), wrap(gb)


cpdef object matmul_backward(
    str function, object grad_output, object x, object z, object needs=None, object out=None, int only=0,
):
    """The gradients g·bᵀ and aᵀ·g, summed over the batch axes that an operand lacks."""
    if only and needs is None and out is None and alike(bare(grad_output), bare(x), bare(z)):
        if bare(grad_output).ndim == 0 and cnp.PyArray_SIZE(bare(x)) == cnp.PyArray_SIZE(bare(z)):
            return vector_gradients(function, bare(grad_output), bare(x), bare(z))
    cdef cnp.ndarray a = operand(function, x, "a"), b = operand(function, z, "b"), g
    cdef Py_ssize_t shape[MAX_AXES]
    cdef int typenum, ndim
    if only and (cnp.PyArray_NDIM(a) != 1 or cnp.PyArray_NDIM(b) != 1):
        raise ValueError(
            f"{function}: a and b must have one axis each, got shapes {shape_of(a)} and {shape_of(b)}")
    ndim = result_shape(function, a, b, shape)
    g = shaped_upstream(function, grad_output, ndim, shape, common(a, b))
    wanted = check_needs(function, needs, 2)
    outs = check_outs(function, out, 2)
    targets = [
        place_for(function, outs[i], cnp.PyArray_NDIM(one), <Py_ssize_t*> cnp.PyArray_DIMS(one),
                  final_dtype(one, g)) if wanted[i] else None
        for i, one in ((0, a), (1, b))]
    if out is not None:
        refuse_shared(function, targets)
    typenum = common_three(g, a, b)
    pair_product(g, a, b, typenum, cnp.PyArray_NDIM(a) == 1, cnp.PyArray_NDIM(b) == 1, function, outs, targets)
    return tuple([None if targets[i] is None else as_result(outs[i], targets[i]) for i in range(2)])


cdef int common_three(cnp.ndarray g, cnp.ndarray a, cnp.ndarray b):
    cdef int typenum = common(a, b)
    if typenum == cnp.PyArray_TYPE(g):
        return typenum
    return np.result_type(cnp.PyArray_DescrFromType(typenum), g.dtype).num


cdef int refuse_shared(str function, list targets) except -1:
    cdef int i, k
    for i in range(len(targets)):
        for k in range(i):
            if targets[i] is not None and targets[k] is not None:
                if overlap(targets[i], targets[k]) != APART:
                    raise ValueError(f"{function}: two of the out tensors share memory")
    return 0


cdef int pair_product(
    cnp.ndarray g, cnp.ndarray a, cnp.ndarray b, int typenum, bint a_vector, bint b_vector,
    str function, tuple outs, list targets,
) except -1:
    cdef View vg, va, vb, vc
    cdef list inputs = [g, a, b], places = [None, None]
    cdef int i, compute = typenum
    if compute == cnp.NPY_FLOAT16 and cnp.PyArray_NDIM(g) > 2:
        compute = cnp.NPY_FLOAT         # sums over batches are kept in float32
    g = ready(g, compute)
    a = ready(a, compute)
    b = ready(b, compute)
    for i in range(2):
        if targets[i] is None:
            continue
        places[i] = work_place(outs[i], targets[i], compute, inputs)
        if cnp.PyArray_SIZE(places[i]) == 0:
            continue
        result_view(g, &vg, a_vector, b_vector)
        if i == 0:
            look(b, &vb, True)
            turn(&vb)
            look(places[0], &vc, False)
            expand(&vb, vg.batch_axes, vg.shape)
            expand(&vc, vg.batch_axes, vg.shape)
            product_or_zero(function, &vg, &vb, &vc, places[0], compute)
        else:
            look(a, &va, False)
            turn(&va)
            look(places[1], &vc, True)
            expand(&va, vg.batch_axes, vg.shape)
            expand(&vc, vg.batch_axes, vg.shape)
            product_or_zero(function, &va, &vg, &vc, places[1], compute)
    for i in range(2):
        if targets[i] is not None:
            deliver(places[i], targets[i])
    return 0


cdef int product_or_zero(str function, View* a, View* b, View* c, cnp.ndarray place, int typenum) except -1:
    """A product; of an empty batch or an empty sum it is zero."""
    cdef int axis
    for axis in range(a.batch_axes):
        if a.shape[axis] == 0:
            place.fill(0)
            return 0
    return product(function, a, b, c, NULL, typenum)


# ---------------------------------------------------------------- outer

cpdef object outer(str function, object x, object z, object out=None):
    cdef cnp.ndarray a = operand(function, x, "a"), b = operand(function, z, "b")
    if cnp.PyArray_NDIM(a) != 1 or cnp.PyArray_NDIM(b) != 1:
        raise ValueError(
            f"{function}: a and b must have one axis each, got shapes {shape_of(a)} and {shape_of(b)}")
    cdef int typenum = common(a, b)
    if not is_float(typenum):
        return matmul(function, a.reshape(-1, 1).astype(np.result_type(a, b), copy=False), b.reshape(1, -1), out)
    if typenum != cnp.NPY_FLOAT16 and out is None and simple(b):
        return matmul(function, a.reshape(-1, 1), b.reshape(1, -1))     # a path of single products
    cdef Py_ssize_t shape[2]
    shape[0], shape[1] = cnp.PyArray_DIM(a, 0), cnp.PyArray_DIM(b, 0)
    cdef cnp.ndarray target = place_for(function, out, 2, shape, typenum)
    cdef cnp.ndarray place = work_place(out, target, typenum, [a, b] if out is not None else [])
    # element by element: tiles add to 0, which turns -0.0 into 0.0
    map_into(function, _multiply, [converted(a, typenum).reshape(-1, 1), converted(b, typenum)], place, ())
    deliver(place, target)
    return as_result(out, target)


cpdef object outer_backward(
    str function, object grad_output, object x, object z, object needs=None, object out=None,
):
    cdef cnp.ndarray a = operand(function, x, "a"), b = operand(function, z, "b"), g = bare(grad_output)
    if needs is None and out is None and alike(g, a, b) and cnp.PyArray_NDIM(g) == 2:
        if (cnp.PyArray_SIZE(g) and cnp.PyArray_DIM(g, 0) == cnp.PyArray_DIM(a, 0)
                and cnp.PyArray_DIM(g, 1) == cnp.PyArray_DIM(b, 0)):
            return vector_gradients(function, g, a, b)
    if cnp.PyArray_NDIM(a) != 1 or cnp.PyArray_NDIM(b) != 1:
        raise ValueError(
            f"{function}: a and b must have one axis each, got shapes {shape_of(a)} and {shape_of(b)}")
    outs = check_outs(function, out, 2)
    shaped = None
    if out is not None:
        shaped = []
        for i, (one, column) in enumerate(((a, True), (b, False))):
            array = bare(outs[i]) if outs[i] is not None else None
            if array is None or array.shape != one.shape:
                if outs[i] is None:
                    shaped.append(None)
                    continue
                checked_out(function, outs[i], 1, <Py_ssize_t*> cnp.PyArray_DIMS(one), final_dtype(
                    one, upstream(function, grad_output)))
            shaped.append(array[:, None] if column else array[None, :])
        shaped = tuple(shaped)
    grads = matmul_backward(function, grad_output, a.reshape(-1, 1), b.reshape(1, -1), needs, shaped)
    return tuple([
        None if grad is None else outs[i] if isinstance(outs[i], ExTensor)
        else wrap(np.reshape(grad._array, -1)) for i, grad in enumerate(grads)])


# ---------------------------------------------------------------- linear

cdef int check_linear(str function, cnp.ndarray x, cnp.ndarray weight) except -1:
    if cnp.PyArray_NDIM(weight) != 2:
        raise ValueError(
            f"{function}: weight must have shape (out, in), got {shape_of(weight)}")
    if cnp.PyArray_NDIM(x) == 0 or (
            cnp.PyArray_DIM(x, cnp.PyArray_NDIM(x) - 1) != cnp.PyArray_DIM(weight, 1)):
        raise ValueError(
            f"{function}: x has shape {shape_of(x)} and weight has shape {shape_of(weight)}; the "
            f"last axis of x must be weight's axis 1 ({cnp.PyArray_DIM(weight, 1)})")
    return 0


cpdef object linear(str function, object input, object weights, object bias=None, object out=None):
    """x·weightᵀ + bias over the last axis of x."""
    cdef cnp.ndarray x = operand(function, input, "x"), weight = operand(function, weights, "weight")
    cdef cnp.ndarray shift = None, target, place
    cdef Py_ssize_t shape[MAX_AXES]
    cdef int typenum = common(x, weight), ndim = cnp.PyArray_NDIM(x), axis
    cdef View vx, vw, vc
    check_linear(function, x, weight)
    if bias is not None:
        shift = operand(function, bias, "bias")
        if cnp.PyArray_NDIM(shift) != 1 or cnp.PyArray_DIM(shift, 0) != cnp.PyArray_DIM(weight, 0):
            raise ValueError(
                f"{function}: bias has shape {shape_of(shift)}; for weight of shape "
                f"{shape_of(weight)} it must be ({cnp.PyArray_DIM(weight, 0)},)")
        if cnp.PyArray_TYPE(shift) != typenum:
            typenum = np.result_type(cnp.PyArray_DescrFromType(typenum), shift.dtype).num
    for axis in range(ndim):
        shape[axis] = cnp.PyArray_DIM(x, axis)
    shape[ndim - 1] = cnp.PyArray_DIM(weight, 0)
    target = place_for(function, out, ndim, shape, typenum)
    if not is_float(typenum):
        result = np.matmul(x, weight.T)
        np.copyto(target, result if shift is None else result + shift)
        return as_result(out, target)
    if cnp.PyArray_SIZE(target) == 0:
        return as_result(out, target)
    place = work_place(out, target, typenum, [x, weight] if shift is None else [x, weight, shift])
    x = ready(x, typenum)
    weight = ready(weight, typenum)
    if shift is not None:
        shift = np.ascontiguousarray(converted(shift, typenum))
    look(x, &vx, False)
    look(weight, &vw, False)
    turn(&vw)
    look(place, &vc, False)
    expand(&vw, vc.batch_axes, vc.shape)
    product(function, &vx, &vw, &vc, NULL if shift is None else cnp.PyArray_DATA(shift), typenum)
    deliver(place, target)
    return as_result(out, target)


cpdef object linear_backward(
    str function, object grad_output, object input, object weights, object needs=None, object out=None,
):
    """The gradients g·weight, gᵀ·x and Σ g."""
    cdef cnp.ndarray x = operand(function, input, "x"), weight = operand(function, weights, "weight")
    cdef cnp.ndarray g, one
    cdef Py_ssize_t shape[MAX_AXES]
    cdef int typenum, ndim = cnp.PyArray_NDIM(x), axis, i, compute
    cdef View vg, vx, vw, vc
    check_linear(function, x, weight)
    for axis in range(ndim):
        shape[axis] = cnp.PyArray_DIM(x, axis)
    shape[ndim - 1] = cnp.PyArray_DIM(weight, 0)
    g = shaped_upstream(function, grad_output, ndim, shape, common(x, weight))
    wanted = check_needs(function, needs, 3)
    outs = check_outs(function, out, 3)
    typenum = common_three(g, x, weight)
    cdef list targets = [None, None, None], places = [None, None, None]
    for i in range(2):
        one = weight if i else x
        if wanted[i]:
            targets[i] = place_for(
                function, outs[i], cnp.PyArray_NDIM(one), <Py_ssize_t*> cnp.PyArray_DIMS(one),
                final_dtype(one, g))
    if wanted[2]:
        shape[0] = cnp.PyArray_DIM(weight, 0)
        targets[2] = place_for(function, outs[2], 1, shape, cnp.PyArray_TYPE(g))
    if out is not None:
        refuse_shared(function, targets)
    compute = typenum
    if compute == cnp.NPY_FLOAT16 and ndim > 2:
        compute = cnp.NPY_FLOAT
    cdef list inputs = [g, x, weight]
    for i in range(3):
        if targets[i] is not None:
            places[i] = work_place(outs[i], targets[i], cnp.PyArray_TYPE(g) if i == 2 else compute, inputs)
    if wanted[2]:
        if cnp.PyArray_SIZE(g) == 0:
            (<cnp.ndarray> places[2]).fill(0)
        elif ndim == 1:
            np.copyto(places[2], g)
        else:
            reduce_into(function, IDENTITY, [g], shape_of(g), places[2], SUM, 1.0, ())
    g = ready(g, compute)
    x = ready(x, compute)
    weight = ready(weight, compute)
    look(g, &vg, False)
    if wanted[0] and cnp.PyArray_SIZE(places[0]):
        look(weight, &vw, False)
        look(places[0], &vc, False)
        expand(&vw, vc.batch_axes, vc.shape)
        product(function, &vg, &vw, &vc, NULL, compute)
    if wanted[1] and cnp.PyArray_SIZE(places[1]):
        look(g, &vg, False)
        turn(&vg)
        look(x, &vx, False)
        look(places[1], &vc, False)
        expand(&vc, vx.batch_axes, vx.shape)
        product_or_zero(function, &vg, &vx, &vc, places[1], compute)
    for i in range(3):
        if targets[i] is not None:
            deliver(places[i], targets[i])
    return tuple([None if targets[i] is None else as_result(outs[i], targets[i]) for i in range(3)])


# ---------------------------------------------------------------- transpose

cdef tuple checked_permutation(str function, object axes, int ndim):
    if axes is None:
        return tuple(range(ndim - 1, -1, -1))
    if not isinstance(axes, (tuple, list)):
        raise TypeError(f"{function}: axes must be a tuple of ints or None, got {axes!r}")
    order = []
    for axis in axes:
        if isinstance(axis, (bool, np.bool_)) or not hasattr(axis, "__index__"):
            raise TypeError(f"{function}: axes must be a tuple of ints or None, got {axes!r}")
        index = axis.__index__()
        if not -ndim <= index < ndim:
            raise np.exceptions.AxisError(index, ndim, f"{function}: axes")
        order.append(index % ndim)
    if sorted(order) != list(range(ndim)):
        raise ValueError(f"{function}: axes {tuple(axes)} are not a permutation of the {ndim} axes")
    return tuple(order)


def transpose(str function, object x, object axes) -> ExTensor:
    """A view with the axes permuted."""
    cdef cnp.ndarray array = plain_array(x, function, "x")
    return wrap(array.transpose(checked_permutation(function, axes, cnp.PyArray_NDIM(array))))


def transpose_backward(str function, object grad_output, object axes) -> ExTensor:
    cdef cnp.ndarray g = upstream(function, grad_output)
    order = checked_permutation(function, axes, cnp.PyArray_NDIM(g))
    inverse = [0] * len(order)
    for place, axis in enumerate(order):
        inverse[axis] = place
    return wrap(g.transpose(inverse))
