/* Floor division and modulo of floats, exactly as NumPy gives them, in a form that vectorises.

   The remainder of the truncated quotient, fmod(a, b), is always representable. While the quotient
   stays below 2^28 (float) or 2^52 (double) it is found without a loop: t = trunc(a/b) is the whole
   part or one more, a − t·b is then exact (in double for float, with the product's rounding error
   for double), and one correction by b makes up for the one more. Other quotients, zero divisors,
   infinities and NaN are rare: ex_quotient_is_rare tells, and fmod of the C library does them. */
#ifndef EXTENSOR_DIVISION_H
#define EXTENSOR_DIVISION_H

#include <math.h>

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define EXD_PRODUCT_ERROR(a, b, p) __builtin_fma((a), (b), -(p))
#else
/* Dekker's product: the halves of 26 bits multiply without rounding. */
static inline double exd_high(double x) { double c = 134217729.0 * x; return c - (c - x); }
static inline double exd_product_error(double a, double b, double p) {
    double ah = exd_high(a), al = a - ah, bh = exd_high(b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}
#define EXD_PRODUCT_ERROR(a, b, p) exd_product_error((a), (b), (p))
#endif

static inline int ex_quotient_is_rare_f32(float a, float b) {
    double q = (double)a / (double)b;
    return !((fabs(q) < 268435456.0) & (fabsf(b) < INFINITY));
}

static inline float ex_fmod_f32(float a, float b) {
    double x = a, y = b, t = trunc(x / y), r = x - t * y;
    double step = (x < 0) == (y < 0) ? y : -y;      /* has the sign of a */
    r = (r != 0) & ((r < 0) != (x < 0)) ? r + step : r;
    return (float)r;
}

static inline int ex_quotient_is_rare_f64(double a, double b) {
    /* Dekker's halves overflow beyond 2^995 and lose bits below 2^-968: leave those to fmod, too. */
    double q = a / b, size = fabs(b);
    return !((fabs(q) < 4503599627370496.0) & (size < 1e290) & (size > 1e-270) & (fabs(a) < 1e290));
}

static inline double ex_fmod_f64(double a, double b) {
    double t = trunc(a / b), p = t * b, e = EXD_PRODUCT_ERROR(t, b, p), r = (a - p) - e;
    double step = (a < 0) == (b < 0) ? b : -b;
    return (r != 0) & ((r < 0) != (a < 0)) ? r + step : r;
}

/* From the remainder on, NumPy's own steps in the operands' precision. A zero divisor leaves NaN as
   the remainder and a/b as the quotient. */
#define EXD_DEFINE(T, SUFFIX, FLOOR, COPYSIGN)                                                         \
    static inline T ex_modulo_##SUFFIX(T rest, T b) {                                                  \
        T moved = (rest < 0) != (b < 0) ? rest + b : rest;                                             \
        return rest == 0 ? COPYSIGN((T)0, b) : rest == rest ? moved : rest;                            \
    }                                                                                                  \
    static inline T ex_floor_divide_##SUFFIX(T a, T b, T rest) {                                       \
        T quotient = (a - rest) / b, bare = a / b, whole;                                              \
        quotient = (rest != 0) & ((rest < 0) != (b < 0)) ? quotient - 1 : quotient;                    \
        whole = FLOOR(quotient);                                                                       \
        whole = quotient - whole > (T)0.5 ? whole + 1 : whole;                                         \
        whole = quotient == 0 ? COPYSIGN((T)0, bare) : whole;                                          \
        return b == 0 ? bare : whole;                                                                  \
    }

EXD_DEFINE(float, f32, floorf, copysignf)
EXD_DEFINE(double, f64, floor, copysign)

#endif
