/* What follows from a vector kernel's row, for host and device: macros of BM, BK, ROWS, STEPS, WARPS,
 * RESIDENT, K_INNERMOST, APART. */
#ifndef RUNG_VECTOR_TILE_H
#define RUNG_VECTOR_TILE_H

#define VECTOR_THREADS (32 * WARPS)
/* Where rows are innermost a lane loads so many floats before it multiplies the first. */
#define VECTOR_AT_ONCE 32

/* How many blocks the rows of a matrix take. Where rows start at different places within 16 bytes, every fourth row
 * starts alike: a block of a dot product then takes every fourth row, so that it reads 16 bytes at a time from all of
 * its rows. */
#define VECTOR_FOURTHS(ld) (((ld)&3) != 0)
#define VECTOR_TILES_OF(rows, ld, bm, k_innermost)                                                                     \
    ((k_innermost) && VECTOR_FOURTHS(ld) ? ((rows) + 4 * (bm)-1) / (4 * (bm)) * 4 : ((rows) + (bm)-1) / (bm))
#define VECTOR_TILES(rows, ld) VECTOR_TILES_OF(rows, ld, BM, K_INNERMOST)

#define VECTOR_ROW                                                                                                     \
    .tm = K_INNERMOST ? ROWS : BM / 32, .tn = 1, .threads = VECTOR_THREADS,                                            \
    .max_registers = RUNG_REGISTERS(VECTOR_THREADS, RESIDENT), .max_spill_bytes = K_INNERMOST ? 16 : 0,                \
    .accepts = RUNG_ACCEPTS_ALL

#define VECTOR_CHECKS                                                                                                  \
    RUNG_TILE_CHECK(BN == 1 && WARPS > 0 && RESIDENT > 0, "BN is 1, .warps and .resident are 1 or more")               \
    RUNG_TILE_CHECK(K_INNERMOST <= 1 && APART <= 1, ".k_innermost and .apart are 0 or 1")                              \
    RUNG_TILE_CHECK(RESIDENT *VECTOR_THREADS <= 2048, "a multiprocessor holds 2048 threads: a lower .resident")        \
    RUNG_TILE_CHECK(VECTOR_THREADS <= 1024, "a block has at most 1024 threads: at most 32 .warps")                     \
    RUNG_TILE_CHECK(!K_INNERMOST || ROWS == 4 || ROWS == 8, "with .k_innermost .rows is 4 or 8")                       \
    RUNG_TILE_CHECK(!K_INNERMOST || (STEPS >= 1 && STEPS <= 4), "with .k_innermost .steps is 1 to 4")                  \
    RUNG_TILE_CHECK(!K_INNERMOST || BM == (APART ? ROWS * WARPS : ROWS),                                               \
                    "with .k_innermost BM is .rows; with .apart too, .rows times .warps")                              \
    RUNG_TILE_CHECK(K_INNERMOST || BM == 32 || BM == 64 || BM == 128 || BM == 256,                                     \
                    "without .k_innermost BM is 32, 64, 128 or 256")                                                   \
    RUNG_TILE_CHECK(K_INNERMOST || (BM <= VECTOR_THREADS && BM * BK == VECTOR_AT_ONCE * VECTOR_THREADS),               \
                    "without .k_innermost BM times BK is 1024 for each warp, and a block has a thread a row")          \
    RUNG_TILE_CHECK(COST_BYTES_PER_US, ".cost has .bytes_per_us above 0")

#endif
