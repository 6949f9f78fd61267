"""One row per op: what the generic tests and the benchmarks know about a function.

A row names the function, its NumPy reference, what its backward function is given, where to take
samples, and its edge points with value and gradient written down as numbers. The tests of
``checks.py`` run over every row; a row leaves one out only with a reason (``without``), and the
suite prints that list. Adding an op is adding a row to the section of its module.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import reference as ref
import reference_losses as gold
from helpers import ulp, working

import extensor as ex

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
DTYPES = (*FLOATS, *INTS, "bool")

inf, nan = np.inf, np.nan
# Edge points may use these names for values that depend on the dtype; EITHER_ZERO stands for an
# expected zero of either sign.
NAMED = {
    "max": lambda info: info.max,
    "-max": lambda info: -info.max,
    "tiny": lambda info: info.tiny,
    "sub": lambda info: info.smallest_subnormal,
    "-sub": lambda info: -info.smallest_subnormal,
}
EITHER_ZERO = "±0"


@dataclass(frozen=True)
class Domain:
    """Where an input is sampled: uniformly in [low, high], outside (-hole, hole).

    ``ints`` bounds the integer samples, special values included. ``dtype`` fixes the dtype of an
    input that is no operand (a mask, class ids).
    """

    low: float = -4.0
    high: float = 4.0
    hole: float = 0.0
    ints: tuple[int, int] | None = None
    dtype: str | None = None

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        dtype = np.dtype(self.dtype or dtype)
        if dtype.kind == "b":
            return np.asarray(rng.integers(0, 2, shape), dtype)
        if dtype.kind in "iu":
            low, high = self.ints or (-100, 100)
            info = np.iinfo(dtype)
            return np.asarray(
                rng.integers(max(low, info.min), min(high, info.max) + 1, shape), dtype
            )
        values = rng.uniform(self.low, self.high, shape)
        if self.hole:
            sign = np.where(values < 0, -1.0, 1.0)
            values = np.where(
                np.abs(values) < self.hole, sign * (self.hole + np.abs(values)), values
            )
        return np.asarray(values, dtype)

    def special(self, dtype: Any) -> np.ndarray:
        """Values that break things: zeros, extremes, infinities, NaN."""
        dtype = np.dtype(self.dtype or dtype)
        if dtype.kind == "b":
            return np.array([False, True])
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            low, high = self.ints or (int(info.min), int(info.max))
            wanted = (info.min, info.min + 1, -2, -1, 0, 1, 2, 3, 7, info.max - 1, info.max)
            fit = {int(v) for v in wanted if max(low, info.min) <= v <= min(high, info.max)}
            return np.array(sorted(fit), dtype)
        info = np.finfo(dtype)
        positive = [0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 7.5, info.smallest_subnormal, info.tiny, info.eps]
        positive += [info.max, inf, nan]
        return np.array(positive + [-v for v in positive], dtype)


REAL = Domain()
POSITIVE = Domain(0.2, 3.0)
NONZERO = Domain(hole=0.3)
MASK = Domain(dtype="bool")


@dataclass(frozen=True)
class Case:
    """Shapes of the inputs, and keyword arguments of the call."""

    shapes: tuple[tuple[int, ...], ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = "-".join("x".join(map(str, shape)) or "scalar" for shape in self.shapes)
        return ",".join([shapes, *(f"{key}={value}" for key, value in self.kwargs.items())])


@dataclass(frozen=True)
class Edge:
    """A point, its value, and its gradients for the upstream gradient ``g``, as numbers."""

    inputs: tuple[Any, ...]
    value: Any
    grads: tuple[Any, ...] = ()
    g: Any = 1.0
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = FLOATS

    def __str__(self) -> str:
        return f"{self.inputs}" + (f",g={self.g}" if self.g != 1 else "")


UNARY = tuple(Case((shape,)) for shape in [(), (1,), (7,), (0,), (3, 4), (2, 0, 3), (2, 3, 4)])
BROADCASTS = tuple(
    Case(shapes)
    for shapes in [
        ((), ()),
        ((7,), (7,)),
        ((3, 4), (3, 4)),
        ((3, 1, 5), (3, 4, 5)),
        ((5,), (3, 4, 5)),
        ((4, 4), (4,)),
        ((4, 1), (4, 4)),
        ((), (3, 4)),
        ((3, 4), ()),
        ((2, 1), (1, 3)),
        ((1, 1, 1), (2, 3)),
        ((3, 1, 2, 1), (4, 1, 5)),
        ((2, 3), (1,)),
        ((0, 3), (1, 3)),
        ((0, 3), (3,)),
        ((1,), (0,)),
        ((3, 1), (3, 0)),
    ]
)


@dataclass(frozen=True)
class Op:
    """One function of the library.

    name, category      the function and its module
    reference           NumPy version of forward; gets the inputs of the case and its kwargs
    terms               reference gradients: gets what backward gets, returns the terms before the
                        sum over broadcast axes; None for a function without a backward function
    saved               what backward gets after grad_output: "inputs", "output", "shapes",
                        "nothing", or a function of (inputs, output) that returns a tuple
    wrt                 the inputs that have a gradient
    ulp                 error allowed in the forward result; 0: equal to NumPy bit for bit
    bound, grad_bound   instead of ulp and of the bound for sums: functions that return the allowed
                        absolute error (a tuple for several gradients), (expected, unit,
                        *arguments, **kwargs); float16's final rounding is added to it. Edge
                        points keep ulp and grad_ulp
    kinks               distance of each element from the next kink, for the numerical gradient
    like                NumPy function whose result dtype this one has (default: reference)
    packed              the inputs are handed over as one list (of a fixed length: further rows of
                        the same name for others), and so are shapes and gradients
    backward_kwargs     keywords of the case that backward takes too
    backward_only       those of them that forward does not take
    grad_shapes         shapes of grad_output that backward takes, (*input shapes, **kwargs); None:
                        that of the output alone
    elementwise         an element of the result depends on the elements at its place alone
    blocks, large       cases of several blocks, and those for the threads, where an op is not
                        element-wise
    broadcasts          inputs of different shapes are broadcast; else they must have one shape
    view                the result may share the memory of an input
    either_zero         the result may be a zero of either sign
    cost                "memory", "cheap" or "heavy": how much work an element is
    edges               points with numbers
    without             {check or dtype: reason}
    """

    name: str
    category: str
    reference: Callable[..., Any]
    terms: Callable[..., tuple[Any, ...]] | None = None
    saved: str | Callable[..., tuple[Any, ...]] = "inputs"
    domains: tuple[Domain, ...] = (REAL, REAL)
    cases: tuple[Case, ...] = BROADCASTS
    wrt: tuple[int, ...] | None = None
    ulp: float = 0
    bound: Callable[..., Any] | None = None
    grad_ulp: float = 4
    grad_bound: Callable[..., Any] | None = None
    kinks: Callable[..., Any] | None = None
    like: Callable[..., Any] | None = None
    packed: bool = False
    backward_kwargs: tuple[str, ...] = ()
    backward_only: tuple[str, ...] = ()
    grad_shapes: Callable[..., set[tuple[int, ...]]] | None = None
    elementwise: bool = True
    blocks: tuple[Case, ...] = ()
    large: tuple[Case, ...] = ()
    broadcasts: bool = True
    view: bool = False
    either_zero: bool = False
    cost: str = "cheap"
    edges: tuple[Edge, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    function: Callable[..., Any] | None = None
    backward_function: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def backward_name(self) -> str | None:
        return f"{self.name}_backward" if self.terms else None

    @property
    def arity(self) -> int:
        return len(self.domains)

    @property
    def gradients(self) -> tuple[int, ...]:
        if self.terms is None:
            return ()
        return tuple(range(self.arity)) if self.wrt is None else self.wrt

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        function = self.function or getattr(ex, self.name)
        return function(list(inputs), **kwargs) if self.packed else function(*inputs, **kwargs)

    def save(self, inputs: tuple[Any, ...], output: Any) -> tuple[Any, ...]:
        """The arguments of backward between grad_output and its keywords."""
        if callable(self.saved):
            return self.saved(inputs, output)
        shapes = tuple(np.shape(value) for value in inputs)
        return {
            "inputs": (list(inputs),) if self.packed else tuple(inputs),
            "output": (output,),
            "shapes": (list(shapes),) if self.packed else shapes,
            "nothing": (),
        }[self.saved]

    def backward(self, grad_output: Any, *saved: Any, **kwargs: Any) -> Any:
        assert self.backward_name
        function = self.backward_function or getattr(ex, self.backward_name)
        return function(grad_output, *saved, **kwargs)

    def of_forward(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in kwargs.items() if key not in self.backward_only}

    def of_backward(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in kwargs.items() if key in self.backward_kwargs}

    def sample(self, rng: np.random.Generator, case: Case, dtype: Any) -> tuple[np.ndarray, ...]:
        return tuple(
            domain.sample(rng, shape, dtype)
            for domain, shape in zip(self.domains, case.shapes, strict=True)
        )

    def result_dtype(self, *inputs: Any, **kwargs: Any) -> np.dtype:
        """NumPy's dtype of the result; raises what NumPy raises."""
        with np.errstate(all="ignore"):
            return np.asarray((self.like or self.reference)(*inputs, **kwargs)).dtype


def _unary(name: str, category: str, reference: Any, terms: Any = None, **fields: Any) -> Op:
    defaults: dict[str, Any] = {"domains": (REAL,), "cases": UNARY, **fields}
    return Op(name, category, reference, terms, **defaults)


# --- arithmetic ---------------------------------------------------------------------------------

_HALF_TIES = (
    Edge((2.0, 2.0), 2.0, (0.5, 0.5)),
    Edge((2.0, 2.0), 2.0, (1.5, 1.5), g=3.0),
    Edge((0.0, -0.0), EITHER_ZERO, (0.5, 0.5)),
    Edge((inf, inf), inf, (0.5, 0.5)),
    Edge((nan, 1.0), nan, (1.0, 0.0)),
    Edge((1.0, nan), nan, (0.0, 1.0)),
    Edge((nan, nan), nan, (0.5, 0.5)),
    Edge((nan, inf), nan, (2.0, 0.0), g=2.0),
    Edge((-inf, nan), nan, (0.0, 2.0), g=2.0),
)

ARITHMETIC = (
    Op(
        "add",
        "arithmetic",
        np.add,
        ref.add_terms,
        saved="shapes",
        cost="memory",
        edges=(
            Edge((0.0, -0.0), 0.0, (1.0, 1.0)),
            Edge((-0.0, -0.0), -0.0, (-0.0, -0.0), g=-0.0),
            Edge((inf, -inf), nan, (inf, inf), g=inf),
            Edge((nan, 1.0), nan, (nan, nan), g=nan),
            Edge(("max", "max"), inf, (2.0, 2.0), g=2.0),
            Edge(("sub", "sub"), 2 * 5e-324, (1.0, 1.0), dtypes=("float64",)),
            Edge((2**62, 2**62), -(2**63), dtypes=("int64",)),
            Edge((2**53 + 1, 2), 2**53 + 3, dtypes=("int64", "uint64")),
            Edge((127, 1), -128, dtypes=("int8",)),
            Edge((255, 1), 0, dtypes=("uint8",)),
            Edge((True, True), True, dtypes=("bool",)),
        ),
    ),
    Op(
        "subtract",
        "arithmetic",
        np.subtract,
        ref.subtract_terms,
        saved="shapes",
        cost="memory",
        edges=(
            Edge((2.0, 3.0), -1.0, (5.0, -5.0), g=5.0),
            Edge((0.0, 0.0), 0.0, (1.0, -1.0)),
            Edge((-0.0, 0.0), -0.0, (0.0, -0.0), g=0.0),
            Edge((inf, inf), nan, (1.0, -1.0)),
            Edge((1.0, nan), nan, (nan, nan), g=nan),
            Edge(("max", "-max"), inf, (-inf, inf), g=-inf),
            Edge((0, 1), 255, dtypes=("uint8",)),
            Edge((2**53 + 3, 2), 2**53 + 1, dtypes=("int64", "uint64")),
        ),
    ),
    Op(
        "multiply",
        "arithmetic",
        np.multiply,
        ref.multiply_terms,
        cost="memory",
        edges=(
            Edge((3.0, -2.0), -6.0, (-10.0, 15.0), g=5.0),
            Edge((0.0, -2.0), -0.0, (-2.0, 0.0)),
            Edge((0.0, inf), nan, (inf, 0.0)),
            Edge((inf, -1.0), -inf, (-2.0, inf), g=2.0),
            Edge((nan, 3.0), nan, (3.0, nan)),
            Edge((0.0, 1.0), 0.0, (nan, nan), g=nan),
            Edge((0.0, 1.0), 0.0, (inf, nan), g=inf),
            Edge(("max", 2.0), inf, (2.0, "max")),
            Edge(("sub", 0.5), 0.0, (0.5, "sub")),
            Edge((3037000500, 3037000500), -9223372036709301616, dtypes=("int64",)),
            Edge((94906267, 94906267), 9007199515875289, dtypes=("int64",)),
            Edge((16, 16), 0, dtypes=("int8", "uint8")),
        ),
    ),
    Op(
        "divide",
        "arithmetic",
        np.divide,
        ref.divide_terms,
        domains=(REAL, NONZERO),
        cost="memory",
        edges=(
            Edge((6.0, -2.0), -3.0, (-1.0, -3.0), g=2.0),
            Edge((1.0, 0.0), inf, (inf, -1e10)),
            Edge((1.0, -0.0), -inf, (-inf, -1e10)),
            Edge((0.0, 0.0), nan, (inf, EITHER_ZERO)),
            Edge((-3.0, 0.0), -inf, (inf, 6e10), g=2.0),
            Edge((1.0, 1e-5), 100000.0, (1e5, -1e10), dtypes=("float32",)),
            Edge((1.0, 1e-5), 99999.99999999999, (1e5, -1e10), dtypes=("float64",)),
            Edge((1.0, 2.0**-16), 65536.0, (65536.0, -(2.0**32)), dtypes=("float32", "float64")),
            Edge((1.0, 2.0**-17), 131072.0, (131072.0, -1e10), dtypes=("float32", "float64")),
            Edge((1.0, -(2.0**-17)), -131072.0, (-131072.0, -1e10), dtypes=("float32", "float64")),
            Edge((1e20, 1e20), 1.0, (1e-20, -1e-20), dtypes=("float32", "float64")),
            Edge((1.0, 1e20), 1e-20, (1e-20, -1e-40), dtypes=("float64",)),
            Edge((1e200, 1e200), 1.0, (1e-200, -1e-200), dtypes=("float64",)),
            Edge((1.0, inf), 0.0, (0.0, EITHER_ZERO)),
            Edge((inf, inf), nan, (0.0, nan)),
            Edge((nan, 0.0), nan, (inf, nan)),
            Edge((1.0, nan), nan, (nan, nan)),
            Edge((1.0, 0.0), inf, (inf, -inf), kwargs={"eps": 0.0}),
            Edge((4.0, 2.0**-7), 512.0, (128.0, -65536.0), kwargs={"eps": 0.0}),
            Edge((2.0, 0.25), 8.0, (4.0, -2.0), kwargs={"eps": 1.0}),
        ),
        backward_kwargs=("eps",),
        backward_only=("eps",),
    ),
    Op(
        "power",
        "arithmetic",
        np.power,
        ref.power_terms,
        domains=(POSITIVE, Domain(-3.0, 3.0, ints=(0, 7))),
        ulp=1.5,
        cost="heavy",
        edges=(
            Edge((2.0, 3.0), 8.0, (24.0, 8 * 0.6931471805599453 * 2), g=2.0),
            Edge((0.0, 0.0), 1.0, (0.0, 0.0)),
            Edge((0.0, 0.0), 1.0, (0.0, 0.0), g=inf),
            Edge((0.0, 0.0), 1.0, (0.0, 0.0), g=nan),
            Edge((0.0, 1.0), 0.0, (1.0, 0.0)),
            Edge((0.0, 2.0), 0.0, (0.0, 0.0)),
            Edge((0.0, 0.5), 0.0, (inf, 0.0)),
            Edge((0.0, -1.0), inf, (-inf, -inf)),
            Edge((-0.0, 3.0), -0.0, (0.0, 0.0)),
            Edge((-2.0, 2.0), 4.0, (-4.0, nan)),
            Edge((-2.0, 3.0), -8.0, (12.0, nan)),
            Edge((-2.0, 0.0), 1.0, (0.0, nan)),
            Edge((-8.0, 0.5), nan, (nan, nan)),
            Edge((1.0, inf), 1.0, (inf, 0.0)),
            Edge((2.0, inf), inf, (inf, inf)),
            Edge((2.0, -inf), 0.0, (nan, EITHER_ZERO)),
            Edge((inf, 0.0), 1.0, (0.0, inf)),
            Edge((inf, 2.0), inf, (inf, inf)),
            Edge((nan, 0.0), 1.0, (0.0, nan)),
            Edge((1.0, nan), 1.0, (nan, 0.0)),
            Edge((nan, 2.0), nan, (nan, nan)),
            Edge((4.0, 0.5), 2.0, (0.25, 2 * 1.3862943611198906)),
            Edge(("max", 2.0), inf),
            Edge((2.0, -1074.0), 5e-324, dtypes=("float64",)),
            Edge((2.0, -149.0), 2.0**-149, dtypes=("float32",)),
            Edge((3, 4), 81, dtypes=INTS),
            Edge((0, 0), 1, dtypes=INTS),
            Edge((3, 39), 4052555153018976267, dtypes=("int64", "uint64")),
            Edge((2, 8), 0, dtypes=("int8", "uint8")),
        ),
    ),
    Op(
        "floor_divide",
        "arithmetic",
        np.floor_divide,
        ref.zero_terms,
        domains=(REAL, NONZERO),
        kinks=lambda a, b: np.abs(a / b - np.round(a / b)),
        edges=(
            Edge((-6.0, 2.0), -3.0, (0.0, 0.0)),
            Edge((6.0, -2.0), -3.0, (0.0, 0.0), g=inf),
            Edge((7.0, 2.0), 3.0, (0.0, 0.0), g=nan),
            Edge((-7.0, 2.0), -4.0, (0.0, 0.0), g=-1.0),
            Edge((1.0, 0.1), 9.0, (0.0, 0.0), dtypes=("float64",)),
            Edge((1e16, 3.0), 3333333333333333.0, (0.0, 0.0), dtypes=("float64",)),
            Edge((1e300, 1e-5), 1e305, dtypes=("float64",)),
            Edge((1.0, 0.0), inf, (0.0, 0.0)),
            Edge((-1.0, 0.0), -inf, (0.0, 0.0)),
            Edge((0.0, 0.0), nan, (0.0, 0.0)),
            Edge((-0.0, 5.0), -0.0, (0.0, 0.0)),
            Edge((inf, 1.0), nan, (0.0, 0.0)),
            Edge((1.0, inf), 0.0, (0.0, 0.0)),
            Edge((-1.0, inf), -1.0, (0.0, 0.0)),
            Edge((nan, 1.0), nan, (0.0, 0.0)),
            Edge((-6, 2), -3, dtypes=SIGNED),
            Edge((-7, 2), -4, dtypes=SIGNED),
            Edge((7, -2), -4, dtypes=SIGNED),
            Edge((5, 0), 0, dtypes=INTS),
            Edge((-128, -1), -128, dtypes=("int8",)),
            Edge((2**63 - 1, 3), 3074457345618258602, dtypes=("int64",)),
        ),
    ),
    Op(
        "modulo",
        "arithmetic",
        np.remainder,
        ref.modulo_terms,
        domains=(REAL, NONZERO),
        kinks=lambda a, b: np.abs(a / b - np.round(a / b)),
        edges=(
            Edge((-6.0, 2.0), 0.0, (1.0, 3.0)),
            Edge((6.0, -2.0), -0.0, (1.0, 3.0)),
            Edge((7.0, 3.0), 1.0, (2.0, -4.0), g=2.0),
            Edge((-7.0, 3.0), 2.0, (1.0, 3.0)),
            Edge((7.0, -3.0), -2.0, (1.0, 3.0)),
            Edge((-7.0, -3.0), -1.0, (1.0, -2.0)),
            Edge((1.0, 0.1), 0.09999999999999995, (1.0, -9.0), dtypes=("float64",)),
            Edge((1e16, 3.0), 1.0, (1.0, -3333333333333333.0), dtypes=("float64",)),
            Edge((1e300, 7.0), 1.0, dtypes=("float64",)),
            Edge((1.0, 0.0), nan, (1.0, -inf)),
            Edge((0.0, 0.0), nan, (1.0, nan)),
            Edge((1.0, inf), 1.0, (1.0, EITHER_ZERO)),
            Edge((-1.0, inf), inf, (1.0, 1.0)),
            Edge((inf, 1.0), nan, (1.0, nan)),
            Edge((nan, 1.0), nan, (1.0, nan)),
            Edge((-6, 2), 0, dtypes=SIGNED),
            Edge((-7, 3), 2, dtypes=SIGNED),
            Edge((7, -3), -2, dtypes=SIGNED),
            Edge((5, 0), 0, dtypes=INTS),
            Edge((-128, -1), 0, dtypes=("int8",)),
            Edge((2**63 - 1, 2**62), 2**62 - 1, dtypes=("int64",)),
        ),
    ),
    _unary(
        "negative",
        "arithmetic",
        np.negative,
        ref.negative_terms,
        saved="nothing",
        cost="memory",
        edges=(
            Edge((0.0,), -0.0, (-1.0,)),
            Edge((-0.0,), 0.0, (-0.0,), g=0.0),
            Edge((inf,), -inf, (-inf,), g=inf),
            Edge((nan,), nan, (nan,), g=nan),
            Edge(("max",), "-max", (-2.0,), g=2.0),
            Edge(("sub",), "-sub", (-2.0,), g=2.0),
            Edge((-128,), -128, dtypes=("int8",)),
            Edge((1,), 255, dtypes=("uint8",)),
            Edge((2**53 + 1,), -(2**53) - 1, dtypes=("int64",)),
        ),
    ),
    _unary(
        "reciprocal",
        "arithmetic",
        np.reciprocal,
        ref.reciprocal_terms,
        saved="output",
        domains=(Domain(hole=0.3, ints=(1, 100)),),
        edges=(
            Edge((4.0,), 0.25, (-0.125,), g=2.0),
            Edge((-2.0,), -0.5, (-0.25,)),
            Edge((0.0,), inf, (-inf,)),
            Edge((-0.0,), -inf, (-inf,)),
            Edge((inf,), 0.0, (EITHER_ZERO,)),
            Edge((-inf,), -0.0, (EITHER_ZERO,)),
            Edge((nan,), nan, (nan,)),
            Edge((0,), 0, dtypes=INTS),
            Edge((1,), 1, dtypes=INTS),
            Edge((2,), 0, dtypes=INTS),
            Edge((-1,), -1, dtypes=SIGNED),
        ),
    ),
    Op(
        "maximum",
        "arithmetic",
        np.maximum,
        ref.maximum_terms,
        kinks=lambda a, b: np.abs(a - b),
        either_zero=True,
        cost="memory",
        edges=(
            *_HALF_TIES,
            Edge((2.0, 3.0), 3.0, (0.0, 1.0)),
            Edge((3.0, 2.0), 3.0, (inf, 0.0), g=inf),
            Edge((3.0, 2.0), 3.0, (nan, 0.0), g=nan),
            Edge((-inf, 1.0), 1.0, (0.0, -1.0), g=-1.0),
            Edge(("max", inf), inf, (0.0, 1.0)),
            Edge(("sub", 0.0), "sub", (1.0, 0.0)),
            Edge((2**53 + 1, 2**53), 2**53 + 1, dtypes=("int64", "uint64")),
        ),
    ),
    Op(
        "minimum",
        "arithmetic",
        np.minimum,
        ref.minimum_terms,
        kinks=lambda a, b: np.abs(a - b),
        either_zero=True,
        cost="memory",
        edges=(
            *_HALF_TIES,
            Edge((2.0, 3.0), 2.0, (1.0, 0.0)),
            Edge((3.0, 2.0), 2.0, (0.0, inf), g=inf),
            Edge((3.0, 2.0), 2.0, (0.0, nan), g=nan),
            Edge((inf, 1.0), 1.0, (0.0, -1.0), g=-1.0),
            Edge(("-max", -inf), -inf, (0.0, 1.0)),
            Edge(("sub", 0.0), 0.0, (0.0, 1.0)),
            Edge((2**53 + 1, 2**53), 2**53, dtypes=("int64", "uint64")),
        ),
    ),
    Op(
        "where",
        "arithmetic",
        np.where,
        ref.where_terms,
        saved=lambda inputs, output: (inputs[0], np.shape(inputs[1]), np.shape(inputs[2])),
        domains=(MASK, REAL, REAL),
        wrt=(1, 2),
        cost="memory",
        cases=tuple(
            Case(shapes)
            for shapes in [
                ((), (), ()),
                ((7,), (7,), (7,)),
                ((3, 4), (3, 4), (3, 4)),
                ((3, 4), (), (3, 4)),
                ((4,), (3, 1), (3, 4)),
                ((3, 1, 5), (4, 1), (5,)),
                ((), (3, 4), (4,)),
                ((2, 3), (), ()),
                ((2, 1), (1, 1, 1), (1, 3)),
                ((0, 3), (3,), ()),
            ]
        ),
        edges=(
            Edge((True, 1.0, nan), 1.0, (2.0, 0.0), g=2.0),
            Edge((False, inf, -0.0), -0.0, (0.0, 2.0), g=2.0),
            Edge((True, 1.0, 2.0), 1.0, (nan, 0.0), g=nan),
            Edge((False, 1.0, 2.0), 2.0, (0.0, -inf), g=-inf),
            Edge((True, "max", "sub"), "max", (1.0, 0.0)),
            Edge((False, 1, 2**53 + 1), 2**53 + 1, dtypes=("int64", "uint64")),
        ),
    ),
)


# --- comparison ---------------------------------------------------------------------------------


def _comparison(name: str, numpy_function: Any, python: Callable[[Any, Any], bool]) -> Op:
    """Edge points of a comparison are pairs of numbers that Python's own operator decides."""
    pairs = [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (0.0, -0.0), (inf, inf), (-inf, inf), (nan, nan)]
    pairs += [(nan, 1.0), (1.0, nan), (inf, nan)]
    big = 2**53
    edges = [Edge(pair, python(*pair)) for pair in pairs]
    edges += [
        Edge(pair, python(*pair), dtypes=("int64", "uint64"))
        for pair in [(big, big + 1), (big + 1, big), (big + 1, big + 1)]
    ]
    return Op(name, "comparison", numpy_function, cost="memory", edges=tuple(edges))


COMPARISON = (
    _comparison("equal", np.equal, operator.eq),
    _comparison("not_equal", np.not_equal, operator.ne),
    _comparison("less", np.less, operator.lt),
    _comparison("less_equal", np.less_equal, operator.le),
    _comparison("greater", np.greater, operator.gt),
    _comparison("greater_equal", np.greater_equal, operator.ge),
)


# --- elementwise --------------------------------------------------------------------------------

_WIDE = ("float32", "float64")


def _near(*points: float) -> Any:
    """Distance from the nearest of some kinks."""
    return lambda x: np.min([np.abs(x - point) for point in points], axis=0)


def _zero_edges(*edges: tuple[Any, Any]) -> tuple[Edge, ...]:
    """Points of a function whose gradient is +0 whatever grad_output holds."""
    upstream = itertools.cycle((1.0, -2.0, inf, nan))
    return tuple(Edge((x,), y, (0.0,), g=g) for (x, y), g in zip(edges, upstream, strict=False))


_INTEGERS_STAY = (
    Edge((2**53 + 1,), 2**53 + 1, dtypes=("int64", "uint64")),
    Edge((-7,), -7, dtypes=SIGNED),
    Edge((True,), True, dtypes=("bool",)),
)
_KINDS = (0.0, -0.0, inf, -inf, nan, "max", "sub")
_EPS = {"backward_kwargs": ("eps",), "backward_only": ("eps",)}


def _rounding(name: str, numpy_function: Any, kinks: Any, *edges: tuple[Any, Any]) -> Op:
    common = ((0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (nan, nan), ("max", "max"))
    return _unary(
        name,
        "elementwise",
        ref.whole(numpy_function),
        ref.no_terms,
        saved="nothing",
        kinks=kinks,
        cost="memory",
        edges=(*_zero_edges(*common, *edges), *_INTEGERS_STAY),
    )


def _from_integers(x: np.ndarray) -> np.ndarray:
    return np.abs(x - np.round(x))


def _log(name: str, numpy_function: Any, terms: Any, scale: float, *edges: Edge) -> Op:
    """log, log2, log10: ``scale`` is 1/ln(base)."""
    return _unary(
        name,
        "elementwise",
        numpy_function,
        terms,
        domains=(POSITIVE,),
        ulp=1.5,
        edges=(
            *edges,
            Edge((1.0,), 0.0, (2 * scale,), g=2.0),
            Edge((0.0,), -inf, (1e10 * scale,)),
            Edge((-0.0,), -inf, (-2e10 * scale,), g=-2.0),
            Edge((0.0,), -inf, (inf,), kwargs={"eps": 0.0}),
            Edge((-0.0,), -inf, (-inf,), kwargs={"eps": 0.0}),
            Edge((0.0,), -inf, (4 * scale,), kwargs={"eps": 0.25}),
            Edge((-1.0,), nan, (-scale,)),
            Edge((-(2.0**-34),), nan, (-1e10 * scale,), dtypes=_WIDE),
            Edge((inf,), inf, (0.0,)),
            Edge((-inf,), nan, (-0.0,)),
            Edge((nan,), nan, (nan,)),
            Edge((nan,), nan, (nan,), g=0.0),
            Edge((1.0,), 0.0, (inf,), g=inf),
        ),
        **_EPS,
    )


def _logical(name: str, numpy_function: Any, truth: Callable[[bool, bool], bool]) -> Op:
    pairs = [(0.0, 0.0), (-0.0, 1.0), (0.5, 0.0), (nan, 0.0), (nan, inf), ("sub", "-sub")]
    edges = [Edge(pair, truth(pair[0] != 0, pair[1] != 0)) for pair in pairs]
    edges += [
        Edge((a, b), truth(a != 0, b != 0), dtypes=("int64", "uint8"))
        for a, b in [(0, 0), (0, 2), (2, 0), (2, 4)]
    ]
    return Op(name, "elementwise", numpy_function, cost="memory", edges=tuple(edges))


ELEMENTWISE = (
    _unary(
        "abs",
        "elementwise",
        np.absolute,
        ref.abs_terms,
        kinks=np.abs,
        cost="memory",
        edges=(
            Edge((-2.0,), 2.0, (-3.0,), g=3.0),
            Edge((2.0,), 2.0, (3.0,), g=3.0),
            Edge((0.0,), 0.0, (0.0,)),
            Edge((-0.0,), 0.0, (0.0,), g=inf),
            Edge((0.0,), 0.0, (0.0,), g=nan),
            Edge((inf,), inf, (1.0,)),
            Edge((-inf,), inf, (-1.0,)),
            Edge((nan,), nan, (nan,)),
            Edge(("-max",), "max", (-1.0,)),
            Edge(("-sub",), "sub", (-1.0,)),
            Edge((-128,), -128, dtypes=("int8",)),
            Edge((-(2**53) - 1,), 2**53 + 1, dtypes=("int64",)),
            Edge((True,), True, dtypes=("bool",)),
        ),
    ),
    _unary(
        "sign",
        "elementwise",
        np.sign,
        ref.no_terms,
        saved="nothing",
        kinks=np.abs,
        cost="memory",
        edges=(
            *_zero_edges((2.5, 1.0), (-2.5, -1.0), (0.0, 0.0), (-0.0, 0.0), (inf, 1.0)),
            *_zero_edges((-inf, -1.0), (nan, nan), ("sub", 1.0), ("-max", -1.0)),
            Edge((-7,), -1, dtypes=SIGNED),
            Edge((0,), 0, dtypes=INTS),
            Edge((7,), 1, dtypes=INTS),
        ),
    ),
    _unary(
        "square",
        "elementwise",
        np.square,
        ref.square_terms,
        cost="memory",
        edges=(
            Edge((-3.0,), 9.0, (-12.0,), g=2.0),
            Edge((0.0,), 0.0, (0.0,)),
            Edge((0.0,), 0.0, (nan,), g=inf),
            Edge((inf,), inf, (inf,)),
            Edge((-inf,), inf, (-inf,)),
            Edge((nan,), nan, (nan,)),
            Edge(("max",), inf, ("max",), g=0.5),
            Edge((3037000500,), -9223372036709301616, dtypes=("int64",)),
            Edge((16,), 0, dtypes=("int8", "uint8")),
        ),
    ),
    _unary(
        "sqrt",
        "elementwise",
        np.sqrt,
        ref.sqrt_terms,
        saved="output",
        domains=(POSITIVE,),
        cost="memory",
        edges=(
            Edge((4.0,), 2.0, (0.5,), g=2.0),
            Edge((0.0,), 0.0, (1e10,)),
            Edge((-0.0,), -0.0, (-1e10,), g=-1.0),
            Edge((0.0,), 0.0, (inf,), kwargs={"eps": 0.0}),
            Edge((0.0625,), 0.25, (1.0,), kwargs={"eps": 1.0}),
            Edge((2.0**-20,), 2.0**-10, (512.0,)),
            Edge((1e-06,), 0.001, (500.0,), dtypes=("float64",)),
            Edge((2.0**-68,), 2.0**-34, (2.0**33,), dtypes=_WIDE),
            Edge((2.0**-70,), 2.0**-35, (1e10,), dtypes=_WIDE),
            Edge((inf,), inf, (0.0,)),
            Edge((-1.0,), nan, (nan,)),
            Edge((-inf,), nan, (nan,)),
            Edge((nan,), nan, (nan,)),
        ),
        **_EPS,
    ),
    _unary(
        "exp",
        "elementwise",
        np.exp,
        ref.exp_terms,
        saved="output",
        ulp=1.5,
        edges=(
            Edge((0.0,), 1.0, (2.0,), g=2.0),
            Edge((-0.0,), 1.0, (1.0,)),
            Edge((1.0,), 2.718281828459045, (2.718281828459045,)),
            Edge((-5.5,), 0.004086771438464067, (0.008173542876928133,), g=2.0),
            Edge((inf,), inf, (inf,)),
            Edge((-inf,), 0.0, (0.0,)),
            Edge((nan,), nan, (nan,)),
            Edge(("max",), inf, (inf,)),
            Edge(("-max",), 0.0, (0.0,)),
            Edge((709.75,), 1.7398368732641605e308, dtypes=("float64",)),
            Edge((-745.0,), 5e-324, dtypes=("float64",)),
            Edge((-746.0,), 0.0, dtypes=("float64",)),
            Edge((88.5,), 2.7230878250681117e38, dtypes=("float32",)),
            Edge((-103.0,), 1.8521167695179754e-45, dtypes=("float32",)),
            Edge((11.0,), 59874.14171519782, dtypes=("float16",)),
        ),
    ),
    _unary(
        "expm1",
        "elementwise",
        np.expm1,
        ref.expm1_terms,
        ulp=1.5,
        edges=(
            Edge((0.0,), 0.0, (2.0,), g=2.0),
            Edge((-0.0,), -0.0, (1.0,)),
            Edge((2.0**-14,), 6.103701893304542e-05, (1.0000610370189331,)),
            Edge((-1.0,), -0.6321205588285577, (0.36787944117144233,)),
            Edge((10.0,), 22025.465794806718, (22026.465794806718,)),
            Edge((inf,), inf, (inf,)),
            Edge((-inf,), -1.0, (0.0,)),
            Edge((nan,), nan, (nan,)),
            Edge(("sub",), "sub", (1.0,)),
            Edge(("-max",), -1.0, (0.0,)),
        ),
    ),
    _log(
        "log",
        np.log,
        ref.log_terms,
        1.0,
        Edge((2.0**-34,), -23.56700413903814, (10000000000.0,), dtypes=_WIDE),
        Edge((2.0**-33,), -22.873856958478196, (8589934592.0,), dtypes=_WIDE),
        Edge((2.0**-10,), -6.931471805599453, (1024.0,)),
        Edge((0.001,), -6.907755278982137, (1000.0,), dtypes=("float64",)),
        Edge((1000.0,), 6.907755278982137, (0.001,)),
        Edge((1.5 * 2.0**127,), 88.43515703922122, (0.6666666666666666,), g=2.0**127, dtypes=_WIDE),
        Edge(
            (2.0**-140,), -97.04060527839235, (2.0,), g=2.0**-139, kwargs={"eps": 0.0}, dtypes=_WIDE
        ),
    ),
    _log(
        "log2",
        np.log2,
        ref.log2_terms,
        1.4426950408889634,
        Edge((2.0**-34,), -34.0, (14426950408.889633,), dtypes=_WIDE),
        Edge((2.0**-33,), -33.0, (12392656037.438961,), dtypes=_WIDE),
        Edge((2.0**-10,), -10.0, (1477.3197218702985,)),
        Edge((0.001,), -9.965784284662087, (1442.6950408889634,), dtypes=("float64",)),
        Edge((1000.0,), 9.965784284662087, (0.0014426950408889634,)),
        Edge(
            (1.5 * 2.0**127,), 127.58496250072116, (0.9617966939259756,), g=2.0**127, dtypes=_WIDE
        ),
        Edge(
            (2.0**-140,),
            -140.0,
            (2.8853900817779268,),
            g=2.0**-139,
            kwargs={"eps": 0.0},
            dtypes=_WIDE,
        ),
    ),
    _log(
        "log10",
        np.log10,
        ref.log10_terms,
        0.4342944819032518,
        Edge((2.0**-34,), -10.23501985257536, (4342944819.032518,), dtypes=_WIDE),
        Edge((2.0**-33,), -9.93398985691138, (3730561193.215461,), dtypes=_WIDE),
        Edge((2.0**-10,), -3.010299956639812, (444.71754946892986,)),
        Edge((0.001,), -3.0, (434.29448190325184,), dtypes=("float64",)),
        Edge((1000.0,), 3.0, (0.00043429448190325184,)),
        Edge((1.5 * 2.0**127,), 38.40690070838129, (0.2895296546021679,), g=2.0**127, dtypes=_WIDE),
        Edge(
            (2.0**-140,),
            -42.14419939295737,
            (0.8685889638065036,),
            g=2.0**-139,
            kwargs={"eps": 0.0},
            dtypes=_WIDE,
        ),
    ),
    _unary(
        "log1p",
        "elementwise",
        np.log1p,
        ref.log1p_terms,
        domains=(Domain(-0.8, 3.0),),
        ulp=1.5,
        edges=(
            Edge((0.0,), 0.0, (2.0,), g=2.0),
            Edge((-0.0,), -0.0, (1.0,)),
            Edge((2.0**-14,), 6.103329368063853e-05, (0.9999389685688129,)),
            Edge((1.0,), 0.6931471805599453, (0.5,)),
            Edge((-0.5,), -0.6931471805599453, (2.0,)),
            Edge((-1.0,), -inf, (inf,)),
            Edge((-2.0,), nan, (-1.0,)),
            Edge((inf,), inf, (0.0,)),
            Edge((-inf,), nan, (-0.0,)),
            Edge((nan,), nan, (nan,)),
            Edge(("sub",), "sub", (1.0,)),
        ),
    ),
    _unary(
        "sin",
        "elementwise",
        np.sin,
        ref.sin_terms,
        ulp=1.5,
        edges=(
            Edge((0.0,), 0.0, (2.0,), g=2.0),
            Edge((-0.0,), -0.0, (1.0,)),
            Edge((1.0,), 0.8414709848078965, (0.5403023058681398,)),
            Edge((-22.0,), 0.008851309290403876, (-0.9999608263946371,)),
            Edge((2.0**20,), 0.3304931400217347, (0.943808393901312,), dtypes=_WIDE),
            Edge((2.0**27,), -0.7634032288019807, (0.6459222168765452,), dtypes=_WIDE),
            Edge((1e22,), -0.8522008497671888, (0.523214785395139,), dtypes=("float64",)),
            Edge((2.0**120,), 0.377820109360752, (-0.9258790228548379,), dtypes=_WIDE),
            Edge((2.0**1000,), -0.15920170308624243, dtypes=("float64",)),
            Edge((inf,), nan, (nan,)),
            Edge((-inf,), nan, (nan,)),
            Edge((nan,), nan, (nan,)),
            Edge(("sub",), "sub", (1.0,)),
        ),
    ),
    _unary(
        "cos",
        "elementwise",
        np.cos,
        ref.cos_terms,
        ulp=1.5,
        edges=(
            Edge((0.0,), 1.0, (-0.0,), g=2.0),
            Edge((-0.0,), 1.0, (0.0,)),
            Edge((1.0,), 0.5403023058681398, (-0.8414709848078965,)),
            Edge((11.0,), 0.004425697988050785, (0.9999902065507035,)),
            Edge((2.0**20,), 0.943808393901312, (-0.3304931400217347,), dtypes=_WIDE),
            Edge((-(2.0**27),), 0.6459222168765452, (-0.7634032288019807,), dtypes=_WIDE),
            Edge((1e22,), 0.523214785395139, (0.8522008497671888,), dtypes=("float64",)),
            Edge((inf,), nan, (nan,)),
            Edge((-inf,), nan, (nan,)),
            Edge((nan,), nan, (nan,)),
        ),
    ),
    _unary(
        "tanh",
        "elementwise",
        np.tanh,
        ref.tanh_terms,
        saved="output",
        ulp=1.5,
        edges=(
            Edge((0.0,), 0.0, (2.0,), g=2.0),
            Edge((-0.0,), -0.0, (1.0,)),
            Edge((0.5,), 0.46211715726000974, (0.7864477329659274,), dtypes=("float64",)),
            Edge((-3.0,), -0.9950547536867305),
            Edge((inf,), 1.0, (0.0,)),
            Edge((-inf,), -1.0, (0.0,)),
            Edge((nan,), nan, (nan,)),
            Edge(("max",), 1.0, (0.0,)),
            Edge(("sub",), "sub", (1.0,)),
        ),
    ),
    _unary(
        "erf",
        "elementwise",
        ref.erf,
        ref.erf_terms,
        ulp=1.5,
        like=np.exp,
        edges=(
            Edge((0.0,), 0.0, (2.256758334191025,), g=2.0),
            Edge((-0.0,), -0.0, (1.1283791670955126,)),
            Edge((0.5,), 0.5204998778130465, (0.8787825789354448,)),
            Edge((-1.5,), -0.9661051464753108, (0.11893028922362937,)),
            Edge((3.0,), 0.9999779095030014, (0.00013925305194674786,)),
            Edge((9.0,), 1.0, (7.492073428245974e-36,), dtypes=_WIDE),
            Edge((-20.0,), -1.0, (2.1610374743867984e-174,), dtypes=("float64",)),
            Edge((inf,), 1.0, (0.0,)),
            Edge((-inf,), -1.0, (0.0,)),
            Edge((nan,), nan, (nan,)),
        ),
    ),
    _unary(
        "clip",
        "elementwise",
        ref.clip,
        ref.clip_terms,
        kinks=_near(-1.5, 0.0, 1.0, 1.5),
        either_zero=True,
        cost="memory",
        cases=(
            *UNARY,
            Case(((7,),), {"min": -1.5, "max": 1.5}),
            Case(((3, 4),), {"min": 0, "max": 1}),
            Case(((3, 4),), {"min": 1.5, "max": -1.5}),
            Case(((2, 3, 4),), {"min": -1.5}),
            Case(((2, 3, 4),), {"max": 1.5}),
            Case(((2, 0, 3),), {"max": 1}),
        ),
        backward_kwargs=("min", "max"),
        edges=(
            Edge((1.0,), 1.0, (2.0,), g=2.0, kwargs={"min": -1, "max": 1}),
            Edge((-1.0,), -1.0, (2.0,), g=2.0, kwargs={"min": -1, "max": 1}),
            Edge((2.0,), 1.0, (0.0,), g=inf, kwargs={"min": -1, "max": 1}),
            Edge((-2.0,), -1.0, (0.0,), g=nan, kwargs={"min": -1, "max": 1}),
            Edge((0.0,), 0.0, (2.0,), g=2.0, kwargs={"min": -1}),
            Edge((nan,), nan, (0.0,), kwargs={"min": -1, "max": 1}),
            Edge((nan,), nan, (0.0,)),
            Edge((inf,), 1.0, (0.0,), kwargs={"min": -1, "max": 1}),
            Edge((inf,), inf, (1.0,), kwargs={"min": -1}),
            Edge((-inf,), -inf, (1.0,), kwargs={"max": 1}),
            Edge((-inf,), -1.0, (0.0,), kwargs={"min": -1}),
            Edge((0.5,), -1.0, (0.0,), g=nan, kwargs={"min": 1, "max": -1}),
            Edge((2.0,), nan, (0.0,), kwargs={"min": nan, "max": 1}),
            Edge((2.0,), nan, (0.0,), kwargs={"min": 0, "max": nan}),
            Edge((nan,), nan, (0.0,), kwargs={"min": nan, "max": nan}),
            Edge(("sub",), "sub", (1.0,), kwargs={"min": 0.0}),
            Edge((2**53 + 1,), 2**53 + 1, dtypes=("int64",), kwargs={"max": 2**60}),
            Edge((2**62,), 2**53 + 1, dtypes=("int64",), kwargs={"max": 2**53 + 1}),
        ),
    ),
    _rounding("ceil", np.ceil, _from_integers, (0.5, 1.0), (-0.5, -0.0), (2.0, 2.0), (-1.5, -1.0)),
    _rounding("floor", np.floor, _from_integers, (0.5, 0.0), (-0.5, -1.0), (2.0, 2.0), (1.5, 1.0)),
    _rounding(
        "round",
        np.rint,
        lambda x: np.abs(np.abs(x - np.trunc(x)) - 0.5),
        *((0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0), (3.5, 4.0)),
        *((0.75, 1.0), (-0.25, -0.0), (1023.5, 1024.0)),
    ),
    _rounding(
        "trunc", np.trunc, _from_integers, (0.5, 0.0), (-0.5, -0.0), (2.5, 2.0), (-2.5, -2.0)
    ),
    *(
        _unary(
            name,
            "elementwise",
            getattr(np, name),
            cost="memory",
            edges=(
                *(Edge((x,), y) for x, y in zip(_KINDS, wanted, strict=True)),
                Edge((5,), name == "isfinite", dtypes=INTS),
            ),
        )
        for name, wanted in [
            ("isnan", (False, False, False, False, True, False, False)),
            ("isinf", (False, False, True, True, False, False, False)),
            ("isfinite", (True, True, False, False, False, True, True)),
        ]
    ),
    _logical("logical_and", np.logical_and, operator.and_),
    _logical("logical_or", np.logical_or, operator.or_),
    _logical("logical_xor", np.logical_xor, operator.xor),
    _unary(
        "logical_not",
        "elementwise",
        np.logical_not,
        cost="memory",
        edges=(
            *(Edge((x,), True) for x in (0.0, -0.0)),
            *(Edge((x,), False) for x in (1.0, -2.0, "sub", inf, nan)),
            Edge((0,), True, dtypes=INTS),
            Edge((5,), False, dtypes=INTS),
        ),
    ),
)


# --- activations --------------------------------------------------------------------------------


def _float_like(x: Any, **_: Any) -> Any:
    """Functions that NumPy lacks treat integers as np.exp does."""
    return np.exp(x)


def _terms_bound(terms: Any) -> Any:
    """16·u·Σ|terms| of a gradient that adds terms."""

    def bound(expected: Any, unit: float, *arguments: Any, **kwargs: Any) -> Any:
        return 16 * unit * sum(np.abs(term) for term in terms(*arguments, **kwargs))

    return bound


def _gelu_bound(expected: Any, unit: float, x: Any, approximate: bool = False) -> Any:
    """8 ULP; with tanh (8 + 4·|v|)·u relative."""
    if approximate:
        v = 2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)
        relative = 8 + 4 * np.minimum(np.abs(np.asarray(v, np.longdouble)), 1e6)
        return relative * unit * np.abs(expected)
    return 8 * ulp(expected, working(x.dtype))


def _slopes(alphas: tuple[float, ...], name: str) -> tuple[Case, ...]:
    return (*UNARY, *(Case(((3, 4),), {name: alpha}) for alpha in alphas))


_ALPHAS = (-0.5, 0.0, 0.25, 1.0, 2.0)
_TANH_FORM = {"approximate": True}

_SWISH = _unary(
    "swish",
    "activations",
    ref.swish,
    ref.swish_terms,
    ulp=4,
    like=_float_like,
    grad_ulp=16,
    grad_bound=_terms_bound(ref.swish_parts),
    edges=(
        Edge((0.0,), 0.0, (0.5,)),
        Edge((-0.0,), -0.0, (1.0,), g=2.0),
        Edge((1.0,), 0.7310585786300049, (0.9276705118714867,)),
        Edge((-1.0,), -0.2689414213699951, (0.07232948812851327,)),
        Edge((-20.0,), -4.122307236380407e-08, (-3.9161918660646786e-08,)),
        Edge((-87.0,), -1.431855945041578e-36, (-1.4153978307307554e-36,), dtypes=_WIDE),
        Edge((-700.0,), -6.90177358063184e-302, (-6.891913904088079e-302,), dtypes=("float64",)),
        Edge((80.0,), 80.0, (1.0,)),
        Edge((inf,), inf, (1.0,)),
        Edge((-inf,), EITHER_ZERO, (EITHER_ZERO,)),
        Edge((nan,), nan, (nan,)),
        Edge(("max",), "max", (1.0,)),
        Edge(("-max",), EITHER_ZERO, (EITHER_ZERO,)),
    ),
)

ACTIVATIONS = (
    _unary(
        "relu",
        "activations",
        ref.relu,
        ref.relu_terms,
        kinks=np.abs,
        cost="memory",
        edges=(
            Edge((2.0,), 2.0, (3.0,), g=3.0),
            Edge((-2.0,), 0.0, (0.0,), g=inf),
            Edge((-2.0,), 0.0, (0.0,), g=nan),
            Edge((0.0,), 0.0, (0.0,), g=3.0),
            Edge((-0.0,), 0.0, (0.0,), g=-3.0),
            Edge((inf,), inf, (inf,), g=inf),
            Edge((-inf,), 0.0, (0.0,)),
            Edge((nan,), nan, (0.0,)),
            Edge(("sub",), "sub", (1.0,)),
            Edge(("-sub",), 0.0, (0.0,)),
            Edge((-7,), 0, dtypes=SIGNED),
            Edge((2**53 + 1,), 2**53 + 1, dtypes=("int64", "uint64")),
        ),
    ),
    _unary(
        "leaky_relu",
        "activations",
        ref.leaky_relu,
        ref.leaky_relu_terms,
        kinks=np.abs,
        ulp=2,
        cost="memory",
        cases=_slopes(_ALPHAS, "alpha"),
        backward_kwargs=("alpha",),
        edges=(
            Edge((2.0,), 2.0, (3.0,), g=3.0),
            Edge((-2.0,), -0.02, (0.03,), g=3.0),
            Edge((0.0,), 0.0, (0.01,)),
            Edge((-0.0,), -0.0, (0.01,)),
            *(
                Edge((-2.0,), -2.0 * alpha, (4.0 * alpha,), g=4.0, kwargs={"alpha": alpha})
                for alpha in _ALPHAS
            ),
            *(Edge((2.0,), 2.0, (4.0,), g=4.0, kwargs={"alpha": alpha}) for alpha in _ALPHAS),
            Edge((-2.0,), -4.0, (2.0,), kwargs={"alpha": 2}),
            Edge((inf,), inf, (1.0,)),
            Edge((-inf,), -inf, (0.01,)),
            Edge((nan,), nan, (0.02,), g=2.0),
            Edge(("-max",), -inf, (2.0,), kwargs={"alpha": 2.0}),
        ),
    ),
    Op(
        "prelu",
        "activations",
        ref.prelu,
        ref.prelu_terms,
        domains=(NONZERO, REAL),
        kinks=lambda x, alpha: np.abs(x),
        elementwise=False,
        cost="memory",
        grad_bound=ref.prelu_bound,
        cases=tuple(
            Case(shapes)
            for shapes in [
                ((3, 4), (3, 4)),
                ((2, 3, 3), (3,)),
                ((7,), (7,)),
                ((7,), ()),
                ((), ()),
                ((), (1,)),
                ((4,), (1, 1, 1)),
                ((4, 4), (4,)),
                ((4, 4), (1, 4)),
                ((4, 4), (4, 1)),
                ((2, 3), (3,)),
                ((2, 3, 4), (3, 1)),
                ((2, 3, 4), (2, 3, 4)),
                ((2, 3, 4), ()),
                ((2, 5, 2, 3), (5,)),
                ((0, 3), (3,)),
                ((2, 0), ()),
            ]
        ),
        edges=(
            *(Edge((-2.0, alpha), -2.0 * alpha, (4.0 * alpha, -8.0), g=4.0) for alpha in _ALPHAS),
            *(Edge((2.0, alpha), 2.0, (4.0, 0.0), g=4.0) for alpha in _ALPHAS),
            Edge((0.0, 0.25), 0.0, (0.25, 0.0)),
            Edge((-0.0, 0.25), -0.0, (0.25, EITHER_ZERO)),
            Edge((2.0, 0.5), 2.0, (inf, 0.0), g=inf),
            Edge((2.0, 0.5), 2.0, (nan, 0.0), g=nan),
            Edge((inf, 0.5), inf, (1.0, 0.0)),
            Edge((-inf, 0.5), -inf, (0.5, -inf)),
            Edge((nan, 0.5), nan, (1.0, 0.0), g=2.0),
            Edge((2.0, nan), 2.0, (1.0, 0.0)),
            Edge((-2.0, nan), nan, (nan, -2.0)),
            Edge((-7, 2), -14, dtypes=SIGNED),
            Edge((7, 2), 7, dtypes=INTS),
        ),
        without={"threads": "alpha must not enlarge x; test_activations.py counts its threads"},
    ),
    _unary(
        "sigmoid",
        "activations",
        ref.sigmoid,
        ref.sigmoid_terms,
        saved="output",
        ulp=3,
        like=_float_like,
        edges=(
            Edge((0.0,), 0.5, (0.5,), g=2.0),
            Edge((-0.0,), 0.5, (0.25,)),
            Edge((2.0,), 0.8807970779778824),
            Edge((-2.0,), 0.11920292202211756),
            Edge((-16.0,), 1.12535162055095e-07),
            Edge((-100.0,), 3.720075976020836e-44, dtypes=_WIDE),
            Edge((-740.0,), 4.2e-322, dtypes=("float64",)),
            Edge((inf,), 1.0, (0.0,)),
            Edge((-inf,), 0.0, (0.0,)),
            Edge((nan,), nan, (nan,)),
            Edge(("max",), 1.0, (0.0,)),
            Edge(("-max",), 0.0, (0.0,)),
        ),
    ),
    _unary(
        "gelu",
        "activations",
        ref.gelu,
        ref.gelu_terms,
        ulp=8,
        bound=_gelu_bound,
        like=_float_like,
        grad_ulp=16,
        grad_bound=_terms_bound(ref.gelu_parts),
        cases=(*UNARY, *(Case((shape,), _TANH_FORM) for shape in [(7,), (3, 4), (2, 0, 3), ()])),
        backward_kwargs=("approximate",),
        edges=(
            Edge((0.0,), 0.0, (1.0,), g=2.0),
            Edge((-0.0,), -0.0, (0.5,)),
            Edge((1.0,), 0.8413447460685429, (1.0833154705876864,)),
            Edge((-1.0,), -0.15865525393145705, (-0.0833154705876863,)),
            Edge((-0.75,), -0.16997051428265114),
            Edge((-5.0,), -1.4332578593959695e-06, (-7.146946001792295e-06,)),
            Edge((-12.0,), -2.1317785344932147e-32, (-2.5578956616748956e-31,), dtypes=_WIDE),
            Edge(
                (-37.0,), -2.1184613523340935e-298, (-7.838298669418516e-297,), dtypes=("float64",)
            ),
            Edge((-37.0,), -0.0, dtypes=("float32",)),
            Edge((5.0,), 4.999998566742141, (1.000007146946002,)),
            Edge((inf,), inf, (1.0,)),
            Edge((-inf,), EITHER_ZERO, (EITHER_ZERO,)),
            Edge((nan,), nan, (nan,)),
            Edge(("max",), "max", (1.0,)),
            Edge(("-max",), EITHER_ZERO, (EITHER_ZERO,)),
            Edge((0.0,), 0.0, (1.0,), g=2.0, kwargs=_TANH_FORM),
            Edge((1.0,), 0.8411919906082767, (1.0829640838457826,), kwargs=_TANH_FORM),
            Edge((-1.0,), -0.1588080093917233, (-0.08296408384578255,), kwargs=_TANH_FORM),
            Edge((-3.0,), -0.003637392081773019, (-0.011584166630969726,), kwargs=_TANH_FORM),
            Edge((inf,), inf, (1.0,), kwargs=_TANH_FORM),
            Edge((-inf,), EITHER_ZERO, (EITHER_ZERO,), kwargs=_TANH_FORM),
            Edge((nan,), nan, (nan,), kwargs=_TANH_FORM),
            Edge(("max",), "max", (1.0,), kwargs=_TANH_FORM),
            Edge(("-max",), EITHER_ZERO, (EITHER_ZERO,), kwargs=_TANH_FORM),
        ),
    ),
    _SWISH,
    dataclasses.replace(_SWISH, name="silu"),
    _unary(
        "mish",
        "activations",
        ref.mish,
        ref.mish_terms,
        ulp=4,
        like=_float_like,
        grad_ulp=16,
        grad_bound=_terms_bound(ref.mish_parts),
        edges=(
            Edge((0.0,), 0.0, (1.2,), g=2.0),
            Edge((-0.0,), -0.0, (0.6,)),
            Edge((1.0,), 0.8650983882673103, (1.0490362200997922,)),
            Edge((-1.0,), -0.3034014613741089, (0.05921675587739495,)),
            Edge((-20.0,), -4.122307240628761e-08, (-3.916191874348969e-08,)),
            Edge((-87.0,), -1.431855945041578e-36, (-1.4153978307307554e-36,), dtypes=_WIDE),
            Edge(
                (-700.0,), -6.90177358063184e-302, (-6.891913904088079e-302,), dtypes=("float64",)
            ),
            Edge((40.0,), 40.0, (1.0,)),
            Edge((inf,), inf, (1.0,)),
            Edge((-inf,), EITHER_ZERO, (EITHER_ZERO,)),
            Edge((nan,), nan, (nan,)),
            Edge(("max",), "max", (1.0,)),
            Edge(("-max",), EITHER_ZERO, (EITHER_ZERO,)),
        ),
    ),
    _unary(
        "elu",
        "activations",
        ref.elu,
        ref.elu_terms,
        kinks=np.abs,
        ulp=3,
        like=_float_like,
        cases=_slopes((-0.5, 0.0, 0.25, 2.0), "alpha"),
        backward_kwargs=("alpha",),
        edges=(
            Edge((0.0,), 0.0, (2.0,), g=2.0),
            Edge((-0.0,), -0.0, (0.5,), kwargs={"alpha": 0.5}),
            Edge((2.0,), 2.0, (3.0,), g=3.0),
            Edge((-1.0,), -0.6321205588285577, (0.36787944117144233,)),
            Edge(
                (-1.0,), -0.15803013970713942, (0.18393972058572117,), g=2.0, kwargs={"alpha": 0.25}
            ),
            Edge((-(2.0**-14),), -6.10332936427458e-05, (0.9999389667063573,)),
            Edge((-1e-05,), -9.999950000166666e-06, (0.9999900000499998,), dtypes=("float64",)),
            Edge((-80.0,), -1.0, (1.8048513878454153e-35,), dtypes=_WIDE),
            Edge((inf,), inf, (1.0,)),
            Edge((-inf,), -1.0, (0.0,)),
            Edge((-inf,), -2.0, (0.0,), kwargs={"alpha": 2.0}),
            Edge((nan,), nan, (nan,)),
            Edge(("-sub",), "-sub", (1.0,)),
        ),
    ),
    _unary(
        "softplus",
        "activations",
        ref.softplus,
        ref.softplus_terms,
        ulp=3,
        like=_float_like,
        edges=(
            Edge((0.0,), 0.6931471805599453, (1.0,), g=2.0),
            Edge((-0.0,), 0.6931471805599453, (0.5,)),
            Edge((1.0,), 1.3132616875182228, (0.7310585786300049,)),
            Edge((-10.0,), 4.539889921686465e-05, (4.5397868702434395e-05,)),
            Edge((-80.0,), 1.8048513878454153e-35, (1.8048513878454153e-35,), dtypes=_WIDE),
            Edge((100.0,), 100.0, (1.0,)),
            Edge((inf,), inf, (1.0,)),
            Edge((-inf,), 0.0, (0.0,)),
            Edge((nan,), nan, (nan,)),
            Edge(("max",), "max", (1.0,)),
        ),
    ),
)


# --- losses: operands of one shape, gradients of the first ---------------------------------------

PROBABILITY = Domain(0.02, 0.98, ints=(0, 1))
_SAME_SHAPES = tuple(
    Case((shape, shape)) for shape in [(), (1,), (7,), (0,), (3, 4), (2, 0, 3), (2, 3, 4)]
)
_WITHOUT_BROADCAST = {
    "summed gradients": "operands of a loss are never broadcast, so nothing is summed back",
    "gradient dtypes": "targets are first converted to the predictions' dtype; see test_losses.py",
    "gradient scalars": "a Python scalar goes with a 0-d target alone; test_losses.py has those",
}


def _two_terms(first: Callable[..., Any], second: Callable[..., Any], count: float) -> Any:
    """An error bound of ``count`` roundings of the sum of the magnitudes of two terms."""

    def bound(expected: Any, unit: float, *arguments: Any, **kwargs: Any) -> Any:
        wide = [np.asarray(value, np.longdouble) for value in arguments]
        terms = np.abs(first(*wide)) + np.abs(second(*wide))
        return count * unit * terms + np.abs(expected) * 0

    return bound


def _loss(name: str, reference: Any, gradient: Any, **fields: Any) -> Op:
    defaults: dict[str, Any] = {
        "domains": (REAL, REAL),
        "cases": _SAME_SHAPES,
        "wrt": (0,),
        "broadcasts": False,
        "like": lambda p, t, **_: np.exp(p),
        "ulp": 4,
        "cost": "heavy",
        "without": _WITHOUT_BROADCAST,
        **fields,
    }
    return Op(name, "losses", reference, lambda *a, **k: (gradient(*a, **k),), **defaults)


LOSSES = (
    _loss(
        "mean_squared_error",
        gold.squared,
        gold.squared_gradient,
        cost="memory",
        edges=(
            Edge((3.0, 1.0), 4.0, (12.0,), g=3.0),
            Edge((1.0, 3.0), 4.0, (-12.0,), g=3.0),
            Edge((0.0, -0.0), 0.0, (0.0,)),
            Edge((inf, 1.0), inf, (inf,)),
            Edge((-inf, 1.0), inf, (-inf,)),
            Edge((inf, inf), nan, (nan,)),
            Edge((nan, 0.0), nan, (nan,)),
            Edge(("max", 0.0), inf, (inf,)),
            Edge((1.5, 1.0), 0.25, (nan,), g=nan),
        ),
    ),
    _loss(
        "smooth_l1",
        gold.smooth_l1,
        gold.smooth_l1_gradient,
        kinks=lambda p, t: np.minimum(np.abs(np.abs(p - t) - 1), np.abs(p - t)),
        backward_kwargs=("beta",),
        edges=(
            Edge((0.5, 0.0), 0.125, (1.0,), g=2.0),
            Edge((-0.5, 0.0), 0.125, (-1.0,), g=2.0),
            Edge((1.0, 0.0), 0.5, (2.0,), g=2.0),
            Edge((3.0, 0.0), 2.5, (2.0,), g=2.0),
            Edge((0.0, 3.0), 2.5, (-2.0,), g=2.0),
            Edge((0.0, -0.0), 0.0, (0.0,)),
            Edge((inf, 0.0), inf, (1.0,)),
            Edge((-inf, 0.0), inf, (-1.0,)),
            Edge((nan, 0.0), nan, (nan,)),
            Edge((inf, inf), nan, (nan,)),
            Edge((2.0, 0.0), 2.0, (3.0,), g=3.0, kwargs={"beta": 0.0}),
            Edge((-2.0, 0.0), 2.0, (-3.0,), g=3.0, kwargs={"beta": 0.0}),
            Edge((0.25, 0.0), 0.125, (1.0,), kwargs={"beta": 0.25}),
            Edge((2.0, 0.0), 0.5, (0.5,), kwargs={"beta": 4.0}),
        ),
    ),
    _loss(
        "binary_cross_entropy",
        gold.binary,
        gold.binary_gradient,
        domains=(PROBABILITY, PROBABILITY),
        ulp=6,
        backward_kwargs=("eps",),
        grad_bound=_two_terms(
            lambda g, p, y: g * (1 - y) / np.maximum(1 - p, 1e-7),
            lambda g, p, y: g * y / np.maximum(p, 1e-7),
            16,
        ),
        edges=(
            Edge((0.5, 1.0), 0.6931471805599453, (-4.0,), g=2.0),
            Edge((0.5, 0.0), 0.6931471805599453, (4.0,), g=2.0),
            Edge((0.0, 0.0), 0.0, (1.0,)),
            Edge((1.0, 1.0), 0.0, (-1.0,)),
            Edge((0.0, 1.0), 16.11809565095832, (-1e7,), dtypes=("float32", "float64")),
            Edge((1.0, 0.0), 16.11809565095832, (1e7,), dtypes=("float32", "float64")),
            Edge((0.25, 0.5), 0.8369882167858358, (-1.3333333333333333,), dtypes=("float64",)),
            Edge((0.5, nan), nan, (nan,)),
            Edge((0.5, inf), nan, (-inf,)),
            Edge((0.0, 0.0), 0.0, (1.0,), kwargs={"eps": 0.0}),
            Edge((0.5, 0.0), 0.6931471805599453, (2.0,), kwargs={"eps": 0.25}),
            Edge((0.125, 1.0), 1.3862943611198906, (-4.0,), kwargs={"eps": 0.25}),
        ),
        without={
            **_WITHOUT_BROADCAST,
            "special values": "what is no probability is refused; test_losses.py tries it",
        },
    ),
    _loss(
        "binary_cross_entropy_with_logits",
        gold.binary_logits,
        gold.binary_logits_gradient,
        domains=(REAL, PROBABILITY),
        ulp=8,
        grad_bound=_two_terms(
            lambda g, x, y: g * (1 - y) * gold.sigmoid(x),
            lambda g, x, y: g * y * gold.sigmoid(-x),
            16,
        ),
        edges=(
            Edge((0.0, 1.0), 0.6931471805599453, (-1.0,), g=2.0),
            Edge((0.0, 0.0), 0.6931471805599453, (1.0,), g=2.0),
            Edge((40.0, 0.0), 40.0, (1.0,), dtypes=("float16", "float32")),
            Edge((-40.0, 1.0), 40.0, (-1.0,), dtypes=("float16", "float32")),
            Edge((1e4, 0.0), 1e4, (1.0,)),
            Edge((-1e4, 1.0), 1e4, (-1.0,)),
            Edge((1e4, 1.0), 0.0, (0.0,)),
            Edge((-1e4, 0.0), 0.0, (0.0,)),
            Edge((inf, 1.0), 0.0, (0.0,)),
            Edge((-inf, 0.0), 0.0, (0.0,)),
            Edge((inf, 0.0), inf, (1.0,)),
            Edge((-inf, 1.0), inf, (-1.0,)),
            Edge((inf, 0.5), inf, (0.5,)),
            Edge((nan, 0.0), nan, (nan,)),
            Edge((0.0, 0.5), 0.6931471805599453, (0.0,)),
        ),
        without={
            **_WITHOUT_BROADCAST,
            "special values": "labels lie in 0 … 1; test_losses.py has the special logits",
        },
    ),
)


# --- reduction and softmax ------------------------------------------------------------------------


@dataclass(frozen=True)
class Few(Domain):
    """Few different values: many ties and zeros."""

    values: tuple[int, ...] = (0, 1, 2, 3)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.asarray(rng.choice(self.values, shape), dtype)


def _along(*pairs: tuple[tuple[int, ...], Any], **kwargs: Any) -> tuple[Case, ...]:
    return tuple(Case((shape,), {"axis": axis, **kwargs}) for shape, axis in pairs)


ONE_AXIS = _along(
    ((3, 4), 1),
    ((7,), None),
    ((3, 4), 0),
    ((3, 4), -1),
    ((3, 4), None),
    ((2, 3, 4), 1),
    ((2, 3, 4), -3),
    ((1,), 0),
    ((), None),
    ((3, 1), 1),
    ((3, 1), 0),
    ((0, 3), 1),
    ((2, 3, 0), 0),
)
SEVERAL_AXES = _along(
    ((2, 3, 4), (0, 2)),
    ((2, 3, 4), (1, -1)),
    ((2, 3, 4), (2, 0)),
    ((2, 3, 4), (0, 1, 2)),
    ((2, 3, 4), (1,)),
    ((2, 3, 4), ()),
    ((), ()),
    ((2, 3, 2, 3), (0, 2)),
    ((2, 3, 2, 3), (1, 3)),
)
KEEPDIMS = (
    *_along(((2, 3, 4), 1), ((2, 3, 4), (0, 2)), ((3, 4), None), ((2, 3), ()), keepdims=True),
)
EMPTY_SLICES = _along(((0, 3), 0), ((2, 0, 3), 1), ((2, 0, 3), (1, 2)), ((0,), None))
REDUCTIONS = (*ONE_AXIS, *SEVERAL_AXES, *KEEPDIMS)
# Several blocks and odd ends: rows, columns, the middle, axes apart.
BLOCK_REDUCTIONS = _along(
    ((13, 1031), 1),
    ((13, 1031), 0),
    ((1031, 13), 1),
    ((1031, 13), 0),
    ((3, 1000), 0),
    ((1000, 3), 0),
    ((40_009,), 0),
    ((5, 67, 131), 1),
    ((5, 67, 131), (0, 2)),
    ((3, 5003, 2), 1),
    ((9, 8, 7, 6, 5), (1, 3)),
)
LARGE_REDUCTIONS = _along(
    ((2**21 + 4099,), None),
    ((1451, 1453), 0),
    ((1451, 1453), 1),
    ((7, 401, 802), 1),
    ((7, 401, 802), (0, 2)),
)


def _roundings(shape: tuple[int, ...], axis: Any) -> float:
    """The factor 16 + log2 n of every bound for sums of n terms."""
    return float(16 + np.log2(max(ref.count(shape, axis), 1)))


def _least(u: float) -> float:
    """The smallest number above 0 of the dtype with this unit roundoff: what underflow may take."""
    return float(np.finfo(np.float32 if u > 1e-10 else np.float64).smallest_subnormal)


def _magnitudes(x: Any, axis: Any, keepdims: bool = True) -> Any:
    return np.sum(np.abs(np.asarray(x, np.longdouble)), axis=axis, keepdims=keepdims)


def _sum_bound(expected: Any, u: float, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _roundings(x.shape, axis) * u * _magnitudes(x, axis, keepdims)


def _mean_bound(expected: Any, u: float, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _sum_bound(expected, u, x, axis, keepdims) / max(ref.count(x.shape, axis), 1)


def _variance_bound(
    expected: Any, u: float, x: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0
) -> Any:
    """The corrected two-pass formula.

    The squares are sums of positive terms, each of 3 roundings. The correction takes out what the
    error of the mean adds to them; what it adds is rounded with them. Squares may underflow.
    """
    n = max(ref.count(x.shape, axis), 1)
    off = n * _mean_bound(expected, u, x, axis, keepdims) ** 2 / max(n - ddof, 1)
    return (4 + _roundings(x.shape, axis)) * u * (expected + off) + n * _least(u)


def _std_bound(
    expected: Any, u: float, x: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0
) -> Any:
    """|√v' − √v| is at most |v' − v|/√v, and at most √|v' − v|; the root rounds once."""
    error = _variance_bound(expected * expected, u, x, axis, keepdims, ddof)
    return u * expected + np.minimum(error / np.where(expected > 0, expected, 1), np.sqrt(error))


def _logsumexp_bound(
    expected: Any, u: float, x: Any, axis: Any = None, keepdims: bool = False
) -> Any:
    """The bound for |x − max| = 0, and the rounding of the result, which is as large as max."""
    return u * (_roundings(x.shape, axis) + np.abs(expected))


def _softmax_bound(expected: Any, u: float, x: Any, axis: Any = -1) -> Any:
    """exp(x − max) is off by |x − max| roundings of the difference, relative to itself."""
    wide = np.asarray(x, np.longdouble)
    depth = np.abs(wide - ref.top(wide, axis))
    depth = np.where(np.isfinite(depth), depth, 0)
    return (_roundings(x.shape, axis) + depth) * u * expected + _least(u)


def _log_softmax_bound(expected: Any, u: float, x: Any, axis: Any = -1) -> Any:
    wide = np.asarray(x, np.longdouble)
    depth = np.abs(wide - ref.top(wide, axis))
    return _roundings(x.shape, axis) * u * np.maximum(1, np.where(np.isfinite(depth), depth, 1))


def _variance_grad_bound(
    expected: Any, u: float, g: Any, x: Any, axis: Any = None, ddof: float = 0
) -> Any:
    """The error of the mean, and 8 roundings of difference, products and quotient."""
    off = _mean_bound(expected, u, x, axis, True)
    slope = np.abs(ref.keep(g, x.shape, axis)) * 2 / max(ref.count(x.shape, axis) - ddof, 1e-300)
    return slope * off + 8 * u * np.abs(expected)


def _std_grad_bound(
    expected: Any, u: float, g: Any, x: Any, output: Any, axis: Any = None, ddof: float = 0
) -> Any:
    root = np.maximum(2 * ref.keep(output, x.shape, axis), 1e-10)
    by_variance = _variance_grad_bound(0 * expected, u, g, x, axis, ddof)
    return by_variance / root + 8 * u * np.abs(expected)


def _logsumexp_grad_bound(
    expected: Any, u: float, g: Any, x: Any, output: Any, axis: Any = None
) -> Any:
    """A product of 4 ULP, and the rounding of x − output, which exp makes relative."""
    depth = np.abs(x - ref.keep(output, x.shape, axis))
    return (8 + depth) * u * np.abs(expected)


def _softmax_grad_bound(expected: Any, u: float, g: Any, output: Any, axis: Any = -1) -> Any:
    terms = np.abs(g) + _magnitudes(g * output, axis)
    return _roundings(output.shape, axis) * u * np.abs(output) * terms


def _log_softmax_grad_bound(expected: Any, u: float, g: Any, output: Any, axis: Any = -1) -> Any:
    terms = np.abs(g) + np.exp(output) * _magnitudes(g, axis)
    return _roundings(output.shape, axis) * u * terms


def _grad_shapes(shape: tuple[int, ...], axis: Any = None, **_: Any) -> set[tuple[int, ...]]:
    """grad_output with and without the kept axes."""
    axes = ref._axes(axis, len(shape))
    return {ref.kept_shape(shape, axis), tuple(n for i, n in enumerate(shape) if i not in axes)}


def _gaps(x: Any) -> Any:
    """Distance of any two elements: no slice comes near a tie."""
    return np.diff(np.sort(np.asarray(x, np.float64).ravel()))


def _float_like(x: Any, **_: Any) -> np.ndarray:
    return np.empty((), x.dtype if x.dtype.kind == "f" else np.float64)


def _exp_like(x: Any, **_: Any) -> Any:
    return np.exp(x)


def _with_output(inputs: tuple[Any, ...], output: Any) -> tuple[Any, ...]:
    return (*inputs, output)


def _reduction(name: str, reference: Any, terms: Any = None, **fields: Any) -> Op:
    defaults: dict[str, Any] = {
        "category": "reduction",
        "domains": (REAL,),
        "cases": REDUCTIONS,
        "blocks": BLOCK_REDUCTIONS,
        "large": LARGE_REDUCTIONS,
        "elementwise": False,
        "backward_kwargs": ("axis", "ddof"),
        "grad_shapes": _grad_shapes,
        **fields,
    }
    return Op(name, defaults.pop("category"), reference, terms, **defaults)


def _swapped(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Edge points of max_reduce for min_reduce: every input and value with the other sign."""

    def negative(value: Any) -> Any:
        return value if isinstance(value, str) else (-np.asarray(value)).tolist()

    return tuple(
        dataclasses.replace(
            edge, inputs=tuple(map(negative, edge.inputs)), value=negative(edge.value)
        )
        for edge in edges
    )


_LARGEST = (
    Edge(([1.0, 5.0, 3.0],), 5.0, ([0.0, 2.0, 0.0],), g=2.0),
    Edge(([3.0, 1.0, 3.0],), 3.0, ([3.0, 0.0, 3.0],), g=6.0),
    Edge(([2.0, 2.0, 2.0, 2.0],), 2.0, ([0.25, 0.25, 0.25, 0.25],)),
    Edge(([0.0, -0.0],), EITHER_ZERO, ([0.5, 0.5],)),
    Edge(([nan, 1.0, inf],), nan, ([1.0, 0.0, 0.0],)),
    Edge(([1.0, nan, 2.0, nan],), nan, ([0.0, 1.0, 0.0, 1.0],), g=2.0),
    Edge(([-inf, -inf],), -inf, ([0.5, 0.5],)),
    Edge(([-inf, 1.0, inf],), inf, ([0.0, 0.0, 3.0],), g=3.0),
    Edge(([1.0, 2.0],), 2.0, ([0.0, nan],), g=nan),
    Edge(([1.0, 2.0],), 2.0, ([0.0, inf],), g=inf),
    Edge(
        ([[1.0, 4.0], [4.0, 4.0]],),
        [4.0, 4.0],
        ([[0.0, 5.0], [1.0, 5.0]],),
        g=[1.0, 10.0],
        kwargs={"axis": 0},
    ),
    Edge(
        ([[1.0, 4.0], [4.0, 4.0]],),
        [4.0, 4.0],
        ([[0.0, 1.0], [5.0, 5.0]],),
        g=[1.0, 10.0],
        kwargs={"axis": 1},
    ),
    Edge(([[1.0, 4.0], [4.0, 4.0]],), 4.0, ([[0.0, 1.0], [1.0, 1.0]],), g=3.0),
    Edge((7.0,), 7.0, (2.0,), g=2.0),
    Edge(([2**53, 2**53 + 1],), 2**53 + 1, dtypes=("int64",)),
)

_FIRST = (
    Edge(([1.0, 5.0, 5.0],), 1),
    Edge(([nan, 5.0, nan],), 0),
    Edge(([5.0, inf, nan, nan],), 2),
    Edge(([-inf, -inf],), 0),
    Edge(([0.0, -0.0],), 0),
    Edge(([-0.0, 0.0],), 0),
    Edge(([[1.0, 2.0], [3.0, 2.0]],), 2),
    Edge(([[1.0, 2.0], [3.0, 2.0]],), [1, 0], kwargs={"axis": 0}),
    Edge((7.0,), 0),
    Edge(([2**53, 2**53 + 1],), 1, dtypes=("int64",)),
    Edge(([-128, 127],), 1, dtypes=("int8",)),
    Edge(([False, True, True],), 1, dtypes=("bool",)),
)

_LN2 = 0.69314718055994530942
_LN3 = 1.0986122886681098

REDUCTION = (
    _reduction(
        "sum",
        np.sum,
        ref.sum_terms,
        saved="shapes",
        cases=(*REDUCTIONS, *EMPTY_SLICES),
        bound=_sum_bound,
        ulp=1,
        grad_bound=lambda expected, *_, **__: 0 * expected,
        cost="memory",
        edges=(
            Edge(([1.0, 2.0, 4.0],), 7.0, ([3.0, 3.0, 3.0],), g=3.0),
            Edge(([-0.0, -0.0],), 0.0, ([0.0, 0.0],), g=0.0),
            Edge(([inf, 1.0],), inf, ([inf, inf],), g=inf),
            Edge(([inf, -inf],), nan, ([nan, nan],), g=nan),
            Edge(([nan, 1.0],), nan, ([1.0, 1.0],)),
            Edge(([60000.0, 60000.0, -60000.0, -60000.0],), 0.0),
            Edge(([1.0] * 4096,), 4096.0),
            Edge(
                ([[1.0, 2.0], [3.0, 4.0]],),
                [4.0, 6.0],
                ([[1.0, 10.0], [1.0, 10.0]],),
                g=[1.0, 10.0],
                kwargs={"axis": 0},
            ),
            Edge(
                ([[1.0, 2.0], [3.0, 4.0]],),
                [3.0, 7.0],
                ([[1.0, 1.0], [10.0, 10.0]],),
                g=[1.0, 10.0],
                kwargs={"axis": 1},
            ),
            Edge((5.0,), 5.0, (2.0,), g=2.0),
            Edge(([127, 1],), 128, dtypes=("int8",)),
            Edge(([255, 1],), 256, dtypes=("uint8",)),
            Edge(([True, True, False],), 2, dtypes=("bool",)),
            Edge(([2**63 - 1, 1],), -(2**63), dtypes=("int64",)),
            Edge(([2**53, 1, 2],), 2**53 + 3, dtypes=("int64", "uint64")),
        ),
    ),
    _reduction(
        "mean",
        ref.mean,
        ref.mean_terms,
        saved="shapes",
        like=_float_like,
        cases=(*REDUCTIONS, *EMPTY_SLICES),
        bound=_mean_bound,
        ulp=1,
        grad_bound=lambda expected, u, *_, **__: u * np.abs(expected),
        cost="memory",
        edges=(
            Edge(([1.0, 2.0],), 1.5, ([1.5, 1.5],), g=3.0),
            Edge(([0.0, -0.0],), 0.0, ([0.5, 0.5],)),
            Edge(([inf, -1.0],), inf, ([inf, inf],), g=inf),
            Edge(([inf, -inf],), nan),
            Edge(([nan, 1.0, 2.0, 3.0],), nan, ([0.25] * 4,)),
            Edge(([60000.0, 60000.0],), 60000.0),
            # divided by the size of the axis, not by that of the tensor
            Edge(
                ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],),
                [1.5, 3.5, 5.5],
                ([[0.5, 0.5], [5.0, 5.0], [50.0, 50.0]],),
                g=[1.0, 10.0, 100.0],
                kwargs={"axis": 1},
            ),
            Edge((5.0,), 5.0, (2.0,), g=2.0),
            Edge(([127, 127],), 127.0, dtypes=("int8",)),
            Edge(([True, False],), 0.5, dtypes=("bool",)),
        ),
    ),
    _reduction(
        "max_reduce",
        np.max,
        ref.max_terms,
        kinks=_gaps,
        either_zero=True,
        # equal shares: one division
        grad_bound=lambda expected, u, *_, **__: u * np.abs(expected),
        cost="memory",
        edges=_LARGEST,
    ),
    _reduction(
        "min_reduce",
        np.min,
        ref.min_terms,
        kinks=_gaps,
        either_zero=True,
        grad_bound=lambda expected, u, *_, **__: u * np.abs(expected),
        cost="memory",
        edges=_swapped(_LARGEST),
    ),
    _reduction(
        "variance",
        ref.variance,
        ref.variance_terms,
        like=_float_like,
        cases=(
            *REDUCTIONS,
            *EMPTY_SLICES,
            *_along(((3, 4), 1), ((2, 3, 4), (0, 2)), ((7,), None), ddof=1),
            *_along(((3, 4), 0), ddof=0.5),
        ),
        bound=_variance_bound,
        ulp=4,
        grad_bound=_variance_grad_bound,
        edges=(
            Edge(([1.0, 3.0],), 1.0, ([-2.0, 2.0],), g=2.0),
            Edge(([1.0, 2.0, 3.0, 4.0],), 1.25, ([-0.75, -0.25, 0.25, 0.75],)),
            Edge(([1.0, 3.0],), 2.0, ([-4.0, 4.0],), g=2.0, kwargs={"ddof": 1}),
            Edge(([1.0, 3.0],), inf, kwargs={"ddof": 2}),
            Edge(([1.0, 3.0],), inf, kwargs={"ddof": 7}),
            Edge(([2.0],), nan, kwargs={"ddof": 1}),
            Edge(([2.0, 2.0, 2.0],), 0.0, ([0.0, 0.0, 0.0],)),
            Edge(([0.0],), 0.0, ([0.0],)),
            Edge(([inf, 1.0],), nan, ([nan, -inf],)),
            Edge(([nan, 1.0],), nan, ([nan, nan],)),
            Edge(
                ([[1.0, 3.0], [5.0, 9.0]],),
                [1.0, 4.0],
                ([[-1.0, 1.0], [-20.0, 20.0]],),
                g=[1.0, 10.0],
                kwargs={"axis": 1},
            ),
            Edge(
                ([[1.0, 3.0], [5.0, 9.0]],),
                [4.0, 9.0],
                ([[-2.0, -30.0], [2.0, 30.0]],),
                g=[1.0, 10.0],
                kwargs={"axis": 0},
            ),
            Edge(([-128, 127],), 16256.25, dtypes=("int8",)),
        ),
    ),
    _reduction(
        "std",
        ref.std,
        ref.std_terms,
        saved=_with_output,
        like=_float_like,
        cases=(
            # slices of one element have no deviation: their root is a kink, see the edge points
            *(case for case in REDUCTIONS if ref.count(case.shapes[0], case.kwargs["axis"]) > 1),
            *EMPTY_SLICES,
            *_along(((3, 4), 1), ((2, 3, 4), (0, 2)), ((7,), None), ddof=1),
        ),
        bound=_std_bound,
        ulp=4,
        grad_bound=_std_grad_bound,
        edges=(
            Edge(([1.0, 3.0],), 1.0, ([-1.0, 1.0],), g=2.0),
            Edge(
                ([1.0, 3.0],),
                1.4142135623730951,
                ([-1.4142135623730951, 1.4142135623730951],),
                g=2.0,
                kwargs={"ddof": 1},
            ),
            Edge(([2.0, 2.0, 2.0],), 0.0, ([0.0, 0.0, 0.0],)),
            Edge(([2.0, 2.0, 2.0],), 0.0, ([0.0, 0.0, 0.0],), g=nan),
            Edge(([2.0, 2.0, 2.0],), 0.0, ([0.0, 0.0, 0.0],), g=-inf),
            Edge(([0.0],), 0.0, ([0.0],)),
            Edge((5.0,), 0.0, (0.0,)),
            Edge(([2.0],), nan, kwargs={"ddof": 1}),
            Edge(([inf, 1.0],), nan, ([nan, nan],)),
            Edge(([nan, 1.0],), nan, ([nan, nan],)),
            Edge(
                ([[1.0, 3.0], [5.0, 9.0]],),
                [1.0, 2.0],
                ([[-0.5, 0.5], [-5.0, 5.0]],),
                g=[1.0, 10.0],
                kwargs={"axis": 1},
            ),
            # 2·std = 4e-11 is below eps: g·2·(x − mean)/n/eps
            Edge(([2e-11, -2e-11],), 2e-11, ([0.2, -0.2],), dtypes=("float64",)),
        ),
    ),
    _reduction(
        "logsumexp",
        ref.logsumexp,
        ref.logsumexp_terms,
        saved=_with_output,
        like=_exp_like,
        cases=(*REDUCTIONS, *EMPTY_SLICES),
        bound=_logsumexp_bound,
        ulp=2,
        grad_bound=_logsumexp_grad_bound,
        cost="heavy",
        edges=(
            Edge(([0.0, 0.0],), _LN2, ([1.0, 1.0],), g=2.0),
            Edge(([1000.0, 1000.0],), 1000 + _LN2),
            Edge(([-1000.0, -1000.0],), -1000 + _LN2),
            Edge(([10000.0, -10000.0],), 10000.0, ([3.0, 0.0],), g=3.0),
            Edge(([-inf, 2.0],), 2.0, ([0.0, 3.0],), g=3.0),
            Edge(([-inf, -inf],), -inf),
            Edge(([inf, 1.0],), inf),
            Edge(([inf, -inf],), inf),
            Edge(([nan, 1.0],), nan, ([nan, nan],)),
            Edge(([nan, inf],), nan, ([nan, nan],)),
            Edge((5.0,), 5.0, (2.0,), g=2.0),
            Edge(([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]],), [_LN3, _LN3], g=1.0, kwargs={"axis": 0}),
        ),
    ),
    _reduction(
        "argmax",
        np.argmax,
        cases=ONE_AXIS,
        domains=(Few(),),
        large=tuple(c for c in LARGE_REDUCTIONS if not isinstance(c.kwargs["axis"], tuple)),
        blocks=tuple(c for c in BLOCK_REDUCTIONS if not isinstance(c.kwargs["axis"], tuple)),
        edges=_FIRST,
    ),
    _reduction(
        "argmin",
        np.argmin,
        cases=ONE_AXIS,
        domains=(Few(),),
        large=tuple(c for c in LARGE_REDUCTIONS if not isinstance(c.kwargs["axis"], tuple)),
        blocks=tuple(c for c in BLOCK_REDUCTIONS if not isinstance(c.kwargs["axis"], tuple)),
        edges=(
            Edge(([5.0, 1.0, 1.0],), 1),
            Edge(([nan, 1.0, nan],), 0),
            Edge(([5.0, -inf, nan, nan],), 2),
            Edge(([inf, inf],), 0),
            Edge(([0.0, -0.0],), 0),
            Edge(([-0.0, 0.0],), 0),
            Edge(([[1.0, 2.0], [3.0, 1.0]],), 0),
            Edge(([[1.0, 2.0], [3.0, 1.0]],), [0, 1], kwargs={"axis": 0}),
            Edge((7.0,), 0),
            Edge(([2**53 + 1, 2**53],), 1, dtypes=("int64",)),
            Edge(([127, -128],), 1, dtypes=("int8",)),
            Edge(([True, False, False],), 1, dtypes=("bool",)),
        ),
    ),
    _reduction(
        "any",
        np.any,
        cases=(*REDUCTIONS, *EMPTY_SLICES),
        domains=(Few(values=(0, 0, 0, 0, 0, 1)),),
        edges=(
            Edge(([0.0, -0.0],), False),
            Edge(([0.0, nan],), True),
            Edge(([-inf, 0.0],), True),
            Edge(([[0.0, 1.0], [0.0, 0.0]],), [True, False], kwargs={"axis": 1}),
            Edge(([0, 256],), True, dtypes=("int16", "int32", "int64")),
        ),
        without={"threads": "of numbers NumPy's own loops; test_reduction.py has bools"},
    ),
    _reduction(
        "all",
        np.all,
        cases=(*REDUCTIONS, *EMPTY_SLICES),
        domains=(Few(values=(0, 1, 1, 1, 1, 1)),),
        edges=(
            Edge(([1.0, -0.0],), False),
            Edge(([1.0, nan],), True),
            Edge(([-inf, inf],), True),
            Edge(([[0.0, 1.0], [1.0, 2.0]],), [False, True], kwargs={"axis": 1}),
            Edge(([1, 256],), True, dtypes=("int16", "int32", "int64")),
        ),
        without={"threads": "of numbers NumPy's own loops; test_reduction.py has bools"},
    ),
)

_ALONG = (
    *ONE_AXIS,
    *SEVERAL_AXES,
    *_along(((0, 3), 0), ((2, 0, 3), (1, 2))),
    Case(((3, 4),)),
)
# 1 and 0 by underflow, exactly; NaN by the rule for +inf, NaN and only -inf
_NO_SOFTMAX = (
    Edge(([nan, 1.0, -inf],), [nan, nan, nan], ([nan, nan, nan],)),
    Edge(([inf, 1.0],), [nan, nan]),
    Edge(([inf, inf],), [nan, nan]),
    Edge(([-inf, -inf],), [nan, nan], ([nan, nan],)),
)

SOFTMAX = (
    _reduction(
        "softmax",
        ref.softmax,
        ref.softmax_terms,
        category="activations",
        saved="output",
        like=_exp_like,
        cases=_ALONG,
        grad_shapes=None,
        bound=_softmax_bound,
        ulp=4,
        grad_bound=_softmax_grad_bound,
        cost="heavy",
        edges=(
            Edge(([0.0, 0.0],), [0.5, 0.5], ([0.25, -0.25],), g=[1.0, 0.0]),
            Edge(
                ([0.0, 0.0, 0.0, 0.0],),
                [0.25] * 4,
                ([0.75, -0.25, -0.25, -0.25],),
                g=[4.0, 0.0, 0.0, 0.0],
            ),
            Edge(([0.0, _LN3],), [0.25, 0.75], dtypes=("float32", "float64")),
            Edge(([10000.0, -10000.0],), [1.0, 0.0], ([0.0, 0.0],), g=[1.0, 3.0]),
            Edge(([-10000.0, -10000.0],), [0.5, 0.5]),
            Edge(([-inf, 2.0],), [0.0, 1.0], ([0.0, 0.0],), g=[5.0, 3.0]),
            Edge(([[0.0, 5.0], [0.0, 5.0]],), [[0.5, 0.5], [0.5, 0.5]], kwargs={"axis": 0}),
            Edge(([[1.0, 1.0], [1.0, 1.0]],), [[0.25, 0.25], [0.25, 0.25]], kwargs={"axis": None}),
            Edge(([7.0],), [1.0], ([0.0],)),
            *_NO_SOFTMAX,
        ),
    ),
    _reduction(
        "log_softmax",
        ref.log_softmax,
        ref.log_softmax_terms,
        category="activations",
        saved="output",
        like=_exp_like,
        cases=_ALONG,
        grad_shapes=None,
        bound=_log_softmax_bound,
        ulp=4,
        grad_bound=_log_softmax_grad_bound,
        cost="heavy",
        edges=(
            Edge(
                ([0.0, 0.0],),
                [-_LN2, -_LN2],
                ([0.5, -0.5],),
                g=[1.0, 0.0],
                dtypes=("float32", "float64"),
            ),
            Edge(([10000.0, -10000.0],), [0.0, -20000.0], ([-1.0, 1.0],), g=[3.0, 1.0]),
            Edge(([-10000.0, -10000.0],), [-_LN2, -_LN2]),
            Edge(([-inf, 2.0],), [-inf, 0.0], ([1.0, -1.0],), g=[1.0, 2.0]),
            Edge(([[0.0, 5.0], [0.0, 5.0]],), [[-_LN2, -_LN2], [-_LN2, -_LN2]], kwargs={"axis": 0}),
            Edge(([7.0],), [0.0], ([0.0],)),
            *_NO_SOFTMAX,
        ),
    ),
)


# --- matrix ---------------------------------------------------------------------------------------


def _matmul_bound(expected: Any, u: float, a: Any, b: Any) -> Any:
    wide = [np.abs(np.asarray(x, np.longdouble)) for x in (a, b)]
    return a.shape[-1] * (1.01 * u * np.matmul(*wide) + _least(u))  # a product may underflow


def _matmul_grad_bound(expected: Any, u: float, g: Any, a: Any, b: Any) -> tuple[Any, ...]:
    """As many products as the sum has, over broadcast batches too."""
    products = g.size * a.shape[-1]
    return tuple(
        1.01 * products / max(x.size, 1) * u * magnitude
        for x, magnitude in zip((a, b), ref.matmul_terms(*map(np.abs, (g, a, b))), strict=True)
    )


def _outer_grad_bound(expected: Any, u: float, g: Any, a: Any, b: Any) -> tuple[Any, ...]:
    by_a, by_b = ref.outer_terms(*map(np.abs, (g, a, b)))
    return 1.01 * b.size * u * by_a, 1.01 * a.size * u * by_b


def _linear_bound(expected: Any, u: float, x: Any, weight: Any, bias: Any) -> Any:
    """One addition more than matmul."""
    wide = [np.abs(np.asarray(value, np.longdouble)) for value in (x, weight, bias)]
    return 1.01 * (x.shape[-1] + 1) * u * ref.linear(*wide)


def _linear_grad_bound(expected: Any, u: float, g: Any, x: Any, weight: Any) -> tuple[Any, ...]:
    by_x, by_weight, by_bias = ref.linear_terms(*map(np.abs, (g, x, weight)))
    rows = int(np.prod(g.shape[:-1]))
    return (
        1.01 * weight.shape[0] * u * by_x,
        1.01 * rows * u * by_weight,
        (16 + np.log2(max(rows, 1))) * u * by_bias,
    )


def _pairs(*shapes: tuple[tuple[int, ...], ...]) -> tuple[Case, ...]:
    return tuple(Case(shape) for shape in shapes)


_SMALL_INTS = Domain(ints=(-10, 10))

MATRIX = (
    Op(
        "matmul",
        "matrix",
        np.matmul,
        ref.matmul_terms,
        domains=(_SMALL_INTS, _SMALL_INTS),
        cases=_pairs(
            ((2, 3), (3, 2)),
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 4)),
            ((2, 3), (3, 4)),
            ((3, 3), (3, 3)),
            ((2, 3, 4), (2, 4, 5)),
            ((2, 3, 4), (4, 5)),
            ((3, 4), (2, 4, 5)),
            ((1, 3, 4), (7, 4, 5)),
            ((2, 1, 3, 4), (5, 4, 6)),
            ((2, 5, 3, 4), (5, 4, 1)),
            ((4, 4, 4), (4, 4, 4)),
            ((2, 3, 4), (4,)),
            ((4,), (2, 4, 3)),
            ((4,), (3, 2, 4, 1)),
            ((1, 1), (1, 1)),
            ((5, 1), (1, 5)),
            ((1, 5), (5, 1)),
            ((2, 0), (0, 3)),
            ((0, 3), (3, 2)),
            ((2, 3), (3, 0)),
            ((0,), (0,)),
            ((0, 2, 3), (3, 4)),
            ((1, 2, 3), (0, 3, 4)),
            ((2, 2, 0), (2, 0, 3)),
        ),
        blocks=_pairs(
            ((37, 67), (67, 41)),
            ((67,), (67, 131)),
            ((131, 67), (67,)),
            ((2, 25, 33), (33, 17)),
            ((3, 1, 13, 19), (4, 19, 33)),
            ((1031,), (1031,)),
        ),
        large=_pairs(
            ((257, 263), (263, 269)),
            ((1501, 1499), (1499,)),
            ((1499,), (1499, 1501)),
            ((64, 48, 56), (64, 56, 40)),
            ((64, 48, 56), (56, 40)),
            ((7, 1, 65, 64), (9, 64, 63)),
        ),
        bound=_matmul_bound,
        ulp=1,
        grad_bound=_matmul_grad_bound,
        elementwise=False,
        cost="heavy",
        edges=(
            Edge(
                ([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]),
                [21.0, 43.0],
                ([[1.0, 10.0], [2.0, 20.0]], [7.0, 10.0]),
                g=[1.0, 2.0],
            ),
            Edge(
                ([[1.0, 2.0]], [[3.0], [4.0]]), [[11.0]], ([[30.0, 40.0]], [[10.0], [20.0]]), g=10.0
            ),
            Edge(([[0.0, 1.0]], [[inf], [1.0]]), [[nan]]),
            Edge(([[1.0, 1.0]], [[inf], [-inf]]), [[nan]]),
            Edge(([[nan, 0.0], [1.0, 1.0]], [[1.0], [2.0]]), [[nan], [3.0]]),
            Edge(([[0.0, -0.0]], [[1.0], [1.0]]), [[0.0]]),
            Edge(([256.0, 256.0], [256.0, -256.0]), 0.0),  # float32 sums of float16
            Edge(([2**53, 1], [1, 1]), 2**53 + 1, dtypes=("int64", "uint64")),
            Edge(([[16, 16]], [[16], [16]]), [[0]], dtypes=("int8", "uint8")),
        ),
    ),
    Op(
        "dot",
        "matrix",
        np.dot,
        ref.matmul_terms,
        domains=(_SMALL_INTS, _SMALL_INTS),
        cases=_pairs(((4,), (4,)), ((1,), (1,)), ((7,), (7,)), ((0,), (0,))),
        blocks=_pairs(((1031,), (1031,)), ((40_009,), (40_009,))),
        large=_pairs(((2**21 + 4099,), (2**21 + 4099,))),
        bound=_matmul_bound,
        ulp=1,
        grad_bound=_matmul_grad_bound,
        elementwise=False,
        edges=(
            Edge(([1.0, 2.0], [3.0, 4.0]), 11.0, ([6.0, 8.0], [2.0, 4.0]), g=2.0),
            Edge(([0.0], [inf]), nan, ([inf], [0.0])),
            Edge(([nan, 1.0], [1.0, 1.0]), nan),
            Edge(([1.0, 1.0], [inf, -inf]), nan),
            Edge(([100, 100], [100, 100]), 32, dtypes=("int8",)),
        ),
    ),
    Op(
        "outer",
        "matrix",
        np.outer,
        ref.outer_terms,
        domains=(_SMALL_INTS, _SMALL_INTS),
        cases=_pairs(
            ((3,), (4,)), ((1,), (1,)), ((5,), (2,)), ((4,), (4,)), ((0,), (3,)), ((3,), (0,))
        ),
        blocks=_pairs(((131,), (67,)), ((3,), (5003,)), ((5003,), (3,))),
        large=_pairs(((1451,), (1453,))),
        grad_bound=_outer_grad_bound,
        elementwise=False,
        cost="memory",
        edges=(
            Edge(([1.0, 2.0], [3.0, 4.0]), [[3.0, 4.0], [6.0, 8.0]], ([7.0, 7.0], [3.0, 3.0])),
            Edge(([0.0, inf], [1.0, 0.0]), [[0.0, 0.0], [inf, nan]]),
            Edge(([nan], [1.0, 2.0]), [[nan, nan]]),
            Edge(([0.0, -0.0, 1.0], [-1.0, 0.0]), [[-0.0, 0.0], [0.0, -0.0], [-1.0, 0.0]]),
            Edge(([16], [16, 1]), [[0, 16]], dtypes=("int8", "uint8")),
        ),
    ),
    Op(
        "linear",
        "matrix",
        ref.linear,
        ref.linear_terms,
        saved=lambda inputs, output: inputs[:2],
        domains=(_SMALL_INTS, _SMALL_INTS, _SMALL_INTS),
        cases=_pairs(
            ((2, 3), (4, 3), (4,)),
            ((3,), (4, 3), (4,)),
            ((5, 3), (3, 3), (3,)),
            ((2, 2, 3), (4, 3), (4,)),
            ((2, 1, 2, 3), (1, 3), (1,)),
            ((1, 1), (1, 1), (1,)),
            ((3, 1), (2, 1), (2,)),
            ((0, 3), (4, 3), (4,)),
            ((2, 0), (4, 0), (4,)),
            ((2, 3), (0, 3), (0,)),
        ),
        blocks=_pairs(
            ((37, 67), (41, 67), (41,)), ((2, 13, 33), (17, 33), (17,)), ((67,), (131, 67), (131,))
        ),
        large=_pairs(((257, 263), (269, 263), (269,)), ((9, 65, 64), (63, 64), (63,))),
        bound=_linear_bound,
        ulp=1,
        grad_bound=_linear_grad_bound,
        elementwise=False,
        cost="heavy",
        edges=(
            Edge(
                ([[1.0, 2.0]], [[3.0, 4.0]], [0.5]),
                [[11.5]],
                ([[30.0, 40.0]], [[10.0, 20.0]], [10.0]),
                g=10.0,
            ),
            Edge(
                ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0]], [0.0]),
                [[1.0], [3.0]],
                ([[1.0, 0.0], [10.0, 0.0]], [[31.0, 42.0]], [11.0]),
                g=[[1.0], [10.0]],
            ),
            Edge(([0.0], [[inf]], [1.0]), [nan]),
            Edge(([1.0], [[2.0]], [nan]), [nan], ([2.0], [[1.0]], [1.0])),
        ),
        without={"bad inputs": "bias=None is a valid call; test_matrix.py tests the others"},
    ),
    _unary(
        "transpose",
        "matrix",
        np.transpose,
        ref.transpose_terms,
        saved="nothing",
        cases=(
            Case(((3, 4),)),
            Case(((7,),)),
            Case(((2, 3, 4),)),
            Case(((),)),
            Case(((0, 3),)),
            Case(((2, 3, 4),), {"axes": (1, 2, 0)}),
            Case(((2, 3, 4),), {"axes": (0, -1, 1)}),
            Case(((4, 4, 4),), {"axes": (2, 0, 1)}),
            Case(((2, 1, 3, 2),), {"axes": (3, 1, 0, 2)}),
        ),
        grad_ulp=0,
        elementwise=False,
        view=True,
        backward_kwargs=("axes",),
        cost="memory",
        edges=(
            Edge(
                ([[0.0, nan], [-0.0, inf]],),
                [[0.0, -0.0], [nan, inf]],
                ([[1.0, 3.0], [2.0, 4.0]],),
                g=[[1.0, 2.0], [3.0, 4.0]],
            ),
        ),
        without={"threads": "a view: nothing is computed"},
    ),
)


ROWS: tuple[Op, ...] = (
    *ARITHMETIC,
    *COMPARISON,
    *ELEMENTWISE,
    *ACTIVATIONS,
    *LOSSES,
    *REDUCTION,
    *SOFTMAX,
    *MATRIX,
)
BY_NAME = {row.name: row for row in ROWS}

# Public names that are no ops, and the file that tests them.
NOT_OPS: dict[str, tuple[str, ...]] = {
    "test_tensor.py": ("ExTensor", "asarray", "tensor", "from_dlpack"),
    "test_creation.py": (
        *("zeros", "ones", "empty", "full", "arange", "eye", "linspace", "one_hot"),
        *("zeros_like", "ones_like", "empty_like", "full_like"),
    ),
    "test_dtypes.py": DTYPES,
    "test_shape.py": (
        *("reshape", "flatten", "ravel", "squeeze", "unsqueeze", "expand_dims", "concatenate"),
        *("stack", "split", "broadcast_to", "permute", "cast", "reshape_backward"),
        *("flatten_backward", "ravel_backward", "squeeze_backward", "unsqueeze_backward"),
        *("expand_dims_backward", "concatenate_backward", "stack_backward", "split_backward"),
        *("broadcast_to_backward", "permute_backward", "cast_backward", "getitem_backward"),
    ),
    "test_reduction.py": ("max", "min"),
    "test_broadcasting.py": (
        *("broadcast_shapes", "are_shapes_broadcastable"),
        *("compute_broadcast_strides", "reduce_broadcast_dims"),
    ),
    "test_gradcheck.py": (
        *("compute_numerical_gradient", "assert_gradients_close", "check_gradient"),
    ),
    "test_losses.py": ("cross_entropy", "cross_entropy_backward"),
    "test_optimizers.py": (
        *("SGD", "Adam", "AdamW", "RMSprop", "sgd_step", "clip_grad_norm", "clip_grad_value"),
        *("StepLR", "CosineAnnealingLR", "WarmupLR", "Parameter", "ParameterDict"),
        *("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal"),
    ),
    "test_threads.py": ("set_num_threads", "get_num_threads", "num_threads"),
    "test_config.py": ("show_config", "get_include", "release_memory"),
}


def differentiable(rows: tuple[Op, ...] = ROWS) -> list[Op]:
    return [row for row in rows if row.terms]


def planted(row: Op, **fields: Any) -> Op:
    """The row with something wrong in it, for tests of the tests."""
    return dataclasses.replace(row, **fields)
