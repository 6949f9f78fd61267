from extensor._tensor import ExTensor

def total(
    function: str, x: object, axis: object, keepdims: bool, out: object, mean: bool
) -> ExTensor: ...
def extreme(
    function: str, x: object, axis: object, keepdims: bool, out: object, least: bool
) -> ExTensor: ...
def spread(
    function: str, grad_output: object, input_shape: object, axis: object, out: object, mean: bool
) -> ExTensor: ...
def softmax(function: str, x: object, axis: object, out: object, log: bool) -> ExTensor: ...
def softmax_backward(
    function: str, grad_output: object, output: object, axis: object, out: object, log: bool
) -> ExTensor: ...
def extreme_backward(
    function: str, grad_output: object, x: object, axis: object, out: object, least: bool
) -> ExTensor: ...
def position(
    function: str, x: object, axis: object, keepdims: bool, out: object, least: bool
) -> ExTensor: ...
def truth(
    function: str, x: object, axis: object, keepdims: bool, out: object, every: bool
) -> ExTensor: ...
def variance(
    function: str, x: object, axis: object, keepdims: bool, ddof: object, out: object, root: bool
) -> ExTensor: ...
def variance_backward(
    function: str,
    grad_output: object,
    x: object,
    output: object,
    axis: object,
    ddof: object,
    out: object,
    root: bool,
) -> ExTensor: ...
def logsumexp(function: str, x: object, axis: object, keepdims: bool, out: object) -> ExTensor: ...
def logsumexp_backward(
    function: str, grad_output: object, x: object, output: object, axis: object, out: object
) -> ExTensor: ...
