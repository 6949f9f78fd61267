"""Slow gold versions of the losses, in NumPy's longdouble, from the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.longdouble]


def wide(x: Any) -> Array:
    return np.asarray(x, np.longdouble)


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def product(factor: Array, value: Array) -> Array:
    """factor·value, 0 where the factor is 0."""
    return np.where(factor == 0, 0, factor * value)


def squared(p: Array, t: Array) -> Array:
    return (p - t) ** 2


def squared_gradient(g: Array, p: Array, t: Array) -> Array:
    return 2 * g * (p - t)


def smooth_l1(p: Array, t: Array, beta: float = 1.0) -> Array:
    d = np.abs(p - t)
    with np.errstate(all="ignore"):
        return np.where(d < beta, d * d / (2 * wide(beta)), d - wide(beta) / 2)


def smooth_l1_gradient(g: Array, p: Array, t: Array, beta: float = 1.0) -> Array:
    d = p - t
    with np.errstate(all="ignore"):
        return np.where(np.abs(d) < beta, g * d / wide(beta), g * np.sign(d))


def binary(p: Array, y: Array, eps: float = 1e-7) -> Array:
    return -product(y, np.log(np.maximum(p, eps))) - product(1 - y, np.log(np.maximum(1 - p, eps)))


def binary_gradient(g: Array, p: Array, y: Array, eps: float = 1e-7) -> Array:
    with np.errstate(all="ignore"):
        return g * (product(1 - y, 1 / np.maximum(1 - p, eps)) - product(y, 1 / np.maximum(p, eps)))


def binary_logits(x: Array, y: Array) -> Array:
    return product(1 - y, softplus(x)) + product(y, softplus(-x))


def binary_logits_gradient(g: Array, x: Array, y: Array) -> Array:
    return g * ((1 - y) * sigmoid(x) - y * sigmoid(-x))


def weights_of(x: Array, t: Any, axis: int, ignore_index: int | None) -> Array:
    """Class ids as one-hot weights; an ignored one has none."""
    t = np.asarray(t)
    if t.shape == x.shape:
        return wide(t)
    classes = x.shape[axis]
    shape = [1] * x.ndim
    shape[axis] = classes
    steps = np.arange(classes).reshape(shape)
    ids = np.expand_dims(t, axis % x.ndim)
    weights = wide(steps == ids)
    return weights if ignore_index is None else np.where(ids == ignore_index, 0, weights)


def log_sum_exp(x: Array, axis: int) -> Array:
    top = x.max(axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0)
    return np.log(np.exp(x - shift).sum(axis=axis, keepdims=True)) + shift


def cross_entropy(x: Array, t: Any, axis: int = -1, ignore_index: int | None = None) -> Array:
    x = wide(x)
    weights = weights_of(x, t, axis, ignore_index)
    with np.errstate(all="ignore"):
        return product(weights, log_sum_exp(x, axis) - x).sum(axis=axis)


def cross_entropy_gradient(
    g: Array, x: Array, t: Any, axis: int = -1, ignore_index: int | None = None
) -> Array:
    x = wide(x)
    weights = weights_of(x, t, axis, ignore_index)
    with np.errstate(all="ignore"):
        soft = np.exp(x - log_sum_exp(x, axis))
        mass = weights.sum(axis=axis, keepdims=True)
        return np.expand_dims(wide(g), axis % x.ndim) * (mass * soft - weights)
