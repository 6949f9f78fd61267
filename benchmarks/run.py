"""The run: workers take turns, cell by cell, in short rounds; the result is one dictionary."""

import datetime
import json
import math
import os
import platform
import random
import select
import signal
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.limits import measure_limits
from benchmarks.rows import REPRESENTATIVE, ROWS, Row

ROOT = str(Path(__file__).resolve().parent.parent)
_START = "import sys; sys.path.append({!r}); from benchmarks.worker import main; main({!r})"
_THREADS = [f"{name}_NUM_THREADS" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")]
_THREADS += ["NUMEXPR_MAX_THREADS", "VECLIB_MAXIMUM_THREADS"]
_PATIENCE = 120  # seconds after which a worker that does not answer is given up
_CALM = 1.1  # subject and control may differ by this factor before they are measured again
_SLOW = 0.1  # calls longer than this are measured in one round only
#: Largest relative difference between libraries, by dtype; sums of a million terms included
_AGREE = {"float16": 3e-2, "float32": 2e-4, "float64": 1e-9}


class WorkerDiedError(Exception):
    """A worker ended or stopped answering."""


class Worker:
    """A library's process; stopped (SIGSTOP) whenever it is not its turn."""

    def __init__(self, name, library, threads):
        self.name, self.library = name, library
        environment = os.environ | dict.fromkeys(_THREADS, str(threads))
        environment |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START.format(ROOT, library)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment,
        )  # fmt: skip

    def hello(self):
        """Return what the worker says of its library; leaves it stopped."""
        answer = self._read()
        self._signal("SIGSTOP")
        return answer

    def ask(self, **request):
        """Let the worker run, and return its answer."""
        self._signal("SIGCONT")
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            self._process.stdin.flush()
        except OSError as error:
            raise WorkerDiedError(f"{self.name} ended") from error
        answer = self._read()
        self._signal("SIGSTOP")
        return answer

    def close(self):
        """End the process."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):  # what was not written yet has nowhere to go
            self._process.stdin.close()
        self._process.stdout.close()

    def _signal(self, name):
        if hasattr(signal, name) and self._process.poll() is None:
            self._process.send_signal(getattr(signal, name))

    def _read(self):
        if sys.platform != "win32":
            if not select.select([self._process.stdout], [], [], _PATIENCE)[0]:
                raise WorkerDiedError(f"{self.name} did not answer for {_PATIENCE} s")
        line = self._process.stdout.readline()
        if not line:
            raise WorkerDiedError(f"{self.name} ended")
        return json.loads(line)


@dataclass(frozen=True)
class Task:
    """One cell: a row at a size, dtype, thread count and mode."""

    row: Row
    size: int
    dtype: str
    threads: int
    mode: str = "alloc"


@dataclass
class Plan:
    """What to measure and for how long."""

    tasks: list[Task]
    peers: tuple[str, ...]
    subject: str = "extensor"
    rounds: int = 5
    turn: float = 0.02  # seconds a worker measures in each round
    limit: float = math.inf  # seconds for the whole run
    quick: bool = False


def all_threads():
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def make_tasks(rows, sizes, dtypes, threads, modes, everything=True):
    """Return the cells.

    Unless `everything`, float16, fewer threads and `out=` are measured on representative rows only,
    one of the three at a time.
    """
    tasks = []
    for row in rows:
        for count in threads:
            for mode in modes:
                for dtype in dtypes:
                    rare = (count != max(threads)) + (mode != "alloc") + (dtype == "float16")
                    if everything or not rare or (rare == 1 and row.id in REPRESENTATIVE):
                        tasks += [
                            Task(row, size, dtype, count, mode)
                            for size in row.sizes
                            if size in sizes or size == 0
                        ]
    return tasks


def _agreement(reference, sample, dtype):
    """Return an explanation where two results differ, else None."""
    if [part[:-1] for part in reference] != [part[:-1] for part in sample]:
        return f"shapes {[p[:-1] for p in sample]} instead of {[p[:-1] for p in reference]}"
    for expected, given in zip(reference, sample, strict=True):
        scale = max((abs(v) for v in expected[-1] if math.isfinite(v)), default=1.0)
        for e, g in zip(expected[-1], given[-1], strict=True):
            if e == g or (math.isnan(e) and math.isnan(g)):
                continue
            if not abs(e - g) <= _AGREE[dtype] * max(scale, 1e-3):
                return f"{g:.6g} instead of {e:.6g}"
    return None


def _statistics(times, rounds):
    quarters = statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3
    return {
        "min": min(times), "median": quarters[1], "q1": quarters[0], "q3": quarters[2],
        "repeats": len(times), "rounds": rounds,
    }  # fmt: skip


def _measure(task, workers, plan, turn, rotate):
    """Return one cell of the result."""
    cell = {
        "row": task.row.id, "category": task.row.category, "size": task.size,
        "dtype": task.dtype, "threads": task.threads, "mode": task.mode,
        "flops": task.row.flops, "bytes": 0, "memory": task.row.memory,
        "times": {}, "absent": {}, "disagree": {},
    }  # fmt: skip
    ready, reference = {}, None
    for worker in workers:
        answer = worker.ask(
            do="prepare", row=task.row.id, size=task.size, dtype=task.dtype, mode=task.mode
        )
        if "absent" in answer:
            cell["absent"][worker.name] = answer["absent"]
            if worker.name == plan.subject:
                cell["failed"] = answer.get("error", False)
            continue
        ready[worker] = answer["seconds"]
        if reference is None:  # the subject comes first
            reference, cell["bytes"] = answer["sample"], answer["bytes"]
        elif not task.row.random:
            difference = _agreement(reference, answer["sample"], task.dtype)
            if difference:
                cell["disagree"][worker.name] = difference
    times = {worker: [] for worker in ready}
    best = {worker: [] for worker in ready}
    order = list(ready)
    for _ in range(3):  # again where the control shows that the machine was disturbed
        for index in range(plan.rounds):
            shift = (index + rotate) % max(1, len(order))
            for worker in order[shift:] + order[:shift]:
                if ready[worker] > _SLOW and best[worker]:
                    continue
                some = worker.ask(do="measure", budget=turn)["times"]
                times[worker] += some
                best[worker].append(min(some))
        pair = [min(best[w]) for w in ready if w.library == plan.subject]
        if len(pair) < 2 or max(pair) <= _CALM * min(pair) or max(pair) > _SLOW / 5:
            break
    cell["times"] = {w.name: _statistics(times[w], best[w]) for w in ready}
    return cell


@contextmanager
def _workers(plan, threads, report):
    """Start the subject, the control (the subject once more) and the peers."""
    names = [(plan.subject, plan.subject), ("control", plan.subject), *((p, p) for p in plan.peers)]
    started = [Worker(name, library, threads) for name, library in names]
    try:
        present = []
        for worker in started:
            answer = worker.hello()
            report.setdefault("libraries", {})[worker.name] = answer.get("version")
            if "absent" in answer:
                report.setdefault("missing", {})[worker.name] = answer["absent"]
                continue
            if answer["functions"] is not None:
                report["functions"] = answer["functions"]
            present.append(worker)
        yield present
    finally:
        for worker in started:
            worker.close()


def _drop_missing_rows(tasks, functions, result):
    """Leave out the rows whose functions the subject does not have, and list them."""
    if functions is None:
        return tasks
    have = set(functions)
    lacking = {t.row.id for t in tasks if not have.issuperset(t.row.needs)}
    result["missing_rows"] = sorted(set(result["missing_rows"]) | lacking)
    return [t for t in tasks if t.row.id not in lacking]


def run(plan, advance=lambda done, total, task: None, say=print):
    """Measure everything in the plan and return the result as plain data."""
    start, busy, own = time.perf_counter(), _busy_seconds(), _own_seconds()
    result = {
        "subject": plan.subject, "date": datetime.datetime.now(datetime.UTC).isoformat()[:19],
        "python": platform.python_version(), "machine": _machine(), "limits": [],
        "libraries": {}, "missing": {}, "missing_rows": [], "unmeasured": 0, "cells": [],
        "rounds": plan.rounds,
    }  # fmt: skip
    done, total = 0, len(plan.tasks)
    for threads in sorted({task.threads for task in plan.tasks}, reverse=True):
        if plan.limit == 0:  # interrupted: what is done is reported
            result["unmeasured"] += sum(task.threads == threads for task in plan.tasks)
            continue
        result["limits"].append(measure_limits(threads, plan.quick))
        tasks = [task for task in plan.tasks if task.threads == threads]
        hello = {}
        with _workers(plan, threads, hello) as workers:
            result["libraries"] |= {k: v for k, v in hello["libraries"].items() if v}
            result["missing"] |= hello.get("missing", {})
            if plan.subject not in (worker.name for worker in workers):
                raise SystemExit(
                    f"{plan.subject} cannot be imported: {hello['missing'][plan.subject]}\n"
                    "Build it first (pip install -e . in this environment)."
                )
            result["limits"][-1]["empty"] = workers[0].ask(do="empty")
            before = len(tasks)
            tasks = _drop_missing_rows(tasks, hello.get("functions"), result)
            total -= before - len(tasks)
            # in random order a drift of the machine touches all rows alike, and the mean
            # cost of the cells done so far tells the cost of the others
            random.Random(0).shuffle(tasks)
            for index, task in enumerate(tasks):
                left = plan.limit - (time.perf_counter() - start)
                if left <= 0:
                    result["unmeasured"] += len(tasks) - index
                    break
                fair = 0.4 * left / (total - done) / (plan.rounds * len(workers))
                advance(done, total, task)
                try:
                    cell = _measure(task, workers, plan, max(0.001, min(plan.turn, fair)), index)
                    result["cells"].append(cell)
                except KeyboardInterrupt:
                    result["unmeasured"] += len(tasks) - index
                    plan.limit = 0
                    break
                except WorkerDiedError as error:
                    say(f"{task.row.id}, {task.size}, {task.dtype}: {error}; left out")
                    workers = _revive(workers, error, threads)
                done += 1
    order = {row.id: index for index, row in enumerate(ROWS)}
    result["cells"].sort(key=lambda cell: (order[cell["row"]], cell["size"], cell["dtype"]))
    advance(total, total, None)
    result["seconds"] = time.perf_counter() - start
    if busy is not None:
        own = _own_seconds() - own
        result["others"] = max(0, _busy_seconds() - busy - own) / result["seconds"] / os.cpu_count()
    return result


def _busy_seconds():
    """Return the processor time spent by all processes since the machine started, or None."""
    try:
        fields = Path("/proc/stat").read_text().split()[1:9]
    except OSError:
        return None
    user, nice, system, _, _, irq, soft, steal = map(int, fields)
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds():
    """Return the processor time of this process and of its ended children."""
    return sum(os.times()[:4])


def _revive(workers, error, threads):
    """Replace the worker that died."""
    fresh = []
    for worker in workers:
        if str(error).startswith(worker.name + " "):
            worker.close()
            worker = Worker(worker.name, worker.library, threads)
            worker.hello()
        fresh.append(worker)
    return fresh


def _machine():
    """Return what the machine is, without naming it."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {"cpu": cpu, "cores": all_threads(), "system": platform.system(),
            "architecture": platform.machine()}  # fmt: skip
