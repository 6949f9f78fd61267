"""Which CPU level runs the kernels, and the kernels of that level.

``available`` lists the levels that are built and that this CPU supports, worst first; ``level``
is the one in use: the best available, or what ``EXTENSOR_CPU`` names.
"""

import importlib
import importlib.util
import os

cdef extern from *:
    """
    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    static int ex_cpu_level(void) {
        __builtin_cpu_init();
        if (!(__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))) return 1;
        if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
              && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))) return 2;
        if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
              && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
              && __builtin_cpu_supports("avx512vl"))) return 3;
        return 4;
    }
    #else
    static int ex_cpu_level(void) { return 0; }
    #endif
    #if defined(__clang__)
    #define EX_COMPILER "clang " __clang_version__
    #elif defined(__GNUC__)
    #define EX_COMPILER "gcc " __VERSION__
    #else
    #define EX_COMPILER "unknown"
    #endif
    #ifdef _OPENMP
    #define EX_OPENMP _OPENMP
    #else
    #define EX_OPENMP 0
    #endif
    """
    int ex_cpu_level() noexcept nogil
    const char* EX_COMPILER
    int EX_OPENMP

compiler = EX_COMPILER.decode()
openmp = EX_OPENMP


def _available() -> list[str]:
    cdef int supported = ex_cpu_level()
    names = ["base"] if supported == 0 else [f"v{i}" for i in range(2, supported + 1)]
    package = "extensor._kernels"
    return [name for name in names if importlib.util.find_spec(f"{package}.{name}.drive")]


def _choose() -> str:
    wanted = os.environ.get("EXTENSOR_CPU", "").strip()
    if not available:
        raise ImportError(
            "extensor: no kernels for this CPU are installed; it needs at least x86-64-v2 "
            "(SSE4.2) or a build for another architecture (EXTENSOR_BUILD_LEVELS)"
        )
    if not wanted:
        return available[-1]
    if wanted not in available:
        raise ImportError(
            f"extensor: EXTENSOR_CPU={wanted!r} is not available here; "
            f"this build and CPU have {', '.join(available)}"
        )
    return wanted


available = _available()
level = _choose()


def kernels(str module) -> dict:
    """The exports of one kernel module of the level in use."""
    return importlib.import_module(f"extensor._kernels.{level}.{module}").EXPORTS
