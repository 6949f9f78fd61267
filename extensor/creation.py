"""Tensors from nothing: filled, counted, spaced and one-hot ones.

The dtype defaults to float32. Every function returns a C-contiguous tensor with 64-byte aligned
memory of its own.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from extensor._apply import empty_tensor
from extensor._typing import ArrayLike, Shape
from extensor.tensor import ExTensor, as_array, check_dtype

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "one_hot",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


_FLOAT32 = np.dtype(np.float32)


def _dtype(function: str, dtype: object) -> np.dtype:
    return _FLOAT32 if dtype is np.float32 else check_dtype(dtype, function)


def _new(function: str, shape: Shape | int, dtype: object) -> ExTensor:
    return empty_tensor(function, shape, _dtype(function, dtype))


def _fill(tensor: ExTensor, function: str, value: object) -> ExTensor:
    array = tensor.numpy()
    if type(value) is int and array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        if not info.min <= value <= info.max:
            raise OverflowError(f"{function}: fill_value {value} does not fit {array.dtype}")
    with np.errstate(all="ignore"):
        np.copyto(array, value, casting="unsafe")  # type: ignore[arg-type]
    return tensor


def zeros(shape: Shape | int, dtype: object = np.float32) -> ExTensor:
    """A tensor of zeros.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.zeros((2, 3))
    ExTensor([[0., 0., 0.],
              [0., 0., 0.]], dtype=float32)
    """
    return empty_tensor("zeros", shape, _dtype("zeros", dtype), True)


def ones(shape: Shape | int, dtype: object = np.float32) -> ExTensor:
    """A tensor of ones.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.ones(3, dtype=ex.int32)
    ExTensor([1, 1, 1], dtype=int32)
    """
    result = empty_tensor("ones", shape, _dtype("ones", dtype))
    result.numpy().fill(1)
    return result


def empty(shape: Shape | int, dtype: object = np.float32) -> ExTensor:
    """A tensor whose elements are whatever the memory holds.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.empty((2, 3)).shape
    (2, 3)
    """
    return _new("empty", shape, dtype)


def full(shape: Shape | int, fill_value: ArrayLike, dtype: object = None) -> ExTensor:
    """A tensor filled with one value, in its dtype unless another is given.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.full((2,), 7.5)
    ExTensor([7.5, 7.5], dtype=float32)
    """
    if type(fill_value) is int and dtype is not None:
        return _fill(_new("full", shape, dtype), "full", fill_value)
    array = as_array(fill_value, "full", "fill_value")
    value = fill_value if isinstance(fill_value, int | float) else array
    return _fill(_new("full", shape, array.dtype if dtype is None else dtype), "full", value)


def _number(function: str, name: str, value: object) -> int | float:
    array = as_array(value, function, name)
    if array.size != 1:
        raise ValueError(f"{function}: {name} must be one number, got shape {array.shape}")
    if type(value) in (int, float, bool):
        return value  # type: ignore[return-value]
    return array.item()


def arange(
    start: ArrayLike, stop: ArrayLike | None = None, step: ArrayLike = 1, dtype: object = None
) -> ExTensor:
    """Numbers from start up to, not including, stop: int64, or float32 with a float among them.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.arange(4)
    ExTensor([0, 1, 2, 3], dtype=int64)
    >>> ex.arange(0, 1, 0.25)
    ExTensor([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    first = _number("arange", "start", start)
    gap = _number("arange", "step", step)
    last: int | float
    if stop is None:
        first, last = 0, first
    else:
        last = _number("arange", "stop", stop)
    if gap == 0 or not all(map(math.isfinite, (first, last, gap))):
        raise ValueError(
            f"arange: start {first}, stop {last} and step {gap} must be finite, step not 0"
        )
    if dtype is None:
        given = [x for x in (start, stop, step) if x is not None]
        dtype = np.result_type(*(as_array(x, "arange", "start, stop or step") for x in given))
        if all(type(x) in (int, float, bool) for x in given):
            dtype = np.float32 if any(type(x) is float for x in given) else np.int64
    wanted = check_dtype(dtype, "arange")
    count = max(0, math.ceil((last - first) / gap))
    if all(isinstance(x, int) for x in (first, last, gap)):
        count = int(max(0, -((first - last) // gap)))
    result = _new("arange", (count,), wanted)
    if wanted.kind in "iu" and all(isinstance(x, int) for x in (first, gap)):
        if count:
            for edge in (first, first + (count - 1) * gap):
                if not np.iinfo(wanted).min <= edge <= np.iinfo(wanted).max:
                    raise OverflowError(f"arange: {edge} does not fit {wanted}")
        values = np.arange(count, dtype=wanted)
        with np.errstate(all="ignore"):
            np.multiply(values, np.array(gap).astype(wanted), out=values)
            np.add(values, np.array(first).astype(wanted), out=result.numpy())
        return result
    values = first + gap * np.arange(count, dtype=np.float64)
    return _fill(result, "arange", values)


def eye(n: int, m: int | None = None, k: int = 0, dtype: object = np.float32) -> ExTensor:
    """Ones on the k-th diagonal of an n×m matrix, zeros elsewhere.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.eye(2, 3, k=1)
    ExTensor([[0., 1., 0.],
              [0., 0., 1.]], dtype=float32)
    """
    size = (n, n if m is None else m)
    result = empty_tensor("eye", size, _dtype("eye", dtype), True)
    array = result.numpy()
    k = operator.index(k)
    length = max(0, min(array.shape[0] + min(k, 0), array.shape[1] - max(k, 0)))
    rows = np.arange(length) + max(-k, 0)
    array[rows, rows + k] = 1
    return result


def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, dtype: object = np.float32
) -> ExTensor:
    """num numbers evenly spaced from start to stop, both included.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.linspace(0, 1, 5)
    ExTensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    if operator.index(num) < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}")
    first, last = _number("linspace", "start", start), _number("linspace", "stop", stop)
    values = np.linspace(first, last, operator.index(num), dtype=np.float64)
    return _fill(_new("linspace", values.shape, dtype), "linspace", values)


def _like(function: str, x: ArrayLike, dtype: object) -> ExTensor:
    array = as_array(x, function)
    return _new(function, array.shape, array.dtype if dtype is None else dtype)


def zeros_like(x: ArrayLike, dtype: object = None) -> ExTensor:
    """Zeros in the shape and dtype of x.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.zeros_like(ex.tensor([1, 2]))
    ExTensor([0, 0], dtype=int64)
    """
    return _fill(_like("zeros_like", x, dtype), "zeros_like", 0)


def ones_like(x: ArrayLike, dtype: object = None) -> ExTensor:
    """Ones in the shape and dtype of x.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.ones_like(ex.tensor([5.0, 6.0]))
    ExTensor([1., 1.], dtype=float32)
    """
    return _fill(_like("ones_like", x, dtype), "ones_like", 1)


def empty_like(x: ArrayLike, dtype: object = None) -> ExTensor:
    """An uninitialised tensor in the shape and dtype of x.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.empty_like(ex.tensor([5.0, 6.0])).shape
    (2,)
    """
    return _like("empty_like", x, dtype)


def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: object = None) -> ExTensor:
    """One value in the shape and dtype of x.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.full_like(ex.tensor([5.0, 6.0]), 9)
    ExTensor([9., 9.], dtype=float32)
    """
    value = as_array(fill_value, "full_like", "fill_value")
    plain = fill_value if isinstance(fill_value, int | float) else value
    return _fill(_like("full_like", x, dtype), "full_like", plain)


def one_hot(ids: ArrayLike, depth: int, dtype: object = np.float32) -> ExTensor:
    """A row of zeros with a one at each id: shape ids.shape + (depth,).

    Ids outside 0 … depth−1 are a ValueError.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.one_hot([2, 0], 3)
    ExTensor([[0., 0., 1.],
              [1., 0., 0.]], dtype=float32)
    """
    places = as_array(ids, "one_hot", "ids")
    if places.dtype.kind not in "iu" and places.size:
        raise TypeError(f"one_hot: ids must be integers, got dtype {places.dtype}")
    depth = operator.index(depth)
    if depth < 0:
        raise ValueError(f"one_hot: depth must not be negative, got {depth}")
    if places.size and (places.min() < 0 or places.max() >= depth):
        worst = places.min() if places.min() < 0 else places.max()
        raise ValueError(f"one_hot: ids must lie in 0 … {depth - 1}, got {worst}")
    result = zeros((*places.shape, depth), dtype)
    flat = result.numpy().reshape(places.size, depth)
    flat[np.arange(places.size), places.ravel().astype(np.intp)] = 1
    return result
