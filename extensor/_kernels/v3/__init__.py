"""The kernels compiled for CPU level v3."""
