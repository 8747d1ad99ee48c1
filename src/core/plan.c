/* Walks the catalog, refuses with a reason, ranks by predicted time, decides. Ties go to the earlier row. */
#include "core/plan.h"
#include "core/status.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local int64_t estimates_made;

int64_t rung_estimates_made(void)
{
    return estimates_made;
}

/* Refuses arithmetic that the math mode does not allow. */
const char *rung_refuse_math(const rung_kernel *kernel, rung_math math)
{
    if (kernel->arith == RUNG_F32)
        return NULL;
    if (math == RUNG_STRICT)
        return "not FP32 arithmetic: strict mode";
    if (math == RUNG_ACCURATE &&
        (kernel->arith == RUNG_TF32 || kernel->arith == RUNG_F16X3_CHAIN || kernel->arith == RUNG_F16X3_ALONE))
        return "errs more than FP32: accurate mode";
    return NULL;
}

/* Returns the bits that a kernel's .accepts must have. */
static unsigned needs_of(const rung_problem *p)
{
    return rung_problem_trans_bit(p) | (p->batch > 1 && !p->arrays ? RUNG_ACCEPTS_BATCH : 0u) |
           (p->arrays ? RUNG_ACCEPTS_ARRAYS : 0u) | (p->bias_kind || p->activation ? RUNG_ACCEPTS_EPILOGUE : 0u) |
           (p->device_scalars ? RUNG_ACCEPTS_DEVICE_SCALARS : 0u) | (p->in_order ? RUNG_KEEPS_ORDER : 0u);
}

static const char *refuse_form(const rung_kernel *kernel, const rung_problem *p, unsigned needs)
{
    static const struct {
        unsigned bits;
        const char *reason;
    } refusals[] = {
        {RUNG_ACCEPTS_ANY_TRANS, "does not take these transposes"},
        {RUNG_ACCEPTS_BATCH, "does not take batches"},
        {RUNG_ACCEPTS_ARRAYS, "does not take pointer arrays"},
        {RUNG_ACCEPTS_EPILOGUE, "has no bias or activation"},
        {RUNG_ACCEPTS_DEVICE_SCALARS, "does not read alpha and beta from device memory"},
        {RUNG_KEEPS_ORDER, "its bits depend on the size of C"},
    };
    const unsigned missing = needs & ~kernel->accepts;
    if ((missing & RUNG_ACCEPTS_ANY_TRANS) && (kernel->accepts & RUNG_ACCEPTS_ANY_TRANS) == RUNG_ACCEPTS_NN)
        return "does not take these transposes, only NN";
    for (int i = 0; missing; i++)
        if (missing & refusals[i].bits)
            return refusals[i].reason;
    if (p->k > 0 && kernel->align_bytes > 4 && (p->align_a < kernel->align_bytes || p->align_b < kernel->align_bytes))
        return "addresses or leading dimensions are no multiples of its .align_bytes";
    return NULL;
}

static const char *refuse_kernel(const rung_backend *backend, void *state, const rung_kernel *kernel,
                                 const rung_problem *problem, unsigned needs)
{
    const char *reason = backend->unusable(state, kernel);
    return reason ? reason : refuse_form(kernel, problem, needs);
}

/* Asks one kernel. `note` is NULL, or where to write the estimate's phrase. */
static const char *estimate(const rung_backend *backend, void *state, const rung_kernel *kernel,
                            const rung_problem *problem, double limit_us, char *note, rung_choice *choice)
{
    memset(choice, 0, sizeof *choice);
    choice->kernel = kernel;
    choice->note = note;
    choice->limit_us = limit_us;
    choice->parts = 1;
    const char *reason = backend->estimate(state, kernel, problem, choice);
    choice->note = NULL;
    estimates_made++;
    return reason;
}

static const char *consider(const rung_backend *backend, void *state, const rung_kernel *kernel,
                            const rung_problem *problem, char *note, rung_choice *choice)
{
    const char *reason = refuse_kernel(backend, state, kernel, problem, needs_of(problem));
    if (reason)
        *choice = (rung_choice){.kernel = kernel, .parts = 1};
    return reason ? reason : estimate(backend, state, kernel, problem, INFINITY, note, choice);
}

void rung_note_of(const rung_backend *backend, void *state, const rung_problem *problem, const rung_choice *choice,
                  char *note)
{
    rung_choice again;
    note[0] = '\0';
    consider(backend, state, choice->kernel, problem, note, &again);
}

/* Here are a backend's production kernels, in the catalog's order. */
typedef struct candidate_list {
    int count;
    const rung_kernel *of[RUNG_PLAN_CANDIDATES];
} candidate_list;

static candidate_list production[2]; /* CPU, CUDA */
static pthread_once_t listed = PTHREAD_ONCE_INIT;

static void list_candidates(void)
{
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        candidate_list *list = &production[kernel->backend == RUNG_BACKEND_CUDA];
        if (kernel->role == RUNG_PRODUCTION && list->count < RUNG_PLAN_CANDIDATES)
            list->of[list->count++] = kernel;
    }
}

static const candidate_list *production_of(const rung_backend *backend)
{
    pthread_once(&listed, list_candidates);
    return &production[backend->id == RUNG_BACKEND_CUDA];
}

/* Returns true where choice x is better. Where bits must not depend on the size of C, arithmetic and chip decide first,
 * and only then the time. */
static int is_better(const rung_problem *problem, const rung_choice *x, const rung_choice *y)
{
    int by_arith = (x->kernel->arith == RUNG_TF32) - (y->kernel->arith == RUNG_TF32);
    int by_arch = x->kernel->arch - y->kernel->arch;
    if (!by_arith)
        by_arith = (x->kernel->arith != RUNG_F32) - (y->kernel->arith != RUNG_F32);
    if (problem->in_order && by_arith)
        return by_arith > 0;
    if (problem->in_order && by_arch)
        return by_arch > 0;
    return x->cost_us < y->cost_us || (x->cost_us == y->cost_us && x->kernel < y->kernel);
}

/* An entrant is a kernel that may take the product, and the least it can cost. */
typedef struct entrant {
    const rung_kernel *kernel;
    double floor_us;
} entrant;

/* Lists the kernels that may take the product, in the catalog's order. *reason says why the last other one may not. */
static int enter(const rung_backend *backend, void *state, const rung_problem *problem, entrant *entrants,
                 const char **reason)
{
    const candidate_list *list = production_of(backend);
    const unsigned needs = needs_of(problem);
    const rung_kernel *kernels[RUNG_PLAN_CANDIDATES];
    double floors_us[RUNG_PLAN_CANDIDATES];
    int count = 0;
    for (int i = 0; i < list->count; i++) {
        const rung_kernel *kernel = list->of[i];
        const char *refusal = rung_refuse_math(kernel, problem->math);
        if (!refusal)
            refusal = refuse_kernel(backend, state, kernel, problem, needs);
        if (refusal)
            *reason = refusal;
        else
            kernels[count++] = kernel;
    }
    if (backend->floors_us)
        backend->floors_us(state, kernels, count, problem, floors_us);
    /* A floor is a little less than its family says, which adds up the same numbers as a cost in another order. */
    for (int i = 0; i < count; i++)
        entrants[i] = (entrant){kernels[i], backend->floors_us ? floors_us[i] * (1.0 - 1e-9) : 0.0};
    return count;
}

/* Puts the entrant with the lowest floor first. */
static void put_lowest_first(entrant *entrants, int count)
{
    int lowest = 0;
    for (int i = 1; i < count; i++)
        if (entrants[i].floor_us < entrants[lowest].floor_us)
            lowest = i;
    const entrant first = entrants[0];
    entrants[0] = entrants[lowest];
    entrants[lowest] = first;
}

/* Keeps the entrants whose floor is not above the limit; returns how many they are. */
static int keep_below(entrant *entrants, int count, double limit_us)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (entrants[i].floor_us <= limit_us)
            entrants[kept++] = entrants[i];
    return kept;
}

/* Asks the kernels by their floors, until the best cost is below all that are left. The choice does not depend on that
 * order: of two that cost the same the earlier row wins, and a floor is never above a cost. */
static int choose(const rung_backend *backend, void *state, const rung_problem *problem, double limit_us,
                  rung_choice *best, const char **reason)
{
    entrant entrants[RUNG_PLAN_CANDIDATES];
    int found = 0, count = enter(backend, state, problem, entrants, reason);
    for (int i = 0; i < count; i++) {
        const double most_us = problem->in_order ? INFINITY : limit_us;
        put_lowest_first(entrants + i, count - i);
        if (entrants[i].floor_us > most_us)
            break;
        rung_choice choice;
        const char *refusal = estimate(backend, state, entrants[i].kernel, problem, most_us, NULL, &choice);
        if (refusal)
            *reason = refusal;
        else if (found ? is_better(problem, &choice, best) : choice.cost_us < limit_us || isinf(limit_us)) {
            *best = choice;
            found = 1;
            limit_us = choice.cost_us;
            if (!problem->in_order)
                count = i + 1 + keep_below(entrants + i + 1, count - i - 1, limit_us);
        }
    }
    return found;
}

rung_status rung_decide(const rung_backend *backend, void *state, const rung_problem *problem, rung_choice *best)
{
    const char *reason = "the catalog has no production kernel for this backend";
    if (!choose(backend, state, problem, INFINITY, best, &reason))
        return rung_fail(RUNG_UNSUPPORTED, "no kernel of the %s backend takes this product: %s", backend->name, reason);
    return RUNG_SUCCESS;
}

int rung_decide_below(const rung_backend *backend, void *state, const rung_problem *problem, double limit_us,
                      rung_choice *best)
{
    const char *reason;
    return choose(backend, state, problem, limit_us, best, &reason);
}

rung_status rung_decide_kernel(const rung_backend *backend, void *state, const rung_problem *problem, const char *name,
                               rung_choice *choice)
{
    const rung_kernel *kernel = rung_kernel_find(name);
    if (!kernel)
        return rung_fail(RUNG_INVALID_ARGUMENT, "no kernel is called '%s'", name);
    if (kernel->backend != backend->id)
        return rung_fail(RUNG_UNSUPPORTED, "%s is not a kernel of the %s backend", name, backend->name);
    if (kernel->role == RUNG_REDUCE)
        return rung_fail(RUNG_UNSUPPORTED, "%s is a reduction, not a matrix product", name);
    const char *reason = consider(backend, state, kernel, problem, NULL, choice);
    if (reason)
        return rung_fail(RUNG_UNSUPPORTED, "%s cannot run this product: %s", name, reason);
    return RUNG_SUCCESS;
}

static int by_cost(const void *left, const void *right)
{
    const rung_candidate *x = left, *y = right;
    if (!x->refusal != !y->refusal)
        return x->refusal ? 1 : -1;
    if (x->refusal)
        return strcmp(x->choice.kernel->name, y->choice.kernel->name);
    if (x->choice.cost_us != y->choice.cost_us)
        return x->choice.cost_us > y->choice.cost_us ? 1 : -1;
    return (x->choice.kernel > y->choice.kernel) - (x->choice.kernel < y->choice.kernel); /* the earlier row */
}

int rung_rank(const rung_backend *backend, void *state, const rung_problem *problem, rung_candidate *candidates,
              int capacity)
{
    const candidate_list *list = production_of(backend);
    int count = 0;
    while (count < list->count && count < capacity) {
        const rung_kernel *kernel = list->of[count];
        rung_candidate *candidate = &candidates[count++];
        candidate->refusal = consider(backend, state, kernel, problem, candidate->note, &candidate->choice);
        const char *math = rung_refuse_math(kernel, problem->math);
        if (math)
            candidate->refusal = math;
    }
    qsort(candidates, (size_t)count, sizeof *candidates, by_cost);
    return count;
}
