"""Parameters: tensors that are learned, each with room for its gradient, and named collections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from extensor._typing import ArrayLike
from extensor.tensor import ExTensor, as_array, asarray, tensor

__all__ = ["Parameter", "ParameterDict"]


class Parameter:
    """A tensor that an optimizer updates in place.

    Parameters
    ----------
    data : array_like
        The starting value; a tensor is taken as it is, anything else becomes one.
    requires_grad : bool
        False freezes the parameter: optimizers leave it and its state alone.

    Attributes
    ----------
    data : ExTensor
        The value.
    grad : ExTensor or None
        The gradient, set by the training loop; always of the shape of ``data``.
    requires_grad : bool

    Examples
    --------
    >>> import extensor as ex
    >>> weight = ex.Parameter(ex.ones((2, 3)))
    >>> weight.grad = ex.full((2, 3), 0.5)
    >>> ex.SGD([weight], lr=1.0).step()
    >>> weight.data
    ExTensor([[0.5, 0.5, 0.5],
              [0.5, 0.5, 0.5]], dtype=float32)
    """

    __slots__ = ("__weakref__", "_data", "_grad", "requires_grad")

    _data: ExTensor
    _grad: ExTensor | None
    requires_grad: bool

    def __init__(self, data: ArrayLike, requires_grad: bool = True) -> None:
        self._data = _float_tensor("Parameter", "data", data)
        self._grad = None
        self.requires_grad = bool(requires_grad)

    @property
    def data(self) -> ExTensor:
        return self._data

    @data.setter
    def data(self, value: ArrayLike) -> None:
        data = _float_tensor("Parameter.data", "value", value)
        if self._grad is not None and self._grad.shape != data.shape:
            raise ValueError(
                f"Parameter.data: the new value has shape {data.shape}, the gradient has shape "
                f"{self._grad.shape}; set grad to None first"
            )
        self._data = data

    @property
    def grad(self) -> ExTensor | None:
        return self._grad

    @grad.setter
    def grad(self, value: ArrayLike | None) -> None:
        if value is None:
            self._grad = None
            return
        grad = _float_tensor("Parameter.grad", "value", value)
        if grad.shape != self._data.shape:
            raise ValueError(
                f"Parameter.grad: the gradient has shape {grad.shape}, the parameter has shape "
                f"{self._data.shape}"
            )
        self._grad = grad

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self._data.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self._data.dtype
        return dtype

    @property
    def size(self) -> int:
        size: int = self._data.size
        return size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array: np.ndarray = self._data.__array__(dtype, copy)
        return array

    def __repr__(self) -> str:
        frozen = "" if self.requires_grad else ", requires_grad=False"
        return f"Parameter({self._data!r}{frozen})"


def _float_tensor(where: str, name: str, value: ArrayLike) -> ExTensor:
    if isinstance(value, Parameter):
        value = value.data
    result = asarray(as_array(value, where, name))
    if isinstance(value, ExTensor):
        result = value
    if result.dtype.kind != "f":
        raise TypeError(
            f"{where}: {name} has dtype {result.dtype}; float16, float32 or float64 is needed"
        )
    return result


class ParameterDict(Mapping[str, Any]):
    """Parameters by name, in the order in which they were added.

    Names are nested with dots: ``{"layer": {"weight": w}}`` has the parameter ``layer.weight``, and
    ``params["layer"]`` is the ParameterDict of everything below ``layer``, with the same
    parameters.

    Parameters
    ----------
    parameters : mapping, optional
        Names to parameters, array-likes (which become parameters) or nested mappings.

    Examples
    --------
    >>> import extensor as ex
    >>> params = ex.ParameterDict({"first": {"weight": ex.ones((2, 2)), "bias": ex.zeros(2)}})
    >>> params["scale"] = 3.0
    >>> list(params)
    ['first.weight', 'first.bias', 'scale']
    >>> params["first.bias"].data
    ExTensor([0., 0.], dtype=float32)
    >>> list(params["first"])
    ['weight', 'bias']
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        self._parameters: dict[str, Parameter] = {}
        for name, value in (parameters or {}).items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        found = self._parameters.get(name)
        if found is not None:
            return found
        below = {
            other[len(name) + 1 :]: parameter
            for other, parameter in self._parameters.items()
            if other.startswith(f"{name}.")
        }
        if not below:
            raise KeyError(f"ParameterDict: no parameter {name!r}; there are {list(self)}")
        return ParameterDict(below)

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"ParameterDict: a name must be a string, got {name!r}")
        if not all(name.split(".")):
            raise ValueError(f"ParameterDict: {name!r} is no name: a part of it is empty")
        if isinstance(value, Mapping):
            flat = dict(_flat(value))
            added = {f"{name}.{below}": _as_parameter(each) for below, each in flat.items()}
            kept = [other for other in self._parameters if not other.startswith(f"{name}.")]
        else:
            added = {name: _as_parameter(value)}
            kept = [other for other in self._parameters if other != name]
        for new in added:
            _refuse_clash(new, kept)
        if isinstance(value, Mapping):
            for other in list(self._parameters):
                if other.startswith(f"{name}.") and other not in added:
                    del self._parameters[other]
        self._parameters.update(added)

    def __delitem__(self, name: str) -> None:
        for found in [name] if name in self._parameters else [f"{name}.{n}" for n in self[name]]:
            del self._parameters[found]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters or any(n.startswith(f"{name}.") for n in self._parameters)

    def __repr__(self) -> str:
        lines = [f"  {name}: {p.shape} {p.dtype}" for name, p in self._parameters.items()]
        return "\n".join(["ParameterDict(", *lines, ")"])

    def named(self) -> Iterator[tuple[str, Parameter]]:
        """Pairs of full name and parameter, in order."""
        return iter(self._parameters.items())

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self._parameters.values():
            parameter.grad = None

    def state_dict(self) -> dict[str, ExTensor]:
        """Copies of all values by name.

        Examples
        --------
        >>> import extensor as ex
        >>> params = ex.ParameterDict({"bias": ex.zeros(2)})
        >>> saved = params.state_dict()
        >>> params["bias"].data += 1.0
        >>> params.load_state_dict(saved)
        >>> params["bias"].data
        ExTensor([0., 0.], dtype=float32)
        """
        return {name: tensor(parameter.data) for name, parameter in self._parameters.items()}

    def load_state_dict(self, state: Mapping[str, ArrayLike]) -> None:
        """Copy saved values into the parameters, in place; names and shapes must be the same.

        Values are converted to the dtype of their parameter. An error changes nothing.
        """
        where = "ParameterDict.load_state_dict"
        if not isinstance(state, Mapping):
            raise TypeError(f"{where}: a mapping is needed, got {type(state).__name__}")
        missing = [name for name in self._parameters if name not in state]
        unknown = [name for name in state if name not in self._parameters]
        if missing or unknown:
            raise ValueError(f"{where}: missing {missing}, unknown {unknown}")
        arrays = {name: as_array(value, where, name) for name, value in state.items()}
        for name, parameter in self._parameters.items():
            if arrays[name].shape != parameter.shape:
                raise ValueError(
                    f"{where}: {name} has shape {arrays[name].shape}, the parameter has shape "
                    f"{parameter.shape}"
                )
            if not parameter.data.numpy().flags.writeable:
                raise ValueError(f"{where}: the parameter {name} is read-only")
        with np.errstate(all="ignore"):
            for name, parameter in self._parameters.items():
                np.copyto(parameter.data.numpy(), arrays[name], casting="unsafe")


def _flat(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in nested.items():
        if not isinstance(name, str):
            raise TypeError(f"ParameterDict: a name must be a string, got {name!r}")
        if not all(name.split(".")):
            raise ValueError(f"ParameterDict: {name!r} is no name: a part of it is empty")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _as_parameter(value: Any) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


def _refuse_clash(name: str, others: list[str]) -> None:
    """A name cannot be a parameter and a collection at once."""
    for other in others:
        if name.startswith(f"{other}.") or other.startswith(f"{name}."):
            raise ValueError(f"ParameterDict: {name!r} and {other!r} cannot both be parameters")
