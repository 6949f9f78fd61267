"""Everything together: chained gradients, planted mistakes, the examples, the page that teaches."""

from __future__ import annotations

import importlib.util
import re
import tracemalloc
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import extensor as ex

ROOT = Path(__file__).parents[1]
SEEDS = [0, 1, 2]


# --- chained gradients --------------------------------------------------------------------------


def two_layers(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, targets: Any, activation: Any) -> Any:
    hidden = activation(ex.linear(x, w1, b1))
    return ex.cross_entropy(ex.linear(hidden, w2, b2), targets, reduction="mean")


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "sigmoid", "swish"])
def test_whole_network(name: str) -> None:
    """Gradients of every parameter and of the input, against those of the composed function."""
    rng = np.random.default_rng(3)
    shapes = [(6, 5), (7, 5), (7,), (4, 7), (4,)]
    inputs = [rng.normal(size=shape) for shape in shapes]
    targets = rng.integers(0, 4, 6)
    activation, backward = getattr(ex, name), getattr(ex, f"{name}_backward")
    from_output = name in ("tanh", "sigmoid")

    def gradients(g: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        before = ex.linear(x, w1, b1)
        hidden = activation(before)
        logits = ex.linear(hidden, w2, b2)
        grad = ex.cross_entropy_backward(g, logits, targets, reduction="mean")
        grad, grad_w2, grad_b2 = ex.linear_backward(grad, hidden, w2)
        grad = backward(grad, hidden if from_output else before)
        grad_x, grad_w1, grad_b1 = ex.linear_backward(grad, x, w1)
        return grad_x, grad_w1, grad_b1, grad_w2, grad_b2

    ex.check_gradient(lambda *inputs: two_layers(*inputs, targets, activation), gradients, inputs)


def test_mean_of_log_of_softmax() -> None:
    """mean(log(softmax(xW + b))), one backward function after the other."""
    rng = np.random.default_rng(4)
    inputs = [rng.normal(size=shape) for shape in [(5, 3), (3, 4), (4,)]]

    def forward(x: Any, w: Any, b: Any) -> Any:
        return ex.mean(ex.log(ex.softmax(ex.matmul(x, w) + b)))

    def backward(g: Any, x: Any, w: Any, b: Any) -> Any:
        product = ex.matmul(x, w)
        probabilities = ex.softmax(product + b)
        grad = ex.mean_backward(g, probabilities)
        grad = ex.log_backward(grad, probabilities)
        grad = ex.softmax_backward(grad, probabilities)
        grad, grad_b = ex.add_backward(grad, product, b)
        return (*ex.matmul_backward(grad, x, w), grad_b)

    ex.check_gradient(forward, backward, inputs)


def test_chain_of_divisions() -> None:
    """((a / b) / c) / a with broadcasting: a is used twice."""
    rng = np.random.default_rng(5)
    inputs = [rng.uniform(0.5, 2, shape) for shape in [(3, 4), (4,), (3, 1)]]

    def backward(g: Any, a: Any, b: Any, c: Any) -> Any:
        first = a / b
        second = first / c
        grad_second, grad_a_last = ex.divide_backward(g, second, a)
        grad_first, grad_c = ex.divide_backward(grad_second, first, c)
        grad_a, grad_b = ex.divide_backward(grad_first, a, b)
        return grad_a + grad_a_last, grad_b, grad_c

    ex.check_gradient(lambda a, b, c: ((a / b) / c) / a, backward, inputs)


# --- planted mistakes ---------------------------------------------------------------------------

X = np.random.default_rng(6).normal(size=(4, 3))
T = np.random.default_rng(7).normal(size=(4, 3))
W = np.random.default_rng(8).normal(size=(3, 3))
BIAS = np.array([0.3, -0.2, 0.9])
TIES = np.array([[1.0, 1.0, 0.0], [2.0, -1.0, 2.0]])

PLANTED = {
    "missing 1/N": (
        lambda p: ex.mean_squared_error(p, T, reduction="mean"),
        lambda g, p: ex.mean_squared_error_backward(g, p, T, reduction="sum"),
        [X],
    ),
    "unsummed broadcast": (
        lambda x, b: x * b,
        lambda g, x, b: (g * b, (g * x)[0]),
        [X, BIAS],
    ),
    "wrong sign": (
        lambda x, y: x - y,
        lambda g, x, y: (g, g),
        [X, T],
    ),
    "swapped axes": (
        lambda x: ex.matmul(x, W),
        lambda g, x: ex.matmul(g, W),
        [X],
    ),
    "p − y for probabilities": (
        lambda p: ex.binary_cross_entropy(p, np.full(5, 0.3)),
        lambda g, p: g * (p - 0.3),
        [np.linspace(0.1, 0.9, 5)],
    ),
    "the softmax alone": (
        lambda x: ex.cross_entropy(x, [0, 1, 2, 0]),
        lambda g, x: ex.unsqueeze(g, 1) * ex.softmax(x),
        [X],
    ),
    "a weight's gradient not summed over the batch": (
        lambda w: ex.linear(X, w),
        lambda g, w: ex.matmul(ex.transpose(g)[:, :1], ex.asarray(X[:1])),
        [W],
    ),
    "mean over the wrong axis": (
        lambda x: ex.cross_entropy(x, [0, 1, 2, 3][:3], axis=0),
        lambda g, x: ex.cross_entropy_backward(ex.ones(4, ex.float64), x, [0, 1, 2, 0], axis=1),
        [X],
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_caught(name: str) -> None:
    forward, backward, inputs = PLANTED[name]
    with pytest.raises(AssertionError, match="check_gradient"):
        ex.check_gradient(forward, backward, inputs)


def test_a_planted_tie_is_caught() -> None:
    """At a tie the numerical gradient is the mean of both sides: half for each of two."""
    numerical = ex.compute_numerical_gradient(lambda x: ex.sum(ex.max(x, axis=1)), TIES)
    right = ex.max_reduce_backward(ex.ones(2, ex.float64), TIES, axis=1)
    ex.assert_gradients_close(right, numerical)
    everything_to_the_first = np.zeros_like(TIES)
    everything_to_the_first[[0, 1], TIES.argmax(axis=1)] = 1.0
    with pytest.raises(AssertionError, match="assert_gradients_close"):
        ex.assert_gradients_close(everything_to_the_first, numerical)


# --- examples -----------------------------------------------------------------------------------


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"example_{name}", ROOT / "examples" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", SEEDS)
def test_linear_regression_recovers_its_line(seed: int) -> None:
    module = example("linear_regression")
    found = module.main(seed, quiet=True)
    assert found["slope"] == pytest.approx(module.SLOPE, abs=0.02)
    assert found["intercept"] == pytest.approx(module.INTERCEPT, abs=0.02)
    assert found["loss"] < 2 * module.NOISE**2


@pytest.mark.parametrize("seed", SEEDS)
def test_xor_is_learned(seed: int) -> None:
    found = example("xor").main(seed, quiet=True)
    assert found["loss"] < 1e-2
    assert [round(p) for p in found["predictions"]] == [0, 1, 1, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_two_layers_reach_their_mark(seed: int) -> None:
    found = example("two_layers").main(seed, quiet=True)
    assert found["train"] < 1e-3
    assert found["test"] < 3e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_half_moons_are_told_apart(seed: int) -> None:
    found = example("binary_classification").main(seed, quiet=True)
    assert found["accuracy"] > 0.98
    assert found["loss"] < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_custom_gradients(seed: int) -> None:
    found = example("custom_gradients").main(seed, quiet=True)
    assert found["caught"]
    assert found["scale"] == pytest.approx([0.5, 1.0, 2.0], abs=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_digits_are_read(seed: int) -> None:
    pytest.importorskip("sklearn")
    found = example("digits").main(seed, quiet=True)
    assert found["accuracy"] >= 0.97
    assert found["loss"] < 0.1
    assert len(found["digits"]) == 360


def test_digits_draws_and_talks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    pytest.importorskip("rich")
    module = example("digits")
    module.EPOCHS = 3
    module.train.__defaults__ = (0, 3, None)
    module.main(0, folder=str(tmp_path))
    text = capsys.readouterr().out
    assert "held-out digits read correctly" in text
    assert "samples/s" in text
    for name in ("digits_training.png", "digits_misread.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "name", ["linear_regression", "xor", "two_layers", "binary_classification", "custom_gradients"]
)
def test_examples_tell_what_they_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example(name).main()
    assert len(capsys.readouterr().out.splitlines()) >= 2


# --- the page that teaches ----------------------------------------------------------------------


def test_the_training_page_runs() -> None:
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 8
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"training.md, block {number}", "exec"), names)


def test_the_training_page_names_every_example() -> None:
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    named = set(re.findall(r"examples/(\w+)\.py", text))
    assert named <= {path.stem for path in (ROOT / "examples").glob("*.py")}
    for name in ("linear_regression", "xor", "two_layers", "binary_classification"):
        assert name in named
    assert {"custom_gradients", "digits"} <= named


# --- memory -------------------------------------------------------------------------------------


def test_a_training_loop_does_not_grow() -> None:
    rng = np.random.default_rng(0)
    x = ex.asarray(rng.normal(size=(32, 16)).astype(np.float32))
    y = ex.asarray(rng.integers(0, 4, 32))
    w1, b1 = ex.kaiming_uniform(16, (16, 16), rng=rng), ex.zeros(16)
    w2, b2 = ex.xavier_uniform(16, 4, (4, 16), rng=rng), ex.zeros(4)
    optimizer = ex.Adam([w1, b1, w2, b2])

    def step() -> None:
        before = ex.linear(x, w1, b1)
        hidden = ex.relu(before)
        logits = ex.linear(hidden, w2, b2)
        ex.cross_entropy(logits, y, reduction="mean")
        grad = ex.cross_entropy_backward(1.0, logits, y, reduction="mean")
        grad, grad_w2, grad_b2 = ex.linear_backward(grad, hidden, w2)
        grad = ex.relu_backward(grad, before)
        _, grad_w1, grad_b1 = ex.linear_backward(grad, x, w1, needs=(False, True, True))
        grads = [grad_w1, grad_b1, grad_w2, grad_b2]
        ex.clip_grad_norm(grads, 1.0)
        optimizer.step(grads)

    for _ in range(1000):
        step()
    before = _resident()
    for _ in range(100_000):
        step()
    grown = _resident() - before
    assert grown < 2**20, f"grew by {grown} bytes in 100 000 steps"
    tracemalloc.start()
    step()
    first = tracemalloc.take_snapshot()
    for _ in range(100):
        step()
    second = tracemalloc.take_snapshot()
    tracemalloc.stop()
    kept = sum(entry.size_diff for entry in second.compare_to(first, "filename"))
    assert kept < 20_000, f"{kept} bytes kept after 100 steps"


def _resident() -> int:
    """Memory of this process in bytes; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    import resource

    return pages * resource.getpagesize()
