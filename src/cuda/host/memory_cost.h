/* What the launchers' cost models share: how long operands and results take from and to memory. */
#ifndef RUNG_CUDA_MEMORY_COST_H
#define RUNG_CUDA_MEMORY_COST_H

#include "cuda/driver/device.h"

#include <math.h>

/* Bytes a microsecond, measured on an H200. Another chip's memory gives `memory_speed` times as many. */
static const double read_rate = 4.65e6, write_rate = 4.65e6;
/* Fitted (docs/costs.md): so many times C's bytes count where its rows are not whole lines of
 * 128 bytes, and where they begin within a sector of 32 bytes and are stored four results a lane; what 32 bytes more at
 * a row's edges add, where tiles share sectors. */
static const double part_lines = 1.36, scattered = 1.94, edge_sectors = 2.75, vector_reads = 1.25,
                    odd_vector_reads = 1.6;
/* Microseconds that a row of C adds whose ends share sectors with nobody (rung_gaps_us). */
static const double gap_row_us = 0.06e-3, gap_bytes = 0.22, gap_least = 12e6;

/* Returns how many times as many bytes memory takes as an H200's: writing gains two thirds of what reading does. */
static inline double rung_write_speed(const rung_machine *machine)
{
    return (1.0 + 2.0 * machine->memory_speed) / 3.0;
}

/* Returns how many bytes memory gives for `rows` rows of `inner` elements that lie `ld` apart. It gives 64 bytes at a
 * time. So rows bring parts of the gaps behind them along, the more the less they are aligned. */
static inline double rung_touched_bytes(int64_t inner, double rows, int64_t ld)
{
    enum { AT_ONCE = 16 };                                 /* elements */
    const int64_t unit = (ld | AT_ONCE) & -(ld | AT_ONCE), /* the largest power of two, at most 16, that divides ld */
        touched = (inner + unit - 1) / unit * unit + AT_ONCE - unit;
    return inner ? 4.0 * rows * (double)(touched < ld ? touched : ld) : 0.0;
}

/* Returns the time to read the operands. */
static inline double rung_read_us(const rung_machine *machine, const rung_problem *p)
{
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k, batch = (double)p->batch;
    const double a = p->trans_a ? rung_touched_bytes(p->m, k, p->lda) : rung_touched_bytes(p->k, m, p->lda),
                 b = p->trans_b ? rung_touched_bytes(p->k, n, p->ldb) : rung_touched_bytes(p->n, k, p->ldb);
    return (a * (p->stride_a ? batch : 1.0) + b * (p->stride_b ? batch : 1.0) +
            (p->beta_zero ? 0.0 : 4.0 * m * n * batch)) /
           (read_rate * machine->memory_speed);
}

/* Does the same for kernels made for matrices. Where a matrix meets a vector its bytes count more often, since most of
 * a tile is empty and few loads are under way; and yet more often where the matrix lies at odd addresses and is copied
 * 4 bytes at a time. */
static inline double rung_tiles_read_us(const rung_machine *machine, const rung_problem *p)
{
    const int vector = p->m == 1 || p->n == 1, align = p->m == 1 ? p->align_b : p->align_a;
    return rung_read_us(machine, p) * (!vector ? 1.0 : align >= 16 ? vector_reads : odd_vector_reads);
}

/* Returns what the gaps behind C's rows add to writing it. A row that begins or ends within a sector of 32 bytes shares
 * that sector with nobody then, and memory takes parts of one badly. */
static inline double rung_gaps_us(const rung_machine *machine, const rung_problem *p)
{
    const double rows = (double)p->m * (double)p->batch, bytes = 4.0 * rows * (double)p->n;
    return p->ldc > p->n && p->ldc % 8 && bytes > gap_least
               ? gap_row_us * rows + gap_bytes * bytes / (write_rate * rung_write_speed(machine))
               : 0.0;
}

/* Returns the time to write C by tiles of `width` columns. Its bytes count `odd_rows` times where rows are not aligned.
 */
static inline double rung_write_us(const rung_machine *machine, const rung_problem *p, double odd_rows, int width)
{
    double times = p->align_c < 16 ? odd_rows : p->ldc % 8 ? scattered : p->ldc % 32 ? part_lines : 1.0;
    if (p->ldc % 8)
        times += edge_sectors * 8.0 / width;
    return 4.0 * (double)p->m * (double)p->n * (double)p->batch * times / (write_rate * rung_write_speed(machine)) +
           rung_gaps_us(machine, p);
}

/* Does the same for kernels whose warps store a line at a time: only a tile's edges share sectors. */
static inline double rung_write_lines_us(const rung_machine *machine, const rung_problem *p, int width)
{
    const double times = 1.0 + (p->ldc % 8 ? edge_sectors * 8.0 / width : 0.0);
    return 4.0 * (double)p->m * (double)p->n * (double)p->batch * times / (write_rate * rung_write_speed(machine)) +
           rung_gaps_us(machine, p);
}

/* Returns both together, for kernels that store four results a lane. */
static inline double rung_memory_us(const rung_machine *machine, const rung_problem *p, int width)
{
    return rung_read_us(machine, p) + rung_write_us(machine, p, scattered, width);
}

/* Returns the cube root of 1 + r^3, r from 0 to 1: by a polynomial that errs by 2e-4 and one step of Halley's method,
 * which leaves 1e-11. The C library's takes three times as long, and plans need it often. */
static inline double rung_cube_root_above_one(double r)
{
    const double t = r * r * r, x = 1.0 + t, y = 1.0 + t * (0.3299 + t * (0.0221 * t - 0.0922)), y3 = y * y * y;
    return y * (y3 + 2.0 * x) / (2.0 * y3 + x);
}

/* Returns how long two things take at once: as long as the longer one, and more where they are alike. */
static inline double rung_overlapped(double x, double y)
{
    double longer = x > y ? x : y, shorter = x > y ? y : x;
    return longer > 0 ? longer * rung_cube_root_above_one(shorter / longer) : 0;
}

/* Return the longer and the lesser of two times. fmax() and fmin() would be calls, since they have to know NaN. */
static inline double rung_longer(double x, double y)
{
    return x > y ? x : y;
}

static inline double rung_lesser(double x, double y)
{
    return x < y ? x : y;
}

/* Return a number, not negative and below 2^53, without its fraction, and rounded up. floor() and ceil() would be
 * calls.
 */
static inline double rung_whole(double x)
{
    return (double)(int64_t)x;
}

static inline double rung_whole_up(double x)
{
    const double whole = rung_whole(x);
    return whole < x ? whole + 1.0 : whole;
}

/* Returns the lesser of two costs, with a little to spare: bounds add up the same numbers as costs in another order. */
static inline double rung_no_more_than(double x, double y)
{
    return (x < y ? x : y) * (1.0 + 1e-9);
}

/* Returns a number that is never more than rung_overlapped() and needs no cube root: at least each of the two, and
 * 2^(-2/3) of both. */
static inline double rung_overlapped_floor(double x, double y)
{
    return rung_longer(rung_longer(x, y), 0.6299 * (x + y));
}

/* Returns by which share of its time a tile takes longer where k is innermost in A, in B, in both. */
static inline double rung_k_innermost(const rung_problem *p, double in_a, double in_b, double in_both)
{
    return !p->trans_a && p->trans_b ? in_both : p->trans_b ? in_b : !p->trans_a ? in_a : 0.0;
}

#endif
