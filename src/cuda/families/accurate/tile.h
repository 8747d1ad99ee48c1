/* What follows from the row of a product on tensor cores, for host and device: macros of BM, BN, BK, STAGES, TF32. */
#ifndef RUNG_ACCURATE_TILE_H
#define RUNG_ACCURATE_TILE_H

#define ACCURATE_THREADS (256 + 128)                      /* two warpgroups multiply, one copies */
#define ACCURATE_RING_BYTES (STAGES * (BM + BN) * BK * 4) /* two halves of 16 bits, or 32 of TF32 */

#define ACCURATE_ROW                                                                                                   \
    .arith = TF32 ? RUNG_TF32 : RUNG_F16X3, .wm = 64, .wn = BN, .threads = ACCURATE_THREADS,                           \
    .shared_bytes = ACCURATE_RING_BYTES, .max_registers = RUNG_REGISTERS(ACCURATE_THREADS, 1), .max_spill_bytes = 96,  \
    .accepts = RUNG_ACCEPTS_ALL | RUNG_KEEPS_ORDER

#endif
