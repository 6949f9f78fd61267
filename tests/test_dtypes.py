"""Dtypes: which come out, what a Python scalar does, what does not fit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from optable import DTYPES, FLOATS, INTS, SIGNED

import extensor as ex


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_objects_are_numpys(name: str) -> None:
    assert getattr(ex, name) is getattr(np, name)
    assert ex.zeros((2,), dtype=getattr(ex, name)).dtype == np.dtype(name)
    assert ex.zeros((2,), dtype=name).dtype == np.dtype(name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scalar", [True, 1, 1.0])
def test_python_scalars_beside_a_tensor_are_weak(dtype: str, scalar: Any) -> None:
    x = np.ones(3, dtype)
    for function in (np.add, np.multiply, np.divide, np.maximum, np.power, np.less):
        ours = getattr(ex, function.__name__)
        assert ours(x, scalar).dtype == function(x, scalar).dtype, function
        assert ours(scalar, ex.tensor(x)).dtype == function(scalar, x).dtype, function
        # a 0-d tensor and a NumPy scalar are not weak, nor is the tensor beside them
        for strong in (np.asarray(scalar), np.asarray(scalar)[()], ex.asarray(np.asarray(scalar))):
            expected = function(x, np.asarray(scalar)).dtype
            assert ours(x, strong).dtype == expected, (function, type(strong))
        # a weak scalar beside a 0-d tensor
        assert ours(x[0], scalar).dtype == function(x[0], scalar).dtype, function
        assert ours(x[:1].reshape(()), scalar).dtype == function(x[0], scalar).dtype


def test_python_values_without_a_tensor() -> None:
    for value, dtype in [(1.5, "float32"), (1, "int64"), (True, "bool")]:
        for obj in (value, [value], [[value, value]], (value,)):
            assert ex.asarray(obj).dtype == dtype
            assert ex.tensor(obj).dtype == dtype
            assert ex.maximum(obj, obj).dtype == dtype
            if not isinstance(obj, (list, tuple)):
                assert ex.full((2,), obj).dtype == dtype
    assert ex.add(1.5, 2).dtype == np.float32
    assert ex.add([1.5], [2]).dtype == np.add(np.float32([1]), np.int64([2])).dtype
    assert ex.asarray([1, 2.5]).dtype == np.float32
    assert ex.asarray([True, 2]).dtype == np.int64
    assert ex.asarray([np.float64(1.5)]).dtype == np.float64
    assert ex.asarray([np.float64(1.5), 2.0]).dtype == np.float64
    assert ex.asarray([]).dtype == np.float32
    assert ex.arange(3).dtype == np.int64
    assert ex.arange(0.0, 1.0, 0.5).dtype == np.float32
    assert ex.divide(1, 2).dtype == np.float64  # int64 / int64, as NumPy


@pytest.mark.parametrize("dtype", INTS)
def test_python_ints_that_do_not_fit(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.ones(2, dtype)
    for value in (int(info.max) + 1, int(info.min) - 1):
        for function in (ex.add, ex.multiply, ex.maximum, ex.floor_divide):
            for arguments in ((x, value), (value, x)):
                with pytest.raises(OverflowError):
                    function(*arguments)
        with pytest.raises(OverflowError):
            ex.full((2,), value, dtype=dtype)
        with pytest.raises(OverflowError):
            ex.tensor(x)[0] = value
    assert ex.maximum(x, int(info.max)).tolist() == [info.max] * 2


def test_python_ints_beyond_int64() -> None:
    with pytest.raises(OverflowError):
        ex.tensor([2**64])
    with pytest.raises(OverflowError):
        ex.asarray(2**70)
    assert ex.add(ex.ones((1,), dtype=ex.float64), 2**60).tolist() == [1.0 + 2**60]


@pytest.mark.parametrize("dtype", INTS)
def test_integers_wrap_and_divide_by_zero_is_zero(dtype: str) -> None:
    info = np.iinfo(dtype)
    low, high = np.array([info.min], dtype), np.array([info.max], dtype)
    one, zero = np.ones(1, dtype), np.zeros(1, dtype)
    assert ex.add(high, one).tolist() == [info.min]
    assert ex.subtract(low, one).tolist() == [info.max]
    assert ex.multiply(high, np.array([2], dtype)).tolist() == [-2 if info.min else info.max - 1]
    for x in (low, one, high, zero):
        assert ex.floor_divide(x, zero).tolist() == [0]
        assert ex.modulo(x, zero).tolist() == [0]
    if info.min:
        assert ex.floor_divide(low, -one).tolist() == [info.min]
        assert ex.modulo(low, -one).tolist() == [0]
        assert ex.negative(low).tolist() == [info.min]
    many = np.tile(np.array([info.min, info.max, 0, 1], dtype), 5000)
    with np.errstate(all="ignore"):
        assert np.array_equal(ex.floor_divide(many, many[::-1]), many // many[::-1])


def test_bool_rules() -> None:
    x = np.array([True, False])
    for call in (lambda: ex.subtract(x, x), lambda: ex.negative(x)):
        with pytest.raises(TypeError, match="bool"):
            call()
    with pytest.raises(TypeError):
        -ex.tensor(x)
    with pytest.raises(TypeError):
        ex.tensor(x) - True
    assert ex.add(x, x).tolist() == [True, False]
    assert ex.add(x, x).dtype == bool
    assert ex.multiply(x, True).tolist() == [True, False]


@pytest.mark.parametrize("dtype", SIGNED)
def test_negative_integer_powers(dtype: str) -> None:
    for exponent in (np.array([-1], dtype), np.array([2, -1], dtype), -1, ex.tensor([-3], dtype)):
        with pytest.raises(ValueError, match="power"):
            ex.power(np.array([2], dtype), exponent)
    out = ex.tensor([7, 7], dtype)
    with pytest.raises(ValueError, match="power"):
        ex.power(np.array([2, 2], dtype), np.array([2, -1], dtype), out=out)
    assert out.tolist() == [7, 7]
    assert ex.power(np.array([2.0]), np.array([-1], dtype)).tolist() == [0.5]
    assert ex.power(np.array([2], dtype), -1.0).tolist() == [0.5]


def test_signed_and_unsigned_compare_exactly() -> None:
    a, b = np.array([-1, 2**63 - 1], np.int64), np.array([2**64 - 1, 2**63], np.uint64)
    assert ex.less(a, b).tolist() == [True, True]
    assert ex.equal(a, b).tolist() == [False, False]
    assert ex.greater(b, a).tolist() == [True, True]


def test_arrays_keep_their_dtype() -> None:
    for dtype in DTYPES:
        x = np.ones((2, 2), dtype)
        assert ex.asarray(x).dtype == dtype
        assert ex.tensor(x).dtype == dtype
        assert ex.asarray(x[0, 0]).dtype == dtype
        assert ex.asarray(x)[0, 0].dtype == dtype
        assert ex.zeros_like(x).dtype == dtype
    for a, b in itertools.product(FLOATS, FLOATS):
        assert ex.add(np.ones(1, a), np.ones((), b)).dtype == np.promote_types(a, b)


@pytest.mark.parametrize("order", ["<", ">"])
def test_byte_orders(order: str) -> None:
    x = np.arange(5, dtype=f"{order}f4")
    assert ex.add(x, x).dtype == np.float32
    assert ex.add(x, x).tolist() == [0, 2, 4, 6, 8]
    assert ex.asarray(x).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["complex64", "object", "U3", "datetime64[s]", "longdouble"])
def test_dtypes_that_are_refused(dtype: str) -> None:
    if np.dtype(dtype) == np.float64:
        pytest.skip("longdouble is float64 here")
    for call in (ex.zeros, ex.ones, ex.empty):
        with pytest.raises(TypeError, match=call.__name__):
            call((2,), dtype=dtype)
    with pytest.raises(TypeError, match="asarray"):
        ex.asarray(np.zeros(2, dtype))
    with pytest.raises(TypeError, match="add"):
        ex.add(np.zeros(2, dtype), 1)
