/* Cuts a few rows and columns off C: finds where, makes the parts, judges whether it pays. */
#include "core/peel.h"
#include "core/plan.h"

#include <string.h>

enum { TILE = 64, FEW = 16, FEWEST = 4 }; /* cuts at multiples of TILE, FEW rows at most cut off */
/* A product is cut only where it takes so long: where at most FEWEST rows are cut off, and where more are, since to
 * plan the parts takes the CPU some 30 us and more rows seldom pay. Then how much of a part's time lies in the shadow
 * of the part before it, whose last blocks leave room for its first; how much longer a batch's part takes; and the time
 * that cutting must save. */
static const double fewest_worth_us = 12, worth_us = 50, shadow_us = 1, batch_us = 1, gain = 0.97;

static rung_problem part_of(const rung_problem *p, int64_t cut_m, int64_t cut_n, rung_part part)
{
    rung_problem q = *p;
    if (part == RUNG_PART_BELOW) {
        q.m = p->m - cut_m;
        q.a = p->a ? p->a + (p->trans_a ? cut_m : cut_m * p->lda) : NULL;
        q.c = p->c ? p->c + cut_m * p->ldc : NULL;
        q.bias = p->bias && p->bias_kind == RUNG_BIAS_PER_ROW ? p->bias + cut_m : p->bias;
        return q;
    }
    q.m = cut_m;
    q.n = cut_n;
    if (part == RUNG_PART_RIGHT) {
        q.n = p->n - cut_n;
        q.b = p->b ? p->b + (p->trans_b ? cut_n * p->ldb : cut_n) : NULL;
        q.c = p->c ? p->c + cut_n : NULL;
        q.bias = p->bias && p->bias_kind == RUNG_BIAS_PER_COLUMN ? p->bias + cut_n : p->bias;
    }
    return q;
}

int rung_peeled(const rung_problem *problem, const rung_choice *choice, rung_part part, rung_problem *product,
                rung_choice *its_choice)
{
    *product = part_of(problem, choice->cut_m, choice->cut_n, part);
    *its_choice = *choice;
    its_choice->cut_m = its_choice->cut_n = 0;
    if (part != RUNG_PART_MAIN) {
        const rung_edge *edge = &choice->edges[part - RUNG_PART_RIGHT];
        its_choice->kernel = edge->kernel;
        its_choice->parts = edge->parts;
        its_choice->workspace_bytes = edge->workspace_bytes;
        its_choice->plan = edge->plan;
    }
    return product->m > 0 && product->n > 0;
}

/* Considers C cut there, and takes it if that beats *best. The edges are planned first: what they leave of the time
 * seldom lets any kernel of the main part be asked. */
static void consider(const rung_backend *backend, void *state, const rung_problem *problem, int64_t cut_m,
                     int64_t cut_n, rung_choice *best)
{
    rung_edge edges[RUNG_PARTS - RUNG_PART_RIGHT] = {{.kernel = NULL}};
    rung_choice part = {.kernel = NULL};
    double us = ((cut_m < problem->m) + (cut_n < problem->n)) * (problem->batch > 1 ? batch_us : -shadow_us);
    for (int i = RUNG_PARTS - 1; i >= RUNG_PART_MAIN; i--) {
        rung_problem product = part_of(problem, cut_m, cut_n, (rung_part)i);
        if (product.m == 0 || product.n == 0)
            continue;
        if (!rung_decide_below(backend, state, &product, best->cost_us - us, &part))
            return;
        us += part.cost_us;
        if (i != RUNG_PART_MAIN)
            edges[i - RUNG_PART_RIGHT] = (rung_edge){part.kernel, part.parts, part.workspace_bytes, part.plan};
    }
    memcpy(part.edges, edges, sizeof edges);
    part.cost_us = us;
    part.cut_m = cut_m;
    part.cut_n = cut_n;
    *best = part;
}

static int is_worth(int64_t size, int64_t over, const rung_choice *choice)
{
    return size > TILE && over > 0 && over <= FEW && choice->cost_us >= (over <= FEWEST ? fewest_worth_us : worth_us);
}

void rung_peel(const rung_backend *backend, void *state, const rung_problem *problem, rung_choice *choice)
{
    const int64_t m = problem->m, n = problem->n, over_m = m % TILE, over_n = n % TILE;
    const int may_m = is_worth(m, over_m, choice), may_n = is_worth(n, over_n, choice);
    if (!backend->peels || choice->kernel->arith != RUNG_F32 || problem->in_order || problem->arrays ||
        problem->k == 0 || !(may_m || may_n))
        return;
    rung_choice best = *choice;
    rung_problem strict = *problem; /* accurate mode may have chosen a strict kernel: then for the parts too */
    strict.math = RUNG_STRICT;
    best.cost_us *= gain;
    const double limit = best.cost_us;
    if (may_m)
        consider(backend, state, &strict, m - over_m, n, &best);
    if (may_n)
        consider(backend, state, &strict, m, n - over_n, &best);
    if (may_m && may_n)
        consider(backend, state, &strict, m - over_m, n - over_n, &best);
    if (best.cost_us < limit)
        *choice = best;
}
