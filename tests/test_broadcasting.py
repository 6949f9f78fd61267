"""Broadcasting against NumPy's, over shapes that hypothesis makes up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers import assert_same_bits, assert_within, sum_bound
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import broadcastable_shapes, mutually_broadcastable_shapes
from reference import unbroadcast

import extensor as ex

SHAPE = st.lists(st.sampled_from([0, 1, 2, 3, 5]), max_size=5).map(tuple)
quick = settings(max_examples=200)


@quick
@given(st.lists(SHAPE, max_size=4))
def test_broadcast_shapes(shapes: list[tuple]) -> None:
    try:
        wanted = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast_shapes") as caught:
            ex.broadcast_shapes(*shapes)
        assert any(str(shape) in str(caught.value) for shape in shapes)
    else:
        result = ex.broadcast_shapes(*shapes)
        assert result == wanted
        assert type(result) is tuple
        assert all(type(n) is int for n in result)
        assert ex.broadcast_shapes(*map(list, shapes)) == wanted


@quick
@given(SHAPE, SHAPE)
def test_are_shapes_broadcastable(a: tuple, b: tuple) -> None:
    try:
        np.broadcast_shapes(a, b)
        wanted = True
    except ValueError:
        wanted = False
    assert ex.are_shapes_broadcastable(a, b) is wanted


def _within(base: tuple, data: Any) -> tuple:
    """A shape that broadcasts to ``base``."""
    small = tuple(data.draw(st.sampled_from([1, n])) for n in base)
    return small[data.draw(st.integers(0, len(base))) :]


@quick
@given(SHAPE, st.data())
def test_compute_broadcast_strides(base: tuple, data: Any) -> None:
    shape = _within(base, data)
    strides = ex.compute_broadcast_strides(shape, base)
    assert type(strides) is tuple
    assert len(strides) == len(base)
    small = np.arange(math.prod(shape)).reshape(shape)
    wanted = np.broadcast_to(small, base)
    # the strides reach exactly the elements that NumPy's view has
    offsets = np.zeros(base, np.int64)
    for axis, stride in enumerate(strides):
        axis_shape = [1] * len(base)
        axis_shape[axis] = -1
        offsets = offsets + stride * np.arange(base[axis]).reshape(axis_shape)
    assert np.array_equal(offsets, wanted)
    padded = (1,) * (len(base) - len(shape)) + shape
    for stride, n, large in zip(strides, padded, base, strict=True):
        if n == 1 and large != 1:
            assert stride == 0


@pytest.mark.parametrize(
    ("shape", "target"), [((3,), (4,)), ((2, 3), (3,)), ((3,), (3, 1)), ((2,), (0,)), ((0,), (2,))]
)
def test_shapes_that_do_not_broadcast(shape: tuple, target: tuple) -> None:
    with pytest.raises(ValueError, match="compute_broadcast_strides") as caught:
        ex.compute_broadcast_strides(shape, target)
    assert str(shape) in str(caught.value)
    assert str(target) in str(caught.value)
    with pytest.raises(ValueError, match="reduce_broadcast_dims"):
        ex.reduce_broadcast_dims(np.ones(target), shape)


@quick
@given(SHAPE, st.data(), st.sampled_from(["float16", "float32", "float64"]))
def test_reduce_broadcast_dims(base: tuple, data: Any, dtype: str) -> None:
    shape = _within(base, data)
    gradient = np.asarray(np.random.default_rng(0).standard_normal(base), dtype)
    before = gradient.copy()
    result = ex.reduce_broadcast_dims(gradient, shape)
    assert result.dtype == dtype
    assert not np.may_share_memory(np.asarray(result), gradient)
    assert np.array_equal(gradient, before)
    wide = gradient.astype(np.longdouble)
    wanted = unbroadcast(wide, shape)
    bound = sum_bound(unbroadcast(np.abs(wide), shape), max(gradient.size, 1), wanted, dtype)
    assert_within(result, wanted, bound)
    transposed = np.array(gradient, order="F")
    assert_within(ex.reduce_broadcast_dims(transposed, shape), wanted, bound)


@quick
@given(mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=4, min_side=0))
def test_functions_broadcast_as_numpy(shapes: Any) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (np.asarray(rng.integers(1, 9, shape), np.float32) for shape in shapes.input_shapes)
    assert_same_bits(ex.add(a, b), a + b)
    assert_same_bits(ex.divide(b, a), b / a)
    assert_same_bits(ex.where(a > 4, b, c), np.where(a > 4, b, c))
    assert_same_bits(ex.less(a, c), a < c)
    g = np.asarray(rng.integers(-5, 5, np.broadcast_shapes(a.shape, b.shape)), np.float32)
    # integers of this size add up exactly, in any order
    for got, term, x in zip(ex.multiply_backward(g, a, b), (g * b, g * a), (a, b), strict=True):
        assert_same_bits(np.asarray(got) + 0, unbroadcast(term, x.shape).astype(np.float32) + 0)


@quick
@given(st.data())
def test_layouts_and_broadcasting_together(data: Any) -> None:
    """Axes permuted, flipped, skipped and repeated, on both sides and in the gradient."""
    rng = np.random.default_rng(0)
    base = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple))
    arrays = []
    for shape in (base, data.draw(broadcastable_shapes(base, max_dims=len(base), max_side=5))):
        if any(n not in (1, m) for n, m in zip(shape[::-1], base[::-1], strict=False)):
            shape = base  # hypothesis may enlarge axes of size 1
        order = data.draw(st.permutations(range(len(shape))))
        steps = [data.draw(st.sampled_from([1, 2, -1, -3])) for _ in shape]
        big = rng.integers(-9, 9, tuple(shape[i] * abs(steps[i]) for i in order))
        view = big.astype(np.float64).transpose(np.argsort(order))
        arrays.append(view[tuple(slice(None, None, step) for step in steps)])
        assert arrays[-1].shape == tuple(shape)
    a, b = arrays
    assert_same_bits(ex.multiply(a, b) + 0.0, a * b + 0.0)
    assert_same_bits(ex.subtract(b, a), b - a)
    g = a
    for got, term, x in zip(ex.multiply_backward(g, a, b), (g * b, g * a), (a, b), strict=True):
        assert_same_bits(np.asarray(got) + 0, unbroadcast(term, x.shape).astype(np.float64) + 0)


@pytest.mark.parametrize("bad", ["text", None, (1.5,), (-1,), 3.5])
def test_bad_shapes(bad: Any) -> None:
    for call in (
        lambda: ex.broadcast_shapes((2,), bad),
        lambda: ex.are_shapes_broadcastable(bad, (2,)),
        lambda: ex.compute_broadcast_strides(bad, (2,)),
        lambda: ex.reduce_broadcast_dims(np.ones(2), bad),
        lambda: ex.add_backward(np.ones(2), (2,), bad),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
