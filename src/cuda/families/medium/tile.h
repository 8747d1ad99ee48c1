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
    .accepts = RUNG_ACCEPTS_ALL & ~RUNG_ACCEPTS_ARRAYS & ~(LARGE_LOOP ? RUNG_ACCEPTS_NT | RUNG_ACCEPTS_TT : 0)

#endif
