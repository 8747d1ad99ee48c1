/* Prints a plan object: what it was made from, what was decided, and the ranking of all kernels. */
#include "core/context.h"
#include "core/peel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct text {
    char *at;
    size_t left;
    int length;
} text;

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int wrote = vsnprintf(t->at, t->left, format, list);
    va_end(list);
    if (wrote < 0)
        return;
    t->length += wrote;
    size_t step = (size_t)wrote < t->left ? (size_t)wrote : t->left;
    t->at += step;
    t->left -= step;
}

static const char *math_names[] = {"strict", "accurate", "fast"};

/* Prints the problem in the caller's own order. Inside, every product is row-major, a column-major one with A and B
 * exchanged. */
static void print_problem(text *t, const rung_problem *p, const rung_gemm *g)
{
    put(t, "problem    %s %lld x %lld x %lld, %c%c, lda %lld ldb %lld ldc %lld",
        g->layout == RUNG_ROW_MAJOR ? "row-major" : "column-major", (long long)g->m, (long long)g->n, (long long)g->k,
        g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', (long long)g->lda, (long long)g->ldb, (long long)g->ldc);
    if (p->batch > 1 || p->arrays)
        put(t, ", batch %lld%s", (long long)p->batch, p->arrays ? " (pointer arrays)" : "");
    put(t, ", %s\n", math_names[p->math]);
}

/* Prints all kernels in their order. A cost is printed where it is a time. */
static void print_ranking(text *t, const rung_plan *plan)
{
    rung_candidate *candidates = calloc(RUNG_PLAN_CANDIDATES, sizeof *candidates);
    if (!candidates) {
        put(t, "ranking    no memory to list %d candidates\n", RUNG_PLAN_CANDIDATES);
        return;
    }
    const rung_context *context = plan->context;
    int count = rung_rank(context->backend, context->state, &plan->problem, candidates, RUNG_PLAN_CANDIDATES);
    int predicts = context->backend->predicts;
    put(t, predicts ? "ranking    predicted us  kernel\n"
                    : "ranking    kernel, best first (rules: src/cpu/README.md); - refuses\n");
    for (int i = 0; i < count; i++) {
        const rung_candidate *c = &candidates[i];
        const char *name = c->choice.kernel->name;
        if (c->refusal)
            put(t, predicts ? "           %12s  %-34s %s\n" : "         %s %-34s %s\n", "-", name, c->refusal);
        else if (predicts)
            put(t, "           %12.2f  %-34s %s\n", c->choice.cost_us, name, c->note);
        else
            put(t, "           %-34s %s\n", name, c->note);
    }
    free(candidates);
}

/* Prints what runs the rows and columns that the chosen kernel leaves. */
static void print_edges(text *t, const rung_plan *plan)
{
    static const char *const names[] = {"rows and columns", "to the right", "below"};
    for (int i = RUNG_PART_MAIN; plan->choice.cut_m && i < RUNG_PARTS; i++) {
        rung_problem product;
        rung_choice choice;
        if (rung_peeled(&plan->problem, &plan->choice, (rung_part)i, &product, &choice))
            put(t, "           %lld x %lld %s by %s\n", (long long)product.m, (long long)product.n, names[i],
                choice.kernel->name);
    }
}

int rung_plan_print(const rung_plan *plan, char *buffer, size_t bytes)
{
    text t = {buffer, bytes, 0};
    if (!plan) {
        put(&t, "plan is NULL\n");
        return t.length;
    }
    print_problem(&t, &plan->problem, &plan->made_from);
    if (plan->nothing) {
        put(&t, "decision   nothing to do: C stays as it is\n");
        return t.length;
    }
    const rung_choice *c = &plan->choice;
    put(&t, "decision   %s%s on the %s backend\n", c->kernel->name, plan->forced ? " (asked for by name)" : "",
        plan->context->backend->name);
    put(&t, "           ");
    if (plan->context->backend->predicts)
        put(&t, "predicted %.2f us, workspace %lld bytes", c->cost_us, (long long)rung_choice_workspace_bytes(c));
    if (c->parts > 1)
        put(&t, ", k in %d parts", c->parts);
    if (c->threads)
        put(&t, "%d thread%s", c->threads, c->threads > 1 ? "s" : "");
    char note[RUNG_NOTE_BYTES];
    rung_problem product;
    rung_choice main_part;
    rung_peeled(&plan->problem, c, RUNG_PART_MAIN, &product, &main_part);
    rung_note_of(plan->context->backend, plan->context->state, c->cut_m ? &product : &plan->problem, c, note);
    put(&t, "%s%s\n", note[0] ? ", " : "", note);
    print_edges(&t, plan);
    print_ranking(&t, plan);
    return t.length;
}
