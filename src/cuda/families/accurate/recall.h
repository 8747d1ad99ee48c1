/* What the guard said of the last product like this one. Products come again, in loops, with the same operands in the
 * same places; where the guard refused every block the last time, a look at the operands (device/f16x3_look.h) is
 * cheaper than to split them and most likely enough. The split also leaves which line of each block to look at. All of
 * it is on the GPU: a product that a graph holds has a record of its own there, which each replay finds as the one
 * before left it. The host knows as much of others as saves them the question, and waits for nothing. What is recalled
 * decides whether and where there is a look, never what is computed. */
#ifndef RUNG_ACCURATE_RECALL_H
#define RUNG_ACCURATE_RECALL_H

#include "cuda/device/f16x3.h"
#include "cuda/driver/device.h"

/* Where the launches of one product leave what they find, on the GPU. */
typedef struct rung_recall_place {
    f16x3_recalled *record;  /* NULL: nothing is recalled */
    volatile uint32_t *told; /* in host memory: whether all blocks were refused the last time; NULL in a graph */
    f16x3_witness *witness;  /* the blocks of A and then those of B, two each */
    uint64_t number;         /* which record and witnesses are this product's; those with lesser numbers are not */
    int may_look;            /* a look may be due: the launch that splits finds out */
} rung_recall_place;

/* Finds the place of products like this one, which was lent these zeros. */
rung_recall_place rung_recall(rung_cuda *cuda, const rung_problem *p, const void *zeros);
void rung_recall_close(rung_cuda *cuda);

#endif
