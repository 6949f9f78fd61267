"""Slow gold versions in NumPy, written from the formulas and independent of the library.

Forward functions of rows with ``ulp=0`` are NumPy's own, evaluated in the dtype of the result.
Everything else is evaluated in ``numpy.longdouble`` (in float64 for gradients of float32). A
gradient function gets what the library's backward function gets and returns one array of terms
for each gradient, in the broadcast shape; `unbroadcast` adds the terms that belong to one element
of the input.
"""

from __future__ import annotations

from collections.abc import Callable

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


# --- elementwise --------------------------------------------------------------------------------


def _normal_tail(a: Array) -> tuple[Array, Array]:
    """P(X > a) of the normal distribution for a ≥ 0, and its density at a."""
    a = np.asarray(a)
    real = a.dtype.type
    # a²/2 to twice the digits: the head is short enough for its square to be exact
    head = a.astype(np.float32).astype(a.dtype)
    density = np.exp(-head * head / 2) * np.exp(-(a - head) * (a + head) / 2)
    density = np.where(np.isinf(a) | (a > 1e4), 0, density) / np.sqrt(2 * _pi(real))
    near = np.minimum(a, real(3))
    term, series = near, near
    for n in range(1, 80):
        term = term * near * near / real(2 * n + 1)
        series = series + term
    ratio = np.maximum(a, real(3))
    far = ratio
    for n in range(150, 0, -1):
        far = ratio + real(n) / far
    return np.where(a < 3, real(0.5) - density * series, density / far), density


def _pi(real: type) -> Array:
    return real("3.14159265358979323846264338327950288")  # type: ignore[no-any-return]


def erf(x: Array) -> Array:
    x = np.asarray(x)
    real = x.dtype.type if x.dtype.kind == "f" else np.float64
    a = np.abs(x.astype(real))
    near = np.minimum(a, real(2))
    term, series = near, near
    for n in range(1, 100):
        term = term * near * near * 2 / real(2 * n + 1)
        series = series + term
    small = 2 / np.sqrt(_pi(real)) * np.exp(-near * near) * series
    large = 1 - 2 * _normal_tail(a * np.sqrt(real(2)))[0]
    return np.copysign(np.where(a < 2, small, large), x)


def whole(rounding: Callable[..., Array]) -> Callable[..., Array]:
    """Rounding that leaves integers and bools as they are."""
    return lambda x: rounding(x) if np.asarray(x).dtype.kind == "f" else np.asarray(x)


def clip(x: Array, min: float | None = None, max: float | None = None) -> Array:
    return np.copy(x) if min is None and max is None else np.clip(x, min, max)


def abs_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (np.where(x == 0, 0, np.where(np.isnan(x), x, np.where(x > 0, g, -g))),)


def no_terms(g: Array) -> tuple[Array, ...]:
    return (np.zeros_like(g),)


def square_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (2 * (g * x),)


def sqrt_terms(g: Array, output: Array, eps: float = 1e-10) -> tuple[Array, ...]:
    return (np.where(2 * output < eps, g / (eps or 1), g / (2 * output)),)


def exp_terms(g: Array, output: Array) -> tuple[Array, ...]:
    return (g * output,)


def expm1_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (g * np.exp(x),)


def _log_terms(base: float) -> Callable[..., tuple[Array, ...]]:
    def terms(g: Array, x: Array, eps: float = 1e-10) -> tuple[Array, ...]:
        guarded = np.where(np.abs(x) < eps, np.where(x < 0, -eps, eps), x)
        return (g / guarded / np.log(x.dtype.type(base)) if base else g / guarded,)

    return terms


log_terms, log2_terms, log10_terms = _log_terms(0), _log_terms(2), _log_terms(10)


def log1p_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (g / (1 + x),)


def sin_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (g * np.cos(x),)


def cos_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (-g * np.sin(x),)


def tanh_terms(g: Array, output: Array) -> tuple[Array, ...]:
    return (g * ((1 - output) * (1 + output)),)


def erf_terms(g: Array, x: Array) -> tuple[Array, ...]:
    root = np.sqrt(x.dtype.type(2))
    return (g * 2 * root * _normal_tail(np.abs(x) * root)[1],)


def clip_terms(
    g: Array, x: Array, min: float | None = None, max: float | None = None
) -> tuple[Array, ...]:
    inside = ~np.isnan(x)
    if min is not None:
        inside &= x >= min
    if max is not None:
        inside &= x <= max
    return (np.where(inside, g, 0),)


# --- activations --------------------------------------------------------------------------------


def relu(x: Array) -> Array:
    return np.where(np.less_equal(x, 0), np.zeros_like(x), x)


def relu_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (np.where(x > 0, g, 0),)


def leaky_relu(x: Array, alpha: float = 0.01) -> Array:
    return np.where(np.greater(x, 0), x, alpha * np.asarray(x))


def leaky_relu_terms(g: Array, x: Array, alpha: float = 0.01) -> tuple[Array, ...]:
    return (np.where(x > 0, g, alpha * g),)


def slopes(x: Array, alpha: Array) -> Array:
    """prelu's alpha in the shape in which it broadcasts to x."""
    x, alpha = np.asarray(x), np.asarray(alpha)
    if alpha.size == 1:
        return alpha.reshape(())
    if alpha.ndim == 1 and x.ndim >= 2:
        return alpha.reshape(-1, *(1 for _ in x.shape[2:]))
    return alpha


def prelu(x: Array, alpha: Array) -> Array:
    return np.where(np.greater(x, 0), x, slopes(x, alpha) * np.asarray(x))


def prelu_terms(g: Array, x: Array, alpha: Array) -> tuple[Array, ...]:
    """The gradient of x, and that of alpha already summed to its own shape."""
    by_alpha = np.where(x <= 0, g * x, 0)
    summed = unbroadcast(by_alpha, slopes(x, alpha).shape).reshape(np.shape(alpha))
    return np.where(x > 0, g, slopes(x, alpha) * g), summed


def prelu_bound(expected: Array, unit: float, g: Array, x: Array, alpha: Array) -> Array:
    """(16 + log2 n)·u·Σ|terms| for alpha, a few roundings for x."""
    if np.shape(expected) != np.shape(alpha):
        return 8 * unit * np.abs(expected)
    magnitude = prelu_terms(np.abs(g), -np.abs(x), np.zeros_like(alpha))[1]
    terms = np.log2(max(np.size(x) / max(np.size(alpha), 1), 1))
    return (16 + terms) * unit * (np.abs(magnitude) + np.abs(expected))


def sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(np.asarray(x)))
    return np.where(np.less(x, 0), small, np.ones_like(small)) / (1 + small)


def sigmoid_terms(g: Array, output: Array) -> tuple[Array, ...]:
    return (g * output * (1 - output),)


def _limit(x: Array, value: Array) -> Array:
    """x·(something that vanishes faster than x grows) is 0 at −inf."""
    return np.where(np.isneginf(x), -0.0, value)


def _gelu_argument(x: Array) -> Array:
    real = x.dtype.type
    return 2 * np.sqrt(2 / _pi(real)) * (x + real("0.044715") * x * x * x)


def gelu(x: Array, approximate: bool = False) -> Array:
    x = np.asarray(x)
    if approximate:
        return _limit(x, x * sigmoid(_gelu_argument(x)))
    tail, _ = _normal_tail(np.abs(x))
    return _limit(x, np.where(x > 0, x * (1 - tail), x * tail))


def gelu_parts(g: Array, x: Array, approximate: bool = False) -> tuple[Array, Array]:
    """The two terms of the gradient."""
    bounded = np.clip(x, -1e3, 1e3)
    if approximate:
        s = sigmoid(_gelu_argument(bounded))
        rest = sigmoid(-_gelu_argument(bounded))
        slope = 2 * np.sqrt(2 / _pi(x.dtype.type)) * (1 + 3 * x.dtype.type("0.044715") * bounded**2)
        return g * s, g * bounded * s * rest * slope
    tail, density = _normal_tail(np.abs(bounded))
    return g * np.where(x > 0, 1 - tail, tail), g * bounded * density


def gelu_terms(g: Array, x: Array, approximate: bool = False) -> tuple[Array, ...]:
    return (sum(gelu_parts(g, x, approximate)),)  # type: ignore[arg-type,return-value]


def swish(x: Array) -> Array:
    return _limit(np.asarray(x), np.asarray(x) * sigmoid(x))


def swish_parts(g: Array, x: Array) -> tuple[Array, Array]:
    bounded = np.clip(x, -1e4, 1e4)
    return g * sigmoid(x), g * bounded * sigmoid(x) * sigmoid(-x)


def swish_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (sum(swish_parts(g, x)),)  # type: ignore[arg-type,return-value]


def mish(x: Array) -> Array:
    x = np.asarray(x)
    return _limit(x, x * np.tanh(np.logaddexp(x, 0)))


def mish_parts(g: Array, x: Array) -> tuple[Array, Array]:
    bounded = np.clip(x, -2e4, 2e4)
    t = np.tanh(np.logaddexp(bounded, 0))
    rest = 1 / np.cosh(np.logaddexp(np.minimum(bounded, 300), 0)) ** 2
    return g * t, g * bounded * rest * sigmoid(bounded)


def mish_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (sum(mish_parts(g, x)),)  # type: ignore[arg-type,return-value]


def elu(x: Array, alpha: float = 1.0) -> Array:
    x = np.asarray(x)
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def elu_terms(g: Array, x: Array, alpha: float = 1.0) -> tuple[Array, ...]:
    return (np.where(x > 0, g, alpha * g * np.exp(np.minimum(x, 0))),)


def softplus(x: Array) -> Array:
    return np.logaddexp(np.asarray(x), np.asarray(x).dtype.type(0))


def softplus_terms(g: Array, x: Array) -> tuple[Array, ...]:
    return (g * sigmoid(x),)


# --- reductions: along axes, and gradients as such (no terms to sum) ------------------------------


def _axes(axis: object, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(i % ndim for i in (axis if isinstance(axis, tuple) else (axis,)))


def kept_shape(shape: tuple[int, ...], axis: object = None) -> tuple[int, ...]:
    """The shape of a reduction with keepdims."""
    axes = _axes(axis, len(shape))
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def count(shape: tuple[int, ...], axis: object = None) -> int:
    """How many elements a slice has."""
    return int(np.prod([shape[i] for i in _axes(axis, len(shape))], initial=1))


def keep(value: Array, shape: tuple[int, ...], axis: object = None) -> Array:
    """A value of each slice, given with or without the kept axes, with them."""
    return np.reshape(value, kept_shape(shape, axis))


def _squeezed(value: Array, x: Array, axis: object, keepdims: bool) -> Array:
    return value if keepdims else np.squeeze(value, axis=_axes(axis, np.ndim(x)))


def mean(x: Array, axis: object = None, keepdims: bool = False) -> Array:
    return np.true_divide(np.sum(x, axis=axis, keepdims=keepdims), count(np.shape(x), axis))


def variance(x: Array, axis: object = None, keepdims: bool = False, ddof: float = 0) -> Array:
    deviations = x - mean(x, axis, True)
    freedom = np.longdouble(max(count(np.shape(x), axis) - ddof, 0))
    return np.sum(deviations * deviations, axis=axis, keepdims=keepdims) / freedom


def std(x: Array, axis: object = None, keepdims: bool = False, ddof: float = 0) -> Array:
    return np.sqrt(variance(x, axis, keepdims, ddof))


def top(x: Array, axis: object = None) -> Array:
    """The maximum with the axes kept; of nothing -inf."""
    return np.max(x, axis=axis, keepdims=True, initial=-np.inf)


def logsumexp(x: Array, axis: object = None, keepdims: bool = False) -> Array:
    shift = top(x, axis)
    shift = np.where(np.isinf(shift), 0, shift)
    total = shift + np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True))
    return _squeezed(total, x, axis, keepdims)


def softmax(x: Array, axis: object = -1) -> Array:
    powers = np.exp(x - top(x, axis))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Array, axis: object = -1) -> Array:
    shifted = x - top(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def sum_terms(g: Array, shape: tuple[int, ...], axis: object = None) -> tuple[Array, ...]:
    return (np.broadcast_to(keep(g, shape, axis), shape),)


def mean_terms(g: Array, shape: tuple[int, ...], axis: object = None) -> tuple[Array, ...]:
    return (np.broadcast_to(keep(g, shape, axis) / g.dtype.type(count(shape, axis)), shape),)


def max_terms(g: Array, x: Array, axis: object = None) -> tuple[Array, ...]:
    """Equal shares to the largest; to the NaNs where there are any."""
    best = np.max(x, axis=axis, keepdims=True) if x.size else np.zeros(kept_shape(x.shape, axis))
    winners = (x == best) | (np.isnan(x) & np.isnan(best))
    shares = keep(g, x.shape, axis) / np.sum(winners, axis=axis, keepdims=True)
    return (np.where(winners, shares, 0),)


def min_terms(g: Array, x: Array, axis: object = None) -> tuple[Array, ...]:
    return max_terms(g, -x, axis)


def variance_terms(g: Array, x: Array, axis: object = None, ddof: float = 0) -> tuple[Array, ...]:
    freedom = x.dtype.type(max(count(x.shape, axis) - ddof, 0))
    return (2 * keep(g, x.shape, axis) * (x - mean(x, axis, True)) / freedom,)


def std_terms(
    g: Array, x: Array, output: Array, axis: object = None, ddof: float = 0, eps: float = 1e-10
) -> tuple[Array, ...]:
    root = keep(output, x.shape, axis)
    slope = np.where(2 * root < eps, 1 / x.dtype.type(eps), 1 / (2 * root))
    (by_variance,) = variance_terms(g, x, axis, ddof)
    return (np.where(root == 0, 0, slope * by_variance),)


def logsumexp_terms(g: Array, x: Array, output: Array, axis: object = None) -> tuple[Array, ...]:
    return (keep(g, x.shape, axis) * np.exp(x - keep(output, x.shape, axis)),)


def softmax_terms(g: Array, output: Array, axis: object = -1) -> tuple[Array, ...]:
    return (output * (g - np.sum(g * output, axis=axis, keepdims=True)),)


def log_softmax_terms(g: Array, output: Array, axis: object = -1) -> tuple[Array, ...]:
    return (g - np.exp(output) * np.sum(g, axis=axis, keepdims=True),)


# --- matrix products ------------------------------------------------------------------------------


def matmul_terms(g: Array, a: Array, b: Array) -> tuple[Array, ...]:
    """Vectors become a row and a column; batches that an operand lacks are summed."""
    left = a[None, :] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    if b.ndim == 1:
        g = np.expand_dims(g, -1)
    if a.ndim == 1:
        g = np.expand_dims(g, -2)
    by_left = unbroadcast(np.matmul(g, np.swapaxes(right, -1, -2)), left.shape)
    by_right = unbroadcast(np.matmul(np.swapaxes(left, -1, -2), g), right.shape)
    return by_left.reshape(a.shape), by_right.reshape(b.shape)


def outer_terms(g: Array, a: Array, b: Array) -> tuple[Array, ...]:
    return np.matmul(g, b), np.matmul(a, g)


def linear(x: Array, weight: Array, bias: Array) -> Array:
    return np.matmul(x, weight.T) + bias


def linear_terms(g: Array, x: Array, weight: Array) -> tuple[Array, ...]:
    n = int(np.prod(g.shape[:-1]))
    rows, inputs = g.reshape(n, weight.shape[0]), x.reshape(n, weight.shape[1])
    return np.matmul(g, weight), np.matmul(rows.T, inputs), np.sum(rows, axis=0)


def transpose_terms(g: Array, axes: tuple[int, ...] | None = None) -> tuple[Array, ...]:
    return (np.transpose(g, None if axes is None else np.argsort(np.array(axes) % g.ndim)),)
