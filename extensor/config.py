"""What this installation is and does: version, CPU level, threads, compiler, header folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from extensor import _cpu
from extensor.threads import get_num_threads

__all__ = ["get_include", "show_config"]


def get_version() -> str:
    """The version in pyproject.toml, as installed."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, seldom asked

    try:
        return version("extensor")
    except PackageNotFoundError:
        return "0+unknown"


def show_config() -> None:
    """Print version, CPU level in use and available, threads and compiler.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.show_config()  # doctest: +ELLIPSIS
    extensor ...
      CPU level   ...
    """
    openmp = f"OpenMP {_cpu.openmp}" if _cpu.openmp else "without OpenMP"
    print(f"extensor {get_version()}")
    print(f"  CPU level   {_cpu.level} (available: {', '.join(_cpu.available)})")
    print(f"  threads     {get_num_threads()}")
    print(f"  compiler    {_cpu.compiler}, {openmp}")
    print(f"  NumPy       {np.__version__}")


def get_include() -> str:
    """The folder that holds this package's headers, for C compilers.

    Examples
    --------
    >>> import os
    >>> import extensor as ex
    >>> os.path.exists(os.path.join(ex.get_include(), "vecmath.h"))
    True
    """
    return str(Path(__file__).parent / "_kernels")
