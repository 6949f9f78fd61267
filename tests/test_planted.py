"""Tests of the tests: wrong kernels, one kind of error at a time, must not pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import checks
import numpy as np
import pytest
from optable import BY_NAME, DTYPES, ROWS, Case, Domain, Edge, Op, planted

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
        broadcasts = row.arity == 2 and row.category in ("arithmetic", "comparison")
        case = ROW if broadcasts else row.cases[2]
        checks.check_values(row, case)
        if row.terms:
            checks.check_gradients(row, case)
            checks.check_gradient_values(row, case, "float32")


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


#: Gradients that are zero everywhere: another sign or scale is no change to them.
ZERO = ("floor_divide", "sign", "floor", "ceil", "round", "trunc")
ERRORS = [
    (row, error)
    for row in ROWS
    if row.terms
    for error in ("sign", "scale", "tail", "missing", "dtype")
    if row.name not in ZERO or error in ("tail", "dtype")
]


@pytest.mark.parametrize(("row", "error"), ERRORS, ids=str)
def test_wrong_gradients(row: Op, error: str) -> None:
    changes = {
        "sign": elements(lambda a: -a),
        "scale": elements(lambda a: a * 1.001),
        "tail": elements(_last_wrong),
        "missing": elements(np.zeros_like),
        "dtype": lambda t: ex.asarray(np.asarray(t).astype(np.float16)),
    }
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


# --- reductions and matrix products ---------------------------------------------------------------

COLUMNS = Case(((2, 3, 4),), {"axis": 1})


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A wrong function on arrays as one on tensors; keeps the dtype of its first argument."""

    def wrong(first: Any, *rest: Any, out: Any = None, needs: Any = None, **kwargs: Any) -> Any:
        arrays = [np.asarray(x) if isinstance(x, ex.ExTensor) else x for x in (first, *rest)]
        result = function(*arrays, **kwargs)
        dtype = arrays[0].dtype
        if isinstance(result, tuple):
            return tuple(ex.tensor(np.asarray(part, dtype)) for part in result)
        return ex.tensor(np.asarray(result, dtype))

    return wrong


def test_mean_gradient_divided_by_the_whole_size() -> None:
    def wrong(g: Any, shape: Any, axis: Any = None) -> Any:
        return np.broadcast_to(np.expand_dims(g, axis) / np.prod(shape), shape)

    row = planted(BY_NAME["mean"], backward_function=_numpy(wrong))
    caught(checks.check_gradients, row, COLUMNS)
    caught(checks.check_gradient_values, row, COLUMNS, "float32")


def test_gradient_along_another_axis_of_a_cube() -> None:
    """The shapes agree; only values tell."""

    def wrong(g: Any, shape: Any, axis: Any = None) -> Any:
        return np.broadcast_to(np.expand_dims(g, 0), shape)

    row = planted(BY_NAME["sum"], backward_function=_numpy(wrong))
    cube = Case(((3, 3, 3),), {"axis": 1})
    caught(checks.check_gradients, row, cube)
    caught(checks.check_gradient_values, row, cube, "float32")


def test_kept_axes_that_are_not_understood() -> None:
    def only_without(g: Any, shape: Any, axis: Any = None, **kwargs: Any) -> Any:
        if np.ndim(g) == len(shape):
            raise ValueError("sum_backward")
        return ex.sum_backward(g, shape, axis, **kwargs)

    row = planted(BY_NAME["sum"], backward_function=only_without)
    with pytest.raises(ValueError, match="sum_backward"):
        checks.check_kept_axes(row, COLUMNS)


def test_forward_running_sum() -> None:
    def running(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return np.add.accumulate(np.ravel(x), dtype=x.dtype)[-1]

    row = planted(
        BY_NAME["sum"],
        function=_numpy(running),
        domains=(Domain(0.1, 0.1, ints=(0, 1)),),
        without={dtype: "float32 alone" for dtype in DTYPES if dtype != "float32"},
    )
    caught(checks.check_values, row, Case(((2**18,),), {"axis": None}))


def test_variance_in_one_pass() -> None:
    def one_pass(x: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0) -> Any:
        return np.mean(x * x, axis=axis) - np.mean(x, axis=axis) ** 2

    row = planted(
        BY_NAME["variance"],
        function=_numpy(one_pass),
        domains=(Domain(1000.0, 1001.0),),
        without={dtype: "float32 alone" for dtype in DTYPES if dtype != "float32"},
    )
    caught(checks.check_values, row, COLUMNS)
    checks.check_values(planted(row, function=None), COLUMNS)


def test_largest_that_forgets_nan_or_ties() -> None:
    def forgets(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return np.fmax.reduce(x, axis=axis, keepdims=keepdims)

    def first(g: Any, x: Any, axis: Any = None) -> Any:
        return np.where(np.arange(x.size) == np.argmax(x), g, 0)

    row = planted(BY_NAME["max_reduce"], function=_numpy(forgets))
    caught(checks.check_special_values, row)
    caught(checks.check_edge, row, Edge(([1.0, np.nan],), np.nan), "float32")
    row = planted(BY_NAME["max_reduce"], backward_function=_numpy(first))
    ties = Edge(([3.0, 1.0, 3.0],), 3.0, ([3.0, 0.0, 3.0],), g=6.0)
    caught(checks.check_edge, row, ties, "float32")
    # without a tie it is right, and the gradient check alone does not see it
    checks.check_gradients(row, Case(((7,),), {"axis": None}))


def test_softmax_without_the_shift_or_over_all() -> None:
    def unshifted(x: Any, axis: Any = -1) -> Any:
        with np.errstate(all="ignore"):
            return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)

    def over_all(x: Any, axis: Any = -1) -> Any:
        return np.exp(x) / np.sum(np.exp(x))

    row = planted(BY_NAME["softmax"], function=_numpy(unshifted))
    large = Edge(([10000.0, -10000.0],), [1.0, 0.0])
    caught(checks.check_edge, row, large, "float64")
    caught(checks.check_values, planted(row, function=_numpy(over_all)), COLUMNS)


def test_matrix_gradients_without_a_transpose_or_a_sum() -> None:
    square, batch = Case(((3, 3), (3, 3))), Case(((2, 3, 4), (4, 5)))

    def untransposed(g: Any, a: Any, b: Any) -> Any:
        return g @ b, a @ g

    def averaged(g: Any, a: Any, b: Any) -> Any:
        return g @ b.T, (a.swapaxes(1, 2) @ g).mean(axis=0)

    def first(g: Any, a: Any, b: Any) -> Any:
        return g @ b.T, a[0].T @ g[0]

    row = BY_NAME["matmul"]
    for wrong, case in [(untransposed, square), (averaged, batch), (first, batch)]:
        spoiled = planted(row, backward_function=_numpy(wrong))
        caught(checks.check_gradients, spoiled, case)
        caught(checks.check_gradient_values, spoiled, case, "float32")


def test_products_that_lose_terms_or_digits() -> None:
    def tail(a: Any, b: Any) -> Any:
        k = a.shape[-1] - a.shape[-1] % 4
        return np.matmul(a[..., :k], b[:k])

    def half(a: Any, b: Any) -> Any:
        total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
        for k in range(a.shape[1]):
            total = total + a[:, k : k + 1] * b[k : k + 1]
        return total

    row, case = BY_NAME["matmul"], Case(((37, 67), (67, 41)))
    caught(checks.check_values, planted(row, function=_numpy(tail)), case)
    only = {dtype: "float16 alone" for dtype in DTYPES if dtype != "float16"}
    caught(checks.check_values, planted(row, function=_numpy(half), without=only), case)


def test_row_that_takes_a_linear_layer_the_other_way() -> None:
    def wrong(x: Any, weight: Any, bias: Any) -> Any:
        return x @ weight + bias

    case = Case(((5, 3), (3, 3), (3,)))
    caught(checks.check_values, planted(BY_NAME["linear"], function=_numpy(wrong)), case)


def test_wrong_result_dtype() -> None:
    def always_float32(a: Any, b: Any, **kwargs: Any) -> Any:
        return ex.tensor(np.asarray(ex.add(a, b), np.float32))

    row = planted(BY_NAME["add"], function=always_float32)
    caught(checks.check_mixed_dtypes, row)
    caught(checks.check_values, row, SAME)
