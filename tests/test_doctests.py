"""Examples in docstrings and in the documentation run, and give what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import extensor as ex

ROOT = Path(__file__).parents[1]
PAGES = [
    path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))] if path.exists()
]
MODULES = ["extensor"] + [
    f"extensor.{module.name}"
    for module in pkgutil.iter_modules(ex.__path__)
    if not module.name.startswith("_") and module.name != "cython_api"
]
FENCE = re.compile(r"^( *)```python[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_of_module(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    result = doctest.testmod(module)
    assert result.failed == 0


def public_objects() -> list[Any]:
    """Functions and classes, with the public methods of classes."""
    found = []
    for name in ex.__all__:
        value = getattr(ex, name)
        if not callable(value) or (isinstance(value, type) and value.__module__ == "numpy"):
            continue
        found.append(pytest.param(value, id=name))
    for name, method in inspect.getmembers(ex.ExTensor):
        if not name.startswith("_"):
            found.append(pytest.param(method, id=f"ExTensor.{name}"))
    return found


@pytest.mark.parametrize("value", public_objects())
def test_docstring(value: Any) -> None:
    """Everything public is documented; examples of compiled objects are found here."""
    text = inspect.getdoc(value)
    assert text
    runner = doctest.DocTestRunner()
    test = doctest.DocTestParser().get_doctest(text, {"ex": ex}, str(value), None, None)
    runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize(
    "function", [p for p in public_objects() if inspect.isfunction(p.values[0])]
)
def test_functions_have_an_example(function: Any) -> None:
    assert ">>>" in (function.__doc__ or "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_of_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run top to bottom in one namespace."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": page.stem}
    for match in FENCE.finditer(text):
        code = textwrap.dedent(match[2])
        line = text[: match.start()].count("\n") + 1
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), line)
            runner = doctest.DocTestRunner()
            runner.run(test, clear_globs=False)
            namespace.update(test.globs)
            assert runner.failures == 0
        else:
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
