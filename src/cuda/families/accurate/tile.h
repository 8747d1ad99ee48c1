/* What follows from the row of a product on tensor cores, for host and device: macros of BM, BN, BK, STAGES, CLUSTER,
 * TF32. */
#ifndef RUNG_ACCURATE_TILE_H
#define RUNG_ACCURATE_TILE_H

#define ACCURATE_THREADS (256 + 128)                      /* two warpgroups multiply, one copies */
#define ACCURATE_RING_BYTES (STAGES * (BM + BN) * BK * 4) /* two halves of 16 bits, or 32 of TF32 */

#define ACCURATE_ROW                                                                                                   \
    .arith = TF32 ? RUNG_TF32 : RUNG_F16X3, .wm = 64, .wn = BN, .threads = ACCURATE_THREADS,                           \
    .shared_bytes = ACCURATE_RING_BYTES, .max_registers = RUNG_REGISTERS(ACCURATE_THREADS, 1), .max_spill_bytes = 96,  \
    .accepts = RUNG_ACCEPTS_ALL | RUNG_KEEPS_ORDER

#define ACCURATE_HEADERS_BYTES 5120           /* what tiles' ends need, and barriers, as kernel.inc declares them */
#define ACCURATE_ROOM_BYTES (8 * 16 * 40 * 4) /* what passes through it to rows at odd addresses */

#define ACCURATE_CHECKS                                                                                                \
    RUNG_TILE_CHECK(BM == 128 && BN == 128, "BM and BN are 128: two warpgroups of 64 rows, wgmma of 128 columns")      \
    RUNG_TILE_CHECK(BK == 32, "BK is 32: a row of an operand's image has 128 bytes")                                   \
    RUNG_TILE_CHECK(TF32 <= 1, ".tf32 is 0 or 1")                                                                      \
    RUNG_TILE_CHECK(CLUSTER == 2, ".cluster is 2: the launch and the marks count pairs of blocks")                     \
    RUNG_TILE_CHECK(STAGES >= 3, "at least three stages: one is filled while two, 64 along k, are multiplied")         \
    RUNG_TILE_CHECK(ACCURATE_RING_BYTES + ACCURATE_HEADERS_BYTES + ACCURATE_ROOM_BYTES <= RUNG_MOST_SHARED_BYTES,      \
                    "a block has at most 232448 bytes of shared memory: fewer stages")

#endif
