"""Schedules of the learning rate: call ``step()`` after each epoch, or after each update.

A schedule sets ``optimizer.lr`` from the rate that the optimizer had when the schedule was made and
from the number of its own steps, so that rounding never accumulates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from extensor.optimizers import _number, _Optimizer

__all__ = ["CosineAnnealingLR", "StepLR", "WarmupLR"]


def _count(where: str, name: str, value: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{where}: {name} must be an int, got {value!r}")
    if value < 1:
        raise ValueError(f"{where}: {name} is {value}, at least 1 is needed")
    return int(value)


class _Scheduler:
    _settings: ClassVar[tuple[str, ...]] = ()

    def __init__(self, optimizer: Any) -> None:
        if not isinstance(optimizer, _Optimizer):
            raise TypeError(
                f"{type(self).__name__}: an optimizer is needed, not {type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        self.base_lr = optimizer.lr
        self.steps = 0
        optimizer.lr = self._rate(0)

    def _rate(self, steps: int) -> float:
        """The learning rate after so many steps."""
        raise NotImplementedError

    def step(self) -> None:
        """Go on by one and set the optimizer's learning rate."""
        self.steps += 1
        self.optimizer.lr = self._rate(self.steps)

    def state_dict(self) -> dict[str, Any]:
        """Settings and position, as plain numbers."""
        settings = {name: getattr(self, name) for name in self._settings}
        return {"base_lr": self.base_lr, "steps": self.steps, **settings}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, and set the optimizer's learning rate accordingly."""
        where = f"{type(self).__name__}.load_state_dict"
        wanted = {"base_lr", "steps", *self._settings}
        if not isinstance(state_dict, Mapping) or set(state_dict) != wanted:
            raise ValueError(f"{where}: a mapping with the keys {sorted(wanted)} is needed")
        base_lr = _number(where, "base_lr", state_dict["base_lr"])
        steps = _count(where, "steps + 1", state_dict["steps"] + 1) - 1
        for name, value in self._checked(
            where, **{name: state_dict[name] for name in self._settings}
        ).items():
            setattr(self, name, value)
        self.base_lr, self.steps = base_lr, steps
        self.optimizer.lr = self._rate(steps)

    def _checked(self, where: str, **settings: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _configure(self, **settings: Any) -> None:
        for name, value in self._checked(type(self).__name__, **settings).items():
            setattr(self, name, value)


class StepLR(_Scheduler):
    """lr · gamma^⌊t / step_size⌋ after t steps.

    Examples
    --------
    >>> import extensor as ex
    >>> optimizer = ex.SGD([ex.zeros(1)], lr=1.0)
    >>> scheduler = ex.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(optimizer.lr)
    ...     scheduler.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    _settings = ("step_size", "gamma")
    step_size: int
    gamma: float

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1) -> None:
        self._configure(step_size=step_size, gamma=gamma)
        super().__init__(optimizer)

    def _checked(self, where: str, **settings: Any) -> dict[str, Any]:
        return {
            "step_size": _count(where, "step_size", settings["step_size"]),
            "gamma": _number(where, "gamma", settings["gamma"]),
        }

    def _rate(self, steps: int) -> float:
        return float(self.base_lr * self.gamma ** (steps // self.step_size))


class CosineAnnealingLR(_Scheduler):
    """eta_min + ½(lr − eta_min)(1 + cos(πt / t_max)) after t steps: down to eta_min at t_max.

    Beyond t_max the cosine rises again, as PyTorch's does.

    Examples
    --------
    >>> import extensor as ex
    >>> optimizer = ex.SGD([ex.zeros(1)], lr=1.0)
    >>> scheduler = ex.CosineAnnealingLR(optimizer, t_max=4)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> round(optimizer.lr, 6)
    0.5
    """

    _settings = ("t_max", "eta_min")
    t_max: int
    eta_min: float

    def __init__(self, optimizer: Any, t_max: int, eta_min: float = 0.0) -> None:
        self._configure(t_max=t_max, eta_min=eta_min)
        super().__init__(optimizer)

    def _checked(self, where: str, **settings: Any) -> dict[str, Any]:
        return {
            "t_max": _count(where, "t_max", settings["t_max"]),
            "eta_min": _number(where, "eta_min", settings["eta_min"]),
        }

    def _rate(self, steps: int) -> float:
        half = (1 + math.cos(math.pi * steps / self.t_max)) / 2
        return float(self.eta_min + (self.base_lr - self.eta_min) * half)


class WarmupLR(_Scheduler):
    """Linear warm-up: lr · (t + 1) / warmup_steps after t steps, until lr is reached.

    Parameters
    ----------
    optimizer : an optimizer
        Whose ``lr`` is set.
    warmup_steps : int
        How many updates the warm-up takes; the first has lr / warmup_steps.
    after : scheduler, optional
        A schedule of the same optimizer that goes on from there, starting with its own first rate.

    Examples
    --------
    >>> import extensor as ex
    >>> optimizer = ex.SGD([ex.zeros(1)], lr=1.0)
    >>> scheduler = ex.WarmupLR(optimizer, 4, after=ex.StepLR(optimizer, 1, gamma=0.5))
    >>> rates = []
    >>> for _ in range(7):
    ...     rates.append(optimizer.lr)
    ...     scheduler.step()
    >>> rates
    [0.25, 0.5, 0.75, 1.0, 1.0, 0.5, 0.25]
    """

    _settings = ("warmup_steps",)
    warmup_steps: int

    def __init__(self, optimizer: Any, warmup_steps: int, after: _Scheduler | None = None) -> None:
        self._configure(warmup_steps=warmup_steps)
        if after is not None and not isinstance(after, _Scheduler):
            raise TypeError(f"WarmupLR: after must be a scheduler, not {type(after).__name__}")
        if after is not None and after.optimizer is not optimizer:
            raise ValueError("WarmupLR: after is the schedule of another optimizer")
        self.after = after
        super().__init__(optimizer)
        if after is not None:
            self.base_lr = after.base_lr
            optimizer.lr = self._rate(0)

    def _checked(self, where: str, **settings: Any) -> dict[str, Any]:
        return {"warmup_steps": _count(where, "warmup_steps", settings["warmup_steps"])}

    def _rate(self, steps: int) -> float:
        if steps < self.warmup_steps:
            return float(self.base_lr * ((steps + 1) / self.warmup_steps))
        if self.after is None:
            return float(self.base_lr)
        return self.after._rate(self.after.steps)

    def step(self) -> None:
        """Go on by one: the warm-up, then the schedule after it."""
        self.steps += 1
        if self.after is not None and self.steps > self.warmup_steps:
            self.after.step()
        self.optimizer.lr = self._rate(self.steps)

    def state_dict(self) -> dict[str, Any]:
        """Settings and position, those of the schedule after it included."""
        after = None if self.after is None else self.after.state_dict()
        return {**super().state_dict(), "after": after}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, and set the optimizer's learning rate accordingly."""
        if not isinstance(state_dict, Mapping) or "after" not in state_dict:
            raise ValueError("WarmupLR.load_state_dict: a mapping with the key 'after' is needed")
        after = state_dict["after"]
        if (after is None) != (self.after is None):
            raise ValueError(
                "WarmupLR.load_state_dict: only one of the two has a schedule after it"
            )
        before = None if self.after is None else self.after.state_dict()
        if self.after is not None:
            self.after.load_state_dict(after)
        try:
            super().load_state_dict({k: v for k, v in state_dict.items() if k != "after"})
        except (TypeError, ValueError):
            if self.after is not None and before is not None:
                self.after.load_state_dict(before)
            raise
