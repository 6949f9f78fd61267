"""Slow gold versions in NumPy, written from the formulas and independent of the library.

Forward functions of rows with ``ulp=0`` are NumPy's own, evaluated in the dtype of the result.
Everything else is evaluated in ``numpy.longdouble`` (in float64 for gradients of float32). A
gradient function gets what the library's backward function gets and returns one array of terms
for each gradient, in the broadcast shape; `unbroadcast` adds the terms that belong to one element
of the input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.longdouble]


def unbroadcast(terms: Array, shape: tuple[int, ...]) -> Array:
    """Sum terms of a broadcast shape back to ``shape``."""
    lead = terms.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and terms.shape[lead + i] != 1
    )
    summed = terms.sum(axis=axes) if axes else terms
    return summed.reshape(shape)


# --- arithmetic: terms of the gradients ---------------------------------------------------------


def add_terms(g: Array, *_: object) -> tuple[Array, ...]:
    return g, g


def subtract_terms(g: Array, *_: object) -> tuple[Array, ...]:
    return g, -g


def multiply_terms(g: Array, a: Array, b: Array) -> tuple[Array, ...]:
    return g * b, g * a


def divide_terms(g: Array, a: Array, b: Array, eps: float = 1e-10) -> tuple[Array, ...]:
    near_zero = np.abs(b) < np.sqrt(np.longdouble(eps))
    guarded = -g * a / np.longdouble(eps) if eps else g
    return g / b, np.where(near_zero, guarded, -(g / b) * (a / b))


def power_terms(g: Array, a: Array, b: Array) -> tuple[Array, ...]:
    undefined = np.isnan(np.power(a, b))
    by_base = np.where(b == 0, 0, g * b * np.power(a, b - 1))
    by_exponent = np.where(
        (a == 0) & (b >= 0), 0, g * np.power(a, b) * np.log(np.where(a < 0, np.nan, a))
    )
    return np.where(undefined, np.nan, by_base), np.where(undefined, np.nan, by_exponent)


def zero_terms(g: Array, *_: object) -> tuple[Array, ...]:
    return np.zeros_like(g), np.zeros_like(g)


def modulo_terms(g: Array, a: Array, b: Array) -> tuple[Array, ...]:
    return g, -g * np.floor_divide(a, b)


def negative_terms(g: Array) -> tuple[Array, ...]:
    return (-g,)


def reciprocal_terms(g: Array, output: Array) -> tuple[Array, ...]:
    return (-g * output * output,)


def _share(g: Array, wins: Array, ties: Array) -> Array:
    return np.where(ties, g / 2, np.where(wins, g, 0))


def maximum_terms(g: Array, a: Array, b: Array) -> tuple[Array, ...]:
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    ties = (a == b) | (nan_a & nan_b)
    return (
        _share(g, nan_a | ((a > b) & ~nan_b), ties),
        _share(g, nan_b | ((b > a) & ~nan_a), ties),
    )


def minimum_terms(g: Array, a: Array, b: Array) -> tuple[Array, ...]:
    return maximum_terms(g, -a, -b)


def where_terms(g: Array, cond: Array, *_: object) -> tuple[Array, ...]:
    chosen = cond.astype(bool)
    return np.where(chosen, g, 0), np.where(chosen, 0, g)
