/* The lab's own GPU kernels: random data, the FP64 reference beside a plain FP32 chain, the comparison, guards,
 * hashes, and sums.
 * They take any view of any size, and results do not depend on the launch. */
#include "lab_shared.h"

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

enum { TILE = 64, DEPTH = 16, PER_THREAD = 4 };

KERNEL(256) lab_fill(const __grid_constant__ lab_fill_args f)
{
    int64_t count = f.lines * f.length, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        int64_t line = i / f.length, position = i % f.length;
        f.view.at[line * f.view.line_step + position * f.view.step] = lab_value(&f, line, position);
    }
}

/* One 64 x 64 tile a block, 4 x 4 a thread. Operands become doubles on their way into shared memory, and stay as floats
 * beside them: conversions in the inner loop would take as long as the sums. */
KERNEL(256) lab_reference(const __grid_constant__ lab_reference_args r)
{
    __shared__ double a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    __shared__ float a32[DEPTH][TILE + 1], b32[DEPTH][TILE + 1];
    int64_t tiles_n = (r.n + TILE - 1) / TILE;
    int64_t row0 = blockIdx.x / tiles_n * TILE, column0 = blockIdx.x % tiles_n * TILE;
    int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    double sum[PER_THREAD][PER_THREAD] = {{0}}, size[PER_THREAD][PER_THREAD] = {{0}};
    float chain[PER_THREAD][PER_THREAD] = {{0}};
    float low[PER_THREAD][PER_THREAD] = {{0}}, high[PER_THREAD][PER_THREAD] = {{0}};

    for (int64_t p0 = 0; p0 < r.k; p0 += DEPTH) {
        for (int e = threadIdx.x; e < TILE * DEPTH; e += 256) {
            int p = e % DEPTH, i = e / DEPTH;
            int in_k = p0 + p < r.k;
            a[p][i] = a32[p][i] =
                in_k && row0 + i < r.m ? r.a.at[(row0 + i) * r.a.line_step + (p0 + p) * r.a.step] : 0.0f;
            int q = e / TILE, j = e % TILE;
            b[q][j] = b32[q][j] =
                p0 + q < r.k && column0 + j < r.n ? r.b.at[(p0 + q) * r.b.line_step + (column0 + j) * r.b.step] : 0.0f;
        }
        __syncthreads();
        int depth = r.k - p0 < DEPTH ? (int)(r.k - p0) : DEPTH;
        for (int p = 0; p < depth; p++)
#pragma unroll
            for (int i = 0; i < PER_THREAD; i++)
#pragma unroll
                for (int j = 0; j < PER_THREAD; j++) {
                    double x = a[p][ty + 16 * i], y = b[p][tx + 16 * j];
                    sum[i][j] = fma(x, y, sum[i][j]);
                    size[i][j] = fma(fabs(x), fabs(y), size[i][j]);
                    chain[i][j] = fmaf(a32[p][ty + 16 * i], b32[p][tx + 16 * j], chain[i][j]);
                    low[i][j] = fminf(low[i][j], chain[i][j]);
                    high[i][j] = fmaxf(high[i][j], chain[i][j]);
                }
        __syncthreads();
    }
    for (int i = 0; i < PER_THREAD; i++)
        for (int j = 0; j < PER_THREAD; j++) {
            int64_t row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
            lab_sums sums = {sum[i][j], size[i][j], chain[i][j], low[i][j], high[i][j]};
            if (row < r.m && column < r.n)
                lab_finish(&r, row, column, sums);
        }
}

static __device__ void raise(uint64_t *worst, double error, int64_t at)
{
    uint64_t low = at < 0xffffffff ? (uint64_t)at : 0xffffffffu;
    uint64_t packed = (uint64_t)__float_as_uint((float)error) << 32 | low;
    if (packed > *(volatile uint64_t *)worst)
        atomicMax((unsigned long long *)worst, packed);
}

KERNEL(256) lab_compare(const __grid_constant__ lab_compare_args x)
{
    int64_t count = x.m * x.n, step = (int64_t)gridDim.x * blockDim.x;
    double worst = 0.0, most = 0.0;
    int64_t worst_at = 0, most_at = 0;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        float c = x.c.at[at / x.n * x.c.line_step + at % x.n * x.c.step];
        double error = lab_error_of(c, x.c64[at], x.size[at]);
        if (error < 0.0) {
            atomicAdd((unsigned long long *)&x.tally->wrong, 1ull);
            atomicMin((unsigned long long *)&x.tally->wrong_at, (unsigned long long)at);
            continue;
        }
        if (error > worst) {
            worst = error;
            worst_at = at;
        }
        double share = x.reach ? error / lab_bound_of(&x.bound, x.size[at], x.reach[at]) : 0.0;
        if (share > most) {
            most = share;
            most_at = at;
        }
    }
    if (worst > 0.0)
        raise(&x.tally->worst, worst, worst_at);
    if (most > 0.0)
        raise(&x.tally->share, most, most_at);
}

KERNEL(256) lab_untouched(const __grid_constant__ lab_region_args r)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < r.words; i += step)
        if (r.words_at[i] != LAB_POISON && !lab_may_write(&r, i)) {
            atomicAdd((unsigned long long *)&r.tally->touched, 1ull);
            atomicMin((unsigned long long *)&r.tally->touched_at, (unsigned long long)i);
        }
}

KERNEL(256) lab_hash(const __grid_constant__ lab_region_args r)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    uint64_t hash = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < r.words; i += step)
        hash += lab_mix((uint64_t)i << 32 ^ r.words_at[i] ^ (uint64_t)i >> 32);
    if (hash)
        atomicAdd((unsigned long long *)&r.tally->hash, (unsigned long long)hash);
}

/* Sums in FP64 are taken of values in FP32: the order of the additions moves the last bits only. */
KERNEL(256) lab_sum(const __grid_constant__ lab_region_args r)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    double sum = 0.0, magnitude = 0.0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < r.words; i += step) {
        double x = __uint_as_float(r.words_at[i]);
        sum += x;
        magnitude += fabs(x);
    }
    for (int lane = 16; lane > 0; lane /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
        magnitude += __shfl_xor_sync(0xffffffffu, magnitude, lane);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&r.tally->sum, sum);
        atomicAdd(&r.tally->magnitude, magnitude);
    }
}
