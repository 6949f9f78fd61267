"""The generic checks. Each takes a row of the table and raises AssertionError if it is wrong.

They are functions of the row, not tests, so that `test_planted.py` can hand them rows with wrong
kernels and see that they notice.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from helpers import (
    BAD_INPUTS,
    LAYOUTS,
    assert_same_bits,
    assert_within,
    bits,
    final_rounding,
    parts,
    sum_bound,
    tensors,
    threads_used,
    ulp_bound,
    unit,
    working,
)
from optable import DTYPES, EITHER_ZERO, FLOATS, NAMED, Case, Edge, Op
from reference import unbroadcast

import extensor as ex

# Above every threshold of every cost class, and no multiple of a block.
LARGE = 2**21 + 4099


def generator(*key: Any) -> np.random.Generator:
    """Samples that depend on the test alone, not on the order of the tests."""
    return np.random.default_rng(zlib.crc32(repr([str(k) for k in key]).encode()))


# --- calls that watch what every call must hold -------------------------------------------------


def _own(name: str, result: Any, others: Any, view: bool) -> None:
    for part in parts(result):
        if part is None:
            continue
        assert type(part) is ex.ExTensor, f"{name} returned {type(part)}"
        if view:
            continue
        array = np.asarray(part)
        assert array.flags.c_contiguous, f"{name}: not contiguous"
        assert array.flags.writeable, f"{name}: read-only"
        if array.size:
            address = array.__array_interface__["data"][0]
            assert address % 64 == 0, f"{name}: result at {address % 64} from a 64-byte line"
        for other in others:
            assert not np.may_share_memory(array, np.asarray(other)), f"{name}: shares memory"


def _arrays(values: Any) -> list[Any]:
    """The tensors among arguments, shapes and numbers left out."""
    found = []
    for value in values:
        if isinstance(value, list) and value and isinstance(value[0], (np.ndarray, ex.ExTensor)):
            found += value
        elif isinstance(value, (np.ndarray, ex.ExTensor)):
            found.append(value)
    return found


def forward(row: Op, inputs: Any, kwargs: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """The result of the op; inputs unmodified, result owned, aligned and contiguous."""
    before = [bits(value) for value in _arrays(inputs)]
    result = row.forward(*inputs, **row.of_forward(kwargs or {}), **more)
    assert before == [bits(value) for value in _arrays(inputs)], f"{row}: input modified"
    _own(row.name, result, _arrays(inputs), row.view)
    return result


def backward(
    row: Op, g: Any, inputs: Any, output: Any, kwargs: Mapping[str, Any] | None = None, **more: Any
) -> list[Any]:
    """The gradients as a list, watched like a forward result and apart from each other."""
    saved = row.save(tuple(inputs), output)
    given = _arrays([*parts(g), *saved])
    before = [bits(value) for value in given]
    result = row.backward(g, *saved, **row.of_backward(kwargs or {}), **more)
    assert before == [bits(value) for value in given], f"{row.backward_name}: argument modified"
    assert isinstance(result, (tuple, list)) == (row.packed or len(row.gradients) > 1)
    gradients = parts(result)
    for i, gradient in enumerate(gradients):
        others = [other for k, other in enumerate(gradients) if k != i and other is not None]
        _own(row.backward_name or "", gradient, given + others, row.view)
    return gradients


def upstream(rng: np.random.Generator, output: Any, dtype: Any = None) -> Any:
    """A random grad_output for an output (a list for several)."""

    def one(part: Any) -> Any:
        array = np.asarray(part)
        return ex.asarray(np.asarray(rng.standard_normal(array.shape), dtype or array.dtype))

    return [one(part) for part in output] if isinstance(output, (tuple, list)) else one(output)


def _widened(value: Any, wide: Any) -> Any:
    if isinstance(value, (np.ndarray, ex.ExTensor)):
        return np.asarray(value).astype(wide)
    if isinstance(value, list):
        return [_widened(part, wide) for part in value]
    return value


def expected_gradients(
    row: Op, g: Any, inputs: Any, output: Any, kwargs: Mapping[str, Any], dtype: Any
) -> list[tuple[Any, Any]]:
    """Each reference gradient with its allowed error, for gradients of ``dtype``."""
    assert row.terms
    # float64 is exact enough for float32 and five times faster than longdouble
    wide = np.longdouble if np.dtype(dtype) == np.float64 else np.float64
    saved = [_widened(value, wide) for value in row.save(tuple(inputs), output)]
    g = _widened(g, wide)
    results = []
    with np.errstate(all="ignore"):
        terms = row.terms(g, *saved, **row.of_backward(kwargs))
        for i, term in zip(row.gradients, terms, strict=True):
            shape = np.shape(inputs[i])
            if row.grad_bound:
                gradient = np.asarray(term, np.longdouble)
                unit_roundoff = unit(working(dtype))
                allowed = row.grad_bound(
                    gradient, unit_roundoff, g, *saved, **row.of_backward(kwargs)
                )
                if isinstance(allowed, tuple):
                    allowed = allowed[len(results)]
                allowed = allowed + final_rounding(gradient, dtype)
            else:
                gradient = unbroadcast(term, shape)
                count = term.size // max(gradient.size, 1)
                if count <= 1:
                    allowed = ulp_bound(gradient, dtype, row.grad_ulp)
                else:
                    allowed = sum_bound(unbroadcast(np.abs(term), shape), count, gradient, dtype)
            results.append((gradient, allowed))
    return results


def simple_case(row: Op, shape: tuple[int, ...]) -> Case:
    """One shape for all inputs of an element-wise row, else the row's first case with elements."""
    if row.elementwise:
        return Case((shape,) * row.arity)
    return next(case for case in row.cases if all(0 not in s and s for s in case.shapes))


def block_cases(row: Op) -> list[Case]:
    """Several blocks and odd ends, in the patterns that a driver may treat apart."""
    if not row.elementwise:
        return list(row.blocks)
    if row.arity == 1:
        return [Case(((13, 1031),)), Case(((1031, 13),))]
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((13, 1031), (13, 1031)),
        ((13, 1031), (1031,)),
        ((13, 1031), (13, 1)),
        ((1031, 3), (3,)),
        ((1031, 3), (1031, 1)),
        ((9001,), ()),
        ((2, 1, 5003), (3, 1)),
        ((7, 1, 11, 1), (5, 1, 67)),
    ]
    if not row.broadcasts:
        return [Case((shapes[0][0],) * row.arity)]
    cases = [Case((*((big,) * (row.arity - 1)), small)) for big, small in shapes]
    return cases + [Case((small, *((big,) * (row.arity - 1)))) for big, small in shapes[1:]]


def mixed_case(row: Op) -> Case:
    """A case with different shapes, if the op broadcasts."""
    return next((case for case in row.cases if len(set(case.shapes)) > 1), row.cases[-1])


# --- values -------------------------------------------------------------------------------------


def assert_forward(row: Op, inputs: Any, kwargs: Mapping[str, Any] | None = None) -> Any:
    """Result equal to the reference (raising what NumPy raises), for any dtypes."""
    kwargs = row.of_forward(kwargs or {})
    arrays = [np.asarray(value) for value in inputs]
    try:
        dtype = row.result_dtype(*arrays, **kwargs)
    except TypeError:
        with pytest.raises(TypeError, match=row.name):
            row.forward(*tensors(inputs), **kwargs)
        return None
    result = forward(row, tensors(inputs), kwargs)
    what = f"{row} of {[f'{a.dtype}{a.shape}' for a in arrays]}"
    with np.errstate(all="ignore"):
        if row.ulp == 0 and row.bound is None:
            expected = row.reference(*arrays, **kwargs)
            for got, wanted in zip(parts(result), parts(expected), strict=True):
                if row.either_zero and dtype.kind == "f":
                    got, wanted = np.asarray(got) + dtype.type(0), wanted + dtype.type(0)
                assert_same_bits(got, wanted, what)
            return result
        if dtype.kind != "f":
            assert_same_bits(result, row.reference(*arrays, **kwargs), what)
            return result
        wide = [a if a.dtype.kind == "b" and dtype.kind == "b" else a.astype(dtype) for a in arrays]
        expected = row.reference(*(a.astype(np.longdouble) for a in wide), **kwargs)
        assert np.asarray(result).dtype == dtype, what
        if row.bound:
            allowed = row.bound(expected, unit(working(dtype)), *wide, **kwargs)
            allowed = allowed + final_rounding(expected, dtype)
        else:
            allowed = ulp_bound(expected, dtype, row.ulp)
        assert_within(result, expected, allowed, what)
    return result


def check_values(row: Op, case: Case) -> None:
    """Random values in every dtype."""
    for dtype in DTYPES:
        if dtype not in row.without:
            rng = generator("values", row, case, dtype)
            assert_forward(row, row.sample(rng, case, dtype), case.kwargs)


def check_special_values(row: Op) -> None:
    """Zeros, infinities, NaN, extremes, crossed, in every dtype and in blocks of many."""
    for dtype in DTYPES:
        if dtype in row.without:
            continue
        special = [domain.special(dtype) for domain in row.domains]
        crossed = [grid.reshape(-1) for grid in np.meshgrid(*special, indexing="ij")]
        if row.elementwise:
            assert_forward(row, [np.resize(values, 10_007) for values in crossed])
            assert_forward(row, crossed)
            continue
        # slices of three: every triple. Without the largest floats, whose sums overflow on the way
        values = special[0]
        if values.dtype.kind == "f":
            values = values[np.abs(values) != np.finfo(dtype).max]
        triples = np.stack(np.meshgrid(values, values, values), axis=-1).reshape(-1, 3)
        assert_forward(row, [triples], {"axis": 1})
        assert_forward(row, [np.ascontiguousarray(triples.T)], {"axis": 0})


def check_mixed_dtypes(row: Op) -> None:
    """Every combination of dtypes, with NumPy's result dtype; fixed inputs keep theirs."""
    choices = [(domain.dtype,) if domain.dtype else DTYPES for domain in row.domains]
    case = mixed_case(row)
    for dtypes in itertools.product(*choices):
        if any(dtype in row.without for dtype in dtypes):
            continue
        rng = generator("mixed", row, dtypes)
        inputs = [
            domain.sample(rng, shape, dtype)
            for domain, shape, dtype in zip(row.domains, case.shapes, dtypes, strict=True)
        ]
        assert_forward(row, inputs, case.kwargs)


def check_input_kinds(row: Op) -> None:
    """Everything array-like gives what the tensor gives."""

    class Wrapped:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return self.array.astype(dtype) if dtype else self.array

    case = simple_case(row, (5,))
    kwargs = row.of_forward(case.kwargs)
    inputs = row.sample(generator("kinds", row), case, np.float32)
    wanted = forward(row, tensors(inputs), kwargs)
    kinds = {
        "ndarray": lambda a: a,
        "list": lambda a: a.tolist(),
        "tuple": lambda a: tuple(a.tolist()),
        "memoryview": lambda a: memoryview(a),
        "__array__": Wrapped,
        "list of NumPy scalars": list,
    }
    for name, kind in kinds.items():
        for i in range(row.arity):
            mixed = [kind(a) if k == i else ex.asarray(a) for k, a in enumerate(inputs)]
            assert_same_bits(row.forward(*mixed, **kwargs), wanted, f"{row} of {name}")
        # without a tensor, Python floats and lists of them are float32 too
        alone = row.forward(*map(kind, inputs), **kwargs)
        assert_same_bits(alone, wanted, f"{row} of {name} alone")


# --- gradients ----------------------------------------------------------------------------------


def gradient_inputs(row: Op, case: Case, dtype: Any, *key: Any) -> tuple[np.ndarray, ...]:
    """Samples that stay 1e-3 clear of kinks: a hundred steps of the numerical gradient.

    Large cases, which no numerical gradient is taken of, may come near them.
    """
    rng = generator("gradients", row, case, *key)
    large = (
        np.prod(
            [
                max(sizes)
                for sizes in itertools.zip_longest(*(s[::-1] for s in case.shapes), fillvalue=1)
            ]
        )
        > 200
    )
    for _ in range(1000):
        inputs = row.sample(rng, case, dtype)
        if row.kinks is None or large or np.min(row.kinks(*inputs), initial=1.0) > 1e-3:
            return inputs
    raise AssertionError(f"{row} {case}: no sample clear of the kinks")


def check_gradients(row: Op, case: Case) -> None:
    """The full Jacobian in float64, contracted with a random grad_output."""
    inputs = tensors(gradient_inputs(row, case, np.float64))
    kwargs = case.kwargs

    def back(g: Any, *inputs: Any) -> list[Any]:
        found = backward(row, g, inputs, row.forward(*inputs, **row.of_forward(kwargs)), kwargs)
        gradients: list[Any] = [None] * row.arity
        for i, gradient in zip(row.gradients, found, strict=True):
            assert np.asarray(gradient).dtype == np.float64
            gradients[i] = gradient
        return gradients

    ex.check_gradient(
        lambda *inputs: row.forward(*inputs, **row.of_forward(kwargs)), back, inputs, rng=7
    )


def check_gradient_values(row: Op, case: Case, dtype: str) -> None:
    """Against the formula in higher precision and against own float64, within the bound."""
    inputs = tensors(gradient_inputs(row, case, dtype, dtype))
    output = forward(row, inputs, case.kwargs)
    g = upstream(generator("upstream", row, case), output)
    gradients = backward(row, g, inputs, output, case.kwargs)
    expected = expected_gradients(row, g, inputs, output, case.kwargs, dtype)
    doubled = tuple(
        ex.asarray(np.asarray(x, np.float64)) if np.asarray(x).dtype.kind == "f" else x
        for x in inputs
    )
    given = row.saved == "output" or callable(row.saved)
    wide = _as_double(output) if given else forward(row, doubled, case.kwargs)
    own = backward(row, _as_double(g), doubled, wide, case.kwargs)
    for gradient, (formula, allowed), double in zip(gradients, expected, own, strict=True):
        assert np.asarray(gradient).dtype == dtype, row.backward_name
        what = f"{row.backward_name} {case} {dtype}"
        assert_within(gradient, formula, allowed, what)
        # float64's own error is at most 2**-29 of the allowed one
        assert_within(gradient, np.asarray(double), allowed * (1 + 1e-8), f"{what}, own float64")


def check_kept_axes(row: Op, case: Case) -> None:
    """grad_output with and without the kept axes gives the same bits."""
    assert row.grad_shapes
    inputs = tensors(gradient_inputs(row, case, np.float32))
    output = forward(row, inputs, case.kwargs)
    g = np.asarray(upstream(generator("kept", row, case), output))
    wanted = backward(row, g, inputs, output, case.kwargs)
    shapes = row.grad_shapes(*case.shapes, **case.kwargs)
    assert np.shape(output) in shapes
    for shape in shapes:
        found = backward(row, g.reshape(shape), inputs, output, case.kwargs)
        reshaped = np.asarray(output).reshape(shape)
        also = backward(row, g.reshape(shape), inputs, reshaped, case.kwargs)
        for one, other, gradient in zip(found, also, wanted, strict=True):
            assert_same_bits(one, gradient, f"{row.backward_name} {case}, grad_output {shape}")
            assert_same_bits(other, gradient, f"{row.backward_name} {case}, output {shape}")


def _as_double(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_as_double(part) for part in value]
    return ex.asarray(np.asarray(value, np.float64))


def check_gradient_dtypes(row: Op) -> None:
    """The input's dtype where it is floating; grad_output's for integers and for shapes."""
    case = mixed_case(row)
    kinds = ("float16", "float32", "float64", "int32", "bool")
    choices = [(domain.dtype,) if domain.dtype else kinds for domain in row.domains]
    for dtypes in itertools.product(*choices):
        rng = generator("gradient dtypes", row, dtypes)
        inputs = tensors(
            domain.sample(rng, shape, dtype)
            for domain, shape, dtype in zip(row.domains, case.shapes, dtypes, strict=True)
        )
        try:
            output = forward(row, inputs, case.kwargs)
        except TypeError:  # bool subtract
            continue
        for g_dtype in FLOATS:
            g = upstream(rng, output, g_dtype)
            found = backward(row, g, inputs, output, case.kwargs)
            for k, (i, gradient) in enumerate(zip(row.gradients, found, strict=True)):
                given = any(value is inputs[i] for value in row.save(inputs, output))
                own = given and np.dtype(dtypes[i]).kind == "f"
                wanted = dtypes[i] if own else g_dtype
                got = np.asarray(gradient)
                what = f"{row.backward_name} of {dtypes}, grad_output {g_dtype}: input {i}"
                assert got.dtype == wanted, f"{what} is {got.dtype}"
                formula = expected_gradients(row, g, inputs, output, case.kwargs, wanted)[k]
                assert_within(got, *formula, what)


def check_gradient_scalars(row: Op) -> None:
    """A Python scalar as input: a 0-d gradient of grad_output's dtype."""
    for i in row.gradients:
        shapes = tuple(() if k == i else (3,) for k in range(row.arity))
        arrays = list(gradient_inputs(row, Case(shapes), np.float64, "scalar"))
        scalars = [float(a) if k == i else ex.asarray(a) for k, a in enumerate(arrays)]
        output = forward(row, scalars)
        assert np.asarray(output).dtype == np.float64
        g = upstream(generator("scalars", row), output)
        wanted = backward(row, g, tensors(arrays), output)
        for got, gradient in zip(backward(row, g, scalars, output), wanted, strict=True):
            assert_same_bits(got, gradient, f"{row.backward_name} of a Python scalar")


def check_summed_gradients(row: Op, case: Case, dtype: str, kind: str) -> None:
    """Large sums of 0.1-like and of random values stay within (16 + log2 n)·u·Σ|terms|."""
    rng = generator("sums", row, case, dtype, kind)
    if kind == "random":
        inputs = tensors(row.sample(rng, case, dtype))
    else:
        inputs = tensors(
            np.full(shape, True if domain.dtype else 0.1 * (i + 3), domain.dtype or dtype)
            for i, (shape, domain) in enumerate(zip(case.shapes, row.domains, strict=True))
        )
    output = forward(row, inputs)
    if kind == "random":
        g = upstream(rng, output)
    else:
        # keeps float16 sums finite: they overflow only at the final rounding
        value = 0.1 if dtype != "float16" else 0.1 * 2.0**-10
        g = ex.asarray(np.full(np.shape(output), value, np.asarray(output).dtype))
    expected = expected_gradients(row, g, inputs, output, {}, dtype)
    gradients = backward(row, g, inputs, output)
    for gradient, (wanted, allowed) in zip(gradients, expected, strict=True):
        assert_within(gradient, wanted, allowed, f"{row.backward_name} {case} {dtype} {kind}")


# --- edge points --------------------------------------------------------------------------------


def resolve(value: Any, dtype: Any) -> Any:
    """A number of the table as an array of ``dtype``; named values looked up."""
    if isinstance(value, str):
        value = NAMED[value](np.finfo(dtype))
    with np.errstate(all="ignore"):
        return np.asarray(np.asarray(value), dtype)


def _edge_value(got: Any, wanted: Any, allowed_ulps: float, what: str) -> None:
    array = np.asarray(got)
    if isinstance(wanted, str) and wanted == EITHER_ZERO:
        assert (array == 0).all(), f"{what} is {array}, a zero expected"
        return
    expected = resolve(wanted, array.dtype)
    assert array.shape == expected.shape, f"{what} has shape {array.shape}"
    if array.dtype.kind != "f" or allowed_ulps == 0:
        assert_same_bits(array, expected, what)
        return
    given = np.asarray(wanted if not isinstance(wanted, str) else expected, np.longdouble)
    assert_within(array, given, ulp_bound(given, array.dtype, allowed_ulps), what)
    zero = expected == 0
    assert (np.signbit(array)[zero] == np.signbit(expected)[zero]).all(), f"{what}: sign of zero"


def check_edge(row: Op, edge: Edge, dtype: str) -> None:
    """Value and gradients at a point of the table: alone, and inside a block of many."""
    arrays = [
        resolve(value, domain.dtype or dtype)
        for value, domain in zip(edge.inputs, row.domains, strict=True)
    ]
    what = f"{row}{edge} in {dtype}"
    repeats = [(), (1037,)] if row.elementwise else [()]
    for shape in repeats:
        inputs = tensors(np.broadcast_to(a, shape + a.shape).copy() for a in arrays)
        output = forward(row, inputs, edge.kwargs)
        for got in (
            np.asarray(output).reshape(shape + np.shape(output)[len(shape) :])[:1]
            if (shape)
            else [np.asarray(output)]
        ):
            _edge_value(got, edge.value, row.ulp, what)
        if shape:
            assert_same_bits(output, np.broadcast_to(np.asarray(output)[:1], np.shape(output)))
        if not edge.grads:
            continue
        g = ex.asarray(np.full(np.shape(output), edge.g, np.asarray(output).dtype))
        gradients = backward(row, g, inputs, output, edge.kwargs)
        for i, (gradient, wanted) in enumerate(zip(gradients, edge.grads, strict=True)):
            array = np.asarray(gradient)
            _edge_value(array[0] if shape else array, wanted, row.grad_ulp, f"{what}: gradient {i}")
            if shape:
                assert_same_bits(array, np.broadcast_to(array[:1], array.shape), what)


# --- layouts ------------------------------------------------------------------------------------


def check_layouts(row: Op, layout: str) -> None:
    """Any layout of any argument gives the bits of the contiguous one."""
    change = LAYOUTS[layout]
    chosen = [(case, dtype) for case in row.cases for dtype in (*FLOATS, "int32")]
    blocks = block_cases(row)
    chosen += [(case, dtype) for case in blocks for dtype in ("float16", "float32")]
    for case, dtype in chosen:
        arrays = row.sample(generator("layout", row, case, dtype), case, dtype)
        for changed in _subsets(row.arity)[-1 if case in blocks else 0 :]:
            laid = [change(a) if i in changed else a for i, a in enumerate(arrays)]
            plain = [np.array(a, order="C") for a in laid]
            wanted = forward(row, tensors(plain), case.kwargs)
            what = f"{row} {case} {dtype}, {layout} {changed}"
            if row.bound:  # sums may run in another order
                assert_forward(row, laid, case.kwargs)
            else:
                got = forward(row, laid, case.kwargs)
                for one, other in zip(parts(got), parts(wanted), strict=True):
                    assert_same_bits(one, other, what)
            if not row.terms or len(changed) != row.arity or dtype not in FLOATS:
                continue
            g = upstream(generator("layout", row, case), wanted)
            laid_g: Any = [change(np.asarray(part)) for part in parts(g)]
            plain_g: Any = [np.array(part, order="C") for part in laid_g]
            if not isinstance(g, list):
                laid_g, plain_g = laid_g[0], plain_g[0]
            laid_out = change(np.asarray(wanted)) if row.saved == "output" else wanted
            plain_out = np.array(laid_out, order="C") if row.saved == "output" else wanted
            expected = backward(row, plain_g, plain, plain_out, case.kwargs)
            formulas = expected_gradients(row, plain_g, plain, plain_out, case.kwargs, dtype)
            found = backward(row, laid_g, laid, laid_out, case.kwargs)
            for one, other, (formula, bound) in zip(found, expected, formulas, strict=True):
                if row.elementwise and np.shape(one) == np.shape(g):
                    assert_same_bits(one, other, f"backward: {what}")
                else:
                    assert_within(one, formula, bound, f"backward: {what}")


def _subsets(n: int) -> list[tuple[int, ...]]:
    """Each input alone, and all together."""
    return [*((i,) for i in range(n)), *([tuple(range(n))] if n > 1 else [])]


def check_independence(row: Op, dtype: str) -> None:
    """An element's bits depend on its values alone: not on position, size, layout or alignment."""
    n = 20_011
    case = Case(tuple((n,) for _ in row.domains))
    arrays = (
        gradient_inputs(row, case, dtype)
        if not row.kinks
        else row.sample(generator("independence", row, dtype), case, dtype)
    )
    whole = np.asarray(forward(row, tensors(arrays)))
    g = np.asarray(upstream(generator("independent", row), whole)) if row.terms else None
    gradients = backward(row, g, arrays, whole) if row.terms else []
    cuts = [slice(i, i + size) for i, size in [(0, 1), (3, 1), (1, 7), (5, 33), (7, 4097)]]
    cuts += [slice(4095, 4098), slice(n - 9, n), slice(1, None, 2), slice(None, None, -3)]
    for cut in cuts:
        some = [a[cut] for a in arrays]
        assert_same_bits(forward(row, some), whole[cut], f"{row} {dtype} {cut}")
        if row.terms:
            found = backward(row, g[cut], some, whole[cut])
            for one, gradient in zip(found, gradients, strict=True):
                assert_same_bits(one, np.asarray(gradient)[cut], f"{row.backward_name} {cut}")


# --- threads ------------------------------------------------------------------------------------


def large_cases(row: Op) -> Iterator[tuple[Case, str]]:
    """Same shapes, and for several inputs a row, a column, a scalar and a general pattern."""
    if not row.elementwise:
        for dtype in FLOATS:
            yield row.large[0], dtype
        for case in row.large[1:]:
            yield case, "float32"
        return
    for dtype in FLOATS:
        yield Case(tuple((LARGE,) for _ in row.domains)), dtype
    if row.arity > 1 and row.broadcasts:
        full = (1451, 1453)
        for small in [(1453,), (1451, 1), ()]:
            yield Case((*(full for _ in row.domains[1:]), small)), "float32"
        general = ((7, 1, 401, 401), (1, 2, 401, 1))
        yield Case((*(general[0] for _ in row.domains[1:]), general[1])), "float32"
        yield Case((*(full for _ in row.domains[1:]), (1453,))), "float16"


def check_threads(row: Op, case: Case, dtype: str) -> None:
    """The same bits for 1, 2, 3 and 8 threads, and the threads took part."""
    inputs = tensors(row.sample(generator("threads", row, case), case, dtype))
    output = row.forward(*inputs, **row.of_forward(case.kwargs))
    g = upstream(generator("threads"), output) if row.terms else None

    def run(n: int) -> list[Any]:
        with ex.num_threads(n):
            threads_used(widest=True)  # asks anew
            results = parts(row.forward(*inputs, **row.of_forward(case.kwargs)))
            teams = [threads_used(widest=True)]
            if row.terms:
                saved = row.save(inputs, output)
                results = results + parts(row.backward(g, *saved, **row.of_backward(case.kwargs)))
                teams.append(threads_used(widest=True))
        assert teams == [n] * len(teams), f"{row} {case}: {teams} threads of {n}"
        return results

    alone = run(1)
    for n in (2, 3, 8):
        for got, wanted in zip(run(n), alone, strict=True):
            assert_same_bits(got, wanted, f"{row} {case} {dtype} with {n} threads")


# --- out= and needs= ----------------------------------------------------------------------------


def check_out(row: Op, dtype: str) -> None:
    """A result is written where it is wanted: fresh, strided, into an input."""
    for case in [*row.cases, *block_cases(row)]:
        inputs = tensors(row.sample(generator("out", row, case), case, dtype))
        kwargs = row.of_forward(case.kwargs)
        wanted = forward(row, inputs, kwargs)
        like = np.asarray(wanted)
        what = f"{row} {case} {dtype}"
        for place in (np.zeros_like(like), _hole(like.shape, like.dtype)):
            out = ex.asarray(place)
            assert row.forward(*inputs, **kwargs, out=out) is out, f"{what}: another tensor"
            assert_same_bits(out, wanted, f"{what}: out")
            assert_same_bits(place, wanted, f"{what}: memory of out")
        array = np.zeros_like(like)
        shared = row.forward(*inputs, **kwargs, out=array)
        assert type(shared) is ex.ExTensor
        assert array.size == 0 or np.shares_memory(np.asarray(shared), array)
        assert_same_bits(array, wanted, f"{what}: ndarray as out")
        for i, value in enumerate(inputs):
            if np.shape(value) == like.shape and np.asarray(value).dtype == like.dtype:
                own = [ex.tensor(v) for v in inputs]
                row.forward(*own, **kwargs, out=own[i])
                assert_same_bits(own[i], wanted, f"{what}: in place on input {i}")
        if not row.terms or dtype not in FLOATS:
            continue
        g = upstream(generator("out", row), wanted)
        gradients = backward(row, g, inputs, wanted, case.kwargs)
        saved = row.save(inputs, wanted)
        places = [ex.asarray(_hole(np.shape(x), np.asarray(x).dtype)) for x in gradients]
        out = tuple(places) if len(places) > 1 else places[0]
        row.backward(g, *saved, **row.of_backward(case.kwargs), out=out)
        for place, gradient in zip(places, gradients, strict=True):
            assert_same_bits(place, gradient, f"backward {what}: out")
        if np.shape(gradients[0]) == np.shape(g):
            places[0] = own_g = ex.tensor(g)
            out = tuple(places) if len(places) > 1 else places[0]
            row.backward(own_g, *saved, **row.of_backward(case.kwargs), out=out)
            for place, gradient in zip(places, gradients, strict=True):
                assert_same_bits(place, gradient, f"backward {what}: in place on grad_output")


def _hole(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A strided place to write to."""
    big = np.zeros(tuple(2 * n + 1 for n in shape), dtype)
    return big[(*(slice(1, 2 * n + 1, 2) for n in shape), ...)]


def check_out_overlap(row: Op, dtype: str) -> None:
    """An out that overlaps an input by half is computed correctly or refused, never wrong."""
    n = 9001
    for i, shift in itertools.product(range(row.arity), (-n // 2, 1, n // 2, "reversed")):
        case = Case(tuple((n,) for _ in row.domains))
        arrays = list(row.sample(generator("overlap", row), case, dtype))
        wanted = np.asarray(forward(row, tensors(arrays)))
        if wanted.dtype != arrays[i].dtype:
            continue
        memory = np.zeros(3 * n, wanted.dtype)
        place = memory[n : 2 * n]
        place[...] = arrays[i]
        arrays[i] = place
        start = n if shift == "reversed" else n + shift
        target = memory[start : start + n]
        target = ex.asarray(target[::-1] if shift == "reversed" else target)
        before = bits(memory)
        refusal = None
        try:
            row.forward(*tensors(arrays), out=target)
        except ValueError as error:
            refusal = str(error)
        if refusal is None:
            assert_same_bits(target, wanted, f"{row} {dtype}: out shifted by {shift} on input {i}")
        else:
            assert row.name in refusal
            assert bits(memory) == before, f"{row}: a refused call wrote"


def check_out_refused(row: Op) -> None:
    """A wrong out raises, names the function and stays untouched."""
    case = simple_case(row, (4, 3))
    kwargs, back_kwargs = row.of_forward(case.kwargs), row.of_backward(case.kwargs)
    inputs = tensors(gradient_inputs(row, case, np.float32))
    output = forward(row, inputs, kwargs)

    def wrong_for(shape: tuple[int, ...], dtype: np.dtype) -> list[tuple[Any, Any]]:
        size = int(np.prod(shape))
        shapes = {shape[::-1], (size,), (1, *shape), tuple(n + 1 for n in shape), (*shape, 1), ()}
        wrong: list[tuple[Any, Any]] = [
            (np.full(other, 1, dtype), ValueError) for other in shapes - {shape}
        ]
        for other in ("float16", "float32", "float64", "int32", "bool"):
            if other != dtype:
                wrong.append((np.full(shape, 1, other), TypeError))
        read_only = np.full(shape, 1, dtype)
        read_only.flags.writeable = False
        wrong.append((read_only, (ValueError, TypeError)))
        if size > 1:
            strides = (0,) * len(shape)
            repeated = np.lib.stride_tricks.as_strided(np.ones(1, dtype), shape, strides)
            wrong.append((repeated, ValueError))
        return wrong

    def refused(name: str, call: Any, array: Any, error: Any, wrap: Any = lambda out: out) -> None:
        before = bits(array)
        with pytest.raises(error, match=name):
            call(wrap(ex.asarray(array)))
        assert bits(array) == before, f"{name}: a failed call wrote into out"

    shape, dtype = np.shape(output), np.asarray(output).dtype
    for array, error in wrong_for(shape, dtype):
        refused(row.name, lambda out: row.forward(*inputs, **kwargs, out=out), array, error)
    for nonsense in ("text", 3, [1.0]):
        with pytest.raises(TypeError, match=row.name):
            row.forward(*inputs, **kwargs, out=nonsense)
    # an error elsewhere leaves a good out alone
    good = np.full(shape, 1, dtype)
    bad = [np.ones((5, 7), np.float32), *inputs[1:]] if row.arity > 1 else [BAD_INPUTS["complex"]]
    refused(
        row.name, lambda out: row.forward(*bad, **kwargs, out=out), good, (ValueError, TypeError)
    )
    if not row.terms:
        return
    g = upstream(generator("refused", row), output)
    saved = row.save(inputs, output)
    name = row.backward_name or ""
    count = len(row.gradients)
    shapes = [np.shape(inputs[i]) for i in row.gradients]
    for array, error in wrong_for(shapes[-1], np.dtype(np.float32)):
        # the wrong one last: the first must not be written before the last is looked at
        first = [np.full(shape, 1, np.float32) for shape in shapes[:-1]]
        refused(
            name,
            lambda out: row.backward(g, *saved, **back_kwargs, out=out),
            array,
            error,
            (lambda out, first=first: (*tensors(first), out)) if count > 1 else lambda out: out,
        )
        assert all((place == 1).all() for place in first), f"{name}: wrote before it failed"
    if count > 1:
        places = tensors(np.zeros(shape, np.float32) for shape in shapes)
        for out in (places[0], places[:-1], (*places, places[0]), "text"):
            with pytest.raises((TypeError, ValueError), match=name):
                row.backward(g, *saved, **back_kwargs, out=out)
        if shapes[0] == shapes[1]:  # one tensor cannot hold two gradients
            with pytest.raises(ValueError, match=name):
                row.backward(g, *saved, **back_kwargs, out=(places[0], places[0], *places[2:]))


def check_needs(row: Op) -> None:
    """What is not needed is None; what is needed has the same bits."""
    for case in row.cases:
        inputs = tensors(gradient_inputs(row, case, np.float32))
        output = forward(row, inputs, case.kwargs)
        g = upstream(generator("needs", row), output)
        gradients = backward(row, g, inputs, output, case.kwargs)
        for needs in itertools.product((True, False), repeat=len(gradients)):
            found = backward(row, g, inputs, output, case.kwargs, needs=needs)
            assert len(found) == len(gradients)
            for need, got, wanted in zip(needs, found, gradients, strict=True):
                assert (got is not None) == need, f"{row.backward_name} needs={needs}"
                if need:
                    assert_same_bits(got, wanted, f"{row.backward_name} {case} needs={needs}")
            places = tuple(
                ex.empty_like(gradient) if need else None
                for gradient, need in zip(gradients, needs, strict=True)
            )
            written = row.backward(
                g,
                *row.save(inputs, output),
                **row.of_backward(case.kwargs),
                needs=needs,
                out=places,
            )
            for got, place, wanted in zip(written, places, gradients, strict=True):
                assert got is place
                if place is not None:
                    assert_same_bits(place, wanted, f"{row.backward_name} needs={needs} with out")
    saved = row.save(inputs, output)
    for needs in ((True,), (True,) * (len(row.gradients) + 1), "yes", True):
        with pytest.raises((TypeError, ValueError), match=row.backward_name):
            row.backward(g, *saved, needs=needs)


# --- errors -------------------------------------------------------------------------------------


def check_bad_grad_output(row: Op) -> None:
    """A wrong shape (also with the right count) and a wrong dtype raise, in every case."""
    name = row.backward_name or ""
    for case in row.cases:
        inputs = tensors(gradient_inputs(row, case, np.float32))
        output = forward(row, inputs, case.kwargs)
        saved = row.save(inputs, output)
        kwargs = row.of_backward(case.kwargs)
        shape = np.shape(output)
        if row.saved == "nothing":
            wrong = set()  # any shape is the shape of some input
        else:
            wrong = {
                (1, *shape),
                (*shape, 1),
                (*shape, 2),
                shape[1:],
                shape[:-1],
                (np.size(output),),
            }
            wrong |= {shape[::-1], tuple(1 for _ in shape), (), tuple(n + 1 for n in shape)}
        fine = {shape}
        if row.grad_shapes:
            fine |= row.grad_shapes(*case.shapes, **case.kwargs)
        for bad in wrong - fine:
            with pytest.raises(ValueError, match=name) as caught:
                row.backward(np.ones(bad, np.float32), *saved, **kwargs)
            assert str(bad) in str(caught.value), f"{name} does not show {bad}: {caught.value}"
        for dtype in ("int64", "uint8", "bool", "complex64", "object"):
            with pytest.raises(TypeError, match=name):
                row.backward(np.ones(shape, dtype), *saved, **kwargs)


def check_bad_inputs(row: Op) -> None:
    """Text, None, complex, objects and ragged lists raise and name the function."""
    case = simple_case(row, (2,))
    kwargs, back_kwargs = row.of_forward(case.kwargs), row.of_backward(case.kwargs)
    good = tensors(row.sample(generator("bad", row), case, np.float32))
    output = forward(row, good, kwargs)
    for what, bad in BAD_INPUTS.items():
        for i in range(row.arity):
            inputs = [bad if k == i else value for k, value in enumerate(good)]
            if what == "object" and row.domains[i].dtype == "bool":
                continue  # anything with a truth value can be a mask
            with pytest.raises((TypeError, ValueError), match=row.name):
                row.forward(*inputs, **kwargs)
        if row.terms:
            saved = row.save(good, output)
            with pytest.raises((TypeError, ValueError), match=row.backward_name):
                row.backward(bad, *saved, **back_kwargs)
            for i, value in enumerate(saved):
                if what == "object" and row.domains[min(i, row.arity - 1)].dtype == "bool":
                    continue
                if isinstance(value, tuple) and isinstance(bad, np.ndarray):
                    continue  # of a tensor in the place of a shape only the shape is used
                spoiled = [bad if k == i else value for k, value in enumerate(saved)]
                with pytest.raises((TypeError, ValueError), match=row.backward_name):
                    row.backward(ex.ones(np.shape(output)), *spoiled, **back_kwargs)
    if row.elementwise and row.arity > 1:
        inputs = [ex.ones((2, 3)), *(ex.ones((4,)) for _ in good[1:])]
        with pytest.raises(ValueError, match=row.name) as caught:
            row.forward(*inputs)
        for shape in ("(2, 3)", "(4,)"):
            assert shape in str(caught.value)
    with pytest.raises(TypeError):
        row.forward()
    with pytest.raises(TypeError):
        row.forward(*good, nonsense=1)
