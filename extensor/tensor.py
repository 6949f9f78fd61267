"""ExTensor and its conversions (compiled in ``_tensor``)."""

from extensor._tensor import ExTensor, aligned, as_array, asarray, check_dtype, from_dlpack, tensor

__all__ = ["ExTensor", "aligned", "as_array", "asarray", "check_dtype", "from_dlpack", "tensor"]
