/* What the files of the CPU product share: the plan, and who does what. gemm_plan.c decides, by questions that stand in
 * gemm_rules.h and beside the paths that they lead to; gemm_tiny.c and the files in paths/ compute, by tiles that
 * gemm_block.c places; gemm.c splits the work over threads. README.md shows the way of a call through them. */
#ifndef RUNG_CPU_GEMM_H
#define RUNG_CPU_GEMM_H

#include "core/divide.h"
#include "cpu/cpu.h"
#include "cpu/kernels/kernels.h"

typedef enum gemm_path {
    PATH_TINY,
    PATH_DIRECT,
    PATH_AHEAD,
    PATH_STREAM,
    PATH_PACK_B,
    PATH_OUTER,
    PATH_PAST,
    PATH_RANK,
    PATH_SHORT_ROWS,
    PATH_TURNED,
    PATH_PACKED,
    PATH_DOT,
    PATH_TRANSPOSED,
    PATH_LONG_K
} gemm_path;

/* What tiles ask for of an operand in place; of B, AFTER: while the first tiles of a group of columns sum, the next
 * group's part comes into L2. AFTER_INTO_L1: narrow tiles' part comes further. BELOW: the group's own rows come into
 * L1, some steps ahead. OF_A: each step of a transposed A comes into L1, for the tiles after the next one. */
typedef enum gemm_asks { ASKS_NOTHING, ASKS_AFTER, ASKS_BELOW, ASKS_AFTER_INTO_L1, ASKS_OF_A } gemm_asks;

typedef struct gemm_plan {
    gemm_path path;
    int rule;           /* the question that decided: rung_gemm_rule_name() */
    int64_t mc, kc, nc; /* blocks; kc of PATH_DOT: steps whose columns L1 holds */
    int64_t chunk;      /* PATH_PACKED on one thread: columns of B that are packed at a time */
    int most;           /* vectors of columns in a tile, at most */
    int rows_most;      /* a B that is packed as one group of columns: rows of a tile, at most */
    int64_t parts;      /* pieces of k, each summed apart (gemm_parts.c); 1: one */
    gemm_path inner;    /* PATH_LONG_K: the path of each piece; PATH_TRANSPOSED: of a strip, of all of them alike */
    int fetch;          /* A in place: fetch its next rows ahead */
    int narrow;         /* PATH_DOT: vectors half as long */
    int of_b;           /* PATH_DOT, PATH_TRANSPOSED: the long operand is B, not A (gemm_side) */
    int split_m;        /* threads cut m, else n */
    int last;           /* columns, the last ones, that are computed by themselves (paths/last.c) */
    int64_t last_rows;  /* B packed: after so many rows, at least, while A is near; 0: after all of them */
    int transposed;     /* PATH_LONG_K: the pieces are those of the transposed product */
    gemm_asks asks;     /* an operand in place */
    int apart;          /* B in place: sums lie apart from C, which is added last */
    int four_sums;      /* B in place: wants_four_sums(), of the whole product */
} gemm_plan;

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
/* The same, remembered by the context: a product of a microsecond notices what making a plan takes. */
gemm_plan rung_gemm_recent_plan(const rung_cpu_args *p);
const char *rung_gemm_rule_name(int rule); /* NULL behind the last one */
const char *rung_gemm_path_name(gemm_path path);

/* Returns the floats that a thread needs to run a strip of so many columns. */
int64_t rung_gemm_workspace(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);

/* Runs one strip of a product on the calling thread. */
void rung_gemm_strip(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);

/* gemm_tiny.c: runs a product if it is_tiny(), on at most so many threads, and returns whether it is. */
int rung_gemm_if_tiny(const rung_cpu_args *p, int threads);

/* gemm_parts.c: computes pieces of k, each into a result of its own, on these threads. */
rung_status rung_gemm_parts(const rung_cpu_args *p, const gemm_plan *plan, int threads);

/* paths/packed.c: all threads pack B together. */
rung_status rung_packed_share(const rung_cpu_args *p, const gemm_plan *plan, int threads);

#endif
