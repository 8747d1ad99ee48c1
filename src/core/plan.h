/* Walk the catalog, refuse with a reason, rank by predicted time, decide. */
#ifndef RUNG_CORE_PLAN_H
#define RUNG_CORE_PLAN_H

#include "core/backend.h"

enum { RUNG_PLAN_CANDIDATES = 128 };

typedef struct rung_candidate {
    rung_choice choice;
    const char *refusal; /* NULL: it can run */
    char note[RUNG_NOTE_BYTES];
} rung_candidate;

/* The best production kernel for the problem. */
rung_status rung_decide(const rung_backend *backend, void *state, const rung_problem *problem, rung_choice *best);
/* The same where it costs less than limit_us; 0: none does, or none takes the problem. */
int rung_decide_below(const rung_backend *backend, void *state, const rung_problem *problem, double limit_us,
                      rung_choice *best);
/* One kernel, asked for by name. */
rung_status rung_decide_kernel(const rung_backend *backend, void *state, const rung_problem *problem,
                               const char *kernel, rung_choice *choice);
/* The phrase that goes with the choice, in RUNG_NOTE_BYTES. */
void rung_note_of(const rung_backend *backend, void *state, const rung_problem *problem, const rung_choice *choice,
                  char *note);
/* NULL when the math mode allows the kernel's arithmetic. */
const char *rung_refuse_math(const rung_kernel *kernel, rung_math math);
/* Every production kernel of the backend, best first, refusals last; returns how many. */
int rung_rank(const rung_backend *backend, void *state, const rung_problem *problem, rung_candidate *candidates,
              int capacity);
/* How many estimates rung_decide made on this thread. */
int64_t rung_estimates_made(void);

#endif
