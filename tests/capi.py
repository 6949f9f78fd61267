"""The functions of ``extensor.cython_api``, called through ctypes by what their .pxd says."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import extensor as ex
from extensor import cython_api

CAPSULES: dict[str, Any] = cython_api.__pyx_capi__
PXD = Path(ex.__file__).with_name("cython_api.pxd")
DTYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
OUTPUTS = ("y", "grad_x", "grad_a", "grad_b", "grad_alpha")
DECLARATION = re.compile(r"^cdef ([\w ]+?) (ex_\w+)\(([^)]*)\) noexcept nogil$", re.MULTILINE)
C_TYPES = {"int": ctypes.c_int, "double": ctypes.c_double, "float": ctypes.c_float, "void": None}

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def c_type(text: str) -> Any:
    return ctypes.c_void_p if text.endswith("*") else C_TYPES.get(text, ctypes.c_ssize_t)


@dataclass(frozen=True)
class Function:
    """One declaration: its name, the C type it returns, its arguments' names and C types."""

    name: str
    returns: str
    arguments: Mapping[str, str]

    @property
    def signature(self) -> str:
        """As Cython writes it into the capsule."""
        return _name(CAPSULES[self.name]).decode()

    @property
    def outputs(self) -> list[str]:
        return [name for name in self.arguments if name in OUTPUTS]

    def __call__(self, **values: Any) -> Any:
        """Call with arrays, numbers, and None for NULL."""
        assert set(values) == set(self.arguments), (self.name, values.keys(), self.arguments)
        capsule = CAPSULES[self.name]
        types = [c_type(text) for text in self.arguments.values()]
        pointer = _pointer(capsule, _name(capsule))
        function = ctypes.CFUNCTYPE(c_type(self.returns), *types)(pointer)
        given = [values[name] for name in self.arguments]
        return function(*(v.ctypes.data if isinstance(v, np.ndarray) else v for v in given))


def declared() -> dict[str, Function]:
    """The declarations of the .pxd."""
    functions = {}
    for returns, name, arguments in DECLARATION.findall(PXD.read_text(encoding="utf-8")):
        pairs = [argument.strip().rsplit(" ", 1) for argument in arguments.split(",")]
        found = {pair[1]: pair[0] for pair in pairs if len(pair) == 2}
        functions[name] = Function(name, returns, found)
    return functions


FUNCTIONS = declared()
