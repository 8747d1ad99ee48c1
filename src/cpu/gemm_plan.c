/* Decides which path a product takes: the questions in their order, and the table of the paths. The files in paths/
 * have the questions themselves, and what each path does. */
#include "cpu/paths/paths.h"

#include <stdlib.h>
#include <string.h>

/* The order matters: each question is asked of what those before it have left, and the first that holds decides. */
static const gemm_rule *const rules[] = {
    &rung_rule_in_order,
    &rung_rule_tiny,
    &rung_rule_past,
    &rung_rule_turned,
    &rung_rule_rank,
    &rung_rule_narrow_rank,
    &rung_rule_short_rows,
    &rung_rule_dots,
    &rung_rule_better_transposed,
    &rung_rule_long_k_in_runs,
    &rung_rule_packing_pays,
    &rung_rule_transposed,
    &rung_rule_near,
    &rung_rule_by_panels,
    &rung_rule_short_k,
    &rung_rule_close,
    &rung_rule_small_c_in_runs,
    &rung_rule_long_k,
    &rung_rule_in_place_ahead,
    &rung_rule_few_rows_close,
    &rung_rule_few_rows_in_runs,
    &rung_rule_few_rows_from_l3,
    &rung_rule_narrow_b_close,
    &rung_rule_few_rows,
    &rung_rule_a_in_place,
    &rung_rule_large, /* which always holds */
};
enum { RULES = sizeof rules / sizeof rules[0] };

gemm_plan rung_gemm_plan(const rung_cpu_args *p)
{
    /* What a machine computes in years is large: the questions would count past 2^63. */
    const double fmas = (double)p->m * (double)p->n * (double)p->k;
    int rule = fmas < 0x1p55 ? 0 : RULES - 1;
    while (!rules[rule]->holds(p))
        rule++;
    /* Where a path does not choose them: a panel of B takes an eighth of L2, and threads cut the longer side. */
    int64_t steps = max64(min64(p->cpu->l2_bytes / 8 / (4 * panel_columns(p->kernel)), 512), 256);
    gemm_plan plan = {
        .rule = rule, .kc = even_block(p->k, steps, 8), .most = p->kernel->nv, .split_m = p->m >= p->n, .parts = 1};
    rules[rule]->plan(p, &plan);
    return plan;
}

/* All that a plan depends on, beside the context's processor: places of operands count by where in a cache line they
 * lie, beta by whether it is 0. There are no bytes between the fields. */
typedef struct plan_key {
    const rung_cpu_kernel *kernel;
    int64_t m, n, k, lda, ldb, ldc, a, b, c;
    int trans_a, trans_b, in_order, reads_c;
} plan_key;
_Static_assert(sizeof(plan_key) == sizeof(void *) + 9 * sizeof(int64_t) + 4 * sizeof(int), "is compared byte by byte");

static inline plan_key key_of(const rung_cpu_args *p)
{
    return (plan_key){.kernel = p->kernel,
                      .m = p->m,
                      .n = p->n,
                      .k = p->k,
                      .lda = p->lda,
                      .ldb = p->ldb,
                      .ldc = p->ldc,
                      .a = (int64_t)((uintptr_t)p->a % LINE_BYTES),
                      .b = (int64_t)((uintptr_t)p->b % LINE_BYTES),
                      .c = (int64_t)((uintptr_t)p->c % LINE_BYTES),
                      .trans_a = p->trans_a,
                      .trans_b = p->trans_b,
                      .in_order = p->in_order,
                      .reads_c = p->beta != 0.0f};
}

/* Makes the plan from its key and from nothing else, so that a remembered one is what would be made now. */
static __attribute__((noinline)) gemm_plan plan_of_key(const plan_key *key, const rung_processor *cpu)
{
    const rung_cpu_args p = {.kernel = key->kernel,
                             .cpu = cpu,
                             .m = key->m,
                             .n = key->n,
                             .k = key->k,
                             .a = (const float *)(uintptr_t)key->a,
                             .lda = key->lda,
                             .b = (const float *)(uintptr_t)key->b,
                             .ldb = key->ldb,
                             .c = (float *)(uintptr_t)key->c,
                             .ldc = key->ldc,
                             .beta = key->reads_c ? 1.0f : 0.0f,
                             .trans_a = key->trans_a,
                             .trans_b = key->trans_b,
                             .in_order = key->in_order};
    return rung_gemm_plan(&p);
}

enum { PLANS_BITS = 5 };

struct rung_gemm_plans {
    struct {
        plan_key key;
        gemm_plan plan;
    } at[1 << PLANS_BITS];
};

rung_gemm_plans *rung_gemm_plans_create(void)
{
    return calloc(1, sizeof(rung_gemm_plans)); /* no product has a kernel of NULL */
}

/* Returns where in the table a plan has its place; the one that was there before is forgotten. */
static inline uint64_t place_of(const plan_key *key)
{
    uint64_t sizes = (uint64_t)key->m * 0x9e3779b97f4a7c15u + (uint64_t)key->n * 0xc2b2ae3d27d4eb4fu +
                     (uint64_t)key->k * 0xd6e8feb86659fd93u;
    uint64_t places = (uint64_t)(key->lda + 3 * key->ldb + 7 * key->ldc + key->b + 5 * key->c + 11 * key->a);
    uint64_t manners = (uint64_t)(key->trans_a + 2 * key->trans_b + 4 * key->in_order + 8 * key->reads_c);
    return (sizes + (places + (manners << 32)) * 0xa0761d6478bd642fu) >> (64 - PLANS_BITS);
}

gemm_plan rung_gemm_recent_plan(const rung_cpu_args *p)
{
    if (!p->plans)
        return rung_gemm_plan(p);
    plan_key key = key_of(p);
    uint64_t place = place_of(&key);
    if (memcmp(&p->plans->at[place].key, &key, sizeof key) != 0) {
        p->plans->at[place].plan = plan_of_key(&key, p->cpu);
        p->plans->at[place].key = key;
    }
    return p->plans->at[place].plan;
}

const char *rung_gemm_rule_name(int rule)
{
    return rule < RULES ? rules[rule]->name : NULL;
}

static int64_t no_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    (void)p, (void)plan, (void)columns;
    return 0;
}

/* PATH_LONG_K has no row's functions: each piece of k takes the path that its plan names. */
static const struct {
    const char *says;
    int64_t (*floats)(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns);
    void (*run)(const rung_cpu_args *p, const gemm_plan *plan, float *workspace);
} paths[] = {
    [PATH_TINY] = {"operands in place, one pass", no_floats, rung_tiny_run},
    [PATH_DIRECT] = {"operands in place", rung_in_place_floats, rung_in_place_run},
    [PATH_AHEAD] = {"B in place, panel after panel", rung_ahead_floats, rung_ahead_run},
    [PATH_STREAM] = {"B streams past C, in place", rung_stream_floats, rung_stream_run},
    [PATH_PACK_B] = {"B packed, A in place", rung_pack_b_floats, rung_pack_b_run},
    [PATH_OUTER] = {"B packed, C written by rows", rung_pack_b_floats, rung_pack_b_run},
    [PATH_PAST] = {"C written past the caches", rung_past_floats, rung_past_run},
    [PATH_RANK] = {"C written row by row", rung_rank_floats, rung_rank_run},
    [PATH_SHORT_ROWS] = {"C written row by row, B in registers", no_floats, rung_short_rows_run},
    [PATH_TURNED] = {"B turned as it is loaded, C written by columns", no_floats, rung_turned_run},
    [PATH_PACKED] = {"both operands packed", rung_packed_floats, rung_packed_run},
    [PATH_DOT] = {"dot products", rung_dots_floats, rung_dots_run},
    [PATH_TRANSPOSED] = {"as the transposed product", rung_transposed_floats, rung_transposed_run},
    [PATH_LONG_K] = {"cut along k", NULL, NULL},
};

static gemm_path path_of_strip(const gemm_plan *plan)
{
    return plan->path == PATH_LONG_K ? plan->inner : plan->path;
}

const char *rung_gemm_path_name(gemm_path path)
{
    return paths[path].says;
}

int64_t rung_gemm_workspace(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    return paths[path_of_strip(plan)].floats(p, plan, columns);
}

void rung_gemm_strip(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    paths[path_of_strip(plan)].run(p, plan, workspace);
    if (plan->path != PATH_PACKED) /* which finishes block by block */
        rung_gemm_finish(p, 0, p->m, 0, p->n);
}
