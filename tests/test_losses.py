"""Losses against gold versions: values, gradients, edge rules, reductions, layouts, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference_losses as gold
from helpers import BAD_INPUTS, assert_same_bits, threads_used, unit, working
from numpy.exceptions import AxisError

import extensor as ex

inf, nan = np.inf, np.nan
FLOATS = ("float16", "float32", "float64")
SIZES = [1, 2, 3, 17, 64, 1000, 2049, 10_007]


def probabilities(rng: np.random.Generator, shape: Any) -> np.ndarray:
    return rng.uniform(0.0, 1.0, shape)


def normals(rng: np.random.Generator, shape: Any) -> np.ndarray:
    return rng.normal(0.0, 3.0, shape)


# name, gold forward, gold gradient, samples of predictions and of targets, keywords
ELEMENTWISE = [
    ("mean_squared_error", gold.squared, gold.squared_gradient, normals, normals, {}),
    ("smooth_l1", gold.smooth_l1, gold.smooth_l1_gradient, normals, normals, {}),
    ("smooth_l1", gold.smooth_l1, gold.smooth_l1_gradient, normals, normals, {"beta": 0.25}),
    ("smooth_l1", gold.smooth_l1, gold.smooth_l1_gradient, normals, normals, {"beta": 0.0}),
    ("binary_cross_entropy", gold.binary, gold.binary_gradient, probabilities, probabilities, {}),
    (
        "binary_cross_entropy_with_logits",
        gold.binary_logits,
        gold.binary_logits_gradient,
        normals,
        probabilities,
        {},
    ),
]
IDS = [f"{name}{kwargs or ''}" for name, *_, kwargs in ELEMENTWISE]


def error_bound(wanted: Any, scale: Any, dtype: str, roundings: float) -> np.ndarray:
    """``roundings`` of the working precision relative to ``scale``, and float16's final one."""
    final = unit(dtype) * 1.01 if dtype == "float16" else 0.0
    tiny = float(np.finfo(dtype).smallest_subnormal)
    return roundings * unit(working(dtype)) * np.abs(scale) + final * np.abs(wanted) + tiny


def assert_close(got: Any, wanted: Any, allowed: Any) -> None:
    largest = np.longdouble(np.finfo(np.asarray(got).dtype).max)
    got, wanted = np.asarray(got, np.longdouble), np.asarray(wanted)
    assert got.shape == wanted.shape
    beyond = np.abs(wanted) > largest  # overflows to infinity
    got = np.where(beyond & (np.abs(got) >= largest) & (got * wanted > 0), wanted, got)
    excess = np.abs(got - wanted) - allowed
    assert (excess <= 0).all(), f"worst {np.max(excess)} over what is allowed"


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "forward", "gradient", "left", "right", "kwargs"), ELEMENTWISE, ids=IDS
)
class TestElementwise:
    def make(self, left: Any, right: Any, shape: Any, dtype: str, seed: int = 0) -> Any:
        rng = np.random.default_rng(seed)
        return left(rng, shape).astype(dtype), right(rng, shape).astype(dtype)

    def test_values(
        self, name: str, forward: Any, gradient: Any, left: Any, right: Any, kwargs: Any, dtype: str
    ) -> None:
        loss = getattr(ex, name)
        for size in SIZES:
            p, t = self.make(left, right, size, dtype)
            wanted = forward(gold.wide(p), gold.wide(t), **kwargs)
            # where p − t cancels, the error is that of the difference: bounded by |p| + |t|
            scale = wanted + (np.abs(gold.wide(p)) + np.abs(gold.wide(t))) * (
                1 + np.abs(gold.wide(p) - gold.wide(t))
            )
            got = loss(ex.asarray(p), ex.asarray(t), **kwargs)
            assert got.dtype == dtype
            assert got.shape == (size,)
            assert_close(got, wanted, error_bound(wanted, scale, dtype, 4))
            for reduction, total in (("sum", wanted.sum()), ("mean", wanted.mean())):
                reduced = loss(p, t, **kwargs, reduction=reduction)
                assert reduced.dtype == dtype
                assert reduced.shape == ()
                depth = 16 + np.log2(size) + 8
                divided = scale.sum() / (size if reduction == "mean" else 1)
                assert_close(reduced, total, error_bound(total, divided, dtype, depth))

    def test_gradients(
        self, name: str, forward: Any, gradient: Any, left: Any, right: Any, kwargs: Any, dtype: str
    ) -> None:
        backward = getattr(ex, f"{name}_backward")
        for size in SIZES:
            p, t = self.make(left, right, size, dtype)
            g = np.random.default_rng(1).normal(size=size).astype(dtype)
            wanted = gradient(gold.wide(g), gold.wide(p), gold.wide(t), **kwargs)
            terms = np.abs(
                gradient(gold.wide(g), gold.wide(p), gold.wide(np.zeros(size)), **kwargs)
            )
            terms = terms + np.abs(
                gradient(gold.wide(g), gold.wide(p), gold.wide(np.ones(size)), **kwargs)
            )
            got = backward(g, p, t, **kwargs)
            assert got.dtype == dtype
            assert_close(got, wanted, error_bound(wanted, terms + np.abs(wanted), dtype, 16))
            for reduction, divisor in (("sum", 1), ("mean", size)):
                one = gold.wide(g[0]) / divisor
                wanted_one = gradient(one, gold.wide(p), gold.wide(t), **kwargs)
                got = backward(g[0], p, t, **kwargs, reduction=reduction)
                scale = np.abs(wanted_one) + terms / np.abs(g) * np.abs(one)
                assert_close(got, wanted_one, error_bound(wanted_one, scale, dtype, 16))

    def test_numerical_gradient(
        self, name: str, forward: Any, gradient: Any, left: Any, right: Any, kwargs: Any, dtype: str
    ) -> None:
        if dtype != "float64":
            pytest.skip("numerical gradients are float64")
        loss, backward = getattr(ex, name), getattr(ex, f"{name}_backward")
        p, t = self.make(left, right, (3, 4), dtype)
        p = 0.9 * p + 0.05 if name == "binary_cross_entropy" else p
        p = np.where(np.abs(np.abs(p - t) - 1) < 1e-3, p + 0.1, p)
        for reduction in ("none", "sum", "mean"):
            ex.check_gradient(
                lambda p: loss(p, t, **kwargs, reduction=reduction),  # noqa: B023
                lambda g, p: backward(g, p, t, **kwargs, reduction=reduction),  # noqa: B023
                [p],
            )

    def test_layouts_and_out(
        self, name: str, forward: Any, gradient: Any, left: Any, right: Any, kwargs: Any, dtype: str
    ) -> None:
        loss, backward = getattr(ex, name), getattr(ex, f"{name}_backward")
        p, t = self.make(left, right, (40, 30), dtype)
        g = np.random.default_rng(1).normal(size=(40, 30)).astype(dtype)
        layouts = [
            lambda a: a[::-1, ::2],
            lambda a: a.T,
            lambda a: a[3:, 1:7],
            np.asfortranarray,
        ]
        for layout in layouts:
            for reduction in ("none", "sum", "mean"):
                some_g = layout(g) if reduction == "none" else g[0, 0]
                plain = [np.ascontiguousarray(layout(a)) for a in (p, t)]
                plain_g = np.array(some_g, order="C")
                wanted = loss(*plain, **kwargs, reduction=reduction)
                got = loss(layout(p), layout(t), **kwargs, reduction=reduction)
                assert_same_bits(got, wanted)
                wanted = backward(plain_g, *plain, **kwargs, reduction=reduction)
                got = backward(some_g, layout(p), layout(t), **kwargs, reduction=reduction)
                assert_same_bits(got, wanted)
                for out in (
                    np.empty_like(plain[0]),
                    np.zeros((90, 90), dtype)[: 2 * len(got) : 2, : got.shape[1]],
                ):
                    given = ex.asarray(out)
                    back = backward(
                        some_g, layout(p), layout(t), **kwargs, reduction=reduction, out=given
                    )
                    assert back is given
                    assert_same_bits(out, wanted)
                own = ex.tensor(plain[0])
                backward(some_g, own, plain[1], **kwargs, reduction=reduction, out=own)
                assert_same_bits(own, wanted)
        out = ex.empty((40, 30), dtype)
        assert loss(p, t, **kwargs, out=out) is out
        assert_same_bits(out, loss(p, t, **kwargs))
        out = ex.empty((), dtype)
        assert loss(p, t, **kwargs, reduction="mean", out=out) is out
        assert_same_bits(out, loss(p, t, **kwargs, reduction="mean"))

    def test_overlapping_out(
        self, name: str, forward: Any, gradient: Any, left: Any, right: Any, kwargs: Any, dtype: str
    ) -> None:
        backward = getattr(ex, f"{name}_backward")
        p, t = self.make(left, right, 500, dtype)
        wanted = backward(1.0, p, t, **kwargs, reduction="sum")
        memory = np.zeros(700, dtype)
        memory[:500] = p
        backward(1.0, memory[:500], t, **kwargs, reduction="sum", out=memory[100:600])
        assert_same_bits(memory[100:600], wanted)

    def test_threads(
        self, name: str, forward: Any, gradient: Any, left: Any, right: Any, kwargs: Any, dtype: str
    ) -> None:
        loss, backward = getattr(ex, name), getattr(ex, f"{name}_backward")
        p, t = self.make(left, right, 1_000_003, dtype)
        results = []
        for count in (1, 2, 3, 8):
            with ex.num_threads(count):
                got = [loss(p, t, **kwargs, reduction="sum")]
                assert threads_used() == count
                got.append(backward(got[0], p, t, **kwargs, reduction="mean"))
                assert threads_used() == count
                got.append(loss(p, t, **kwargs))
                results.append(got)
        for got in results[1:]:
            for one, other in zip(got, results[0], strict=True):
                assert_same_bits(one, other)

    def test_errors(
        self, name: str, forward: Any, gradient: Any, left: Any, right: Any, kwargs: Any, dtype: str
    ) -> None:
        loss, backward = getattr(ex, name), getattr(ex, f"{name}_backward")
        p, t = self.make(left, right, (4, 3), dtype)
        for shape in [(3, 4), (4, 1), (1, 3), (12,), (3,), (), (4, 3, 1)]:
            bad = np.ones(shape, dtype)
            for reduction in ("none", "sum", "mean"):
                with pytest.raises(ValueError, match=name) as caught:
                    loss(p, bad, **kwargs, reduction=reduction)
                assert "(4, 3)" in str(caught.value)
                assert str(shape) in str(caught.value)
                g = np.ones((4, 3) if reduction == "none" else (), dtype)
                with pytest.raises(ValueError, match=name):
                    backward(g, p, bad, **kwargs, reduction=reduction)
            with pytest.raises(ValueError, match=name):
                backward(bad, p, t, **kwargs)
            if shape != ():
                with pytest.raises(ValueError, match=name):
                    backward(bad, p, t, **kwargs, reduction="mean")
        for bad in ("average", None, 3):
            with pytest.raises(ValueError, match="reduction"):
                loss(p, t, **kwargs, reduction=bad)
            with pytest.raises(ValueError, match="reduction"):
                backward(1.0, p, t, **kwargs, reduction=bad)
        for bad in BAD_INPUTS.values():
            for arguments in ((bad, t), (p, bad)):
                with pytest.raises((TypeError, ValueError), match=name):
                    loss(*arguments, **kwargs)
                with pytest.raises((TypeError, ValueError), match=name):
                    backward(1.0, *arguments, **kwargs, reduction="sum")
        for integer in (np.ones((4, 3), int), np.array(1), 1):
            with pytest.raises(TypeError, match=name):
                backward(
                    integer, p, t, **kwargs, reduction="sum" if np.ndim(integer) == 0 else "none"
                )
        out = np.full((4, 3), 7, dtype)
        with pytest.raises(ValueError, match=name):
            loss(p, t[:2], **kwargs, out=out)
        with pytest.raises(TypeError, match=name):
            loss(p, t, **kwargs, out=np.full((4, 3), 7, "int64"))
        with pytest.raises(ValueError, match=name):
            backward(1.0, p, t, **kwargs, reduction="sum", out=out[:2])
        assert (out == 7).all()

    def test_empty(
        self, name: str, forward: Any, gradient: Any, left: Any, right: Any, kwargs: Any, dtype: str
    ) -> None:
        loss, backward = getattr(ex, name), getattr(ex, f"{name}_backward")
        for shape in [(0,), (3, 0), (0, 2, 2)]:
            empty = np.ones(shape, dtype)
            assert loss(empty, empty, **kwargs).shape == shape
            assert loss(empty, empty, **kwargs, reduction="sum").item() == 0
            assert np.isnan(loss(empty, empty, **kwargs, reduction="mean").item())
            assert backward(empty, empty, empty, **kwargs).shape == shape
            for reduction in ("sum", "mean"):
                got = backward(1.0, empty, empty, **kwargs, reduction=reduction)
                assert got.shape == shape


def test_dtypes_of_losses() -> None:
    p = np.array([0, 1, 1], np.int64)
    assert ex.mean_squared_error(p, [1.0, 0.0, 2.0]).dtype == np.float64
    assert ex.mean_squared_error(p.astype(np.int8), p).dtype == np.float16
    assert ex.mean_squared_error(p.astype(bool), p, reduction="sum").dtype == np.float16
    # targets follow the predictions; the gradient too, or grad_output where they are integers
    x = np.array([0.5, 0.25], np.float32)
    assert ex.mean_squared_error(x, np.array([1.0, 2.0])).dtype == np.float32
    assert ex.mean_squared_error([0.5, 0.25], np.array([1.0, 2.0])).dtype == np.float32
    for g in (np.float16(1), np.float32(1), np.float64(1)):
        got = ex.mean_squared_error_backward(np.asarray(g), x, x, reduction="sum")
        assert got.dtype == np.float32
        got = ex.mean_squared_error_backward(np.asarray(g), p, p, reduction="sum")
        assert got.dtype == g.dtype
        got = ex.mean_squared_error_backward(np.full(3, g), p, p)
        assert got.dtype == g.dtype
        got = ex.cross_entropy_backward(np.asarray(g), p, 1, reduction="sum")
        assert got.dtype == g.dtype


def test_a_python_number_is_a_weak_grad_output() -> None:
    x = np.array([[0.3, -0.7]])
    for got, wanted in (
        (ex.mean_squared_error_backward(0.1, x, 0 * x, reduction="sum"), 0.1 * 2 * x),
        (
            ex.cross_entropy_backward(0.1, x, [0], reduction="sum"),
            ex.cross_entropy_backward(np.array([0.1]), x, [0]),
        ),
    ):
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_half_sums_overflow_only_at_the_end() -> None:
    p, t = np.full(3000, 200, np.float16), np.zeros(3000, np.float16)
    assert ex.mean_squared_error(p, t, reduction="mean").item() == np.float16(40000)
    assert ex.mean_squared_error(p, t, reduction="sum").item() == inf


# --- rules of single losses ---------------------------------------------------------------------


def test_smooth_l1_edges() -> None:
    d = np.array([0.0, -0.0, 1.0, -1.0, 0.5, inf, -inf, nan, 1e300])
    wanted = [0, 0, 0.5, 0.5, 0.125, inf, inf, nan, 1e300]
    np.testing.assert_array_equal(ex.smooth_l1(d, np.zeros(9)), wanted)
    g = np.full(9, 2.0)
    wanted = [0, 0, 2, -2, 1, 2, -2, nan, 2]
    np.testing.assert_array_equal(ex.smooth_l1_backward(g, d, np.zeros(9)), wanted)
    wanted = [0, 0, 2, -2, 2, 2, -2, nan, 2]
    np.testing.assert_array_equal(ex.smooth_l1_backward(g, d, np.zeros(9), beta=0.0), wanted)
    got = ex.smooth_l1_backward(np.array([inf, nan]), np.zeros(2), np.zeros(2), beta=0.0)
    np.testing.assert_array_equal(got, [0, 0])
    for beta in (-1.0, nan, inf):
        with pytest.raises(ValueError, match="smooth_l1: beta"):
            ex.smooth_l1(d, d, beta)
        with pytest.raises(ValueError, match="smooth_l1_backward: beta"):
            ex.smooth_l1_backward(d, d, d, beta)


@pytest.mark.parametrize("dtype", FLOATS)
def test_binary_cross_entropy_refuses_what_is_no_probability(dtype: str) -> None:
    y = np.zeros((3, 700), dtype)
    for bad in (-1e-3, 1.01, -inf, inf, nan, 2.0):
        for place in ((0, 0), (2, 699), (1, 350)):
            p = np.full((3, 700), 0.5, dtype)
            p[place] = bad
            out = np.full((3, 700), 7, dtype)
            for reduction in ("none", "sum", "mean"):
                with pytest.raises(ValueError, match=r"binary_cross_entropy: .*\[0, 1\]"):
                    ex.binary_cross_entropy(p, y, reduction=reduction)
            with pytest.raises(ValueError, match="binary_cross_entropy"):
                ex.binary_cross_entropy(p, y, out=out)
            assert (out == 7).all()
    for eps in (-1e-7, nan):
        with pytest.raises(ValueError, match="eps"):
            ex.binary_cross_entropy(y, y, eps)


def test_binary_cross_entropy_edges() -> None:
    p = np.array([0.0, 0.0, 1.0, 1.0, 0.5])
    y = np.array([0.0, 1.0, 0.0, 1.0, 0.25])
    guard = -np.log(1e-7)
    wanted = [0, guard, guard, 0, np.log(2)]
    np.testing.assert_allclose(ex.binary_cross_entropy(p, y), wanted, rtol=1e-15)
    np.testing.assert_array_equal(ex.binary_cross_entropy(p, y, eps=0.0)[:4], [0, inf, inf, 0])
    wanted = [1, -1e7, 1e7, -1, 0.75 / 0.5 - 0.25 / 0.5]
    np.testing.assert_allclose(
        ex.binary_cross_entropy_backward(np.ones(5), p, y), wanted, rtol=1e-15
    )
    # a small probability keeps its digits: −ln(1 − p) = p
    small = np.array([1e-12])
    np.testing.assert_allclose(ex.binary_cross_entropy(small, [0.0]), small, rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binary_chain_is_sigmoid_minus_label(dtype: str) -> None:
    """binary_cross_entropy_backward, then σ' = p(1 − p): σ(z) − y to rounding for |z| ≤ 15."""
    z = np.linspace(-15, 15, 601)
    for label in (0.0, 1.0):
        exact = gold.sigmoid(gold.wide(z))
        p = exact.astype(dtype)
        y = np.full_like(p, label)
        g = ex.binary_cross_entropy_backward(np.ones_like(p), p, y)
        if hasattr(ex, "sigmoid_backward"):
            chained = np.asarray(ex.sigmoid_backward(g, p))
        else:
            chained = np.asarray(g) * (p * (1 - p))
        wanted = p.astype(np.longdouble) - label
        assert_close(chained, wanted, 8 * unit(dtype) * np.maximum(np.abs(wanted), 1e-300))


@pytest.mark.parametrize("dtype", FLOATS)
def test_logits_far_out(dtype: str) -> None:
    z = np.array([20.0, 40.0, 100.0, 1e4], dtype)
    z = np.concatenate([z, -z])
    for label in (0.0, 1.0):
        y = np.full_like(z, label)
        signed = gold.wide(z if label == 0 else -z)
        wanted = gold.softplus(signed)
        got = ex.binary_cross_entropy_with_logits(z, y)
        assert_close(got, wanted, error_bound(wanted, wanted, dtype, 6))
        slope = gold.sigmoid(gold.wide(z)) * (1 - label) - label * gold.sigmoid(-gold.wide(z))
        got = ex.binary_cross_entropy_with_logits_backward(np.ones_like(z), z, y)
        assert_close(got, slope, error_bound(slope, slope, dtype, 6))
    huge = np.array([inf, -inf, inf, -inf, nan], dtype)
    y = np.array([1, 0, 0, 1, 0], dtype)
    np.testing.assert_array_equal(
        ex.binary_cross_entropy_with_logits(huge, y), [0, 0, inf, inf, nan]
    )
    got = ex.binary_cross_entropy_with_logits_backward(np.ones(5, dtype), huge, y)
    np.testing.assert_array_equal(got, [0, 0, 1, -1, nan])


# --- cross-entropy ------------------------------------------------------------------------------

SHAPES = [
    ((5,), 0),
    ((1, 1), -1),
    ((4, 3), -1),
    ((7, 10), 1),
    ((64, 10), -1),
    ((65, 10), -1),
    ((130, 64), -1),
    ((70, 65), -1),
    ((5, 3000), -1),
    ((3, 5000), 1),
    ((10, 7), 0),
    ((2, 3, 4, 5), 1),
    ((2, 3, 9, 31), 1),
    ((2, 70, 5), 1),
    ((2, 70, 17, 31), 1),
    ((100, 300), 0),
    ((3, 4, 2), -2),
]


def entropy_bound(x: np.ndarray, weights: np.ndarray, axis: int, dtype: str, wanted: Any) -> Any:
    spread = np.maximum(1, np.abs(x - x.max(axis=axis, keepdims=True)))
    terms = (np.abs(weights) * spread).sum(axis=axis)
    return error_bound(wanted, terms, dtype, 16 + np.log2(x.shape[axis] + 1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("kind", ["ids", "ignored", "weights"])
def test_cross_entropy(shape: tuple[int, ...], axis: int, dtype: str, kind: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 5, shape).astype(dtype)
    rest = tuple(np.delete(shape, axis))
    ignore = None
    targets: Any
    if kind == "weights":
        targets = rng.uniform(-0.5, 1, shape).astype(dtype) * (rng.uniform(size=shape) < 0.7)
    else:
        targets = rng.integers(0, shape[axis], rest)
        if kind == "ignored":
            ignore = -100
            targets = np.where(rng.uniform(size=rest) < 0.4, ignore, targets)
    kwargs: Any = {"ignore_index": ignore}
    weights = gold.weights_of(gold.wide(x), targets, axis, ignore)
    wanted = gold.cross_entropy(x, targets, axis, ignore)
    allowed = entropy_bound(gold.wide(x), weights, axis, dtype, wanted)
    got = ex.cross_entropy(x, targets, axis, **kwargs)
    assert got.shape == rest
    assert got.dtype == dtype
    assert_close(got, wanted, allowed)
    g = rng.normal(size=rest).astype(dtype)
    slope = gold.cross_entropy_gradient(gold.wide(g), x, targets, axis, ignore)
    size = gold.cross_entropy_gradient(np.ones(rest), x, np.zeros(shape), axis)
    size = np.abs(weights) + np.abs(weights).sum(axis=axis, keepdims=True) * np.exp(
        gold.wide(x) - gold.log_sum_exp(gold.wide(x), axis)
    )
    scale = np.abs(np.expand_dims(gold.wide(g), axis % len(shape))) * size
    spread = np.maximum(1, np.abs(gold.wide(x) - gold.wide(x).max(axis=axis, keepdims=True)))
    got = ex.cross_entropy_backward(g, x, targets, axis, **kwargs)
    assert got.shape == shape
    assert got.dtype == dtype
    assert_close(got, slope, error_bound(slope, scale * spread, dtype, 16))
    # in place on the logits, the layouts, and the reductions
    own = ex.tensor(x)
    assert ex.cross_entropy_backward(g, own, targets, axis, **kwargs, out=own) is own
    assert_same_bits(own, got)
    turned = [np.array(a, order="F") for a in (x, targets)]
    assert_same_bits(ex.cross_entropy_backward(g, *turned, axis, **kwargs), got)
    count = np.sum(targets != ignore) if kind != "weights" else np.size(wanted)
    for reduction, divisor in (("sum", 1), ("mean", count)):
        total = ex.cross_entropy(x, targets, axis, **kwargs, reduction=reduction)
        assert total.shape == ()
        assert total.dtype == dtype
        if count == 0:
            continue
        depth = (16 + np.log2(wanted.size + 1)) * unit(working(dtype))
        final = allowed.sum() if dtype != "float16" else allowed.sum() * 0.01
        bound = final + depth * np.abs(wanted).sum()
        value = wanted.sum() / divisor
        assert_close(total, value, bound / divisor + error_bound(value, value, dtype, 2))
        some = ex.cross_entropy_backward(
            np.asarray(3.0, dtype), x, targets, axis, **kwargs, reduction=reduction
        )
        full = np.full(rest, 3.0 / divisor)
        slope = gold.cross_entropy_gradient(full, x, targets, axis, ignore)
        assert_close(some, slope, error_bound(slope, size * spread * 3 / divisor, dtype, 17))


def test_cross_entropy_numerical_gradient() -> None:
    rng = np.random.default_rng(5)
    for shape, axis in [((4, 5), -1), ((2, 3, 4), 1), ((3, 70), -1), ((2, 70, 3), 1)]:
        x = rng.normal(size=shape)
        rest = tuple(np.delete(shape, axis))
        ids = rng.integers(0, shape[axis], rest)
        ids.flat[0] = -1
        for targets, ignore in ((ids, -1), (rng.uniform(size=shape) / shape[axis], None)):
            for reduction in ("none", "sum", "mean"):
                kwargs: Any = {"axis": axis, "reduction": reduction, "ignore_index": ignore}
                ex.check_gradient(
                    lambda x: ex.cross_entropy(x, targets, **kwargs),  # noqa: B023
                    lambda g, x: ex.cross_entropy_backward(g, x, targets, **kwargs),  # noqa: B023
                    [x],
                )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("classes", [5, 100])
def test_cross_entropy_edges(dtype: str, classes: int) -> None:
    x = np.zeros((8, classes), dtype)
    x[1, :] = -inf
    x[2, 0] = inf
    x[3, 0] = nan
    x[4, 1:] = -inf
    x[5, 0], x[5, 1] = 1e4, -1e4
    x[6, 0] = -inf
    ids = np.array([0, 0, 1, 1, 0, 1, 0, classes - 1])
    got = np.asarray(ex.cross_entropy(x, ids))
    wanted = [np.log(classes), nan, inf, nan, 0, 2e4, inf, np.log(classes)]
    np.testing.assert_allclose(got, wanted, rtol=2e-3 if dtype == "float16" else 1e-6)
    # terms with weight 0 count 0, even at −inf and NaN-free
    weights = np.zeros((8, classes), dtype)
    weights[4, 0] = 1
    weights[6, 1] = 1
    got = np.asarray(ex.cross_entropy(x, weights))
    np.testing.assert_allclose(got[[0, 1, 2, 4, 5, 7]], 0)
    np.testing.assert_allclose(got[6], np.log(classes - 1), rtol=1e-3)
    grad = np.asarray(ex.cross_entropy_backward(np.ones(8, dtype), x, ids))
    for row in (1, 2, 3):
        assert np.isnan(grad[row]).all()
    np.testing.assert_array_equal(grad[4], np.zeros(classes))
    assert grad[6, 0] == -1
    np.testing.assert_allclose(grad[6, 1:], 1 / (classes - 1), rtol=1e-3)
    # an ignored row is 0 whatever it holds, and so is its gradient
    ids[:] = -1
    np.testing.assert_array_equal(ex.cross_entropy(x, ids, ignore_index=-1), np.zeros(8))
    grad = ex.cross_entropy_backward(np.full(8, nan, dtype), x, ids, ignore_index=-1)
    np.testing.assert_array_equal(grad, np.zeros((8, classes)))
    assert not np.signbit(np.asarray(grad)).any()
    assert np.isnan(ex.cross_entropy(x, ids, ignore_index=-1, reduction="mean").item())
    assert ex.cross_entropy(x, ids, ignore_index=-1, reduction="sum").item() == 0
    grad = ex.cross_entropy_backward(1.0, x, ids, ignore_index=-1, reduction="mean")
    np.testing.assert_array_equal(grad, np.zeros((8, classes)))


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_class_ids_of_every_dtype(dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    ids = np.array([0, 3, 1, 2, 2, 0], dtype)
    assert_same_bits(ex.cross_entropy(x, ids), ex.cross_entropy(x, ids.astype(np.int64)))
    assert_same_bits(ex.cross_entropy(x, np.repeat(ids, 2)[::2]), ex.cross_entropy(x, ids))
    for wrong in (4, np.iinfo(dtype).max, *((-1, np.iinfo(dtype).min) if dtype[0] == "i" else ())):
        bad = ids.copy()
        bad[4] = wrong
        out = np.full(6, 7, np.float32)
        for reduction in ("none", "mean", "sum"):
            with pytest.raises(ValueError, match=f"cross_entropy: .*{wrong}"):
                ex.cross_entropy(x, bad, reduction=reduction)
            g = np.ones(6, np.float32) if reduction == "none" else 1.0
            with pytest.raises(ValueError, match="cross_entropy_backward"):
                ex.cross_entropy_backward(g, x, bad, reduction=reduction)
        with pytest.raises(ValueError, match="cross_entropy"):
            ex.cross_entropy(x, bad, out=out)
        assert (out == 7).all()
    if dtype == "uint64":  # 2**64 − 1 is not −1
        bad = ids.copy()
        bad[0] = 2**64 - 1
        with pytest.raises(ValueError, match=str(2**64 - 1)):
            ex.cross_entropy(x, bad, ignore_index=-1)


def test_cross_entropy_errors() -> None:
    x = np.zeros((2, 3, 4), np.float32)
    ids = np.zeros((2, 4), int)
    for shape in [(2, 3), (4,), (2, 4, 1), (2, 1, 4), (3, 4), ()]:
        with pytest.raises(ValueError, match=r"cross_entropy: logits has shape \(2, 3, 4\)"):
            ex.cross_entropy(x, np.zeros(shape, int), axis=1)
    for kind in (float, bool, np.float16):
        with pytest.raises(TypeError, match="cross_entropy: targets"):
            ex.cross_entropy(x, ids.astype(kind), axis=1)
    for axis in (3, -4):
        with pytest.raises(AxisError):
            ex.cross_entropy(x, ids, axis=axis)
    with pytest.raises((AxisError, ValueError)):
        ex.cross_entropy(np.float32(1), 0)
    with pytest.raises(TypeError, match="axis"):
        ex.cross_entropy(x, ids, axis=1.0)
    with pytest.raises(ValueError, match="ignore_index"):
        ex.cross_entropy(x, x, ignore_index=1)
    with pytest.raises(TypeError, match="ignore_index"):
        ex.cross_entropy(x, ids, axis=1, ignore_index=1.5)
    for g in (
        np.ones((2, 3), np.float32),
        np.ones((2, 4, 1), np.float32),
        np.ones(8, np.float32),
        1.0,
    ):
        with pytest.raises(ValueError, match="cross_entropy_backward: grad_output"):
            ex.cross_entropy_backward(g, x, ids, axis=1)
    with pytest.raises(ValueError, match="cross_entropy_backward: grad_output"):
        ex.cross_entropy_backward(np.ones((2, 4), np.float32), x, ids, axis=1, reduction="mean")
    with pytest.raises(TypeError, match="cross_entropy_backward: grad_output"):
        ex.cross_entropy_backward(1, x, ids, axis=1, reduction="mean")
    for bad in BAD_INPUTS.values():
        with pytest.raises((TypeError, ValueError), match="cross_entropy"):
            ex.cross_entropy(bad, ids)
        with pytest.raises((TypeError, ValueError), match="cross_entropy"):
            ex.cross_entropy(x, bad, axis=1)


def test_cross_entropy_of_nothing() -> None:
    x, ids = np.zeros((0, 5), np.float32), np.zeros(0, int)
    assert ex.cross_entropy(x, ids).shape == (0,)
    assert ex.cross_entropy(x, ids, reduction="sum").item() == 0
    assert np.isnan(ex.cross_entropy(x, ids, reduction="mean").item())
    assert ex.cross_entropy_backward(1.0, x, ids, reduction="mean").shape == (0, 5)
    none = np.zeros((3, 0), np.float32)
    np.testing.assert_array_equal(ex.cross_entropy(none, none), np.zeros(3))
    assert ex.cross_entropy_backward(np.ones(3, np.float32), none, none).shape == (3, 0)
    with pytest.raises(ValueError, match="cross_entropy"):
        ex.cross_entropy(none, np.zeros(3, int))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((40_003, 10), -1), ((701, 300), -1), ((7, 80, 503), 1), ((9, 12, 3001), 1)]
)
def test_cross_entropy_threads(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 5, shape).astype(dtype)
    ids = rng.integers(0, shape[axis], tuple(np.delete(shape, axis)))
    weights = rng.uniform(size=shape).astype(dtype)
    results = []
    for count in (1, 2, 3, 8):
        with ex.num_threads(count):
            got = []
            for targets in (ids, weights):
                got.append(ex.cross_entropy(x, targets, axis, reduction="sum"))
                assert threads_used() == count
                got.append(ex.cross_entropy_backward(1.0, x, targets, axis, reduction="sum"))
                assert threads_used() == count
                got.append(ex.cross_entropy(x, targets, axis))
            results.append(got)
    for got in results[1:]:
        for one, other in zip(got, results[0], strict=True):
            assert_same_bits(one, other)


def test_cross_entropy_agrees_with_log_softmax() -> None:
    x = np.random.default_rng(0).normal(0, 4, (50, 30))
    weights = np.random.default_rng(1).dirichlet(np.ones(30), 50)
    chained = -(np.asarray(ex.log_softmax(x)) * weights).sum(axis=1)
    np.testing.assert_allclose(ex.cross_entropy(x, weights), chained, rtol=1e-14)
    g = ex.cross_entropy_backward(np.ones(50), x, weights)
    through = ex.log_softmax_backward(ex.asarray(-weights), ex.log_softmax(x))
    np.testing.assert_allclose(g, through, rtol=1e-13, atol=1e-15)
