/* Helpers for whole numbers: the quotient rounded up, the next multiple, the lesser and the greater of two. */
#ifndef RUNG_CORE_DIVIDE_H
#define RUNG_CORE_DIVIDE_H

#include <stdint.h>

static inline int64_t divide_up(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static inline int64_t round_up(int64_t x, int64_t unit)
{
    return divide_up(x, unit) * unit;
}

static inline int64_t min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static inline int64_t max64(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

#endif
