"""The table takes ops of every kind: axis arguments, gradients from the output, lists, shapes.

The ops are made up here from NumPy, so that the engine is tested apart from the library.
"""

from __future__ import annotations

from typing import Any

import checks
import numpy as np
import pytest
from optable import REAL, Case, Edge, Op, planted

import extensor as ex


def tensor(value: Any) -> Any:
    return ex.tensor(np.asarray(value))


def _spread(g: Any, shape: tuple, axis: Any) -> np.ndarray:
    """grad_output with or without the reduced axes, in the full shape."""
    array = np.asarray(g)
    axes = range(len(shape)) if axis is None else np.atleast_1d(axis)
    kept = [1 if i in [a % len(shape) for a in axes] else n for i, n in enumerate(shape)]
    return np.broadcast_to(array.reshape(kept), shape)


def _count(x: Any, axis: Any) -> int:
    return int(np.size(x) // max(np.size(np.sum(np.asarray(x), axis=axis)), 1))


def _exp(x: Any) -> Any:
    """Right to half an ULP, which NumPy's is not in float32."""
    with np.errstate(all="ignore"):
        dtype = np.exp(np.asarray(x)).dtype
        return tensor(np.exp(np.asarray(x, np.longdouble)).astype(dtype))


REDUCTION = Op(
    "mean",
    "reduction",
    lambda x, axis=None, keepdims=False: np.sum(x, axis=axis, keepdims=keepdims) / _count(x, axis),
    lambda g, shape, axis=None: (_spread(g, shape, axis) / _count(np.zeros(shape), axis),),
    saved=lambda inputs, output: (np.shape(inputs[0]),),
    domains=(REAL,),
    cases=tuple(
        Case(((2, 3, 4),), kwargs)
        for kwargs in ({}, {"axis": 1}, {"axis": (0, 2)}, {"axis": -1, "keepdims": True})
    ),
    like=np.mean,
    bound=lambda expected, u, x, axis=None, keepdims=False: (
        20 * u * np.sum(np.abs(x), axis=axis, keepdims=keepdims) / _count(x, axis)
    ),
    backward_kwargs=("axis",),
    elementwise=False,
    edges=(
        Edge(([1.0, np.inf],), np.inf, ([0.5, 0.5],)),
        Edge(([3.0, 5.0],), 4.0, ([1.0, 1.0],), g=2.0),
    ),
    function=lambda x, axis=None, keepdims=False: tensor(
        np.mean(np.asarray(x), axis=axis, keepdims=keepdims)
    ),
    backward_function=lambda g, shape, axis=None: tensor(
        (_spread(g, shape, axis) / _count(np.zeros(shape), axis)).astype(np.asarray(g).dtype)
    ),
)

FROM_OUTPUT = Op(
    "exp",
    "elementwise",
    np.exp,
    lambda g, output: (g * output,),
    saved="output",
    domains=(REAL,),
    cases=(Case(((3, 4),)), Case(((),))),
    ulp=1.5,
    function=lambda x: _exp(x),
    backward_function=lambda g, y: tensor(np.asarray(g) * np.asarray(y)),
    edges=(Edge((0.0,), 1.0, (3.0,), g=3.0), Edge((-np.inf,), 0.0, (0.0,))),
)

PACKED = Op(
    "concatenate",
    "shape",
    lambda a, b, axis=0: np.concatenate([a, b], axis=axis),
    lambda g, shapes, axis=0: tuple(np.split(g, [shapes[0][axis]], axis=axis)),
    saved="shapes",
    packed=True,
    cases=(Case(((2, 3), (4, 3))), Case(((2, 3), (2, 1)), {"axis": 1})),
    backward_kwargs=("axis",),
    elementwise=False,
    function=lambda xs, axis=0: tensor(np.concatenate([np.asarray(x) for x in xs], axis=axis)),
    backward_function=lambda g, shapes, axis=0: [
        tensor(part) for part in np.split(np.asarray(g), [shapes[0][axis]], axis=axis)
    ],
)

SEVERAL_OUTPUTS = Op(
    "split",
    "shape",
    lambda x, axis=0: np.split(x, 2, axis=axis),
    lambda g, axis=0: (np.concatenate(g, axis=axis),),
    saved="nothing",
    domains=(REAL,),
    cases=(Case(((4, 3),)), Case(((3, 2),), {"axis": 1})),
    like=lambda x, axis=0: np.split(x, 2, axis=axis)[0],
    backward_kwargs=("axis",),
    elementwise=False,
    function=lambda x, axis=0: [tensor(part) for part in np.split(np.asarray(x), 2, axis=axis)],
    backward_function=lambda g, axis=0: tensor(
        np.concatenate([np.asarray(part) for part in g], axis=axis)
    ),
)

KINDS = [REDUCTION, FROM_OUTPUT, PACKED, SEVERAL_OUTPUTS]


def run(row: Op) -> None:
    for case in row.cases:
        checks.check_values(row, case)
        checks.check_gradients(row, case)
        for dtype in ("float16", "float32", "float64"):
            checks.check_gradient_values(row, case, dtype)
    checks.check_layouts(row, "transposed")
    for edge in row.edges:
        checks.check_edge(row, edge, "float32")


@pytest.mark.parametrize("row", KINDS, ids=str)
def test_kinds_of_ops(row: Op) -> None:
    run(row)


@pytest.mark.parametrize("row", KINDS, ids=str)
def test_kinds_of_ops_with_a_wrong_gradient(row: Op) -> None:
    right = row.backward_function
    assert right

    def wrong(*args: Any, **kwargs: Any) -> Any:
        result = right(*args, **kwargs)
        np.asarray(result[-1] if isinstance(result, list) else result)[..., -1] *= 1.01
        return result

    with pytest.raises(AssertionError):
        run(planted(row, backward_function=wrong))


def test_a_mean_that_divides_by_everything() -> None:
    def wrong(g: Any, shape: Any, axis: Any = None) -> Any:
        return tensor((_spread(g, shape, axis) / np.prod(shape)).astype(np.asarray(g).dtype))

    with pytest.raises(AssertionError):
        run(planted(REDUCTION, backward_function=wrong))
