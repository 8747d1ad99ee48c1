/* What the files of the CPU product share: the plan, and who does what. gemm_plan.c decides, by the questions of
 * gemm_rules.h; gemm_tiny.c, gemm_paths.c and gemm_packed.c compute, by tiles that gemm_block.c places; gemm.c splits
 * the work over threads. README.md shows the way of a call through them. */
#ifndef RUNG_CPU_GEMM_H
#define RUNG_CPU_GEMM_H

#include "cpu/cpu.h"
#include "cpu/kernels/kernels.h"

typedef enum gemm_path {
    PATH_TINY,
    PATH_DIRECT,
    PATH_STREAM,
    PATH_PACK_B,
    PATH_OUTER,
    PATH_PAST,
    PATH_RANK,
    PATH_SHORT_ROWS,
    PATH_PACKED,
    PATH_DOT,
    PATH_TRANSPOSED,
    PATH_LONG_K
} gemm_path;

/* What tiles ask for of a B in place. AFTER: while the first tiles of a group of columns sum, the next group's part
 * comes into L2. BELOW: the group's own rows come into L1, some steps ahead. */
typedef enum gemm_asks { ASKS_NOTHING, ASKS_AFTER, ASKS_BELOW } gemm_asks;

typedef struct gemm_plan {
    gemm_path path;
    int64_t mc, kc, nc; /* blocks */
    int64_t chunk;      /* PATH_PACKED on one thread: columns of B that are packed at a time */
    int most;           /* vectors of columns in a tile, at most */
    int rows_most;      /* a B that is packed as one group of columns: rows of a tile, at most */
    int64_t parts;      /* PATH_LONG_K, PATH_STREAM: pieces of k, each summed apart; 1: one */
    gemm_path inner;    /* PATH_LONG_K: the path of each piece; PATH_TRANSPOSED: of a strip, of all of them alike */
    int fetch;          /* A in place: fetch its next rows ahead */
    int narrow;         /* PATH_DOT: vectors half as long */
    int of_b;           /* PATH_DOT, PATH_TRANSPOSED: the long operand is B, not A (gemm_side) */
    int split_m;        /* threads cut m, else n */
    int last;           /* columns in place, or packed from a transposed B: the last ones that go as dot products */
    int transposed;     /* PATH_LONG_K: the pieces are those of the transposed product */
    gemm_asks asks_b;   /* B in place */
    int apart;          /* B in place: sums lie apart from C, which is added last */
    int four_sums;      /* B in place: wants_four_sums(), of the whole product */
} gemm_plan;

static inline int64_t min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static inline int64_t max64(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static inline int64_t divide_up(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static inline int64_t round_up(int64_t x, int64_t unit)
{
    return divide_up(x, unit) * unit;
}

enum { LINE_FLOATS = 16, LINE_BYTES = 64, PAGE_FLOATS = 1024 }; /* a page is as long as a way of L1 */

/* Returns the floats from an address to the next cache line. */
static inline int64_t line_floats_before(const float *at)
{
    return (int64_t)(-(uintptr_t)at / sizeof *at % LINE_FLOATS);
}

static inline const float *a_at(const rung_cpu_args *p, int64_t row, int64_t step)
{
    return p->a + (p->trans_a ? step * p->lda + row : row * p->lda + step);
}

static inline const float *b_at(const rung_cpu_args *p, int64_t step, int64_t column)
{
    return p->b + (p->trans_b ? column * p->ldb + step : step * p->ldb + column);
}

static inline int64_t a_bytes(const rung_cpu_args *p)
{
    return p->m * p->k * (int64_t)sizeof *p->a;
}

static inline int64_t b_bytes(const rung_cpu_args *p)
{
    return p->k * p->n * (int64_t)sizeof *p->b;
}

static inline int64_t c_bytes(const rung_cpu_args *p)
{
    return p->m * p->n * (int64_t)sizeof *p->c;
}

/* Returns the columns of a packed tile. */
static inline int64_t panel_columns(const rung_cpu_kernel *kernel)
{
    return (int64_t)kernel->nv * kernel->vl;
}

/* Returns the transposed product, (op(A) op(B))' = op(B)' op(A)', but for where C is: that is the caller's. */
static inline rung_cpu_args transposed(const rung_cpu_args *p)
{
    rung_cpu_args t = *p;
    t.m = p->n;
    t.n = p->m;
    t.a = p->b;
    t.lda = p->ldb;
    t.b = p->a;
    t.ldb = p->lda;
    t.trans_a = !p->trans_b;
    t.trans_b = !p->trans_a;
    t.stride_a = p->stride_b;
    t.stride_b = p->stride_a;
    t.a_array = p->b_array;
    t.b_array = p->a_array;
    if (p->bias_kind)
        t.bias_kind = p->bias_kind == RUNG_BIAS_PER_ROW ? RUNG_BIAS_PER_COLUMN : RUNG_BIAS_PER_ROW;
    return t;
}

/* ---- what each file does ---- */

/* gemm_plan.c: the plan depends on the shape, the kernel family and the processor, never on the number of threads. */
gemm_plan rung_gemm_plan(const rung_cpu_args *p);
/* Returns which question decides on the path, and the names of all of them, in their order. */
int rung_gemm_rule(const rung_cpu_args *p);
extern const char *const rung_gemm_rules[]; /* NULL is the last */

/* Returns the floats that a thread needs to run a strip of so many columns. */
int64_t rung_gemm_workspace(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);

/* Returns what dot products of so many rows ask for: rung_dot_args.asks. */
int rung_gemm_dot_asks(const rung_cpu_args *p, int64_t rows);

/* gemm_tiny.c: runs a product that is_tiny(), or asks first and returns whether it is one; and one that
 * is_short_rows().
 */
void rung_gemm_tiny(const rung_cpu_args *p);
int rung_gemm_if_tiny(const rung_cpu_args *p);
void rung_gemm_short_rows(const rung_cpu_args *p);

/* gemm_paths.c: runs one strip of a product on the calling thread. */
void rung_gemm_strip(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);

/* gemm_packed.c: runs the product with both operands packed, on `threads` threads of the pool, or on the calling one.
 * packed_b holds one slab of B; workspace, and each thread's slot, a block of A. */
void rung_gemm_packed(const rung_cpu_args *p, const gemm_plan *plan, float *packed_b, rung_pool *pool, int threads,
                      float *workspace);
int64_t rung_gemm_packed_a_floats(const rung_cpu_args *p, const gemm_plan *plan);

/* ---- how workspaces are laid out ---- */

/* Returns the floats that turning these columns needs. */
static inline int64_t rung_gemm_last_floats(const rung_cpu_args *p, int last)
{
    return last ? round_up(p->k, p->kernel->vl) * last + RUNG_PACK_SLACK : 0;
}

/* Returns the length of a row of sums that lie apart, so that rows do not collide. */
static inline int64_t rung_gemm_apart_ld(int64_t columns)
{
    return round_up(columns, LINE_FLOATS) + LINE_FLOATS;
}

/* Returns the floats that rows of few steps need where so many columns of B are copied at a time. */
static inline int64_t rung_gemm_rank_floats(const rung_cpu_args *p, int64_t columns)
{
    return p->k * round_up(columns, 2 * p->kernel->vl);
}

/* For PATH_STREAM these return the floats for the packed steps of A, and the length of a row of sums. */
static inline int64_t rung_gemm_stream_a_floats(const rung_cpu_args *p)
{
    int64_t rows = p->kernel->stream_rows; /* a multiple of what pack_by_row needs */
    return round_up(p->m, rows) * RUNG_STREAM_STEPS + 2 * RUNG_PACK_SLACK;
}

static inline int64_t rung_gemm_stream_ld(const rung_cpu_args *p, const gemm_plan *plan)
{
    return round_up(min64(plan->nc, p->n), 16) + 16; /* one line more: rows begin in different cache sets */
}

/* Returns the fewest rows of C after which rows begin at the same place of a cache line again: 1 to 16. */
static inline int64_t rung_gemm_row_classes(const rung_cpu_args *p)
{
    int64_t low_bit = p->ldc & -p->ldc;
    return low_bit >= LINE_FLOATS ? 1 : LINE_FLOATS / low_bit;
}

/* Returns the row length of a chunk of B on PATH_PAST: whole vectors, and rows begin in different cache sets. */
static inline int64_t rung_gemm_past_ld(const rung_cpu_args *p, const gemm_plan *plan)
{
    return round_up(min64(plan->nc + LINE_FLOATS, p->n), 2 * LINE_FLOATS) + LINE_FLOATS;
}

/* Returns how many columns of a transposed product are computed before they are written out. Many rows pass the same
 * cache lines of the long operand more often, so that longer runs of it pay; few rows have sums enough in L1 with 512.
 * From memory long runs are what the hardware's prefetchers want. */
static inline int64_t rung_gemm_transposed_strip(const rung_cpu_args *p)
{
    enum { L3_SHARE = 8 };
    if (max64(p->m, p->n) * p->k * 4 > p->cpu->l3_bytes / L3_SHARE)
        return 2048;
    return min64(p->m, p->n) > 16 ? 1024 : 512;
}

/* Returns the length of a row of such a strip. Where A is the long operand rows begin in different cache sets. */
static inline int64_t rung_gemm_transposed_ld(const rung_cpu_args *p, const gemm_plan *plan)
{
    return plan->of_b ? p->m : round_up(min64(rung_gemm_transposed_strip(p), p->m), LINE_FLOATS) + LINE_FLOATS;
}

/* Returns the floats of such a strip. */
static inline int64_t rung_gemm_transposed_floats(const rung_cpu_args *p, const gemm_plan *plan)
{
    int64_t rows = plan->of_b ? rung_gemm_transposed_strip(p) : p->n;
    return round_up(rows * rung_gemm_transposed_ld(p, plan), LINE_FLOATS);
}

#endif
