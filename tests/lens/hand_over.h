/* One body for the lens's tests: half of the threads fill a stage, the others multiply from it, and mbarriers hand it
 * over. Without a fault every reader hands it back. */
#include "device/args.h"
#include "device/tma.h"

#ifndef HAND_BACK
#define HAND_BACK(bar) rung_barrier_arrive(bar)
#endif
#ifndef HANDS
#define HANDS HALF
#endif

enum { T = 16, HALF = 128 };

RUNG_KERNEL(2 * HALF) KERNEL_NAME(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[T][T], b_tile[T][T];
    __shared__ uint64_t full, empty;
    const int x = threadIdx.x % T, y = threadIdx.x % HALF / T;
    const int64_t row = (int64_t)blockIdx.y * T + y, column = (int64_t)blockIdx.x * T + x;
    uint32_t parity = 0;
    if (threadIdx.x == 0) {
        rung_barrier_init(&full, HALF);
        rung_barrier_init(&empty, HANDS);
        rung_barrier_publish();
    }
    __syncthreads();
    if (threadIdx.x < HALF) {
        for (int64_t p = 0; p < g.k; p += T, parity ^= 1) {
            rung_barrier_wait(&empty, parity ^ 1);
            for (int i = y; i < T; i += T / 2) {
                a_tile[i][x] = row - y + i < g.m && p + x < g.k ? g.a[(row - y + i) * g.lda + p + x] : 0.0f;
                b_tile[i][x] = p + i < g.k && column < g.n ? g.b[(p + i) * g.ldb + column] : 0.0f;
            }
            rung_barrier_arrive(&full);
        }
        return;
    }
    float acc[2] = {0.0f, 0.0f};
    for (int64_t p = 0; p < g.k; p += T, parity ^= 1) {
        rung_barrier_wait(&full, parity);
        for (int i = 0; i < T; i++)
            for (int j = 0; j < 2; j++)
                acc[j] = fmaf(a_tile[y + j * T / 2][i], b_tile[i][x], acc[j]);
        HAND_BACK(&empty);
    }
    for (int j = 0; j < 2; j++)
        if (row + j * T / 2 < g.m && column < g.n) {
            float *c = &g.c[(row + j * T / 2) * g.ldc + column];
            *c = rung_blend(&g, acc[j], c);
        }
}
