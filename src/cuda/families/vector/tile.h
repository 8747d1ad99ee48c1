/* What follows from a vector kernel's row, for host and device: macros of BM, STAGES, WARPS, RESIDENT, BULK,
 * K_INNERMOST, APART.
 */
#ifndef RUNG_VECTOR_TILE_H
#define RUNG_VECTOR_TILE_H

#define VECTOR_BOX 1024 /* floats that a bulk copy brings: some k of a block's rows */
#define VECTOR_THREADS (32 * WARPS)
/* With bulk copies each warp has a ring of boxes, and a barrier for each stage. Without them each thread has 16 bytes a
 * stage, and there is room for the warps' sums. A dot product has no stages. */
#define VECTOR_SHARED_BYTES                                                                                            \
    (K_INNERMOST ? 0 : BULK ? WARPS * STAGES * (VECTOR_BOX * 4 + 8) : VECTOR_THREADS * STAGES * 16 + WARPS * BM * 4)

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

#endif
