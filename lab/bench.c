/* Lays out operand sets, checks every contender on the first, times them all in turn. */
#include "lab/bench.h"
#include "lab/check.h"
#include "lab/peak.h"
#include "lab/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAFFIC_BYTES = 1 << 20 }; /* products with less traffic stay in caches, which hide what moving costs */
enum { MOST_SETS = 256, WARM_SETS = 4, SAMPLE_LINES = 64 };
enum { PEERS_TEXT = 256 };
enum { GUARD = 64 }; /* so many words before each result and behind it */

/* The peers that were left out: those that are not installed by name, others with what is wrong. */
typedef struct left_out {
    char absent[160], hint[256], wrong[800];
    int count; /* of those that are not installed */
} left_out;

static void leave_out(left_out *l, const char *name, const lab_peer *peer)
{
    char *to = peer->absent ? l->absent : l->wrong;
    size_t bytes = peer->absent ? sizeof l->absent : sizeof l->wrong, used = strlen(to);
    const char *between = !used ? "" : peer->absent ? ", " : "; ";
    snprintf(to + used, bytes - used, "%s%s", between, peer->absent ? name : lab_error());
    if (peer->absent)
        snprintf(l->hint, sizeof l->hint, "%s", lab_error());
    l->count += peer->absent;
}

/* Of one peer that is not installed its hint says how to get it; of several that would be many lines. */
static void tell_left_out(const left_out *l, char *missing, size_t bytes)
{
    const char *between = l->count && l->wrong[0] ? "; " : "";
    if (l->count > 1)
        snprintf(missing, bytes, "%s%s%s, which are not installed ('rung doctor' says how to get them)", l->wrong,
                 between, l->absent);
    else
        snprintf(missing, bytes, "%s%s%s", l->wrong, between, l->hint);
}

/* Refuses what would be passed over, or stand twice under one name. */
static rung_status check_peers(const char *peers)
{
    int count = 0;
    for (const char *at = peers; *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");
        for (const char *before = peers; before < at; before += strspn(before, ",")) {
            const size_t its = strcspn(before, ",");
            if (its == length && strncmp(before, at, length) == 0)
                return lab_fail(RUNG_INVALID_ARGUMENT, "the peer '%.*s' is named twice", (int)length, at);
            before += its;
        }
        count += length > 0;
        at += length;
    }
    if (count > LAB_PEERS || strlen(peers) >= PEERS_TEXT)
        return lab_fail(RUNG_INVALID_ARGUMENT, "too many peers: at most %d, in %d characters", LAB_PEERS,
                        PEERS_TEXT - 1);
    return RUNG_SUCCESS;
}

rung_status lab_bench_open(lab_bench *bench, lab_place *place, const lab_bench_options *options, const char *peers,
                           char *missing, size_t missing_bytes)
{
    char copy[PEERS_TEXT];
    char *save = NULL;
    left_out out = {.count = 0};
    memset(bench, 0, sizeof *bench);
    bench->place = place;
    bench->options = *options;
    missing[0] = 0;
    LAB_TRY(check_peers(peers));
    lab_monitor_open(&bench->monitor, place);
    LAB_TRY(lab_place_context(place, options->math, &bench->context));
    for (int i = 0; i < 3 && !place->tools; i++)
        bench->peak_gflops = fmax(bench->peak_gflops, lab_cpu_peak_gflops(bench->context, place->threads));
    snprintf(copy, sizeof copy, "%s", peers);
    for (char *name = strtok_r(copy, ",", &save); name && bench->peer_count < LAB_PEERS;
         name = strtok_r(NULL, ",", &save)) {
        lab_peer *peer = &bench->peers[bench->peer_count];
        rung_status status = lab_peer_open(place, name, peer);
        if (status == RUNG_SUCCESS)
            bench->peer_count++;
        else if (status != RUNG_MISSING_LIBRARY)
            return status;
        else
            leave_out(&out, name, peer);
    }
    tell_left_out(&out, missing, missing_bytes);
    return RUNG_SUCCESS;
}

void lab_bench_close(lab_bench *bench)
{
    lab_buffer *buffers[] = {&bench->a, &bench->b, &bench->c, &bench->c64, &bench->size, &bench->chain};
    for (int i = 0; i < bench->peer_count; i++)
        lab_peer_close(&bench->peers[i]);
    for (size_t i = 0; bench->place && i < sizeof buffers / sizeof buffers[0]; i++)
        lab_buffer_free(bench->place, buffers[i]);
    rung_context_destroy(bench->context);
    lab_monitor_close(&bench->monitor);
    memset(bench, 0, sizeof *bench);
}

/* How the stored operands of one shape lie in the three buffers. */
typedef struct arrangement {
    rung_gemm gemm;              /* of set 0 */
    int64_t set_a, set_b, set_c; /* elements a set */
    int sets;
} arrangement;

static int64_t whole(int64_t elements) /* sets start at multiples of 256 bytes */
{
    return (elements + 63) & -64;
}

static void arrange(const lab_bench *bench, const lab_shape *s, arrangement *x)
{
    const lab_bench_options *o = &bench->options;
    rung_gemm *g = &x->gemm;
    lab_shape_gemm(s, o->layout, o->pad + s->pad, g);
    g->alpha = o->alpha;
    g->beta = o->beta;
    x->set_a = whole(g->stride_a * s->batch);
    x->set_b = whole(g->stride_b * s->batch);
    x->set_c = whole(g->stride_c * s->batch + GUARD);
    double set_bytes = 4.0 * (double)(x->set_a + x->set_b + x->set_c);
    double rotate_over = 3.0 * (double)bench->place->cache_bytes;
    x->sets = (int)fmin(ceil(rotate_over / set_bytes), MOST_SETS);
    if (!bench->place->tools && !o->cold)
        x->sets = WARM_SETS;
    if (x->sets < 2)
        x->sets = 2;
}

static rung_status fill(lab_place *place, lab_buffer *buffer, int64_t elements, uint64_t seed, lab_data data)
{
    LAB_TRY(lab_buffer_reserve(place, buffer, elements * 4));
    /* Plain data is one long line; data whose range belongs to a line gets lines of 4096. */
    int64_t length = data <= LAB_NORMAL ? elements : 4096;
    lab_fill_args args = {{buffer->at, length, 1}, elements / length, length, seed, (int32_t)data};
    LAB_TRY(lab_fill(place, &args));
    int64_t rest = elements - elements / length * length;
    lab_fill_args tail = {{(float *)buffer->at + elements - rest, rest, 1}, 1, rest, seed + 99, (int32_t)data};
    return lab_fill(place, &tail);
}

static rung_status fill_sets(lab_bench *bench, arrangement *x)
{
    lab_data data = bench->options.data;
    LAB_TRY(fill(bench->place, &bench->a, x->set_a * x->sets, 11, data));
    LAB_TRY(fill(bench->place, &bench->b, x->set_b * x->sets, 12, data));
    LAB_TRY(fill(bench->place, &bench->c, x->set_c * x->sets + GUARD, 13, LAB_SIGNED));
    x->gemm.a = bench->a.at;
    x->gemm.b = bench->b.at;
    x->gemm.c = (float *)bench->c.at + GUARD;
    return RUNG_SUCCESS;
}

/* Runs one contender over the sets: the library's plan, a peer, or neither, which is the traffic alone. */
typedef struct runner {
    rung_plan *plan;
    lab_peer *peer;
    const arrangement *x;
    int threads;
} runner;

static rung_status run_set(void *state, int set)
{
    const runner *r = state;
    rung_gemm g = r->x->gemm;
    g.a += r->x->set_a * set;
    g.b += r->x->set_b * set;
    g.c += r->x->set_c * set;
    if (!r->plan && !r->peer) {
        lab_cpu_move(g.a, g.stride_a * g.batch, g.c, g.stride_c * g.batch, r->threads);
        lab_cpu_move(g.b, g.stride_b * g.batch, g.c, 0, r->threads);
        return RUNG_SUCCESS;
    }
    return r->plan ? rung_plan_run(r->plan, &g) : r->peer->run(r->peer, &g);
}

static lab_view view(float *at, int64_t ld, int rows_are_lines)
{
    return rows_are_lines ? (lab_view){at, ld, 1} : (lab_view){at, 1, ld};
}

typedef struct window {
    int64_t row, rows, column, columns, entry;
} window;

/* old: how far behind C its old numbers lie, where beta is not 0. */
static rung_status check_window(lab_bench *bench, const rung_gemm *g, int64_t old, const window *w, double *error_u,
                                double *chain_u)
{
    lab_place *place = bench->place;
    int row = g->layout == RUNG_ROW_MAJOR;
    lab_view a = view((float *)(uintptr_t)g->a + w->entry * g->stride_a, g->lda, row != (int)g->trans_a);
    lab_view b = view((float *)(uintptr_t)g->b + w->entry * g->stride_b, g->ldb, row != (int)g->trans_b);
    lab_view c = view(g->c + w->entry * g->stride_c, g->ldc, row);
    a.at += w->row * a.line_step;
    b.at += w->column * b.step;
    c.at += w->row * c.line_step + w->column * c.step;
    LAB_TRY(lab_buffer_reserve(place, &bench->c64, w->rows * w->columns * 8));
    LAB_TRY(lab_buffer_reserve(place, &bench->size, w->rows * w->columns * 8));
    LAB_TRY(lab_buffer_reserve(place, &bench->chain, w->rows * w->columns * 4));
    lab_reference_args r = {.a = a,
                            .b = b,
                            .c0 = {c.at + old, c.line_step, c.step},
                            .m = w->rows,
                            .n = w->columns,
                            .k = g->k,
                            .alpha = g->alpha,
                            .beta = g->beta,
                            .c64 = bench->c64.at,
                            .size = bench->size.at,
                            .chain = bench->chain.at};
    LAB_TRY(lab_reference(place, &r));
    lab_view views[] = {c, {r.chain, r.n, 1}};
    for (int i = 0; i < 2; i++) {
        lab_compare_args args = {.c = views[i], .m = r.m, .n = r.n, .c64 = r.c64, .size = r.size};
        lab_tally tally;
        LAB_TRY(lab_tally_begin(place));
        LAB_TRY(lab_compare(place, &args));
        LAB_TRY(lab_tally_end(place, &tally));
        double *worst = i ? chain_u : error_u;
        *worst = fmax(*worst, tally.wrong ? INFINITY : lab_packed(tally.worst));
    }
    return RUNG_SUCCESS;
}

/* Returns how many multiply-adds a check may cost. */
static double check_limit(const lab_place *place)
{
    return place->tools ? 6e11 : 6e8;
}

/* Checks all of C where that is affordable, else strips of rows and columns at both ends and at a random place. */
static rung_status check_entry(lab_bench *bench, const rung_gemm *g, int64_t old, int64_t entry, double limit,
                               double *error_u, double *chain_u)
{
    double each = (double)g->k;
    window all = {0, g->m, 0, g->n, entry};
    if ((double)g->m * (double)g->n * each <= limit)
        return check_window(bench, g, old, &all, error_u, chain_u);
    int64_t rows = (int64_t)fmin(fmax(limit / 6.0 / ((double)g->n * each), 1.0), fmin(SAMPLE_LINES, (double)g->m));
    int64_t columns = (int64_t)fmin(fmax(limit / 6.0 / ((double)g->m * each), 1.0), fmin(SAMPLE_LINES, (double)g->n));
    uint64_t chance = lab_mix((uint64_t)g->m * 31 + (uint64_t)g->n);
    int64_t row[] = {0, (int64_t)(chance % (uint64_t)(g->m - rows + 1)), g->m - rows};
    int64_t column[] = {0, (int64_t)(chance % (uint64_t)(g->n - columns + 1)), g->n - columns};
    for (int i = 0; i < 3; i++) {
        window across = {row[i], rows, 0, g->n, entry}, down = {0, g->m, column[i], columns, entry};
        LAB_TRY(check_window(bench, g, old, &across, error_u, chain_u));
        LAB_TRY(check_window(bench, g, old, &down, error_u, chain_u));
    }
    return RUNG_SUCCESS;
}

/* Poisons the words of C, and those around it; where beta is not 0 each entry gets old numbers, the same ones at every
 * call. */
static rung_status poison(lab_bench *bench, const rung_gemm *g, float *c, int64_t around)
{
    const int by_rows = g->layout == RUNG_ROW_MAJOR;
    LAB_TRY(lab_pattern(bench->place, c - around, LAB_POISON, (size_t)(g->stride_c * g->batch + 2 * around)));
    for (int64_t e = 0; e < g->batch && g->beta != 0.0f; e++) {
        lab_fill_args args = {.view = {c + e * g->stride_c, g->ldc, 1},
                              .lines = by_rows ? g->m : g->n,
                              .length = by_rows ? g->n : g->m,
                              .seed = 14 + (uint64_t)e,
                              .data = LAB_SIGNED};
        LAB_TRY(lab_fill(bench->place, &args));
    }
    return RUNG_SUCCESS;
}

/* Runs a contender once and judges it. The second set has C's old numbers, too. Of a batch it judges both ends and the
 * middle. */
static rung_status check(lab_bench *bench, const arrangement *x, runner *r, double *error_u, double *chain_u)
{
    const rung_gemm *g = &x->gemm;
    const int64_t entries[] = {0, g->batch / 2, g->batch - 1};
    LAB_TRY(poison(bench, g, g->c, 0));
    LAB_TRY(poison(bench, g, g->c + x->set_c, 0));
    LAB_TRY(run_set(r, 0));
    for (int i = 0; i < 3; i++)
        if (i == 0 || entries[i] != entries[i - 1])
            LAB_TRY(check_entry(bench, g, x->set_c, entries[i], check_limit(bench->place) / 3.0, error_u, chain_u));
    return RUNG_SUCCESS;
}

static rung_status hash_of(lab_place *place, const void *at, int64_t words, uint64_t *hash)
{
    lab_tally tally;
    LAB_TRY(lab_tally_begin(place));
    LAB_TRY(lab_hash(place, at, words));
    LAB_TRY(lab_tally_end(place, &tally));
    *hash = tally.hash;
    return RUNG_SUCCESS;
}

/* Runs the second set's product twice: it must give the same bits, leave the operands as they were, and write nothing
 * around C. */
static rung_status check_call(lab_bench *bench, const arrangement *x, runner *r, lab_bench_row *row)
{
    lab_place *place = bench->place;
    const rung_gemm *g = &x->gemm;
    const int by_rows = g->layout == RUNG_ROW_MAJOR;
    const float *inputs[] = {g->a + x->set_a, g->b + x->set_b};
    const int64_t input_words[] = {x->set_a, x->set_b}, words = g->stride_c * g->batch;
    float *c = g->c + x->set_c;
    uint64_t before[2], now[2], bits[2];
    lab_region_args around = {.words_at = (const uint32_t *)(const void *)(c - GUARD),
                              .words = words + 2 * GUARD,
                              .first = GUARD,
                              .lines = by_rows ? g->m : g->n,
                              .length = by_rows ? g->n : g->m,
                              .ld = g->ldc,
                              .stride = g->stride_c,
                              .batch = g->batch};
    lab_tally tally;
    for (int i = 0; i < 2; i++)
        LAB_TRY(hash_of(place, inputs[i], input_words[i], &before[i]));
    for (int i = 0; i < 2; i++) {
        LAB_TRY(poison(bench, g, c, GUARD));
        LAB_TRY(run_set(r, 1));
        LAB_TRY(hash_of(place, c, words, &bits[i]));
    }
    for (int i = 0; i < 2; i++)
        LAB_TRY(hash_of(place, inputs[i], input_words[i], &now[i]));
    LAB_TRY(lab_tally_begin(place));
    LAB_TRY(lab_untouched(place, &around));
    LAB_TRY(lab_tally_end(place, &tally));
    if (tally.touched)
        snprintf(row->wrong, sizeof row->wrong,
                 "%llu words outside C's m x n were written; the first is %lld elements from C's first",
                 (unsigned long long)tally.touched, (long long)((int64_t)tally.touched_at - GUARD));
    else if (now[0] != before[0] || now[1] != before[1])
        snprintf(row->wrong, sizeof row->wrong, "operand %s was changed", now[0] != before[0] ? "A" : "B");
    else if (bits[0] != bits[1])
        snprintf(row->wrong, sizeof row->wrong, "the same call gave other bits than the first time");
    return RUNG_SUCCESS;
}

/* Notes a peer whose product is none: no FP32 sum errs more than so, whatever its order. */
static void judge_peer(lab_bench_row *row, const lab_peer *peer, double error_u, double chain_u)
{
    double most_u = fmax((double)row->shape.k + 8.0, chain_u);
    if (!row->wrong[0] && !(error_u <= most_u) && strcmp(peer->name, "cublas_tf32") != 0)
        snprintf(row->wrong, sizeof row->wrong,
                 "%s errs %.4g u, and no FP32 product errs more than %.4g u: it is no peer", peer->name, error_u,
                 most_u);
}

/* Puts the peers that take the shape into runners[1] and those behind it; *which tells whose each is. */
static rung_status prepare_peers(lab_bench *bench, arrangement *x, runner *runners, int *which, int *count,
                                 lab_bench_row *row)
{
    *count = 1;
    for (int i = 0; i < bench->peer_count; i++) {
        lab_peer *peer = &bench->peers[i];
        double chain_u = 0.0;
        runner *r = &runners[*count];
        *r = (runner){NULL, peer, x, 0};
        rung_status status = peer->prepare ? peer->prepare(peer, &x->gemm) : RUNG_SUCCESS;
        if (status == RUNG_SUCCESS && bench->options.unverified) {
            status = run_set(r, 0); /* it may refuse the product only now */
        } else if (status == RUNG_SUCCESS) {
            status = check(bench, x, r, &row->peer_error_u[i], &chain_u);
            judge_peer(row, peer, row->peer_error_u[i], chain_u);
        }
        row->peer_refused[i] = status == RUNG_UNSUPPORTED;
        if (row->peer_refused[i])
            lab_error();
        else if (status != RUNG_SUCCESS)
            return status;
        else
            which[(*count)++] = i;
    }
    return RUNG_SUCCESS;
}

/* Returns whether kernel and peer are comparable. TF32 is another promise: it competes with fast mode only. */
static int comparable(const lab_bench *bench, int peer)
{
    return bench->options.math == RUNG_FAST || strcmp(bench->peers[peer].name, "cublas_tf32") != 0;
}

static void fill_row(const lab_bench *bench, lab_bench_row *row, const int *which, int count)
{
    double fastest = 0.0;
    row->us = row->time.us[0].median;
    row->gflops = lab_shape_flops(&row->shape) / row->us * 1e-3;
    for (int i = 1; i < count; i++) {
        int peer = which[i];
        row->peer_us[peer] = row->time.us[i].median;
        row->ratio[peer] = row->time.ratio[i].median;
        if (comparable(bench, peer) && (fastest == 0.0 || row->peer_us[peer] < fastest)) {
            fastest = row->peer_us[peer];
            row->best_ratio = row->ratio[peer];
        }
    }
}

static rung_status time_all(lab_bench *bench, const arrangement *x, runner *runners, int count, lab_bench_row *row)
{
    lab_contender contenders[LAB_CONTENDERS];
    lab_measure_options options = lab_measure_defaults(bench->place);
    options.sets = x->sets;
    options.graph = bench->options.graph;
    if (bench->options.budget_s > 0.0)
        options.budget_s = bench->options.budget_s;
    for (int i = 0; i < count; i++)
        contenders[i] = (lab_contender){run_set, &runners[i]};
    return lab_measure(bench->place, &bench->monitor, contenders, count, &options, &row->time);
}

/* Returns the larger of two times: the arithmetic's at the FMA peak, and the bytes' at full bandwidth. */
static void set_floor(lab_bench *bench, int peers_end, lab_bench_row *row)
{
    double memory_us = row->floor_measured ? row->time.us[peers_end].median : 0.0;
    const lab_shape *shape = &row->shape;
    double old_c = bench->options.beta == 0.0f ? 0.0 : 4.0 * (double)shape->m * (double)shape->n * (double)shape->batch;
    if (bench->place->tools) {
        const rung_tools_machine *machine = rung_tools_describe(bench->place->tools);
        bench->peak_gflops = machine->fma_gflops;
        if (machine->memory_gbytes_per_s > 0.0)
            memory_us = (lab_shape_bytes(shape) + old_c) / machine->memory_gbytes_per_s * 1e-3;
    } else {
        bench->peak_gflops = fmax(bench->peak_gflops, lab_cpu_peak_gflops(bench->context, bench->place->threads));
    }
    row->floor_us = fmax(memory_us, lab_shape_flops(shape) / bench->peak_gflops * 1e-3);
}

static rung_status bench_plan(lab_bench *bench, arrangement *x, rung_plan *plan, lab_bench_row *row)
{
    runner runners[LAB_CONTENDERS] = {{plan, NULL, x, 0}};
    int which[LAB_CONTENDERS] = {0}, count;
    double vendor_u = 0.0;
    const rung_kernel *kernel = rung_kernel_find(row->kernel);
    if (!bench->options.unverified) {
        LAB_TRY(check(bench, x, &runners[0], &row->error_u, &row->chain_u));
        LAB_TRY(check_call(bench, x, &runners[0], row));
    }
    LAB_TRY(prepare_peers(bench, x, runners, which, &count, row));
    for (int i = 0; i < bench->peer_count; i++)
        if (strcmp(bench->peers[i].name, "cublas_tf32") != 0)
            vendor_u = fmax(vendor_u, row->peer_error_u[i]);
    if (!bench->options.unverified)
        row->bound_u = lab_bound_u(kernel, kernel ? kernel->arith : RUNG_F32, row->shape.k, row->chain_u, vendor_u);
    const lab_shape *shape = &row->shape;
    row->floor_measured = !bench->place->tools && (shape->m <= LAB_SKINNY || shape->n <= LAB_SKINNY) &&
                          shape->batch == 1 && lab_shape_bytes(shape) > TRAFFIC_BYTES;
    if (row->floor_measured)
        runners[count] = (runner){NULL, NULL, x, bench->place->threads};
    LAB_TRY(time_all(bench, x, runners, count + row->floor_measured, row));
    set_floor(bench, count, row);
    fill_row(bench, row, which, count);
    return RUNG_SUCCESS;
}

int lab_bench_wrong(const lab_bench_row *row, char *why, size_t bytes)
{
    if (row->wrong[0])
        snprintf(why, bytes, "%s", row->wrong);
    else if (!(row->error_u <= row->bound_u))
        snprintf(why, bytes, "errs %.4g u, the bound is %.4g u", row->error_u, row->bound_u);
    else
        return 0;
    return 1;
}

rung_status lab_bench_shape(lab_bench *bench, const lab_shape *shape, lab_bench_row *row)
{
    arrangement x;
    rung_plan *plan;
    memset(row, 0, sizeof *row);
    row->shape = *shape;
    LAB_TRY(lab_sizes_check(shape->m, shape->n, shape->k, shape->batch, bench->options.pad + shape->pad));
    arrange(bench, shape, &x);
    LAB_TRY(lab_sizes_check(shape->m, shape->n, shape->k, shape->batch * x.sets, bench->options.pad + shape->pad));
    row->sets = x.sets;
    LAB_TRY(fill_sets(bench, &x));
    const rung_kernel *kernel = bench->options.kernel;
    LAB_TRY(kernel ? rung_plan_create_kernel(&plan, bench->context, &x.gemm, kernel->name)
                   : rung_plan_create(&plan, bench->context, &x.gemm));
    snprintf(row->kernel, sizeof row->kernel, "%s", rung_plan_kernel(plan));
    rung_status status = bench_plan(bench, &x, plan, row);
    rung_plan_destroy(plan);
    return status;
}
