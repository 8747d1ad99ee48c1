/* The six requests whose sectors are predicted; the lines are named in goals. */
#include "device/args.h"

RUNG_KERNEL(32) e05_predict_sectors(const __grid_constant__ rung_args g)
{
    int lane = threadIdx.x;
    float sum = 0.0f;
    sum += g.a[lane];
    sum += g.a[2 * lane];
    sum += g.a[1 + lane];
    sum += (*(const float4 *)&g.a[4 * lane]).x;
    sum += g.b[0];
    g.c[lane * g.ldc] = sum;
}
