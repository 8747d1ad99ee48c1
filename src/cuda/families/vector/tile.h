/* What follows from a vector kernel's row, for host and device: macros of BM, STAGES, WARPS, RESIDENT, BULK,
 * K_INNERMOST.
 */
#ifndef RUNG_VECTOR_TILE_H
#define RUNG_VECTOR_TILE_H

#define VECTOR_BOX 1024 /* floats that a bulk copy brings: some k of a block's rows */
#define VECTOR_THREADS (32 * WARPS)
/* Bulk copies: a ring of boxes a warp, and a barrier a stage. Without them: 16 bytes a thread and stage, and the warps'
 * sums. A dot product holds nothing in stages. */
#define VECTOR_SHARED_BYTES                                                                                            \
    (K_INNERMOST ? 0 : BULK ? WARPS * STAGES * (VECTOR_BOX * 4 + 8) : VECTOR_THREADS * STAGES * 16 + WARPS * BM * 4)

#define VECTOR_ROW                                                                                                     \
    .tm = 4, .tn = 1, .threads = VECTOR_THREADS, .shared_bytes = VECTOR_SHARED_BYTES,                                  \
    .max_registers = RUNG_REGISTERS(VECTOR_THREADS, RESIDENT), .max_spill_bytes = K_INNERMOST ? 16 : 0,                \
    .accepts = BULK ? RUNG_ACCEPTS_ALL & ~RUNG_ACCEPTS_ARRAYS : RUNG_ACCEPTS_ALL

#endif
