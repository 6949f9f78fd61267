"""gradcheck: exact where it can be, strict about what it is given, and it catches mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as ex

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((3, 4)), RNG.uniform(0.5, 2, (4,))


def cube(x: Any) -> Any:
    return x * x * x


def test_gradient_of_a_scalar_function() -> None:
    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    gradient = ex.compute_numerical_gradient(lambda t: np.sum(np.asarray(cube(t))), x)
    assert type(gradient) is ex.ExTensor
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(np.asarray(gradient), 3 * x * x, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int32, np.uint8, bool])
def test_input_dtypes_and_kinds(kind: Any) -> None:
    x = np.array([1, 0, 1], kind)
    weights = np.array([1.0, 10.0, 100.0])
    for given in (x, ex.tensor(x), x.tolist()):
        before = np.array(given)
        gradient = ex.compute_numerical_gradient(cube, given, grad_output=weights)
        np.testing.assert_allclose(np.asarray(gradient), 3 * x.astype(float) * weights, atol=1e-8)
        assert np.array_equal(before, np.asarray(given))


def test_f_gets_float64_copies_of_its_own() -> None:
    x = ex.tensor([1.0, 2.0])
    seen = []

    def f(t: Any) -> Any:
        seen.append(t)
        assert type(t) is ex.ExTensor
        assert t.dtype == np.float64
        result = cube(t)
        t.fill(-5)
        return result

    gradient = ex.compute_numerical_gradient(f, x, grad_output=[1.0, 1.0])
    np.testing.assert_allclose(np.asarray(gradient), [3, 12], rtol=1e-8)
    assert x.tolist() == [1.0, 2.0]
    assert len({id(t) for t in seen}) == len(seen)


def test_f_may_reuse_its_result() -> None:
    memory = ex.zeros((2,), dtype=ex.float64)

    def f(t: Any) -> Any:
        return ex.multiply(t, t, out=memory)

    gradient = ex.compute_numerical_gradient(f, [1.0, 3.0], grad_output=[1.0, 1.0])
    np.testing.assert_allclose(np.asarray(gradient), [2, 6], rtol=1e-8)


def test_python_floats_zero_dimensions_and_empty() -> None:
    gradient = ex.compute_numerical_gradient(lambda t: float(t) ** 2, 3.0)
    assert gradient.shape == ()
    assert float(gradient) == pytest.approx(6, rel=1e-9)
    empty = ex.compute_numerical_gradient(lambda t: 1.0, np.zeros((0, 3)))
    assert empty.shape == (0, 3)
    none = ex.compute_numerical_gradient(cube, np.zeros((0,)), grad_output=np.zeros((0,)))
    assert none.shape == (0,)


def test_float64_points_keep_their_digits() -> None:
    assert float(ex.compute_numerical_gradient(lambda t: float(t) ** 2, 0.1)) == pytest.approx(
        0.2, rel=1e-10
    )


def test_large_and_small_points() -> None:
    """The step grows with x, and what was really stepped is divided by."""
    for x in (1e-12, 1.0, 1e6, 1e12):
        gradient = ex.compute_numerical_gradient(lambda t: float(t) * 3, x)
        assert float(gradient) == pytest.approx(3, rel=1e-9)


def test_several_outputs() -> None:
    def both(t: Any) -> Any:
        return t * t, float(np.sum(np.asarray(t)))

    x = [1.0, 2.0]
    for kind in (tuple, list):
        gradient = ex.compute_numerical_gradient(
            lambda t, kind=kind: kind(both(t)), x, grad_output=([1.0, 10.0], 100.0)
        )
        np.testing.assert_allclose(np.asarray(gradient), [102, 140], rtol=1e-8)


@pytest.mark.parametrize(
    ("f", "grad_output", "error", "words"),
    [
        (cube, None, ValueError, ["grad_output", "(2,)"]),
        (cube, [1.0], ValueError, ["grad_output", "(1,)", "(2,)"]),
        (cube, [[1.0, 1.0]], ValueError, ["grad_output", "(1, 2)", "(2,)"]),
        (cube, [1, 1], TypeError, ["grad_output", "int64"]),
        (lambda t: (t, t), [1.0, 1.0, 1.0], ValueError, ["grad_output", "2 outputs"]),
        (lambda t: (t, t), None, ValueError, ["grad_output", "2 outputs"]),
        (lambda t: np.float32(1), None, TypeError, ["float32", "float64"]),
        (lambda t: t.astype(ex.float16), [1.0, 1.0], TypeError, ["float16", "float64"]),
        (lambda t: 1, None, TypeError, ["int64", "float64"]),
        (lambda t: "x", None, TypeError, ["float64"]),
    ],
)
def test_errors(f: Any, grad_output: Any, error: type, words: list[str]) -> None:
    with pytest.raises(error) as caught:
        ex.compute_numerical_gradient(f, [1.0, 2.0], grad_output=grad_output)
    for word in ["compute_numerical_gradient", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("epsilon", [0, -1e-6, np.nan, np.inf])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        ex.compute_numerical_gradient(lambda t: float(t), 1.0, epsilon)


@pytest.mark.parametrize("x", ["text", None, [1j], [[1.0], [1.0, 2.0]]])
def test_bad_points(x: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="compute_numerical_gradient: x"):
        ex.compute_numerical_gradient(lambda t: 1.0, x)


def test_output_of_changing_shape() -> None:
    shapes = iter([2, 2, 3])
    with pytest.raises(ValueError, match="same shape"):
        ex.compute_numerical_gradient(lambda t: np.ones(next(shapes)), 1.0, grad_output=[1.0, 1.0])


@pytest.mark.parametrize(
    ("dtype", "rtol", "atol"),
    [("float16", 1e-2, 1e-4), ("float32", 1e-4, 1e-6), ("float64", 1e-7, 1e-10)],
)
def test_tolerances_by_dtype(dtype: str, rtol: float, atol: float) -> None:
    """|a − n| ≤ rtol·|n| + atol·max(1, max|n|), with n chosen so that a is exact."""
    for largest in (0.25, 64.0):
        a = np.array([0.25, largest], dtype)
        allowed = rtol * 0.25 + atol * max(1, largest)
        for sign in (1, -1):
            ex.assert_gradients_close(a, [0.25 + sign * 0.9 * allowed, largest])
            with pytest.raises(AssertionError):
                ex.assert_gradients_close(a, [0.25 + sign * 1.1 * allowed, largest])
    ex.assert_gradients_close(np.ones(2, dtype), [1.0, 1.5], rtol=0.5, atol=0)
    with pytest.raises(AssertionError):
        ex.assert_gradients_close(np.ones(2, dtype), [1.0, 1.0 + 1e-3], rtol=0, atol=1e-4)


def test_message_shows_the_worst_element() -> None:
    a = np.zeros((2, 3))
    n = np.zeros((2, 3))
    a[0, 1], a[1, 2], n[1, 2] = 1e-3, 7.0, 5.0
    with pytest.raises(AssertionError) as caught:
        ex.assert_gradients_close(a, n)
    for word in ("(1, 2)", "7.0", "5.0", "2 of 6"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("a", "n"),
    [
        ([1.0, np.nan], [1.0, 1.0]),
        ([1.0, 1.0], [1.0, np.nan]),
        ([np.nan], [np.nan]),
        ([np.inf], [1.0]),
        ([1.0, 2.0], [np.inf, 5.0]),
        ([np.inf], [np.inf]),
        ([[1.0, 2.0]], [1.0, 2.0]),
        ([1.0], 1.0),
        ([1.0, 1.0], [1.0]),
    ],
)
def test_what_never_agrees(a: Any, n: Any) -> None:
    with pytest.raises(AssertionError):
        ex.assert_gradients_close(np.array(a), np.array(n))


def test_agreement_of_nothing_and_of_scalars() -> None:
    ex.assert_gradients_close(np.zeros((0, 3)), np.zeros((0, 3)))
    ex.assert_gradients_close(ex.tensor(2.0), 2.0)
    with pytest.raises(AssertionError, match=r"\(\)"):
        ex.assert_gradients_close(ex.tensor(2.0), 3.0)
    with pytest.raises(TypeError, match="int64"):
        ex.assert_gradients_close(np.array([1]), [1.0])
    with pytest.raises(ValueError, match="rtol"):
        ex.assert_gradients_close([1.0], [1.0], rtol=-1)


def test_check_gradient_passes_on_right_gradients() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        a, b = A.astype(dtype), B.astype(dtype)
        ex.check_gradient(ex.multiply, ex.multiply_backward, (a, b))
        ex.check_gradient(ex.divide, ex.divide_backward, [ex.tensor(a), ex.tensor(b)])
    ex.check_gradient(ex.negative, lambda g, x: ex.negative_backward(g), (A,))
    ex.check_gradient(ex.multiply, ex.multiply_backward, (A, 2.5))
    cond = A > 0
    ex.check_gradient(
        ex.where,
        lambda g, c, a, b: (None, *ex.where_backward(g, c, np.shape(a), np.shape(b))),
        (cond, A, B),
    )
    ex.check_gradient(ex.multiply, ex.multiply_backward, (A, B), grad_output=np.ones((3, 4)))


def test_check_gradient_with_several_outputs() -> None:
    def forward(x: Any) -> Any:
        return x * x, x * 3.0

    def backward(g: Any, x: Any) -> Any:
        return g[0] * x * 2.0 + g[1] * 3.0

    ex.check_gradient(forward, backward, (A,))
    with pytest.raises(AssertionError):
        ex.check_gradient(forward, lambda g, x: g[0] * x * 2.0, (A,))


PLANTED = {
    "sign": lambda g, a, b: (-(g * b), np.sum(np.asarray(g * a), axis=0)),
    "unsummed broadcast": lambda g, a, b: (g * b, g * a),
    "missing 1/N": lambda g, a, b: (g * b, np.mean(np.asarray(g * a), axis=0)),
    "swapped": lambda g, a, b: (g * a, np.sum(np.asarray(g * b), axis=0)),
    "wrong axis": lambda g, a, b: (g * b, np.resize(np.sum(np.asarray(g * a), axis=1), 4)),
    "ignores grad_output": lambda g, a, b: (b + a * 0.0, np.sum(np.asarray(a), axis=0)),
    "0.1 % off": lambda g, a, b: (g * b * 1.001, np.sum(np.asarray(g * a), axis=0)),
    "one element": lambda g, a, b: (_spoiled(g * b), np.sum(np.asarray(g * a), axis=0)),
    "NaN": lambda g, a, b: (g * b * np.nan, np.sum(np.asarray(g * a), axis=0)),
}


def _spoiled(gradient: Any) -> Any:
    gradient[2, 3] += 0.01
    return gradient


@pytest.mark.parametrize("mistake", PLANTED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planted_wrong_gradients_are_caught(mistake: str, dtype: Any) -> None:
    a, b = ex.tensor(A, dtype), ex.tensor(B, dtype)
    with pytest.raises(AssertionError, match=r"check_gradient: input [01]"):
        ex.check_gradient(ex.multiply, PLANTED[mistake], (a, b))


def test_wrong_convention_at_a_tie_is_caught() -> None:
    """At a kink the central difference is the mean of both sides: half to each."""
    x = np.ones(3)
    ex.check_gradient(ex.maximum, ex.maximum_backward, (x, x))
    with pytest.raises(AssertionError):
        ex.check_gradient(ex.maximum, lambda g, a, b: (g * 1.0, g * 0.0), (x, x))


def test_backward_that_writes_into_its_arguments_does_not_fool_the_check() -> None:
    def overwrites(g: Any, a: Any) -> Any:
        np.asarray(a)[...] = 0
        np.asarray(g)[...] = 0
        return ex.tensor(g)

    with pytest.raises(AssertionError):
        ex.check_gradient(lambda a: a * a, overwrites, (ex.tensor(A),))


@pytest.mark.parametrize(
    ("backward", "inputs", "error"),
    [
        (lambda g, a, b: g, (A, A), ValueError),
        (lambda g, a, b: (g, g, g), (A, A), ValueError),
        (lambda g, a, b: (None, None), (A, A), ValueError),
        (lambda g, a, b: (g, g), A, TypeError),
    ],
)
def test_check_gradient_errors(backward: Any, inputs: Any, error: type) -> None:
    with pytest.raises(error, match="check_gradient"):
        ex.check_gradient(ex.add, backward, inputs)


def test_functions_that_compute_in_float32_are_refused() -> None:
    with pytest.raises(TypeError, match="float32"):
        ex.check_gradient(
            lambda a: ex.asarray(np.asarray(a, np.float32)), lambda g, a: g * 1.0, (A,)
        )


def test_rng_makes_the_check_repeatable() -> None:
    seen: list[bytes] = []

    def backward(g: Any, a: Any) -> Any:
        seen.append(np.asarray(g).tobytes())
        return ex.negative_backward(g)

    for rng in (0, 0, 1, np.random.default_rng(0)):
        ex.check_gradient(ex.negative, backward, (A,), rng=rng)
    assert seen[0] == seen[1] == seen[3] != seen[2]
