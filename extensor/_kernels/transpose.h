/* A matrix copied with its rows turned into columns, tile by tile in registers.

   A tile of LANES rows and columns is transposed by log2(LANES) rounds of exchanges: round s swaps
   the lanes that differ in bit s between the rows that differ in bit s. One register holds a row:
   64 bytes on v4, so that tiles move whole cache lines (1024 x 1024 float32: 0.17 ns an element
   against 0.41), 16 elsewhere (compilers make more of them than of 32). */
#ifndef EXTENSOR_TRANSPOSE_H
#define EXTENSOR_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define EX_SHUFFLES 1
#endif
#endif

/* Lanes of a and b where bit s of the lane number is clear, and where it is set. */
#define EX_LOW(n, l, s) ((l) & (s) ? (n) + (l) - (s) : (l))
#define EX_HIGH(n, l, s) ((l) & (s) ? (n) + (l) : (l) + (s))
#define EX_2(f, n, l, s) f(n, l, s), f(n, (l) + 1, s)
#define EX_4(f, n, l, s) EX_2(f, n, l, s), EX_2(f, n, (l) + 2, s)
#define EX_8(f, n, l, s) EX_4(f, n, l, s), EX_4(f, n, (l) + 4, s)
#define EX_16(f, n, l, s) EX_8(f, n, l, s), EX_8(f, n, (l) + 8, s)

#define EX_ROUND(N, s)                                                                       \
    for (i = 0; i < N; i++)                                                                  \
        if (!(i & s)) {                                                                      \
            row low = __builtin_shufflevector(r[i], r[i + s], EX_##N(EX_LOW, N, 0, s));      \
            r[i + s] = __builtin_shufflevector(r[i], r[i + s], EX_##N(EX_HIGH, N, 0, s));    \
            r[i] = low;                                                                      \
        }
#define EX_ROUNDS_2 EX_ROUND(2, 1)
#define EX_ROUNDS_4 EX_ROUND(4, 2) EX_ROUND(4, 1)
#define EX_ROUNDS_8 EX_ROUND(8, 4) EX_ROUND(8, 2) EX_ROUND(8, 1)
#define EX_ROUNDS_16 EX_ROUND(16, 8) EX_ROUND(16, 4) EX_ROUND(16, 2) EX_ROUND(16, 1)

/* y[c][r] = x[r][c] for the rows and columns of one full tile; steps are in bytes. */
#define EX_TILE(name, word, N)                                                               \
    static inline void name(const char *x, ptrdiff_t x_step, char *y, ptrdiff_t y_step) {    \
        typedef word row __attribute__((vector_size(N * sizeof(word))));                     \
        row r[N];                                                                            \
        int i;                                                                               \
        for (i = 0; i < N; i++) memcpy(&r[i], x + i * x_step, sizeof(row));                  \
        EX_ROUNDS_##N                                                                        \
        for (i = 0; i < N; i++) memcpy(y + i * y_step, &r[i], sizeof(row));                  \
    }

/* Any number of rows and columns, word by word. */
#define EX_WORDS(name, word)                                                                 \
    static void name(const char *x, ptrdiff_t x_step, char *y, ptrdiff_t y_step,             \
                     ptrdiff_t rows, ptrdiff_t cols) {                                       \
        const ptrdiff_t size = sizeof(word);                                                 \
        ptrdiff_t r, c;                                                                      \
        for (c = 0; c < cols; c++)                                                           \
            for (r = 0; r < rows; r++)                                                       \
                memcpy(y + c * y_step + r * size, x + r * x_step + c * size, size);          \
    }

/* The same in full tiles, and what is left along the two edges by another function. */
#define EX_TILES(name, word, N, TILE, EDGE)                                                  \
    static void name(const char *x, ptrdiff_t x_step, char *y, ptrdiff_t y_step,             \
                     ptrdiff_t rows, ptrdiff_t cols) {                                       \
        const ptrdiff_t size = sizeof(word), full_rows = rows - rows % N;                    \
        const ptrdiff_t full_cols = cols - cols % N;                                         \
        ptrdiff_t r, c;                                                                      \
        for (c = 0; c < full_cols; c += N)                                                   \
            for (r = 0; r < full_rows; r += N)                                               \
                TILE(x + r * x_step + c * size, x_step, y + c * y_step + r * size, y_step);  \
        EDGE(x + full_cols * size, x_step, y + full_cols * y_step, y_step,                   \
             full_rows, cols - full_cols);                                                   \
        EDGE(x + full_rows * x_step, x_step, y + full_rows * size, y_step,                   \
             rows - full_rows, cols);                                                        \
    }

EX_WORDS(ex_transpose_1, uint8_t)
#if !defined(EX_SHUFFLES)
EX_WORDS(ex_transpose_2, uint16_t)
EX_WORDS(ex_transpose_4, uint32_t)
EX_WORDS(ex_transpose_8, uint64_t)
#else
EX_WORDS(ex_words_2, uint16_t)
EX_WORDS(ex_words_4, uint32_t)
EX_WORDS(ex_words_8, uint64_t)
EX_TILE(ex_tile_2, uint16_t, 8)
EX_TILE(ex_tile_4, uint32_t, 4)
EX_TILE(ex_tile_8, uint64_t, 2)
EX_TILES(ex_transpose_2, uint16_t, 8, ex_tile_2, ex_words_2)
#if defined(__AVX512F__)
EX_TILE(ex_large_tile_4, uint32_t, 16)
EX_TILE(ex_large_tile_8, uint64_t, 8)
EX_TILES(ex_small_tiles_4, uint32_t, 4, ex_tile_4, ex_words_4)
EX_TILES(ex_small_tiles_8, uint64_t, 2, ex_tile_8, ex_words_8)
EX_TILES(ex_transpose_4, uint32_t, 16, ex_large_tile_4, ex_small_tiles_4)
EX_TILES(ex_transpose_8, uint64_t, 8, ex_large_tile_8, ex_small_tiles_8)
#else
EX_TILES(ex_transpose_4, uint32_t, 4, ex_tile_4, ex_words_4)
EX_TILES(ex_transpose_8, uint64_t, 2, ex_tile_8, ex_words_8)
#endif
#endif

#endif
