from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from extensor._tensor import ExTensor

COSTS: dict[str, float]

class Op:
    name: str
    names: tuple[str, ...]
    numpy: Callable[..., Any] | None
    def __init__(
        self,
        name: str,
        block: tuple[object, object],
        names: str,
        *,
        args: Sequence[int] | None = None,
        cost: str = "memory",
        numpy: Callable[..., Any] | None = None,
        gives_bool: bool = False,
        float_only: bool = False,
        mask_first: bool = False,
    ) -> None: ...

class Gradient:
    def __init__(
        self,
        block: tuple[object, object],
        args: tuple[int, ...],
        cost: str = "memory",
        mask: bool = False,
    ) -> None: ...

class Target:
    shape: tuple[int, ...]
    typenum: int
    def __init__(self, shape: tuple[int, ...], typenum: int) -> None: ...

IDENTITY: Gradient

def call1(op: Op, x: object, out: object = None, params: tuple[float, ...] = ()) -> ExTensor: ...
def call2(
    op: Op, x: object, z: object, out: object = None, params: tuple[float, ...] = ()
) -> ExTensor: ...
def calln(
    op: Op, inputs: tuple[object, ...], out: object = None, params: tuple[float, ...] = ()
) -> ExTensor: ...
def backward(
    function: str,
    gradients: tuple[Gradient, ...],
    grad_output: object,
    saved: tuple[object, ...],
    names: tuple[str, ...],
    targets: tuple[object, ...] | None = None,
    needs: object = None,
    out: object = None,
    params: tuple[float, ...] = (),
) -> Any: ...
def shape_target(function: str, name: str, x: object) -> Target: ...
def sum_to(
    function: str, grad: object, original: tuple[int, ...], out: object = None
) -> ExTensor: ...
def empty_tensor(
    function: str, shape: object, dtype: np.dtype[Any], zeroed: bool = False
) -> ExTensor: ...
def check_needs(function: str, needs: object, count: int) -> tuple[bool, ...]: ...
def check_outs(function: str, out: object, count: int) -> tuple[Any, ...]: ...
def current_threads() -> int: ...
def last_team() -> int: ...
def widest_team() -> int: ...
def set_process_threads(count: int) -> None: ...
def exchange_own_threads(count: int) -> int: ...
def set_forked() -> None: ...
