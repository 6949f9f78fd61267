"""Recover a line from noisy points.

    python examples/linear_regression.py

The model is y = x·w + b. The gradient of the mean squared error comes out of two backward calls:
of the loss, and of `linear`.
"""

from __future__ import annotations

import numpy as np

import extensor as ex

SLOPE, INTERCEPT, NOISE = 1.7, -0.4, 0.05


def main(seed: int = 0, quiet: bool = False) -> dict[str, float]:
    """Fit 200 points; the slope, the intercept and the loss that were found."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (200, 1)).astype(np.float32)
    y = (SLOPE * x + INTERCEPT + rng.normal(0, NOISE, x.shape)).astype(np.float32)
    x, y = ex.asarray(x), ex.asarray(y)

    weight, bias = ex.zeros((1, 1)), ex.zeros(1)
    optimizer = ex.SGD([weight, bias], lr=0.2)
    loss = ex.zeros(())
    for step in range(100):
        prediction = ex.linear(x, weight, bias)
        loss = ex.mean_squared_error(prediction, y, reduction="mean")
        grad = ex.mean_squared_error_backward(1.0, prediction, y, reduction="mean")
        _, grad_weight, grad_bias = ex.linear_backward(grad, x, weight, needs=(False, True, True))
        optimizer.step([grad_weight, grad_bias])
        if not quiet and step % 20 == 0:
            print(f"step {step:3d}   loss {loss.item():.5f}")
    found = {"slope": weight.item(), "intercept": bias.item(), "loss": loss.item()}
    if not quiet:
        print(f"found y = {found['slope']:.3f}·x {found['intercept']:+.3f}", end=", ")
        print(f"the line was y = {SLOPE}·x {INTERCEPT:+}")
    return found


if __name__ == "__main__":
    main()
