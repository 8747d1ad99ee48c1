/* Runs one case: lays out operands between guards, runs it twice, compares with FP64, and looks at all that must not
 * change. */
#include "lab/verify.h"
#include "lab/watch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN_RESULTS = 1000 }; /* over so many results of random data the largest error is no matter of luck */

/* Returns what an arithmetic errs beside FP32's roundings, in u. */
static double more_u(rung_arith arith, int64_t k)
{
    switch (arith) {
    case RUNG_TF32: return 16400.0; /* one pass, operands rounded to 11 bits: two roundings of 2^-11 a product */
    case RUNG_TF32X3: return 8.0;   /* 22 bits of each operand, and lo*lo is left out: at most 8 u a product */
    case RUNG_BF16X6: return 3.0;   /* it leaves out products of 2^-24 and less */
    case RUNG_F16X3_CHAIN: return 8.0 + (double)k / 4.0; /* it is truncated after each 16 of k, three times */
    case RUNG_F16X3_ALONE: return 8.0;                   /* as TF32X3: two halves hold 22 bits and a sign */
    default: return 0.0;
    }
}

static double peers_u(double factor, double least, int64_t k, double chain_u, double vendor_u)
{
    /* Where products underflow no FP32 sum keeps the classical bound, and the chain does not either. */
    double classical = fmax((double)k + 8.0, chain_u);
    return fmin(fmax(factor * fmax(chain_u, vendor_u), least), classical);
}

/* Returns whether products are fused. Without an FMA instruction they are rounded before they are added: at most 1 u of
 * |A|*|B| more. On x86 those kernels are built so that ask nothing of the CPU, or AVX alone. */
static int is_fused(const rung_kernel *kernel)
{
#if defined(__x86_64__)
    return !(kernel && kernel->backend == RUNG_BACKEND_CPU &&
             (!kernel->cpu_needs || strcmp(kernel->cpu_needs, "avx") == 0));
#else
    (void)kernel;
    return 1;
#endif
}

double lab_bound_u(const rung_kernel *kernel, rung_arith arith, int64_t k, double chain_u, double vendor_u)
{
    return more_u(arith, k) + peers_u(1.25, 1.0, k, chain_u, vendor_u) + !is_fused(kernel);
}

lab_bound lab_bound_each(rung_arith arith, int64_t k, lab_data data, int fused)
{
    /* This counts k additions, alpha, beta, bias and the activation, and k products where they are rounded. */
    double roundings = (double)k * (fused ? 1.0 : 2.0) + 4.0;
    /* n roundings of sums up to r err n*u*r at most. Where they differ from each other they err 6*sqrt(n/3)*u*r at
     * most, with certainty enough. In data all alike they do not differ. */
    int alike = data == LAB_CONSTANT || data == LAB_FIXED;
    /* One product of two halves errs 8 u at most, and a chain of 64 is truncated four times: docs/numerics.md. Where
     * few results are judged a plain chain's luck is no measure for that. */
    return (lab_bound){.more_u = more_u(arith, k),
                       .least_u = arith == RUNG_F16X3 ? 8.0 : 4.0,
                       .reach_u = alike ? roundings : fmin(roundings, 6.0 * sqrt(roundings / 3.0)),
                       .roundings = roundings};
}

rung_status lab_verifier_open(lab_verifier *v, lab_place *place, rung_math math, lab_peer *vendor)
{
    memset(v, 0, sizeof *v);
    v->place = place;
    v->vendor = vendor;
    return lab_place_context(place, math, &v->context);
}

void lab_verifier_close(lab_verifier *v)
{
    lab_buffer *buffers[] = {&v->a.memory, &v->b.memory, &v->c.memory, &v->c_start, &v->c64,     &v->size,
                             &v->chain,    &v->reach,    &v->bias,     &v->scalars, &v->pointers};
    lab_entry_close(&v->entry);
    rung_context_destroy(v->context);
    for (size_t i = 0; v->place && i < sizeof buffers / sizeof buffers[0]; i++)
        lab_buffer_free(v->place, buffers[i]);
    free(v->judged);
    memset(v, 0, sizeof *v);
}

/* Returns whether the stored lines of an operand run along its columns, so that its rows are the lines. */
static int rows_are_lines(const lab_case *c, rung_transpose trans)
{
    return (c->layout == RUNG_ROW_MAJOR) != (trans == RUNG_TRANS);
}

static lab_view view_a(const lab_verifier *v, const lab_case *c, int64_t entry) /* (i, p) */
{
    return lab_operand_view(&v->a, entry, !rows_are_lines(c, c->trans_a));
}

static lab_view view_b(const lab_verifier *v, const lab_case *c, int64_t entry) /* (p, j) */
{
    return lab_operand_view(&v->b, c->form == LAB_SHARED_B ? 0 : entry, !rows_are_lines(c, c->trans_b));
}

static lab_view view_c(const lab_verifier *v, const lab_case *c, int64_t entry) /* (i, j) */
{
    return lab_operand_view(&v->c, entry, c->layout != RUNG_ROW_MAJOR);
}

static lab_view turned(lab_view view)
{
    return (lab_view){view.at, view.step, view.line_step};
}

static uint64_t entry_seed(const lab_case *c, int64_t entry)
{
    return (uint64_t)c->seed * 1000003u + (uint64_t)entry * 3;
}

static rung_status make(lab_verifier *v, lab_operand *x, const lab_case *c, int rows_first, int64_t rows,
                        int64_t columns, int64_t batch)
{
    const int is_a = x == &v->a, is_c = x == &v->c;
    return lab_operand_make(v->place, x, rows_first ? rows : columns, rows_first ? columns : rows,
                            c->pad + (is_a   ? c->a_pad
                                      : is_c ? c->c_pad
                                             : 0),
                            c->offset + (is_a   ? c->a_offset
                                         : is_c ? c->c_offset
                                                : 0),
                            batch);
}

/* Fills A and B, and writes `poison` wherever no element lies. */
static rung_status fill_inputs(lab_verifier *v, const lab_case *c, uint32_t poison)
{
    LAB_TRY(lab_pattern(v->place, v->a.memory.at, poison, (size_t)v->a.words));
    LAB_TRY(lab_pattern(v->place, v->b.memory.at, poison, (size_t)v->b.words));
    for (int64_t e = 0; e < c->batch; e++) {
        uint64_t seed = entry_seed(c, e);
        lab_fill_args a = {view_a(v, c, e), c->m, c->k, seed, c->data};
        lab_fill_args b = {turned(view_b(v, c, e)), c->n, c->k, seed + 1, c->data | LAB_OF_B};
        LAB_TRY(lab_fill(v->place, &a));
        if (e < v->b.batch)
            LAB_TRY(lab_fill(v->place, &b));
    }
    return RUNG_SUCCESS;
}

static rung_status fill_operands(lab_verifier *v, const lab_case *c)
{
    lab_place *place = v->place;
    LAB_TRY(make(v, &v->a, c, rows_are_lines(c, c->trans_a), c->m, c->k, c->batch));
    LAB_TRY(make(v, &v->b, c, rows_are_lines(c, c->trans_b), c->k, c->n, c->form == LAB_SHARED_B ? 1 : c->batch));
    LAB_TRY(make(v, &v->c, c, c->layout == RUNG_ROW_MAJOR, c->m, c->n, c->batch));
    LAB_TRY(fill_inputs(v, c, LAB_POISON));
    for (int64_t e = 0; e < c->batch && c->beta != 0.0f; e++) {
        lab_fill_args old = {view_c(v, c, e), c->m, c->n, entry_seed(c, e) + 2,
                             c->added_special ? LAB_SPECIAL : LAB_SIGNED};
        LAB_TRY(lab_fill(place, &old));
    }
    lab_watch_begin();
    lab_watch("A", &v->a, 0);
    lab_watch("B", &v->b, 0);
    lab_watch("C", &v->c, 1);
    LAB_TRY(lab_buffer_reserve(place, &v->c_start, v->c.words * 4));
    return lab_copy(place, v->c_start.at, v->c.memory.at, (size_t)v->c.words * 4);
}

/* What a call must not look at, it is given: addresses where nothing lies, strides that lead nowhere. */
static float *nobodys(void)
{
    return (float *)(uintptr_t)4096;
}

static rung_status make_bias(lab_verifier *v, const lab_case *c, rung_gemm *g)
{
    int64_t length = c->bias == RUNG_BIAS_PER_ROW ? c->m : c->n;
    g->bias_kind = c->bias;
    g->activation = c->activation;
    if (c->bias == RUNG_NO_BIAS)
        return RUNG_SUCCESS;
    LAB_TRY(lab_buffer_reserve(v->place, &v->bias, length * 4));
    lab_fill_args fill = {
        {v->bias.at, length, 1}, 1, length, (uint64_t)c->seed + 77, c->added_special ? LAB_SPECIAL : LAB_SIGNED};
    g->bias = v->bias.at;
    return lab_fill(v->place, &fill);
}

static rung_status make_scalars(lab_verifier *v, const lab_case *c, rung_gemm *g)
{
    float values[2] = {c->alpha, c->beta};
    if (!c->device_scalars)
        return RUNG_SUCCESS;
    LAB_TRY(lab_buffer_reserve(v->place, &v->scalars, sizeof values));
    LAB_TRY(lab_upload(v->place, v->scalars.at, values, sizeof values));
    const float *at = v->scalars.at;
    if (c->device_scalars != LAB_BETA_THERE)
        g->alpha_device = at, g->alpha = NAN; /* must not be looked at */
    if (c->device_scalars != LAB_ALPHA_THERE)
        g->beta_device = at + 1, g->beta = NAN;
    return RUNG_SUCCESS;
}

static rung_status make_pointers(lab_verifier *v, const lab_case *c, rung_gemm *g)
{
    size_t bytes = (size_t)c->batch * sizeof(float *);
    float **host = malloc(3 * bytes);
    if (!host)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for %lld pointers", (long long)c->batch);
    for (int64_t e = 0; e < c->batch; e++) { /* in reverse: entries need not lie in order */
        host[e] = view_a(v, c, c->batch - 1 - e).at;
        host[c->batch + e] = view_b(v, c, c->batch - 1 - e).at;
        host[2 * c->batch + e] = view_c(v, c, c->batch - 1 - e).at;
    }
    rung_status status = lab_buffer_reserve(v->place, &v->pointers, (int64_t)(3 * bytes));
    if (status == RUNG_SUCCESS)
        status = lab_upload(v->place, v->pointers.at, host, 3 * bytes);
    free(host);
    float **at = v->pointers.at;
    g->a = g->b = g->c = nobodys();
    g->stride_a = g->stride_b = g->stride_c = -1234567;
    g->a_array = (const float *const *)at;
    g->b_array = (const float *const *)(at + c->batch);
    g->c_array = (float *const *)(at + 2 * c->batch);
    return status;
}

static rung_status describe(lab_verifier *v, const lab_case *c, rung_gemm *g)
{
    rung_gemm_init(g);
    g->bias = nobodys();
    g->stride_a = g->stride_b = g->stride_c = -1234567;
    g->layout = c->layout;
    g->trans_a = c->trans_a;
    g->trans_b = c->trans_b;
    g->m = c->m;
    g->n = c->n;
    g->k = c->k;
    g->a = v->a.at;
    g->b = v->b.at;
    g->c = v->c.at;
    g->lda = v->a.ld;
    g->ldb = v->b.ld;
    g->ldc = v->c.ld;
    g->alpha = c->alpha;
    g->beta = c->beta;
    if (c->form != LAB_SINGLE) {
        g->batch = c->batch;
        g->stride_a = v->a.stride;
        g->stride_b = c->form == LAB_SHARED_B ? 0 : v->b.stride;
        g->stride_c = v->c.stride;
    }
    LAB_TRY(make_bias(v, c, g));
    LAB_TRY(make_scalars(v, c, g));
    return c->form == LAB_ARRAYS ? make_pointers(v, c, g) : RUNG_SUCCESS;
}

static void fail(lab_verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fail(lab_verdict *verdict, const char *format, ...)
{
    va_list list;
    if (verdict->outcome == LAB_FAIL)
        return; /* the first failure tells most */
    verdict->outcome = LAB_FAIL;
    va_start(list, format);
    vsnprintf(verdict->why, sizeof verdict->why, format, list);
    va_end(list);
}

static rung_status hash_of(lab_verifier *v, const lab_operand *x, uint64_t *hash)
{
    lab_tally tally;
    LAB_TRY(lab_tally_begin(v->place));
    LAB_TRY(lab_hash(v->place, x->memory.at, x->words));
    LAB_TRY(lab_tally_end(v->place, &tally));
    *hash = tally.hash;
    return RUNG_SUCCESS;
}

typedef struct inputs {
    uint64_t a, b;
} inputs;

static rung_status hash_inputs(lab_verifier *v, inputs *hash)
{
    LAB_TRY(hash_of(v, &v->a, &hash->a));
    return hash_of(v, &v->b, &hash->b);
}

static rung_status judge_inputs(lab_verifier *v, const inputs *before, lab_verdict *verdict)
{
    inputs now;
    LAB_TRY(hash_inputs(v, &now));
    if (now.a != before->a || now.b != before->b)
        fail(verdict, "operand %s was changed", now.a != before->a ? "A" : "B");
    return RUNG_SUCCESS;
}

/* Runs the call several times. NaN lies around A and B in the first call, a finite number from the second on: what a
 * guard against NaN sets right shows as other bits. */
static rung_status run_again_and_again(lab_verifier *v, rung_plan *plan, const rung_gemm *g, const lab_case *of,
                                       lab_verdict *verdict)
{
    uint64_t first = 0, c;
    inputs before;
    int64_t repeats = v->bits_alone ? 1 : v->repeats < 2 ? 2 : v->repeats, differ = 0, where = 0;
    LAB_TRY(hash_inputs(v, &before));
    for (int64_t i = 0; i < repeats; i++) {
        if (i == 1) {
            LAB_TRY(judge_inputs(v, &before, verdict));
            LAB_TRY(fill_inputs(v, of, LAB_FINITE_POISON));
            LAB_TRY(hash_inputs(v, &before));
        }
        LAB_TRY(lab_copy(v->place, v->c.memory.at, v->c_start.at, (size_t)v->c.words * 4));
        LAB_TRY(lab_run_via(v, plan, g));
        LAB_TRY(hash_of(v, &v->c, &c));
        first = i ? first : c;
        where = c != first && !differ ? i : where;
        differ += c != first;
    }
    verdict->bits = first;
    LAB_TRY(judge_inputs(v, &before, verdict));
    if (differ)
        fail(verdict,
             "the same call gave other bits than the first time %lld times of %lld; first in call %lld (around A and B "
             "lies NaN in the first call, 1e4 in the others: is something read there?)",
             (long long)differ, (long long)repeats - 1, (long long)where + 1);
    return RUNG_SUCCESS;
}

static rung_status make_reference(lab_verifier *v, const lab_case *c, int64_t entry, lab_reference_args *r)
{
    int64_t results = c->m * c->n;
    LAB_TRY(lab_buffer_reserve(v->place, &v->c64, results * 8));
    LAB_TRY(lab_buffer_reserve(v->place, &v->size, results * 8));
    LAB_TRY(lab_buffer_reserve(v->place, &v->chain, results * 4));
    LAB_TRY(lab_buffer_reserve(v->place, &v->reach, results * 4));
    lab_view c0 = view_c(v, c, entry);
    c0.at = (float *)v->c_start.at + (c0.at - (float *)v->c.memory.at);
    *r = (lab_reference_args){.a = view_a(v, c, entry),
                              .b = view_b(v, c, entry),
                              .c0 = c0,
                              .m = c->m,
                              .n = c->n,
                              .k = c->k,
                              .alpha = c->alpha,
                              .beta = c->beta,
                              .bias = v->bias.at,
                              .bias_kind = c->bias,
                              .activation = c->activation,
                              .c64 = v->c64.at,
                              .size = v->size.at,
                              .chain = v->chain.at,
                              .reach = v->reach.at};
    return lab_reference(v->place, r);
}

static rung_status compare(lab_verifier *v, const lab_reference_args *r, lab_view c, const lab_bound *each,
                           lab_tally *tally)
{
    lab_compare_args args = {.c = c, .m = r->m, .n = r->n, .c64 = r->c64, .size = r->size, .reach = r->reach};
    args.bound = *each;
    LAB_TRY(lab_tally_begin(v->place));
    LAB_TRY(lab_compare(v->place, &args));
    return lab_tally_end(v->place, tally);
}

static void judge_wrong(const lab_case *c, int64_t entry, const lab_tally *tally, lab_verdict *verdict)
{
    if (tally->wrong)
        fail(verdict,
             "%llu elements are NaN or Inf where they should not be, or the reverse; the first is (%lld, %lld) of "
             "entry %lld",
             (unsigned long long)tally->wrong, (long long)(tally->wrong_at / (uint64_t)c->n),
             (long long)(tally->wrong_at % (uint64_t)c->n), (long long)entry);
}

/* The largest errors over a batch, and where they are. */
typedef struct extremes {
    int64_t worst_at, share_at;
    double share, share_bound_u; /* the largest error over its element's own bound, and that bound */
} extremes;

static rung_status note_share(lab_verifier *v, const lab_reference_args *r, const lab_bound *each,
                              const lab_tally *tally, extremes *x)
{
    double share = lab_packed(tally->share), size;
    float reach;
    int64_t at = (int64_t)(tally->share & UINT32_MAX);
    if (share <= x->share || at >= r->m * r->n)
        return RUNG_SUCCESS;
    LAB_TRY(lab_download(v->place, &size, r->size + at, sizeof size));
    LAB_TRY(lab_download(v->place, &reach, r->reach + at, sizeof reach));
    x->share = share;
    x->share_at = at;
    x->share_bound_u = lab_bound_of(each, size, reach);
    return RUNG_SUCCESS;
}

/* Finds the largest errors over the batch, ours and the chain's. r: the reference of the last entry. */
static rung_status judge_entries(lab_verifier *v, const lab_case *c, const lab_bound *each, lab_reference_args *r,
                                 lab_verdict *verdict, extremes *x)
{
    for (int64_t e = 0; e < c->batch; e++) {
        lab_tally ours, chain;
        LAB_TRY(make_reference(v, c, e, r));
        LAB_TRY(compare(v, r, view_c(v, c, e), each, &ours));
        LAB_TRY(compare(v, r, (lab_view){r->chain, r->n, 1}, each, &chain));
        judge_wrong(c, e, &ours, verdict);
        LAB_TRY(note_share(v, r, each, &ours, x));
        double error_u = lab_packed(ours.worst), chain_u = lab_packed(chain.worst);
        if (!(error_u <= verdict->error_u)) {
            verdict->error_u = error_u;
            x->worst_at = (int64_t)(ours.worst & UINT32_MAX);
        }
        if (chain_u > verdict->chain_u)
            verdict->chain_u = chain_u;
    }
    return RUNG_SUCCESS;
}

/* Finds the vendor's own error on the same data, by the reference that judged ours. It writes to the same C. */
static rung_status judge_vendor(lab_verifier *v, const lab_case *c, const rung_gemm *g, const lab_reference_args *r,
                                lab_verdict *verdict)
{
    lab_tally tally;
    verdict->vendor_u = -1.0;
    if (!v->vendor || c->form != LAB_SINGLE || c->bias || c->activation)
        return RUNG_SUCCESS;
    LAB_TRY(lab_copy(v->place, v->c.memory.at, v->c_start.at, (size_t)v->c.words * 4));
    if (v->vendor->prepare)
        LAB_TRY(v->vendor->prepare(v->vendor, g));
    LAB_TRY(v->vendor->run(v->vendor, g));
    LAB_TRY(compare(v, r, view_c(v, c, 0), &(lab_bound){0}, &tally));
    verdict->vendor_u = lab_packed(tally.worst);
    return RUNG_SUCCESS;
}

static rung_status judge_guards(lab_verifier *v, lab_verdict *verdict)
{
    lab_region_args region;
    lab_tally tally;
    lab_operand_region(&v->c, &region);
    LAB_TRY(lab_tally_begin(v->place));
    LAB_TRY(lab_untouched(v->place, &region));
    LAB_TRY(lab_tally_end(v->place, &tally));
    if (tally.touched)
        fail(verdict, "%llu words outside C's m x n were written; the first is %lld elements from C's first",
             (unsigned long long)tally.touched, (long long)((int64_t)tally.touched_at - v->c.first));
    return RUNG_SUCCESS;
}

static void judge_error(const lab_case *c, int64_t at, double error_u, double bound_u, lab_verdict *verdict)
{
    char vendor[48] = "";
    verdict->bound_u = bound_u;
    if (verdict->vendor_u >= 0.0)
        snprintf(vendor, sizeof vendor, ", vendor %.3g u", verdict->vendor_u);
    if (!(error_u <= bound_u))
        fail(verdict, "element (%lld, %lld) errs %.4g u, the bound is %.4g u (FP32 chain %.3g u%s)",
             (long long)(at / c->n), (long long)(at % c->n), error_u, bound_u, verdict->chain_u, vendor);
}

/* Returns whether data are random, their elements all of one kind, and enough of them: the chain's largest error is
 * then no luck. */
static int is_plain(const lab_case *c)
{
    return (c->data == LAB_SIGNED || c->data == LAB_POSITIVE || c->data == LAB_NORMAL) &&
           c->m * c->n * c->batch >= PLAIN_RESULTS;
}

/* Finds the same case that passed with the same bits in all of C's memory by the same kernel: it gets the same verdict.
 */
static const lab_verdict *judged_before(const lab_verifier *v, const char *text, const lab_verdict *verdict)
{
    for (int i = 0; i < v->judged_count; i++) {
        const lab_judged *one = &v->judged[i];
        if (one->verdict.bits == verdict->bits && strcmp(one->text, text) == 0 &&
            strcmp(one->verdict.kernel, verdict->kernel) == 0)
            return &one->verdict;
    }
    return NULL;
}

static void remember(lab_verifier *v, const char *text, const lab_verdict *verdict)
{
    if (v->judged_count == v->judged_room) {
        int room = v->judged_room ? 2 * v->judged_room : 256;
        lab_judged *more = realloc(v->judged, (size_t)room * sizeof *more);
        if (!more)
            return; /* it is judged again, then */
        v->judged = more;
        v->judged_room = room;
    }
    lab_judged *one = &v->judged[v->judged_count++];
    memcpy(one->text, text, LAB_CASE_TEXT);
    one->verdict = *verdict;
}

static rung_status judge(lab_verifier *v, const lab_case *c, const rung_gemm *g, const rung_kernel *kernel,
                         lab_verdict *verdict)
{
    extremes x = {0};
    lab_reference_args r;
    rung_arith arith = kernel ? kernel->arith : RUNG_F32;
    lab_bound each = lab_bound_each(arith, c->k, c->data, is_fused(kernel));
    LAB_TRY(judge_guards(v, verdict));
    if (c->m == 0 || c->n == 0)
        return RUNG_SUCCESS;
    LAB_TRY(judge_entries(v, c, &each, &r, verdict, &x));
    /* Constant data is meant for split products. FP32 sums of it are one sample of rounding luck, so the contract's
     * bound holds for these. */
    int by_rule = c->accuracy && !(c->data == LAB_CONSTANT && arith == RUNG_F32);
    if (by_rule || is_plain(c))
        LAB_TRY(judge_vendor(v, c, g, &r, verdict));
    if (by_rule) {
        double bound_u = lab_bound_u(kernel, arith, c->k, verdict->chain_u, verdict->vendor_u);
        judge_error(c, x.worst_at, verdict->error_u, bound_u, verdict);
        return RUNG_SUCCESS;
    }
    if (x.share == 0.0) /* exact everywhere */
        x.share_bound_u = each.more_u + each.least_u;
    judge_error(c, x.share_at, x.share * x.share_bound_u, x.share_bound_u, verdict);
    if (is_plain(c)) {
        double bound_u =
            more_u(arith, c->k) + peers_u(2.0, 4.0, c->k, verdict->chain_u, verdict->vendor_u) + !is_fused(kernel);
        judge_error(c, x.worst_at, verdict->error_u, bound_u, verdict);
    }
    return RUNG_SUCCESS;
}

static rung_status judge_once(lab_verifier *v, const lab_case *c, const rung_gemm *g, const rung_kernel *kernel,
                              lab_verdict *verdict)
{
    char text[LAB_CASE_TEXT] = "";
    lab_case_print(c, text);
    const lab_verdict *known = verdict->outcome == LAB_PASS ? judged_before(v, text, verdict) : NULL;
    if (known) {
        *verdict = *known;
        return RUNG_SUCCESS;
    }
    LAB_TRY(judge(v, c, g, kernel, verdict));
    if (verdict->outcome == LAB_PASS)
        remember(v, text, verdict);
    return RUNG_SUCCESS;
}

static rung_status run_case(lab_verifier *v, const rung_kernel *kernel, const lab_case *c, lab_verdict *verdict)
{
    rung_gemm g;
    rung_plan *plan;
    const char *refused = lab_via_refuses(v->via, c);
    if (refused) {
        verdict->outcome = LAB_SKIP;
        snprintf(verdict->why, sizeof verdict->why, "%s", refused);
        return RUNG_SUCCESS;
    }
    LAB_TRY(fill_operands(v, c));
    LAB_TRY(describe(v, c, &g));
    LAB_TRY(
        rung_context_set_workspace_limit(v->context, c->workspace_kib ? c->workspace_kib << 10 : v->workspace_bytes));
    rung_status status =
        kernel ? rung_plan_create_kernel(&plan, v->context, &g, kernel->name) : rung_plan_create(&plan, v->context, &g);
    if (status == RUNG_UNSUPPORTED) {
        verdict->outcome = LAB_SKIP;
        snprintf(verdict->why, sizeof verdict->why, "%s", lab_error());
        return RUNG_SUCCESS;
    }
    LAB_TRY(status);
    snprintf(verdict->kernel, sizeof verdict->kernel, "%s", rung_plan_kernel(plan));
    const rung_kernel *chosen = rung_kernel_find(verdict->kernel);
    status = run_again_and_again(v, plan, &g, c, verdict);
    if (status == RUNG_SUCCESS && !v->bits_alone)
        status = judge_once(v, c, &g, chosen, verdict);
    rung_plan_destroy(plan);
    return status;
}

rung_status lab_verify(lab_verifier *v, const rung_kernel *kernel, const lab_case *c, lab_verdict *verdict)
{
    memset(verdict, 0, sizeof *verdict);
    verdict->vendor_u = -1.0;
    snprintf(verdict->kernel, sizeof verdict->kernel, "%s", kernel ? kernel->name : "library");
    rung_status status = run_case(v, kernel, c, verdict);
    if (status == RUNG_OUT_OF_MEMORY) {
        verdict->outcome = LAB_SKIP;
        snprintf(verdict->why, sizeof verdict->why, "%s", lab_error());
        return RUNG_SUCCESS;
    }
    if (status == RUNG_SUCCESS)
        return RUNG_SUCCESS;
    const char *sentence = lab_error();
    fail(verdict, "%s: %s", rung_status_name(status), sentence);
    /* Whoever stops here tells it, too. */
    return status == RUNG_DEVICE_ERROR ? lab_fail(status, "%s", sentence) : RUNG_SUCCESS;
}
