"""What the table of ops does not say about element-wise functions: clip's bounds, rare paths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers import assert_same_bits, assert_within, ulp_bound

import extensor as ex

FLOATS = ("float16", "float32", "float64")
EPS_FUNCTIONS = (ex.log_backward, ex.log2_backward, ex.log10_backward, ex.sqrt_backward)


# --- clip ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (3, 1), (1, 4), (1, 1)])
def test_clip_bounds_broadcast(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x = np.asarray(rng.standard_normal((3, 4)), dtype)
    low = np.asarray(rng.standard_normal(shape) - 0.5, dtype)
    high = np.asarray(rng.standard_normal(shape) + 0.5, dtype)
    g = np.asarray(rng.standard_normal((3, 4)), dtype)
    wanted = np.minimum(np.maximum(x, low), high)
    assert_same_bits(ex.clip(x, low, high), wanted)
    assert_same_bits(ex.clip(x, low), np.maximum(x, low))
    assert_same_bits(ex.clip(x, max=high), np.minimum(x, high))
    assert_same_bits(ex.clip(x, low, 0.5), np.minimum(np.maximum(x, low), np.asarray(0.5, dtype)))
    inside = (x >= low) & (x <= high)
    assert_same_bits(ex.clip_backward(g, x, low, high), np.where(inside, g, 0).astype(dtype))
    assert_same_bits(ex.clip_backward(g, x, low), np.where(x >= low, g, 0).astype(dtype))
    assert_same_bits(ex.clip_backward(g, x, None, high), np.where(x <= high, g, 0).astype(dtype))


def test_clip_nan_among_the_bounds() -> None:
    x = np.array([-2.0, 0.0, 2.0, np.nan, 1.0], np.float32)
    low = np.array([np.nan, -1.0, -1.0, 0.0, 2.0], np.float32)
    high = np.array([1.0, np.nan, 1.0, 1.0, 1.0], np.float32)
    assert_same_bits(ex.clip(x, low, high), np.array([np.nan, np.nan, 1, np.nan, 1], np.float32))
    assert_same_bits(ex.clip(x, min=low), np.maximum(x, low))
    gradient = ex.clip_backward(np.full(5, np.inf, np.float32), x, low, high)
    assert_same_bits(gradient, np.zeros(5, np.float32))
    assert np.isnan(np.asarray(ex.clip(x, math.nan, 1.0))).all()


def test_clip_without_bounds_is_a_copy() -> None:
    for x in (np.array([1.5, -2.5], np.float32), np.array([1, -2]), np.array([True, False])):
        result = ex.clip(x)
        assert_same_bits(result, x)
        assert not np.may_share_memory(np.asarray(result), x)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "bool", "float16", "float32"])
def test_clip_result_dtypes_are_numpys(dtype: str) -> None:
    x = np.arange(6).astype(dtype)
    bounds: list[tuple[Any, Any]] = [(0, 1), (0.5, None), (None, 2.5), (0, 1.5)]
    bounds += [(np.int16(1), None), (np.float64(0.5), np.float32(3)), (None, np.array([2, 3] * 3))]
    for low, high in bounds:
        assert_same_bits(ex.clip(x, low, high), np.clip(x, low, high), f"{dtype} {low} {high}")


def test_clip_bounds_must_not_enlarge_x() -> None:
    x = np.ones((3,), np.float32)
    for bound in (np.zeros((2, 3)), np.zeros(2), np.zeros((1, 3)), [0.0, 1.0]):
        with pytest.raises(ValueError, match=r"clip: min has shape .* of x"):
            ex.clip(x, bound)
        with pytest.raises(ValueError, match=r"clip_backward: max has shape"):
            ex.clip_backward(x, x, None, bound)
    with pytest.raises(OverflowError, match="clip"):
        ex.clip(np.ones(3, np.uint8), 0, 300)
    with pytest.raises(OverflowError, match="clip"):
        ex.clip(x, 0, 10**400)
    with pytest.raises(TypeError, match="clip"):
        ex.clip(x, "0", "1")


# --- guards -------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", EPS_FUNCTIONS, ids=lambda f: f.__name__)
def test_eps(function: Any) -> None:
    one = np.ones(2, np.float32)
    for eps in (-1.0, -1e-30, math.nan, -math.inf, -1):
        with pytest.raises(ValueError, match=f"{function.__name__}: eps"):
            function(one, one, eps=eps)
    for eps in ("1", None):
        with pytest.raises(TypeError, match=f"{function.__name__}: eps"):
            function(one, one, eps=eps)
    for eps in (0, 1, 1e-3, np.float32(1e-3)):
        assert np.isfinite(np.asarray(function(one, one, eps=eps))).all()
    zero = np.zeros(2, np.float32)
    assert np.isfinite(np.asarray(function(one, zero))).all()
    assert np.isinf(np.asarray(function(one, zero, eps=0))).all()
    with pytest.raises(TypeError):
        function(one, one, 1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "base"), [("log", math.e), ("log2", 2), ("log10", 10)])
def test_log_gradients_neither_over_nor_underflow(name: str, base: float, dtype: str) -> None:
    info = np.finfo(dtype)
    powers = 2.0 ** np.arange(np.log2(info.tiny) - info.nmant, np.log2(info.max), 3.0)
    g, x = (a.ravel().astype(dtype) for a in np.meshgrid(powers * 1.25, powers * 1.75))
    wide_g, wide_x = g.astype(np.longdouble), x.astype(np.longdouble)
    factor = np.log(np.longdouble(base)) if name != "log" else 1
    gradient = getattr(ex, f"{name}_backward")(g, x, eps=0)
    with np.errstate(over="ignore"):
        wanted = wide_g / wide_x / factor
        assert_within(gradient, wanted, ulp_bound(wanted, dtype, 4), name)


# --- sin and cos of huge arguments --------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_huge_angles_among_small_ones(dtype: str) -> None:
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(5)
    x = np.asarray(rng.uniform(-10, 10, 3001), dtype)
    huge = rng.choice(x.size, 40, replace=False)
    x[huge] *= np.asarray(2.0 ** rng.integers(18, 110, 40), dtype)
    g = np.asarray(rng.standard_normal(x.size), dtype)
    functions = {"sin": mpmath.sin, "cos": mpmath.cos}
    with mpmath.workprec(300):
        exact = {
            name: np.array([np.longdouble(mpmath.nstr(f(mpmath.mpf(float(v))), 25)) for v in x])
            for name, f in functions.items()
        }
    for name, wanted in exact.items():
        got = getattr(ex, name)(x)
        assert_within(got, wanted, ulp_bound(wanted, dtype, 1.5), name)
        inplace = ex.tensor(x)
        assert_same_bits(getattr(ex, name)(inplace, out=inplace), got, f"{name} in place")
    for name, slope in (("sin_backward", exact["cos"]), ("cos_backward", -exact["sin"])):
        wanted = g * slope
        got = getattr(ex, name)(g, x)
        assert_within(got, wanted, ulp_bound(wanted, dtype, 4), name)
        for i in range(2):
            arguments = [ex.tensor(g), ex.tensor(x)]
            getattr(ex, name)(*arguments, out=arguments[i])
            assert_same_bits(arguments[i], got, f"{name} into argument {i}")


# --- traps --------------------------------------------------------------------------------------


def test_tanh_gradient_keeps_its_digits_near_one() -> None:
    y = np.float32(0.9999)
    wanted = (1 - np.longdouble(y)) * (1 + np.longdouble(y))
    gradient = ex.tanh_backward(np.ones(1, np.float32), np.array([y]))
    assert_within(gradient, np.array([wanted]), ulp_bound(wanted, np.float32, 2))


def test_methods_and_operators() -> None:
    x = ex.tensor([-1.5, 2.0])
    assert_same_bits(abs(x), ex.abs(x))


def test_logic_of_any_dtype() -> None:
    a = np.array([0, 1, 2, 0], np.int8)
    b = np.array([np.nan, 0.0, -3.5, -0.0], np.float16)
    for name in ("logical_and", "logical_or", "logical_xor"):
        assert_same_bits(getattr(ex, name)(a, b), getattr(np, name)(a, b), name)
        assert_same_bits(getattr(ex, name)(b, True), getattr(np, name)(b, True), name)
        assert_same_bits(getattr(ex, name)(a > 0, a), getattr(np, name)(a > 0, a), name)
