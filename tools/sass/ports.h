/* A model of how a Hopper partition reads registers. There are two banks: even registers and odd ones. Each bank gives
 * one register a cycle, and an FFMA reads three. One FFMA a cycle is possible because the operand cache keeps, for
 * slots a and b, the register last read from each bank while the same warp goes on issuing.
 */
#ifndef RUNG_TOOLS_PORTS_H
#define RUNG_TOOLS_PORTS_H

#include "sass.h"

enum { BANKS = 2, SLOTS = 2 /* a and b; c is not kept */ };

struct ports {
    int cached[SLOTS][BANKS]; /* the register kept, -1: none */
    int free_at[BANKS];       /* the cycle from which a bank can read again */
    int cycle;
};

/* The registers of an FFMA: d = a * b + c. */
struct operands {
    int a, b, c, d;
};

struct port_cost {
    int penalty;     /* what going next would cost: cycles lost and reads that pile up, weighted */
    int fresh_reads; /* registers that the operand cache does not hold */
};

void ports_reset(struct ports *p);

/* Issues an FFMA. */
struct port_cost ports_fma(struct ports *p, struct operands x);

/* Notes a load that brings `width` registers from d on new values: what is kept of the old ones is of no use. */
void ports_load(struct ports *p, int d, int width);

/* Returns the cycles that n instructions take, with the reuse flags that they carry. */
int ports_cycles(const struct word *code, int n);

#endif
