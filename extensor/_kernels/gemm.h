/* Matrix product: micro-kernels and packing on compiler vector types.
 *
 * The loops around them (blocking, threads, choice of path) are in matrix.pyx;
 * docs/gemm.md explains both with a drawing.
 *
 * The file includes itself once per element type: the first part holds what is
 * common, the second part (under EX_REAL) is compiled for float and for double.
 *
 * Every path adds the products of one element of C in the order of k, in blocks of
 * EX_KC_*: a block is one chain of fused multiply-adds from zero, the blocks are
 * added in order. An element's bits depend neither on the tile it lies in nor on
 * who computes it. (Rows times a vector, ex_dots, use lanes along k instead;
 * shape and strides alone choose that path.) */
#ifndef EX_REAL

#ifndef EX_GEMM_H
#define EX_GEMM_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "half.h"

/* C[m,n] = A[m,k] B[k,n] + bias[n], or C += ...; strides in elements, any sign, zero
 * allowed for A and B. Batch axes are outermost first; an axis with c_batch 0 is summed
 * into C in index order, as if k were longer (so an empty axis of C needs a c_batch
 * other than 0; where C is empty the caller may as well not call). bias: n contiguous elements of C's dtype
 * or NULL. C must not overlap A, B or bias. threads: the size of the OpenMP team,
 * 1 = no region is opened. */
typedef struct {
    ptrdiff_t m, n, k;
    const void *a, *b;
    void *c;
    const void *bias;
    ptrdiff_t a_row, a_col, b_row, b_col, c_row, c_col;
    int nbatch_axes;
    const ptrdiff_t *batch_shape, *a_batch, *b_batch, *c_batch;
    int accumulate;
    int threads;
} ex_gemm_job;

#define EX_MAX_AXES 64

/* EX_PLAIN_LOOPS asks for the loops that compilers without vector types get. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(EX_PLAIN_LOOPS)
#define EX_GNU 1
#else
#define EX_GNU 0
#endif

#if EX_GNU
#define EX_INLINE static inline __attribute__((always_inline, unused))
#define EX_FUNC static __attribute__((noinline, unused))
#define EX_PREFETCH_WRITE(p) __builtin_prefetch((p), 1, 3)
#define EX_PREFETCH(p) __builtin_prefetch((p), 0, 3)
#define EX_DO_PRAGMA(x) _Pragma(#x)
#if defined(__clang__)
#define EX_UNROLL EX_DO_PRAGMA(clang loop unroll(full))
#else
#define EX_UNROLL EX_DO_PRAGMA(GCC unroll 32)
#endif
#else
#define EX_INLINE static inline
#define EX_FUNC static
#define EX_PREFETCH_WRITE(p) ((void)0)
#define EX_PREFETCH(p) ((void)0)
#define EX_UNROLL
#endif
#if defined(_MSC_VER)
#define EX_RESTRICT __restrict
#else
#define EX_RESTRICT restrict
#endif

#if EX_GNU && defined(__AVX512F__)
#include <immintrin.h>
#define EX_VECTOR_BYTES 64
#elif EX_GNU && defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define EX_VECTOR_BYTES 32
#else
#define EX_VECTOR_BYTES 16
#if EX_GNU && defined(__aarch64__)
#include <arm_neon.h>
#endif
#endif

/* Tiles. MR rows x NV vectors of C are held in registers while k runs; KC steps of k
 * make a block. Measured on one core of a Zen 5 (GF, operands in the caches, peak in
 * brackets), float32 / float64:
 *   64 bytes, FMA, 32 registers [285 / 143]   12 x 2: 284 / 142
 *   32 bytes, FMA, 16 registers [143 / 71.5]   6 x 2: 143 / 71.4   4 x 3: 143 / 71.4   4 x 2: 132 / 66
 *   16 bytes, no FMA, 16 registers [71 / 36]   4 x 3:  54 / 30.1   6 x 2:  51 / 29.9   4 x 2:  47 / 29.2
 * KC: each pass over C costs a read and a write of C, and B's panel (KC x NR) may leave
 * the first-level cache without loss. 1024 cubed, one core, float32, AVX-512:
 * KC 256: 257, 384: 262, 512: 268, 1024: 272 GF. With blocks of 60 rows (matrix.pyx), at
 * 1024 and 2048 cubed: 768: 272 and 266, 1024: 261 and 258. */
#if EX_VECTOR_BYTES == 64
#define EX_MR_F32 12
#define EX_NV_F32 2
#define EX_KC_F32 768
#define EX_MR_F64 12
#define EX_NV_F64 2
#define EX_KC_F64 512
#elif EX_VECTOR_BYTES == 32
#define EX_MR_F32 6
#define EX_NV_F32 2
#define EX_KC_F32 512
#define EX_MR_F64 6
#define EX_NV_F64 2
#define EX_KC_F64 256
#else
#define EX_MR_F32 4
#define EX_NV_F32 3
#define EX_KC_F32 512
#define EX_MR_F64 4
#define EX_NV_F64 3
#define EX_KC_F64 256
#endif
enum { EX_W_F32 = EX_VECTOR_BYTES / 4, EX_W_F64 = EX_VECTOR_BYTES / 8 };
enum { EX_NR_F32 = EX_NV_F32 * EX_W_F32, EX_NR_F64 = EX_NV_F64 * EX_W_F64 };

/* ---- scratch memory ----------------------------------------------------------
 * A few buffers wait in slots that are emptied and filled by atomic exchange: no lock
 * exists that a fork could leave held, and any number of threads may call at once.
 * What does not fit into a slot is freed. */
enum { EX_SLOTS = 4, EX_HEADER = 64 };
#define EX_SLOT_LIMIT ((size_t)64 << 20)

#if EX_GNU
static void *ex_slots[EX_SLOTS];
EX_INLINE void *ex_swap(void **slot, void *value) { return __atomic_exchange_n(slot, value, __ATOMIC_ACQ_REL); }
#define EX_HAVE_SLOTS 1
#else
#define EX_HAVE_SLOTS 0
#endif

/* A block starts with its size and the address malloc gave. */
typedef struct { size_t size; void *origin; } ex_block;

EX_FUNC void *ex_scratch_get(size_t size) {
#if EX_HAVE_SLOTS
    for (int i = 0; i < EX_SLOTS; i++) {
        void *p = ex_swap(&ex_slots[i], NULL);
        if (p == NULL) continue;
        ex_block *block = (ex_block *)((char *)p - EX_HEADER);
        if (block->size >= size) return p;
        free(block->origin);
    }
#endif
    if (size > SIZE_MAX - 2 * EX_HEADER) return NULL;
    char *origin = (char *)malloc(size + 2 * EX_HEADER);
    if (origin == NULL) return NULL;
    char *p = (char *)(((uintptr_t)origin + 2 * EX_HEADER - 1) & ~(uintptr_t)(EX_HEADER - 1));
    ex_block *block = (ex_block *)(p - EX_HEADER);
    block->size = size;
    block->origin = origin;
    return p;
}

EX_FUNC void ex_scratch_put(void *p) {
    if (p == NULL) return;
    ex_block *block = (ex_block *)((char *)p - EX_HEADER);
#if EX_HAVE_SLOTS
    if (block->size <= EX_SLOT_LIMIT)
        for (int i = 0; i < EX_SLOTS; i++) {
            void *empty = NULL;
            if (__atomic_compare_exchange_n(&ex_slots[i], &empty, p, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
        }
#endif
    free(block->origin);
}

/* ---- the two element types ---------------------------------------------------- */
#define EX_JOIN_(a, b) a##_##b
#define EX_JOIN(a, b) EX_JOIN_(a, b)
#define EX_NAME(a) EX_JOIN(a, EX_SUFFIX)

#define EX_REAL float
#define EX_SUFFIX f32
#define EX_SINGLE 1
#include "gemm.h"
#undef EX_REAL
#undef EX_SUFFIX
#undef EX_SINGLE

#define EX_REAL double
#define EX_SUFFIX f64
#define EX_SINGLE 0
#include "gemm.h"
#undef EX_REAL
#undef EX_SUFFIX
#undef EX_SINGLE

/* ---- half precision ------------------------------------------------------------ */
EX_FUNC void ex_halves_to_floats(const uint16_t *s, ptrdiff_t stride, ptrdiff_t n, float *d) {
    if (stride == 1) ex_half_to_float(s, d, n);
    else for (ptrdiff_t i = 0; i < n; i++) d[i] = ex_half_value(s[i * stride]);
}

EX_FUNC void ex_floats_to_halves(const float *s, ptrdiff_t n, uint16_t *d, ptrdiff_t stride) {
    if (stride == 1) ex_float_to_half(s, d, n);
    else for (ptrdiff_t i = 0; i < n; i++) d[i * stride] = ex_half_bits(s[i]);
}

/* ex_pack for halves: 64 steps of k at a time are converted into a small buffer that
 * stays in the first-level cache, and packed from there. */
EX_FUNC void ex_pack_f16(const uint16_t *s, ptrdiff_t lane_stride, ptrdiff_t k_stride, ptrdiff_t lanes,
                         ptrdiff_t padded, ptrdiff_t kc, float *d) {
    enum { STEPS = 64, LANES = 2 * EX_NR_F32 };
    float buffer[STEPS * LANES];
    for (ptrdiff_t l = 0; l < padded; l += LANES) /* one pass unless a panel is wider than any here */
        for (ptrdiff_t p = 0; p < kc; p += STEPS) {
            ptrdiff_t steps = kc - p < STEPS ? kc - p : STEPS;
            const uint16_t *from = s + p * k_stride;
            if (lane_stride == 1) {
                for (ptrdiff_t q = 0; q < steps; q++) ex_halves_to_floats(from + q * k_stride, 1, lanes, buffer + q * LANES);
                ex_pack_f32(buffer, 1, LANES, lanes, padded, steps, d + p * padded);
            } else {
                for (ptrdiff_t q = 0; q < lanes; q++) ex_halves_to_floats(from + q * lane_stride, k_stride, steps, buffer + q * STEPS);
                ex_pack_f32(buffer, STEPS, 1, lanes, padded, steps, d + p * padded);
            }
        }
}

#endif /* EX_GEMM_H */

#else /* EX_REAL: everything below once for float, once for double */

/* ---- vectors ------------------------------------------------------------------- */
#define REAL EX_REAL
#define VEC EX_NAME(ex_vec)
#if EX_SINGLE
#define EX_LANES EX_W_F32
#define EX_ROWS EX_MR_F32
#define EX_VECTORS EX_NV_F32
#define EX_BLOCK EX_KC_F32
#else
#define EX_LANES EX_W_F64
#define EX_ROWS EX_MR_F64
#define EX_VECTORS EX_NV_F64
#define EX_BLOCK EX_KC_F64
#endif
#define W EX_LANES
#define LOAD EX_NAME(ex_load)
#define STORE EX_NAME(ex_store)
#define LOAD_PART EX_NAME(ex_load_part)
#define STORE_PART EX_NAME(ex_store_part)
#define SPLAT EX_NAME(ex_splat)
#define FMA EX_NAME(ex_fma)
#define ADD EX_NAME(ex_add)
#define MUL EX_NAME(ex_mul)
#define SUM EX_NAME(ex_sum)

/* LOAD_PART reads the first n (1..W) elements and no byte more, the other lanes are 0. */
#if EX_VECTOR_BYTES == 64 && EX_SINGLE
typedef __m512 VEC;
EX_INLINE VEC LOAD(const REAL *p) { return _mm512_loadu_ps(p); }
EX_INLINE void STORE(REAL *p, VEC v) { _mm512_storeu_ps(p, v); }
EX_INLINE VEC LOAD_PART(const REAL *p, ptrdiff_t n) { return _mm512_maskz_loadu_ps((__mmask16)(0xffffu >> (16 - n)), p); }
EX_INLINE void STORE_PART(REAL *p, VEC v, ptrdiff_t n) { _mm512_mask_storeu_ps(p, (__mmask16)(0xffffu >> (16 - n)), v); }
EX_INLINE VEC SPLAT(REAL x) { return _mm512_set1_ps(x); }
EX_INLINE VEC FMA(VEC a, VEC b, VEC c) { return _mm512_fmadd_ps(a, b, c); }
EX_INLINE VEC ADD(VEC a, VEC b) { return _mm512_add_ps(a, b); }
EX_INLINE VEC MUL(VEC a, VEC b) { return _mm512_mul_ps(a, b); }
#elif EX_VECTOR_BYTES == 64
typedef __m512d VEC;
EX_INLINE VEC LOAD(const REAL *p) { return _mm512_loadu_pd(p); }
EX_INLINE void STORE(REAL *p, VEC v) { _mm512_storeu_pd(p, v); }
EX_INLINE VEC LOAD_PART(const REAL *p, ptrdiff_t n) { return _mm512_maskz_loadu_pd((__mmask8)(0xffu >> (8 - n)), p); }
EX_INLINE void STORE_PART(REAL *p, VEC v, ptrdiff_t n) { _mm512_mask_storeu_pd(p, (__mmask8)(0xffu >> (8 - n)), v); }
EX_INLINE VEC SPLAT(REAL x) { return _mm512_set1_pd(x); }
EX_INLINE VEC FMA(VEC a, VEC b, VEC c) { return _mm512_fmadd_pd(a, b, c); }
EX_INLINE VEC ADD(VEC a, VEC b) { return _mm512_add_pd(a, b); }
EX_INLINE VEC MUL(VEC a, VEC b) { return _mm512_mul_pd(a, b); }
#elif EX_VECTOR_BYTES == 32
static const int32_t EX_NAME(ex_mask)[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
#if EX_SINGLE
#define MASK(n) _mm256_loadu_si256((const __m256i *)(EX_NAME(ex_mask) + 8 - (n)))
typedef __m256 VEC;
EX_INLINE VEC LOAD(const REAL *p) { return _mm256_loadu_ps(p); }
EX_INLINE void STORE(REAL *p, VEC v) { _mm256_storeu_ps(p, v); }
EX_INLINE VEC LOAD_PART(const REAL *p, ptrdiff_t n) { return _mm256_maskload_ps(p, MASK(n)); }
EX_INLINE void STORE_PART(REAL *p, VEC v, ptrdiff_t n) { _mm256_maskstore_ps(p, MASK(n), v); }
EX_INLINE VEC SPLAT(REAL x) { return _mm256_set1_ps(x); }
EX_INLINE VEC FMA(VEC a, VEC b, VEC c) { return _mm256_fmadd_ps(a, b, c); }
EX_INLINE VEC ADD(VEC a, VEC b) { return _mm256_add_ps(a, b); }
EX_INLINE VEC MUL(VEC a, VEC b) { return _mm256_mul_ps(a, b); }
#else
#define MASK(n) _mm256_loadu_si256((const __m256i *)(EX_NAME(ex_mask) + 8 - 2 * (n)))
typedef __m256d VEC;
EX_INLINE VEC LOAD(const REAL *p) { return _mm256_loadu_pd(p); }
EX_INLINE void STORE(REAL *p, VEC v) { _mm256_storeu_pd(p, v); }
EX_INLINE VEC LOAD_PART(const REAL *p, ptrdiff_t n) { return _mm256_maskload_pd(p, MASK(n)); }
EX_INLINE void STORE_PART(REAL *p, VEC v, ptrdiff_t n) { _mm256_maskstore_pd(p, MASK(n), v); }
EX_INLINE VEC SPLAT(REAL x) { return _mm256_set1_pd(x); }
EX_INLINE VEC FMA(VEC a, VEC b, VEC c) { return _mm256_fmadd_pd(a, b, c); }
EX_INLINE VEC ADD(VEC a, VEC b) { return _mm256_add_pd(a, b); }
EX_INLINE VEC MUL(VEC a, VEC b) { return _mm256_mul_pd(a, b); }
#endif
#undef MASK
#else
#if EX_GNU
typedef REAL VEC __attribute__((vector_size(16)));
EX_INLINE VEC SPLAT(REAL x) {
#if EX_SINGLE
    return (VEC){x, x, x, x};
#else
    return (VEC){x, x};
#endif
}
#if defined(__aarch64__) && EX_SINGLE
EX_INLINE VEC FMA(VEC a, VEC b, VEC c) { return (VEC)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
#elif defined(__aarch64__)
EX_INLINE VEC FMA(VEC a, VEC b, VEC c) { return (VEC)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
#else
EX_INLINE VEC FMA(VEC a, VEC b, VEC c) { return a * b + c; }
#endif
EX_INLINE VEC ADD(VEC a, VEC b) { return a + b; }
EX_INLINE VEC MUL(VEC a, VEC b) { return a * b; }
#else /* plain loops */
typedef struct { REAL lane[W]; } VEC;
EX_INLINE VEC SPLAT(REAL x) { VEC v; for (int i = 0; i < W; i++) v.lane[i] = x; return v; }
EX_INLINE VEC FMA(VEC a, VEC b, VEC c) { for (int i = 0; i < W; i++) c.lane[i] += a.lane[i] * b.lane[i]; return c; }
EX_INLINE VEC ADD(VEC a, VEC b) { for (int i = 0; i < W; i++) a.lane[i] += b.lane[i]; return a; }
EX_INLINE VEC MUL(VEC a, VEC b) { for (int i = 0; i < W; i++) a.lane[i] *= b.lane[i]; return a; }
#endif
EX_INLINE VEC LOAD(const REAL *p) { VEC v; memcpy(&v, p, sizeof v); return v; }
EX_INLINE void STORE(REAL *p, VEC v) { memcpy(p, &v, sizeof v); }
EX_INLINE VEC LOAD_PART(const REAL *p, ptrdiff_t n) {
    REAL t[W] = {0};
    for (int i = 0; i < W; i++) if (i < n) t[i] = p[i];
    return LOAD(t);
}
EX_INLINE void STORE_PART(REAL *p, VEC v, ptrdiff_t n) {
    REAL t[W];
    STORE(t, v);
    for (int i = 0; i < W; i++) if (i < n) p[i] = t[i];
}
#endif
EX_INLINE REAL SUM(VEC v) { /* pairwise */
    REAL t[W];
    STORE(t, v);
    for (int half = W / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) t[i] += t[i + half];
    return t[0];
}

/* ---- micro-kernel ---------------------------------------------------------------
 * rows x (vectors * W) elements of C stay in registers while k runs:
 *     acc[i][:] += A[i, p] * B[p, :]
 * Element (i, p) of A lies at a[i * a_row + p * a_k], row p of B at b + p * b_k, packed
 * or where the caller's data is. columns (1 ... vectors * W) of the result exist; B must
 * hold full vectors. fresh: C is overwritten (and never read), otherwise added to. */
#define KERNEL_ARGS                                                                          \
    ptrdiff_t kc, const REAL *a, ptrdiff_t a_row, ptrdiff_t a_k, const REAL *b, ptrdiff_t b_k, REAL *c, \
    ptrdiff_t c_row, ptrdiff_t c_col, ptrdiff_t columns, int fresh, const REAL *bias
typedef void (*EX_NAME(ex_kernel))(KERNEL_ARGS);

EX_FUNC void EX_NAME(ex_scatter)(int rows, ptrdiff_t width, const REAL *flat, REAL *c, ptrdiff_t c_row, ptrdiff_t c_col,
                                 ptrdiff_t columns, int fresh, const REAL *bias) {
    for (int i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++) {
            REAL *q = c + i * c_row + j * c_col, value = flat[i * width + j];
            if (!fresh) value = *q + value;
            *q = bias ? value + bias[j] : value;
        }
}

EX_INLINE void EX_NAME(ex_tile)(const int rows, const int vectors, KERNEL_ARGS) {
    enum { MAX = EX_VECTORS };
    VEC acc[EX_ROWS][MAX], part[MAX];
    const VEC zero = SPLAT(0);
    EX_UNROLL
    for (int i = 0; i < rows; i++) {
        EX_UNROLL
        for (int j = 0; j < vectors; j++) {
            acc[i][j] = zero;
            if (j * EX_VECTOR_BYTES % 64 == 0) EX_PREFETCH_WRITE(c + i * c_row + j * W);
        }
    }
    for (ptrdiff_t p = 0; p < kc; p++) {
        EX_UNROLL
        for (int j = 0; j < vectors; j++) part[j] = LOAD(b + j * W);
        EX_UNROLL
        for (int i = 0; i < rows; i++) {
            VEC x = SPLAT(a[i * a_row]);
            EX_UNROLL
            for (int j = 0; j < vectors; j++) acc[i][j] = FMA(x, part[j], acc[i][j]);
        }
        a += a_k;
        b += b_k;
    }
    if (c_col != 1) { /* columns apart: through a buffer */
        REAL flat[EX_ROWS * MAX * W];
        EX_UNROLL
        for (int i = 0; i < rows; i++) {
            EX_UNROLL
            for (int j = 0; j < vectors; j++) STORE(flat + (i * vectors + j) * W, acc[i][j]);
        }
        EX_NAME(ex_scatter)(rows, vectors * W, flat, c, c_row, c_col, columns, fresh, bias);
        return;
    }
    if (columns == vectors * W) {
        if (!fresh) {
            EX_UNROLL
            for (int i = 0; i < rows; i++) {
                EX_UNROLL
                for (int j = 0; j < vectors; j++) acc[i][j] = ADD(LOAD(c + i * c_row + j * W), acc[i][j]);
            }
        }
        if (bias) {
            EX_UNROLL
            for (int j = 0; j < vectors; j++) part[j] = LOAD(bias + j * W);
            EX_UNROLL
            for (int i = 0; i < rows; i++) {
                EX_UNROLL
                for (int j = 0; j < vectors; j++) acc[i][j] = ADD(acc[i][j], part[j]);
            }
        }
        EX_UNROLL
        for (int i = 0; i < rows; i++) {
            EX_UNROLL
            for (int j = 0; j < vectors; j++) STORE(c + i * c_row + j * W, acc[i][j]);
        }
        return;
    }
    EX_UNROLL
    for (int j = 0; j < vectors; j++) {
        ptrdiff_t n = columns - j * W;
        if (n <= 0) break;
        if (n > W) n = W;
        part[j] = bias ? LOAD_PART(bias + j * W, n) : zero;
        EX_UNROLL
        for (int i = 0; i < rows; i++) {
            VEC v = acc[i][j];
            REAL *q = c + i * c_row + j * W;
            if (!fresh) v = ADD(LOAD_PART(q, n), v);
            if (bias) v = ADD(v, part[j]);
            STORE_PART(q, v, n);
        }
    }
}

#define PASS kc, a, a_row, a_k, b, b_k, c, c_row, c_col, columns, fresh, bias
#define DEFINE(rows, vectors) \
    EX_FUNC void EX_NAME(ex_tile_##rows##_##vectors)(KERNEL_ARGS) { EX_NAME(ex_tile)(rows, vectors, PASS); }
#define POINTER(rows, vectors) EX_NAME(ex_tile_##rows##_##vectors)
DEFINE(1, 1) DEFINE(2, 1) DEFINE(3, 1) DEFINE(4, 1)
#if EX_ROWS >= 6
DEFINE(5, 1) DEFINE(6, 1)
#endif
#if EX_ROWS >= 12
DEFINE(7, 1) DEFINE(8, 1) DEFINE(9, 1) DEFINE(10, 1) DEFINE(11, 1) DEFINE(12, 1)
#endif
DEFINE(1, 2) DEFINE(2, 2) DEFINE(3, 2) DEFINE(4, 2)
#if EX_ROWS >= 6
DEFINE(5, 2) DEFINE(6, 2)
#endif
#if EX_ROWS >= 12
DEFINE(7, 2) DEFINE(8, 2) DEFINE(9, 2) DEFINE(10, 2) DEFINE(11, 2) DEFINE(12, 2)
#endif
#if EX_VECTORS >= 3
DEFINE(1, 3) DEFINE(2, 3) DEFINE(3, 3) DEFINE(4, 3)
#if EX_ROWS >= 6
DEFINE(5, 3) DEFINE(6, 3)
#endif
#if EX_ROWS >= 12
DEFINE(7, 3) DEFINE(8, 3) DEFINE(9, 3) DEFINE(10, 3) DEFINE(11, 3) DEFINE(12, 3)
#endif
#endif

static const EX_NAME(ex_kernel) EX_NAME(ex_kernels)[EX_VECTORS][EX_ROWS] = {
    {
     POINTER(1, 1), POINTER(2, 1), POINTER(3, 1), POINTER(4, 1),
#if EX_ROWS >= 6
     POINTER(5, 1), POINTER(6, 1),
#endif
#if EX_ROWS >= 12
     POINTER(7, 1), POINTER(8, 1), POINTER(9, 1), POINTER(10, 1), POINTER(11, 1), POINTER(12, 1),
#endif
    },
    {
     POINTER(1, 2), POINTER(2, 2), POINTER(3, 2), POINTER(4, 2),
#if EX_ROWS >= 6
     POINTER(5, 2), POINTER(6, 2),
#endif
#if EX_ROWS >= 12
     POINTER(7, 2), POINTER(8, 2), POINTER(9, 2), POINTER(10, 2), POINTER(11, 2), POINTER(12, 2),
#endif
    },
#if EX_VECTORS >= 3
    {
     POINTER(1, 3), POINTER(2, 3), POINTER(3, 3), POINTER(4, 3),
#if EX_ROWS >= 6
     POINTER(5, 3), POINTER(6, 3),
#endif
#if EX_ROWS >= 12
     POINTER(7, 3), POINTER(8, 3), POINTER(9, 3), POINTER(10, 3), POINTER(11, 3), POINTER(12, 3),
#endif
    },
#endif
};
EX_INLINE void EX_NAME(ex_run)(int rows, int vectors, KERNEL_ARGS) { EX_NAME(ex_kernels)[vectors - 1][rows - 1](PASS); }

/* ---- packing --------------------------------------------------------------------
 * d[p * padded + l] = s[l * lane_stride + p * k_stride], lanes beyond the given ones 0:
 * what the kernel reads in one step of k lies side by side. For A the lanes are rows,
 * for B columns. */
#if EX_GNU && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define EX_SHUFFLE 1
#endif
#endif

/* A square of 16 bytes by 16 bytes, turned in registers: 4 x 4 floats or 2 x 2 doubles. */
enum { EX_NAME(EX_SQUARE) = 16 / sizeof(REAL) };
#define SQUARE ((ptrdiff_t)EX_NAME(EX_SQUARE))
EX_INLINE void EX_NAME(ex_turn)(const REAL *s, ptrdiff_t lane_stride, REAL *d, ptrdiff_t padded) {
#if defined(EX_SHUFFLE)
    typedef REAL quad __attribute__((vector_size(16)));
    quad r[4];
    for (int i = 0; i < SQUARE; i++) memcpy(&r[i], s + i * lane_stride, 16);
#if EX_SINGLE
    quad t0 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), t1 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
    quad t2 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7), t3 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(t0, t1, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(t0, t1, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(t2, t3, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(t2, t3, 2, 3, 6, 7);
#else
    quad t0 = __builtin_shufflevector(r[0], r[1], 0, 2);
    r[1] = __builtin_shufflevector(r[0], r[1], 1, 3);
    r[0] = t0;
#endif
    for (int i = 0; i < SQUARE; i++) memcpy(d + i * padded, &r[i], 16);
#else
    for (int i = 0; i < SQUARE; i++)
        for (int j = 0; j < SQUARE; j++) d[j * padded + i] = s[i * lane_stride + j];
#endif
}

EX_FUNC void EX_NAME(ex_pack)(const REAL *s, ptrdiff_t lane_stride, ptrdiff_t k_stride, ptrdiff_t lanes,
                              ptrdiff_t padded, ptrdiff_t kc, REAL *EX_RESTRICT d) {
    ptrdiff_t p = 0, l;
    if (lane_stride == 1) {
        const ptrdiff_t full = lanes / W * W, rest = lanes - full;
        const VEC zero = SPLAT(0);
        if (rest == 0 && full == padded && full == EX_VECTORS * W) { /* a full panel of B */
            for (; p < kc; p++, s += k_stride, d += padded) {
                EX_UNROLL
                for (int j = 0; j < EX_VECTORS; j++) STORE(d + j * W, LOAD(s + j * W));
            }
            return;
        }
        for (; p < kc; p++, s += k_stride, d += padded) {
            for (l = 0; l < full; l += W) STORE(d + l, LOAD(s + l));
            if (rest) {
                VEC v = LOAD_PART(s + l, rest);
                if (padded - l >= W) STORE(d + l, v), l += W;
                else STORE_PART(d + l, v, padded - l), l = padded;
            }
            for (; l < padded; l += W) STORE_PART(d + l, zero, padded - l < W ? padded - l : W);
        }
        return;
    }
    if (k_stride == 1 && lanes >= SQUARE) {
        /* A cache line of each row at a time: with rows a power of two apart they all
         * fall into one set of the cache and would not survive until the next step. */
        enum { LINE = 64 / sizeof(REAL) };
        for (; p + SQUARE <= kc; ) {
            const ptrdiff_t steps = kc - p < LINE ? (kc - p) / SQUARE * SQUARE : LINE;
            for (l = 0; l < lanes; l += SQUARE) {
                if (l + SQUARE > lanes) l = lanes - SQUARE; /* the last square overlaps the one before */
                for (ptrdiff_t q = p; q < p + steps; q += SQUARE)
                    EX_NAME(ex_turn)(s + l * lane_stride + q, lane_stride, d + q * padded + l, padded);
            }
            p += steps;
        }
    }
    for (; p < kc; p++)
        for (l = 0; l < lanes; l++) d[p * padded + l] = s[l * lane_stride + p * k_stride];
    if (lanes < padded)
        for (p = 0; p < kc; p++)
            for (l = lanes; l < padded; l++) d[p * padded + l] = 0;
}

/* ---- a few rows times a matrix -------------------------------------------------------
 * acc[i * acc_row + j] += sum over p of x[i * x_row + p * x_k] * b[p * b_row + j], j < n,
 * in the order of p. B is read once, along its rows, as memory likes it; eight (four) of
 * its rows per pass, so that acc is read and written once for eight (four) multiply-adds. */
EX_INLINE void EX_NAME(ex_thin_step)(const int rows, const int steps, const REAL *xs, const REAL *b, ptrdiff_t b_row,
                                     REAL *acc, ptrdiff_t acc_row, const int whole, ptrdiff_t left) {
    VEC part[8];
    EX_UNROLL
    for (int q = 0; q < steps; q++) part[q] = whole ? LOAD(b + q * b_row) : LOAD_PART(b + q * b_row, left);
    EX_UNROLL
    for (int i = 0; i < rows; i++) { /* acc has whole vectors */
        VEC v = LOAD(acc + i * acc_row);
        EX_UNROLL
        for (int q = 0; q < steps; q++) v = FMA(SPLAT(xs[i * steps + q]), part[q], v);
        STORE(acc + i * acc_row, v);
    }
}

EX_INLINE void EX_NAME(ex_thin)(const int rows, const int steps, ptrdiff_t kc, ptrdiff_t n, const REAL *x,
                                ptrdiff_t x_row, ptrdiff_t x_k, const REAL *b, ptrdiff_t b_row,
                                REAL *EX_RESTRICT acc, ptrdiff_t acc_row) {
    ptrdiff_t p = 0, j;
    for (; p + steps <= kc; p += steps, b += steps * b_row) {
        REAL xs[8 * 8];
        EX_UNROLL
        for (int i = 0; i < rows; i++) {
            EX_UNROLL
            for (int q = 0; q < steps; q++) xs[i * steps + q] = x[i * x_row + (p + q) * x_k];
        }
        for (j = 0; j + W <= n; j += W) EX_NAME(ex_thin_step)(rows, steps, xs, b + j, b_row, acc + j, acc_row, 1, 0);
        if (j < n) EX_NAME(ex_thin_step)(rows, steps, xs, b + j, b_row, acc + j, acc_row, 0, n - j);
    }
    for (; p < kc; p++, b += b_row) {
        REAL xs[8];
        EX_UNROLL
        for (int i = 0; i < rows; i++) xs[i] = x[i * x_row + p * x_k];
        for (j = 0; j + W <= n; j += W) EX_NAME(ex_thin_step)(rows, 1, xs, b + j, b_row, acc + j, acc_row, 1, 0);
        if (j < n) EX_NAME(ex_thin_step)(rows, 1, xs, b + j, b_row, acc + j, acc_row, 0, n - j);
    }
}

/* rows: 1 ... 8 */
EX_FUNC void EX_NAME(ex_rows)(ptrdiff_t rows, ptrdiff_t kc, ptrdiff_t n, const REAL *x, ptrdiff_t x_row, ptrdiff_t x_k,
                              const REAL *b, ptrdiff_t b_row, REAL *acc, ptrdiff_t acc_row) {
#define CASE(rows, steps) \
    case rows: EX_NAME(ex_thin)(rows, steps, kc, n, x, x_row, x_k, b, b_row, acc, acc_row); break;
    switch (rows) { CASE(1, 8) CASE(2, 8) CASE(3, 4) CASE(4, 4) CASE(5, 4) CASE(6, 4) CASE(7, 4) CASE(8, 4) }
#undef CASE
}

/* ---- rows times a vector ------------------------------------------------------------
 * out[r] = sum over p of x[p] * b[r * b_col + p] for `count` rows: four vectors of
 * partial sums a row (p modulo 4 W), added pairwise at the end. */
EX_INLINE void EX_NAME(ex_dot_rows)(const int count, ptrdiff_t kc, const REAL *x, const REAL *b, ptrdiff_t b_col, REAL *out) {
    enum { CHAINS = 4 };
    VEC acc[4][CHAINS];
    ptrdiff_t p = 0;
    EX_UNROLL
    for (int r = 0; r < count; r++) {
        EX_UNROLL
        for (int q = 0; q < CHAINS; q++) acc[r][q] = SPLAT(0);
    }
    for (; p + CHAINS * W <= kc; p += CHAINS * W) {
        EX_UNROLL
        for (int q = 0; q < CHAINS; q++) {
            VEC v = LOAD(x + p + q * W);
            EX_UNROLL
            for (int r = 0; r < count; r++) acc[r][q] = FMA(v, LOAD(b + r * b_col + p + q * W), acc[r][q]);
        }
    }
    for (; p + W <= kc; p += W) {
        VEC v = LOAD(x + p);
        EX_UNROLL
        for (int r = 0; r < count; r++) acc[r][0] = FMA(v, LOAD(b + r * b_col + p), acc[r][0]);
    }
    if (p < kc) {
        VEC v = LOAD_PART(x + p, kc - p);
        EX_UNROLL
        for (int r = 0; r < count; r++) acc[r][1] = FMA(v, LOAD_PART(b + r * b_col + p, kc - p), acc[r][1]);
    }
    EX_UNROLL
    for (int r = 0; r < count; r++) out[r] = SUM(ADD(ADD(acc[r][0], acc[r][1]), ADD(acc[r][2], acc[r][3])));
}

EX_FUNC void EX_NAME(ex_dots)(ptrdiff_t count, ptrdiff_t kc, const REAL *x, const REAL *b, ptrdiff_t b_col, REAL *out) {
    for (; count >= 4; count -= 4, b += 4 * b_col, out += 4) EX_NAME(ex_dot_rows)(4, kc, x, b, b_col, out);
    for (; count > 0; count--, b += b_col, out++) EX_NAME(ex_dot_rows)(1, kc, x, b, b_col, out);
}

/* ---- column times row: c[j] = x * b[j] (+ c[j]) (+ bias[j]) -------------------------- */
EX_FUNC void EX_NAME(ex_outer)(ptrdiff_t n, REAL x, const REAL *b, REAL *c, int fresh, const REAL *bias) {
    const VEC xs = SPLAT(x);
    ptrdiff_t j = 0;
    if (fresh && !bias)
        for (; j + 2 * W <= n; j += 2 * W) {
            VEC v0 = MUL(xs, LOAD(b + j)), v1 = MUL(xs, LOAD(b + j + W));
            STORE(c + j, v0);
            STORE(c + j + W, v1);
        }
    for (; j < n; j += W) {
        ptrdiff_t r = n - j < W ? n - j : W;
        VEC v = MUL(xs, LOAD_PART(b + j, r));
        if (!fresh) v = ADD(LOAD_PART(c + j, r), v);
        if (bias) v = ADD(v, LOAD_PART(bias + j, r));
        STORE_PART(c + j, v, r);
    }
}

#undef REAL
#undef VEC
#undef W
#undef LOAD
#undef STORE
#undef LOAD_PART
#undef STORE_PART
#undef SPLAT
#undef FMA
#undef ADD
#undef MUL
#undef SUM
#undef SQUARE
#undef KERNEL_ARGS
#undef PASS
#undef DEFINE
#undef POINTER
#undef EX_LANES
#undef EX_ROWS
#undef EX_VECTORS
#undef EX_BLOCK
#endif /* EX_REAL */
