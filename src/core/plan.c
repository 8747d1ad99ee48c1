/* Walk the catalog, refuse with a reason, rank by predicted time, decide. Ties go to the earlier row. */
#include "core/plan.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

/* Which arithmetic a math mode allows. */
const char *rung_refuse_math(const rung_kernel *kernel, rung_math math)
{
    if (kernel->arith == RUNG_F32)
        return NULL;
    if (math == RUNG_STRICT)
        return "not FP32 arithmetic: strict mode";
    if (math == RUNG_ACCURATE && (kernel->arith == RUNG_TF32 || kernel->arith == RUNG_F16X3_CHAIN))
        return "errs more than FP32: accurate mode";
    return NULL;
}

static const char *refuse_form(const rung_kernel *kernel, const rung_problem *p)
{
    if (!(kernel->accepts & rung_problem_trans_bit(p)))
        return "does not take these transposes";
    if (p->batch > 1 && !p->arrays && !(kernel->accepts & RUNG_ACCEPTS_BATCH))
        return "does not take batches";
    if (p->arrays && !(kernel->accepts & RUNG_ACCEPTS_ARRAYS))
        return "does not take pointer arrays";
    if ((p->bias_kind || p->activation) && !(kernel->accepts & RUNG_ACCEPTS_EPILOGUE))
        return "has no bias or activation";
    if (p->device_scalars && !(kernel->accepts & RUNG_ACCEPTS_DEVICE_SCALARS))
        return "does not read alpha and beta from device memory";
    if (p->in_order && !(kernel->accepts & RUNG_KEEPS_ORDER))
        return "its bits depend on the size of C";
    if (p->k > 0 && kernel->align_bytes > 4 && (p->align_a % kernel->align_bytes || p->align_b % kernel->align_bytes))
        return "operands are not aligned enough";
    return NULL;
}

static const char *consider(const rung_backend *backend, void *state, const rung_kernel *kernel,
                            const rung_problem *problem, rung_choice *choice)
{
    memset(choice, 0, sizeof *choice);
    choice->kernel = kernel;
    choice->split_k = 1;
    const char *reason = backend->unusable(state, kernel);
    if (!reason)
        reason = refuse_form(kernel, problem);
    if (!reason)
        reason = backend->estimate(state, kernel, problem, choice);
    return reason;
}

static int is_candidate(const rung_backend *backend, const rung_kernel *kernel)
{
    rung_backend_id id = backend == &rung_cpu_backend ? RUNG_BACKEND_CPU : RUNG_BACKEND_CUDA;
    return kernel->backend == id && kernel->role == RUNG_PRODUCTION;
}

/* Where bits must not depend on the size of C, arithmetic and chip choose among the kernels, and only then the time. */
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
    return x->cost_us < y->cost_us;
}

rung_status rung_decide(const rung_backend *backend, void *state, const rung_problem *problem, rung_choice *best)
{
    int found = 0;
    const char *last_reason = "the catalog has no production kernel for this backend";
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (!is_candidate(backend, kernel))
            continue;
        rung_choice choice;
        const char *reason = rung_refuse_math(kernel, problem->math);
        if (!reason)
            reason = consider(backend, state, kernel, problem, &choice);
        if (reason) {
            last_reason = reason;
        } else if (!found || is_better(problem, &choice, best)) {
            *best = choice;
            found = 1;
        }
    }
    if (!found)
        return rung_fail(RUNG_UNSUPPORTED, "no kernel of the %s backend takes this product: %s", backend->name,
                         last_reason);
    return RUNG_SUCCESS;
}

rung_status rung_decide_kernel(const rung_backend *backend, void *state, const rung_problem *problem, const char *name,
                               rung_choice *choice)
{
    const rung_kernel *kernel = rung_kernel_find(name);
    if (!kernel)
        return rung_fail(RUNG_INVALID_ARGUMENT, "no kernel is called '%s'", name);
    rung_backend_id id = backend == &rung_cpu_backend ? RUNG_BACKEND_CPU : RUNG_BACKEND_CUDA;
    if (kernel->backend != id)
        return rung_fail(RUNG_UNSUPPORTED, "%s is not a kernel of the %s backend", name, backend->name);
    if (kernel->role == RUNG_REDUCE)
        return rung_fail(RUNG_UNSUPPORTED, "%s is a reduction, not a matrix product", name);
    const char *reason = consider(backend, state, kernel, problem, choice);
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
    return (x->choice.cost_us > y->choice.cost_us) - (x->choice.cost_us < y->choice.cost_us);
}

int rung_rank(const rung_backend *backend, void *state, const rung_problem *problem, rung_candidate *candidates,
              int capacity)
{
    int count = 0;
    for (int i = 0; i < rung_kernel_count() && count < capacity; i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (!is_candidate(backend, kernel))
            continue;
        rung_candidate *candidate = &candidates[count++];
        candidate->refusal = consider(backend, state, kernel, problem, &candidate->choice);
        const char *math = rung_refuse_math(kernel, problem->math);
        if (math)
            candidate->refusal = math;
    }
    qsort(candidates, (size_t)count, sizeof *candidates, by_cost);
    return count;
}
