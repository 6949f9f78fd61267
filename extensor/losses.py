"""Losses, and the gradient of each with respect to its first argument.

``reduction`` is ``"none"`` (a loss for every element or class vector), ``"mean"`` or ``"sum"``. A
backward function takes the same keyword, and a ``grad_output`` of the shape of the forward result:
a scalar for ``"mean"`` and ``"sum"``. Predictions and targets have the same shape; nothing is
broadcast. Targets are converted to the dtype of the predictions.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from extensor import _training
from extensor._typing import ArrayLike, Out
from extensor.tensor import ExTensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_backward",
    "binary_cross_entropy_with_logits",
    "binary_cross_entropy_with_logits_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "mean_squared_error",
    "mean_squared_error_backward",
    "smooth_l1",
    "smooth_l1_backward",
]

Reduction: TypeAlias = Literal["none", "mean", "sum"]

_SQUARED = _training.Loss("mean_squared_error", "predictions targets", "squared_error")
_SMOOTH_L1 = _training.Loss("smooth_l1", "predictions targets", "smooth_l1", cost="divide")
_BINARY = _training.Loss(
    "binary_cross_entropy", "predictions targets", "binary", cost="heavy", check="outside"
)
_LOGITS = _training.Loss(
    "binary_cross_entropy_with_logits", "logits targets", "binary_logits", cost="heavy"
)


def _not_negative(function: str, name: str, value: float) -> float:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{function}: {name} must be a number, got {value!r}")
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{function}: {name} is {value!r}, a finite number >= 0 is needed")
    return number


def mean_squared_error(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """Squared error (p − t)².

    Parameters
    ----------
    predictions, targets : array_like
        Of the same shape.
    reduction : {"none", "mean", "sum"}
        "mean" gives the mean squared error.
    out : ExTensor or ndarray, optional
        Where the result is written.

    Examples
    --------
    >>> import extensor as ex
    >>> p, t = ex.tensor([1.0, 2.0, 4.0]), ex.tensor([1.0, 1.0, 1.0])
    >>> ex.mean_squared_error(p, t)
    ExTensor([0., 1., 9.], dtype=float32)
    >>> ex.mean_squared_error(p, t, reduction="sum").item()
    10.0
    """
    return _training.loss(_SQUARED, predictions, targets, reduction, out)


def mean_squared_error_backward(
    grad_output: ArrayLike,
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """Gradient of `mean_squared_error`: 2g·(p − t), divided by the number of elements for "mean".

    Examples
    --------
    >>> import extensor as ex
    >>> p, t = ex.tensor([1.0, 5.0]), ex.tensor([2.0, 2.0])
    >>> ex.mean_squared_error_backward(1.0, p, t, reduction="mean")
    ExTensor([-1.,  3.], dtype=float32)
    """
    return _training.loss_backward(_SQUARED, grad_output, predictions, targets, reduction, out)


def smooth_l1(
    predictions: ArrayLike,
    targets: ArrayLike,
    beta: float = 1.0,
    *,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """½d²/β where |d| < β, else |d| − ½β, with d = p − t: squares near zero, lines beyond.

    Parameters
    ----------
    predictions, targets : array_like
        Of the same shape.
    beta : float
        Where the square ends; 0 gives |d|.
    reduction : {"none", "mean", "sum"}
        As for `mean_squared_error`.
    out : ExTensor or ndarray, optional
        Where the result is written.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.smooth_l1(ex.tensor([0.0, 0.5, 3.0]), ex.zeros(3))
    ExTensor([0.   , 0.125, 2.5  ], dtype=float32)
    """
    beta = _not_negative("smooth_l1", "beta", beta)
    return _training.loss(_SMOOTH_L1, predictions, targets, reduction, out, (beta,))


def smooth_l1_backward(
    grad_output: ArrayLike,
    predictions: ArrayLike,
    targets: ArrayLike,
    beta: float = 1.0,
    *,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """Gradient of `smooth_l1`: g·d/β where |d| < β, else ±g; 0 where d = 0.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.smooth_l1_backward(1.0, ex.tensor([0.5, -3.0]), ex.zeros(2), reduction="sum")
    ExTensor([ 0.5, -1. ], dtype=float32)
    """
    beta = _not_negative("smooth_l1_backward", "beta", beta)
    return _training.loss_backward(
        _SMOOTH_L1, grad_output, predictions, targets, reduction, out, (beta,)
    )


def binary_cross_entropy(
    predictions: ArrayLike,
    targets: ArrayLike,
    eps: float = 1e-7,
    *,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """−y·ln max(p, eps) − (1−y)·ln max(1−p, eps) of probabilities p and labels y.

    With logits at hand, `binary_cross_entropy_with_logits` is faster and exact for large ones.

    Parameters
    ----------
    predictions : array_like
        Probabilities; a ValueError for anything outside [0, 1].
    targets : array_like
        Labels, 0 or 1 or between, of the same shape.
    eps : float
        Least probability taken seriously.
    reduction : {"none", "mean", "sum"}
        As for `mean_squared_error`.
    out : ExTensor or ndarray, optional
        Where the result is written.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.binary_cross_entropy(ex.tensor([0.5, 1.0]), ex.tensor([1.0, 1.0]))
    ExTensor([0.6931472, 0.       ], dtype=float32)
    """
    eps = _not_negative("binary_cross_entropy", "eps", eps)
    return _training.loss(_BINARY, predictions, targets, reduction, out, (eps,))


def binary_cross_entropy_backward(
    grad_output: ArrayLike,
    predictions: ArrayLike,
    targets: ArrayLike,
    eps: float = 1e-7,
    *,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """Gradient of `binary_cross_entropy`: g·((1−y)/max(1−p, eps) − y/max(p, eps)).

    Times σ'(z) = p(1−p), as `sigmoid_backward` multiplies it, this is the familiar p − y.

    Examples
    --------
    >>> import extensor as ex
    >>> p, y = ex.tensor([0.5, 0.75]), ex.tensor([1.0, 0.0])
    >>> ex.binary_cross_entropy_backward(1.0, p, y, reduction="sum")
    ExTensor([-2.,  4.], dtype=float32)
    """
    eps = _not_negative("binary_cross_entropy_backward", "eps", eps)
    return _training.loss_backward(
        _BINARY, grad_output, predictions, targets, reduction, out, (eps,)
    )


def binary_cross_entropy_with_logits(
    logits: ArrayLike,
    targets: ArrayLike,
    *,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """(1−y)·softplus(x) + y·softplus(−x): the binary cross-entropy of σ(x), right for every x.

    Parameters
    ----------
    logits : array_like
        Any real numbers.
    targets : array_like
        Labels, 0 or 1 or between, of the same shape. A term with factor 0 counts 0.
    reduction : {"none", "mean", "sum"}
        As for `mean_squared_error`.
    out : ExTensor or ndarray, optional
        Where the result is written.

    Examples
    --------
    >>> import extensor as ex
    >>> z, y = ex.tensor([0.0, 100.0, -100.0]), ex.tensor([1.0, 1.0, 1.0])
    >>> ex.binary_cross_entropy_with_logits(z, y)
    ExTensor([6.931472e-01, 3.783506e-44, 1.000000e+02], dtype=float32)
    """
    return _training.loss(_LOGITS, logits, targets, reduction, out)


def binary_cross_entropy_with_logits_backward(
    grad_output: ArrayLike,
    logits: ArrayLike,
    targets: ArrayLike,
    *,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """Gradient of `binary_cross_entropy_with_logits`: g·((1−y)·σ(x) − y·σ(−x)), that is σ(x) − y.

    Examples
    --------
    >>> import extensor as ex
    >>> z, y = ex.tensor([0.0, 100.0]), ex.tensor([1.0, 0.0])
    >>> ex.binary_cross_entropy_with_logits_backward(1.0, z, y, reduction="sum")
    ExTensor([-0.5,  1. ], dtype=float32)
    """
    return _training.loss_backward(_LOGITS, grad_output, logits, targets, reduction, out)


def cross_entropy(
    logits: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    *,
    ignore_index: int | None = None,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """Σ t·(logsumexp(x) − x) over the classes, from logits x.

    Parameters
    ----------
    logits : array_like
        Scores of C classes along ``axis``.
    targets : array_like
        Class ids, integers 0 … C−1 in the shape of logits without ``axis``; or weights in the
        shape of logits, of any sum (probabilities, usually). A weight of 0 counts 0 even beside a
        logit of −inf.
    axis : int
        The class axis.
    ignore_index : int, optional
        A class id whose results are 0 and have no gradient.
    reduction : {"none", "mean", "sum"}
        "mean" divides by the number of results that are not ignored.
    out : ExTensor or ndarray, optional
        Where the result is written.

    Raises
    ------
    ValueError
        For a class id that is neither a class nor ``ignore_index``; nothing is written.

    Examples
    --------
    >>> import extensor as ex
    >>> x = ex.tensor([[0.0, 0.0], [3.0, 3.0]])
    >>> ex.cross_entropy(x, [0, 1])
    ExTensor([0.6931472, 0.6931472], dtype=float32)
    >>> ex.cross_entropy(x, [0, -1], ignore_index=-1, reduction="mean")
    ExTensor(0.6931472, dtype=float32)
    """
    return _training.cross_entropy(None, logits, targets, axis, ignore_index, reduction, out, False)


def cross_entropy_backward(
    grad_output: ArrayLike,
    logits: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    *,
    ignore_index: int | None = None,
    reduction: Reduction = "none",
    out: Out = None,
) -> ExTensor:
    """Gradient of `cross_entropy` with respect to the logits: g·(Σt·softmax(x) − t).

    One pass over the logits; the softmax is not needed beforehand.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.cross_entropy_backward(1.0, ex.tensor([[0.0, 0.0], [3.0, 3.0]]), [0, 1], reduction="sum")
    ExTensor([[-0.5,  0.5],
              [ 0.5, -0.5]], dtype=float32)
    """
    return _training.cross_entropy(
        grad_output, logits, targets, axis, ignore_index, reduction, out, True
    )
