# cython: language_level=3
"""The scalar functions of vecmath.h for typed loops: ``y[i] = vm.exp(x[i])``.

The short names pick the float32 or the float64 version by the C type of the argument, in fused code too, and are
inlined into the loop, which the compiler then vectorises; a loop that calls one must hold nothing that stops
that (no bounds checks, no Python objects). Cython sees them as double -> double and adds no conversion of its own, so
keep the argument and the place the result goes to `floating`: ``cdef floating t = vm.exp(x[i])``, then calculate
with ``t``. In an expression beside other terms, or nested (``vm.log(vm.exp(x))``), use such a variable too.
"""

cdef extern from "vecmath.h" nogil:
    # by the type of the argument
    double exp "exm_exp"(double x) noexcept
    double expm1 "exm_expm1"(double x) noexcept
    double log "exm_log"(double x) noexcept
    double log1p "exm_log1p"(double x) noexcept
    double log2 "exm_log2"(double x) noexcept
    double log10 "exm_log10"(double x) noexcept
    double log_usual "exm_log_usual"(double x) noexcept
    double log1p_usual "exm_log1p_usual"(double x) noexcept
    double log2_usual "exm_log2_usual"(double x) noexcept
    double log10_usual "exm_log10_usual"(double x) noexcept
    bint log_is_rare "exm_log_is_rare"(double x) noexcept
    bint log1p_is_rare "exm_log1p_is_rare"(double x) noexcept
    double sin "exm_sin"(double x) noexcept
    double cos "exm_cos"(double x) noexcept
    double tanh "exm_tanh"(double x) noexcept
    double erf "exm_erf"(double x) noexcept
    double sigmoid "exm_sigmoid"(double x) noexcept
    double softplus "exm_softplus"(double x) noexcept
    double softplus_tail "exm_softplus_tail"(double x) noexcept
    double swish "exm_swish"(double x) noexcept
    double mish "exm_mish"(double x) noexcept
    double gelu "exm_gelu"(double x) noexcept
    double gelu_tanh "exm_gelu_tanh"(double x) noexcept
    double expm1_grad "exm_expm1_grad"(double x) noexcept
    double log1p_grad "exm_log1p_grad"(double x) noexcept
    double erf_grad "exm_erf_grad"(double x) noexcept
    double softplus_grad "exm_softplus_grad"(double x) noexcept
    double swish_grad "exm_swish_grad"(double x) noexcept
    double mish_grad "exm_mish_grad"(double x) noexcept
    double gelu_grad "exm_gelu_grad"(double x) noexcept
    double gelu_tanh_grad "exm_gelu_tanh_grad"(double x) noexcept
    double expm1_backward "exm_expm1_backward"(double g, double x) noexcept
    double erf_backward "exm_erf_backward"(double g, double x) noexcept
    double softplus_backward "exm_softplus_backward"(double g, double x) noexcept
    double swish_backward "exm_swish_backward"(double g, double x) noexcept
    double mish_backward "exm_mish_backward"(double g, double x) noexcept
    double gelu_backward "exm_gelu_backward"(double g, double x) noexcept
    double gelu_tanh_backward "exm_gelu_tanh_backward"(double g, double x) noexcept
    double expm1_near_backward "exm_expm1_near_backward"(double g, double x) noexcept
    double softplus_near_backward "exm_softplus_near_backward"(double g, double x) noexcept
    double swish_near_backward "exm_swish_near_backward"(double g, double x) noexcept
    double mish_near_backward "exm_mish_near_backward"(double g, double x) noexcept
    double gelu_near_backward "exm_gelu_near_backward"(double g, double x) noexcept
    double gelu_tanh_near_backward "exm_gelu_tanh_near_backward"(double g, double x) noexcept
    bint exp_is_far "exm_exp_is_far"(double x) noexcept
    bint gelu_is_far "exm_gelu_is_far"(double x) noexcept
    bint gelu_tanh_is_far "exm_gelu_tanh_is_far"(double x) noexcept
    double elu "exm_elu"(double x, double alpha) noexcept
    double elu_grad "exm_elu_grad"(double x, double alpha) noexcept
    double elu_backward "exm_elu_backward"(double g, double x, double alpha) noexcept
    double power "exm_power"(double x, double y) noexcept
    bint power_is_rare "exm_power_is_rare"(double x, double y) noexcept
    bint power_is_unusual "exm_power_is_unusual"(double x, double y) noexcept
    double power_special "exm_power_special"(double x, double y, double magnitude) noexcept
    bint sin_is_rare "exm_sin_is_rare"(double x) noexcept
    bint cos_is_rare "exm_cos_is_rare"(double x) noexcept
    double sin_rare "exm_sin_rare"(double x) noexcept
    double cos_rare "exm_cos_rare"(double x) noexcept

    # one type each
    float exm_exp_f32(float x) noexcept
    double exm_exp_f64(double x) noexcept
    float exm_expm1_f32(float x) noexcept
    double exm_expm1_f64(double x) noexcept
    float exm_log_f32(float x) noexcept
    double exm_log_f64(double x) noexcept
    float exm_log1p_f32(float x) noexcept
    double exm_log1p_f64(double x) noexcept
    float exm_log2_f32(float x) noexcept
    double exm_log2_f64(double x) noexcept
    float exm_log10_f32(float x) noexcept
    double exm_log10_f64(double x) noexcept
    float exm_sin_f32(float x) noexcept
    double exm_sin_f64(double x) noexcept
    float exm_cos_f32(float x) noexcept
    double exm_cos_f64(double x) noexcept
    float exm_tanh_f32(float x) noexcept
    double exm_tanh_f64(double x) noexcept
    float exm_erf_f32(float x) noexcept
    double exm_erf_f64(double x) noexcept
    float exm_sigmoid_f32(float x) noexcept
    double exm_sigmoid_f64(double x) noexcept
    float exm_softplus_f32(float x) noexcept
    double exm_softplus_f64(double x) noexcept
    float exm_swish_f32(float x) noexcept
    double exm_swish_f64(double x) noexcept
    float exm_mish_f32(float x) noexcept
    double exm_mish_f64(double x) noexcept
    float exm_gelu_f32(float x) noexcept
    double exm_gelu_f64(double x) noexcept
    float exm_gelu_tanh_f32(float x) noexcept
    double exm_gelu_tanh_f64(double x) noexcept
    float exm_expm1_grad_f32(float x) noexcept
    double exm_expm1_grad_f64(double x) noexcept
    float exm_log1p_grad_f32(float x) noexcept
    double exm_log1p_grad_f64(double x) noexcept
    float exm_erf_grad_f32(float x) noexcept
    double exm_erf_grad_f64(double x) noexcept
    float exm_softplus_grad_f32(float x) noexcept
    double exm_softplus_grad_f64(double x) noexcept
    float exm_swish_grad_f32(float x) noexcept
    double exm_swish_grad_f64(double x) noexcept
    float exm_mish_grad_f32(float x) noexcept
    double exm_mish_grad_f64(double x) noexcept
    float exm_gelu_grad_f32(float x) noexcept
    double exm_gelu_grad_f64(double x) noexcept
    float exm_gelu_tanh_grad_f32(float x) noexcept
    double exm_gelu_tanh_grad_f64(double x) noexcept
    float exm_expm1_backward_f32(float g, float x) noexcept
    double exm_expm1_backward_f64(double g, double x) noexcept
    float exm_erf_backward_f32(float g, float x) noexcept
    double exm_erf_backward_f64(double g, double x) noexcept
    float exm_softplus_backward_f32(float g, float x) noexcept
    double exm_softplus_backward_f64(double g, double x) noexcept
    float exm_swish_backward_f32(float g, float x) noexcept
    double exm_swish_backward_f64(double g, double x) noexcept
    float exm_mish_backward_f32(float g, float x) noexcept
    double exm_mish_backward_f64(double g, double x) noexcept
    float exm_gelu_backward_f32(float g, float x) noexcept
    double exm_gelu_backward_f64(double g, double x) noexcept
    float exm_gelu_tanh_backward_f32(float g, float x) noexcept
    double exm_gelu_tanh_backward_f64(double g, double x) noexcept
    float exm_elu_f32(float x, float alpha) noexcept
    double exm_elu_f64(double x, double alpha) noexcept
    float exm_elu_grad_f32(float x, float alpha) noexcept
    double exm_elu_grad_f64(double x, double alpha) noexcept
    float exm_elu_backward_f32(float g, float x, float alpha) noexcept
    double exm_elu_backward_f64(double g, double x, double alpha) noexcept
    float exm_power_f32(float x, float y) noexcept
    double exm_power_f64(double x, double y) noexcept
    double exm_power_log_f32(float x) noexcept
    double exm_power_log_any_f32(float x) noexcept
    double exm_power_product_f32(double y, double l) noexcept
    float exm_power_exp_f32(double e) noexcept
    ctypedef struct exm_sum_f64:
        double high, low
    exm_sum_f64 exm_power_ratio_f64(double x) noexcept
    exm_sum_f64 exm_power_log_f64(double x, exm_sum_f64 ratio) noexcept
    exm_sum_f64 exm_power_log_any_f64(double x) noexcept
    exm_sum_f64 exm_power_product_f64(double y, exm_sum_f64 l) noexcept
    exm_sum_f64 exm_power_product_less_f64(double y, exm_sum_f64 l) noexcept
    double exm_power_exp_f64(exm_sum_f64 e) noexcept
    bint exm_sin_is_rare_f32(float x) noexcept
    bint exm_sin_is_rare_f64(double x) noexcept
    bint exm_cos_is_rare_f32(float x) noexcept
    bint exm_cos_is_rare_f64(double x) noexcept
    float exm_sin_rare_f32(float x) noexcept
    double exm_sin_rare_f64(double x) noexcept
    float exm_cos_rare_f32(float x) noexcept
    double exm_cos_rare_f64(double x) noexcept
