"""The stubs of the compiled modules say what the modules hold."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import extensor as ex

PACKAGE = Path(ex.__file__).parent
STUBS = sorted(PACKAGE.glob("*.pyi"))


def parameters(node: ast.FunctionDef) -> list[str]:
    given = node.args
    return [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def check_function(node: ast.FunctionDef, value: Any) -> None:
    assert callable(value), node.name
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # a compiled slot that keeps no signature
    names = [
        p.name
        for p in signature.parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if names or not signature.parameters:
        assert names == parameters(node), node.name


def test_every_compiled_module_has_a_stub() -> None:
    compiled = {path.name.split(".")[0] for path in PACKAGE.glob("*.so")}
    assert compiled == {path.stem for path in STUBS}


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)
def test_stub(stub: Path) -> None:
    module = importlib.import_module(f"extensor.{stub.stem}")
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            check_function(node, getattr(module, node.name))
        elif isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name)
            assert hasattr(module, node.target.id)
        elif isinstance(node, ast.ClassDef):
            check_class(node, getattr(module, node.name))


def check_class(node: ast.ClassDef, value: type) -> None:
    listed = set()
    for part in node.body:
        if isinstance(part, ast.AnnAssign):
            assert isinstance(part.target, ast.Name)
            listed.add(part.target.id)
        elif isinstance(part, ast.FunctionDef):
            listed.add(part.name)
    # Python 3.12 shows a compiled class's buffer as __buffer__
    missing = {name for name in listed if not hasattr(value, name)} - {"__buffer__"}
    assert not missing, f"{node.name} lacks {missing}"
    public = {name for name in vars(value) if not name.startswith("_")}
    assert public <= listed, f"the stub of {node.name} lacks {public - listed}"


def test_stubtest(tmp_path: Path) -> None:
    """mypy's own comparison of stubs and annotations with what is there at run time."""
    pytest.importorskip("mypy")
    environment = dict(os.environ)
    if not PACKAGE.is_relative_to(sys.prefix):  # a build in place: mypy has to be told
        environment["MYPYPATH"] = str(PACKAGE.parent)
        environment["PYTHONPATH"] = str(PACKAGE.parent)
    allowed = Path(__file__).with_name("stubtest-allowlist.txt")
    command = [sys.executable, "-m", "mypy.stubtest", "extensor", "--concise"]
    command += ["--allowlist", str(allowed), "--ignore-unused-allowlist"]
    done = subprocess.run(
        [*command, "--ignore-disjoint-bases"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
