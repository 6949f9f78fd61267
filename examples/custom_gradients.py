"""An operation and a loss of one's own: forward, backward, and the check that they belong together.

    python examples/custom_gradients.py

A backward function takes the gradient of whatever comes after, and what the forward function saw;
it returns the gradient of each input. `check_gradient` compares it with differences of the forward
function, and finds the mistakes that everybody makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as ex

# --- an operation: x·|x|^p / (1 + |x|^p)·scale, a soft threshold with a learned scale per column


def soft_threshold(x: ex.ExTensor, scale: ex.ExTensor) -> ex.ExTensor:
    """scale · x³ / (1 + x²): close to zero small values vanish, large ones pass."""
    return scale * (x * x * x) / (1 + x * x)


def soft_threshold_backward(
    grad_output: ex.ExTensor, x: ex.ExTensor, scale: ex.ExTensor
) -> tuple[ex.ExTensor, ex.ExTensor]:
    """Gradients of x and of the scale, which is summed over the rows it was broadcast to."""
    square = x * x
    slope = square * (3 + square) / ((1 + square) * (1 + square))
    grad_x = grad_output * scale * slope
    grad_scale = ex.reduce_broadcast_dims(grad_output * (x * square) / (1 + square), scale.shape)
    return grad_x, grad_scale


# --- a loss: log cosh, a parabola near zero and a straight line far out


def log_cosh(predictions: ex.ExTensor, targets: ex.ExTensor) -> ex.ExTensor:
    """mean(ln cosh d), d = p − t, as |d| + softplus(−2|d|) − ln 2: cosh itself would overflow."""
    distance = ex.abs(predictions - targets)
    return ex.mean(distance + ex.softplus(-2.0 * distance) - float(np.log(2)))


def log_cosh_backward(
    grad_output: Any, predictions: ex.ExTensor, targets: ex.ExTensor
) -> ex.ExTensor:
    """Gradient with respect to the predictions: g·tanh(d)/n."""
    return grad_output * ex.tanh(predictions - targets) / predictions.size


def forgets_the_count(g: Any, predictions: ex.ExTensor, targets: ex.ExTensor) -> ex.ExTensor:
    """The usual mistake: the gradient of the sum, not of the mean."""
    return g * ex.tanh(predictions - targets)


def caught(forward: Callable[..., Any], backward: Callable[..., Any], inputs: list[Any]) -> bool:
    try:
        ex.check_gradient(forward, backward, inputs)
    except AssertionError:
        return True
    return False


def main(seed: int = 0, quiet: bool = False) -> dict[str, Any]:
    """Check both gradients, plant a wrong one, and learn the scales of the operation."""
    rng = np.random.default_rng(seed)
    x, scale = rng.normal(size=(5, 3)), rng.uniform(0.5, 2, 3)
    p, t = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    ex.check_gradient(soft_threshold, soft_threshold_backward, [x, scale])
    ex.check_gradient(lambda p: log_cosh(p, t), lambda g, p: log_cosh_backward(g, p, t), [p])
    wrong = caught(lambda p: log_cosh(p, t), lambda g, p: forgets_the_count(g, p, t), [p])

    true_scale = ex.tensor([0.5, 1.0, 2.0])
    inputs = ex.asarray(rng.normal(0, 2, (200, 3)).astype(np.float32))
    targets = soft_threshold(inputs, true_scale)
    learned = ex.ones(3)
    optimizer = ex.RMSprop([learned], lr=0.02, momentum=0.5)
    scheduler = ex.StepLR(optimizer, 100, gamma=0.3)
    loss = ex.zeros(())
    for _ in range(500):
        prediction = soft_threshold(inputs, learned)
        loss = log_cosh(prediction, targets)
        grad = log_cosh_backward(1.0, prediction, targets)
        _, grad_scale = soft_threshold_backward(grad, inputs, learned)
        optimizer.step([grad_scale])
        scheduler.step()
    if not quiet:
        print("both gradients agree with the differences;", end=" ")
        print("the planted mistake was caught" if wrong else "the planted mistake went unnoticed")
        print(f"scales {learned.tolist()} learned, {true_scale.tolist()} were true")
    return {"caught": wrong, "scale": learned.tolist(), "loss": loss.item()}


if __name__ == "__main__":
    main()
