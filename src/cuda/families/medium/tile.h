/* What follows from a medium tile's row, for host and device: macros of BM, BN, STAGES, GROUPS, RESIDENT, LARGE_LOOP.
 */
#ifndef RUNG_MEDIUM_TILE_H
#define RUNG_MEDIUM_TILE_H

#define MEDIUM_BK 16 /* of a step of one group */
/* A warp computes 64 x 64 results. With the large tiles' loop, four more warps copy. */
#define MEDIUM_THREADS (BM / 64 * (BN / 64) * 32 * GROUPS + (LARGE_LOOP ? 128 : 0))
/* Up to 1024 bytes to align the rings; the groups' rings; their barriers, or room for those and the mark of the main
 * loop. */
#define MEDIUM_BARRIER_BYTES (LARGE_LOOP ? 512 : 16 * STAGES * GROUPS)
#define MEDIUM_SHARED_BYTES (1024 + GROUPS * STAGES * (BM + BN) * MEDIUM_BK * 4 + MEDIUM_BARRIER_BYTES)

#define MEDIUM_ROW                                                                                                     \
    .arith = RUNG_F32, .wm = 64, .wn = 64, .tm = 8, .tn = 16, .threads = MEDIUM_THREADS,                               \
    .shared_bytes = MEDIUM_SHARED_BYTES, .max_registers = RUNG_REGISTERS(MEDIUM_THREADS, RESIDENT),                    \
    .min_ffma_percent = MIN_FFMA_PERCENT,                                                                              \
    .accepts =                                                                                                         \
        RUNG_ACCEPTS_ALL & ~RUNG_ACCEPTS_ARRAYS & ~(MARKED && LARGE_LOOP ? RUNG_ACCEPTS_NT | RUNG_ACCEPTS_TT : 0)

#define MEDIUM_CHECKS                                                                                                  \
    RUNG_TILE_CHECK(COST_ALONE_US, ".cost has .alone_us above 0")                                                      \
    RUNG_TILE_CHECK(COST_FULL_US, ".cost has .full_us above 0")                                                        \
    RUNG_TILE_CHECK(MIN_FFMA_PERCENT <= 100, ".min_ffma_percent is 100 or less")                                       \
    RUNG_TILE_CHECK(MARKED <= 1 && LARGE_LOOP <= 1, ".marked and .large_loop are 0 or 1")                              \
    RUNG_TILE_CHECK((BM == 64 || BM == 128) && (BN == 64 || BN == 128), "BM and BN are 64 or 128")                     \
    RUNG_TILE_CHECK(GROUPS == 1 || GROUPS == 2 || GROUPS == 4 || (GROUPS == 8 && !LARGE_LOOP),                         \
                    ".groups is 1, 2, 4 or 8; with .large_loop at most 4")                                             \
    RUNG_TILE_CHECK(BK == MEDIUM_BK * (LARGE_LOOP ? 1 : GROUPS), "BK is 16 times .groups; with .large_loop 16")        \
    RUNG_TILE_CHECK(STAGES *(BM + BN) * MEDIUM_BK >= BM * BN,                                                          \
                    "a group's ring has room for its sums: stages * 16 * (BM + BN) is at least BM * BN")               \
    RUNG_TILE_CHECK(RESIDENT > 0, ".resident is 1 or more")                                                            \
    RUNG_TILE_CHECK(RESIDENT *MEDIUM_THREADS <= 2048, "a multiprocessor holds 2048 threads: a lower .resident")        \
    RUNG_TILE_CHECK(MEDIUM_THREADS <= 1024, "a block has at most 1024 threads: fewer .groups")                         \
    RUNG_TILE_CHECK(MEDIUM_SHARED_BYTES <= RUNG_MOST_SHARED_BYTES,                                                     \
                    "a block has at most 232448 bytes of shared memory: fewer stages")

/* Accurate mode has the blocks that it refuses computed by a medium tile: one for each order of B. */
#define MEDIUM_NEEDED (MARKED == 1 && LARGE_LOOP <= 1 ? 1 << LARGE_LOOP : 0)
#define MEDIUM_NEEDS 3
#define MEDIUM_NEEDS_TEXT "accurate mode needs a tile with .marked, and one with .marked and .large_loop"

#endif
