/* What the files of `rung learn` say to their judge besides their kernels: predicted figures, a tile of the learner's
 * choice, the parts that k is cut into.
 */
#ifndef RUNG_DEVICE_EXERCISE_H
#define RUNG_DEVICE_EXERCISE_H

#include "args.h"

/* ANSWER(sectors_of_a, 4); */
#define ANSWER(name, value) extern "C" const double name = (value)

/* EXERCISE_TILE(BM, BN, THREADS); a block computes BM x BN results with so many threads. */
#define EXERCISE_TILE(bm, bn, threads) extern "C" const int exercise_tile[3] = {(bm), (bn), (threads)}

/* EXERCISE_PARTS(m, n, k, sms) { return ...; } the parts of k for a product of that shape on so many multiprocessors.
 */
#define EXERCISE_PARTS(m, n, k, sms) extern "C" int exercise_parts(int64_t m, int64_t n, int64_t k, int sms)

#endif
