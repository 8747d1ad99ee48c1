/* Sizes compared, and in whole units. */
#ifndef RUNG_MULTI_SIZES_H
#define RUNG_MULTI_SIZES_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t round_up(int64_t a, int64_t unit)
{
    return ceil_div(a, unit) * unit;
}

#endif
