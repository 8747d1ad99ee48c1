/* What C holds is needed when a tile ends, and memory takes longer to answer than all else that ends it. So a tile that
 * will read it asks the second level of cache for it when it begins. */
#ifndef RUNG_DEVICE_ASK_H
#define RUNG_DEVICE_ASK_H

#include "device/async.h"

/* Says whether a product reads what C holds; a beta that lies in device memory may be 0. */
#define MAY_READ_OLD(g) ((g)->beta != 0.0f || (g)->beta_device)

/* Asks for what C, of m x n results from `c` on, holds of a tile from row0 and col0 on. What the end computes of these,
 * too, must not wait in registers until then. */
RUNG_DEVICE void ask_for_old(const float *c, int64_t ldc, int64_t m, int64_t n, int row0, int col0, int tid,
                             const int bm, const int bn, const int threads)
{
    enum { LINE = 32 }; /* floats */
    const int pieces = (bn + LINE - 1) / LINE + 1;
    row0 = rung_known_number(row0), col0 = rung_known_number(col0);
    const int rows = min((int)m - row0, bm), last = min((int)n - col0, bn) - 1;
    c += row0 * ldc + col0;
#pragma unroll 1
    for (int i = tid; i < rows * pieces; i += threads) {
        const int col = i % pieces * LINE;
        if (col < last + LINE) /* the last piece may begin in the line before and end in a line of its own */
            rung_ask_for_line(c + i / pieces * ldc + min(col, last));
    }
}

#endif
