"""Arithmetic with NumPy broadcasting, and the gradient of every function.

Each ``<op>_backward(grad_output, …)`` returns the gradients in the order of the inputs, each in
the shape of its input: where an operand was broadcast, its gradient is summed back while it is
computed. ``needs`` says which gradients are wanted; the others come back as None.
"""

from __future__ import annotations

import numpy as np

from extensor import _cpu
from extensor._apply import IDENTITY, Gradient, Op, backward, call1, call2, calln
from extensor._typing import ArrayLike, Out, Outs, Shape
from extensor.tensor import ExTensor, as_array

__all__ = [
    "add",
    "add_backward",
    "divide",
    "divide_backward",
    "floor_divide",
    "floor_divide_backward",
    "maximum",
    "maximum_backward",
    "minimum",
    "minimum_backward",
    "modulo",
    "modulo_backward",
    "multiply",
    "multiply_backward",
    "negative",
    "negative_backward",
    "power",
    "power_backward",
    "reciprocal",
    "reciprocal_backward",
    "subtract",
    "subtract_backward",
    "where",
    "where_backward",
]

_blocks = _cpu.kernels("arithmetic")


def _where_integers(cond: object, a: object, b: object, *, out: np.ndarray) -> None:
    np.copyto(out, np.where(cond, a, b))  # type: ignore[call-overload]


_ADD = Op("add", _blocks["add"], "a b", numpy=np.add)
_SUBTRACT = Op("subtract", _blocks["subtract"], "a b", numpy=np.subtract)
_MULTIPLY = Op("multiply", _blocks["multiply"], "a b", numpy=np.multiply)
_DIVIDE = Op(
    "divide", _blocks["divide"], "a b", cost="divide", numpy=np.true_divide, float_only=True
)
_POWER = Op("power", _blocks["power"], "a b", cost="heavy", numpy=np.power)
_FLOOR_DIVIDE = Op(
    "floor_divide", _blocks["floor_divide"], "a b", cost="math", numpy=np.floor_divide
)
_MODULO = Op("modulo", _blocks["modulo"], "a b", cost="math", numpy=np.remainder)
_NEGATIVE = Op("negative", _blocks["negative"], "a", numpy=np.negative)
_RECIPROCAL = Op("reciprocal", _blocks["reciprocal"], "a", cost="divide", numpy=np.reciprocal)
_MAXIMUM = Op("maximum", _blocks["maximum"], "a b", numpy=np.maximum)
_MINIMUM = Op("minimum", _blocks["minimum"], "a b", numpy=np.minimum)
_WHERE = Op("where", _blocks["where"], "cond a b", numpy=_where_integers, mask_first=True)

# Gradient blocks on (grad_output, a, b), or (grad_output, cond).
_NEGATED = Gradient(_blocks["negative"], (0,))
_ZERO = Gradient(_blocks["zero"], ())  # reads nothing
_MULTIPLY_GRADS = (Gradient(_blocks["multiply"], (0, 2)), Gradient(_blocks["multiply"], (0, 1)))
_DIVIDE_GRADS = (
    Gradient(_blocks["divide"], (0, 2), "divide"),
    Gradient(_blocks["divide_grad_b"], (0, 1, 2), "divide"),
)
_POWER_GRADS = (
    Gradient(_blocks["power_grad_a"], (0, 1, 2), "heavy"),
    Gradient(_blocks["power_grad_b"], (0, 1, 2), "heavy"),
)
_MODULO_GRADS = (IDENTITY, Gradient(_blocks["modulo_grad_b"], (0, 1, 2), "math"))
_RECIPROCAL_GRAD = (Gradient(_blocks["reciprocal_grad"], (0, 1)),)
_MAXIMUM_GRADS = (
    Gradient(_blocks["maximum_grad"], (0, 1, 2)),
    Gradient(_blocks["maximum_grad"], (0, 2, 1)),
)
_MINIMUM_GRADS = (
    Gradient(_blocks["minimum_grad"], (0, 1, 2)),
    Gradient(_blocks["minimum_grad"], (0, 2, 1)),
)
_WHERE_GRADS = (
    Gradient(_blocks["where_grad_a"], (0, 1), mask=True),
    Gradient(_blocks["where_grad_b"], (0, 1), mask=True),
)
_ADD_GRADS = (IDENTITY, IDENTITY)
_SUBTRACT_GRADS = (IDENTITY, _NEGATED)
_AB = ("a", "b")
_SHAPES = ("a_shape", "b_shape")


def _of_operands(
    function: str,
    gradients: tuple[Gradient, ...],
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    needs: tuple[bool, ...] | None,
    out: Outs,
    params: tuple[float, ...] = (),
) -> tuple[ExTensor | None, ...]:
    """Gradients that depend on grad_output and both operands."""
    return backward(function, gradients, grad_output, (a, b), _AB, None, needs, out, params)


def add(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a + b, element by element.

    Parameters
    ----------
    a, b : array_like
        Operands; broadcast as in NumPy.
    out : ExTensor or ndarray, optional
        Where the result goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.add(ex.tensor([[1.0], [2.0]]), ex.tensor([10.0, 20.0]))
    ExTensor([[11., 21.],
              [12., 22.]], dtype=float32)
    """
    return call2(_ADD, a, b, out)


def add_backward(
    grad_output: ArrayLike,
    a_shape: Shape | ArrayLike,
    b_shape: Shape | ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `add`: g to each operand, summed where it was broadcast.

    Parameters
    ----------
    grad_output : array_like
        Gradient of the result, in its shape.
    a_shape, b_shape : shape or tensor
        The operands or their shapes.
    needs : tuple of bool, optional
        Which gradients to compute.
    out : tuple, optional
        Where they go.

    Examples
    --------
    >>> import extensor as ex
    >>> ga, gb = ex.add_backward(ex.tensor([[1.0, 2.0], [3.0, 4.0]]), (2, 2), (2,))
    >>> gb
    ExTensor([4., 6.], dtype=float32)
    """
    shapes = (a_shape, b_shape)
    return backward("add_backward", _ADD_GRADS, grad_output, (), _SHAPES, shapes, needs, out)


def subtract(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a − b, element by element; a TypeError for bools.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.subtract(ex.tensor([5, 7]), 2)
    ExTensor([3, 5], dtype=int64)
    """
    return call2(_SUBTRACT, a, b, out)


def subtract_backward(
    grad_output: ArrayLike,
    a_shape: Shape | ArrayLike,
    b_shape: Shape | ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `subtract`: g and −g, summed where an operand was broadcast.

    Examples
    --------
    >>> import extensor as ex
    >>> ga, gb = ex.subtract_backward(ex.tensor([1.0, 2.0]), (2,), ())
    >>> gb
    ExTensor(-3., dtype=float32)
    """
    shapes = (a_shape, b_shape)
    return backward(
        "subtract_backward", _SUBTRACT_GRADS, grad_output, (), _SHAPES, shapes, needs, out
    )


def multiply(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a·b, element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.multiply(ex.tensor([1.0, 2.0]), ex.tensor([3.0, 4.0]))
    ExTensor([3., 8.], dtype=float32)
    """
    return call2(_MULTIPLY, a, b, out)


def multiply_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `multiply`: g·b and g·a.

    Examples
    --------
    >>> import extensor as ex
    >>> g = ex.tensor([1.0, 10.0])
    >>> ga, gb = ex.multiply_backward(g, ex.tensor([1.0, 2.0]), ex.tensor([3.0, 4.0]))
    >>> ga
    ExTensor([ 3., 40.], dtype=float32)
    >>> gb
    ExTensor([ 1., 20.], dtype=float32)
    """
    return _of_operands("multiply_backward", _MULTIPLY_GRADS, grad_output, a, b, needs, out)


def divide(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a/b, element by element; integers give float64.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.divide(ex.tensor([1.0, 3.0]), 2)
    ExTensor([0.5, 1.5], dtype=float32)
    """
    return call2(_DIVIDE, a, b, out)


def divide_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    eps: float = 1e-10,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `divide`: g/b and −(g/b)·(a/b).

    Where abs(b) < √eps the second is −g·a/eps, so that it stays bounded; ``eps=0`` gives the bare
    formula.

    Examples
    --------
    >>> import extensor as ex
    >>> ga, gb = ex.divide_backward(ex.tensor([1.0]), ex.tensor([3.0]), ex.tensor([2.0]))
    >>> ga, gb
    (ExTensor([0.5], dtype=float32), ExTensor([-0.75], dtype=float32))
    """
    eps = check_eps("divide_backward", eps)
    params = (eps, eps**0.5)
    return _of_operands("divide_backward", _DIVIDE_GRADS, grad_output, a, b, needs, out, params)


def check_eps(function: str, eps: float) -> float:
    """The guard parameter of a backward function: a number, not negative, not NaN."""
    if isinstance(eps, str) or eps is None:
        raise TypeError(f"{function}: eps must be a number, not {eps!r}")
    eps = float(eps)
    if not eps >= 0:
        raise ValueError(f"{function}: eps must not be negative or NaN, got {eps}")
    return eps


def power(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a to the power b, element by element, for any real exponent.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.power(ex.tensor([2.0, 9.0]), ex.tensor([3.0, 0.5]))
    ExTensor([8., 3.], dtype=float32)
    """
    return call2(_POWER, a, b, out)


def power_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `power`: g·b·a^(b−1) and g·a^b·ln a.

    The first is 0 where b = 0; the second is 0 where a = 0 and b ≥ 0, and NaN where a < 0.

    Examples
    --------
    >>> import extensor as ex
    >>> ga, gb = ex.power_backward(ex.tensor([1.0]), ex.tensor([3.0]), ex.tensor([2.0]))
    >>> ga
    ExTensor([6.], dtype=float32)
    """
    return _of_operands("power_backward", _POWER_GRADS, grad_output, a, b, needs, out)


def floor_divide(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """The largest whole number not above a/b; integer division by zero gives 0.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.floor_divide(ex.tensor([7, -7]), 2)
    ExTensor([ 3, -4], dtype=int64)
    """
    return call2(_FLOOR_DIVIDE, a, b, out)


def floor_divide_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `floor_divide`: zero everywhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.floor_divide_backward(ex.tensor([1.0]), ex.tensor([7.0]), 2, needs=(True, False))
    (ExTensor([0.], dtype=float32), None)
    """
    return _of_operands("floor_divide_backward", (_ZERO, _ZERO), grad_output, a, b, needs, out)


def modulo(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a − b·⌊a/b⌋ with the sign of b, exact on floats; integer modulo by zero gives 0.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.modulo(ex.tensor([7, -7]), 3)
    ExTensor([1, 2], dtype=int64)
    """
    return call2(_MODULO, a, b, out)


def modulo_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `modulo`: g and −g·⌊a/b⌋.

    Examples
    --------
    >>> import extensor as ex
    >>> ga, gb = ex.modulo_backward(ex.tensor([1.0]), ex.tensor([7.0]), ex.tensor([3.0]))
    >>> gb
    ExTensor([-2.], dtype=float32)
    """
    return _of_operands("modulo_backward", _MODULO_GRADS, grad_output, a, b, needs, out)


def negative(a: ArrayLike, *, out: Out = None) -> ExTensor:
    """−a, element by element; a TypeError for bools.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.negative(ex.tensor([1.0, -2.0]))
    ExTensor([-1.,  2.], dtype=float32)
    """
    return call1(_NEGATIVE, a, out)


def negative_backward(grad_output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `negative`: −g.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.negative_backward(ex.tensor([1.0, -2.0]))
    ExTensor([-1.,  2.], dtype=float32)
    """
    return backward("negative_backward", (_NEGATED,), grad_output, (), (), (), None, out)


def reciprocal(a: ArrayLike, *, out: Out = None) -> ExTensor:
    """1/a, element by element; of an integer the whole part, of integer zero 0.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.reciprocal(ex.tensor([2.0, -4.0]))
    ExTensor([ 0.5 , -0.25], dtype=float32)
    """
    return call1(_RECIPROCAL, a, out)


def reciprocal_backward(grad_output: ArrayLike, output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `reciprocal` from its output y: −g·y².

    Examples
    --------
    >>> import extensor as ex
    >>> ex.reciprocal_backward(ex.tensor([1.0]), ex.tensor([0.5]))
    ExTensor([-0.25], dtype=float32)
    """
    name = "reciprocal_backward"
    return backward(name, _RECIPROCAL_GRAD, grad_output, (output,), ("output",), None, None, out)


def maximum(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """The larger of a and b, element by element; NaN where either is NaN.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.maximum(ex.tensor([1.0, 5.0]), ex.tensor([3.0, 2.0]))
    ExTensor([3., 5.], dtype=float32)
    """
    return call2(_MAXIMUM, a, b, out)


def maximum_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `maximum`: g to the larger operand, half to each where they are equal.

    Examples
    --------
    >>> import extensor as ex
    >>> g = ex.tensor([1.0, 1.0])
    >>> ga, gb = ex.maximum_backward(g, ex.tensor([1.0, 2.0]), ex.tensor([3.0, 2.0]))
    >>> ga, gb
    (ExTensor([0. , 0.5], dtype=float32), ExTensor([1. , 0.5], dtype=float32))
    """
    return _of_operands("maximum_backward", _MAXIMUM_GRADS, grad_output, a, b, needs, out)


def minimum(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """The smaller of a and b, element by element; NaN where either is NaN.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.minimum(ex.tensor([1.0, 5.0]), ex.tensor([3.0, 2.0]))
    ExTensor([1., 2.], dtype=float32)
    """
    return call2(_MINIMUM, a, b, out)


def minimum_backward(
    grad_output: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `minimum`: g to the smaller operand, half to each where they are equal.

    Examples
    --------
    >>> import extensor as ex
    >>> g = ex.tensor([1.0, 1.0])
    >>> ga, gb = ex.minimum_backward(g, ex.tensor([1.0, 2.0]), ex.tensor([3.0, 2.0]))
    >>> ga, gb
    (ExTensor([1. , 0.5], dtype=float32), ExTensor([0. , 0.5], dtype=float32))
    """
    return _of_operands("minimum_backward", _MINIMUM_GRADS, grad_output, a, b, needs, out)


def where(cond: ArrayLike, a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a where the condition holds, b elsewhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.where(ex.tensor([True, False]), ex.tensor([1.0, 2.0]), 0.0)
    ExTensor([1., 0.], dtype=float32)
    """
    return calln(_WHERE, (cond, a, b), out)


def where_backward(
    grad_output: ArrayLike,
    cond: ArrayLike,
    a_shape: Shape | ArrayLike,
    b_shape: Shape | ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `where`: g to a where the condition holds, to b elsewhere.

    Examples
    --------
    >>> import extensor as ex
    >>> g = ex.tensor([1.0, 2.0])
    >>> ga, gb = ex.where_backward(g, ex.tensor([True, False]), (2,), ())
    >>> ga, gb
    (ExTensor([1., 0.], dtype=float32), ExTensor(2., dtype=float32))
    """
    function = "where_backward"
    mask = np.asarray(cond) if isinstance(cond, bool) else as_array(cond, function, "cond")
    saved = (mask.astype(bool, copy=False),)
    targets, names = (a_shape, b_shape), ("cond", "a_shape", "b_shape")
    return backward(function, _WHERE_GRADS, grad_output, saved, names, targets, needs, out)
