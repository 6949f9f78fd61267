"""Element-wise functions of one tensor, clipping, rounding and logic, and their gradients.

Gradients are computed from the output where that is enough (`exp_backward`, `sqrt_backward`,
`tanh_backward`), else from the input. Integers are treated as NumPy treats them: functions that
have integer results keep the dtype, the others convert as ``np.exp`` does.
"""

from __future__ import annotations

import math

import numpy as np

from extensor import _cpu
from extensor._apply import Gradient, Op, backward, call1, call2, calln
from extensor._logic import Logic, logic1, logic2
from extensor._typing import ArrayLike, Out
from extensor.arithmetic import check_eps
from extensor.tensor import ExTensor, as_array

__all__ = [
    "abs",
    "abs_backward",
    "ceil",
    "ceil_backward",
    "clip",
    "clip_backward",
    "cos",
    "cos_backward",
    "erf",
    "erf_backward",
    "exp",
    "exp_backward",
    "expm1",
    "expm1_backward",
    "floor",
    "floor_backward",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log1p_backward",
    "log2",
    "log2_backward",
    "log10",
    "log10_backward",
    "log_backward",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "round",
    "round_backward",
    "sign",
    "sign_backward",
    "sin",
    "sin_backward",
    "sqrt",
    "sqrt_backward",
    "square",
    "square_backward",
    "tanh",
    "tanh_backward",
    "trunc",
    "trunc_backward",
]

_blocks = _cpu.kernels("elementwise")
_arithmetic = _cpu.kernels("arithmetic")


def _unchanged(x: object, *, out: np.ndarray) -> None:
    np.copyto(out, x)  # type: ignore[arg-type]


def _clip_integers(x: object, low: object, high: object, *, out: np.ndarray) -> None:
    np.minimum(np.maximum(x, low), high, out=out)  # type: ignore[call-overload]


_ABS = Op("abs", _blocks["absolute"], "x", numpy=np.absolute)
_SIGN = Op("sign", _blocks["sign"], "x", numpy=np.sign)
_SQUARE = Op("square", _blocks["square"], "x", numpy=np.square)
_SQRT = Op("sqrt", _blocks["sqrt"], "x", cost="divide", float_only=True)
_EXP = Op("exp", _blocks["exp"], "x", cost="math", float_only=True)
_EXPM1 = Op("expm1", _blocks["expm1"], "x", cost="math", float_only=True)
_LOG = Op("log", _blocks["log"], "x", cost="math", float_only=True)
_LOG1P = Op("log1p", _blocks["log1p"], "x", cost="math", float_only=True)
_LOG2 = Op("log2", _blocks["log2"], "x", cost="math", float_only=True)
_LOG10 = Op("log10", _blocks["log10"], "x", cost="math", float_only=True)
_SIN = Op("sin", _blocks["sin"], "x", cost="math", float_only=True)
_COS = Op("cos", _blocks["cos"], "x", cost="math", float_only=True)
_TANH = Op("tanh", _blocks["tanh"], "x", cost="math", float_only=True)
_ERF = Op("erf", _blocks["erf"], "x", cost="math", float_only=True)
_CEIL = Op("ceil", _blocks["ceil"], "x", numpy=_unchanged)
_FLOOR = Op("floor", _blocks["floor"], "x", numpy=_unchanged)
_ROUND = Op("round", _blocks["round_even"], "x", numpy=_unchanged)
_TRUNC = Op("trunc", _blocks["trunc"], "x", numpy=_unchanged)
_ISNAN = Op("isnan", _blocks["isnan"], "x", numpy=np.isnan, gives_bool=True)
_ISINF = Op("isinf", _blocks["isinf"], "x", numpy=np.isinf, gives_bool=True)
_ISFINITE = Op("isfinite", _blocks["isfinite"], "x", numpy=np.isfinite, gives_bool=True)
_AND = Logic(
    Op("logical_and", _blocks["logical_and"], "a b", numpy=np.logical_and, gives_bool=True)
)
_OR = Logic(
    Op("logical_or", _blocks["logical_or"], "a b", numpy=np.logical_or, gives_bool=True)
)
_XOR = Logic(
    Op("logical_xor", _blocks["logical_xor"], "a b", numpy=np.logical_xor, gives_bool=True)
)
_NOT = Logic(
    Op("logical_not", _blocks["logical_not"], "x", numpy=np.logical_not, gives_bool=True)
)
# Bounds as parameters (Python numbers beside floats), or as operands of any dtype and shape.
_CLIP = Op("clip", _blocks["clip"], "x")
_CLIP_NOT = Op("clip", _arithmetic["copy"], "x", numpy=_unchanged)
_CLIP_LOW = Op("clip", _arithmetic["maximum"], "x min", numpy=np.maximum)
_CLIP_HIGH = Op("clip", _arithmetic["minimum"], "x max", numpy=np.minimum)
_CLIP_BOTH = Op("clip", _blocks["clip_between"], "x min max", numpy=_clip_integers)

# Gradient blocks on (grad_output, x) or (grad_output, output).
_ZERO = (Gradient(_arithmetic["zero"], ()),)  # reads nothing
_ABS_GRAD = (Gradient(_blocks["absolute_grad"], (0, 1)),)
_SQUARE_GRAD = (Gradient(_blocks["square_grad"], (0, 1)),)
_SQRT_GRAD = (Gradient(_blocks["sqrt_grad"], (0, 1), "divide"),)
_EXP_GRAD = (Gradient(_arithmetic["multiply"], (0, 1)),)
_EXPM1_GRAD = (Gradient(_blocks["expm1_grad"], (0, 1), "math"),)
_LOG_GRAD = (Gradient(_blocks["log_grad"], (0, 1), "divide"),)
_LOG1P_GRAD = (Gradient(_blocks["log1p_grad"], (0, 1), "divide"),)
_LOG_BASE_GRAD = (Gradient(_blocks["log_base_grad"], (0, 1), "divide"),)
_SIN_GRAD = (Gradient(_blocks["sin_grad"], (0, 1), "math"),)
_COS_GRAD = (Gradient(_blocks["cos_grad"], (0, 1), "math"),)
_TANH_GRAD = (Gradient(_blocks["tanh_grad"], (0, 1)),)
_ERF_GRAD = (Gradient(_blocks["erf_grad"], (0, 1), "math"),)
_CLIP_GRAD = (Gradient(_blocks["clip_grad"], (0, 1)),)
_CLIP_BETWEEN_GRAD = (Gradient(_blocks["clip_between_grad"], (0, 1, 2, 3)),)
_X = ("x",)
_OUTPUT = ("output",)
_INV_LN2 = 1 / math.log(2)
_INV_LN10 = 1 / math.log(10)


def _zeros(function: str, grad_output: ArrayLike, out: Out) -> ExTensor:
    return backward(function, _ZERO, grad_output, (), (), (), None, out)


# --- sign and size ------------------------------------------------------------------------------


def abs(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The absolute value, element by element.

    Parameters
    ----------
    x : array_like
        The input.
    out : ExTensor or ndarray, optional
        Where the result goes; may be `x` itself.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.abs(ex.tensor([-1.5, 2.0]))
    ExTensor([1.5, 2. ], dtype=float32)
    """
    return call1(_ABS, x, out)


def abs_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `abs`: g·sign(x), 0 where x = 0, NaN where x is NaN.

    Parameters
    ----------
    grad_output : array_like
        Gradient of the result, in its shape.
    x : array_like
        The input of `abs`.
    out : ExTensor or ndarray, optional
        Where the gradient goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.abs_backward(ex.tensor([2.0, 2.0, 2.0]), ex.tensor([-3.0, 0.0, 3.0]))
    ExTensor([-2.,  0.,  2.], dtype=float32)
    """
    return backward("abs_backward", _ABS_GRAD, grad_output, (x,), _X, None, None, out)


def sign(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """−1, 0 or 1 by the sign of x; 0 for either zero, NaN for NaN, a TypeError for bools.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sign(ex.tensor([-2.5, 0.0, 7.0]))
    ExTensor([-1.,  0.,  1.], dtype=float32)
    """
    return call1(_SIGN, x, out)


def sign_backward(grad_output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `sign`: zero everywhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sign_backward(ex.tensor([1.0, 2.0]))
    ExTensor([0., 0.], dtype=float32)
    """
    return _zeros("sign_backward", grad_output, out)


def square(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """x², element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.square(ex.tensor([3.0, -4.0]))
    ExTensor([ 9., 16.], dtype=float32)
    """
    return call1(_SQUARE, x, out)


def square_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `square`: 2·g·x.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.square_backward(ex.tensor([1.0, 10.0]), ex.tensor([3.0, -4.0]))
    ExTensor([  6., -80.], dtype=float32)
    """
    return backward("square_backward", _SQUARE_GRAD, grad_output, (x,), _X, None, None, out)


def sqrt(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """√x, element by element; NaN below zero.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sqrt(ex.tensor([4.0, 2.25]))
    ExTensor([2. , 1.5], dtype=float32)
    """
    return call1(_SQRT, x, out)


def sqrt_backward(
    grad_output: ArrayLike, output: ArrayLike, *, eps: float = 1e-10, out: Out = None
) -> ExTensor:
    """Gradient of `sqrt` from its output y: g/(2y), but g/eps where 2y < eps.

    Parameters
    ----------
    grad_output : array_like
        Gradient of the result, in its shape.
    output : array_like
        The result of `sqrt`.
    eps : float, optional
        Bounds the gradient near zero; 0 gives the bare formula.
    out : ExTensor or ndarray, optional
        Where the gradient goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sqrt_backward(ex.tensor([1.0, 1.0]), ex.tensor([2.0, 0.5]))
    ExTensor([0.25, 1.  ], dtype=float32)
    """
    if not (type(eps) is float and eps >= 0):
        eps = check_eps("sqrt_backward", eps)
    return backward(
        "sqrt_backward", _SQRT_GRAD, grad_output, (output,), _OUTPUT, None, None, out, (eps,)
    )


# --- exponentials and logarithms ----------------------------------------------------------------


def exp(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """eˣ, element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.exp(ex.tensor([0.0, 1.0])).numpy().round(4)
    array([1.    , 2.7183], dtype=float32)
    """
    return call1(_EXP, x, out)


def exp_backward(grad_output: ArrayLike, output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `exp` from its output y: g·y.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.exp_backward(ex.tensor([2.0]), ex.tensor([3.0]))
    ExTensor([6.], dtype=float32)
    """
    return backward("exp_backward", _EXP_GRAD, grad_output, (output,), _OUTPUT, None, None, out)


def expm1(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """eˣ − 1, exact also where x is small.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.expm1(ex.tensor([0.0, 1e-10]))
    ExTensor([0.e+00, 1.e-10], dtype=float32)
    """
    return call1(_EXPM1, x, out)


def expm1_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `expm1`: g·eˣ.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.expm1_backward(ex.tensor([3.0]), ex.tensor([0.0]))
    ExTensor([3.], dtype=float32)
    """
    return backward("expm1_backward", _EXPM1_GRAD, grad_output, (x,), _X, None, None, out)


def log(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The natural logarithm; −inf at 0, NaN below.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log(ex.tensor([1.0, 10.0])).numpy().round(4)
    array([0.    , 2.3026], dtype=float32)
    """
    return call1(_LOG, x, out)


def log_backward(
    grad_output: ArrayLike, x: ArrayLike, *, eps: float = 1e-10, out: Out = None
) -> ExTensor:
    """Gradient of `log`: g/x, but ±g/eps by the sign of x where abs(x) < eps.

    Parameters
    ----------
    grad_output : array_like
        Gradient of the result, in its shape.
    x : array_like
        The input of `log`.
    eps : float, optional
        Bounds the gradient near zero; 0 gives the bare formula.
    out : ExTensor or ndarray, optional
        Where the gradient goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log_backward(ex.tensor([1.0, 1.0]), ex.tensor([2.0, 0.0]))
    ExTensor([5.e-01, 1.e+10], dtype=float32)
    """
    if not (type(eps) is float and eps >= 0):
        eps = check_eps("log_backward", eps)
    return backward("log_backward", _LOG_GRAD, grad_output, (x,), _X, None, None, out, (eps,))


def log1p(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """ln(1 + x), exact also where x is small; −inf at −1, NaN below.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log1p(ex.tensor([0.0, 1e-10]))
    ExTensor([0.e+00, 1.e-10], dtype=float32)
    """
    return call1(_LOG1P, x, out)


def log1p_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `log1p`: g/(1 + x).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log1p_backward(ex.tensor([1.0]), ex.tensor([3.0]))
    ExTensor([0.25], dtype=float32)
    """
    return backward("log1p_backward", _LOG1P_GRAD, grad_output, (x,), _X, None, None, out)


def log2(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The logarithm to base 2, exact at powers of 2.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log2(ex.tensor([0.125, 1024.0]))
    ExTensor([-3., 10.], dtype=float32)
    """
    return call1(_LOG2, x, out)


def log2_backward(
    grad_output: ArrayLike, x: ArrayLike, *, eps: float = 1e-10, out: Out = None
) -> ExTensor:
    """Gradient of `log2`: g/(x·ln 2), ±eps in the place of x where abs(x) < eps.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log2_backward(ex.tensor([1.0]), ex.tensor([2.0])).numpy().round(4)
    array([0.7213], dtype=float32)
    """
    if not (type(eps) is float and eps >= 0):
        eps = check_eps("log2_backward", eps)
    params = (eps, _INV_LN2)
    return backward("log2_backward", _LOG_BASE_GRAD, grad_output, (x,), _X, None, None, out, params)


def log10(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The logarithm to base 10, exact at powers of 10.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log10(ex.tensor([1.0, 1000.0]))
    ExTensor([0., 3.], dtype=float32)
    """
    return call1(_LOG10, x, out)


def log10_backward(
    grad_output: ArrayLike, x: ArrayLike, *, eps: float = 1e-10, out: Out = None
) -> ExTensor:
    """Gradient of `log10`: g/(x·ln 10), ±eps in the place of x where abs(x) < eps.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.log10_backward(ex.tensor([1.0]), ex.tensor([2.0])).numpy().round(4)
    array([0.2171], dtype=float32)
    """
    if not (type(eps) is float and eps >= 0):
        eps = check_eps("log10_backward", eps)
    params = (eps, _INV_LN10)
    return backward(
        "log10_backward", _LOG_BASE_GRAD, grad_output, (x,), _X, None, None, out, params
    )


# --- sin, cos, tanh, erf ------------------------------------------------------------------------


def sin(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The sine of x in radians, accurate for every finite x.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sin(ex.tensor([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8415], dtype=float32)
    """
    return call1(_SIN, x, out)


def sin_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `sin`: g·cos(x).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sin_backward(ex.tensor([2.0]), ex.tensor([0.0]))
    ExTensor([2.], dtype=float32)
    """
    return backward("sin_backward", _SIN_GRAD, grad_output, (x,), _X, None, None, out)


def cos(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The cosine of x in radians, accurate for every finite x.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.cos(ex.tensor([0.0, 1.0])).numpy().round(4)
    array([1.    , 0.5403], dtype=float32)
    """
    return call1(_COS, x, out)


def cos_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `cos`: −g·sin(x).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.cos_backward(ex.tensor([2.0]), ex.tensor([0.5])).numpy().round(4)
    array([-0.9589], dtype=float32)
    """
    return backward("cos_backward", _COS_GRAD, grad_output, (x,), _X, None, None, out)


def tanh(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The hyperbolic tangent, element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.tanh(ex.tensor([0.0, 0.5])).numpy().round(4)
    array([0.    , 0.4621], dtype=float32)
    """
    return call1(_TANH, x, out)


def tanh_backward(grad_output: ArrayLike, output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `tanh` from its output y: g·(1 − y)·(1 + y).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.tanh_backward(ex.tensor([1.0, 2.0]), ex.tensor([0.5, -0.5]))
    ExTensor([0.75, 1.5 ], dtype=float32)
    """
    return backward("tanh_backward", _TANH_GRAD, grad_output, (output,), _OUTPUT, None, None, out)


def erf(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The error function, 2/√π·∫₀ˣ exp(−t²) dt.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.erf(ex.tensor([0.0, 0.5])).numpy().round(4)
    array([0.    , 0.5205], dtype=float32)
    """
    return call1(_ERF, x, out)


def erf_backward(grad_output: ArrayLike, x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `erf`: g·2/√π·exp(−x²).

    Examples
    --------
    >>> import extensor as ex
    >>> ex.erf_backward(ex.tensor([1.0]), ex.tensor([0.0])).numpy().round(4)
    array([1.1284], dtype=float32)
    """
    return backward("erf_backward", _ERF_GRAD, grad_output, (x,), _X, None, None, out)


# --- clip ---------------------------------------------------------------------------------------


_NUMBERS = (float, int, type(None))  # bounds that become parameters


def _limits(function: str, low: float | None, high: float | None) -> tuple[float, float]:
    """Bounds that are Python numbers, as parameters of a block."""
    if type(low) is float and type(high) is float:
        return (low, high)
    try:
        return (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    except OverflowError:
        raise OverflowError(f"{function}: a bound is too large for a float") from None


def _check_bounds(function: str, x: ArrayLike, **bounds: ArrayLike | None) -> None:
    """Bounds broadcast to x's shape, and do not enlarge it."""
    shape = np.shape(as_array(x, function, "x"))
    for name, bound in bounds.items():
        if type(bound) in _NUMBERS:
            continue
        have = np.shape(as_array(bound, function, name))
        try:
            fits = np.broadcast_shapes(shape, have) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{function}: {name} has shape {have}, which does not broadcast to the shape "
                f"{shape} of x"
            )


def clip(
    x: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None, *, out: Out = None
) -> ExTensor:
    """minimum(maximum(x, min), max), element by element.

    Parameters
    ----------
    x : array_like
        The input.
    min, max : number or array_like, optional
        The bounds; None is no bound, a tensor broadcasts to the shape of `x`. Where min > max the
        result is max; a NaN bound gives NaN.
    out : ExTensor or ndarray, optional
        Where the result goes; may be `x` itself.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.clip(ex.tensor([-2.0, 0.5, 2.0]), -1, 1)
    ExTensor([-1. ,  0.5,  1. ], dtype=float32)
    >>> ex.clip(ex.tensor([-2.0, 0.5, 2.0]), min=0)
    ExTensor([0. , 0.5, 2. ], dtype=float32)
    """
    if type(min) in _NUMBERS and type(max) in _NUMBERS:
        try:
            return call1(_CLIP, x, out, _limits("clip", min, max))
        except (TypeError, OverflowError):
            pass  # integers, whose result dtype depends on the bounds, or an error that comes again
    _check_bounds("clip", x, min=min, max=max)
    if min is None:
        return call1(_CLIP_NOT, x, out) if max is None else call2(_CLIP_HIGH, x, max, out)
    if max is None:
        return call2(_CLIP_LOW, x, min, out)
    return calln(_CLIP_BOTH, (x, min, max), out)


def clip_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    *,
    out: Out = None,
) -> ExTensor:
    """Gradient of `clip`: g where min ≤ x ≤ max, 0 elsewhere and where x or a bound is NaN.

    Examples
    --------
    >>> import extensor as ex
    >>> g, x = ex.tensor([1.0, 2.0, 3.0]), ex.tensor([-2.0, 1.0, 2.0])
    >>> ex.clip_backward(g, x, -1, 1)
    ExTensor([0., 2., 0.], dtype=float32)
    """
    function = "clip_backward"
    if type(min) in _NUMBERS and type(max) in _NUMBERS:
        params = _limits(function, min, max)
        return backward(function, _CLIP_GRAD, grad_output, (x,), _X, None, None, out, params)
    _check_bounds(function, x, min=min, max=max)
    saved = (x, -math.inf if min is None else min, math.inf if max is None else max)
    names = ("x", "min", "max")
    return backward(function, _CLIP_BETWEEN_GRAD, grad_output, saved, names, None, None, out)


# --- whole numbers ------------------------------------------------------------------------------


def ceil(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The smallest whole number not below x; integers stay as they are.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.ceil(ex.tensor([-1.5, 0.2]))
    ExTensor([-1.,  1.], dtype=float32)
    """
    return call1(_CEIL, x, out)


def ceil_backward(grad_output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `ceil`: zero everywhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.ceil_backward(ex.tensor([1.0, 2.0]))
    ExTensor([0., 0.], dtype=float32)
    """
    return _zeros("ceil_backward", grad_output, out)


def floor(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The largest whole number not above x; integers stay as they are.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.floor(ex.tensor([-1.5, 0.2]))
    ExTensor([-2.,  0.], dtype=float32)
    """
    return call1(_FLOOR, x, out)


def floor_backward(grad_output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `floor`: zero everywhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.floor_backward(ex.tensor([1.0, 2.0]))
    ExTensor([0., 0.], dtype=float32)
    """
    return _zeros("floor_backward", grad_output, out)


def round(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The nearest whole number, the even one of two equally near; integers stay as they are.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.round(ex.tensor([0.5, 1.5, 2.5, -0.7]))
    ExTensor([ 0.,  2.,  2., -1.], dtype=float32)
    """
    return call1(_ROUND, x, out)


def round_backward(grad_output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `round`: zero everywhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.round_backward(ex.tensor([1.0, 2.0]))
    ExTensor([0., 0.], dtype=float32)
    """
    return _zeros("round_backward", grad_output, out)


def trunc(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """The whole part of x, rounded towards zero; integers stay as they are.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.trunc(ex.tensor([-1.5, 1.5]))
    ExTensor([-1.,  1.], dtype=float32)
    """
    return call1(_TRUNC, x, out)


def trunc_backward(grad_output: ArrayLike, *, out: Out = None) -> ExTensor:
    """Gradient of `trunc`: zero everywhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.trunc_backward(ex.tensor([1.0, 2.0]))
    ExTensor([0., 0.], dtype=float32)
    """
    return _zeros("trunc_backward", grad_output, out)


# --- bool results -------------------------------------------------------------------------------


def isnan(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Where x is NaN.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.isnan(ex.tensor([1.0, float("nan")]))
    ExTensor([False,  True], dtype=bool)
    """
    return call1(_ISNAN, x, out)


def isinf(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Where x is +inf or −inf.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.isinf(ex.tensor([1.0, float("-inf")]))
    ExTensor([False,  True], dtype=bool)
    """
    return call1(_ISINF, x, out)


def isfinite(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Where x is neither infinite nor NaN.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.isfinite(ex.tensor([1.0, float("inf")]))
    ExTensor([ True, False], dtype=bool)
    """
    return call1(_ISFINITE, x, out)


def logical_and(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """Where both a and b are true; a number is true unless it is 0, so NaN is.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.logical_and(ex.tensor([True, True, False]), ex.tensor([2.0, 0.0, 1.0]))
    ExTensor([ True, False, False], dtype=bool)
    """
    return logic2(_AND, a, b, out)


def logical_or(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """Where a or b or both are true.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.logical_or(ex.tensor([True, False]), ex.tensor([0.0, 0.0]))
    ExTensor([ True, False], dtype=bool)
    """
    return logic2(_OR, a, b, out)


def logical_xor(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """Where exactly one of a and b is true.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.logical_xor(ex.tensor([True, True]), ex.tensor([0.0, 3.0]))
    ExTensor([ True, False], dtype=bool)
    """
    return logic2(_XOR, a, b, out)


def logical_not(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """Where x is false, that is 0.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.logical_not(ex.tensor([0.0, 2.0]))
    ExTensor([ True, False], dtype=bool)
    """
    return logic1(_NOT, x, out)
