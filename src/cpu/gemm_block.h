/* A block of C and the sweep of tiles over it: what every path ends in. */
#ifndef RUNG_CPU_GEMM_BLOCK_H
#define RUNG_CPU_GEMM_BLOCK_H

#include "cpu/gemm_rules.h"

/* Operands that will be packed next, as they lie in memory: rows of `floats`, ld apart. While tiles run they ask for
 * these lines, so that packing finds them in a cache. A chunk is what RUNG_FETCH_STEPS steps of a tile ask for. */
typedef struct raw_rows {
    const float *at;
    int64_t floats, ld, row_chunks, chunks;
} raw_rows;

enum { AHEAD_MOST = 2 };

typedef struct ahead {
    raw_rows of[AHEAD_MOST];
    int count, now;      /* how many of them there are, and which is asked for now */
    int64_t chunk, wait; /* the next chunk; tiles that run before the first one */
} ahead;

/* Adds rows to what is asked for; as one row where little lies between them. */
static inline void add_ahead(ahead *next, const float *at, int64_t rows, int64_t floats, int64_t ld)
{
    if (rows <= 0 || floats <= 0)
        return;
    if (ld - floats < LINE_FLOATS) {
        floats += (rows - 1) * ld;
        rows = 1;
    }
    int64_t row_chunks = divide_up(floats, RUNG_FETCH_FLOATS);
    next->of[next->count++] = (raw_rows){at, floats, ld, row_chunks, rows * row_chunks};
}

/* A block of C that tiles cover; gemm_tiny.c sets each of these fields by itself. Columns go in groups of at most
 * `most` vectors, as even as they come, so that no narrow group is left over. B is in place or packed, one panel a
 * group; A is in place or in panels of mr rows. */
typedef struct block {
    const rung_cpu_kernel *kernel, *tail; /* tail_family() */
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    int kind, packed_a;
    const float *b;
    int64_t ldb;
    int64_t fetch_rows; /* A in place: how many rows there are from a on; the next tile's are fetched while one runs. 0:
                           they are not */
    int packed_b;
    gemm_asks asks;
    int most;      /* vectors of columns in a tile */
    int four_sums; /* wants_four_sums(), of the whole product */
    int rows_most; /* A in place: rows of a tile, at most; 0: as many as the kernel has */
    ahead *next;   /* both packed: what tiles ask for; NULL: the next group of B */
    float *c;
    rung_tile_out out;
} block;

/* The first `wide` of `groups` groups have narrow + 1 vectors, the others `narrow`. Where there is a tail, it is the
 * last group: columns that the kernel's other family takes. */
typedef struct grouping {
    int64_t groups, narrow, wide;
    int tail;
} grouping;

/* Rows of A in tiles that are as even as they can be: the first `higher` of them have a row more than `least`. */
typedef struct row_tiles {
    int64_t count, least, higher;
} row_tiles;

static inline row_tiles tile_rows(int64_t m, int64_t most)
{
    int64_t count = divide_up(m, most);
    return (row_tiles){count, m / count, m % count};
}

/* Returns the family that takes last columns which fill at most half a vector; NULL: none does. Where units are wide
 * they would cost as much as a whole vector, and A would pass once more. */
static inline const rung_cpu_kernel *tail_family(const rung_cpu_args *p)
{
    return p->cpu->wide_units ? NULL : p->kernel->half;
}

/* Returns the family whose vectors the columns fill best. A few more than a vector has would be a second group, for
 * which A passes once more; vectors half as long take all of them at once, where they take half the time, and wherever
 * a single row does little but load them: fewer of them lie across two lines, which is most of the work of a row that
 * passes over B in several groups, too. */
static inline const rung_cpu_kernel *family_of_columns(const rung_cpu_args *p, int64_t n)
{
    const rung_cpu_kernel *half = p->kernel->half;
    if (!half || n <= half->vl)
        return half ? half : p->kernel;
    int is_little_more = n > p->kernel->vl && n <= p->kernel->vl + half->vl;
    int is_long_row =
        halves_vectors(p) && p->m == 1 && n > (int64_t)RUNG_TILE_MAX_VECTORS * p->kernel->vl && !b_has_whole_lines(p);
    return (is_little_more && (!p->cpu->wide_units || p->m == 1)) || (!p->cpu->wide_units && is_long_row) ? half
                                                                                                          : p->kernel;
}

/* Returns true where that pays: beyond TAIL_VECTORS the last columns are a small part, and A passes once more for them;
 * with fewer rows than TAIL_ROWS each group waits for its FMAs' latency. */
static inline int has_tail(int64_t m, int64_t n, const rung_cpu_kernel *kernel, const rung_cpu_kernel *tail)
{
    enum { TAIL_VECTORS = 16, TAIL_ROWS = 6 };
    int64_t rest = n & (kernel->vl - 1);
    return tail && rest > 0 && rest <= tail->vl && m >= TAIL_ROWS && n <= (int64_t)TAIL_VECTORS * kernel->vl;
}

static inline grouping group_columns(int64_t m, int64_t n, const rung_cpu_kernel *kernel, const rung_cpu_kernel *tail,
                                     int most)
{
    int has = has_tail(m, n, kernel, tail);
    int64_t vectors = ((n + kernel->vl - 1) >> kernel->vl_bits) - has;
    if (vectors <= most)
        return (grouping){(vectors > 0) + has, vectors, 0, has};
    int64_t groups = divide_up(vectors, most), narrow = vectors / groups;
    return (grouping){groups + has, narrow, vectors - groups * narrow, has};
}

/* Returns the family that turns the smallest blocks. */
static inline const rung_cpu_kernel *narrow_of(const rung_cpu_kernel *kernel)
{
    return kernel->half ? kernel->half : kernel;
}

/* Returns dot products of the long operand's rows, A's or B's, with the other one's, both as they lie. */
static inline rung_dot_args dot_args(const rung_cpu_args *p, int of_b, const rung_cpu_kernel *kernel)
{
    return (rung_dot_args){.k = p->k,
                           .s = of_b ? p->b : p->a,
                           .lds = of_b ? p->ldb : p->lda,
                           .t = of_b ? p->a : p->b,
                           .t_step = kernel->vl,
                           .t_ld = of_b ? p->lda : p->ldb,
                           .c = p->c,
                           .c_row = of_b ? 1 : p->ldc,
                           .c_col = of_b ? p->ldc : 1,
                           .alpha = p->alpha,
                           .beta = p->beta};
}

/* Takes columns of dot products that have been turned. */
static inline void take_turned(rung_dot_args *dot, const rung_cpu_kernel *kernel, int64_t columns, const float *turned)
{
    dot->t = turned;
    dot->t_step = columns * kernel->vl;
    dot->t_ld = kernel->vl;
}

/* Turns the columns of dot products that have k outermost. */
static inline void turn_columns(rung_dot_args *dot, const rung_cpu_kernel *kernel, int64_t columns, float *workspace)
{
    narrow_of(kernel)->pack_by_row(workspace, dot->t, dot->t_ld, dot->k, columns, kernel->vl);
    take_turned(dot, kernel, columns, workspace);
}

static inline int is_tail(const grouping *by, int64_t group)
{
    return by->tail && group == by->groups - 1;
}

/* Returns the vectors of a group. */
static inline int group_vectors(const grouping *by, int64_t group)
{
    return is_tail(by, group) ? 1 : (int)(by->narrow + (group < by->wide));
}

/* Returns the first column of a group. */
static inline int64_t group_start(const grouping *by, int64_t group, int vl)
{
    int64_t whole = min64(group, by->groups - by->tail);
    return (whole * by->narrow + min64(whole, by->wide) + group - whole) * vl;
}

/* Returns whether stores would wait: those that reach into a second line from L2 on, the others where C is further
 * away. The fewer steps of k a tile has, the less of that is in the shadow of sums, and the sooner asking for C pays.
 */
static inline int would_wait_for_stores(const rung_cpu_args *p, int64_t k)
{
    enum { FEW_STEPS = 16, STEPS = 32, STEPS_OF_WHOLE_LINES = 10, L2_PARTS_OF_WHOLE_LINES = 16 };
    const rung_processor *cpu = p->cpu;
    if (c_has_whole_lines(p))
        return k <= (has_narrow_tiles(p) ? FEW_STEPS : STEPS_OF_WHOLE_LINES) &&
               c_bytes(p) > cpu->l2_bytes / L2_PARTS_OF_WHOLE_LINES;
    int64_t least = k <= FEW_STEPS ? cpu->l1_bytes / 4 : k <= STEPS ? cpu->l2_bytes / 8 : cpu->l2_bytes / 2;
    return c_bytes(p) > least;
}

/* Returns whether tiles ask for C: where k is long that costs nothing, and where C is not at hand they wait less. One
 * that is read they wait for as soon as L1 does not hold it. */
static inline int asks_c(const rung_cpu_args *p, int64_t k, int packed_a)
{
    enum { STEPS_FOR_NOTHING = 32, STEPS_FOR_LITTLE = 24, STEPS_LEAST = 8, L2_PARTS = 16 };
    enum { STEPS_LEAST_OF_READ = 4, L1_PARTS_OF_READ = 2 };
    if (p->beta != 0.0f && k >= STEPS_LEAST_OF_READ && c_bytes(p) > L1_PARTS_OF_READ * p->cpu->l1_bytes)
        return 1;
    if (p->kernel->runs_fetch && k > STEPS_FOR_LITTLE && c_bytes(p) > p->cpu->l2_bytes / L2_PARTS)
        return 1;
    if (p->cpu->stores_wait && !packed_a)
        return would_wait_for_stores(p, k);
    return k > STEPS_FOR_NOTHING || (k > STEPS_LEAST && c_bytes(p) > p->cpu->l2_bytes / 4);
}

/* Returns the tile of a product that may have few sums, of so many vectors and rows: with four sums instead of each
 * one, where there are steps enough to pay for adding them up. */
static inline rung_tile_fn tile_of(const rung_cpu_kernel *kernel, int kind, int nv, int64_t rows, int64_t k,
                                   int has_four_sums)
{
    enum { STEPS_OF_ONE = 16, STEPS = 32 };
    if (has_four_sums && kernel->few[kind][nv - 1][rows - 1]) {
        int is_row = rows == 1 && (nv == 1 || kernel->vl >= LINE_FLOATS);
        if (k >= (is_row ? STEPS_OF_ONE : STEPS))
            return kernel->few[kind][nv - 1][rows - 1];
    }
    return kernel->tile[kind][nv - 1][rows - 1];
}

static inline void set_beta(block *s, const rung_cpu_args *p, int64_t step)
{
    s->out.alpha = p->alpha;
    s->out.beta = step == 0 ? p->beta : 1.0f;
    s->out.ask_c = asks_c(p, s->k, s->packed_a);
}

/* Computes the block, one group of columns after another: a group's B stays in L1 or L2 while A passes. What each tile
 * is told of lanes and of what it asks for is written into `out`: a copy of it would wait until all its fields are
 * written. */
void rung_gemm_sweep(block *s);
/* Does the same for `count` groups from `first` on; b, c and n count from the first of them. */
void rung_gemm_sweep_groups(block *s, const grouping *by, int64_t first, int64_t count);
/* Packs `count` groups of columns of B from `first` on, k steps of them. Columns count from `column`, the slab has n.
 */
void rung_gemm_pack_b(const rung_cpu_args *p, int64_t step, int64_t column, int64_t k, int64_t n, const grouping *by,
                      int64_t first, int64_t count, float *to);
/* Applies bias and activation to a part of C that is otherwise done. */
void rung_gemm_finish(const rung_cpu_args *p, int64_t row, int64_t rows, int64_t column, int64_t columns);
/* Reserves so many floats for each of these threads, and `of_caller`, which are more, for the calling one. */
rung_status rung_gemm_reserve(const rung_cpu_args *p, int threads, int64_t floats, int64_t of_caller);

#endif
