"""Tell two interleaved half-moons apart, with the loss that takes logits.

    python examples/binary_classification.py

The last layer gives one number z; the probability of class 1 is σ(z). The loss and its gradient are
computed from z itself, so that a confident network never meets ln 0: the gradient is σ(z) − y.
"""

from __future__ import annotations

import numpy as np

import extensor as ex


def half_moons(count: int, rng: np.random.Generator) -> tuple[ex.ExTensor, ex.ExTensor]:
    """Points on two half circles with noise, and which circle each belongs to."""
    angle = rng.uniform(0, np.pi, count)
    label = rng.integers(0, 2, count)
    x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
    points = np.stack([x, y], axis=1) + rng.normal(0, 0.1, (count, 2))
    return ex.asarray(points.astype(np.float32)), ex.asarray(label.astype(np.float32)[:, None])


def main(seed: int = 0, quiet: bool = False) -> dict[str, float]:
    """Train on 400 points; loss and accuracy on 400 others."""
    rng = np.random.default_rng(seed)
    x, y = half_moons(400, rng)
    test_x, test_y = half_moons(400, rng)
    w1, b1 = ex.kaiming_uniform(2, (32, 2), rng=rng), ex.zeros(32)
    w2, b2 = ex.xavier_uniform(32, 1, (1, 32), rng=rng), ex.zeros(1)
    optimizer = ex.AdamW([w1, b1, w2, b2], lr=0.02)

    for step in range(301):
        before = ex.linear(x, w1, b1)
        hidden = ex.gelu(before)
        logits = ex.linear(hidden, w2, b2)
        loss = ex.binary_cross_entropy_with_logits(logits, y, reduction="mean")

        grad = ex.binary_cross_entropy_with_logits_backward(1.0, logits, y, reduction="mean")
        grad, grad_w2, grad_b2 = ex.linear_backward(grad, hidden, w2)
        grad = ex.gelu_backward(grad, before)
        _, grad_w1, grad_b1 = ex.linear_backward(grad, x, w1, needs=(False, True, True))
        optimizer.step([grad_w1, grad_b1, grad_w2, grad_b2])
        if not quiet and step % 50 == 0:
            print(f"step {step:3d}   loss {loss.item():.4f}")
    logits = ex.linear(ex.gelu(ex.linear(test_x, w1, b1)), w2, b2)
    found = {
        "loss": ex.binary_cross_entropy_with_logits(logits, test_y, reduction="mean").item(),
        "accuracy": ex.mean(ex.equal(logits > 0, test_y > 0.5).astype(ex.float32)).item(),
    }
    if not quiet:
        print(f"new points: loss {found['loss']:.4f}, accuracy {found['accuracy']:.1%}")
    return found


if __name__ == "__main__":
    main()
