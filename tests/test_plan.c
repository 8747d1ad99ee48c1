/* What the planner decides of drawn rows for drawn products, against its rule taken word by word: which rows refuse and
 * with which sentence, the cheapest of the others, of several that cost the same the earliest; in order arithmetic and
 * chip before the time; nobody who could win is left out for the sake of its floor. The catalog and the backend are the
 * test's own, so that rows have whatever a row may say. */
#include "core/plan.h"
#include "core/status.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 40, TRIALS = 20000 };

/* ---- the catalog ---- */

static rung_kernel rows[ROWS];
static char names[ROWS][8];

int rung_kernel_count(void)
{
    return ROWS;
}

const rung_kernel *rung_kernel_at(int index)
{
    return index >= 0 && index < ROWS ? &rows[index] : NULL;
}

const rung_kernel *rung_kernel_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* ---- the dice ---- */

static uint64_t dice = 9;

static int draw(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)below);
}

static unsigned draw_bits(unsigned all)
{
    unsigned bits = all;
    for (unsigned bit = 1; bit <= all; bit <<= 1)
        if (draw(5) == 0)
            bits &= ~bit;
    return bits;
}

/* ---- the backend ---- */

static double costs[ROWS], floors[ROWS];
static int is_unusable[ROWS], is_refused[ROWS], times_asked[ROWS], has_floors;
static double least_limit;

static const char *unusable(void *state, const rung_kernel *kernel)
{
    (void)state;
    return is_unusable[kernel - rows] ? "it is not for this chip" : NULL;
}

static const char *estimate(void *state, const rung_kernel *kernel, const rung_problem *problem, rung_choice *choice)
{
    const int row = (int)(kernel - rows);
    (void)state, (void)problem;
    assert_true(choice->kernel == kernel && choice->parts == 1 && choice->workspace_bytes == 0 && choice->cut_m == 0);
    times_asked[row]++;
    least_limit = choice->limit_us < least_limit ? choice->limit_us : least_limit;
    if (is_refused[row])
        return "it refuses";
    choice->cost_us = costs[row] > choice->limit_us ? costs[row] * 2 : costs[row]; /* any cost above that will do */
    choice->workspace_bytes = row;
    rung_note(choice, "row %d", row);
    return NULL;
}

static void floors_us(void *state, const rung_kernel *const *kernels, int count, const rung_problem *problem,
                      double *us)
{
    (void)state, (void)problem;
    for (int i = 0; i < count; i++)
        us[i] = floors[kernels[i] - rows];
}

void rung_note(rung_choice *choice, const char *format, ...)
{
    if (!choice->note)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(choice->note, RUNG_NOTE_BYTES, format, list);
    va_end(list);
}

unsigned rung_problem_trans_bit(const rung_problem *p)
{
    return 1u << (2 * (p->trans_a != 0) + (p->trans_b != 0));
}

/* ---- the rule ---- */

static const char *refusal_by_form(const rung_kernel *k, const rung_problem *p)
{
    static const unsigned trans[2][2] = {{RUNG_ACCEPTS_NN, RUNG_ACCEPTS_NT}, {RUNG_ACCEPTS_TN, RUNG_ACCEPTS_TT}};
    if (!(k->accepts & trans[p->trans_a][p->trans_b]))
        return (k->accepts & RUNG_ACCEPTS_ANY_TRANS) == RUNG_ACCEPTS_NN ? "does not take these transposes, only NN"
                                                                        : "does not take these transposes";
    if (p->batch > 1 && !p->arrays && !(k->accepts & RUNG_ACCEPTS_BATCH))
        return "does not take batches";
    if (p->arrays && !(k->accepts & RUNG_ACCEPTS_ARRAYS))
        return "does not take pointer arrays";
    if ((p->bias_kind != RUNG_NO_BIAS || p->activation != RUNG_IDENTITY) && !(k->accepts & RUNG_ACCEPTS_EPILOGUE))
        return "has no bias or activation";
    if (p->device_scalars && !(k->accepts & RUNG_ACCEPTS_DEVICE_SCALARS))
        return "does not read alpha and beta from device memory";
    if (p->in_order && !(k->accepts & RUNG_KEEPS_ORDER))
        return "its bits depend on the size of C";
    for (int operand = 0; operand < 2; operand++)
        if (p->k != 0 && (operand ? p->align_b : p->align_a) < k->align_bytes)
            return "addresses or leading dimensions are no multiples of its .align_bytes";
    return NULL;
}

static int allows(rung_math math, rung_arith arith)
{
    const int is_exact = arith == RUNG_F32,
              errs_little = arith == RUNG_TF32X3 || arith == RUNG_BF16X6 || arith == RUNG_BF16X9 || arith == RUNG_F16X3;
    return is_exact || math == RUNG_FAST || (math == RUNG_ACCURATE && errs_little);
}

/* Asked for by name, a kernel's arithmetic is the caller's wish. */
static const char *refusal(int row, const rung_problem *p)
{
    if (is_unusable[row])
        return "it is not for this chip";
    const char *by_form = refusal_by_form(&rows[row], p);
    return by_form ? by_form : is_refused[row] ? "it refuses" : NULL;
}

/* Tensor cores' single product before three of them, before none; then later chips. */
static int rank_in_order(const rung_kernel *k)
{
    return (k->arith == RUNG_TF32 ? 2 : k->arith != RUNG_F32 ? 1 : 0) * 1000 + k->arch;
}

static int wins(int row, int over, const rung_problem *p)
{
    if (p->in_order && rank_in_order(&rows[row]) != rank_in_order(&rows[over]))
        return rank_in_order(&rows[row]) > rank_in_order(&rows[over]);
    return costs[row] != costs[over] ? costs[row] < costs[over] : row < over;
}

static int is_candidate(int row, rung_backend_id backend)
{
    return rows[row].backend == backend && rows[row].role == RUNG_PRODUCTION;
}

static int best_of(const rung_problem *p, rung_backend_id backend)
{
    int best = -1;
    for (int i = 0; i < ROWS; i++)
        if (is_candidate(i, backend) && allows(p->math, rows[i].arith) && !refusal(i, p) &&
            (best < 0 || wins(i, best, p)))
            best = i;
    return best;
}

/* ---- the trials ---- */

static void draw_rows(void)
{
    for (int i = 0; i < ROWS; i++) {
        static const int archs[] = {80, 80, 86, 90};
        snprintf(names[i], sizeof names[i], "k%02d", (i * 7 + 3) % ROWS); /* in another order than the rows */
        rows[i] = (rung_kernel){.name = names[i],
                                .backend = i % 5 == 0 ? RUNG_BACKEND_CPU : RUNG_BACKEND_CUDA,
                                .role = i == 13      ? RUNG_REDUCE
                                        : i % 9 == 4 ? RUNG_LADDER
                                                     : RUNG_PRODUCTION,
                                .arith = (rung_arith)(draw(2) ? RUNG_F32 : draw(8)),
                                .accepts = draw_bits(511),
                                .align_bytes = (int[]){0, 0, 0, 4, 8, 16}[draw(6)],
                                .arch = i % 5 == 0 ? 0 : archs[draw(4)]};
    }
}

static void draw_answers(void)
{
    for (int i = 0; i < ROWS; i++) {
        is_unusable[i] = draw(8) == 0, is_refused[i] = draw(8) == 0;
        costs[i] = (double)(1 + draw(12));
        floors[i] = draw(3) ? costs[i] * (double)(1 + draw(4)) / 4 : costs[i]; /* as many are equal as not */
    }
    has_floors = draw(3) != 0;
}

static rung_problem draw_problem(void)
{
    rung_problem p;
    memset(&p, 0, sizeof p);
    p.m = p.n = 8, p.k = draw(6) ? 8 : 0;
    p.trans_a = draw(2), p.trans_b = draw(2);
    p.batch = draw(4) ? 1 : 2, p.arrays = draw(8) == 0;
    p.bias_kind = draw(8) ? RUNG_NO_BIAS : RUNG_BIAS_PER_ROW;
    p.activation = draw(8) ? RUNG_IDENTITY : RUNG_RELU;
    p.device_scalars = draw(8) == 0, p.in_order = draw(4) == 0;
    p.align_a = 4 << draw(3), p.align_b = 4 << draw(3), p.align_c = 4;
    p.math = (rung_math)draw(3);
    return p;
}

static rung_backend backend_of(rung_backend_id id)
{
    return (rung_backend){.name = "test's",
                          .id = id,
                          .unusable = unusable,
                          .estimate = estimate,
                          .floors_us = has_floors ? floors_us : NULL};
}

static void the_best_is_chosen(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        draw_answers();
        const rung_backend_id id = draw(4) ? RUNG_BACKEND_CUDA : RUNG_BACKEND_CPU;
        const rung_backend backend = backend_of(id);
        const rung_problem p = draw_problem();
        const int best = best_of(&p, id);
        const int64_t made = rung_estimates_made();
        rung_choice choice;
        int asked = 0;
        memset(times_asked, 0, sizeof times_asked);
        least_limit = INFINITY;
        rung_status status = rung_decide(&backend, NULL, &p, &choice);
        assert_int_equal(status, best < 0 ? RUNG_UNSUPPORTED : RUNG_SUCCESS);
        if (best >= 0)
            assert_true(choice.kernel == &rows[best] && choice.cost_us == costs[best] &&
                        choice.workspace_bytes == best);
        else
            assert_non_null(strstr(rung_last_error(), "no kernel of the test's backend takes this product: "));
        for (int i = 0; i < ROWS; i++) {
            assert_true(times_asked[i] <=
                        1); /* nobody is asked twice, nor whose form or chip or arithmetic will not do */
            if (times_asked[i])
                assert_true(is_candidate(i, id) && !is_unusable[i] && !refusal_by_form(&rows[i], &p) &&
                            allows(p.math, rows[i].arith));
            if (times_asked[i] && has_floors && !p.in_order && best >= 0) /* nor who cannot win */
                assert_true(floors[i] * (1.0 - 1e-9) <= costs[best]);
            asked += times_asked[i];
        }
        assert_int_equal(rung_estimates_made() - made, asked);
        if (p.in_order)
            assert_true(isinf(least_limit)); /* a cost above the limit would be no cost */

        /* Below a limit: the same one, if it costs less. */
        const double limit_us = (double)draw(14);
        memset(times_asked, 0, sizeof times_asked);
        const int found = rung_decide_below(&backend, NULL, &p, limit_us, &choice);
        if (!p.in_order) {
            assert_int_equal(found, best >= 0 && costs[best] < limit_us);
            if (found)
                assert_true(choice.kernel == &rows[best]);
        }
    }
}

static void each_may_be_asked_by_name(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS / 4; trial++) {
        draw_answers();
        const rung_backend_id id = draw(4) ? RUNG_BACKEND_CUDA : RUNG_BACKEND_CPU;
        const rung_backend backend = backend_of(id);
        const rung_problem p = draw_problem();
        const int row = draw(ROWS);
        rung_choice choice;
        char said[256] = "";
        rung_status wanted = RUNG_UNSUPPORTED, status = rung_decide_kernel(&backend, NULL, &p, names[row], &choice);
        if (rows[row].backend != id)
            snprintf(said, sizeof said, "%s is not a kernel of the test's backend", names[row]);
        else if (rows[row].role == RUNG_REDUCE)
            snprintf(said, sizeof said, "%s is a reduction, not a matrix product", names[row]);
        else if (refusal(row, &p))
            snprintf(said, sizeof said, "%s cannot run this product: %s", names[row], refusal(row, &p));
        else
            wanted = RUNG_SUCCESS;
        assert_int_equal(status, wanted);
        if (status != RUNG_SUCCESS)
            assert_string_equal(rung_last_error(), said);
        else
            assert_true(choice.kernel == &rows[row] && choice.cost_us == costs[row] && !choice.note);
    }
    const rung_backend backend = backend_of(RUNG_BACKEND_CPU);
    const rung_problem p = draw_problem();
    rung_choice choice;
    assert_int_equal(rung_decide_kernel(&backend, NULL, &p, "k99", &choice), RUNG_INVALID_ARGUMENT);
    assert_string_equal(rung_last_error(), "no kernel is called 'k99'");
}

static void all_are_ranked(void **state)
{
    static rung_candidate candidates[RUNG_PLAN_CANDIDATES];
    (void)state;
    for (int trial = 0; trial < TRIALS / 4; trial++) {
        draw_answers();
        const rung_backend_id id = draw(4) ? RUNG_BACKEND_CUDA : RUNG_BACKEND_CPU;
        const rung_backend backend = backend_of(id);
        const rung_problem p = draw_problem();
        int all = 0, seen[ROWS] = {0};
        for (int i = 0; i < ROWS; i++)
            all += is_candidate(i, id);
        const int count = rung_rank(&backend, NULL, &p, candidates, RUNG_PLAN_CANDIDATES);
        assert_int_equal(count, all);
        for (int i = 0; i < count; i++) {
            const rung_candidate *c = &candidates[i], *before = i > 0 ? c - 1 : c;
            const int row = (int)(c->choice.kernel - rows);
            char note[RUNG_NOTE_BYTES] = "";
            assert_true(is_candidate(row, id) && !seen[row]++);
            const char *why = allows(p.math, rows[row].arith) ? refusal(row, &p) : rung_refuse_math(&rows[row], p.math);
            assert_true(!why == !c->refusal && (!why || strcmp(why, c->refusal) == 0));
            if (!why)
                snprintf(note, sizeof note, "row %d", row);
            if (!why)
                assert_string_equal(c->note, note);
            assert_null(c->choice.note);
            rung_note_of(&backend, NULL, &p, &c->choice, note);
            assert_true(why || strcmp(note, c->note) == 0);
            if (i == 0)
                continue;
            assert_true(!before->refusal || c->refusal); /* refusals come last, by name; the others by their costs */
            if (before->refusal)
                assert_true(strcmp(before->choice.kernel->name, c->choice.kernel->name) < 0);
            else if (!c->refusal)
                assert_true(before->choice.cost_us < c->choice.cost_us ||
                            (before->choice.cost_us == c->choice.cost_us && before->choice.kernel < c->choice.kernel));
        }
        assert_int_equal(rung_rank(&backend, NULL, &p, candidates, 3), all < 3 ? all : 3);
    }
}

static void arithmetic_by_mode(void **state)
{
    static const char *const strict = "not FP32 arithmetic: strict mode", *const accurate =
                                                                              "errs more than FP32: accurate mode";
    (void)state;
    for (int math = RUNG_STRICT; math <= RUNG_FAST; math++)
        for (int arith = RUNG_F32; arith <= RUNG_F16X3_ALONE; arith++) {
            const rung_kernel kernel = {.arith = (rung_arith)arith};
            const char *why = rung_refuse_math(&kernel, (rung_math)math);
            if (allows((rung_math)math, (rung_arith)arith))
                assert_null(why);
            else
                assert_string_equal(why, math == RUNG_STRICT ? strict : accurate);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_is_chosen),
        cmocka_unit_test(each_may_be_asked_by_name),
        cmocka_unit_test(all_are_ranked),
        cmocka_unit_test(arithmetic_by_mode),
    };
    draw_rows();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
