"""The logical functions of bools: blocks on bytes. Anything else goes the way of every function."""

cimport numpy as cnp

from extensor._apply cimport (
    TANGLED, Gradient, Op, as_result, bare, map_into, note_team, overlap, simple,
)
from extensor._kernels.types cimport Block1, Block2
from extensor._memory cimport new_array

from extensor import _cpu
from extensor._apply import call1, call2

cnp.import_array()

_blocks = _cpu.kernels("elementwise")

cdef enum:
    QUICK = 1 << 17         # elements up to which the block runs at once, on one thread
# Nanoseconds an element on one core: two bytes read, one written (AVX-512).
cdef double BYTES_NS = 0.02


cdef class Logic:
    """A logical function: its Op, and its block on bytes."""
    cdef Op op
    cdef Gradient block

    def __init__(self, Op op):
        self.op = op
        self.block = Gradient(_blocks[op.name + "_bool"], tuple(range(op.arity)))
        self.block.cost = BYTES_NS


cdef bint alike(cnp.ndarray a, cnp.ndarray b) noexcept:
    cdef int axis
    if cnp.PyArray_TYPE(b) != cnp.NPY_BOOL or cnp.PyArray_NDIM(a) != cnp.PyArray_NDIM(b):
        return False
    for axis in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, axis) != cnp.PyArray_DIM(b, axis):
            return False
    return True


cdef cnp.ndarray place_for(cnp.ndarray a, cnp.ndarray b, object out):
    """A new array, or an ``out`` that fits as it is; else None."""
    cdef cnp.ndarray y
    if out is None:
        return new_array(cnp.PyArray_NDIM(a), <Py_ssize_t*> cnp.PyArray_DIMS(a), cnp.NPY_BOOL)
    y = bare(out)
    if (y is None or not alike(a, y) or not cnp.PyArray_CHKFLAGS(y, cnp.NPY_ARRAY_CARRAY)
            or overlap(a, y) == TANGLED or overlap(b, y) == TANGLED):
        return None
    return y


def logic1(Logic logic, object x, object out):
    cdef cnp.ndarray a = bare(x), y
    if a is not None and cnp.PyArray_TYPE(a) == cnp.NPY_BOOL:
        y = place_for(a, a, out)
        if y is not None:
            if cnp.PyArray_SIZE(a) <= QUICK and simple(a):
                (<Block1> logic.block.f32)(
                    cnp.PyArray_DATA(a), cnp.PyArray_DATA(y), cnp.PyArray_SIZE(a), NULL)
                note_team(1)
            else:
                map_into(logic.op.name, logic.block, [a], y, ())
            return as_result(out, y)
    return call1(logic.op, x, out)


def logic2(Logic logic, object x, object z, object out):
    cdef cnp.ndarray a = bare(x), b = bare(z), y
    if a is not None and b is not None and cnp.PyArray_TYPE(a) == cnp.NPY_BOOL and alike(a, b):
        y = place_for(a, b, out)
        if y is not None:
            if cnp.PyArray_SIZE(a) <= QUICK and simple(a) and simple(b):
                (<Block2> logic.block.f32)(
                    cnp.PyArray_DATA(a), cnp.PyArray_DATA(b), cnp.PyArray_DATA(y),
                    cnp.PyArray_SIZE(a), NULL)
                note_team(1)
            else:
                map_into(logic.op.name, logic.block, [a, b], y, ())
            return as_result(out, y)
    return call2(logic.op, x, z, out)
