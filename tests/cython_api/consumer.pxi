# One function of every kind, called from this module's own prange.

from cython.parallel cimport prange

from extensor.cython_api cimport (
    ex_adam_f32, ex_api_version, ex_divide_backward_f64, ex_gelu_backward_f32, ex_gelu_backward_f64, ex_gemm_f32,
    ex_gemm_f64, ex_leaky_relu_f32, ex_less_f64, ex_log_softmax_f32, ex_softmax_backward_f64, ex_softmax_f64,
    ex_sum_f32, ex_where_backward_f32, ex_where_f32,
)

cdef extern from "vecmath.h" nogil:
    float exm_gelu_f32(float x)
    double exm_tanh_f64(double x)


def api_version():
    return ex_api_version()


def gelu_backward_f32(
    const float[::1] grad_output, const float[::1] x, float[::1] grad_x, Py_ssize_t piece, int threads,
):
    cdef Py_ssize_t n = x.shape[0], start
    for start in prange(0, n, piece, nogil=True, schedule="static", num_threads=threads):
        ex_gelu_backward_f32(&grad_output[start], &x[start], &grad_x[start], min(piece, n - start))


def gelu_backward_f64(
    const double[::1] grad_output, const double[::1] x, double[::1] grad_x, Py_ssize_t piece, int threads,
):
    cdef Py_ssize_t n = x.shape[0], start
    for start in prange(0, n, piece, nogil=True, schedule="static", num_threads=threads):
        ex_gelu_backward_f64(&grad_output[start], &x[start], &grad_x[start], min(piece, n - start))


def leaky_relu(const float[::1] x, float[::1] y, double alpha):
    with nogil:
        ex_leaky_relu_f32(&x[0], &y[0], x.shape[0], alpha)


def divide_backward(
    const double[::1] grad_output, const double[::1] a, const double[::1] b, double[::1] grad_b, double eps,
):
    """The gradient of the divisor alone."""
    with nogil:
        ex_divide_backward_f64(&grad_output[0], &a[0], &b[0], NULL, &grad_b[0], a.shape[0], eps)


def where(const unsigned char[::1] cond, const float[::1] a, const float[::1] b, float[::1] y, float[::1] grad_a):
    """a or b, and the gradient of a where grad_output is y."""
    with nogil:
        ex_where_f32(&cond[0], &a[0], &b[0], &y[0], y.shape[0])
        ex_where_backward_f32(&y[0], &cond[0], &grad_a[0], NULL, y.shape[0])


def less(const double[::1] a, const double[::1] b, unsigned char[::1] y):
    with nogil:
        ex_less_f64(&a[0], &b[0], &y[0], y.shape[0])


def softmax(
    const double[:, ::1] x, const double[:, ::1] grad_output, double[:, ::1] y, double[:, ::1] grad_x, int threads,
):
    """Each row by the thread that takes it."""
    cdef Py_ssize_t row, n = x.shape[1]
    for row in prange(x.shape[0], nogil=True, schedule="static", num_threads=threads):
        ex_softmax_f64(&x[row, 0], &y[row, 0], 1, n)
        ex_softmax_backward_f64(&grad_output[row, 0], &y[row, 0], &grad_x[row, 0], 1, n)


def log_softmax_and_sums(const float[:, ::1] x, float[:, ::1] y, float[::1] sums, int threads):
    """All rows in one call, then the sum of each row of x."""
    cdef Py_ssize_t row, n = x.shape[1]
    with nogil:
        ex_log_softmax_f32(&x[0, 0], &y[0, 0], x.shape[0], n)
    for row in prange(x.shape[0], nogil=True, schedule="static", num_threads=threads):
        sums[row] = ex_sum_f32(&x[row, 0], n)


def matmul_each(const float[:, :, ::1] a, const float[:, :, ::1] b, float[:, :, ::1] c, int threads):
    """c[i] = a[i]·b[i]ᵀ, one serial product for each i; the sum of the return codes."""
    cdef Py_ssize_t i, m = a.shape[1], k = a.shape[2], n = b.shape[1]
    cdef int failed = 0
    for i in prange(a.shape[0], nogil=True, schedule="static", num_threads=threads):
        failed += ex_gemm_f32(m, n, k, &a[i, 0, 0], k, 1, &b[i, 0, 0], 1, k, &c[i, 0, 0], n, 1, NULL, 0, 1)
    return failed


def matmul_threads(const double[:, ::1] a, const double[:, ::1] b, double[:, ::1] c, int threads):
    """One product that may use several threads of its own."""
    cdef Py_ssize_t m = a.shape[0], k = a.shape[1], n = b.shape[1]
    cdef int code
    with nogil:
        code = ex_gemm_f64(m, n, k, &a[0, 0], k, 1, &b[0, 0], n, 1, &c[0, 0], n, 1, NULL, 0, threads)
    return code


def adam(float[::1] param, const float[::1] grad, float[::1] exp_avg, float[::1] exp_avg_sq, Py_ssize_t step):
    with nogil:
        ex_adam_f32(&param[0], &grad[0], &exp_avg[0], &exp_avg_sq[0], param.shape[0], step,
                    1e-3, 0.9, 0.999, 1e-8, 0.0)


def inlined(const float[::1] x, float[::1] y, const double[::1] u, double[::1] v):
    """gelu of x and tanh of u by the header's formulas, compiled into this module."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(x.shape[0]):
            y[i] = exm_gelu_f32(x[i])
        for i in range(u.shape[0]):
            v[i] = exm_tanh_f64(u[i])
