"""Matrix products beyond the table: tile boundaries, the error bound, errors, overlaps, threads."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import checks
import numpy as np
import pytest
import reference as ref
from helpers import (
    BAD_INPUTS,
    LAYOUTS,
    assert_same_bits,
    assert_within,
    final_rounding,
    threads_used,
    unit,
    working,
)
from optable import BY_NAME, FLOATS

import extensor as ex

# Tiles of gemm.h at all CPU levels: rows 4, 6, 12; columns 4, 8, 16, 32 and their doubles; blocks
# of k 256, 512, 768. Of matrix.pyx: blocks of 60 rows; 128 and 256 packed columns; parts of a long
# dot product of 16384. One below, the size itself, one above.
ROWS = (1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 23, 24, 25)
COLUMNS = (1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65)
DEPTHS = (255, 256, 257, 511, 512, 513, 767, 768, 769, 1024, 1537, 2049)
BLOCK_ROWS = (59, 60, 61, 119, 120, 121)
PACKED_COLUMNS = (127, 128, 129, 255, 256, 257)
DOTS = (16383, 16384, 16385, 32769)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def whole(*shape: int, seed: int = 0, dtype: Any = np.float32, high: int = 8) -> np.ndarray:
    """Integer values so small that every sum of the tests is exact."""
    return np.random.default_rng(seed).integers(-high, high + 1, shape).astype(dtype)


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of integer values, as integers: NumPy's BLAS and its threads stay out of it."""
    return np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(a.dtype)


def assert_exact(got: Any, wanted: np.ndarray, what: str = "") -> None:
    """The same numbers; a zero may have either sign (a sum of one term keeps that of the term)."""
    array = np.asarray(got)
    assert_same_bits(array + array.dtype.type(0), wanted + wanted.dtype.type(0), what)


def high_for(dtype: str) -> int:
    """Sums of 2049 products stay below 2048 in float16, below 2**24 in float32."""
    return 1 if dtype == "float16" else 8


# --- exact products -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_around_the_tiles(dtype: str) -> None:
    high = high_for(dtype)
    big_a = whole(max(ROWS), 70, dtype=dtype, high=high)
    big_b = whole(70, max(COLUMNS), seed=1, dtype=dtype, high=high)
    for m, n, k in itertools.product(ROWS, COLUMNS, (1, 2, 7, 64)):
        for a, b in [
            (big_a[:m, :k], big_b[:k, :n]),  # slices: rows apart
            (np.ascontiguousarray(big_a[:m, :k]), np.ascontiguousarray(big_b[:k, :n])),
            (np.asfortranarray(big_a[:m, :k]), np.asfortranarray(big_b[:k, :n])),
        ]:
            assert_exact(ex.matmul(a, b), exact(a, b), f"{m} {n} {k} {a.strides}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("k", DEPTHS)
def test_values_around_the_blocks_of_k(dtype: str, k: int) -> None:
    high = high_for(dtype)
    big_a, big_b = (
        whole(25, k, dtype=dtype, high=high),
        whole(k, 65, seed=1, dtype=dtype, high=high),
    )
    for m, n in [(1, 1), (1, 65), (25, 1), (12, 32), (13, 33), (25, 65)]:
        a, b = big_a[:m], big_b[:, :n]
        assert_exact(ex.matmul(a, b), exact(a, b), f"{m} {n} {k}")
        assert_exact(ex.matmul(np.asfortranarray(a), b.copy()), exact(a, b))
        assert_exact(ex.linear(a, b.T), exact(a, b), f"linear {m} {n} {k}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("m", BLOCK_ROWS)
def test_values_around_the_packed_blocks(dtype: str, m: int) -> None:
    high = high_for(dtype)
    for n in PACKED_COLUMNS:
        a = whole(m, 9, dtype=dtype, high=high)
        b = whole(9, n, seed=1, dtype=dtype, high=high)
        for left, right in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
            assert_exact(ex.matmul(left, right), exact(a, b), f"{m} {n}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", DOTS)
def test_values_of_long_dot_products(dtype: str, k: int) -> None:
    a, b = whole(k, dtype=dtype), whole(k, seed=1, dtype=dtype)
    wanted = exact(a, b)
    assert_exact(ex.dot(a, b), wanted, f"{k}")
    assert_exact(ex.dot(a[::-1], b[::-1]), wanted, f"{k} reversed")


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_of_large_products(dtype: str) -> None:
    """Above the sizes at which operands are packed and the output is cut."""
    high = high_for(dtype)
    for m, n, k in [
        (600, 70, 80),
        (70, 1100, 60),
        (530, 521, 33),
        (130, 140, 1200),
        (257, 256, 255),
    ]:
        a = whole(m, k, dtype=dtype, high=high)
        b = whole(k, n, seed=1, dtype=dtype, high=high)
        wanted = exact(a, b)
        for left, right in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
            assert_same_bits(ex.matmul(left, right), wanted, f"{m} {n} {k}")
        out = np.zeros((n, m), dtype).T
        ex.matmul(a, b, out=out)
        assert_same_bits(out.copy(), wanted, "into a transposed out")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_layouts_of_every_operand(layout: str, dtype: str) -> None:
    change = LAYOUTS[layout]
    high = high_for(dtype)
    for m, n, k in [(37, 41, 67), (1, 41, 300), (37, 1, 300), (200, 300, 1), (70, 520, 64)]:
        a, b = whole(m, k, dtype=dtype, high=high), whole(k, n, seed=1, dtype=dtype, high=high)
        g = whole(m, n, seed=2, dtype=dtype, high=high)
        for x, y in [(change(a), b), (a, change(b)), (change(a), change(b))]:
            assert_exact(ex.matmul(x, y), exact(x, y), f"{m} {n} {k}")
        x, y, up = change(a), change(b), change(g)
        grad_a, grad_b = ex.matmul_backward(up, x, y)
        assert_exact(grad_a, exact(up, y.T), f"{m} {n} {k} grad_a")
        assert_exact(grad_b, exact(x.T, up), f"{m} {n} {k} grad_b")


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_broadcast_batches(dtype: str) -> None:
    high = high_for(dtype)
    for a_shape, b_shape in [
        ((6, 5, 7), (7, 3)),
        ((5, 7), (6, 7, 3)),
        ((1, 5, 7), (6, 7, 3)),
        ((2, 1, 5, 7), (4, 7, 3)),
        ((3, 1, 5, 7), (1, 4, 7, 3)),
        ((40, 13, 33), (33, 17)),
        ((7,), (4, 7, 3)),
        ((4, 5, 7), (7,)),
        ((300, 4, 6), (6, 5)),
    ]:
        a = whole(*a_shape, dtype=dtype, high=high)
        b = whole(*b_shape, seed=1, dtype=dtype, high=high)
        g = whole(*np.matmul(a, b).shape, seed=2, dtype=dtype, high=high)
        wanted = ref.matmul_terms(*(x.astype(np.float64) for x in (g, a, b)))
        for layout in ("contiguous", "reversed", "transposed", "strided"):
            change = LAYOUTS.get(layout, np.array)
            found = ex.matmul_backward(change(g), change(a), change(b))
            for got, gradient in zip(found, wanted, strict=True):
                assert_exact(got, gradient.astype(dtype), f"{a_shape} {b_shape} {layout}")


# --- the bound ------------------------------------------------------------------------------------


def product_bound(a: np.ndarray, b: np.ndarray, expected: Any, dtype: Any) -> Any:
    magnitudes = np.matmul(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
    return 1.01 * a.shape[-1] * unit(working(dtype)) * magnitudes + final_rounding(expected, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(50, 60, 1000), (1, 300, 3000), (300, 1, 3000), (1, 1, 100_000), (3, 5, 20_000), (64, 64, 2)],
)
def test_error_bound(dtype: str, m: int, n: int, k: int) -> None:
    for kind in ("random", "positive", "scaled"):
        rng = np.random.default_rng(4)
        a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
        if kind == "positive":
            a, b = np.abs(a), np.abs(b)
        elif kind == "scaled":
            a, b = a * 2.0 ** rng.integers(-6, 6, k), b * 2.0 ** rng.integers(-6, 6, (k, 1))
        if dtype == "float16":
            a, b = a / 16, b / 16  # keeps the sums finite
        a, b = a.astype(dtype), b.astype(dtype)
        if dtype == "float64":
            wide = np.longdouble if m * n * k < 1e6 else None
            if wide is None:  # fsum on a few elements: longdouble products are slow
                picks = [(i, j) for i in (0, m - 1) for j in (0, n // 2, n - 1)]
                got = np.asarray(ex.matmul(a, b))
                for i, j in picks:
                    terms = [*(a[i].astype(np.longdouble) * b[:, j])]
                    total = math.fsum(float(t) for t in terms) + math.fsum(
                        float(t - np.longdouble(float(t))) for t in terms
                    )
                    allowed = 1.01 * k * unit(dtype) * float(np.abs(a[i]) @ np.abs(b[:, j]))
                    assert abs(float(got[i, j]) - total) <= allowed
                continue
            wanted = np.matmul(a.astype(wide), b.astype(wide))
        else:
            wanted = np.matmul(a.astype(np.float64), b.astype(np.float64))
        assert_within(ex.matmul(a, b), wanted, product_bound(a, b, wanted, dtype), kind)


def test_float16_is_rounded_once() -> None:
    a = np.array([[1.0, 2.0**-11, 2.0**-20]], np.float16)
    one = np.ones((3, 1), np.float16)
    assert ex.matmul(a, one).item() == np.float16(1 + 2.0**-10)  # a tie, but for the last term
    assert ex.linear(a[:, :2], one[:2].T, np.array([2.0**-20], np.float16)).item() == np.float16(
        1 + 2.0**-10
    )
    k = 4096
    assert (
        ex.matmul(np.ones((2, k), np.float16), np.ones((k, 3), np.float16)).tolist()
        == [[k] * 3] * 2
    )
    assert ex.dot(np.full(8, 256, np.float16), np.array([256, -256] * 4, np.float16)).item() == 0
    # the same through batches that are summed
    g = np.array([1.0, 2.0**-11, 2.0**-20], np.float16).reshape(3, 1, 1)
    x = np.ones((3, 1, 1), np.float16)
    assert ex.matmul_backward(g, x, np.ones((1, 1), np.float16))[1].item() == np.float16(1 + 2**-10)
    weight = np.ones((1, 1), np.float16)
    grads = ex.linear_backward(g, x, weight)
    assert grads[1].item() == np.float16(1 + 2.0**-10)
    assert grads[2].item() == np.float16(1 + 2.0**-10)


# --- NaN, infinities ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(5, 6, 7), (13, 33, 65), (1, 40, 300), (40, 1, 300), (30, 40, 1)]
)
def test_nan_and_inf_stay_in_their_row_and_column(dtype: str, shape: tuple) -> None:
    """Zeros are multiplied, not skipped; what pads a tile never reaches its neighbours."""
    m, n, k = shape
    high = high_for(dtype)
    a, b = whole(m, k, dtype=dtype, high=high), whole(k, n, seed=1, dtype=dtype, high=high)
    clean = exact(a, b)
    for bad in (np.nan, np.inf):
        spoiled = a.copy()
        spoiled[-1, -1] = bad
        got = np.asarray(ex.matmul(spoiled, b))
        assert_exact(got[:-1], clean[:-1])
        with np.errstate(all="ignore"):
            expected = clean[-1] - a[-1, -1] * b[-1] + dtype_of(dtype, bad) * b[-1]
        assert_exact(got[-1], expected.astype(dtype))
        spoiled = b.copy()
        spoiled[0, 0] = bad
        got = np.asarray(ex.matmul(a, spoiled))
        assert_exact(got[:, 1:], clean[:, 1:])
        assert not np.isfinite(got[:, 0]).any()


def dtype_of(dtype: str, value: float) -> Any:
    return np.dtype(dtype).type(value)


# --- empty ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "bool"])
def test_dimensions_of_zero(dtype: str) -> None:
    def zeros(*shape: int) -> np.ndarray:
        return np.ones(shape, dtype)

    for a, b in [
        ((0,), (0,)),
        ((3, 0), (0,)),
        ((0,), (0, 4)),
        ((3, 0), (0, 4)),
        ((0, 3), (3, 4)),
        ((3, 4), (4, 0)),
        ((2, 3, 0), (2, 0, 4)),
        ((0, 3, 4), (4, 5)),
        ((2, 3, 0), (0,)),
    ]:
        got = ex.matmul(zeros(*a), zeros(*b))
        assert_same_bits(got, np.matmul(zeros(*a), zeros(*b)), f"{a} {b}")
        out = np.ones(np.shape(got), dtype)
        assert_same_bits(ex.matmul(zeros(*a), zeros(*b), out=out), got, "out is not cleared")
    if dtype not in FLOATS:
        return
    for grad in ex.matmul_backward(zeros(0, 4), zeros(0, 3), zeros(3, 4)):
        assert not np.asarray(grad).any()
    grads = ex.linear_backward(zeros(0, 4), zeros(0, 3), zeros(4, 3))
    assert [g.shape for g in grads] == [(0, 3), (4, 3), (4,)]
    assert not any(np.asarray(g).any() for g in grads)
    assert_same_bits(ex.linear(zeros(2, 0), zeros(3, 0), zeros(3)), np.ones((2, 3), dtype))


# --- linear ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_linear_without_bias(dtype: str) -> None:
    for lead in [(), (5,), (2, 3), (2, 1, 3)]:
        x, weight = whole(*lead, 7, dtype=dtype), whole(4, 7, seed=1, dtype=dtype)
        wanted = exact(x, weight.T)
        assert_same_bits(ex.linear(x, weight), wanted)
        assert_same_bits(ex.linear(x, weight, None), wanted)
        bias = whole(4, seed=2, dtype=dtype)
        assert_same_bits(ex.linear(x, weight, bias), wanted + bias)
        assert_same_bits(ex.linear(x, weight, LAYOUTS["strided"](bias)), wanted + bias)
        x64, w64 = x.astype(np.float64), weight.astype(np.float64)
        ex.check_gradient(
            ex.linear, lambda g, x, w: ex.linear_backward(g, x, w)[:2], (x64 / 7, w64 / 5)
        )


@pytest.mark.parametrize("what", BAD_INPUTS)
def test_linear_of_bad_inputs(what: str) -> None:
    bad = BAD_INPUTS[what]
    x, weight, bias = np.ones((2, 3), "f4"), np.ones((4, 3), "f4"), np.ones(4, "f4")
    g = np.ones((2, 4), "f4")
    calls: list[Any] = [
        lambda: ex.linear(bad, weight, bias),
        lambda: ex.linear(x, bad, bias),
        lambda: ex.linear_backward(bad, x, weight),
        lambda: ex.linear_backward(g, bad, weight),
        lambda: ex.linear_backward(g, x, bad),
    ]
    if bad is not None:
        calls.append(lambda: ex.linear(x, weight, bad))
    for call in calls:
        with pytest.raises((TypeError, ValueError), match="linear"):
            call()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "numbers"),
    [
        ((3,), (4,), ("3", "4")),
        ((2, 3), (4,), ("3", "4")),
        ((3,), (4, 5), ("3", "4")),
        ((2, 3), (4, 5), ("3", "4")),
        ((2, 3), (2, 3), ("3", "2")),
        ((2, 3, 4), (5, 6), ("4", "5")),
        ((2, 3, 4), (5, 4, 6), ("2", "5")),
        ((7, 2, 3, 4), (5, 2, 4, 6), ("7", "5")),
        ((), (3,), ()),
        ((3,), (), ()),
        ((), (), ()),
    ],
)
def test_shapes_that_do_not_match(a: tuple, b: tuple, numbers: tuple) -> None:
    x, y = np.ones(a, "f4"), np.ones(b, "f4")
    calls = [
        ("matmul", lambda: ex.matmul(x, y)),
        ("matmul_backward", lambda: ex.matmul_backward(np.ones((2, 5), "f4"), x, y)),
    ]
    if a and b:
        calls.append(("matmul", lambda: ex.matmul(x.astype(int), y.astype(int))))
        calls.append(("matmul", lambda: ex.asarray(x) @ ex.asarray(y)))
    for name, call in calls:
        with pytest.raises(ValueError, match=rf"^{name}:") as caught:
            call()
        text = str(caught.value)
        assert str(a) in text, text
        assert str(b) in text, text
        rest = text.split(";")[1]
        assert all(number in rest for number in numbers), text
        if len(numbers) == 2:
            assert "axis" in rest, text


def test_other_wrong_shapes() -> None:
    two, three = np.ones((2, 3), "f4"), np.ones(3, "f4")
    for name in ("dot", "outer"):
        for a, b in [(two, three), (three, two), (np.float32(1), three), (two, two)]:
            with pytest.raises(ValueError, match=rf"^{name}:") as caught:
                getattr(ex, name)(a, b)
            assert str(np.shape(a)) in str(caught.value)
            with pytest.raises(ValueError, match=rf"^{name}_backward:"):
                getattr(ex, f"{name}_backward")(np.float32(1), a, b)
    with pytest.raises(ValueError, match=r"^dot:.*3.*4"):
        ex.dot(three, np.ones(4, "f4"))
    for x, weight, bias in [
        ((2, 3), (4, 2), (4,)),
        ((2, 3), (3,), (4,)),
        ((2, 3), (1, 4, 3), (4,)),
        ((), (4, 3), (4,)),
        ((2, 3), (4, 3), (3,)),
        ((2, 3), (4, 3), ()),
        ((2, 3), (4, 3), (1, 4)),
        ((2, 3), (4, 3), (1,)),
    ]:
        with pytest.raises(ValueError, match=r"^linear:"):
            ex.linear(np.ones(x, "f4"), np.ones(weight, "f4"), np.ones(bias, "f4"))
    with pytest.raises(ValueError, match=r"^linear_backward:.*\(2, 3\).*\(4, 2\)"):
        ex.linear_backward(np.ones((2, 4), "f4"), two, np.ones((4, 2), "f4"))


def test_transpose() -> None:
    x = ex.asarray(normal(2, 3, 4))
    for axes in (None, (2, 0, 1), [1, 0, 2], (-1, 0, 1)):
        y = ex.transpose(x, axes)
        assert np.shares_memory(np.asarray(y), np.asarray(x))
        assert_same_bits(y, np.transpose(np.asarray(x), axes))
        assert_same_bits(ex.transpose_backward(y, axes), x)
    y = ex.transpose(x)
    y[0, 0, 0] = 7.0
    assert x[0, 0, 0].item() == 7.0
    assert_same_bits(x.T, ex.transpose(x))
    assert not np.asarray(ex.transpose(LAYOUTS["read-only"](normal(2, 3)))).flags.writeable
    for name in ("transpose", "transpose_backward"):
        function = getattr(ex, name)
        for axes, error in [
            ((0, 1), ValueError),
            ((0, 1, 1), ValueError),
            ((0, 1, 3), np.exceptions.AxisError),
            ((0, 1, -4), np.exceptions.AxisError),
            ((0, 1, 2, 0), ValueError),
            (1, TypeError),
            ((0, 1, 2.0), TypeError),
            ("012", TypeError),
        ]:
            with pytest.raises(error, match=name):
                function(x, axes)


def test_integers() -> None:
    """Exact where floats are not, wrapping as NumPy's."""
    n = 2**53 + 1
    a = np.array([[n, 0], [1, 1]], np.int64)
    assert ex.matmul(a, a).tolist() == np.matmul(a, a).tolist()
    assert ex.matmul(a, [1, 1]).tolist() == [n, 2]
    assert (ex.asarray(a) @ a).tolist() == np.matmul(a, a).tolist()
    assert ex.outer(np.array([n]), np.array([1, 2])).tolist() == [[n, 2 * n]]
    assert ex.dot(np.array([n, n]), np.array([1, 1])).item() == 2 * n
    assert ex.linear(a, a, np.array([1, 2])).tolist() == (a @ a.T + [1, 2]).tolist()
    flags = np.array([[True, False], [True, True]])
    assert_same_bits(ex.matmul(flags, flags), np.matmul(flags, flags))
    mixed = ex.matmul(a[1:].astype(np.int32), np.full((2, 2), 0.5, np.float32))
    assert mixed.dtype == np.float64
    assert mixed.tolist() == [[1.0, 1.0]]
    assert ex.matmul(np.ones((2, 2), np.int8), np.ones((2, 2), np.float32)).dtype == np.float32
    assert ex.matmul(np.ones((2, 2), np.float16), np.ones((2, 2), np.float64)).dtype == np.float64


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_out_that_overlaps(dtype: str) -> None:
    for n in (5, 40, 130):
        a, b = whole(n, n, dtype=dtype, high=1), whole(n, n, seed=1, dtype=dtype, high=1)
        wanted = exact(a, b)
        for i in range(2):
            own = [a.copy(), b.copy()]
            ex.matmul(*own, out=own[i])
            assert_same_bits(own[i], wanted, f"in place on operand {i}")
            own = [a.copy(), b.copy()]
            ex.matmul(*own, out=own[i].T)
            assert_same_bits(own[i].T.copy(), wanted, f"on the transpose of operand {i}")
        square = a.copy()
        ex.matmul(square, square, out=square)
        assert_exact(square, exact(a, a))
        memory = np.zeros(3 * n * n, dtype)
        inside = memory[n * n : 2 * n * n].reshape(n, n)
        for start in (n * n - n, n * n + 1):
            inside[...] = a
            target = memory[start : start + n * n].reshape(n, n)
            ex.matmul(inside, b, out=target)
            assert_same_bits(target, wanted, f"shifted to {start}")
        x, weight, bias = a.copy(), b.copy(), a[0].copy()
        shifted = exact(x, weight.T) + bias
        ex.linear(x, weight, bias, out=x)
        assert_same_bits(x, shifted, "linear in place")
        x = a.copy()
        ex.linear(x, weight, x[0], out=x)  # the bias is a row of x, which is out
        assert_same_bits(x, shifted, "linear in place, bias inside")
        # gradients over the operands that the other gradient still needs
        g = whole(n, n, seed=3, dtype=dtype, high=1)
        grads = exact(g, b.T), exact(a.T, g)
        own = [g.copy(), a.copy(), b.copy()]
        for places in [(1, 2), (2, 1), (0, 1), (0, 2), (2, 0)]:
            own = [g.copy(), a.copy(), b.copy()]
            ex.matmul_backward(*own, out=(own[places[0]], own[places[1]]))
            for place, gradient in zip(places, grads, strict=True):
                assert_same_bits(own[place], gradient, f"gradients into {places}")
        v, w = a[0].copy(), b[0].copy()
        table = np.zeros((n + 1, n), dtype)
        table[0], table[n] = v, w
        ex.outer(table[0], table[n], out=table[:n])
        assert_same_bits(table[:n], v[:, None] * w, "outer over its operand")


def test_operands_that_are_views_of_each_other() -> None:
    a = whole(40, 40)
    t = ex.asarray(a)
    for left, right in [(t, t), (t, t.T), (t.T, t), (t[::-1], t[:, ::-1]), (t[:20], t[:, 5:30])]:
        assert_exact(ex.matmul(left, right), exact(np.asarray(left), np.asarray(right)))


SCRATCH = """
import resource
import numpy as np
import extensor as ex

n = 3000
a, b, g = (np.ones((n, n), np.float32) for _ in range(3))
outs = (np.ones((n, n), np.float32), np.ones((n, n), np.float32))
ex.matmul_backward(g[:8, :8], a[:8, :8], b[:8, :8])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ex.matmul_backward(g, a, b, out=outs)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_no_transpose_is_copied() -> None:
    """One operand has 36 MB; packing buffers are a few."""
    done = subprocess.run(
        [sys.executable, "-c", SCRATCH], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 18 * 1024


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2**20 + 3,), (2**20 + 3,)),
        ((32, 64), (64, 10)),
        ((64, 784), (784, 128)),
        ((3, 5000), (5000, 4)),
        ((2000, 3), (3, 2000)),
        ((1, 1500), (1500, 1501)),
        ((100, 8, 9), (100, 9, 10)),
        ((513, 1025), (1025, 33)),
    ],
)
def test_same_bits_for_every_thread_count(a: tuple, b: tuple, dtype: str) -> None:
    """Also where a product is too small or too thin for all of them to take part."""
    x, y = normal(*a, dtype=dtype) / 8, normal(*b, seed=1, dtype=dtype) / 8
    g = normal(*np.shape(ex.matmul(x, y)), seed=2, dtype=dtype)
    results = []
    for n in (1, 2, 3, 8):
        with ex.num_threads(n):
            results.append([ex.matmul(x, y), *ex.matmul_backward(g, x, y)])
    for got in results[1:]:
        for one, other in zip(got, results[0], strict=True):
            assert_same_bits(one, other, f"{a} {b} {dtype}")


def test_small_products_start_no_threads() -> None:
    with ex.num_threads(2):
        threads_used(widest=True)
        ex.matmul(normal(8, 8), normal(8, 8))
        ex.matmul_backward(normal(8, 8), normal(8, 8), normal(8, 8))
        assert threads_used(widest=True) == 1
        ex.matmul(normal(300, 300), normal(300, 300))
        assert threads_used(widest=True) == 2


def test_several_python_threads_at_once() -> None:
    """Each has packing buffers of its own."""
    pairs = [(whole(150, 160, seed=i), whole(160, 170, seed=i + 50)) for i in range(8)]
    wanted = [exact(a, b) for a, b in pairs]

    def work(i: int) -> None:
        for _ in range(20):
            assert_same_bits(ex.matmul(*pairs[i]), wanted[i])

    with ex.num_threads(1), ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, i) for i in range(8)]:
            done.result()


def test_table_covers_the_gradients_of_every_rank() -> None:
    """The rank combinations that the gradient checks of the table must run over."""
    shapes = {case.shapes for case in BY_NAME["matmul"].cases}
    assert {
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((1, 3, 4), (7, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 6)),
        ((4, 4, 4), (4, 4, 4)),
    } <= shapes
    ranks = {tuple(map(len, pair)) for pair in shapes}
    assert {(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (3, 3), (4, 3)} <= ranks
    assert any(0 in shape for pair in shapes for shape in pair)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype: str) -> None:
    """Every pair of special values times every other: infinities, NaN, zeros, subnormals."""
    row = BY_NAME["matmul"]
    values = row.domains[0].special(dtype)
    values = values[np.abs(values) != np.finfo(dtype).max]  # their sums overflow on the way
    pairs = np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2)
    checks.assert_forward(row, [pairs, np.ascontiguousarray(pairs[::7].T)])
    checks.assert_forward(row, [pairs[:8], pairs[0]])


@pytest.mark.parametrize("dtype", FLOATS)
def test_outer_keeps_the_sign_of_zero(dtype: str) -> None:
    """It is no sum: -0.0 stays, in every layout and with out."""
    a, b = np.array([0.0, -0.0, 1.0], dtype), np.array([-1.0, 0.0, 2.0, -0.0], dtype)
    for layout in LAYOUTS:
        x, y = LAYOUTS[layout](a), LAYOUTS[layout](b)
        assert_same_bits(ex.outer(x, y), np.multiply.outer(x, y), layout)
        for out in (
            np.ones((3, 4), dtype),
            np.ones((4, 3), dtype).T,
            np.ones((6, 8), dtype)[::2, ::2],
        ):
            assert_same_bits(ex.outer(x, y, out=out), np.multiply.outer(x, y), f"{layout}, out")
