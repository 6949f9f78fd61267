"""Creation functions: values, dtypes, memory, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_same_bits
from optable import DTYPES

import extensor as ex

SHAPES = [(), (0,), (1,), (3,), (2, 3), (2, 0, 3), (100, 200)]


def owned(tensor: Any) -> None:
    array = np.asarray(tensor)
    assert type(tensor) is ex.ExTensor
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.size == 0 or array.__array_interface__["data"][0] % 64 == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_filled(shape: tuple, dtype: str | None) -> None:
    kwargs = {} if dtype is None else {"dtype": dtype}
    wanted = np.dtype(dtype or "float32")
    dirty = [ex.full(shape, 1, dtype=wanted) for _ in range(3)]  # memory that is used again
    del dirty
    for tensor, value in [
        (ex.zeros(shape, **kwargs), 0),
        (ex.ones(shape, **kwargs), 1),
        (ex.full(shape, 1, dtype=wanted), 1),
        (ex.zeros_like(np.ones(shape, wanted)), 0),
        (ex.ones_like(ex.zeros(shape, **kwargs)), 1),
        (ex.full_like(np.zeros(shape, wanted), 1), 1),
    ]:
        owned(tensor)
        assert_same_bits(tensor, np.full(shape, value, wanted))
    for tensor in (ex.empty(shape, **kwargs), ex.empty_like(np.zeros(shape, wanted))):
        owned(tensor)
        assert (tensor.shape, tensor.dtype) == (shape, wanted)


def test_shapes_may_be_lists_or_ints() -> None:
    assert ex.zeros([2, 3]).shape == (2, 3)
    assert ex.zeros((np.int64(2), 3)).shape == (2, 3)


def test_full_takes_the_dtype_of_its_value() -> None:
    for value, dtype in [(1.5, "float32"), (3, "int64"), (True, "bool")]:
        assert ex.full((2,), value).dtype == dtype
    assert ex.full((2,), np.float64(0.1)).tolist() == [0.1, 0.1]
    assert ex.full((2,), np.int8(3)).dtype == np.int8
    assert ex.full((2,), 2.0, dtype=ex.int32).tolist() == [2, 2]
    assert ex.full_like(np.zeros(2, np.int32), 2.0).dtype == np.int32
    assert ex.full_like([1.5], 2, dtype=ex.float64).dtype == np.float64
    assert ex.full((1,), 2**53 + 1).item() == 2**53 + 1


def test_like_functions_take_another_dtype() -> None:
    x = np.zeros((2, 3), np.int32)
    for function in (ex.zeros_like, ex.ones_like, ex.empty_like):
        assert function(x, dtype=ex.float16).dtype == np.float16
        assert function(x).shape == (2, 3)
        assert not np.shares_memory(np.asarray(function(x)), x)
    transposed = ex.zeros_like(np.zeros((2, 3), order="F"))
    owned(transposed)


@pytest.mark.parametrize(
    "arguments",
    [(5,), (2, 7), (0, 10, 3), (10, 0, -2), (0,), (5, 2), (0.0, 1.0, 0.25), (-1.5, 2.0), (3, 3)],
)
def test_arange(arguments: tuple) -> None:
    floating = any(isinstance(a, float) for a in arguments)
    wanted = np.arange(*arguments, dtype=np.float32 if floating else np.int64)
    tensor = ex.arange(*arguments)
    owned(tensor)
    assert_same_bits(tensor, wanted)
    assert ex.arange(*arguments, dtype=ex.float64).tolist() == pytest.approx(wanted.tolist())


def test_arange_precision_and_limits() -> None:
    # start + i·step in float64, rounded once: no accumulated error
    got = np.asarray(ex.arange(0.0, 1000.0, 0.1, dtype=ex.float64))
    assert_same_bits(got, np.arange(len(got)) * 0.1)
    assert ex.arange(2**53, 2**53 + 3).tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    with pytest.raises(ValueError, match="arange"):
        ex.arange(0, 5, 0)
    for bad in ("x", None, 1j):
        with pytest.raises(TypeError, match="arange"):
            ex.arange(bad)


@pytest.mark.parametrize(
    "arguments", [(3,), (2, 4), (4, 2), (0,), (3, 3, 1), (3, 4, -2), (2, 2, 9)]
)
def test_eye(arguments: tuple) -> None:
    for dtype in ("float32", "int8", "bool"):
        tensor = ex.eye(*arguments, dtype=dtype)
        owned(tensor)
        assert_same_bits(tensor, np.eye(*arguments, dtype=dtype))
    assert ex.eye(*arguments).dtype == np.float32
    with pytest.raises(ValueError, match="eye"):
        ex.eye(-1)


@pytest.mark.parametrize("num", [0, 1, 2, 5, 50, 1001])
def test_linspace(num: int) -> None:
    for dtype in ("float32", "float64"):
        tensor = ex.linspace(-1.0, 2.0, num, dtype=dtype)
        owned(tensor)
        wanted = np.linspace(-1.0, 2.0, num)
        # computed in float64, rounded once
        np.testing.assert_allclose(
            np.asarray(tensor), wanted, rtol=np.finfo(dtype).eps, atol=np.finfo(dtype).eps
        )
        if num > 1:
            assert (tensor[0].item(), tensor[-1].item()) == (-1.0, 2.0)
    assert ex.linspace(0, 1).shape == (50,)
    assert ex.linspace(0, 1).dtype == np.float32
    with pytest.raises(ValueError, match="linspace"):
        ex.linspace(0, 1, -1)


def test_one_hot() -> None:
    tensor = ex.one_hot([0, 2, 1], 3)
    owned(tensor)
    assert_same_bits(tensor, np.eye(3, dtype=np.float32)[[0, 2, 1]])
    ids = np.array([[1, 0], [3, 3]], np.uint8)
    assert_same_bits(ex.one_hot(ids, 4, dtype=ex.int32), np.eye(4, dtype=np.int32)[ids])
    assert ex.one_hot(2, 4).tolist() == [0, 0, 1, 0]
    assert ex.one_hot(np.zeros((0,), np.int64), 4).shape == (0, 4)
    assert ex.one_hot(ids[::-1, ::-1], 4).tolist() == np.eye(4)[ids[::-1, ::-1]].tolist()
    for bad in ([3], [-1]):
        with pytest.raises(ValueError, match="one_hot"):
            ex.one_hot(bad, 3)
    with pytest.raises(TypeError, match="one_hot"):
        ex.one_hot([0.5], 3)
    with pytest.raises(ValueError, match="one_hot"):
        ex.one_hot([0], -1)


@pytest.mark.parametrize("function", [ex.zeros, ex.ones, ex.empty])
def test_bad_shapes(function: Any) -> None:
    name = function.__name__
    with pytest.raises(ValueError, match=name):
        function((2, -1))
    for bad in ("x", (1.5,), None, (2, "x"), {2: 3}):
        with pytest.raises(TypeError, match=name):
            function(bad)
    with pytest.raises((ValueError, MemoryError), match=name):
        function((2**40, 2**40))


def test_bad_values() -> None:
    with pytest.raises((TypeError, ValueError), match="full"):
        ex.full((2,), "x")
    with pytest.raises((TypeError, ValueError), match="full"):
        ex.full((2,), None)
    with pytest.raises(TypeError, match="full"):
        ex.full((2,), 1j)
    with pytest.raises((TypeError, ValueError), match="zeros_like"):
        ex.zeros_like("text")
