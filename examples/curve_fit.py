"""Fit a curve to noisy points by gradient descent, every gradient written out.

    python examples/curve_fit.py [folder for the plot, default out]

The model is a sum of Chebyshev polynomials, y = Σ w[k]·T[k](x). Each step computes it, the mean
squared error, and the error's gradient with respect to the weights by the backward functions of
the operations used.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import extensor as ex

POINTS, DEGREE, STEPS, RATE = 400, 9, 600, 0.4


def true_curve(x: np.ndarray) -> np.ndarray:
    return np.sin(4 * x) * np.exp(-x) + 0.5 * x


def chebyshev(x: ex.ExTensor, degree: int) -> ex.ExTensor:
    """T[0] … T[degree] at x, one row each: T[k+1] = 2·x·T[k] − T[k−1]."""
    rows = [ex.ones_like(x), x]
    while len(rows) <= degree:
        rows.append(2 * x * rows[-1] - rows[-2])
    return ex.stack(rows)


def predict(weights: ex.ExTensor, basis: ex.ExTensor) -> ex.ExTensor:
    return ex.reduce_broadcast_dims(weights * basis, (1, basis.shape[1]))


def error_and_gradient(
    weights: ex.ExTensor, basis: ex.ExTensor, target: ex.ExTensor
) -> tuple[float, ex.ExTensor]:
    """The mean squared error, and its gradient with respect to the weights."""
    # Forward: terms -> prediction -> difference -> squared -> error
    terms = weights * basis
    prediction = ex.reduce_broadcast_dims(terms, (1, basis.shape[1]))
    difference = prediction - target
    squared = difference * difference
    error = float(ex.reduce_broadcast_dims(squared, ())) / squared.size
    # Backward, from the last operation to the first
    grad_squared = ex.full(squared.shape, 1 / squared.size)
    grad_left, grad_right = ex.multiply_backward(grad_squared, difference, difference)
    grad_difference = grad_left + grad_right
    grad_prediction, _ = ex.subtract_backward(
        grad_difference, prediction, target, needs=(True, False)
    )
    grad_terms = ex.broadcast_to(grad_prediction, terms.shape)
    grad_weights, _ = ex.multiply_backward(grad_terms, weights, basis, needs=(True, False))
    return error, grad_weights


def fit(
    basis: ex.ExTensor, target: ex.ExTensor, steps: int = STEPS, watch: object = None
) -> tuple[ex.ExTensor, list[float]]:
    """Gradient descent from zero; the weights, and the error at every step."""
    weights = ex.zeros((basis.shape[0], 1))
    errors = []
    for _ in range(steps):
        error, gradient = error_and_gradient(weights, basis, target)
        weights -= RATE * gradient
        errors.append(error)
        if callable(watch):
            watch(error)
    return weights, errors


def plot(
    path: Path, x: np.ndarray, noisy: np.ndarray, fitted: np.ndarray, errors: list[float]
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    left.plot(x, noisy, ".", color="0.7", label="points")
    left.plot(x, true_curve(x), "--", color="0.2", label="true curve")
    left.plot(x, fitted, color="tab:red", label="fitted")
    left.set(xlabel="x", ylabel="y", title="Curve fitted by gradient descent")
    left.legend()
    right.semilogy(errors, color="tab:red")
    right.set(xlabel="step", ylabel="mean squared error", title="Error while fitting")
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(folder: str = "out") -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, POINTS, dtype=np.float32)
    noisy = (true_curve(x) + rng.normal(0, 0.15, POINTS)).astype(np.float32)
    basis = chebyshev(ex.asarray(x), DEGREE)
    target = ex.asarray(noisy).reshape(1, -1)
    note = TextColumn("{task.fields[note]}")
    columns = (TextColumn("fitting"), BarColumn(), MofNCompleteColumn(), note)
    with Progress(*columns) as progress:
        task = progress.add_task("fitting", total=STEPS, note="")

        def watch(error: float) -> None:
            progress.update(task, advance=1, note=f"mean squared error {error:.5f}")

        weights, errors = fit(basis, target, watch=watch)
    fitted = np.asarray(predict(weights, basis)).reshape(-1)
    off = float(np.sqrt(np.mean((fitted - true_curve(x)) ** 2)))
    print(f"mean squared error: {errors[0]:.4f} at the start, {errors[-1]:.4f} at the end")
    print("                    (the noise alone makes 0.0225)")
    print(f"fit error: {off:.4f} root mean square from the true curve")
    path = Path(folder) / "curve_fit.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    plot(path, x, noisy, fitted, errors)
    print(f"plot: {path.resolve()}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
