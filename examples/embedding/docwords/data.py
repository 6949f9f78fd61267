"""Docstrings of the standard library and of NumPy, with the package each comes from."""

from __future__ import annotations

import ast
import sysconfig
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

PACKAGES = (
    *("asyncio", "email", "http", "importlib", "logging", "multiprocessing", "xml"),
    *("numpy.lib", "numpy.ma", "numpy.polynomial"),
)
SHORTEST = 8  # words
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def folder_of(package: str) -> Path:
    if package.startswith("numpy."):
        return Path(np.__file__).parent / package.removeprefix("numpy.")
    return Path(sysconfig.get_path("stdlib")) / package


def docstrings(folder: Path) -> Iterator[str]:
    """The docstrings of all source files, read without importing anything."""
    for path in sorted(folder.rglob("*.py")):
        if "tests" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            if text and len(text.split()) >= SHORTEST:
                yield text


def read_docstrings() -> tuple[tuple[list[str], list[int]], tuple[list[str], list[int]]]:
    """(texts, labels) to learn from, and (texts, labels) held out: every fifth, by its checksum.

    A text that occurs several times is taken once, so that none is in both parts.
    """
    parts: tuple[tuple[list[str], list[int]], ...] = (([], []), ([], []))
    seen = set()
    for label, package in enumerate(PACKAGES):
        for text in docstrings(folder_of(package)):
            if text not in seen:
                seen.add(text)
                texts, labels = parts[zlib.crc32(text.encode()) % 5 == 0]
                texts.append(text)
                labels.append(label)
    return parts[0], parts[1]
