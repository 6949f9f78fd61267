"""Values, gradients and edge points at each CPU level, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import cpu_level

IN_USE, AVAILABLE = cpu_level()
FILES = (
    *("test_generic.py", "test_accuracy.py", "test_reduction.py", "test_matrix.py"),
    "test_cython_api.py",
)
KEYWORDS = (
    *("values", "gradients", "edge", "independence"),
    *("sums", "softmax", "variance", "ties", "sizes", "bound", "nan_and_inf"),
    "equal_to_python",
)


@pytest.mark.parametrize("level", AVAILABLE)
def test_level(level: str) -> None:
    if level == IN_USE:
        pytest.skip("the level of this run: test_generic.py tests it")
    if "EXTENSOR_CPU" in os.environ:
        pytest.skip("already in a run of one level")
    env = {**os.environ, "EXTENSOR_CPU": level}
    code = (
        f"import extensor._cpu as cpu; assert cpu.level == {level!r}, cpu.level; print(cpu.level)"
    )
    check = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert check.stdout.strip() == level, check.stderr
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
            *(str(Path(__file__).with_name(name)) for name in FILES),
            *("-k", f"({' or '.join(KEYWORDS)}) and not summed"),
        ],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_the_level_can_be_read() -> None:
    assert IN_USE in AVAILABLE
    if "EXTENSOR_CPU" in os.environ:
        assert os.environ["EXTENSOR_CPU"] == IN_USE
