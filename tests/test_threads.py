"""Threads: counts, limits, forks, several Python threads at once."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from helpers import assert_same_bits, threads_used

import extensor as ex

N = 2**21  # above the threshold of every function


def team() -> int:
    """Threads that a large call uses now."""
    x = ex.ones((N,))
    ex.add(x, x)
    return threads_used()


def test_set_and_get() -> None:
    for n in (1, 2, 3, 8):
        ex.set_num_threads(n)
        assert ex.get_num_threads() == n
        assert team() == n


def test_small_work_stays_serial() -> None:
    ex.set_num_threads(4)
    assert team() == 4
    x = ex.ones((64, 64))
    ex.add(x.T, x[0])  # no shortcut for small contiguous operands
    assert threads_used() == 1


@pytest.mark.parametrize("function", [ex.set_num_threads, ex.num_threads])
def test_bad_counts(function: Any) -> None:
    name = function.__name__
    for n in (0, -1):
        with pytest.raises(ValueError, match=name):
            function(n)
    for n in (1.5, "2", None):
        with pytest.raises(TypeError, match=name):
            function(n)
    assert ex.get_num_threads() >= 1


def test_context_manager() -> None:
    ex.set_num_threads(2)
    with ex.num_threads(3):
        assert (ex.get_num_threads(), team()) == (3, 3)
        with ex.num_threads(1):
            assert (ex.get_num_threads(), team()) == (1, 1)
        assert ex.get_num_threads() == 3
        with pytest.raises(ZeroDivisionError), ex.num_threads(5):
            raise ZeroDivisionError
        assert ex.get_num_threads() == 3
    assert (ex.get_num_threads(), team()) == (2, 2)


def test_context_is_for_the_calling_thread_and_set_for_the_process() -> None:
    ex.set_num_threads(2)
    seen: dict[str, int] = {}
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with ex.num_threads(5):
            inside.set()
            leave.wait(30)
            seen["own"] = ex.get_num_threads()
        seen["process"] = ex.get_num_threads()

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(30)
    assert ex.get_num_threads() == 2
    ex.set_num_threads(3)
    leave.set()
    thread.join()
    assert seen == {"own": 5, "process": 3}


def test_threadpoolctl_sees_and_limits() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    ex.set_num_threads(3)
    assert team() == 3
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        assert (ex.get_num_threads(), team()) == (1, 1)
        with ex.num_threads(8):
            assert ex.get_num_threads() == 1
        ex.set_num_threads(4)
        assert (ex.get_num_threads(), team()) == (1, 1)
    assert (ex.get_num_threads(), team()) == (4, 4)
    with threadpoolctl.threadpool_limits(2):
        assert (ex.get_num_threads(), team()) == (2, 2)
        with ex.num_threads(1):
            assert team() == 1
    assert (ex.get_num_threads(), team()) == (4, 4)
    kinds = {pool["user_api"] for pool in threadpoolctl.threadpool_info()}
    assert "openmp" in kinds


DEFAULT = "import extensor as ex; print(ex.get_num_threads())"


@pytest.mark.parametrize("wanted", ["1", "3", "5,2"])
def test_default_from_the_environment(wanted: str) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": wanted}
    done = subprocess.run([sys.executable, "-c", DEFAULT], env=env, capture_output=True, check=True)
    assert int(done.stdout) == int(wanted.split(",")[0])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_default_from_the_affinity() -> None:
    env = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{one}}}); {DEFAULT}"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert int(done.stdout) == 1
    done = subprocess.run([sys.executable, "-c", DEFAULT], env=env, capture_output=True, check=True)
    assert 1 <= int(done.stdout) <= len(os.sched_getaffinity(0))


# --- forks --------------------------------------------------------------------------------------

FORKS = """
import os, sys, time, warnings
import numpy as np
import extensor as ex
from extensor import _apply

warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads: that is what is tested
ex.set_num_threads(2)
x = ex.ones((2**20,))
ex.add(x, x)
assert _apply.last_team() == 2
deadline = time.monotonic() + 60
for number in range(200):
    child = os.fork()
    if child == 0:
        ok = ex.get_num_threads() == 1
        y = ex.add(x, x)
        ok &= _apply.last_team() == 1
        ga, gb = ex.multiply_backward(y, x, ex.ones(()))
        ok &= float(gb) == 2.0**21
        ex.set_num_threads(4)
        ok &= ex.get_num_threads() == 1
        with ex.num_threads(3):
            ok &= ex.get_num_threads() == 1
            ex.add(x, x)
        ok &= bool((np.asarray(y) == 2).all())
        os._exit(0 if ok else 1)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, 9)
            sys.exit(f"child {number} hangs")
        time.sleep(0.0005)
    if status:
        sys.exit(f"child {number} ended with {status}")
ex.add(x, x)
assert _apply.last_team() == 2, "the parent lost its threads"
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_two_hundred_forks_after_a_parallel_region() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=90)
    assert done.stdout.strip() == "fine", done.stderr


def _child(n: int) -> tuple[int, float]:
    x = ex.ones((N,))
    return ex.get_num_threads(), float(np.asarray(ex.add(x, x * float(n)))[-1])


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_multiprocessing_with_fork() -> None:
    ex.set_num_threads(2)
    assert team() == 2
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(_child, range(6)).get(timeout=60)
    assert results == [(1, 1.0 + n) for n in range(6)]
    assert team() == 2


# --- several Python threads ---------------------------------------------------------------------


def test_calls_from_several_python_threads() -> None:
    """Each thread its own data, counts and sizes; all results as computed alone."""
    rng = np.random.default_rng(0)
    ex.set_num_threads(2)
    work = []
    for n in (100, 5000, 70_001, 300_007):
        a = rng.standard_normal((n, 3)).astype(np.float32)
        b = rng.standard_normal((3,)).astype(np.float32)
        work.append((a, b, ex.multiply_backward(a, a, b), ex.divide(a, b)))

    def run(seed: int) -> int:
        for i in range(30):
            a, b, gradients, quotient = work[(seed + i) % len(work)]
            with ex.num_threads(1 + (seed + i) % 3):
                for got, wanted in zip(ex.multiply_backward(a, a, b), gradients, strict=True):
                    assert_same_bits(got, wanted)
                assert_same_bits(ex.divide(a, b), quotient)
        return seed

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(8))) == list(range(8))


def test_the_interpreter_lock_is_released() -> None:
    """Another Python thread counts on while a long call runs."""
    x = ex.full((4_000_000,), 1.5)
    counted = []
    stop = threading.Event()
    started = threading.Event()

    def count() -> None:
        n = 0
        started.set()
        while not stop.is_set():
            n += 1
            time.sleep(0)
        counted.append(n)

    ex.set_num_threads(1)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # the lock is only given away on purpose
    try:
        thread = threading.Thread(target=count)
        thread.start()
        started.wait(30)
        for _ in range(5):
            ex.power(x, x)
        stop.set()
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert counted[0] > 10


def test_results_of_the_pool_are_safe_between_threads() -> None:
    """Buffers that are freed in one thread and used again in another."""
    errors: list[str] = []

    def run(value: float) -> None:
        for _ in range(50):
            result = ex.full((300_000,), value) + 1.0
            array = np.asarray(result)
            if not (array == value + 1).all():
                errors.append(f"{value}: {np.unique(array)}")

    threads = [threading.Thread(target=run, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
