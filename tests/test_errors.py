"""Errors as a user meets them: the message of each likely mistake, word for word.

``docs/errors.md`` walks through twenty of them; what it shows is in this list too. A message names
the function, the argument, what was given and what is needed.
"""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.exceptions import AxisError

import extensor as ex

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
DTYPES = "extensor works with float16, float32, float64, bool and the integers of 8 to 64 bits"
INEXACT = "it must be float16, float32 or float64"
NAN = float("nan")


def frozen() -> np.ndarray:
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    return array


def add_half_in_place() -> None:
    counts = ex.tensor([1, 2])
    counts += 0.5


def grow_in_place() -> None:
    x = ex.ones(3)
    x += ex.ones((2, 3))


# A call, the kind of error, its message. The call's first word is the function named in it.
MISTAKES: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    # shapes
    (
        "add",
        lambda: ex.add(ex.zeros((2, 3)), ex.zeros((2, 4))),
        ValueError,
        "add: a has shape (2, 3) and b has shape (2, 4), which do not broadcast: "
        "axis -1 is 3 in one and 4 in another",
    ),
    (
        "+",
        lambda: ex.ones(3) + ex.ones(4),
        ValueError,
        "add: a has shape (3,) and b has shape (4,), which do not broadcast: "
        "axis -1 is 3 in one and 4 in another",
    ),
    (
        "where",
        lambda: ex.where(ex.ones(2), ex.ones(3), 1.0),
        ValueError,
        "where: cond has shape (2,), a has shape (3,) and b has shape (), which do not broadcast: "
        "axis -1 is 2 in one and 3 in another",
    ),
    (
        "matmul",
        lambda: ex.matmul(ex.zeros((2, 3)), ex.zeros((4, 5))),
        ValueError,
        "matmul: a has shape (2, 3) and b has shape (4, 5); the last axis of a (3) and axis -2 of "
        "b (4) must be equal",
    ),
    (
        "matmul batches",
        lambda: ex.matmul(ex.zeros((2, 3, 4)), ex.zeros((5, 4, 6))),
        ValueError,
        "matmul: a has shape (2, 3, 4) and b has shape (5, 4, 6); their batch axes do not "
        "broadcast: axis -3 is 2 in a and 5 in b",
    ),
    (
        "matmul scalar",
        lambda: ex.matmul(ex.zeros((2, 3)), 2.0),
        ValueError,
        "matmul: a has shape (2, 3) and b has shape (); both need at least one axis (multiply "
        "takes scalars)",
    ),
    (
        "linear",
        lambda: ex.linear(ex.zeros((8, 64)), ex.zeros((64, 10))),
        ValueError,
        "linear: x has shape (8, 64) and weight has shape (64, 10); the last axis of x must be "
        "weight's axis 1 (10)",
    ),
    (
        "linear bias",
        lambda: ex.linear(ex.zeros((8, 64)), ex.zeros((10, 64)), ex.zeros((1, 10))),
        ValueError,
        "linear: bias has shape (1, 10); for weight of shape (10, 64) it must be (10,)",
    ),
    (
        "multiply_backward",
        lambda: ex.multiply_backward(ex.ones(3), ex.ones((2, 3)), ex.ones(3)),
        ValueError,
        "multiply_backward: grad_output has shape (3,), the forward result has shape (2, 3)",
    ),
    (
        "relu_backward of equal count",
        lambda: ex.relu_backward(ex.ones(6), ex.ones((2, 3))),
        ValueError,
        "relu_backward: grad_output has shape (6,), the forward result has shape (2, 3)",
    ),
    (
        "matmul_backward",
        lambda: ex.matmul_backward(ex.ones((2, 2)), ex.ones((2, 3)), ex.ones((3, 4))),
        ValueError,
        "matmul_backward: grad_output has shape (2, 2), the forward result has shape (2, 4)",
    ),
    (
        "sum_backward",
        lambda: ex.sum_backward(ex.ones(3), (2, 3), axis=1),
        ValueError,
        "sum_backward: grad_output has shape (3,); for an input of shape (2, 3) and axis (1,) it "
        "must be (2,) or (2, 1)",
    ),
    (
        "add_backward of a size",
        lambda: ex.add_backward(ex.ones(3), 3, 3),
        TypeError,
        "add_backward: a_shape must be a shape (a tuple or list of ints) or the tensor, not int",
    ),
    (
        "mean_squared_error",
        lambda: ex.mean_squared_error(ex.zeros(3), ex.zeros((3, 1))),
        ValueError,
        "mean_squared_error: predictions has shape (3,) and targets has shape (3, 1); they must "
        "be equal",
    ),
    (
        "mean_squared_error_backward",
        lambda: ex.mean_squared_error_backward(
            ex.ones(3), ex.zeros(3), ex.zeros(3), reduction="mean"
        ),
        ValueError,
        "mean_squared_error_backward: grad_output has shape (3,), the forward result has shape ()",
    ),
    (
        "concatenate",
        lambda: ex.concatenate([ex.zeros((2, 3)), ex.zeros((2, 4))]),
        ValueError,
        "concatenate: tensors[1] has shape (2, 4), tensors[0] has shape (2, 3); all must be equal "
        "but for axis 0",
    ),
    (
        "split",
        lambda: ex.split(ex.zeros(7), 2),
        ValueError,
        "split: x has shape (7,); axis 0 of size 7 cannot be cut into 2 equal parts",
    ),
    (
        "reshape",
        lambda: ex.reshape(ex.zeros(6), (4, -1)),
        ValueError,
        "reshape: x of shape (6,) has 6 elements, which do not fill shape (4, -1)",
    ),
    (
        "prelu",
        lambda: ex.prelu(ex.ones((2, 3)), ex.ones(2)),
        ValueError,
        "prelu: x has shape (2, 3) and alpha has shape (2,); alpha must hold one element or have "
        "shape (3,), one slope for each of axis 1",
    ),
    # what is no number
    (
        "exp of a string",
        lambda: ex.exp("1.0"),
        TypeError,
        "exp: x must be a tensor or array-like, not str '1.0'",
    ),
    (
        "tensor of strings",
        lambda: ex.tensor(["a", "b"]),
        TypeError,
        f"tensor: obj has dtype <U1; {DTYPES}",
    ),
    (
        "tensor of a dict",
        lambda: ex.tensor({"a": 1}),
        TypeError,
        "tensor: obj must be a tensor or array-like, not dict {'a': 1}",
    ),
    (
        "abs of complex",
        lambda: ex.abs(np.array([1j])),
        TypeError,
        f"abs: x has dtype complex128; {DTYPES}",
    ),
    (
        "zeros of complex",
        lambda: ex.zeros(3, dtype=complex),
        TypeError,
        f"zeros: dtype complex128 is not supported; {DTYPES}",
    ),
    (
        "tensor with a gap",
        lambda: ex.tensor([1.5, None]),
        TypeError,
        f"tensor: obj has dtype object; {DTYPES}",
    ),
    (
        "add of objects",
        lambda: ex.add(np.array([1, 2], dtype=object), 1),
        TypeError,
        f"add: a has dtype object; {DTYPES}",
    ),
    (
        "add of None",
        lambda: ex.add(ex.ones(2), None),
        TypeError,
        "add: b must be a tensor or array-like, not None",
    ),
    # axes
    (
        "sum",
        lambda: ex.sum(ex.zeros((2, 3)), axis=2),
        AxisError,
        "sum: axis: axis 2 is out of bounds for array of dimension 2",
    ),
    (
        "softmax",
        lambda: ex.softmax(ex.zeros((2, 3)), axis=-3),
        AxisError,
        "softmax: axis: axis -3 is out of bounds for array of dimension 2",
    ),
    (
        "sum twice",
        lambda: ex.sum(ex.zeros((2, 3)), axis=(0, -2)),
        ValueError,
        "sum: axis -2 is given twice in (0, -2)",
    ),
    (
        "sum of a float axis",
        lambda: ex.sum(ex.zeros((2, 3)), axis=1.0),  # type: ignore[arg-type]
        TypeError,
        "sum: axis must be an int, a tuple of ints or None, got 1.0",
    ),
    (
        "transpose",
        lambda: ex.transpose(ex.zeros((2, 3)), (0, 0)),
        ValueError,
        "transpose: axes (0, 0) are not a permutation of the 2 axes",
    ),
    # out
    (
        "out of a wrong shape",
        lambda: ex.add(ex.zeros(3), 1.0, out=ex.zeros(4)),
        ValueError,
        "add: out has shape (4,), the result has shape (3,)",
    ),
    (
        "out of a wrong dtype",
        lambda: ex.add(ex.zeros(3), 1.0, out=np.zeros(3)),
        TypeError,
        "add: out has dtype float64, the result has dtype float32",
    ),
    (
        "out of a wrong kind",
        lambda: ex.add(ex.zeros(3), 1.0, out=[0, 0, 0]),  # type: ignore[arg-type]
        TypeError,
        "add: out must be an ExTensor or ndarray, not list",
    ),
    (
        "out of read-only memory",
        lambda: ex.add(ex.zeros(3), 1.0, out=frozen()),
        ValueError,
        "add: out is read-only",
    ),
    (
        "one out for two gradients",
        lambda: ex.multiply_backward(ex.ones(2), ex.ones(2), ex.ones(2), out=ex.ones(2)),
        TypeError,
        "multiply_backward: out must be a tuple of 2, one for each gradient (None to allocate)",
    ),
    (
        "needs",
        lambda: ex.multiply_backward(
            ex.ones(2), ex.ones(2), ex.ones(2), needs=True  # type: ignore[arg-type]
        ),
        ValueError,
        "multiply_backward: needs must be a tuple of 2 bools, got True",
    ),
    (
        "in place, dtype",
        add_half_in_place,
        TypeError,
        "add: in place, a result of dtype float64 cannot be kept in a tensor of dtype int64",
    ),
    (
        "in place, shape",
        grow_in_place,
        ValueError,
        "add: out has shape (3,), the result has shape (2, 3)",
    ),
    # training
    (
        "class id",
        lambda: ex.cross_entropy(ex.zeros((2, 3)), [0, 3]),
        ValueError,
        "cross_entropy: targets holds class id 3, the classes are 0 … 2",
    ),
    (
        "negative class id",
        lambda: ex.cross_entropy(ex.zeros((2, 3)), [0, -1]),
        ValueError,
        "cross_entropy: targets holds class id -1, the classes are 0 … 2",
    ),
    (
        "class ids of floats",
        lambda: ex.cross_entropy(ex.zeros((2, 3)), [0.0, 1.0]),
        TypeError,
        "cross_entropy: targets without the class axis are class ids of an integer dtype, got "
        "float32; weights have the shape of logits",
    ),
    (
        "one_hot",
        lambda: ex.one_hot([0, 5], 3),
        ValueError,
        "one_hot: ids must lie in 0 … 2, got 5",
    ),
    (
        "exp_backward of integers",
        lambda: ex.exp_backward(ex.tensor([1, 2]), ex.tensor([1.0, 2.0])),
        TypeError,
        f"exp_backward: grad_output has dtype int64; {INEXACT}",
    ),
    (
        "step of integers",
        lambda: ex.SGD([ex.ones(2)], 0.1).step([ex.tensor([1, 2])]),
        TypeError,
        f"SGD: grads[0] has dtype int64; {INEXACT}",
    ),
    (
        "step of too many",
        lambda: ex.SGD([ex.ones(2)], 0.1).step([ex.ones(2), ex.ones(2)]),
        ValueError,
        "SGD: 2 grads for 1 parameters",
    ),
    (
        "step without gradients",
        lambda: ex.SGD([ex.ones(2)], 0.1).step(),
        TypeError,
        "SGD: parameter 0 is a bare tensor without .grad; pass step(grads)",
    ),
    (
        "reduction",
        lambda: ex.mean_squared_error(
            ex.zeros(3), ex.zeros(3), reduction="avg"  # type: ignore[arg-type]
        ),
        ValueError,
        "mean_squared_error: reduction must be 'none', 'mean' or 'sum', got 'avg'",
    ),
    (
        "probability",
        lambda: ex.binary_cross_entropy(ex.tensor([0.5, 1.5]), ex.ones(2)),
        ValueError,
        "binary_cross_entropy: predictions must lie in [0, 1], found 1.5 (1 of 2 values are "
        "outside)",
    ),
    (
        "negative beta",
        lambda: ex.smooth_l1(ex.zeros(3), ex.zeros(3), beta=-1.0),
        ValueError,
        "smooth_l1: beta is -1.0, a finite number >= 0 is needed",
    ),
    (
        "beta of text",
        lambda: ex.smooth_l1(ex.zeros(3), ex.zeros(3), beta="x"),  # type: ignore[arg-type]
        TypeError,
        "smooth_l1: beta must be a number, got 'x'",
    ),
    (
        "rate of NaN",
        lambda: ex.SGD([ex.ones(2)], lr=NAN),
        ValueError,
        "SGD: lr is nan, a finite number >= 0 is needed",
    ),
    (
        "negative rate",
        lambda: ex.Adam([ex.ones(2)], lr=-0.1),
        ValueError,
        "Adam: lr is -0.1, a finite number >= 0 is needed",
    ),
    (
        "rate of text",
        lambda: ex.SGD([ex.ones(2)], lr="fast"),  # type: ignore[arg-type]
        TypeError,
        "SGD: lr must be a number, got 'fast'",
    ),
    (
        "norm of NaN",
        lambda: ex.clip_grad_norm([ex.ones(2)], NAN),
        ValueError,
        "clip_grad_norm: max_norm is nan, a finite number >= 0 is needed",
    ),
    (
        "one tensor for a list",
        lambda: ex.SGD(ex.ones(2), lr=0.1),
        TypeError,
        "SGD: params must be a list of Parameter or ExTensor, or a ParameterDict, not ExTensor",
    ),
    # sizes
    (
        "overflowing shape",
        lambda: ex.zeros((2**40, 2**40)),
        ValueError,
        "zeros: a result of shape (1099511627776, 1099511627776) does not fit in memory",
    ),
    (
        "overflowing size",
        lambda: ex.ones(2**70),
        ValueError,
        "ones: shape (1180591620717411303424,) does not fit in memory",
    ),
    (
        "negative size",
        lambda: ex.zeros((2, -3)),
        ValueError,
        "zeros: shape (2, -3) has a negative size",
    ),
    (
        "shape of text",
        lambda: ex.zeros("3"),  # type: ignore[arg-type]
        TypeError,
        "zeros: shape must be an int or a tuple or list of ints, got '3'",
    ),
    (
        "the extreme of nothing",
        lambda: ex.max_reduce(ex.zeros((0, 3)), axis=0),
        ValueError,
        "max_reduce: the axes (0,) of shape (0, 3) hold no elements, and an empty slice has no "
        "extreme",
    ),
    # one element
    (
        "truth",
        lambda: bool(ex.ones(2)),
        ValueError,
        "the truth value of an ExTensor of shape (2,) is ambiguous; use ex.any or ex.all",
    ),
    (
        "float",
        lambda: float(ex.ones(2)),
        ValueError,
        "item: a tensor of shape (2,) has 2 elements, not one",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [pytest.param(call, kind, text, id=name) for name, call, kind, text in MISTAKES],
)
def test_message(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value) == message


def test_ragged_rows() -> None:
    """The end of this message is NumPy's."""
    start = "tensor: obj is not a rectangular array of numbers ("
    with pytest.raises(ValueError, match=re.escape(start) + ".*inhomogeneous"):
        ex.tensor([[1.0, 2.0], [3.0]])


def test_the_page_shows_pinned_messages() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = [e for e in doctest.DocTestParser().get_examples(text) if e.exc_msg]
    pinned = {message for *_, message in MISTAKES}
    assert len(shown) >= 20
    for example in shown:
        kind, _, message = example.exc_msg.strip().partition(": ")
        assert kind.rpartition(".")[2] in ("ValueError", "TypeError", "AxisError")
        assert message in pinned or "inhomogeneous" in message
    rows = re.findall(r"^\| .* \| (.*) \|$", text.split("## And a few more")[1], re.MULTILINE)[1:]
    assert rows
    assert [row for row in rows if row not in pinned and set(row) != {"-"}] == []


def test_the_page_has_twenty_mistakes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    numbers = [int(n) for n in re.findall(r"^### (\d+)\. ", text, re.MULTILINE)]
    assert numbers == list(range(1, 21))


@pytest.mark.parametrize(
    "call",
    [
        lambda out: ex.add(ex.zeros(3), ex.zeros(2), out=out),
        lambda out: ex.exp(ex.zeros(4), out=out),
        lambda out: ex.exp_backward(ex.tensor([1, 2, 3]), ex.ones(3), out=out),
        lambda out: ex.cross_entropy(ex.zeros((3, 2)), [0, 1, 2], out=out),
        lambda out: ex.binary_cross_entropy(ex.tensor([0.5, 0.5, 1.5]), ex.ones(3), out=out),
        lambda out: ex.sum(ex.zeros((3, 2)), axis=(1, 1), out=out),
    ],
)
def test_a_failed_call_leaves_out_alone(call: Callable[[ex.ExTensor], Any]) -> None:
    out = ex.tensor([7.0, 8.0, 9.0])
    with pytest.raises((ValueError, TypeError)):
        call(out)
    assert out.tolist() == [7.0, 8.0, 9.0]
