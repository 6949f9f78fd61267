/* The references of accuracy.py and the comparison of the library's results with them.
 *
 * For every function <f> two entry points,
 *     void check_<f>_f32(const float *x, const float *y, const float *got, int64_t n, report *r)
 *     void check_<f>_f64(const double *x, const double *y, const double *got, int64_t n, report *r)
 * (y is the second argument of power and is not read elsewhere). Results in float are compared with formulas in
 * double, whose errors are some 1e-8 of a float's last place; results in double with formulas in 113 bits, by the
 * C library's _Float128 functions. The formulas keep their relative accuracy in every tail.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 26) || !__HAVE_FLOAT128
#error "the float64 references need the _Float128 functions of glibc 2.26 or newer"
#endif

typedef _Float128 quad;

typedef struct {
    int64_t special; /* references that are NaN, infinite, zero or a logarithm's exact integer: compared exactly */
    int64_t wrong;   /* results that differ from those, NaNs and zeros of the wrong sign elsewhere */
    double worst, x, y;
    double wrong_x, wrong_y, wrong_got, wrong_want; /* the first wrong one */
} report;

/* ------------------------------------------------------------------ references, once for both types */

#define REFERENCES(T, S, exp, expm1, log, log1p, log2, log10, sin, cos, tanh, erf, erfc, pow, isinf)                \
    static inline T exp_##S(T x) { return exp(x); }                                                                 \
    static inline T expm1_##S(T x) { return expm1(x); }                                                             \
    static inline T log_##S(T x) { return log(x); }                                                                 \
    static inline T log1p_##S(T x) { return log1p(x); }                                                             \
    static inline T log2_##S(T x) { return log2(x); }                                                               \
    static inline T log10_##S(T x) { return log10(x); }                                                             \
    static inline T sin_##S(T x) { return sin(x); }                                                                 \
    static inline T cos_##S(T x) { return cos(x); }                                                                 \
    static inline T tanh_##S(T x) { return tanh(x); }                                                               \
    static inline T erf_##S(T x) { return erf(x); }                                                                 \
    static inline T power_##S(T x, T y) { return pow(x, y); }                                                       \
    static inline T sigmoid_##S(T x)                                                                                \
    {                                                                                                               \
        T e = exp(x < 0 ? x : -x);                                                                                  \
        return (x < 0 ? e : 1) / (1 + e);                                                                           \
    }                                                                                                               \
    static inline T softplus_##S(T x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }                        \
    static inline T elu_##S(T x) { return x > 0 ? x : expm1(x); }                                                   \
    static inline T elu_scaled_##S(T x) { return x > 0 ? x : (T)1.875 * expm1(x); }                                 \
    /* -0 at -inf, the limit */                                                                                     \
    static inline T swish_##S(T x) { return isinf(x) && x < 0 ? -(T)0 : x * sigmoid_##S(x); }                       \
    static inline T mish_##S(T x) { return isinf(x) && x < 0 ? -(T)0 : x * tanh(softplus_##S(x)); }                 \
    static inline T gelu_##S(T x)                                                                                   \
    {                                                                                                               \
        const T sqrt_half = (T)0.70710678118654752440084436210484903928F128;                                        \
        return isinf(x) && x < 0 ? -(T)0 : x * ((T)0.5 * erfc(-x * sqrt_half));                                     \
    }                                                                                                               \
    static inline T gelu_argument_##S(T x)                                                                          \
    {                                                                                                               \
        const T c1 = (T)1.59576912160573071175978423973752747F128; /* 2*sqrt(2/pi) */                               \
        return c1 * (x + (T)0.044715F128 * x * x * x);                                                              \
    }                                                                                                               \
    static inline T gelu_tanh_##S(T x)                                                                              \
    {                                                                                                               \
        return isinf(x) && x < 0 ? -(T)0 : x * sigmoid_##S(gelu_argument_##S(x));                                   \
    }

REFERENCES(double, f64, exp, expm1, log, log1p, log2, log10, sin, cos, tanh, erf, erfc, pow, isinf)
REFERENCES(quad, f128, expf128, expm1f128, logf128, log1pf128, log2f128, log10f128, sinf128, cosf128, tanhf128,
           erff128, erfcf128, powf128, isinf)

/* ------------------------------------------------------------------ comparison */

static void note_wrong(report *r, double x, double y, double got, double want)
{
    if (r->wrong++ == 0) {
        r->wrong_x = x;
        r->wrong_y = y;
        r->wrong_got = got;
        r->wrong_want = want;
    }
}

static inline void note_error(report *r, double x, double y, double error)
{
    if (error > r->worst) {
        r->worst = error;
        r->x = x;
        r->y = y;
    }
}

/* How a result is judged.
 *   ULPS       by the error in units in the last place
 *   INTEGERS   the same, and where the reference is an integer the result must be it
 *   ARGUMENT   by the error over (8 + 4*|v|)*u*|reference|, v the argument of gelu's tanh form; u*|reference| is at
 *              least half of the smallest number
 * An infinite result counts as the power of two above the largest number where the reference is below that. */
enum { ULPS, INTEGERS, ARGUMENT };

static inline void compare_f32(report *r, int judge, float x, float y, float got, double want, double v)
{
    uint64_t bits;
    double magnitude = fabs(want), value = got, per_ulp, error;
    if (!(magnitude < 0x1p128) || want == 0 || (judge == INTEGERS && want == rint(want))) {
        int same = want != want ? got != got : (value == want || (magnitude >= 0x1p128 && isinf(got) && value * want > 0));
        r->special++;
        if (!same || (want == 0 && !signbit(value) != !signbit(want)))
            note_wrong(r, x, y, value, want);
        return;
    }
    if (got != got || (got == 0 && !signbit(value) != !signbit(want))) {
        note_wrong(r, x, y, value, want);
        return;
    }
    if (isinf(got))
        value = got > 0 ? 0x1p128 : -0x1p128;
    error = fabs(value - want);
    if (judge == ARGUMENT) {
        double unit = magnitude * 0x1p-24;
        error /= (unit < 0x1p-150 ? 0x1p-150 : unit) * (8 + 4 * fabs(v));
    } else {
        magnitude = magnitude < 0x1p-126 ? 0x1p-126 : magnitude;
        memcpy(&bits, &magnitude, sizeof bits);
        bits = (2069 - (bits >> 52)) << 52; /* 2^(23 - exponent) */
        memcpy(&per_ulp, &bits, sizeof bits);
        error *= per_ulp;
    }
    note_error(r, x, y, error);
}

static inline void compare_f64(report *r, int judge, double x, double y, double got, quad want, quad v)
{
    const quad top = scalbnf128(1, 1024);
    quad magnitude = fabsf128(want), value = got, error;
    if (!(magnitude < top) || want == 0 || (judge == INTEGERS && want == rintf128(want))) {
        int same = want != want ? got != got : (value == want || (magnitude >= top && isinf(got) && value * want > 0));
        r->special++;
        if (!same || (want == 0 && !signbit(got) != !signbit(want)))
            note_wrong(r, x, y, got, (double)want);
        return;
    }
    if (got != got || (got == 0 && !signbit(got) != !signbit(want))) {
        note_wrong(r, x, y, got, (double)want);
        return;
    }
    if (isinf(got))
        value = got > 0 ? top : -top;
    error = fabsf128(value - want);
    if (judge == ARGUMENT) {
        quad unit = scalbnf128(magnitude, -53), smallest = scalbnf128(1, -1075);
        error /= (unit < smallest ? smallest : unit) * (8 + 4 * fabsf128(v));
    } else {
        int exponent = ilogbf128(magnitude);
        error = scalbnf128(error, 52 - (exponent < -1022 ? -1022 : exponent));
    }
    note_error(r, x, y, (double)error);
}

/* ------------------------------------------------------------------ entry points */

#define CHECK(name, judge, ARGUMENT64, ARGUMENT128)                                                                 \
    void check_##name##_f32(const float *x, const float *y, const float *got, int64_t n, report *r)                 \
    {                                                                                                               \
        (void)y;                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                             \
            compare_f32(r, judge, x[i], 0, got[i], name##_f64(x[i]), ARGUMENT64(x[i]));                             \
    }                                                                                                               \
    void check_##name##_f64(const double *x, const double *y, const double *got, int64_t n, report *r)              \
    {                                                                                                               \
        (void)y;                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                             \
            compare_f64(r, judge, x[i], 0, got[i], name##_f128(x[i]), ARGUMENT128(x[i]));                           \
    }
#define NONE(x) 0

CHECK(exp, ULPS, NONE, NONE)
CHECK(expm1, ULPS, NONE, NONE)
CHECK(log, ULPS, NONE, NONE)
CHECK(log1p, ULPS, NONE, NONE)
CHECK(log2, INTEGERS, NONE, NONE)
CHECK(log10, INTEGERS, NONE, NONE)
CHECK(sin, ULPS, NONE, NONE)
CHECK(cos, ULPS, NONE, NONE)
CHECK(tanh, ULPS, NONE, NONE)
CHECK(erf, ULPS, NONE, NONE)
CHECK(sigmoid, ULPS, NONE, NONE)
CHECK(softplus, ULPS, NONE, NONE)
CHECK(elu, ULPS, NONE, NONE)
CHECK(elu_scaled, ULPS, NONE, NONE)
CHECK(swish, ULPS, NONE, NONE)
CHECK(mish, ULPS, NONE, NONE)
CHECK(gelu, ULPS, NONE, NONE)
CHECK(gelu_tanh, ARGUMENT, gelu_argument_f64, gelu_argument_f128)

void check_power_f32(const float *x, const float *y, const float *got, int64_t n, report *r)
{
    for (int64_t i = 0; i < n; i++)
        compare_f32(r, ULPS, x[i], y[i], got[i], power_f64(x[i], y[i]), 0);
}

void check_power_f64(const double *x, const double *y, const double *got, int64_t n, report *r)
{
    for (int64_t i = 0; i < n; i++)
        compare_f64(r, ULPS, x[i], y[i], got[i], power_f128(x[i], y[i]), 0);
}
