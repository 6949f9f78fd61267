"""Reductions and softmax beyond the table: accuracy of large sums, traps, axes, empty slices."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import reference as ref
from helpers import (
    LAYOUTS,
    assert_same_bits,
    assert_within,
    final_rounding,
    sum_bound,
    threads_used,
    unit,
    working,
)
from optable import BY_NAME, FLOATS

import extensor as ex

REDUCTIONS = ("sum", "mean", "max_reduce", "min_reduce", "variance", "std", "logsumexp")
TRUTH = ("any", "all")
ROWS_OF = ("softmax", "log_softmax")
EVERY = (*REDUCTIONS, *TRUTH, *ROWS_OF)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


# --- sums stay exact ------------------------------------------------------------------------------


def test_float32_sum_of_tenths_over_a_long_first_axis() -> None:
    """NumPy is 15 % off here: it adds one after the other along axis 0."""
    n = 2**24
    column = np.broadcast_to(np.array([0.1, 0.3], np.float32), (n, 2))  # of stride 0: no memory
    wanted = column[0].astype(np.longdouble) * n
    for x in (column, np.array(column)):
        assert_within(ex.sum(x, axis=0), wanted, sum_bound(wanted, n, wanted, np.float32))
        mean = wanted / n
        assert_within(ex.mean(x, axis=0), mean, sum_bound(mean, n, mean, np.float32))


def test_a_running_sum_would_fail() -> None:
    """The bound tells a tree from a running sum, at the sizes of the tests below."""
    n = 2**18
    x = np.full(n, 0.1, np.float32)
    wanted = np.longdouble(x[0]) * n
    with pytest.raises(AssertionError):
        assert_within(
            np.cumsum(x, dtype=np.float32)[-1], wanted, sum_bound(wanted, n, wanted, np.float32)
        )


@pytest.mark.parametrize("layout", ["contiguous", *(n for n in LAYOUTS if n != "stride 0")])
@pytest.mark.parametrize("values", ["0.1", "random", "cancelling"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_along_every_axis_and_layout(dtype: str, values: str, layout: str) -> None:
    rng = np.random.default_rng(5)
    for shape, axis in [
        ((2**17 + 3,), 0),
        ((2**16 + 1, 2), 0),
        ((2, 2**16 + 1), 1),
        ((3, 2**15 + 7, 2), 1),
        ((2, 2**14 + 1, 3), (0, 1)),
        ((41, 5, 43, 7), (0, 2)),
        ((300, 301), None),
    ]:
        if values == "0.1":
            x = np.full(shape, 0.1, dtype)
        else:
            x = rng.standard_normal(shape).astype(dtype)
            if values == "cancelling":  # large terms, a small sum
                x = (x * 2.0 ** rng.integers(-10, 20, shape)).astype(dtype)
        x = LAYOUTS[layout](x) if layout != "contiguous" else x
        n = ref.count(shape, axis)
        wide = x.astype(np.longdouble)
        wanted = np.sum(wide, axis=axis)
        magnitudes = np.sum(np.abs(wide), axis=axis)
        what = f"{shape} {axis}"
        assert_within(ex.sum(x, axis=axis), wanted, sum_bound(magnitudes, n, wanted, dtype), what)
        assert_within(
            ex.mean(x, axis=axis), wanted / n, sum_bound(magnitudes, n, wanted, dtype) / n, what
        )


def test_a_sum_over_two_axes_of_a_transposed_tensor() -> None:
    x = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5).transpose(3, 1, 0, 2)
    wanted = np.zeros((3, 4))
    for index in itertools.product(*map(range, x.shape)):
        wanted[index[1], index[3]] += x[index]
    assert ex.sum(x, axis=(0, 2)).tolist() == wanted.tolist()
    assert ex.sum(ex.asarray(x), axis=(2, 0), keepdims=True).shape == (1, 3, 1, 4)


def test_float16_is_summed_in_float32() -> None:
    ones = np.ones(4096, np.float16)
    assert ex.sum(ones).item() == 4096
    assert ex.mean(np.full(70_000, 8.0, np.float16)).item() == 8.0  # the sum alone overflows
    assert ex.sum(np.full(70_000, 1.0, np.float16)).item() == np.inf
    assert ex.sum(np.array([60000, 60000, -60000, -60000], np.float16)).item() == 0
    assert ex.variance(np.array([60000, -60000] * 3, np.float16)).item() == np.inf
    assert ex.std(np.array([60000, -60000] * 3, np.float16)).item() == 60000
    for axis in (0, 1):
        assert ex.sum(np.ones((4096, 4096), np.float16)[:, ::2], axis=axis).tolist() == (
            [4096.0] * 2048 if axis == 0 else [2048.0] * 4096
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "strided", "transposed", "reversed"])
def test_variance_far_from_zero(dtype: str, layout: str) -> None:
    """Deviations of ±1 about 1e7: the one-pass formula has no correct digit in float32."""
    offset = 1e7 if dtype == "float32" else 1e12
    steps = np.random.default_rng(1).integers(-4, 5, (40, 1000)).astype(np.float64)
    x = (offset + steps).astype(dtype)
    x = LAYOUTS[layout](x) if layout != "contiguous" else x
    for axis in (0, 1, None):
        wide = x.astype(np.longdouble)
        wanted = np.var(wide, axis=axis)
        n = ref.count(x.shape, axis)
        allowed = BY_NAME["variance"].bound(wanted, unit(dtype), x, axis)
        assert np.all(allowed < 1e-3 * wanted)  # the bound itself asks for something
        assert_within(ex.variance(x, axis=axis), wanted, allowed)
        assert_within(
            ex.std(x, axis=axis, ddof=1),
            np.sqrt(wanted * n / (n - 1)),
            BY_NAME["std"].bound(np.sqrt(wanted * n / (n - 1)), unit(dtype), x, axis, ddof=1),
        )


# --- softmax --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((3, 1000), 0),
        ((1000, 3), 0),
        ((3, 1000), 1),
        ((1000, 3), 1),
        ((100_003,), 0),
        ((2, 50_001), 1),
        ((50_001, 2), 0),
        ((7, 300, 5), (0, 1)),
        ((7, 300, 5), (0, 2)),
        ((130, 131), None),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_softmax_accuracy(dtype: str, shape: tuple, axis: Any, scale: float) -> None:
    """Logits up to ±1e4, some of them -inf, against longdouble."""
    rng = np.random.default_rng(3)
    x = (rng.uniform(-scale, scale, shape)).astype(dtype)
    x[rng.random(shape) < 0.1] = -np.inf
    for name in (*ROWS_OF, "logsumexp"):
        row = BY_NAME[name]
        with np.errstate(all="ignore"):
            wanted = row.reference(x.astype(np.longdouble), axis=axis)
            allowed = row.bound(wanted, unit(working(dtype)), x, axis=axis)
        got = getattr(ex, name)(x, axis=axis)
        assert_within(got, wanted, allowed + final_rounding(wanted, dtype), f"{name} {shape}")
        if name in ROWS_OF:  # exactly, unless the slice holds nothing else
            gone = np.asarray(got)[np.isneginf(x) & ~np.isnan(wanted)]
            assert (gone == (0 if name == "softmax" else -np.inf)).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5, 8), (5, 300), (5, 9001)])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_bad_slice_spoils_no_other(dtype: str, shape: tuple, axis: int) -> None:
    """NaN, +inf and only -inf give NaN in their slice; the others keep their bits."""
    x = normal(*shape, dtype=dtype)
    clean = {name: np.asarray(getattr(ex, name)(x, axis=axis)) for name in EVERY}
    bad = x.copy()
    lines = bad if axis == 1 else bad.T
    where = 3 if axis == 1 else 4
    for kind, fill in [
        ("nan", lambda line: line.__setitem__(-1, np.nan)),
        ("inf", lambda line: line.__setitem__(0, np.inf)),
        ("only -inf", lambda line: line.__setitem__(slice(None), -np.inf)),
    ]:
        saved = lines[where].copy()
        fill(lines[where])
        for name in EVERY:
            got = np.asarray(getattr(ex, name)(bad, axis=axis))
            whole = name in ROWS_OF
            view = got.T if whole and axis == 0 else got
            good = clean[name].T if whole and axis == 0 else clean[name]
            others = [i for i in range(len(view)) if i != where]
            assert_same_bits(view[others].copy(), good[others].copy(), f"{name} beside {kind}")
            expected = {
                "nan": np.nan,
                "inf": {"min_reduce": np.min(lines[where]), "any": True, "all": True}.get(
                    name, np.inf if name in ("sum", "mean", "max_reduce", "logsumexp") else np.nan
                ),
                "only -inf": {"any": True, "all": True}.get(
                    name,
                    -np.inf
                    if name in ("sum", "mean", "max_reduce", "min_reduce", "logsumexp")
                    else np.nan,
                ),
            }[kind]
            if name in TRUTH:
                assert view[where] == good[where]
            else:
                assert_same_bits(
                    view[where], np.broadcast_to(np.asarray(expected, dtype), view[where].shape)
                )
        lines[where] = saved


def test_softmax_sums_to_one() -> None:
    for shape, axis in [((64, 1000), 1), ((1000, 64), 0), ((20, 30, 40), (0, 2))]:
        y = ex.softmax(100 * normal(*shape), axis=axis)
        total = np.asarray(ex.sum(y, axis=axis))
        assert (np.abs(total - 1) <= 4 * (16 + math.log2(y.size)) * unit(np.float32)).all()


# --- ties and NaN in the gradients of max and min -------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["max_reduce", "min_reduce"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((6, 7), 0),
        ((6, 7), 1),
        ((6, 7), None),
        ((5, 4099), 1),
        ((4099, 5), 0),
        ((4, 300, 5), 1),
        ((4, 30, 5), (0, 2)),
        ((9001,), 0),
    ],
)
def test_ties_share_equally(name: str, dtype: str, shape: tuple, axis: Any) -> None:
    """Several ties, all-equal slices and several NaNs: the shares are equal and add up to g."""
    rng = np.random.default_rng(2)
    backward = getattr(ex, f"{name}_backward")
    row = BY_NAME[name]
    few = rng.integers(-2, 3, shape).astype(dtype)
    with_nan = few.copy()
    with_nan[rng.random(shape) < 0.2] = np.nan
    for x in (
        few,
        np.full(shape, 3, dtype),
        np.full(shape, -np.inf, dtype),
        with_nan,
        np.full(shape, np.nan, dtype),
    ):
        g = np.asarray(rng.standard_normal(ref.kept_shape(shape, axis)), dtype)
        got = np.asarray(backward(g, x, axis=axis))
        (wanted,) = row.terms(g.astype(np.longdouble), x.astype(np.longdouble), axis=axis)
        # one division
        allowed = unit(working(dtype)) * np.abs(wanted) + final_rounding(wanted, dtype)
        assert_within(got, wanted, allowed)
        assert not np.signbit(got[wanted == 0]).any()  # +0 where nothing goes
        total = np.sum(got.astype(np.longdouble), axis=axis, keepdims=True)
        n = ref.count(shape, axis)
        assert (np.abs(total - g) <= n * np.max(allowed) + 1e-18).all()


def test_zero_by_convention_is_selected_not_multiplied() -> None:
    x = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 4.0]], np.float32)
    for g in (np.nan, np.inf, -np.inf):
        got = np.asarray(ex.max_reduce_backward(np.full(2, g, np.float32), x, axis=1))
        assert (got[[0, 0, 1], [0, 1, 2]] == 0).all()
        assert not np.signbit(got[[0, 0, 1], [0, 1, 2]]).any()
        assert_same_bits(got[1, :2], np.full(2, g / 2, np.float32))
        flat = np.full((2, 3), 7.0, np.float32)
        std = ex.std_backward(np.full(2, g, np.float32), flat, ex.std(flat, axis=1), axis=1)
        assert_same_bits(std, np.zeros((2, 3), np.float32))


# --- conventions about shapes ---------------------------------------------------------------------


def test_aliases_and_methods() -> None:
    assert ex.max is ex.max_reduce
    assert ex.min is ex.min_reduce
    x = ex.asarray(normal(3, 4))
    for name in ("sum", "mean", "max", "min"):
        function = getattr(ex, name)
        assert_same_bits(getattr(x, name)(), function(x))
        assert_same_bits(getattr(x, name)(axis=1, keepdims=True), function(x, 1, True))
        assert_same_bits(getattr(x, name)(0), function(x, axis=0))


def test_mean_backward_divides_by_the_size_of_the_axes() -> None:
    g = np.ones((2, 4), np.float32)
    assert np.unique(ex.mean_backward(g, (2, 3, 4), axis=1)).tolist() == [np.float32(1 / 3)]
    one = np.ones((3,), np.float32)
    assert np.unique(ex.mean_backward(one, (2, 3, 4), axis=(0, 2))).tolist() == [0.125]
    assert np.unique(ex.mean_backward(np.float32(1), (2, 3, 4))).tolist() == [np.float32(1 / 24)]
    tensor = ex.zeros((2, 3, 4), dtype=ex.float64)  # the tensor in the place of the shape
    got = ex.mean_backward(g, tensor, axis=1)
    assert got.dtype == np.float64
    assert np.allclose(got, 1 / 3, rtol=1e-6)
    got = ex.sum_backward(g, [2, 3, 4], 1)
    assert got.shape == (2, 3, 4)
    assert got.dtype == np.float32


@pytest.mark.parametrize("name", [f"{name}_backward" for name in REDUCTIONS])
def test_a_square_is_not_mixed_up(name: str) -> None:
    """Where all axes have one size, only the values tell the axes apart."""
    x = normal(4, 4, 4, dtype=np.float64)
    g = normal(4, 4, seed=1, dtype=np.float64)
    row = BY_NAME[name.removesuffix("_backward")]
    for axis in (0, 1, 2):
        output = np.asarray(row.forward(x, axis=axis))
        saved = row.save((x,), output)
        (wanted,) = row.terms(g, *saved, axis=axis)
        np.testing.assert_allclose(row.backward(g, *saved, axis=axis), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_slices_of_size_one(name: str) -> None:
    for dtype in FLOATS:
        for shape, axis in [((1, 5), 0), ((5, 1), 1), ((1,), 0), ((2, 1, 3), 1), ((3, 2), ())]:
            x = normal(*shape, dtype=dtype)
            got = getattr(ex, name)(x, axis=axis)
            expected = {
                "variance": np.zeros_like(x),
                "std": np.zeros_like(x),
                "softmax": np.ones_like(x),
                "log_softmax": np.zeros_like(x),
                "any": x != 0,
                "all": x != 0,
            }.get(name, x)
            if name not in ROWS_OF and axis != ():
                expected = np.squeeze(expected, axis=axis)
            assert_same_bits(got, expected, f"{name} {shape} {axis} {dtype}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_empty_slices(dtype: str) -> None:
    x = np.zeros((2, 0, 3), dtype)
    for axis, shape in [(1, (2, 3)), ((0, 1), (3,)), (None, ()), ((1, 2), (2,))]:
        for name, value in [
            ("sum", 0.0),
            ("mean", np.nan),
            ("variance", np.nan),
            ("std", np.nan),
            ("logsumexp", -np.inf),
        ]:
            assert_same_bits(getattr(ex, name)(x, axis=axis), np.full(shape, value, dtype), name)
        for name in (
            "max_reduce",
            "min_reduce",
            *(("argmax", "argmin") if axis in (1, None) else ()),
        ):
            with pytest.raises(ValueError, match=rf"{name}.*\(2, 0, 3\)"):
                getattr(ex, name)(x, axis=axis)
        for name in ("max_reduce_backward", "min_reduce_backward"):
            with pytest.raises(ValueError, match=name):
                getattr(ex, name)(np.zeros(shape, dtype), x, axis=axis)
        assert np.asarray(ex.any(x, axis=axis)).tolist() == np.zeros(shape, bool).tolist()
        assert np.asarray(ex.all(x, axis=axis)).tolist() == np.ones(shape, bool).tolist()
    # other axes: the result is empty itself
    for name in (*REDUCTIONS, *TRUTH, "argmax", "argmin"):
        assert getattr(ex, name)(x, axis=0).shape == (0, 3)
        assert getattr(ex, name)(x, axis=2).shape == (2, 0)
    for name in ROWS_OF:
        for axis in (0, 1, 2, None, (0, 1)):
            assert getattr(ex, name)(x, axis=axis).shape == (2, 0, 3)
            assert getattr(ex, f"{name}_backward")(x, x, axis=axis).shape == (2, 0, 3)
    for name in REDUCTIONS:
        row = BY_NAME[name]
        output = np.asarray(row.forward(x, axis=2))
        assert row.backward(output, *row.save((x,), output), axis=2).shape == (2, 0, 3)


@pytest.mark.parametrize("name", [*EVERY, "argmax", "argmin"])
def test_wrong_axes(name: str) -> None:
    function = getattr(ex, name)
    x = normal(2, 3)
    wrong = [
        (2, np.exceptions.AxisError),
        (-3, np.exceptions.AxisError),
        ("0", TypeError),
        (1.0, TypeError),
    ]
    if name not in ("argmax", "argmin"):
        wrong += [
            ((0, 2), np.exceptions.AxisError),
            ((0, 0), ValueError),
            ((1, -1), ValueError),
            ((0, None), TypeError),
            (True, TypeError),
        ]
    else:
        wrong += [((0, 1), TypeError)]
    for axis, error in wrong:
        with pytest.raises(error, match=name):
            function(x, axis=axis)
        with pytest.raises(error, match=name):
            function(x, axis=axis, out=ex.zeros((3,)))
    with pytest.raises(np.exceptions.AxisError, match=name):
        function(np.float32(1), axis=0)
    row = BY_NAME[name]
    if not row.terms:
        return
    output = row.forward(x, axis=1)
    for axis, error in wrong:
        with pytest.raises(error, match=row.backward_name):
            row.backward(np.asarray(output), *row.save((x,), output), axis=axis)


def test_axis_may_be_any_integer() -> None:
    x = normal(2, 3, 4)
    assert_same_bits(ex.sum(x, axis=np.int64(1)), ex.sum(x, axis=1))
    assert_same_bits(ex.sum(x, axis=[0, 2]), ex.sum(x, axis=(0, 2)))
    assert_same_bits(ex.softmax(x, axis=np.int8(-2)), ex.softmax(x, axis=1))
    assert_same_bits(ex.argmax(x, axis=np.int32(-1)), ex.argmax(x, axis=2))


def test_wrong_ddof_and_output() -> None:
    x = normal(2, 3)
    for name in ("variance", "std"):
        for ddof, error in [("1", TypeError), (np.nan, ValueError), (None, TypeError)]:
            with pytest.raises(error, match=rf"{name}.*ddof"):
                getattr(ex, name)(x, ddof=ddof)
    g = np.ones(2, np.float32)
    with pytest.raises(ValueError, match=r"variance_backward.*ddof"):
        ex.variance_backward(g, x, axis=1, ddof=np.nan)
    for name in ("std_backward", "logsumexp_backward"):
        for shape in [(3,), (1, 2), (), (2, 3)]:
            with pytest.raises(ValueError, match=rf"{name}.*output") as caught:
                getattr(ex, name)(g, x, np.ones(shape, np.float32), axis=1)
            assert str(shape) in str(caught.value)
    with pytest.raises(ValueError, match=r"softmax_backward.*\(2, 2\).*\(2, 3\)"):
        ex.softmax_backward(np.ones((2, 2), np.float32), x)


def test_ddof_at_and_beyond_the_count() -> None:
    """Divided by max(n − ddof, 0): inf, and NaN where there is no deviation either."""
    x = np.array([1.0, 3.0])
    for ddof in (2, 2.5, 100):
        assert ex.variance(x, ddof=ddof).item() == np.inf
        assert ex.std(x, ddof=ddof).item() == np.inf
        assert np.isnan(ex.variance(np.array([2.0, 2.0]), ddof=ddof).item())
    assert ex.variance(x, ddof=-2).item() == 0.5


# --- integers and bools ---------------------------------------------------------------------------


def test_integers_beyond_the_floats() -> None:
    n = 2**53 + 1
    x = np.array([[n, 1], [-n, 2]], np.int64)
    assert ex.sum(x, axis=1).tolist() == [n + 1, 2 - n]
    assert ex.max_reduce(x).item() == n
    assert ex.min_reduce(x, axis=0).tolist() == [-n, 1]
    assert ex.argmax(np.array([n - 1, n])).item() == 1
    assert ex.sum(np.array([2**63 - 1, 1], np.uint64)).item() == 2**63
    assert ex.sum(np.array([2**63 - 1, 1], np.int64)).item() == -(2**63)
    assert ex.sum(np.full(300, 100, np.int8)).dtype == np.int64
    assert ex.sum(np.full(300, 100, np.int8)).item() == 30_000
    assert ex.sum([True, True]).item() == 2
    assert ex.mean([True, False]).dtype == np.float64


def test_gradients_of_integer_inputs_have_the_dtype_of_grad_output() -> None:
    x = np.array([[3, 1, 3], [2, 2, 2]], np.int32)
    for dtype in FLOATS:
        g = np.array([6.0, 9.0], dtype)
        got = ex.max_reduce_backward(g, x, axis=1)
        assert got.dtype == dtype
        assert got.tolist() == [[3, 0, 3], [3, 3, 3]]
        got = ex.variance_backward(g, x, axis=1)
        assert got.dtype == dtype
        assert np.asarray(got)[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("x_dtype", FLOATS)
@pytest.mark.parametrize("g_dtype", FLOATS)
@pytest.mark.parametrize("name", [*REDUCTIONS, *ROWS_OF])
def test_gradient_dtypes(name: str, x_dtype: str, g_dtype: str) -> None:
    """The dtype of the tensor that was given; of grad_output where that was a shape."""
    row = BY_NAME[name]
    x = normal(3, 5, dtype=x_dtype)
    output = row.forward(x, axis=1)
    g = normal(*np.shape(output), seed=1, dtype=g_dtype)
    saved = row.save((x,), output)
    got = np.asarray(row.backward(g, *saved, axis=1))
    assert got.dtype == (g_dtype if row.saved == "shapes" else x_dtype)
    wide = [
        v.astype(np.float64) if isinstance(v, np.ndarray) else v
        for v in (np.asarray(s) if isinstance(s, ex.ExTensor) else s for s in saved)
    ]
    (wanted,) = row.terms(g.astype(np.float64), *wide, axis=1)
    # the least exact of the dtypes that take part, with room for its sums of five
    scale = 64 * max(unit(x_dtype), unit(g_dtype))
    np.testing.assert_allclose(got, wanted, rtol=scale, atol=scale * np.abs(wanted).max())
    if row.saved == "shapes":
        assert np.asarray(row.backward(g, x, axis=1)).dtype == x_dtype


# --- out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*REDUCTIONS, *ROWS_OF])
def test_out_that_overlaps(name: str, dtype: str) -> None:
    """An out inside its input (or over grad_output) is computed correctly or refused."""
    row = BY_NAME[name]
    for shape, axis in [
        ((6, 6), 0),
        ((6, 6), 1),
        ((70, 90), 1),
        ((70, 90), 0),
        ((5, 6, 7), (0, 2)),
    ]:
        x = normal(*shape, dtype=dtype)
        wanted = np.asarray(row.forward(x, axis=axis))
        size = wanted.size
        for start, step in [(0, 1), (1, 1), (x.size - size, 1), (0, -1)]:
            memory = np.concatenate([x.ravel(), np.zeros(size + 2, dtype)])
            place = memory[start : start + size][::step].reshape(wanted.shape)
            before = memory.copy()
            refusal = None
            try:
                row.forward(ex.asarray(memory[: x.size].reshape(shape)), axis=axis, out=place)
            except ValueError as error:
                refusal = str(error)
            if refusal is None:
                assert_same_bits(place, wanted, f"{name} {shape} {axis} at {start}, {step}")
            else:
                assert name in refusal
                assert_same_bits(memory, before, "a refused call wrote")
        # the gradient over its own arguments
        g = normal(*wanted.shape, seed=2, dtype=dtype)
        saved = row.save((x,), wanted)
        gradient = np.asarray(row.backward(g, *saved, axis=axis))
        memory = np.zeros(2 * x.size + g.size, dtype)
        at = memory[x.size - 3 : x.size - 3 + g.size].reshape(g.shape)
        at[...] = g
        row.backward(at, *saved, axis=axis, out=memory[: x.size].reshape(shape))
        assert_same_bits(memory[: x.size].reshape(shape), gradient, f"{name}: over grad_output")
        if row.saved == "shapes":
            continue
        own = np.array(saved[0])
        row.backward(g, own, *saved[1:], axis=axis, out=own)
        assert_same_bits(own, gradient, f"{name}_backward in place on {row.saved}")


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*REDUCTIONS, *ROWS_OF, "argmax"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 700_001), 1), ((700_001, 3), 0), ((1, 1_000_003), 1), ((5001, 301), 0)]
)
def test_threads_near_one_slice(name: str, shape: tuple, axis: int) -> None:
    """Few long slices, the shapes where sharing out is hardest: the same bits."""
    row = BY_NAME[name]
    x = normal(*shape)
    output = np.asarray(row.forward(x, axis=axis))
    g = normal(*output.shape, seed=1) if row.terms else None
    results = []
    for n in (1, 2, 3, 8):
        with ex.num_threads(n):
            threads_used(widest=True)
            got = [np.asarray(row.forward(x, axis=axis))]
            teams = [threads_used(widest=True)]
            if row.terms:
                got.append(np.asarray(row.backward(g, *row.save((x,), output), axis=axis)))
                teams.append(threads_used(widest=True))
        assert teams == [n] * len(teams)
        results.append(got)
    for got in results[1:]:
        for one, other in zip(got, results[0], strict=True):
            assert_same_bits(one, other, f"{name} {shape}")


def test_sizes_around_the_lanes() -> None:
    """Every length up to some tiles, and around the larger cuts, in integers: exactly."""
    rng = np.random.default_rng(8)
    sizes = [
        *range(1, 70),
        *(n + d for n in (128, 256, 1024, 4096, 8192, 3 * 4096) for d in (-1, 0, 1)),
    ]
    for n in sizes:
        x = rng.integers(-50, 50, (2, n, 3)).astype(np.float32)
        for axis in (0, 1, 2):
            assert_same_bits(ex.sum(x, axis=axis), x.sum(axis=axis, dtype=np.float64).astype("f4"))
            assert_same_bits(ex.max(x, axis=axis), x.max(axis=axis) + np.float32(0))
            assert_same_bits(ex.argmin(x, axis=axis), x.argmin(axis=axis))
        row = np.ascontiguousarray(x[0, :, 0])
        assert ex.sum(row).item() == row.sum(dtype=np.float64)
        assert ex.min(row).item() == row.min()
        assert ex.argmax(row).item() == row.argmax()
        np.testing.assert_allclose(ex.variance(row), row.var(dtype=np.float64), rtol=1e-5, atol=0)
        np.testing.assert_allclose(
            ex.softmax(row), ref.softmax(row.astype("f8")), rtol=2e-5, atol=1e-40
        )


def test_ties_beyond_what_float32_counts() -> None:
    """Shares of more than 2²⁴ ties still add up to grad_output."""
    x = np.ones((2**24 + 2**22, 2), np.float32)
    shares = np.asarray(ex.max_reduce_backward(np.array([1.0, -3.0], np.float32), x, axis=0))
    np.testing.assert_allclose(shares.sum(axis=0, dtype=np.float64), [1.0, -3.0], rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1_500_000,), (3, 500_000), (1203, 1301), (70, 3, 7001)])
def test_any_and_all_of_many_bools(shape: tuple[int, ...], threads: int) -> None:
    """One odd bool is found wherever it stands; any byte but 0 is true."""
    for place in (0, math.prod(shape) // 2 + 7, math.prod(shape) - 1):
        few = np.zeros(shape, np.uint8)
        few.flat[place] = 2
        few, most = few.view(bool), few == 0
        with ex.num_threads(threads):
            for axis in (None, *range(len(shape))):
                assert_same_bits(ex.any(few, axis=axis), few.any(axis=axis))
                assert_same_bits(ex.all(most, axis=axis), most.all(axis=axis))
            assert_same_bits(ex.logical_not(few), np.logical_not(few))
            assert_same_bits(ex.logical_and(few, few), ~most)
            assert_same_bits(ex.logical_or(few, most), np.ones(shape, bool))
            assert_same_bits(ex.logical_xor(few, ~most), np.zeros(shape, bool))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(700, 3, 210), (41, 50, 33), (2, 1, 40)])
def test_sum_over_the_first_and_last_axes(shape: tuple[int, ...], dtype: str) -> None:
    x = normal(*shape, seed=3, dtype=dtype)
    exact = x.astype(np.longdouble).sum(axis=(0, 2))
    bound = (16 + math.log2(x.size)) * unit(dtype) * np.abs(x).sum(axis=(0, 2), dtype="f8")
    assert (np.abs(np.asarray(ex.sum(x, axis=(0, 2))) - exact) <= bound).all()
    means = np.asarray(ex.mean(x, axis=(0, 2), keepdims=True))
    assert means.shape == (1, shape[1], 1)
    np.testing.assert_allclose(means[0, :, 0], exact / (x.size // shape[1]), rtol=1e-4, atol=1e-5)
