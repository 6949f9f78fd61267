"""Tests of the tests: wrong kernels, one kind of error at a time, must not pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import checks
import numpy as np
import pytest
from optable import BY_NAME, ROWS, Case, Edge, Op, planted

import extensor as ex

SAME = Case(((3, 4), (3, 4)))
ROW = Case(((3, 4), (4,)))


def changed(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function with its result (each result of several) changed; None stays None."""

    def wrong(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, tuple):
            return tuple(None if part is None else change(part) for part in result)
        return change(result)

    return wrong


def elements(change: Callable[[np.ndarray], Any]) -> Callable[[Any], Any]:
    def on_tensor(tensor: Any) -> Any:
        array = np.array(tensor)
        return ex.asarray(np.asarray(change(array), array.dtype).reshape(array.shape))

    return on_tensor


def _last_wrong(array: np.ndarray) -> np.ndarray:
    """What a wrong loop tail does."""
    if array.size:
        array.flat[-1] = ~array.flat[-1] if array.dtype.kind == "b" else array.flat[-1] + 1
    return array


def _one_ulp(array: np.ndarray) -> np.ndarray:
    return np.nextafter(array, np.inf, dtype=array.dtype) if array.dtype.kind == "f" else array


def caught(check: Callable[..., None], row: Op, *arguments: Any) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(row, *arguments)


def test_the_checks_pass_without_a_planted_error() -> None:
    """Otherwise the other tests here would show nothing."""
    for row in ROWS:
        if row.arity == 2:
            checks.check_values(row, ROW)
            if row.terms:
                checks.check_gradients(row, ROW)
                checks.check_gradient_values(row, ROW, "float32")


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_wrong_values(row: Op) -> None:
    function = getattr(ex, row.name)
    case = row.cases[2]
    caught(
        checks.check_values, planted(row, function=changed(function, elements(_last_wrong))), case
    )
    if row.ulp == 0 and row.category == "arithmetic":
        caught(
            checks.check_values, planted(row, function=changed(function, elements(_one_ulp))), case
        )


@pytest.mark.parametrize("row", [row for row in ROWS if row.terms], ids=str)
@pytest.mark.parametrize("error", ["sign", "scale", "tail", "missing", "dtype"])
def test_wrong_gradients(row: Op, error: str) -> None:
    changes = {
        "sign": elements(lambda a: -a),
        "scale": elements(lambda a: a * 1.001),
        "tail": elements(_last_wrong),
        "missing": elements(np.zeros_like),
        "dtype": lambda t: ex.asarray(np.asarray(t).astype(np.float16)),
    }
    if row.name == "floor_divide" and error in ("sign", "scale", "missing"):
        pytest.skip("zeros: these changes are none")
    backward = getattr(ex, row.backward_name)
    wrong = planted(row, backward_function=changed(backward, changes[error]))
    case = row.cases[2]
    caught(checks.check_gradients, wrong, case)
    caught(checks.check_gradient_values, wrong, case, "float32")


def test_broadcast_gradient_that_is_not_summed() -> None:
    row = BY_NAME["multiply"]

    def unsummed(g: Any, a: Any, b: Any, **kwargs: Any) -> Any:
        return ex.multiply(g, b), ex.multiply(g, a)

    def first_row(g: Any, a: Any, b: Any, **kwargs: Any) -> Any:
        return ex.multiply(g, b), ex.tensor(np.asarray(g)[0] * np.asarray(a)[0])

    def averaged(g: Any, a: Any, b: Any, **kwargs: Any) -> Any:
        return ex.multiply(g, b), ex.tensor((np.asarray(g) * np.asarray(a)).mean(axis=0))

    for wrong in (unsummed, first_row, averaged):
        caught(checks.check_gradients, planted(row, backward_function=wrong), ROW)
        caught(checks.check_gradient_values, planted(row, backward_function=wrong), ROW, "float32")


def test_running_sums() -> None:
    """A float32 sum of 2**18 tenths, one after the other, is outside the bound."""

    def running(g: Any, a: Any, b: Any, **kwargs: Any) -> Any:
        first, _ = ex.multiply_backward(g, a, b)
        total = np.add.accumulate(np.asarray(g) * np.asarray(a), axis=0, dtype=np.float32)[-1]
        return first, ex.tensor(total)

    row = planted(BY_NAME["multiply"], backward_function=running)
    caught(checks.check_summed_gradients, row, Case(((2**18 + 1, 2), (2,))), "float32", "0.1")


def test_gradients_that_share_memory() -> None:
    def same(g: Any, *shapes: Any, **kwargs: Any) -> Any:
        return g, g

    def twice(g: Any, *shapes: Any, **kwargs: Any) -> Any:
        copy = ex.tensor(g)
        return copy, copy

    for wrong in (same, twice):
        caught(checks.check_gradients, planted(BY_NAME["add"], backward_function=wrong), SAME)


def test_wrong_convention_at_a_tie() -> None:
    def first_wins(g: Any, a: Any, b: Any, **kwargs: Any) -> Any:
        wins = np.asarray(a) >= np.asarray(b)
        zero = np.zeros_like(np.asarray(g))
        return ex.tensor(np.where(wins, g, zero)), ex.tensor(np.where(wins, zero, g))

    row = planted(BY_NAME["maximum"], backward_function=first_wins)
    caught(checks.check_edge, row, Edge((2.0, 2.0), 2.0, (0.5, 0.5)), "float32")


def test_zero_by_convention_that_was_multiplied() -> None:
    def multiplied(g: Any, *args: Any, **kwargs: Any) -> Any:
        zero = np.asarray(g) * 0
        return ex.tensor(zero), ex.tensor(zero)

    row = planted(BY_NAME["floor_divide"], backward_function=multiplied)
    caught(checks.check_edge, row, Edge((7.0, 2.0), 3.0, (0.0, 0.0), g=np.nan), "float32")


def test_wrong_layout() -> None:
    def in_memory_order(a: Any, b: Any, **kwargs: Any) -> Any:
        flat = [np.asarray(x).ravel(order="K") for x in (a, b)]
        return ex.tensor(np.add(*flat).reshape(np.shape(a)))

    row = planted(BY_NAME["add"], function=in_memory_order, cases=(SAME,), terms=None)
    caught(checks.check_layouts, row, "transposed")


def test_input_modified() -> None:
    def overwrites(a: Any, b: Any, **kwargs: Any) -> Any:
        result = ex.add(a, b)
        np.asarray(a)[...] = 0
        return result

    caught(checks.check_values, planted(BY_NAME["add"], function=overwrites), SAME)


def test_position_dependent_bits() -> None:
    def by_position(a: Any, **kwargs: Any) -> Any:
        return elements(_last_wrong)(ex.negative(a))

    row = planted(BY_NAME["negative"], function=by_position)
    caught(checks.check_independence, row, "float32")


def test_out_that_is_ignored_or_written_too_early() -> None:
    def ignores(a: Any, b: Any, out: Any = None) -> Any:
        ex.add(a, b)
        return out if out is not None else ex.add(a, b)

    def early(a: Any, b: Any, out: Any = None) -> Any:
        if out is None:
            return ex.add(a, b)
        if isinstance(out, ex.ExTensor) and np.asarray(out).flags.writeable:
            np.asarray(out)[...] = 7
        return ex.add(a, b, out=out)

    caught(checks.check_out, planted(BY_NAME["add"], function=ignores), "float32")
    caught(checks.check_out_refused, planted(BY_NAME["add"], function=early))


def test_grad_output_that_is_broadcast() -> None:
    def broadcasts(g: Any, a: Any, b: Any, **kwargs: Any) -> Any:
        shape = np.broadcast_shapes(np.shape(a), np.shape(b))
        return ex.multiply_backward(np.broadcast_to(np.asarray(g), shape).copy(), a, b, **kwargs)

    caught(checks.check_bad_grad_output, planted(BY_NAME["multiply"], backward_function=broadcasts))


def test_thread_dependent_bits() -> None:
    def by_threads(a: Any, b: Any, **kwargs: Any) -> Any:
        result = ex.add(a, b)
        if ex.get_num_threads() == 3:
            np.asarray(result).flat[-1] += 1
        return result

    row = planted(BY_NAME["add"], function=by_threads)
    caught(checks.check_threads, row, Case(((checks.LARGE,),) * 2), "float32")


def test_error_without_the_name_of_the_function() -> None:
    def anonymous(*args: Any, **kwargs: Any) -> Any:
        try:
            return ex.add(*args, **kwargs)
        except (TypeError, ValueError) as error:
            raise type(error)("something is wrong") from None

    caught(checks.check_bad_inputs, planted(BY_NAME["add"], function=anonymous))


def test_wrong_result_dtype() -> None:
    def always_float32(a: Any, b: Any, **kwargs: Any) -> Any:
        return ex.tensor(np.asarray(ex.add(a, b), np.float32))

    row = planted(BY_NAME["add"], function=always_float32)
    caught(checks.check_mixed_dtypes, row)
    caught(checks.check_values, row, SAME)
