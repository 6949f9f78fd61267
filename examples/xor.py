"""Learn XOR: the smallest problem that one layer cannot solve.

    python examples/xor.py

Two layers, tanh between them, and the binary cross-entropy of the output's logit.
"""

from __future__ import annotations

import numpy as np

import extensor as ex

INPUTS = ex.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
LABELS = ex.tensor([[0.0], [1.0], [1.0], [0.0]])


def main(seed: int = 0, quiet: bool = False) -> dict[str, object]:
    """Train on all four points; the final loss and the four predictions."""
    rng = np.random.default_rng(seed)
    w1, b1 = ex.xavier_uniform(2, 8, (8, 2), rng=rng), ex.zeros(8)
    w2, b2 = ex.xavier_uniform(8, 1, (1, 8), rng=rng), ex.zeros(1)
    optimizer = ex.Adam([w1, b1, w2, b2], lr=0.05)
    loss = ex.zeros(())
    for step in range(501):
        hidden = ex.tanh(ex.linear(INPUTS, w1, b1))
        logits = ex.linear(hidden, w2, b2)
        loss = ex.binary_cross_entropy_with_logits(logits, LABELS, reduction="mean")

        grad = ex.binary_cross_entropy_with_logits_backward(1.0, logits, LABELS, reduction="mean")
        grad, grad_w2, grad_b2 = ex.linear_backward(grad, hidden, w2)
        grad = ex.tanh_backward(grad, hidden)
        _, grad_w1, grad_b1 = ex.linear_backward(grad, INPUTS, w1, needs=(False, True, True))
        optimizer.step([grad_w1, grad_b1, grad_w2, grad_b2])
        if not quiet and step % 100 == 0:
            print(f"step {step:3d}   loss {loss.item():.5f}")
    probabilities = ex.sigmoid(ex.linear(ex.tanh(ex.linear(INPUTS, w1, b1)), w2, b2))
    predictions = [round(float(p), 3) for p in probabilities.ravel()]
    if not quiet:
        for point, p in zip(INPUTS.tolist(), predictions, strict=True):
            print(f"{point[0]:.0f} xor {point[1]:.0f}   {p:.3f}")
    return {"loss": loss.item(), "predictions": predictions}


if __name__ == "__main__":
    main()
