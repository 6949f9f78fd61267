from typing import Any, final

from extensor._tensor import ExTensor

class Loss:
    def __init__(
        self, name: str, names: str, block: str, *, cost: str = "memory", check: str | None = None
    ) -> None: ...

class Rule:
    states: int
    def __init__(self, name: str, states: int, cost: float) -> None: ...

@final
class Slot:
    owner: Any
    boxed: bool
    steps: int
    first: Any
    second: Any
    def __init__(self, owner: object, boxed: bool) -> None: ...

def loss(
    rule: Loss,
    predictions: object,
    targets: object,
    reduction: object,
    out: object = None,
    params: tuple[float, ...] = (),
) -> ExTensor: ...
def loss_backward(
    rule: Loss,
    grad_output: object,
    predictions: object,
    targets: object,
    reduction: object,
    out: object = None,
    params: tuple[float, ...] = (),
) -> ExTensor: ...
def cross_entropy(
    grad_output: object,
    logits: object,
    targets: object,
    axis: object,
    ignore_index: object,
    reduction: object,
    out: object,
    gradient: bool,
) -> ExTensor: ...
def descend(params: object, grad: object, lr: float, out: object = None) -> ExTensor: ...
def run_step(
    function: str, rule: Rule, slots: list[Any], grads: object, hyper: tuple[float, ...]
) -> None: ...
def clip_norm(grads: object, max_norm: float) -> float: ...
def clip_value(grads: object, limit: float) -> None: ...
