/* Every thread reads for ever, for a value that never comes. */
#include "device/args.h"

RUNG_KERNEL(256) endless_reads(const __grid_constant__ rung_args g)
{
    float sum = 0.0f;
    for (int i = 0; g.a[i % 7] != 1234.5f; i++)
        sum += g.b[i % 5];
    g.c[0] = sum;
}
