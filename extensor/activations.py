"""Activation functions and their gradients.

`sigmoid_backward` and `tanh_backward` take the output of the forward function, the others its
input. `tanh` is the one of `extensor.elementwise`; `softmax` and `log_softmax`, which work on whole
rows, are in ``_softmax.py``.
"""

from __future__ import annotations

import numpy as np

from extensor import _cpu
from extensor._apply import (
    Gradient,
    Op,
    backward,
    call1,
    calln,
    check_needs,
    check_outs,
    empty_tensor,
)
from extensor._softmax import log_softmax, log_softmax_backward, softmax, softmax_backward
from extensor._typing import ArrayLike, Out, Outs
from extensor.elementwise import tanh, tanh_backward
from extensor.tensor import ExTensor, as_array, asarray

__all__ = [
    "elu",
    "elu_backward",
    "gelu",
    "gelu_backward",
    "leaky_relu",
    "leaky_relu_backward",
    "log_softmax",
    "log_softmax_backward",
    "mish",
    "mish_backward",
    "prelu",
    "prelu_backward",
    "relu",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "silu",
    "silu_backward",
    "softmax",
    "softmax_backward",
    "softplus",
    "softplus_backward",
    "swish",
    "swish_backward",
    "tanh",
    "tanh_backward",
]

_blocks = _cpu.kernels("activations")


def _relu_integers(x: np.ndarray, *, out: np.ndarray) -> None:
    np.maximum(x, out.dtype.type(0), out=out)


def _prelu_integers(x: object, alpha: object, *, out: np.ndarray) -> None:
    np.copyto(out, np.where(np.greater(x, 0), x, np.multiply(x, alpha)))  # type: ignore[call-overload]


_RELU = Op("relu", _blocks["relu"], "x", numpy=_relu_integers)
# Integers become float64, as in any division or product with a Python float.
_LEAKY_RELU = Op("leaky_relu", _blocks["leaky_relu"], "x", numpy=np.true_divide, float_only=True)
_PRELU_NUMBER = Op("prelu", _blocks["leaky_relu"], "x", numpy=np.true_divide, float_only=True)
_PRELU = Op("prelu", _blocks["prelu"], "x alpha", numpy=_prelu_integers)
_SIGMOID = Op("sigmoid", _blocks["sigmoid"], "x", cost="math", float_only=True)
_GELU = Op("gelu", _blocks["gelu"], "x", cost="math", float_only=True)
_GELU_TANH = Op("gelu", _blocks["gelu_tanh"], "x", cost="math", float_only=True)
_SWISH = Op("swish", _blocks["swish"], "x", cost="math", float_only=True)
_SILU = Op("silu", _blocks["swish"], "x", cost="math", float_only=True)
_MISH = Op("mish", _blocks["mish"], "x", cost="math", float_only=True)
_ELU = Op("elu", _blocks["elu"], "x", cost="math", float_only=True)
_SOFTPLUS = Op("softplus", _blocks["softplus"], "x", cost="math", float_only=True)

# Gradient blocks on (grad_output, x), (grad_output, output), (grad_output, x, alpha).
_RELU_GRAD = (Gradient(_blocks["relu_grad"], (0, 1)),)
_LEAKY_RELU_GRAD = (Gradient(_blocks["leaky_relu_grad"], (0, 1)),)
_PRELU_GRADS = (
    Gradient(_blocks["prelu_grad_x"], (0, 1, 2)),
    Gradient(_blocks["prelu_grad_alpha"], (0, 1)),
)
_SIGMOID_GRAD = (Gradient(_blocks["sigmoid_grad"], (0, 1)),)
_GELU_GRAD = (Gradient(_blocks["gelu_grad"], (0, 1), "math"),)
_GELU_TANH_GRAD = (Gradient(_blocks["gelu_tanh_grad"], (0, 1), "math"),)
_SWISH_GRAD = (Gradient(_blocks["swish_grad"], (0, 1), "math"),)
_MISH_GRAD = (Gradient(_blocks["mish_grad"], (0, 1), "math"),)
_ELU_GRAD = (Gradient(_blocks["elu_grad"], (0, 1), "math"),)
_SOFTPLUS_GRAD = (Gradient(_blocks["softplus_grad"], (0, 1), "math"),)
_X = ("x",)


def _number(function: str, name: str, value: object) -> float:
    """A parameter that must be one number."""
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{function}: {name} must be a number, not {value!r}"[:200]) from None
    except OverflowError:
        raise OverflowError(f"{function}: {name} is too large for a float") from None


# --- relu and its leaky relatives ---------------------------------------------------------------


def relu(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """max(x, 0), element by element, for every dtype; NaN stays NaN.

    Parameters
    ----------
    x : array_like
        The input.
    out : ExTensor or ndarray, optional
        Where the result goes; may be `x` itself.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.relu(ex.tensor([-1.0, 2.0]))
    ExTensor([0., 2.], dtype=float32)
    """
    return call1(_RELU, x, out)


def relu_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `relu`: g where x > 0, 0 elsewhere.

    Parameters
    ----------
    grad_output : array_like
        Gradient of the result, in its shape; of float16, float32, float64, or int32 and int64
        beside an integer `x`.
    x : array_like
        The input of `relu`.
    out : ExTensor or ndarray, optional
        Where the gradient goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.relu_backward(ex.tensor([1.0, 2.0, 3.0]), ex.tensor([-1.0, 0.0, 1.0]))
    ExTensor([0., 0., 3.], dtype=float32)
    """
    try:
        return backward("relu_backward", _RELU_GRAD, grad_output, (x,), _X, None, None, out)
    except TypeError:
        g = as_array(grad_output, "relu_backward", "grad_output")
        saved = as_array(x, "relu_backward", "x")
        if g.dtype not in (np.int32, np.int64) or saved.dtype.kind not in "iu":
            raise
    return _relu_integer_backward(g, saved, out)


def _relu_integer_backward(g: np.ndarray, x: np.ndarray, out: Out) -> ExTensor:
    if g.shape != x.shape:
        raise ValueError(
            f"relu_backward: grad_output has shape {g.shape}, "
            f"the forward result has shape {x.shape}"
        )
    result = out
    if out is None:
        result = empty_tensor("relu_backward", g.shape, g.dtype)
    elif not isinstance(out, (ExTensor, np.ndarray)):
        raise TypeError(
            f"relu_backward: out must be an ExTensor or ndarray, not {type(out).__name__}"
        )
    place = np.asarray(result)
    if place.shape != g.shape:
        raise ValueError(f"relu_backward: out has shape {place.shape}, the result has {g.shape}")
    if place.dtype != g.dtype:
        raise TypeError(f"relu_backward: out has dtype {place.dtype}, the result has {g.dtype}")
    if not place.flags.writeable:
        raise ValueError("relu_backward: out is read-only")
    np.copyto(place, np.where(x > 0, g, g.dtype.type(0)))
    return result if isinstance(result, ExTensor) else asarray(place)


def leaky_relu(x: ArrayLike, alpha: float = 0.01, *, out: Out = None) -> ExTensor:
    """x where x > 0, alpha·x elsewhere.

    Parameters
    ----------
    x : array_like
        The input; integers become float64.
    alpha : float, optional
        Slope below zero; any number.
    out : ExTensor or ndarray, optional
        Where the result goes; may be `x` itself.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.leaky_relu(ex.tensor([-1.0, 2.0]), 0.25)
    ExTensor([-0.25,  2.  ], dtype=float32)
    """
    if type(alpha) is not float:
        alpha = _number("leaky_relu", "alpha", alpha)
    return call1(_LEAKY_RELU, x, out, (alpha,))


def leaky_relu_backward(
    grad_output: ArrayLike, x: ArrayLike, alpha: float = 0.01, *, out: Out = None
) -> ExTensor:
    """Gradient of `leaky_relu`: g where x > 0, alpha·g elsewhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.leaky_relu_backward(ex.tensor([1.0, 2.0]), ex.tensor([-1.0, 1.0]), 0.25)
    ExTensor([0.25, 2.  ], dtype=float32)
    """
    if type(alpha) is not float:
        alpha = _number("leaky_relu_backward", "alpha", alpha)
    return backward(
        "leaky_relu_backward",
        _LEAKY_RELU_GRAD,
        grad_output,
        (x,),
        _X,
        None,
        None,
        out,
        (alpha,),
    )


def _alpha_shape(
    function: str, shape: tuple[int, ...], alpha_shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape in which prelu's alpha broadcasts to x, or an error."""
    if len(shape) == 2 and alpha_shape == shape[1:] and alpha_shape[0] != 1:
        return alpha_shape  # the common case: one slope for each column
    if all(size == 1 for size in alpha_shape):
        return ()
    if len(alpha_shape) == 1 and len(shape) >= 2:
        fits = alpha_shape[0] == shape[1]
        result = (*alpha_shape, *(1 for _ in shape[2:]))
        wanted = f"have shape ({shape[1]},), one slope for each of axis 1"
    else:
        try:
            fits = np.broadcast_shapes(shape, alpha_shape) == shape
        except ValueError:
            fits = False
        result = alpha_shape
        wanted = "broadcast to the shape of x"
    if not fits:
        raise ValueError(
            f"{function}: x has shape {shape} and alpha has shape {alpha_shape}; alpha must hold "
            f"one element or {wanted}"
        )
    return result


def prelu(x: ArrayLike, alpha: ArrayLike, *, out: Out = None) -> ExTensor:
    """x where x > 0, alpha·x elsewhere, with a tensor of slopes.

    Parameters
    ----------
    x : array_like
        The input.
    alpha : array_like
        The slopes. One element is a scalar. Any other 1-D alpha beside an `x` of two or more axes
        has length ``x.shape[1]`` and belongs to axis 1. Anything else broadcasts to the shape of
        `x`.
    out : ExTensor or ndarray, optional
        Where the result goes; may be `x` itself.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.prelu(ex.tensor([[-1.0, -1.0], [2.0, 2.0]]), ex.tensor([0.5, 0.25]))
    ExTensor([[-0.5 , -0.25],
              [ 2.  ,  2.  ]], dtype=float32)
    """
    if type(alpha) is float:
        return call1(_PRELU_NUMBER, x, out, (alpha,))
    if type(alpha) is not int and type(alpha) is not bool:
        slopes = as_array(alpha, "prelu", "alpha")
        shape = _alpha_shape("prelu", as_array(x, "prelu", "x").shape, slopes.shape)
        alpha = slopes if shape == slopes.shape else slopes.reshape(shape)
    return calln(_PRELU, (x, alpha), out)


def prelu_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    alpha: ArrayLike,
    *,
    needs: tuple[bool, bool] | None = None,
    out: Outs = None,
) -> tuple[ExTensor | None, ...]:
    """Gradients of `prelu`: g or alpha·g for x, Σ g·x over x ≤ 0 for alpha, in its shape.

    Examples
    --------
    >>> import extensor as ex
    >>> g, x = ex.tensor([[1.0, 2.0], [3.0, 4.0]]), ex.tensor([[-1.0, -1.0], [2.0, -3.0]])
    >>> gx, galpha = ex.prelu_backward(g, x, ex.tensor([0.5, 0.25]))
    >>> galpha
    ExTensor([ -1., -14.], dtype=float32)
    """
    function = "prelu_backward"
    names = ("x", "alpha")
    if type(alpha) in (float, int, bool):
        return backward(function, _PRELU_GRADS, grad_output, (x, alpha), names, None, needs, out)
    slopes = as_array(alpha, function, "alpha")
    shape = _alpha_shape(function, as_array(x, function, "x").shape, slopes.shape)
    if shape == slopes.shape:
        return backward(function, _PRELU_GRADS, grad_output, (x, slopes), names, None, needs, out)
    # The gradient of alpha is computed in the shape that broadcasts, into memory of alpha's shape.
    saved = (x, slopes.reshape(shape))
    wanted = check_needs(function, needs, 2)
    grad_x, grad_alpha = (None, None) if out is None else check_outs(function, out, 2)
    if wanted[1] and grad_alpha is None:
        dtype = slopes.dtype
        if dtype.kind != "f":
            dtype = as_array(grad_output, function, "grad_output").dtype
        grad_alpha = empty_tensor(function, slopes.shape, dtype)
    seen = grad_alpha
    if isinstance(grad_alpha, (ExTensor, np.ndarray)):
        if grad_alpha.shape != slopes.shape:
            raise ValueError(
                f"{function}: out has shape {grad_alpha.shape}, the gradient of alpha has shape "
                f"{slopes.shape}"
            )
        seen = np.asarray(grad_alpha).reshape(shape)
    results = backward(
        function, _PRELU_GRADS, grad_output, saved, names, None, needs, (grad_x, seen)
    )
    if not wanted[1]:
        return results
    return (results[0], grad_alpha if isinstance(grad_alpha, ExTensor) else asarray(grad_alpha))


# --- sigmoid ------------------------------------------------------------------------------------


def sigmoid(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """1/(1 + e⁻ˣ), element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sigmoid(ex.tensor([0.0, 2.0])).numpy().round(4)
    array([0.5   , 0.8808], dtype=float32)
    """
    return call1(_SIGMOID, x, out)


def sigmoid_backward(grad_output: ArrayLike, output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `sigmoid` from its output y: g·y·(1 − y).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sigmoid_backward(ex.tensor([1.0, 2.0]), ex.tensor([0.5, 0.25]))
    ExTensor([0.25 , 0.375], dtype=float32)
    """
    return backward(
        "sigmoid_backward", _SIGMOID_GRAD, grad_output, (output,), ("output",), None, None, out
    )


# --- softmax and log_softmax work on whole rows: see _softmax.py --------------------------------
# --- smooth functions ---------------------------------------------------------------------------


def _checked_form(function: str, approximate: object) -> bool:
    if not isinstance(approximate, (bool, np.bool_)):
        raise TypeError(f"{function}: approximate must be True or False, not {approximate!r}")
    return bool(approximate)


def gelu(x: ArrayLike, approximate: bool = False, *, out: Out = None) -> ExTensor:
    """x·Φ(x), Φ the standard normal distribution: x/2·(1 + erf(x/√2)).

    Accurate over the whole range: far below zero the formula is not evaluated as it stands.

    Parameters
    ----------
    x : array_like
        The input.
    approximate : bool, optional
        The form with tanh instead: x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
    out : ExTensor or ndarray, optional
        Where the result goes; may be `x` itself.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.gelu(ex.tensor([-1.0, 0.0, 1.0])).numpy().round(4)
    array([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    if type(approximate) is not bool:
        approximate = _checked_form("gelu", approximate)
    return call1(_GELU_TANH if approximate else _GELU, x, out)


def gelu_backward(
    grad_output: ArrayLike, x: ArrayLike, approximate: bool = False, *, out: Out = None
) -> ExTensor:
    """Gradient of `gelu`: g·(Φ(x) + x·φ(x)), or that of the tanh form.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.gelu_backward(ex.tensor([1.0, 1.0]), ex.tensor([0.0, 1.0])).numpy().round(4)
    array([0.5   , 1.0833], dtype=float32)
    """
    if type(approximate) is not bool:
        approximate = _checked_form("gelu_backward", approximate)
    gradient = _GELU_TANH_GRAD if approximate else _GELU_GRAD
    return backward("gelu_backward", gradient, grad_output, (x,), _X, None, None, out)


def swish(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """x·sigmoid(x), also called silu.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.swish(ex.tensor([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7311], dtype=float32)
    """
    return call1(_SWISH, x, out)


def swish_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `swish`: g·s·(1 + x·(1 − s)), s = sigmoid(x).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.swish_backward(ex.tensor([1.0, 1.0]), ex.tensor([0.0, 1.0])).numpy().round(4)
    array([0.5   , 0.9277], dtype=float32)
    """
    return backward("swish_backward", _SWISH_GRAD, grad_output, (x,), _X, None, None, out)


def silu(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """x·sigmoid(x): another name of `swish`.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.silu(ex.tensor([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7311], dtype=float32)
    """
    return call1(_SILU, x, out)


def silu_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `silu`: another name of `swish_backward`.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.silu_backward(ex.tensor([1.0]), ex.tensor([0.0]))
    ExTensor([0.5], dtype=float32)
    """
    return backward("silu_backward", _SWISH_GRAD, grad_output, (x,), _X, None, None, out)


def mish(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """x·tanh(softplus(x)), element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.mish(ex.tensor([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8651], dtype=float32)
    """
    return call1(_MISH, x, out)


def mish_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `mish`: g·(t + x·(1 − t²)·sigmoid(x)), t = tanh(softplus(x)).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.mish_backward(ex.tensor([1.0]), ex.tensor([0.0]))
    ExTensor([0.6], dtype=float32)
    """
    return backward("mish_backward", _MISH_GRAD, grad_output, (x,), _X, None, None, out)


def elu(x: ArrayLike, alpha: float = 1.0, *, out: Out = None) -> ExTensor:
    """x where x > 0, alpha·(eˣ − 1) elsewhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.elu(ex.tensor([-1.0, 2.0])).numpy().round(4)
    array([-0.6321,  2.    ], dtype=float32)
    """
    if type(alpha) is not float:
        alpha = _number("elu", "alpha", alpha)
    return call1(_ELU, x, out, (alpha,))


def elu_backward(
    grad_output: ArrayLike, x: ArrayLike, alpha: float = 1.0, *, out: Out = None
) -> ExTensor:
    """Gradient of `elu`: g where x > 0, g·alpha·eˣ elsewhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.elu_backward(ex.tensor([1.0, 1.0]), ex.tensor([0.0, 2.0]), 0.5)
    ExTensor([0.5, 1. ], dtype=float32)
    """
    if type(alpha) is not float:
        alpha = _number("elu_backward", "alpha", alpha)
    return backward("elu_backward", _ELU_GRAD, grad_output, (x,), _X, None, None, out, (alpha,))


def softplus(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """ln(1 + eˣ), without overflow.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.softplus(ex.tensor([0.0, 100.0])).numpy().round(4)
    array([  0.6931, 100.    ], dtype=float32)
    """
    return call1(_SOFTPLUS, x, out)


def softplus_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `softplus`: g·sigmoid(x).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.softplus_backward(ex.tensor([2.0]), ex.tensor([0.0]))
    ExTensor([1.], dtype=float32)
    """
    return backward("softplus_backward", _SOFTPLUS_GRAD, grad_output, (x,), _X, None, None, out)
