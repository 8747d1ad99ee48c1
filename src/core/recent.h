/* The plans that a thread's contexts made lately: a shape that comes again costs a hash and a comparison.
 * A thread has one table for all its contexts. An entry is found by everything that its plan was made from: the
 * shape, and the scope, which is what a plan takes from its context. Nothing of an entry can therefore be outdated,
 * and a change of settings forgets nothing. */
#ifndef RUNG_CORE_RECENT_H
#define RUNG_CORE_RECENT_H

#include "core/backend.h"

/* What a plan depends on beside its shape. */
typedef struct rung_scope {
    const rung_backend *backend;
    int64_t workspace_limit_bytes;
    int64_t tuned;            /* number of the context's table of tuned shapes; 0: it is empty */
    const rung_kernel *plain; /* what answers plain products: instructions may have been hidden from the context */
    int32_t device, threads;
} rung_scope;

/* Returns the thread's plan for this shape; NULL where there is none. It stays valid until the thread's next
 * rung_recent_remember(). */
const rung_choice *rung_recent_find(const rung_scope *scope, const rung_problem *problem);
/* Keeps a plan. Without memory it is not kept, and is made again next time. */
void rung_recent_remember(const rung_scope *scope, const rung_problem *problem, const rung_choice *choice);

#endif
