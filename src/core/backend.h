/* The one table of functions through which the core sees a backend. */
#ifndef RUNG_CORE_BACKEND_H
#define RUNG_CORE_BACKEND_H

#include "core/problem.h"
#include "core/plain.h"
#include "plans.h" /* made by the build (cmake/tiles.cmake): the union of the families' plans */
#include "rung_catalog.h"

/* How the kernel of a part of a cut C runs it: see rung_choice. */
typedef struct rung_edge {
    const rung_kernel *kernel;
    int32_t parts; /* of k */
    int64_t workspace_bytes;
    rung_family_plan plan;
} rung_edge;

/* How one kernel would run one problem: what estimate() fills, what the plan ranks and prints, what run() obeys. */
typedef struct rung_choice {
    const rung_kernel *kernel;
    double cost_us;          /* predicted (rung_backend.predicts); ranks the candidates */
    double limit_us;         /* given to estimate(): where the cost is above this, nobody asks by how much */
    int64_t workspace_bytes; /* device memory borrowed while it runs; edges have their own */
    int32_t parts;           /* of k; 1: it is not cut */
    int32_t threads;         /* CPU threads it will use; GPU: 0 */
    rung_family_plan plan;   /* the plan of the kernel's family, which the launch obeys */
    char *note;              /* NULL, or room for a phrase of estimate()'s to `explain`: rounds, limiter, path */
    /* Rows and columns of C that all of the above is for; the others are the edges' (core/peel.h). 0: C is not cut. */
    int64_t cut_m, cut_n;
    rung_edge edges[2];
} rung_choice;

enum { RUNG_NOTE_BYTES = 96 };

/* Returns the workspace of all parts of C: they run one after the other, so that the largest is enough. */
static inline int64_t rung_choice_workspace_bytes(const rung_choice *choice)
{
    int64_t most = choice->workspace_bytes;
    for (int i = 0; choice->cut_m && i < 2; i++)
        if (choice->edges[i].workspace_bytes > most)
            most = choice->edges[i].workspace_bytes;
    return most;
}

/* Writes the phrase, where somebody wants it: writing it takes longer than the estimate. */
void rung_note(rung_choice *choice, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the end of a word of which there are so many. */
static inline const char *rung_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* What a backend keeps of a run for the next one of the same choice and problem, of which only a, b and c are others
 * (core/again.h). */
typedef struct rung_rerun {
    int ready; /* 0: nothing is kept yet */
    _Alignas(16) unsigned char kept[640];
} rung_rerun;

typedef struct rung_backend {
    const char *name;
    rung_backend_id id;
    int peels;    /* run() takes choices that cut C (core/peel.h) */
    int predicts; /* an estimate's cost is a time; else it only puts kernels in their order */
    rung_status (*open)(const rung_config *config, void **state);
    /* NULL, or a function that is told where the call returns to that made the context: an address in its maker's code.
     */
    void (*made_by)(void *state, const void *return_address);
    void (*close)(void *state);
    rung_status (*configure)(void *state, const rung_config *config); /* after a set_ call */
    int (*threads)(const void *state);
    int (*device)(const void *state);
    const char *(*identity)(const void *state); /* device and driver, for tuned shapes; NULL: cannot be tuned */
    /* Returns NULL when this kernel can run here at all, else why not. */
    const char *(*unusable)(void *state, const rung_kernel *kernel);
    /* Returns NULL when the kernel takes the problem, and fills *choice; else the reason why it does not. Where the
     * cost is above choice->limit_us, any cost above that will do, and the rest of the choice may be left as it was. */
    const char *(*estimate)(void *state, const rung_kernel *kernel, const rung_problem *problem, rung_choice *choice);
    /* NULL, or a function that writes for each kernel at most estimate()'s cost, in far less time: kernels that cannot
     * win by it are not asked. */
    void (*floors_us)(void *state, const rung_kernel *const *kernels, int count, const rung_problem *problem,
                      double *us);
    /* rerun: NULL, or what it may use and fill. */
    rung_status (*run)(void *state, const rung_choice *choice, const rung_problem *problem, rung_rerun *rerun);
    const rung_kernel *(*ran)(const void *state); /* the kernel of the last run(); NULL: always the choice's */
    int (*wrote)(const void *state); /* whether the last run() may have written C; NULL: not where it failed */
    /* NULL, or the way of plain products, and the kernel that answers them. Small ones have a way of their own. */
    rung_status (*run_plain)(void *state, const rung_plain *plain);
    rung_status (*run_small)(void *state, const rung_plain *small);
    const rung_kernel *(*plain_kernel)(const void *state);
    rung_status (*ssum)(void *state, int64_t n, const float *x, float *result);
    rung_status (*synchronize)(void *state);
    rung_status (*guard_counts)(void *state, rung_guard_counts *counts); /* NULL: no guard, nothing to count */
} rung_backend;

extern const rung_backend rung_cpu_backend;
extern const rung_backend rung_cuda_backend; /* a stand-in that answers RUNG_NO_DEVICE when built without nvcc */

#endif
