"""Gradients from differences of function values, and comparisons with the ones from formulas.

Central differences in float64: the error of a step h is h²·f'''/6 from the curve and about
u·|f|/h from rounding; the default epsilon, the cube root of u, balances the two at about 1e-10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from extensor.tensor import ExTensor, asarray

__all__ = ["assert_gradients_close", "check_gradient", "compute_numerical_gradient"]

_EPSILON = 6e-6
# rtol, atol by the dtype of the gradient that is checked
_TOLERANCES = {"float16": (1e-2, 1e-4), "float32": (1e-4, 1e-6), "float64": (1e-7, 1e-10)}


def compute_numerical_gradient(
    f: Callable[..., Any], x: Any, epsilon: float = _EPSILON, grad_output: Any = None
) -> ExTensor:
    """Gradient of ``f`` at ``x`` by central differences.

    Column i of the Jacobian is ``(f(x + h) - f(x - h)) / ((x + h) - (x - h))`` with
    ``h = epsilon * max(1, |x[i]|)`` added to element i alone; the columns are then contracted
    with ``grad_output``. Costs ``2 * x.size + 1`` calls of ``f``.

    Parameters
    ----------
    f : callable
        Gets a float64 copy of ``x``, a new one for each call. Returns a float64 tensor, a Python
        float, or a tuple or list of them.
    x : array_like
        The point, of any real dtype. Never modified.
    epsilon : float
        Relative step.
    grad_output : array_like, optional
        Weights of the outputs, of the shape of ``f(x)`` (a tuple or list of as many where ``f``
        returns several). Only a scalar ``f`` (shape ``()``) can do without.

    Returns
    -------
    ExTensor
        float64, of the shape of ``x``.

    Raises
    ------
    TypeError
        If ``f`` returns anything less precise than float64: differences of rounded values are
        noise.

    Examples
    --------
    >>> import extensor as ex
    >>> weights = [1.0, 10.0]
    >>> gradient = ex.compute_numerical_gradient(lambda x: x * x, [1.0, 2.0], grad_output=weights)
    >>> [round(float(g), 6) for g in gradient]
    [2.0, 40.0]
    """
    where = "compute_numerical_gradient"
    point = _real_array(where, "x", x).astype(np.float64)  # always a copy
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"{where}: epsilon is {epsilon!r}, a finite number above 0 is needed")

    def evaluate(value: np.ndarray) -> list[np.ndarray]:
        result = f(asarray(value.copy()))
        return [_double_output(where, part) for part in _parts(result)]

    result = f(asarray(point.copy()))
    several = isinstance(result, (tuple, list))
    shapes = [_double_output(where, part).shape for part in _parts(result)]
    weights = _weights(where, grad_output, several, shapes)

    gradient = np.zeros(point.shape)
    flat = gradient.reshape(-1)
    with np.errstate(all="ignore"):
        for i in range(point.size):
            outputs, moved = [], []
            h = epsilon * max(1.0, abs(point.flat[i]))
            for step in (h, -h):
                shifted = point.copy()
                shifted.flat[i] += step
                moved.append(shifted.flat[i])
                outputs.append(evaluate(shifted))
                if [part.shape for part in outputs[-1]] != shapes:
                    raise ValueError(
                        f"{where}: f returned shapes {[part.shape for part in outputs[-1]]} "
                        f"after {shapes}; the same shape is needed in every call"
                    )
            for above, below, weight in zip(*outputs, weights, strict=True):
                flat[i] += np.sum((above - below) / (moved[0] - moved[1]) * weight)
    return asarray(gradient)


def assert_gradients_close(
    analytical: Any, numerical: Any, rtol: float | None = None, atol: float | None = None
) -> None:
    """Raise ``AssertionError`` unless two gradients agree.

    They agree where ``|a - n| <= rtol * |n| + atol * max(1, max|n|)`` holds for every element.
    Different shapes disagree, and so does any value that is not finite.

    Parameters
    ----------
    analytical : array_like
        The gradient to check. Its dtype picks the default tolerances: ``rtol, atol`` =
        1e-2, 1e-4 (float16), 1e-4, 1e-6 (float32), 1e-7, 1e-10 (float64).
    numerical : array_like
        The gradient to trust.
    rtol, atol : float, optional
        Relative and absolute tolerance.

    Raises
    ------
    AssertionError
        With the worst element, its index and both values.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.assert_gradients_close([2.0, 4.0], [2.0, 4.00001])
    >>> ex.assert_gradients_close([2.0, 4.0], [2.0, 5.0])
    Traceback (most recent call last):
        ...
    AssertionError: assert_gradients_close: analytical and numerical gradient differ at 1 of 2 \
elements, worst at index (1,): analytical 4.0, numerical 5.0, allowed difference 0.000505
    """
    where = "assert_gradients_close"
    given = asarray(analytical).dtype.name
    if given in _TOLERANCES:
        rtol = _TOLERANCES[given][0] if rtol is None else rtol
        atol = _TOLERANCES[given][1] if atol is None else atol
    if rtol is None or atol is None:
        raise TypeError(
            f"{where}: analytical is {given}, which has no default tolerances; "
            f"float16, float32 or float64 is needed, or both rtol and atol"
        )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not (np.isfinite(value) and value >= 0):
            raise ValueError(f"{where}: {name} is {value!r}, a finite number >= 0 is needed")
    a = _real_array(where, "analytical", analytical).astype(np.float64)
    n = _real_array(where, "numerical", numerical).astype(np.float64)
    if a.shape != n.shape:
        raise AssertionError(
            f"{where}: analytical gradient has shape {a.shape}, numerical gradient {n.shape}"
        )
    if a.size == 0:
        return
    magnitude = np.where(np.isfinite(n), np.abs(n), 0.0)
    allowed = rtol * magnitude + atol * max(1.0, float(magnitude.max()))
    finite = np.isfinite(a) & np.isfinite(n)
    with np.errstate(all="ignore"):
        excess = np.where(finite, np.abs(a - n) - allowed, np.inf)
    wrong = excess > 0
    if wrong.any():
        # the largest difference in units of what is allowed there (0 allowed: any is infinite)
        with np.errstate(all="ignore"):
            index = np.unravel_index(np.argmax(np.where(wrong, excess / allowed, -1)), a.shape)
        place = tuple(int(i) for i in index)
        raise AssertionError(
            f"{where}: analytical and numerical gradient differ at {np.count_nonzero(wrong)} of "
            f"{a.size} elements, worst at index {place}: analytical {float(a[index])!r}, "
            f"numerical {float(n[index])!r}, allowed difference {allowed[index]:.6g}"
        )


def check_gradient(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    inputs: Sequence[Any],
    grad_output: Any = None,
    *,
    epsilon: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    rng: Any = 0,
) -> None:
    """Check ``backward`` against differences of ``forward``, for every input and element.

    Parameters
    ----------
    forward : callable
        ``forward(*inputs)``, the function. Computes in float64 where its inputs are float64.
    backward : callable
        ``backward(grad_output, *inputs)``, the gradients in the order of the inputs: a tuple or
        list, or the gradient itself for one input. None where an input has no gradient.
    inputs : tuple or list of array_like
        The point. Stay clear of kinks by more than ``epsilon``.
    grad_output : array_like, optional
        Of the shape of the output (a tuple or list for several outputs); random by default, so
        that a gradient which ignores it is noticed.
    epsilon, rtol, atol : float, optional
        As in `compute_numerical_gradient` and `assert_gradients_close`.
    rng : int or numpy.random.Generator
        Seed of the random ``grad_output``.

    Raises
    ------
    AssertionError
        If a gradient is wrong; the message names the input.

    Examples
    --------
    >>> import extensor as ex
    >>> a, b = ex.tensor([[1.0], [2.0]]), ex.tensor([3.0, 4.0, 5.0])
    >>> ex.check_gradient(ex.multiply, ex.multiply_backward, (a, b))
    """
    where = "check_gradient"
    if not isinstance(inputs, (tuple, list)):
        raise TypeError(
            f"{where}: inputs is {type(inputs).__name__}, a tuple or list of tensors is needed"
        )
    inputs = tuple(inputs)
    doubles = [_double_copy(value) for value in inputs]
    output = forward(*inputs)
    several = isinstance(output, (tuple, list))
    if grad_output is None:
        grad_output = _random_like(where, output, several, np.random.default_rng(rng))
    # copied before backward runs, which might write into what it is given
    parts = [np.array(part, np.float64) for part in _parts(grad_output, several)]
    weights: Any = parts if several else parts[0]

    gradients = backward(grad_output, *inputs)
    if not isinstance(gradients, (tuple, list)):
        gradients = (gradients,)
    if len(gradients) != len(inputs):
        raise ValueError(
            f"{where}: backward returned {len(gradients)} gradients for {len(inputs)} inputs; "
            f"one for each is needed (None where there is none)"
        )
    if all(gradient is None for gradient in gradients):
        raise ValueError(f"{where}: backward returned no gradient, at least one is needed")
    for i, gradient in enumerate(gradients):
        if gradient is None:
            continue

        def along(value: Any, i: int = i) -> Any:
            return forward(*doubles[:i], value, *doubles[i + 1 :])

        step = _EPSILON if epsilon is None else epsilon
        numerical = compute_numerical_gradient(along, doubles[i], step, weights)
        try:
            assert_gradients_close(gradient, numerical, rtol, atol)
        except AssertionError as error:
            raise AssertionError(f"{where}: input {i}: {error}") from None


def _parts(value: Any, several: bool | None = None) -> list[Any]:
    """The outputs (or their gradients) as a list, also where there is only one."""
    if several is None:
        several = isinstance(value, (tuple, list))
    return list(value) if several else [value]


def _real_array(where: str, name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{where}: {name} is no array: {error}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{where}: {name} is {type(value).__name__} of dtype {array.dtype}; "
            f"a tensor of real numbers is needed"
        )
    return array


def _double_copy(value: Any) -> Any:
    """Floating tensors as float64 copies; ids, masks and everything else as they are."""
    if isinstance(value, (float, list, tuple, np.ndarray, np.floating, ExTensor)):
        array = np.asarray(value)
        if array.dtype.kind == "f":
            return asarray(np.array(array, np.float64))
    return value


def _double_output(where: str, value: Any) -> np.ndarray:
    """A copy of one result of f: f might reuse its memory in the next call."""
    array = np.array(value)
    if array.dtype.kind != "f" or array.dtype.itemsize < 8:
        raise TypeError(
            f"{where}: f returned {array.dtype} when given float64; float64 is needed, "
            f"lower precision drowns the differences in rounding errors"
        )
    return array


def _weights(
    where: str, grad_output: Any, several: bool, shapes: list[tuple[int, ...]]
) -> list[np.ndarray]:
    if grad_output is None:
        if several or shapes != [()]:
            wanted = (
                f"{len(shapes)} outputs of shapes {shapes}" if several else f"shape {shapes[0]}"
            )
            raise ValueError(
                f"{where}: f returned {wanted}; grad_output is needed unless f returns one scalar"
            )
        return [np.ones(())]
    if several and (not isinstance(grad_output, (tuple, list)) or len(grad_output) != len(shapes)):
        given = len(grad_output) if isinstance(grad_output, (tuple, list)) else "one tensor"
        raise ValueError(
            f"{where}: grad_output holds {given}, f returned {len(shapes)} outputs; "
            f"a tuple or list of as many is needed"
        )
    weights = []
    for part, shape in zip(_parts(grad_output, several), shapes, strict=True):
        array = _real_array(where, "grad_output", part)
        if array.dtype.kind != "f":
            raise TypeError(f"{where}: grad_output is {array.dtype}, a floating dtype is needed")
        if array.shape != shape:
            raise ValueError(
                f"{where}: grad_output has shape {array.shape}, f returned shape {shape}; "
                f"the same shape is needed"
            )
        weights.append(array.astype(np.float64))
    return weights


def _random_like(where: str, output: Any, several: bool, rng: np.random.Generator) -> Any:
    parts = []
    for part in _parts(output, several):
        array = np.asarray(part)
        if array.dtype.kind != "f":
            raise TypeError(f"{where}: forward returned {array.dtype}, a floating dtype is needed")
        parts.append(asarray(np.asarray(rng.standard_normal(array.shape), array.dtype)))
    if not several:
        return parts[0]
    return parts if isinstance(output, list) else tuple(parts)
