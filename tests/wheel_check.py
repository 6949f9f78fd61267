"""Tries a wheel as a stranger would: in empty environments, far from the source tree.

    python tests/wheel_check.py build/dist/extensor-….whl

One environment gets the oldest NumPy that the wheel asks for (the oldest with a wheel for this
Python), the other the newest. `make wheel-check` builds the wheel and runs this.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

SMOKE = """
import copy, pickle, sys
from pathlib import Path
import numpy as np
import extensor as ex

package = Path(ex.__file__).parent
assert package.is_relative_to(sys.prefix), package
assert ex.__version__ == sys.argv[1], ex.__version__
for name in ("py.typed", "_tensor.pyi", "cython_api.pxd", "__init__.pxd"):
    assert (package / name).exists(), name
assert Path(ex.get_include(), "vecmath.h").exists()

rng = np.random.default_rng(0)
for dtype in (np.float16, np.float32, np.float64):
    x = rng.normal(size=(300, 70)).astype(dtype)
    w = rng.normal(size=(40, 70)).astype(dtype)
    y = ex.linear(x, w)
    exact = x.astype(np.float64) @ w.astype(np.float64).T
    assert y.dtype == dtype and np.allclose(y, exact, rtol=0, atol=300 * np.finfo(dtype).eps)
    p = ex.softmax(y, axis=0)
    assert np.allclose(ex.sum(p, axis=0).numpy().astype(np.float64), 1, atol=1e-2)
    assert ex.gelu(x[:, ::-3].T).shape == (24, 300)
assert (ex.tensor([7, -7]) // 2).tolist() == [3, -4]
a, b = rng.uniform(1, 2, (2, 3)), rng.uniform(1, 2, 3)
ex.check_gradient(ex.divide, ex.divide_backward, [a, b])

weight = ex.zeros((1, 3))
inputs = ex.asarray(rng.normal(size=(50, 3)))
wanted = ex.linear(inputs, ex.tensor([[1.0, -2.0, 0.5]]))
optimizer = ex.Adam([weight], lr=0.05)
for _ in range(400):
    grad = ex.mean_squared_error_backward(1.0, ex.linear(inputs, weight), wanted, reduction="mean")
    optimizer.step([ex.linear_backward(grad, inputs, weight)[1]])
assert np.allclose(weight, [[1, -2, 0.5]], atol=1e-2)

x = ex.arange(6).reshape(2, 3)
for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), ex.from_dlpack(np.from_dlpack(x))):
    assert (other == x).numpy().all()
assert np.shares_memory(np.asarray(x), x.numpy()) and memoryview(x).shape == (2, 3)
try:
    ex.add(ex.ones(2), ex.ones(3))
except ValueError as error:
    assert "add: a has shape (2,)" in str(error)
else:
    raise AssertionError("shapes that do not broadcast were added")
print(f"  works with NumPy {np.__version__} on Python {sys.version.split()[0]}")
"""


def metadata(wheel: Path) -> tuple[str, tuple[int, int]]:
    """The wheel's version, and the oldest (major, minor) of NumPy that it asks for."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        text = archive.read(name).decode()
    version = re.search(r"^Version: (\S+)", text, re.MULTILINE)
    numpy = re.search(r"^Requires-Dist: numpy>=(\d+)\.(\d+)", text, re.MULTILINE)
    assert version and numpy, "the wheel names no version or no NumPy"
    return version[1], (int(numpy[1]), int(numpy[2]))


def pip(python: Path, *arguments: str) -> bool:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "--only-binary=:all:", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode and "No matching distribution" not in done.stderr:
        raise SystemExit(done.stderr)
    return done.returncode == 0


def install_oldest(python: Path, major: int, minor: int) -> None:
    """The first release of the oldest minor version that has a wheel for this Python."""
    for candidate in range(minor, minor + 20):
        for pattern in (f"{major}.{candidate}.0", f"{major}.{candidate}.*"):
            if pip(python, f"numpy=={pattern}"):
                return
    raise SystemExit(f"no wheel of NumPy {major}.{minor} or later for this Python")


def check(wheel: Path, oldest: bool) -> None:
    version, (major, minor) = metadata(wheel)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "EXTENSOR"))}
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "venv"), with_pip=True)
        python = Path(folder, "venv", "bin", "python")
        if oldest:
            install_oldest(python, major, minor)
        if not pip(python, str(wheel)):
            raise SystemExit(f"{wheel.name} cannot be installed on this Python")
        for command in (["-c", SMOKE, version], ["-m", "extensor"]):
            subprocess.run([str(python), *command], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for oldest in (True, False):
        print(f"{'Oldest' if oldest else 'Newest'} NumPy:", flush=True)
        check(Path(sys.argv[1]).resolve(), oldest)
