/* The body every CPU kernel family shares: included once by a family's file after its simd_*.h and
 * the macros TILE_LIST(X) and FAMILY. All sizes are compile-time after inlining, so the accumulators
 * live in registers. Each C element is one FMA chain in k order, whatever the tile: results do not
 * depend on how the work was cut. */
#include "cpu/cpu.h"
#include "cpu/kernels/kernels.h"

#define ROWS_A_POINTER 3 /* rows reached from one pointer: +0, +lda, +2*lda, so 12 rows need 4 */
#define POINTERS ((RUNG_TILE_MAX_ROWS + ROWS_A_POINTER - 1) / ROWS_A_POINTER)
#ifndef UNROLL_K
#define UNROLL_K 2
#endif

/* Hides where a pointer came from: left to itself the compiler keeps one pointer a row and spills. */
#define OPAQUE(pointer) __asm__("" : "+r"(pointer))

typedef vf tile_acc[RUNG_TILE_MAX_ROWS][RUNG_TILE_MAX_VECTORS];

VFN void tile_steps(const int steps, const int rows, const int nv, const int kind, const int masked,
                    const float *a[POINTERS], int64_t lda, const float **b, int64_t ldb, vmask last, tile_acc acc)
{
#pragma GCC unroll 8
    for (int p = 0; p < steps; p++) {
        vf bv[RUNG_TILE_MAX_VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++)
            bv[j] = masked && j == nv - 1 ? v_load_some(*b + j * VL, last) : v_load(*b + j * VL);
        *b += ldb;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            vf av = v_all(kind == RUNG_A_BY_K ? a[0][i] : a[i / ROWS_A_POINTER][p + (i % ROWS_A_POINTER) * lda]);
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++)
                acc[i][j] = v_fma(av, bv[j], acc[i][j]);
        }
        if (kind == RUNG_A_BY_K)
            a[0] += lda;
    }
    if (kind == RUNG_A_BY_ROW)
#pragma GCC unroll 8
        for (int i = 0; i < rows; i += ROWS_A_POINTER)
            a[i / ROWS_A_POINTER] += steps;
}

VFN void tile_sum(const int rows, const int nv, const int kind, const int masked, int64_t k, const float *a,
                  int64_t lda, const float *b, int64_t ldb, vmask last, tile_acc acc)
{
    const float *row[POINTERS];
    row[0] = a;
    if (kind == RUNG_A_BY_ROW)
#pragma GCC unroll 8
        for (int i = ROWS_A_POINTER; i < rows; i += ROWS_A_POINTER) {
            row[i / ROWS_A_POINTER] = row[i / ROWS_A_POINTER - 1] + ROWS_A_POINTER * lda;
            OPAQUE(row[i / ROWS_A_POINTER]);
        }
    for (; k >= UNROLL_K; k -= UNROLL_K)
        tile_steps(UNROLL_K, rows, nv, kind, masked, row, lda, &b, ldb, last, acc);
#pragma GCC unroll 1
    for (; k > 0; k--)
        tile_steps(1, rows, nv, kind, masked, row, lda, &b, ldb, last, acc);
}

VFN void tile(const int rows, const int nv, const int kind, int64_t k, const float *a, int64_t lda, const float *b,
              int64_t ldb, float *c, const rung_tile_out *out)
{
    tile_acc acc;
    const vmask last = v_mask(out->lanes);
    const int64_t ldc = out->ldc;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++)
            acc[i][j] = v_zero();

    if (k > 32 && !out->stream) {
        const float *at = c;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++, at += ldc) {
            OPAQUE(at);
#pragma GCC unroll 4
            for (int j = 0; j < nv; j += 16 / VL)
                __builtin_prefetch(at + j * VL, 1);
        }
    }

    if (TAIL_ALWAYS_MASKED || out->lanes != VL)
        tile_sum(rows, nv, kind, 1, k, a, lda, b, ldb, last, acc);
    else
        tile_sum(rows, nv, kind, 0, k, a, lda, b, ldb, last, acc);

    const vf alpha = v_all(out->alpha), beta = v_all(out->beta);
    float *at = c;
    if (out->stream) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++, at += ldc) {
            OPAQUE(at);
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++)
                v_stream(at + j * VL, v_mul(alpha, acc[i][j]));
        }
    } else if (out->beta == 0.0f) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++, at += ldc) {
            OPAQUE(at);
#pragma GCC unroll 4
            for (int j = 0; j < nv - 1; j++)
                v_store(at + j * VL, v_mul(alpha, acc[i][j]));
            v_store_some(at + (nv - 1) * VL, v_mul(alpha, acc[i][nv - 1]), last);
        }
    } else {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++, at += ldc) {
            OPAQUE(at);
#pragma GCC unroll 4
            for (int j = 0; j < nv - 1; j++)
                v_store(at + j * VL, v_fma(beta, v_load(at + j * VL), v_mul(alpha, acc[i][j])));
            float *tail = at + (nv - 1) * VL;
            vf old = v_load_some(tail, last);
            v_store_some(tail, v_fma(beta, old, v_mul(alpha, acc[i][nv - 1])), last);
        }
    }
}

#define TILE_FN(rows, nv)                                                                                              \
    static void tile_by_k_##rows##x##nv(int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c, \
                                        const rung_tile_out *out)                                                      \
    {                                                                                                                  \
        tile(rows, nv, RUNG_A_BY_K, k, a, lda, b, ldb, c, out);                                                        \
    }                                                                                                                  \
    static void tile_by_row_##rows##x##nv(int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,         \
                                          float *c, const rung_tile_out *out)                                          \
    {                                                                                                                  \
        tile(rows, nv, RUNG_A_BY_ROW, k, a, lda, b, ldb, c, out);                                                      \
    }
TILE_LIST(TILE_FN)

enum { STREAM_AHEAD = 256 }; /* floats: with C in the way the hardware's prefetchers lose the rows of B */

VFN void stream(const int rows, const int nv, const int kind, int64_t count, const float *a, int64_t lda,
                const float *b, int64_t ldb, float *c, const rung_tile_out *out)
{
    for (int64_t g = 0; g < count; g++, b += nv * VL, c += nv * VL) {
        if (rows > 1)
#pragma GCC unroll 8
            for (int p = 0; p < RUNG_STREAM_STEPS; p++)
                for (int j = 0; j < nv * VL; j += 16)
                    __builtin_prefetch(b + p * ldb + STREAM_AHEAD + j);
        tile(rows, nv, kind, RUNG_STREAM_STEPS, a, lda, b, ldb, c, out);
    }
}

#define STREAM_FN(rows, nv, kind, name)                                                                                \
    static void stream_##name##_##rows(int64_t count, const float *a, int64_t lda, const float *b, int64_t ldb,        \
                                       float *c, const rung_tile_out *out)                                             \
    {                                                                                                                  \
        stream(rows, nv, kind, count, a, lda, b, ldb, c, out);                                                         \
    }
#define STREAM_BY_K(rows, nv) STREAM_FN(rows, nv, RUNG_A_BY_K, by_k)
#define STREAM_BY_ROW(rows, nv) STREAM_FN(rows, nv, RUNG_A_BY_ROW, by_row)
STREAM_LIST(STREAM_BY_K)
STREAM_LIST(STREAM_BY_ROW)

/* Source rows hold one k each: copy. Eight rows at a time: each source row is read in long runs, each
 * panel written in runs of 8 * panel floats. The last row of a run is stored exactly, since an
 * overrun there would land in a panel already written. */
enum {
    PACK_AHEAD = 256
}; /* floats along a row, then on to the next rows: short runs lose the hardware's prefetchers */

static void fetch_rows(const float *from, int64_t lds, int64_t rows, int lanes)
{
    for (int64_t q = 0; q < rows; q++)
        for (int v = 0; v < lanes; v += 16)
            __builtin_prefetch(from + q * lds + v);
}

static void pack_by_k(float *dst, const float *src, int64_t lds, int64_t width, int64_t k, int panel)
{
    int64_t ahead = PACK_AHEAD % width / panel * panel, ahead_p = PACK_AHEAD / width * 8;
    for (int64_t p = 0; p < k; p += 8) {
        int64_t steps = k - p < 8 ? k - p : 8;
        for (int64_t i = 0; i < width; i += panel) {
            const float *from = src + p * lds + i;
            float *to = dst + i * k + p * panel;
            int lanes = (int)(width - i < panel ? width - i : panel);
            int full = lanes / VL, rest = lanes % VL;
            vmask mask = v_mask(rest);
            if (ahead_p < k && (panel >= 16 || ahead % 16 == 0))
                fetch_rows(src + ahead_p * lds + ahead, lds, k - ahead_p < 8 ? k - ahead_p : 8, panel);
            ahead += panel;
            if (ahead >= width) {
                ahead = 0;
                ahead_p += 8;
            }
            for (int64_t q = 0; q < steps; q++, from += lds, to += panel) {
                for (int v = 0; v < full; v++)
                    v_store(to + v * VL, v_load(from + v * VL));
                if (rest) {
                    vf x = v_load_some(from + full * VL, mask);
                    if (q < steps - 1)
                        v_store(to + full * VL, x);
                    else
                        v_store_some(to + full * VL, x, mask);
                }
            }
        }
    }
}

_Static_assert(FAMILY_MR <= VL || FAMILY_MR % VL == 0, "pack_by_row would overrun into lanes already written");

/* Loads rows x steps, at most VL x VL, and transposes them: r[q] holds step q. */
VFN void load_transposed(vf r[VL], const float *from, int64_t lds, int rows, int steps)
{
    if (rows == VL && steps == VL) {
#pragma GCC unroll 16
        for (int q = 0; q < VL; q++)
            r[q] = v_load(from + q * lds);
    } else {
        vmask mask = v_mask(steps);
#pragma GCC unroll 16
        for (int q = 0; q < VL; q++)
            r[q] = q < rows ? v_load_some(from + q * lds, mask) : v_zero();
    }
    v_transpose(r);
}

/* Two panels of half a vector each from one transposed block: no lane of the transpose is wasted. */
static void pack_by_row_halves(float *dst, const float *src, int64_t lds, int64_t width, int64_t k)
{
    const int panel = VL / 2;
    for (int64_t i = 0; i < width; i += VL) {
        float *low = dst + i * k, *high = low + panel * k;
        int rows = (int)(width - i < VL ? width - i : VL);
        for (int64_t p = 0; p < k; p += VL) {
            int steps = (int)(k - p < VL ? k - p : VL);
            const float *from = src + i * lds + p;
            vf r[VL];
            if (p + 12 * VL < k)
                for (int q = 0; q < VL; q++)
                    __builtin_prefetch(from + q * lds + 12 * VL, 0, 2);
            load_transposed(r, from, lds, rows, steps);
            for (int q = 0; q < steps; q++) {
                v_store_low(low + (p + q) * panel, r[q]);
                if (rows > panel)
                    v_store_high(high + (p + q) * panel, r[q]);
            }
        }
    }
}

/* Source rows hold one lane each: transpose blocks of VL x VL in registers. Stores may run into the next step or the
 * next panel, which are written later. The rows of the next panel are fetched ahead: they are too many streams for the
 * hardware to follow. */
static void pack_by_row(float *dst, const float *src, int64_t lds, int64_t width, int64_t k, int panel)
{
    if (panel * 2 == VL) {
        pack_by_row_halves(dst, src, lds, width, k);
        return;
    }
    for (int64_t i = 0; i < width; i += panel) {
        float *to = dst + i * k;
        int lanes = (int)(width - i < panel ? width - i : panel);
        for (int64_t p = 0; p < k; p += VL) {
            int steps = (int)(k - p < VL ? k - p : VL);
            for (int block = 0; block < lanes; block += VL) {
                const float *from = src + (i + block) * lds + p;
                int rows = lanes - block < VL ? lanes - block : VL;
                vf r[VL];
                if (i + 2 * panel <= width)
                    for (int q = 0; q < rows; q++)
                        __builtin_prefetch(from + (panel + q) * lds);
                load_transposed(r, from, lds, rows, steps);
                for (int q = 0; q < steps; q++)
                    v_store(to + (p + q) * panel + block, r[q]);
            }
        }
    }
}

VFN void dot_block(const int rows, const int cols, const rung_dot_args *x, int64_t first)
{
    vf acc[8][RUNG_DOT_MAX_COLS];
    const float *s = x->s + first * x->lds, *t = x->t;
    const int64_t lds = x->lds, t_ld = x->t_ld, t_step = x->t_step, k = x->k;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++)
            acc[i][j] = v_zero();
    int64_t p = 0;
#pragma GCC unroll 2
    for (; p + VL <= k; p += VL, t += t_step) {
        vf sv[8];
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            sv[i] = v_load(s + i * lds + p);
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++) {
            vf tv = v_load(t + j * t_ld);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                acc[i][j] = v_fma(sv[i], tv, acc[i][j]);
        }
    }
    if (p < k) {
        vmask mask = v_mask((int)(k - p));
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++) {
            vf tv = v_load_some(t + j * t_ld, mask);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                acc[i][j] = v_fma(v_load_some(s + i * lds + p, mask), tv, acc[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < cols; j++) {
            float *at = x->c + (first + i) * x->c_row + j * x->c_col;
            float value = x->alpha * v_sum(acc[i][j]);
            *at = x->beta == 0.0f ? value : value + x->beta * *at;
        }
}

/* Rows at a time: enough accumulators to cover the FMA latency, no more than the registers hold. */
#define DOT_FN(rows, cols)                                                                                             \
    static void dot_##cols(const rung_dot_args *args, int64_t count)                                                   \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + rows <= count; i += rows)                                                                           \
            dot_block(rows, cols, args, i);                                                                            \
        for (; i < count; i++)                                                                                         \
            dot_block(1, cols, args, i);                                                                               \
    }
DOT_LIST(DOT_FN)

/* e^x to a few units in the last place, Inf above 88.4; NaN stays NaN. Plain C, which the compiler turns into vectors.
 */
VFN float exp_of(float x)
{
    x = x > 89.0f ? 89.0f : x < -87.0f ? -87.0f : x;
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits */
    float shifted = x * 1.44269504f + shift, whole = shifted - shift;
    float r = x - whole * 0.693145752f - whole * 1.42860677e-6f;
    float series =
        1.0f +
        r * (1.0f + r * (0.5f + r * (0.166666672f + r * (0.0416664519f + r * (0.00833336823f + r * 0.00139304355f)))));
    union {
        float value;
        uint32_t bits;
    } scale = {.value = shifted};
    scale.bits = (scale.bits + 127) << 23;
    return series * scale.value;
}

/* x/2 (1 + tanh(u)) is x / (1 + e^-2u). */
VFN float gelu_of(float x)
{
    return x * (1.0f / (1.0f + exp_of(-1.59576912f * (x + 0.044715f * x * x * x))));
}

static void finish(float *c, int64_t ldc, int64_t m, int64_t n, const float *row_bias, const float *column_bias,
                   int activation)
{
    for (int64_t i = 0; i < m; i++, c += ldc) {
        if (column_bias)
            for (int64_t j = 0; j < n; j++)
                c[j] += column_bias[j];
        const float same = row_bias ? row_bias[i] : 0.0f;
        if (row_bias)
            for (int64_t j = 0; j < n; j++)
                c[j] += same;
        if (activation == RUNG_RELU)
            for (int64_t j = 0; j < n; j++)
                c[j] = c[j] < 0.0f ? 0.0f : c[j]; /* NaN stays */
        if (activation == RUNG_GELU)
            for (int64_t j = 0; j < n; j++)
                c[j] = gelu_of(c[j]);
    }
}

#define TILE_SLOT_BY_K(rows, nv) [RUNG_A_BY_K][nv - 1][rows - 1] = tile_by_k_##rows##x##nv,
#define TILE_SLOT_BY_ROW(rows, nv) [RUNG_A_BY_ROW][nv - 1][rows - 1] = tile_by_row_##rows##x##nv,
#define STREAM_SLOT_BY_K(rows, nv) [RUNG_A_BY_K][rows - 1] = stream_by_k_##rows,
#define STREAM_SLOT_BY_ROW(rows, nv) [RUNG_A_BY_ROW][rows - 1] = stream_by_row_##rows,
#define STREAM_NV(rows, nv) nv,
#define DOT_SLOT(rows, cols) dot_##cols,

static const rung_cpu_kernel family = {
    .needs = FAMILY_NEEDS,
    .vl = VL,
    .vl_bits = VL == 16  ? 4
               : VL == 8 ? 3
                         : 2,
    .mr = FAMILY_MR,
    .nv = FAMILY_NV,
    .max_rows = FAMILY_MAX_ROWS,
    .tile = {TILE_LIST(TILE_SLOT_BY_K) TILE_LIST(TILE_SLOT_BY_ROW)},
    .stream = {STREAM_LIST(STREAM_SLOT_BY_K) STREAM_LIST(STREAM_SLOT_BY_ROW)},
    .stream_nv = {STREAM_LIST(STREAM_NV)},
    .pack_by_k = pack_by_k,
    .pack_by_row = pack_by_row,
    .dot = {DOT_LIST(DOT_SLOT)},
    .finish = finish,
};

rung_status FAMILY(const void *args);

rung_status FAMILY(const void *args)
{
    return rung_cpu_gemm(args, &family);
}
