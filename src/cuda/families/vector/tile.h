/* What follows from a vector kernel's row, for host and device: macros of BM, STAGES, WARPS, RESIDENT, BULK,
 * K_INNERMOST, APART.
 */
#ifndef RUNG_VECTOR_TILE_H
#define RUNG_VECTOR_TILE_H

#define VECTOR_BOX 1024 /* floats that a bulk copy brings: some k of a block's rows */
#define VECTOR_THREADS (32 * WARPS)
/* With bulk copies each warp has a ring of boxes, and a barrier for each stage; its sums have room of their own, since
 * copies go on meanwhile. Without them each thread has 16 bytes a
 * stage, and there is room for the warps' sums. A dot product has no stages. */
#define VECTOR_SHARED_BYTES                                                                                            \
    (K_INNERMOST ? 0                                                                                                   \
     : BULK      ? WARPS * (STAGES * (VECTOR_BOX * 4 + 8) + 4 * (BM > 128 ? BM : 128))                                 \
                 : VECTOR_THREADS * STAGES * 16 + WARPS * BM * 4)

/* How many blocks the rows of a matrix take. Where rows start at different places within 16 bytes, every fourth row
 * starts alike: a block of a dot product then takes every fourth row, so that it reads 16 bytes at a time from all of
 * its rows. */
#define VECTOR_FOURTHS(ld) (((ld)&3) != 0)
#define VECTOR_TILES_OF(rows, ld, bm, k_innermost)                                                                     \
    ((k_innermost) && VECTOR_FOURTHS(ld) ? ((rows) + 4 * (bm)-1) / (4 * (bm)) * 4 : ((rows) + (bm)-1) / (bm))
#define VECTOR_TILES(rows, ld) VECTOR_TILES_OF(rows, ld, BM, K_INNERMOST)

#define VECTOR_ROW                                                                                                     \
    .tm = 4, .tn = 1, .threads = VECTOR_THREADS, .shared_bytes = VECTOR_SHARED_BYTES,                                  \
    .max_registers = RUNG_REGISTERS(VECTOR_THREADS, RESIDENT), .max_spill_bytes = K_INNERMOST ? 16 : 0,                \
    .accepts = BULK ? RUNG_ACCEPTS_ALL & ~RUNG_ACCEPTS_ARRAYS : RUNG_ACCEPTS_ALL

#define VECTOR_CHECKS                                                                                                  \
    RUNG_TILE_CHECK(BN == 1 && WARPS > 0 && RESIDENT > 0, "BN is 1, .warps and .resident are 1 or more")               \
    RUNG_TILE_CHECK(!K_INNERMOST || BM == (APART ? 4 * WARPS : 4),                                                     \
                    "with .k_innermost BM is 4; with .apart too, 4 times .warps")                                      \
    RUNG_TILE_CHECK(K_INNERMOST || BULK || (BM == 32 && BK == 4 * WARPS),                                              \
                    "without .bulk BM is 32 and BK 4 times .warps")                                                    \
    RUNG_TILE_CHECK(!BULK || BM == 32 || BM == 64 || BM == 128 || BM == 256, "with .bulk BM is 32, 64, 128 or 256")    \
    RUNG_TILE_CHECK(COST_BYTES_PER_US, ".cost has .bytes_per_us above 0")                                              \
    RUNG_TILE_CHECK(VECTOR_SHARED_BYTES <= RUNG_MOST_SHARED_BYTES,                                                     \
                    "a block has at most 232448 bytes of shared memory: fewer stages")

#endif
