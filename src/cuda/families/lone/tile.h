/* What follows from a lone warp's row, for host and device: macros of BM, BN, BK, STAGES, TM, TN, COPIED, FOURTHS. */
#ifndef RUNG_LONE_TILE_H
#define RUNG_LONE_TILE_H

#define LONE_WARPS 8 /* of a block */
#define LONE_LANES (BM / (TM ? TM : 1) * (BN / (TN ? TN : 1)))
/* Half a warp's lanes have all results of a tile, the other half takes other k of each stage. */
#define LONE_SLICED (LONE_LANES == 16)
/* Floats from one k to the next in shared memory, padded where copied operands are turned. The form with both turned
 * needs most. */
#define LONE_PITCH(extent) ((extent) + (COPIED ? 4 : 0))
#define LONE_RING_BYTES (STAGES * (LONE_PITCH(BM) + LONE_PITCH(BN)) * BK * 4)
/* The rings take so many bytes or, later in their place, the sums of all warps. */
#define LONE_SUMS_BYTES ((LONE_SLICED ? 2 : 1) * LONE_WARPS * BM * BN * 4)
#define LONE_RINGS_BYTES                                                                                               \
    (LONE_WARPS * LONE_RING_BYTES > LONE_SUMS_BYTES ? LONE_WARPS * LONE_RING_BYTES : LONE_SUMS_BYTES)
/* A row of results for each row of lanes, on their way out. */
#define LONE_SPARE_BYTES (BM / (TM ? TM : 1) * BN * 4)
/* Up to 1024 bytes to align the rings; rings; a barrier a stage; the spare rows. */
#define LONE_SHARED_BYTES (1024 + LONE_RINGS_BYTES + LONE_WARPS * (8 * STAGES + LONE_SPARE_BYTES))

#define LONE_ROW                                                                                                       \
    .arith = RUNG_F32, .wm = BM, .wn = BN, .tm = TM, .tn = TN, .threads = 32 * LONE_WARPS,                             \
    .shared_bytes = LONE_SHARED_BYTES, .max_registers = 255, .max_spill_bytes = 96,                                    \
    .accepts = RUNG_ACCEPTS_ALL & ~RUNG_ACCEPTS_ARRAYS & ~(FOURTHS ? RUNG_ACCEPTS_NT | RUNG_ACCEPTS_TT : 0)

#define LONE_CHECKS                                                                                                    \
    RUNG_TILE_CHECK(COST_SHARE, ".cost has a .share above 0")                                                          \
    RUNG_TILE_CHECK(TM > 0 && TN > 0 && TM % 4 == 0 && TN % 4 == 0, ".tm and .tn are multiples of 4")                  \
    RUNG_TILE_CHECK(BM % (TM ? TM : 1) == 0 && BN % (TN ? TN : 1) == 0, ".tm divides BM, and .tn BN")                  \
    RUNG_TILE_CHECK(LONE_LANES == 32 || LONE_SLICED, "a warp's 32 lanes, or 16 of them, have all results of a tile: "  \
                                                     "BM / .tm * (BN / .tn) is 32 or 16")                              \
    RUNG_TILE_CHECK(!LONE_SLICED || BN == 2 * TN || BN == 4 * TN || BN == 8 * TN,                                      \
                    "of a tile of 16 lanes BN / .tn is 2, 4 or 8")                                                     \
    RUNG_TILE_CHECK(COPIED <= 1 && FOURTHS <= 1 && WHOLE_STEPS <= 1, ".copied, .fourths and .whole_steps are 0 or 1")  \
    RUNG_TILE_CHECK(COPIED || !FOURTHS, ".fourths is only with .copied")                                               \
    RUNG_TILE_CHECK(COPIED || (BM % 8 == 0 && BN % 8 == 0),                                                            \
                    "without .copied BM and BN are multiples of 8, as the copy engine swizzles them")                  \
    RUNG_TILE_CHECK(STAGES >= 2, "at least two stages: one is filled while another is multiplied")                     \
    RUNG_TILE_CHECK(BK == 16 || (LONE_SLICED && BK == 32), "BK is 16; of a tile of 16 lanes 16 or 32")                 \
    RUNG_TILE_CHECK(LONE_SHARED_BYTES <= RUNG_MOST_SHARED_BYTES,                                                       \
                    "a block has at most 232448 bytes of shared memory: fewer stages")

#endif
