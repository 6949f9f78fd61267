/* float16 to float32 and back, over contiguous runs.

   Hardware conversion where the CPU level has it (v3 and v4), branch-free integer code that the
   compiler vectorises elsewhere. Rounding is to nearest even; subnormals, infinities and NaN are
   kept (a NaN becomes quiet). Both ways give the same bits on every level. */
#ifndef EXTENSOR_HALF_H
#define EXTENSOR_HALF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

static inline float ex_half_value(uint16_t h) {
    /* Exponent and mantissa moved into place are the value times 2^-112, subnormals included. */
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13, scaled_bits;
    uint32_t magic_bits = 0x77800000u; /* 2^112 */
    float scaled, magic, value;
    memcpy(&scaled, &rest, 4);
    memcpy(&magic, &magic_bits, 4);
    value = scaled * magic;
    memcpy(&scaled_bits, &value, 4);
    /* Infinity and NaN had the largest exponent: give them float32's; NaN turns quiet. */
    scaled_bits = (h & 0x7fffu) >= 0x7c00u ? (rest | 0x7f800000u) : scaled_bits;
    scaled_bits |= (h & 0x7fffu) > 0x7c00u ? 0x00400000u : 0u;
    scaled_bits |= sign;
    memcpy(&value, &scaled_bits, 4);
    return value;
}

static inline uint16_t ex_half_bits(float x) {
    uint32_t bits, sign, magnitude, normal, small_bits, result;
    uint32_t magic_bits = 0x3f000000u; /* 0.5: its last mantissa bit is worth 2^-24 */
    float magnitude_value, magic, shifted;
    memcpy(&bits, &x, 4);
    sign = bits & 0x80000000u;
    magnitude = bits ^ sign;
    /* Normal results: rebias the exponent and round to nearest even in the integer. */
    normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
    /* Subnormal results: adding 0.5 lets the float adder round at 2^-24. */
    memcpy(&magnitude_value, &magnitude, 4);
    memcpy(&magic, &magic_bits, 4);
    shifted = magnitude_value + magic;
    memcpy(&small_bits, &shifted, 4);
    result = magnitude < 0x38800000u ? small_bits - magic_bits : normal; /* below 2^-14 */
    result = magnitude >= 0x477ff000u ? 0x7c00u : result;                /* 65520 and above */
    result = magnitude > 0x7f800000u ? (0x7e00u | ((magnitude >> 13) & 0x3ffu)) : result;
    return (uint16_t)(result | (sign >> 16));
}

static inline void ex_half_to_float(const uint16_t *x, float *y, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++) y[i] = ex_half_value(x[i]);
}

static inline void ex_float_to_half(const float *x, uint16_t *y, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), 0));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
#endif
    for (; i < n; i++) y[i] = ex_half_bits(x[i]);
}

#endif
