"""One row per op: what the generic tests and the benchmarks know about a function.

A row names the function, its NumPy reference, what its backward function is given, where to take
samples, and its edge points with value and gradient written down as numbers. The tests of
``checks.py`` run over every row; a row leaves one out only with a reason (``without``), and the
suite prints that list. Adding an op is adding a row to the section of its module.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import reference as ref

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
                        absolute error, (expected, unit, *arguments, **kwargs); float16's final
                        rounding is added to it
    kinks               distance of each element from the next kink, for the numerical gradient
    like                NumPy function whose result dtype this one has (default: reference)
    packed              the inputs are handed over as one list (of a fixed length: further rows of
                        the same name for others), and so are shapes and gradients
    backward_kwargs     keywords of the case that backward takes too
    backward_only       those of them that forward does not take
    elementwise         an element of the result depends on the elements at its place alone
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
    elementwise: bool = True
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


ROWS: tuple[Op, ...] = (*ARITHMETIC, *COMPARISON)
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
    "test_broadcasting.py": (
        *("broadcast_shapes", "are_shapes_broadcastable"),
        *("compute_broadcast_strides", "reduce_broadcast_dims"),
    ),
    "test_gradcheck.py": (
        *("compute_numerical_gradient", "assert_gradients_close", "check_gradient"),
    ),
    "test_threads.py": ("set_num_threads", "get_num_threads", "num_threads"),
    "test_config.py": ("show_config", "get_include", "release_memory"),
}


def differentiable(rows: tuple[Op, ...] = ROWS) -> list[Op]:
    return [row for row in rows if row.terms]


def planted(row: Op, **fields: Any) -> Op:
    """The row with something wrong in it, for tests of the tests."""
    return dataclasses.replace(row, **fields)
