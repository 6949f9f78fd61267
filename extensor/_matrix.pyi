from extensor._tensor import ExTensor

def matmul(function: str, x: object, z: object, out: object = None, only: int = 0) -> ExTensor: ...
def matmul_backward(
    function: str,
    grad_output: object,
    x: object,
    z: object,
    needs: object = None,
    out: object = None,
    only: int = 0,
) -> tuple[ExTensor | None, ...]: ...
def outer(function: str, x: object, z: object, out: object = None) -> ExTensor: ...
def outer_backward(
    function: str,
    grad_output: object,
    x: object,
    z: object,
    needs: object = None,
    out: object = None,
) -> tuple[ExTensor | None, ...]: ...
def linear(
    function: str, input: object, weights: object, bias: object = None, out: object = None
) -> ExTensor: ...
def linear_backward(
    function: str,
    grad_output: object,
    input: object,
    weights: object,
    needs: object = None,
    out: object = None,
) -> tuple[ExTensor | None, ...]: ...
def transpose(function: str, x: object, axes: object) -> ExTensor: ...
def transpose_backward(function: str, grad_output: object, axes: object) -> ExTensor: ...
