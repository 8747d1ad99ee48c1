/* What plan and launch of accurate products share. */
#ifndef RUNG_ACCURATE_PANELS_H
#define RUNG_ACCURATE_PANELS_H

#include "cuda/driver/device.h"

enum { ACCURATE_CLUSTER = 2 };

/* Words that are zero between products: how many blocks of a look have looked, what it decided, whether it refused all
 * blocks of C; whether any line is wild. */
enum { ACCURATE_ARRIVED, ACCURATE_DECIDED, ACCURATE_REFUSED, ACCURATE_WILD, ACCURATE_WORDS };

/* Lays the workspace of a panel out. Of what is zero between launches, that of the kept operand comes first. */
accurate_layout accurate_lay_out(const rung_kernel *kernel, int64_t m, int64_t n, int64_t k, int kept, int sms);

/* The tiles of the last round, which is not full, may be cut along k: more clusters take part then, but one has to add
 * the parts. */
typedef struct accurate_cut {
    int64_t tiles, clusters; /* so many tiles are cut, over so many clusters; 0 and 1: none */
    double us;               /* of the whole launch */
} accurate_cut;

accurate_cut accurate_choose_cut(const accurate_layout *w, const rung_kernel *kernel, int64_t clusters, int in_order);

/* Returns whether what the guard says of this product is worth recalling: a product of one panel, where both kernels
 * see all of both operands, and each block of lines has room for its witnesses. */
int accurate_may_look(const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part);

/* Returns whether nothing but alpha is asked of the sums: the end of a tile is short then. */
static inline int accurate_only_alpha(const rung_problem *p)
{
    return p->beta_zero && p->bias_kind == RUNG_NO_BIAS && p->activation == RUNG_IDENTITY;
}

/* Returns whether C is stored a line at a time, by a form of the kernel for that: where its rows lie at odd addresses,
 * and, if the end of a tile is short, where they lie at multiples of 8 bytes, of which pairs of elements would be
 * stored in halves of sectors, and where they are of an odd length, of which the last columns' tiles would be stored
 * one element at a time. Among many columns of tiles these do not count. */
static inline int accurate_stores_lines(const rung_problem *p)
{
    enum { FEW_COLUMNS = 4096 };
    return p->align_c < 8 || (accurate_only_alpha(p) && (p->align_c < 16 || (p->n % 2 && p->n <= FEW_COLUMNS)));
}

const char *accurate_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                              const rung_problem *p, rung_choice *choice);

#endif
