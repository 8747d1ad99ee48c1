/* What the rows of all families use. */
#ifndef RUNG_FAMILIES_TILE_H
#define RUNG_FAMILIES_TILE_H

#include <stddef.h>

/* Registers that a thread may have, where `blocks` of so many threads share a multiprocessor. A row that leaves out one
 * of the two is refused by its family's checks; no division by zero comes before that. */
#define RUNG_REGISTERS(threads, blocks)                                                                                \
    (65536 / RUNG_OR_1((threads) * (blocks)) / 8 * 8 > 255 ? 255 : 65536 / RUNG_OR_1((threads) * (blocks)) / 8 * 8)
#define RUNG_OR_1(x) ((x) ? (x) : 1)

/* A condition of <FAMILY>_CHECKS: where a row does not meet it, the build stops with the tile's name and the sentence.
 */
#define RUNG_TILE_CHECK(condition, sentence) _Static_assert(condition, RUNG_TILE_NAME ": " sentence);
#define RUNG_MOST_SHARED_BYTES 232448 /* that a block may have, on sm_90 */

/* The field .post of a row: what is done to the compiled code. */
typedef enum rung_post {
    RUNG_AS_COMPILED,
    RUNG_ORDERED_FFMAS,    /* FFMAs and shared loads are put in another order (sass order) */
    RUNG_ORDERED_IN_TURNS, /* the same where blocks share a multiprocessor, so that warps take turns (sass turns) */
    RUNG_TT_IN_TURNS,      /* the same for the form tt alone (sass turns_tt) */
    RUNG_WRITTEN_LOOP      /* the main loop is written anew (sass loop) */
} rung_post;

/* The field .gather of a row: what warps do that fill a ring beside the copy engine. tools/sass leaves it alone. */
typedef enum rung_gather { RUNG_NO_GATHER, RUNG_GATHER_COPIES, RUNG_GATHER_MOVES } rung_gather;

/* What the struct of a family's tile begins with. */
#define RUNG_TILE_HEAD                                                                                                 \
    const char *name, *idea;                                                                                           \
    rung_gather gather;                                                                                                \
    rung_post post;                                                                                                    \
    int min_ffma_percent

/* The clock of the chip whose timings the costs are fitted to. On a slower one all that is a time takes longer. */
#define RUNG_COSTS_GHZ 1.98

/* The costs of a family's tiles, for the program that fits them (tools/fit/fit.c), which is built of these sources with
 * RUNG_FITTING: there they can be changed. */
typedef struct rung_costs {
    const char *family, *fields; /* names of .cost, in order, with spaces between */
    void *tiles;
    size_t tile_bytes, count, cost_offset;
} rung_costs;
#ifdef RUNG_FITTING
#define RUNG_TILE_TABLE static
#define RUNG_TILE_COSTS(family, fields)                                                                                \
    extern const rung_costs rung_costs_##family;                                                                       \
    const rung_costs rung_costs_##family = {                                                                           \
        #family, fields, table, sizeof table[0], sizeof table / sizeof table[0], offsetof(family##_tile, cost)};
#else
#define RUNG_TILE_TABLE static const
#define RUNG_TILE_COSTS(family, fields)
#endif

/* Finds a kernel's row among those of its family. */
#define RUNG_FIND_TILE(tiles, kernel) (&(tiles)[(kernel)->tile])

#endif
