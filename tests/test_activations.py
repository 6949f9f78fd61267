"""What the table of ops does not say about activations: prelu's shapes, integers, far tails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference as ref
from helpers import assert_same_bits, assert_within, sum_bound, threads_used, ulp_bound

import extensor as ex

FLOATS = ("float16", "float32", "float64")
ALPHAS = (-0.5, 0.0, 0.25, 1.0, 2.0)


# --- relu of integers ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_relu_backward_of_integers(dtype: str) -> None:
    x = np.array([-3, 0, 5, 7], dtype)
    g = np.array([2, 4, -6, 2**31 - 1], dtype)
    wanted = np.array([0, 0, -6, 2**31 - 1], dtype)
    assert_same_bits(ex.relu_backward(g, x), wanted)
    assert_same_bits(ex.relu_backward(g, x.astype(np.int8)), wanted)
    out = ex.zeros((4,), dtype)
    assert ex.relu_backward(g, x, out=out) is out
    assert_same_bits(out, wanted)
    with pytest.raises(ValueError, match=r"relu_backward: grad_output has shape \(4,\)"):
        ex.relu_backward(g, x.reshape(2, 2))
    with pytest.raises(TypeError, match="relu_backward: out"):
        ex.relu_backward(g, x, out=ex.zeros((4,)))
    with pytest.raises(TypeError, match="relu_backward"):
        ex.relu_backward(g, x.astype(np.float32))
    for other in ("int8", "uint64", "bool"):
        with pytest.raises(TypeError, match="relu_backward"):
            ex.relu_backward(g.astype(other), x)


def test_integers_become_floats_as_documented() -> None:
    for dtype in ("int8", "uint16", "int32", "int64", "bool"):
        x = np.array([0, 1, 1, 0]).astype(dtype)
        assert np.asarray(ex.leaky_relu(x)).dtype == np.float64
        assert np.asarray(ex.relu(x)).dtype == dtype
        assert np.asarray(ex.gelu(x)).dtype == np.exp(x).dtype
        assert_same_bits(ex.leaky_relu(x), x.astype(np.float64))


# --- leaky_relu and prelu -----------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_slopes_of_any_sign(alpha: float, dtype: str) -> None:
    x = np.array([-2.0, -0.5, 0.0, 0.5, 2.0], dtype)
    g = np.array([1.0, -2.0, 3.0, -4.0, 5.0], dtype)
    wanted = np.where(x > 0, x, alpha * x).astype(dtype)
    gradient = np.where(x > 0, g, alpha * g).astype(dtype)
    assert_same_bits(ex.leaky_relu(x, alpha), wanted)
    assert_same_bits(ex.leaky_relu_backward(g, x, alpha), gradient)
    for given in (alpha, np.array(alpha, dtype), np.array([alpha], dtype)):
        assert_same_bits(ex.prelu(x, given), wanted)
        by_x, by_alpha = ex.prelu_backward(g, x, given)
        assert_same_bits(by_x, gradient)
        assert np.shape(by_alpha) == np.shape(given)
        assert float(np.asarray(by_alpha).ravel()[0]) == -1.0
    assert_same_bits(ex.prelu(x, np.full(5, alpha, dtype)), wanted)


def test_prelu_of_one_slope_a_channel() -> None:
    rng = np.random.default_rng(1)
    for shape, channels in [((2, 3, 3), 3), ((4, 4), 4), ((2, 5, 2, 3), 5), ((3, 3, 3, 3), 3)]:
        x = rng.standard_normal(shape)
        g = rng.standard_normal(shape)
        alpha = rng.standard_normal(channels)
        column = alpha.reshape(-1, *(1 for _ in shape[2:]))
        assert_same_bits(ex.prelu(x, alpha), np.where(x > 0, x, column * x))
        by_x, by_alpha = ex.prelu_backward(g, x, alpha)
        assert_same_bits(by_x, np.where(x > 0, g, column * g))
        axes = tuple(axis for axis in range(len(shape)) if axis != 1)
        np.testing.assert_allclose(by_alpha, np.where(x > 0, 0, g * x).sum(axes), rtol=1e-12)
        assert np.shape(by_alpha) == (channels,)
        ex.check_gradient(ex.prelu, ex.prelu_backward, (ex.asarray(x), ex.asarray(alpha)))


@pytest.mark.parametrize(
    ("shape", "alpha"),
    [
        ((2, 3, 4), (4,)),
        ((4, 4), (3,)),
        ((3,), (2,)),
        ((3,), (2, 3)),
        ((), (3,)),
        ((2, 3), (2, 2, 3)),
        ((2, 1), (2, 3)),
        ((2, 1), (3,)),
        ((2, 3), (0,)),
    ],
)
def test_prelu_refuses_other_shapes(shape: tuple[int, ...], alpha: tuple[int, ...]) -> None:
    x, a = np.ones(shape, np.float32), np.ones(alpha, np.float32)
    with pytest.raises(ValueError, match="prelu: x has shape") as caught:
        ex.prelu(x, a)
    assert str(shape) in str(caught.value) and str(alpha) in str(caught.value)
    with pytest.raises(ValueError, match="prelu_backward: x has shape"):
        ex.prelu_backward(x, x, a)


def test_prelu_backward_into_given_memory() -> None:
    rng = np.random.default_rng(2)
    x, g = rng.standard_normal((2, 2, 3, 4)).astype(np.float32)
    alpha = rng.standard_normal(3).astype(np.float32)
    wanted = ex.prelu_backward(g, x, alpha)
    outs = (ex.empty((2, 3, 4)), ex.empty((3,)))
    got = ex.prelu_backward(g, x, alpha, out=outs)
    for one, other, out in zip(got, wanted, outs, strict=True):
        assert one is out
        assert_same_bits(one, other)
    inplace = ex.tensor(alpha)
    ex.prelu_backward(g, x, inplace, out=(None, inplace))
    assert_same_bits(inplace, wanted[1])
    assert ex.prelu_backward(g, x, alpha, needs=(True, False))[1] is None
    assert ex.prelu_backward(g, x, alpha, needs=(False, True))[0] is None
    with pytest.raises(ValueError, match="prelu_backward: out has shape"):
        ex.prelu_backward(g, x, alpha, out=(None, ex.empty((4,))))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "alpha"), [((70_001, 4), (4,)), ((64, 3, 1511), (3,)), ((300_007,), ())]
)
def test_prelu_slope_gradients_are_summed_well_and_the_same_by_any_threads(
    dtype: str, shape: tuple[int, ...], alpha: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(7)
    x = np.asarray(rng.standard_normal(shape), dtype)
    # keeps float16 sums finite
    g = np.asarray(rng.standard_normal(shape) * (2.0**-6 if dtype == "float16" else 1), dtype)
    a = np.asarray(rng.standard_normal(alpha), dtype)
    results = []
    for threads in (1, 2, 3, 8):
        with ex.num_threads(threads):
            results.append(ex.prelu_backward(g, x, a))
            assert threads_used() == threads
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert_same_bits(one, two)
    wide = [value.astype(np.longdouble) for value in (g, x, a)]
    wanted = ref.prelu_terms(*wide)[1]
    magnitude = np.abs(ref.prelu_terms(np.abs(wide[0]), -np.abs(wide[1]), wide[2])[1])
    count = x.size // max(a.size, 1)
    assert_within(results[0][1], wanted, sum_bound(magnitude, count, wanted, dtype))


# --- gelu ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gelu_over_the_whole_range(dtype: str) -> None:
    low = -14.0 if dtype == "float32" else -38.0
    x = np.linspace(low, 9, 40_001).astype(dtype)
    wanted = ref.gelu(x.astype(np.longdouble))
    assert_within(ex.gelu(x), wanted, ulp_bound(wanted, dtype, 8))
    g = np.asarray(np.random.default_rng(1).standard_normal(x.size), dtype)
    parts = ref.gelu_parts(g.astype(np.longdouble), x.astype(np.longdouble))
    unit = np.finfo(dtype).eps / 2
    smallest = np.finfo(dtype).smallest_subnormal
    allowed = 16 * unit * (np.abs(parts[0]) + np.abs(parts[1])) + 2 * smallest
    assert_within(ex.gelu_backward(g, x), parts[0] + parts[1], allowed)


def test_gelu_forms() -> None:
    x = np.array([1.0], np.float32)
    assert ex.gelu(x, np.bool_(True)).item() == ex.gelu(x, approximate=True).item()
    for function in (ex.gelu, lambda *a: ex.gelu_backward(x, *a)):
        for wrong in ("tanh", "none", 1, None):
            with pytest.raises(TypeError, match=r"gelu.*: approximate"):
                function(x, wrong)


# --- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leaky_relu", "elu"])
def test_alpha_must_be_a_number(name: str) -> None:
    x = np.array([-1.0, 1.0], np.float32)
    calls: list[tuple[str, Any]] = [
        (name, lambda alpha: getattr(ex, name)(x, alpha)),
        (f"{name}_backward", lambda alpha: getattr(ex, f"{name}_backward")(x, x, alpha)),
    ]
    for function, call in calls:
        for wrong in ("0.1", None, [1.0, 2.0], 1j):
            with pytest.raises(TypeError, match=f"{function}: alpha must be a number"):
                call(wrong)
        with pytest.raises(OverflowError, match=function):
            call(10**400)
        for fine in (1, True, np.float32(0.5), np.float64(0.5), ex.tensor(0.5)):
            assert_same_bits(call(fine), call(float(fine)))


def test_elu_of_small_numbers() -> None:
    x = np.array([-1e-5], np.float32)
    wanted = np.expm1(x.astype(np.longdouble))
    assert_within(ex.elu(x), wanted, ulp_bound(wanted, np.float32, 3))
