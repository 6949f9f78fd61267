"""Shape functions against NumPy by value, their gradients against differences and by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import LAYOUTS, assert_same_bits, threads_used
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.exceptions import AxisError
from optable import DTYPES, FLOATS

import extensor as ex

settings.register_profile("shape", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("shape")


def sample(shape: Any, dtype: Any = "float32", seed: int = 0) -> np.ndarray:
    values = np.random.default_rng([seed, *np.atleast_1d(shape)]).uniform(-100, 100, shape)
    if np.dtype(dtype).kind in "ub":
        values = np.abs(values) if np.dtype(dtype).kind == "u" else values > 0
    return np.asarray(values, dtype)


def shares(a: Any, b: Any) -> bool:
    return np.may_share_memory(np.asarray(a), np.asarray(b))


def owned(tensor: ex.ExTensor) -> bool:
    array = tensor.numpy()
    aligned = array.size == 0 or array.__array_interface__["data"][0] % 64 == 0
    return array.flags.c_contiguous and array.flags.owndata and array.flags.writeable and aligned


# Each entry: name, call of the library, NumPy's, shape of x, whether NumPy gives a view.
ONE_INPUT: list[tuple[str, Any, Any, tuple[int, ...], bool]] = [
    ("reshape", lambda x: ex.reshape(x, (4, 6)), lambda x: x.reshape(4, 6), (2, 3, 4), True),
    ("reshape -1", lambda x: ex.reshape(x, [3, -1]), lambda x: x.reshape(3, 8), (2, 3, 4), True),
    ("reshape int", lambda x: ex.reshape(x, -1), lambda x: x.reshape(-1), (2, 3), True),
    ("reshape to 0-d", lambda x: ex.reshape(x, ()), lambda x: x.reshape(()), (1, 1), True),
    ("reshape 0-d", lambda x: ex.reshape(x, (1, -1)), lambda x: x.reshape(1, 1), (), True),
    ("reshape empty", lambda x: ex.reshape(x, (4, -1)), lambda x: x.reshape(4, 0), (0, 3), True),
    ("flatten", ex.flatten, lambda x: x.flatten(), (2, 3, 4), False),
    ("flatten 0-d", ex.flatten, lambda x: x.flatten(), (), False),
    ("flatten empty", ex.flatten, lambda x: x.flatten(), (2, 0), False),
    ("ravel", ex.ravel, lambda x: x.ravel(), (2, 3, 4), True),
    ("squeeze", ex.squeeze, lambda x: x.squeeze(), (1, 3, 1, 2), True),
    ("squeeze all", ex.squeeze, lambda x: x.squeeze(), (1, 1), True),
    ("squeeze axis", lambda x: ex.squeeze(x, -2), lambda x: x.squeeze(-2), (1, 3, 1, 2), True),
    ("squeeze axes", lambda x: ex.squeeze(x, (0, 2)), lambda x: x.squeeze((0, 2)), (1, 3, 1), True),
    ("squeeze none", lambda x: ex.squeeze(x, ()), lambda x: x, (1, 3), True),
    ("unsqueeze", lambda x: ex.unsqueeze(x, 1), lambda x: x[:, None], (2, 3), True),
    ("unsqueeze -1", lambda x: ex.unsqueeze(x, -1), lambda x: x[..., None], (2, 3), True),
    ("unsqueeze 0-d", lambda x: ex.unsqueeze(x, 0), lambda x: x[None], (), True),
    (
        *("expand_dims", lambda x: ex.expand_dims(x, (0, 2))),
        *(lambda x: np.expand_dims(x, (0, 2)), (2, 3), True),
    ),
    (
        "permute",
        lambda x: ex.permute(x, (2, 0, 1)),
        lambda x: x.transpose(2, 0, 1),
        (2, 3, 4),
        True,
    ),
    ("permute -", lambda x: ex.permute(x, [-1, 0]), lambda x: x.T, (2, 3), True),
    ("permute 0-d", lambda x: ex.permute(x, ()), lambda x: x, (), True),
    (
        *("broadcast_to", lambda x: ex.broadcast_to(x, (4, 3, 2))),
        *(lambda x: np.broadcast_to(x, (4, 3, 2)), (3, 1), True),
    ),
    ("broadcast 0-d", lambda x: ex.broadcast_to(x, 3), lambda x: np.broadcast_to(x, 3), (), True),
    (
        *("broadcast to nothing", lambda x: ex.broadcast_to(x, (0, 3))),
        *(lambda x: np.broadcast_to(x, (0, 3)), (1, 3), True),
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "call", "numpy", "shape", "view"), [pytest.param(*row, id=row[0]) for row in ONE_INPUT]
)
def test_values_and_views(
    name: str, call: Any, numpy: Any, shape: tuple[int, ...], view: bool, dtype: str
) -> None:
    x = sample(shape, dtype)
    layouts = LAYOUTS if shape else {"offset": LAYOUTS["offset"]}
    for layout, change in {"plain": np.copy, **layouts}.items():
        laid = np.asarray(change(x))
        before = laid.copy()
        result = call(ex.asarray(laid))
        expected = numpy(np.asarray(laid))
        assert type(result) is ex.ExTensor
        assert_same_bits(result, expected, f"{name} {layout}")
        assert_same_bits(laid, before)
        if layout != "unaligned" and x.size and expected.size:
            assert shares(result, laid) == (view and shares(expected, laid)), f"{name} {layout}"
            if shares(result, laid):
                for size, ours, theirs in zip(
                    expected.shape, result.strides, expected.strides, strict=True
                ):
                    assert ours == theirs or size == 1, f"{name} {layout}"
                assert np.asarray(result).flags.writeable == expected.flags.writeable
            else:
                assert owned(result), f"{name} {layout}"
        assert_same_bits(call(laid.tolist() if dtype == "float32" and x.ndim else laid), expected)


def test_a_view_shows_the_change_and_outlives_its_parent() -> None:
    x = ex.tensor(sample((2, 3)))
    flat, column = ex.ravel(x), ex.split(x, 3, axis=1)[1]
    copy = ex.flatten(x)
    before = float(copy[1])
    x[0, 1] = 7.0
    assert float(flat[1]) == 7.0 and float(column[0, 0]) == 7.0 and float(copy[1]) == before
    del x
    assert float(flat[1]) == 7.0
    with pytest.raises(ValueError, match="read-only"):
        ex.broadcast_to(flat, (2, 6))[0, 0] = 1.0


def test_methods() -> None:
    x = ex.tensor(sample((2, 1, 3)))
    a = np.asarray(x)
    assert_same_bits(x.reshape(3, 2), a.reshape(3, 2))
    assert_same_bits(x.reshape((3, -1)), a.reshape(3, 2))
    assert_same_bits(x.reshape(-1), a.reshape(-1))
    assert_same_bits(x.flatten(), a.flatten())
    assert_same_bits(x.ravel(), a.ravel())
    assert_same_bits(x.squeeze(), a.squeeze())
    assert_same_bits(x.squeeze(1), a.squeeze(1))
    assert_same_bits(x.unsqueeze(-1), a[..., None])


def test_large_copies_use_the_threads_and_keep_the_bits() -> None:
    x = sample((1027, 515))
    for n in (1, 2, 3):
        with ex.num_threads(n):
            assert_same_bits(ex.flatten(x.T), x.T.flatten())
            assert threads_used() == n
            assert_same_bits(ex.reshape(x.T, -1), x.T.reshape(-1))
            assert_same_bits(ex.concatenate([x, x[:, ::-1]], 1), np.concatenate([x, x[:, ::-1]], 1))
            assert_same_bits(ex.stack([x, x], -1), np.stack([x, x], -1))
            assert threads_used() == n
            assert_same_bits(ex.cast(x, "float64"), x.astype("float64"))
            assert threads_used() == n


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_of_permuted_tensors(dtype: str) -> None:
    shapes = (
        (3, 5),
        (16, 16),
        (33, 47),
        (130, 257),
        (4, 31, 18),
        (2, 3, 40, 5),
        (1100, 3),
        (640, 513),
    )
    for shape in shapes:
        x = sample(shape, dtype)
        for axes in itertools.permutations(range(len(shape))):
            turned = x.transpose(axes)
            for view in (turned, turned[1:], turned[..., ::-1], turned[:, ::2]):
                expected = view.copy(order="C")
                for n in (1, 2, 3):
                    with ex.num_threads(n):
                        assert_same_bits(ex.asarray(view).copy(), expected, f"{shape} {axes} {n}")
                assert_same_bits(ex.flatten(view), expected.reshape(-1), f"{shape} {axes}")
                place = np.empty(shape, dtype).transpose(axes)[tuple(map(slice, view.shape))]
                ex.cast(view, dtype, out=place)
                assert_same_bits(place.copy(order="C"), expected, f"{shape} {axes}")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_joins_of_uneven_parts(dtype: str) -> None:
    sizes = (1, 0, 900, 2, 17)
    for axis in (0, 1, 2):
        for row in ((40, 3, 7), (3, 40, 1), (1, 1, 600)):
            shapes = [(*row[:axis], size, *row[axis + 1 :]) for size in sizes]
            parts = [sample(shape, dtype, i) for i, shape in enumerate(shapes)]
            expected = np.concatenate(parts, axis)
            for n in (1, 2, 3, 8):
                with ex.num_threads(n):
                    assert_same_bits(ex.concatenate(parts, axis), expected, f"{axis} {row} {n}")


def test_float_casts_of_every_size_round_as_numpy() -> None:
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 1e-320, 1e-45, 65519.99, 65520, 3e-8]
    )
    for source, to in itertools.product(FLOATS, FLOATS):
        for size in (12, 5000, 300_001):
            with np.errstate(all="ignore"):
                x = np.resize(np.concatenate([special, sample(1000, "float64")]), size)
                x = x.astype(source)
                expected = x.astype(to)
            for n in (1, 2, 3):
                with ex.num_threads(n):
                    got = ex.cast(x, to)
                    assert_same_bits(got, expected, f"{source} {to} {size}")
                    assert_same_bits(ex.cast_backward(x, np.dtype(to)), expected)


# --- concatenate, stack, split ------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_concatenate_and_back(axis: int, count: int) -> None:
    shapes = []
    for i in range(count):
        shape = [2, 3, 4]
        shape[axis] = i % 3 + (i % 4 == 0)
        shapes.append(tuple(shape))
    for dtype in DTYPES:
        arrays = [sample(shape, dtype, i) for i, shape in enumerate(shapes)]
        expected = np.concatenate(arrays, axis)
        result = ex.concatenate([ex.asarray(a) for a in arrays], axis=axis)
        assert_same_bits(result, expected)
        assert owned(result)
        out = ex.asarray(np.zeros_like(expected))
        assert ex.concatenate(arrays, axis, out=out) is out
        assert_same_bits(out, expected)
    g = sample(expected.shape, "float64", 9)
    gradients = ex.concatenate_backward(g, shapes, axis)
    cuts = np.cumsum([shape[axis] for shape in shapes])[:-1]
    for gradient, part in zip(gradients, np.split(g, cuts, axis), strict=True):
        assert_same_bits(gradient, part)
    inputs = [sample(shape, "float64", i) for i, shape in enumerate(shapes)]
    ex.check_gradient(
        lambda *xs: ex.concatenate(list(xs), axis),
        lambda g, *xs: tuple(ex.concatenate_backward(g, list(xs), axis)),
        inputs,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_concatenate_of_layouts(layout: str) -> None:
    a, b = (LAYOUTS[layout](sample((3, 4), seed=i)) for i in (0, 1))
    for axis in (0, 1):
        assert_same_bits(ex.concatenate((a, b), axis), np.concatenate((a, b), axis))
        assert_same_bits(ex.stack((a, b), axis), np.stack((a, b), axis))
    assert_same_bits(ex.stack((a, b), 2), np.stack((a, b), 2))


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_joined_dtypes(a: str, b: str) -> None:
    x, y = sample((2, 3), a), sample((2, 3), b, 1)
    assert_same_bits(ex.concatenate([x, y], -1), np.concatenate([x, y], -1))
    assert_same_bits(ex.stack([x, y], 1), np.stack([x, y], 1))


def test_joined_python_numbers() -> None:
    double, byte = ex.tensor(0.1, ex.float64), ex.tensor(7, ex.int8)
    assert ex.stack([double, 0.1]).dtype == np.float64
    assert float(ex.stack([double, 0.1])[1]) == 0.1
    assert ex.stack([ex.tensor(1, ex.float16), 2, 0.5]).dtype == np.float16
    assert ex.stack([byte, 3]).dtype == np.int8
    assert ex.stack([1, 2.5]).dtype == np.float32
    assert ex.stack([1, True]).dtype == np.int64
    assert ex.stack([True, False]).dtype == np.bool_
    assert ex.concatenate([[1.5, 2.0], [3]]).dtype == np.float64  # float32 and int64
    assert ex.concatenate([[1.5], [2.5]]).dtype == np.float32
    with pytest.raises(OverflowError, match="stack"):
        ex.stack([byte, 300])
    big = np.array([2**53 + 1])
    assert int(ex.concatenate([big, big])[1]) == 2**53 + 1
    assert_same_bits(ex.concatenate(ex.tensor([[1.0], [2.0]])), np.float32([1, 2]))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack_and_back(axis: int) -> None:
    for count in (1, 3):
        for dtype in DTYPES:
            arrays = [sample((2, 3), dtype, i) for i in range(count)]
            result = ex.stack(arrays, axis)
            assert_same_bits(result, np.stack(arrays, axis))
            assert owned(result)
        inputs = [sample((2, 3), "float64", i) for i in range(count)]
        g = sample(result.shape, "float64", 5)
        for i, gradient in enumerate(ex.stack_backward(g, axis)):
            assert_same_bits(gradient, np.take(g, i, axis))
        ex.check_gradient(
            lambda *xs: ex.stack(list(xs), axis),
            lambda g, *xs: tuple(ex.stack_backward(g, axis)),
            inputs,
        )
    assert_same_bits(ex.stack([ex.tensor(1.0), ex.tensor(2.0)]), np.float32([1, 2]))


def test_join_into_an_input() -> None:
    memory = sample(12)
    for start in (0, 2, 3, 6):
        own = memory.copy()
        parts = [own[start : start + 3], own[3:6]]
        expected = np.concatenate(parts)
        ex.concatenate(parts, out=own[:6])
        assert_same_bits(own[:6], expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("where", [1, 2, 6, [], [2], [0, 3, 3, 6], [4, 99], [-4, -1], (1, 5)])
def test_split_and_back(where: Any, axis: int) -> None:
    for dtype in DTYPES:
        x = sample((6, 6), dtype)
        result = ex.split(ex.asarray(x), where, axis)
        expected = np.split(x, where, axis)
        assert isinstance(result, list) and len(result) == len(expected)
        for got, part in zip(result, expected, strict=True):
            assert_same_bits(got, part)
            assert part.size == 0 or shares(got, x)
    g = [sample(part.shape, "float64", i) for i, part in enumerate(expected)]
    gradient = ex.split_backward(g, axis)
    assert owned(gradient)
    assert_same_bits(gradient, np.concatenate(g, axis))
    ex.check_gradient(
        lambda x: ex.split(x, where, axis),
        lambda g, x: ex.split_backward(g, axis),
        [sample((6, 6), "float64")],
    )


def test_needs_of_lists() -> None:
    g = ex.tensor(sample((4, 3)))
    first, second = ex.concatenate_backward(g, [(1, 3), (3, 3)], needs=(False, True))
    assert first is None
    assert_same_bits(second, np.asarray(g)[1:])
    gradients = ex.stack_backward(g, axis=1, needs=[True, False, True])
    assert gradients[1] is None
    assert_same_bits(gradients[2], np.asarray(g)[:, 2])
    for needs in ((True,), "yes", (1, 0)):
        with pytest.raises((TypeError, ValueError), match="concatenate_backward: needs"):
            ex.concatenate_backward(g, [(1, 3), (3, 3)], needs=needs)


# --- gradients of one input ---------------------------------------------------------------------

GRADIENTS: list[tuple[str, Any, Any, tuple[int, ...]]] = [
    ("reshape", lambda x: ex.reshape(x, (3, 4)), ex.reshape_backward, (2, 6)),
    ("flatten", ex.flatten, ex.flatten_backward, (2, 3)),
    ("ravel", ex.ravel, ex.ravel_backward, (2, 3, 1)),
    ("squeeze", ex.squeeze, ex.squeeze_backward, (1, 3, 1, 2)),
    ("squeeze", lambda x: ex.squeeze(x, 2), ex.squeeze_backward, (1, 3, 1, 2)),
    ("unsqueeze", lambda x: ex.unsqueeze(x, 1), ex.unsqueeze_backward, (2, 3)),
    ("unsqueeze", lambda x: ex.unsqueeze(x, (0, -1)), ex.unsqueeze_backward, (1, 3)),
    ("expand_dims", lambda x: ex.expand_dims(x, 0), ex.expand_dims_backward, (2, 3)),
    ("broadcast_to", lambda x: ex.broadcast_to(x, (4, 3, 5)), ex.broadcast_to_backward, (3, 1)),
    ("broadcast_to", lambda x: ex.broadcast_to(x, (2, 3)), ex.broadcast_to_backward, ()),
    ("broadcast_to", lambda x: ex.broadcast_to(x, (2, 3)), ex.broadcast_to_backward, (2, 3)),
    ("broadcast_to", lambda x: ex.broadcast_to(x, (0, 3)), ex.broadcast_to_backward, (1, 3)),
]

gradient_rows = pytest.mark.parametrize(
    ("name", "call", "back", "shape"),
    [pytest.param(*row, id=f"{row[0]}-{row[3]}") for row in GRADIENTS],
)


@gradient_rows
def test_gradients(name: str, call: Any, back: Any, shape: tuple[int, ...]) -> None:
    x = sample(shape, "float64")
    ex.check_gradient(call, lambda g, x: back(g, x.shape), [x])
    ex.check_gradient(call, lambda g, x: back(g, x), [x])
    output = np.asarray(call(x))
    for dtype in FLOATS:
        g = sample(output.shape, dtype, 3) / 64
        wanted = back(g, shape)
        assert wanted.shape == shape and wanted.dtype == dtype
        axes = tuple(range(output.ndim - len(shape)))
        if name == "broadcast_to":
            axes += tuple(
                len(axes) + i
                for i, n in enumerate(shape)
                if n == 1 and output.shape[len(axes) + i] != 1
            )
            expected = g.astype(np.float64).sum(axes, keepdims=True).reshape(shape)
            tolerance = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
            np.testing.assert_allclose(wanted, expected, rtol=tolerance, atol=10 * tolerance)
        else:
            assert_same_bits(wanted, g.reshape(shape))
        for layout in LAYOUTS.values():
            laid = layout(g)
            got, same = back(laid, shape), back(np.array(laid, order="C"), shape)
            if name == "broadcast_to":  # a sum may add in another order in another layout
                np.testing.assert_allclose(got, same, rtol=tolerance, atol=10 * tolerance)
            else:
                assert_same_bits(got, same)
        for kind in (*FLOATS, "int32", "bool"):  # the dtype of a floating input, else grad_output's
            other = back(g, ex.asarray(sample(shape, kind)))
            assert other.dtype == (kind if kind in FLOATS else dtype)
            np.testing.assert_allclose(other, wanted, rtol=2e-3, atol=2e-2)


@gradient_rows
def test_wrong_grad_output(name: str, call: Any, back: Any, shape: tuple[int, ...]) -> None:
    right = np.asarray(call(sample(shape))).shape
    wrong = {(*right, 2), (2, *right), tuple(n + 1 for n in right), (7, 5)}
    if name in ("flatten", "ravel"):
        wrong |= {(2, 3), (6, 1), (1, 6), ()}
    if name == "squeeze":
        wrong |= {(6,), (2, 3), (1, 3, 1, 2, 1)}
    if name in ("unsqueeze", "expand_dims"):
        wrong |= {(6,), (3, 2, 1), shape[1:]}
    if name == "broadcast_to":
        wrong = {(7, 5, 4), (2,)} - {right} if shape else set()
    for bad in wrong - {right}:
        with pytest.raises(ValueError, match=f"{name}_backward") as caught:
            back(np.ones(bad, np.float32), shape)
        assert str(bad) in str(caught.value) and str(shape) in str(caught.value)
    for dtype in ("int64", "bool"):
        with pytest.raises(TypeError, match=f"{name}_backward.*{dtype}"):
            back(np.ones(right, dtype), shape)
    for bad_shape in ("ab", None, 2.5, (2.5,), 3):
        with pytest.raises(TypeError, match=f"{name}_backward"):
            back(np.ones(right, np.float32), bad_shape)


def test_summed_gradient_of_a_long_axis() -> None:
    for dtype, tolerance in (("float16", 5e-4), ("float32", 2e-6), ("float64", 4e-15)):
        n = 4096 if dtype == "float16" else 2**20
        g = np.full((n, 2), 0.1, dtype)
        got = np.asarray(ex.broadcast_to_backward(g, (2,)), np.float64)
        np.testing.assert_allclose(got, float(g[0, 0]) * n, rtol=tolerance)
    assert float(ex.broadcast_to_backward(np.ones(4096, np.float16), ())) == 4096


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (-1, 0, -2)])
def test_permute_backward(axes: tuple[int, ...]) -> None:
    x = sample((2, 3, 4), "float64")
    ex.check_gradient(lambda x: ex.permute(x, axes), lambda g, x: ex.permute_backward(g, axes), [x])
    for dtype in FLOATS:
        g = sample(np.transpose(x, axes).shape, dtype)
        assert_same_bits(ex.permute(ex.permute_backward(g, axes), axes), g)
    with pytest.raises(TypeError, match="permute_backward"):
        ex.permute_backward(np.ones((2, 3, 4), int), axes)
    with pytest.raises(ValueError, match=r"permute_backward.*\(2, 3\)"):
        ex.permute_backward(np.ones((2, 3)), (0,))


def test_list_gradients_are_refused_when_wrong() -> None:
    shapes = [(2, 3), (1, 3)]
    for bad in [(3,), (9,), (3, 3, 1), (2, 3), (3, 4)]:
        with pytest.raises(ValueError, match="concatenate_backward") as caught:
            ex.concatenate_backward(np.ones(bad), shapes)
        assert str(bad) in str(caught.value) and "(3, 3)" in str(caught.value)
    for back, arguments in [
        (ex.concatenate_backward, (np.ones((3, 3), int), shapes)),
        (ex.stack_backward, (np.ones((3, 3), int),)),
        (ex.split_backward, ([np.ones(3), np.ones(3, int)],)),
    ]:
        with pytest.raises(TypeError, match=back.__name__):
            back(*arguments)
    for bad_list in ([], [np.ones((2, 3)), np.ones((2, 4))]):
        with pytest.raises(ValueError, match="split_backward"):
            ex.split_backward(bad_list)
    with pytest.raises(AxisError, match="stack_backward"):
        ex.stack_backward(np.ones((2, 3)), axis=2)
    with pytest.raises(ValueError, match="stack_backward"):
        ex.stack_backward(np.ones((0, 3)))
    with pytest.raises(ValueError, match="concatenate_backward: shapes is empty"):
        ex.concatenate_backward(np.ones(3), [])
    for i, dtype in enumerate(("float16", "float64", "int8")):
        inputs = [ex.zeros((1, 3), dtype), ex.zeros((2, 3))]
        gradient = ex.concatenate_backward(sample((3, 3)), inputs)[0]
        assert gradient.dtype == ("float16", "float64", "float32")[i]


# --- cast ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_cast(dtype: str, to: str) -> None:
    x = sample((3, 4), dtype)
    if to in ("uint8", "uint16", "uint32", "uint64"):
        x = np.abs(x) if x.dtype.kind != "b" else x
    with np.errstate(all="ignore"):
        expected = x.astype(to)
    for laid in (x, x[:, ::-1], x.T):
        result = ex.cast(laid, to)
        with np.errstate(all="ignore"):
            assert_same_bits(result, laid.astype(to))
        assert owned(result) and not shares(result, laid)
    out = ex.zeros((3, 4), to)
    assert ex.cast(x, to, out=out) is out
    assert_same_bits(out, expected)
    if dtype in FLOATS:
        gradient = ex.cast_backward(x, to)
        assert_same_bits(gradient, x.astype(to if to in FLOATS else dtype))
        assert not shares(gradient, x)


def test_cast_edges() -> None:
    edges = ex.tensor([np.nan, np.inf, -np.inf, 1e30, -1.5])
    for dtype in DTYPES:  # warnings are errors here
        assert ex.cast(edges, dtype).dtype == dtype
    assert ex.cast(edges, ex.bool).tolist() == [True] * 5
    assert ex.cast([70000.0, 65519.0, 65520.0], ex.float16).tolist() == [np.inf, 65504.0, np.inf]
    assert float(ex.cast(0.1, ex.float64)) == 0.1
    assert ex.cast([0.1], ex.float64).tolist() == [0.1]
    assert int(ex.cast([2**53 + 1], ex.int64)[0]) == 2**53 + 1
    ex.check_gradient(
        lambda x: ex.cast(x, "float64"), lambda g, x: ex.cast_backward(g, x.dtype), [sample((2, 3))]
    )
    with pytest.raises(TypeError, match="cast_backward"):
        ex.cast_backward(ex.arange(3), ex.float32)
    for dtype in ("complex64", "O", "no such"):
        with pytest.raises(TypeError, match="cast"):
            ex.cast([1.0], dtype)
    own = ex.tensor([1.0, 2.0])
    ex.cast(own, ex.float32, out=own)
    assert own.tolist() == [1.0, 2.0]
    memory = np.arange(6, dtype=np.float32)
    ex.cast(memory[:4], ex.float32, out=memory[1:5])
    assert memory.tolist() == [0, 0, 1, 2, 3, 5]


# --- indexing -----------------------------------------------------------------------------------

_MASK = np.array([[True, False, True, True], [False] * 4, [True, True, False, False]])
INDICES: list[Any] = [
    *(0, -1, slice(1, None), slice(None, None, -2), slice(3, 3), None, Ellipsis, ()),
    *((1, 2), (Ellipsis, -1), (slice(None), 1, None), (0, Ellipsis, slice(0, 4, 2))),
    *([0, 2, 2, -1], [], [[1, 1], [0, 1]], np.array([2, 2, 2], np.uint8), np.array(1)),
    *(([0, 1, 0], [3, 3, 3]), ([[0], [0]], [1, 1, 3]), (slice(None), [1, 1, 0]), (1, [0, 0, 3])),
    *(([1, 1], Ellipsis), (Ellipsis, [1, 0, 1]), ([0, 0], None, [1, 1]), ([2, 2], slice(1, 3))),
    *((slice(None), None, [0, 0]), ([0, 0], slice(None), [1, 1]), (None, [2, 2], Ellipsis, 1)),
    *(_MASK, (_MASK[:, 0], 2), (slice(None), _MASK[0]), (_MASK[:, 0], [1, 1]), np.zeros(3, bool)),
    *(True, False, (Ellipsis, np.array([True, False]))),
]


def _index_name(index: Any) -> str:
    return str(index).replace("\n", "")[:40]


@pytest.mark.parametrize("index", INDICES, ids=_index_name)
def test_getitem_backward(index: Any) -> None:
    shape = (3, 4, 2)
    plain = tuple(index) if isinstance(index, tuple) else index
    x = sample(shape, "float64")
    output = x[plain]
    for dtype in FLOATS:
        g = sample(output.shape, dtype, 4)
        expected = np.zeros(shape)
        np.add.at(expected, plain, g.astype(np.float64))
        with np.errstate(all="ignore"):
            expected = expected.astype(dtype)
        result = ex.getitem_backward(g, index, shape)
        tolerance = 1e-15 if dtype == "float64" else 0  # exact sums, rounded once
        np.testing.assert_allclose(np.asarray(result), expected, rtol=tolerance)
        assert result.dtype == dtype and owned(result)
        assert ex.getitem_backward(g, index, ex.zeros(shape, "float32")).dtype == np.float32
        place = np.full((3, 8, 2), 9, dtype)[:, ::2]
        ex.getitem_backward(g, index, shape, out=place)
        assert_same_bits(place, result)
        for layout in LAYOUTS.values():
            laid = layout(g)
            same = ex.getitem_backward(np.array(laid, order="C"), index, shape)
            assert_same_bits(ex.getitem_backward(laid, index, shape), same)
    ex.check_gradient(lambda x: x[index], lambda g, x: ex.getitem_backward(g, index, x), [x])
    tensors = tuple(ex.asarray(i) if isinstance(i, np.ndarray) else i for i in np_tuple(index))
    assert_same_bits(ex.getitem_backward(g, tensors, shape), result)
    for bad in {(*output.shape, 1), (1, *output.shape), (5, 5), (output.size, 2)} - {output.shape}:
        with pytest.raises(ValueError, match="getitem_backward") as caught:
            ex.getitem_backward(np.ones(bad), index, shape)
        assert str(bad) in str(caught.value) and str(output.shape) in str(caught.value)
    with pytest.raises(TypeError, match="getitem_backward"):
        ex.getitem_backward(np.ones(output.shape, int), index, shape)


def np_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def test_getitem_backward_of_many_repeats() -> None:
    n = 2**20 + 7
    index = np.random.default_rng(0).integers(0, 3, n)
    counts = np.bincount(index, minlength=3)
    for dtype, tolerance in (("float16", 5e-4), ("float32", 1.2e-7), ("float64", 1e-15)):
        value = np.asarray(2.0**-8 / 3, dtype)
        narrow = ex.getitem_backward(np.full(n, value), index, (3,))
        np.testing.assert_allclose(narrow, counts * float(value), rtol=tolerance)
        g = np.full((n, 5), value)
        for threads in (1, 2, 3, 8):
            with ex.num_threads(threads):
                result = ex.getitem_backward(g, index, (3, 5))
                assert threads_used() == threads
            assert_same_bits(result, np.repeat(np.asarray(narrow)[:, None], 5, 1))
    wide = sample((5000, 300), "float32")
    rows = np.random.default_rng(1).integers(0, 100, 5000)
    expected = np.zeros((101, 300))
    np.add.at(expected, rows, wide)
    alone = ex.getitem_backward(wide, rows, (101, 300))
    np.testing.assert_allclose(alone, expected, rtol=1e-6, atol=1e-6)
    with ex.num_threads(1):
        assert_same_bits(ex.getitem_backward(wide, rows, (101, 300)), alone)


def test_getitem_backward_of_special_values() -> None:
    index = [0, 0, 1, 1, 2, 2, 3, 3]
    g = [np.inf, 1.0, np.inf, -np.inf, np.nan, 1.0, -0.0, -0.0]
    for dtype in FLOATS:
        array = np.array(g, dtype)
        expected = np.array([np.inf, np.nan, np.nan, 0.0, 0.0], dtype)
        assert_same_bits(ex.getitem_backward(array, index, (5,)), expected)
        wide = ex.getitem_backward(np.repeat(array[:, None], 9, 1), index, (5, 9))
        assert_same_bits(wide, np.repeat(expected[:, None], 9, 1))
    big = np.array([60000.0, 60000.0, -60000.0], np.float16)
    assert float(ex.getitem_backward(big, [0, 0, 0], (1,))[0]) == 60000
    exact = np.array([1e16, 1.0, 1.0, -1e16])
    assert float(ex.getitem_backward(exact, [0, 0, 0, 0], (1,))[0]) == 2.0
    wide = ex.getitem_backward(np.repeat(exact[:, None], 7, 1), [0, 0, 0, 0], (1, 7))
    assert wide.tolist() == [[2.0] * 7]
    own = ex.tensor([1.0, 2.0, 4.0])
    ex.getitem_backward(own, [1, 1, 0], (3,), out=own)
    assert own.tolist() == [4.0, 3.0, 0.0]


def test_getitem_backward_of_bad_indices() -> None:
    for index in (3, (0, 0, 0), [3], 1.5, "a", [1.5], np.zeros(4, bool)):
        with pytest.raises(IndexError, match="getitem_backward"):
            ex.getitem_backward(np.ones(3), index, (3, 2))
    assert ex.getitem_backward(np.ones((0, 2)), [], (0, 2)).shape == (0, 2)


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ex.reshape(ex.zeros((2, 3)), (4, 2)), ValueError, r"reshape.*\(2, 3\).*\(4, 2\)"),
        (
            lambda: ex.reshape(ex.zeros((2, 3)), (-1, 4)),
            ValueError,
            r"reshape.*\(2, 3\).*\(-1, 4\)",
        ),
        (lambda: ex.reshape(ex.zeros((2, 3)), (-1, -1)), ValueError, r"reshape.*one -1"),
        (lambda: ex.reshape(ex.zeros((2, 3)), (-2, -3)), ValueError, r"reshape.*\(-2, -3\)"),
        (lambda: ex.reshape(ex.zeros((0, 3)), (0, -1)), ValueError, r"reshape.*\(0, 3\)"),
        (lambda: ex.reshape(ex.zeros(3), 1.5), TypeError, "reshape: shape.*1.5"),
        (lambda: ex.reshape(ex.zeros(3), "3"), TypeError, "reshape: shape"),
        (lambda: ex.reshape("text", 3), TypeError, "reshape: x"),
        (lambda: ex.squeeze(ex.zeros((2, 1)), 0), ValueError, r"squeeze.*\(2, 1\)"),
        (lambda: ex.squeeze(ex.zeros((2, 1)), 2), AxisError, "squeeze.*2"),
        (lambda: ex.squeeze(ex.zeros((1, 1)), (0, -2)), ValueError, "squeeze.*twice"),
        (lambda: ex.squeeze(ex.zeros((1, 1)), "0"), TypeError, "squeeze: axis"),
        (lambda: ex.unsqueeze(ex.zeros(3), 2), AxisError, "unsqueeze"),
        (lambda: ex.unsqueeze(ex.zeros(3), -3), AxisError, "unsqueeze"),
        (lambda: ex.unsqueeze(ex.zeros(3), None), TypeError, "unsqueeze: axis"),
        (lambda: ex.expand_dims(ex.zeros(3), (0, 0)), ValueError, "expand_dims.*twice"),
        (lambda: ex.permute(ex.zeros((2, 3)), (0,)), ValueError, r"permute.*\(2, 3\).*\(0,\)"),
        (lambda: ex.permute(ex.zeros((2, 3)), (0, 0)), ValueError, "permute.*twice"),
        (lambda: ex.permute(ex.zeros((2, 3)), (0, 2)), AxisError, "permute"),
        (lambda: ex.permute(ex.zeros((2, 3)), None), TypeError, "permute"),
        (lambda: ex.concatenate([]), ValueError, "concatenate: tensors is empty"),
        (lambda: ex.concatenate([ex.tensor(1.0)]), ValueError, r"concatenate.*\(\)"),
        (lambda: ex.concatenate([1.0, 2.0]), ValueError, r"concatenate.*\(\)"),
        (lambda: ex.concatenate(3), TypeError, "concatenate.*int"),
        (lambda: ex.concatenate(iter([[1.0]])), TypeError, "concatenate.*iterator"),
        (lambda: ex.concatenate([[1.0], "a"]), TypeError, r"concatenate: tensors\[1\]"),
        (lambda: ex.concatenate([[1.0], None]), TypeError, r"concatenate: tensors\[1\]"),
        (lambda: ex.concatenate([[1.0]], axis=1), AxisError, "concatenate"),
        (lambda: ex.concatenate([[1.0]], axis=None), TypeError, "concatenate: axis"),
        (
            lambda: ex.concatenate([ex.zeros((2, 3)), ex.zeros((2, 4))]),
            *(ValueError, r"concatenate.*\[1\].*\(2, 4\).*\(2, 3\).*axis 0"),
        ),
        (
            lambda: ex.concatenate([ex.zeros((2, 3)), ex.zeros(3)]),
            *(ValueError, r"concatenate.*\(3,\).*\(2, 3\)"),
        ),
        (lambda: ex.stack([]), ValueError, "stack: tensors is empty"),
        (lambda: ex.stack([ex.zeros(2), ex.zeros(3)]), ValueError, r"stack.*\(3,\).*\(2,\)"),
        (lambda: ex.stack([ex.zeros(2)], axis=2), AxisError, "stack"),
        (lambda: ex.split(ex.zeros((2, 5)), 2, 1), ValueError, r"split.*\(2, 5\).*2 equal"),
        (lambda: ex.split(ex.zeros(5), 0), ValueError, "split.*0 equal"),
        (lambda: ex.split(ex.zeros(5), -5), ValueError, "split"),
        (lambda: ex.split(ex.zeros(5), [3, 1]), ValueError, "split.*ascending"),
        (lambda: ex.split(ex.zeros(5), 2.5), TypeError, "split"),
        (lambda: ex.split(ex.zeros(5), 5, axis=1), AxisError, "split"),
        (lambda: ex.split(ex.tensor(1.0), 1), AxisError, "split"),
        (lambda: ex.broadcast_to(ex.zeros((2, 3)), (3, 2)), ValueError, r"\(2, 3\).*\(3, 2\)"),
        (lambda: ex.broadcast_to(ex.zeros((2, 3)), (3,)), ValueError, r"\(2, 3\).*\(3,\)"),
        (lambda: ex.broadcast_to(ex.zeros(1), (-1,)), ValueError, "broadcast_to.*negative"),
        (lambda: ex.broadcast_to(ex.zeros(1), "a"), TypeError, "broadcast_to"),
        (lambda: ex.flatten(None), TypeError, "flatten"),
        (lambda: ex.ravel({"a": 1}), TypeError, "ravel"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_out_is_checked_before_it_is_written() -> None:
    x = sample((2, 3))
    calls: list[tuple[str, Any, tuple[int, ...]]] = [
        ("flatten", lambda out: ex.flatten(x, out=out), (6,)),
        ("concatenate", lambda out: ex.concatenate([x, x], out=out), (4, 3)),
        ("stack", lambda out: ex.stack([x, x], out=out), (2, 2, 3)),
        ("cast", lambda out: ex.cast(x, "float32", out=out), (2, 3)),
        ("cast_backward", lambda out: ex.cast_backward(x, "float32", out=out), (2, 3)),
        ("split_backward", lambda out: ex.split_backward([x, x], out=out), (4, 3)),
        ("broadcast_to_backward", lambda out: ex.broadcast_to_backward(x, (3,), out=out), (3,)),
        ("getitem_backward", lambda out: ex.getitem_backward(x, [1, 1], (4, 3), out=out), (4, 3)),
    ]
    for name, call, shape in calls:
        expected = call(None)
        place = np.zeros((2, *shape), np.float32)[1]
        result = call(ex.asarray(place))
        assert_same_bits(result, expected)
        assert_same_bits(place, expected)
        read_only = np.zeros(shape, np.float32)
        read_only.flags.writeable = False
        for bad, error in [
            (np.zeros((*shape, 1), np.float32), ValueError),
            (np.zeros(shape, np.float64), TypeError),
            (read_only, ValueError),
        ]:
            with pytest.raises(error, match=f"{name}: out"):
                call(bad)
            assert not bad.any()
        with pytest.raises(TypeError, match=f"{name}: out"):
            call([1.0])


# --- hypothesis ---------------------------------------------------------------------------------

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
ANY_DTYPE = st.sampled_from(DTYPES)


@given(st.data(), SHAPES, ANY_DTYPE)
def test_reshape_like_numpy(data: Any, shape: tuple[int, ...], dtype: str) -> None:
    x = sample(shape, dtype)
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    wanted = tuple(data.draw(st.lists(st.integers(-1, 6), max_size=4)))
    try:
        expected = x.reshape(wanted)
    except ValueError:
        with pytest.raises(ValueError, match="reshape"):
            ex.reshape(x, wanted)
        return
    result = ex.reshape(x, wanted)
    assert_same_bits(result, expected)
    assert shares(result, x) == shares(expected, x)
    g = sample(expected.shape)
    assert_same_bits(ex.reshape_backward(g, x.shape), g.reshape(x.shape))


@given(
    st.data(), hnp.array_shapes(min_side=0, max_side=4), st.lists(ANY_DTYPE, min_size=1, max_size=4)
)
def test_concatenate_like_numpy(data: Any, shape: tuple[int, ...], dtypes: list[str]) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    arrays = []
    for i, dtype in enumerate(dtypes):
        own = list(shape)
        own[axis] = data.draw(st.integers(0, 3))
        arrays.append(sample(own, dtype, i))
    expected = np.concatenate(arrays, axis)
    assert_same_bits(ex.concatenate(arrays, axis), expected)
    g = sample(expected.shape)
    parts = ex.concatenate_backward(g, [a.shape for a in arrays], axis)
    assert [part.shape for part in parts] == [a.shape for a in arrays]
    assert_same_bits(ex.concatenate(parts, axis), g)


@given(st.data(), hnp.array_shapes(min_side=0, max_side=5), ANY_DTYPE)
def test_split_like_numpy(data: Any, shape: tuple[int, ...], dtype: str) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = sample(shape, dtype)
    where = data.draw(st.integers(1, 5) | st.lists(st.integers(0, 7), max_size=4).map(sorted))
    try:
        expected = np.split(x, where, axis)
    except ValueError:
        with pytest.raises(ValueError, match="split"):
            ex.split(x, where, axis)
        return
    for got, part in zip(ex.split(x, where, axis), expected, strict=True):
        assert_same_bits(got, part)
    g = [sample(part.shape, "float32", i) for i, part in enumerate(expected)]
    assert_same_bits(ex.split_backward(g, axis), np.concatenate(g, axis))


@given(st.data(), SHAPES, SHAPES)
def test_broadcast_to_like_numpy(data: Any, small: tuple[int, ...], full: tuple[int, ...]) -> None:
    if data.draw(st.booleans()):
        small = tuple(
            data.draw(st.sampled_from((1, n))) for n in full[data.draw(st.integers(0, 2)) :]
        )
    x = sample(small)
    try:
        expected = np.broadcast_to(x, full)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast_to"):
            ex.broadcast_to(x, full)
        with pytest.raises(ValueError, match="broadcast_to_backward"):
            ex.broadcast_to_backward(np.ones(full), small)
        return
    result = ex.broadcast_to(x, full)
    assert_same_bits(result, expected)
    assert result.strides == expected.strides
    g = np.random.default_rng(1).integers(-50, 50, full).astype(np.float64)  # exact sums
    gradient = ex.broadcast_to_backward(g, small)
    dot = float((g * np.asarray(ex.broadcast_to(x.astype(np.float64), full))).sum())
    np.testing.assert_allclose((np.asarray(gradient) * x).sum(), dot, rtol=1e-12, atol=1e-8)
    assert gradient.shape == small


@st.composite
def indices(draw: Any, shape: tuple[int, ...]) -> Any:
    """Basic and advanced indices that are valid for a shape without empty axes."""
    if draw(st.booleans()):
        return draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    common = draw(st.sampled_from([(), (1,), (4,), (2, 3)]))
    items = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["array", "list", "slice", "int"]))
        if kind == "slice":
            items.append(draw(st.slices(size)))
        elif kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        else:
            array = draw(hnp.arrays(np.int64, common, elements=st.integers(-size, size - 1)))
            items.append(array.tolist() if kind == "list" and common else array)
    return tuple(items)


@given(st.data(), hnp.array_shapes(max_dims=4, max_side=4))
def test_getitem_backward_like_numpy(data: Any, shape: tuple[int, ...]) -> None:
    index = data.draw(indices(shape))
    x = ex.asarray(sample(shape, "float64"))
    output = x[index]
    g = np.random.default_rng(2).integers(-50, 50, output.shape).astype(np.float64)
    expected = np.zeros(shape)
    np.add.at(expected, index, g)
    assert_same_bits(ex.getitem_backward(g, index, shape), expected + 0.0)
