"""Broadcasting: the shapes of results, and summing a gradient back to a smaller shape."""

from __future__ import annotations

from extensor._apply import shape_target, sum_to
from extensor._typing import ArrayLike, Out, Shape
from extensor.tensor import ExTensor

__all__ = [
    "are_shapes_broadcastable",
    "broadcast_shapes",
    "compute_broadcast_strides",
    "reduce_broadcast_dims",
]


def _shape(function: str, name: str, shape: Shape | int) -> tuple[int, ...]:
    """A shape argument as a tuple of ints, none negative."""
    if isinstance(shape, int):
        shape = (shape,)
    return shape_target(function, name, shape).shape


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape that several shapes broadcast to.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.broadcast_shapes((3, 1, 5), (4, 1), ())
    (3, 4, 5)
    """
    checked = [_shape("broadcast_shapes", f"shape {i}", s) for i, s in enumerate(shapes)]
    result: list[int] = []
    for back in range(1, 1 + max((len(shape) for shape in checked), default=0)):
        sizes = {shape[-back] for shape in checked if len(shape) >= back} - {1}
        if len(sizes) > 1:
            raise ValueError(
                f"broadcast_shapes: shapes {', '.join(map(str, checked))} do not broadcast: "
                f"axis {-back} is {' and '.join(map(str, sorted(sizes)))}"
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))


def are_shapes_broadcastable(a: Shape, b: Shape) -> bool:
    """Whether two shapes broadcast.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.are_shapes_broadcastable((3, 1), (4,)), ex.are_shapes_broadcastable((3,), (4,))
    (True, False)
    """
    shape_a = _shape("are_shapes_broadcastable", "a", a)
    shape_b = _shape("are_shapes_broadcastable", "b", b)
    pairs = zip(reversed(shape_a), reversed(shape_b), strict=False)
    return all(x == y or x == 1 or y == 1 for x, y in pairs)


def compute_broadcast_strides(shape: Shape, broadcast_shape: Shape) -> tuple[int, ...]:
    """Element strides with which a contiguous tensor is read in a broadcast shape.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.compute_broadcast_strides((3, 1), (2, 3, 4))
    (0, 1, 0)
    """
    name = "compute_broadcast_strides"
    small, full = _shape(name, "shape", shape), _shape(name, "broadcast_shape", broadcast_shape)
    missing = len(full) - len(small)
    if missing < 0 or any(s not in (1, f) for s, f in zip(small, full[missing:], strict=True)):
        raise ValueError(f"{name}: shape {small} does not broadcast to {full}")
    strides, step = [0] * len(full), 1
    for axis in range(len(small) - 1, -1, -1):
        if small[axis] == full[missing + axis] != 1:
            strides[missing + axis] = step
        step *= small[axis]
    return tuple(strides)


def reduce_broadcast_dims(grad: ArrayLike, original_shape: Shape, *, out: Out = None) -> ExTensor:
    """Sum a gradient over the axes along which its tensor was broadcast.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.reduce_broadcast_dims(ex.tensor([[1.0, 2.0], [3.0, 4.0]]), (2, 1))
    ExTensor([[3.],
              [7.]], dtype=float32)
    """
    name = "reduce_broadcast_dims"
    return sum_to(name, grad, _shape(name, "original_shape", original_shape), out)
