/* Tells how the CPU backend would compute drawn products on the processors that RUNG_CPU_PLAN knows and on a small one,
 * whatever this one is: where along m, n or k the plan changes, and a sum over the calls that the plan leads to. The
 * kernels are replaced by recorders, so that nothing is multiplied. tests/cpu_plans.sh compares what this prints with
 * results/plans-cpu.txt. usage: cpu_plans [every] (every: also the walks that are summed up) */
#define _GNU_SOURCE
#include "cpu/gemm_rules.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- what is recorded ---- */

enum { OPERAND_FLOATS = 1 << 25, SIDE_FLOATS_MOST = 1 << 24 };

static float *a, *b, *c;         /* the operands; nothing of them is ever filled in */
static atomic_ullong calls_told; /* a sum, since threads call in any order */

static uint64_t mix(uint64_t hash, int64_t value)
{
    hash = (hash ^ (uint64_t)value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Tells an address by its operand and place. What lies in a workspace is told as that. */
static uint64_t mix_address(uint64_t hash, const float *at)
{
    const float *const operands[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        if (at >= operands[i] && at < operands[i] + OPERAND_FLOATS)
            return mix(mix(hash, i + 1), at - operands[i]);
    return mix(hash, at ? 4 : 0);
}

static uint64_t mix_factor(uint64_t hash, float factor)
{
    return mix(hash, (int64_t)(factor * 8.0f));
}

static void note(uint64_t hash)
{
    atomic_fetch_add(&calls_told, hash);
}

/* Marks of tiles with four sums instead of each one, and of rows beside a B that is turned as it is loaded. */
enum { FEW_SUMS = 1 << 20, TURNED_ROWS = 1 << 20, AHEAD_TILE = 1 << 21, ONE_ROW = 1 << 20 };

static void note_tile(int which, int64_t k, const float *from_a, int64_t lda, const float *from_b, int64_t ldb,
                      const float *to, const rung_tile_out *out)
{
    uint64_t hash = mix_address(mix_address(mix_address(mix(mix(1, which), k), from_a), from_b), to);
    hash = mix_factor(mix_factor(mix(mix(mix(hash, lda), ldb), out->ldc), out->alpha), out->beta);
    hash = mix(mix(mix(mix(hash, out->lanes), out->b_lanes), out->ask_c), out->past);
    /* What is asked of B is read of tiles in place alone. */
    hash = mix(mix(hash, out->asks), out->asks == RUNG_ASK_NOTHING ? 0 : out->ask_at);
    hash = mix_address(hash, out->fetch.at);
    if (out->fetch.at)
        hash = mix(mix(mix(hash, out->fetch.end - out->fetch.at), out->fetch.gap), out->fetch.ld);
    note(hash);
}

/* Tiles in turn are told as if each had been called. */
static void note_run(int which, const rung_tile_run *run, int64_t k, const float *from_a, int64_t lda,
                     const float *from_b, int64_t ldb, const float *to, const rung_tile_out *out)
{
    rung_tile_out each = *out;
    each.asks = RUNG_ASK_NOTHING;
    for (int64_t t = 0; t < run->count; t++)
        note_tile(which, k, from_a + t * run->a_next, lda, from_b + t * run->b_next, ldb, to + t * run->c_next, &each);
}

static void note_rows(int which, const rung_rank_args *x, int has_groups)
{
    uint64_t hash = mix_address(mix_address(mix_address(mix(2, which), x->a), x->b), x->c);
    hash = mix(mix(mix(mix(mix(mix(mix(hash, x->m), x->n), x->k), x->a_row), x->a_step), x->ldb), x->ldc);
    hash = mix_factor(mix_factor(hash, x->alpha), x->beta);
    note(has_groups ? mix(mix(hash, x->b_group), x->ask_c) : hash);
}

static void note_dot(int which, const rung_dot_args *x, int64_t rows)
{
    uint64_t hash = mix_address(mix_address(mix_address(mix(mix(3, which), rows), x->s), x->t), x->c);
    hash = mix(mix(mix(mix(mix(mix(hash, x->k), x->lds), x->t_step), x->t_ld), x->c_row), x->c_col);
    note(mix(mix_factor(mix_factor(hash, x->alpha), x->beta), x->asks));
}

static void note_stream(int which, int64_t steps, int64_t columns, const float *from_a, const float *from_b,
                        int64_t ldb, int64_t ld, const float *ask, int64_t ask_rows)
{
    uint64_t hash = mix_address(mix_address(mix(4, which), from_a), from_b);
    hash = mix(mix(mix(mix(hash, steps), columns), ldb), ld);
    note(mix(mix_address(hash, ask_rows ? ask : NULL), ask_rows));
}

static void note_ahead(int which, int64_t k, const float *from_a, const float *from_b, int64_t ldb, const float *to,
                       const rung_tile_out *out, const float *ask, int lines)
{
    note_tile(AHEAD_TILE + which, k, from_a, 0, from_b, ldb, to, out);
    note(mix(mix_address(9, lines ? ask : NULL), lines));
}

static void note_pack(int which, const float *from, int64_t lds, int64_t width, int64_t k, int panel)
{
    note(mix(mix(mix(mix(mix_address(mix(5, which), from), lds), width), k), panel));
}

static void note_turn(int which, const float *to, int64_t ldc, int64_t ldd, int64_t m, int64_t n, float beta)
{
    note(mix_factor(mix(mix(mix(mix(mix_address(mix(6, which), to), ldc), ldd), m), n), beta));
}

static void note_sums(int which, const float *to, int64_t ldc, int64_t ld, int64_t m, int64_t n, float alpha,
                      float beta)
{
    note(mix_factor(mix_factor(mix(mix(mix(mix(mix_address(mix(7, which), to), ldc), ld), m), n), alpha), beta));
}

static void note_finish(int which, const float *at, int64_t ldc, int64_t m, int64_t n, const float *row_bias,
                        const float *column_bias, int activation)
{
    uint64_t hash = mix_address(mix_address(mix_address(mix(8, which), at), row_bias), column_bias);
    note(mix(mix(mix(mix(hash, ldc), m), n), activation));
}

/* ---- recorders: a function for each place of a family's table; family 1 is another one's half, family 2 its tiles of
 * a line ---- */

#define TILE(family, kind, nv, rows)                                                                                   \
    static void tile_##family##_##kind##_##nv##_##rows(int64_t k, const float *from_a, int64_t lda,                    \
                                                       const float *from_b, int64_t ldb, float *to,                    \
                                                       const rung_tile_out *out)                                       \
    {                                                                                                                  \
        note_tile(((family * 2 + kind) * 8 + nv) * 16 + rows, k, from_a, lda, from_b, ldb, to, out);                   \
    }
#define FEW(family, kind, nv, rows)                                                                                    \
    static void few_##family##_##kind##_##nv##_##rows(int64_t k, const float *from_a, int64_t lda,                     \
                                                      const float *from_b, int64_t ldb, float *to,                     \
                                                      const rung_tile_out *out)                                        \
    {                                                                                                                  \
        note_tile(FEW_SUMS + ((family * 2 + kind) * 8 + nv) * 16 + rows, k, from_a, lda, from_b, ldb, to, out);        \
    }
#define RUN(family, kind, nv, rows)                                                                                    \
    static void run_##family##_##kind##_##nv##_##rows(const rung_tile_run *run, int64_t k, const float *from_a,        \
                                                      int64_t lda, const float *from_b, int64_t ldb, float *to,        \
                                                      const rung_tile_out *out)                                        \
    {                                                                                                                  \
        note_run(((family * 2 + kind) * 8 + nv) * 16 + rows, run, k, from_a, lda, from_b, ldb, to, out);               \
    }
#define STREAM(family, rows)                                                                                           \
    static void stream_##family##_##rows(int64_t steps, int64_t columns, const float *from_a, const float *from_b,     \
                                         int64_t ldb, float *sums, int64_t ld, const float *ask, int64_t ask_rows)     \
    {                                                                                                                  \
        (void)sums;                                                                                                    \
        note_stream(family * 8 + rows, steps, columns, from_a, from_b, ldb, ld, ask, ask_rows);                        \
    }
#define AHEAD(family, rows)                                                                                            \
    static void ahead_##family##_##rows(int64_t k, const float *from_a, const float *from_b, int64_t ldb, float *to,   \
                                        const rung_tile_out *out, const float *ask, int lines)                         \
    {                                                                                                                  \
        note_ahead(family * 16 + rows, k, from_a, from_b, ldb, to, out, ask, lines);                                   \
    }
#define DOT(family, columns)                                                                                           \
    static void dot_##family##_##columns(const rung_dot_args *x, int64_t rows)                                         \
    {                                                                                                                  \
        note_dot(family * 8 + columns, x, rows);                                                                       \
    }
#define RANK(family, k)                                                                                                \
    static void rank_##family##_##k(const rung_rank_args *x)                                                           \
    {                                                                                                                  \
        note_rows(family * 32 + k, x, 1);                                                                              \
    }
#define SHORT(family, k)                                                                                               \
    static void short_##family##_##k(const rung_rank_args *x)                                                          \
    {                                                                                                                  \
        note_rows(family * 32 + 16 + k, x, 0);                                                                         \
    }
#define TURNED(family, steps)                                                                                          \
    static void turned_##family##_##steps(const rung_rank_args *x)                                                     \
    {                                                                                                                  \
        rung_rank_args told = *x;                                                                                      \
        told.k = 0; /* which the function itself says */                                                               \
        note_rows(TURNED_ROWS + family * 32 + steps, &told, 0);                                                        \
    }
#define OTHERS(family)                                                                                                 \
    static void pack_by_k_##family(float *to, const float *from, int64_t lds, int64_t width, int64_t k, int panel)     \
    {                                                                                                                  \
        (void)to;                                                                                                      \
        note_pack(family * 2, from, lds, width, k, panel);                                                             \
    }                                                                                                                  \
    static void pack_by_row_##family(float *to, const float *from, int64_t lds, int64_t width, int64_t k, int panel)   \
    {                                                                                                                  \
        (void)to;                                                                                                      \
        note_pack(family * 2 + 1, from, lds, width, k, panel);                                                         \
    }                                                                                                                  \
    static void turn_##family(float *to, int64_t ldc, const float *d, int64_t ldd, int64_t m, int64_t n, float beta)   \
    {                                                                                                                  \
        (void)d;                                                                                                       \
        note_turn(family, to, ldc, ldd, m, n, beta);                                                                   \
    }                                                                                                                  \
    static void stream_row_##family(int64_t steps, int64_t columns, const float *from_a, const float *from_b,          \
                                    int64_t ldb, float *sums)                                                          \
    {                                                                                                                  \
        note_stream(ONE_ROW + family, steps, columns, from_a, from_b, ldb, 0, NULL, 0);                                \
        note(mix_address(10, sums));                                                                                   \
    }                                                                                                                  \
    static float dot_of_vectors_##family(int64_t k, const float *x, const float *y)                                    \
    {                                                                                                                  \
        note(mix(mix_address(mix_address(mix(11, family), x), y), k));                                                 \
        return 0.0f;                                                                                                   \
    }                                                                                                                  \
    static void add_sums_##family(float *to, int64_t ldc, const float *sums, int64_t ld, int64_t m, int64_t n,         \
                                  float alpha, float beta)                                                             \
    {                                                                                                                  \
        (void)sums;                                                                                                    \
        note_sums(family, to, ldc, ld, m, n, alpha, beta);                                                             \
    }                                                                                                                  \
    static void finish_##family(float *at, int64_t ldc, int64_t m, int64_t n, const float *row_bias,                   \
                                const float *column_bias, int activation)                                              \
    {                                                                                                                  \
        note_finish(family, at, ldc, m, n, row_bias, column_bias, activation);                                         \
    }

#define EACH_4(X, ...) X(__VA_ARGS__, 0) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2) X(__VA_ARGS__, 3)
#define EACH_8(X, ...) EACH_4(X, __VA_ARGS__) X(__VA_ARGS__, 4) X(__VA_ARGS__, 5) X(__VA_ARGS__, 6) X(__VA_ARGS__, 7)
#define EACH_10(X, ...) EACH_8(X, __VA_ARGS__) X(__VA_ARGS__, 8) X(__VA_ARGS__, 9)
#define EACH_12(X, ...) EACH_10(X, __VA_ARGS__) X(__VA_ARGS__, 10) X(__VA_ARGS__, 11)
#define EACH_16(X, ...)                                                                                                \
    EACH_12(X, __VA_ARGS__) X(__VA_ARGS__, 12) X(__VA_ARGS__, 13) X(__VA_ARGS__, 14) X(__VA_ARGS__, 15)
#define EACH_NV(X, family, kind)                                                                                       \
    EACH_16(X, family, kind, 0)                                                                                        \
    EACH_16(X, family, kind, 1)                                                                                        \
    EACH_16(X, family, kind, 2)                                                                                        \
    EACH_16(X, family, kind, 3)                                                                                        \
    EACH_16(X, family, kind, 4) EACH_16(X, family, kind, 5) EACH_16(X, family, kind, 6) EACH_16(X, family, kind, 7)
#define EACH_TILE(X, family) EACH_NV(X, family, 0) EACH_NV(X, family, 1)
#define EACH_FUNCTION(family)                                                                                          \
    EACH_TILE(TILE, family)                                                                                            \
    EACH_TILE(FEW, family)                                                                                             \
    EACH_TILE(RUN, family)                                                                                             \
    EACH_8(STREAM, family)                                                                                             \
    EACH_16(AHEAD, family)                                                                                             \
    EACH_8(DOT, family) EACH_10(RANK, family) EACH_10(SHORT, family) EACH_8(TURNED, family) OTHERS(family)
EACH_FUNCTION(0)
EACH_FUNCTION(1)

/* Replaces what a family's table holds, and leaves empty what is empty in it. */
#define PUT(place, function) (place) = (place) ? (function) : NULL;
#define PUT_TILE(family, kind, nv, rows) PUT(to->tile[kind][nv][rows], tile_##family##_##kind##_##nv##_##rows)
#define PUT_FEW(family, kind, nv, rows) PUT(to->few[kind][nv][rows], few_##family##_##kind##_##nv##_##rows)
#define PUT_RUN(family, kind, nv, rows) PUT(to->run[kind][nv][rows], run_##family##_##kind##_##nv##_##rows)
#define PUT_STREAM(family, rows) PUT(to->stream[rows], stream_##family##_##rows)
#define PUT_AHEAD(family, rows) PUT(to->ahead[rows], ahead_##family##_##rows)
#define PUT_DOT(family, columns) PUT(to->dot[columns], dot_##family##_##columns)
#define PUT_RANK(family, k) PUT(to->rank[k], rank_##family##_##k)
#define PUT_SHORT(family, k) PUT(to->short_rows[k], short_##family##_##k)
#define PUT_TURNED(family, k) PUT(to->turned[k], turned_##family##_##k)
#define RECORDING(family)                                                                                              \
    static void record_##family(rung_cpu_kernel *to)                                                                   \
    {                                                                                                                  \
        EACH_TILE(PUT_TILE, family)                                                                                    \
        EACH_TILE(PUT_FEW, family)                                                                                     \
        EACH_TILE(PUT_RUN, family)                                                                                     \
        EACH_8(PUT_STREAM, family)                                                                                     \
        EACH_16(PUT_AHEAD, family)                                                                                     \
        EACH_8(PUT_DOT, family)                                                                                        \
        EACH_10(PUT_RANK, family)                                                                                      \
        EACH_10(PUT_SHORT, family)                                                                                     \
        EACH_8(PUT_TURNED, family) to->pack_by_k = pack_by_k_##family;                                                 \
        to->pack_by_row = pack_by_row_##family;                                                                        \
        to->turn = turn_##family;                                                                                      \
        to->stream_row = stream_row_##family;                                                                          \
        to->dot_of_vectors = dot_of_vectors_##family;                                                                  \
        to->add_sums = add_sums_##family;                                                                              \
        to->finish = finish_##family;                                                                                  \
    }
RECORDING(0)
RECORDING(1)

_Static_assert(RUNG_TILE_MAX_VECTORS == 8 && RUNG_TILE_MAX_ROWS == 16 && RUNG_STREAM_MAX_ROWS == 8 &&
                   RUNG_DOT_MAX_COLS == 8 && RUNG_RANK_STEPS == 10 && RUNG_SHORT_STEPS == 10 && RUNG_TURNED_STEPS == 8,
               "each place of a family's table has a recorder");

/* Returns how many functions of a family's table are its own yet, not recorders. */
static int functions_left(const rung_cpu_kernel *recording, const rung_cpu_kernel *family)
{
    enum { NUMBERS_BELOW = 1 << 12 }; /* no function lies there */
    const size_t words = sizeof *family / sizeof(uintptr_t);
    int left = 0;
    for (size_t i = offsetof(rung_cpu_kernel, tile) / sizeof(uintptr_t); i < words; i++) {
        uintptr_t was, is;
        memcpy(&was, (const char *)family + i * sizeof was, sizeof was);
        memcpy(&is, (const char *)recording + i * sizeof is, sizeof is);
        left += was == is && is >= NUMBERS_BELOW;
    }
    if (left)
        fprintf(stderr, "%d functions of a family's table are not replaced by recorders\n", left);
    return left;
}

/* ---- walks ---- */

typedef struct machine {
    const char *processor, *family;
    rung_processor cpu;
    rung_cpu_kernel kernel, half; /* recorders */
    rung_pool *pool;
} machine;

/* Two sizes are drawn, the third one walks. */
typedef struct walk {
    int64_t size[3]; /* m, n, k */
    int along;
    int64_t pad_a, pad_b, pad_c, page; /* page: leading dimensions are multiples of it; 0: they are not */
    int shift_c, beta, bias, in_order;
} walk;

static uint64_t drawn;

static int64_t draw(int64_t below)
{
    drawn += 0x9e3779b97f4a7c15u;
    uint64_t x = (drawn ^ drawn >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (int64_t)((x ^ x >> 31) >> 1) % below;
}

/* Draws a size between 1 and 8191, as often between 1 and 2 as between 4096 and 8192. */
static int64_t draw_size(void)
{
    int64_t least = (int64_t)1 << draw(13);
    return least + draw(least);
}

static walk draw_walk(void)
{
    walk w = {.along = (int)draw(3)};
    for (int i = 0; i < 3; i++)
        w.size[i] = draw_size();
    w.beta = draw(4) == 0;
    w.shift_c = draw(3) == 0;
    w.bias = draw(4) ? 0 : 1 + (int)draw(2);
    if (draw(4) == 0) {
        w.page = 1024;
    } else if (draw(2)) {
        w.pad_a = draw(40);
        w.pad_b = draw(40);
        w.pad_c = draw(40);
    }
    return w;
}

/* Draws a walk of which only the plans are asked for. Half of them have the sizes that most rules ask for, a few have
 * operands that no cache holds, and of some all rows are whole lines. */
static walk draw_planned_walk(void)
{
    enum { LEAST = 16, OCTAVES = 7, LARGE = 8192 };
    walk w = draw_walk();
    if (!w.page && draw(3) == 0)
        w.page = LINE_FLOATS;
    const int64_t kind = draw(10);
    for (int i = 0; kind < 5 && i < 3; i++) {
        const int64_t least = (int64_t)LEAST << draw(OCTAVES);
        w.size[i] = least + draw(least);
    }
    for (int i = 0; kind == 5 && i < 3; i++)
        w.size[i] = draw(3) ? LARGE + draw(LARGE) : w.size[i];
    if (!w.page && draw(6) == 0) /* rows of one operand lie far apart */
        *(draw(2) ? &w.pad_a : &w.pad_b) = draw(1024);
    return w;
}

static int64_t leading(int64_t line, int64_t pad, int64_t page)
{
    return page ? round_up(line, page) : line + pad;
}

static rung_cpu_args args_at(const machine *on, const walk *w, int64_t at, int trans_a, int trans_b)
{
    int64_t size[3] = {w->size[0], w->size[1], w->size[2]};
    size[w->along] = at;
    int64_t m = size[0], n = size[1], k = size[2];
    return (rung_cpu_args){.kernel = &on->kernel,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = a,
                           .lda = leading(trans_a ? m : k, w->pad_a, w->page),
                           .b = b,
                           .ldb = leading(trans_b ? k : n, w->pad_b, w->page),
                           .c = c + w->shift_c,
                           .ldc = leading(n, w->pad_c, w->page),
                           .alpha = 1.0f,
                           .beta = w->beta ? 0.5f : 0.0f,
                           .trans_a = trans_a,
                           .trans_b = trans_b,
                           .threads = 1,
                           .pool = on->pool,
                           .in_order = w->in_order,
                           .cpu = &on->cpu,
                           .batch = 1,
                           .bias_kind = (rung_bias)w->bias,
                           .bias = w->bias ? a + SIDE_FLOATS_MOST : NULL,
                           .activation = w->bias ? RUNG_RELU : RUNG_IDENTITY};
}

/* Returns whether operands have no more floats than `most`, each. */
static int fits(const rung_cpu_args *p, int64_t most)
{
    return (p->trans_a ? p->k : p->m) * p->lda <= most && (p->trans_b ? p->n : p->k) * p->ldb <= most &&
           p->m * p->ldc <= most;
}

/* Names what of a plan does not grow with the sizes. */
static void name_plan(const rung_cpu_args *p, char *name, size_t bytes)
{
    static const char *const paths[] = {"tiny", "direct", "ahead",  "stream", "packb", "outer",      "past",
                                        "rank", "short",  "turned", "packed", "dot",   "transposed", "long"};
    static const char *const asks[] = {"", ",after", ",below", ",after,into_l1", ",of_a"};
    gemm_plan plan = rung_gemm_plan(p);
    int has_inner = plan.path == PATH_LONG_K || plan.path == PATH_TRANSPOSED;
    snprintf(name, bytes, "%s%s%s%s%s%s%s%s%s%s%.0d", paths[plan.path], has_inner ? "/" : "",
             has_inner ? paths[plan.inner] : "", plan.of_b ? ",b" : "", plan.transposed ? ",transposed" : "",
             plan.narrow ? ",narrow" : "", plan.fetch ? ",fetch" : "", asks[plan.asks], plan.four_sums ? ",row" : "",
             plan.last ? ",last" : "", plan.last);
}

/* Sums up the calls of a product; of a long one also those of two threads. */
static uint64_t calls_of(rung_cpu_args p)
{
    enum { WORK_OF_TWO = 1 << 24 }; /* which two threads share, however long ago they had work */
    atomic_store(&calls_told, 0);
    if (rung_cpu_gemm(&p) != RUNG_SUCCESS)
        exit(2);
    uint64_t told = atomic_load(&calls_told);
    if ((double)p.m * (double)p.n * (double)p.k < WORK_OF_TWO)
        return told;
    p.threads = 2;
    atomic_store(&calls_told, 0);
    if (rung_cpu_gemm(&p) != RUNG_SUCCESS)
        exit(2);
    return mix(told, (int64_t)atomic_load(&calls_told));
}

static void grow(char **text, size_t *length, const char *more)
{
    size_t bytes = strlen(more);
    *text = realloc(*text, *length + bytes + 1);
    if (!*text)
        exit(2);
    memcpy(*text + *length, more, bytes + 1);
    *length += bytes;
}

/* Walks, and returns "m=1: tiny 7: direct ..., calls 1234abcd": the sizes from which on each plan holds, and the sum of
 * the calls at these sizes, and of the blocks at all. The caller frees it. */
static char *take(const machine *on, const walk *w, int64_t most, int trans_a, int trans_b)
{
    enum { EVERY_ONE_BELOW = 130 };
    char *text = NULL, name[96], before[96] = "", piece[160];
    size_t length = 0;
    uint64_t calls = 0;
    static const char dimension[] = "mnk";
    snprintf(piece, sizeof piece, "%s %s %c%c %lldx%lldx%lld along %c%s%s:", on->processor, on->family,
             trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', (long long)w->size[0], (long long)w->size[1],
             (long long)w->size[2], dimension[w->along],
             w->beta   ? " with beta"
             : w->bias ? " with bias"
                       : "",
             w->page ? " in pages" : "");
    grow(&text, &length, piece);
    for (int64_t at = 1; at <= most; at += at < EVERY_ONE_BELOW ? 1 : at / 64 + draw(3)) {
        rung_cpu_args p = args_at(on, w, at, trans_a, trans_b);
        if (!fits(&p, SIDE_FLOATS_MOST))
            break;
        gemm_plan plan = rung_gemm_plan(&p);
        calls = mix(mix(mix(mix(mix(calls, plan.mc), plan.kc), plan.nc), plan.chunk), plan.most);
        calls = mix(mix(mix(calls, plan.parts), plan.split_m), rung_gemm_workspace(&p, &plan, p.n));
        name_plan(&p, name, sizeof name);
        if (strcmp(name, before) == 0)
            continue;
        calls = mix(calls, (int64_t)calls_of(p));
        snprintf(piece, sizeof piece, " %lld %s", (long long)at, name);
        grow(&text, &length, piece);
        memcpy(before, name, sizeof before);
    }
    snprintf(piece, sizeof piece, "; %08x", (unsigned)(calls ^ calls >> 32));
    grow(&text, &length, piece);
    return text;
}

enum { RULES_MOST = 64 };

static int64_t decided[RULES_MOST], decided_anywhere[RULES_MOST];

static uint64_t sum_of_plan(const rung_cpu_args *p, const gemm_plan *plan)
{
    uint64_t sum = mix(mix(mix(mix(0, plan->path), plan->inner), plan->of_b * 2 + plan->transposed),
                       plan->narrow * 2 + plan->fetch);
    sum = mix(mix(mix(mix(sum, plan->asks), plan->four_sums), plan->last), plan->rows_most);
    sum = mix(mix(mix(mix(mix(sum, plan->mc), plan->kc), plan->nc), plan->chunk), plan->most);
    return mix(mix(mix(mix(sum, plan->parts), plan->split_m), plan->last_rows), rung_gemm_workspace(p, plan, p->n));
}

/* Sums up what rules decide of a plan: all that does not grow with the size that walks. */
static uint64_t decided_of(const gemm_plan *plan, int along)
{
    enum { M, N, K };
    uint64_t sum = mix(mix(mix(plan->path, plan->inner), plan->of_b * 2 + plan->transposed),
                       (plan->narrow * 2 + plan->fetch) * 2 + plan->apart);
    sum = mix(mix(mix(mix(mix(sum, plan->asks), plan->four_sums), plan->last), plan->rows_most), plan->most);
    sum = mix(sum, plan->parts);
    return along == K ? mix(sum, plan->split_m) : mix(mix(sum, plan->kc), along == N ? plan->mc : plan->nc);
}

static gemm_plan plan_at(const machine *on, const walk *w, int64_t at, int trans_a, int trans_b)
{
    const rung_cpu_args p = args_at(on, w, at, trans_a, trans_b);
    return rung_gemm_plan(&p);
}

/* Returns the size at which a rule begins to decide otherwise than at `before`, where it does at `after`. */
static int64_t change_between(const machine *on, const walk *w, int64_t before, int64_t after, int trans_a, int trans_b)
{
    const gemm_plan first = plan_at(on, w, before, trans_a, trans_b);
    const uint64_t was = decided_of(&first, w->along);
    while (after - before > 1) {
        const int64_t middle = before + (after - before) / 2;
        const gemm_plan plan = plan_at(on, w, middle, trans_a, trans_b);
        *(decided_of(&plan, w->along) == was ? &before : &after) = middle;
    }
    return after;
}

/* Beyond the first sizes a walk takes both sides of round ones, at which blocks change that grow with the size. */
static int64_t next_planned(int64_t at)
{
    enum { EVERY_ONE_BELOW = 130, ROUND = 32 };
    return at < EVERY_ONE_BELOW || at % ROUND == 0 ? at + 1 : round_up(at + at / 16, ROUND);
}

/* Sums up the plans along a walk and the very sizes at which they change, so that no limit can move by one unseen, and
 * counts which question decided on the path. Nothing runs, so that far more walks than above can be taken. */
static uint64_t plans_along(const machine *on, const walk *w, int trans_a, int trans_b)
{
    enum { MOST = 20000, FLOATS_MOST = 1 << 28 };
    uint64_t sum = 0, was = 0;
    for (int64_t before = 0, at = 1; at <= MOST; before = at, at = next_planned(at)) {
        rung_cpu_args p = args_at(on, w, at, trans_a, trans_b);
        if (!fits(&p, FLOATS_MOST))
            break;
        gemm_plan plan = rung_gemm_plan(&p);
        decided[plan.rule]++;
        sum = mix(sum, (int64_t)sum_of_plan(&p, &plan));
        const uint64_t is = decided_of(&plan, w->along);
        if (before && is != was)
            sum = mix(sum, change_between(on, w, before, at, trans_a, trans_b));
        was = is;
    }
    return sum;
}

/* Some walks are printed, many more are summed up in a line, and of still more the plans alone, some of them of
 * products in the order of k. */
static void tell(const machine *on, int trans_a, int trans_b, int every)
{
    enum { PRINTED = 10, SUMMED_UP = 150, PLANNED = 3000, IN_ORDER = 20, MOST = 20000 };
    uint64_t all = 0, plans = 0;
    for (int i = 0; i < PRINTED + SUMMED_UP; i++) {
        walk w = draw_walk();
        char *said = take(on, &w, MOST, trans_a, trans_b);
        if (i < PRINTED || every)
            puts(said);
        for (const char *at = said; i >= PRINTED && *at; at++)
            all = mix(all, *at);
        free(said);
    }
    printf("%s %s %c%c %d more walks; %08x\n", on->processor, on->family, trans_a ? 'T' : 'N', trans_b ? 'T' : 'N',
           SUMMED_UP, (unsigned)(all ^ all >> 32));
    const uint64_t next = drawn;
    drawn = 7; /* the walks above do not depend on how many these are */
    for (int i = 0; i < PLANNED; i++) {
        walk w = draw_planned_walk();
        w.in_order = i % IN_ORDER == 0;
        plans = mix(plans, (int64_t)plans_along(on, &w, trans_a, trans_b));
    }
    drawn = next;
    printf("%s %s %c%c plans along %d more walks; %08x\n", on->processor, on->family, trans_a ? 'T' : 'N',
           trans_b ? 'T' : 'N', PLANNED, (unsigned)(plans ^ plans >> 32));
}

/* Walks along few rows beside a transposed B and few columns beside a transposed A, for which there are most rules, and
 * along rows of few steps that no cache holds, and of dot products that read the columns from L2. */
static void tell_few(const machine *on)
{
    static const struct few {
        walk w;
        int64_t most;
        int trans_a, trans_b;
    } each[] = {{{.size = {1, 300, 1000}, .along = 0}, 40, 0, 1},
                {{.size = {4000, 1, 1000}, .along = 1}, 40, 1, 0},
                {{.size = {1, 12000, 5}, .along = 0}, 80, 0, 0},
                {{.size = {1, 9, 3500}, .along = 0}, 140, 0, 1}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        char *said = take(on, &each[i].w, each[i].most, each[i].trans_a, each[i].trans_b);
        puts(said);
        free(said);
    }
}

/* Sums up the calls of few rows beside a B from memory, at each number of rows: the plan is one, what is asked for is
 * not. */
static void tell_far(const machine *on)
{
    enum { ROWS_MOST = 8 };
    const walk w = {.size = {1, 3000, 1500}};
    uint64_t sum = 0;
    for (int64_t m = 1; m <= ROWS_MOST; m++)
        sum = mix(sum, (int64_t)calls_of(args_at(on, &w, m, 0, 0)));
    printf("%s %s calls of up to %d rows beside a far B; %08x\n", on->processor, on->family, ROWS_MOST,
           (unsigned)(sum ^ sum >> 32));
}

/* Sums up the calls of small products, most of which are computed before a plan would be made, along drawn walks. */
static void tell_small(const machine *on)
{
    enum { WALKS = 600, OCTAVES = 7, MOST = 130, STEPS_MOST = 300, RESULTS_MOST = 1 << 14, STEPS_OF_ROWS = 10 };
    uint64_t sum = 0;
    for (int i = 0; i < WALKS; i++) {
        walk w = draw_walk();
        for (int j = 0; j < 3; j++) {
            const int64_t least = (int64_t)1 << draw(OCTAVES);
            w.size[j] = least + draw(least);
        }
        for (int64_t at = 1; at <= (w.along == 2 ? STEPS_MOST : MOST); at++) {
            const rung_cpu_args p = args_at(on, &w, at, i & 1, i >> 1 & 1);
            if (is_tiny(&p) || (p.k <= STEPS_OF_ROWS && p.m * p.n <= RESULTS_MOST))
                sum = mix(sum, (int64_t)calls_of(p));
        }
    }
    printf("%s %s calls of small products along %d walks; %08x\n", on->processor, on->family, WALKS,
           (unsigned)(sum ^ sum >> 32));
}

/* Tells how many of the plans above each question decided. */
static void tell_rules(const machine *on)
{
    printf("%s %s decided:", on->processor, on->family);
    for (int i = 0; rung_gemm_rule_name(i); i++) {
        printf(" %s %lld", rung_gemm_rule_name(i), (long long)decided[i]);
        decided_anywhere[i] += decided[i];
        decided[i] = 0;
    }
    puts("");
}

/* Returns whether a question never decides, on any of the processors: it could as well not be asked. */
static int has_idle_rule(void)
{
    int idle = 0;
    for (int i = 0; rung_gemm_rule_name(i); i++)
        if (!decided_anywhere[i]) {
            fprintf(stderr, "%s decides nothing\n", rung_gemm_rule_name(i));
            idle = 1;
        }
    return idle;
}

/* Returns how many products are planned in another way where a context remembers plans: drawn ones, and what they
 * become when one of the things that a plan may depend on changes. */
static int wrong_memories(const machine *on)
{
    enum { DRAWN = 20000, CHANGES = 13 };
    rung_gemm_plans *plans = rung_gemm_plans_create();
    int wrong = 0;
    for (int i = 0; plans && i < DRAWN; i++) {
        walk w = draw_walk();
        rung_cpu_args p = args_at(on, &w, w.size[w.along], i / CHANGES & 1, i / CHANGES >> 1 & 1), other = p;
        const int64_t place = 1 << i / CHANGES % 4; /* in a line: a quarter and a half of one matter, too */
        switch (i % CHANGES) {
        case 0: other.m++; break;
        case 1: other.n = min64(other.n + 1, other.ldc); break;
        case 2: other.k++; break;
        case 3: other.lda += 1024; break;
        case 4: other.ldb += 1024 - other.ldb % 1024; break;
        case 5: other.ldc++; break;
        case 6: /* which matters where B's rows are whole lines */
            p.ldb = other.ldb = round_up(p.ldb, LINE_FLOATS);
            other.b += place;
            break;
        case 7: /* which matters where k is short beside a C that L2 does not hold */
            if (i / CHANGES % 8 < 4)
                p.m = p.n = p.lda = p.ldb = p.ldc = 1600, p.k = 17 + i % 8, p.c = c;
            other = p;
            other.c += place;
            break;
        case 8: other.trans_a ^= 1; break;
        case 9: other.trans_b ^= 1; break;
        case 10: other.in_order = 1; break;
        case 11: other.beta = other.beta == 0.0f ? 0.5f : 0.0f; break;
        case 12: /* which matters where the transposed product reads vectors of A in place */
            p.m = 1000, p.n = 56, p.k = 300 + i % 300, p.lda = 1008, p.ldb = 600, p.ldc = 56, p.trans_a = 1;
            other = p;
            other.a += place;
            break;
        }
        const rung_cpu_args *each[] = {&p, &other, &p};
        for (int j = 0; j < 3; j++) {
            rung_cpu_args with = *each[j];
            with.plans = plans;
            gemm_plan made = rung_gemm_plan(each[j]), recent = rung_gemm_recent_plan(&with);
            wrong += sum_of_plan(each[j], &made) != sum_of_plan(each[j], &recent) || made.rule != recent.rule;
        }
    }
    free(plans);
    if (wrong)
        fprintf(stderr, "%s %s: %d products are planned in another way from memory\n", on->processor, on->family,
                wrong);
    return wrong;
}

/* Returns a sum over the calls by which a tiny product is computed; 0: it is not tiny. */
static uint64_t sum_of_tiny(const rung_cpu_args *p)
{
    atomic_store(&calls_told, 0);
    return rung_gemm_if_tiny(p, 1) ? mix(1, (int64_t)atomic_load(&calls_told)) : 0;
}

/* Returns how many tiny products are computed in another way where a context remembers ways: drawn ones, and what they
 * become when one of the things that a way may depend on changes, so that both often have one place. */
static int wrong_ways(const machine *on, const rung_cpu_kernel *other_kernel)
{
    enum { DRAWN = 20000, CHANGES = 11, SIDE = 40, COLLIDING = 1024, PLACES = 16 };
    rung_tiny_ways *ways = rung_tiny_ways_create();
    int wrong = 0;
    for (int i = 0; ways && i < DRAWN; i++) {
        walk w = {
            .size = {1 + draw(SIDE), 1 + draw(SIDE), 1 + draw(SIDE)}, .pad_a = (int)draw(2), .pad_b = (int)draw(2)};
        rung_cpu_args p = args_at(on, &w, w.size[0], (int)draw(2), (int)draw(2)), other = p;
        switch (i % CHANGES) {
        case 0: other.m = 1 + (p.m + PLACES - 1) % (2 * PLACES); break;
        case 1: other.n = 1 + (p.n + PLACES - 1) % (2 * PLACES); break;
        case 2: other.k = 1 + (p.k + PLACES - 1) % (2 * PLACES); break;
        case 3: /* rows that collide in L1 are read by tiles of fewer rows */
            other.m = p.m = 9 + draw(SIDE);
            other.lda = COLLIDING;
            break;
        case 4: other.ldb += 1 + draw(SIDE); break;
        case 5: other.ldc += 1 + draw(SIDE); break;
        case 6: other.trans_a ^= 1; break;
        case 7: other.trans_b ^= 1; break;
        case 8: other.beta = 0.5f; break;
        case 9: other.in_order = 1; break;
        case 10: other.kernel = other_kernel; break;
        }
        other.lda = max64(other.lda, other.trans_a ? other.m : other.k);
        other.ldb = max64(other.ldb, other.trans_b ? other.k : other.n);
        other.ldc = max64(other.ldc, other.n);
        const rung_cpu_args *each[] = {&p, &other, &p};
        for (int j = 0; j < 3; j++) {
            rung_cpu_args with = *each[j];
            with.ways = ways;
            wrong += sum_of_tiny(each[j]) != sum_of_tiny(&with);
        }
    }
    free(ways);
    if (wrong)
        fprintf(stderr, "%s %s: %d tiny products are computed in another way from memory\n", on->processor, on->family,
                wrong);
    return wrong;
}

/* Tells how many threads products and batches of them would take, of sixteen. No worker spins here yet. */
static void tell_threads(const machine *on)
{
    enum { PRINTED = 4, SUMMED_UP = 2000, THREADS = 16 };
    uint64_t sum = 0;
    for (int i = 0; i < PRINTED + SUMMED_UP; i++) {
        const walk w = {.size = {1 << draw(12), 1 << draw(12), 1 << draw(12)}};
        rung_cpu_note said = {0};
        rung_cpu_args p = args_at(on, &w, w.size[0], i & 1, i >> 1 & 1);
        p.threads = THREADS;
        p.batch = draw(3) ? 1 : 1 + draw(300);
        p.note = &said;
        if (rung_cpu_gemm(&p) != RUNG_SUCCESS)
            exit(2);
        if (i < PRINTED)
            printf("%s %s threads of %lld products %lldx%lldx%lld: %d, %s\n", on->processor, on->family,
                   (long long)p.batch, (long long)p.m, (long long)p.n, (long long)p.k, said.threads, said.path);
        sum = mix(sum, said.threads);
        for (const char *at = said.path; *at; at++)
            sum = mix(sum, *at);
    }
    printf("%s %s threads of %d more; %08x\n", on->processor, on->family, SUMMED_UP, (unsigned)(sum ^ sum >> 32));
}

/* Sums up the calls of products of few more or fewer rows than are enough for threads to pack B together. */
static void tell_shared(const machine *on)
{
    enum { ROWS_A_THREAD = 96, COLUMNS = 1024, STEPS = 1024 };
    for (int threads = 2; threads <= 3; threads++) {
        printf("%s %s %d threads, rows x %d x %d:", on->processor, on->family, threads, COLUMNS, STEPS);
        for (int64_t m = ROWS_A_THREAD * threads - 1; m <= ROWS_A_THREAD * threads + 1; m++) {
            const walk w = {.size = {m, COLUMNS, STEPS}};
            rung_cpu_args p = args_at(on, &w, m, 0, 0);
            p.threads = threads;
            atomic_store(&calls_told, 0);
            if (rung_cpu_gemm(&p) != RUNG_SUCCESS)
                exit(2);
            const uint64_t told = atomic_load(&calls_told);
            printf(" %lld: %08x", (long long)m, (unsigned)(told ^ told >> 32));
        }
        printf("\n");
    }
}

/* Sums up the calls of products that many threads share: cells of a grid, and strips of pieces of k. */
static void tell_many(const machine *on)
{
    /* So large that each thread has work enough, however late the pool thinks that it comes. */
    static const walk walks[] = {{.size = {400, 800, 400}},  {.size = {900, 400, 360}},  {.size = {100, 3000, 400}},
                                 {.size = {16, 4000, 2000}}, {.size = {16, 3600, 2000}}, {.size = {4, 8000, 1600}}};
    for (int threads = 7; threads <= 16; threads += threads == 7 ? 1 : 4) {
        printf("%s %s %d threads:", on->processor, on->family, threads);
        for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
            rung_cpu_args p = args_at(on, &walks[i], walks[i].size[0], i % 2, i / 2 % 2);
            p.threads = threads;
            atomic_store(&calls_told, 0);
            if (rung_cpu_gemm(&p) != RUNG_SUCCESS)
                exit(2);
            const uint64_t told = atomic_load(&calls_told);
            printf(" %08x", (unsigned)(told ^ told >> 32));
        }
        printf("\n");
    }
}

/* Nothing else lies near an operand: what is asked for behind a workspace's end must not look like a part of one. */
static float *reserve(void)
{
    enum { GAP_FLOATS = 1 << 22 };
    float *at = mmap(NULL, ((size_t)OPERAND_FLOATS + 2 * GAP_FLOATS) * sizeof *at, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        exit(2);
    return at + GAP_FLOATS;
}

/* Returns how many families have another packed tile than their row says. */
static int other_tiles(void)
{
    int others = 0;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *row = rung_kernel_at(i);
        const rung_cpu_kernel *family = row->backend == RUNG_BACKEND_CPU ? rung_cpu_kernel_of(row) : NULL;
        if (!family || (family->mr == row->tm && family->nv * family->vl == row->tn))
            continue;
        printf("%s: its row in rows.inc has .tm = %d, .tn = %d, its FAMILY_MR and FAMILY_NV make %d x %d: change one "
               "of them\n",
               row->name, row->tm, row->tn, family->mr, family->nv * family->vl);
        others++;
    }
    return others;
}

/* One of those that RUNG_CPU_PLAN knows, or one with less cache than any of them, where blocks are as small as can be.
 */
static rung_processor processor_named(const char *name)
{
    if (strcmp(name, "small") == 0)
        return (rung_processor){
            .l1_bytes = 32 << 10, .l2_bytes = 256 << 10, .l3_bytes = 4 << 20, .whole_l3_bytes = 4 << 20};
    setenv("RUNG_CPU_PLAN", name, 1);
    return rung_cpu_processor();
}

int main(int count, char **words)
{
    static const struct {
        const char *processor, *family;
    } each[] = {{"zen1", "avx2_f32_6x16"},      {"zen3", "avx2_f32_6x16"},    {"zen4", "avx512_f32_8x48"},
                {"zen4", "avx512_f32_8x24"},    {"zen4", "avx2_f32_6x16"},    {"zen5", "avx512_f32_8x48"},
                {"emerald", "avx512_f32_8x48"}, {"emerald", "avx2_f32_6x16"}, {"zen5", "portable_f32_4x8"},
                {"small", "avx512_f32_8x48"},   {"small", "avx512_f32_8x24"}};
    if (other_tiles())
        return 1;
    int wrong = 0;
    a = reserve(), b = reserve(), c = reserve();
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        const rung_cpu_kernel *family = rung_cpu_kernel_of(rung_kernel_find(each[i].family));
        machine on = {each[i].processor, each[i].family, processor_named(each[i].processor), *family, {0},
                      rung_pool_create()};
        record_0(&on.kernel);
        if (family->half) {
            on.half = *family->half;
            record_1(&on.half);
            on.kernel.half = &on.half;
        }
        if (functions_left(&on.kernel, family) || (family->half && functions_left(&on.half, family->half)))
            return 1;
        drawn = 20261127;
        tell_threads(&on);
        tell_shared(&on);
        tell_many(&on);
        tell_few(&on);
        tell_far(&on);
        tell_small(&on);
        drawn = 20261126; /* the same walks on each */
        for (int trans = 0; trans < 4; trans++)
            tell(&on, trans & 1, trans >> 1, count > 1 && strcmp(words[1], "every") == 0);
        tell_rules(&on);
        wrong += wrong_memories(&on) + wrong_ways(&on, family->half ? &on.half : &on.kernel);
        rung_pool_destroy(on.pool);
    }
    return has_idle_rule() || wrong > 0;
}
