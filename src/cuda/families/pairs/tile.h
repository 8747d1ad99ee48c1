/* What follows from a pair's row, for host and device: macros of BM, BN, BK, STAGES and SHIFTED. */
#ifndef RUNG_PAIRS_TILE_H
#define RUNG_PAIRS_TILE_H

#include "cuda/device/shifted_room.h"

/* Two groups of four warps, 64 x 64 results a warp; four more warps copy. */
#define PAIRS_GROUPS 2
#define PAIRS_THREADS (PAIRS_GROUPS * 128 + 128)
/* So many stages a group lie as they were copied, before they are shifted to their place. They get the room of the form
 * that needs most. */
#define PAIRS_COPIES (SHIFTED ? 2 : 0)
#define PAIRS_COPY_BYTES(extent)                                                                                       \
    (SHIFTED_BYTES(extent, 1) > SHIFTED_BYTES(extent, 0) ? SHIFTED_BYTES(extent, 1) : SHIFTED_BYTES(extent, 0))
/* A warp has eight lines of 72 results, or half of its results in two boxes for the copy engine. */
#define PAIRS_SPARE_BYTES (SHIFTED ? 8 * 72 * 4 : 8192)
/* Barriers, and room for the mark of the main loop behind them. */
#define PAIRS_BARRIER_BYTES (256 + 512)
/* Up to 1024 bytes to align the rings; rings; copies; the spare room of eight warps; barriers. */
#define PAIRS_SHARED_BYTES                                                                                             \
    (1024 +                                                                                                            \
     PAIRS_GROUPS * (STAGES * (BM + BN) * BK * 4 + PAIRS_COPIES * (PAIRS_COPY_BYTES(BM) + PAIRS_COPY_BYTES(BN))) +     \
     8 * PAIRS_SPARE_BYTES + PAIRS_BARRIER_BYTES)

#define PAIRS_ROW                                                                                                      \
    .arith = RUNG_F32, .wm = 64, .wn = 64, .tm = 8, .tn = 16, .threads = PAIRS_THREADS,                                \
    .shared_bytes = PAIRS_SHARED_BYTES, .max_registers = RUNG_REGISTERS(PAIRS_THREADS, 1), .max_spill_bytes = 64,      \
    .min_ffma_percent = MIN_FFMA_PERCENT,                                                                              \
    .accepts = (RUNG_ACCEPTS_ALL & ~RUNG_ACCEPTS_ARRAYS & ~(SHIFTED ? 0 : RUNG_ACCEPTS_NT | RUNG_ACCEPTS_TT)) |        \
               RUNG_KEEPS_ORDER

#define PAIRS_CHECKS                                                                                                   \
    RUNG_TILE_CHECK(COST_SHARE, ".cost has a .share above 0")                                                          \
    RUNG_TILE_CHECK(MIN_FFMA_PERCENT <= 100, ".min_ffma_percent is 100 or less")                                       \
    RUNG_TILE_CHECK(SHIFTED <= 1, ".shifted is 0 or 1")                                                                \
    RUNG_TILE_CHECK(BM % 64 == 0 && BN % 64 == 0 && BM * BN == 16384, "BM and BN are 64, 128 or 256, BM * BN 16384")   \
    RUNG_TILE_CHECK(BK == 16, "BK is 16")                                                                              \
    RUNG_TILE_CHECK(PAIRS_SHARED_BYTES <= RUNG_MOST_SHARED_BYTES,                                                      \
                    "a block has at most 232448 bytes of shared memory: fewer stages")

#endif
