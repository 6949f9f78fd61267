/* The machine's own limits: copy and triad bandwidth by size, FMA peak. Prints one JSON object.
   Usage: limits <threads> <seconds per point> */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 12 /* independent chains, enough to hide the latency of two FMA units */

static double best_of(void (*kernel)(float *, float *, float *, size_t, int), float *a, float *b,
                      float *c, size_t n, int threads, double seconds) {
    double best = 1e9, stop = omp_get_wtime() + seconds;
    int inner = (int)(1 + 20000 / n);
    kernel(a, b, c, n, threads);
    do {
        double start = omp_get_wtime();
        for (int i = 0; i < inner; i++) kernel(a, b, c, n, threads);
        double took = (omp_get_wtime() - start) / inner;
        if (took < best) best = took;
    } while (omp_get_wtime() < stop);
    return best;
}

static size_t share(size_t n, int part, int parts) { return n / 16 * part / parts * 16; }

#define PARALLEL(body)                                                        \
    if (threads == 1) { size_t lo = 0, hi = n; body }                         \
    else {                                                                    \
        _Pragma("omp parallel num_threads(threads)") {                        \
            int me = omp_get_thread_num();                                    \
            size_t lo = share(n, me, threads);                                \
            size_t hi = me + 1 == threads ? n : share(n, me + 1, threads);    \
            body                                                              \
        }                                                                     \
    }

static void copy(float *a, float *b, float *c, size_t n, int threads) {
    (void)c;
    PARALLEL(memcpy(a + lo, b + lo, (hi - lo) * sizeof *a);)
}

static void vector_copy(float *a, float *b, float *c, size_t n, int threads) {
    (void)c;
    PARALLEL(_Pragma("omp simd") for (size_t i = lo; i < hi; i++) a[i] = b[i] * 1.0000001f;)
}

static void triad(float *a, float *b, float *c, size_t n, int threads) {
    PARALLEL(_Pragma("omp simd") for (size_t i = lo; i < hi; i++) a[i] = b[i] + 3.0f * c[i];)
}

#define PEAK(name, type, width)                                                        \
    typedef type name##_vector __attribute__((vector_size(width)));                    \
    static double name(int threads) {                                                  \
        double best = 1e9;                                                             \
        const long rounds = 2000000;                                                   \
        for (int again = 0; again < 20; again++) {                                      \
            double start = omp_get_wtime();                                            \
            _Pragma("omp parallel num_threads(threads)") {                             \
                name##_vector s[LANES], m, k;                                          \
                for (unsigned j = 0; j < width / sizeof(type); j++) m[j] = (type)0.9999, k[j] = (type)1e-4; \
                for (int j = 0; j < LANES; j++) s[j] = k * (type)j;                    \
                for (long i = 0; i < rounds; i++)                                      \
                    for (int j = 0; j < LANES; j++) s[j] = s[j] * m + k;               \
                __asm__ volatile("" : : "m"(s)); /* the results count as used */       \
            }                                                                          \
            double took = omp_get_wtime() - start;                                     \
            if (took < best) best = took;                                              \
        }                                                                              \
        return 2.0 * rounds * LANES * (width / sizeof(type)) * threads / best;         \
    }
PEAK(peak32, float, VECTOR)
PEAK(peak64, double, VECTOR)

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double seconds = argc > 2 ? atof(argv[2]) : 0.01;
    size_t largest = (size_t)1 << 26; /* elements of each array */
    float *a = aligned_alloc(4096, largest * 4), *b = aligned_alloc(4096, largest * 4),
          *c = aligned_alloc(4096, largest * 4);
    if (!a || !b || !c) return 1;
    memset(a, 0, largest * 4), memset(b, 0, largest * 4), memset(c, 0, largest * 4);
    printf("{\"threads\": %d, \"copy\": [", threads);
    for (size_t n = 64; n <= largest / 2; n *= 2) {
        double best = best_of(copy, a, b, c, n, threads, seconds), other;
        if ((other = best_of(vector_copy, a, b, c, n, threads, seconds)) < best) best = other;
        if ((other = best_of(copy, a, b, c, n, 1, seconds)) < best) best = other;
        printf("%s[%zu, %.5g]", n > 64 ? ", " : "", 8 * n, 8 * n / best);
    }
    printf("], \"triad\": [");
    for (size_t n = 64; n <= largest / 2; n *= 2) {
        double best = best_of(triad, a, b, c, n, threads, seconds), other;
        if ((other = best_of(triad, a, b, c, n, 1, seconds)) < best) best = other;
        printf("%s[%zu, %.5g]", n > 64 ? ", " : "", 12 * n, 12 * n / best);
    }
    printf("], \"peak\": {\"float32\": %.5g, \"float64\": %.5g}}\n", peak32(threads), peak64(threads));
    return 0;
}
