"""extensor: a compiled tensor library with explicit gradients.

Every operation is a forward function and a backward function on compiled kernels:

>>> import extensor as ex
>>> x, w = ex.tensor([[1.0, 2.0]]), ex.tensor([[3.0], [4.0]])
>>> grad_x, grad_w = ex.multiply_backward(ex.ones((2, 2)), x, w)
>>> grad_w
ExTensor([[3.],
          [3.]], dtype=float32)
"""

from numpy import (
    bool,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

from extensor import (
    _tensor,
    activations,
    arithmetic,
    broadcasting,
    comparison,
    config,
    creation,
    elementwise,
    gradcheck,
    initializers,
    losses,
    matrix,
    optimizers,
    parameters,
    reduction,
    schedulers,
    shape,
    threads,
)
from extensor._memory import release_memory
from extensor.activations import *
from extensor.arithmetic import *
from extensor.broadcasting import *
from extensor.comparison import *
from extensor.config import *
from extensor.creation import *
from extensor.elementwise import *
from extensor.gradcheck import *
from extensor.initializers import *
from extensor.losses import *
from extensor.matrix import *
from extensor.optimizers import *
from extensor.parameters import *
from extensor.reduction import *
from extensor.schedulers import *
from extensor.shape import *
from extensor.tensor import ExTensor, asarray, from_dlpack, tensor
from extensor.threads import *

__all__ = [
    "ExTensor",
    "asarray",
    "bool",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "int8",
    "int16",
    "int32",
    "int64",
    "release_memory",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
# One by one, so that type checkers can follow.
__all__ += activations.__all__
__all__ += arithmetic.__all__
__all__ += broadcasting.__all__
__all__ += comparison.__all__
__all__ += config.__all__
__all__ += creation.__all__
__all__ += elementwise.__all__
__all__ += gradcheck.__all__
__all__ += initializers.__all__
__all__ += losses.__all__
__all__ += matrix.__all__
__all__ += optimizers.__all__
__all__ += parameters.__all__
__all__ += reduction.__all__
__all__ += schedulers.__all__
__all__ += shape.__all__
__all__ += threads.__all__
__all__[:] = dict.fromkeys(__all__)  # tanh is in two modules

_tensor.bind_operators(
    {
        "add": arithmetic._ADD,
        "subtract": arithmetic._SUBTRACT,
        "multiply": arithmetic._MULTIPLY,
        "divide": arithmetic._DIVIDE,
        "floor_divide": arithmetic._FLOOR_DIVIDE,
        "modulo": arithmetic._MODULO,
        "power": arithmetic._POWER,
        "equal": comparison._EQUAL,
        "not_equal": comparison._NOT_EQUAL,
        "less": comparison._LESS,
        "less_equal": comparison._LESS_EQUAL,
        "greater": comparison._GREATER,
        "greater_equal": comparison._GREATER_EQUAL,
    }
)
_tensor.bind_functions(
    {
        "abs": elementwise.abs,
        "negative": arithmetic.negative,
        "matmul": matrix.matmul,
        "transpose": matrix.transpose,
        "sum": reduction.sum,
        "mean": reduction.mean,
        "max_reduce": reduction.max_reduce,
        "min_reduce": reduction.min_reduce,
        "reshape": shape.reshape,
        "flatten": shape.flatten,
        "ravel": shape.ravel,
        "squeeze": shape.squeeze,
        "unsqueeze": shape.unsqueeze,
    }
)


def __getattr__(name: str) -> str:
    if name == "__version__":
        return config.get_version()
    raise AttributeError(f"module 'extensor' has no attribute {name!r}")
