/* Tells what several GPUs of a process move and launch for drawn products and copies between layouts, in front of the
 * stand-in for libcuda: bytes that come to devices, a sum over all that launches, copies and fills are given, one over
 * the names of the driver's calls in their order, and one over the spans that tracing shows; and what is said where one
 * of the driver's calls fails, and done when the same is asked for again. tests/gpu/launches.sh
 * compares this with results/moves-gpu.txt. usage: moves STAND_IN [every] (every: also what is summed up in a line) */
#include "../gpu/fake_libcuda.h"
#include "../gpu/sums.h"
#include "rung_multi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, PART_FLOATS = 1 << 20, HOST_FLOATS = 1 << 20 };

static fake *gpu;
static uint64_t dice = 1;
static char said[2048];

static int draw(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (uint64_t)below);
}

static int64_t draw_size(void)
{
    int64_t least = (int64_t)1 << draw(9);
    return least + draw((int)least);
}

static uint64_t mix_number(uint64_t sum, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return mix_text(sum, text);
}

/* ---- drawn matrices ---- */

static rung_matrix draw_matrix(int64_t m, int64_t n, int ranks)
{
    rung_matrix d;
    const int rows = 1 + draw(ranks), cols = 1 + draw(ranks / rows);
    rung_matrix_init(&d, m, n, draw(3) ? 1 + draw(70) : m, draw(3) ? 1 + draw(70) : n, rows, cols);
    if (draw(3) == 0)
        d.row_source = draw(rows), d.col_source = draw(cols);
    d.ld += draw(3) ? 0 : draw(5);
    return d;
}

static void say_matrix(const rung_matrix *d)
{
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, " %lldx%lld blocks %lldx%lld grid %dx%d from %d,%d ld %lld",
             (long long)d->m, (long long)d->n, (long long)d->mb, (long long)d->nb, d->grid_rows, d->grid_cols,
             d->row_source, d->col_source, (long long)d->ld);
}

/* ---- what happens ---- */

static void begin(rung_multi *multi)
{
    rung_multi_trace(multi, 1);
    gpu->launched[0] = gpu->log[0] = 0;
    gpu->given = 0;
    gpu->moved_bytes = 0;
}

static void say_end(rung_multi *multi, rung_status status)
{
    const rung_span *spans;
    uint64_t lanes = 1;
    const uint64_t given = gpu->given, log = mix_text(1, gpu->log);
    const int64_t moved = gpu->moved_bytes;
    const int count = rung_multi_spans(multi, &spans);
    for (int i = 0; i < count; i++)
        lanes = mix_text(mix_text(mix_number(lanes, spans[i].rank), spans[i].lane), spans[i].what);
    if (rung_multi_trace(multi, 0) != RUNG_SUCCESS || rung_multi_spans(multi, &spans) != count)
        gpu->faults++; /* turned off, a trace keeps what it has */
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, ": %s moved %lld given %08x calls %08x %d spans %08x",
             status == RUNG_SUCCESS ? "done," : rung_last_error(), (long long)moved, folded(given), folded(log), count,
             folded(lanes));
}

static int may_be_fast; /* one kind also draws fast mode, whose kernels are of three sorts of arithmetic */

static rung_multi *open_ranks(int ranks, int64_t memory_bytes)
{
    static const char *const panels[] = {"96", "8192", "64"};
    rung_multi *multi;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.ranks = ranks;
    config.memory_bytes = memory_bytes;
    config.math = (rung_math)draw(may_be_fast ? 3 : 2);
    const int which = draw(3), hopper = draw(2);
    const int devices[RANKS] = {RANKS * hopper, RANKS * hopper + 1, RANKS * hopper + 2, RANKS * hopper + 3};
    config.devices = devices;
    gpu->arch = hopper ? 90 : 80; /* what a device is like is asked once */
    setenv("RUNG_MULTI_PANEL", panels[which], 1);
    snprintf(said, sizeof said, "%s %d ranks sm_%d panels %s:",
             config.math == RUNG_STRICT ? "strict"
             : config.math == RUNG_FAST ? "fast"
                                        : "accurate",
             ranks, gpu->arch, panels[which]);
    if (rung_multi_create(&multi, &config) != RUNG_SUCCESS)
        exit(2);
    return multi;
}

/* What is done over and over, with the same operands. */
typedef struct task {
    rung_multi *multi;
    int what, root, trans_a, trans_b;
    int64_t m, n, k, from, ld[3];
    float beta;
    rung_layout layout;
    rung_matrix d[3];
    float *const *at[3];
    float *whole[3];
} task;

enum { PRODUCT, REDISTRIBUTE, SCATTER, GATHER, FROM_HOST };

static rung_status perform(const task *t)
{
    const rung_transpose ta = t->trans_a ? RUNG_TRANS : RUNG_NO_TRANS, tb = t->trans_b ? RUNG_TRANS : RUNG_NO_TRANS;
    const rung_matrix *d = t->d;
    const float *const *a = (const float *const *)t->at[0], *const *b = (const float *const *)t->at[1];
    switch (t->what) {
    case PRODUCT:
        return rung_psgemm(t->multi, ta, tb, t->m, t->n, t->k, 0.5f, a, t->from, 1, &d[0], b, 1, t->from, &d[1],
                           t->beta, t->at[2], t->from, t->from, &d[2]);
    case REDISTRIBUTE:
        return rung_redistribute(t->multi, d[0].m < d[1].m ? d[0].m : d[1].m, d[0].n < d[1].n ? d[0].n : d[1].n, a, 1,
                                 1, &d[0], t->at[1], 1, 1, &d[1]);
    case SCATTER: return rung_scatter(t->multi, t->root, t->whole[0], d[0].m, t->at[0], &d[0]);
    case GATHER: return rung_gather(t->multi, t->root, a, &d[0], t->whole[0], d[0].m);
    default:
        return rung_multi_sgemm(t->multi, t->layout, ta, tb, t->m, t->n, t->k, 0.5f, t->whole[0], t->ld[0], t->whole[1],
                                t->ld[1], t->beta, t->whole[2], t->ld[2]);
    }
}

/* One of the driver's calls fails, and the same is done again with the same ranks. */
static void perform_failing(const task *t)
{
    static const int results[] = {1, 2, 700, 719};
    begin(t->multi);
    gpu->calls = 0;
    perform(t);
    const long calls = gpu->calls;
    gpu->calls = 0;
    gpu->fail_call = 1 + draw((int)calls);
    gpu->fail_result = results[draw(4)];
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, " call %ld of %ld gives %d", gpu->fail_call, calls, gpu->fail_result);
    gpu->launched[0] = gpu->log[0] = 0;
    gpu->given = 0;
    gpu->moved_bytes = 0;
    rung_status status = perform(t);
    gpu->fail_call = 0;
    say_end(t->multi, status);
    begin(t->multi);
    say_end(t->multi, perform(t));
}

static void perform_and_say(const task *t, int fails)
{
    if (fails) {
        perform_failing(t);
        return;
    }
    begin(t->multi);
    say_end(t->multi, perform(t));
}

static void draw_distributed(int what, int fails)
{
    const int ranks = 1 + draw(RANKS);
    rung_multi *multi = open_ranks(ranks, 0);
    task t = {.multi = multi, .what = what, .trans_a = draw(2), .trans_b = draw(2)};
    const int edge = draw(2) ? 0 : 7;
    t.m = draw_size(), t.n = draw_size(), t.k = draw(30) ? draw_size() : 0;
    const int64_t rows[] = {t.trans_a ? t.k : t.m, t.trans_b ? t.n : t.k, t.m},
                  cols[] = {t.trans_a ? t.m : t.k, t.trans_b ? t.k : t.n, t.n};
    void *parts[3][RANKS];
    for (int i = 0; i < 3; i++) {
        t.d[i] = draw_matrix(edge + (rows[i] > 0 ? rows[i] : 1), edge + (cols[i] > 0 ? cols[i] : 1), ranks);
        for (int r = 0; r < ranks; r++)
            if (rung_multi_alloc(multi, r, (int64_t)PART_FLOATS * 4, &parts[i][r]))
                exit(2);
        t.at[i] = (float *const *)parts[i];
    }
    t.from = edge ? 1 + draw(edge) : 1;
    const char *const names[] = {" product", " redistribute", " scatter", " gather"};
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s %c%c %lldx%lldx%lld at %lld", names[what], t.trans_a ? 'T' : 'N',
             t.trans_b ? 'T' : 'N', (long long)t.m, (long long)t.n, (long long)t.k, (long long)t.from);
    for (int i = 0; i < (what == PRODUCT ? 3 : what == REDISTRIBUTE ? 2 : 1); i++)
        say_matrix(&t.d[i]);
    if (what == PRODUCT)
        t.beta = draw(2) ? 0.0f : 2.0f;
    if (what == SCATTER || what == GATHER) {
        t.whole[0] = calloc(HOST_FLOATS, sizeof(float));
        t.root = draw(ranks);
    }
    perform_and_say(&t, fails);
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < ranks; r++)
            rung_multi_free(multi, r, parts[i][r]);
    rung_multi_destroy(multi);
    free(t.whole[0]);
}

static void draw_from_host(int fails)
{
    static const int64_t memories[] = {0, 1 << 19, 1 << 20, 3 << 20};
    const int64_t memory = memories[draw(4)];
    rung_multi *multi = open_ranks(1 + draw(RANKS), memory);
    const int row = draw(2), trans_a = draw(2), trans_b = draw(2), pinned = draw(2), pad = draw(3);
    task t = {.multi = multi, .what = FROM_HOST, .trans_a = trans_a, .trans_b = trans_b};
    t.layout = row ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR;
    t.m = draw_size(), t.n = draw_size(), t.k = draw_size();
    t.ld[0] = (row != trans_a ? t.k : t.m) + pad, t.ld[1] = (row != trans_b ? t.n : t.k) + pad,
    t.ld[2] = (row ? t.n : t.m) + pad;
    for (int i = 0; i < 3; i++) {
        if (pinned && rung_multi_host_alloc(multi, (int64_t)HOST_FLOATS * 4, (void **)&t.whole[i]))
            exit(2);
        if (!pinned)
            t.whole[i] = calloc(HOST_FLOATS, sizeof(float));
    }
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, " from %s memory, %lld bytes a GPU, %s %c%c %lldx%lldx%lld pad %d",
             pinned ? "pinned" : "host", (long long)memory, row ? "row" : "col", trans_a ? 'T' : 'N',
             trans_b ? 'T' : 'N', (long long)t.m, (long long)t.n, (long long)t.k, pad);
    t.beta = draw(2) ? 0.0f : 2.0f;
    perform_and_say(&t, fails);
    for (int i = 0; i < 3; i++) {
        if (pinned)
            rung_multi_host_free(multi, t.whole[i]);
        else
            free(t.whole[i]);
    }
    rung_multi_destroy(multi);
}

int main(int count, char **words)
{
    enum { PRINTED = 12, SUMMED_UP = 150, MORE_FAIL = 600, KINDS = 7, FAST = 5, FAILS = 6 };
    static const char *const kinds[KINDS] = {"product", "redistribute", "scatter", "gather", "host", "fast", "fails"};
    void *stand_in = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
    const int every = count > 2 && strcmp(words[2], "every") == 0;
    fake_state_function *state;
    *(void **)&state = stand_in ? dlsym(stand_in, "fake_state") : NULL;
    if (!state)
        return 2;
    setenv("RUNG_LIBCUDA", words[1], 1);
    setenv("RUNG_MULTI_WAVE", "5000", 1);
    gpu = state();
    gpu->devices = 2 * RANKS;      /* the second half of them are Hoppers */
    gpu->idle = gpu->in_order = 1; /* nothing is computed */
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t all = 1;
        const int summed_up = kind == FAILS ? MORE_FAIL : SUMMED_UP;
        for (int i = 0; i < PRINTED + summed_up; i++) {
            const int fails = kind == FAILS, what = fails ? i % FAST : kind % FAST;
            may_be_fast = kind == FAST;
            what == FROM_HOST ? draw_from_host(fails) : draw_distributed(what, fails);
            if (i < PRINTED || every)
                printf("%s %s\n", kinds[kind], said);
            if (i >= PRINTED)
                all = mix_text(all, said);
        }
        printf("%s %d more %08x\n", kinds[kind], summed_up, folded(all));
    }
    const int open = gpu->memory + gpu->pinned + gpu->streams + gpu->events + gpu->graphs; /* a GPU keeps its pool */
    printf("end: %d faults, %d still open\n", gpu->faults, open);
    return gpu->faults || open;
}
