/* What a CPU kernel family offers to the driver: register tiles, packing and dot products for one
 * instruction set. One file a family; the drivers in cpu/paths know no instruction set. */
#ifndef RUNG_CPU_KERNELS_H
#define RUNG_CPU_KERNELS_H

#include <stdint.h>

enum {
    RUNG_TILE_MAX_VECTORS = 8,  /* widest tile, in vectors: of one row */
    RUNG_TILE_WIDE_VECTORS = 4, /* widest tile of several rows */
    RUNG_TILE_MAX_ROWS = 16,
    RUNG_DOT_MAX_COLS = 8,
    RUNG_DOT_COLS_OF_TINY = 4, /* columns that every family can take together */
    RUNG_DOT_COLS_LEAST = 3,   /* columns at a time: fewer load more than they add */
    RUNG_STREAM_MAX_ROWS = 8,
    RUNG_STREAM_STEPS = 16,
    RUNG_RANK_STEPS = 10,  /* the longest k that is written by rows: its steps of A stay in registers */
    RUNG_SHORT_STEPS = 10, /* the longest k of short rows: its steps of B stay in registers */
    RUNG_TURNED_STEPS = 8, /* the most steps of a B whose columns lie along k that are turned as they are loaded */
    RUNG_TURNED_ROWS = 16, /* the most rows beside them */
    RUNG_PACK_SLACK = 16,  /* floats a packing routine may write past its buffer's end */
};

/* How a tile reaches A: A_BY_K reads a[p*lda + i] (packed panels, transposed operands), A_BY_ROW
 * reads a[i*lda + p] in place. */
enum { RUNG_A_BY_K, RUNG_A_BY_ROW, RUNG_A_KINDS };

/* Lines that a tile asks for, one every second step of k, RUNG_FETCH_STEPS steps at a time: along a row up to `end`,
 * then from `gap` floats on, along a row that ends ld floats after this one. */
enum { RUNG_FETCH_STEPS = 8, RUNG_FETCH_FLOATS = 16 * RUNG_FETCH_STEPS / 2 };

typedef struct rung_fetch {
    const float *at; /* NULL: nothing */
    const float *end;
    int64_t gap, ld;
} rung_fetch;

/* What a tile asks for in each step: of a B in place a line into L2, or as many vectors as the tile has into L1; of a
 * transposed A in place a line into L1. */
enum { RUNG_ASK_NOTHING, RUNG_ASK_LINE, RUNG_ASK_VECTORS, RUNG_ASK_A };

typedef struct rung_tile_out {
    int64_t ldc;
    float alpha, beta;
    int lanes;   /* columns in use of the tile's last vector, 1..vl */
    int b_lanes; /* columns of it that B holds: as many, or vl where B is packed, with zeros behind the last column */
    rung_fetch fetch; /* with both operands packed: asked for while the tile sums */
    int ask_c;        /* 1: C is asked for while the tile sums */
    int asks;         /* RUNG_ASK_...: tiles as wide as packed ones ask */
    int64_t ask_at;   /* how many floats behind each step's first one lies what is asked for */
    int past;         /* 1: C is 64-byte aligned, beta is 0 and C will not be read soon: bypass the caches */
} rung_tile_out;

/* Computes C[0..rows) = alpha * A * B + beta * C over k steps; B is k rows of ldb floats. */
typedef void (*rung_tile_fn)(int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
                             const rung_tile_out *out);

/* Tiles in turn: how far the operands and C of each lie from those of the one before. */
typedef struct rung_tile_run {
    int64_t count, a_next, b_next, c_next;
} rung_tile_run;

/* Computes `count` tiles whose vectors are wholly in use, and which ask for nothing but C, but for kernels that say
 * runs_fetch. A call for each of them, and what a tile finds out before its sums, would take as long as five steps of
 * k. */
typedef void (*rung_run_fn)(const rung_tile_run *run, int64_t k, const float *a, int64_t lda, const float *b,
                            int64_t ldb, float *c, const rung_tile_out *out);

enum { RUNG_AHEAD_COLUMNS = 16 }; /* the floats of a cache line */

/* Computes a tile of a packed A, whose panel is as wide as the tile has rows, and of RUNG_AHEAD_COLUMNS of a B in
 * place. Every fourth step of k it asks for so many lines of B, 0 to 4, ldb apart from `ask` on, which a later tile
 * needs. */
typedef void (*rung_ahead_fn)(int64_t k, const float *a, const float *b, int64_t ldb, float *c,
                              const rung_tile_out *out, const float *ask, int lines);

/* Adds A * B to sums[0..rows) over `steps` steps of k, along `columns` columns of B: its rows are read in long runs, as
 * the hardware's prefetchers like them. a is one packed panel, rung_stream_panel(rows) wide. Rows of sums are whole
 * vectors long. At each column so many rows of B are asked for, ldb apart, the first of them at ask. */
static inline int rung_stream_panel(int rows, int vl)
{
    return rows <= vl ? rows : (rows + vl - 1) / vl * vl; /* as pack_by_row needs it */
}

typedef void (*rung_stream_fn)(int64_t steps, int64_t columns, const float *a, const float *b, int64_t ldb, float *sums,
                               int64_t ld, const float *ask, int64_t ask_rows);

/* The same for one row and any number of steps, a[] side by side; nothing is written behind the last column. */
typedef void (*rung_row_fn)(int64_t steps, int64_t columns, const float *a, const float *b, int64_t ldb, float *sums);

/* Computes C = alpha * sums + beta * C. */
typedef void (*rung_add_sums_fn)(float *c, int64_t ldc, const float *sums, int64_t ld, int64_t m, int64_t n,
                                 float alpha, float beta);

/* Packs panels of `panel` along `width`, each of k rows of `panel` floats. by_k reads src[p*lds + i], by_row
 * reads src[i*lds + p]. In a panel of whole vectors the lanes of
 * the last vector past width are 0; others are left as they are, and tiles never read them. */
typedef void (*rung_pack_fn)(float *dst, const float *src, int64_t lds, int64_t width, int64_t k, int panel);

/* Turns a result: c[i*ldc + j] = d[j*ldd + i] + beta * c[i*ldc + j], m rows of n. */
typedef void (*rung_turn_fn)(float *c, int64_t ldc, const float *d, int64_t ldd, int64_t m, int64_t n, float beta);

/* ALONG: further floats of the same rows, which come from memory. NEXT: the same floats of the next rows, from L3. */
enum { RUNG_DOT_ASKS_NOTHING, RUNG_DOT_ASKS_ALONG, RUNG_DOT_ASKS_NEXT };

typedef struct rung_dot_args {
    int64_t k;
    const float *s; /* rows: s[i*lds + p] */
    int64_t lds;
    const float *t; /* columns: t[(p/vl)*t_step + j*t_ld + p%vl] */
    int64_t t_step, t_ld;
    float *c; /* c[i*c_row + j*c_col] */
    int64_t c_row, c_col;
    float alpha, beta;
    int asks; /* which parts of the rows are asked for early */
} rung_dot_args;

/* Computes rows x cols dot products of length k. The entry of the table fixes cols; there may be any number of rows. */
typedef void (*rung_dot_fn)(const rung_dot_args *args, int64_t rows);

/* Returns the dot product of two vectors. */
typedef float (*rung_vectors_fn)(int64_t k, const float *x, const float *y);

/* C = alpha * A * B + beta * C for a k of at most RUNG_RANK_STEPS, row after row, so that C is written in long runs. */
typedef struct rung_rank_args {
    int64_t m, n, k;
    const float *a; /* a[i*a_row + p*a_step] */
    int64_t a_row, a_step;
    const float *b; /* a group holds two vectors of columns: b[group*b_group + p*ldb + column], b_group apart */
    int64_t ldb, b_group;
    float *c;
    int64_t ldc;
    float alpha, beta;
    int ask_c; /* 1: C is asked for, a few vectors or rows ahead */
    int masks; /* 1: with masks a part of a vector is written as fast as two halves that overlap */
} rung_rank_args;

typedef void (*rung_rank_fn)(const rung_rank_args *args);

/* Computes C = activation(C + bias). The bias has one number a row, or one a column; NULL: none. */
typedef void (*rung_finish_fn)(float *c, int64_t ldc, int64_t m, int64_t n, const float *row_bias,
                               const float *column_bias, int activation);

typedef struct rung_cpu_kernel {
    int vl, vl_bits;           /* floats in a vector, and its logarithm */
    int mr, nv;                /* the packed tile: mr rows of nv vectors */
    int row_vectors, few_rows; /* of a single row, and rows of a single vector, at most, whose tiles add up every fourth
                                  step of k by itself */
    int dot_cols, dot_fours;   /* the most columns that dot[] has, and the most whose blocks have four rows, or eight */
    int max_rows[RUNG_TILE_MAX_VECTORS];
    int runs_fetch; /* 1: packed tiles in turn ask for what `out` says, as single ones do, and gain with any k */
    const struct rung_cpu_kernel *half; /* a family whose vectors are half as long, for last columns; NULL: none */
    const struct rung_cpu_kernel
        *of_four; /* the same family for processors whose units are four floats wide; NULL: none */
    rung_tile_fn tile[RUNG_A_KINDS][RUNG_TILE_MAX_VECTORS][RUNG_TILE_MAX_ROWS];
    rung_tile_fn few[RUNG_A_KINDS][RUNG_TILE_MAX_VECTORS][RUNG_TILE_MAX_ROWS]; /* with four sums; NULL: sums enough */
    rung_run_fn run[RUNG_A_KINDS][RUNG_TILE_MAX_VECTORS][RUNG_TILE_MAX_ROWS];
    rung_ahead_fn ahead[RUNG_TILE_MAX_ROWS];
    int ahead_rows; /* the most rows that ahead[] has; 0: none */
    rung_stream_fn stream[RUNG_STREAM_MAX_ROWS];
    int stream_rows; /* the most rows that stream[] has */
    rung_row_fn stream_row;
    rung_add_sums_fn add_sums;
    rung_pack_fn pack_by_k, pack_by_row;
    rung_turn_fn turn;
    int turns_short_rows; /* 1: turn() writes rows of five to seven floats in little time */
    rung_vectors_fn dot_of_vectors;
    rung_dot_fn dot[RUNG_DOT_MAX_COLS];
    rung_rank_fn rank[RUNG_RANK_STEPS]; /* by k */
    rung_rank_fn
        short_rows[RUNG_SHORT_STEPS]; /* the same with B in registers, for rows of a few vectors; b_group is not read */
    rung_rank_fn turned[RUNG_TURNED_STEPS]; /* the same, of a B whose columns lie along k, ldb apart, and at most
                                               RUNG_TURNED_ROWS rows; NULL: none of so many steps */
    rung_finish_fn finish;
} rung_cpu_kernel;

#endif
