"""Shapes: reshaping, joining, splitting, casting, and the gradient of each and of indexing.

A result is a view of its input where NumPy gives one: ``reshape`` where the layout allows it,
``ravel`` of contiguous memory, ``squeeze``, ``unsqueeze``, ``permute``, ``split`` and
``broadcast_to`` (read-only). Their backward functions return views of grad_output likewise.
``flatten``, ``concatenate``, ``stack`` and ``cast`` always give memory of their own.

An ``input_shape`` is the shape of the forward function's input, or that input itself; a floating
input passes its dtype on to the gradient.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from extensor._apply import IDENTITY, Target, backward, shape_target
from extensor._shape import (
    FLATTENED,
    RESHAPED,
    SQUEEZED,
    UNSQUEEZED,
    copy,
    output_tensor,
    quick_broadcast,
    quick_broadcast_gradient,
    quick_cast,
    quick_flat,
    quick_join,
    quick_parts,
    quick_permute,
    quick_reshape,
    quick_rows_gradient,
    quick_shape_gradient,
    quick_slices,
    quick_split,
    quick_squeeze,
    quick_unsqueeze,
    scatter_sum,
)
from extensor._tensor import from_array
from extensor._typing import ArrayLike, Axis, Out, Shape
from extensor.tensor import ExTensor, as_array, asarray, check_dtype

__all__ = [
    "broadcast_to",
    "broadcast_to_backward",
    "cast",
    "cast_backward",
    "concatenate",
    "concatenate_backward",
    "expand_dims",
    "expand_dims_backward",
    "flatten",
    "flatten_backward",
    "getitem_backward",
    "permute",
    "permute_backward",
    "ravel",
    "ravel_backward",
    "reshape",
    "reshape_backward",
    "split",
    "split_backward",
    "squeeze",
    "squeeze_backward",
    "stack",
    "stack_backward",
    "unsqueeze",
    "unsqueeze_backward",
]

_FLOATS: dict[int, np.dtype] = {
    np.dtype(name).num: np.dtype(name) for name in ("float16", "float32", "float64")
}


# ---------------------------------------------------------------- arguments


def _ints(function: str, name: str, value: object) -> tuple[int, ...]:
    """An int or a sequence of ints as a tuple."""
    items = value if isinstance(value, tuple | list) else (value,)
    try:
        return tuple(operator.index(item) for item in items)
    except TypeError:
        raise TypeError(
            f"{function}: {name} must be an int or a tuple or list of ints, got {value!r}"
        ) from None


def _axis(function: str, axis: object, ndim: int) -> int:
    """One axis, counted from the front."""
    try:
        index = operator.index(axis)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{function}: axis must be an int, got {axis!r}") from None
    if not -ndim <= index < ndim:
        raise AxisError(index, ndim, function)
    return index % ndim


def _axes(function: str, axes: object, ndim: int) -> tuple[int, ...]:
    """Several axes, counted from the front, each one once."""
    found = tuple(_axis(function, axis, ndim) for axis in _ints(function, "axis", axes))
    if len(set(found)) != len(found):
        raise ValueError(f"{function}: axes {axes!r} name an axis twice")
    return found


def _upstream(function: str, grad_output: ArrayLike, name: str = "grad_output") -> np.ndarray:
    array = as_array(grad_output, function, name)
    if array.dtype.kind != "f":
        raise TypeError(
            f"{function}: {name} has dtype {array.dtype}; it must be float16, float32 or float64"
        )
    return array


def _wrong_shape(function: str, given: tuple[int, ...], needed: object) -> ValueError:
    return ValueError(f"{function}: grad_output has shape {given}, it must have {needed}")


# ---------------------------------------------------------------- memory


def _store(function: str, out: Out, source: np.ndarray, dtype: np.dtype | None = None) -> ExTensor:
    """A tensor of the source's values in memory of its own, or ``out`` holding them."""
    result = output_tensor(function, out, source.shape, dtype or source.dtype)
    place = result.numpy()
    copy(place, source.copy() if out is not None and _shares(place, source) else source)
    return result


def _shares(a: np.ndarray, b: np.ndarray) -> bool:
    return np.may_share_memory(a, b)


def _reshaped(array: np.ndarray, shape: tuple[int, ...]) -> ExTensor:
    """A view in another shape of as many elements where there is one, otherwise a copy."""
    if array.flags.c_contiguous:
        return from_array(array.reshape(shape))
    try:
        return from_array(np.reshape(array, shape, copy=False))
    except ValueError:
        result = output_tensor("reshape", None, shape, array.dtype)
        copy(result.numpy().reshape(array.shape), array)
        return result


def _as_gradient(array: np.ndarray, target: Target) -> ExTensor:
    """A gradient in the shape of its input, and in its dtype where that is floating."""
    result = _reshaped(array, target.shape)
    wanted = _FLOATS.get(target.typenum, array.dtype)
    return result if wanted == array.dtype else result.astype(wanted)


# ---------------------------------------------------------------- reshaping


def reshape(x: ArrayLike, shape: Shape | int) -> ExTensor:
    """The same elements in another shape: a view where the layout allows it, otherwise a copy.

    Parameters
    ----------
    x : array_like
        The tensor.
    shape : int or sequence of int
        The new shape; one size may be −1 and follows from the others.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.reshape(ex.arange(6), (2, -1))
    ExTensor([[0, 1, 2],
              [3, 4, 5]], dtype=int64)
    """
    view = quick_reshape(x, shape)
    if view is not None:
        return view
    array = as_array(x, "reshape", "x")
    return _reshaped(array, _full_shape(array, _ints("reshape", "shape", shape)))


def _full_shape(array: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with its −1 filled in."""
    if shape.count(-1) > 1 or any(size < -1 for size in shape):
        raise ValueError(f"reshape: shape {shape} may hold sizes from 0 on and one -1")
    known = math.prod(size for size in shape if size != -1)
    if -1 in shape and known and array.size % known == 0:
        shape = tuple(array.size // known if size == -1 else size for size in shape)
    if -1 in shape or math.prod(shape) != array.size:
        raise ValueError(
            f"reshape: x of shape {array.shape} has {array.size} elements, which do not fill "
            f"shape {shape}"
        )
    return shape


def reshape_backward(grad_output: ArrayLike, input_shape: Shape | ArrayLike) -> ExTensor:
    """Gradient of `reshape`: grad_output in the input's shape.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.reshape_backward(ex.tensor([1.0, 2.0, 3.0, 4.0]), (2, 2))
    ExTensor([[1., 2.],
              [3., 4.]], dtype=float32)
    """
    view = quick_shape_gradient(grad_output, input_shape, RESHAPED)
    if view is not None:
        return view
    array = _upstream("reshape_backward", grad_output)
    target = shape_target("reshape_backward", "input_shape", input_shape)
    size = math.prod(target.shape)
    if array.size != size:
        needed = f"the {size} elements of the input's shape {target.shape}"
        raise _wrong_shape("reshape_backward", array.shape, needed)
    return _as_gradient(array, target)


def flatten(x: ArrayLike, *, out: Out = None) -> ExTensor:
    """All elements along one axis, in C order: always a copy.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.flatten(ex.tensor([[1.0, 2.0], [3.0, 4.0]]))
    ExTensor([1., 2., 3., 4.], dtype=float32)
    """
    if out is None:
        flat = quick_flat(x, True)
        if flat is not None:
            return flat
    array = as_array(x, "flatten", "x")
    result = output_tensor("flatten", out, (array.size,), array.dtype)
    copy(result.numpy(), array.flatten())
    return result


def flatten_backward(grad_output: ArrayLike, input_shape: Shape | ArrayLike) -> ExTensor:
    """Gradient of `flatten`: grad_output in the input's shape.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.flatten_backward(ex.tensor([1.0, 2.0]), (2, 1))
    ExTensor([[1.],
              [2.]], dtype=float32)
    """
    view = quick_shape_gradient(grad_output, input_shape, FLATTENED)
    if view is not None:
        return view
    return _flat_backward("flatten_backward", grad_output, input_shape)


def ravel(x: ArrayLike) -> ExTensor:
    """All elements along one axis, in C order: a view where x is contiguous.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.ravel(ex.tensor([[1.0, 2.0], [3.0, 4.0]]))
    ExTensor([1., 2., 3., 4.], dtype=float32)
    """
    view = quick_flat(x, False)
    if view is not None:
        return view
    array = as_array(x, "ravel", "x")
    return from_array(array.reshape(-1)) if array.flags.c_contiguous else flatten(array)


def ravel_backward(grad_output: ArrayLike, input_shape: Shape | ArrayLike) -> ExTensor:
    """Gradient of `ravel`: grad_output in the input's shape.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.ravel_backward(ex.tensor([1.0, 2.0]), (1, 2))
    ExTensor([[1., 2.]], dtype=float32)
    """
    view = quick_shape_gradient(grad_output, input_shape, FLATTENED)
    if view is not None:
        return view
    return _flat_backward("ravel_backward", grad_output, input_shape)


def _flat_backward(
    function: str, grad_output: ArrayLike, input_shape: Shape | ArrayLike
) -> ExTensor:
    array = _upstream(function, grad_output)
    target = shape_target(function, "input_shape", input_shape)
    size = math.prod(target.shape)
    if array.shape != (size,):
        raise _wrong_shape(function, array.shape, f"{(size,)}, as the input is {target.shape}")
    return _as_gradient(array, target)


def squeeze(x: ArrayLike, axis: Axis = None) -> ExTensor:
    """Without axes of size 1: all of them, or those named. A view.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.squeeze(ex.zeros((1, 3, 1))).shape, ex.squeeze(ex.zeros((1, 3, 1)), axis=0).shape
    ((3,), (3, 1))
    """
    view = quick_squeeze(x, axis)
    if view is not None:
        return view
    array = as_array(x, "squeeze", "x")
    if axis is None:
        return from_array(array.squeeze())
    axes = _axes("squeeze", axis, array.ndim)
    if any(array.shape[i] != 1 for i in axes):
        raise ValueError(
            f"squeeze: x has shape {array.shape}; axis {axis} must name axes of size 1"
        )
    return from_array(array.squeeze(axes))


def squeeze_backward(grad_output: ArrayLike, input_shape: Shape | ArrayLike) -> ExTensor:
    """Gradient of `squeeze`: grad_output with the axes of size 1 put back.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.squeeze_backward(ex.tensor([1.0, 2.0]), (1, 2, 1)).shape
    (1, 2, 1)
    """
    view = quick_shape_gradient(grad_output, input_shape, SQUEEZED)
    if view is not None:
        return view
    array = _upstream("squeeze_backward", grad_output)
    target = shape_target("squeeze_backward", "input_shape", input_shape)
    if not _drops_ones(target.shape, array.shape):
        needed = f"the input's shape {target.shape} without axes of size 1"
        raise _wrong_shape("squeeze_backward", array.shape, needed)
    return _as_gradient(array, target)


def _drops_ones(shape: tuple[int, ...], smaller: tuple[int, ...]) -> bool:
    """Whether removing axes of size 1 can turn one shape into another."""
    found = 0
    for size in shape:
        if found < len(smaller) and smaller[found] == size:
            found += 1
        elif size != 1:
            return False
    return found == len(smaller)


def unsqueeze(x: ArrayLike, axis: int | Sequence[int]) -> ExTensor:
    """With new axes of size 1, at these places of the result. A view.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.unsqueeze(ex.zeros((2, 3)), axis=-1).shape
    (2, 3, 1)
    """
    view = quick_unsqueeze(x, axis)
    if view is not None:
        return view
    return _unsqueeze("unsqueeze", x, axis)


def expand_dims(x: ArrayLike, axis: int | Sequence[int]) -> ExTensor:
    """NumPy's name of `unsqueeze`.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.expand_dims(ex.zeros((2, 3)), axis=(0, 2)).shape
    (1, 2, 1, 3)
    """
    view = quick_unsqueeze(x, axis)
    if view is not None:
        return view
    return _unsqueeze("expand_dims", x, axis)


def _unsqueeze(function: str, x: ArrayLike, axis: object) -> ExTensor:
    array = as_array(x, function, "x")
    count = len(_ints(function, "axis", axis))
    return from_array(np.expand_dims(array, _axes(function, axis, array.ndim + count)))


def unsqueeze_backward(grad_output: ArrayLike, input_shape: Shape | ArrayLike) -> ExTensor:
    """Gradient of `unsqueeze`: grad_output without the new axes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.unsqueeze_backward(ex.tensor([[1.0], [2.0]]), (2,))
    ExTensor([1., 2.], dtype=float32)
    """
    view = quick_shape_gradient(grad_output, input_shape, UNSQUEEZED)
    if view is not None:
        return view
    return _unsqueeze_backward("unsqueeze_backward", grad_output, input_shape)


def expand_dims_backward(grad_output: ArrayLike, input_shape: Shape | ArrayLike) -> ExTensor:
    """Gradient of `expand_dims`: grad_output without the new axes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.expand_dims_backward(ex.tensor([[1.0, 2.0]]), (2,))
    ExTensor([1., 2.], dtype=float32)
    """
    view = quick_shape_gradient(grad_output, input_shape, UNSQUEEZED)
    if view is not None:
        return view
    return _unsqueeze_backward("expand_dims_backward", grad_output, input_shape)


def _unsqueeze_backward(
    function: str, grad_output: ArrayLike, input_shape: Shape | ArrayLike
) -> ExTensor:
    array = _upstream(function, grad_output)
    target = shape_target(function, "input_shape", input_shape)
    if not _drops_ones(array.shape, target.shape):
        needed = f"the input's shape {target.shape} with more axes of size 1"
        raise _wrong_shape(function, array.shape, needed)
    return _as_gradient(array, target)


def permute(x: ArrayLike, axes: Sequence[int]) -> ExTensor:
    """The axes in another order: axis i of the result is axis axes[i] of x. A view.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.permute(ex.zeros((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    view = quick_permute(x, axes, False)
    if view is not None:
        return view
    array = as_array(x, "permute", "x")
    return from_array(array.transpose(_permutation("permute", "x", axes, array)))


def permute_backward(grad_output: ArrayLike, axes: Sequence[int]) -> ExTensor:
    """Gradient of `permute`: grad_output with its axes in the input's order.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.permute_backward(ex.zeros((3, 4, 2)), (1, 2, 0)).shape
    (2, 3, 4)
    """
    view = quick_permute(grad_output, axes, True)
    if view is not None:
        return view
    array = _upstream("permute_backward", grad_output)
    order = _permutation("permute_backward", "grad_output", axes, array)
    back = sorted(range(array.ndim), key=order.__getitem__)
    return from_array(array.transpose(back))


def _permutation(function: str, name: str, axes: object, array: np.ndarray) -> tuple[int, ...]:
    order = _axes(function, axes, array.ndim)
    if len(order) != array.ndim:
        raise ValueError(
            f"{function}: {name} has shape {array.shape}; axes must name each of its "
            f"{array.ndim} axes once, got {axes!r}"
        )
    return order


# ---------------------------------------------------------------- joining and splitting


def _members(function: str, tensors: object, name: str = "tensors") -> list[Any]:
    """The members of a list of tensors; a tensor stands for its slices along the first axis."""
    if isinstance(tensors, ExTensor | np.ndarray) and tensors.ndim:
        tensors = list(tensors)
    if not isinstance(tensors, tuple | list):
        raise TypeError(
            f"{function}: {name} must be a list or tuple of tensors, not {type(tensors).__name__}"
        )
    if not tensors:
        raise ValueError(f"{function}: {name} is empty; at least one tensor is needed")
    return list(tensors)


def _promoted(
    function: str, members: list[Any], name: str = "tensors"
) -> tuple[list[np.ndarray], np.dtype]:
    """The members as arrays, and their common dtype; Python scalars beside tensors are weak."""
    arrays = [as_array(item, function, f"{name}[{i}]") for i, item in enumerate(members)]
    scalars = [type(item) in (bool, int, float) for item in members]
    if all(scalars):
        strongest = max(arrays, key=lambda array: "biuf".index(array.dtype.kind))
        dtype = strongest.dtype
    else:
        dtype = np.result_type(
            *(
                type(item)(0) if weak else array.dtype
                for item, array, weak in zip(members, arrays, scalars, strict=True)
            )
        )
        for i, weak in enumerate(scalars):
            if weak:
                try:
                    arrays[i] = np.asarray(members[i], dtype)
                except OverflowError as error:
                    raise OverflowError(f"{function}: {name}[{i}]: {error}") from None
    return arrays, dtype


def _joined_shape(
    function: str, shapes: list[tuple[int, ...]], axis: object, name: str
) -> tuple[tuple[int, ...], int]:
    """The shape of tensors put one after another along an axis, and that axis from the front."""
    first = shapes[0]
    if not first:
        raise ValueError(f"{function}: {name}[0] has shape (); it needs an axis to join along")
    along = _axis(function, axis, len(first))
    for i, shape in enumerate(shapes):
        if len(shape) != len(first) or any(
            a != b for k, (a, b) in enumerate(zip(shape, first, strict=True)) if k != along
        ):
            raise ValueError(
                f"{function}: {name}[{i}] has shape {shape}, {name}[0] has shape {first}; "
                f"all must be equal but for axis {along}"
            )
    return (*first[:along], sum(shape[along] for shape in shapes), *first[along + 1 :]), along


def _join(
    function: str, arrays: list[np.ndarray], dtype: np.dtype, axis: object, out: Out, name: str
) -> ExTensor:
    shape, along = _joined_shape(function, [array.shape for array in arrays], axis, name)
    result = output_tensor(function, out, shape, dtype)
    place = result.numpy()
    if out is not None:
        arrays = [array.copy() if _shares(place, array) else array for array in arrays]
    end = 0
    for array in arrays:
        start, end = end, end + array.shape[along]
        copy(place[(slice(None),) * along + (slice(start, end),)], array)
    return result


def concatenate(tensors: Sequence[ArrayLike], axis: int = 0, *, out: Out = None) -> ExTensor:
    """Tensors one after another along an axis they have, in their common dtype.

    Parameters
    ----------
    tensors : sequence of array_like
        One or more, of equal shapes but for this axis.
    axis : int
        The axis to join along.
    out : ExTensor or ndarray, optional
        Where the result goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.concatenate([ex.tensor([[1.0], [2.0]]), ex.tensor([[3.0], [4.0]])], axis=1)
    ExTensor([[1., 3.],
              [2., 4.]], dtype=float32)
    """
    if out is None:
        quick = quick_join(tensors, axis, False)
        if quick is not None:
            return quick
    members = _members("concatenate", tensors)
    arrays, dtype = _promoted("concatenate", members)
    return _join("concatenate", arrays, dtype, axis, out, "tensors")


def concatenate_backward(
    grad_output: ArrayLike,
    shapes: Sequence[Shape | ArrayLike],
    axis: int = 0,
    *,
    needs: Sequence[bool] | None = None,
) -> list[ExTensor | None]:
    """Gradients of `concatenate`: the parts of grad_output, as views.

    Parameters
    ----------
    grad_output : array_like
        Gradient of the result, in its shape.
    shapes : sequence
        For each input its shape, or the tensor.
    axis : int
        The axis that was joined along.
    needs : sequence of bool, optional
        Which gradients are wanted; the others are None.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.concatenate_backward(ex.tensor([1.0, 2.0, 3.0]), [(1,), (2,)])
    [ExTensor([1.], dtype=float32), ExTensor([2., 3.], dtype=float32)]
    """
    if needs is None:
        parts = quick_parts(grad_output, shapes, axis)
        if parts is not None:
            return parts
    function = "concatenate_backward"
    array = _upstream(function, grad_output)
    members = _members(function, shapes, "shapes")
    targets = [shape_target(function, f"shapes[{i}]", shape) for i, shape in enumerate(members)]
    joined, along = _joined_shape(function, [target.shape for target in targets], axis, "shapes")
    if array.shape != joined:
        raise _wrong_shape(function, array.shape, f"{joined}, the shape of the forward result")
    wanted = _needs(function, needs, len(targets))
    gradients: list[ExTensor | None] = []
    end = 0
    for target, need in zip(targets, wanted, strict=True):
        start, end = end, end + target.shape[along]
        part = array[(slice(None),) * along + (slice(start, end),)]
        gradients.append(_as_gradient(part, target) if need else None)
    return gradients


def _needs(function: str, needs: Sequence[bool] | None, count: int) -> Sequence[bool]:
    if needs is None:
        return (True,) * count
    if not isinstance(needs, tuple | list) or len(needs) != count:
        raise ValueError(f"{function}: needs must be a tuple of {count} bools, got {needs!r}")
    if not all(isinstance(need, bool | np.bool_) for need in needs):
        raise TypeError(f"{function}: needs must be a tuple of {count} bools, got {needs!r}")
    return needs


def stack(tensors: Sequence[ArrayLike], axis: int = 0, *, out: Out = None) -> ExTensor:
    """Tensors of one shape along a new axis, in their common dtype.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.stack([ex.tensor([1.0, 2.0]), ex.tensor([3.0, 4.0])], axis=1)
    ExTensor([[1., 3.],
              [2., 4.]], dtype=float32)
    """
    if out is None:
        quick = quick_join(tensors, axis, True)
        if quick is not None:
            return quick
    members = _members("stack", tensors)
    arrays, dtype = _promoted("stack", members)
    for i, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise ValueError(
                f"stack: tensors[{i}] has shape {array.shape}, tensors[0] has shape "
                f"{arrays[0].shape}; all must be equal"
            )
    along = _axis("stack", axis, arrays[0].ndim + 1)
    arrays = [np.expand_dims(array, along) for array in arrays]
    return _join("stack", arrays, dtype, along, out, "tensors")


def stack_backward(
    grad_output: ArrayLike, axis: int = 0, *, needs: Sequence[bool] | None = None
) -> list[ExTensor | None]:
    """Gradients of `stack`: the slices of grad_output along the axis, as views.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.stack_backward(ex.tensor([[1.0, 3.0], [2.0, 4.0]]), axis=1)
    [ExTensor([1., 2.], dtype=float32), ExTensor([3., 4.], dtype=float32)]
    """
    if needs is None:
        slices = quick_slices(grad_output, axis)
        if slices is not None:
            return slices
    array = _upstream("stack_backward", grad_output)
    along = _axis("stack_backward", axis, array.ndim)
    count = array.shape[along]
    if count == 0:
        raise _wrong_shape("stack_backward", array.shape, f"one or more slices along axis {along}")
    wanted = _needs("stack_backward", needs, count)
    before: tuple[Any, ...] = (slice(None),) * along
    return [from_array(array[(*before, i, ...)]) if need else None for i, need in enumerate(wanted)]


def split(x: ArrayLike, sections_or_indices: int | Sequence[int], axis: int = 0) -> list[ExTensor]:
    """Parts of a tensor along an axis, as views.

    Parameters
    ----------
    x : array_like
        The tensor.
    sections_or_indices : int or sequence of int
        The number of equal parts, or where to cut: ``[2, 5]`` gives x[:2], x[2:5] and x[5:].
        Cuts count from the end where negative, and are in ascending order.
    axis : int
        The axis to cut.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.split(ex.arange(5), [2, 3])
    [ExTensor([0, 1], dtype=int64), ExTensor([2], dtype=int64), ExTensor([3, 4], dtype=int64)]
    """
    parts = quick_split(x, sections_or_indices, axis)
    if parts is not None:
        return parts
    array = as_array(x, "split", "x")
    along = _axis("split", axis, array.ndim)
    size = array.shape[along]
    cuts = [0, *_cuts(sections_or_indices, size, array.shape, along), size]
    before = (slice(None),) * along
    return [
        from_array(array[(*before, slice(start, end))]) for start, end in itertools.pairwise(cuts)
    ]


def _cuts(given: object, size: int, shape: tuple[int, ...], axis: int) -> list[int]:
    if isinstance(given, ExTensor | np.ndarray):
        given = given.tolist()
    if not isinstance(given, tuple | list):
        (sections,) = _ints("split", "sections_or_indices", given)
        if sections < 1 or size % sections:
            raise ValueError(
                f"split: x has shape {shape}; axis {axis} of size {size} cannot be cut into "
                f"{sections} equal parts"
            )
        return [size // sections * i for i in range(1, sections)]
    indices = _ints("split", "sections_or_indices", given)
    cuts = [min(i, size) if i >= 0 else max(i + size, 0) for i in indices]
    if any(a > b for a, b in itertools.pairwise(cuts)):
        raise ValueError(
            f"split: sections_or_indices {given!r} must be in ascending order along axis {axis} "
            f"of size {size}"
        )
    return cuts


def split_backward(
    grad_outputs: Sequence[ArrayLike], axis: int = 0, *, out: Out = None
) -> ExTensor:
    """Gradient of `split`: the gradients of its parts put together.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.split_backward([ex.tensor([1.0, 2.0]), ex.tensor([3.0])])
    ExTensor([1., 2., 3.], dtype=float32)
    """
    if out is None:
        quick = quick_join(grad_outputs, axis, False, True)
        if quick is not None:
            return quick
    function, name = "split_backward", "grad_outputs"
    members = _members(function, grad_outputs, name)
    arrays, dtype = _promoted(function, members, name)
    for i, array in enumerate(arrays):
        _upstream(function, array, f"{name}[{i}]")
    return _join(function, arrays, dtype, axis, out, name)


# ---------------------------------------------------------------- broadcasting and casting


def broadcast_to(x: ArrayLike, shape: Shape | int) -> ExTensor:
    """A tensor as if it were repeated to fill a shape: a read-only view.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.broadcast_to(ex.tensor([[1.0], [2.0]]), (2, 3))
    ExTensor([[1., 1., 1.],
              [2., 2., 2.]], dtype=float32)
    """
    view = quick_broadcast(x, shape)
    if view is not None:
        return view
    array = as_array(x, "broadcast_to", "x")
    full = _ints("broadcast_to", "shape", shape)
    if any(size < 0 for size in full):
        raise ValueError(f"broadcast_to: shape {full} has a negative size")
    if not _broadcasts(array.shape, full):
        raise ValueError(
            f"broadcast_to: x has shape {array.shape}, which does not broadcast to {full}"
        )
    return from_array(np.broadcast_to(array, full))


def _broadcasts(shape: tuple[int, ...], full: tuple[int, ...]) -> bool:
    missing = len(full) - len(shape)
    return missing >= 0 and all(
        size in (1, wanted) for size, wanted in zip(shape, full[missing:], strict=True)
    )


def broadcast_to_backward(
    grad_output: ArrayLike, input_shape: Shape | ArrayLike, *, out: Out = None
) -> ExTensor:
    """Gradient of `broadcast_to`: grad_output summed over the repetitions.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.broadcast_to_backward(ex.tensor([[1.0, 2.0], [3.0, 4.0]]), (2, 1))
    ExTensor([[3.],
              [7.]], dtype=float32)
    """
    if out is None:
        quick = quick_broadcast_gradient(grad_output, input_shape)
        if quick is not None:
            return quick
    function = "broadcast_to_backward"
    array = _upstream(function, grad_output)
    target = shape_target(function, "input_shape", input_shape)
    if not _broadcasts(target.shape, array.shape):
        needed = f"a shape that the input's {target.shape} broadcasts to"
        raise _wrong_shape(function, array.shape, needed)
    targets = (target, shape_target(function, "grad_output", array.shape))
    names = ("input_shape", "grad_output")
    return backward(function, (IDENTITY,), array, (), names, targets, None, out)


def cast(x: ArrayLike, dtype: object, *, out: Out = None) -> ExTensor:
    """A copy in another dtype.

    Floats lose their fraction where the dtype is an integer; NaN, infinities and values out of
    its range become what the processor makes of them, as in NumPy, without a warning.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.cast(ex.tensor([1.7, -1.7]), ex.int32)
    ExTensor([ 1, -1], dtype=int32)
    """
    if out is None:
        quick = quick_cast(x, dtype, False)
        if quick is not None:
            return quick
    wanted = check_dtype(dtype, "cast")
    array = as_array(x, "cast", "x")
    if isinstance(x, list | tuple | bool | int | float) and not isinstance(x, np.generic):
        array = asarray(x, wanted).numpy()  # float64 never passes through float32
    return _store("cast", out, array, wanted)


def cast_backward(grad_output: ArrayLike, dtype: object, *, out: Out = None) -> ExTensor:
    """Gradient of `cast`: grad_output in the input's dtype, in its own for an integer input.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.cast_backward(ex.tensor([0.5, 1.5]), ex.float64)
    ExTensor([0.5, 1.5], dtype=float64)
    """
    if out is None:
        quick = quick_cast(grad_output, dtype, True)
        if quick is not None:
            return quick
    array = _upstream("cast_backward", grad_output)
    wanted = check_dtype(dtype, "cast_backward")
    return _store("cast_backward", out, array, wanted if wanted.kind == "f" else array.dtype)


# ---------------------------------------------------------------- indexing


def getitem_backward(
    grad_output: ArrayLike, index: Any, input_shape: Shape | ArrayLike, *, out: Out = None
) -> ExTensor:
    """Gradient of ``x[index]``: grad_output at the places it came from, zero elsewhere.

    A place that an array of indices names several times gets the sum.

    Parameters
    ----------
    grad_output : array_like
        Of the shape of ``x[index]``.
    index : any index
        Ints, slices, None, Ellipsis, arrays of ints or bools, or a tuple of them.
    input_shape : sequence of int or tensor
        The shape of the indexed tensor, or the tensor itself.
    out : ExTensor or ndarray, optional
        Where the result goes.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.getitem_backward(ex.tensor([1.0, 2.0, 4.0]), [0, 2, 2], (4,))
    ExTensor([1., 0., 6., 0.], dtype=float32)
    """
    if out is None:
        quick = quick_rows_gradient(grad_output, index, input_shape)
        if quick is not None:
            return quick
    function = "getitem_backward"
    array = _upstream(function, grad_output)
    target = shape_target(function, "input_shape", input_shape)
    items = _plain_index(index)
    shape = _indexed_shape(function, target.shape, items)
    if array.shape != shape:
        raise _wrong_shape(function, array.shape, f"{shape}, the shape of the indexed tensor")
    dtype = _FLOATS.get(target.typenum, array.dtype)
    result = output_tensor(function, out, target.shape, dtype)
    place = result.numpy()
    if out is not None and _shares(place, array):
        array = array.copy()
    if any(isinstance(item, np.ndarray) and item.dtype.kind != "b" for item in items):
        _add_at(function, place, items, array)
    else:  # every place is named once
        with np.errstate(all="ignore"):
            place[...] = 0
            place[items] = array
    return result


def _plain_index(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of what NumPy knows, 0-d integer arrays as ints."""
    items = []
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, ExTensor):
            item = item.numpy()
        elif isinstance(item, list | tuple):
            item = np.asarray(item) if len(item) else np.zeros(np.shape(item), np.intp)
        if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
            item = int(item)
        items.append(item)
    return tuple(items)


def _is_rows(items: tuple[Any, ...]) -> bool:
    """Whether an index is one array of integers along the first axis."""
    return len(items) == 1 and isinstance(items[0], np.ndarray) and items[0].dtype.kind in "iu"


def _indexed_shape(
    function: str, shape: tuple[int, ...], items: tuple[Any, ...]
) -> tuple[int, ...]:
    """The shape of an indexed tensor, or an error about the index."""
    if _is_rows(items) and shape and items[0].size:
        size, rows = shape[0], items[0]
        if -size <= int(rows.min()) and int(rows.max()) < size:
            return rows.shape + shape[1:]
    try:
        return np.broadcast_to(np.False_, shape)[items].shape
    except IndexError as error:
        raise IndexError(f"{function}: index for shape {shape}: {error}") from None


def _consumed(items: tuple[Any, ...], ndim: int) -> int:
    """How many leading axes an index speaks about; the others are taken whole."""
    if items and items[-1] is Ellipsis:
        items = items[:-1]
    count = 0
    for item in items:
        if item is Ellipsis:
            return ndim
        if isinstance(item, np.ndarray) and item.dtype.kind == "b":
            count += item.ndim
        elif item is not None and not isinstance(item, bool | np.bool_):
            count += 1
    return count


def _positions(shape: tuple[int, ...], items: tuple[Any, ...]) -> np.ndarray:
    """The row-major number of each indexed element of a shape."""
    if _is_rows(items):
        rows = np.ascontiguousarray(items[0], np.intp).reshape(-1)
        return np.where(rows < 0, rows + shape[0], rows) if rows.size and rows.min() < 0 else rows
    positions: Any = 0
    for axis, size in enumerate(shape):  # the coordinates along each axis, indexed like x
        along = np.arange(size).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        positions = positions * size + np.broadcast_to(along, shape)[items]
    return np.ascontiguousarray(positions, np.intp).reshape(-1)


def _add_at(function: str, place: np.ndarray, items: tuple[Any, ...], array: np.ndarray) -> None:
    """Set ``place`` to zero and add ``array`` to ``place[items]``, repeated places adding up."""
    count = _consumed(items, place.ndim)
    lead, width = place.shape[:count], math.prod(place.shape[count:])
    positions = _positions(lead, items)
    dtype = np.result_type(array.dtype, place.dtype)
    rows = np.ascontiguousarray(array, dtype).reshape(positions.size, width)
    direct = place.flags.c_contiguous and place.flags.aligned and place.dtype == dtype
    sums = place if direct else np.empty(place.shape, dtype)
    scatter_sum(function, rows, positions, sums.reshape(math.prod(lead), width))
    if not direct:
        with np.errstate(all="ignore"):
            np.copyto(place, sums, casting="unsafe")
