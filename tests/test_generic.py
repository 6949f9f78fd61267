"""Every check of ``checks.py`` over every row of the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import checks
import pytest
from helpers import LAYOUTS
from optable import FLOATS, ROWS, Case, Edge, Op, differentiable

GRADIENT_ROWS = differentiable()


def over(name: str, rows: Iterable[Op], *arguments: Any) -> Any:
    """Parametrise over rows (those that leave out ``name`` excepted) and further arguments.

    An argument is a list of values (tuples of several), or a function of the row that returns one.
    """
    combinations = []
    for row in rows:
        if name in row.without:
            continue
        lists = [argument(row) if callable(argument) else argument for argument in arguments]
        combos: list[tuple[Any, ...]] = [(row,)]
        for values in lists:
            combos = [
                (*combo, *(value if isinstance(value, tuple) else (value,)))
                for combo in combos
                for value in values
            ]
        combinations += [pytest.param(combo, id="-".join(map(str, combo))) for combo in combos]
    return pytest.mark.parametrize("arguments", combinations)


def cases(row: Op) -> list[Case]:
    return list(row.cases)


def cases_and_blocks(row: Op) -> list[Case]:
    return [*row.cases, *checks.block_cases(row)]


def edges(row: Op) -> list[tuple[Edge, str]]:
    return [(edge, dtype) for edge in row.edges for dtype in edge.dtypes]


def sums(row: Op) -> list[tuple[Case, str]]:
    """One input broadcast along the first axis, the last, all, and one in the middle."""
    found = []
    for dtype in FLOATS:
        n = 2**16 + 1 if dtype == "float64" else 2**18 + 1
        for full, small in [
            ((n, 2), (2,)),
            ((2, n), (2, 1)),
            ((n,), ()),
            ((3, n // 3, 2), (3, 1, 2)),
        ]:
            found.append((Case((*((full,) * (row.arity - 1)), small)), dtype))
    return found


@over("values", ROWS, cases_and_blocks)
def test_values(arguments: Any) -> None:
    checks.check_values(*arguments)


@over("special values", [row for row in ROWS if row.elementwise or row.category == "reduction"])
def test_special_values(arguments: Any) -> None:
    checks.check_special_values(*arguments)


@over("mixed dtypes", [row for row in ROWS if row.arity > 1])
def test_values_of_mixed_dtypes(arguments: Any) -> None:
    checks.check_mixed_dtypes(*arguments)


@over("input kinds", ROWS)
def test_input_kinds(arguments: Any) -> None:
    checks.check_input_kinds(*arguments)


@over("edges", ROWS, edges)
def test_edge_points(arguments: Any) -> None:
    checks.check_edge(*arguments)


@over("gradients", GRADIENT_ROWS, cases)
def test_gradients(arguments: Any) -> None:
    checks.check_gradients(*arguments)


@over("gradient values", GRADIENT_ROWS, cases_and_blocks, FLOATS)
def test_gradient_values(arguments: Any) -> None:
    checks.check_gradient_values(*arguments)


@over("kept axes", [row for row in GRADIENT_ROWS if row.grad_shapes], cases)
def test_gradient_values_with_kept_axes(arguments: Any) -> None:
    checks.check_kept_axes(*arguments)


@over("gradient dtypes", [row for row in GRADIENT_ROWS if row.arity > 1])
def test_gradient_dtypes(arguments: Any) -> None:
    checks.check_gradient_dtypes(*arguments)


@over("gradient scalars", [row for row in GRADIENT_ROWS if row.arity > 1 and row.elementwise])
def test_gradient_of_python_scalars(arguments: Any) -> None:
    checks.check_gradient_scalars(*arguments)


@over(
    "summed gradients",
    [row for row in GRADIENT_ROWS if row.arity > 1 and row.elementwise],
    sums,
    ["0.1", "random"],
)
def test_summed_gradients(arguments: Any) -> None:
    checks.check_summed_gradients(*arguments)


@over("layouts", ROWS, list(LAYOUTS))
def test_layouts(arguments: Any) -> None:
    checks.check_layouts(*arguments)


@over("independence", [row for row in ROWS if row.elementwise], FLOATS)
def test_position_independence(arguments: Any) -> None:
    checks.check_independence(*arguments)


@over("threads", ROWS, lambda row: list(checks.large_cases(row)))
def test_threads(arguments: Any) -> None:
    checks.check_threads(*arguments)


@over("out", [row for row in ROWS if not row.view], [*FLOATS, "int64"])
def test_out(arguments: Any) -> None:
    checks.check_out(*arguments)


@over("out", [row for row in ROWS if row.elementwise and not row.view], FLOATS)
def test_out_overlapping_an_input(arguments: Any) -> None:
    checks.check_out_overlap(*arguments)


@over("out", [row for row in ROWS if not row.view])
def test_out_refused(arguments: Any) -> None:
    checks.check_out_refused(*arguments)


@over("needs", [row for row in GRADIENT_ROWS if len(row.gradients) > 1])
def test_needs(arguments: Any) -> None:
    checks.check_needs(*arguments)


@over("bad grad_output", GRADIENT_ROWS)
def test_bad_grad_output(arguments: Any) -> None:
    checks.check_bad_grad_output(*arguments)


@over("bad inputs", ROWS)
def test_bad_inputs(arguments: Any) -> None:
    checks.check_bad_inputs(*arguments)
