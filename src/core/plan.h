/* The planner: it walks the catalog, refuses with a reason, ranks by predicted time, decides. */
#ifndef RUNG_CORE_PLAN_H
#define RUNG_CORE_PLAN_H

#include "core/backend.h"

enum { RUNG_PLAN_CANDIDATES = 128 };

typedef struct rung_candidate {
    rung_choice choice;
    const char *refusal; /* NULL: it can run */
    char note[RUNG_NOTE_BYTES];
} rung_candidate;

/* Chooses the best production kernel for the problem. */
rung_status rung_decide(const rung_backend *backend, void *state, const rung_problem *problem, rung_choice *best);
/* Does the same where the best costs less than limit_us. Returns 0 where none does, or none takes the problem. */
int rung_decide_below(const rung_backend *backend, void *state, const rung_problem *problem, double limit_us,
                      rung_choice *best);
/* Plans with one kernel that was asked for by name. */
rung_status rung_decide_kernel(const rung_backend *backend, void *state, const rung_problem *problem,
                               const char *kernel, rung_choice *choice);
/* Writes the phrase that goes with the choice, in RUNG_NOTE_BYTES. */
void rung_note_of(const rung_backend *backend, void *state, const rung_problem *problem, const rung_choice *choice,
                  char *note);
/* Returns NULL when the math mode allows the kernel's arithmetic, else why not. */
const char *rung_refuse_math(const rung_kernel *kernel, rung_math math);
/* Ranks every production kernel of the backend, best first, refusals last. Returns how many they are. */
int rung_rank(const rung_backend *backend, void *state, const rung_problem *problem, rung_candidate *candidates,
              int capacity);
/* Returns how many estimates rung_decide has made on this thread. */
int64_t rung_estimates_made(void);

#endif
