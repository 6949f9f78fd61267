# The public Cython API: concrete C functions over the kernels of the CPU level in use.
#
#     from extensor.cython_api cimport ex_gelu_f32
#
# Names end in _f32 (float) or _f64 (double). Sizes and indices are Py_ssize_t; n counts elements, and
# n = 0 does nothing. Pointers are to contiguous memory, aligned as C wants its elements (64 bytes are
# fastest) and not NULL unless it says so below. Nothing is checked. Results have the bits of the Python
# functions of the same names, which say what is computed at zeros, NaN, infinities and kinks.
#
# An output may be one of the inputs itself, but must not overlap one otherwise. Functions with two
# gradients to give, and those under "rows" and "matrix product", take outputs apart from all inputs.
#
# No function raises, needs the GIL, allocates (but for gemm's scratch) or keeps anything between calls;
# they may run in any number of threads at once. None starts threads, except ex_gemm_* with threads > 1.
# The CPU level is the one chosen when extensor is imported (EXTENSOR_CPU overrides).
#
# Functions are added in new versions, never changed or removed without a deprecation.
# docs/embedding.md shows a whole module that uses them.

# Rises by one whenever functions are added.
cdef int ex_api_version() noexcept nogil

# ---------------------------------------------------------------- arithmetic
# Of two gradients either pointer may be NULL: that one is not computed.
# divide_backward: eps as in extensor.divide_backward (1e-10 there); 0 is the bare formula.

cdef void ex_add_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_add_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_add_backward_f32(const float* grad_output, float* grad_a, float* grad_b, Py_ssize_t n) noexcept nogil
cdef void ex_add_backward_f64(const double* grad_output, double* grad_a, double* grad_b, Py_ssize_t n) noexcept nogil
cdef void ex_subtract_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_subtract_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_subtract_backward_f32(
    const float* grad_output, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_subtract_backward_f64(
    const double* grad_output, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_multiply_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_multiply_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_multiply_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_multiply_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_divide_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_divide_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_divide_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
    double eps,
) noexcept nogil
cdef void ex_divide_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
    double eps,
) noexcept nogil
cdef void ex_power_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_power_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_power_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_power_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_floor_divide_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_floor_divide_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_floor_divide_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_floor_divide_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_modulo_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_modulo_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_modulo_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_modulo_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_negative_f32(const float* a, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_negative_f64(const double* a, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_negative_backward_f32(const float* grad_output, float* grad_a, Py_ssize_t n) noexcept nogil
cdef void ex_negative_backward_f64(const double* grad_output, double* grad_a, Py_ssize_t n) noexcept nogil
cdef void ex_reciprocal_f32(const float* a, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_reciprocal_f64(const double* a, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_reciprocal_backward_f32(
    const float* grad_output, const float* output, float* grad_a, Py_ssize_t n,
) noexcept nogil
cdef void ex_reciprocal_backward_f64(
    const double* grad_output, const double* output, double* grad_a, Py_ssize_t n,
) noexcept nogil
cdef void ex_maximum_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_maximum_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_maximum_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_maximum_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_minimum_f32(const float* a, const float* b, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_minimum_f64(const double* a, const double* b, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_minimum_backward_f32(
    const float* grad_output, const float* a, const float* b, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_minimum_backward_f64(
    const double* grad_output, const double* a, const double* b, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_where_f32(
    const unsigned char* cond, const float* a, const float* b, float* y, Py_ssize_t n,
) noexcept nogil
cdef void ex_where_f64(
    const unsigned char* cond, const double* a, const double* b, double* y, Py_ssize_t n,
) noexcept nogil
cdef void ex_where_backward_f32(
    const float* grad_output, const unsigned char* cond, float* grad_a, float* grad_b, Py_ssize_t n,
) noexcept nogil
cdef void ex_where_backward_f64(
    const double* grad_output, const unsigned char* cond, double* grad_a, double* grad_b, Py_ssize_t n,
) noexcept nogil

# ---------------------------------------------------------------- comparison and logic
# Results are 0 or 1, one byte each.

cdef void ex_equal_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_equal_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_not_equal_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_not_equal_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_less_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_less_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_less_equal_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_less_equal_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_greater_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_greater_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_greater_equal_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_greater_equal_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_logical_and_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_logical_and_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_logical_or_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_logical_or_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_logical_xor_f32(const float* a, const float* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_logical_xor_f64(const double* a, const double* b, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_logical_not_f32(const float* x, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_logical_not_f64(const double* x, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_isnan_f32(const float* x, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_isnan_f64(const double* x, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_isinf_f32(const float* x, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_isinf_f64(const double* x, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_isfinite_f32(const float* x, unsigned char* y, Py_ssize_t n) noexcept nogil
cdef void ex_isfinite_f64(const double* x, unsigned char* y, Py_ssize_t n) noexcept nogil

# ---------------------------------------------------------------- elementwise
# exp, sqrt and tanh: the gradient is computed from the saved output, else from the input.
# eps as in the Python functions (1e-10 there); 0 is the bare formula.
# clip: -INFINITY and INFINITY are no bounds.

cdef void ex_abs_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_abs_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_abs_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_abs_backward_f64(const double* grad_output, const double* x, double* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_sign_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_sign_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_sign_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_sign_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_exp_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_exp_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_exp_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_exp_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_expm1_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_expm1_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_expm1_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_expm1_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_log_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_log_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_log_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double eps,
) noexcept nogil
cdef void ex_log_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double eps,
) noexcept nogil
cdef void ex_log1p_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_log1p_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_log1p_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_log1p_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_log2_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_log2_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_log2_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double eps,
) noexcept nogil
cdef void ex_log2_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double eps,
) noexcept nogil
cdef void ex_log10_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_log10_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_log10_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double eps,
) noexcept nogil
cdef void ex_log10_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double eps,
) noexcept nogil
cdef void ex_sqrt_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_sqrt_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_sqrt_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t n, double eps,
) noexcept nogil
cdef void ex_sqrt_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t n, double eps,
) noexcept nogil
cdef void ex_square_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_square_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_square_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_square_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_sin_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_sin_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_sin_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_sin_backward_f64(const double* grad_output, const double* x, double* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_cos_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_cos_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_cos_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_cos_backward_f64(const double* grad_output, const double* x, double* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_tanh_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_tanh_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_tanh_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_tanh_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_erf_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_erf_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_erf_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_erf_backward_f64(const double* grad_output, const double* x, double* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_clip_f32(const float* x, float* y, Py_ssize_t n, double low, double high) noexcept nogil
cdef void ex_clip_f64(const double* x, double* y, Py_ssize_t n, double low, double high) noexcept nogil
cdef void ex_clip_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double low, double high,
) noexcept nogil
cdef void ex_clip_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double low, double high,
) noexcept nogil
cdef void ex_ceil_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_ceil_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_ceil_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_ceil_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_floor_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_floor_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_floor_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_floor_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_round_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_round_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_round_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_round_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_trunc_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_trunc_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_trunc_backward_f32(const float* grad_output, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_trunc_backward_f64(const double* grad_output, double* grad_x, Py_ssize_t n) noexcept nogil

# ---------------------------------------------------------------- activations
# gelu is the exact form with erf, gelu_tanh the approximation; silu is swish.
# sigmoid: the gradient is computed from the saved output, else from the input.
# prelu: a slope for every element; grad_alpha has n elements, to be summed by the caller where a
# slope is shared. grad_x or grad_alpha may be NULL.

cdef void ex_relu_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_relu_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_relu_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_relu_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_leaky_relu_f32(const float* x, float* y, Py_ssize_t n, double alpha) noexcept nogil
cdef void ex_leaky_relu_f64(const double* x, double* y, Py_ssize_t n, double alpha) noexcept nogil
cdef void ex_leaky_relu_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double alpha,
) noexcept nogil
cdef void ex_leaky_relu_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double alpha,
) noexcept nogil
cdef void ex_prelu_f32(const float* x, const float* alpha, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_prelu_f64(const double* x, const double* alpha, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_prelu_backward_f32(
    const float* grad_output, const float* x, const float* alpha, float* grad_x, float* grad_alpha,
    Py_ssize_t n,
) noexcept nogil
cdef void ex_prelu_backward_f64(
    const double* grad_output, const double* x, const double* alpha, double* grad_x, double* grad_alpha,
    Py_ssize_t n,
) noexcept nogil
cdef void ex_sigmoid_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_sigmoid_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_sigmoid_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_sigmoid_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_gelu_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_gelu_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_gelu_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_gelu_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_gelu_tanh_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_gelu_tanh_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_gelu_tanh_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_gelu_tanh_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_swish_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_swish_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_swish_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_swish_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_mish_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_mish_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_mish_backward_f32(const float* grad_output, const float* x, float* grad_x, Py_ssize_t n) noexcept nogil
cdef void ex_mish_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_softplus_f32(const float* x, float* y, Py_ssize_t n) noexcept nogil
cdef void ex_softplus_f64(const double* x, double* y, Py_ssize_t n) noexcept nogil
cdef void ex_softplus_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_softplus_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n,
) noexcept nogil
cdef void ex_elu_f32(const float* x, float* y, Py_ssize_t n, double alpha) noexcept nogil
cdef void ex_elu_f64(const double* x, double* y, Py_ssize_t n, double alpha) noexcept nogil
cdef void ex_elu_backward_f32(
    const float* grad_output, const float* x, float* grad_x, Py_ssize_t n, double alpha,
) noexcept nogil
cdef void ex_elu_backward_f64(
    const double* grad_output, const double* x, double* grad_x, Py_ssize_t n, double alpha,
) noexcept nogil

# ---------------------------------------------------------------- rows
# softmax and log_softmax of each of `rows` contiguous rows of n elements; the gradients are computed
# from the saved output. No output may overlap an input. (The Python functions take another order, and may give
# other last bits, where one row of more than 50 thousand elements is the whole tensor.)

cdef void ex_softmax_f32(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
cdef void ex_softmax_f64(const double* x, double* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
cdef void ex_softmax_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t rows, Py_ssize_t n,
) noexcept nogil
cdef void ex_softmax_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t rows, Py_ssize_t n,
) noexcept nogil
cdef void ex_log_softmax_f32(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
cdef void ex_log_softmax_f64(const double* x, double* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
cdef void ex_log_softmax_backward_f32(
    const float* grad_output, const float* output, float* grad_x, Py_ssize_t rows, Py_ssize_t n,
) noexcept nogil
cdef void ex_log_softmax_backward_f64(
    const double* grad_output, const double* output, double* grad_x, Py_ssize_t rows, Py_ssize_t n,
) noexcept nogil

# ---------------------------------------------------------------- sum
# The sum of n elements, with the bits of extensor.sum: short lanes, then a tree. 0 where n is 0.

cdef float ex_sum_f32(const float* x, Py_ssize_t n) noexcept nogil
cdef double ex_sum_f64(const double* x, Py_ssize_t n) noexcept nogil

# ---------------------------------------------------------------- matrix product
# C = A·B, or C += A·B where accumulate is not 0, with bias (n contiguous elements, or NULL) added to
# every row. A is m×k, B k×n, C m×n; sizes are not negative. Strides are in elements and may be negative;
# those of A and B may be 0. A transposed matrix is one whose two strides are exchanged. C overlaps nothing.
# threads: how many threads the call may use; 1 stays on the caller's, as does any count inside the
# caller's own parallel region and in the child of a fork. The bits are the same for every count.
# Returns 0, or -1 where there is no memory for scratch: C is then unchanged.

cdef int ex_gemm_f32(
    Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float* a, Py_ssize_t a_row, Py_ssize_t a_col,
    const float* b, Py_ssize_t b_row, Py_ssize_t b_col, float* c, Py_ssize_t c_row, Py_ssize_t c_col,
    const float* bias, int accumulate, int threads,
) noexcept nogil
cdef int ex_gemm_f64(
    Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const double* a, Py_ssize_t a_row, Py_ssize_t a_col,
    const double* b, Py_ssize_t b_row, Py_ssize_t b_col, double* c, Py_ssize_t c_row, Py_ssize_t c_col,
    const double* bias, int accumulate, int threads,
) noexcept nogil

# ---------------------------------------------------------------- optimizer updates
# One step in place, formulas as in extensor.SGD, Adam, AdamW and RMSprop. State starts as zeros.
# sgd, rmsprop: momentum_buffer is NULL where there is no momentum, which then counts as 0.
# adam, adamw: step counts from 1.

cdef void ex_sgd_f32(
    float* param, const float* grad, float* momentum_buffer, Py_ssize_t n, double lr, double momentum,
    int nesterov, double weight_decay,
) noexcept nogil
cdef void ex_sgd_f64(
    double* param, const double* grad, double* momentum_buffer, Py_ssize_t n, double lr, double momentum,
    int nesterov, double weight_decay,
) noexcept nogil
cdef void ex_adam_f32(
    float* param, const float* grad, float* exp_avg, float* exp_avg_sq, Py_ssize_t n, Py_ssize_t step,
    double lr, double beta1, double beta2, double eps, double weight_decay,
) noexcept nogil
cdef void ex_adam_f64(
    double* param, const double* grad, double* exp_avg, double* exp_avg_sq, Py_ssize_t n, Py_ssize_t step,
    double lr, double beta1, double beta2, double eps, double weight_decay,
) noexcept nogil
cdef void ex_adamw_f32(
    float* param, const float* grad, float* exp_avg, float* exp_avg_sq, Py_ssize_t n, Py_ssize_t step,
    double lr, double beta1, double beta2, double eps, double weight_decay,
) noexcept nogil
cdef void ex_adamw_f64(
    double* param, const double* grad, double* exp_avg, double* exp_avg_sq, Py_ssize_t n, Py_ssize_t step,
    double lr, double beta1, double beta2, double eps, double weight_decay,
) noexcept nogil
cdef void ex_rmsprop_f32(
    float* param, const float* grad, float* square_avg, float* momentum_buffer, Py_ssize_t n, double lr,
    double alpha, double eps, double momentum, double weight_decay,
) noexcept nogil
cdef void ex_rmsprop_f64(
    double* param, const double* grad, double* square_avg, double* momentum_buffer, Py_ssize_t n, double lr,
    double alpha, double eps, double momentum, double weight_decay,
) noexcept nogil
