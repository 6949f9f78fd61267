"""Mistakes that such libraries have made, each with its test."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys

import numpy as np
import pytest
from helpers import LAYOUTS, assert_same_bits, assert_within, sum_bound

import extensor as ex


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((3, 1, 5), (3, 4, 5)),
        ((5,), (3, 4, 5)),
        ((4, 4), (4,)),  # a square: reducing the wrong axis has the right shape
        ((4, 1), (4, 4)),
        ((1, 4), (4, 1)),
        ((), (4, 4)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_broadcast_gradients_by_loops(a_shape: tuple, b_shape: tuple, dtype: str) -> None:
    """Every element of the gradient added by hand, with random upstream values."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in (a_shape, b_shape))
    a, b = np.asarray(a), np.asarray(b)
    shape = np.broadcast_shapes(a_shape, b_shape)
    g = rng.standard_normal(shape).astype(dtype)
    wanted = {"add": [np.zeros(s, np.longdouble) for s in (a_shape, b_shape)]}
    wanted |= {name: [x.copy() for x in wanted["add"]] for name in ("subtract", "multiply")}
    bounds = {name: [x.copy() for x in wanted["add"]] for name in wanted}

    def place(index: tuple, small: tuple) -> tuple:
        tail = index[len(index) - len(small) :]
        return tuple(i if n > 1 else 0 for i, n in zip(tail, small, strict=True))

    for index in itertools.product(*map(range, shape)):
        at_a, at_b = place(index, a_shape), place(index, b_shape)
        up = np.longdouble(g[index])
        terms = {
            "add": (up, up),
            "subtract": (up, -up),
            "multiply": (up * b[at_b], up * a[at_a]),
        }
        for name, pair in terms.items():
            for i, (where, term) in enumerate(zip((at_a, at_b), pair, strict=True)):
                wanted[name][i][where] += term
                bounds[name][i][where] += abs(term)
    for name, gradients in wanted.items():
        saved = (a, b) if name == "multiply" else (a_shape, b_shape)
        found = getattr(ex, f"{name}_backward")(g, *saved)
        for got, gradient, magnitude in zip(found, gradients, bounds[name], strict=True):
            allowed = sum_bound(magnitude, g.size, gradient, dtype)
            assert_within(got, gradient, allowed, f"{name} {a_shape} {b_shape}")


def test_shapes_or_tensors_in_backward_functions() -> None:
    a, b = ex.ones((3, 1)), np.ones((4,))
    g = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    wanted = ex.add_backward(g, (3, 1), (4,))
    for saved in [(a, b), ([3, 1], [4]), (a, (4,)), ((3, 1), b)]:
        for got, gradient in zip(ex.add_backward(g, *saved), wanted, strict=True):
            assert np.array_equal(got, gradient)
    cond = np.array([True, False, True, True])
    for got, gradient in zip(
        ex.where_backward(g, cond, a, b), ex.where_backward(g, cond, (3, 1), (4,)), strict=True
    ):
        assert np.array_equal(got, gradient)


def test_signs_of_floor_division_and_modulo() -> None:
    for a, b in itertools.product([-7, -6, -1, 0, 1, 6, 7], [-3, -2, 2, 3]):
        for dtype in (np.int8, np.int64, np.float16, np.float32, np.float64):
            x, y = np.array([a], dtype), np.array([b], dtype)
            assert ex.floor_divide(x, y).tolist() == [a // b], (a, b, dtype)
            assert ex.modulo(x, y).tolist() == [a % b], (a, b, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_quotients(dtype: type) -> None:
    """Exact remainders where a - b·floor(a/b) has no correct digit."""
    rng = np.random.default_rng(5)
    a = (rng.uniform(1, 2, 500) * 2.0 ** rng.integers(60, 100, 500)).astype(dtype)
    b = (rng.uniform(1, 2, 500) * 2.0 ** rng.integers(-9, 9, 500)).astype(dtype)
    a[::2] *= -1
    wanted = [dtype(float(x) % float(y)) for x, y in zip(a, b, strict=True)]
    assert_same_bits(ex.modulo(a, b), np.array(wanted))
    quotient = np.asarray(ex.floor_divide(a, b), np.float64)
    exact = [float(x) // float(y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(quotient, exact, rtol=2 * np.finfo(dtype).eps)


def test_divide_backward_near_zero_and_far_out() -> None:
    def by_divisor(b: float, dtype: type, **kwargs: float) -> float:
        one = np.ones(1, dtype)
        return float(ex.divide_backward(one, one, np.array([b], dtype), **kwargs)[1])

    assert by_divisor(0.0, np.float64) == -1e10
    assert by_divisor(1e-5, np.float64) == pytest.approx(-1e10, rel=1e-15)
    assert by_divisor(1e-5, np.float32) == pytest.approx(-1e10, rel=1e-6)
    # 50 % wrong where eps is added everywhere
    assert by_divisor(1.1e-5, np.float64) == pytest.approx(-1 / 1.1e-5**2, rel=1e-15)
    assert by_divisor(-1.1e-5, np.float64) == pytest.approx(-1 / 1.1e-5**2, rel=1e-15)
    assert by_divisor(1e20, np.float64) == pytest.approx(-1e-40, rel=1e-15)
    big = np.full(1, 1e20, np.float32)  # b² overflows, (g/b)·(a/b) does not
    assert float(ex.divide_backward(np.ones(1, np.float32), big, big)[1]) == pytest.approx(-1e-20)
    assert by_divisor(0.0, np.float64, eps=0) == -np.inf
    assert by_divisor(0.3, np.float64, eps=0.25) == -4.0
    for eps in (-1e-10, np.nan):
        with pytest.raises(ValueError, match=r"divide_backward.*eps"):
            by_divisor(1.0, np.float32, eps=eps)


def test_int64_beyond_the_floats() -> None:
    n = 2**53 + 1
    x = np.array([n, -n, 2**63 - 1], np.int64)
    assert ex.add(x, 0).tolist() == x.tolist()
    assert ex.subtract(x, 0).tolist() == x.tolist()
    assert ex.multiply(x, 1).tolist() == x.tolist()
    assert ex.floor_divide(x, 1).tolist() == x.tolist()
    assert ex.modulo(x, 2**63 - 1).tolist() == [n, 2**63 - 1 - n, 0]
    assert ex.power(x, 1).tolist() == x.tolist()
    assert ex.maximum(x, x - 1).tolist() == x.tolist()
    assert ex.where([True, False, True], x, 0).tolist() == [n, 0, 2**63 - 1]
    assert ex.equal(x, x - 1).tolist() == [False] * 3
    assert ex.tensor(x.tolist()).tolist() == x.tolist()
    assert ex.tensor([n]).item() == n
    assert int(ex.tensor([n])[0]) == n
    assert (ex.tensor(x) - 1).tolist() == (x - 1).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_through_operators(layout: str) -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    y = LAYOUTS[layout](x)
    assert np.array_equal(ex.asarray(y) + 1, np.array(y) + 1)
    assert np.array_equal(1 - ex.asarray(y).T, 1 - np.array(y).T)


def test_a_slice_outlives_its_parent() -> None:
    for n in (10, 10**6):
        part = ex.arange(n, dtype=ex.float64)[n // 2 : n // 2 + 5]
        gc.collect()
        junk = [ex.full((n,), -1.0, dtype=ex.float64) for _ in range(5)]
        assert part.tolist() == [n // 2 + i for i in range(5)]
        del junk
    view = memoryview(ex.ones((1000,)))
    gc.collect()
    ex.zeros((1000,))
    assert view[999] == 1.0
    array = np.asarray(ex.ones((100_000,)) + 1)
    gc.collect()
    ex.zeros((100_000,))
    assert (array == 2).all()


def test_float64_scalars_are_not_rounded_through_float32() -> None:
    x = ex.ones((3,), dtype=ex.float64)
    assert (x * 0.1).tolist() == [0.1] * 3
    assert (0.1 + x).tolist() == [1.1] * 3
    assert ex.divide(x, 3.3).tolist() == [1 / 3.3] * 3
    assert ex.maximum(x, 1.1).tolist() == [1.1] * 3
    assert ex.where([True, False, True], 0.1, x).tolist() == [0.1, 1.0, 0.1]
    assert float(x[0] * 0.1) == 0.1
    x += 0.1
    assert x.tolist() == [1.1] * 3
    x[0] = 0.1
    assert x[0].item() == 0.1
    x.fill(0.3)
    assert x.tolist() == [0.3] * 3
    assert ex.full((2,), 0.1, dtype=ex.float64).tolist() == [0.1] * 2
    assert ex.tensor(0.1, dtype=ex.float64).item() == 0.1
    assert ex.multiply_backward(np.ones(1), np.ones(1), 0.1)[0].tolist() == [0.1]
    assert ex.asarray(np.float64(0.1)).item() == 0.1


@pytest.mark.parametrize("n", [2, 7, 1000, 100_001])
def test_aliasing_in_place(n: int) -> None:
    x = np.random.default_rng(1).standard_normal(n)
    for index in (slice(None, None, -1), slice(None)):
        t = ex.tensor(x)
        t += t[index]
        assert_same_bits(t, x + x[index])
        t = ex.tensor(x)
        t *= t[index]
        assert_same_bits(t, x * x[index])
    t = ex.tensor(x)
    t[1:] += t[:-1]
    assert_same_bits(t[1:], x[1:] + x[:-1])
    t = ex.tensor(x)
    t[:-1] -= t[1:]
    assert_same_bits(t[:-1], x[:-1] - x[1:])
    square = np.random.default_rng(2).standard_normal((50, 50))
    t = ex.tensor(square)
    t += t.T
    assert_same_bits(t, square + square.T)
    t = ex.tensor(square)
    t -= t[3]
    assert_same_bits(t, square - square[3])


def test_out_that_overlaps_in_other_strides() -> None:
    """The same memory read in another order, and a broadcast operand inside out."""
    x = np.random.default_rng(4).standard_normal((40, 40))
    memory = ex.tensor(x)
    try:
        ex.add(memory, memory.T, out=memory)
    except ValueError:
        assert_same_bits(memory, x)
    else:
        assert_same_bits(memory, x + x.T)
    memory = ex.tensor(x)
    try:
        ex.multiply(memory, memory[:1], out=memory)
    except ValueError:
        assert_same_bits(memory, x)
    else:
        assert_same_bits(memory, x * x[:1])


def test_gradients_of_add_do_not_share_memory() -> None:
    g = ex.ones((3, 4))
    first, second = ex.add_backward(g, (3, 4), (3, 4))
    first += 1
    assert (np.asarray(second) == 1).all()
    assert (np.asarray(g) == 1).all()
    second += 5
    assert (np.asarray(first) == 2).all()
    for gradient in (ex.negative_backward(g), *ex.where_backward(g, True, (3, 4), (3, 4))):
        gradient += 1
        assert (np.asarray(g) == 1).all()


def test_subnormals_are_not_flushed() -> None:
    for dtype in (np.float32, np.float64):
        small = np.full(100, np.finfo(dtype).smallest_subnormal, dtype)
        assert_same_bits(ex.add(small, small), small + small)
        assert_same_bits(ex.multiply(small, dtype(3)), small * dtype(3))
        # and the library has not changed the processor's mode for others
        assert (small * dtype(1) != 0).all()


def test_float16_is_rounded_once() -> None:
    """1 + 2**-11 + 2**-20 rounds up; through float16 steps it would be a tie to even."""
    g = np.array([1.0, 2.0**-11, 2.0**-20], np.float16)
    assert ex.add_backward(g, (3,), ())[1].item() == np.float16(1 + 2.0**-10)
    # overflow only at the final rounding
    g = np.array([60000, 60000, -60000, -60000], np.float16)
    assert ex.add_backward(g, (4,), ())[1].item() == 0.0
    g = np.ones(4096, np.float16)
    assert ex.add_backward(g, (4096,), ())[1].item() == 4096
    assert ex.add_backward(np.ones(70000, np.float16), (70000,), (1,))[1].item() == np.inf


SCRATCH = """
import resource, sys
import numpy as np
import extensor as ex

# operands of stride 0: 256 MB to compute on, next to nothing to store
g = np.broadcast_to(np.float32(1), (4096, 16384))
a_shape, b_shape = map(eval, sys.argv[1:])
a, b = np.broadcast_to(np.float32(2), a_shape), np.broadcast_to(np.float32(3), b_shape)
ex.multiply_backward(g[:8, :8], a[:8, :8], b[:1], needs=(False, True))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
gradient = ex.multiply_backward(g, a, b, needs=(False, True))[1]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
@pytest.mark.parametrize("b_shape", ["(16384,)", "(4096, 1)", "(1,)"])
def test_scratch_of_broadcast_gradients_is_bounded(b_shape: str) -> None:
    """At most 1/16 of the broadcast size."""
    done = subprocess.run(
        [sys.executable, "-c", SCRATCH, "(4096, 16384)", b_shape],
        capture_output=True,
        text=True,
        check=True,
    )
    # 3 MB: thread stacks and the result
    assert int(done.stdout) <= 256 * 1024 / 16 + 3 * 1024
