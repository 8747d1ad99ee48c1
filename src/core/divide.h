/* Helpers for whole numbers: the quotient rounded up, the next multiple, the lesser and the greater of two. */
#ifndef RUNG_CUDA_DIVIDE_H
#define RUNG_CUDA_DIVIDE_H

#include <stdint.h>

static inline int64_t rung_ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static inline int64_t rung_round_up(int64_t x, int64_t unit)
{
    return rung_ceil_div(x, unit) * unit;
}

static inline int64_t rung_min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static inline int64_t rung_max64(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

#endif
