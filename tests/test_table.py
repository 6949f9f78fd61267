"""The table itself: complete, and its numbers agree with the reference formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import optable
import pytest
from checks import resolve
from helpers import assert_within, ulp
from optable import EITHER_ZERO, ROWS, Edge, Op

import extensor as ex


def test_every_public_name_has_a_row_or_a_test() -> None:
    covered = {row.name for row in ROWS} | {row.backward_name for row in ROWS}
    covered |= {name for names in optable.NOT_OPS.values() for name in names}
    missing = sorted(set(ex.__all__) - covered)
    assert not missing, f"no row in optable.py and no entry in NOT_OPS: {missing}"


@pytest.mark.parametrize("file", optable.NOT_OPS)
def test_names_that_are_no_ops_are_tested_where_the_list_says(file: str) -> None:
    text = (Path(__file__).parent / file).read_text()
    names = optable.NOT_OPS[file]
    assert [name for name in names if name not in ex.__all__] == [], "no longer public"
    if file != "test_dtypes.py":  # those are parametrised
        assert [name for name in names if f"{name}(" not in text and f"ex.{name}" not in text] == []


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(row: Op) -> None:
    module = __import__(f"extensor.{row.category}", fromlist=["__all__"])
    for name in filter(None, (row.name, row.backward_name)):
        assert name in module.__all__
        assert name in ex.__all__
        assert getattr(module, name) is getattr(ex, name)
    has_backward = f"{row.name}_backward" in ex.__all__
    assert has_backward == (row.terms is not None)
    assert row.edges, "a row without edge points"
    assert all(len(case.shapes) == row.arity for case in row.cases)
    assert all(len(reason) > 10 for reason in row.without.values())
    points = np.concatenate([_all_numbers(edge.inputs) for edge in row.edges if _floating(edge)])
    for found in (np.isnan(points), np.isinf(points), points == 0):
        assert found.any()


def _floating(edge: Edge) -> bool:
    return any(dtype.startswith("float") for dtype in edge.dtypes)


def _all_numbers(inputs: Any) -> Any:
    return np.concatenate([np.ravel(resolve(value, np.float64)) for value in inputs])


EDGES = [
    (row, edge)
    for row in ROWS
    for edge in row.edges
    # NumPy's integer 1/0 is what the processor makes of it; here it is 0
    if (row.name, edge.inputs) != ("reciprocal", (0,))
]


@pytest.mark.parametrize(("row", "edge"), EDGES, ids=lambda value: str(value))
def test_numbers_of_the_table_agree_with_the_reference(row: Op, edge: Edge) -> None:
    """Two derivations of every expected number: by hand in the table, by formula in reference."""
    dtype = edge.dtypes[-1]
    inputs = [
        resolve(value, domain.dtype or dtype)
        for value, domain in zip(edge.inputs, row.domains, strict=True)
    ]
    with np.errstate(all="ignore"):
        _agree(edge.value, row.reference(*inputs, **row.of_forward(edge.kwargs)), dtype)
        if edge.grads:
            assert row.terms
            wide = [x.astype(np.longdouble) if x.dtype.kind == "f" else x for x in inputs]
            output = row.reference(*wide, **row.of_forward(edge.kwargs))
            saved = row.save(tuple(wide), output)
            g = np.full(np.shape(output), edge.g, np.longdouble)
            terms = row.terms(g, *saved, **row.of_backward(edge.kwargs))
            for wanted, term in zip(edge.grads, terms, strict=True):
                _agree(wanted, term, dtype)


def _agree(wanted: Any, found: Any, dtype: str) -> None:
    if isinstance(wanted, str) and wanted == EITHER_ZERO:
        assert (np.asarray(found) == 0).all()
        return
    dtype = str(np.asarray(found).dtype) if dtype[0] != "f" else dtype
    expected = resolve(wanted, np.asarray(found).dtype if dtype[0] != "f" else dtype)
    if np.asarray(found).dtype.kind != "f":
        assert np.array_equal(found, expected)
        return
    assert_within(np.asarray(found, dtype), expected, 2 * ulp(expected, dtype))
