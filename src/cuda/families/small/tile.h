/* What follows from a small tile's row, for host and device: macros of BM, BN, BK, STAGES, TM, TN, SLICES, RESIDENT. */
#ifndef RUNG_SMALL_TILE_H
#define RUNG_SMALL_TILE_H

#include "cuda/device/copies_room.h"

enum {
    SMALL_BATCH_THREADS = 128, /* of a block of whole products */
    SMALL_CROWD_PITCH = 36,    /* floats from one of 32 results' row to the next, on their way out of a crowd's block */
    SMALL_CROWD_LOADS = 24     /* several blocks add parts of k that take a thread more loads than these */
};

#define SMALL_THREADS (BATCH ? SMALL_BATCH_THREADS : BM / TM * (BN / TN) * SLICES)

/* The most shared memory that any form asks for; a launch asks for what its form and its k need. The sums of all slices
 * take the stages' place. */
#define SMALL_LARGER(x, y) ((x) > (y) ? (x) : (y))
#define SMALL_STAGE_FLOATS                                                                                             \
    (CROWD ? TURNED_FLOATS(BM, BK) + TURNED_FLOATS(BN, BK) : INNERMOST_FLOATS(BM, BK) + INNERMOST_FLOATS(BN, BK))
#define SMALL_SUMS_FLOATS (SLICES * BM * BN * (CROWD ? SMALL_CROWD_PITCH : 32) / 32)
#define SMALL_SHARED_BYTES (BATCH ? 0 : 4 * SMALL_LARGER(STAGES * SMALL_STAGE_FLOATS, SMALL_SUMS_FLOATS))

#define SMALL_ROW                                                                                                      \
    .tm = TM, .tn = TN, .threads = SMALL_THREADS, .shared_bytes = SMALL_SHARED_BYTES,                                  \
    .max_registers = RUNG_REGISTERS(SMALL_THREADS, RESIDENT),                                                          \
    .max_spill_bytes = BATCH   ? 160                                                                                   \
                       : CROWD ? 0                                                                                     \
                               : 64,                                                                                   \
    .accepts = RUNG_ACCEPTS_ALL | (IN_ORDER ? RUNG_KEEPS_ORDER : 0)

#endif
