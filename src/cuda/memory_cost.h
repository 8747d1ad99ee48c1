/* What it takes to bring a product's operands from memory and its result there, for the launchers' cost models. */
#ifndef RUNG_CUDA_MEMORY_COST_H
#define RUNG_CUDA_MEMORY_COST_H

#include "core/problem.h"

/* Bytes a microsecond, fitted to timings on an H200 (docs/performance-log.md, "the planner"). */
static const double read_rate = 4.20e6, write_rate = 2.89e6;
/* Rows of C at odd addresses, stored four results a lane, or a line a warp: their bytes count so many times. */
static const double scattered = 1.86, in_lines = 1.15;

static inline double rung_memory_us_with(const rung_problem *p, double odd_rows)
{
    double m = (double)p->m, n = (double)p->n, k = (double)p->k, batch = (double)p->batch;
    double a = m * k * (p->stride_a ? batch : 1.0), b = k * n * (p->stride_b ? batch : 1.0);
    double c = m * n * batch * (p->align_c < 16 ? odd_rows : 1.0);
    return 4.0 * ((a + b + (p->beta_zero ? 0.0 : c)) / read_rate + c / write_rate);
}

static inline double rung_memory_us(const rung_problem *p)
{
    return rung_memory_us_with(p, scattered);
}

/* By kernels that store rows of C at odd addresses a line a warp. */
static inline double rung_memory_in_lines_us(const rung_problem *p)
{
    return rung_memory_us_with(p, in_lines);
}

#endif
