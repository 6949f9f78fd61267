/* Scalar math functions that the compiler vectorises inside plain loops.
 *
 *     for (i = 0; i < n; i++) y[i] = exm_exp_f32(x[i]);
 *
 * Every function is branch-free C: comparisons become blends, exponents are read and written as
 * bits, integers come out of a floating-point addition of 1.5*2^(mantissa bits) ("the shifter"),
 * because conversions between double and int64 and the 64-bit arithmetic shift do not exist before
 * AVX-512. There are no tables (but for huge angles) and no library calls: loops vectorise at x86-64-v2, -v3 and -v4.
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
 * "fit 2^-28" is the largest relative error of the rounded coefficients' polynomial in exact arithmetic. "ULP"
 * figures are the worst ones measured on any of the three CPU levels, against references of higher precision, over
 * every 2503rd float32 bit pattern and 150 thousand float64 values (power: 400 thousand pairs), with runs at the
 * seams and the special values: samples, not proofs.
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

/* Constants, float32 and float64. */
#define EXM_MBITS_F32 23  /* bits of the mantissa */
#define EXM_MBITS_F64 52
#define EXM_ONEBITS_F32 0x3f800000u  /* the bits of 1 */
#define EXM_ONEBITS_F64 0x3ff0000000000000u
#define EXM_MMASK_F32 0x007fffffu  /* the bits of a mantissa */
#define EXM_MMASK_F64 0x000fffffffffffffu
#define EXM_HIGHMASK_F32 0xfffff000u  /* keeps the upper half of a mantissa: products of halves are exact */
#define EXM_HIGHMASK_F64 0xfffffffff8000000u
#define EXM_SHIFTER_F32 12582912.0f  /* 1.5*2^23 and 1.5*2^52: adding it leaves round(x) in the low bits */
#define EXM_SHIFTER_F64 6755399441055744.0
#define EXM_SHIFTERBITS_F32 0x4b400000u  /* its bits */
#define EXM_SHIFTERBITS_F64 0x4338000000000000u
#define EXM_LOG2E_F32 1.44269502f  /* log2(e) */
#define EXM_LOG2E_F64 1.4426950408889634
#define EXM_LN2HI_F32 0.693115234f  /* ln 2 = HI + LO, HI of 14 and 40 bits, so that k*HI is exact */
#define EXM_LN2HI_F64 0.6931471805592082
#define EXM_LN2LO_F32 3.19461833e-05f
#define EXM_LN2LO_F64 7.371002565167799e-13
#define EXM_LOG2E_LO_F32 1.92596303e-08f  /* and what is lost in it */
#define EXM_LOG2E_LO_F64 2.0355273740931033e-17
#define EXM_LOG10E_F32 0.434294492f  /* log10(e) */
#define EXM_LOG10E_F64 0.4342944819032518
#define EXM_LOG10E_LO_F32 (-1.010305e-08f)  /* and what is lost in it */
#define EXM_LOG10E_LO_F64 1.098319650216765e-17
#define EXM_LOG10_2HI_F32 0.301025391f  /* log10(2) = HI + LO, HI of 14 and 40 bits */
#define EXM_LOG10_2HI_F64 0.30102999566361177
#define EXM_LOG10_2LO_F32 4.60503907e-06f
#define EXM_LOG10_2LO_F64 3.694239077158931e-13
#define EXM_MINNORMAL_F32 1.17549435e-38f  /* the smallest normal number */
#define EXM_MINNORMAL_F64 2.2250738585072014e-308
#define EXM_SUBSCALE_F32 8388608.0f  /* makes a subnormal number normal: 2^23, 2^52 */
#define EXM_SUBSCALE_F64 4503599627370496.0
#define EXM_SQRTHALFBITS_F32 0x3f3504f3u  /* the bits of sqrt(1/2) */
#define EXM_SQRTHALFBITS_F64 0x3fe6a09e667f3bcdu
#define EXM_THREEQUARTERBITS_F32 0x3f400000u  /* the bits of 3/4 */
#define EXM_THREEQUARTERBITS_F64 0x3fe8000000000000u
#define EXM_KMAGICBITS_F32 0x4b000000u  /* the bits of 2^23, 2^52: an integer below them becomes a floating number */
#define EXM_KMAGICBITS_F64 0x4330000000000000u
#define EXM_KBIAS_F32 8388735.0f  /* 2^23 + 127, 2^52 + 1023 */
#define EXM_KBIAS_F64 4503599627371519.0
#define EXM_KBIASSUB_F32 8388758.0f  /* the same after SUBSCALE */
#define EXM_KBIASSUB_F64 4503599627371571.0
#define EXM_KINVERT_F32 256  /* exponent field of 2^(2 - k) plus that of 2^k */
#define EXM_KINVERT_F64 2048
#define EXM_EMAX_F32 126  /* one below the largest exponent */
#define EXM_EMAX_F64 1022
#define EXM_LIFTBITS_F32 0x5d800000u  /* the bits of 2^60, 2^200 */
#define EXM_LIFTBITS_F64 0x4c70000000000000u
#define EXM_DROP_F32 8.67361738e-19f  /* 2^-60, 2^-200 */
#define EXM_DROP_F64 6.223015277861142e-61
#define EXM_EXPMAX_F32 89.0f  /* exp overflows above */
#define EXM_EXPMAX_F64 710.0
#define EXM_EXPMIN_F32 (-104.0f)  /* exp is 0 below */
#define EXM_EXPMIN_F64 (-746.0)
#define EXM_EXPMINABS_F32 104.0f
#define EXM_EXPMINABS_F64 746.0
#define EXM_EXPM1MIN_F32 (-18.0f)  /* expm1 rounds to -1 below */
#define EXM_EXPM1MIN_F64 (-40.0)
#define EXM_EXPM1TINY_F32 2.98023224e-08f  /* expm1(x) and log1p(x) round to x below 2^-25, 2^-54 */
#define EXM_EXPM1TINY_F64 5.551115123125783e-17
#define EXM_PRODMAX_F32 200.0f  /* g*exp(x) overflows above for every g but 0 */
#define EXM_PRODMAX_F64 1470.0
#define EXM_PRODMIN_F32 (-200.0f)  /* g*exp(x) is 0 below for every finite g */
#define EXM_PRODMIN_F64 (-1470.0)
#define EXM_NEAR_F32 80.0f  /* exp(x) is a normal number up to these magnitudes of x, */
#define EXM_NEAR_F64 700.0
#define EXM_GELUNEAR_F32 12.0f  /* exp(-x^2/2), */
#define EXM_GELUNEAR_F64 37.0
#define EXM_GELUTNEAR_F32 9.5f  /* and exp(-v) of the tanh form of gelu */
#define EXM_GELUTNEAR_F64 20.0
#define EXM_TANHMAX_F32 9.5f  /* tanh rounds to 1 above */
#define EXM_TANHMAX_F64 19.5
#define EXM_SWISHMAX_F32 112.0f  /* x*exp(-x) is 0 above */
#define EXM_SWISHMAX_F64 756.0
#define EXM_ERFMAX_F32 4.0f  /* erf rounds to 1 above */
#define EXM_ERFMAX_F64 6.0
#define EXM_ERFCENTRE_F32 1.1484375f  /* origin of its polynomial: a place where erfc^(1/4) is almost exact */
#define EXM_ERFCENTRE_F64 1.150390625
#define EXM_ERFGMAX_F32 14.25f  /* g*exp(-x^2) is 0 above */
#define EXM_ERFGMAX_F64 38.5
#define EXM_MILLSK_F32 3.0f  /* K and M of the tail, where the constant of the polynomial is almost exact */
#define EXM_MILLSK_F64 3.28125
#define EXM_MILLSM_F32 1.453125f
#define EXM_MILLSM_F64 1.71875
#define EXM_GELUMAX_F32 15.0f  /* x*exp(-x^2/2) is 0 above */
#define EXM_GELUMAX_F64 39.5
#define EXM_GELUGMAX_F32 20.0f  /* g*x*exp(-x^2/2) is 0 above */
#define EXM_GELUGMAX_F64 54.5
#define EXM_GELUTMAX_F32 11.25f  /* x*exp(-v) is 0 above */
#define EXM_GELUTMAX_F64 22.0
#define EXM_GELUTGMAX_F32 13.75f  /* g*x*exp(-v) is 0 above */
#define EXM_GELUTGMAX_F64 27.5
#define EXM_GELUT1_F32 1.59576917f  /* 2*sqrt(2/pi) and what is lost in it */
#define EXM_GELUT1_F64 1.5957691216057308
#define EXM_GELUT1LO_F32 (-4.53406805e-08f)
#define EXM_GELUT1LO_F64 (-9.96930880911092e-17)
#define EXM_GELUT3_F32 0.0713548139f  /* 0.044715 times that */
#define EXM_GELUT3_F64 0.07135481627260025
#define EXM_GELUT3LO_F32 2.39883247e-09f
#define EXM_GELUT3LO_F64 (-6.175149918155315e-19)
#define EXM_TWO_SQRTPI_F32 1.12837923f  /* 2/sqrt(pi) */
#define EXM_TWO_SQRTPI_F64 1.1283791670955126
#define EXM_INV_SQRT2PI_F32 0.398942292f  /* 1/sqrt(2*pi) */
#define EXM_INV_SQRT2PI_F64 0.3989422804014327

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
    float ah = exm_from_bits_f32(exm_bits_f32(a) & EXM_HIGHMASK_F32), al = a - ah;
    float bh = exm_from_bits_f32(exm_bits_f32(b) & EXM_HIGHMASK_F32), bl = b - bh;
    return ((ah * bh - product) + (ah * bl + al * bh)) + al * bl;
#endif
}

/* a*b + c with one rounding, without FMA all but. */
EXM_INLINE float exm_multiply_add_f32(float a, float b, float c)
{
#if EXM_HAS_FMA
    return EXM_FMA_F32(a, b, c);
#else
    float product = a * b;
    return product + (exm_product_error_f32(a, b, product) + c);
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
    return exm_from_bits_f32((shifted << EXM_MBITS_F32) + EXM_ONEBITS_F32);
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
    double ah = exm_from_bits_f64(exm_bits_f64(a) & EXM_HIGHMASK_F64), al = a - ah;
    double bh = exm_from_bits_f64(exm_bits_f64(b) & EXM_HIGHMASK_F64), bl = b - bh;
    return ((ah * bh - product) + (ah * bl + al * bh)) + al * bl;
#endif
}

/* a - b*c where b is a/c rounded: exact. */
EXM_INLINE double exm_remainder_f64(double a, double b, double c)
{
#if EXM_HAS_FMA
    return EXM_FMA_F64(-b, c, a);
#else
    double t = b * c;
    return (a - t) - exm_product_error_f64(b, c, t);
#endif
}

/* a*b + c with one rounding, without FMA all but. */
EXM_INLINE double exm_multiply_add_f64(double a, double b, double c)
{
#if EXM_HAS_FMA
    return EXM_FMA_F64(a, b, c);
#else
    double product = a * b;
    return product + (exm_product_error_f64(a, b, product) + c);
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
    return exm_from_bits_f64((shifted << EXM_MBITS_F64) + EXM_ONEBITS_F64);
}

/* ------------------------------------------------------------------ exp and what is made of it */

/* exp(x) = (1 + p) * 2^k, k = round(x/ln 2) in the low bits of `shifted`, 1 + p in [0.70, 1.42].
 * r = x - k*ln 2 with ln 2 in two parts, the first short enough for k*part to be exact;
 * p = r + r^2*q(r), q of degree 4 (fit 2^-28). x must be in the range of k. */
typedef struct {
    float p;
    uint32_t shifted;
} exm_scaled_f32;

EXM_INLINE exm_scaled_f32 exm_exp_polynomial_f32(float r, float shifted)
{
    exm_scaled_f32 e;
    float r2 = r * r, p0, p1;
    p0 = EXM_FMA_F32(0.166665092f, r, 0.49999994f);
    p1 = EXM_FMA_F32(r2, 0.00138479576f, EXM_FMA_F32(0.00837001763f, r, 0.041668009f));
    e.p = EXM_FMA_F32(r2, EXM_FMA_F32(r2, p1, p0), r);
    e.shifted = exm_bits_f32(shifted);
    return e;
}

EXM_INLINE exm_scaled_f32 exm_exp_parts_f32(float x)
{
    float shifted = EXM_FMA_F32(x, EXM_LOG2E_F32, EXM_SHIFTER_F32), k = shifted - EXM_SHIFTER_F32;
    float r = EXM_FMA_F32(k, -EXM_LN2LO_F32, EXM_FMA_F32(k, -EXM_LN2HI_F32, x));
    return exm_exp_polynomial_f32(r, shifted);
}

/* exp(x + low*factor) */
EXM_INLINE exm_scaled_f32 exm_exp_sum_f32(float x, float low, float factor)
{
    float shifted = EXM_FMA_F32(x, EXM_LOG2E_F32, EXM_SHIFTER_F32), k = shifted - EXM_SHIFTER_F32;
    float r = EXM_FMA_F32(k, -EXM_LN2LO_F32, EXM_FMA_F32(k, -EXM_LN2HI_F32, x));
    return exm_exp_polynomial_f32(EXM_FMA_F32(low, factor, r), shifted);
}

/* y*(1 + p) in one rounding less than by adding 1 first. */
EXM_INLINE float exm_times_mantissa_f32(float y, exm_scaled_f32 e) { return EXM_FMA_F32(y, e.p, y); }

/* value * 2^k for k in [-252, 252]: in two steps, so that 2^k itself may lie outside the
 * format; the first step is exact and the result is rounded once, also where it is subnormal. */
EXM_INLINE float exm_scale_f32(float value, uint32_t shifted)
{
    uint32_t half = (shifted >> 1) << EXM_MBITS_F32;
    uint32_t rest = (shifted << EXM_MBITS_F32) - half;
    return value * exm_from_bits_f32(half + EXM_ONEBITS_F32) * exm_from_bits_f32(rest + EXM_ONEBITS_F32);
}

/* g * value * 2^k for k in [-504, 0], |value| < 2^20: neither a g near the largest number nor a 2^k below the
 * smallest one is lost. k in four steps, rounded towards zero so that none is above 1. */
EXM_INLINE float exm_scale_product_f32(float g, float value, uint32_t shifted)
{
    uint32_t quarter = ((shifted + 3) >> 2) << EXM_MBITS_F32;
    float q = exm_from_bits_f32(quarter + EXM_ONEBITS_F32);
    float rest = exm_from_bits_f32((shifted << EXM_MBITS_F32) - 3 * quarter + EXM_ONEBITS_F32);
    return value * (q * rest) * g * q * q;
}

/* 2^(k + 60) for k in [-186, 0], a normal number also where 2^k is not; and value*2^k by it, the factor
 * 2^-60 last: four operations where exm_scale needs eight. */
EXM_INLINE float exm_lifted_f32(uint32_t shifted)
{
    return exm_from_bits_f32((shifted << EXM_MBITS_F32) + EXM_LIFTBITS_F32);
}

EXM_INLINE float exm_scale_down_f32(float value, uint32_t shifted)
{
    return value * exm_lifted_f32(shifted) * EXM_DROP_F32;
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

/* The gradients below have two versions: exm_<f>_backward, for any x, and exm_<f>_near_backward, which forms the
 * exponential itself, a normal number unless exm_exp_is_far (exm_gelu_is_far, exm_gelu_tanh_is_far) says so, and gives
 * the same in half the time. */
EXM_INLINE float exm_exp_near_f32(exm_scaled_f32 e) { return exm_times_mantissa_f32(exm_pow2_f32(e.shifted), e); }

EXM_INLINE int exm_exp_is_far_f32(float x) { return !(exm_abs_f32(x) <= EXM_NEAR_F32); }

/* exp(x). 0.98 ULP. */
EXM_INLINE float exm_exp_f32(float x)
{
    exm_scaled_f32 e = exm_exp_parts_f32(x);
    float y = exm_exp_value_f32(e);
    y = x > EXM_EXPMAX_F32 ? __builtin_inff() : y;
    return x < EXM_EXPMIN_F32 ? 0 : y;
}

/* expm1(x) = 2^k*(1 + r + c) - 1 with the rounding error of r and of the sum (2^k - 1) + 2^k*r kept;
 * halved throughout, so that k may be one above the largest exponent. q of degree 5 (fit 2^-28).
 * 1.00 ULP. */
EXM_INLINE float exm_expm1_f32(float x)
{
    float shifted = EXM_FMA_F32(x, EXM_LOG2E_F32, EXM_SHIFTER_F32), k = shifted - EXM_SHIFTER_F32;
    float r0 = EXM_FMA_F32(k, -EXM_LN2HI_F32, x), t = k * EXM_LN2LO_F32, r = r0 - t, r_low = (r0 - r) - t;
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
    y = x > EXM_EXPMAX_F32 ? __builtin_inff() : y;
    y = x < EXM_EXPM1MIN_F32 ? -1.0f : y;
    return exm_abs_f32(x) < EXM_EXPM1TINY_F32 ? x : y;
}

/* d expm1/dx = exp(x). */
EXM_INLINE float exm_expm1_grad_f32(float x) { return exm_exp_f32(x); }

EXM_INLINE float exm_expm1_near_backward_f32(float g, float x) { return g * exm_exp_near_f32(exm_exp_parts_f32(x)); }

/* g*exp(x), also where exp(x) alone is outside the format. */
EXM_INLINE float exm_expm1_backward_f32(float g, float x)
{
    exm_scaled_f32 e;
    uint32_t k, up, quarter, rest;
    float q, y = exm_expm1_near_backward_f32(g, x), start = x;
    x = x > EXM_PRODMAX_F32 ? EXM_PRODMAX_F32 : x;
    x = x < EXM_PRODMIN_F32 ? EXM_PRODMIN_F32 : x;
    e = exm_exp_parts_f32(x);
    /* k < 0 in four steps as in exm_scale_product, k > 0 before the product as far as it fits. */
    k = e.shifted - EXM_SHIFTERBITS_F32;
    up = (int32_t)k > EXM_EMAX_F32 ? EXM_EMAX_F32 : k;
    quarter = (((e.shifted + 3) >> 2) << EXM_MBITS_F32);
    up = (int32_t)k > 0 ? up << EXM_MBITS_F32 : quarter;
    quarter = (int32_t)k > 0 ? (((k << EXM_MBITS_F32) - up) >> (EXM_MBITS_F32 + 1)) << EXM_MBITS_F32 : quarter;
    rest = (k << EXM_MBITS_F32) - up - 2 * quarter;
    q = exm_from_bits_f32(quarter + EXM_ONEBITS_F32);
    g *= exm_times_mantissa_f32(exm_from_bits_f32(up + EXM_ONEBITS_F32), e) * exm_from_bits_f32(rest + EXM_ONEBITS_F32);
    g = g * q * q;
    return exm_exp_is_far_f32(start) ? g : y;
}

/* tanh: x + x^3*p(x^2) of degree 4 (fit 2^-28) below 0.625, else 1 - 2/(exp(2|x|) + 1).
 * 1.13 ULP. */
EXM_INLINE float exm_tanh_f32(float x)
{
    float a = exm_abs_f32(x), z = x * x, p, small, s, q;
    exm_scaled_f32 e = exm_exp_parts_f32(2.0f * a);
    p = EXM_H5_F32(z, -0.333332807f, 0.133314058f, -0.0537368543f, 0.0206305627f, -0.00569634046f);
    small = EXM_FMA_F32(a * z, p, a);
    s = exm_pow2_f32(e.shifted);
    q = 1.0f - 2.0f / EXM_FMA_F32(s, e.p, s + 1.0f);
    q = a > EXM_TANHMAX_F32 ? 1.0f : q;
    return __builtin_copysignf(a < 0.625f ? small : q, x);
}

/* exp(-|x|): one comparison and four operations less than exp(x). */
EXM_INLINE float exm_exp_minus_abs_f32(float x)
{
    exm_scaled_f32 e = exm_exp_parts_f32(-exm_abs_f32(x));
    float y = exm_times_mantissa_f32(exm_lifted_f32(e.shifted), e) * EXM_DROP_F32;
    return exm_abs_f32(x) > EXM_EXPMINABS_F32 ? 0.0f : y;
}

/* sigmoid: 1/(1 + e) for x >= 0, e/(1 + e) below, e = exp(-|x|). 2.08 ULP. */
EXM_INLINE float exm_sigmoid_f32(float x)
{
    float e = exm_exp_minus_abs_f32(x);
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* g*sigmoid(x): the backward function of softplus. */
EXM_INLINE float exm_softplus_near_backward_f32(float g, float x)
{
    float e = exm_exp_near_f32(exm_exp_parts_f32(-exm_abs_f32(x)));
    return g * ((x < 0 ? e : 1.0f) / (1.0f + e));
}

EXM_INLINE float exm_softplus_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), d, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-a);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, 1.0f + e.p, e.shifted));
    y = x < 0 ? exm_scale_product_f32(g, exm_times_mantissa_f32(d, e), e.shifted) : g * d;
    y = a > EXM_PRODMAX_F32 ? (x < 0 ? 0.0f * g : g) : y;
    return exm_exp_is_far_f32(x) ? y : exm_softplus_near_backward_f32(g, x);
}

EXM_INLINE float exm_softplus_grad_f32(float x) { return exm_sigmoid_f32(x); }

/* log1p(exp(-|x|)): with e = exp(-|x|) in [0, 1], e + e^2*p(e), degree 9 (fit 2^-30). */
EXM_INLINE float exm_softplus_tail_f32(float x)
{
    float e = exm_exp_minus_abs_f32(x), p;
    {
        float e2 = e * e, e4 = e2 * e2, p0, p1;
        p0 = EXM_H4_F32(e, 0.333327144f, -0.249888644f, 0.198996231f, -0.161351725f);
        p1 = EXM_H5_F32(e, 0.1247954f, -0.083239235f, 0.0421152003f, -0.0136919171f, 0.00208460772f);
        p0 = EXM_FMA_F32(p1, e4, p0);
        p = EXM_FMA_F32(p0, e, -0.499999881f);
    }
    return EXM_FMA_F32(e * e, p, e);
}

/* softplus(x) = max(x, 0) + log1p(exp(-|x|)). 1.93 ULP. */
EXM_INLINE float exm_softplus_f32(float x)
{
    float tail = exm_softplus_tail_f32(x);
    return x > 0 ? x + tail : tail;
}

/* elu(x) = x > 0 ? x : alpha*expm1(x). 1.28 ULP. */
EXM_INLINE float exm_elu_f32(float x, float alpha)
{
    float y = alpha * exm_expm1_f32(x);
    return x > 0 ? x : y;
}

/* alpha*exp(x) at x <= 0 (alpha at 0, by convention), else 1. */
EXM_INLINE float exm_elu_backward_f32(float g, float x, float alpha)
{
    exm_scaled_f32 e = exm_exp_parts_f32(x);
    float y = exm_scale_product_f32(g, exm_times_mantissa_f32(alpha, e), e.shifted);
    y = x < EXM_PRODMIN_F32 ? 0.0f * g : y;
    return x > 0 ? g : y;
}

EXM_INLINE float exm_elu_grad_f32(float x, float alpha)
{
    float y = alpha * exm_exp_f32(x);
    return x > 0 ? 1.0f : y;
}

/* swish(x) = x*sigmoid(x) = x/(1 + e), for x < 0 times e, e = exp(-|x|), the power of two last
 * because e may be subnormal where the product is not. -0 at -inf, the limit. 2.60 ULP. */
EXM_INLINE float exm_swish_f32(float x)
{
    float a = exm_abs_f32(x), ex, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-a);
    ex = exm_times_mantissa_f32(exm_lifted_f32(e.shifted), e);
    y = x / EXM_FMA_F32(ex, EXM_DROP_F32, 1.0f);
    y = x < 0 ? y * ex * EXM_DROP_F32 : y;
    return a > EXM_SWISHMAX_F32 ? (x < 0 ? -0.0f : x) : y;
}

/* swish'(x) = s + x*s*(1 - s), s = sigmoid(x). With e = exp(-|x|), d = 1/(1 + e):
 * G = e*d*(1 - |x|*d) for x < 0 and 1 - G above. */
EXM_INLINE float exm_swish_near_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), e = exm_exp_near_f32(exm_exp_parts_f32(-a)), d = 1.0f / (1.0f + e);
    float t = e * d * (1.0f - a * d);
    return g * (x > 0 ? 1.0f - t : t);
}

EXM_INLINE float exm_swish_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), d, t;
    exm_scaled_f32 e = exm_exp_parts_f32(-a);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, 1.0f + e.p, e.shifted));
    t = exm_times_mantissa_f32(d * (1.0f - a * d), e);
    t = exm_reflect_f32(g, x, EXM_PRODMAX_F32, t, e.shifted);
    return exm_exp_is_far_f32(x) ? t : exm_swish_near_backward_f32(g, x);
}

EXM_INLINE float exm_swish_grad_f32(float x) { return exm_swish_backward_f32(1.0f, x); }

/* mish(x) = x*tanh(softplus(x)), e = exp(-|x|):
 * x > 0: x*(1 + 2e)/(1 + 2e + 2e^2);  x <= 0: x*e*(2 + e)/(2 + 2e + e^2). 3.69 ULP.
 * Without FMA as 1 - r, r at most 0.4 (2e^2 or e + e^2 over the same): its roundings count less, 4.11 ULP otherwise
 * in float32; with FMA that would cost 19 % and gain nothing. */
EXM_INLINE float exm_mish_f32(float x)
{
    float a = exm_abs_f32(x), ex, num, den, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-a);
    ex = exm_scale_down_f32(1.0f + e.p, e.shifted);
#if EXM_HAS_FMA
    num = x > 0 ? EXM_FMA_F32(2.0f, ex, 1.0f) : 2.0f + ex;
    den = x > 0 ? EXM_FMA_F32(2.0f * ex, ex, num) : EXM_FMA_F32(ex, num, 2.0f);
    y = x * (num / den);
#else
    num = ex + (x > 0 ? ex : 1.0f);
    den = ex * num + (1.0f + num);
    y = x * (1.0f - ex * num / den);
#endif
    y = x > 0 ? y : exm_scale_down_f32(exm_times_mantissa_f32(y, e), e.shifted);
    return a > EXM_SWISHMAX_F32 ? (x < 0 ? -0.0f : x) : y;
}

/* mish'(x) = t + x*(1 - t^2)*sigmoid(x), t = tanh(softplus(x)), as
 * x > 0: (1 + 2e)/D + 4x*e^2*(1 + e)/D^2, D = 1 + 2e + 2e^2;
 * x <= 0: e*((2 + e)/D + 4x*(1 + e)/D^2), D = 2 + 2e + e^2. */
EXM_INLINE float exm_mish_near_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), e = exm_exp_near_f32(exm_exp_parts_f32(-a)), num, den, d, t;
    num = x > 0 ? EXM_FMA_F32(2.0f, e, 1.0f) : 2.0f + e;
    den = x > 0 ? EXM_FMA_F32(2.0f * e, e, num) : EXM_FMA_F32(e, num, 2.0f);
    d = 1.0f / den;
    t = 4.0f * a * (1.0f + e) * d;
    return g * (d * (x > 0 ? EXM_FMA_F32(t * e, e, num) : e * (num - t)));
}

EXM_INLINE float exm_mish_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), ex, num, den, d, t, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-a);
    ex = exm_scale_product_f32(1.0f, 1.0f + e.p, e.shifted);
    num = x > 0 ? EXM_FMA_F32(2.0f, ex, 1.0f) : 2.0f + ex;
    den = x > 0 ? EXM_FMA_F32(2.0f * ex, ex, num) : EXM_FMA_F32(ex, num, 2.0f);
    d = 1.0f / den;
    t = 4.0f * a * (1.0f + ex) * d;
    y = g * (d * EXM_FMA_F32(t * ex, ex, num));
    t = d * (num - t);
    y = x > 0 ? y : exm_scale_product_f32(g, exm_times_mantissa_f32(t, e), e.shifted);
    y = a > EXM_PRODMAX_F32 ? (x < 0 ? 0.0f * g : g) : y;
    return exm_exp_is_far_f32(x) ? y : exm_mish_near_backward_f32(g, x);
}

EXM_INLINE float exm_mish_grad_f32(float x) { return exm_mish_backward_f32(1.0f, x); }

/* exp(x) = (1 + p) * 2^k, k = round(x/ln 2) in the low bits of `shifted`, 1 + p in [0.70, 1.42].
 * r = x - k*ln 2 with ln 2 in two parts, the first short enough for k*part to be exact;
 * p = r + r^2*q(r), q of degree 9 (fit 2^-58). x must be in the range of k. */
typedef struct {
    double p;
    uint64_t shifted;
} exm_scaled_f64;

EXM_INLINE exm_scaled_f64 exm_exp_polynomial_f64(double r, double shifted)
{
    exm_scaled_f64 e;
    double p;
    {
        double r2 = r * r, p0, p1;
        p0 = EXM_H5_F64(r2, 0.16666666666666413, 0.008333333333485736, 0.00019841269541749084,
            2.7557542120428157e-06, 2.501762071015701e-08);
        p1 = EXM_H4_F64(r2, 0.041666666666514494, 0.0013888888948192198, 2.48014880250151e-05,
            2.763215354708664e-07);
        p0 = EXM_FMA_F64(p1, r, p0);
        p = EXM_FMA_F64(p0, r, 0.5000000000000012);
    }
    e.p = EXM_FMA_F64(r * r, p, r);
    e.shifted = exm_bits_f64(shifted);
    return e;
}

EXM_INLINE exm_scaled_f64 exm_exp_parts_f64(double x)
{
    double shifted = EXM_FMA_F64(x, EXM_LOG2E_F64, EXM_SHIFTER_F64), k = shifted - EXM_SHIFTER_F64;
    double r = EXM_FMA_F64(k, -EXM_LN2LO_F64, EXM_FMA_F64(k, -EXM_LN2HI_F64, x));
    return exm_exp_polynomial_f64(r, shifted);
}

/* exp(x + low*factor) */
EXM_INLINE exm_scaled_f64 exm_exp_sum_f64(double x, double low, double factor)
{
    double shifted = EXM_FMA_F64(x, EXM_LOG2E_F64, EXM_SHIFTER_F64), k = shifted - EXM_SHIFTER_F64;
    double r = EXM_FMA_F64(k, -EXM_LN2LO_F64, EXM_FMA_F64(k, -EXM_LN2HI_F64, x));
    return exm_exp_polynomial_f64(EXM_FMA_F64(low, factor, r), shifted);
}

/* y*(1 + p) in one rounding less than by adding 1 first. */
EXM_INLINE double exm_times_mantissa_f64(double y, exm_scaled_f64 e) { return EXM_FMA_F64(y, e.p, y); }

/* value * 2^k for k in [-2044, 2044]: in two steps, so that 2^k itself may lie outside the
 * format; the first step is exact and the result is rounded once, also where it is subnormal. */
EXM_INLINE double exm_scale_f64(double value, uint64_t shifted)
{
    uint64_t half = (shifted >> 1) << EXM_MBITS_F64;
    uint64_t rest = (shifted << EXM_MBITS_F64) - half;
    return value * exm_from_bits_f64(half + EXM_ONEBITS_F64) * exm_from_bits_f64(rest + EXM_ONEBITS_F64);
}

/* g * value * 2^k for k in [-4088, 0], |value| < 2^20: neither a g near the largest number nor a 2^k below the
 * smallest one is lost. k in four steps, rounded towards zero so that none is above 1. */
EXM_INLINE double exm_scale_product_f64(double g, double value, uint64_t shifted)
{
    uint64_t quarter = ((shifted + 3) >> 2) << EXM_MBITS_F64;
    double q = exm_from_bits_f64(quarter + EXM_ONEBITS_F64);
    double rest = exm_from_bits_f64((shifted << EXM_MBITS_F64) - 3 * quarter + EXM_ONEBITS_F64);
    return value * (q * rest) * g * q * q;
}

/* 2^(k + 200) for k in [-1222, 0], a normal number also where 2^k is not; and value*2^k by it, the factor
 * 2^-200 last: four operations where exm_scale needs eight. */
EXM_INLINE double exm_lifted_f64(uint64_t shifted)
{
    return exm_from_bits_f64((shifted << EXM_MBITS_F64) + EXM_LIFTBITS_F64);
}

EXM_INLINE double exm_scale_down_f64(double value, uint64_t shifted)
{
    return value * exm_lifted_f64(shifted) * EXM_DROP_F64;
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

/* The gradients below have two versions: exm_<f>_backward, for any x, and exm_<f>_near_backward, which forms the
 * exponential itself, a normal number unless exm_exp_is_far (exm_gelu_is_far, exm_gelu_tanh_is_far) says so, and gives
 * the same in half the time. */
EXM_INLINE double exm_exp_near_f64(exm_scaled_f64 e) { return exm_times_mantissa_f64(exm_pow2_f64(e.shifted), e); }

EXM_INLINE int exm_exp_is_far_f64(double x) { return !(exm_abs_f64(x) <= EXM_NEAR_F64); }

/* exp(x). 0.96 ULP. */
EXM_INLINE double exm_exp_f64(double x)
{
    exm_scaled_f64 e = exm_exp_parts_f64(x);
    double y = exm_exp_value_f64(e);
    y = x > EXM_EXPMAX_F64 ? __builtin_inf() : y;
    return x < EXM_EXPMIN_F64 ? 0 : y;
}

/* expm1(x) = 2^k*(1 + r + c) - 1 with the rounding error of r and of the sum (2^k - 1) + 2^k*r kept;
 * halved throughout, so that k may be one above the largest exponent. q of degree 10 (fit 2^-62).
 * 1.01 ULP. */
EXM_INLINE double exm_expm1_f64(double x)
{
    double shifted = EXM_FMA_F64(x, EXM_LOG2E_F64, EXM_SHIFTER_F64), k = shifted - EXM_SHIFTER_F64;
    double r0 = EXM_FMA_F64(k, -EXM_LN2HI_F64, x), t = k * EXM_LN2LO_F64, r = r0 - t, r_low = (r0 - r) - t;
    double p, c, half, a, b, sum, y;
    {
        double r2 = r * r, p0, p1;
        p0 = EXM_H5_F64(r2, 0.16666666666666677, 0.008333333333321818, 0.0001984126988527787,
            2.755724520899569e-06, 2.5108671982979443e-08);
        p1 = EXM_H5_F64(r2, 0.041666666666666685, 0.001388888888889372, 2.4801587278886236e-05,
            2.7557329597956656e-07, 2.0893911372218143e-09);
        p0 = EXM_FMA_F64(p1, r, p0);
        p = EXM_FMA_F64(p0, r, 0.5);
    }
    c = EXM_FMA_F64(r * r, p, r_low);
    half = exm_pow2_f64(exm_bits_f64(shifted) - 1);
    a = half - 0.5;
    b = half * r;
    sum = a + b;
    y = 2.0 * (sum + EXM_FMA_F64(half, c, b - (sum - a)));
    y = x > EXM_EXPMAX_F64 ? __builtin_inf() : y;
    y = x < EXM_EXPM1MIN_F64 ? -1.0 : y;
    return exm_abs_f64(x) < EXM_EXPM1TINY_F64 ? x : y;
}

/* d expm1/dx = exp(x). */
EXM_INLINE double exm_expm1_grad_f64(double x) { return exm_exp_f64(x); }

EXM_INLINE double exm_expm1_near_backward_f64(double g, double x) { return g * exm_exp_near_f64(exm_exp_parts_f64(x)); }

/* g*exp(x), also where exp(x) alone is outside the format. */
EXM_INLINE double exm_expm1_backward_f64(double g, double x)
{
    exm_scaled_f64 e;
    uint64_t k, up, quarter, rest;
    double q, y = exm_expm1_near_backward_f64(g, x), start = x;
    x = x > EXM_PRODMAX_F64 ? EXM_PRODMAX_F64 : x;
    x = x < EXM_PRODMIN_F64 ? EXM_PRODMIN_F64 : x;
    e = exm_exp_parts_f64(x);
    /* k < 0 in four steps as in exm_scale_product, k > 0 before the product as far as it fits. */
    k = e.shifted - EXM_SHIFTERBITS_F64;
    up = (int64_t)k > EXM_EMAX_F64 ? EXM_EMAX_F64 : k;
    quarter = (((e.shifted + 3) >> 2) << EXM_MBITS_F64);
    up = (int64_t)k > 0 ? up << EXM_MBITS_F64 : quarter;
    quarter = (int64_t)k > 0 ? (((k << EXM_MBITS_F64) - up) >> (EXM_MBITS_F64 + 1)) << EXM_MBITS_F64 : quarter;
    rest = (k << EXM_MBITS_F64) - up - 2 * quarter;
    q = exm_from_bits_f64(quarter + EXM_ONEBITS_F64);
    g *= exm_times_mantissa_f64(exm_from_bits_f64(up + EXM_ONEBITS_F64), e) * exm_from_bits_f64(rest + EXM_ONEBITS_F64);
    g = g * q * q;
    return exm_exp_is_far_f64(start) ? g : y;
}

/* tanh: x + x^3*p(x^2) of degree 10 (fit 2^-56) below 0.625, else 1 - 2/(exp(2|x|) + 1).
 * 1.21 ULP. */
EXM_INLINE double exm_tanh_f64(double x)
{
    double a = exm_abs_f64(x), z = x * x, p, small, s, q;
    exm_scaled_f64 e = exm_exp_parts_f64(2.0 * a);
    {
        double z2 = z * z, p0, p1;
        p0 = EXM_H5_F64(z2, 0.13333333333261937, 0.02186948757450048, 0.003591989007584713, 0.0005863137658213277,
            7.713800289845785e-05);
        p1 = EXM_H5_F64(z2, -0.05396825393119738, -0.008863220981903319, -0.001454958028251575,
            -0.0002285586111224927, -1.606945671253424e-05);
        p0 = EXM_FMA_F64(p1, z, p0);
        p = EXM_FMA_F64(p0, z, -0.33333333333332854);
    }
    small = EXM_FMA_F64(a * z, p, a);
    s = exm_pow2_f64(e.shifted);
    q = 1.0 - 2.0 / EXM_FMA_F64(s, e.p, s + 1.0);
    q = a > EXM_TANHMAX_F64 ? 1.0 : q;
    return __builtin_copysign(a < 0.625 ? small : q, x);
}

/* exp(-|x|): one comparison and four operations less than exp(x). */
EXM_INLINE double exm_exp_minus_abs_f64(double x)
{
    exm_scaled_f64 e = exm_exp_parts_f64(-exm_abs_f64(x));
    double y = exm_times_mantissa_f64(exm_lifted_f64(e.shifted), e) * EXM_DROP_F64;
    return exm_abs_f64(x) > EXM_EXPMINABS_F64 ? 0.0 : y;
}

/* sigmoid: 1/(1 + e) for x >= 0, e/(1 + e) below, e = exp(-|x|). 1.87 ULP. */
EXM_INLINE double exm_sigmoid_f64(double x)
{
    double e = exm_exp_minus_abs_f64(x);
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

/* g*sigmoid(x): the backward function of softplus. */
EXM_INLINE double exm_softplus_near_backward_f64(double g, double x)
{
    double e = exm_exp_near_f64(exm_exp_parts_f64(-exm_abs_f64(x)));
    return g * ((x < 0 ? e : 1.0) / (1.0 + e));
}

EXM_INLINE double exm_softplus_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), d, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-a);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, 1.0 + e.p, e.shifted));
    y = x < 0 ? exm_scale_product_f64(g, exm_times_mantissa_f64(d, e), e.shifted) : g * d;
    y = a > EXM_PRODMAX_F64 ? (x < 0 ? 0.0 * g : g) : y;
    return exm_exp_is_far_f64(x) ? y : exm_softplus_near_backward_f64(g, x);
}

EXM_INLINE double exm_softplus_grad_f64(double x) { return exm_sigmoid_f64(x); }

/* log1p(exp(-|x|)): with e = exp(-|x|) in [0, 1], e + e^2*p(e), degree 19 (fit 2^-56). */
EXM_INLINE double exm_softplus_tail_f64(double x)
{
    double e = exm_exp_minus_abs_f64(x), p;
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
    return EXM_FMA_F64(e * e, p, e);
}

/* softplus(x) = max(x, 0) + log1p(exp(-|x|)). 1.85 ULP. */
EXM_INLINE double exm_softplus_f64(double x)
{
    double tail = exm_softplus_tail_f64(x);
    return x > 0 ? x + tail : tail;
}

/* elu(x) = x > 0 ? x : alpha*expm1(x). 1.31 ULP. */
EXM_INLINE double exm_elu_f64(double x, double alpha)
{
    double y = alpha * exm_expm1_f64(x);
    return x > 0 ? x : y;
}

/* alpha*exp(x) at x <= 0 (alpha at 0, by convention), else 1. */
EXM_INLINE double exm_elu_backward_f64(double g, double x, double alpha)
{
    exm_scaled_f64 e = exm_exp_parts_f64(x);
    double y = exm_scale_product_f64(g, exm_times_mantissa_f64(alpha, e), e.shifted);
    y = x < EXM_PRODMIN_F64 ? 0.0 * g : y;
    return x > 0 ? g : y;
}

EXM_INLINE double exm_elu_grad_f64(double x, double alpha)
{
    double y = alpha * exm_exp_f64(x);
    return x > 0 ? 1.0 : y;
}

/* swish(x) = x*sigmoid(x) = x/(1 + e), for x < 0 times e, e = exp(-|x|), the power of two last
 * because e may be subnormal where the product is not. -0 at -inf, the limit. 2.38 ULP. */
EXM_INLINE double exm_swish_f64(double x)
{
    double a = exm_abs_f64(x), ex, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-a);
    ex = exm_times_mantissa_f64(exm_lifted_f64(e.shifted), e);
    y = x / EXM_FMA_F64(ex, EXM_DROP_F64, 1.0);
    y = x < 0 ? y * ex * EXM_DROP_F64 : y;
    return a > EXM_SWISHMAX_F64 ? (x < 0 ? -0.0 : x) : y;
}

/* swish'(x) = s + x*s*(1 - s), s = sigmoid(x). With e = exp(-|x|), d = 1/(1 + e):
 * G = e*d*(1 - |x|*d) for x < 0 and 1 - G above. */
EXM_INLINE double exm_swish_near_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), e = exm_exp_near_f64(exm_exp_parts_f64(-a)), d = 1.0 / (1.0 + e);
    double t = e * d * (1.0 - a * d);
    return g * (x > 0 ? 1.0 - t : t);
}

EXM_INLINE double exm_swish_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), d, t;
    exm_scaled_f64 e = exm_exp_parts_f64(-a);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, 1.0 + e.p, e.shifted));
    t = exm_times_mantissa_f64(d * (1.0 - a * d), e);
    t = exm_reflect_f64(g, x, EXM_PRODMAX_F64, t, e.shifted);
    return exm_exp_is_far_f64(x) ? t : exm_swish_near_backward_f64(g, x);
}

EXM_INLINE double exm_swish_grad_f64(double x) { return exm_swish_backward_f64(1.0, x); }

/* mish(x) = x*tanh(softplus(x)), e = exp(-|x|):
 * x > 0: x*(1 + 2e)/(1 + 2e + 2e^2);  x <= 0: x*e*(2 + e)/(2 + 2e + e^2). 3.25 ULP.
 * Without FMA as in float32. */
EXM_INLINE double exm_mish_f64(double x)
{
    double a = exm_abs_f64(x), ex, num, den, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-a);
    ex = exm_scale_down_f64(1.0 + e.p, e.shifted);
#if EXM_HAS_FMA
    num = x > 0 ? EXM_FMA_F64(2.0, ex, 1.0) : 2.0 + ex;
    den = x > 0 ? EXM_FMA_F64(2.0 * ex, ex, num) : EXM_FMA_F64(ex, num, 2.0);
    y = x * (num / den);
#else
    num = ex + (x > 0 ? ex : 1.0);
    den = ex * num + (1.0 + num);
    y = x * (1.0 - ex * num / den);
#endif
    y = x > 0 ? y : exm_scale_down_f64(exm_times_mantissa_f64(y, e), e.shifted);
    return a > EXM_SWISHMAX_F64 ? (x < 0 ? -0.0 : x) : y;
}

/* mish'(x) = t + x*(1 - t^2)*sigmoid(x), t = tanh(softplus(x)), as
 * x > 0: (1 + 2e)/D + 4x*e^2*(1 + e)/D^2, D = 1 + 2e + 2e^2;
 * x <= 0: e*((2 + e)/D + 4x*(1 + e)/D^2), D = 2 + 2e + e^2. */
EXM_INLINE double exm_mish_near_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), e = exm_exp_near_f64(exm_exp_parts_f64(-a)), num, den, d, t;
    num = x > 0 ? EXM_FMA_F64(2.0, e, 1.0) : 2.0 + e;
    den = x > 0 ? EXM_FMA_F64(2.0 * e, e, num) : EXM_FMA_F64(e, num, 2.0);
    d = 1.0 / den;
    t = 4.0 * a * (1.0 + e) * d;
    return g * (d * (x > 0 ? EXM_FMA_F64(t * e, e, num) : e * (num - t)));
}

EXM_INLINE double exm_mish_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), ex, num, den, d, t, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-a);
    ex = exm_scale_product_f64(1.0, 1.0 + e.p, e.shifted);
    num = x > 0 ? EXM_FMA_F64(2.0, ex, 1.0) : 2.0 + ex;
    den = x > 0 ? EXM_FMA_F64(2.0 * ex, ex, num) : EXM_FMA_F64(ex, num, 2.0);
    d = 1.0 / den;
    t = 4.0 * a * (1.0 + ex) * d;
    y = g * (d * EXM_FMA_F64(t * ex, ex, num));
    t = d * (num - t);
    y = x > 0 ? y : exm_scale_product_f64(g, exm_times_mantissa_f64(t, e), e.shifted);
    y = a > EXM_PRODMAX_F64 ? (x < 0 ? 0.0 * g : g) : y;
    return exm_exp_is_far_f64(x) ? y : exm_mish_near_backward_f64(g, x);
}

EXM_INLINE double exm_mish_grad_f64(double x) { return exm_mish_backward_f64(1.0, x); }

/* ------------------------------------------------------------------ erf and gelu */

/* erf: x + x*p(x^2 - 1/2) of degree 6 (fit 2^-27) below 1.125; above, 1 - q^4 where q(t), degree 8,
 * approximates erfc(|x|)^(1/4) up to 4.0, beyond which erf rounds to 1 (absolute fit 2^-27).
 * 1.09 ULP. */
EXM_INLINE float exm_erf_f32(float x)
{
    float a = exm_abs_f32(x), w = x * x - 0.5f, p, small, t;
    {
        float w2 = w * w, p0, p1;
        p0 = EXM_H3_F32(w2, 0.0794095621f, 0.00348416204f, 6.93451948e-05f);
        p1 = EXM_H2_F32(w2, -0.0182838254f, -0.000563832349f);
        p0 = EXM_FMA_F32(p1, w, p0);
        p0 = EXM_FMA_F32(p0, w, -0.28107217f);
        p = EXM_FMA_F32(p0, w, -0.0345312543f);
    }
    small = EXM_FMA_F32(a, p, a);
    t = a - EXM_ERFCENTRE_F32;
    {
        float t2 = t * t, p0, p1;
        p0 = EXM_H4_F32(t2, -0.410904169f, 0.0474536382f, -0.00444350718f, -5.15157481e-05f);
        p1 = EXM_H4_F32(t2, 0.0262874831f, -0.00728154834f, 0.00144860556f, -1.86220004e-05f);
        p0 = EXM_FMA_F32(p1, t, p0);
        p = EXM_FMA_F32(p0, t, 0.568355143f);
    }
    p = p * p;
    p = 1.0f - p * p;
    p = a > EXM_ERFMAX_F32 ? 1.0f : p;
    return __builtin_copysignf(a < 1.125f ? small : p, x);
}

/* exp(-factor*x^2), x^2 as a sum of two numbers. */
EXM_INLINE exm_scaled_f32 exm_exp_square_f32(float x, float factor)
{
    float h = x * x;
    return exm_exp_sum_f32(-factor * h, exm_product_error_f32(x, x, h), -factor);
}

/* g * 2/sqrt(pi)*exp(-x^2). */
EXM_INLINE float exm_erf_backward_f32(float g, float x)
{
    exm_scaled_f32 e = exm_exp_square_f32(x, 1.0f);
    float y = exm_scale_product_f32(g, exm_times_mantissa_f32(EXM_TWO_SQRTPI_F32, e), e.shifted);
    return exm_abs_f32(x) > EXM_ERFGMAX_F32 ? 0.0f * g : y;
}

EXM_INLINE float exm_erf_grad_f32(float x) { return exm_erf_backward_f32(1.0f, x); }

/* The normal distribution's tail: P(X > a) = exp(-a^2/2)*R(a), a >= 0 (R is Mills' ratio over sqrt(2 pi)).
 * R(a) = q*p(1 - 1.453125*q), q = K/(K + a), K = 3.0, p of degree 10 (fit 2^-28 up to a = 20.0). */
EXM_INLINE float exm_mills_f32(float a)
{
    float q = EXM_MILLSK_F32 / (EXM_MILLSK_F32 + a), t = EXM_FMA_F32(q, -EXM_MILLSM_F32, 1.0f), p;
    {
        float t2 = t * t, p0, p1;
        p0 = EXM_H5_F32(t2, -0.321000308f, -0.020277366f, 0.00418928638f, 8.87693823e-05f, -0.00049674086f);
        p1 = EXM_H5_F32(t2, 0.171260193f, -0.0238127466f, 0.00545758521f, -0.00143184233f, 0.00047007401f);
        p0 = EXM_FMA_F32(p1, t, p0);
        p = EXM_FMA_F32(p0, t, 0.318535656f);
    }
    return q * p;
}

/* gelu(x) = x*P(X < x): T = x*exp(-x^2/2)*R(|x|), the result T for x <= 0 and x - T above; the far tail keeps
 * its relative accuracy and the power of two comes last. -0 at -inf, the limit. 4.92 ULP. */
EXM_INLINE float exm_gelu_f32(float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e = exm_exp_square_f32(x, 0.5f);
    t = exm_scale_down_f32(exm_times_mantissa_f32(x * exm_mills_f32(a), e), e.shifted);
    t = a > EXM_GELUMAX_F32 ? -0.0f : t;
    return x > 0 ? x - t : t;
}

/* gelu'(x) = P(X < x) + x*density(x): G = exp(-x^2/2)*(R(|x|) - |x|/sqrt(2 pi)) for x <= 0, 1 - G above.
 * One exponential for both terms. */
EXM_INLINE int exm_gelu_is_far_f32(float x) { return !(exm_abs_f32(x) <= EXM_GELUNEAR_F32); }

EXM_INLINE float exm_gelu_near_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), e = exm_exp_near_f32(exm_exp_square_f32(x, 0.5f));
    float t = e * (exm_mills_f32(a) - a * EXM_INV_SQRT2PI_F32);
    return g * (x > 0 ? 1.0f - t : t);
}

EXM_INLINE float exm_gelu_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e = exm_exp_square_f32(x, 0.5f);
    t = exm_times_mantissa_f32(exm_mills_f32(a) - a * EXM_INV_SQRT2PI_F32, e);
    t = exm_reflect_f32(g, x, EXM_GELUGMAX_F32, t, e.shifted);
    return exm_gelu_is_far_f32(x) ? t : exm_gelu_near_backward_f32(g, x);
}

EXM_INLINE float exm_gelu_grad_f32(float x)
{
    float a = exm_abs_f32(x), t;
    exm_scaled_f32 e = exm_exp_square_f32(x, 0.5f);
    t = exm_scale_down_f32(exm_times_mantissa_f32(exm_mills_f32(a) - a * EXM_INV_SQRT2PI_F32, e), e.shifted);
    t = a > EXM_GELUMAX_F32 ? 0.0f : t;
    return x > 0 ? 1.0f - t : t;
}

/* gelu, tanh form: x*sigmoid(v), v = 2*sqrt(2/pi)*(x + 0.044715*x^3), with the exponential as in swish. */
EXM_INLINE float exm_gelu_tanh_f32(float x)
{
    float a = exm_abs_f32(x), v = a * EXM_FMA_F32(a * a, EXM_GELUT3_F32, EXM_GELUT1_F32), ex, y;
    exm_scaled_f32 e = exm_exp_parts_f32(-v);
    ex = exm_times_mantissa_f32(exm_lifted_f32(e.shifted), e);
    y = x / EXM_FMA_F32(ex, EXM_DROP_F32, 1.0f);
    y = x < 0 ? y * ex * EXM_DROP_F32 : y;
    return a > EXM_GELUTMAX_F32 ? (x < 0 ? -0.0f : x) : y;
}

/* Its derivative, s + x*s*(1 - s)*v', s = sigmoid(v): with e = exp(-|v|), d = 1/(1 + e)
 * G = e*d*(1 - |x|*v'*d) for x <= 0, 1 - G above. v is needed to a few digits more than the format has (its
 * absolute error is the relative one of e): a sum of two numbers. */
EXM_INLINE exm_scaled_f32 exm_gelu_tanh_exp_f32(float a, float z)
{
    float z_low = exm_product_error_f32(a, a, z), c = z * EXM_GELUT3_F32, s = c + EXM_GELUT1_F32, v = a * s;
    float c_low = exm_product_error_f32(z, EXM_GELUT3_F32, c) + EXM_FMA_F32(z, EXM_GELUT3LO_F32, z_low * EXM_GELUT3_F32);
    c_low += exm_sum_error_f32(c, EXM_GELUT1_F32, s) + EXM_GELUT1LO_F32;
    return exm_exp_sum_f32(-v, EXM_FMA_F32(a, c_low, exm_product_error_f32(a, s, v)), -1.0f);
}

EXM_INLINE int exm_gelu_tanh_is_far_f32(float x) { return !(exm_abs_f32(x) <= EXM_GELUTNEAR_F32); }

EXM_INLINE float exm_gelu_tanh_near_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), z = a * a, e = exm_exp_near_f32(exm_gelu_tanh_exp_f32(a, z)), d = 1.0f / (1.0f + e);
    float t = e * d * (1.0f - a * EXM_FMA_F32(z, 3.0f * EXM_GELUT3_F32, EXM_GELUT1_F32) * d);
    return g * (x > 0 ? 1.0f - t : t);
}

EXM_INLINE float exm_gelu_tanh_backward_f32(float g, float x)
{
    float a = exm_abs_f32(x), z = a * a, d, t;
    exm_scaled_f32 e = exm_gelu_tanh_exp_f32(a, z);
    d = 1.0f / (1.0f + exm_scale_product_f32(1.0f, 1.0f + e.p, e.shifted));
    t = exm_times_mantissa_f32(d * (1.0f - a * EXM_FMA_F32(z, 3.0f * EXM_GELUT3_F32, EXM_GELUT1_F32) * d), e);
    t = exm_reflect_f32(g, x, EXM_GELUTGMAX_F32, t, e.shifted);
    return exm_gelu_tanh_is_far_f32(x) ? t : exm_gelu_tanh_near_backward_f32(g, x);
}

EXM_INLINE float exm_gelu_tanh_grad_f32(float x) { return exm_gelu_tanh_backward_f32(1.0f, x); }

/* erf: x + x*p(x^2 - 1/2) of degree 12 (fit 2^-58) below 1.125; above, 1 - q^4 where q(t), degree 20,
 * approximates erfc(|x|)^(1/4) up to 6.0, beyond which erf rounds to 1 (absolute fit 2^-58).
 * 1.02 ULP. */
EXM_INLINE double exm_erf_f64(double x)
{
    double a = exm_abs_f64(x), w = x * x - 0.5, p, small, t;
    {
        double w2 = w * w, w4 = w2 * w2, p0, p1, p2, p3;
        p0 = EXM_H3_F64(w4, 0.07940998675593498, 7.829649539251474e-05, 9.392355130153286e-09);
        p1 = EXM_H3_F64(w4, -0.018283884489149634, -9.614808027992565e-06, -7.762203014118338e-10);
        p2 = EXM_H3_F64(w4, 0.003480274496658354, 1.0536437560655932e-06, 5.271006692583014e-11);
        p3 = EXM_H2_F64(w4, -0.0005611894221897732, -1.0420625698784892e-07);
        p0 = EXM_FMA_F64(p1, w, p0);
        p2 = EXM_FMA_F64(p3, w, p2);
        p0 = EXM_FMA_F64(p2, w2, p0);
        p0 = EXM_FMA_F64(p0, w, -0.2810721780454343);
        p = EXM_FMA_F64(p0, w, -0.03453126133013269);
    }
    small = EXM_FMA_F64(a, p, a);
    t = a - EXM_ERFCENTRE_F64;
    {
        double t2 = t * t, t4 = t2 * t2, p0, p1, p2, p3;
        p0 = EXM_H5_F64(t4, -0.41080128205352323, -0.00410377214662022, -3.820053582033876e-06,
            5.7628758405632524e-09, 1.5518207291492249e-10);
        p1 = EXM_H5_F64(t4, 0.02656778164656544, 0.0010397228501311025, 3.839618537375771e-06,
            3.3018870857304954e-09, -1.7787170240049926e-11);
        p2 = EXM_H5_F64(t4, 0.047408262120677516, 0.00020158296072509798, 1.4416956105373046e-08,
            1.0855746110062417e-09, 1.1013048442742293e-12);
        p3 = EXM_H5_F64(t4, -0.007442655762628159, -8.246536730046717e-05, -1.5411139004444984e-07,
            -7.182187330675353e-10, -2.9323440601664895e-14);
        p0 = EXM_FMA_F64(p1, t, p0);
        p2 = EXM_FMA_F64(p3, t, p2);
        p0 = EXM_FMA_F64(p2, t2, p0);
        p = EXM_FMA_F64(p0, t, 0.5675526958371433);
    }
    p = p * p;
    p = 1.0 - p * p;
    p = a > EXM_ERFMAX_F64 ? 1.0 : p;
    return __builtin_copysign(a < 1.125 ? small : p, x);
}

/* exp(-factor*x^2), x^2 as a sum of two numbers. */
EXM_INLINE exm_scaled_f64 exm_exp_square_f64(double x, double factor)
{
    double h = x * x;
    return exm_exp_sum_f64(-factor * h, exm_product_error_f64(x, x, h), -factor);
}

/* g * 2/sqrt(pi)*exp(-x^2). */
EXM_INLINE double exm_erf_backward_f64(double g, double x)
{
    exm_scaled_f64 e = exm_exp_square_f64(x, 1.0);
    double y = exm_scale_product_f64(g, exm_times_mantissa_f64(EXM_TWO_SQRTPI_F64, e), e.shifted);
    return exm_abs_f64(x) > EXM_ERFGMAX_F64 ? 0.0 * g : y;
}

EXM_INLINE double exm_erf_grad_f64(double x) { return exm_erf_backward_f64(1.0, x); }

/* The normal distribution's tail: P(X > a) = exp(-a^2/2)*R(a), a >= 0 (R is Mills' ratio over sqrt(2 pi)).
 * R(a) = q*p(1 - 1.71875*q), q = K/(K + a), K = 3.28125, p of degree 24 (fit 2^-56 up to a = 55.0). */
EXM_INLINE double exm_mills_f64(double a)
{
    double q = EXM_MILLSK_F64 / (EXM_MILLSK_F64 + a), t = EXM_FMA_F64(q, -EXM_MILLSM_F64, 1.0), p;
    {
        double t2 = t * t, t4 = t2 * t2, p0, p1, p2, p3;
        p0 = EXM_H6_F64(t4, -0.22745548117500405, 0.005904447925546982, 0.00020050260056092748,
            1.340434531618303e-06, -9.383769054520032e-07, 2.943641759586912e-08);
        p1 = EXM_H6_F64(t4, 0.1327589181894768, -0.00012552211308032801, 4.919493386330464e-05,
            6.045287359257365e-06, -2.940635416541087e-07, -7.971752961923052e-08);
        p2 = EXM_H6_F64(t4, -0.040742104358080594, -0.001020145015202476, -3.3808427107732556e-05,
            2.0745119365847326e-06, 1.549975784901807e-07, -1.5243379963713927e-08);
        p3 = EXM_H6_F64(t4, -0.002394669363659552, -4.966706442501563e-05, -2.1497313788012695e-05,
            -7.396877286274805e-07, 2.247921921870566e-07, 1.5002105741837607e-08);
        p0 = EXM_FMA_F64(p1, t, p0);
        p2 = EXM_FMA_F64(p3, t, p2);
        p0 = EXM_FMA_F64(p2, t2, p0);
        p = EXM_FMA_F64(p0, t, 0.25450442307319526);
    }
    return q * p;
}

/* gelu(x) = x*P(X < x): T = x*exp(-x^2/2)*R(|x|), the result T for x <= 0 and x - T above; the far tail keeps
 * its relative accuracy and the power of two comes last. -0 at -inf, the limit. 4.89 ULP. */
EXM_INLINE double exm_gelu_f64(double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e = exm_exp_square_f64(x, 0.5);
    t = exm_scale_down_f64(exm_times_mantissa_f64(x * exm_mills_f64(a), e), e.shifted);
    t = a > EXM_GELUMAX_F64 ? -0.0 : t;
    return x > 0 ? x - t : t;
}

/* gelu'(x) = P(X < x) + x*density(x): G = exp(-x^2/2)*(R(|x|) - |x|/sqrt(2 pi)) for x <= 0, 1 - G above.
 * One exponential for both terms. */
EXM_INLINE int exm_gelu_is_far_f64(double x) { return !(exm_abs_f64(x) <= EXM_GELUNEAR_F64); }

EXM_INLINE double exm_gelu_near_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), e = exm_exp_near_f64(exm_exp_square_f64(x, 0.5));
    double t = e * (exm_mills_f64(a) - a * EXM_INV_SQRT2PI_F64);
    return g * (x > 0 ? 1.0 - t : t);
}

EXM_INLINE double exm_gelu_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e = exm_exp_square_f64(x, 0.5);
    t = exm_times_mantissa_f64(exm_mills_f64(a) - a * EXM_INV_SQRT2PI_F64, e);
    t = exm_reflect_f64(g, x, EXM_GELUGMAX_F64, t, e.shifted);
    return exm_gelu_is_far_f64(x) ? t : exm_gelu_near_backward_f64(g, x);
}

EXM_INLINE double exm_gelu_grad_f64(double x)
{
    double a = exm_abs_f64(x), t;
    exm_scaled_f64 e = exm_exp_square_f64(x, 0.5);
    t = exm_scale_down_f64(exm_times_mantissa_f64(exm_mills_f64(a) - a * EXM_INV_SQRT2PI_F64, e), e.shifted);
    t = a > EXM_GELUMAX_F64 ? 0.0 : t;
    return x > 0 ? 1.0 - t : t;
}

/* gelu, tanh form: x*sigmoid(v), v = 2*sqrt(2/pi)*(x + 0.044715*x^3), with the exponential as in swish. */
EXM_INLINE double exm_gelu_tanh_f64(double x)
{
    double a = exm_abs_f64(x), v = a * EXM_FMA_F64(a * a, EXM_GELUT3_F64, EXM_GELUT1_F64), ex, y;
    exm_scaled_f64 e = exm_exp_parts_f64(-v);
    ex = exm_times_mantissa_f64(exm_lifted_f64(e.shifted), e);
    y = x / EXM_FMA_F64(ex, EXM_DROP_F64, 1.0);
    y = x < 0 ? y * ex * EXM_DROP_F64 : y;
    return a > EXM_GELUTMAX_F64 ? (x < 0 ? -0.0 : x) : y;
}

/* Its derivative, s + x*s*(1 - s)*v', s = sigmoid(v): with e = exp(-|v|), d = 1/(1 + e)
 * G = e*d*(1 - |x|*v'*d) for x <= 0, 1 - G above. v is needed to a few digits more than the format has (its
 * absolute error is the relative one of e): a sum of two numbers. */
EXM_INLINE exm_scaled_f64 exm_gelu_tanh_exp_f64(double a, double z)
{
    double z_low = exm_product_error_f64(a, a, z), c = z * EXM_GELUT3_F64, s = c + EXM_GELUT1_F64, v = a * s;
    double c_low = exm_product_error_f64(z, EXM_GELUT3_F64, c) + EXM_FMA_F64(z, EXM_GELUT3LO_F64, z_low * EXM_GELUT3_F64);
    c_low += exm_sum_error_f64(c, EXM_GELUT1_F64, s) + EXM_GELUT1LO_F64;
    return exm_exp_sum_f64(-v, EXM_FMA_F64(a, c_low, exm_product_error_f64(a, s, v)), -1.0);
}

EXM_INLINE int exm_gelu_tanh_is_far_f64(double x) { return !(exm_abs_f64(x) <= EXM_GELUTNEAR_F64); }

EXM_INLINE double exm_gelu_tanh_near_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), z = a * a, e = exm_exp_near_f64(exm_gelu_tanh_exp_f64(a, z)), d = 1.0 / (1.0 + e);
    double t = e * d * (1.0 - a * EXM_FMA_F64(z, 3.0 * EXM_GELUT3_F64, EXM_GELUT1_F64) * d);
    return g * (x > 0 ? 1.0 - t : t);
}

EXM_INLINE double exm_gelu_tanh_backward_f64(double g, double x)
{
    double a = exm_abs_f64(x), z = a * a, d, t;
    exm_scaled_f64 e = exm_gelu_tanh_exp_f64(a, z);
    d = 1.0 / (1.0 + exm_scale_product_f64(1.0, 1.0 + e.p, e.shifted));
    t = exm_times_mantissa_f64(d * (1.0 - a * EXM_FMA_F64(z, 3.0 * EXM_GELUT3_F64, EXM_GELUT1_F64) * d), e);
    t = exm_reflect_f64(g, x, EXM_GELUTGMAX_F64, t, e.shifted);
    return exm_gelu_tanh_is_far_f64(x) ? t : exm_gelu_tanh_near_backward_f64(g, x);
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

EXM_INLINE exm_log_parts_f32 exm_log_split_f32(float x, float bias)
{
    exm_log_parts_f32 l;
    uint32_t u = exm_bits_f32(x) + (EXM_ONEBITS_F32 - EXM_SQRTHALFBITS_F32);
    l.k = exm_from_bits_f32((u >> EXM_MBITS_F32) | EXM_KMAGICBITS_F32) - bias;
    l.f = exm_from_bits_f32((u & EXM_MMASK_F32) + EXM_SQRTHALFBITS_F32) - 1.0f;
    l.tail = exm_log_tail_f32(l.f);
    return l;
}

EXM_INLINE exm_log_parts_f32 exm_log_split_usual_f32(float x) { return exm_log_split_f32(x, EXM_KBIAS_F32); }

EXM_INLINE exm_log_parts_f32 exm_log_split_any_f32(float x)
{
    float normal = x < EXM_MINNORMAL_F32 ? x * EXM_SUBSCALE_F32 : x;
    return exm_log_split_f32(normal, x < EXM_MINNORMAL_F32 ? EXM_KBIASSUB_F32 : EXM_KBIAS_F32);
}

/* y for finite x > 0, else the logarithm's special values. */
EXM_INLINE float exm_log_special_f32(float x, float y)
{
    float nan = __builtin_nanf(""), inf = __builtin_inff();
    y = x < inf ? y : x;
    return x > 0 ? y : (x == 0 ? -inf : nan);
}

/* Whether x is not normal, positive and finite: where it is, exm_log_usual and its relatives give the same as
 * exm_log, in two thirds of the time. */
EXM_INLINE int exm_log_is_rare_f32(float x)
{
    return exm_bits_f32(x) - 0x00800000u >= 0x7f000000u;
}

/* log(x). 0.85 ULP. */
EXM_INLINE float exm_log_sum_f32(exm_log_parts_f32 l)
{
    return EXM_FMA_F32(l.k, EXM_LN2HI_F32, l.f + EXM_FMA_F32(l.k, EXM_LN2LO_F32, l.tail));
}

EXM_INLINE float exm_log_usual_f32(float x) { return exm_log_sum_f32(exm_log_split_usual_f32(x)); }

EXM_INLINE float exm_log_f32(float x) { return exm_log_special_f32(x, exm_log_sum_f32(exm_log_split_any_f32(x))); }

/* log2 and log10: k*log(2) + log(1 + f) in that base, whose factor is a sum of two numbers. Exact at the powers of 2
 * and of 10. 1.10 ULP. (log2), 0.85 ULP. (log10) */
EXM_INLINE float exm_log2_sum_f32(exm_log_parts_f32 l)
{
    float low = EXM_FMA_F32(l.f, EXM_LOG2E_LO_F32, l.tail * EXM_LOG2E_F32);
    return l.k + exm_multiply_add_f32(l.f, EXM_LOG2E_F32, low);
}

EXM_INLINE float exm_log2_usual_f32(float x) { return exm_log2_sum_f32(exm_log_split_usual_f32(x)); }

EXM_INLINE float exm_log2_f32(float x) { return exm_log_special_f32(x, exm_log2_sum_f32(exm_log_split_any_f32(x))); }

EXM_INLINE float exm_log10_sum_f32(exm_log_parts_f32 l)
{
    float low = EXM_FMA_F32(l.k, EXM_LOG10_2LO_F32, EXM_FMA_F32(l.f, EXM_LOG10E_LO_F32, l.tail * EXM_LOG10E_F32));
    return EXM_FMA_F32(l.k, EXM_LOG10_2HI_F32, exm_multiply_add_f32(l.f, EXM_LOG10E_F32, low));
}

EXM_INLINE float exm_log10_usual_f32(float x) { return exm_log10_sum_f32(exm_log_split_usual_f32(x)); }

EXM_INLINE float exm_log10_f32(float x) { return exm_log_special_f32(x, exm_log10_sum_f32(exm_log_split_any_f32(x))); }

/* log1p(x): 2^k*(1 + f) = 1 + x, 1 + f in [3/4, 3/2), where f is exact from x itself (but next to x = 1/2); the rest as
 * in log (fit 2^-27). 0.93 ULP. exm_log1p_usual is for finite x > -1. */
EXM_INLINE float exm_log1p_usual_f32(float x)
{
    uint32_t kb = (exm_bits_f32(1.0f + x) + (EXM_ONEBITS_F32 - EXM_THREEQUARTERBITS_F32)) >> EXM_MBITS_F32;
    float k = exm_from_bits_f32(kb | EXM_KMAGICBITS_F32) - EXM_KBIAS_F32;
    /* 2^(2-k)/4 instead of 2^-k, which is subnormal for the largest x */
    float scale = exm_from_bits_f32((EXM_KINVERT_F32 - kb) << EXM_MBITS_F32);
    float f = EXM_FMA_F32(0.25f * x, scale, EXM_FMA_F32(0.25f, scale, -1.0f)), f2 = f * f, p0, p1, tail, y;
    p0 = EXM_H4_F32(f2, -0.250000983f, -0.166471645f, -0.131629884f, -0.0450733975f);
    p1 = EXM_H3_F32(f2, 0.199908063f, 0.144788221f, 0.1046452f);
    p0 = EXM_FMA_F32(EXM_FMA_F32(p1, f, p0), f, 0.333334506f);
    tail = f2 * EXM_FMA_F32(f, p0, -0.5f);
    y = EXM_FMA_F32(k, EXM_LN2HI_F32, f + EXM_FMA_F32(k, EXM_LN2LO_F32, tail));
    return exm_abs_f32(x) < EXM_EXPM1TINY_F32 ? x : y;
}

EXM_INLINE float exm_log1p_f32(float x) { return exm_log_special_f32(1.0f + x, exm_log1p_usual_f32(x)); }

EXM_INLINE int exm_log1p_is_rare_f32(float x) { return exm_log_is_rare_f32(1.0f + x); }

EXM_INLINE float exm_log1p_grad_f32(float x) { return 1.0f / (1.0f + x); }

/* x = 2^k*(1 + f), 1 + f in [sqrt(1/2), sqrt(2)), for normal x > 0; k as a floating number. */
typedef struct {
    double k, f, tail; /* tail = log(1 + f) - f = s*(f^2/2 + z*p(z)) - f^2/2, s = f/(2 + f), z = s^2 (fit 2^-59) */
} exm_log_parts_f64;

EXM_INLINE double exm_log_tail_f64(double f)
{
    double s = f / (2.0 + f), h = 0.5 * f * f, z = s * s, z2 = z * z, p0, p1;
    p0 = EXM_H4_F64(z2, 0.6666666666666734, 0.28571428741982624, 0.18183562564111255, 0.14795560401516641);
    p1 = EXM_H3_F64(z2, 0.39999999999416785, 0.22222198610342458, 0.15314092235749605);
    p0 = EXM_FMA_F64(p1, z, p0);
    return EXM_FMA_F64(s, EXM_FMA_F64(z, p0, h), -h);
}

EXM_INLINE exm_log_parts_f64 exm_log_split_f64(double x, double bias)
{
    exm_log_parts_f64 l;
    uint64_t u = exm_bits_f64(x) + (EXM_ONEBITS_F64 - EXM_SQRTHALFBITS_F64);
    l.k = exm_from_bits_f64((u >> EXM_MBITS_F64) | EXM_KMAGICBITS_F64) - bias;
    l.f = exm_from_bits_f64((u & EXM_MMASK_F64) + EXM_SQRTHALFBITS_F64) - 1.0;
    l.tail = exm_log_tail_f64(l.f);
    return l;
}

EXM_INLINE exm_log_parts_f64 exm_log_split_usual_f64(double x) { return exm_log_split_f64(x, EXM_KBIAS_F64); }

EXM_INLINE exm_log_parts_f64 exm_log_split_any_f64(double x)
{
    double normal = x < EXM_MINNORMAL_F64 ? x * EXM_SUBSCALE_F64 : x;
    return exm_log_split_f64(normal, x < EXM_MINNORMAL_F64 ? EXM_KBIASSUB_F64 : EXM_KBIAS_F64);
}

/* y for finite x > 0, else the logarithm's special values. */
EXM_INLINE double exm_log_special_f64(double x, double y)
{
    double nan = __builtin_nan(""), inf = __builtin_inf();
    y = x < inf ? y : x;
    return x > 0 ? y : (x == 0 ? -inf : nan);
}

/* Whether x is not normal, positive and finite: where it is, exm_log_usual and its relatives give the same as
 * exm_log, in two thirds of the time. */
EXM_INLINE int exm_log_is_rare_f64(double x)
{
    return exm_bits_f64(x) - 0x0010000000000000u >= 0x7fe0000000000000u;
}

/* log(x). 0.85 ULP. */
EXM_INLINE double exm_log_sum_f64(exm_log_parts_f64 l)
{
    return EXM_FMA_F64(l.k, EXM_LN2HI_F64, l.f + EXM_FMA_F64(l.k, EXM_LN2LO_F64, l.tail));
}

EXM_INLINE double exm_log_usual_f64(double x) { return exm_log_sum_f64(exm_log_split_usual_f64(x)); }

EXM_INLINE double exm_log_f64(double x) { return exm_log_special_f64(x, exm_log_sum_f64(exm_log_split_any_f64(x))); }

/* log2 and log10: k*log(2) + log(1 + f) in that base, whose factor is a sum of two numbers. Exact at the powers of 2
 * and of 10. 1.19 ULP. (log2), 0.83 ULP. (log10) */
EXM_INLINE double exm_log2_sum_f64(exm_log_parts_f64 l)
{
    double low = EXM_FMA_F64(l.f, EXM_LOG2E_LO_F64, l.tail * EXM_LOG2E_F64);
    return l.k + exm_multiply_add_f64(l.f, EXM_LOG2E_F64, low);
}

EXM_INLINE double exm_log2_usual_f64(double x) { return exm_log2_sum_f64(exm_log_split_usual_f64(x)); }

EXM_INLINE double exm_log2_f64(double x) { return exm_log_special_f64(x, exm_log2_sum_f64(exm_log_split_any_f64(x))); }

EXM_INLINE double exm_log10_sum_f64(exm_log_parts_f64 l)
{
    double low = EXM_FMA_F64(l.k, EXM_LOG10_2LO_F64, EXM_FMA_F64(l.f, EXM_LOG10E_LO_F64, l.tail * EXM_LOG10E_F64));
    return EXM_FMA_F64(l.k, EXM_LOG10_2HI_F64, exm_multiply_add_f64(l.f, EXM_LOG10E_F64, low));
}

EXM_INLINE double exm_log10_usual_f64(double x) { return exm_log10_sum_f64(exm_log_split_usual_f64(x)); }

EXM_INLINE double exm_log10_f64(double x) { return exm_log_special_f64(x, exm_log10_sum_f64(exm_log_split_any_f64(x))); }

/* log1p(x): 2^k*(1 + f) = 1 + x, 1 + f in [3/4, 3/2), where f is exact from x itself (but next to x = 1/2); the rest as
 * in log (fit 2^-62). 0.93 ULP. exm_log1p_usual is for finite x > -1. */
EXM_INLINE double exm_log1p_usual_f64(double x)
{
    uint64_t kb = (exm_bits_f64(1.0 + x) + (EXM_ONEBITS_F64 - EXM_THREEQUARTERBITS_F64)) >> EXM_MBITS_F64;
    double k = exm_from_bits_f64(kb | EXM_KMAGICBITS_F64) - EXM_KBIAS_F64;
    /* 2^(2-k)/4 instead of 2^-k, which is subnormal for the largest x */
    double scale = exm_from_bits_f64((EXM_KINVERT_F64 - kb) << EXM_MBITS_F64);
    double f = EXM_FMA_F64(0.25 * x, scale, EXM_FMA_F64(0.25, scale, -1.0)), s = f / (2.0 + f), h = 0.5 * f * f;
    double z = s * s, z2 = z * z, p0, p1, tail, y;
    p0 = EXM_H4_F64(z2, 0.666666666666666, 0.28571428555920164, 0.18181666700678287, 0.13174103797797562);
    p1 = EXM_H4_F64(z2, 0.40000000000056424, 0.22222224284024894, 0.1539108322106997, 0.13839515161798116);
    tail = EXM_FMA_F64(s, EXM_FMA_F64(z, EXM_FMA_F64(p1, z, p0), h), -h);
    y = EXM_FMA_F64(k, EXM_LN2HI_F64, f + EXM_FMA_F64(k, EXM_LN2LO_F64, tail));
    return exm_abs_f64(x) < EXM_EXPM1TINY_F64 ? x : y;
}

EXM_INLINE double exm_log1p_f64(double x) { return exm_log_special_f64(1.0 + x, exm_log1p_usual_f64(x)); }

EXM_INLINE int exm_log1p_is_rare_f64(double x) { return exm_log_is_rare_f64(1.0 + x); }

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
    double shifted = EXM_FMA_F64(x, 0.6366197723675814, EXM_SHIFTER_F64);
    double n = shifted - EXM_SHIFTER_F64;
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

/* 0.79 ULP. */
EXM_INLINE double exm_sin_f64(double x)
{
    double y = exm_sin_shifted_f64(x, 0);
    return exm_abs_f64(x) < 7.450580596923828e-09 ? x : y; /* 2^-27: keeps -0 */
}

/* 0.84 ULP. */
EXM_INLINE double exm_cos_f64(double x) { return exm_sin_shifted_f64(x, 1); }

/* float32 in double: one rounding at the end. Degrees 3 and 3 (fits 2^-37, 2^-43). */
EXM_INLINE float exm_sin_shifted_f32(float x, uint64_t shift)
{
    double d = (double)x;
    double shifted = EXM_FMA_F64(d, 0.6366197723675814, EXM_SHIFTER_F64);
    double n = shifted - EXM_SHIFTER_F64;
    double r = EXM_FMA_F64(n, -6.077100506506192e-11, EXM_FMA_F64(n, -1.5707963267341256, d)), z = r * r, p, s, c;
    uint64_t quadrant = exm_bits_f64(shifted) + shift;
    p = EXM_H4_F64(z, -0.166666666405906, 0.008333329280726404, -0.00019839304466239463,
        2.7180468704970614e-06);
    s = EXM_FMA_F64(r * z, p, r);
    p = EXM_H4_F64(z, 0.041666666619108596, -0.0013888883467364215, 2.4799451572816477e-05,
        -2.7205047907782803e-07);
    c = EXM_FMA_F64(z, EXM_FMA_F64(z, p, -0.5), 1.0);
    s = (quadrant & 1u) != 0 ? c : s;
    return (float)exm_from_bits_f64(exm_bits_f64(s) ^ ((quadrant & 2u) << 62));
}

EXM_INLINE int exm_sin_is_rare_f32(float x) { return exm_abs_f32(x) > 1.6e6f; }
EXM_INLINE int exm_cos_is_rare_f32(float x) { return exm_abs_f32(x) > 1.6e6f; }
static inline float exm_sin_rare_f32(float x) { return (float)exm_sin_huge_f64((double)x, 0); }
static inline float exm_cos_rare_f32(float x) { return (float)exm_sin_huge_f64((double)x, 1); }

/* 0.50 ULP. */
EXM_INLINE float exm_sin_f32(float x)
{
    float y = exm_sin_shifted_f32(x, 0);
    return exm_abs_f32(x) < 0.000244140625f ? x : y; /* 2^-12: keeps -0 */
}

/* 0.50 ULP. */
EXM_INLINE float exm_cos_f32(float x) { return exm_sin_shifted_f32(x, 1); }

/* ------------------------------------------------------------------ power */

/* What x^y is beyond |x|^y: the sign of odd powers, NaN for a negative base with a fraction in y, and 1 for
 * x = 1 and for y = 0 even where the other is NaN. `magnitude` holds inf and 0 already. */
EXM_INLINE float exm_power_special_f32(float x, float y, float magnitude)
{
    float half = 0.5f * y, nan = __builtin_nanf(""), inf = __builtin_inff();
    float integer = __builtin_rintf(y) == y ? 1.0f : 0.0f; /* the infinities are even */
    float odd = __builtin_rintf(half) == half ? 0.0f : integer;
    float base = x > -inf ? x : 1.0f; /* -inf to a fraction is not NaN */
    float valid = base < 0 ? integer : 1.0f;
    float z = odd != 0 ? __builtin_copysignf(magnitude, x) : magnitude;
    z = valid != 0 ? z : nan;
    z = x == x ? z : x;
    z = x == 1.0f ? 1.0f : z;
    return y == 0 ? 1.0f : z;
}

/* What x^y is beyond |x|^y: the sign of odd powers, NaN for a negative base with a fraction in y, and 1 for
 * x = 1 and for y = 0 even where the other is NaN. `magnitude` holds inf and 0 already. */
EXM_INLINE double exm_power_special_f64(double x, double y, double magnitude)
{
    double half = 0.5 * y, nan = __builtin_nan(""), inf = __builtin_inf();
    double integer = __builtin_rint(y) == y ? 1.0 : 0.0; /* the infinities are even */
    double odd = __builtin_rint(half) == half ? 0.0 : integer;
    double base = x > -inf ? x : 1.0; /* -inf to a fraction is not NaN */
    double valid = base < 0 ? integer : 1.0;
    double z = odd != 0 ? __builtin_copysign(magnitude, x) : magnitude;
    z = valid != 0 ? z : nan;
    z = x == x ? z : x;
    z = x == 1.0 ? 1.0 : z;
    return y == 0 ? 1.0 : z;
}

/* x^y = exp(y*log|x|) in steps of their own, which loops do one after the other with what is between them in memory:
 * the units wait less than in one long loop (float64 2.0 ns an element on one core in one loop, 1.1 ns in three). The
 * steps named "any" take every x and y, the others normal finite x of either sign and finite y; where both can be used
 * they give the same bits. exm_power_is_rare says where only "any" will do. */
EXM_INLINE int exm_power_is_rare_f32(float x, float y)
{
    return ((exm_bits_f32(x) & 0x7fffffffu) - 0x00800000u >= 0x7f000000u) | !(exm_abs_f32(y) < __builtin_inff());
}

EXM_INLINE int exm_power_is_rare_f64(double x, double y)
{
    return ((exm_bits_f64(x) & 0x7fffffffffffffffu) - 0x0010000000000000u >= 0x7fe0000000000000u)
        | !(exm_abs_f64(y) < __builtin_inf());
}

/* The same, or x negative or y a whole number: a quicker question that holds for few pairs. */
EXM_INLINE int exm_power_is_unusual_f32(float x, float y)
{
    return (exm_bits_f32(x) - 0x00800000u >= 0x7f000000u) | !__builtin_islessgreater(__builtin_rintf(y), y);
}

EXM_INLINE int exm_power_is_unusual_f64(double x, double y)
{
    return (exm_bits_f64(x) - 0x0010000000000000u >= 0x7fe0000000000000u)
        | !__builtin_islessgreater(__builtin_rint(y), y);
}

/* float64: the logarithm as a sum of two numbers to some 2^-65: x = 2^k*(1 + f), s = f/(2 + f),
 * log(1 + f) = 2s + 2s^3*(1/3 + s^2*p(s^2)), degree 6 (fit 2^-66), the leading terms in double-double. */
typedef struct {
    double high, low;
} exm_sum_f64;

/* 2s */
EXM_INLINE exm_sum_f64 exm_power_ratio_f64(double x)
{
    uint64_t u = exm_bits_f64(x) + (EXM_ONEBITS_F64 - EXM_SQRTHALFBITS_F64);
    double f = exm_from_bits_f64((u & EXM_MMASK_F64) + EXM_SQRTHALFBITS_F64) - 1.0;
    double d = 2.0 + f, inverse = 1.0 / d, s = f * inverse;
    exm_sum_f64 ratio;
    ratio.high = 2.0 * s;
    ratio.low = 2.0 * EXM_FMA_F64(-s, f - (d - 2.0), exm_remainder_f64(f, s, d)) * inverse;
    return ratio;
}

/* log|x|; the bias undoes SUBSCALE. */
EXM_INLINE exm_sum_f64 exm_power_log_biased_f64(double x, exm_sum_f64 ratio, double bias)
{
    uint64_t u = (exm_bits_f64(x) & 0x7fffffffffffffffu) + (EXM_ONEBITS_F64 - EXM_SQRTHALFBITS_F64);
    double k = exm_from_bits_f64((u >> EXM_MBITS_F64) | EXM_KMAGICBITS_F64) - bias;
    double a = ratio.high, s = 0.5 * a, z = s * s, z_low = exm_product_error_f64(s, s, z), z2 = z * z;
    double p0, p1, w, w_low, v, v_low, b, b_low, t, sum;
    exm_sum_f64 l;
    p0 = EXM_H4_F64(z2, 0.20000000000001125, 0.11111111259759585, 0.07693377971407336, 0.06598031826159591);
    p1 = EXM_H3_F64(z2, 0.1428571428505102, 0.0909089219981515, 0.06628423997258256);
    p0 = z * EXM_FMA_F64(p1, z, p0);
    w = 0.3333333333333333 + p0;
    w_low = (0.3333333333333333 - w) + p0 + 1.850371707708594e-17;
    v = z * w; /* log(1 + f) = 2s*(1 + v), and its derivative 1/(1 - z) times the error of 2s */
    v_low = EXM_FMA_F64(z, w_low, EXM_FMA_F64(z_low, w, exm_product_error_f64(z, w, v)));
    b = a * v;
    b_low = EXM_FMA_F64(a, v_low, exm_product_error_f64(a, v, b)) + EXM_FMA_F64(ratio.low, z + z2, ratio.low);
    t = k * EXM_LN2HI_F64;
    sum = t + a;
    l.high = sum + b;
    l.low = (a - (sum - t)) + (b - (l.high - sum)) + EXM_FMA_F64(k, EXM_LN2LO_F64, b_low);
    return l;
}

EXM_INLINE exm_sum_f64 exm_power_log_f64(double x, exm_sum_f64 ratio)
{
    return exm_power_log_biased_f64(x, ratio, EXM_KBIAS_F64);
}

EXM_INLINE exm_sum_f64 exm_power_log_any_f64(double x)
{
    double a = exm_abs_f64(x), inf = __builtin_inf();
    double normal = a < EXM_MINNORMAL_F64 ? a * EXM_SUBSCALE_F64 : a;
    double bias = a < EXM_MINNORMAL_F64 ? EXM_KBIASSUB_F64 : EXM_KBIAS_F64;
    exm_sum_f64 l = exm_power_log_biased_f64(normal, exm_power_ratio_f64(normal), bias);
    l.high = a > 0 ? l.high : -inf;
    l.high = a < inf ? l.high : inf;
    return l;
}

/* y*l, and (y - 1)*l with what is lost in y - 1; 0 where x is 1 or -1, for an infinite y too. */
EXM_INLINE exm_sum_f64 exm_power_product_f64(double y, exm_sum_f64 l)
{
    exm_sum_f64 e;
    e.high = y * l.high;
    e.low = EXM_FMA_F64(y, l.low, exm_product_error_f64(y, l.high, e.high));
    e.high = l.high == 0 ? 0.0 : e.high;
    e.low = l.high == 0 ? 0.0 : e.low;
    return e;
}

EXM_INLINE exm_sum_f64 exm_power_product_less_f64(double y, exm_sum_f64 l)
{
    double less = y - 1.0;
    exm_sum_f64 e = exm_power_product_f64(less, l);
    e.low = l.high == 0 ? 0.0 : EXM_FMA_F64(exm_sum_error_f64(y, -1.0, less), l.high, e.low);
    return e;
}

/* exp(e.high + e.low) as in exm_exp, the rounding errors of r and of 1 + r kept: exact powers come out exact. */
EXM_INLINE double exm_power_exp_f64(exm_sum_f64 e)
{
    double shifted = EXM_FMA_F64(e.high, EXM_LOG2E_F64, EXM_SHIFTER_F64), k = shifted - EXM_SHIFTER_F64;
    double a = EXM_FMA_F64(k, -EXM_LN2HI_F64, e.high), t = EXM_FMA_F64(k, EXM_LN2LO_F64, -e.low);
    double r = a - t, low = (a - r) - t, r2 = r * r, p0, p1;
    p0 = EXM_H5_F64(r2, 0.16666666666666413, 0.008333333333485736, 0.00019841269541749084,
        2.7557542120428157e-06, 2.501762071015701e-08);
    p1 = EXM_H4_F64(r2, 0.041666666666514494, 0.0013888888948192198, 2.48014880250151e-05,
        2.763215354708664e-07);
    p0 = EXM_FMA_F64(p1, r, p0);
    low = EXM_FMA_F64(r2, EXM_FMA_F64(p0, r, 0.5000000000000012), low);
    a = 1.0 + r;
    a += (r - (a - 1.0)) + low;
    a = exm_scale_f64(a, exm_bits_f64(shifted));
    a = e.high >= 760.0 ? __builtin_inf() : a;
    return e.high <= -760.0 ? 0.0 : a;
}

/* 0.83 ULP. */
EXM_INLINE double exm_power_f64(double x, double y)
{
    exm_sum_f64 l = exm_power_log_any_f64(x);
    return exm_power_special_f64(x, y, exm_power_exp_f64(exm_power_product_f64(y, l)));
}

/* float32: 2^(y*log2|x|), the product in double, which costs twice, as is what needs the digits of it.
 * x = 2^k*(1 + f), log2(1 + f) = f*p(f) of degree 12 (fit 2^-35), the terms from f^5 on in float32; the bias undoes
 * SUBSCALE. */
EXM_INLINE double exm_power_log_biased_f32(float x, int32_t bias)
{
    uint32_t u = (exm_bits_f32(x) & 0x7fffffffu) + (EXM_ONEBITS_F32 - EXM_SQRTHALFBITS_F32);
    int32_t k = (int32_t)(u >> EXM_MBITS_F32) - bias;
    float f = exm_from_bits_f32((u & EXM_MMASK_F32) + EXM_SQRTHALFBITS_F32) - 1.0f, f2 = f * f, p0, p1;
    double d = (double)f, d2 = d * d, p, p2;
    p0 = EXM_H4_F32(f2, -0.240453169f, -0.180300459f, -0.143158495f, -0.142829761f);
    p1 = EXM_H4_F32(f2, 0.206175357f, 0.158769727f, 0.144750819f, 0.0773548409f);
    p2 = EXM_FMA_F64((double)EXM_FMA_F32(p1, f, p0), d, 0.2885372935981156);
    p2 = EXM_FMA_F64(p2, d2, EXM_FMA_F64(-0.360673674834425, d, 0.48089836139359393));
    p = EXM_FMA_F64(-0.7213475208686866, d, 1.4426950408687096);
    return EXM_FMA_F64(d, EXM_FMA_F64(p2, d2, p), (double)k);
}

EXM_INLINE double exm_power_log_f32(float x) { return exm_power_log_biased_f32(x, 127); }

EXM_INLINE double exm_power_log_any_f32(float x)
{
    float a = exm_abs_f32(x);
    int small = a < EXM_MINNORMAL_F32;
    double inf = __builtin_inf(), l = exm_power_log_biased_f32(small ? a * EXM_SUBSCALE_F32 : a, small ? 150 : 127);
    l = a > 0 ? l : -inf;
    return a < __builtin_inff() ? l : inf;
}

EXM_INLINE double exm_power_product_f32(double y, double l) { return l == 0 ? 0.0 : y * l; }

/* 2^e = 2^k*(1 + r*p(r)), p of degree 5 (fit 2^-28). */
EXM_INLINE float exm_power_exp_f32(double e)
{
    double shifted = e + EXM_SHIFTER_F64;
    float r = (float)(e - (shifted - EXM_SHIFTER_F64)), p;
    {
        float r2 = r * r, p0, p1;
        p0 = EXM_H3_F32(r2, 0.693147182f, 0.0555035882f, 0.00133913034f);
        p1 = EXM_H3_F32(r2, 0.240226448f, 0.00961883366f, 0.000152413137f);
        p = EXM_FMA_F32(p1, r, p0);
    }
    p = exm_scale_f32(EXM_FMA_F32(r, p, 1.0f), (uint32_t)exm_bits_f64(shifted));
    p = e > 200.0 ? __builtin_inff() : p;
    return e < -200.0 ? 0.0f : p;
}

/* 0.51 ULP. */
EXM_INLINE float exm_power_f32(float x, float y)
{
    double e = exm_power_product_f32((double)y, exm_power_log_any_f32(x));
    return exm_power_special_f32(x, y, exm_power_exp_f32(e));
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
EXM_OVERLOAD1(log_usual)
EXM_OVERLOAD1(log1p_usual)
EXM_OVERLOAD1(log2_usual)
EXM_OVERLOAD1(log10_usual)
EXM_OVERLOAD1(sin)
EXM_OVERLOAD1(cos)
EXM_OVERLOAD1(tanh)
EXM_OVERLOAD1(erf)
EXM_OVERLOAD1(sigmoid)
EXM_OVERLOAD1(softplus)
EXM_OVERLOAD1(softplus_tail)
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
EXM_OVERLOAD2(expm1_near_backward)
EXM_OVERLOAD2(softplus_near_backward)
EXM_OVERLOAD2(swish_near_backward)
EXM_OVERLOAD2(mish_near_backward)
EXM_OVERLOAD2(gelu_near_backward)
EXM_OVERLOAD2(gelu_tanh_near_backward)
EXM_OVERLOAD2(power)
EXM_OVERLOAD2(elu)
EXM_OVERLOAD2(elu_grad)
EXM_INLINE int exm_power_is_rare(float x, float y) { return exm_power_is_rare_f32(x, y); }
EXM_INLINE int exm_power_is_rare(double x, double y) { return exm_power_is_rare_f64(x, y); }
EXM_INLINE int exm_power_is_unusual(float x, float y) { return exm_power_is_unusual_f32(x, y); }
EXM_INLINE int exm_power_is_unusual(double x, double y) { return exm_power_is_unusual_f64(x, y); }
EXM_INLINE float exm_power_special(float x, float y, float magnitude) { return exm_power_special_f32(x, y, magnitude); }
EXM_INLINE double exm_power_special(double x, double y, double magnitude)
{
    return exm_power_special_f64(x, y, magnitude);
}
EXM_INLINE int exm_log_is_rare(float x) { return exm_log_is_rare_f32(x); }
EXM_INLINE int exm_log_is_rare(double x) { return exm_log_is_rare_f64(x); }
EXM_INLINE int exm_log1p_is_rare(float x) { return exm_log1p_is_rare_f32(x); }
EXM_INLINE int exm_log1p_is_rare(double x) { return exm_log1p_is_rare_f64(x); }
EXM_INLINE int exm_exp_is_far(float x) { return exm_exp_is_far_f32(x); }
EXM_INLINE int exm_exp_is_far(double x) { return exm_exp_is_far_f64(x); }
EXM_INLINE int exm_gelu_is_far(float x) { return exm_gelu_is_far_f32(x); }
EXM_INLINE int exm_gelu_is_far(double x) { return exm_gelu_is_far_f64(x); }
EXM_INLINE int exm_gelu_tanh_is_far(float x) { return exm_gelu_tanh_is_far_f32(x); }
EXM_INLINE int exm_gelu_tanh_is_far(double x) { return exm_gelu_tanh_is_far_f64(x); }
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
#define exm_log_usual(x) EXM_PICK(x, log_usual)(x)
#define exm_log1p_usual(x) EXM_PICK(x, log1p_usual)(x)
#define exm_log2_usual(x) EXM_PICK(x, log2_usual)(x)
#define exm_log10_usual(x) EXM_PICK(x, log10_usual)(x)
#define exm_log_is_rare(x) EXM_PICK(x, log_is_rare)(x)
#define exm_log1p_is_rare(x) EXM_PICK(x, log1p_is_rare)(x)
#define exm_exp_is_far(x) EXM_PICK(x, exp_is_far)(x)
#define exm_gelu_is_far(x) EXM_PICK(x, gelu_is_far)(x)
#define exm_gelu_tanh_is_far(x) EXM_PICK(x, gelu_tanh_is_far)(x)
#define exm_sin(x) EXM_PICK(x, sin)(x)
#define exm_cos(x) EXM_PICK(x, cos)(x)
#define exm_tanh(x) EXM_PICK(x, tanh)(x)
#define exm_erf(x) EXM_PICK(x, erf)(x)
#define exm_sigmoid(x) EXM_PICK(x, sigmoid)(x)
#define exm_softplus(x) EXM_PICK(x, softplus)(x)
#define exm_softplus_tail(x) EXM_PICK(x, softplus_tail)(x)
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
#define exm_expm1_near_backward(g, x) EXM_PICK((g) * (x), expm1_near_backward)(g, x)
#define exm_softplus_near_backward(g, x) EXM_PICK((g) * (x), softplus_near_backward)(g, x)
#define exm_swish_near_backward(g, x) EXM_PICK((g) * (x), swish_near_backward)(g, x)
#define exm_mish_near_backward(g, x) EXM_PICK((g) * (x), mish_near_backward)(g, x)
#define exm_gelu_near_backward(g, x) EXM_PICK((g) * (x), gelu_near_backward)(g, x)
#define exm_gelu_tanh_near_backward(g, x) EXM_PICK((g) * (x), gelu_tanh_near_backward)(g, x)
#define exm_power(x, y) EXM_PICK((x) * (y), power)(x, y)
#define exm_power_is_rare(x, y) EXM_PICK((x) * (y), power_is_rare)(x, y)
#define exm_power_is_unusual(x, y) EXM_PICK((x) * (y), power_is_unusual)(x, y)
#define exm_power_special(x, y, magnitude) EXM_PICK((x) * (y), power_special)(x, y, magnitude)
#define exm_elu(x, alpha) EXM_PICK((x) * (alpha), elu)(x, alpha)
#define exm_elu_grad(x, alpha) EXM_PICK((x) * (alpha), elu_grad)(x, alpha)
#define exm_elu_backward(g, x, alpha) EXM_PICK((g) * (x) * (alpha), elu_backward)(g, x, alpha)
#endif

#endif
