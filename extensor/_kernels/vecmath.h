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

/* Always: left to itself the compiler stops inlining the larger ones, and the loop stays scalar. */
#if defined(__GNUC__)
#define EXM_INLINE static inline __attribute__((always_inline))
#else
#define EXM_INLINE static inline
#endif

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

/* EXM_Hn: the polynomial c0 + c1*x + ... of n coefficients by Horner's rule. The longer polynomials below
 * are two or four of them, in x^2 or x^4, added at the end: one long chain would leave the units waiting. */
#define EXM_H2_F32(x, c0, c1) EXM_FMA_F32(c1, x, c0)
#define EXM_H3_F32(x, c0, ...) EXM_FMA_F32(EXM_H2_F32(x, __VA_ARGS__), x, c0)
#define EXM_H4_F32(x, c0, ...) EXM_FMA_F32(EXM_H3_F32(x, __VA_ARGS__), x, c0)
#define EXM_H5_F32(x, c0, ...) EXM_FMA_F32(EXM_H4_F32(x, __VA_ARGS__), x, c0)
#define EXM_H6_F32(x, c0, ...) EXM_FMA_F32(EXM_H5_F32(x, __VA_ARGS__), x, c0)
#define EXM_H7_F32(x, c0, ...) EXM_FMA_F32(EXM_H6_F32(x, __VA_ARGS__), x, c0)
#define EXM_H8_F32(x, c0, ...) EXM_FMA_F32(EXM_H7_F32(x, __VA_ARGS__), x, c0)
#define EXM_H9_F32(x, c0, ...) EXM_FMA_F32(EXM_H8_F32(x, __VA_ARGS__), x, c0)
#define EXM_H10_F32(x, c0, ...) EXM_FMA_F32(EXM_H9_F32(x, __VA_ARGS__), x, c0)
#define EXM_H11_F32(x, c0, ...) EXM_FMA_F32(EXM_H10_F32(x, __VA_ARGS__), x, c0)
#define EXM_H12_F32(x, c0, ...) EXM_FMA_F32(EXM_H11_F32(x, __VA_ARGS__), x, c0)
#define EXM_H2_F64(x, c0, c1) EXM_FMA_F64(c1, x, c0)
#define EXM_H3_F64(x, c0, ...) EXM_FMA_F64(EXM_H2_F64(x, __VA_ARGS__), x, c0)
#define EXM_H4_F64(x, c0, ...) EXM_FMA_F64(EXM_H3_F64(x, __VA_ARGS__), x, c0)
#define EXM_H5_F64(x, c0, ...) EXM_FMA_F64(EXM_H4_F64(x, __VA_ARGS__), x, c0)
#define EXM_H6_F64(x, c0, ...) EXM_FMA_F64(EXM_H5_F64(x, __VA_ARGS__), x, c0)
#define EXM_H7_F64(x, c0, ...) EXM_FMA_F64(EXM_H6_F64(x, __VA_ARGS__), x, c0)
#define EXM_H8_F64(x, c0, ...) EXM_FMA_F64(EXM_H7_F64(x, __VA_ARGS__), x, c0)
#define EXM_H9_F64(x, c0, ...) EXM_FMA_F64(EXM_H8_F64(x, __VA_ARGS__), x, c0)
#define EXM_H10_F64(x, c0, ...) EXM_FMA_F64(EXM_H9_F64(x, __VA_ARGS__), x, c0)
#define EXM_H11_F64(x, c0, ...) EXM_FMA_F64(EXM_H10_F64(x, __VA_ARGS__), x, c0)
#define EXM_H12_F64(x, c0, ...) EXM_FMA_F64(EXM_H11_F64(x, __VA_ARGS__), x, c0)

/* ------------------------------------------------------------------ bits and exact arithmetic */

EXM_INLINE uint32_t exm_bits_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

EXM_INLINE float exm_from_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

EXM_INLINE float exm_abs_f32(float x) { return __builtin_fabsf(x); }

/* a*b = product + the returned error, exactly (away from over- and underflow). */
EXM_INLINE float exm_product_error_f32(float a, float b, float product)
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
EXM_INLINE float exm_sum_error_f32(float a, float b, float sum)
{
    float t = sum - a;
    return (a - (sum - t)) + (b - t);
}

/* 2^k from the bits of shifter + k. */
EXM_INLINE float exm_pow2_f32(uint32_t shifted)
{
    return exm_from_bits_f32((shifted << 23) + 0x3f800000u);
}

EXM_INLINE uint64_t exm_bits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

EXM_INLINE double exm_from_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

EXM_INLINE double exm_abs_f64(double x) { return __builtin_fabs(x); }

/* a*b = product + the returned error, exactly (away from over- and underflow). */
EXM_INLINE double exm_product_error_f64(double a, double b, double product)
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
EXM_INLINE double exm_sum_error_f64(double a, double b, double sum)
{
    double t = sum - a;
    return (a - (sum - t)) + (b - t);
}

/* 2^k from the bits of shifter + k. */
EXM_INLINE double exm_pow2_f64(uint64_t shifted)
{
    return exm_from_bits_f64((shifted << 52) + 0x3ff0000000000000u);
}

/* ------------------------------------------------------------------ exp and what is made of it */

/* exp(x + x_low) = (1 + p) * 2^k, k = round(x/ln 2) in the low bits of `shifted`, 1 + p in [0.70, 1.42].
 * r = x - k*ln 2 with ln 2 in two parts, the first short enough for k*part to be exact;
 * p = r + r^2*q(r), q of degree 4 (fit 2^-28). x must be in the range of k. */
typedef struct {
    float p;
    uint32_t shifted;
} exm_scaled_f32;

EXM_INLINE exm_scaled_f32 exm_exp_parts_f32(float x, float x_low)
{
    exm_scaled_f32 e;
    float shifted = EXM_FMA_F32(x, 1.44269502f, 12582912.0f);
    float k = shifted - 12582912.0f;
    float r = EXM_FMA_F32(k, -0.693115234f, x);
    float p;
    r = EXM_FMA_F32(k, -3.19461833e-05f, r) + x_low; /* -0.0 where there is none: x + -0.0 is x and folds away */
    p = EXM_H5_F32(r, 0.49999994f, 0.166665092f, 0.041668009f, 0.00837001763f, 0.00138479576f);
    e.p = EXM_FMA_F32(r * r, p, r);
    e.shifted = exm_bits_f32(shifted);
    return e;
}

/* y*(1 + p) in one rounding less than by adding 1 first. */
EXM_INLINE float exm_times_mantissa_f32(float y, exm_scaled_f32 e) { return EXM_FMA_F32(y, e.p, y); }

/* value * 2^k for k in [-252, 252]: in two steps, so that 2^k itself may lie outside the
 * format; the first step is exact and the result is rounded once, also where it is subnormal. */
EXM_INLINE float exm_scale_f32(float value, uint32_t shifted)
{
    uint32_t half = (shifted >> 1) << 23;
    uint32_t rest = (shifted << 23) - half;
    return value * exm_from_bits_f32(half + 0x3f800000u) * exm_from_bits_f32(rest + 0x3f800000u);
}

/* g * value * 2^k for k in [-504, 0], |value| < 2^20: neither a g near the largest number nor a 2^k below the
 * smallest one is lost. k in four steps, rounded towards zero so that none is above 1. */
EXM_INLINE float exm_scale_product_f32(float g, float value, uint32_t shifted)
{
    uint32_t quarter = ((shifted + 3) >> 2) << 23;
    float q = exm_from_bits_f32(quarter + 0x3f800000u);
    float rest = exm_from_bits_f32((shifted << 23) - 3 * quarter + 0x3f800000u);
    return value * q * g * q * q * rest;
}

/* The exponential itself, k in [-252, 252]. */
EXM_INLINE float exm_exp_value_f32(exm_scaled_f32 e)
{
    return exm_scale_f32(exm_times_mantissa_f32(1.0f, e), e.shifted);
}

/* g*G for x <= 0 and g*(1 - G) above, G = value * 2^k, 0 where |x| > last: the shape of every gradient
 * with f'(-x) = 1 - f'(x). */
EXM_INLINE float exm_reflect_f32(float g, float x, float last, float value, uint32_t shifted)
{
    float factor = x > 0 ? 1.0f : g, product = exm_scale_product_f32(factor, value, shifted);
    product = exm_abs_f32(x) > last ? 0.0f * factor : product;
    return x > 0 ? g * (1.0f - product) : product;
}

/* exp(x). ULP ? */
EXM_INLINE float exm_exp_f32(float x)
{
    exm_scaled_f32 e = exm_exp_parts_f32(x, -0.0f);
    float y = exm_exp_value_f32(e);
    y = x > 89.0f ? __builtin_inff() : y;
    return x < -104.0f ? 0 : y;
}

/* expm1(x) = 2^k*(1 + r + c) - 1 with the rounding error of r and of the sum (2^k - 1) + 2^k*r kept;
 * halved throughout, so that k may be one above the largest exponent. q of degree 5 (fit 2^-28).
 * ULP ? */
EXM_INLINE float exm_expm1_f32(float x)
{
    float shifted = EXM_FMA_F32(x, 1.44269502f, 12582912.0f), k = shifted - 12582912.0f;
    float r0 = EXM_FMA_F32(k, -0.693115234f, x), t = k * 3.19461833e-05f, r = r0 - t, r_low = (r0 - r) - t;
    float p, c, half, a, b, sum, y;
    {
        float r2 = r * r, p0, p1;
        p0 = EXM_H3_F32(r2, 0.166666359f, 0.00834160578f, 0.000149336105f);
        p1 = EXM_H2_F32(r2, 0.0416665114f, 0.00139305228f);
        p0 = EXM_FMA_F32(p1, r, p0);
        p = EXM_FMA_F32(p0, r, 0.5f);
    }
    c = EXM_FMA_F32(r * r, p, r_low);
    half = exm_pow2_f32(exm_bits_f32(shifted) - 1);
    a = half - 0.5f;
    b = half * r;
    sum = a + b;
    y = 2.0f * (sum + EXM_FMA_F32(half, c, b - (sum - a)));
    y = x > 89.0f ? __builtin_inff() : y;
    y = x < -18.0f ? -1.0f : y;
    return exm_abs_f32(x) < 2.98023224e-08f ? x : y;
}

/* d expm1/dx = exp(x). */
EXM_INLINE float exm_expm1_grad_f32(float x) { return exm_exp_f32(x); }

/* g*exp(x), also where exp(x) alone is outside the format. */
EXM_INLINE float exm_expm1_backward_f32(float g, float x)
{
    exm_scaled_f32 e;
    uint32_t k, up, quarter, rest;
    float q;
    x = x > 200.0f ? 200.0f : x;
    x = x < -200.0f ? -200.0f : x;
    e = exm_exp_parts_f32(x, -0.0f);
    /* k < 0 in four steps as in exm_scale_product, k > 0 before the product as far as it fits. */
    k = e.shifted - 0x4b400000u;
    up = (int32_t)k > 127 ? 127 : k;
    quarter = (((e.shifted + 3) >> 2) << 23);
    up = (int32_t)k > 0 ? up << 23 : quarter;
    quarter = (int32_t)k > 0 ? (((k << 23) - up) >> (23 + 1)) << 23 : quarter;
    rest = (k << 23) - up - 2 * quarter;
    q = exm_from_bits_f32(quarter + 0x3f800000u);
    return exm_times_mantissa_f32(exm_from_bits_f32(up + 0x3f800000u), e) * g * q * q * exm_from_bits_f32(rest + 0x3f800000u);
}

/* tanh: x + x^3*p(x^2) of degree 4 (fit 2^-28) below 0.625, else 1 - 2/(exp(2|x|) + 1).
 * ULP ? */
EXM_INLINE float exm_tanh_f32(float x)
{
    float a = exm_abs_f32(x), z = x * x, p, small, shifted, k, r, s, q;
    p = EXM_H5_F32(z, -0.333332807f, 0.133314058f, -0.0537368543f, 0.0206305627f, -0.00569634046f);
    small = EXM_FMA_F32(a * z, p, a);
    shifted = EXM_FMA_F32(a, 2.0f * 1.44269502f, 12582912.0f);
    k = shifted - 12582912.0f;
    r = EXM_FMA_F32(k, -0.693115234f, 2.0f * a);
    r = EXM_FMA_F32(k, -3.19461833e-05f, r);
    p = EXM_H5_F32(r, 0.49999994f, 0.166665092f, 0.041668009f, 0.00837001763f, 0.00138479576f);
    q = EXM_FMA_F32(r * r, p, r);
    s = exm_pow2_f32(exm_bits_f32(shifted));
    q = 1.0f - 2.0f / EXM_FMA_F32(s, q, s + 1.0f);
    q = a > 9.5f ? 1.0f : q;
    return __builtin_copysignf(a < 0.625f ? small : q, x);
}

/* sigmoid: 1/(1 + e) for x >= 0, e/(1 + e) below, e = exp(-|x|). ULP ? */
EXM_INLINE float exm_sigmoid_f32(float x)
{
    float e = exm_exp_f32(-exm_abs_f32(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* g*sigmoid(x): the backward function of softplus. */
EXM_INLINE float exm_softplus_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), d, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-a, -0.0f);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, 1.0f + e.p, e.shifted));
    y = x < 0 ? exm_scale_product_f32(g, exm_times_mantissa_f32(d, e), e.shifted) : g * d;
    return a > 200.0f ? (x < 0 ? 0.0f * g : g) : y;
}

EXM_INLINE float exm_softplus_grad_f32(float x) { return exm_sigmoid_f32(x); }

/* softplus(x) = max(x, 0) + log1p(e), e = exp(-|x|) in [0, 1]: e + e^2*p(e), degree 9 (fit 2^-30).
 * ULP ? */
EXM_INLINE float exm_softplus_f32(float x)
{
    float e = exm_exp_f32(-exm_abs_f32(x)), p;
    {
        float e2 = e * e, e4 = e2 * e2, p0, p1;
        p0 = EXM_H4_F32(e, 0.333327144f, -0.249888644f, 0.198996231f, -0.161351725f);
        p1 = EXM_H5_F32(e, 0.1247954f, -0.083239235f, 0.0421152003f, -0.0136919171f, 0.00208460772f);
        p0 = EXM_FMA_F32(p1, e4, p0);
        p = EXM_FMA_F32(p0, e, -0.499999881f);
    }
    p = EXM_FMA_F32(e * e, p, e);
    return x > 0 ? x + p : p;
}

/* elu(x) = x > 0 ? x : alpha*expm1(x). ULP ? */
EXM_INLINE float exm_elu_f32(float x, float alpha)
{
    float y = alpha * exm_expm1_f32(x);
    return x > 0 ? x : y;
}

/* alpha*exp(x) at x <= 0 (alpha at 0, by convention), else 1. */
EXM_INLINE float exm_elu_backward_f32(float g, float x, float alpha)
{
    exm_scaled_f32 e = exm_exp_parts_f32(x, -0.0f);
    float y = exm_scale_product_f32(g, exm_times_mantissa_f32(alpha, e), e.shifted);
    y = x < -200.0f ? 0.0f * g : y;
    return x > 0 ? g : y;
}

EXM_INLINE float exm_elu_grad_f32(float x, float alpha)
{
    float y = alpha * exm_exp_f32(x);
    return x > 0 ? 1.0f : y;
}

/* swish(x) = x*sigmoid(x) = x/(1 + e), for x < 0 times e, e = exp(-|x|), the power of two last
 * because e may be subnormal where the product is not. -0 at -inf, the limit. ULP ? */
EXM_INLINE float exm_swish_f32(float x)
{
    float a = exm_abs_f32(x), y;
    exm_scaled_f32 e = exm_exp_parts_f32(-a, -0.0f);
    y = x / (1.0f + exm_exp_value_f32(e));
    y = x < 0 ? exm_scale_f32(exm_times_mantissa_f32(y, e), e.shifted) : y;
    return a > 112.0f ? (x < 0 ? -0.0f : x) : y;
}

/* swish'(x) = s + x*s*(1 - s), s = sigmoid(x). With e = exp(-|x|), d = 1/(1 + e):
 * G = e*d*(1 - |x|*d) for x < 0 and 1 - G above. */
EXM_INLINE float exm_swish_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), d, t;
    exm_scaled_f32 e = exm_exp_parts_f32(-a, -0.0f);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, 1.0f + e.p, e.shifted));
    t = exm_times_mantissa_f32(d * (1.0f - a * d), e);
    return exm_reflect_f32(g, x, 200.0f, t, e.shifted);
}

EXM_INLINE float exm_swish_grad_f32(float x) { return exm_swish_backward_f32(1.0f, x); }

/* mish(x) = x*tanh(softplus(x)), e = exp(-|x|):
 * x > 0: x*(1 + 2e)/(1 + 2e + 2e^2);  x <= 0: x*e*(2 + e)/(2 + 2e + e^2). ULP ? */
EXM_INLINE float exm_mish_f32(float x)
{
    float a = exm_abs_f32(x), ex, num, den, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-a, -0.0f);
    ex = exm_exp_value_f32(e);
    num = x > 0 ? EXM_FMA_F32(2.0f, ex, 1.0f) : 2.0f + ex;
    den = x > 0 ? EXM_FMA_F32(2.0f * ex, ex, num) : EXM_FMA_F32(ex, num, 2.0f);
    y = x * (num / den);
    y = x > 0 ? y : exm_scale_f32(exm_times_mantissa_f32(y, e), e.shifted);
    return a > 112.0f ? (x < 0 ? -0.0f : x) : y;
}

/* mish'(x) = t + x*(1 - t^2)*sigmoid(x), t = tanh(softplus(x)), as
 * x > 0: (1 + 2e)/D + 4x*e^2*(1 + e)/D^2, D = 1 + 2e + 2e^2;
 * x <= 0: e*((2 + e)/D + 4x*(1 + e)/D^2), D = 2 + 2e + e^2. */
EXM_INLINE float exm_mish_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), ex, num, den, d, t, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-a, -0.0f);
    ex = exm_scale_product_f32(1.0f, 1.0f + e.p, e.shifted);
    num = x > 0 ? EXM_FMA_F32(2.0f, ex, 1.0f) : 2.0f + ex;
    den = x > 0 ? EXM_FMA_F32(2.0f * ex, ex, num) : EXM_FMA_F32(ex, num, 2.0f);
    d = 1.0f / den;
    t = 4.0f * a * (1.0f + ex) * d;
    y = g * (d * EXM_FMA_F32(t * ex, ex, num));
    t = d * (num - t);
    y = x > 0 ? y : exm_scale_product_f32(g, exm_times_mantissa_f32(t, e), e.shifted);
    return a > 200.0f ? (x < 0 ? 0.0f * g : g) : y;
}

EXM_INLINE float exm_mish_grad_f32(float x) { return exm_mish_backward_f32(1.0f, x); }

/* exp(x + x_low) = (1 + p) * 2^k, k = round(x/ln 2) in the low bits of `shifted`, 1 + p in [0.70, 1.42].
 * r = x - k*ln 2 with ln 2 in two parts, the first short enough for k*part to be exact;
 * p = r + r^2*q(r), q of degree 9 (fit 2^-58). x must be in the range of k. */
typedef struct {
    double p;
    uint64_t shifted;
} exm_scaled_f64;

EXM_INLINE exm_scaled_f64 exm_exp_parts_f64(double x, double x_low)
{
    exm_scaled_f64 e;
    double shifted = EXM_FMA_F64(x, 1.4426950408889634, 6755399441055744.0);
    double k = shifted - 6755399441055744.0;
    double r = EXM_FMA_F64(k, -0.6931471805592082, x);
    double p;
    r = EXM_FMA_F64(k, -7.371002565167799e-13, r) + x_low; /* -0.0 where there is none: x + -0.0 is x and folds away */
    {
        double r2 = r * r, p0, p1;
        p0 = EXM_H5_F64(r2, 0.16666666666666413, 0.008333333333485736, 0.00019841269541749084, 2.7557542120428157e-06,
            2.501762071015701e-08);
        p1 = EXM_H4_F64(r2, 0.041666666666514494, 0.0013888888948192198, 2.48014880250151e-05, 2.763215354708664e-07);
        p0 = EXM_FMA_F64(p1, r, p0);
        p = EXM_FMA_F64(p0, r, 0.5000000000000012);
    }
    e.p = EXM_FMA_F64(r * r, p, r);
    e.shifted = exm_bits_f64(shifted);
    return e;
}

/* y*(1 + p) in one rounding less than by adding 1 first. */
EXM_INLINE double exm_times_mantissa_f64(double y, exm_scaled_f64 e) { return EXM_FMA_F64(y, e.p, y); }

/* value * 2^k for k in [-2044, 2044]: in two steps, so that 2^k itself may lie outside the
 * format; the first step is exact and the result is rounded once, also where it is subnormal. */
EXM_INLINE double exm_scale_f64(double value, uint64_t shifted)
{
    uint64_t half = (shifted >> 1) << 52;
    uint64_t rest = (shifted << 52) - half;
    return value * exm_from_bits_f64(half + 0x3ff0000000000000u) * exm_from_bits_f64(rest + 0x3ff0000000000000u);
}

/* g * value * 2^k for k in [-4088, 0], |value| < 2^20: neither a g near the largest number nor a 2^k below the
 * smallest one is lost. k in four steps, rounded towards zero so that none is above 1. */
EXM_INLINE double exm_scale_product_f64(double g, double value, uint64_t shifted)
{
    uint64_t quarter = ((shifted + 3) >> 2) << 52;
    double q = exm_from_bits_f64(quarter + 0x3ff0000000000000u);
    double rest = exm_from_bits_f64((shifted << 52) - 3 * quarter + 0x3ff0000000000000u);
    return value * q * g * q * q * rest;
}

/* The exponential itself, k in [-2044, 2044]. */
EXM_INLINE double exm_exp_value_f64(exm_scaled_f64 e)
{
    return exm_scale_f64(exm_times_mantissa_f64(1.0, e), e.shifted);
}

/* g*G for x <= 0 and g*(1 - G) above, G = value * 2^k, 0 where |x| > last: the shape of every gradient
 * with f'(-x) = 1 - f'(x). */
EXM_INLINE double exm_reflect_f64(double g, double x, double last, double value, uint64_t shifted)
{
    double factor = x > 0 ? 1.0 : g, product = exm_scale_product_f64(factor, value, shifted);
    product = exm_abs_f64(x) > last ? 0.0 * factor : product;
    return x > 0 ? g * (1.0 - product) : product;
}

/* exp(x). ULP ? */
EXM_INLINE double exm_exp_f64(double x)
{
    exm_scaled_f64 e = exm_exp_parts_f64(x, -0.0);
    double y = exm_exp_value_f64(e);
    y = x > 710.0 ? __builtin_inf() : y;
    return x < -746.0 ? 0 : y;
}

/* expm1(x) = 2^k*(1 + r + c) - 1 with the rounding error of r and of the sum (2^k - 1) + 2^k*r kept;
 * halved throughout, so that k may be one above the largest exponent. q of degree 10 (fit 2^-62).
 * ULP ? */
EXM_INLINE double exm_expm1_f64(double x)
{
    double shifted = EXM_FMA_F64(x, 1.4426950408889634, 6755399441055744.0), k = shifted - 6755399441055744.0;
    double r0 = EXM_FMA_F64(k, -0.6931471805592082, x), t = k * 7.371002565167799e-13, r = r0 - t, r_low = (r0 - r) - t;
    double p, c, half, a, b, sum, y;
    {
        double r2 = r * r, p0, p1;
        p0 = EXM_H5_F64(r2, 0.16666666666666677, 0.008333333333321818, 0.0001984126988527787, 2.755724520899569e-06,
            2.5108671982979443e-08);
        p1 = EXM_H5_F64(r2, 0.041666666666666685, 0.001388888888889372, 2.4801587278886236e-05, 2.7557329597956656e-07,
            2.0893911372218143e-09);
        p0 = EXM_FMA_F64(p1, r, p0);
        p = EXM_FMA_F64(p0, r, 0.5);
    }
    c = EXM_FMA_F64(r * r, p, r_low);
    half = exm_pow2_f64(exm_bits_f64(shifted) - 1);
    a = half - 0.5;
    b = half * r;
    sum = a + b;
    y = 2.0 * (sum + EXM_FMA_F64(half, c, b - (sum - a)));
    y = x > 710.0 ? __builtin_inf() : y;
    y = x < -40.0 ? -1.0 : y;
    return exm_abs_f64(x) < 5.551115123125783e-17 ? x : y;
}

/* d expm1/dx = exp(x). */
EXM_INLINE double exm_expm1_grad_f64(double x) { return exm_exp_f64(x); }

/* g*exp(x), also where exp(x) alone is outside the format. */
EXM_INLINE double exm_expm1_backward_f64(double g, double x)
{
    exm_scaled_f64 e;
    uint64_t k, up, quarter, rest;
    double q;
    x = x > 1470.0 ? 1470.0 : x;
    x = x < -1470.0 ? -1470.0 : x;
    e = exm_exp_parts_f64(x, -0.0);
    /* k < 0 in four steps as in exm_scale_product, k > 0 before the product as far as it fits. */
    k = e.shifted - 0x4338000000000000u;
    up = (int64_t)k > 1023 ? 1023 : k;
    quarter = (((e.shifted + 3) >> 2) << 52);
    up = (int64_t)k > 0 ? up << 52 : quarter;
    quarter = (int64_t)k > 0 ? (((k << 52) - up) >> (52 + 1)) << 52 : quarter;
    rest = (k << 52) - up - 2 * quarter;
    q = exm_from_bits_f64(quarter + 0x3ff0000000000000u);
    return exm_times_mantissa_f64(exm_from_bits_f64(up + 0x3ff0000000000000u), e) * g * q * q * exm_from_bits_f64(rest + 0x3ff0000000000000u);
}

/* tanh: x + x^3*p(x^2) of degree 10 (fit 2^-56) below 0.625, else 1 - 2/(exp(2|x|) + 1).
 * ULP ? */
EXM_INLINE double exm_tanh_f64(double x)
{
    double a = exm_abs_f64(x), z = x * x, p, small, shifted, k, r, s, q;
    {
        double z2 = z * z, p0, p1;
        p0 = EXM_H5_F64(z2, 0.13333333333261937, 0.02186948757450048, 0.003591989007584713, 0.0005863137658213277,
            7.713800289845785e-05);
        p1 = EXM_H5_F64(z2, -0.05396825393119738, -0.008863220981903319, -0.001454958028251575, -0.0002285586111224927,
            -1.606945671253424e-05);
        p0 = EXM_FMA_F64(p1, z, p0);
        p = EXM_FMA_F64(p0, z, -0.33333333333332854);
    }
    small = EXM_FMA_F64(a * z, p, a);
    shifted = EXM_FMA_F64(a, 2.0 * 1.4426950408889634, 6755399441055744.0);
    k = shifted - 6755399441055744.0;
    r = EXM_FMA_F64(k, -0.6931471805592082, 2.0 * a);
    r = EXM_FMA_F64(k, -7.371002565167799e-13, r);
    {
        double r2 = r * r, p0, p1;
        p0 = EXM_H5_F64(r2, 0.16666666666666413, 0.008333333333485736, 0.00019841269541749084, 2.7557542120428157e-06,
            2.501762071015701e-08);
        p1 = EXM_H4_F64(r2, 0.041666666666514494, 0.0013888888948192198, 2.48014880250151e-05, 2.763215354708664e-07);
        p0 = EXM_FMA_F64(p1, r, p0);
        p = EXM_FMA_F64(p0, r, 0.5000000000000012);
    }
    q = EXM_FMA_F64(r * r, p, r);
    s = exm_pow2_f64(exm_bits_f64(shifted));
    q = 1.0 - 2.0 / EXM_FMA_F64(s, q, s + 1.0);
    q = a > 19.5 ? 1.0 : q;
    return __builtin_copysign(a < 0.625 ? small : q, x);
}

/* sigmoid: 1/(1 + e) for x >= 0, e/(1 + e) below, e = exp(-|x|). ULP ? */
EXM_INLINE double exm_sigmoid_f64(double x)
{
    double e = exm_exp_f64(-exm_abs_f64(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

/* g*sigmoid(x): the backward function of softplus. */
EXM_INLINE double exm_softplus_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), d, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-a, -0.0);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, 1.0 + e.p, e.shifted));
    y = x < 0 ? exm_scale_product_f64(g, exm_times_mantissa_f64(d, e), e.shifted) : g * d;
    return a > 1470.0 ? (x < 0 ? 0.0 * g : g) : y;
}

EXM_INLINE double exm_softplus_grad_f64(double x) { return exm_sigmoid_f64(x); }

/* softplus(x) = max(x, 0) + log1p(e), e = exp(-|x|) in [0, 1]: e + e^2*p(e), degree 19 (fit 2^-56).
 * ULP ? */
EXM_INLINE double exm_softplus_f64(double x)
{
    double e = exm_exp_f64(-exm_abs_f64(x)), p;
    {
        double e2 = e * e, e4 = e2 * e2, p0, p1;
        p0 = EXM_H8_F64(e, 0.33333333333235254, -0.24999999993685515, 0.19999999791523823, -0.16666662501285548,
            0.14285658923085032, -0.1249947978347685, 0.11107506829647314, -0.0998101803137825);
        p1 = EXM_H11_F64(e, 0.09013162727420784, -0.08081232622673994, 0.07035581733002466, -0.057502611643339197,
            0.042300825382081055, -0.02674461707396489, 0.013839046145002499, -0.0055433428414059845,
            0.001595824222639558, -0.0002917794960032723, 2.5331810784987405e-05);
        p0 = EXM_FMA_F64(p1, e4 * e4, p0);
        p = EXM_FMA_F64(p0, e, -0.4999999999999946);
    }
    p = EXM_FMA_F64(e * e, p, e);
    return x > 0 ? x + p : p;
}

/* elu(x) = x > 0 ? x : alpha*expm1(x). ULP ? */
EXM_INLINE double exm_elu_f64(double x, double alpha)
{
    double y = alpha * exm_expm1_f64(x);
    return x > 0 ? x : y;
}

/* alpha*exp(x) at x <= 0 (alpha at 0, by convention), else 1. */
EXM_INLINE double exm_elu_backward_f64(double g, double x, double alpha)
{
    exm_scaled_f64 e = exm_exp_parts_f64(x, -0.0);
    double y = exm_scale_product_f64(g, exm_times_mantissa_f64(alpha, e), e.shifted);
    y = x < -1470.0 ? 0.0 * g : y;
    return x > 0 ? g : y;
}

EXM_INLINE double exm_elu_grad_f64(double x, double alpha)
{
    double y = alpha * exm_exp_f64(x);
    return x > 0 ? 1.0 : y;
}

/* swish(x) = x*sigmoid(x) = x/(1 + e), for x < 0 times e, e = exp(-|x|), the power of two last
 * because e may be subnormal where the product is not. -0 at -inf, the limit. ULP ? */
EXM_INLINE double exm_swish_f64(double x)
{
    double a = exm_abs_f64(x), y;
    exm_scaled_f64 e = exm_exp_parts_f64(-a, -0.0);
    y = x / (1.0 + exm_exp_value_f64(e));
    y = x < 0 ? exm_scale_f64(exm_times_mantissa_f64(y, e), e.shifted) : y;
    return a > 756.0 ? (x < 0 ? -0.0 : x) : y;
}

/* swish'(x) = s + x*s*(1 - s), s = sigmoid(x). With e = exp(-|x|), d = 1/(1 + e):
 * G = e*d*(1 - |x|*d) for x < 0 and 1 - G above. */
EXM_INLINE double exm_swish_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), d, t;
    exm_scaled_f64 e = exm_exp_parts_f64(-a, -0.0);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, 1.0 + e.p, e.shifted));
    t = exm_times_mantissa_f64(d * (1.0 - a * d), e);
    return exm_reflect_f64(g, x, 1470.0, t, e.shifted);
}

EXM_INLINE double exm_swish_grad_f64(double x) { return exm_swish_backward_f64(1.0, x); }

/* mish(x) = x*tanh(softplus(x)), e = exp(-|x|):
 * x > 0: x*(1 + 2e)/(1 + 2e + 2e^2);  x <= 0: x*e*(2 + e)/(2 + 2e + e^2). ULP ? */
EXM_INLINE double exm_mish_f64(double x)
{
    double a = exm_abs_f64(x), ex, num, den, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-a, -0.0);
    ex = exm_exp_value_f64(e);
    num = x > 0 ? EXM_FMA_F64(2.0, ex, 1.0) : 2.0 + ex;
    den = x > 0 ? EXM_FMA_F64(2.0 * ex, ex, num) : EXM_FMA_F64(ex, num, 2.0);
    y = x * (num / den);
    y = x > 0 ? y : exm_scale_f64(exm_times_mantissa_f64(y, e), e.shifted);
    return a > 756.0 ? (x < 0 ? -0.0 : x) : y;
}

/* mish'(x) = t + x*(1 - t^2)*sigmoid(x), t = tanh(softplus(x)), as
 * x > 0: (1 + 2e)/D + 4x*e^2*(1 + e)/D^2, D = 1 + 2e + 2e^2;
 * x <= 0: e*((2 + e)/D + 4x*(1 + e)/D^2), D = 2 + 2e + e^2. */
EXM_INLINE double exm_mish_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), ex, num, den, d, t, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-a, -0.0);
    ex = exm_scale_product_f64(1.0, 1.0 + e.p, e.shifted);
    num = x > 0 ? EXM_FMA_F64(2.0, ex, 1.0) : 2.0 + ex;
    den = x > 0 ? EXM_FMA_F64(2.0 * ex, ex, num) : EXM_FMA_F64(ex, num, 2.0);
    d = 1.0 / den;
    t = 4.0 * a * (1.0 + ex) * d;
    y = g * (d * EXM_FMA_F64(t * ex, ex, num));
    t = d * (num - t);
    y = x > 0 ? y : exm_scale_product_f64(g, exm_times_mantissa_f64(t, e), e.shifted);
    return a > 1470.0 ? (x < 0 ? 0.0 * g : g) : y;
}

EXM_INLINE double exm_mish_grad_f64(double x) { return exm_mish_backward_f64(1.0, x); }

/* ------------------------------------------------------------------ erf and gelu */

/* erf: x + x*p(x^2) of degree 6 (fit 2^-27) below 1.125; above, 1 - q^4 where q(t), degree 8,
 * approximates erfc(|x|)^(1/4) up to 4.0f, beyond which erf rounds to 1 (absolute fit 2^-27).
 * ULP ? */
EXM_INLINE float exm_erf_f32(float x)
{
    float a = exm_abs_f32(x), z = x * x, p, small, t;
    {
        float z2 = z * z, p0, p1;
        p0 = EXM_H3_F32(z2, 0.112832569f, 0.00516035082f, 7.06582214e-05f);
        p1 = EXM_H2_F32(z2, -0.0268392675f, -0.000776657253f);
        p0 = EXM_FMA_F32(p1, z, p0);
        p0 = EXM_FMA_F32(p0, z, -0.376126021f);
        p = EXM_FMA_F32(p0, z, 0.128379166f);
    }
    small = EXM_FMA_F32(a, p, a);
    t = a - 1.1484375f;
    {
        float t2 = t * t, p0, p1;
        p0 = EXM_H4_F32(t2, -0.410904169f, 0.0474536382f, -0.00444350718f, -5.15157481e-05f);
        p1 = EXM_H4_F32(t2, 0.0262874831f, -0.00728154834f, 0.00144860556f, -1.86220004e-05f);
        p0 = EXM_FMA_F32(p1, t, p0);
        p = EXM_FMA_F32(p0, t, 0.568355143f);
    }
    p = p * p;
    p = 1.0f - p * p;
    p = a > 4.0f ? 1.0f : p;
    return __builtin_copysignf(a < 1.125f ? small : p, x);
}

/* g * 2/sqrt(pi)*exp(-x^2), x^2 as a sum of two numbers. */
EXM_INLINE float exm_erf_backward_f32(float g, float x)
{
    float h = x * x, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-h, -exm_product_error_f32(x, x, h));
    y = exm_scale_product_f32(g, exm_times_mantissa_f32(1.12837923f, e), e.shifted);
    return exm_abs_f32(x) > 14.25f ? 0.0f * g : y;
}

EXM_INLINE float exm_erf_grad_f32(float x) { return exm_erf_backward_f32(1.0f, x); }

/* The normal distribution's tail: P(X > a) = exp(-a^2/2)*R(a), a >= 0 (R is Mills' ratio over sqrt(2 pi)).
 * R(a) = q*p(1 - 1.5f*q), q = K/(K + a), K = 3.0f, p of degree 10 (fit 2^-27 up to a = 20.0f). */
EXM_INLINE float exm_mills_f32(float a)
{
    float q = 3.0f / (3.0f + a), t = EXM_FMA_F32(q, -1.5f, 1.0f), p;
    {
        float t2 = t * t, p0, p1;
        p0 = EXM_H5_F32(t2, -0.300660133f, -0.0211014636f, 0.00445937319f, -0.000320649851f, -6.46543631e-05f);
        p1 = EXM_H5_F32(t2, 0.158810362f, -0.0203333087f, 0.00453419471f, -0.00124335173f, 0.000228839708f);
        p0 = EXM_FMA_F32(p1, t, p0);
        p = EXM_FMA_F32(p0, t, 0.308670998f);
    }
    return q * p;
}

EXM_INLINE exm_scaled_f32 exm_exp_half_square_f32(float a)
{
    float h = a * a;
    return exm_exp_parts_f32(-0.5f * h, -0.5f * exm_product_error_f32(a, a, h));
}

/* gelu(x) = x*P(X < x): T = x*exp(-x^2/2)*R(|x|), the result T for x <= 0 and x - T above; the far tail keeps
 * its relative accuracy and the power of two comes last. -0 at -inf, the limit. ULP ? */
EXM_INLINE float exm_gelu_f32(float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e = exm_exp_half_square_f32(x);
    t = exm_scale_f32(exm_times_mantissa_f32(x * exm_mills_f32(a), e), e.shifted);
    t = a > 15.0f ? -0.0f : t;
    return x > 0 ? x - t : t;
}

/* gelu'(x) = P(X < x) + x*density(x): G = exp(-x^2/2)*(R(|x|) - |x|/sqrt(2 pi)) for x <= 0, 1 - G above.
 * One exponential for both terms. */
EXM_INLINE float exm_gelu_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e = exm_exp_half_square_f32(x);
    t = exm_times_mantissa_f32(exm_mills_f32(a) - a * 0.398942292f, e);
    return exm_reflect_f32(g, x, 20.0f, t, e.shifted);
}

EXM_INLINE float exm_gelu_grad_f32(float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e = exm_exp_half_square_f32(x);
    t = exm_scale_f32(exm_times_mantissa_f32(exm_mills_f32(a) - a * 0.398942292f, e), e.shifted);
    t = a > 15.0f ? 0.0f : t;
    return x > 0 ? 1.0f - t : t;
}

/* gelu, tanh form: x*sigmoid(v), v = 2*sqrt(2/pi)*(x + 0.044715*x^3), with the exponential as in swish. */
EXM_INLINE float exm_gelu_tanh_f32(float x)
{
    float a = exm_abs_f32(x), v = a * EXM_FMA_F32(a * a, 0.0713548139f, 1.59576917f), y;
    exm_scaled_f32 e = exm_exp_parts_f32(-v, -0.0f);
    y = x / (1.0f + exm_exp_value_f32(e));
    y = x < 0 ? exm_scale_f32(exm_times_mantissa_f32(y, e), e.shifted) : y;
    return a > 11.25f ? (x < 0 ? -0.0f : x) : y;
}

/* Its derivative, s + x*s*(1 - s)*v', s = sigmoid(v): with e = exp(-|v|), d = 1/(1 + e)
 * G = e*d*(1 - |x|*v'*d) for x <= 0, 1 - G above. v is needed to a few digits more than the format has (its
 * absolute error is the relative one of e): a sum of two numbers. */
EXM_INLINE float exm_gelu_tanh_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), z, z_low, c, c_low, s, v, v_low, d, t;
    exm_scaled_f32 e;
    z = a * a;
    z_low = exm_product_error_f32(a, a, z);
    c = z * 0.0713548139f;
    c_low = exm_product_error_f32(z, 0.0713548139f, c) + EXM_FMA_F32(z, 2.39883247e-09f, z_low * 0.0713548139f);
    s = c + 1.59576917f;
    c_low += exm_sum_error_f32(c, 1.59576917f, s) + -4.53406805e-08f;
    v = a * s;
    v_low = EXM_FMA_F32(a, c_low, exm_product_error_f32(a, s, v));
    e = exm_exp_parts_f32(-v, -v_low);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, 1.0f + e.p, e.shifted));
    t = exm_times_mantissa_f32(d * (1.0f - a * EXM_FMA_F32(z, 3.0f * 0.0713548139f, 1.59576917f) * d), e);
    return exm_reflect_f32(g, x, 13.75f, t, e.shifted);
}

EXM_INLINE float exm_gelu_tanh_grad_f32(float x) { return exm_gelu_tanh_backward_f32(1.0f, x); }

/* erf: x + x*p(x^2) of degree 12 (fit 2^-56) below 1.125; above, 1 - q^4 where q(t), degree 20,
 * approximates erfc(|x|)^(1/4) up to 6.0, beyond which erf rounds to 1 (absolute fit 2^-58).
 * ULP ? */
EXM_INLINE double exm_erf_f64(double x)
{
    double a = exm_abs_f64(x), z = x * x, p, small, t;
    {
        double z2 = z * z, z4 = z2 * z2, p0, p1, p2, p3;
        p0 = EXM_H3_F64(z4, 0.11283791670941169, 0.0001205530848636155, 1.4374314623469754e-08);
        p1 = EXM_H3_F64(z4, -0.026866170642997126, -1.4925151114054728e-05, -1.0451364110521319e-09);
        p2 = EXM_H3_F64(z4, 0.005223977608458457, 1.6455152999200047e-06, 4.646369143548975e-11);
        p3 = EXM_H2_F64(z4, -0.0008548326218422819, -1.6299168588791412e-07);
        p0 = EXM_FMA_F64(p1, z, p0);
        p2 = EXM_FMA_F64(p3, z, p2);
        p0 = EXM_FMA_F64(p2, z2, p0);
        p0 = EXM_FMA_F64(p0, z, -0.37612638903183393);
        p = EXM_FMA_F64(p0, z, 0.12837916709551256);
    }
    small = EXM_FMA_F64(a, p, a);
    t = a - 1.150390625;
    {
        double t2 = t * t, t4 = t2 * t2, p0, p1, p2, p3;
        p0 = EXM_H5_F64(t4, -0.41080128205352323, -0.00410377214662022, -3.820053582033876e-06, 5.7628758405632524e-09,
            1.5518207291492249e-10);
        p1 = EXM_H5_F64(t4, 0.02656778164656544, 0.0010397228501311025, 3.839618537375771e-06, 3.3018870857304954e-09,
            -1.7787170240049926e-11);
        p2 = EXM_H5_F64(t4, 0.047408262120677516, 0.00020158296072509798, 1.4416956105373046e-08, 1.0855746110062417e-09,
            1.1013048442742293e-12);
        p3 = EXM_H5_F64(t4, -0.007442655762628159, -8.246536730046717e-05, -1.5411139004444984e-07,
            -7.182187330675353e-10, -2.9323440601664895e-14);
        p0 = EXM_FMA_F64(p1, t, p0);
        p2 = EXM_FMA_F64(p3, t, p2);
        p0 = EXM_FMA_F64(p2, t2, p0);
        p = EXM_FMA_F64(p0, t, 0.5675526958371433);
    }
    p = p * p;
    p = 1.0 - p * p;
    p = a > 6.0 ? 1.0 : p;
    return __builtin_copysign(a < 1.125 ? small : p, x);
}

/* g * 2/sqrt(pi)*exp(-x^2), x^2 as a sum of two numbers. */
EXM_INLINE double exm_erf_backward_f64(double g, double x)
{
    double h = x * x, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-h, -exm_product_error_f64(x, x, h));
    y = exm_scale_product_f64(g, exm_times_mantissa_f64(1.1283791670955126, e), e.shifted);
    return exm_abs_f64(x) > 38.5 ? 0.0 * g : y;
}

EXM_INLINE double exm_erf_grad_f64(double x) { return exm_erf_backward_f64(1.0, x); }

/* The normal distribution's tail: P(X > a) = exp(-a^2/2)*R(a), a >= 0 (R is Mills' ratio over sqrt(2 pi)).
 * R(a) = q*p(1 - 1.5*q), q = K/(K + a), K = 3.25, p of degree 24 (fit 2^-52 up to a = 55.0). */
EXM_INLINE double exm_mills_f64(double a)
{
    double q = 3.25 / (3.25 + a), t = EXM_FMA_F64(q, -1.5, 1.0), p;
    {
        double t2 = t * t, t4 = t2 * t2, p0, p1, p2, p3;
        p0 = EXM_H6_F64(t4, -0.30730771223254605, 0.010451271720914637, 0.0002891155829251752, -4.007878280949961e-05,
            -2.4445742825236035e-06, 3.1774289963280444e-06);
        p1 = EXM_H6_F64(t4, 0.19304631756194984, 0.0023238815459185897, 0.00030157681786563043, 3.441121051630837e-06,
            2.6225512468134363e-07, 1.962553157420927e-06);
        p2 = EXM_H6_F64(t4, -0.05307343992475607, -0.002000134456051317, 2.6025534277819264e-05, 1.4934338658086271e-05,
            -9.370363378857897e-07, -2.3176537791295376e-06);
        p3 = EXM_H6_F64(t4, -0.01289598180857383, -0.0008498464652036505, -7.426401152410715e-05, 5.793573957945253e-06,
            -4.3661958481922985e-06, 5.691227297337756e-07);
        p0 = EXM_FMA_F64(p1, t, p0);
        p2 = EXM_FMA_F64(p3, t, p2);
        p0 = EXM_FMA_F64(p2, t2, p0);
        p = EXM_FMA_F64(p0, t, 0.2925346648773863);
    }
    return q * p;
}

EXM_INLINE exm_scaled_f64 exm_exp_half_square_f64(double a)
{
    double h = a * a;
    return exm_exp_parts_f64(-0.5 * h, -0.5 * exm_product_error_f64(a, a, h));
}

/* gelu(x) = x*P(X < x): T = x*exp(-x^2/2)*R(|x|), the result T for x <= 0 and x - T above; the far tail keeps
 * its relative accuracy and the power of two comes last. -0 at -inf, the limit. ULP ? */
EXM_INLINE double exm_gelu_f64(double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e = exm_exp_half_square_f64(x);
    t = exm_scale_f64(exm_times_mantissa_f64(x * exm_mills_f64(a), e), e.shifted);
    t = a > 39.5 ? -0.0 : t;
    return x > 0 ? x - t : t;
}

/* gelu'(x) = P(X < x) + x*density(x): G = exp(-x^2/2)*(R(|x|) - |x|/sqrt(2 pi)) for x <= 0, 1 - G above.
 * One exponential for both terms. */
EXM_INLINE double exm_gelu_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e = exm_exp_half_square_f64(x);
    t = exm_times_mantissa_f64(exm_mills_f64(a) - a * 0.3989422804014327, e);
    return exm_reflect_f64(g, x, 54.5, t, e.shifted);
}

EXM_INLINE double exm_gelu_grad_f64(double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e = exm_exp_half_square_f64(x);
    t = exm_scale_f64(exm_times_mantissa_f64(exm_mills_f64(a) - a * 0.3989422804014327, e), e.shifted);
    t = a > 39.5 ? 0.0 : t;
    return x > 0 ? 1.0 - t : t;
}

/* gelu, tanh form: x*sigmoid(v), v = 2*sqrt(2/pi)*(x + 0.044715*x^3), with the exponential as in swish. */
EXM_INLINE double exm_gelu_tanh_f64(double x)
{
    double a = exm_abs_f64(x), v = a * EXM_FMA_F64(a * a, 0.07135481627260025, 1.5957691216057308), y;
    exm_scaled_f64 e = exm_exp_parts_f64(-v, -0.0);
    y = x / (1.0 + exm_exp_value_f64(e));
    y = x < 0 ? exm_scale_f64(exm_times_mantissa_f64(y, e), e.shifted) : y;
    return a > 22.0 ? (x < 0 ? -0.0 : x) : y;
}

/* Its derivative, s + x*s*(1 - s)*v', s = sigmoid(v): with e = exp(-|v|), d = 1/(1 + e)
 * G = e*d*(1 - |x|*v'*d) for x <= 0, 1 - G above. v is needed to a few digits more than the format has (its
 * absolute error is the relative one of e): a sum of two numbers. */
EXM_INLINE double exm_gelu_tanh_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), z, z_low, c, c_low, s, v, v_low, d, t;
    exm_scaled_f64 e;
    z = a * a;
    z_low = exm_product_error_f64(a, a, z);
    c = z * 0.07135481627260025;
    c_low = exm_product_error_f64(z, 0.07135481627260025, c) + EXM_FMA_F64(z, -6.175149918155315e-19, z_low * 0.07135481627260025);
    s = c + 1.5957691216057308;
    c_low += exm_sum_error_f64(c, 1.5957691216057308, s) + -9.96930880911092e-17;
    v = a * s;
    v_low = EXM_FMA_F64(a, c_low, exm_product_error_f64(a, s, v));
    e = exm_exp_parts_f64(-v, -v_low);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, 1.0 + e.p, e.shifted));
    t = exm_times_mantissa_f64(d * (1.0 - a * EXM_FMA_F64(z, 3.0 * 0.07135481627260025, 1.5957691216057308) * d), e);
    return exm_reflect_f64(g, x, 27.5, t, e.shifted);
}

EXM_INLINE double exm_gelu_tanh_grad_f64(double x) { return exm_gelu_tanh_backward_f64(1.0, x); }

/* ------------------------------------------------------------------ logarithms */

/* x = 2^k*(1 + f), 1 + f in [sqrt(1/2), sqrt(2)), for normal x > 0; k as a floating number. */
typedef struct {
    float k, f, tail; /* tail = log(1 + f) - f = f^2*(-1/2 + f*p(f)), p of degree 7 (fit 2^-27) */
} exm_log_parts_f32;

EXM_INLINE float exm_log_tail_f32(float f)
{
    float p;
    {
        float f2 = f * f, p0, p1;
        p0 = EXM_H4_F32(f2, -0.250008225f, -0.166233212f, -0.131597355f, -0.0764337778f);
        p1 = EXM_H3_F32(f2, 0.200012594f, 0.142009512f, 0.127674565f);
        p0 = EXM_FMA_F32(p1, f, p0);
        p = EXM_FMA_F32(p0, f, 0.333333313f);
    }
    return f * f * EXM_FMA_F32(f, p, -0.5f);
}

EXM_INLINE exm_log_parts_f32 exm_log_split_f32(float x)
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
EXM_INLINE float exm_log_special_f32(float x, float y)
{
    float nan = __builtin_nanf(""), inf = __builtin_inff();
    y = x < inf ? y : x;
    return x > 0 ? y : (x == 0 ? -inf : nan);
}

/* log(x). ULP ? */
EXM_INLINE float exm_log_f32(float x)
{
    exm_log_parts_f32 l = exm_log_split_f32(x);
    return exm_log_special_f32(x, EXM_FMA_F32(l.k, 0.693115234f, l.f + EXM_FMA_F32(l.k, 3.19461833e-05f, l.tail)));
}

/* log2 and log10: k*log(2) + log(1 + f) in that base, f times the base's factor split so that the leading
 * product is exact. Exact at the powers of 2 and of 10. ULP ? (log2), ULP ? (log10) */
EXM_INLINE float exm_log2_f32(float x)
{
    exm_log_parts_f32 l = exm_log_split_f32(x);
    float fh = exm_from_bits_f32(exm_bits_f32(l.f) & 0xfffff000u), fl = l.f - fh;
    float low = EXM_FMA_F32(l.f, 0.000312228396f, fl * 1.44238281f);
    low = EXM_FMA_F32(l.tail, 1.44269502f, low);
    return exm_log_special_f32(x, l.k + EXM_FMA_F32(fh, 1.44238281f, low));
}

EXM_INLINE float exm_log10_f32(float x)
{
    exm_log_parts_f32 l = exm_log_split_f32(x);
    float fh = exm_from_bits_f32(exm_bits_f32(l.f) & 0xfffff000u), fl = l.f - fh;
    float low = EXM_FMA_F32(l.k, 4.60503907e-06f, EXM_FMA_F32(l.f, 9.03803375e-05f, fl * 0.434204102f));
    low = EXM_FMA_F32(l.tail, 0.434294492f, low);
    return exm_log_special_f32(x, EXM_FMA_F32(l.k, 0.301025391f, EXM_FMA_F32(fh, 0.434204102f, low)));
}

/* log1p(x): u = 1 + x split as in log, its rounding error put back into f. ULP ? */
EXM_INLINE float exm_log1p_f32(float x)
{
    float sum = 1.0f + x, low = exm_sum_error_f32(1.0f, x, sum);
    uint32_t u = exm_bits_f32(sum) + (0x3f800000u - 0x3f3504f3u);
    uint32_t kb = u >> 23;
    float k = exm_from_bits_f32(kb | 0x4b000000u) - 8388735.0f;
    float f0 = exm_from_bits_f32((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float f, y;
    /* 2^(1-k)/2 instead of 2^-k, which is subnormal for the largest x */
    low = 0.5f * low * exm_from_bits_f32((255 - kb) << 23);
    f = f0 + low;
    low -= f - f0;
    y = EXM_FMA_F32(k, 0.693115234f, f + (EXM_FMA_F32(k, 3.19461833e-05f, low) + exm_log_tail_f32(f)));
    y = exm_log_special_f32(sum, y);
    return exm_abs_f32(x) < 2.98023224e-08f ? x : y;
}

EXM_INLINE float exm_log1p_grad_f32(float x) { return 1.0f / (1.0f + x); }

/* x = 2^k*(1 + f), 1 + f in [sqrt(1/2), sqrt(2)), for normal x > 0; k as a floating number. */
typedef struct {
    double k, f, tail; /* tail = log(1 + f) - f = f^2*(-1/2 + f*p(f)), p of degree 18 (fit 2^-57) */
} exm_log_parts_f64;

EXM_INLINE double exm_log_tail_f64(double f)
{
    double p;
    {
        double f2 = f * f, f4 = f2 * f2, p0, p1, p2, p3;
        p0 = EXM_H5_F64(f4, -0.24999999999987976, -0.12499999691520958, -0.08332913663726317, -0.06196713029528143,
            -0.05983548817376093);
        p1 = EXM_H5_F64(f4, 0.2000000000006682, 0.1111111115124852, 0.07691531606350774, 0.05668381591400733,
            0.026171507780362393);
        p2 = EXM_H4_F64(f4, -0.16666666669826305, -0.10000015200849725, -0.07149437575211547, -0.056773729506799694);
        p3 = EXM_H4_F64(f4, 0.1428571428004508, 0.09090923809386928, 0.06684579070726153, 0.06503365231059652);
        p0 = EXM_FMA_F64(p1, f, p0);
        p2 = EXM_FMA_F64(p3, f, p2);
        p0 = EXM_FMA_F64(p2, f2, p0);
        p = EXM_FMA_F64(p0, f, 0.3333333333333314);
    }
    return f * f * EXM_FMA_F64(f, p, -0.5);
}

EXM_INLINE exm_log_parts_f64 exm_log_split_f64(double x)
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
EXM_INLINE double exm_log_special_f64(double x, double y)
{
    double nan = __builtin_nan(""), inf = __builtin_inf();
    y = x < inf ? y : x;
    return x > 0 ? y : (x == 0 ? -inf : nan);
}

/* log(x). ULP ? */
EXM_INLINE double exm_log_f64(double x)
{
    exm_log_parts_f64 l = exm_log_split_f64(x);
    return exm_log_special_f64(x, EXM_FMA_F64(l.k, 0.6931471805592082, l.f + EXM_FMA_F64(l.k, 7.371002565167799e-13, l.tail)));
}

/* log2 and log10: k*log(2) + log(1 + f) in that base, f times the base's factor split so that the leading
 * product is exact. Exact at the powers of 2 and of 10. ULP ? (log2), ULP ? (log10) */
EXM_INLINE double exm_log2_f64(double x)
{
    exm_log_parts_f64 l = exm_log_split_f64(x);
    double fh = exm_from_bits_f64(exm_bits_f64(l.f) & 0xfffffffff8000000u), fl = l.f - fh;
    double low = EXM_FMA_F64(l.f, 1.9259629911266175e-08, fl * 1.4426950216293335);
    low = EXM_FMA_F64(l.tail, 1.4426950408889634, low);
    return exm_log_special_f64(x, l.k + EXM_FMA_F64(fh, 1.4426950216293335, low));
}

EXM_INLINE double exm_log10_f64(double x)
{
    exm_log_parts_f64 l = exm_log_split_f64(x);
    double fh = exm_from_bits_f64(exm_bits_f64(l.f) & 0xfffffffff8000000u), fl = l.f - fh;
    double low = EXM_FMA_F64(l.k, 3.694239077158931e-13, EXM_FMA_F64(l.f, 4.798111141615973e-09, fl * 0.4342944771051407));
    low = EXM_FMA_F64(l.tail, 0.4342944819032518, low);
    return exm_log_special_f64(x, EXM_FMA_F64(l.k, 0.30102999566361177, EXM_FMA_F64(fh, 0.4342944771051407, low)));
}

/* log1p(x): u = 1 + x split as in log, its rounding error put back into f. ULP ? */
EXM_INLINE double exm_log1p_f64(double x)
{
    double sum = 1.0 + x, low = exm_sum_error_f64(1.0, x, sum);
    uint64_t u = exm_bits_f64(sum) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    uint64_t kb = u >> 52;
    double k = exm_from_bits_f64(kb | 0x4330000000000000u) - 4503599627371519.0;
    double f0 = exm_from_bits_f64((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double f, y;
    /* 2^(1-k)/2 instead of 2^-k, which is subnormal for the largest x */
    low = 0.5 * low * exm_from_bits_f64((2047 - kb) << 52);
    f = f0 + low;
    low -= f - f0;
    y = EXM_FMA_F64(k, 0.6931471805592082, f + (EXM_FMA_F64(k, 7.371002565167799e-13, low) + exm_log_tail_f64(f)));
    y = exm_log_special_f64(sum, y);
    return exm_abs_f64(x) < 5.551115123125783e-17 ? x : y;
}

EXM_INLINE double exm_log1p_grad_f64(double x) { return 1.0 / (1.0 + x); }

/* ------------------------------------------------------------------ sin and cos */

/* x = n*pi/2 + r: sin and cos are +-sin(r) or +-cos(r) by n mod 4. exm_sin and exm_cos are right up to
 * 1.6e6 in magnitude; beyond, where exm_sin_is_rare says so, exm_sin_rare reduces with 192 bits of 2/pi.
 * A block computes all with the first and goes over the rare ones again. */

/* +-sin(r + low), or cos where n is odd; n in the low bits of `quadrant`.
 * sin: r + r^3*p(r^2), degree 5 (fit 2^-58); cos: 1 - r^2/2 + r^4*p(r^2), degree 5 (fit 2^-64), with the
 * rounding error of 1 - r^2/2 put back. */
EXM_INLINE double exm_sin_quadrant_f64(double r, double low, uint64_t quadrant)
{
    double z = r * r, half = 0.5 * z, w = 1.0 - half, p, s, c;
    {
        double z2 = z * z, p0, p1;
        p0 = EXM_H3_F64(z2, 0.00833333333332184, 2.755731353825881e-06, 1.5895428967174233e-10);
        p1 = EXM_H2_F64(z2, -0.0001984126982935817, -2.5050734330788814e-08);
        p0 = EXM_FMA_F64(p1, z, p0);
        p = EXM_FMA_F64(p0, z, -0.1666666666666663);
    }
    s = r + EXM_FMA_F64(r * z, p, low);
    {
        double z2 = z * z, p0, p1;
        p0 = EXM_H3_F64(z2, -0.0013888888888873307, -2.7557314203074877e-07, -1.1358616973505584e-11);
        p1 = EXM_H2_F64(z2, 2.480158728896522e-05, 2.087570313888768e-09);
        p0 = EXM_FMA_F64(p1, z, p0);
        p = EXM_FMA_F64(p0, z, 0.041666666666666595);
    }
    c = w + (((1.0 - w) - half) + EXM_FMA_F64(z * z, p, -r * low));
    s = (quadrant & 1u) != 0 ? c : s;
    return exm_from_bits_f64(exm_bits_f64(s) ^ ((quadrant & 2u) << 62));
}

/* pi/2 in three parts of 33 bits, whose products with n < 2^20 are exact, and a rest; r as a sum of two. */
EXM_INLINE double exm_sin_shifted_f64(double x, uint64_t shift)
{
    double shifted = EXM_FMA_F64(x, 0.6366197723675814, 6755399441055744.0);
    double n = shifted - 6755399441055744.0;
    double a = EXM_FMA_F64(n, -1.5707963267341256, x);
    double t = -n * 6.077100506303966e-11, b = a + t, low = exm_sum_error_f64(a, t, b), u, c, r;
    u = -n * 2.0222662487111665e-21;
    c = b + u;
    low = EXM_FMA_F64(n, -8.4784276603689e-32, low + exm_sum_error_f64(b, u, c));
    r = c + low;
    return exm_sin_quadrant_f64(r, (c - r) + low, exm_bits_f64(shifted) + shift);
}

/* Payne and Hanek: for |x| >= 2^20, the 192 bits of 2/pi that matter times the 53 bits of x; the bits above
 * belong to multiples of 4 quadrants, those below are beyond 2^-130. */
static inline double exm_sin_huge_f64(double x, int cosine)
{
    /* 64 zero bits, then 2/pi */
    static const uint32_t two_over_pi[40] = {
        0x00000000u, 0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
        0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
        0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
        0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu};
    uint64_t bits = exm_bits_f64(x), m = (bits & 0x000fffffffffffffu) | 0x0010000000000000u, carry = 0, m0, m1;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1075, start = 62 + exponent, i, shift_bits = start % 32, negative;
    uint64_t quadrant;
    uint32_t w[7], product[6];
    double hi = 0, lo = 0, scale = 1.0 / 1073741824.0, p;
    if (!(exm_abs_f64(x) < __builtin_inf()))
        return x - x;
    for (i = 0; i < 6; i++) {
        uint64_t pair = (uint64_t)two_over_pi[start / 32 + i] << 32 | two_over_pi[start / 32 + i + 1];
        w[i] = (uint32_t)(pair >> (32 - shift_bits));
    }
    w[6] = 0;
    m0 = m & 0xffffffffu;
    m1 = m >> 32;
    for (i = 5; i >= 0; i--) { /* the low 192 bits of m*w */
        uint64_t t = m0 * w[i] + (carry & 0xffffffffu);
        uint64_t v = m1 * w[i + 1] + (t & 0xffffffffu);
        product[i] = (uint32_t)v;
        carry = (carry >> 32) + (t >> 32) + (v >> 32);
    }
    negative = (product[0] >> 29 & 1u) != 0; /* beyond the middle of the quadrant: count from the next one */
    quadrant = (product[0] >> 30) + (uint64_t)negative + (uint64_t)cosine;
    for (i = 0; i < 6; i++) {
        uint32_t word = negative ? ~product[i] : product[i]; /* -1 - value; the last bit does not matter */
        double term = (double)(i == 0 ? word & 0x3fffffffu : word) * scale, sum = hi + term;
        lo += term - (sum - hi);
        hi = sum;
        scale *= 1.0 / 4294967296.0;
    }
    p = hi * 1.5707963267948966;
    lo = exm_product_error_f64(hi, 1.5707963267948966, p) + (hi * 6.123233995736766e-17 + lo * 1.5707963267948966);
    hi = p + lo;
    lo = (p - hi) + lo;
    if (negative) {
        hi = -hi;
        lo = -lo;
    }
    p = exm_sin_quadrant_f64(hi, lo, quadrant);
    return bits >> 63 && !cosine ? -p : p;
}

EXM_INLINE int exm_sin_is_rare_f64(double x) { return exm_abs_f64(x) > 1.6e6; }
EXM_INLINE int exm_cos_is_rare_f64(double x) { return exm_abs_f64(x) > 1.6e6; }
static inline double exm_sin_rare_f64(double x) { return exm_sin_huge_f64(x, 0); }
static inline double exm_cos_rare_f64(double x) { return exm_sin_huge_f64(x, 1); }

/* ULP ? */
EXM_INLINE double exm_sin_f64(double x)
{
    double y = exm_sin_shifted_f64(x, 0);
    return exm_abs_f64(x) < 7.450580596923828e-09 ? x : y; /* 2^-27: keeps -0 */
}

/* ULP ? */
EXM_INLINE double exm_cos_f64(double x) { return exm_sin_shifted_f64(x, 1); }

/* float32 in double: one rounding at the end. Degrees 3 and 3 (fits 2^-37, 2^-43). */
EXM_INLINE float exm_sin_shifted_f32(float x, uint64_t shift)
{
    double d = (double)x;
    double shifted = EXM_FMA_F64(d, 0.6366197723675814, 6755399441055744.0);
    double n = shifted - 6755399441055744.0;
    double r = EXM_FMA_F64(n, -6.077100506506192e-11, EXM_FMA_F64(n, -1.5707963267341256, d)), z = r * r, p, s, c;
    uint64_t quadrant = exm_bits_f64(shifted) + shift;
    p = EXM_H4_F64(z, -0.166666666405906, 0.008333329280726404, -0.00019839304466239463, 2.7180468704970614e-06);
    s = EXM_FMA_F64(r * z, p, r);
    p = EXM_H4_F64(z, 0.041666666619108596, -0.0013888883467364215, 2.4799451572816477e-05, -2.7205047907782803e-07);
    c = EXM_FMA_F64(z, EXM_FMA_F64(z, p, -0.5), 1.0);
    s = (quadrant & 1u) != 0 ? c : s;
    return (float)exm_from_bits_f64(exm_bits_f64(s) ^ ((quadrant & 2u) << 62));
}

EXM_INLINE int exm_sin_is_rare_f32(float x) { return exm_abs_f32(x) > 1.6e6f; }
EXM_INLINE int exm_cos_is_rare_f32(float x) { return exm_abs_f32(x) > 1.6e6f; }
static inline float exm_sin_rare_f32(float x) { return (float)exm_sin_huge_f64((double)x, 0); }
static inline float exm_cos_rare_f32(float x) { return (float)exm_sin_huge_f64((double)x, 1); }

/* ULP ? */
EXM_INLINE float exm_sin_f32(float x)
{
    float y = exm_sin_shifted_f32(x, 0);
    return exm_abs_f32(x) < 0.000244140625f ? x : y; /* 2^-12: keeps -0 */
}

/* ULP ? */
EXM_INLINE float exm_cos_f32(float x) { return exm_sin_shifted_f32(x, 1); }

/* ------------------------------------------------------------------ power */

/* What x^y is beyond |x|^y: the sign of odd powers, NaN for a negative base with a fraction in y, and 1 for
 * x = 1 and for y = 0 even where the other is NaN. `magnitude` holds inf and 0 already. */
EXM_INLINE double exm_power_special_f64(double x, double y, double magnitude)
{
    double half = 0.5 * y, nan = __builtin_nan(""), inf = __builtin_inf();
    double sign = __builtin_rint(y) == y ? 1.0 : 0.0; /* y is an integer (the infinities are even) */
    double odd = __builtin_rint(half) == half ? 0.0 : sign;
    double base = x > -inf ? x : 1.0; /* -inf to a fraction is not NaN */
    double invalid = base < 0 ? sign : 1.0;
    double z = odd != 0 ? __builtin_copysign(magnitude, x) : magnitude;
    z = invalid != 0 ? z : nan;
    z = x == x ? z : x;
    z = x == 1.0 ? 1.0 : z;
    return y == 0 ? 1.0 : z;
}

/* x^y = exp(y*log|x|), the logarithm as a sum of two numbers to some 2^-66: x = 2^k*(1 + f), s = f/(2 + f),
 * log(1 + f) = 2s + 2s^3*(1/3 + s^2*p(s^2)), degree 7 (fit 2^-73), the leading terms in double-double.
 * ULP ? */
EXM_INLINE double exm_power_f64(double x, double y)
{
    double ax = exm_abs_f64(x), inf = __builtin_inf(), p;
    exm_log_parts_f64 l = exm_log_split_f64(ax);
    double f = l.f, k = l.k;
    double d = 2.0 + f, d_low = f - (d - 2.0), s = f / d, t = s * d;
    double s_low = (((f - t) - exm_product_error_f64(s, d, t)) - s * d_low) / d;
    double z = s * s, z_low = exm_product_error_f64(s, s, z) + 2.0 * s * s_low;
    double w, w_low, v, v_low, a, b, b_low, sum, sum2, low, log_hi, log_low, e, e_low, magnitude;
    exm_scaled_f64 parts;
    {
        double z2 = z * z, p0, p1;
        p0 = EXM_H4_F64(z2, 0.14285714285721934, 0.09090909422837844, 0.0666813499597502, 0.05991393414682174);
        p1 = EXM_H3_F64(z2, 0.111111111088894, 0.07692279148779863, 0.058378310952020764);
        p0 = EXM_FMA_F64(p1, z, p0);
        p = EXM_FMA_F64(p0, z, 0.1999999999999999);
    }
    p = z * p;
    w = 0.3333333333333333 + p;
    w_low = (0.3333333333333333 - w) + p + 1.850371707708594e-17;
    v = z * w; /* log(1 + f) = 2s*(1 + v) */
    v_low = exm_product_error_f64(z, w, v) + (z * w_low + z_low * w);
    a = 2.0 * s;
    b = a * v;
    b_low = exm_product_error_f64(a, v, b) + (a * v_low + 2.0 * EXM_FMA_F64(s_low, v, s_low));
    t = k * 0.6931471805592082;
    sum = t + a;
    low = a - (sum - t);
    sum2 = sum + b;
    low += b - (sum2 - sum);
    low += EXM_FMA_F64(k, 7.371002565167799e-13, b_low);
    log_hi = sum2 + low;
    log_low = (sum2 - log_hi) + low;
    /* beyond 2^64 every power is 0, 1 or inf */
    t = y > 18446744073709551616.0 ? 18446744073709551616.0 : y;
    t = t < -18446744073709551616.0 ? -18446744073709551616.0 : t;
    e = t * log_hi;
    e_low = EXM_FMA_F64(t, log_low, exm_product_error_f64(t, log_hi, e));
    e = ax > 0 ? e : -t * inf;
    e = ax < inf ? e : t * inf;
    e_low = exm_abs_f64(e) < 760.0 ? e_low : -0.0;
    parts = exm_exp_parts_f64(e, e_low);
    magnitude = exm_exp_value_f64(parts);
    magnitude = e >= 760.0 ? inf : magnitude;
    magnitude = e <= -760.0 ? 0.0 : magnitude;
    return exm_power_special_f64(x, y, magnitude);
}

/* float32 in double: 2^(y*log2|x|), log2(1 + f) = f*p(f) of degree 13 (fit 2^-38),
 * 2^r = 1 + r*p(r) of degree 6 (fit 2^-32); rounded once. ULP ? */
EXM_INLINE float exm_power_f32(float x, float y)
{
    double dx = (double)x, dy = (double)y, ax = exm_abs_f64(dx), inf = __builtin_inf(), p, e, n, r, magnitude;
    uint64_t u = exm_bits_f64(ax) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu), shifted;
    double k = exm_from_bits_f64((u >> 52) | 0x4330000000000000u) - 4503599627371519.0;
    double f = exm_from_bits_f64((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    {
        double f2 = f * f, f4 = f2 * f2, p0, p1, p2, p3;
        p0 = EXM_H4_F64(f4, -0.7213475203275345, -0.24044643347271172, -0.14249861874224162, -0.06973908825134872);
        p1 = EXM_H3_F64(f4, 0.48089834880307636, 0.20610712317743626, 0.1302756072483465);
        p2 = EXM_H3_F64(f4, -0.36067379313893255, -0.18043675302165588, -0.1346293414790708);
        p3 = EXM_H3_F64(f4, 0.2885387957204098, 0.16021666745323188, 0.13251201683009145);
        p0 = EXM_FMA_F64(p1, f, p0);
        p2 = EXM_FMA_F64(p3, f, p2);
        p0 = EXM_FMA_F64(p2, f2, p0);
        p = EXM_FMA_F64(p0, f, 1.442695040886572);
    }
    e = EXM_FMA_F64(f, p, k);
    e = ax > 0 ? e : -inf;
    e = ax < inf ? e : inf;
    e = ax == 1.0 ? 0.0 : dy * e;
    r = e + 6755399441055744.0;
    shifted = exm_bits_f64(r);
    n = r - 6755399441055744.0;
    r = e - n;
    {
        double r2 = r * r, p0, p1;
        p0 = EXM_H3_F64(r2, 0.24022650922123182, 0.009618056633122884, 0.00015461482291959848);
        p1 = EXM_H3_F64(r2, 0.05550400332873478, 0.0013341968247394956, 1.3359753837589411e-05);
        p0 = EXM_FMA_F64(p1, r, p0);
        p = EXM_FMA_F64(p0, r, 0.6931471838364738);
    }
    magnitude = exm_pow2_f64(shifted) * EXM_FMA_F64(r, p, 1.0);
    magnitude = e > 200.0 ? inf : magnitude;
    magnitude = e < -200.0 ? 0.0 : magnitude;
    return (float)exm_power_special_f64(dx, dy, magnitude);
}

/* ------------------------------------------------------------------ float16 */

/* One float16 value as float: exact; a signalling NaN becomes quiet, as the hardware does. */
EXM_INLINE float exm_half_value(uint16_t h)
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
EXM_INLINE uint16_t exm_half_bits(float x)
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
EXM_INLINE uint16_t exm_double_to_half(double x)
{
    float f = (float)x;
    uint32_t u = exm_bits_f32(f);
    double nearest = exm_abs_f64((double)f), wanted = exm_abs_f64(x);
    uint32_t odd = nearest < wanted ? u + 1 : u - 1;
    int fix = (nearest < wanted || nearest > wanted) && (u & 1u) == 0;
    return exm_half_bits(exm_from_bits_f32(fix ? odd : u));
}

EXM_INLINE void exm_half_to_float(const uint16_t *x, float *y, ptrdiff_t n)
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

EXM_INLINE void exm_float_to_half(const float *x, uint16_t *y, ptrdiff_t n)
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

/* ------------------------------------------------------------------ one name for both types */

/* exm_exp(x) is exm_exp_f32 for a float and exm_exp_f64 for a double, so that a loop written once for both types
 * calls one name and still has the function inlined into itself (a wrapper function would stop being inlined once the
 * larger ones are used twice). With several arguments all must be float for the float32 version. */
#if defined(__cplusplus)
#define EXM_OVERLOAD1(name)                                            \
    EXM_INLINE float exm_##name(float x) { return exm_##name##_f32(x); } \
    EXM_INLINE double exm_##name(double x) { return exm_##name##_f64(x); }
#define EXM_OVERLOAD2(name)                                                        \
    EXM_INLINE float exm_##name(float x, float y) { return exm_##name##_f32(x, y); } \
    EXM_INLINE double exm_##name(double x, double y) { return exm_##name##_f64(x, y); }
EXM_OVERLOAD1(exp)
EXM_OVERLOAD1(expm1)
EXM_OVERLOAD1(log)
EXM_OVERLOAD1(log1p)
EXM_OVERLOAD1(log2)
EXM_OVERLOAD1(log10)
EXM_OVERLOAD1(sin)
EXM_OVERLOAD1(cos)
EXM_OVERLOAD1(tanh)
EXM_OVERLOAD1(erf)
EXM_OVERLOAD1(sigmoid)
EXM_OVERLOAD1(softplus)
EXM_OVERLOAD1(swish)
EXM_OVERLOAD1(mish)
EXM_OVERLOAD1(gelu)
EXM_OVERLOAD1(gelu_tanh)
EXM_OVERLOAD1(expm1_grad)
EXM_OVERLOAD1(log1p_grad)
EXM_OVERLOAD1(erf_grad)
EXM_OVERLOAD1(softplus_grad)
EXM_OVERLOAD1(swish_grad)
EXM_OVERLOAD1(mish_grad)
EXM_OVERLOAD1(gelu_grad)
EXM_OVERLOAD1(gelu_tanh_grad)
EXM_OVERLOAD1(sin_rare)
EXM_OVERLOAD1(cos_rare)
EXM_OVERLOAD2(expm1_backward)
EXM_OVERLOAD2(erf_backward)
EXM_OVERLOAD2(softplus_backward)
EXM_OVERLOAD2(swish_backward)
EXM_OVERLOAD2(mish_backward)
EXM_OVERLOAD2(gelu_backward)
EXM_OVERLOAD2(gelu_tanh_backward)
EXM_OVERLOAD2(power)
EXM_OVERLOAD2(elu)
EXM_OVERLOAD2(elu_grad)
EXM_INLINE int exm_sin_is_rare(float x) { return exm_sin_is_rare_f32(x); }
EXM_INLINE int exm_sin_is_rare(double x) { return exm_sin_is_rare_f64(x); }
EXM_INLINE int exm_cos_is_rare(float x) { return exm_cos_is_rare_f32(x); }
EXM_INLINE int exm_cos_is_rare(double x) { return exm_cos_is_rare_f64(x); }
EXM_INLINE float exm_elu_backward(float g, float x, float alpha) { return exm_elu_backward_f32(g, x, alpha); }
EXM_INLINE double exm_elu_backward(double g, double x, double alpha) { return exm_elu_backward_f64(g, x, alpha); }
#else
#define EXM_PICK(type, name) _Generic((type), float: exm_##name##_f32, default: exm_##name##_f64)
#define exm_exp(x) EXM_PICK(x, exp)(x)
#define exm_expm1(x) EXM_PICK(x, expm1)(x)
#define exm_log(x) EXM_PICK(x, log)(x)
#define exm_log1p(x) EXM_PICK(x, log1p)(x)
#define exm_log2(x) EXM_PICK(x, log2)(x)
#define exm_log10(x) EXM_PICK(x, log10)(x)
#define exm_sin(x) EXM_PICK(x, sin)(x)
#define exm_cos(x) EXM_PICK(x, cos)(x)
#define exm_tanh(x) EXM_PICK(x, tanh)(x)
#define exm_erf(x) EXM_PICK(x, erf)(x)
#define exm_sigmoid(x) EXM_PICK(x, sigmoid)(x)
#define exm_softplus(x) EXM_PICK(x, softplus)(x)
#define exm_swish(x) EXM_PICK(x, swish)(x)
#define exm_mish(x) EXM_PICK(x, mish)(x)
#define exm_gelu(x) EXM_PICK(x, gelu)(x)
#define exm_gelu_tanh(x) EXM_PICK(x, gelu_tanh)(x)
#define exm_expm1_grad(x) EXM_PICK(x, expm1_grad)(x)
#define exm_log1p_grad(x) EXM_PICK(x, log1p_grad)(x)
#define exm_erf_grad(x) EXM_PICK(x, erf_grad)(x)
#define exm_softplus_grad(x) EXM_PICK(x, softplus_grad)(x)
#define exm_swish_grad(x) EXM_PICK(x, swish_grad)(x)
#define exm_mish_grad(x) EXM_PICK(x, mish_grad)(x)
#define exm_gelu_grad(x) EXM_PICK(x, gelu_grad)(x)
#define exm_gelu_tanh_grad(x) EXM_PICK(x, gelu_tanh_grad)(x)
#define exm_sin_rare(x) EXM_PICK(x, sin_rare)(x)
#define exm_cos_rare(x) EXM_PICK(x, cos_rare)(x)
#define exm_sin_is_rare(x) EXM_PICK(x, sin_is_rare)(x)
#define exm_cos_is_rare(x) EXM_PICK(x, cos_is_rare)(x)
#define exm_expm1_backward(g, x) EXM_PICK((g) * (x), expm1_backward)(g, x)
#define exm_erf_backward(g, x) EXM_PICK((g) * (x), erf_backward)(g, x)
#define exm_softplus_backward(g, x) EXM_PICK((g) * (x), softplus_backward)(g, x)
#define exm_swish_backward(g, x) EXM_PICK((g) * (x), swish_backward)(g, x)
#define exm_mish_backward(g, x) EXM_PICK((g) * (x), mish_backward)(g, x)
#define exm_gelu_backward(g, x) EXM_PICK((g) * (x), gelu_backward)(g, x)
#define exm_gelu_tanh_backward(g, x) EXM_PICK((g) * (x), gelu_tanh_backward)(g, x)
#define exm_power(x, y) EXM_PICK((x) * (y), power)(x, y)
#define exm_elu(x, alpha) EXM_PICK((x) * (alpha), elu)(x, alpha)
#define exm_elu_grad(x, alpha) EXM_PICK((x) * (alpha), elu_grad)(x, alpha)
#define exm_elu_backward(g, x, alpha) EXM_PICK((g) * (x) * (alpha), elu_backward)(g, x, alpha)
#endif

#endif
