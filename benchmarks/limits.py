"""The machine's own limits, measured in the same run: copy and triad bandwidth, FMA peak."""

import json
import math
import os
import shutil
import subprocess
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path


def measure_limits(threads, quick=False):
    """Return bandwidths as [bytes moved, bytes per second] pairs and the peak in flops per second.

    A small C program measures them; without a compiler NumPy's copies and products stand in.
    """
    compiler = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")
    if compiler:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "limits")
            source = Path(__file__).with_name("limits.c")
            width = 64 if "avx512f" in _cpu_flags() else 32
            flags = ["-O3", "-march=native", "-fopenmp", "-w", f"-DVECTOR={width}"]
            build = [compiler, *flags, str(source), "-o", str(program)]
            built = subprocess.run(build, capture_output=True, check=False)
            if built.returncode == 0:
                seconds = "0.003" if quick else "0.02"
                command = [str(program), str(threads), seconds]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    return {"by": "C", **json.loads(done.stdout)}
    return _numpy_limits(threads)


def _cpu_flags():
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ()
    return next((line.split() for line in text.splitlines() if line.startswith("flags")), ())


def _best(function, repeats=20):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def _numpy_limits(threads):
    import numpy as np

    copy, triad, peak = [], [], {}
    for power in range(6, 26):
        a, b, c = (np.ones(1 << power, np.float32) for _ in range(3))
        took = _best(partial(np.copyto, a, b))
        copy.append([2 * a.nbytes, 2 * a.nbytes / took])
        took = _best(partial(np.add, b, c, out=a))
        triad.append([3 * a.nbytes, 3 * a.nbytes / took])
    for dtype in ("float32", "float64"):
        a = np.ones((1024, 1024), dtype)
        peak[dtype] = 2 * 1024**3 / _best(partial(np.matmul, a, a))
    return {"by": "NumPy", "threads": threads, "copy": copy, "triad": triad, "peak": peak}


def bandwidth_at(points, moved):
    """Return the bandwidth at `moved` bytes, interpolated between the measured points."""
    if moved <= points[0][0]:
        return points[0][1]
    for (low, slow), (high, fast) in pairwise(points):
        if moved <= high:
            part = math.log(moved / low) / math.log(high / low)
            return slow + part * (fast - slow)
    return points[-1][1]
