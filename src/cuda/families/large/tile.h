/* What follows from a large tile's row, for host and device: macros of BM, BN, BK, STAGES and A_K_INNERMOST. */
#ifndef RUNG_LARGE_TILE_H
#define RUNG_LARGE_TILE_H

/* Warps that multiply, 64 x 64 results each; four more copy. */
#define LARGE_MULTIPLIERS (BM / 64 * (BN / 64))
#define LARGE_THREADS (LARGE_MULTIPLIERS * 32 + 128)
/* Up to 1024 bytes to align the ring; the ring; room for barriers and the mark of the main loop; eight lines of 72
 * results a warp, by way of which it stores its part of C. */
#define LARGE_BARRIER_BYTES 512
#define LARGE_LINE_BYTES (8 * 72 * 4)
#define LARGE_SHARED_BYTES                                                                                             \
    (1024 + STAGES * (BM + BN) * BK * 4 + LARGE_BARRIER_BYTES + LARGE_MULTIPLIERS * LARGE_LINE_BYTES)

#define LARGE_ROW                                                                                                      \
    .arith = RUNG_F32, .wm = 64, .wn = 64, .tm = 8, .tn = 16, .threads = LARGE_THREADS,                                \
    .shared_bytes = LARGE_SHARED_BYTES, .max_registers = RUNG_REGISTERS(LARGE_THREADS, 1), .max_spill_bytes = 144,     \
    .min_ffma_percent = MIN_FFMA_PERCENT,                                                                              \
    .accepts = (RUNG_ACCEPTS_ALL & ~RUNG_ACCEPTS_ARRAYS & ~(A_K_INNERMOST ? RUNG_ACCEPTS_TN : 0)) | RUNG_KEEPS_ORDER

#define LARGE_CHECKS                                                                                                   \
    RUNG_TILE_CHECK(COST_STEP_CYCLES, ".cost has .step_cycles above 0")                                                \
    RUNG_TILE_CHECK(MIN_FFMA_PERCENT <= 100, ".min_ffma_percent is 100 or less")                                       \
    RUNG_TILE_CHECK(A_K_INNERMOST <= 1, ".a_k_innermost is 0 or 1")                                                    \
    RUNG_TILE_CHECK((BM == 128 && BN == 256) || (BM == 256 && BN == 128), "BM x BN is 128 x 256 or 256 x 128")         \
    RUNG_TILE_CHECK(STAGES >= 4, "at least four stages: each of the four warps that copy fills one")                   \
    RUNG_TILE_CHECK(BK == 16, "BK is 16")                                                                              \
    RUNG_TILE_CHECK(LARGE_SHARED_BYTES <= RUNG_MOST_SHARED_BYTES,                                                      \
                    "a block has at most 232448 bytes of shared memory: fewer stages")

#endif
