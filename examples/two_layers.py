"""A two-layer network learns a function of another two-layer network, to a loss below 1e-3.

    python examples/two_layers.py

The data are synthetic: a fixed random network answers random inputs. Parameters have names, the
learning rate warms up and then follows a cosine, and long gradients are cut short.
"""

from __future__ import annotations

import numpy as np

import extensor as ex

STEPS, BATCH = 3000, 64


def network(params: ex.ParameterDict, x: ex.ExTensor) -> tuple[ex.ExTensor, ...]:
    """The output, and what the backward pass needs."""
    before = ex.linear(x, params["hidden.weight"].data, params["hidden.bias"].data)
    hidden = ex.relu(before)
    return ex.linear(hidden, params["out.weight"].data, params["out.bias"].data), before, hidden


def network_backward(
    grad: ex.ExTensor,
    params: ex.ParameterDict,
    x: ex.ExTensor,
    before: ex.ExTensor,
    hidden: ex.ExTensor,
) -> None:
    """Leave the gradient of every parameter in its .grad."""
    grad, params["out.weight"].grad, params["out.bias"].grad = ex.linear_backward(
        grad, hidden, params["out.weight"].data
    )
    grad = ex.relu_backward(grad, before)
    _, params["hidden.weight"].grad, params["hidden.bias"].grad = ex.linear_backward(
        grad, x, params["hidden.weight"].data, needs=(False, True, True)
    )


def made(sizes: tuple[int, int, int], rng: np.random.Generator) -> ex.ParameterDict:
    inputs, hidden, outputs = sizes
    return ex.ParameterDict(
        {
            "hidden": {
                "weight": ex.kaiming_normal(inputs, (hidden, inputs), rng=rng),
                "bias": ex.zeros(hidden),
            },
            "out": {
                "weight": ex.xavier_normal(hidden, outputs, (outputs, hidden), rng=rng),
                "bias": ex.zeros(outputs),
            },
        }
    )


def main(seed: int = 0, quiet: bool = False) -> dict[str, float]:
    """Train on 1024 samples; the mean squared error on them, and on 256 others."""
    rng = np.random.default_rng(seed)
    teacher = made((4, 4, 2), rng)
    inputs = ex.asarray(rng.normal(size=(1280, 4)).astype(np.float32))
    answers, *_ = network(teacher, inputs)
    train_x, train_y, test_x, test_y = inputs[:1024], answers[:1024], inputs[1024:], answers[1024:]

    student = made((4, 64, 2), rng)
    optimizer = ex.Adam(student, lr=1e-2)
    scheduler = ex.WarmupLR(optimizer, 20, after=ex.CosineAnnealingLR(optimizer, STEPS - 20))
    for step in range(STEPS):
        rows = rng.integers(0, 1024, BATCH)
        x, y = train_x[rows], train_y[rows]
        prediction, before, hidden = network(student, x)
        loss = ex.mean_squared_error(prediction, y, reduction="mean")
        grad = ex.mean_squared_error_backward(1.0, prediction, y, reduction="mean")
        network_backward(grad, student, x, before, hidden)
        ex.clip_grad_norm(student.values(), 10.0)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        if not quiet and step % 500 == 0:
            print(f"step {step:4d}   loss {loss.item():.6f}   rate {optimizer.lr:.5f}")
    errors = {}
    for name, x, y in (("train", train_x, train_y), ("test", test_x, test_y)):
        prediction, *_ = network(student, x)
        errors[name] = ex.mean_squared_error(prediction, y, reduction="mean").item()
    if not quiet:
        print(f"mean squared error: {errors['train']:.2e} on the training set", end=", ")
        print(f"{errors['test']:.2e} on samples never seen")
    return errors


if __name__ == "__main__":
    main()
