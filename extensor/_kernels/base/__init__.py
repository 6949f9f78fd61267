"""The kernels compiled for CPU level base."""
