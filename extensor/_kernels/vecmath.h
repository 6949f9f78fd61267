/* Scalar math functions that the compiler vectorises inside plain loops.
 *
 *     for (i = 0; i < n; i++) y[i] = exm_exp_f32(x[i]);
 *
 * Every function is branch-free C: comparisons become blends, exponents are read and written as
 * bits, integers come out of a floating-point addition of 1.5*2^(mantissa bits) ("the shifter"),
 * because conversions between double and int64 and the 64-bit arithmetic shift do not exist before
 * AVX-512. There are no tables and no library calls, so loops vectorise at x86-64-v2, -v3 and -v4.
 *
 * Compile with -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off, never with -ffast-math.
 * Contraction is off so that the vector body and the scalar tail of a loop give the same bits;
 * where fusing is wanted it is written as EXM_FMA_*, which is one rounding on CPUs with FMA and two
 * elsewhere. Results may differ in the last bit between CPU levels; the bounds hold on each.
 *
 * Names: exm_<f>_f32 and exm_<f>_f64; exm_<f>_grad_* is the derivative, exm_<f>_backward_* is
 * g times the derivative, right also where the derivative alone would over- or underflow.
 *
 * Coefficients are minimax fits (Remez exchange in 50-digit arithmetic, weighted by the relative error
 * of the whole result, the leading coefficients rounded one at a time and the rest fitted again).
 * "fit 2^-28" is the largest relative error of such a polynomial before rounding. "ULP" figures are the
 * worst ones measured over the float32 bit patterns (each 251st and dense runs at the seams) and over
 * some 10^7 float64 values, the larger of the three CPU levels, against references of higher precision.
 */
#ifndef EXTENSOR_VECMATH_H
#define EXTENSOR_VECMATH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define EXM_HAS_FMA 1
#define EXM_FMA_F32(a, b, c) __builtin_fmaf((a), (b), (c))
#define EXM_FMA_F64(a, b, c) __builtin_fma((a), (b), (c))
#else
#define EXM_HAS_FMA 0
#define EXM_FMA_F32(a, b, c) ((a) * (b) + (c))
#define EXM_FMA_F64(a, b, c) ((a) * (b) + (c))
#endif

/* ------------------------------------------------------------------ bits and exact arithmetic */

static inline uint32_t exm_bits_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float exm_from_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float exm_abs_f32(float x) { return __builtin_fabsf(x); }

/* a*b = product + the returned error, exactly (away from over- and underflow). */
static inline float exm_product_error_f32(float a, float b, float product)
{
#if EXM_HAS_FMA
    return EXM_FMA_F32(a, b, -product);
#else
    float ah = exm_from_bits_f32(exm_bits_f32(a) & 0xfffff000u), al = a - ah;
    float bh = exm_from_bits_f32(exm_bits_f32(b) & 0xfffff000u), bl = b - bh;
    return ((ah * bh - product) + (ah * bl + al * bh)) + al * bl;
#endif
}

/* a+b = sum + the returned error, exactly, whichever is larger. */
static inline float exm_sum_error_f32(float a, float b, float sum)
{
    float t = sum - a;
    return (a - (sum - t)) + (b - t);
}

/* 2^k from the bits of shifter + k. */
static inline float exm_pow2_f32(uint32_t shifted)
{
    return exm_from_bits_f32((shifted << 23) + 0x3f800000u);
}

static inline uint64_t exm_bits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double exm_from_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline double exm_abs_f64(double x) { return __builtin_fabs(x); }

/* a*b = product + the returned error, exactly (away from over- and underflow). */
static inline double exm_product_error_f64(double a, double b, double product)
{
#if EXM_HAS_FMA
    return EXM_FMA_F64(a, b, -product);
#else
    double ah = exm_from_bits_f64(exm_bits_f64(a) & 0xfffffffff8000000u), al = a - ah;
    double bh = exm_from_bits_f64(exm_bits_f64(b) & 0xfffffffff8000000u), bl = b - bh;
    return ((ah * bh - product) + (ah * bl + al * bh)) + al * bl;
#endif
}

/* a+b = sum + the returned error, exactly, whichever is larger. */
static inline double exm_sum_error_f64(double a, double b, double sum)
{
    double t = sum - a;
    return (a - (sum - t)) + (b - t);
}

/* 2^k from the bits of shifter + k. */
static inline double exm_pow2_f64(uint64_t shifted)
{
    return exm_from_bits_f64((shifted << 52) + 0x3ff0000000000000u);
}

/* ------------------------------------------------------------------ exp and what is made of it */

/* exp(x + x_low) = mantissa * 2^k, k = round(x/ln 2) in the low bits of `shifted`; mantissa in
 * [0.70, 1.42]. r = x - k*ln 2 with ln 2 in two parts, the first short enough for k*part to be
 * exact; 1 + r + r^2*q(r), q of degree 4 (fit 2^-28). x must be in the range of k. */
typedef struct {
    float mantissa;
    uint32_t shifted;
} exm_scaled_f32;

static inline exm_scaled_f32 exm_exp_parts_f32(float x, float x_low)
{
    exm_scaled_f32 e;
    float shifted = EXM_FMA_F32(x, 1.44269502f, 12582912.0f);
    float k = shifted - 12582912.0f;
    float r = EXM_FMA_F32(k, -0.693115234f, x);
    float p;
    r = EXM_FMA_F32(k, -3.19461833e-05f, r) + x_low;
    p = 0.00138479576f;
    p = EXM_FMA_F32(p, r, 0.00837001763f);
    p = EXM_FMA_F32(p, r, 0.041668009f);
    p = EXM_FMA_F32(p, r, 0.166665092f);
    p = EXM_FMA_F32(p, r, 0.49999994f);
    e.mantissa = 1.0f + EXM_FMA_F32(r * r, p, r);
    e.shifted = exm_bits_f32(shifted);
    return e;
}

/* value * 2^k for k in [-252, 252]: in two steps, so that 2^k itself may lie outside the
 * format; the first step is exact and the result is rounded once, also where it is subnormal. */
static inline float exm_scale_f32(float value, uint32_t shifted)
{
    uint32_t half = (shifted >> 1) << 23;
    uint32_t rest = (shifted << 23) - half;
    return value * exm_from_bits_f32(half + 0x3f800000u) * exm_from_bits_f32(rest + 0x3f800000u);
}

/* g * value * 2^k for k in [-504, 0], |value| < 2^20: neither a g near the largest number nor a 2^k below the
 * smallest one is lost. k in four steps, rounded towards zero so that none is above 1. */
static inline float exm_scale_product_f32(float g, float value, uint32_t shifted)
{
    uint32_t quarter = ((shifted + 3) >> 2) << 23;
    float q = exm_from_bits_f32(quarter + 0x3f800000u);
    float rest = exm_from_bits_f32((shifted << 23) - 3 * quarter + 0x3f800000u);
    return value * q * g * q * q * rest;
}

/* exp(x). ULP ? */
static inline float exm_exp_f32(float x)
{
    exm_scaled_f32 e;
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    e = exm_exp_parts_f32(x, 0);
    return exm_scale_f32(e.mantissa, e.shifted);
}

/* expm1(x) = 2^k*(1 + r + c) - 1 with the rounding error of r and of the sum (2^k - 1) + 2^k*r kept;
 * halved throughout, so that k may be one above the largest exponent. q of degree 5 (fit 2^-28).
 * ULP ? */
static inline float exm_expm1_f32(float x)
{
    float xc = x > 89.0f ? 89.0f : x;
    float shifted, k, r0, t, r, r_low, p, c, half, a, b, sum, y;
    xc = xc < -18.0f ? -18.0f : xc;
    shifted = EXM_FMA_F32(xc, 1.44269502f, 12582912.0f);
    k = shifted - 12582912.0f;
    r0 = EXM_FMA_F32(k, -0.693115234f, xc);
    t = k * 3.19461833e-05f;
    r = r0 - t;
    r_low = (r0 - r) - t;
    p = 0.000149336105f;
    p = EXM_FMA_F32(p, r, 0.00139305228f);
    p = EXM_FMA_F32(p, r, 0.00834160578f);
    p = EXM_FMA_F32(p, r, 0.0416665114f);
    p = EXM_FMA_F32(p, r, 0.166666359f);
    p = EXM_FMA_F32(p, r, 0.5f);
    c = EXM_FMA_F32(r * r, p, r_low);
    half = exm_pow2_f32(exm_bits_f32(shifted) - 1);
    a = half - 0.5f;
    b = half * r;
    sum = a + b;
    y = 2.0f * (sum + EXM_FMA_F32(half, c, b - (sum - a)));
    return exm_abs_f32(x) < 2.98023224e-08f ? x : y;
}

/* d expm1/dx = exp(x). */
static inline float exm_expm1_grad_f32(float x) { return exm_exp_f32(x); }

/* g*exp(x), also where exp(x) alone is outside the format. */
static inline float exm_expm1_backward_f32(float g, float x)
{
    exm_scaled_f32 e;
    uint32_t k, up, quarter, rest;
    float q;
    x = x > 200.0f ? 200.0f : x;
    x = x < -200.0f ? -200.0f : x;
    e = exm_exp_parts_f32(x, 0);
    /* k < 0 in four steps as in exm_scale_product, k > 0 before the product as far as it fits. */
    k = e.shifted - 0x4b400000u;
    up = (int32_t)k > 127 ? 127 : k;
    quarter = (((e.shifted + 3) >> 2) << 23);
    up = (int32_t)k > 0 ? up << 23 : quarter;
    quarter = (int32_t)k > 0 ? (((k << 23) - up) >> (23 + 1)) << 23 : quarter;
    rest = (k << 23) - up - 2 * quarter;
    q = exm_from_bits_f32(quarter + 0x3f800000u);
    return e.mantissa * exm_from_bits_f32(up + 0x3f800000u) * g * q * q * exm_from_bits_f32(rest + 0x3f800000u);
}

/* tanh: x + x^3*p(x^2) of degree 4 (fit 2^-28) below 0.625, else 1 - 2/(exp(2|x|) + 1).
 * ULP ? */
static inline float exm_tanh_f32(float x)
{
    float a = exm_abs_f32(x), z = x * x, p, small, shifted, k, r, s, q;
    p = -0.00569634046f;
    p = EXM_FMA_F32(p, z, 0.0206305627f);
    p = EXM_FMA_F32(p, z, -0.0537368543f);
    p = EXM_FMA_F32(p, z, 0.133314058f);
    p = EXM_FMA_F32(p, z, -0.333332807f);
    small = EXM_FMA_F32(a * z, p, a);
    a = a > 9.5f ? 9.5f : a;
    shifted = EXM_FMA_F32(a, 2.0f * 1.44269502f, 12582912.0f);
    k = shifted - 12582912.0f;
    r = EXM_FMA_F32(k, -0.693115234f, 2.0f * a);
    r = EXM_FMA_F32(k, -3.19461833e-05f, r);
    p = 0.00138479576f;
    p = EXM_FMA_F32(p, r, 0.00837001763f);
    p = EXM_FMA_F32(p, r, 0.041668009f);
    p = EXM_FMA_F32(p, r, 0.166665092f);
    p = EXM_FMA_F32(p, r, 0.49999994f);
    q = EXM_FMA_F32(r * r, p, r);
    s = exm_pow2_f32(exm_bits_f32(shifted));
    q = 1.0f - 2.0f / EXM_FMA_F32(s, q, s + 1.0f);
    return __builtin_copysignf(a < 0.625f ? small : q, x);
}

/* sigmoid: 1/(1 + e) for x >= 0, e/(1 + e) below, e = exp(-|x|). ULP ? */
static inline float exm_sigmoid_f32(float x)
{
    float e = exm_exp_f32(-exm_abs_f32(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* g*sigmoid(x): the backward function of softplus. */
static inline float exm_softplus_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), d;
    exm_scaled_f32 e;
    a = a > 200.0f ? 200.0f : a;
    e = exm_exp_parts_f32(-a, 0);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, e.mantissa, e.shifted));
    return x < 0 ? exm_scale_product_f32(g, d * e.mantissa, e.shifted) : g * d;
}

static inline float exm_softplus_grad_f32(float x) { return exm_sigmoid_f32(x); }

/* softplus(x) = max(x, 0) + log1p(e), e = exp(-|x|) in [0, 1]: e + e^2*p(e), degree 9 (fit 2^-27).
 * ULP ? */
static inline float exm_softplus_f32(float x)
{
    float e = exm_exp_f32(-exm_abs_f32(x)), p;
    p = 0.00208461215f;
    p = EXM_FMA_F32(p, e, -0.0136919292f);
    p = EXM_FMA_F32(p, e, 0.0421152115f);
    p = EXM_FMA_F32(p, e, -0.083239235f);
    p = EXM_FMA_F32(p, e, 0.1247954f);
    p = EXM_FMA_F32(p, e, -0.161351725f);
    p = EXM_FMA_F32(p, e, 0.198996231f);
    p = EXM_FMA_F32(p, e, -0.249888644f);
    p = EXM_FMA_F32(p, e, 0.333327144f);
    p = EXM_FMA_F32(p, e, -0.499999881f);
    p = EXM_FMA_F32(e * e, p, e);
    return x > 0 ? x + p : p;
}

/* elu(x) = x > 0 ? x : alpha*expm1(x). ULP ? */
static inline float exm_elu_f32(float x, float alpha)
{
    float y = alpha * exm_expm1_f32(x);
    return x > 0 ? x : y;
}

/* alpha*exp(x) at x <= 0 (alpha at 0, by convention), else 1. */
static inline float exm_elu_backward_f32(float g, float x, float alpha)
{
    exm_scaled_f32 e;
    float xc = x > 0 ? 0 : x;
    xc = xc < -200.0f ? -200.0f : xc;
    e = exm_exp_parts_f32(xc, 0);
    return x > 0 ? g : exm_scale_product_f32(alpha * g, e.mantissa, e.shifted);
}

static inline float exm_elu_grad_f32(float x, float alpha)
{
    float y = alpha * exm_exp_f32(x > 0 ? 0 : x);
    return x > 0 ? 1.0f : y;
}

/* swish(x) = x*sigmoid(x) = x/(1 + e), for x < 0 times e, e = exp(-|x|), the power of two last
 * because e may be subnormal where the product is not. -0 at -inf, the limit. ULP ? */
static inline float exm_swish_f32(float x)
{
    float a = exm_abs_f32(x), xc, y;
    exm_scaled_f32 e;
    a = a > 112.0f ? 112.0f : a;
    xc = x < -112.0f ? -112.0f : x;
    e = exm_exp_parts_f32(-a, 0);
    y = xc / (1.0f + exm_scale_f32(e.mantissa, e.shifted));
    return x < 0 ? exm_scale_f32(y * e.mantissa, e.shifted) : y;
}

/* swish'(x) = s + x*s*(1 - s), s = sigmoid(x). With e = exp(-|x|), d = 1/(1 + e):
 * G = e*d*(1 - |x|*d) for x < 0 and 1 - G above. */
static inline float exm_swish_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), d, t;
    exm_scaled_f32 e;
    a = a > 200.0f ? 200.0f : a;
    e = exm_exp_parts_f32(-a, 0);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, e.mantissa, e.shifted));
    t = d * e.mantissa * (1.0f - a * d);
    return x > 0 ? g * (1.0f - exm_scale_product_f32(1.0f, t, e.shifted)) : exm_scale_product_f32(g, t, e.shifted);
}

static inline float exm_swish_grad_f32(float x) { return exm_swish_backward_f32(1.0f, x); }

/* mish(x) = x*tanh(softplus(x)), e = exp(-|x|):
 * x > 0: x*(1 + 2e)/(1 + 2e + 2e^2);  x <= 0: x*e*(2 + e)/(2 + 2e + e^2). ULP ? */
static inline float exm_mish_f32(float x)
{
    float a = exm_abs_f32(x), xc, ex, num, den, y;
    exm_scaled_f32 e;
    a = a > 112.0f ? 112.0f : a;
    xc = x < -112.0f ? -112.0f : x;
    e = exm_exp_parts_f32(-a, 0);
    ex = exm_scale_f32(e.mantissa, e.shifted);
    num = x > 0 ? EXM_FMA_F32(2.0f, ex, 1.0f) : 2.0f + ex;
    den = x > 0 ? EXM_FMA_F32(2.0f * ex, ex, num) : EXM_FMA_F32(ex, num, 2.0f);
    y = xc * (num / den);
    return x > 0 ? y : exm_scale_f32(y * e.mantissa, e.shifted);
}

/* mish'(x) = t + x*(1 - t^2)*sigmoid(x), t = tanh(softplus(x)), as
 * x > 0: (1 + 2e)/D + 4x*e^2*(1 + e)/D^2, D = 1 + 2e + 2e^2;
 * x <= 0: e*((2 + e)/D + 4x*(1 + e)/D^2), D = 2 + 2e + e^2. */
static inline float exm_mish_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), ex, num, den, d, t, pos;
    exm_scaled_f32 e;
    a = a > 200.0f ? 200.0f : a;
    e = exm_exp_parts_f32(-a, 0);
    ex = exm_scale_product_f32(1.0f, e.mantissa, e.shifted);
    num = x > 0 ? EXM_FMA_F32(2.0f, ex, 1.0f) : 2.0f + ex;
    den = x > 0 ? EXM_FMA_F32(2.0f * ex, ex, num) : EXM_FMA_F32(ex, num, 2.0f);
    d = 1.0f / den;
    t = 4.0f * a * (1.0f + ex) * d;
    pos = g * (d * EXM_FMA_F32(t * ex, ex, num));
    t = d * (num - t);
    return x > 0 ? pos : exm_scale_product_f32(g, t * e.mantissa, e.shifted);
}

static inline float exm_mish_grad_f32(float x) { return exm_mish_backward_f32(1.0f, x); }

/* exp(x + x_low) = mantissa * 2^k, k = round(x/ln 2) in the low bits of `shifted`; mantissa in
 * [0.70, 1.42]. r = x - k*ln 2 with ln 2 in two parts, the first short enough for k*part to be
 * exact; 1 + r + r^2*q(r), q of degree 9 (fit 2^-58). x must be in the range of k. */
typedef struct {
    double mantissa;
    uint64_t shifted;
} exm_scaled_f64;

static inline exm_scaled_f64 exm_exp_parts_f64(double x, double x_low)
{
    exm_scaled_f64 e;
    double shifted = EXM_FMA_F64(x, 1.4426950408889634, 6755399441055744.0);
    double k = shifted - 6755399441055744.0;
    double r = EXM_FMA_F64(k, -0.6931471805592082, x);
    double p;
    r = EXM_FMA_F64(k, -7.371002565167799e-13, r) + x_low;
    p = 2.5017620709666442e-08;
    p = EXM_FMA_F64(p, r, 2.7632153547088773e-07);
    p = EXM_FMA_F64(p, r, 2.7557542120428686e-06);
    p = EXM_FMA_F64(p, r, 2.48014880250151e-05);
    p = EXM_FMA_F64(p, r, 0.00019841269541749084);
    p = EXM_FMA_F64(p, r, 0.0013888888948192198);
    p = EXM_FMA_F64(p, r, 0.008333333333485736);
    p = EXM_FMA_F64(p, r, 0.041666666666514494);
    p = EXM_FMA_F64(p, r, 0.16666666666666413);
    p = EXM_FMA_F64(p, r, 0.5000000000000012);
    e.mantissa = 1.0 + EXM_FMA_F64(r * r, p, r);
    e.shifted = exm_bits_f64(shifted);
    return e;
}

/* value * 2^k for k in [-2044, 2044]: in two steps, so that 2^k itself may lie outside the
 * format; the first step is exact and the result is rounded once, also where it is subnormal. */
static inline double exm_scale_f64(double value, uint64_t shifted)
{
    uint64_t half = (shifted >> 1) << 52;
    uint64_t rest = (shifted << 52) - half;
    return value * exm_from_bits_f64(half + 0x3ff0000000000000u) * exm_from_bits_f64(rest + 0x3ff0000000000000u);
}

/* g * value * 2^k for k in [-4088, 0], |value| < 2^20: neither a g near the largest number nor a 2^k below the
 * smallest one is lost. k in four steps, rounded towards zero so that none is above 1. */
static inline double exm_scale_product_f64(double g, double value, uint64_t shifted)
{
    uint64_t quarter = ((shifted + 3) >> 2) << 52;
    double q = exm_from_bits_f64(quarter + 0x3ff0000000000000u);
    double rest = exm_from_bits_f64((shifted << 52) - 3 * quarter + 0x3ff0000000000000u);
    return value * q * g * q * q * rest;
}

/* exp(x). ULP ? */
static inline double exm_exp_f64(double x)
{
    exm_scaled_f64 e;
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    e = exm_exp_parts_f64(x, 0);
    return exm_scale_f64(e.mantissa, e.shifted);
}

/* expm1(x) = 2^k*(1 + r + c) - 1 with the rounding error of r and of the sum (2^k - 1) + 2^k*r kept;
 * halved throughout, so that k may be one above the largest exponent. q of degree 10 (fit 2^-62).
 * ULP ? */
static inline double exm_expm1_f64(double x)
{
    double xc = x > 710.0 ? 710.0 : x;
    double shifted, k, r0, t, r, r_low, p, c, half, a, b, sum, y;
    xc = xc < -40.0 ? -40.0 : xc;
    shifted = EXM_FMA_F64(xc, 1.4426950408889634, 6755399441055744.0);
    k = shifted - 6755399441055744.0;
    r0 = EXM_FMA_F64(k, -0.6931471805592082, xc);
    t = k * 7.371002565167799e-13;
    r = r0 - t;
    r_low = (r0 - r) - t;
    p = 2.0893911349335957e-09;
    p = EXM_FMA_F64(p, r, 2.5108671983902746e-08);
    p = EXM_FMA_F64(p, r, 2.755732959797131e-07);
    p = EXM_FMA_F64(p, r, 2.7557245208995174e-06);
    p = EXM_FMA_F64(p, r, 2.4801587278886236e-05);
    p = EXM_FMA_F64(p, r, 0.0001984126988527787);
    p = EXM_FMA_F64(p, r, 0.001388888888889372);
    p = EXM_FMA_F64(p, r, 0.008333333333321818);
    p = EXM_FMA_F64(p, r, 0.041666666666666685);
    p = EXM_FMA_F64(p, r, 0.16666666666666677);
    p = EXM_FMA_F64(p, r, 0.5);
    c = EXM_FMA_F64(r * r, p, r_low);
    half = exm_pow2_f64(exm_bits_f64(shifted) - 1);
    a = half - 0.5;
    b = half * r;
    sum = a + b;
    y = 2.0 * (sum + EXM_FMA_F64(half, c, b - (sum - a)));
    return exm_abs_f64(x) < 5.551115123125783e-17 ? x : y;
}

/* d expm1/dx = exp(x). */
static inline double exm_expm1_grad_f64(double x) { return exm_exp_f64(x); }

/* g*exp(x), also where exp(x) alone is outside the format. */
static inline double exm_expm1_backward_f64(double g, double x)
{
    exm_scaled_f64 e;
    uint64_t k, up, quarter, rest;
    double q;
    x = x > 1470.0 ? 1470.0 : x;
    x = x < -1470.0 ? -1470.0 : x;
    e = exm_exp_parts_f64(x, 0);
    /* k < 0 in four steps as in exm_scale_product, k > 0 before the product as far as it fits. */
    k = e.shifted - 0x4338000000000000u;
    up = (int64_t)k > 1023 ? 1023 : k;
    quarter = (((e.shifted + 3) >> 2) << 52);
    up = (int64_t)k > 0 ? up << 52 : quarter;
    quarter = (int64_t)k > 0 ? (((k << 52) - up) >> (52 + 1)) << 52 : quarter;
    rest = (k << 52) - up - 2 * quarter;
    q = exm_from_bits_f64(quarter + 0x3ff0000000000000u);
    return e.mantissa * exm_from_bits_f64(up + 0x3ff0000000000000u) * g * q * q * exm_from_bits_f64(rest + 0x3ff0000000000000u);
}

/* tanh: x + x^3*p(x^2) of degree 10 (fit 2^-56) below 0.625, else 1 - 2/(exp(2|x|) + 1).
 * ULP ? */
static inline double exm_tanh_f64(double x)
{
    double a = exm_abs_f64(x), z = x * x, p, small, shifted, k, r, s, q;
    p = -1.6069456593152903e-05;
    p = EXM_FMA_F64(p, z, 7.713800303323071e-05);
    p = EXM_FMA_F64(p, z, -0.00022855861126723539);
    p = EXM_FMA_F64(p, z, 0.0005863137658503256);
    p = EXM_FMA_F64(p, z, -0.001454958028251575);
    p = EXM_FMA_F64(p, z, 0.003591989007584713);
    p = EXM_FMA_F64(p, z, -0.008863220981903319);
    p = EXM_FMA_F64(p, z, 0.02186948757450048);
    p = EXM_FMA_F64(p, z, -0.05396825393119738);
    p = EXM_FMA_F64(p, z, 0.13333333333261937);
    p = EXM_FMA_F64(p, z, -0.33333333333332854);
    small = EXM_FMA_F64(a * z, p, a);
    a = a > 19.5 ? 19.5 : a;
    shifted = EXM_FMA_F64(a, 2.0 * 1.4426950408889634, 6755399441055744.0);
    k = shifted - 6755399441055744.0;
    r = EXM_FMA_F64(k, -0.6931471805592082, 2.0 * a);
    r = EXM_FMA_F64(k, -7.371002565167799e-13, r);
    p = 2.5017620709666442e-08;
    p = EXM_FMA_F64(p, r, 2.7632153547088773e-07);
    p = EXM_FMA_F64(p, r, 2.7557542120428686e-06);
    p = EXM_FMA_F64(p, r, 2.48014880250151e-05);
    p = EXM_FMA_F64(p, r, 0.00019841269541749084);
    p = EXM_FMA_F64(p, r, 0.0013888888948192198);
    p = EXM_FMA_F64(p, r, 0.008333333333485736);
    p = EXM_FMA_F64(p, r, 0.041666666666514494);
    p = EXM_FMA_F64(p, r, 0.16666666666666413);
    p = EXM_FMA_F64(p, r, 0.5000000000000012);
    q = EXM_FMA_F64(r * r, p, r);
    s = exm_pow2_f64(exm_bits_f64(shifted));
    q = 1.0 - 2.0 / EXM_FMA_F64(s, q, s + 1.0);
    return __builtin_copysign(a < 0.625 ? small : q, x);
}

/* sigmoid: 1/(1 + e) for x >= 0, e/(1 + e) below, e = exp(-|x|). ULP ? */
static inline double exm_sigmoid_f64(double x)
{
    double e = exm_exp_f64(-exm_abs_f64(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

/* g*sigmoid(x): the backward function of softplus. */
static inline double exm_softplus_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), d;
    exm_scaled_f64 e;
    a = a > 1470.0 ? 1470.0 : a;
    e = exm_exp_parts_f64(-a, 0);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, e.mantissa, e.shifted));
    return x < 0 ? exm_scale_product_f64(g, d * e.mantissa, e.shifted) : g * d;
}

static inline double exm_softplus_grad_f64(double x) { return exm_sigmoid_f64(x); }

/* softplus(x) = max(x, 0) + log1p(e), e = exp(-|x|) in [0, 1]: e + e^2*p(e), degree 19 (fit 2^-56).
 * ULP ? */
static inline double exm_softplus_f64(double x)
{
    double e = exm_exp_f64(-exm_abs_f64(x)), p;
    p = 2.5332652313655942e-05;
    p = EXM_FMA_F64(p, e, -0.00029178569572382997);
    p = EXM_FMA_F64(p, e, 0.001595844311645562);
    p = EXM_FMA_F64(p, e, -0.005543380124816458);
    p = EXM_FMA_F64(p, e, 0.0138390889985357);
    p = EXM_FMA_F64(p, e, -0.026744647007231725);
    p = EXM_FMA_F64(p, e, 0.042300835318755184);
    p = EXM_FMA_F64(p, e, -0.05750260932822809);
    p = EXM_FMA_F64(p, e, 0.07035581299718224);
    p = EXM_FMA_F64(p, e, -0.0808123239698814);
    p = EXM_FMA_F64(p, e, 0.09013162664038746);
    p = EXM_FMA_F64(p, e, -0.09981018021712941);
    p = EXM_FMA_F64(p, e, 0.11107506829016907);
    p = EXM_FMA_F64(p, e, -0.1249947978347685);
    p = EXM_FMA_F64(p, e, 0.14285658923085032);
    p = EXM_FMA_F64(p, e, -0.16666662501285548);
    p = EXM_FMA_F64(p, e, 0.19999999791523823);
    p = EXM_FMA_F64(p, e, -0.24999999993685515);
    p = EXM_FMA_F64(p, e, 0.33333333333235254);
    p = EXM_FMA_F64(p, e, -0.4999999999999946);
    p = EXM_FMA_F64(e * e, p, e);
    return x > 0 ? x + p : p;
}

/* elu(x) = x > 0 ? x : alpha*expm1(x). ULP ? */
static inline double exm_elu_f64(double x, double alpha)
{
    double y = alpha * exm_expm1_f64(x);
    return x > 0 ? x : y;
}

/* alpha*exp(x) at x <= 0 (alpha at 0, by convention), else 1. */
static inline double exm_elu_backward_f64(double g, double x, double alpha)
{
    exm_scaled_f64 e;
    double xc = x > 0 ? 0 : x;
    xc = xc < -1470.0 ? -1470.0 : xc;
    e = exm_exp_parts_f64(xc, 0);
    return x > 0 ? g : exm_scale_product_f64(alpha * g, e.mantissa, e.shifted);
}

static inline double exm_elu_grad_f64(double x, double alpha)
{
    double y = alpha * exm_exp_f64(x > 0 ? 0 : x);
    return x > 0 ? 1.0 : y;
}

/* swish(x) = x*sigmoid(x) = x/(1 + e), for x < 0 times e, e = exp(-|x|), the power of two last
 * because e may be subnormal where the product is not. -0 at -inf, the limit. ULP ? */
static inline double exm_swish_f64(double x)
{
    double a = exm_abs_f64(x), xc, y;
    exm_scaled_f64 e;
    a = a > 756.0 ? 756.0 : a;
    xc = x < -756.0 ? -756.0 : x;
    e = exm_exp_parts_f64(-a, 0);
    y = xc / (1.0 + exm_scale_f64(e.mantissa, e.shifted));
    return x < 0 ? exm_scale_f64(y * e.mantissa, e.shifted) : y;
}

/* swish'(x) = s + x*s*(1 - s), s = sigmoid(x). With e = exp(-|x|), d = 1/(1 + e):
 * G = e*d*(1 - |x|*d) for x < 0 and 1 - G above. */
static inline double exm_swish_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), d, t;
    exm_scaled_f64 e;
    a = a > 1470.0 ? 1470.0 : a;
    e = exm_exp_parts_f64(-a, 0);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, e.mantissa, e.shifted));
    t = d * e.mantissa * (1.0 - a * d);
    return x > 0 ? g * (1.0 - exm_scale_product_f64(1.0, t, e.shifted)) : exm_scale_product_f64(g, t, e.shifted);
}

static inline double exm_swish_grad_f64(double x) { return exm_swish_backward_f64(1.0, x); }

/* mish(x) = x*tanh(softplus(x)), e = exp(-|x|):
 * x > 0: x*(1 + 2e)/(1 + 2e + 2e^2);  x <= 0: x*e*(2 + e)/(2 + 2e + e^2). ULP ? */
static inline double exm_mish_f64(double x)
{
    double a = exm_abs_f64(x), xc, ex, num, den, y;
    exm_scaled_f64 e;
    a = a > 756.0 ? 756.0 : a;
    xc = x < -756.0 ? -756.0 : x;
    e = exm_exp_parts_f64(-a, 0);
    ex = exm_scale_f64(e.mantissa, e.shifted);
    num = x > 0 ? EXM_FMA_F64(2.0, ex, 1.0) : 2.0 + ex;
    den = x > 0 ? EXM_FMA_F64(2.0 * ex, ex, num) : EXM_FMA_F64(ex, num, 2.0);
    y = xc * (num / den);
    return x > 0 ? y : exm_scale_f64(y * e.mantissa, e.shifted);
}

/* mish'(x) = t + x*(1 - t^2)*sigmoid(x), t = tanh(softplus(x)), as
 * x > 0: (1 + 2e)/D + 4x*e^2*(1 + e)/D^2, D = 1 + 2e + 2e^2;
 * x <= 0: e*((2 + e)/D + 4x*(1 + e)/D^2), D = 2 + 2e + e^2. */
static inline double exm_mish_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), ex, num, den, d, t, pos;
    exm_scaled_f64 e;
    a = a > 1470.0 ? 1470.0 : a;
    e = exm_exp_parts_f64(-a, 0);
    ex = exm_scale_product_f64(1.0, e.mantissa, e.shifted);
    num = x > 0 ? EXM_FMA_F64(2.0, ex, 1.0) : 2.0 + ex;
    den = x > 0 ? EXM_FMA_F64(2.0 * ex, ex, num) : EXM_FMA_F64(ex, num, 2.0);
    d = 1.0 / den;
    t = 4.0 * a * (1.0 + ex) * d;
    pos = g * (d * EXM_FMA_F64(t * ex, ex, num));
    t = d * (num - t);
    return x > 0 ? pos : exm_scale_product_f64(g, t * e.mantissa, e.shifted);
}

static inline double exm_mish_grad_f64(double x) { return exm_mish_backward_f64(1.0, x); }

/* ------------------------------------------------------------------ erf and gelu */

/* erf: x + x*p(x^2) of degree 7 (fit 2^-29) below 1.25; above, 1 - q^4 where q(t), degree 8,
 * approximates erfc(|x|)^(1/4) up to 4.0f, beyond which erf rounds to 1 (absolute fit 2^-28).
 * ULP ? */
static inline float exm_erf_f32(float x)
{
    float a = exm_abs_f32(x), z = x * x, p, small, t;
    a = a > 4.0f ? 4.0f : a;
    p = -7.42790598e-06f;
    p = EXM_FMA_F32(p, z, 0.000103185208f);
    p = EXM_FMA_F32(p, z, -0.000832431426f);
    p = EXM_FMA_F32(p, z, 0.00520750554f);
    p = EXM_FMA_F32(p, z, -0.0268594995f);
    p = EXM_FMA_F32(p, z, 0.112836584f);
    p = EXM_FMA_F32(p, z, -0.376126289f);
    p = EXM_FMA_F32(p, z, 0.128379166f);
    small = EXM_FMA_F32(a, p, a);
    t = a - 2.625f;
    p = -2.58780915e-06f;
    p = EXM_FMA_F32(p, t, -0.000206836063f);
    p = EXM_FMA_F32(p, t, -0.000146685183f);
    p = EXM_FMA_F32(p, t, 0.00265580998f);
    p = EXM_FMA_F32(p, t, -0.00480050454f);
    p = EXM_FMA_F32(p, t, -0.0150980745f);
    p = EXM_FMA_F32(p, t, 0.0884863809f);
    p = EXM_FMA_F32(p, t, -0.167273968f);
    p = EXM_FMA_F32(p, t, 0.119711988f);
    p = p * p;
    p = 1.0f - p * p;
    return __builtin_copysignf(a < 1.25f ? small : p, x);
}

/* g * 2/sqrt(pi)*exp(-x^2), x^2 as a sum of two numbers. */
static inline float exm_erf_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), h;
    exm_scaled_f32 e;
    a = a > 14.25f ? 14.25f : a;
    h = a * a;
    e = exm_exp_parts_f32(-h, -exm_product_error_f32(a, a, h));
    return exm_scale_product_f32(g, 1.12837923f * e.mantissa, e.shifted);
}

static inline float exm_erf_grad_f32(float x) { return exm_erf_backward_f32(1.0f, x); }

/* The normal distribution's tail: P(X > a) = exp(-a^2/2)*R(a), a >= 0 (R is Mills' ratio over sqrt(2 pi)).
 * R(a) = q*p(1 - 2q), q = K/(K + a), K = 4.0f, p of degree 9 (fit 2^-24 up to a = 20.0f). */
static inline float exm_mills_f32(float a)
{
    float q = 4.0f / (4.0f + a), t = 1.0f - 2.0f * q, p;
    p = -2.85316964e-05f;
    p = EXM_FMA_F32(p, t, 4.53892644e-05f);
    p = EXM_FMA_F32(p, t, 0.000382185448f);
    p = EXM_FMA_F32(p, t, -0.00088145904f);
    p = EXM_FMA_F32(p, t, -0.00187601743f);
    p = EXM_FMA_F32(p, t, 0.0151024275f);
    p = EXM_FMA_F32(p, t, -0.0466318019f);
    p = EXM_FMA_F32(p, t, 0.0967840701f);
    p = EXM_FMA_F32(p, t, -0.151974097f);
    p = EXM_FMA_F32(p, t, 0.188821286f);
    return q * p;
}

static inline exm_scaled_f32 exm_exp_half_square_f32(float a)
{
    float h = a * a;
    return exm_exp_parts_f32(-0.5f * h, -0.5f * exm_product_error_f32(a, a, h));
}

/* gelu(x) = x*P(X < x): T = x*exp(-x^2/2)*R(|x|), the result T for x <= 0 and x - T above; the far tail keeps
 * its relative accuracy and the power of two comes last. -0 at -inf, the limit. ULP ? */
static inline float exm_gelu_f32(float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e;
    a = a > 15.0f ? 15.0f : a;
    e = exm_exp_half_square_f32(a);
    t = exm_scale_f32(__builtin_copysignf(a, x) * exm_mills_f32(a) * e.mantissa, e.shifted);
    return x > 0 ? x - t : t;
}

/* gelu'(x) = P(X < x) + x*density(x): G = exp(-x^2/2)*(R(|x|) - |x|/sqrt(2 pi)) for x <= 0, 1 - G above.
 * One exponential for both terms. */
static inline float exm_gelu_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e;
    a = a > 20.0f ? 20.0f : a;
    e = exm_exp_half_square_f32(a);
    t = (exm_mills_f32(a) - a * 0.398942292f) * e.mantissa;
    return x > 0 ? g * (1.0f - exm_scale_product_f32(1.0f, t, e.shifted)) : exm_scale_product_f32(g, t, e.shifted);
}

static inline float exm_gelu_grad_f32(float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e;
    a = a > 15.0f ? 15.0f : a;
    e = exm_exp_half_square_f32(a);
    t = exm_scale_f32((exm_mills_f32(a) - a * 0.398942292f) * e.mantissa, e.shifted);
    return x > 0 ? 1.0f - t : t;
}

/* gelu, tanh form: x*sigmoid(v), v = 2*sqrt(2/pi)*(x + 0.044715*x^3), with the exponential as in swish. */
static inline float exm_gelu_tanh_f32(float x)
{
    float a = exm_abs_f32(x), v, y;
    exm_scaled_f32 e;
    a = a > 11.25f ? 11.25f : a;
    v = a * EXM_FMA_F32(a * a, 0.0713548139f, 1.59576917f);
    e = exm_exp_parts_f32(-v, 0);
    y = 1.0f + exm_scale_f32(e.mantissa, e.shifted);
    return x > 0 ? x / y : exm_scale_f32(__builtin_copysignf(a, x) / y * e.mantissa, e.shifted);
}

/* Its derivative, s + x*s*(1 - s)*v', s = sigmoid(v): with e = exp(-|v|), d = 1/(1 + e)
 * G = e*d*(1 - |x|*v'*d) for x <= 0, 1 - G above. v is needed to a few digits more than the format has (its
 * absolute error is the relative one of e): a sum of two numbers. */
static inline float exm_gelu_tanh_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), z, z_low, c, c_low, s, v, v_low, d, t;
    exm_scaled_f32 e;
    a = a > 13.75f ? 13.75f : a;
    z = a * a;
    z_low = exm_product_error_f32(a, a, z);
    c = z * 0.0713548139f;
    c_low = exm_product_error_f32(z, 0.0713548139f, c) + EXM_FMA_F32(z, 2.39883247e-09f, z_low * 0.0713548139f);
    s = c + 1.59576917f;
    c_low += exm_sum_error_f32(c, 1.59576917f, s) + -4.53406805e-08f;
    v = a * s;
    v_low = EXM_FMA_F32(a, c_low, exm_product_error_f32(a, s, v));
    e = exm_exp_parts_f32(-v, -v_low);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, e.mantissa, e.shifted));
    t = d * (1.0f - a * EXM_FMA_F32(z, 3.0f * 0.0713548139f, 1.59576917f) * d) * e.mantissa;
    return x > 0 ? g * (1.0f - exm_scale_product_f32(1.0f, t, e.shifted)) : exm_scale_product_f32(g, t, e.shifted);
}

static inline float exm_gelu_tanh_grad_f32(float x) { return exm_gelu_tanh_backward_f32(1.0f, x); }

/* erf: x + x*p(x^2) of degree 13 (fit 2^-56) below 1.25; above, 1 - q^4 where q(t), degree 19,
 * approximates erfc(|x|)^(1/4) up to 6.0, beyond which erf rounds to 1 (absolute fit 2^-56).
 * ULP ? */
static inline double exm_erf_f64(double x)
{
    double a = exm_abs_f64(x), z = x * x, p, small, t;
    a = a > 6.0 ? 6.0 : a;
    p = -4.221404483390478e-12;
    p = EXM_FMA_F64(p, z, 8.928051923431369e-11);
    p = EXM_FMA_F64(p, z, -1.2341377620194653e-09);
    p = EXM_FMA_F64(p, z, 1.4854692990526938e-08);
    p = EXM_FMA_F64(p, z, -1.637732437095015e-07);
    p = EXM_FMA_F64(p, z, 1.6463694139063817e-06);
    p = EXM_FMA_F64(p, z, -1.492579006019006e-05);
    p = EXM_FMA_F64(p, z, 0.00012055341166851279);
    p = EXM_FMA_F64(p, z, -0.0008548327339098637);
    p = EXM_FMA_F64(p, z, 0.0052239776331772245);
    p = EXM_FMA_F64(p, z, -0.02686617064625375);
    p = EXM_FMA_F64(p, z, 0.11283791670963585);
    p = EXM_FMA_F64(p, z, -0.37612638903184004);
    p = EXM_FMA_F64(p, z, 0.1283791670955126);
    small = EXM_FMA_F64(a, p, a);
    t = a - 3.625;
    p = 1.1728217729491784e-13;
    p = EXM_FMA_F64(p, t, 2.8558441746329193e-12);
    p = EXM_FMA_F64(p, t, 1.8149540185580907e-11);
    p = EXM_FMA_F64(p, t, -8.437765012609062e-12);
    p = EXM_FMA_F64(p, t, -2.2927088593646243e-10);
    p = EXM_FMA_F64(p, t, 1.0437191971135015e-09);
    p = EXM_FMA_F64(p, t, 6.788243807802004e-10);
    p = EXM_FMA_F64(p, t, -3.787131811073817e-08);
    p = EXM_FMA_F64(p, t, 1.199012445474761e-07);
    p = EXM_FMA_F64(p, t, 4.962263583635673e-07);
    p = EXM_FMA_F64(p, t, -4.525648444715359e-06);
    p = EXM_FMA_F64(p, t, 6.667118512448336e-06);
    p = EXM_FMA_F64(p, t, 5.879615622842191e-05);
    p = EXM_FMA_F64(p, t, -0.0003280804021095281);
    p = EXM_FMA_F64(p, t, 0.00036080460903328257);
    p = EXM_FMA_F64(p, t, 0.002852590538298592);
    p = EXM_FMA_F64(p, t, -0.01512308492630258);
    p = EXM_FMA_F64(p, t, 0.03541477324894462);
    p = EXM_FMA_F64(p, t, -0.043749477899309094);
    p = EXM_FMA_F64(p, t, 0.02330811161175314);
    p = p * p;
    p = 1.0 - p * p;
    return __builtin_copysign(a < 1.25 ? small : p, x);
}

/* g * 2/sqrt(pi)*exp(-x^2), x^2 as a sum of two numbers. */
static inline double exm_erf_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), h;
    exm_scaled_f64 e;
    a = a > 38.5 ? 38.5 : a;
    h = a * a;
    e = exm_exp_parts_f64(-h, -exm_product_error_f64(a, a, h));
    return exm_scale_product_f64(g, 1.1283791670955126 * e.mantissa, e.shifted);
}

static inline double exm_erf_grad_f64(double x) { return exm_erf_backward_f64(1.0, x); }

/* The normal distribution's tail: P(X > a) = exp(-a^2/2)*R(a), a >= 0 (R is Mills' ratio over sqrt(2 pi)).
 * R(a) = q*p(1 - 2q), q = K/(K + a), K = 5.5, p of degree 23 (fit 2^-53 up to a = 55.0). */
static inline double exm_mills_f64(double a)
{
    double q = 5.5 / (5.5 + a), t = 1.0 - 2.0 * q, p;
    p = 4.783210354599277e-10;
    p = EXM_FMA_F64(p, t, 8.296226655304606e-10);
    p = EXM_FMA_F64(p, t, -2.0183003707564204e-09);
    p = EXM_FMA_F64(p, t, -4.159348187126021e-09);
    p = EXM_FMA_F64(p, t, 6.260627466769521e-09);
    p = EXM_FMA_F64(p, t, 1.429040210633982e-08);
    p = EXM_FMA_F64(p, t, -3.3789920676762326e-08);
    p = EXM_FMA_F64(p, t, -5.3526109462632797e-08);
    p = EXM_FMA_F64(p, t, 2.703917108637629e-07);
    p = EXM_FMA_F64(p, t, 8.400357723359729e-08);
    p = EXM_FMA_F64(p, t, -2.20355426697039e-06);
    p = EXM_FMA_F64(p, t, 2.966182433085536e-06);
    p = EXM_FMA_F64(p, t, 1.2984521330948852e-05);
    p = EXM_FMA_F64(p, t, -5.9003850076989334e-05);
    p = EXM_FMA_F64(p, t, 4.901891232533992e-05);
    p = EXM_FMA_F64(p, t, 0.0004441786265118261);
    p = EXM_FMA_F64(p, t, -0.002531547376063858);
    p = EXM_FMA_F64(p, t, 0.00819956015193747);
    p = EXM_FMA_F64(p, t, -0.0199460163561113);
    p = EXM_FMA_F64(p, t, 0.03961316961036183);
    p = EXM_FMA_F64(p, t, -0.06673619368974865);
    p = EXM_FMA_F64(p, t, 0.09738117982954769);
    p = EXM_FMA_F64(p, t, -0.12457880374078877);
    p = EXM_FMA_F64(p, t, 0.14068538805025577);
    return q * p;
}

static inline exm_scaled_f64 exm_exp_half_square_f64(double a)
{
    double h = a * a;
    return exm_exp_parts_f64(-0.5 * h, -0.5 * exm_product_error_f64(a, a, h));
}

/* gelu(x) = x*P(X < x): T = x*exp(-x^2/2)*R(|x|), the result T for x <= 0 and x - T above; the far tail keeps
 * its relative accuracy and the power of two comes last. -0 at -inf, the limit. ULP ? */
static inline double exm_gelu_f64(double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e;
    a = a > 39.5 ? 39.5 : a;
    e = exm_exp_half_square_f64(a);
    t = exm_scale_f64(__builtin_copysign(a, x) * exm_mills_f64(a) * e.mantissa, e.shifted);
    return x > 0 ? x - t : t;
}

/* gelu'(x) = P(X < x) + x*density(x): G = exp(-x^2/2)*(R(|x|) - |x|/sqrt(2 pi)) for x <= 0, 1 - G above.
 * One exponential for both terms. */
static inline double exm_gelu_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e;
    a = a > 54.5 ? 54.5 : a;
    e = exm_exp_half_square_f64(a);
    t = (exm_mills_f64(a) - a * 0.3989422804014327) * e.mantissa;
    return x > 0 ? g * (1.0 - exm_scale_product_f64(1.0, t, e.shifted)) : exm_scale_product_f64(g, t, e.shifted);
}

static inline double exm_gelu_grad_f64(double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e;
    a = a > 39.5 ? 39.5 : a;
    e = exm_exp_half_square_f64(a);
    t = exm_scale_f64((exm_mills_f64(a) - a * 0.3989422804014327) * e.mantissa, e.shifted);
    return x > 0 ? 1.0 - t : t;
}

/* gelu, tanh form: x*sigmoid(v), v = 2*sqrt(2/pi)*(x + 0.044715*x^3), with the exponential as in swish. */
static inline double exm_gelu_tanh_f64(double x)
{
    double a = exm_abs_f64(x), v, y;
    exm_scaled_f64 e;
    a = a > 22.0 ? 22.0 : a;
    v = a * EXM_FMA_F64(a * a, 0.07135481627260025, 1.5957691216057308);
    e = exm_exp_parts_f64(-v, 0);
    y = 1.0 + exm_scale_f64(e.mantissa, e.shifted);
    return x > 0 ? x / y : exm_scale_f64(__builtin_copysign(a, x) / y * e.mantissa, e.shifted);
}

/* Its derivative, s + x*s*(1 - s)*v', s = sigmoid(v): with e = exp(-|v|), d = 1/(1 + e)
 * G = e*d*(1 - |x|*v'*d) for x <= 0, 1 - G above. v is needed to a few digits more than the format has (its
 * absolute error is the relative one of e): a sum of two numbers. */
static inline double exm_gelu_tanh_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), z, z_low, c, c_low, s, v, v_low, d, t;
    exm_scaled_f64 e;
    a = a > 27.5 ? 27.5 : a;
    z = a * a;
    z_low = exm_product_error_f64(a, a, z);
    c = z * 0.07135481627260025;
    c_low = exm_product_error_f64(z, 0.07135481627260025, c) + EXM_FMA_F64(z, -6.175149918155315e-19, z_low * 0.07135481627260025);
    s = c + 1.5957691216057308;
    c_low += exm_sum_error_f64(c, 1.5957691216057308, s) + -9.96930880911092e-17;
    v = a * s;
    v_low = EXM_FMA_F64(a, c_low, exm_product_error_f64(a, s, v));
    e = exm_exp_parts_f64(-v, -v_low);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, e.mantissa, e.shifted));
    t = d * (1.0 - a * EXM_FMA_F64(z, 3.0 * 0.07135481627260025, 1.5957691216057308) * d) * e.mantissa;
    return x > 0 ? g * (1.0 - exm_scale_product_f64(1.0, t, e.shifted)) : exm_scale_product_f64(g, t, e.shifted);
}

static inline double exm_gelu_tanh_grad_f64(double x) { return exm_gelu_tanh_backward_f64(1.0, x); }

/* ------------------------------------------------------------------ logarithms */

/* x = 2^k*(1 + f), 1 + f in [sqrt(1/2), sqrt(2)), for normal x > 0; k as a floating number. */
typedef struct {
    float k, f, tail; /* tail = log(1 + f) - f = f^2*(-1/2 + f*p(f)), p of degree 7 (fit 2^-27) */
} exm_log_parts_f32;

static inline float exm_log_tail_f32(float f)
{
    float p;
    p = -0.0764337629f;
    p = EXM_FMA_F32(p, f, 0.127674565f);
    p = EXM_FMA_F32(p, f, -0.131597355f);
    p = EXM_FMA_F32(p, f, 0.142009512f);
    p = EXM_FMA_F32(p, f, -0.166233212f);
    p = EXM_FMA_F32(p, f, 0.200012594f);
    p = EXM_FMA_F32(p, f, -0.250008225f);
    p = EXM_FMA_F32(p, f, 0.333333313f);
    return f * f * EXM_FMA_F32(f, p, -0.5f);
}

static inline exm_log_parts_f32 exm_log_split_f32(float x)
{
    exm_log_parts_f32 l;
    float normal = x < 1.17549435e-38f ? x * 8388608.0f : x;
    float bias = x < 1.17549435e-38f ? 8388758.0f : 8388735.0f;
    uint32_t u = exm_bits_f32(normal) + (0x3f800000u - 0x3f3504f3u);
    l.k = exm_from_bits_f32((u >> 23) | 0x4b000000u) - bias;
    l.f = exm_from_bits_f32((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    l.tail = exm_log_tail_f32(l.f);
    return l;
}

/* y for finite x > 0, else the logarithm's special values. */
static inline float exm_log_special_f32(float x, float y)
{
    float nan = __builtin_nanf(""), inf = __builtin_inff();
    y = x < inf ? y : x;
    return x > 0 ? y : (x == 0 ? -inf : nan);
}

/* log(x). ULP ? */
static inline float exm_log_f32(float x)
{
    exm_log_parts_f32 l = exm_log_split_f32(x);
    return exm_log_special_f32(x, EXM_FMA_F32(l.k, 0.693115234f, l.f + EXM_FMA_F32(l.k, 3.19461833e-05f, l.tail)));
}

/* log2 and log10: k*log(2) + log(1 + f) in that base, f times the base's factor split so that the leading
 * product is exact. Exact at the powers of 2 and of 10. ULP ? (log2), ULP ? (log10) */
static inline float exm_log2_f32(float x)
{
    exm_log_parts_f32 l = exm_log_split_f32(x);
    float fh = exm_from_bits_f32(exm_bits_f32(l.f) & 0xfffff000u), fl = l.f - fh;
    float low = EXM_FMA_F32(l.f, 0.000312228396f, fl * 1.44238281f);
    low = EXM_FMA_F32(l.tail, 1.44269502f, low);
    return exm_log_special_f32(x, l.k + EXM_FMA_F32(fh, 1.44238281f, low));
}

static inline float exm_log10_f32(float x)
{
    exm_log_parts_f32 l = exm_log_split_f32(x);
    float fh = exm_from_bits_f32(exm_bits_f32(l.f) & 0xfffff000u), fl = l.f - fh;
    float low = EXM_FMA_F32(l.k, 4.60503907e-06f, EXM_FMA_F32(l.f, 9.03803375e-05f, fl * 0.434204102f));
    low = EXM_FMA_F32(l.tail, 0.434294492f, low);
    return exm_log_special_f32(x, EXM_FMA_F32(l.k, 0.301025391f, EXM_FMA_F32(fh, 0.434204102f, low)));
}

/* log1p(x): u = 1 + x split as in log, its rounding error put back into f. ULP ? */
static inline float exm_log1p_f32(float x)
{
    float sum = 1.0f + x, low = exm_sum_error_f32(1.0f, x, sum);
    uint32_t u = exm_bits_f32(sum) + (0x3f800000u - 0x3f3504f3u);
    uint32_t kb = u >> 23;
    float k = exm_from_bits_f32(kb | 0x4b000000u) - 8388735.0f;
    float f = exm_from_bits_f32((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float y;
    /* 2^(1-k)/2 instead of 2^-k, which is subnormal for the largest x */
    f = EXM_FMA_F32(0.5f * low, exm_from_bits_f32((255 - kb) << 23), f);
    y = EXM_FMA_F32(k, 0.693115234f, f + EXM_FMA_F32(k, 3.19461833e-05f, exm_log_tail_f32(f)));
    y = exm_log_special_f32(sum, y);
    return exm_abs_f32(x) < 2.98023224e-08f ? x : y;
}

static inline float exm_log1p_grad_f32(float x) { return 1.0f / (1.0f + x); }

/* x = 2^k*(1 + f), 1 + f in [sqrt(1/2), sqrt(2)), for normal x > 0; k as a floating number. */
typedef struct {
    double k, f, tail; /* tail = log(1 + f) - f = f^2*(-1/2 + f*p(f)), p of degree 18 (fit 2^-57) */
} exm_log_parts_f64;

static inline double exm_log_tail_f64(double f)
{
    double p;
    p = 0.02614268482297391;
    p = EXM_FMA_F64(p, f, -0.0598053012930109);
    p = EXM_FMA_F64(p, f, 0.06503271885030998);
    p = EXM_FMA_F64(p, f, -0.05678169226940103);
    p = EXM_FMA_F64(p, f, 0.05668539897966009);
    p = EXM_FMA_F64(p, f, -0.06196632528291673);
    p = EXM_FMA_F64(p, f, 0.06684558628702625);
    p = EXM_FMA_F64(p, f, -0.07149441561414459);
    p = EXM_FMA_F64(p, f, 0.07691532617267237);
    p = EXM_FMA_F64(p, f, -0.08332913559462737);
    p = EXM_FMA_F64(p, f, 0.09090923791600174);
    p = EXM_FMA_F64(p, f, -0.10000015202167767);
    p = EXM_FMA_F64(p, f, 0.1111111115124852);
    p = EXM_FMA_F64(p, f, -0.12499999691520958);
    p = EXM_FMA_F64(p, f, 0.1428571428004508);
    p = EXM_FMA_F64(p, f, -0.16666666669826305);
    p = EXM_FMA_F64(p, f, 0.2000000000006682);
    p = EXM_FMA_F64(p, f, -0.24999999999987976);
    p = EXM_FMA_F64(p, f, 0.3333333333333314);
    return f * f * EXM_FMA_F64(f, p, -0.5);
}

static inline exm_log_parts_f64 exm_log_split_f64(double x)
{
    exm_log_parts_f64 l;
    double normal = x < 2.2250738585072014e-308 ? x * 4503599627370496.0 : x;
    double bias = x < 2.2250738585072014e-308 ? 4503599627371571.0 : 4503599627371519.0;
    uint64_t u = exm_bits_f64(normal) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    l.k = exm_from_bits_f64((u >> 52) | 0x4330000000000000u) - bias;
    l.f = exm_from_bits_f64((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    l.tail = exm_log_tail_f64(l.f);
    return l;
}

/* y for finite x > 0, else the logarithm's special values. */
static inline double exm_log_special_f64(double x, double y)
{
    double nan = __builtin_nan(""), inf = __builtin_inf();
    y = x < inf ? y : x;
    return x > 0 ? y : (x == 0 ? -inf : nan);
}

/* log(x). ULP ? */
static inline double exm_log_f64(double x)
{
    exm_log_parts_f64 l = exm_log_split_f64(x);
    return exm_log_special_f64(x, EXM_FMA_F64(l.k, 0.6931471805592082, l.f + EXM_FMA_F64(l.k, 7.371002565167799e-13, l.tail)));
}

/* log2 and log10: k*log(2) + log(1 + f) in that base, f times the base's factor split so that the leading
 * product is exact. Exact at the powers of 2 and of 10. ULP ? (log2), ULP ? (log10) */
static inline double exm_log2_f64(double x)
{
    exm_log_parts_f64 l = exm_log_split_f64(x);
    double fh = exm_from_bits_f64(exm_bits_f64(l.f) & 0xfffffffff8000000u), fl = l.f - fh;
    double low = EXM_FMA_F64(l.f, 1.9259629911266175e-08, fl * 1.4426950216293335);
    low = EXM_FMA_F64(l.tail, 1.4426950408889634, low);
    return exm_log_special_f64(x, l.k + EXM_FMA_F64(fh, 1.4426950216293335, low));
}

static inline double exm_log10_f64(double x)
{
    exm_log_parts_f64 l = exm_log_split_f64(x);
    double fh = exm_from_bits_f64(exm_bits_f64(l.f) & 0xfffffffff8000000u), fl = l.f - fh;
    double low = EXM_FMA_F64(l.k, 3.694239077158931e-13, EXM_FMA_F64(l.f, 4.798111141615973e-09, fl * 0.4342944771051407));
    low = EXM_FMA_F64(l.tail, 0.4342944819032518, low);
    return exm_log_special_f64(x, EXM_FMA_F64(l.k, 0.30102999566361177, EXM_FMA_F64(fh, 0.4342944771051407, low)));
}

/* log1p(x): u = 1 + x split as in log, its rounding error put back into f. ULP ? */
static inline double exm_log1p_f64(double x)
{
    double sum = 1.0 + x, low = exm_sum_error_f64(1.0, x, sum);
    uint64_t u = exm_bits_f64(sum) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    uint64_t kb = u >> 52;
    double k = exm_from_bits_f64(kb | 0x4330000000000000u) - 4503599627371519.0;
    double f = exm_from_bits_f64((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double y;
    /* 2^(1-k)/2 instead of 2^-k, which is subnormal for the largest x */
    f = EXM_FMA_F64(0.5 * low, exm_from_bits_f64((2047 - kb) << 52), f);
    y = EXM_FMA_F64(k, 0.6931471805592082, f + EXM_FMA_F64(k, 7.371002565167799e-13, exm_log_tail_f64(f)));
    y = exm_log_special_f64(sum, y);
    return exm_abs_f64(x) < 5.551115123125783e-17 ? x : y;
}

static inline double exm_log1p_grad_f64(double x) { return 1.0 / (1.0 + x); }

/* ------------------------------------------------------------------ float16 */

/* One float16 value as float: exact; a signalling NaN becomes quiet, as the hardware does. */
static inline float exm_half_value(uint16_t h)
{
    uint32_t magnitude = h & 0x7fffu;
    uint32_t normal = (magnitude << 13) + 0x38000000u;
    uint32_t special = (magnitude << 13) | (magnitude > 0x7c00u ? 0x7fc00000u : 0x7f800000u);
    uint32_t subnormal = exm_bits_f32((float)(int32_t)magnitude * 5.9604644775390625e-8f); /* 2^-24 */
    uint32_t u = magnitude < 0x0400u ? subnormal : normal;
    u = magnitude >= 0x7c00u ? special : u;
    return exm_from_bits_f32(u | (uint32_t)(h & 0x8000u) << 16);
}

/* float to float16, to nearest even, overflow to inf, NaN quiet. Below 2^-14 the addition of 0.5, whose
 * last place is float16's smallest number, does the rounding. */
static inline uint16_t exm_half_bits(float x)
{
    uint32_t u = exm_bits_f32(x), magnitude = u & 0x7fffffffu;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t subnormal = exm_bits_f32(exm_from_bits_f32(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    uint32_t h = magnitude < 0x38800000u ? subnormal : normal;
    h = magnitude >= 0x477ff000u ? 0x7c00u : h;
    h = magnitude > 0x7f800000u ? nan : h;
    return (uint16_t)(h | (u >> 16 & 0x8000u));
}

/* double to float16, rounded once: through float rounded to odd, which keeps what the second rounding needs. */
static inline uint16_t exm_double_to_half(double x)
{
    float f = (float)x;
    uint32_t u = exm_bits_f32(f);
    double nearest = exm_abs_f64((double)f), wanted = exm_abs_f64(x);
    uint32_t odd = nearest < wanted ? u + 1 : u - 1;
    int fix = (nearest < wanted || nearest > wanted) && (u & 1u) == 0;
    return exm_half_bits(exm_from_bits_f32(fix ? odd : u));
}

static inline void exm_half_to_float(const uint16_t *x, float *y, ptrdiff_t n)
{
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(x + i))));
#endif
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
    for (; i < n; i++)
        y[i] = _cvtsh_ss(x[i]);
#else
    for (; i < n; i++)
        y[i] = exm_half_value(x[i]);
#endif
}

static inline void exm_float_to_half(const float *x, uint16_t *y, ptrdiff_t n)
{
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++)
        y[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
#else
    for (; i < n; i++)
        y[i] = exm_half_bits(x[i]);
#endif
}

#endif
