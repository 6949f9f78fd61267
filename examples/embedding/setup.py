"""One extension module. What it cimports from extensor needs no flags, headers or libraries."""

import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

openmp = ["-fopenmp"] if sys.platform.startswith("linux") else []  # elsewhere prange runs serially
directives = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}
extension = Extension(
    "docwords._model",
    ["docwords/_model.pyx"],
    extra_compile_args=["-O2", *openmp],
    extra_link_args=openmp,
)
setup(ext_modules=cythonize([extension], compiler_directives=directives))
