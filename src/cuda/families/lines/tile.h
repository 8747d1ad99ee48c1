/* What follows from a lines tile's row, for host and device: macros of BM, BN, BK, STAGES, RESIDENT. */
#ifndef RUNG_LINES_TILE_H
#define RUNG_LINES_TILE_H

enum {
    LINES_LINE = 32, /* floats of a line of 128 bytes */
    LINES_WARPS = 8,
    LINES_THREADS = 32 * LINES_WARPS
};

/* Results of a thread: of rows that lie 32 apart, and so start alike, and of columns that lie 32 apart. */
#define LINES_TM (BM / LINES_LINE)
#define LINES_TN (BN / LINES_LINE)

/* All stages are filled at once: k is no longer than they are together. Shared memory of one k: a block's rows of A,
 * and its columns of B with the line before them, since most rows begin within it. Where a bias or an
 * activation is applied to results, each waits there once more, in its thread's own place. */
#define LINES_B_FLOATS(bn) ((bn) + LINES_LINE)
#define LINES_BYTES_OF_K(bm, bn) (4 * ((bm) + LINES_B_FLOATS(bn)))
#define LINES_KEPT_BYTES(bm, bn) (4 * (bm) * (bn) / (LINES_LINE / LINES_WARPS))

#define LINES_ROW                                                                                                      \
    .tm = LINES_TM, .tn = LINES_TN, .threads = LINES_THREADS,                                                          \
    .shared_bytes = BK * STAGES * LINES_BYTES_OF_K(BM, BN) + LINES_KEPT_BYTES(BM, BN),                                 \
    .max_registers = RUNG_REGISTERS(LINES_THREADS, RESIDENT), .accepts = RUNG_ACCEPTS_ALL | RUNG_KEEPS_ORDER

#define LINES_CHECKS                                                                                                   \
    RUNG_TILE_CHECK(BM % 128 == 0 && BN % 32 == 0, "BM is a multiple of 128, BN of 32")                                \
    RUNG_TILE_CHECK(BM <= LINES_THREADS && LINES_THREADS % BM == 0, "BM divides the 256 threads of a block")           \
    RUNG_TILE_CHECK(BK == 4 || BK == 8 || BK == 16, "BK is 4, 8 or 16")                                                \
    RUNG_TILE_CHECK(RESIDENT > 0, ".resident is 1 or more")                                                            \
    RUNG_TILE_CHECK(RESIDENT *LINES_THREADS <= 2048, "a multiprocessor holds 2048 threads: a lower .resident")         \
    RUNG_TILE_CHECK(COST_SHARE, ".cost has a .share above 0")                                                          \
    RUNG_TILE_CHECK(BK *STAGES *LINES_BYTES_OF_K(BM, BN) + LINES_KEPT_BYTES(BM, BN) <= RUNG_MOST_SHARED_BYTES,         \
                    "a block has at most 232448 bytes of shared memory: fewer stages")

#endif
