"""The public Cython API: complete, frozen, equal to the Python functions, free of threads.

The functions are called through ctypes at the addresses that ``cimport`` would take, with the
argument names of the .pxd. ``test_embedding.py`` compiles projects that cimport them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optable
import pytest
from capi import CAPSULES, DTYPES, FUNCTIONS, PXD, Function
from helpers import assert_same_bits

import extensor as ex
from extensor import activations, arithmetic, comparison, elementwise

HERE = Path(__file__).parent
SIGNATURES = HERE / "cython_api" / "signatures.json"
MODULES = (arithmetic, comparison, elementwise, activations)

# Public functions that the API leaves out, and why.
LEFT_OUT = {
    "silu": "another name of swish",
    "silu_backward": "another name of swish_backward",
}
# Categories of the op table that the API does not follow row by row, and why.
OUTSIDE = {
    "reduction": "axes are the caller's loops over ex_sum and the softmax rows",
    "matrix": "ex_gemm with its strides is all of them",
    "losses": "a loss is a few of these functions and the caller's own reduction",
}
# Functions of the API that have another name in Python.
OTHERS = {
    "gelu_tanh": "gelu(approximate=True)",
    "gelu_tanh_backward": "gelu_backward(approximate=True)",
    "sum": "sum",
    "gemm": "matmul",
    "sgd": "SGD",
    "adam": "Adam",
    "adamw": "AdamW",
    "rmsprop": "RMSprop",
}


def is_op(name: str) -> bool:
    return any(name in module.__all__ for module in MODULES)


# --- complete -----------------------------------------------------------------------------------


def test_every_element_wise_function_is_there() -> None:
    wanted = {name for module in MODULES for name in module.__all__}
    for row in optable.ROWS:
        if row.category not in OUTSIDE:
            wanted |= {row.name, row.backward_name or row.name}
    have = {re.sub(r"^ex_|_f(32|64)$", "", name) for name in CAPSULES} - {"api_version"}
    assert wanted - have == set(LEFT_OUT), "cython_api.pxd lacks functions, or LEFT_OUT is stale"
    assert have - wanted == set(OTHERS)


def test_both_types_are_there() -> None:
    names = [name for name in CAPSULES if name != "ex_api_version"]
    for name in names:
        other = name[:-2] + ("64" if name.endswith("32") else "32")
        assert other in CAPSULES, f"{name} without {other}"
    assert FUNCTIONS["ex_api_version"]() == 1


def test_declarations_keep_the_rules() -> None:
    """Plain C types, const inputs, no cimports, types or classes."""
    assert set(FUNCTIONS) == set(CAPSULES)
    text = re.sub(r"#.*", "", PXD.read_text(encoding="utf-8"))
    assert not re.search(r"cimport|ctypedef|cppclass|class|struct|enum|extern|fused|object", text)
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", ")"))]
    assert all(line.startswith("cdef ") for line in lines)
    state = ("param", "exp_avg", "exp_avg_sq", "square_avg", "momentum_buffer", "c")
    for function in FUNCTIONS.values():
        for name, kind in function.arguments.items():
            assert kind in ("Py_ssize_t", "int", "double") or kind.endswith("*")
            if kind.endswith("*") and name not in function.outputs and name not in state:
                assert kind.startswith("const "), f"{function.name}: {name} is not const"


def test_signatures_only_grow() -> None:
    """A changed or missing signature breaks every module that was compiled against it."""
    frozen = json.loads(SIGNATURES.read_text(encoding="utf-8"))
    now = {name: function.signature for name, function in FUNCTIONS.items()}
    changed = {name: (was, now.get(name)) for name, was in frozen.items() if now.get(name) != was}
    assert not changed, f"public signatures may not change: {changed}"
    added = {name: now[name] for name in now if name not in frozen}
    assert not added, f"new functions: add them to {SIGNATURES.name}: {json.dumps(added, indent=2)}"


# --- element-wise functions ---------------------------------------------------------------------

EPS = ({"eps": 1e-10}, {"eps": 0.0}, {"eps": 0.25})
ALPHAS = ({"alpha": 0.01}, {"alpha": -0.5}, {"alpha": 0.0}, {"alpha": 2.0})
BOUNDS = (
    {"low": -1.0, "high": 0.5},
    {"low": 1.0, "high": -1.0},
    {"low": -np.inf, "high": np.inf},
    {"low": np.nan, "high": 1.0},
)
PARAMETERS: dict[str, tuple[dict[str, float], ...]] = {
    "divide_backward": EPS,
    "log_backward": EPS,
    "log2_backward": EPS,
    "log10_backward": EPS,
    "sqrt_backward": EPS,
    "leaky_relu": ALPHAS,
    "leaky_relu_backward": ALPHAS,
    "elu": ALPHAS,
    "elu_backward": ALPHAS,
    "clip": BOUNDS,
    "clip_backward": BOUNDS,
}
PYTHON_NAMES = {"low": "min", "high": "max"}
ELEMENTWISE = sorted(
    name
    for name in FUNCTIONS
    if (is_op(name[3:-4]) or "gelu_tanh" in name) and "softmax" not in name
)


def grid(rng: np.random.Generator, dtype: np.dtype, count: int) -> list[np.ndarray]:
    """Arrays of one length: all combinations of special values, then random ones."""
    special = optable.REAL.special(dtype)
    if count == 3:
        special = special[np.isin(special, [0.0, 1.0, -2.0, np.inf, -np.inf]) | np.isnan(special)]
    combined = [part.ravel() for part in np.meshgrid(*[special] * count)]
    widths = (4.0, 4.0, 60.0, 1e4)
    random = [np.concatenate([rng.uniform(-w, w, 501) for w in widths]) for _ in range(count)]
    return [
        np.concatenate([a, b.astype(dtype)]).astype(dtype)
        for a, b in zip(combined, random, strict=True)
    ]


def python_result(op: str, arrays: dict[str, Any], parameters: dict[str, float]) -> list[Any]:
    """What the Python function gives, as a list of arrays."""
    keywords: dict[str, Any] = {
        PYTHON_NAMES.get(key, key): value for key, value in parameters.items()
    }
    if "gelu_tanh" in op:
        op, keywords = op.replace("gelu_tanh", "gelu"), {"approximate": True}
    arguments = list(arrays.values())
    if op in ("add_backward", "subtract_backward", "where_backward"):
        arguments += [arrays["grad_output"].shape] * 2
    result = getattr(ex, op)(*arguments, **keywords)
    return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


def is_array(function: Function, name: str) -> bool:
    return function.arguments[name].endswith("*") and name not in function.outputs


def new_outputs(function: Function, n: int) -> dict[str, np.ndarray]:
    """Arrays for the results, filled with what is not one."""
    kinds = {"unsigned char*": np.uint8, "float*": np.float32, "double*": np.float64}
    return {
        name: np.full(n, 77, kinds[function.arguments[name]])  # type: ignore[arg-type]
        for name in function.outputs
    }


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_equal_to_python(name: str) -> None:
    function = FUNCTIONS[name]
    dtype, op = DTYPES[name[-3:]], name[3:-4]
    rng = np.random.default_rng(sum(name.encode()))
    names = [key for key in function.arguments if is_array(function, key)]
    values = grid(rng, dtype, sum(key != "cond" for key in names))
    n = len(values[0])
    arrays: dict[str, Any] = {}
    for key in names:
        arrays[key] = rng.integers(0, 2, n).astype(np.uint8) if key == "cond" else values.pop()
    for parameters in PARAMETERS.get(op, ({},)):
        seen = {key: v.astype(bool) if key == "cond" else v for key, v in arrays.items()}
        expected = python_result(op, seen, parameters)
        outputs = new_outputs(function, n)
        function(**arrays, **outputs, **parameters, n=n)
        for (key, got), want in zip(outputs.items(), expected, strict=True):
            assert_same_bits(got, want.astype(got.dtype), f"{name}: {key} with {parameters}")
        check_parts(function, arrays, outputs, parameters, n)
        check_in_place(function, arrays, outputs, parameters, n)


def check_parts(
    function: Function, arrays: dict[str, Any], outputs: dict[str, Any], parameters: Any, n: int
) -> None:
    """One gradient of two, pieces at odd places, nothing at all, nothing beyond the end."""
    if len(outputs) > 1:
        for key, want in outputs.items():
            some: dict[str, Any] = {
                other: np.zeros_like(want) if other == key else None for other in outputs
            }
            function(**arrays, **some, **parameters, n=n)
            assert_same_bits(some[key], want, f"{function.name}: {key} alone")
    for start, stop in ((0, 0), (1, 2), (3, 20), (1, n)):
        inside = {key: value[start:stop].copy() for key, value in arrays.items()}
        fresh = {key: np.full(stop - start + 1, 77, v.dtype) for key, v in outputs.items()}
        function(**inside, **fresh, **parameters, n=stop - start)
        for key, got in fresh.items():
            assert_same_bits(got[:-1], outputs[key][start:stop], f"{function.name}: {key}")
            assert got[-1] == 77, f"{function.name} writes beyond the end"


def check_in_place(
    function: Function, arrays: dict[str, Any], outputs: dict[str, Any], parameters: Any, n: int
) -> None:
    """The only output may be any of the inputs."""
    if len(outputs) > 1:
        return
    ((key, want),) = outputs.items()
    for place in arrays:
        if arrays[place].dtype == want.dtype:
            given = {other: value.copy() for other, value in arrays.items()}
            function(**given, **{key: given[place]}, **parameters, n=n)
            assert_same_bits(given[place], want, f"{function.name} into {place}")


# --- rows and sums ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 5), (700, 10), (4, 512), (4, 513), (3, 5000), (2, 9001), (0, 5), (5, 0)]
)
def test_softmax(op: str, kind: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    x = (rng.standard_normal(shape) * 9).astype(DTYPES[kind])
    if x.size > 5:
        x[0, 0] = -np.inf
        x[1, 0] = np.inf
        x[2 % len(x), -1] = np.nan
    g = rng.standard_normal(shape).astype(x.dtype)
    rows, n = shape
    y, grad = np.full_like(x, 77), np.full_like(x, 77)
    FUNCTIONS[f"ex_{op}_{kind}"](x=x, y=y, rows=rows, n=n)
    expected = np.asarray(getattr(ex, op)(x))
    assert_same_bits(y, expected, op)
    FUNCTIONS[f"ex_{op}_backward_{kind}"](grad_output=g, output=y, grad_x=grad, rows=rows, n=n)
    assert_same_bits(grad, np.asarray(getattr(ex, f"{op}_backward")(g, y)), op)


@pytest.mark.parametrize("kind", DTYPES)
def test_sum(kind: str) -> None:
    rng = np.random.default_rng(6)
    whole = (rng.standard_normal(300_007) * 10 ** rng.uniform(-3, 3, 300_007)).astype(DTYPES[kind])
    function = FUNCTIONS[f"ex_sum_{kind}"]
    tile = 4096
    near = [k * tile + d for k in (1, 2, 3, 4, 5, 7, 8, 16, 17, 37) for d in (-1, 0, 1)]
    for n in (0, 1, 2, 15, 16, 17, 255, 256, 257, 1023, 1025, *near, 300_007):
        got = np.asarray(function(x=whole, n=n), whole.dtype)
        assert_same_bits(got, np.asarray(ex.sum(whole[:n])), f"sum of {n}")
    for value in (np.nan, np.inf, -np.inf, -0.0):
        x = np.array([value], whole.dtype)
        assert_same_bits(np.asarray(function(x=x, n=1), x.dtype), np.asarray(ex.sum(x)))


# --- matrix product -----------------------------------------------------------------------------


def strided(array: np.ndarray) -> tuple[int, int]:
    return (array.strides[0] // array.itemsize, array.strides[1] // array.itemsize)


def gemm(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, bias: Any = None, add: int = 0, threads: int = 1
) -> int:
    function = FUNCTIONS[f"ex_gemm_{'f32' if a.itemsize == 4 else 'f64'}"]
    numbers: dict[str, int] = {"accumulate": add, "threads": threads}
    numbers["m"], numbers["n"], numbers["k"] = *c.shape, a.shape[1]
    for name, array in (("a", a), ("b", b), ("c", c)):
        numbers[f"{name}_row"], numbers[f"{name}_col"] = strided(array)
    code: int = function(a=a, b=b, c=c, bias=bias, **numbers)
    return code


def layouts(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same matrix contiguous, transposed, as a slice of a wider one, and reversed."""
    yield array.copy()
    yield np.array(array, order="F")
    wide = np.full((array.shape[0] * 2, array.shape[1] * 3), 77, array.dtype)
    view = wide[::2, : array.shape[1]]
    view[...] = array
    yield view
    yield array[::-1, ::-1].copy()[::-1, ::-1]


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (1, 70, 40), (70, 1, 40), (5, 7, 3), (13, 33, 65), (32, 10, 64), (9, 4, 1)]
)
def test_gemm(sizes: tuple[int, int, int], kind: str) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(7)
    first, second, start = (
        rng.standard_normal(shape).astype(DTYPES[kind]) for shape in ((m, k), (k, n), (m, n))
    )
    bias = rng.standard_normal(n).astype(first.dtype)
    unit = np.finfo(first.dtype).eps
    bound = 4 * (k + 2) * unit * (np.abs(first) @ np.abs(second) + np.abs(start) + np.abs(bias))
    for a in layouts(first):
        for b in layouts(second):
            c = np.full((m, n), 77, first.dtype)
            assert gemm(a, b, c) == 0
            assert_same_bits(c, np.asarray(ex.matmul(a, b)), f"{sizes}")
            for place in layouts(start):
                assert gemm(a, b, place, bias, 1) == 0
                assert (np.abs(place - (start + first @ second + bias)) <= bound).all()
                outside = place.base if place.base is not None else place
                if outside.shape == (2 * m, 3 * n):
                    assert (outside[1::2] == 77).all() and (outside[:, n:] == 77).all()


@pytest.mark.parametrize("kind", DTYPES)
def test_gemm_has_the_same_bits_for_every_thread_count(kind: str) -> None:
    rng = np.random.default_rng(8)
    a = rng.standard_normal((190, 300)).astype(DTYPES[kind])
    b = rng.standard_normal((300, 210)).astype(DTYPES[kind])
    results = []
    for threads in (1, 2, 3, 8, 0, -1):
        results.append(np.full((190, 210), 77, a.dtype))
        assert gemm(a, b, results[-1], threads=threads) == 0
        assert_same_bits(results[-1], results[0], f"{threads} threads")


@pytest.mark.parametrize("kind", DTYPES)
def test_gemm_of_nothing(kind: str) -> None:
    dtype = DTYPES[kind]
    c = np.full((2, 3), 5, dtype)
    bias = np.array([1, 2, 3], dtype)
    none = np.empty((2, 0), dtype), np.empty((0, 3), dtype)
    assert gemm(*none, c, add=1) == 0
    assert (c == 5).all()
    assert gemm(*none, c, bias, add=1) == 0
    assert (c == [6, 7, 8]).all()
    assert gemm(*none, c) == 0
    assert (c == 0).all()
    assert gemm(np.empty((0, 4), dtype), np.ones((4, 3), dtype), np.empty((0, 3), dtype)) == 0


# --- optimizers ---------------------------------------------------------------------------------

RATES = {"lr": 0.05, "weight_decay": 0.02}
UPDATES: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "sgd": ("sgd", {}, {"momentum": 0.0, "nesterov": 0}, ()),
    "sgd, momentum": (
        "sgd",
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": 0},
        ("momentum_buffer",),
    ),
    "sgd, Nesterov": (
        "sgd",
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.9, "nesterov": 1},
        ("momentum_buffer",),
    ),
    "adam": (
        "adam",
        {"betas": (0.8, 0.95), "eps": 1e-6},
        {"beta1": 0.8, "beta2": 0.95, "eps": 1e-6},
        ("exp_avg", "exp_avg_sq"),
    ),
    "adamw": (
        "adamw",
        {"betas": (0.8, 0.95), "eps": 1e-6},
        {"beta1": 0.8, "beta2": 0.95, "eps": 1e-6},
        ("exp_avg", "exp_avg_sq"),
    ),
    "rmsprop": (
        "rmsprop",
        {"alpha": 0.9, "eps": 1e-6},
        {"alpha": 0.9, "eps": 1e-6, "momentum": 0.0},
        ("square_avg",),
    ),
    "rmsprop, momentum": (
        "rmsprop",
        {"alpha": 0.9, "eps": 1e-6, "momentum": 0.7},
        {"alpha": 0.9, "eps": 1e-6, "momentum": 0.7},
        ("square_avg", "momentum_buffer"),
    ),
}


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("case", UPDATES)
def test_update(case: str, kind: str) -> None:
    op, in_python, in_c, states = UPDATES[case]
    n, dtype = 1003, DTYPES[kind]
    rng = np.random.default_rng(9)
    param = rng.standard_normal(n).astype(dtype)
    mirror = ex.tensor(param)
    optimizer = getattr(ex, OTHERS[op])([mirror], **in_python, **RATES)
    function = FUNCTIONS[f"ex_{op}_{kind}"]
    arrays: dict[str, Any] = {
        name: np.zeros(n, dtype) if name in states else None
        for name in ("momentum_buffer", "exp_avg", "exp_avg_sq", "square_avg")
        if name in function.arguments
    }
    for step in (1, 2, 3):
        grad = rng.standard_normal(n).astype(dtype)
        count = {"step": step} if "step" in function.arguments else {}
        function(param=param, grad=grad, **arrays, n=n, **in_c, **RATES, **count)
        optimizer.step([grad])
        assert_same_bits(param, mirror.numpy(), f"{case}, step {step}")


# --- threads and forks --------------------------------------------------------------------------

SCRIPT_START = f"""
import os, signal, sys
sys.path.insert(0, {str(HERE)!r})
import numpy as np
import extensor as ex
from capi import FUNCTIONS
from test_cython_api import gemm
a = np.random.default_rng(1).standard_normal((400, 400))
c = np.zeros_like(a)
"""
COUNT_THREADS = """
x = np.ones(2**21)
def count():
    return len(os.listdir("/proc/self/task"))
before = count()
FUNCTIONS["ex_gelu_f64"](x=x, y=x, n=x.size)
FUNCTIONS["ex_softmax_f64"](x=x, y=np.empty_like(x), rows=2, n=x.size // 2)
FUNCTIONS["ex_sum_f64"](x=x, n=x.size)
gemm(a, a, c)
assert count() == before, (before, count())
gemm(a, a, c, threads=3)
assert ex._cpu.openmp == 0 or count() >= before + 2, (before, count())
"""
FORK = """
gemm(a, a, c, threads=3)
child = os.fork()
if child == 0:
    signal.alarm(60)  # a child that hangs ends all the same
    again, x = np.zeros_like(a), np.ones(2**21)
    FUNCTIONS["ex_exp_f64"](x=x, y=x, n=x.size)
    right = gemm(a, a, again, threads=3) == 0 and (again == c).all() and np.ptp(x) == 0
    os._exit(0 if right else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("code", [COUNT_THREADS, FORK], ids=["threads", "fork"])
def test_in_a_process_of_its_own(code: str, tmp_path: Path) -> None:
    package = str(Path(ex.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT_START + code],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "4", "PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
