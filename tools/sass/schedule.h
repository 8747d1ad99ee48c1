/* A new order for a run: FFMAs and shared loads that follow one another in compiled code, with nothing between them and
 * no label among them. A greedy scheduler takes, step by step, the instruction that costs least at the register ports.
 * It is tried with many settings (knobs) and the best order is taken.
 */
#ifndef RUNG_TOOLS_SCHEDULE_H
#define RUNG_TOOLS_SCHEDULE_H

#include "sass.h"

enum {
    RUN_MAX = 4096,
    FMA_LATENCY = 5,  /* issue slots between an FFMA and one that reads its result */
    LOAD_LATENCY = 34 /* issue slots until a shared load's data is likely there */
};

struct node {
    struct word code;
    bool load;    /* a shared load, or else an FFMA */
    int d, width; /* registers written */
    int a, b, c;  /* registers read; a load reads its address, a, and has -1 for the others */
    int home;     /* its place as compiled */
};

/* `to` comes at least `gap` slots behind the node whose list this edge is in. */
struct edge {
    int to, gap, next;
};

struct run {
    struct node node[RUN_MAX];
    int n;
    int place;           /* of the first instruction in the function; NO_TURNS: warps take no turns */
    int ready[RUN_MAX];  /* the slot from which an instruction's registers may be read and written */
    int loaded[RUN_MAX]; /* the slot at which loads from before the run are likely there */
    int first_edge[RUN_MAX], predecessors[RUN_MAX];
    struct edge *edge;
    int edges, edge_room;
};

struct plan {
    int order[RUN_MAX], stall[RUN_MAX], n;
    bool swapped[RUN_MAX]; /* whether a and b of the instruction change places */
    double cost;           /* cycles, and half of those that loads are waited for */
};

/* A random number generator: the same order comes out of the same code. */
struct dice {
    unsigned state;
};

struct node node_of(struct word w, int home);
bool node_writes(const struct node *x, int r);

/* Notes which instructions must keep their order. */
void run_link(struct run *r);
void run_free(struct run *r);

/* Finds the best order. Returns false where there is none. */
bool schedule_best(const struct run *r, struct dice *dice, struct plan *best);

#endif
