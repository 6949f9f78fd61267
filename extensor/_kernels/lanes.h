/* Sum, maximum, minimum and search of contiguous values in lanes, on compiler vector types.
 *
 * Left to itself the compiler keeps the lanes of a short row in memory and adds its last elements
 * one by one, which takes several times as long as the row. Here the last elements are read as one
 * whole vector that overlaps the one before.
 *
 * The file includes itself once per element type. Lane i holds the elements i, i + lanes, ...;
 * the lanes are joined as a tree: i with i + half. */
#ifndef EXL_REAL

#ifndef EX_LANES_H
#define EX_LANES_H

#include <stddef.h>
#include <stdint.h>

#define EXL_INLINE static inline __attribute__((always_inline, unused))
#define EXL_FUNC static __attribute__((noinline, unused))
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__)
#define EXL_BYTES 64
#define EXL_CPU(f, type) _mm512_##f##_##type
#define EXL_HITS(a, b, type) _mm512_cmp_##type##_mask((a), (b), _CMP_EQ_OQ)
#elif defined(__AVX2__)
#define EXL_BYTES 32
#define EXL_CPU(f, type) _mm256_##f##_##type
#define EXL_HITS(a, b, type) _mm256_movemask_##type(_mm256_cmp_##type((a), (b), _CMP_EQ_OQ))
#else
#define EXL_BYTES 16
#define EXL_CPU(f, type) _mm_##f##_##type
#define EXL_HITS(a, b, type) _mm_movemask_##type(_mm_cmpeq_##type((a), (b)))
#endif
#if defined(__clang__)
#define EXL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define EXL_UNROLL _Pragma("GCC unroll 32")
#endif

#if defined(__clang__) || __GNUC__ >= 12
#define EXL_SHUFFLE(v, ...) __builtin_shufflevector((v), (v), __VA_ARGS__)
#else
#define EXL_SHUFFLE(v, ...) __builtin_shuffle((v), (MASK){__VA_ARGS__})
#endif

static const int32_t exl_place_f32[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const int64_t exl_place_f64[8] = {0, 1, 2, 3, 4, 5, 6, 7};

#define EXL_REAL float
#define EXL_WORD int32_t
#define EXL_W (EXL_BYTES / 4)
#define EXL_WIDE 64
#define EXL_OP(f) EXL_CPU(f, ps)
#define EXL_EQUAL(a, b) EXL_HITS(a, b, ps)
#define EXL_NAME(f) f##_f32
#include "lanes.h"
#undef EXL_REAL
#undef EXL_WORD
#undef EXL_W
#undef EXL_WIDE
#undef EXL_OP
#undef EXL_EQUAL
#undef EXL_NAME

#define EXL_REAL double
#define EXL_WORD int64_t
#define EXL_W (EXL_BYTES / 8)
#define EXL_WIDE 32
#define EXL_OP(f) EXL_CPU(f, pd)
#define EXL_EQUAL(a, b) EXL_HITS(a, b, pd)
#define EXL_NAME(f) f##_f64
#include "lanes.h"
#undef EXL_REAL
#undef EXL_WORD
#undef EXL_W
#undef EXL_WIDE
#undef EXL_OP
#undef EXL_EQUAL
#undef EXL_NAME

#endif
#else

#define W EXL_W
#define VEC EXL_NAME(exl_vec)
#define LOOSE EXL_NAME(exl_loose)
#define MASK EXL_NAME(exl_mask)
#define LOAD(p) (*(const LOOSE *)(p))

/* The lanes moved down by half of those that are left. */
#if EXL_W == 16
#define DOWN(v, half) \
    ((half) == 8   ? EXL_SHUFFLE(v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15) \
     : (half) == 4 ? EXL_SHUFFLE(v, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7) \
     : (half) == 2 ? EXL_SHUFFLE(v, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3) \
                   : EXL_SHUFFLE(v, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
#elif EXL_W == 8
#define DOWN(v, half) \
    ((half) == 4   ? EXL_SHUFFLE(v, 4, 5, 6, 7, 4, 5, 6, 7) \
     : (half) == 2 ? EXL_SHUFFLE(v, 2, 3, 2, 3, 2, 3, 2, 3) \
                   : EXL_SHUFFLE(v, 1, 1, 1, 1, 1, 1, 1, 1))
#elif EXL_W == 4
#define DOWN(v, half) ((half) == 2 ? EXL_SHUFFLE(v, 2, 3, 2, 3) : EXL_SHUFFLE(v, 1, 1, 1, 1))
#else
#define DOWN(v, half) EXL_SHUFFLE(v, 1, 1)
#endif

/* The greater (or lesser) of two; b where one is NaN. */
#if defined(__x86_64__)
#define BETTER(a, b) (least ? EXL_OP(min)(a, b) : EXL_OP(max)(a, b))
#else
#define PICK(mask, a, b) ((VEC)(((MASK)(a) & (mask)) | ((MASK)(b) & ~(mask))))
#define BETTER(a, b) (least ? PICK((a) < (b), a, b) : PICK((a) > (b), a, b))
#endif

typedef EXL_REAL VEC __attribute__((vector_size(EXL_BYTES)));
typedef EXL_REAL LOOSE __attribute__((vector_size(EXL_BYTES), aligned(sizeof(EXL_REAL)), may_alias));
typedef EXL_WORD MASK __attribute__((vector_size(EXL_BYTES)));
typedef EXL_WORD EXL_NAME(exl_loose_mask) __attribute__((vector_size(EXL_BYTES), aligned(sizeof(EXL_REAL)), may_alias));

/* The last vectors of n values, with zeros where an element has been taken before. */
#define TAIL(v, i) ((VEC)((MASK)(v) & (place >= (EXL_WORD)(start + lanes - n - (i) * W))))
#define PLACES (*(const EXL_NAME(exl_loose_mask) *)EXL_NAME(exl_place))

/* n >= lanes values, at most 16 in a lane. */
EXL_INLINE EXL_REAL EXL_NAME(exl_sum)(const EXL_REAL *x, ptrdiff_t n, const int lanes)
{
    VEC lane[EXL_WIDE / W], zero = {0};
    const int count = lanes / W;
    ptrdiff_t start;
    int i, half;
    EXL_UNROLL for (i = 0; i < count; i++) lane[i] = LOAD(x + i * W) + zero;
    for (start = lanes; start + lanes <= n; start += lanes)
        EXL_UNROLL for (i = 0; i < count; i++) lane[i] += LOAD(x + start + i * W);
    if (start < n) {
        const MASK place = PLACES;
        EXL_UNROLL for (i = 0; i < count; i++) lane[i] += TAIL(LOAD(x + n - lanes + i * W), i);
    }
    EXL_UNROLL for (half = count / 2; half > 0; half /= 2)
        EXL_UNROLL for (i = 0; i < half; i++) lane[i] += lane[i + half];
    EXL_UNROLL for (half = W / 2; half > 0; half /= 2) lane[0] += DOWN(lane[0], half);
    return lane[0][0];
}

/* The sum of d * e and (plain) of d, where d = x - shift, and e is d itself or other values. */
EXL_INLINE EXL_REAL EXL_NAME(exl_products)(
    const EXL_REAL *x, const EXL_REAL *other, EXL_REAL shift, ptrdiff_t n, const int lanes, EXL_REAL *plain)
{
    VEC lane[EXL_WIDE / W], sum[EXL_WIDE / W], d, zero = {0};
    const int count = lanes / W;
    ptrdiff_t start;
    int i, half;
#define TAKE(from, keep) \
    EXL_UNROLL for (i = 0; i < count; i++) { \
        d = keep(LOAD(x + (from) + i * W) - shift, i); \
        sum[i] += d; \
        if (other) lane[i] += d * keep(LOAD(other + (from) + i * W), i); \
        else lane[i] += d * d; \
    }
#define ALL(v, i) ((VEC)(v))
    EXL_UNROLL for (i = 0; i < count; i++) lane[i] = sum[i] = zero;
    for (start = 0; start + lanes <= n; start += lanes) TAKE(start, ALL)
    if (start < n) {
        const MASK place = PLACES;
        TAKE(n - lanes, TAIL)
    }
#undef TAKE
#undef ALL
    EXL_UNROLL for (half = count / 2; half > 0; half /= 2)
        EXL_UNROLL for (i = 0; i < half; i++) {
            lane[i] += lane[i + half];
            sum[i] += sum[i + half];
        }
    EXL_UNROLL for (half = W / 2; half > 0; half /= 2) {
        lane[0] += DOWN(lane[0], half);
        sum[0] += DOWN(sum[0], half);
    }
    *plain = sum[0][0];
    return lane[0][0];
}

/* The maximum (or minimum) of n >= lanes values. Plain comparisons, which the CPU has an
 * instruction for, lose a NaN; *probe is NaN where there is one (or where infinities of both signs
 * were added up). */
EXL_INLINE EXL_REAL EXL_NAME(exl_extreme)(
    const EXL_REAL *x, ptrdiff_t n, const int lanes, const int least, EXL_REAL *probe)
{
    VEC lane[EXL_WIDE / W], sum[EXL_WIDE / W];
    const int count = lanes / W;
    ptrdiff_t start;
    int i, half;
    EXL_UNROLL for (i = 0; i < count; i++) lane[i] = sum[i] = LOAD(x + i * W);
#define TAKE(from) \
    EXL_UNROLL for (i = 0; i < count; i++) { \
        VEC value = LOAD(x + (from) + i * W); \
        lane[i] = BETTER(value, lane[i]); \
        sum[i] += value; \
    }
    for (start = lanes; start + lanes <= n; start += lanes) TAKE(start)
    if (start < n) TAKE(n - lanes)
#undef TAKE
    EXL_UNROLL for (half = count / 2; half > 0; half /= 2)
        EXL_UNROLL for (i = 0; i < half; i++) {
            lane[i] = BETTER(lane[i + half], lane[i]);
            sum[i] += sum[i + half];
        }
    EXL_UNROLL for (half = W / 2; half > 0; half /= 2) {
        VEC down = DOWN(lane[0], half);
        lane[0] = BETTER(down, lane[0]);
        sum[0] += DOWN(sum[0], half);
    }
    *probe = sum[0][0];
    return lane[0][0];
}

/* 17 elements and more; at most 16 * EXL_WIDE, so that no lane adds up more than 16. */
EXL_FUNC EXL_REAL EXL_NAME(ex_lane_sum)(const EXL_REAL *x, ptrdiff_t n)
{
    return n <= 256 ? EXL_NAME(exl_sum)(x, n, 16) : EXL_NAME(exl_sum)(x, n, EXL_WIDE);
}

/* The sums of (x - shift)^2 and of x - shift; n as above. */
EXL_FUNC EXL_REAL EXL_NAME(ex_lane_squares)(const EXL_REAL *x, EXL_REAL shift, ptrdiff_t n, EXL_REAL *plain)
{
    return n <= 256 ? EXL_NAME(exl_products)(x, NULL, shift, n, 16, plain)
                    : EXL_NAME(exl_products)(x, NULL, shift, n, EXL_WIDE / 2, plain);
}

/* The sum of x * other; n as above. */
EXL_FUNC EXL_REAL EXL_NAME(ex_lane_products)(const EXL_REAL *x, const EXL_REAL *other, ptrdiff_t n)
{
    EXL_REAL unused;
    return n <= 256 ? EXL_NAME(exl_products)(x, other, 0, n, 16, &unused)
                    : EXL_NAME(exl_products)(x, other, 0, n, EXL_WIDE / 2, &unused);
}

/* 17 elements and more. */
EXL_FUNC EXL_REAL EXL_NAME(ex_lane_extreme)(const EXL_REAL *x, ptrdiff_t n, int least, EXL_REAL *probe)
{
    if (n < 128)
        return least ? EXL_NAME(exl_extreme)(x, n, 16, 1, probe) : EXL_NAME(exl_extreme)(x, n, 16, 0, probe);
    return least ? EXL_NAME(exl_extreme)(x, n, 4 * W, 1, probe) : EXL_NAME(exl_extreme)(x, n, 4 * W, 0, probe);
}

/* Columns: the sums of (x - shift)^2 and of x - shift down some rows, in registers. */
EXL_INLINE void EXL_NAME(exl_columns)(
    const EXL_REAL *x, ptrdiff_t stride, ptrdiff_t rows, const EXL_REAL *shift, EXL_REAL *squares,
    EXL_REAL *plain, const int count)
{
    VEC lane[4], sum[4], d, zero = {0};
    ptrdiff_t j;
    int i;
    EXL_UNROLL for (i = 0; i < count; i++) lane[i] = sum[i] = zero;
    for (j = 0; j < rows; j++)
        EXL_UNROLL for (i = 0; i < count; i++) {
            d = LOAD(x + j * stride + i * W) - LOAD(shift + i * W);
            sum[i] += d;
            lane[i] += d * d;
        }
    EXL_UNROLL for (i = 0; i < count; i++) {
        *(LOOSE *)(squares + i * W) = lane[i];
        *(LOOSE *)(plain + i * W) = sum[i];
    }
}

EXL_FUNC void EXL_NAME(ex_column_squares)(
    const EXL_REAL *x, ptrdiff_t stride, ptrdiff_t rows, const EXL_REAL *shift, ptrdiff_t width,
    EXL_REAL *squares, EXL_REAL *plain)
{
    ptrdiff_t c = 0, j;
    for (; c + 4 * W <= width; c += 4 * W)
        EXL_NAME(exl_columns)(x + c, stride, rows, shift + c, squares + c, plain + c, 4);
    if (width >= W)
        for (; c < width; c += W) {
            ptrdiff_t at = c + W <= width ? c : width - W;
            EXL_NAME(exl_columns)(x + at, stride, rows, shift + at, squares + at, plain + at, 1);
        }
    for (; c < width; c++) {
        squares[c] = plain[c] = 0;
        for (j = 0; j < rows; j++) {
            EXL_REAL d = x[j * stride + c] - shift[c];
            plain[c] += d;
            squares[c] += d * d;
        }
    }
}

/* The first place of a value; n where there is none. */
EXL_FUNC ptrdiff_t EXL_NAME(ex_find)(const EXL_REAL *x, ptrdiff_t n, EXL_REAL value)
{
    ptrdiff_t start = 0;
#if defined(__x86_64__)
    VEC zero = {0}, wanted = zero + value;
    for (; start + 4 * W <= n; start += 4 * W)
        if (EXL_EQUAL(LOAD(x + start), wanted) | EXL_EQUAL(LOAD(x + start + W), wanted)
            | EXL_EQUAL(LOAD(x + start + 2 * W), wanted) | EXL_EQUAL(LOAD(x + start + 3 * W), wanted))
            break;
    if (n >= W)
        for (; start < n; start += W) {
            ptrdiff_t from = start + W <= n ? start : n - W;
            unsigned hits = EXL_EQUAL(LOAD(x + from), wanted);
            if (hits) return from + __builtin_ctz(hits);
        }
#endif
    while (start < n && !(x[start] == value)) start++;
    return start < n ? start : n;
}

#undef W
#undef VEC
#undef LOOSE
#undef MASK
#undef LOAD
#undef DOWN
#undef TAIL
#undef PLACES
#undef BETTER
#undef PICK

#endif
