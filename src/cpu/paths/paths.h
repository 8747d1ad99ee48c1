/* The ways a product can take, a file each: the questions that lead to a path, its block sizes, the memory it needs and
 * the loop that runs it on one thread. gemm_plan.c has the order of the questions and the table of the paths. Here
 * stands what these files want of each other. */
#ifndef RUNG_CPU_PATHS_H
#define RUNG_CPU_PATHS_H

#include "cpu/gemm_block.h"
#include "core/status.h"

/* A question about a product, and what is planned where it is the first one that holds. */
typedef struct gemm_rule {
    const char *name; /* of the question: `rung explain` shows it */
    int (*holds)(const rung_cpu_args *p);
    void (*plan)(const rung_cpu_args *p, gemm_plan *plan);
} gemm_rule;

extern const gemm_rule rung_rule_in_order, rung_rule_packing_pays, rung_rule_large;             /* packed.c */
extern const gemm_rule rung_rule_tiny, rung_rule_short_rows;                                    /* gemm_tiny.c */
extern const gemm_rule rung_rule_turned;                                                        /* turned.c */
extern const gemm_rule rung_rule_past;                                                          /* past.c */
extern const gemm_rule rung_rule_rank, rung_rule_narrow_rank;                                   /* rank.c */
extern const gemm_rule rung_rule_dots;                                                          /* dots.c */
extern const gemm_rule rung_rule_better_transposed, rung_rule_long_k, rung_rule_long_k_in_runs; /* long_k.c */
extern const gemm_rule rung_rule_transposed;                                                    /* transposed.c */
extern const gemm_rule rung_rule_short_k, rung_rule_a_in_place;                                 /* pack_b.c */
extern const gemm_rule rung_rule_near, rung_rule_close;                                         /* close.c */
extern const gemm_rule rung_rule_in_place_ahead, rung_rule_few_rows_close;                      /* in_place.c */
extern const gemm_rule rung_rule_few_rows_in_runs, rung_rule_narrow_b_close;                    /* in_place.c */
extern const gemm_rule rung_rule_few_rows_from_l3, rung_rule_small_c_in_runs;                   /* in_place.c */
extern const gemm_rule rung_rule_by_panels;                                                     /* ahead.c */
extern const gemm_rule rung_rule_few_rows;                                                      /* stream.c */

/* ---- what more than one path asks or counts ---- */

enum {
    FEW = 32,            /* rows or columns that make a product skinny */
    STREAM_ROWS = 32,    /* at most: with more, packing B costs less than passing the sums again and again */
    RUN_STEPS = 128,     /* of k that an operand in place is read at a time */
    PANEL_STEPS = 256,   /* the same of a panel that stays in L1: a third to a half of it */
    OUTER_STEPS = 64,    /* of k, at most: writing C takes longer than adding up */
    STEPS_FOLLOWED = 48, /* rows of B that the hardware follows at once where L3 is far: with 64 it loses them */
    FAR_FROM_L2 = 2,     /* times the size of L2: a C so large is best written in long runs */
};

/* Which operand is the long one, if any. */
typedef enum gemm_side { SIDE_NONE, SIDE_A, SIDE_B } gemm_side;

/* Finds the smallest block that needs no more blocks than `largest` would: 1000 by 256 gives 4 x 250, not 3 x 256 +
 * 232. */
static inline int64_t even_block(int64_t size, int64_t largest, int64_t unit)
{
    return round_up(size <= largest ? size : divide_up(size, divide_up(size, largest)), unit);
}

/* Returns how large a B may be whose rows follow each other. Where narrow tiles read them close together beside rows of
 * A as they lie, the hardware fetches them from the share of L3 that neighbours leave; elsewhere L2 should have most.
 */
static inline int64_t close_b_bytes(const rung_cpu_args *p)
{
    enum { LDB_MOST = 127, L2_PARTS = 2, L3_SHARE = 4 };
    int comes_in_time = has_narrow_tiles(p) && !p->trans_a && !p->cpu->far_l3 && p->ldb <= LDB_MOST;
    return comes_in_time ? p->cpu->l3_bytes / L3_SHARE : L2_PARTS * p->cpu->l2_bytes;
}

/* Returns true where B's rows lie so close that lines which tiles ask for while another group sums come in time from
 * afar. Two tiles, or three where vectors lie across two lines, do not ask for all lines of the next group: the
 * hardware, which does not look beyond a page, has to bring the rest of rows of so many floats at most. Rows of many
 * whole lines come late too; why is not known. */
static inline int next_group_comes_in_time(const rung_cpu_args *p, int64_t most_of_few_tiles)
{
    enum { ROWS_OF_TWO_TILES = 16, ROWS_OF_THREE_TILES = 24 };
    enum { LDB_MOST_OF_WHOLE_LINES = 2560, LDB_MOST_OF_NARROW = 1536 };
    int whole = b_has_whole_lines(p);
    if (p->m <= (whole ? ROWS_OF_TWO_TILES : ROWS_OF_THREE_TILES))
        return p->ldb <= most_of_few_tiles;
    if (has_narrow_tiles(p))
        return p->ldb <= LDB_MOST_OF_NARROW;
    return !whole || p->ldb <= LDB_MOST_OF_WHOLE_LINES;
}

/* Returns true where the steps that a tile reads share few sets of L1: rows of B lie multiples of 256 bytes apart. */
static inline int steps_collide(const rung_cpu_args *p)
{
    enum { FLOATS = 64 };
    return p->ldb % FLOATS == 0;
}

/* Returns true where so few rows are better off with a B that streams than in place, although it fits half of L2: its
 * rows lie so far apart that where it comes from a far L3 none comes in time. */
static inline int is_few_rows_apart(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 2, ROWS_MOST = 8, LDB_LEAST = 850, L2_PARTS = 5 };
    return p->cpu->far_l3 && has_narrow_tiles(p) && !p->trans_b && p->m >= ROWS_LEAST && p->m <= ROWS_MOST &&
           p->ldb > LDB_LEAST && b_bytes(p) > p->cpu->l2_bytes / L2_PARTS;
}

/* Returns how many pieces of k threads share out where columns are too few for them. Three would leave one of two
 * threads with two. */
static inline int64_t pieces_of_few_columns(int64_t k)
{
    enum { STEPS_OF_TWO = 1024, STEPS_OF_FOUR = 1536 };
    return k >= STEPS_OF_FOUR ? 4 : k >= STEPS_OF_TWO ? 2 : 1;
}

/* ahead.c */
int rung_is_by_panels(const rung_cpu_args *p);

/* in_place.c */
int rung_has_close_rows_b(const rung_cpu_args *p);
int rung_is_few_rows_close(const rung_cpu_args *p);
int rung_is_few_rows_from_l3(const rung_cpu_args *p);
int rung_is_narrow_b_close(const rung_cpu_args *p);
int rung_is_small_c_in_runs(const rung_cpu_args *p);
int64_t rung_steps_across_lines(const rung_cpu_args *p, int vectors);
int64_t rung_run_steps(const rung_cpu_args *p);
gemm_asks rung_choose_asks(const rung_cpu_args *p);
void rung_plan_in_place(const rung_cpu_args *p, gemm_plan *plan);

/* pack_b.c */
void rung_plan_last(const rung_cpu_args *p, gemm_plan *plan); /* columns beside a packed B */
int rung_wants_packed_b(const rung_cpu_args *p);
int rung_wants_packed_a(const rung_cpu_args *p);
void rung_plan_pack_b(const rung_cpu_args *p, gemm_plan *plan);

/* packed.c */
void rung_packed_blocks(const rung_cpu_args *p, gemm_plan *plan);
void rung_plan_packed(const rung_cpu_args *p, gemm_plan *plan);

/* last.c: how many of the last columns are computed by themselves; the same where A comes from afar for that; the
 * floats that it needs, and its run: for so many steps of k from `step` on, whose part of B the workspace has already
 * where it is turned. */
int rung_last_columns(const rung_cpu_args *p);
int rung_last_beside_packed(const rung_cpu_args *p);
int64_t rung_last_floats(const rung_cpu_args *p, int last);
void rung_run_last(const rung_cpu_args *p, int last, int64_t step, int64_t steps, int is_turned, float *workspace);

/* Returns how many of them a strip has: of all strips the last one has them. */
static inline int last_of_strip(const rung_cpu_args *p, const gemm_plan *plan)
{
    return p->n & (p->kernel->vl - 1) ? plan->last : 0;
}

/* long_k.c: `least` steps of k, at least. */
int rung_is_long_k_of(const rung_cpu_args *p, int64_t least);
int64_t rung_long_k_parts(int64_t k); /* pieces */

/* stream.c */
int64_t rung_stream_columns(int64_t rows, int64_t panel, const rung_processor *cpu);
void rung_stream_one_row(const rung_cpu_args *p, int64_t nc, float *workspace); /* nc columns at a time, and floats */

/* Returns the elements of a vector that lie `step` apart, side by side. */
static inline const float *gather(float *to, const float *from, int64_t step, int64_t count)
{
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i * step];
    return to;
}

/* gemm_tiny.c: sums each element apart; room: for a row and a column of steps, where these lie apart. */
void rung_gemm_vectors(const rung_cpu_args *p, float *room);

/* rank.c: runs a product whose k is so short that C is all the work, nc columns at a time; only a B that is copied
 * needs workspace. */
void rung_gemm_rank(const rung_cpu_args *p, int64_t nc, float *workspace);

/* Returns the floats that rows of few steps need where so many columns of B are copied at a time. */
static inline int64_t rung_gemm_rank_floats(const rung_cpu_args *p, int64_t columns)
{
    return p->k * round_up(columns, 2 * p->kernel->vl);
}

/* ---- the paths: the memory that a strip of so many columns needs, in floats, and its run ---- */

int64_t rung_in_place_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
int64_t rung_ahead_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
int64_t rung_stream_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
int64_t rung_pack_b_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
int64_t rung_past_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
int64_t rung_rank_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
int64_t rung_packed_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
int64_t rung_dots_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
int64_t rung_transposed_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);

void rung_tiny_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_in_place_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_ahead_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_stream_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_pack_b_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_past_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_rank_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_turned_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_short_rows_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_packed_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_dots_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
void rung_transposed_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);

#endif
