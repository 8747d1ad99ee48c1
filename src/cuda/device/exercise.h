/* What the files of `rung learn` say to their judge besides their kernels: predicted figures, a tile of the learner's
 * choice, the parts that k is cut into.
 */
#ifndef RUNG_DEVICE_EXERCISE_H
#define RUNG_DEVICE_EXERCISE_H

#include "args.h"

/* ANSWER(sectors_of_a, 4); states a predicted figure. */
#define ANSWER(name, value) extern "C" const double name = (value)

/* EXERCISE_TILE(BM, BN, THREADS); says that a block computes BM x BN results with so many threads. */
#define EXERCISE_TILE(bm, bn, threads) extern "C" const int exercise_tile[3] = {(bm), (bn), (threads)}

/* EXERCISE_SHARED(BYTES); asks for so much extern __shared__ memory for each block. */
#define EXERCISE_SHARED(bytes) extern "C" const int exercise_shared = (bytes)

/* EXERCISE_PARTS(m, n, k, sms) { return ...; } says into how many parts k is cut, for a product of that shape on so
 * many multiprocessors.
 */
#define EXERCISE_PARTS(m, n, k, sms) extern "C" int exercise_parts(int64_t m, int64_t n, int64_t k, int sms)

#ifdef __CUDACC__

/* Returns x, rounded to the 11 significant bits that a tensor core takes of each operand. */
RUNG_DEVICE float short_of(float x)
{
    return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

/* Returns x y + sum, with x and y of at most 11 significant bits: what a tensor core does, for one element. All lanes
 * of a warp call it together. */
RUNG_DEVICE float short_fma(float x, float y, float sum)
{
    if (__any_sync(0xffffffffu, short_of(x) != x || short_of(y) != y))
        __trap();
    return fmaf(x, y, sum);
}

#endif
#endif
