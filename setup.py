"""Builds the extension modules: the core once, the kernels once per CPU level.

Environment:
  EXTENSOR_BUILD_LEVELS  levels to build, e.g. "v3,v4"; "native" builds the best one of this
                         machine (for development); default: all of this architecture's.
  EXTENSOR_DEBUG=1       bounds checks, debug symbols, no optimisation beyond -O1.
  EXTENSOR_OPENMP=0      build without OpenMP (everything runs on one thread).
"""

import os
import platform
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

X86_LEVELS = {
    "v2": ["-march=x86-64-v2"],
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}
CORE = sorted(path.stem for path in Path("extensor").glob("*.pyx"))
KERNEL_FOLDER = "extensor/_kernels"
KERNELS = sorted(path.stem for path in Path(KERNEL_FOLDER).glob("*.pyx"))
HEADERS = sorted(str(path) for path in Path("extensor").glob("**/*.h"))

DEBUG = os.environ.get("EXTENSOR_DEBUG", "0") not in ("", "0")
# Strict IEEE results: no contraction the source does not ask for, nothing of -ffast-math.
MATH = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
OPTIMISE = ["-O1", "-g"] if DEBUG else ["-O3", "-g0"]
QUIET = ["-Wno-array-bounds", "-Wno-discarded-qualifiers"]  # false alarms in generated code
CORE_DIRECTIVES = {
    "language_level": 3,
    "cdivision": True,
    "embedsignature": True,
    "freethreading_compatible": True,
}
KERNEL_DIRECTIVES = CORE_DIRECTIVES | {
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
}


def x86_64() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64") and sys.maxsize > 2**32


def native_level() -> str:
    """The best level of this machine, read from the CPU's flags."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "v3"
    flags = set(text.split("flags", 1)[-1].split("\n", 1)[0].split())
    if flags >= {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}:
        return "v4"
    return "v3" if flags >= {"avx2", "fma", "bmi2"} else "v2"


def levels() -> dict[str, list[str]]:
    if not x86_64():
        return {"base": []}
    wanted = os.environ.get("EXTENSOR_BUILD_LEVELS", "all")
    if wanted == "all":
        return X86_LEVELS
    names = [native_level()] if wanted == "native" else wanted.replace(" ", "").split(",")
    unknown = [name for name in names if name not in X86_LEVELS]
    if unknown:
        raise SystemExit(
            f"EXTENSOR_BUILD_LEVELS={wanted!r}: unknown level {unknown[0]!r}; "
            f"use 'all', 'native' or a list of {', '.join(X86_LEVELS)}"
        )
    return {name: X86_LEVELS[name] for name in names}


def try_compile(compiler: list[str], source: str, flags: list[str]) -> str:
    """Compile and link a small program; the error text, empty when it worked."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "check.c")
        path.write_text(source)
        command = [*compiler, str(path), "-o", str(Path(folder, "check")), *flags]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            return str(error)
        return "" if done.returncode == 0 else (done.stderr or "failed")


def openmp_flags(compiler: list[str]) -> tuple[list[str], list[str]]:
    """Compile and link flags for OpenMP, or an exit that says what to install."""
    if try_compile(compiler, "int main(void) { return 0; }", []):
        raise SystemExit(
            f"extensor needs a C compiler to build, and {shlex.join(compiler)!r} does not work.\n"
            "Install one (Debian and Ubuntu: apt-get install gcc python3-dev; "
            "Fedora: dnf install gcc python3-devel; macOS: xcode-select --install) "
            "or name yours in CC."
        )
    if os.environ.get("EXTENSOR_OPENMP", "1") == "0":
        return [], []
    program = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }"
    candidates = [(["-fopenmp"], ["-fopenmp"])]
    if sys.platform == "darwin":
        prefix = os.environ.get("LIBOMP_PREFIX", "/opt/homebrew/opt/libomp")
        candidates.append((
            ["-Xpreprocessor", "-fopenmp", f"-I{prefix}/include"],
            [f"-L{prefix}/lib", "-lomp"],
        ))
    for compile_flags, link_flags in candidates:
        if not try_compile(compiler, program, compile_flags + link_flags):
            return compile_flags, link_flags
    raise SystemExit(
        f"extensor needs OpenMP, and {shlex.join(compiler)!r} cannot compile an OpenMP program.\n"
        "Install it (gcc brings it along; clang on Debian: apt-get install libomp-dev; "
        "macOS: brew install libomp), or build a single-threaded library with EXTENSOR_OPENMP=0."
    )


class Build(build_ext):
    """build_ext with OpenMP flags and as many compilers at once as there are cores."""

    def build_extensions(self) -> None:
        compile_flags, link_flags = openmp_flags(list(self.compiler.compiler))
        for extension in self.extensions:
            extension.extra_compile_args = extension.extra_compile_args + compile_flags
            extension.extra_link_args = extension.extra_link_args + link_flags
        self.parallel = self.parallel or os.cpu_count() or 1
        super().build_extensions()


def extension(name: str, source: str, flags: list[str]) -> Extension:
    version = "NPY_2_0_API_VERSION"
    macros = [("NPY_NO_DEPRECATED_API", version), ("NPY_TARGET_VERSION", version)]
    return Extension(
        name,
        [source],
        include_dirs=["extensor", "extensor/_kernels", numpy.get_include()],
        define_macros=macros,
        extra_compile_args=[*OPTIMISE, *MATH, *QUIET, *flags],
        depends=HEADERS,
    )


def extensions() -> list[Extension]:
    jobs = os.cpu_count() or 1
    common = {"nthreads": jobs, "quiet": True}
    modules = cythonize(
        [extension(f"extensor.{name}", f"extensor/{name}.pyx", []) for name in CORE],
        build_dir="build/core",
        compiler_directives=CORE_DIRECTIVES,
        **common,
    )
    for level, flags in levels().items():
        modules += cythonize(
            [
                extension(f"extensor._kernels.{level}.{name}", f"{KERNEL_FOLDER}/{name}.pyx", flags)
                for name in KERNELS
            ],
            build_dir=f"build/{level}",
            compiler_directives=KERNEL_DIRECTIVES,
            **common,
        )
    return modules


setup(ext_modules=extensions(), cmdclass={"build_ext": Build})
