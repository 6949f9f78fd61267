"""python -m docwords: learn, then tell how many held-out docstrings are placed rightly."""

import time

import numpy as np

from docwords import PACKAGES, Classifier, read_docstrings

(texts, labels), (other_texts, other_labels) = read_docstrings()
print(
    f"{len(texts)} docstrings to learn from, {len(other_texts)} held out, {len(PACKAGES)} packages"
)

model = Classifier(len(PACKAGES))
start = time.perf_counter()
losses = model.fit(texts, labels)
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {time.perf_counter() - start:.2f} s")

right = model.predict(other_texts).argmax(axis=1) == np.array(other_labels)
for label, package in enumerate(PACKAGES):
    of_package = right[np.array(other_labels) == label]
    print(f"  {package:18} {of_package.sum():4} of {of_package.size:4}")
most = max(np.bincount(labels)) / len(labels)
print(f"accuracy on held-out docstrings: {right.mean():.3f} (always the commonest: {most:.3f})")
