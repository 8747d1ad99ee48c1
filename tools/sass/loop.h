/* The main loop of the large FP32 kernels, as compiled and as it is written anew. A lane holds 8 x 16 sums; a ring of
 * stages in shared memory brings 16 k at a time. Four modules work on it: loop_old.c reads the compiled loop,
 * loop_new.c writes another, loop_proof.c runs that on symbols, loop_notes.c mends the compiler's list of barriers.
 */
#ifndef RUNG_TOOLS_LOOP_H
#define RUNG_TOOLS_LOOP_H

#include "cubin.h"

enum {
    TM = 8,  /* sums of a lane: rows, */
    TN = 16, /* and columns */
    BK = 16, /* k of a stage */
    FLOAT_BYTES = 4,
    TURN = 4,             /* k of one turn of the new loop */
    BLOCK_FMAS = TM * TN, /* FFMAs of one k */
    STAGES_MAX = 8,
    CODE_MAX = 4096,
    B_LOADS = TN / VECTOR, /* loads of one k of B */
    A_LOADS = TM / VECTOR, /* loads of one k of A, where k lies outermost */
    A_LOAD_BYTES = 128,    /* between two of them: the lanes of a warp stand side by side */
    B_LOAD_BYTES = 64,     /* between two loads of B */
};

/* What the build says about a kernel's tile, and what the mark in the code says about how A lies. */
struct tile {
    int rows, columns, stages;
    bool k_innermost; /* A lies with k innermost, swizzled; or else with k outermost, as B always does */
};

/* This says which moves of the warps that fill the ring are put close together: see loop.c. */
enum gather { GATHER_NONE, GATHER_COPIES, GATHER_MOVES };

/* The compiled loop. */
struct old_loop {
    struct word *code;
    int n;
    struct tile tile;
    int mark, entry, bottom; /* instructions from `entry` to `bottom` give way */
    int inputs;              /* the first of four registers: A, B, steps done, steps to do */
    int full, uniform;       /* the first full barrier's address: a register, or a uniform one; -1: the other */
    int result[TM][TN];      /* the registers in which the code behind the loop wants the sums */
    bool owned[REGISTERS], predicate[PT + 1]; /* free for the new loop */
};

/* Returns the bytes between rows: of one k or, where A lies with k innermost, of eight rows of A. */
static inline int a_row_bytes(const struct tile *t)
{
    return t->k_innermost ? TM * BK * FLOAT_BYTES : t->rows * FLOAT_BYTES;
}
static inline int b_row_bytes(const struct tile *t)
{
    return t->columns * FLOAT_BYTES;
}
static inline int a_bytes(const struct tile *t)
{
    return t->rows * BK * FLOAT_BYTES;
}
static inline int b_bytes(const struct tile *t)
{
    return t->columns * BK * FLOAT_BYTES;
}
static inline int stage_bytes(const struct tile *t)
{
    return a_bytes(t) + b_bytes(t);
}
/* Returns the bytes from a stage's full barrier to its empty one. */
static inline int empty_offset(const struct tile *t)
{
    return 8 * t->stages;
}
/* Returns the instructions that the new loop may have. */
static inline int room_of(const struct old_loop *old)
{
    return old->bottom + 1 - old->entry;
}

/* Each returns NULL, or why the kernel stays as compiled. */
const char *old_loop_read(struct old_loop *old, const struct function *f, const struct tile *tile);
const char *new_loop_write(const struct old_loop *old, struct word code[CODE_MAX], int *n);
const char *loop_notes_write(const struct old_loop *old, const struct word *code, int n, const struct function *f);

/* Returns whether the function has a loop as long as those that are written anew. */
bool old_loop_exists(const struct function *f);

/* Runs the new loop on symbols for several numbers of steps. Prints what is wrong; true: nothing. */
bool loop_prove(const struct old_loop *old, const struct word *code, int n);

/* Returns an instruction that does nothing, and waits. */
struct word idle(unsigned wait, int stall);

/* Writes a function's main loop anew. Without a loop of that kind there is nothing to do; false: it stays as compiled.
 */
bool loop_function(const struct function *f, const struct tile *tile, enum gather gather, int *written);

#endif
