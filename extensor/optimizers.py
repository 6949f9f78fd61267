"""Optimizers: gradients into new parameters, in place, one fused pass for each tensor.

An optimizer is made with a list of `Parameter` or tensors, or a `ParameterDict`. ``step(grads)``
takes the gradients in the same order, None for a parameter to leave alone; ``step()`` takes the
``.grad`` of the parameters. A step that raises has changed nothing. Formulas and defaults are
PyTorch's. Float16 parameters have float32 state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from extensor import _training
from extensor._typing import ArrayLike, Out
from extensor.parameters import Parameter, ParameterDict
from extensor.tensor import ExTensor, as_array, asarray, tensor

__all__ = ["SGD", "Adam", "AdamW", "RMSprop", "clip_grad_norm", "clip_grad_value", "sgd_step"]

# Rule(kernel, tensors of state, nanoseconds an element of float32 on one core, in cache: measured
# with 100 thousand parameters on an AVX-512 core)
_SGD = _training.Rule("sgd", 0, 0.05)
_SGD_MOMENTUM = _training.Rule("sgd_momentum", 1, 0.09)
_ADAM = _training.Rule("adam", 2, 0.16)
_ADAMW = _training.Rule("adamw", 2, 0.16)
_RMSPROP = _training.Rule("rmsprop", 1, 0.12)
_RMSPROP_MOMENTUM = _training.Rule("rmsprop_momentum", 2, 0.16)


def _number(where: str, name: str, value: float, below: float = math.inf) -> float:
    """A finite number of at least 0 (and less than ``below``), or an error."""
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{where}: {name} must be a number, got {value!r}")
    number = float(value)
    if not (math.isfinite(number) and 0 <= number < below):
        limit = "" if below == math.inf else f" and < {below:g}"
        raise ValueError(f"{where}: {name} is {value!r}, a finite number >= 0{limit} is needed")
    return number


def sgd_step(params: ArrayLike, grad: ArrayLike, lr: float, *, out: Out = None) -> ExTensor:
    """params − lr·grad as a new tensor; nothing is modified.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.sgd_step(ex.tensor([1.0, 2.0]), ex.tensor([10.0, -10.0]), 0.1)
    ExTensor([0., 3.], dtype=float32)
    """
    step: ExTensor = _training.descend(params, grad, _number("sgd_step", "lr", lr), out)
    return step


class _Optimizer:
    """What all optimizers share: the list of parameters, their state, saving and loading."""

    # Names of the settings and of the tensors of state, as they appear in state_dict.
    _settings: ClassVar[tuple[str, ...]] = ()
    _states: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: Iterable[Parameter | ExTensor] | ParameterDict, lr: float) -> None:
        where = self._name = type(self).__name__
        self.lr = lr
        self._slots: list[Any] = []
        seen: set[int] = set()
        for index, owner in enumerate(_listed(where, params)):
            boxed = isinstance(owner, Parameter)
            if not boxed and not isinstance(owner, (ExTensor, np.ndarray)):
                raise TypeError(
                    f"{where}: parameter {index} must be a Parameter or an ExTensor, "
                    f"not {type(owner).__name__}"
                )
            if owner.dtype.kind != "f":
                raise TypeError(
                    f"{where}: parameter {index} has dtype {owner.dtype}; "
                    "float16, float32 or float64 is needed"
                )
            if not as_array(owner.data if boxed else owner, where).flags.writeable:
                raise ValueError(f"{where}: parameter {index} is read-only")
            if id(owner) in seen:
                raise ValueError(f"{where}: parameter {index} is in the list twice")
            seen.add(id(owner))
            self._slots.append(_training.Slot(owner, boxed))

    @property
    def lr(self) -> float:
        """The learning rate; may be set at any time."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = _number(type(self).__name__, "lr", value)

    @property
    def params(self) -> list[Any]:
        """The parameters, in order."""
        return [slot.owner for slot in self._slots]

    def _rule(self) -> tuple[Any, tuple[float, ...]]:
        """The update and its numbers, from the settings as they are now."""
        raise NotImplementedError

    def step(self, grads: Sequence[ArrayLike | None] | None = None) -> None:
        """Update every parameter that has a gradient.

        Parameters
        ----------
        grads : list, optional
            One gradient, or None, for each parameter; without it the parameters' ``.grad``.
        """
        rule, values = self._rule()
        _training.run_step(self._name, rule, self._slots, grads, values)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for slot in self._slots:
            if slot.boxed:
                slot.owner._grad = None

    def state_dict(self) -> dict[str, Any]:
        """Settings and state as plain dicts of numbers and copied tensors.

        ``state`` has an entry for each parameter that has been updated, by its index.
        """
        state = {}
        for index, slot in enumerate(self._slots):
            if slot.steps:
                entry: dict[str, Any] = {"steps": slot.steps}
                for name, array in zip(self._states, (slot.first, slot.second), strict=False):
                    if array is not None:
                        entry[name] = tensor(array)
                state[index] = entry
        settings = {name: getattr(self, name) for name in ("lr", *self._settings)}
        return {"optimizer": self._name, "count": len(self._slots), **settings, "state": state}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, copied; an error changes nothing."""
        where = f"{self._name}.load_state_dict"
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"{where}: a mapping is needed, got {type(state_dict).__name__}")
        wanted = {"optimizer", "count", "lr", *self._settings, "state"}
        if set(state_dict) != wanted:
            raise ValueError(
                f"{where}: keys {sorted(state_dict)} were given, {sorted(wanted)} are needed"
            )
        if state_dict["optimizer"] != self._name:
            raise ValueError(f"{where}: this is the state of {state_dict['optimizer']}")
        if state_dict["count"] != len(self._slots):
            raise ValueError(
                f"{where}: the state is of {state_dict['count']} parameters, "
                f"this optimizer has {len(self._slots)}"
            )
        settings = {name: state_dict[name] for name in self._settings}
        checked = self._checked(where, **settings)
        lr = _number(where, "lr", state_dict["lr"])
        loaded = [
            self._loaded(where, index, slot, state_dict["state"].get(index))
            for index, slot in enumerate(self._slots)
        ]
        for name, value in checked.items():
            setattr(self, name, value)
        self.lr = lr
        for slot, (steps, first, second) in zip(self._slots, loaded, strict=True):
            slot.steps, slot.first, slot.second = steps, first, second

    def _loaded(
        self, where: str, index: int, slot: Any, entry: Mapping[str, Any] | None
    ) -> tuple[int, Any, Any]:
        """One parameter's state, checked and copied."""
        if entry is None:
            return 0, None, None
        shape, dtype = slot.owner.shape, slot.owner.dtype
        arrays: list[Any] = [None, None]
        for i, name in enumerate(self._states):
            if name not in entry:
                continue
            array = as_array(entry[name], where, f"state[{index}][{name!r}]")
            if array.shape != shape:
                raise ValueError(
                    f"{where}: state[{index}][{name!r}] has shape {array.shape}, "
                    f"the parameter has shape {shape}"
                )
            wide = np.float64 if dtype == np.float64 else np.float32
            arrays[i] = tensor(asarray(array, wide)).numpy()
        steps = entry["steps"]
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
            raise ValueError(f"{where}: state[{index}]['steps'] is {steps!r}, not a count")
        return int(steps), arrays[0], arrays[1]

    def _checked(self, where: str, **settings: Any) -> dict[str, Any]:
        """Settings after validation."""
        raise NotImplementedError

    def _configure(self, **settings: Any) -> None:
        for name, value in self._checked(type(self).__name__, **settings).items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in ("lr", *self._settings))
        return f"{self._name}({len(self._slots)} parameters, {settings})"


def _listed(where: str, params: Any) -> list[Any]:
    if isinstance(params, ParameterDict):
        return [parameter for _, parameter in params.named()]
    if isinstance(params, (ExTensor, np.ndarray, Parameter, str, Mapping)):
        raise TypeError(
            f"{where}: params must be a list of Parameter or ExTensor, or a ParameterDict, "
            f"not {type(params).__name__}"
        )
    try:
        return list(params)
    except TypeError:
        raise TypeError(
            f"{where}: params must be a list of Parameter or ExTensor, or a ParameterDict, "
            f"not {type(params).__name__}"
        ) from None


class SGD(_Optimizer):
    """Gradient descent, with momentum, Nesterov's look ahead, and weight decay.

    d = g + λp; with momentum v ← μv + d, and the step s is v, or d + μv for Nesterov; p ← p − lr·s.

    Parameters
    ----------
    params : list of Parameter or ExTensor, or ParameterDict
        What to update, in place.
    lr : float
        Learning rate.
    momentum : float
        μ.
    nesterov : bool
        Needs a momentum.
    weight_decay : float
        λ.

    Examples
    --------
    >>> import extensor as ex
    >>> w = ex.tensor([1.0, 2.0])
    >>> optimizer = ex.SGD([w], lr=0.5, momentum=0.5)
    >>> for _ in range(2):
    ...     optimizer.step([ex.ones(2)])
    >>> w
    ExTensor([-0.25,  0.75], dtype=float32)
    """

    _settings = ("momentum", "nesterov", "weight_decay")
    _states = ("momentum_buffer",)

    momentum: float
    nesterov: bool
    weight_decay: float

    def __init__(
        self,
        params: Iterable[Parameter | ExTensor] | ParameterDict,
        lr: float,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        self._configure(momentum=momentum, nesterov=nesterov, weight_decay=weight_decay)
        super().__init__(params, lr)

    def _checked(self, where: str, **settings: Any) -> dict[str, Any]:
        momentum = _number(where, "momentum", settings["momentum"])
        nesterov = bool(settings["nesterov"])
        if nesterov and momentum == 0:
            raise ValueError(f"{where}: nesterov needs a momentum above 0")
        decay = _number(where, "weight_decay", settings["weight_decay"])
        return {"momentum": momentum, "nesterov": nesterov, "weight_decay": decay}

    def _rule(self) -> tuple[Any, tuple[float, ...]]:
        rule = _SGD_MOMENTUM if self.momentum else _SGD
        return rule, (self._lr, self.weight_decay, self.momentum, float(self.nesterov))


class Adam(_Optimizer):
    """Adam: steps of the size of lr, scaled by running means of the gradient and of its square.

    d = g + λp; m ← β₁m + (1−β₁)d; v ← β₂v + (1−β₂)d²;
    p ← p − lr/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + eps).

    Parameters
    ----------
    params : list of Parameter or ExTensor, or ParameterDict
        What to update, in place.
    lr : float
        Learning rate.
    betas : (float, float)
        β₁ and β₂, in [0, 1).
    eps : float
        Keeps the step bounded where the running mean of squares is near 0.
    weight_decay : float
        λ, added to the gradient.

    Examples
    --------
    >>> import extensor as ex
    >>> w = ex.tensor([1.0, 2.0])
    >>> ex.Adam([w], lr=0.5).step([ex.tensor([3.0, -0.001])])
    >>> [round(float(x), 4) for x in w]
    [0.5, 2.5]
    """

    _settings = ("betas", "eps", "weight_decay")
    _states = ("exp_avg", "exp_avg_sq")
    _kernel: ClassVar[Any] = _ADAM

    betas: tuple[float, float]
    eps: float
    weight_decay: float

    def __init__(
        self,
        params: Iterable[Parameter | ExTensor] | ParameterDict,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self._configure(betas=betas, eps=eps, weight_decay=weight_decay)
        super().__init__(params, lr)

    def _checked(self, where: str, **settings: Any) -> dict[str, Any]:
        betas = settings["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"{where}: betas must be two numbers, got {betas!r}")
        return {
            "betas": (
                _number(where, "betas[0]", betas[0], 1.0),
                _number(where, "betas[1]", betas[1], 1.0),
            ),
            "eps": _number(where, "eps", settings["eps"]),
            "weight_decay": _number(where, "weight_decay", settings["weight_decay"]),
        }

    def _rule(self) -> tuple[Any, tuple[float, ...]]:
        first, second = self.betas
        return self._kernel, (self._lr, self.weight_decay, first, second, self.eps)


class AdamW(Adam):
    """Adam with decoupled weight decay: p ← (1 − lr·λ)·p, then Adam's step without λ.

    Parameters as for `Adam`; weight_decay defaults to 0.01.

    Examples
    --------
    >>> import extensor as ex
    >>> w = ex.tensor([10.0])
    >>> ex.AdamW([w], lr=0.5, weight_decay=0.1).step([ex.zeros(1)])
    >>> w
    ExTensor([9.5], dtype=float32)
    """

    _kernel: ClassVar[Any] = _ADAMW

    def __init__(
        self,
        params: Iterable[Parameter | ExTensor] | ParameterDict,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


class RMSprop(_Optimizer):
    """RMSprop: the gradient over the root of a running mean of its square.

    d = g + λp; v ← αv + (1−α)d²; s = d/(√v + eps); with momentum b ← μb + s and p ← p − lr·b, else
    p ← p − lr·s.

    Parameters
    ----------
    params : list of Parameter or ExTensor, or ParameterDict
        What to update, in place.
    lr : float
        Learning rate.
    alpha : float
        In [0, 1).
    eps : float
        Keeps the step bounded where the running mean of squares is near 0.
    momentum : float
        μ.
    weight_decay : float
        λ.

    Examples
    --------
    >>> import extensor as ex
    >>> w = ex.tensor([1.0])
    >>> ex.RMSprop([w], lr=0.1, alpha=0.75).step([ex.tensor([4.0])])
    >>> round(w.item(), 4)
    0.8
    """

    _settings = ("alpha", "eps", "momentum", "weight_decay")
    _states = ("square_avg", "momentum_buffer")

    alpha: float
    eps: float
    momentum: float
    weight_decay: float

    def __init__(
        self,
        params: Iterable[Parameter | ExTensor] | ParameterDict,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        self._configure(alpha=alpha, eps=eps, momentum=momentum, weight_decay=weight_decay)
        super().__init__(params, lr)

    def _checked(self, where: str, **settings: Any) -> dict[str, Any]:
        return {
            "alpha": _number(where, "alpha", settings["alpha"], 1.0),
            "eps": _number(where, "eps", settings["eps"]),
            "momentum": _number(where, "momentum", settings["momentum"]),
            "weight_decay": _number(where, "weight_decay", settings["weight_decay"]),
        }

    def _rule(self) -> tuple[Any, tuple[float, ...]]:
        rule = _RMSPROP_MOMENTUM if self.momentum else _RMSPROP
        values = (self._lr, self.weight_decay, self.momentum, self.alpha, 1 - self.alpha, self.eps)
        return rule, values


def clip_grad_norm(grads: Any, max_norm: float) -> float:
    """Scale gradients in place so that their common norm is at most ``max_norm``.

    Parameters
    ----------
    grads : list of ExTensor
        None entries are skipped; a `Parameter` stands for its ``.grad``.
    max_norm : float
        The largest norm to leave as it is.

    Returns
    -------
    float
        √Σg² over all gradients, before. Where it is not finite, nothing is changed.

    Examples
    --------
    >>> import extensor as ex
    >>> grads = [ex.tensor([3.0]), ex.tensor([4.0])]
    >>> ex.clip_grad_norm(grads, 1.0)
    5.0
    >>> grads
    [ExTensor([0.6], dtype=float32), ExTensor([0.8], dtype=float32)]
    """
    norm: float = _training.clip_norm(grads, _limit("clip_grad_norm", "max_norm", max_norm))
    return norm


def clip_grad_value(grads: Any, limit: float) -> None:
    """Limit every element of the gradients in place to [−limit, limit]; NaN stays NaN.

    Examples
    --------
    >>> import extensor as ex
    >>> grad = ex.tensor([-3.0, 0.5])
    >>> ex.clip_grad_value([grad], 1.0)
    >>> grad
    ExTensor([-1. ,  0.5], dtype=float32)
    """
    _training.clip_value(grads, _limit("clip_grad_value", "limit", limit))


def _limit(where: str, name: str, value: float) -> float:
    """A number of at least 0; infinity is no limit."""
    return math.inf if value == math.inf else _number(where, name, value)
