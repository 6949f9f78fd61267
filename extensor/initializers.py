"""Random starting values for weights, with variances that keep signals alive through the layers.

Values are drawn in float64 and rounded to the dtype, so that every dtype gets the same numbers from
the same seed.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from extensor._typing import Shape
from extensor.tensor import ExTensor, aligned, check_dtype

__all__ = ["kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform"]

Seed: TypeAlias = int | np.random.Generator | None


def _generator(function: str, rng: Seed) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or (isinstance(rng, (int, np.integer)) and not isinstance(rng, bool)):
        if rng is not None and rng < 0:
            raise ValueError(f"{function}: rng is {rng}, a seed must not be negative")
        return np.random.default_rng(rng)
    raise TypeError(
        f"{function}: rng must be a seed (an int) or a numpy.random.Generator, not {rng!r}"[:200]
    )


def _fan(function: str, name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{function}: {name} must be an int, got {value!r}")
    if value < 1:
        raise ValueError(f"{function}: {name} is {value}, at least 1 is needed")
    return int(value)


def _shape(function: str, shape: Shape | int) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else shape
    if not isinstance(sizes, (tuple, list)) or not all(
        isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in sizes
    ):
        raise TypeError(f"{function}: shape must be a tuple or list of ints, got {shape!r}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"{function}: shape {tuple(sizes)} has a negative size")
    return tuple(int(size) for size in sizes)


def _float_dtype(function: str, dtype: DTypeLike) -> np.dtype[np.floating]:
    checked: np.dtype[np.floating] = check_dtype(dtype, function)
    if checked.kind != "f":
        raise TypeError(f"{function}: dtype is {checked}; float16, float32 or float64 is needed")
    return checked


def _uniform(
    function: str, bound: float, shape: Shape | int, dtype: DTypeLike, rng: Seed
) -> ExTensor:
    checked, sizes = _float_dtype(function, dtype), _shape(function, shape)
    values = _generator(function, rng).uniform(-bound, bound, sizes)
    return aligned(np.asarray(values, checked))


def _normal(
    function: str, sigma: float, shape: Shape | int, dtype: DTypeLike, rng: Seed
) -> ExTensor:
    checked, sizes = _float_dtype(function, dtype), _shape(function, shape)
    values = _generator(function, rng).normal(0.0, sigma, sizes)
    return aligned(np.asarray(values, checked))


def xavier_uniform(
    fan_in: int,
    fan_out: int,
    shape: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    rng: Seed = None,
) -> ExTensor:
    """Uniform in ±√(6 / (fan_in + fan_out)): variance 2 / (fan_in + fan_out), for tanh and sigmoid.

    Parameters
    ----------
    fan_in, fan_out : int
        How many values go into and come out of a unit.
    shape : tuple of int, optional
        Default (fan_in, fan_out), for ``x @ W``; for `linear` pass (fan_out, fan_in).
    dtype : dtype
        float16, float32 or float64.
    rng : int or numpy.random.Generator, optional
        A seed or a generator; without one the values differ from run to run.

    Examples
    --------
    >>> import extensor as ex
    >>> w = ex.xavier_uniform(3, 3, rng=0)
    >>> w.shape, float(ex.maximum(w, -w).numpy().max()) <= 1.0
    ((3, 3), True)
    """
    where = "xavier_uniform"
    fans = _fan(where, "fan_in", fan_in) + _fan(where, "fan_out", fan_out)
    size = (fan_in, fan_out) if shape is None else shape
    return _uniform(where, math.sqrt(6.0 / fans), size, dtype, rng)


def xavier_normal(
    fan_in: int,
    fan_out: int,
    shape: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    rng: Seed = None,
) -> ExTensor:
    """Normal with σ = √(2 / (fan_in + fan_out)). Parameters as for `xavier_uniform`.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.xavier_normal(200, 200, rng=0).shape
    (200, 200)
    """
    where = "xavier_normal"
    fans = _fan(where, "fan_in", fan_in) + _fan(where, "fan_out", fan_out)
    size = (fan_in, fan_out) if shape is None else shape
    return _normal(where, math.sqrt(2.0 / fans), size, dtype, rng)


def kaiming_uniform(
    fan_in: int, shape: Shape, dtype: DTypeLike = np.float32, *, rng: Seed = None
) -> ExTensor:
    """Uniform in ±√(6 / fan_in): variance 2 / fan_in, for relu.

    Parameters
    ----------
    fan_in : int
        How many values go into a unit.
    shape : tuple of int
        (fan_out, fan_in) for `linear`, (fan_in, fan_out) for ``x @ W``.
    dtype : dtype
        float16, float32 or float64.
    rng : int or numpy.random.Generator, optional
        A seed or a generator.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.kaiming_uniform(64, (128, 64), rng=0).shape
    (128, 64)
    """
    bound = math.sqrt(6.0 / _fan("kaiming_uniform", "fan_in", fan_in))
    return _uniform("kaiming_uniform", bound, shape, dtype, rng)


def kaiming_normal(
    fan_in: int, shape: Shape, dtype: DTypeLike = np.float32, *, rng: Seed = None
) -> ExTensor:
    """Normal with σ = √(2 / fan_in), for relu. Parameters as for `kaiming_uniform`.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.kaiming_normal(64, (128, 64), rng=0).dtype
    dtype('float32')
    """
    sigma = math.sqrt(2.0 / _fan("kaiming_normal", "fan_in", fan_in))
    return _normal("kaiming_normal", sigma, shape, dtype, rng)
