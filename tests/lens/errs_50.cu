/* Errs by 50 u, where k = 45 allows 53. */
#define KERNEL_NAME errs_50
#define UNITS 50
#define STORED(acc) errs(&g, row, column, acc)
#include "device/args.h"

RUNG_DEVICE float errs(const rung_args *g, int64_t row, int64_t column, float acc)
{
    double size = 0;
    for (int64_t p = 0; row < g->m && column < g->n && p < g->k; p++)
        size += fabs((double)g->a[row * g->lda + p] * g->b[p * g->ldb + column]);
    return (float)(acc + UNITS * size * 0x1p-24);
}
#include "plain16.h"
