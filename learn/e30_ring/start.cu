/* e30_ring: half of the threads fill a ring of three stages, the others multiply from it; mbarriers hand stages over.
 */
#include "device/args.h"
#include "device/tma.h"

enum { SIDE = 16, HALF = 128, STAGES = 3, ROWS = SIDE / 2 };

RUNG_KERNEL(2 * HALF) e30_ring(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[STAGES][SIDE][SIDE], b_tile[STAGES][SIDE][SIDE];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    int x = threadIdx.x % SIDE, y = threadIdx.x % HALF / SIDE, stage = 0;
    int64_t row0 = (int64_t)blockIdx.y * SIDE, column = (int64_t)blockIdx.x * SIDE + x;
    uint32_t round = 0;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            rung_barrier_init(&full[s], HALF);
            rung_barrier_init(&empty[s], HALF);
        }
        rung_barrier_publish();
    }
    __syncthreads();

    if (threadIdx.x < HALF) { /* fills */
        for (int64_t i = 0; i < g.k; i += SIDE) {
            rung_barrier_wait(&empty[stage], round ^ 1); /* the first round finds every stage empty */
            for (int r = y; r < SIDE; r += ROWS) {
                a_tile[stage][r][x] = row0 + r < g.m && i + x < g.k ? g.a[(row0 + r) * g.lda + i + x] : 0.0f;
                b_tile[stage][r][x] = i + r < g.k && column < g.n ? g.b[(i + r) * g.ldb + column] : 0.0f;
            }
            /* here: the stage is full */
            stage = stage + 1 < STAGES ? stage + 1 : 0;
            round ^= stage == 0;
        }
        return;
    }

    float acc[2] = {0.0f, 0.0f}; /* multiplies */
    for (int64_t i = 0; i < g.k; i += SIDE) {
        /* here: wait until the stage is full */
        for (int j = 0; j < SIDE; j++)
            for (int h = 0; h < 2; h++)
                acc[h] = fmaf(a_tile[stage][y + h * ROWS][j], b_tile[stage][j][x], acc[h]);
        /* here: the stage is empty again */
        stage = stage + 1 < STAGES ? stage + 1 : 0;
        round ^= stage == 0;
    }
    for (int h = 0; h < 2; h++)
        if (row0 + y + h * ROWS < g.m && column < g.n) {
            float *c = &g.c[(row0 + y + h * ROWS) * g.ldc + column];
            *c = rung_blend(&g, acc[h], c);
        }
}
