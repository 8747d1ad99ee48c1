/* What follows from a small tile's row, for host and device: macros of BM, BN, BK, STAGES, TM, TN, SLICES, RESIDENT. */
#ifndef RUNG_SMALL_TILE_H
#define RUNG_SMALL_TILE_H

#include "cuda/device/copies_room.h"

enum {
    SMALL_BATCH_THREADS = 128, /* of a block of whole products */
    SMALL_CROWD_PITCH = 36,    /* floats from one of 32 results' row to the next, on their way out of a crowd's block */
    SMALL_CROWD_LOADS = 24     /* several blocks add parts of k that take a thread more loads than these */
};

#define SMALL_THREADS (BATCH ? SMALL_BATCH_THREADS : BM / (TM ? TM : 1) * (BN / (TN ? TN : 1)) * SLICES)

/* The most shared memory that any form asks for; a launch asks for what its form and its k need. The sums of all slices
 * take the stages' place. */
#define SMALL_LARGER(x, y) ((x) > (y) ? (x) : (y))
#define SMALL_STAGE_FLOATS                                                                                             \
    (CROWD   ? TURNED_FLOATS(BM, BK) + TURNED_FLOATS(BN, BK)                                                           \
     : BRIEF ? SMALL_LARGER(TURNED_FLOATS(BM, BK), INNERMOST_FLOATS(BM, BK)) +                                         \
                   SMALL_LARGER(TURNED_FLOATS(BN, BK), INNERMOST_FLOATS(BN, BK))                                       \
             : INNERMOST_FLOATS(BM, BK) + INNERMOST_FLOATS(BN, BK))
#define SMALL_SUMS_FLOATS (SLICES * BM * BN * (CROWD ? SMALL_CROWD_PITCH : 32) / 32)
#define SMALL_SHARED_BYTES (BATCH ? 0 : 4 * SMALL_LARGER(STAGES * SMALL_STAGE_FLOATS, SMALL_SUMS_FLOATS))

#define SMALL_ROW                                                                                                      \
    .tm = TM, .tn = TN, .threads = SMALL_THREADS, .shared_bytes = SMALL_SHARED_BYTES,                                  \
    .max_registers = RUNG_REGISTERS(SMALL_THREADS, RESIDENT),                                                          \
    .max_spill_bytes = BATCH   ? 160                                                                                   \
                       : CROWD ? 8                                                                                     \
                               : 64,                                                                                   \
    .accepts = RUNG_ACCEPTS_ALL | (IN_ORDER ? RUNG_KEEPS_ORDER : 0)

/* For a tile that is neither a crowd's nor a batch's. */
#define SMALL_OTHER (!CROWD && !BATCH && !BRIEF)
#define SMALL_STEP (SMALL_OTHER ? K_AT_ONCE * SLICES : 1)
#define SMALL_CHECKS                                                                                                   \
    RUNG_TILE_CHECK(BATCH ? COST_BLOCK_US : COST_SHARE, ".cost has a .share above 0; with .batch a .block_us")         \
    RUNG_TILE_CHECK(TM > 0 && TN > 0 && (TM % 4 == 0 || (BRIEF && TM == 2)) && TN % 4 == 0,                            \
                    ".tm and .tn are multiples of 4; with .brief .tm may be 2")                                        \
    RUNG_TILE_CHECK(BM % (TM ? TM : 1) == 0 && BN % (TN ? TN : 1) == 0, ".tm divides BM, and .tn BN")                  \
    RUNG_TILE_CHECK(CROWD + BATCH + BRIEF <= 1 && IN_ORDER <= 1,                                                       \
                    ".crowd, .batch, .brief and .in_order are 0 or 1, and but one of the first three is 0")            \
    RUNG_TILE_CHECK(BATCH || STAGES >= 2, "at least two stages: one is filled while another is multiplied")            \
    RUNG_TILE_CHECK(!BATCH || (BM == BN && BM == BK && (BM == 8 || BM == 16 || BM == 32)),                             \
                    "with .batch BM, BN and BK are alike: 8, 16 or 32")                                                \
    RUNG_TILE_CHECK(RESIDENT > 0, ".resident is 1 or more")                                                            \
    RUNG_TILE_CHECK(RESIDENT *SMALL_THREADS <= 2048, "a multiprocessor holds 2048 threads: a lower .resident")         \
    RUNG_TILE_CHECK(BATCH || SLICES > 0, ".slices is 1 or more")                                                       \
    RUNG_TILE_CHECK(!CROWD || (BK == 8 && TM == 8 && SLICES == 1), "a crowd's BK is 8, its .tm 8, its .slices 1")      \
    RUNG_TILE_CHECK(!CROWD || (BM % 32 == 0 && BN % (8 * TN) == 0),                                                    \
                    "a crowd's warps are 4 x 8 threads: BM is a multiple of 32, BN of 8 times .tn")                    \
    RUNG_TILE_CHECK(!CROWD || (SMALL_THREADS <= 256 && BM * 8 % SMALL_THREADS == 0 && BN * 8 % SMALL_THREADS == 0),    \
                    "a crowd's threads, BM / 8 * (BN / .tn), are at most 256 and divide 8 * BM and 8 * BN")            \
    RUNG_TILE_CHECK(!BRIEF || (SLICES == 1 && !IN_ORDER), "with .brief .slices is 1 and .in_order 0")                  \
    RUNG_TILE_CHECK(!BRIEF || LANES_X == 4 || LANES_X == 8 || LANES_X == 16, "with .brief .lanes_x is 4, 8 or 16")     \
    RUNG_TILE_CHECK(!BRIEF || (BN / TN % (LANES_X ? LANES_X : 1) == 0 && BM / TM % (LANES_X ? 32 / LANES_X : 1) == 0), \
                    "with .brief warps of 32 / .lanes_x by .lanes_x threads tile the block")                           \
    RUNG_TILE_CHECK(!BRIEF || BK % 16 == 0,                                                                            \
                    "with .brief BK is a multiple of 16: half a warp copies sixteen k of a row")                       \
    RUNG_TILE_CHECK(!SMALL_OTHER || K_AT_ONCE == 2 || K_AT_ONCE == 4, ".k_at_once is 2 or 4")                          \
    RUNG_TILE_CHECK(!SMALL_OTHER || LANES_X == 1 || LANES_X == 2 || LANES_X == 4 || LANES_X == 8 || LANES_X == 16 ||   \
                        LANES_X == 32,                                                                                 \
                    ".lanes_x is 1, 2, 4, 8, 16 or 32")                                                                \
    RUNG_TILE_CHECK(!SMALL_OTHER || BN / TN % (LANES_X ? LANES_X : 1) == 0, ".lanes_x divides BN / .tn")               \
    RUNG_TILE_CHECK(!SMALL_OTHER || BK % 16 == 0, "BK is a multiple of 16: half a warp copies sixteen k of a row")     \
    RUNG_TILE_CHECK(!SMALL_OTHER || BK % (4 * SLICES ? 4 * SLICES : 1) == 0, "BK is a multiple of 4 times .slices")    \
    RUNG_TILE_CHECK(!SMALL_OTHER || BK % (2 * SMALL_STEP ? 2 * SMALL_STEP : 1) == 0,                                   \
                    "BK is a multiple of 2 times .k_at_once times .slices")                                            \
    RUNG_TILE_CHECK(SMALL_THREADS > 0 && SMALL_THREADS % 32 == 0,                                                      \
                    "a block has whole warps: BM / .tm * (BN / .tn) * .slices is a multiple of 32")                    \
    RUNG_TILE_CHECK(SMALL_THREADS <= 1024, "a block has at most 1024 threads: BM / .tm * (BN / .tn) * .slices")        \
    RUNG_TILE_CHECK(SMALL_SHARED_BYTES <= RUNG_MOST_SHARED_BYTES,                                                      \
                    "a block has at most 232448 bytes of shared memory: fewer stages, or a shorter BK")

/* Accurate mode has the tiles that it refuses computed by a small one. */
#define SMALL_NEEDED (IN_ORDER && BM == 128 && BN == 128)
#define SMALL_NEEDS 1
#define SMALL_NEEDS_TEXT "accurate mode needs a tile of 128 x 128 with .in_order"

#endif
