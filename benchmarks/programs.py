"""What a single expression cannot say: optimizer steps, gradient clipping, whole training steps.

Every function takes the library's name and returns `(call, check)`: `call()` is timed, `check()`
returns what must agree between the libraries after one call.
"""

from functools import partial

import numpy as np

_OPTIONS = {
    "SGD": {"lr": 0.01},
    "SGD:momentum": {"lr": 0.01, "momentum": 0.9},
    "Adam": {"lr": 1e-3},
    "AdamW": {"lr": 1e-3, "weight_decay": 0.01},
    "RMSprop": {"lr": 1e-2},
}


def optimizer(library, name, x, g):
    """One optimizer step on one parameter, in place; the library's fused form if it has one."""
    options, kind = _OPTIONS[name], name.partition(":")[0]
    if library == "extensor":
        import extensor as ex

        p = ex.tensor(x)
        return partial(getattr(ex, kind)([p], **options).step, [g]), lambda: p
    if library == "torch":
        import torch

        p = torch.nn.Parameter(x.clone())
        p.grad = g
        fused = {} if kind == "RMSprop" else {"fused": True}
        return getattr(torch.optim, kind)([p], **options, **fused).step, p.detach
    if library == "numpy":
        return _numpy_optimizer(name, x.copy(), g, **options)
    return _jax_optimizer(name, x, g, **options)


def _numpy_optimizer(name, p, g, lr, momentum=0.0, weight_decay=0.0):
    m, v, count = np.zeros_like(p), np.zeros_like(p), 0

    def sgd():
        nonlocal m
        if momentum:
            m *= momentum
            m += g
            np.subtract(p, lr * m, out=p)
        else:
            np.subtract(p, lr * g, out=p)

    def adam():
        nonlocal m, v, count
        count += 1
        if weight_decay:
            np.multiply(p, 1 - lr * weight_decay, out=p)
        m *= 0.9
        m += 0.1 * g
        v *= 0.999
        v += 0.001 * (g * g)
        scale = np.sqrt(v)
        scale /= (1 - 0.999**count) ** 0.5
        scale += 1e-8
        np.subtract(p, (lr / (1 - 0.9**count)) * m / scale, out=p)

    def rmsprop():
        nonlocal v
        v *= 0.99
        v += 0.01 * (g * g)
        np.subtract(p, lr * g / (np.sqrt(v) + 1e-8), out=p)

    call = {"SGD": sgd, "SGD:momentum": sgd, "RMSprop": rmsprop}.get(name, adam)
    return call, lambda: p


def _jax_optimizer(name, p, g, lr, momentum=0.0, weight_decay=0.0):
    import jax
    import jax.numpy as jnp

    def sgd(p, m, v, t, g):
        m = momentum * m + g
        return p - lr * m, m, v, t

    def plain(p, m, v, t, g):
        return p - lr * g, m, v, t

    def adam(p, m, v, t, g):
        t = t + 1
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        scale = (jnp.sqrt(v) / jnp.sqrt(1 - 0.999**t) + 1e-8).astype(p.dtype)
        p = p * (1 - lr * weight_decay) - (lr / (1 - 0.9**t)).astype(p.dtype) * m / scale
        return p, m, v, t

    def rmsprop(p, m, v, t, g):
        v = 0.99 * v + 0.01 * g * g
        return p - lr * g / (jnp.sqrt(v) + 1e-8), m, v, t

    update = {"SGD": plain, "SGD:momentum": sgd, "RMSprop": rmsprop}.get(name, adam)
    step = jax.jit(update, donate_argnums=(0, 1, 2))
    count = jnp.zeros((), "float32" if p.dtype == "float16" else p.dtype)
    state = [jnp.array(p), jnp.zeros_like(p), jnp.zeros_like(p), count]

    def call():
        state[:] = step(*state, g)
        state[0].block_until_ready()

    return call, lambda: state[0]


def clip_norm(library, g):
    """The global norm and the scaling that follows; only the first call shrinks the gradient."""
    g = g.copy() if library != "torch" else g.clone()
    if library == "extensor":
        import extensor as ex

        return partial(ex.clip_grad_norm, [g], 1.0), lambda: g
    if library == "torch":
        import torch

        p = torch.nn.Parameter(torch.zeros_like(g))
        p.grad = g
        return partial(torch.nn.utils.clip_grad_norm_, [p], 1.0), lambda: g

    def call():
        norm = np.sqrt(np.vdot(g, g))
        np.multiply(g, min(1.0, 1.0 / (float(norm) + 1e-6)), out=g)

    return call, lambda: g


def clip_value(library, g):
    """Every gradient entry into [−1, 1], in place."""
    g = g.copy() if library != "torch" else g.clone()
    if library == "extensor":
        import extensor as ex

        return partial(ex.clip_grad_value, [g], 1.0), lambda: g
    if library == "torch":
        import torch

        p = torch.nn.Parameter(torch.zeros_like(g))
        p.grad = g
        return partial(torch.nn.utils.clip_grad_value_, [p], 1.0), lambda: g
    return partial(np.clip, g, -1.0, 1.0, out=g), lambda: g


def training(library, sizes, dtype):
    """A two-layer network: forward, cross-entropy, backward without the input's gradient, SGD."""
    batch, inputs, hidden, classes = sizes
    rng = np.random.default_rng(7)
    name = str(dtype).removeprefix("torch.")
    x = rng.standard_normal((batch, inputs)).astype(name)
    t = rng.integers(0, classes, batch)
    parameters = [
        (rng.standard_normal(shape) / inputs**0.5).astype(name)
        for shape in ((hidden, inputs), (hidden,), (classes, hidden), (classes,))
    ]
    return globals()[f"_{library}_training"](x, t, parameters)


def _extensor_training(x, t, parameters):
    import extensor as ex

    x, t = ex.tensor(x), ex.tensor(t)
    w1, b1, w2, b2 = parameters = [ex.tensor(p) for p in parameters]
    sgd, one = ex.SGD(parameters, lr=0.01), ex.ones((), x.dtype)

    def call():
        z = ex.linear(x, w1, b1)
        a = ex.relu(z)
        logits = ex.linear(a, w2, b2)
        loss = ex.cross_entropy(logits, t, reduction="mean")
        grad = ex.cross_entropy_backward(one, logits, t, reduction="mean")
        grad, grad_w2, grad_b2 = ex.linear_backward(grad, a, w2)
        grad = ex.relu_backward(grad, z)
        _, grad_w1, grad_b1 = ex.linear_backward(grad, x, w1, needs=(False, True, True))
        sgd.step([grad_w1, grad_b1, grad_w2, grad_b2])
        return loss

    return call, lambda: w1


def _numpy_training(x, t, parameters):
    w1, b1, w2, b2 = parameters
    rows = np.arange(len(x))

    def call():
        z = x @ w1.T + b1
        a = np.maximum(z, 0)
        logits = a @ w2.T + b2
        logits -= logits.max(1, keepdims=True)
        grad = np.exp(logits)
        total = grad.sum(1, keepdims=True)
        loss = (np.log(total[:, 0]) - logits[rows, t]).mean()
        grad /= total
        grad[rows, t] -= 1
        grad /= len(x)
        grad_a = grad @ w2
        grad_a *= z > 0
        for p, g in (
            (w2, grad.T @ a),
            (b2, grad.sum(0)),
            (w1, grad_a.T @ x),
            (b1, grad_a.sum(0)),
        ):
            g *= 0.01
            p -= g
        return loss

    return call, lambda: w1


def _torch_training(x, t, parameters):
    import torch
    from torch.nn import functional

    x, t = torch.from_numpy(x), torch.from_numpy(t)
    w1, b1, w2, b2 = parameters = [torch.nn.Parameter(torch.from_numpy(p)) for p in parameters]
    sgd = torch.optim.SGD(parameters, lr=0.01)

    def call():
        sgd.zero_grad()
        a = torch.relu(functional.linear(x, w1, b1))
        loss = functional.cross_entropy(functional.linear(a, w2, b2), t)
        loss.backward()
        sgd.step()
        return loss

    return call, w1.detach


def _jax_training(x, t, parameters):
    import jax
    import jax.numpy as jnp

    def loss(parameters, x, t):
        w1, b1, w2, b2 = parameters
        logits = jax.nn.relu(x @ w1.T + b1) @ w2.T + b2
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), t[:, None], 1).mean()

    def step(parameters, x, t):
        value, grads = jax.value_and_grad(loss)(parameters, x, t)
        return value, [p - 0.01 * g for p, g in zip(parameters, grads, strict=True)]

    step = jax.jit(step, donate_argnums=0)
    x, t, state = jnp.array(x), jnp.array(t), [jnp.array(p) for p in parameters]

    def call():
        value, state[:] = step(list(state), x, t)
        jax.block_until_ready(state)
        return value

    return call, lambda: state[0]
