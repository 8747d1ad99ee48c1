/* A model of how a Hopper partition reads registers. There are two banks: even registers and odd ones. Each bank gives
 * one register a cycle, and an FFMA reads three. One FFMA a cycle is possible because the operand cache keeps, for
 * slots a and b, the register last read from each bank while the same warp goes on issuing.
 *
 * Where warps of several blocks share a partition they take turns: with every eighth instruction, 128 bytes of code,
 * another warp may go on, and what the cache kept of this one is lost.
 */
#ifndef RUNG_TOOLS_PORTS_H
#define RUNG_TOOLS_PORTS_H

#include "sass.h"

enum { BANKS = 2, SLOTS = 2 /* a and b; c is not kept */ };
enum { TURN = 8, NO_TURNS = -1 }; /* instructions of a warp's turn */

struct ports {
    int cached[SLOTS][BANKS]; /* the register kept, -1: none */
    int free_at[BANKS];       /* the cycle from which a bank can read again */
    int cycle;
    int next; /* the place in the function of the next instruction, or NO_TURNS: the warp goes on for ever */
};

/* The registers of an FFMA: d = a * b + c. */
struct operands {
    int a, b, c, d;
};

struct port_cost {
    int penalty;     /* what going next would cost: cycles lost and reads that pile up, weighted */
    int fresh_reads; /* registers that the operand cache does not hold */
};

/* Begins before the instruction at a place in the function, or with NO_TURNS. */
void ports_reset(struct ports *p, int next);

/* Issues an FFMA. */
struct port_cost ports_fma(struct ports *p, struct operands x);

/* Notes a load that brings `width` registers from d on new values: what is kept of the old ones is of no use. */
void ports_load(struct ports *p, int d, int width);

/* Returns the cycles that n instructions take, with the reuse flags that they carry. The first one's place in the
 * function says when turns begin; NO_TURNS: never. */
int ports_cycles(const struct word *code, int n, int next);

#endif
