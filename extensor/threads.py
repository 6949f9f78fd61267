"""How many threads the kernels use."""

from __future__ import annotations

import math
import operator
import os
from pathlib import Path
from types import TracebackType

from extensor import _apply

__all__ = ["get_num_threads", "num_threads", "set_num_threads"]


def _count(function: str, n: int) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"{function}: n must be an int, not {type(n).__name__}") from None
    if count < 1 or isinstance(n, bool):
        raise ValueError(f"{function}: n must be at least 1, got {n}")
    return min(count, 1 << 16)


def set_num_threads(n: int) -> None:
    """Set how many threads the process uses; more than there are cores is allowed.

    In a forked child the count stays 1.

    Examples
    --------
    >>> import extensor as ex
    >>> before = ex.get_num_threads()
    >>> ex.set_num_threads(1)
    >>> ex.get_num_threads()
    1
    >>> ex.set_num_threads(before)
    """
    _apply.set_process_threads(_count("set_num_threads", n))


def get_num_threads() -> int:
    """How many threads a large call would use now.

    That is the count of `num_threads` or `set_num_threads`, limited by threadpoolctl; 1 in a
    forked child.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.get_num_threads() >= 1
    True
    """
    return _apply.current_threads()


class num_threads:  # noqa: N801 - used like a function
    """A context in which the calling Python thread uses another number of threads.

    Examples
    --------
    >>> import extensor as ex
    >>> with ex.num_threads(1):
    ...     ex.get_num_threads()
    1
    """

    def __init__(self, n: int) -> None:
        self._n = _count("num_threads", n)
        self._before: list[int] = []

    def __enter__(self) -> num_threads:
        self._before.append(_apply.exchange_own_threads(self._n))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _apply.exchange_own_threads(self._before.pop())


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _quota() -> float:
    """CPUs that the control group grants; inf without a limit."""
    limit = math.inf
    group = ""
    for line in _read("/proc/self/cgroup").splitlines():
        number, _, path = line.partition(":")
        if number == "0":
            group = path.lstrip(":")
    for folder in {"/sys/fs/cgroup" + group, "/sys/fs/cgroup"}:
        parts = _read(f"{folder}/cpu.max").split()
        if len(parts) == 2 and parts[0].isdigit():
            limit = min(limit, int(parts[0]) / int(parts[1]))
    quota, period = (_read(f"/sys/fs/cgroup/cpu/cpu.cfs_{x}_us") for x in ("quota", "period"))
    if quota.strip().isdigit() and period.strip().isdigit():
        limit = min(limit, int(quota) / int(period))
    return limit


def _physical_cores(cpus: set[int]) -> int:
    """Distinct cores among the given CPUs: hyper-threads of one core count once."""
    siblings = {
        _read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu)
        for cpu in cpus
    }
    return len(siblings)


def _default() -> int:
    """OMP_NUM_THREADS, else the least of affinity, control-group quota and physical cores."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        cores = _physical_cores(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, math.ceil(_quota()) if _quota() < math.inf else cores))


set_num_threads(_default())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_apply.set_forked)
