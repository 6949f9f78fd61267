"""Which package does a docstring come from? Hashed words, one hidden layer, extensor's kernels."""

from docwords._model import Classifier
from docwords.data import PACKAGES, read_docstrings

__all__ = ["PACKAGES", "Classifier", "read_docstrings"]
