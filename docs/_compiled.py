"""Docstrings of compiled classes and functions for the site.

Cython writes the signature into the first line of a docstring. The site shows signatures itself, so
that line goes; MkDocs runs this class on everything that it reads from the compiled modules.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

SIGNATURE = re.compile(r"(?:\w+\.)*\w+\(.*\)(?: -> .*)?")


class Compiled(griffe.Extension):
    """Drops the signature from the docstrings of compiled objects."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None or obj.analysis != "dynamic":
            return
        first, _newline, rest = obj.docstring.value.partition("\n")
        if SIGNATURE.fullmatch(first.strip()):
            obj.docstring.value = inspect.cleandoc(rest)
