"""softmax and log-softmax with their gradients (public through ``activations``)."""

from __future__ import annotations

from extensor import _reduce
from extensor._typing import ArrayLike, Axis, Out
from extensor.tensor import ExTensor

__all__ = ["log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]


def softmax(x: ArrayLike, axis: Axis = -1, *, out: Out = None) -> ExTensor:
    """exp(x − m) / Σ exp(x − m) along an axis, m being the maximum.

    A slice with NaN, +inf or only −inf is NaN; −inf beside a finite entry gives exactly 0.

    Parameters
    ----------
    x : array_like
        Logits.
    axis : int, tuple of ints or None
        The axis or axes along which the result sums to one; None takes all.
    out : ExTensor or ndarray, optional
        Where the result goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.softmax(ex.tensor([[0.0, 0.0], [1000.0, 0.0]]))
    ExTensor([[0.5, 0.5],
              [1. , 0. ]], dtype=float32)
    """
    return _reduce.softmax("softmax", x, axis, out, False)


def softmax_backward(
    grad_output: ArrayLike, output: ArrayLike, axis: Axis = -1, *, out: Out = None
) -> ExTensor:
    """Gradient of `softmax` from its output y: y·(g − Σ g·y).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.softmax_backward(ex.tensor([1.0, 0.0]), ex.tensor([0.5, 0.5]))
    ExTensor([ 0.25, -0.25], dtype=float32)
    """
    return _reduce.softmax_backward("softmax_backward", grad_output, output, axis, out, False)


def log_softmax(x: ArrayLike, axis: Axis = -1, *, out: Out = None) -> ExTensor:
    """x − m − ln Σ exp(x − m) along an axis: the logarithm of `softmax`, without underflow.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log_softmax(ex.tensor([0.0, -1000.0]))
    ExTensor([    0., -1000.], dtype=float32)
    """
    return _reduce.softmax("log_softmax", x, axis, out, True)


def log_softmax_backward(
    grad_output: ArrayLike, output: ArrayLike, axis: Axis = -1, *, out: Out = None
) -> ExTensor:
    """Gradient of `log_softmax` from its output y: g − exp(y)·Σ g.

    Examples
    --------
    >>> import extensor as ex
    >>> y = ex.log_softmax(ex.tensor([0.0, 0.0]))
    >>> ex.log_softmax_backward(ex.tensor([1.0, 0.0]), y)
    ExTensor([ 0.5, -0.5], dtype=float32)
    """
    return _reduce.softmax_backward("log_softmax_backward", grad_output, output, axis, out, True)
