"""Blocks of the activation functions and of their gradients.

As in ``elementwise.pyx``: one branch-free loop each, the mathematics in ``vecmath.h``. A gradient
block gets grad_output ``g`` first, then the saved operand; alpha is p[0] where it is a number.
What only one side of a condition needs is loaded beforehand: a conditional load keeps the compiler
from vectorising where there are no masks (v2).
"""

from extensor._kernels cimport vecmath as vm
from extensor._kernels.types cimport floating, pair

cdef enum:
    CHUNK = 256         # elements looked over at a time for those that need more work


# ---------------------------------------------------------------- relu and its leaky relatives

cdef void relu(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    # NaN is not ≤ 0 and goes through.
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating> 0 if x[i] <= 0 else x[i]


cdef void relu_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef floating grad
    for i in range(n):
        grad = g[i]
        y[i] = grad if x[i] > 0 else <floating> 0


cdef void leaky_relu(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating alpha = <floating> p[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] if x[i] > 0 else alpha * x[i]


cdef void leaky_relu_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating alpha = <floating> p[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] if x[i] > 0 else alpha * g[i]


cdef void prelu(
    const floating* x, const floating* alpha, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef floating slope
    for i in range(n):
        slope = alpha[i]
        y[i] = x[i] if x[i] > 0 else slope * x[i]


cdef void prelu_grad_x(
    const floating* g, const floating* x, const floating* alpha, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef floating slope
    for i in range(n):
        slope = alpha[i]
        y[i] = g[i] if x[i] > 0 else slope * g[i]


cdef void prelu_grad_alpha(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef floating grad
    for i in range(n):
        grad = g[i]
        y[i] = grad * x[i] if x[i] <= 0 else <floating> 0


# ---------------------------------------------------------------- sigmoid

cdef void sigmoid(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.sigmoid(x[i])


cdef void sigmoid_grad(
    const floating* g, const floating* out, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = g[i] * (out[i] * (<floating> 1 - out[i]))


# ---------------------------------------------------------------- smooth functions

# Gradients, chunk by chunk: where no element is so large that its exponential leaves the format, the
# exponential need not be kept in parts.

cdef inline bint any_far_exp(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int far = 0
    for i in range(n):
        far |= vm.exp_is_far(x[i])
    return far


cdef inline bint any_far_gelu(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int far = 0
    for i in range(n):
        far |= vm.gelu_is_far(x[i])
    return far


cdef inline bint any_far_gelu_tanh(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int far = 0
    for i in range(n):
        far |= vm.gelu_tanh_is_far(x[i])
    return far


cdef void gelu(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.gelu(x[i])


cdef void gelu_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_far_gelu(x, size):
            for i in range(size):
                y[i] = vm.gelu_backward(g[i], x[i])
        else:
            for i in range(size):
                y[i] = vm.gelu_near_backward(g[i], x[i])
        g += size
        x += size
        y += size
        n -= size


cdef void gelu_tanh(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.gelu_tanh(x[i])


cdef void gelu_tanh_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_far_gelu_tanh(x, size):
            for i in range(size):
                y[i] = vm.gelu_tanh_backward(g[i], x[i])
        else:
            for i in range(size):
                y[i] = vm.gelu_tanh_near_backward(g[i], x[i])
        g += size
        x += size
        y += size
        n -= size


cdef void swish(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.swish(x[i])


cdef void swish_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_far_exp(x, size):
            for i in range(size):
                y[i] = vm.swish_backward(g[i], x[i])
        else:
            for i in range(size):
                y[i] = vm.swish_near_backward(g[i], x[i])
        g += size
        x += size
        y += size
        n -= size


cdef void mish(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.mish(x[i])


cdef void mish_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_far_exp(x, size):
            for i in range(size):
                y[i] = vm.mish_backward(g[i], x[i])
        else:
            for i in range(size):
                y[i] = vm.mish_near_backward(g[i], x[i])
        g += size
        x += size
        y += size
        n -= size


cdef void softplus(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.softplus(x[i])


cdef void softplus_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef Py_ssize_t i, size
    while n > 0:
        size = n if n < CHUNK else CHUNK
        if any_far_exp(x, size):
            for i in range(size):
                y[i] = vm.softplus_backward(g[i], x[i])
        else:
            for i in range(size):
                y[i] = vm.softplus_near_backward(g[i], x[i])
        g += size
        x += size
        y += size
        n -= size


cdef void elu(const floating* x, floating* y, Py_ssize_t n, const double* p) noexcept nogil:
    cdef floating alpha = <floating> p[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.elu(x[i], alpha)


cdef void elu_grad(
    const floating* g, const floating* x, floating* y, Py_ssize_t n, const double* p,
) noexcept nogil:
    cdef floating alpha = <floating> p[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = vm.elu_backward(g[i], x[i], alpha)


EXPORTS = {
    "relu": pair(<void*> relu[float], <void*> relu[double]),
    "relu_grad": pair(<void*> relu_grad[float], <void*> relu_grad[double]),
    "leaky_relu": pair(<void*> leaky_relu[float], <void*> leaky_relu[double]),
    "leaky_relu_grad": pair(<void*> leaky_relu_grad[float], <void*> leaky_relu_grad[double]),
    "prelu": pair(<void*> prelu[float], <void*> prelu[double]),
    "prelu_grad_x": pair(<void*> prelu_grad_x[float], <void*> prelu_grad_x[double]),
    "prelu_grad_alpha": pair(<void*> prelu_grad_alpha[float], <void*> prelu_grad_alpha[double]),
    "sigmoid": pair(<void*> sigmoid[float], <void*> sigmoid[double]),
    "sigmoid_grad": pair(<void*> sigmoid_grad[float], <void*> sigmoid_grad[double]),
    "gelu": pair(<void*> gelu[float], <void*> gelu[double]),
    "gelu_grad": pair(<void*> gelu_grad[float], <void*> gelu_grad[double]),
    "gelu_tanh": pair(<void*> gelu_tanh[float], <void*> gelu_tanh[double]),
    "gelu_tanh_grad": pair(<void*> gelu_tanh_grad[float], <void*> gelu_tanh_grad[double]),
    "swish": pair(<void*> swish[float], <void*> swish[double]),
    "swish_grad": pair(<void*> swish_grad[float], <void*> swish_grad[double]),
    "mish": pair(<void*> mish[float], <void*> mish[double]),
    "mish_grad": pair(<void*> mish_grad[float], <void*> mish_grad[double]),
    "softplus": pair(<void*> softplus[float], <void*> softplus[double]),
    "softplus_grad": pair(<void*> softplus_grad[float], <void*> softplus_grad[double]),
    "elu": pair(<void*> elu[float], <void*> elu[double]),
    "elu_grad": pair(<void*> elu_grad[float], <void*> elu_grad[double]),
}
