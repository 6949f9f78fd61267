"""An outside project that cimports extensor.cython_api, compiled as C and as C++."""

import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

import extensor

openmp = ["-fopenmp"] if sys.platform.startswith("linux") else []
options = {
    "include_dirs": [extensor.get_include()],  # for vecmath.h; a cimport alone needs nothing
    "extra_compile_args": ["-O2", "-ffp-contract=off", *openmp],
    "extra_link_args": openmp,
}
setup(
    ext_modules=cythonize(
        [
            Extension("consumer_c", ["consumer_c.pyx"], **options),
            Extension("consumer_cpp", ["consumer_cpp.pyx"], language="c++", **options),
        ],
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False},
    )
)
