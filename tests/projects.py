"""Projects that use the library, built as their authors would: by pip, in folders of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import extensor as ex

PACKAGE = Path(ex.__file__).parents[1]
# of the compiler (file:line: warning: …) or of Cython (warning: file:line: …)
COMPLAINT = re.compile(r"^(?=.*warning).*\.(?:pyx|pxi|pxd|c|cpp|h):\d.*$", re.MULTILINE)


def environment(*folders: Path) -> dict[str, str]:
    """Variables of a process that sees these folders, and the extensor that is being tested."""
    wheel = "EXTENSOR_WHEEL" in os.environ  # then it is installed, and the source tree stays out
    paths = [*folders, *([] if wheel else [PACKAGE])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}


def install(project: Path, folder: Path) -> Path:
    """Build a copy of a project; returns the folder it is installed into. Warnings are errors."""
    copy, site = folder / "project", folder / "site"
    folder.mkdir(exist_ok=True)
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "*.so"))
    command = [
        *(sys.executable, "-m", "pip", "install", "--verbose", "--disable-pip-version-check"),
        *("--no-build-isolation", "--no-deps", "--no-index", "--target", str(site), str(copy)),
    ]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=600
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-5000:]
    text = "\n".join(line.strip() for line in output.splitlines())
    assert not COMPLAINT.findall(text), COMPLAINT.findall(text)
    return site


def run(arguments: list[str], folder: Path, site: Path) -> str:
    """Run Python with what was installed; its output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(site),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout
