"""Optimizers against the textbook recurrences, clipping, schedules, parameters, initializers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import assert_same_bits, bits, threads_used

import extensor as ex

# --- the recurrences, one parameter, in float64 -------------------------------------------------


def sgd(
    p: np.ndarray, lr: float, momentum: float = 0, nesterov: bool = False, weight_decay: float = 0
) -> Callable[[np.ndarray], np.ndarray]:
    velocity = np.zeros_like(p)

    def step(g: np.ndarray) -> np.ndarray:
        nonlocal p, velocity
        d = g + weight_decay * p
        if momentum:
            velocity = momentum * velocity + d
            d = d + momentum * velocity if nesterov else velocity
        p = p - lr * d
        return p

    return step


def adam(
    p: np.ndarray,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0,
    decoupled: bool = False,
) -> Callable[[np.ndarray], np.ndarray]:
    m, v, t = np.zeros_like(p), np.zeros_like(p), 0
    b1, b2 = betas

    def step(g: np.ndarray) -> np.ndarray:
        nonlocal p, m, v, t
        t += 1
        if decoupled:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        p = p - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
        return p

    return step


def adamw(p: np.ndarray, weight_decay: float = 0.01, **settings: Any) -> Any:
    return adam(p, weight_decay=weight_decay, decoupled=True, **settings)


def rmsprop(
    p: np.ndarray,
    lr: float = 1e-2,
    alpha: float = 0.99,
    eps: float = 1e-8,
    momentum: float = 0,
    weight_decay: float = 0,
) -> Callable[[np.ndarray], np.ndarray]:
    v, buffer = np.zeros_like(p), np.zeros_like(p)

    def step(g: np.ndarray) -> np.ndarray:
        nonlocal p, v, buffer
        g = g + weight_decay * p
        v = alpha * v + (1 - alpha) * g**2
        s = g / (np.sqrt(v) + eps)
        if momentum:
            buffer = momentum * buffer + s
            s = buffer
        p = p - lr * s
        return p

    return step


CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (ex.SGD, sgd, {"lr": 0.1}),
    (ex.SGD, sgd, {"lr": 0.1, "weight_decay": 0.2}),
    (ex.SGD, sgd, {"lr": 0.1, "momentum": 0.9}),
    (ex.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    (ex.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (ex.SGD, sgd, {"lr": 0.01, "momentum": 0.5, "nesterov": True, "weight_decay": 0.1}),
    (ex.Adam, adam, {}),
    (ex.Adam, adam, {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-4}),
    (ex.Adam, adam, {"lr": 0.1, "weight_decay": 0.3}),
    (ex.AdamW, adamw, {}),
    (ex.AdamW, adamw, {"lr": 0.1, "weight_decay": 0.3}),
    (ex.RMSprop, rmsprop, {}),
    (ex.RMSprop, rmsprop, {"lr": 0.1, "alpha": 0.9, "momentum": 0.8}),
    (ex.RMSprop, rmsprop, {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.1, "eps": 1e-3}),
]
NAMES = [f"{kind.__name__}{settings}" for kind, _, settings in CASES]
every = pytest.mark.parametrize(("kind", "textbook", "settings"), CASES, ids=NAMES)


def samples(count: int, shape: Any, dtype: Any = np.float64, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for _ in range(count)]


@every
def test_trajectory(kind: Any, textbook: Any, settings: Any) -> None:
    starts = [*samples(3, (5, 7)), *samples(1, 10_001), *samples(1, ())]
    params = [ex.tensor(start) for start in starts]
    optimizer = kind(params, **settings)
    rules = [textbook(start, **settings) for start in starts]
    rng = np.random.default_rng(1)
    for _ in range(50):
        grads = [rng.normal(size=start.shape) for start in starts]
        optimizer.step(grads)
        for param, rule, grad in zip(params, rules, grads, strict=True):
            wanted = rule(grad)
            np.testing.assert_allclose(param, wanted, rtol=1e-12, atol=1e-12)


@every
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_lower_precision(kind: Any, textbook: Any, settings: Any, dtype: str) -> None:
    """float32 state; each step is the float64 one to the rounding of the parameter."""
    (start,) = samples(1, 3000, dtype)
    param = ex.tensor(start)
    optimizer = kind([param], **settings)
    rng = np.random.default_rng(1)
    rule = textbook(start.astype(np.float64), **settings)
    tolerance = {"float32": 1e-5, "float16": 2e-2}[dtype]
    for _ in range(10):
        grad = rng.normal(size=3000).astype(dtype)
        before = param.numpy().astype(np.float64)
        optimizer.step([grad])
        wanted = rule(grad.astype(np.float64))
        np.testing.assert_allclose(param, wanted, rtol=tolerance, atol=tolerance)
        assert param.dtype == dtype
        assert (param.numpy() != before).any()
    for name, value in optimizer.state_dict()["state"][0].items():
        if name != "steps":
            assert value.dtype == np.float32


@pytest.mark.parametrize("other", ["float16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradients_of_another_dtype(dtype: str, other: str) -> None:
    (start,) = samples(1, 3000, dtype)
    grad = samples(1, 3000, np.float16, seed=4)[0]
    one, two = ex.tensor(start), ex.tensor(start)
    ex.Adam([one], lr=0.1).step([grad.astype(dtype)])
    ex.Adam([two], lr=0.1).step([grad.astype(other)])
    assert_same_bits(one, two)


@every
def test_layouts(kind: Any, textbook: Any, settings: Any) -> None:
    """Strided parameters and gradients are updated where they lie."""
    start = samples(1, (12, 10))[0]
    wanted = ex.tensor(start)
    optimizer = kind([wanted], **settings)
    places = {
        "strided": np.zeros((24, 30))[::2, ::3],
        "reversed": np.zeros((12, 10))[::-1, ::-1],
        "transposed": np.zeros((10, 12)).T,
    }
    others = {}
    for name, place in places.items():
        place[...] = start
        others[name] = (kind([ex.asarray(place)], **settings), place)
    for grad in samples(3, (12, 10), seed=2):
        optimizer.step([grad])
        for name, (other, place) in others.items():
            other.step([np.asfortranarray(grad)])
            assert_same_bits(np.array(place), wanted.numpy(), name)
    assert (places["strided"].base[1::2] == 0).all()


@every
def test_threads(kind: Any, textbook: Any, settings: Any) -> None:
    for dtype in ("float16", "float32", "float64"):
        starts = [*samples(1, 700_001, dtype), *samples(5, 1000, dtype), *samples(1, 50_003, dtype)]
        grads = [
            *samples(1, 700_001, dtype, 1),
            *samples(5, 1000, dtype, 1),
            *samples(1, 50_003, dtype, 1),
        ]
        results = []
        for count in (1, 2, 3, 8):
            params = [ex.tensor(start) for start in starts]
            optimizer = kind(params, **settings)
            with ex.num_threads(count):
                for _ in range(2):
                    optimizer.step(grads)
                    assert threads_used() == count
            results.append(params)
        for params in results[1:]:
            for one, other in zip(params, results[0], strict=True):
                assert_same_bits(one, other)


@every
def test_frozen_parameters_keep_the_others_in_place(
    kind: Any, textbook: Any, settings: Any
) -> None:
    """None gradients: neither value nor state moves, and the other parameters go on as alone."""
    starts = samples(3, 6)
    params = [ex.Parameter(start) for start in starts]
    optimizer = kind(params, **settings)
    rules = [textbook(start, **settings) for start in starts]
    rng = np.random.default_rng(2)
    wanted = list(starts)
    for turn in range(12):
        grads: list[Any] = [rng.normal(size=6) for _ in starts]
        if turn in (3, 4, 9):
            grads[1] = None
        if turn == 5:
            params[0].requires_grad = False
        if turn == 8:
            params[0].requires_grad = True
        for i, grad in enumerate(grads):
            params[i].grad = grad
            if grad is not None and params[i].requires_grad:
                wanted[i] = rules[i](grad)
        if turn % 2:
            optimizer.step()
        else:
            optimizer.step(grads)
        for param, value in zip(params, wanted, strict=True):
            np.testing.assert_allclose(param.data, value, rtol=1e-12, atol=1e-13)
    optimizer.zero_grad()
    assert all(param.grad is None for param in params)
    before = [bits(param.data) for param in params]
    optimizer.step()
    assert before == [bits(param.data) for param in params]


@every
def test_state_dict_round_trip(kind: Any, textbook: Any, settings: Any) -> None:
    starts = samples(3, (4, 5), np.float32)
    grads = samples(8, (4, 5), np.float32, 3)
    params = [ex.tensor(start) for start in starts]
    optimizer = kind(params, **settings)
    for grad in grads[:4]:
        optimizer.step([grad, None, grad])
    optimizer.lr = optimizer.lr / 2
    saved = optimizer.state_dict()
    values = [ex.tensor(param) for param in params]
    kept = copy.deepcopy(saved)
    for grad in grads[4:]:
        optimizer.step([grad, grad, None])
    # what was saved is a copy
    for index, entry in kept["state"].items():
        for name, value in entry.items():
            np.testing.assert_array_equal(saved["state"][index][name], value)
    others = [ex.tensor(value) for value in values]
    other = kind(others, **{**settings, "lr": 7.0})
    other.load_state_dict(saved)
    assert other.lr == saved["lr"]
    assert [getattr(other, name) for name in type(other)._settings] == [
        getattr(optimizer, name) for name in type(other)._settings
    ]
    for grad in grads[4:]:
        other.step([grad, grad, None])
    for one, two in zip(params, others, strict=True):
        assert_same_bits(one, two)
    # and what was loaded, too
    for index, entry in kept["state"].items():
        for name, value in entry.items():
            np.testing.assert_array_equal(saved["state"][index][name], value)


def test_state_dict_errors() -> None:
    optimizer = ex.Adam([ex.zeros(3), ex.zeros(2)])
    optimizer.step([ex.ones(3), ex.ones(2)])
    good = optimizer.state_dict()

    def changed(**changes: Any) -> dict[str, Any]:
        return {**copy.deepcopy(good), **changes}

    wrong = [
        changed(optimizer="SGD"),
        changed(count=3),
        changed(lr=-1.0),
        changed(lr=math.nan),
        changed(betas=(0.9, 1.0)),
        changed(extra=1),
        {key: value for key, value in good.items() if key != "lr"},
        changed(state={0: {"steps": 1, "exp_avg": ex.zeros(2), "exp_avg_sq": ex.zeros(3)}}),
        changed(state={0: {"steps": -1, "exp_avg": ex.zeros(3), "exp_avg_sq": ex.zeros(3)}}),
    ]
    for state in wrong:
        with pytest.raises(ValueError, match=r"Adam\.load_state_dict"):
            optimizer.load_state_dict(state)
        after = optimizer.state_dict()
        assert after["lr"] == good["lr"]
        assert bits(after["state"][0]["exp_avg"]) == bits(good["state"][0]["exp_avg"])
    with pytest.raises(TypeError, match="load_state_dict"):
        optimizer.load_state_dict([1])


@every
def test_a_failed_step_changes_nothing(kind: Any, textbook: Any, settings: Any) -> None:
    starts = samples(3, (2, 3), np.float32)
    params = [ex.tensor(start) for start in starts]
    optimizer = kind(params, **settings)
    good = [ex.tensor(value) for value in samples(3, (2, 3), np.float32, 1)]
    optimizer.step(good)
    before = [bits(param) for param in params]
    state = optimizer.state_dict()
    bad_lists: list[tuple[Any, Any]] = [
        ([good[0], good[1], ex.zeros((3, 2))], ValueError),
        ([good[0], good[1], ex.zeros(3)], ValueError),
        ([good[0], good[1], ex.zeros((2, 3), ex.int64)], TypeError),
        ([good[0], good[1], "text"], TypeError),
        (good[:2], ValueError),
        ([*good, None], ValueError),
        (good[0], TypeError),
        ({"a": good[0]}, TypeError),
        (3, TypeError),
        (None, TypeError),
    ]
    for grads, error in bad_lists:
        with pytest.raises(error, match=kind.__name__):
            optimizer.step(grads)
        assert before == [bits(param) for param in params]
        now = optimizer.state_dict()
        for index, entry in state["state"].items():
            for name, value in entry.items():
                assert bits(now["state"][index][name]) == bits(value)
    array = np.zeros((2, 3), np.float32)
    frozen = kind([params[0], ex.asarray(array)], **settings)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        frozen.step([good[0], good[1]])
    assert before == [bits(param) for param in params]


def test_wrong_settings() -> None:
    w = [ex.zeros(2)]
    for bad in (-0.1, math.nan, math.inf, -math.inf):
        for make in (
            lambda bad: ex.SGD(w, bad),
            lambda bad: ex.Adam(w, bad),
            lambda bad: ex.AdamW(w, lr=bad),
            lambda bad: ex.RMSprop(w, lr=bad),
            lambda bad: ex.SGD(w, 0.1, momentum=bad),
            lambda bad: ex.SGD(w, 0.1, weight_decay=bad),
            lambda bad: ex.Adam(w, eps=bad),
            lambda bad: ex.Adam(w, betas=(bad, 0.9)),
            lambda bad: ex.Adam(w, betas=(0.9, bad)),
            lambda bad: ex.Adam(w, weight_decay=bad),
            lambda bad: ex.RMSprop(w, alpha=bad),
            lambda bad: ex.RMSprop(w, momentum=bad),
            lambda bad: ex.sgd_step(w[0], w[0], bad),
        ):
            with pytest.raises(ValueError, match=r"SGD|Adam|AdamW|RMSprop|sgd_step"):
                make(bad)
        optimizer = ex.SGD(w, 0.1)
        with pytest.raises(ValueError, match="lr"):
            optimizer.lr = bad
        assert optimizer.lr == 0.1
    with pytest.raises(ValueError, match="nesterov"):
        ex.SGD(w, 0.1, nesterov=True)
    for betas in ((1.0, 0.9), (0.9, 1.0), (0.9,), 0.9):
        with pytest.raises(ValueError, match="betas"):
            ex.Adam(w, betas=betas)
    with pytest.raises(TypeError, match="lr"):
        ex.SGD(w, "fast")
    for params in (
        ex.zeros(2),
        np.zeros(2),
        "text",
        3,
        {"a": ex.zeros(2)},
        ex.Parameter(ex.zeros(2)),
    ):
        with pytest.raises(TypeError, match="SGD: params"):
            ex.SGD(params, 0.1)
    with pytest.raises(TypeError, match="SGD: parameter 1"):
        ex.SGD([w[0], [1.0]], 0.1)
    with pytest.raises(TypeError, match="int64"):
        ex.SGD([ex.zeros(2, ex.int64)], 0.1)
    with pytest.raises(ValueError, match="twice"):
        ex.SGD([w[0], w[0]], 0.1)
    read_only = np.zeros(2)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ex.SGD([ex.asarray(read_only)], 0.1)
    with pytest.raises(TypeError, match="grads"):
        ex.SGD(w, 0.1).step()


def test_many_small_tensors_and_empty_ones() -> None:
    params = [ex.full((i % 5,), float(i)) for i in range(100)]
    wanted = [param.numpy() - 0.5 for param in params]
    ex.SGD(params, lr=0.5).step([ex.ones(param.shape) for param in params])
    for param, value in zip(params, wanted, strict=True):
        np.testing.assert_array_equal(param, value)
    ex.SGD([], lr=0.5).step([])


def test_generators_and_dicts_of_parameters() -> None:
    params = ex.ParameterDict({"a": {"w": [1.0, 2.0]}, "b": [3.0]})
    optimizer = ex.SGD(params, lr=1.0)
    optimizer.step([ex.ones(2), ex.ones(1)])
    np.testing.assert_array_equal(params["a.w"].data, [0.0, 1.0])
    optimizer = ex.SGD((p for p in optimizer.params), lr=1.0)
    optimizer.step(iter([None, ex.ones(1)]))
    np.testing.assert_array_equal(params["b"].data, [1.0])
    params["b"].data = ex.tensor([10.0])
    optimizer.step([None, ex.ones(1)])
    np.testing.assert_array_equal(params["b"].data, [9.0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sgd_step_is_pure(dtype: str) -> None:
    p, g = samples(2, (30, 40), dtype)
    before = bits(p), bits(g)
    got = ex.sgd_step(p, g, 0.1)
    wanted = p.astype(np.float64) - 0.1 * g.astype(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-4)
    assert got.dtype == dtype
    assert (bits(p), bits(g)) == before
    assert_same_bits(ex.sgd_step(p.T, g.T, 0.1), np.ascontiguousarray(got.numpy().T))
    out = ex.empty((30, 40), dtype)
    assert ex.sgd_step(ex.asarray(p), g, 0.1, out=out) is out
    assert_same_bits(out, got)
    for bad in (g[:3], g.T, g[0]):
        with pytest.raises(ValueError, match="sgd_step"):
            ex.sgd_step(p, bad, 0.1)
    with pytest.raises(TypeError, match="sgd_step"):
        ex.sgd_step(p, g.astype(int), 0.1)


# --- clipping -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_clip_grad_norm(dtype: str) -> None:
    arrays = [*samples(2, (30, 7), dtype), *samples(1, 20_001, dtype), *samples(1, (), dtype)]
    norm = math.sqrt(sum(float((a.astype(np.longdouble) ** 2).sum()) for a in arrays))
    grads: list[Any] = [ex.tensor(a) for a in arrays]
    grads.insert(1, None)
    assert ex.clip_grad_norm(grads, 2 * norm) == pytest.approx(norm, rel=1e-12)
    assert [bits(g) for g in grads if g is not None] == [bits(a) for a in arrays]
    assert ex.clip_grad_norm(grads, norm / 4) == pytest.approx(norm, rel=1e-12)
    tolerance = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-13}[dtype]
    for got, array in zip((g for g in grads if g is not None), arrays, strict=True):
        np.testing.assert_allclose(got, array.astype(np.float64) / 4, rtol=tolerance, atol=1e-6)
        assert got.dtype == dtype
    assert ex.clip_grad_norm(grads, math.inf) == pytest.approx(norm / 4, rel=tolerance)
    ex.clip_grad_norm(grads, 0.0)
    assert all((np.asarray(g) == 0).all() for g in grads if g is not None)


def test_clip_grad_norm_at_the_ends_of_the_range() -> None:
    for size in (1e300, 1e-300, 5e-324, 1e200, 1.7e308 / 2):
        grads = [ex.tensor(np.array([size * 0.6, 0.0])), ex.tensor(np.array([size * 0.8]))]
        assert ex.clip_grad_norm(grads, math.inf) == pytest.approx(size, rel=1e-12, abs=5e-324)
    huge = [ex.tensor(np.full(2, 1e300))]
    ex.clip_grad_norm(huge, 1.0)
    np.testing.assert_allclose(huge[0], np.full(2, math.sqrt(0.5)), rtol=1e-14)
    single = [ex.full((3,), 3e38)]
    assert ex.clip_grad_norm(single, 1.0) == pytest.approx(3e38 * math.sqrt(3), rel=1e-6)
    np.testing.assert_allclose(single[0], np.full(3, 1 / math.sqrt(3)), rtol=1e-6)
    for bad in (math.nan, math.inf, -math.inf):
        for dtype in ("float16", "float32", "float64"):
            grads = [ex.ones(3, dtype), ex.tensor(np.array([1.0, bad, 2.0], dtype))]
            before = [bits(g) for g in grads]
            norm = ex.clip_grad_norm(grads, 0.1)
            assert not math.isfinite(norm)
            assert before == [bits(g) for g in grads]
    assert ex.clip_grad_norm([], 1.0) == 0
    assert ex.clip_grad_norm([ex.zeros(0), ex.zeros(3)], 1.0) == 0


def test_clipping_layouts_threads_and_errors() -> None:
    memory = np.zeros((40, 60), np.float32)
    memory[::2, ::3] = samples(1, (20, 20), np.float32)[0]
    part = memory[::2, ::3]
    plain = ex.tensor(part)
    assert ex.clip_grad_norm([ex.asarray(part)], 1.0) == ex.clip_grad_norm([plain], 1.0)
    assert_same_bits(np.array(part), plain.numpy())
    assert (memory[1::2] == 0).all()
    ex.clip_grad_value([part], 0.01)
    assert np.abs(part).max() == np.float32(0.01)
    (array,) = samples(1, 3_000_001, np.float32)
    norms = []
    for count in (1, 2, 3, 8):
        with ex.num_threads(count):
            norms.append(ex.clip_grad_norm([ex.asarray(array), ex.ones(9)], 1e9))
            assert threads_used() == count
    assert len(set(norms)) == 1
    for call in (ex.clip_grad_norm, ex.clip_grad_value):
        for bad in (-1.0, math.nan):
            with pytest.raises(ValueError, match=call.__name__):
                call([plain], bad)
        read_only = np.ones(3)
        read_only.flags.writeable = False
        first = ex.full((3,), 9.0)
        with pytest.raises(ValueError, match="read-only"):
            call([first, read_only], 0.1)
        with pytest.raises(TypeError, match=call.__name__):
            call([first, ex.zeros(3, ex.int32)], 0.1)
        with pytest.raises(TypeError, match=call.__name__):
            call([first, [1.0]], 0.1)
        with pytest.raises(ValueError, match="twice"):
            call([first, first], 0.1)
        np.testing.assert_array_equal(first, np.full(3, 9.0))
    grad = ex.tensor([math.nan, math.inf, -math.inf, 0.5, -0.5])
    ex.clip_grad_value([grad, None], 1.0)
    np.testing.assert_array_equal(grad, [math.nan, 1.0, -1.0, 0.5, -0.5])
    parameter = ex.Parameter(ex.zeros(2))
    parameter.grad = ex.tensor([3.0, 4.0])
    assert ex.clip_grad_norm([parameter, ex.Parameter(ex.zeros(3))], 1.0) == 5.0
    np.testing.assert_allclose(parameter.grad, [0.6, 0.8], rtol=1e-6)


# --- schedules ----------------------------------------------------------------------------------


def rates(optimizer: Any, scheduler: Any, count: int) -> Iterator[float]:
    for _ in range(count):
        yield optimizer.lr
        scheduler.step()


def made(lr: float = 0.8) -> Any:
    return ex.SGD([ex.zeros(1)], lr=lr)


def test_schedules() -> None:
    optimizer = made()
    got = list(rates(optimizer, ex.StepLR(optimizer, 3, 0.1), 9))
    np.testing.assert_allclose(got, [0.8] * 3 + [0.08] * 3 + [0.008] * 3, rtol=1e-15)
    optimizer = made()
    got = list(rates(optimizer, ex.CosineAnnealingLR(optimizer, 10, 0.2), 11))
    wanted = [0.2 + 0.3 * (1 + math.cos(math.pi * t / 10)) for t in range(11)]
    np.testing.assert_allclose(got, wanted, rtol=1e-15)
    optimizer = made()
    got = list(rates(optimizer, ex.WarmupLR(optimizer, 4), 7))
    np.testing.assert_allclose(got, [0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8], rtol=1e-15)
    optimizer = made()
    after = ex.CosineAnnealingLR(optimizer, 10)
    got = list(rates(optimizer, ex.WarmupLR(optimizer, 4, after=after), 15))
    wanted = [0.2, 0.4, 0.6, 0.8] + [0.4 * (1 + math.cos(math.pi * t / 10)) for t in range(11)]
    np.testing.assert_allclose(got, wanted, rtol=1e-15, atol=1e-16)
    optimizer = made()
    got = list(rates(optimizer, ex.WarmupLR(optimizer, 1, ex.StepLR(optimizer, 1, 0.5)), 4))
    np.testing.assert_allclose(got, [0.8, 0.8, 0.4, 0.2])


@pytest.mark.parametrize(
    "make",
    [
        lambda o: ex.StepLR(o, 3, 0.5),
        lambda o: ex.CosineAnnealingLR(o, 9, 0.01),
        lambda o: ex.WarmupLR(o, 4),
        lambda o: ex.WarmupLR(o, 4, ex.StepLR(o, 2)),
    ],
    ids=["StepLR", "CosineAnnealingLR", "WarmupLR", "WarmupLR and StepLR"],
)
def test_schedule_state(make: Any) -> None:
    for stop in range(9):
        optimizer = made()
        scheduler = make(optimizer)
        for _ in rates(optimizer, scheduler, stop):
            pass
        saved = scheduler.state_dict()
        wanted = list(rates(optimizer, scheduler, 6))
        other_optimizer = made(0.3)
        other = make(other_optimizer)
        other.load_state_dict(saved)
        assert list(rates(other_optimizer, other, 6)) == wanted
    with pytest.raises(ValueError, match="load_state_dict"):
        other.load_state_dict({"steps": 1})


def test_wrong_schedules() -> None:
    optimizer = made()
    for make in (ex.StepLR, ex.CosineAnnealingLR, ex.WarmupLR):
        for bad in (0, -1):
            with pytest.raises(ValueError, match=make.__name__):
                make(optimizer, bad)
        with pytest.raises(TypeError, match=make.__name__):
            make(optimizer, 1.5)
        with pytest.raises(TypeError, match=make.__name__):
            make(0.1, 3)
    with pytest.raises(ValueError, match="gamma"):
        ex.StepLR(optimizer, 1, -0.5)
    with pytest.raises(ValueError, match="another"):
        ex.WarmupLR(optimizer, 2, ex.StepLR(made(), 2))
    with pytest.raises(TypeError, match="after"):
        ex.WarmupLR(optimizer, 2, 3)
    assert optimizer.lr == 0.8


# --- parameters ---------------------------------------------------------------------------------


def test_parameter() -> None:
    tensor = ex.ones((2, 3))
    parameter = ex.Parameter(tensor)
    assert parameter.data is tensor
    assert (parameter.shape, parameter.size, parameter.dtype) == ((2, 3), 6, np.float32)
    assert parameter.requires_grad
    assert parameter.grad is None
    parameter.grad = np.zeros((2, 3))
    assert isinstance(parameter.grad, ex.ExTensor)
    with pytest.raises(ValueError, match=r"Parameter.grad.*\(3, 2\)"):
        parameter.grad = ex.zeros((3, 2))
    with pytest.raises(ValueError, match=r"Parameter\.data"):
        parameter.data = ex.zeros(3)
    with pytest.raises(TypeError, match="int64"):
        ex.Parameter([1, 2])
    with pytest.raises(TypeError, match="Parameter"):
        ex.Parameter("text")
    assert "Parameter(" in repr(parameter)
    np.testing.assert_array_equal(np.asarray(parameter), np.ones((2, 3)))


def test_parameter_dict() -> None:
    params = ex.ParameterDict({"a": {"w": ex.ones((2, 2)), "deep": {"b": [1.0]}}, "c": 2.0})
    assert list(params) == ["a.w", "a.deep.b", "c"]
    assert len(params) == 3
    assert "a" in params
    assert "a.w" in params
    assert "x" not in params
    assert [name for name, _ in params.named()] == list(params)
    assert params["a"]["w"] is params["a.w"]
    assert list(params["a"]) == ["w", "deep.b"]
    with pytest.raises(KeyError, match="nothing"):
        params["nothing"]
    for name in ("a", "a.w.x", "c.d"):
        with pytest.raises(ValueError, match="ParameterDict"):
            params[name] = [1.0]
    for name in ("", "a..b", ".a", "a."):
        with pytest.raises(ValueError, match="ParameterDict"):
            params[name] = [1.0]
    with pytest.raises(TypeError, match="name"):
        params[3] = [1.0]
    saved = params.state_dict()
    params["c"].data.fill(9.0)
    params["a.w"].data.fill(9.0)
    assert saved["c"].item() == 2.0
    kept = params["c"].data
    params.load_state_dict(saved)
    assert params["c"].data is kept
    assert kept.item() == 2.0
    for bad in (
        {**saved, "x": ex.zeros(1)},
        {"c": ex.zeros(())},
        {**saved, "c": ex.zeros(2), "a.w": ex.zeros((2, 2))},
    ):
        with pytest.raises(ValueError, match="load_state_dict"):
            params.load_state_dict(bad)
        assert kept.item() == 2.0
        np.testing.assert_array_equal(params["a.w"].data, np.ones((2, 2)))
    params["c"].grad = ex.ones(())
    params.zero_grad()
    assert params["c"].grad is None
    del params["a"]
    assert list(params) == ["c"]
    assert "c: () float32" in repr(params)


# --- initializers -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_initializers(dtype: str) -> None:
    shape = (400, 300)
    for make, sigma, bound in (
        (lambda rng: ex.xavier_uniform(400, 300, dtype=dtype, rng=rng), None, math.sqrt(6 / 700)),
        (lambda rng: ex.xavier_normal(400, 300, dtype=dtype, rng=rng), math.sqrt(2 / 700), None),
        (lambda rng: ex.kaiming_uniform(300, shape, dtype, rng=rng), None, math.sqrt(6 / 300)),
        (lambda rng: ex.kaiming_normal(300, shape, dtype, rng=rng), math.sqrt(2 / 300), None),
    ):
        first = make(1)
        assert first.shape == shape
        assert first.dtype == dtype
        assert_same_bits(make(1), first)
        assert_same_bits(make(np.random.default_rng(1)), first)
        generator = np.random.default_rng(1)
        make(generator)
        assert bits(make(generator)) != bits(first)
        assert bits(make(None)) != bits(make(None))
        values = first.numpy().astype(np.float64)
        if bound is not None:
            assert np.abs(values).max() <= bound * 1.001
            assert np.abs(values).max() > bound * 0.999
            wanted = bound / math.sqrt(3)
        else:
            wanted = sigma
            beyond = np.mean(np.abs(values) > 2 * wanted)
            assert beyond == pytest.approx(0.0455, abs=0.004)
        n = values.size
        assert abs(values.mean()) < 5 * wanted / math.sqrt(n)
        assert values.std() == pytest.approx(wanted, rel=5 / math.sqrt(2 * n) + 1e-3)
    # every dtype has the same numbers
    assert_same_bits(
        ex.kaiming_normal(9, (3, 3), dtype, rng=0),
        ex.kaiming_normal(9, (3, 3), "float64", rng=0).numpy().astype(dtype),
    )


def test_wrong_initializers() -> None:
    for make in (ex.xavier_uniform, ex.xavier_normal):
        assert make(2, 3, (3, 2), rng=0).shape == (3, 2)
        for fans in ((0, 1), (1, 0), (-1, 3)):
            with pytest.raises(ValueError, match=make.__name__):
                make(*fans)
        with pytest.raises(TypeError, match="fan_in"):
            make(1.5, 2)
    for make in (ex.kaiming_uniform, ex.kaiming_normal):
        with pytest.raises(ValueError, match=make.__name__):
            make(0, (2, 2))
        with pytest.raises(TypeError, match="shape"):
            make(2, "text")
        with pytest.raises(ValueError, match="negative"):
            make(2, (-1, 2))
        with pytest.raises(TypeError, match="dtype"):
            make(2, (2, 2), np.int64)
        for rng in ("seed", 1.5, True):
            with pytest.raises(TypeError, match="rng"):
                make(2, (2, 2), rng=rng)
        with pytest.raises(ValueError, match="rng"):
            make(2, (2, 2), rng=-1)
