"""Projects that build on the library: an outside consumer, the example, the page that explains it.

Each is built with pip from a folder of its own, against the installed wheel where there is one.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from helpers import assert_same_bits
from projects import PACKAGE, install, run

import extensor as ex

HERE = Path(__file__).parent
ROOT = HERE.parent


# --- an outside project -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def consumers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    if "EXTENSOR_WHEEL" in os.environ:
        assert PACKAGE.is_relative_to(sys.prefix), "this is not the installed extensor"
    site = install(HERE / "cython_api", tmp_path_factory.mktemp("consumer"))
    sys.path.insert(0, str(site))
    try:
        return {name: importlib.import_module(f"consumer_{name}") for name in ("c", "cpp")}
    finally:
        sys.path.remove(str(site))


@pytest.fixture(params=["c", "cpp"])
def consumer(request: pytest.FixtureRequest, consumers: dict[str, ModuleType]) -> Any:
    return consumers[request.param]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_version(consumer: Any) -> None:
    assert consumer.api_version() >= 1


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_gelu_backward_in_prange(
    consumer: Any, rng: np.random.Generator, kind: str, threads: int
) -> None:
    dtype = np.float32 if kind == "f32" else np.float64
    g, x = rng.standard_normal((2, 10_007)).astype(dtype) * 4
    x[:4] = np.inf, -np.inf, np.nan, -0.0
    result = np.empty_like(x)
    getattr(consumer, f"gelu_backward_{kind}")(g, x, result, 501, threads)
    assert_same_bits(result, np.asarray(ex.gelu_backward(g, x)))


def test_read_only_inputs(consumer: Any) -> None:
    x, y = np.array([-2.0, 3.0], np.float32), np.empty(2, np.float32)
    x.flags.writeable = False
    consumer.leaky_relu(x, y, 0.25)
    assert y.tolist() == [-0.5, 3.0]


def test_one_gradient_of_two(consumer: Any, rng: np.random.Generator) -> None:
    g, a, b = rng.standard_normal((3, 999))
    b[::7] = 1e-6
    grad_b = np.empty_like(b)
    consumer.divide_backward(g, a, b, grad_b, 1e-10)
    assert_same_bits(grad_b, np.asarray(ex.divide_backward(g, a, b)[1]))


def test_masks(consumer: Any, rng: np.random.Generator) -> None:
    cond = rng.integers(0, 2, 777).astype(bool)
    a, b = rng.standard_normal((2, 777)).astype(np.float32)
    y, grad_a = np.empty_like(a), np.empty_like(a)
    consumer.where(cond.view(np.uint8), a, b, y, grad_a)
    assert_same_bits(y, np.where(cond, a, b))
    assert_same_bits(grad_a, np.where(cond, y, np.float32(0)))
    u, v, less = rng.standard_normal(9), np.zeros(9), np.empty(9, np.uint8)
    consumer.less(u, v, less)
    assert (less.view(bool) == (u < v)).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_in_prange(consumer: Any, rng: np.random.Generator, threads: int) -> None:
    x, g = rng.standard_normal((2, 57, 1001))
    y, grad = np.empty_like(x), np.empty_like(x)
    consumer.softmax(x, g, y, grad, threads)
    assert_same_bits(y, np.asarray(ex.softmax(x)))
    assert_same_bits(grad, np.asarray(ex.softmax_backward(g, y)))
    narrow = x.astype(np.float32)
    logs, sums = np.empty_like(narrow), np.empty(len(x), np.float32)
    consumer.log_softmax_and_sums(narrow, logs, sums, threads)
    assert_same_bits(logs, np.asarray(ex.log_softmax(narrow)))
    assert_same_bits(sums, np.array([ex.sum(row).item() for row in narrow], np.float32))


@pytest.mark.parametrize("threads", [1, 3])
def test_products(consumer: Any, rng: np.random.Generator, threads: int) -> None:
    a = rng.standard_normal((11, 24, 50)).astype(np.float32)
    b = rng.standard_normal((11, 33, 50)).astype(np.float32)
    c = np.empty((11, 24, 33), np.float32)
    assert consumer.matmul_each(a, b, c, threads) == 0
    assert_same_bits(
        c, np.stack([np.asarray(ex.matmul(p, q.T)) for p, q in zip(a, b, strict=True)])
    )
    u, v = rng.standard_normal((150, 200)), rng.standard_normal((200, 130))
    w = np.empty((150, 130))
    assert consumer.matmul_threads(u, v, w, threads) == 0
    assert_same_bits(w, np.asarray(ex.matmul(u, v)))


def test_adam(consumer: Any, rng: np.random.Generator) -> None:
    w, *grads = rng.standard_normal((4, 500)).astype(np.float32)
    param, state = ex.tensor(w), np.zeros((2, 500), np.float32)
    optimizer = ex.Adam([param])
    for step, grad in enumerate(grads, 1):
        consumer.adam(w, grad, state[0], state[1], step)
        optimizer.step([grad])
    assert_same_bits(w, param.numpy())


def test_header(consumer: Any, rng: np.random.Generator) -> None:
    """The formulas compiled elsewhere: the last bits depend on that compiler's instructions."""
    x, u = rng.standard_normal(500).astype(np.float32) * 3, rng.standard_normal(500)
    y, v = np.empty_like(x), np.empty_like(u)
    consumer.inlined(x, y, u, v)
    np.testing.assert_allclose(y, np.asarray(ex.gelu(x)), rtol=2e-6, atol=1e-30)
    np.testing.assert_allclose(v, np.tanh(u), rtol=1e-15)


# --- the example --------------------------------------------------------------------------------


def test_example(tmp_path: Path) -> None:
    """It learns, and its own threads do not change what it finds."""
    site = install(ROOT / "examples" / "embedding", tmp_path)
    output = run(["-m", "docwords"], tmp_path, site)
    (accuracy,) = re.findall(r"held-out docstrings: ([\d.]+)", output)
    assert float(accuracy) > 0.75, output
    code = """
from docwords import Classifier
texts = [f"{word} and some other words" for word in ("apple", "pear", "nut")] * 200
found = []
for threads in (1, 3):
    model = Classifier(3, buckets=512, hidden=8, threads=threads)
    losses = model.fit(texts, [0, 1, 2] * 200, epochs=3)
    assert losses[-1] < losses[0]
    found.append(model.predict(texts))
    assert (found[-1].argmax(axis=1)[:3] == [0, 1, 2]).all()
assert (found[0] == found[1]).all()
assert model.predict([]).shape == (0, 3) and model.predict([""]).shape == (1, 3)
"""
    run(["-c", code], tmp_path, site)


# --- the page -----------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "embedding.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Write the files of a page in its order, stopping at each command and at each output."""
    for block in BLOCK.finditer(page):
        kind, text = block.groups()
        if kind in ("console", "text"):
            yield kind, text
        else:
            names = re.findall(r"`([\w.]+\.(?:toml|py|pyx))`", page[: block.start()])
            (folder / names[-1]).write_text(text, encoding="utf-8")


def test_the_page_works_for_a_stranger(tmp_path: Path) -> None:
    """Every file and command of docs/embedding.md, literally, in an empty folder."""
    folder = tmp_path / "empty"
    folder.mkdir()
    site, printed, outputs = tmp_path, "", 0
    for kind, text in follow(PAGE.read_text(encoding="utf-8"), folder):
        if kind == "text":
            assert printed == text
            outputs += 1
            continue
        for command in text.splitlines():
            program, *arguments = command.split()
            if command.endswith("--no-build-isolation ."):
                site = install(folder, tmp_path / f"build{outputs}")
            elif program == "python" and arguments[0].endswith(".py"):
                printed = run([str(folder / arguments[0])], tmp_path, site)
            else:  # what is installed beforehand, and the example, which has its own test
                assert "extensor" in command or "embedding" in command or "docwords" in command
    assert outputs == 2
