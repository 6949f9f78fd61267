"""Matrix products on this library's own gemm, and their gradients without a copied transpose."""

from __future__ import annotations

from collections.abc import Sequence

from extensor import _matrix
from extensor._shape import quick_transpose
from extensor._typing import ArrayLike, Out, Outs
from extensor.tensor import ExTensor

__all__ = [
    "dot",
    "dot_backward",
    "linear",
    "linear_backward",
    "matmul",
    "matmul_backward",
    "outer",
    "outer_backward",
    "transpose",
    "transpose_backward",
]


def matmul(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """The matrix product a·b with NumPy's semantics.

    Vectors stand for a row on the left and a column on the right; leading axes are batches and
    broadcast.

    Parameters
    ----------
    a, b : array_like
        (…, m, k) or (k,), and (…, k, n) or (k,).
    out : ExTensor or ndarray, optional
        Where the result goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.matmul(ex.tensor([[1.0, 2.0], [3.0, 4.0]]), ex.tensor([1.0, 10.0]))
    ExTensor([21., 43.], dtype=float32)
    """
    return _matrix.matmul("matmul", a, b, out)


def matmul_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `matmul`: g·bᵀ and aᵀ·g, summed over batches an operand was broadcast along.

    Examples
    --------
    >>> import extensor as ex
    >>> a, b = ex.tensor([[1.0, 2.0]]), ex.tensor([[3.0], [4.0]])
    >>> ex.matmul_backward(ex.tensor([[10.0]]), a, b)[0]
    ExTensor([[30., 40.]], dtype=float32)
    """
    return _matrix.matmul_backward("matmul_backward", grad_output, a, b, needs, out)


def dot(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """Σ a·b of two vectors.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.dot(ex.tensor([1.0, 2.0]), ex.tensor([3.0, 4.0]))
    ExTensor(11., dtype=float32)
    """
    return _matrix.matmul("dot", a, b, out, 1)


def dot_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `dot`: g·b and g·a.

    Examples
    --------
    >>> import extensor as ex
    >>> ga, gb = ex.dot_backward(ex.tensor(2.0), ex.tensor([1.0, 2.0]), ex.tensor([3.0, 4.0]))
    >>> ga
    ExTensor([6., 8.], dtype=float32)
    """
    return _matrix.matmul_backward("dot_backward", grad_output, a, b, needs, out, 1)


def outer(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """The table of products aᵢ·bⱼ of two vectors.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.outer(ex.tensor([1.0, 2.0]), ex.tensor([3.0, 4.0]))
    ExTensor([[3., 4.],
              [6., 8.]], dtype=float32)
    """
    return _matrix.outer("outer", a, b, out)


def outer_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `outer`: g·b and gᵀ·a.

    Examples
    --------
    >>> import extensor as ex
    >>> ga, gb = ex.outer_backward(ex.ones((2, 2)), ex.tensor([1.0, 2.0]), ex.tensor([3.0, 4.0]))
    >>> ga, gb
    (ExTensor([7., 7.], dtype=float32), ExTensor([3., 3.], dtype=float32))
    """
    return _matrix.outer_backward("outer_backward", grad_output, a, b, needs, out)


def linear(
    x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, *, out: Out = None
) -> ExTensor:
    """x·weightᵀ + bias over the last axis of x; weight has shape (out, in).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.linear(ex.tensor([[1.0, 2.0]]), ex.tensor([[3.0, 4.0]]), ex.tensor([0.5]))
    ExTensor([[11.5]], dtype=float32)
    """
    return _matrix.linear("linear", x, weight, bias, out)


def linear_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike,
    *,
    needs: tuple[bool, bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `linear` for x, weight and bias: g·weight, gᵀ·x and Σ g.

    Examples
    --------
    >>> import extensor as ex
    >>> x, weight = ex.tensor([[1.0, 2.0]]), ex.tensor([[3.0, 4.0]])
    >>> grad_x, grad_weight, grad_bias = ex.linear_backward(ex.tensor([[10.0]]), x, weight)
    >>> grad_x, grad_bias
    (ExTensor([[30., 40.]], dtype=float32), ExTensor([10.], dtype=float32))
    """
    return _matrix.linear_backward("linear_backward", grad_output, x, weight, needs, out)


def transpose(x: ArrayLike, axes: Sequence[int] | None = None) -> ExTensor:
    """A view with the axes reversed, or in a given order.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.transpose(ex.zeros((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    view = quick_transpose(x, axes, False)
    return _matrix.transpose("transpose", x, axes) if view is None else view


def transpose_backward(grad_output: ArrayLike, axes: Sequence[int] | None = None) -> ExTensor:
    """Gradient of `transpose`: a view with the axes back in their order.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.transpose_backward(ex.zeros((3, 4, 2)), (1, 2, 0)).shape
    (2, 3, 4)
    """
    view = quick_transpose(grad_output, axes, True)
    if view is not None:
        return view
    return _matrix.transpose_backward("transpose_backward", grad_output, axes)
