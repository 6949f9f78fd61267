"""The wheel and the source distribution hold what they should, and the wheel works anywhere.

``make test`` builds the wheel once, installs it and names it in EXTENSOR_WHEEL.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

import extensor as ex

ROOT = Path(__file__).parents[1]
SOURCES = (
    "setup.py",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "mkdocs.yml",
)
WHEEL = os.environ.get("EXTENSOR_WHEEL", "")

needs_wheel = pytest.mark.skipif(
    not WHEEL, reason="EXTENSOR_WHEEL does not name a wheel; `make test` builds one and does"
)


def package_files(*suffixes: str) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "extensor").rglob("*")
        if path.suffix in suffixes and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def wheel_files() -> set[str]:
    with zipfile.ZipFile(WHEEL) as archive:
        return set(archive.namelist())


@needs_wheel
def test_wheel_is_small() -> None:
    assert Path(WHEEL).stat().st_size < 10e6


@needs_wheel
def test_wheel_holds_what_others_build_on(wheel_files: set[str]) -> None:
    wanted = package_files(".py", ".pyi", ".pxd", ".h") | {"extensor/py.typed"}
    assert wanted - wheel_files == set()
    assert any(name.endswith("licenses/LICENSE") for name in wheel_files)


@needs_wheel
def test_wheel_holds_nothing_else(wheel_files: set[str]) -> None:
    kinds = {PurePosixPath(name).suffix for name in wheel_files if name.startswith("extensor/")}
    assert kinds <= {".py", ".pyi", ".pxd", ".h", ".so", ".typed"}
    tops = {PurePosixPath(name).parts[0] for name in wheel_files}
    assert all(top == "extensor" or top.endswith(".dist-info") for top in tops)
    stale = {name for name in wheel_files if name.startswith("extensor/") and name.endswith(".py")}
    assert stale <= package_files(".py")


@needs_wheel
def test_wheel_holds_every_kernel_at_every_level(wheel_files: set[str]) -> None:
    kernels = {path.stem for path in (ROOT / "extensor" / "_kernels").glob("*.pyx")}
    core = {path.stem for path in (ROOT / "extensor").glob("*.pyx")}
    modules = {
        (PurePosixPath(name).parent.as_posix(), PurePosixPath(name).name.split(".")[0])
        for name in wheel_files
        if name.endswith(".so")
    }
    levels = {folder for folder, _ in modules if folder.startswith("extensor/_kernels/")}
    assert levels
    assert modules == {("extensor", name) for name in core} | {
        (level, name) for level in levels for name in kernels
    }


@needs_wheel
def test_the_installed_package_is_the_wheel(tmp_path: Path) -> None:
    code = "import extensor; print(extensor.__file__); print(extensor.ones(2) + 1)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    file, result = done.stdout.splitlines()
    assert Path(file).is_relative_to(sys.prefix)
    assert not Path(file).is_relative_to(ROOT / "extensor")
    assert result == "[2. 2.]"


def test_the_module_tells_what_is_installed(tmp_path: Path) -> None:
    folder = Path(ex.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "extensor"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    first, *rest = done.stdout.splitlines()
    assert first == f"extensor {ex.__version__}"
    told = {line.split()[0] for line in rest}
    assert {"CPU", "threads", "compiler"} <= told


@needs_wheel
def test_source_distribution_holds_everything_to_build(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(tmp_path), str(ROOT)]
    if find_spec("Cython") and find_spec("setuptools"):
        command.append(
            "--no-isolation"
        )  # the tools of the build are here: `make test` built with them
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {
            PurePosixPath(*PurePosixPath(name).parts[1:]).as_posix() for name in archive.getnames()
        }
    wanted = package_files(".py", ".pyi", ".pyx", ".pxd", ".h") | {"extensor/py.typed", *SOURCES}
    wanted |= {f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")}
    assert wanted - names == set()
    assert not [name for name in names if name.startswith("build/") or name.endswith(".so")]


def project() -> dict[str, Any]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)


def test_the_version_is_in_one_place() -> None:
    version = project()["project"]["version"]
    if WHEEL:
        assert ex.__version__ == version
        assert PurePosixPath(WHEEL).name.startswith(f"extensor-{version}-")
    sources = [ROOT / "setup.py", ROOT / "Makefile", ROOT / "mkdocs.yml"]
    sources += (ROOT / "extensor").glob("**/*.p*")
    assert [s.name for s in sources if s.is_file() and version in s.read_text("utf-8")] == []
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changes, re.MULTILINE)
    assert newest and newest[1] == version


def test_extras() -> None:
    extras = project()["project"]["optional-dependencies"]
    assert {"test", "demo", "bench", "docs", "lint"} <= extras.keys()


def test_python_versions_agree() -> None:
    """requires-python, the classifiers, the wheels to build and the tools' targets."""
    data = project()
    minors = re.findall(r"Python :: 3\.(\d+)", " ".join(data["project"]["classifiers"]))
    assert data["project"]["requires-python"] == f">=3.{min(map(int, minors))}"
    assert data["tool"]["cibuildwheel"]["build"] == [f"cp3{minor}-*" for minor in minors]
    assert data["tool"]["mypy"]["python_version"] == f"3.{minors[0]}"
    assert data["tool"]["ruff"]["target-version"] == f"py3{minors[0]}"
