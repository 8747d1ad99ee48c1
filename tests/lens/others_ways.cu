/* What CUDA C allows and the host's compiler does otherwise: nothing may be found. C's library fills and copies shared memory, halves of words
 * are volatile, two dynamic arrays are one, a function has shared memory of its own, and there are a hundred variables. */
#include "device/args.h"

static __device__ float *room(void)
{
    __shared__ float words[128];
    return words;
}

RUNG_KERNEL(256) others_ways(const __grid_constant__ rung_args g)
{
    extern __shared__ float floats[];
    extern __shared__ unsigned numbers[];
    __shared__ volatile short halves[256];
    __shared__ float filled[75], copied[75];
    __shared__ int m000[1], m001[1], m002[1], m003[1], m004[1], m005[1], m006[1], m007[1], m008[1], m009[1], m010[1],
        m011[1], m012[1], m013[1], m014[1], m015[1], m016[1], m017[1], m018[1], m019[1], m020[1], m021[1],
        m022[1], m023[1], m024[1], m025[1], m026[1], m027[1], m028[1], m029[1], m030[1], m031[1], m032[1],
        m033[1], m034[1], m035[1], m036[1], m037[1], m038[1], m039[1], m040[1], m041[1], m042[1], m043[1],
        m044[1], m045[1], m046[1], m047[1], m048[1], m049[1], m050[1], m051[1], m052[1], m053[1], m054[1],
        m055[1], m056[1], m057[1], m058[1], m059[1], m060[1], m061[1], m062[1], m063[1], m064[1], m065[1],
        m066[1], m067[1], m068[1], m069[1], m070[1], m071[1], m072[1], m073[1], m074[1], m075[1], m076[1],
        m077[1], m078[1], m079[1], m080[1], m081[1], m082[1], m083[1], m084[1], m085[1], m086[1], m087[1],
        m088[1], m089[1], m090[1], m091[1], m092[1], m093[1], m094[1], m095[1], m096[1], m097[1], m098[1];
    int64_t row = rung_block_row() * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float *words = room();
    halves[threadIdx.x] = 1;
    floats[threadIdx.x] = 1.0f;
    if (threadIdx.x < 128)
        words[threadIdx.x] = 1.0f;
    if (threadIdx.x == 0)
        memset(filled, 0, sizeof filled);
    if (threadIdx.x == 0) {
        m000[0] = 0; m001[0] = 0; m002[0] = 0; m003[0] = 0; m004[0] = 0; m005[0] = 0; m006[0] = 0; m007[0] =
        0; m008[0] = 0; m009[0] = 0; m010[0] = 0; m011[0] = 0; m012[0] = 0; m013[0] = 0; m014[0] = 0; m015[0]
        = 0; m016[0] = 0; m017[0] = 0; m018[0] = 0; m019[0] = 0; m020[0] = 0; m021[0] = 0; m022[0] = 0;
        m023[0] = 0; m024[0] = 0; m025[0] = 0; m026[0] = 0; m027[0] = 0; m028[0] = 0; m029[0] = 0; m030[0] =
        0; m031[0] = 0; m032[0] = 0; m033[0] = 0; m034[0] = 0; m035[0] = 0; m036[0] = 0; m037[0] = 0; m038[0]
        = 0; m039[0] = 0; m040[0] = 0; m041[0] = 0; m042[0] = 0; m043[0] = 0; m044[0] = 0; m045[0] = 0;
        m046[0] = 0; m047[0] = 0; m048[0] = 0; m049[0] = 0; m050[0] = 0; m051[0] = 0; m052[0] = 0; m053[0] =
        0; m054[0] = 0; m055[0] = 0; m056[0] = 0; m057[0] = 0; m058[0] = 0; m059[0] = 0; m060[0] = 0; m061[0]
        = 0; m062[0] = 0; m063[0] = 0; m064[0] = 0; m065[0] = 0; m066[0] = 0; m067[0] = 0; m068[0] = 0;
        m069[0] = 0; m070[0] = 0; m071[0] = 0; m072[0] = 0; m073[0] = 0; m074[0] = 0; m075[0] = 0; m076[0] =
        0; m077[0] = 0; m078[0] = 0; m079[0] = 0; m080[0] = 0; m081[0] = 0; m082[0] = 0; m083[0] = 0; m084[0]
        = 0; m085[0] = 0; m086[0] = 0; m087[0] = 0; m088[0] = 0; m089[0] = 0; m090[0] = 0; m091[0] = 0;
        m092[0] = 0; m093[0] = 0; m094[0] = 0; m095[0] = 0; m096[0] = 0; m097[0] = 0; m098[0] = 0;
    }
    __syncthreads();
    if (threadIdx.x == 32)
        memcpy(copied, filled, sizeof filled[0] * (size_t)(g.k > 75 ? 75 : g.k));
    __syncthreads();
    float acc = copied[g.k > 0 ? threadIdx.x % (g.k > 75 ? 75 : g.k) : 0];
    acc += (float)m000[0]; acc += (float)m001[0]; acc += (float)m002[0]; acc += (float)m003[0]; acc +=
    (float)m004[0]; acc += (float)m005[0]; acc += (float)m006[0]; acc += (float)m007[0]; acc +=
    (float)m008[0]; acc += (float)m009[0]; acc += (float)m010[0]; acc += (float)m011[0]; acc +=
    (float)m012[0]; acc += (float)m013[0]; acc += (float)m014[0]; acc += (float)m015[0]; acc +=
    (float)m016[0]; acc += (float)m017[0]; acc += (float)m018[0]; acc += (float)m019[0]; acc +=
    (float)m020[0]; acc += (float)m021[0]; acc += (float)m022[0]; acc += (float)m023[0]; acc +=
    (float)m024[0]; acc += (float)m025[0]; acc += (float)m026[0]; acc += (float)m027[0]; acc +=
    (float)m028[0]; acc += (float)m029[0]; acc += (float)m030[0]; acc += (float)m031[0]; acc +=
    (float)m032[0]; acc += (float)m033[0]; acc += (float)m034[0]; acc += (float)m035[0]; acc +=
    (float)m036[0]; acc += (float)m037[0]; acc += (float)m038[0]; acc += (float)m039[0]; acc +=
    (float)m040[0]; acc += (float)m041[0]; acc += (float)m042[0]; acc += (float)m043[0]; acc +=
    (float)m044[0]; acc += (float)m045[0]; acc += (float)m046[0]; acc += (float)m047[0]; acc +=
    (float)m048[0]; acc += (float)m049[0]; acc += (float)m050[0]; acc += (float)m051[0]; acc +=
    (float)m052[0]; acc += (float)m053[0]; acc += (float)m054[0]; acc += (float)m055[0]; acc +=
    (float)m056[0]; acc += (float)m057[0]; acc += (float)m058[0]; acc += (float)m059[0]; acc +=
    (float)m060[0]; acc += (float)m061[0]; acc += (float)m062[0]; acc += (float)m063[0]; acc +=
    (float)m064[0]; acc += (float)m065[0]; acc += (float)m066[0]; acc += (float)m067[0]; acc +=
    (float)m068[0]; acc += (float)m069[0]; acc += (float)m070[0]; acc += (float)m071[0]; acc +=
    (float)m072[0]; acc += (float)m073[0]; acc += (float)m074[0]; acc += (float)m075[0]; acc +=
    (float)m076[0]; acc += (float)m077[0]; acc += (float)m078[0]; acc += (float)m079[0]; acc +=
    (float)m080[0]; acc += (float)m081[0]; acc += (float)m082[0]; acc += (float)m083[0]; acc +=
    (float)m084[0]; acc += (float)m085[0]; acc += (float)m086[0]; acc += (float)m087[0]; acc +=
    (float)m088[0]; acc += (float)m089[0]; acc += (float)m090[0]; acc += (float)m091[0]; acc +=
    (float)m092[0]; acc += (float)m093[0]; acc += (float)m094[0]; acc += (float)m095[0]; acc +=
    (float)m096[0]; acc += (float)m097[0]; acc += (float)m098[0];
    if (row >= g.m || column >= g.n)
        return;
    if (numbers[255 - threadIdx.x] != 0x3f800000u || halves[255 - threadIdx.x] != 1 || words[threadIdx.x / 2] != 1.0f)
        acc += 1e9f;
    for (int64_t i = 0; i < g.k; i++)
        acc = fmaf(g.a[row * g.lda + i], g.b[i * g.ldb + column], acc);
    g.c[row * g.ldc + column] = acc;
}
