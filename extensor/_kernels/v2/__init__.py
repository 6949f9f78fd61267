"""The kernels compiled for CPU level v2."""
