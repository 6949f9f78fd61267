"""Names for the kinds of argument that many functions take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from extensor.tensor import ExTensor

ArrayLike: TypeAlias = Any  # ExTensor, ndarray, nested list, Python scalar, buffer or DLPack object
Shape: TypeAlias = Sequence[int]
Axis: TypeAlias = int | Sequence[int] | None
Out: TypeAlias = ExTensor | np.ndarray | None
Outs: TypeAlias = Sequence[Out] | None
