"""Error bounds of the mathematical functions: a thinned version of `make accuracy`.

float32 on one of every 65 537 inputs, float64 on a few hundred points against mpmath, both with
special values, the places where a formula changes and the worst points that `make accuracy` found,
read from docs/accuracy.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import reference
from helpers import ulp

import extensor as ex

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
DTYPES = ("float32", "float64")
SEAMS = [
    0.0, 2.0**-54, 2.0**-27, 2.0**-25, 2.0**-12, 0.25, np.log(2) / 2, 0.5, 0.625, 0.7517916,
    2**-0.5, 1.0, 1.125, 1.15, 1.5 * np.log(2), 2**0.5, np.pi / 2, np.pi, 4.0, 5.0, 6.0, 9.5, 11.25,
    12.0, 14.25, 15.0, 16.6, 18.0, 19.5, 22.0, 37.0, 38.5, 39.5, 40.0, 87.33654, 88.72284, 89.0,
    103.97208, 104.0, 112.0, 708.3964185, 709.782712893, 710.0, 745.1332191, 746.0, 756.0, 1.6e6,
]  # fmt: skip


# inputs that once exceeded a bound; the page names where the worst errors are now
FOUND = {("mish", "float32"): ["-5.196963"]}


@dataclass(frozen=True)
class Row:
    name: str
    bound: float  # in ULP
    gold: Callable[..., Any]  # in NumPy, for float32
    exact: Callable[..., Any]  # in mpmath, for float64
    keywords: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{key}={value}" for key, value in self.keywords.items())
        return f"{self.name}({words})" if words else self.name

    def __call__(self, *x: np.ndarray) -> np.ndarray:
        return np.asarray(getattr(ex, self.name)(*x, **self.keywords))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x)) if x < 100 else x + mpmath.exp(-x)


def gelu_argument(x: Any) -> Any:
    return 2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)


def gelu(x: Any) -> Any:
    return x * mpmath.ncdf(max(x, -10_000))  # mpmath fails on the square of larger ones


def elu(alpha: float) -> Callable[[Any], Any]:
    return lambda x: x if x > 0 else alpha * mpmath.expm1(x)


ROWS = [
    Row("exp", 1.5, np.exp, mpmath.exp),
    Row("expm1", 1.5, np.expm1, mpmath.expm1),
    Row("log", 1.5, np.log, mpmath.log),
    Row("log1p", 1.5, np.log1p, mpmath.log1p),
    Row("log2", 1.5, np.log2, lambda x: mpmath.log(x, 2)),
    Row("log10", 1.5, np.log10, mpmath.log10),
    Row("sin", 1.5, np.sin, mpmath.sin),
    Row("cos", 1.5, np.cos, mpmath.cos),
    Row("tanh", 1.5, np.tanh, mpmath.tanh),
    Row("erf", 1.5, reference.erf, mpmath.erf),
    Row("power", 1.5, np.power, mpmath.power),
    Row("sigmoid", 3, reference.sigmoid, sigmoid),
    Row("softplus", 3, reference.softplus, softplus),
    Row("elu", 3, reference.elu, elu(1.0)),
    Row("elu", 3, reference.elu, elu(1.875), {"alpha": 1.875}),
    Row("swish", 4, reference.swish, lambda x: x * sigmoid(x)),
    Row("mish", 4, reference.mish, lambda x: x * mpmath.tanh(softplus(x))),
    Row("gelu", 8, reference.gelu, gelu),
    Row("gelu", 0, reference.gelu, lambda x: x * sigmoid(gelu_argument(x)), {"approximate": True}),
]
by_row = pytest.mark.parametrize("row", ROWS, ids=str)


# --- inputs ---------------------------------------------------------------------------------------


@cache
def measured() -> list[list[str]]:
    """The rows of docs/accuracy.md: function, dtype, bound, worst, at, inputs, special values."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[1] in DTYPES]


def worst_points(row: Row, dtype: str) -> list[np.ndarray]:
    """Arguments, each an array."""
    found = [cells[4].split(", ") for cells in measured() if cells[:2] == [str(row), dtype]]
    found += [[point] for point in FOUND.get((str(row), dtype), [])]
    return list(np.array(found, dtype).T)


def special_values(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    values = [0, info.smallest_subnormal, info.tiny, 0.5, 1 - info.epsneg, 1, 1 + info.eps, 1.5, 2,
              3, 10, 2 / info.eps - 1, 2 / info.eps, info.max, np.inf]  # fmt: skip
    return np.array([*values, *(-v for v in values), np.nan], dtype)


def neighbours(values: Any, dtype: str, count: int) -> np.ndarray:
    """``count`` numbers in a row around each value and its negative."""
    width = np.dtype(dtype).str.replace("f", "i")
    centre = np.abs(np.asarray(values, dtype)).view(width)
    patterns = np.maximum(centre[:, None] + np.arange(count) - count // 2, 0).astype(width)
    numbers = patterns.ravel().view(dtype)
    return np.concatenate([numbers, -numbers])


def pairs(dtype: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Special values crossed; results of every size, near 1 and at the edges; exact ones."""
    rng = np.random.default_rng(7)
    info = np.finfo(dtype)
    values = special_values(dtype)
    lowest, highest = info.minexp - info.nmant, info.maxexp
    base = np.exp2(rng.uniform(info.minexp, highest, count)).astype(dtype)
    base[::3] = 1 + info.eps * np.rint(np.exp2(rng.uniform(0, 20, base[::3].size)))
    logarithm = rng.choice([lowest, info.minexp, 0, highest], count) + rng.uniform(-1, 1, count)
    logarithm[::2] = rng.uniform(lowest - 2, highest + 1, logarithm[::2].size)
    exponent = logarithm / np.log2(base.astype(np.longdouble))
    whole = np.arange(-40.0, 41.0)
    small = np.array([-3.0, -2.0, -1.5, 0.75, 1.25, 2.0, 3.0, 7.0, 10.0])
    x = [np.repeat(values, len(values)), base, np.repeat(small, len(whole)), np.full(81, 9.0)]
    y = [np.tile(values, len(values)), exponent, np.tile(whole, len(small)), whole / 2]
    return np.concatenate(x).astype(dtype), np.concatenate(y).astype(dtype)


# --- comparison -----------------------------------------------------------------------------------


def allowed(row: Row, x: Any, want: np.ndarray, dtype: str) -> np.ndarray:
    if row.bound:
        return row.bound * ulp(want, dtype)
    # gelu's tanh form: (8 + 4·|v|)·u, relative
    info = np.finfo(dtype)
    v = reference._gelu_argument(np.asarray(x, np.longdouble))
    unit = np.maximum(np.abs(want) * info.epsneg, np.longdouble(info.smallest_subnormal) / 2)
    return (8 + 4 * np.abs(v)) * unit


def check_float32(row: Row, *x: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        want = row.gold(*(a.astype(np.longdouble) for a in x), **row.keywords)
        got = row(*x)
        top = np.longdouble(2.0**128)
        expected = np.where(np.abs(want) >= top, np.copysign(np.inf, want), want)
        value = np.where(np.isinf(got), np.copysign(top, got), got.astype(np.longdouble))
        fine = np.abs(value - want) <= allowed(row, x[0], want, "float32")
        special = ~(np.abs(expected) < np.inf) | (want == 0)
        if row.name in ("log2", "log10"):
            special |= want == np.rint(want)
        same = (got == expected) | (np.isnan(got) & np.isnan(want))
        fine = np.where(special, same, fine)
        fine &= (got != 0) | (np.signbit(got) == np.signbit(want))
    bad = np.flatnonzero(~fine)
    assert not bad.size, (
        f"{row}: {bad.size} of {got.size} wrong, first at {[a[bad[0]] for a in x]}: "
        f"{got[bad[0]]!r}, expected {want[bad[0]]!r}"
    )


def exact_ulp(want: Any) -> Any:
    """The spacing of float64 at an mpmath number."""
    exponent = mpmath.frexp(want)[1] - 1
    return mpmath.ldexp(1, max(int(exponent), -1022) - 52)


def check_float64(row: Row, *x: np.ndarray) -> None:
    """For finite arguments in the function's domain."""
    with mpmath.workprec(200):
        for *arguments, got in zip(*x, row(*x), strict=True):
            want = row.exact(*(mpmath.mpf(float(a)) for a in arguments))
            bound = row.bound * exact_ulp(want)
            if not row.bound:
                unit = max(abs(want) * mpmath.ldexp(1, -53), mpmath.ldexp(1, -1075))
                bound = (8 + 4 * abs(gelu_argument(mpmath.mpf(float(arguments[0]))))) * unit
            if want == 0 or (row.name in ("log2", "log10") and want == mpmath.nint(want)):
                bound = 0
            # infinity is the power of two above the largest number, as everything beyond
            top = mpmath.ldexp(1, 1024)
            want = min(max(want, -top), top)
            value = mpmath.mpf(float(got)) if np.isfinite(got) else mpmath.sign(float(got)) * top
            assert abs(value - want) <= bound, (row, arguments, got, want)


# --- the tests ------------------------------------------------------------------------------------


@by_row
def test_float32_values(row: Row) -> None:
    if row.name == "power":
        check_float32(row, *pairs("float32", 20_000))
    else:
        patterns = np.arange(0, 1 << 32, 65537, dtype=np.uint64).astype(np.uint32)
        check_float32(row, patterns.view(np.float32))
        check_float32(row, special_values("float32"))
        check_float32(row, neighbours(SEAMS, "float32", 64))
    check_float32(row, *worst_points(row, "float32"))


@by_row
def test_float64_values(row: Row) -> None:
    rng = np.random.default_rng(5)
    worst = worst_points(row, "float64")
    if row.name == "power":
        x, y = (a[-1000:] for a in pairs("float64", 500))
        check_float64(row, x, y)
        check_float64(row, *worst)
        return
    exponents = rng.integers(-1074, 1024, 100)
    x = np.concatenate([
        np.ldexp(rng.uniform(0.5, 1, 100), exponents) * rng.choice([-1, 1], 100),
        np.ldexp(rng.uniform(-1, 1, 200), rng.integers(-20, 11, 200)),
        neighbours(SEAMS, "float64", 3),
    ])  # fmt: skip
    lowest = {"log": 0, "log2": 0, "log10": 0, "log1p": -1}
    check_float64(row, x[x > lowest.get(row.name, -np.inf)])
    check_float64(row, *worst)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_float_values(dtype: str) -> None:
    """NaN, infinities and zeros with their signs, in both dtypes."""
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    inf, nan = np.inf, np.nan
    expected = {
        "exp": [1, 1, inf, 0.0, nan],
        "expm1": [0.0, -0.0, inf, -1, nan],
        "log": [-inf, -inf, inf, nan, nan],
        "log1p": [0.0, -0.0, inf, nan, nan],
        "log2": [-inf, -inf, inf, nan, nan],
        "log10": [-inf, -inf, inf, nan, nan],
        "sin": [0.0, -0.0, nan, nan, nan],
        "cos": [1, 1, nan, nan, nan],
        "tanh": [0.0, -0.0, 1, -1, nan],
        "erf": [0.0, -0.0, 1, -1, nan],
        "sigmoid": [0.5, 0.5, 1, 0.0, nan],
        "softplus": [np.log(2), np.log(2), inf, 0.0, nan],
        "elu": [0.0, -0.0, inf, -1, nan],
        "swish": [0.0, -0.0, inf, -0.0, nan],
        "mish": [0.0, -0.0, inf, -0.0, nan],
        "gelu": [0.0, -0.0, inf, -0.0, nan],
    }
    for row in ROWS:
        if row.name in expected and "alpha" not in row.keywords:
            want = np.array(expected[row.name], dtype)
            got = row(x)
            np.testing.assert_allclose(got, want, 2 * np.finfo(dtype).eps, 0, err_msg=str(row))
            zero = want == 0
            assert (np.signbit(got) == np.signbit(want))[zero].all(), row


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_power_values(dtype: str) -> None:
    """Where NumPy's power of two special values is NaN, infinite or zero, ours is the same."""
    values = special_values(dtype)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    got = np.asarray(ex.power(x, y))
    special = ~np.isfinite(want) | (want == 0)
    np.testing.assert_array_equal(got[special], want[special])
    zero = want == 0
    assert (np.signbit(got) == np.signbit(want))[zero].all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_are_exact_values(dtype: str) -> None:
    """log2 at every power of 2, log10 at every power of 10 that the dtype holds."""
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    assert (np.asarray(ex.log2(np.ldexp(np.ones(1, dtype), exponents))) == exponents).all()
    exponents = np.arange(11 if dtype == "float32" else 23)
    powers = np.array([10 ** int(n) for n in exponents], dtype)
    assert (np.asarray(ex.log10(powers)) == exponents).all()


def test_the_page_keeps_the_bounds() -> None:
    """docs/accuracy.md has every function in both dtypes, with the bounds tested here."""
    rows = {str(row): row for row in ROWS}
    assert {(cells[0], cells[1]) for cells in measured()} == {
        (name, dtype) for name in rows for dtype in DTYPES
    }
    for name, _, bound, worst, *_, special in measured():
        assert bound == (f"{rows[name].bound:g}" if rows[name].bound else "(8 + 4·abs(v))·u")
        limit = rows[name].bound or 1
        assert float(re.findall(r"[\d.]+", worst)[0]) <= limit
        assert "wrong" not in special
