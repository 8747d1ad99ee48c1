/* What follows from a vector kernel's row, for host and device: macros of BM, STAGES, WARPS, RESIDENT, BULK,
 * K_INNERMOST, APART.
 */
#ifndef RUNG_VECTOR_TILE_H
#define RUNG_VECTOR_TILE_H

#define VECTOR_BOX 1024 /* floats that a bulk copy brings: some k of a block's rows */
#define VECTOR_THREADS (32 * WARPS)
/* Bulk copies: a ring of boxes a warp, and a barrier a stage. Without them: 16 bytes a thread and stage, and the warps'
 * sums. A dot product holds nothing in stages. */
#define VECTOR_SHARED_BYTES                                                                                            \
    (K_INNERMOST ? 0 : BULK ? WARPS * STAGES * (VECTOR_BOX * 4 + 8) : VECTOR_THREADS * STAGES * 16 + WARPS * BM * 4)

/* Blocks that the rows of a matrix take. Rows that start at different places within 16 bytes start alike in fours: a
 * block of a dot product then takes every fourth row, so that it copies 16 bytes at a time from all of them. */
#define VECTOR_FOURTHS(ld) (((ld)&3) != 0)
#define VECTOR_TILES_OF(rows, ld, bm, k_innermost)                                                                     \
    ((k_innermost) && VECTOR_FOURTHS(ld) ? ((rows) + 4 * (bm)-1) / (4 * (bm)) * 4 : ((rows) + (bm)-1) / (bm))
#define VECTOR_TILES(rows, ld) VECTOR_TILES_OF(rows, ld, BM, K_INNERMOST)

#define VECTOR_ROW                                                                                                     \
    .tm = 4, .tn = 1, .threads = VECTOR_THREADS, .shared_bytes = VECTOR_SHARED_BYTES,                                  \
    .max_registers = RUNG_REGISTERS(VECTOR_THREADS, RESIDENT), .max_spill_bytes = K_INNERMOST ? 16 : 0,                \
    .accepts = BULK ? RUNG_ACCEPTS_ALL & ~RUNG_ACCEPTS_ARRAYS : RUNG_ACCEPTS_ALL

#endif
