"""Benchmarks of extensor against NumPy, PyTorch, JAX and numexpr: `python -m benchmarks --help`."""
