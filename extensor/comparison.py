"""Element-wise comparisons with broadcasting; the results are bool."""

from __future__ import annotations

import numpy as np

from extensor import _cpu
from extensor._apply import Op, call2
from extensor._typing import ArrayLike, Out
from extensor.tensor import ExTensor

__all__ = ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]

_blocks = _cpu.kernels("arithmetic")

_EQUAL = Op("equal", _blocks["equal"], "a b", numpy=np.equal, gives_bool=True)
_NOT_EQUAL = Op("not_equal", _blocks["not_equal"], "a b", numpy=np.not_equal, gives_bool=True)
_LESS = Op("less", _blocks["less"], "a b", numpy=np.less, gives_bool=True)
_LESS_EQUAL = Op("less_equal", _blocks["less_equal"], "a b", numpy=np.less_equal, gives_bool=True)
_GREATER = Op("greater", _blocks["less"], "a b", args=(1, 0), numpy=np.greater, gives_bool=True)
_GREATER_EQUAL = Op(
    "greater_equal",
    _blocks["less_equal"],
    "a b",
    args=(1, 0),
    numpy=np.greater_equal,
    gives_bool=True,
)


def equal(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a = b, element by element; False beside NaN.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.equal(ex.tensor([1.0, 2.0]), 2)
    ExTensor([False,  True], dtype=bool)
    """
    return call2(_EQUAL, a, b, out)


def not_equal(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a ≠ b, element by element; True beside NaN.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.not_equal(ex.tensor([1.0, 2.0]), 2)
    ExTensor([ True, False], dtype=bool)
    """
    return call2(_NOT_EQUAL, a, b, out)


def less(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a < b, element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.less(ex.tensor([1.0, 2.0]), 2)
    ExTensor([ True, False], dtype=bool)
    """
    return call2(_LESS, a, b, out)


def less_equal(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a ≤ b, element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.less_equal(ex.tensor([1.0, 2.0, 3.0]), 2)
    ExTensor([ True,  True, False], dtype=bool)
    """
    return call2(_LESS_EQUAL, a, b, out)


def greater(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a > b, element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.greater(ex.tensor([1.0, 2.0, 3.0]), 2)
    ExTensor([False, False,  True], dtype=bool)
    """
    return call2(_GREATER, a, b, out)


def greater_equal(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> ExTensor:
    """a ≥ b, element by element.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.greater_equal(ex.tensor([1.0, 2.0, 3.0]), 2)
    ExTensor([False,  True,  True], dtype=bool)
    """
    return call2(_GREATER_EQUAL, a, b, out)
