"""What is installed, and the memory of results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import cpu_level

import extensor as ex


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_show_config(capsys: pytest.CaptureFixture[str]) -> None:
    level, available = cpu_level()
    assert level in available
    with ex.num_threads(7):
        ex.show_config()
    text = capsys.readouterr().out
    for word in (ex.__version__, level, *available, "7", "gcc" if "gcc" in text else "clang"):
        assert word in text
    done = subprocess.run(
        [sys.executable, "-m", "extensor"], capture_output=True, text=True, check=True
    )
    assert ex.__version__ in done.stdout
    assert level in done.stdout


def test_level_that_does_not_exist() -> None:
    done = run("import extensor", EXTENSOR_CPU="v9")
    assert done.returncode != 0
    assert "EXTENSOR_CPU" in done.stderr
    assert "v9" in done.stderr
    assert cpu_level()[1][0] in done.stderr


def test_get_include() -> None:
    assert (Path(ex.get_include()) / "vecmath.h").is_file()


def test_public_names() -> None:
    assert len(set(ex.__all__)) == len(ex.__all__)
    assert all(hasattr(ex, name) for name in ex.__all__)


def test_import_brings_no_peers() -> None:
    done = run(
        "import extensor, sys; print([m for m in ('torch', 'jax', 'scipy') if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]"


def test_large_buffers_are_used_again_and_released() -> None:
    ex.release_memory()
    first = ex.zeros((2**22,))
    address = np.asarray(first).__array_interface__["data"][0]
    del first
    second = ex.empty((2**22,))
    assert np.asarray(second).__array_interface__["data"][0] == address
    del second
    assert ex.release_memory() >= 2**24
    assert ex.release_memory() == 0


def test_pool_is_bounded() -> None:
    ex.release_memory()
    many = [ex.empty((2**22,)) for _ in range(40)]  # 640 MB would be kept without a bound
    del many
    assert ex.release_memory() <= 300 * 2**20


def test_pool_can_be_turned_off() -> None:
    code = "import extensor as ex\nx = ex.ones((2**22,))\ndel x\nprint(ex.release_memory())"
    assert run(code, EXTENSOR_POOL_MB="0").stdout.strip() == "0"
    assert int(run(code).stdout) >= 2**24


def test_zeros_are_zero_in_used_memory() -> None:
    for _ in range(3):
        dirty = ex.full((2**20,), 7.0)
        del dirty
        assert not np.asarray(ex.zeros((2**20,))).any()
