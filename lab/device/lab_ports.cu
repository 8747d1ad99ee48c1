/* A kernel for each pattern of lab_ports.h: 256 FFMAs in a loop, timed by the multiprocessor's clock. The compiler
 * gives out the registers; tools/sass pattern then writes those of the pattern in their place. The sums are of no
 * interest. */
#include "lab_ports.h"

#define BODY(symbol)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(PORTS_THREADS, 1) symbol(const __grid_constant__ ports_args p)        \
    {                                                                                                                  \
        float sum[PORTS_SUMS], x[PORTS_SOURCES];                                                                       \
        _Pragma("unroll") for (int i = 0; i < PORTS_SOURCES; i++) x[i] = p.from[i];                                    \
        _Pragma("unroll") for (int i = 0; i < PORTS_SUMS; i++) sum[i] = p.from[PORTS_SOURCES + i];                     \
        __syncthreads();                                                                                               \
        int64_t start = clock64();                                                                                     \
        _Pragma("unroll 1") for (int turn = 0; turn < p.turns; turn++)                                                 \
            _Pragma("unroll") for (int i = 0; i < PORTS_FFMAS; i++) sum[i % PORTS_SUMS] =                              \
                fmaf(x[i % PORTS_SOURCES], x[(i * 3 + i / PORTS_SOURCES + 5) % PORTS_SOURCES], sum[i % PORTS_SUMS]);   \
        int64_t end = clock64();                                                                                       \
        float all = 0.0f;                                                                                              \
        _Pragma("unroll") for (int i = 0; i < PORTS_SUMS; i++) all += sum[i];                                          \
        _Pragma("unroll") for (int i = 0; i < PORTS_SOURCES; i++) all += x[i];                                         \
        p.to[blockIdx.x * PORTS_THREADS + threadIdx.x] = all;                                                          \
        if (threadIdx.x == 0)                                                                                          \
            p.cycles[blockIdx.x] = end - start;                                                                        \
    }

#define PORTS_PATTERN(symbol, ...) BODY(symbol)
PORTS_PATTERNS
