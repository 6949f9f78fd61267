"""What several test files need: layouts, comparisons, error bounds, thread counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as ex

BAD_INPUTS = {
    "text": "text",
    "None": None,
    "complex": np.array([1j, 2.0]),
    "object": np.array([1.0, "x"], dtype=object),
    "ragged": [[1.0, 2.0], [3.0]],
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "dict": {"a": 1.0},
}


def threads_used(widest: bool = False) -> int:
    """Threads of the last parallel region of the library (1 where it computed serially).

    ``widest``: the most threads of any region since the last time this was asked, for functions
    that end with a few numbers for each slice.
    """
    from extensor import _apply

    return int(_apply.widest_team() if widest else _apply.last_team())


def cpu_level() -> tuple[str, list[str]]:
    """The CPU level in use, and all that this machine can run."""
    from extensor import _cpu

    return str(_cpu.level), list(_cpu.available)


# --- comparisons --------------------------------------------------------------------------------


def parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def bits(value: Any) -> bytes:
    """Bytes of the elements in C order; all NaNs count as the same."""
    array = np.array(value)
    if array.dtype.kind == "f":
        array[np.isnan(array)] = np.nan
    return array.tobytes()


def assert_same_bits(got: Any, expected: Any, what: str = "") -> None:
    a, b = np.asarray(got), np.asarray(expected)
    assert (a.shape, a.dtype) == (b.shape, b.dtype), what
    if a.tobytes() != b.tobytes() and bits(a) != bits(b):
        different = (a != b) & ~((a != a) & (b != b))
        if a.dtype.kind == "f":
            different |= (np.signbit(a) != np.signbit(b)) & (a == a)
        where = np.argwhere(different)
        index = tuple(where[0])
        raise AssertionError(
            f"{what}: {len(where)} of {a.size} differ, first {index}: {a[index]} is not {b[index]}"
        )


def unit(dtype: Any) -> float:
    """Unit roundoff."""
    return float(np.finfo(dtype).eps) / 2


def ulp(value: Any, dtype: Any) -> np.ndarray:
    """Spacing of the numbers of ``dtype`` at ``value``, that of the largest for what exceeds it."""
    info = np.finfo(dtype)
    magnitude = np.minimum(np.abs(np.asarray(value, np.longdouble)), np.longdouble(info.max))
    magnitude = np.where(np.isnan(magnitude), 1, magnitude)
    _, exponent = np.frexp(magnitude)
    spacing = np.ldexp(np.longdouble(1), exponent - 1 - info.nmant)
    return np.maximum(spacing, np.longdouble(info.smallest_subnormal))


def working(dtype: Any) -> np.dtype:
    """The dtype that arithmetic is done in: float32 for float16."""
    return np.dtype(np.float32) if np.dtype(dtype) == np.float16 else np.dtype(dtype)


def final_rounding(expected: Any, dtype: Any) -> Any:
    """float16 is computed in float32, then rounded once: half an ULP more."""
    # 1e-3: the rounded value's neighbour is a tie as seen from the float32 result
    return 0.501 * ulp(expected, dtype) if np.dtype(dtype) == np.float16 else 0.0


def ulp_bound(expected: Any, dtype: Any, ulps: float) -> Any:
    return ulps * ulp(expected, working(dtype)) + final_rounding(expected, dtype)


def sum_bound(magnitudes: Any, terms: int, expected: Any, dtype: Any) -> Any:
    """The bound of every summed gradient: (16 + log2 n)·u·Σ|terms|, with n terms."""
    factor = 16 + np.log2(max(terms, 1))
    return factor * unit(working(dtype)) * magnitudes + final_rounding(expected, dtype)


def assert_within(got: Any, expected: Any, allowed: Any, what: str = "") -> None:
    """|got - expected| <= allowed; NaN and infinities (after rounding) must be in place."""
    a = np.asarray(got)
    e = np.asarray(expected, np.longdouble)
    assert a.shape == e.shape, f"{what}: shape {a.shape} instead of {e.shape}"
    with np.errstate(all="ignore"):
        rounded = e.astype(a.dtype)
        error = np.abs(a.astype(np.longdouble) - e)
        near = error <= np.broadcast_to(allowed, e.shape)
        fine = near | (a == rounded) | (np.isnan(a) & np.isnan(e))
    if not fine.all():
        index = tuple(np.argwhere(~fine)[0])
        raise AssertionError(
            f"{what}: {np.count_nonzero(~fine)} of {a.size} wrong, first {index}: {a[index]!r}, "
            f"expected {e[index]!r} ± {np.broadcast_to(allowed, e.shape)[index]:.3g}"
        )


# --- layouts: the same values in other places ---------------------------------------------------


def _strided(x: np.ndarray) -> np.ndarray:
    big = np.zeros(tuple(2 * n + 1 for n in x.shape), x.dtype)
    view = big[(*(slice(0, 2 * n, 2) for n in x.shape), ...)]
    view[...] = x
    return view


def _reversed(x: np.ndarray) -> np.ndarray:
    back = tuple(slice(None, None, -1) for _ in x.shape)
    return x[back].copy()[back]


def _transposed(x: np.ndarray) -> np.ndarray:
    if x.ndim < 2:
        return x.copy()
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)


def _unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype)[: x.size].reshape(x.shape)
    view[...] = x
    return view


def _offset(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.size + 3, x.dtype)
    view = memory[3:].reshape(x.shape)
    view[...] = x
    return view


def _read_only(x: np.ndarray) -> np.ndarray:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


def _stride_zero(x: np.ndarray) -> np.ndarray:
    """Every element is the first along the last axis: other values, hence compare with a copy."""
    return np.broadcast_to(x[..., :1], x.shape) if x.ndim and x.shape[-1] else x.copy()


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "strided": _strided,
    "reversed": _reversed,
    "transposed": _transposed,
    "fortran": lambda x: np.array(x, order="F"),
    "read-only": _read_only,
    "stride 0": _stride_zero,
    "unaligned": _unaligned,
    "offset": _offset,
    "column": lambda x: np.repeat(x[..., None], 3, axis=-1)[..., 1],
}


def tensors(arrays: Any) -> tuple[Any, ...]:
    return tuple(ex.asarray(array) for array in arrays)
