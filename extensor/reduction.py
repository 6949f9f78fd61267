"""Reductions over one axis, several or all, and their gradients.

``axis=None`` takes all axes, ``()`` none. A backward function accepts grad_output with or without
the kept axes.
"""

from __future__ import annotations

from extensor import _reduce
from extensor._typing import ArrayLike, Axis, Out, Shape
from extensor.tensor import ExTensor

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "logsumexp",
    "logsumexp_backward",
    "max",
    "max_reduce",
    "max_reduce_backward",
    "mean",
    "mean_backward",
    "min",
    "min_reduce",
    "min_reduce_backward",
    "std",
    "std_backward",
    "sum",
    "sum_backward",
    "variance",
    "variance_backward",
]


def sum(x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, out: Out = None) -> ExTensor:
    """The sum along axes: short lanes, then a tree, so that large sums stay exact.

    The sum of nothing is 0. Small integers are summed as int64, as in NumPy; float16 in float32.

    Parameters
    ----------
    x : array_like
        What to sum.
    axis : int, tuple of ints or None
        The axes to sum over; None takes all.
    keepdims : bool
        Keep the axes with size 1.
    out : ExTensor or ndarray, optional
        Where the result goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sum(ex.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    ExTensor([4., 6.], dtype=float32)
    """
    return _reduce.total("sum", x, axis, keepdims, out, False)


def sum_backward(
    grad_output: ArrayLike, input_shape: Shape | ArrayLike, axis: Axis = None, *, out: Out = None
) -> ExTensor:
    """Gradient of `sum`: g along the summed axes. The input is given by its shape or itself.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sum_backward(ex.tensor([1.0, 2.0]), (2, 2), axis=0)
    ExTensor([[1., 2.],
              [1., 2.]], dtype=float32)
    """
    return _reduce.spread("sum_backward", grad_output, input_shape, axis, out, False)


def mean(x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, out: Out = None) -> ExTensor:
    """The mean along axes; of nothing NaN. Integers give float64.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.mean(ex.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    ExTensor([1.5, 3.5], dtype=float32)
    """
    return _reduce.total("mean", x, axis, keepdims, out, True)


def mean_backward(
    grad_output: ArrayLike, input_shape: Shape | ArrayLike, axis: Axis = None, *, out: Out = None
) -> ExTensor:
    """Gradient of `mean`: g/n along the n averaged elements.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.mean_backward(ex.tensor([2.0, 4.0]), (2, 2), axis=1)
    ExTensor([[1., 1.],
              [2., 2.]], dtype=float32)
    """
    return _reduce.spread("mean_backward", grad_output, input_shape, axis, out, True)


def max_reduce(
    x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, out: Out = None
) -> ExTensor:
    """The largest element along axes; NaN where there is one.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.max_reduce(ex.tensor([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    ExTensor([5., 4.], dtype=float32)
    """
    return _reduce.extreme("max_reduce", x, axis, keepdims, out, False)


def min_reduce(
    x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, out: Out = None
) -> ExTensor:
    """The smallest element along axes; NaN where there is one.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.min_reduce(ex.tensor([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    ExTensor([1., 3.], dtype=float32)
    """
    return _reduce.extreme("min_reduce", x, axis, keepdims, out, True)


max = max_reduce
min = min_reduce


def max_reduce_backward(
    grad_output: ArrayLike, x: ArrayLike, axis: Axis = None, *, out: Out = None
) -> ExTensor:
    """Gradient of `max_reduce`: g to the largest element, shared equally among ties.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.max_reduce_backward(ex.tensor(6.0), ex.tensor([1.0, 3.0, 3.0]))
    ExTensor([0., 3., 3.], dtype=float32)
    """
    return _reduce.extreme_backward("max_reduce_backward", grad_output, x, axis, out, False)


def min_reduce_backward(
    grad_output: ArrayLike, x: ArrayLike, axis: Axis = None, *, out: Out = None
) -> ExTensor:
    """Gradient of `min_reduce`: g to the smallest element, shared equally among ties.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.min_reduce_backward(ex.tensor(6.0), ex.tensor([1.0, 3.0, 3.0]))
    ExTensor([6., 0., 0.], dtype=float32)
    """
    return _reduce.extreme_backward("min_reduce_backward", grad_output, x, axis, out, True)


def variance(
    x: ArrayLike, axis: Axis = None, keepdims: bool = False, ddof: float = 0, *, out: Out = None
) -> ExTensor:
    """Σ (x − mean)² / max(n − ddof, 0) along axes, by the corrected two-pass formula.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.variance(ex.tensor([1.0, 2.0, 3.0, 4.0]))
    ExTensor(1.25, dtype=float32)
    """
    return _reduce.variance("variance", x, axis, keepdims, ddof, out, False)


def variance_backward(
    grad_output: ArrayLike, x: ArrayLike, axis: Axis = None, ddof: float = 0, *, out: Out = None
) -> ExTensor:
    """Gradient of `variance`: g·2·(x − mean) / max(n − ddof, 0).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.variance_backward(ex.tensor(1.0), ex.tensor([1.0, 3.0]))
    ExTensor([-1.,  1.], dtype=float32)
    """
    name = "variance_backward"
    return _reduce.variance_backward(name, grad_output, x, None, axis, ddof, out, False)


def std(
    x: ArrayLike, axis: Axis = None, keepdims: bool = False, ddof: float = 0, *, out: Out = None
) -> ExTensor:
    """The standard deviation along axes: the root of `variance`.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.std(ex.tensor([1.0, 3.0]))
    ExTensor(1., dtype=float32)
    """
    return _reduce.variance("std", x, axis, keepdims, ddof, out, True)


def std_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    output: ArrayLike,
    axis: Axis = None,
    ddof: float = 0,
    *,
    out: Out = None,
) -> ExTensor:
    """Gradient of `std`: g·(x − mean) / (output·max(n − ddof, 0)), 0 where output is 0.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.std_backward(ex.tensor(1.0), ex.tensor([1.0, 3.0]), ex.tensor(1.0))
    ExTensor([-0.5,  0.5], dtype=float32)
    """
    return _reduce.variance_backward("std_backward", grad_output, x, output, axis, ddof, out, True)


def logsumexp(
    x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, out: Out = None
) -> ExTensor:
    """ln Σ exp(x) along axes, shifted by the maximum; of nothing −inf.

    Examples
    --------
    >>> import extensor as ex
    >>> float(ex.logsumexp(ex.tensor([-1000.0, 1000.0])))
    1000.0
    """
    return _reduce.logsumexp("logsumexp", x, axis, keepdims, out)


def logsumexp_backward(
    grad_output: ArrayLike, x: ArrayLike, output: ArrayLike, axis: Axis = None, *, out: Out = None
) -> ExTensor:
    """Gradient of `logsumexp`: g·exp(x − output), the softmax times g.

    Examples
    --------
    >>> import extensor as ex
    >>> x = ex.tensor([0.0, 0.0])
    >>> ex.logsumexp_backward(ex.tensor(1.0), x, ex.logsumexp(x))
    ExTensor([0.5, 0.5], dtype=float32)
    """
    return _reduce.logsumexp_backward("logsumexp_backward", grad_output, x, output, axis, out)


def argmax(x: ArrayLike, axis: int | None = None, *, out: Out = None) -> ExTensor:
    """The place of the largest element, the first of several; NaN counts as largest.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.argmax(ex.tensor([[1.0, 5.0], [7.0, 4.0]]), axis=1)
    ExTensor([1, 0], dtype=int64)
    """
    return _reduce.position("argmax", x, axis, False, out, False)


def argmin(x: ArrayLike, axis: int | None = None, *, out: Out = None) -> ExTensor:
    """The place of the smallest element, the first of several; NaN counts as smallest.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.argmin(ex.tensor([[1.0, 5.0], [7.0, 4.0]]), axis=1)
    ExTensor([0, 1], dtype=int64)
    """
    return _reduce.position("argmin", x, axis, False, out, True)


def any(x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, out: Out = None) -> ExTensor:
    """Whether any element along axes is not zero; of nothing False.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.any(ex.tensor([[0, 1], [0, 0]]), axis=1)
    ExTensor([ True, False], dtype=bool)
    """
    return _reduce.truth("any", x, axis, keepdims, out, False)


def all(x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, out: Out = None) -> ExTensor:
    """Whether every element along axes is not zero; of nothing True.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.all(ex.tensor([[1, 1], [0, 1]]), axis=1)
    ExTensor([ True, False], dtype=bool)
    """
    return _reduce.truth("all", x, axis, keepdims, out, True)
