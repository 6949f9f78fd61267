from typing import Any

import numpy as np

from extensor._tensor import ExTensor

def output_tensor(
    function: str, out: object, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> ExTensor: ...
def quick_join(tensors: object, axis: object, new_axis: bool) -> ExTensor | None: ...
def scatter_sum(
    function: str, rows: np.ndarray, positions: np.ndarray, place: np.ndarray
) -> None: ...
