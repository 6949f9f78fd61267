"""Read handwritten digits: a two-layer network, every gradient by an explicit backward function.

    python examples/digits.py [folder for the pictures, default out]

The data are the 1797 images of 8 × 8 pixels that come with scikit-learn; a fifth of them, shuffled
and with equal shares of every digit, is held out for testing. Training takes about a second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import extensor as ex

HIDDEN, BATCH, EPOCHS, NOISE = 256, 32, 60, 0.1


class Network:
    """Pixels → linear → relu → linear → logits of ten digits."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.w1 = ex.kaiming_uniform(64, (HIDDEN, 64), rng=rng)
        self.b1 = ex.zeros(HIDDEN)
        self.w2 = ex.xavier_uniform(HIDDEN, 10, (10, HIDDEN), rng=rng)
        self.b2 = ex.zeros(10)
        self.parameters = [self.w1, self.b1, self.w2, self.b2]

    def forward(self, x: ex.ExTensor) -> ex.ExTensor:
        """The logits; what `backward` needs is kept."""
        self.x = x
        self.before = ex.linear(x, self.w1, self.b1)
        self.hidden = ex.relu(self.before)
        return ex.linear(self.hidden, self.w2, self.b2)

    def backward(self, grad: ex.ExTensor) -> list[ex.ExTensor]:
        """From the gradient of the logits to those of the parameters."""
        grad, grad_w2, grad_b2 = ex.linear_backward(grad, self.hidden, self.w2)
        grad = ex.relu_backward(grad, self.before)
        _, grad_w1, grad_b1 = ex.linear_backward(grad, self.x, self.w1, needs=(False, True, True))
        return [grad_w1, grad_b1, grad_w2, grad_b2]


def load(seed: int) -> tuple[Any, Any, Any, Any]:
    """Training and test images (pixels 0 … 1) and their digits."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, digits = load_digits(return_X_y=True)
    parts = train_test_split(
        images.astype(np.float32) / 16,
        digits.astype(np.int64),
        test_size=0.2,
        shuffle=True,
        stratify=digits,
        random_state=seed,
    )
    return tuple(ex.asarray(np.ascontiguousarray(part)) for part in parts)  # type: ignore[return-value]


def accuracy(logits: ex.ExTensor, digits: ex.ExTensor) -> float:
    return float(np.mean(np.asarray(ex.argmax(logits, axis=1)) == np.asarray(digits)))


def train(
    seed: int = 0, epochs: int = EPOCHS, watch: Callable[..., None] | None = None
) -> dict[str, Any]:
    """Train; the network, the test set, and loss and accuracies after each epoch."""
    rng = np.random.default_rng(seed)
    train_x, test_x, train_y, test_y = load(seed)
    network = Network(rng)
    optimizer = ex.AdamW(network.parameters, lr=3e-3, weight_decay=0.02)
    batches = len(train_x) // BATCH
    scheduler = ex.WarmupLR(
        optimizer, 2 * batches, after=ex.CosineAnnealingLR(optimizer, (epochs - 2) * batches)
    )
    history: dict[str, list[float]] = {"loss": [], "train": [], "test": []}
    seconds = 0.0
    for epoch in range(epochs):
        order = rng.permutation(len(train_x))
        start = time.perf_counter()
        total = right = 0.0
        for first in range(0, batches * BATCH, BATCH):
            rows = order[first : first + BATCH]
            x, y = train_x[rows], train_y[rows]
            # never the same image twice, or the network learns them by heart
            x += rng.normal(0, NOISE, x.shape).astype(np.float32)
            logits = network.forward(x)
            loss = ex.cross_entropy(logits, y, reduction="mean")
            grad = ex.cross_entropy_backward(1.0, logits, y, reduction="mean")
            grads = network.backward(grad)
            ex.clip_grad_norm(grads, 5.0)
            optimizer.step(grads)
            scheduler.step()
            total += loss.item()
            right += accuracy(logits, y)
        spent = time.perf_counter() - start
        seconds += spent
        history["loss"].append(total / batches)
        history["train"].append(right / batches)
        history["test"].append(accuracy(network.forward(test_x), test_y))
        if watch is not None:
            watch(epoch, total / batches, history["test"][-1], batches * BATCH / spent)
    logits = network.forward(test_x)
    return {
        "accuracy": history["test"][-1],
        "loss": history["loss"][-1],
        "seconds": seconds,
        "history": history,
        "images": np.asarray(test_x).reshape(-1, 8, 8),
        "digits": np.asarray(test_y),
        "read": np.asarray(ex.argmax(logits, axis=1)),
    }


def confusions(digits: np.ndarray, read: np.ndarray) -> np.ndarray:
    """How often digit i was read as j."""
    table = np.zeros((10, 10), int)
    np.add.at(table, (digits, read), 1)
    return table


def plot_history(path: Path, history: dict[str, list[float]]) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    epochs = np.arange(1, len(history["loss"]) + 1)
    left.semilogy(epochs, history["loss"], color="tab:red")
    left.set(xlabel="epoch", ylabel="cross-entropy", title="Training loss")
    left.grid(alpha=0.3)
    right.plot(epochs, 100 * np.array(history["train"]), color="0.6", label="training images")
    right.plot(epochs, 100 * np.array(history["test"]), color="tab:red", label="held-out images")
    right.set(xlabel="epoch", ylabel="read correctly, %", title="Accuracy", ylim=(80, 100.5))
    right.legend()
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_misread(path: Path, images: np.ndarray, digits: np.ndarray, read: np.ndarray) -> None:
    import matplotlib.pyplot as plt

    wrong = np.flatnonzero(digits != read)[:12]
    columns = max(1, min(6, len(wrong)))
    rows = max(1, -(-len(wrong) // columns))
    figure, axes = plt.subplots(
        rows, columns, figsize=(1.6 * columns + 0.4, 1.9 * rows + 0.5), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis in axes.flat:
        axis.axis("off")
    for axis, i in zip(axes.flat, wrong, strict=False):
        axis.imshow(images[i], cmap="gray_r", interpolation="nearest")
        axis.set_title(f"{digits[i]} read as {read[i]}", fontsize=9)
    figure.suptitle("Misread digits" if len(wrong) else "No digit was misread", fontsize=11)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def summary(found: dict[str, Any]) -> str:
    """Accuracy, and which digits were taken for which."""
    table = confusions(found["digits"], found["read"])
    wrong = len(found["digits"]) - int(np.trace(table))
    lines = [
        f"{found['accuracy']:.2%} of {len(found['digits'])} held-out digits read correctly "
        f"({wrong} wrong) after {found['seconds']:.1f} s of training"
    ]
    off = table - np.diag(np.diag(table))
    for flat in np.argsort(off, axis=None)[::-1][:5]:
        digit, other = divmod(int(flat), 10)
        if off[digit, other]:
            count, of = off[digit, other], table[digit].sum()
            lines.append(f"  {digit} read as {other}: {count} of {of}")
    return "\n".join(lines)


def main(seed: int = 0, quiet: bool = False, folder: str | None = None) -> dict[str, Any]:
    """Train with a progress bar, print a summary, save two pictures if a folder is given."""
    if quiet:
        found = train(seed)
    else:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        note = TextColumn("{task.fields[note]}")
        columns = (TextColumn("epoch"), BarColumn(), MofNCompleteColumn(), note)
        with Progress(*columns) as progress:
            task = progress.add_task("epoch", total=EPOCHS, note="")

            def watch(epoch: int, loss: float, right: float, rate: float) -> None:
                text = f"loss {loss:.4f}   accuracy {right:.1%}   {rate:,.0f} samples/s"
                progress.update(task, completed=epoch + 1, note=text)

            found = train(seed, watch=watch)
        print(summary(found))
    if folder is not None:
        import matplotlib

        matplotlib.use("Agg")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        plot_history(place / "digits_training.png", found["history"])
        plot_misread(place / "digits_misread.png", found["images"], found["digits"], found["read"])
        if not quiet:
            print(f"pictures: {place.resolve()}/digits_training.png, digits_misread.png")
    return found


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "out")
