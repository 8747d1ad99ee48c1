/* Tells what several GPUs of a process move and launch for drawn products and copies between layouts, in front of the
 * stand-in for libcuda: bytes that come to devices, a sum over all that launches, copies and fills are given, one over
 * the names of the driver's calls in their order, and one over the spans that tracing shows. tests/gpu/launches.sh
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
static char said[1024];

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
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, ": %s moved %lld given %08x calls %08x %d spans %08x",
             status == RUNG_SUCCESS ? "done," : rung_last_error(), (long long)moved, folded(given), folded(log), count,
             folded(lanes));
}

static int may_be_fast; /* the last kind also draws fast mode, whose kernels are of three sorts of arithmetic */

static rung_multi *open_ranks(int ranks, int64_t memory_bytes)
{
    static const char *const panels[] = {"96", "8192", "64,96:32:160"};
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

static void draw_distributed(int what)
{
    const int ranks = 1 + draw(RANKS);
    rung_multi *multi = open_ranks(ranks, 0);
    const int trans_a = draw(2), trans_b = draw(2), edge = draw(2) ? 0 : 7;
    const int64_t m = draw_size(), n = draw_size(), k = draw(30) ? draw_size() : 0;
    const int64_t rows[] = {trans_a ? k : m, trans_b ? n : k, m}, cols[] = {trans_a ? m : k, trans_b ? k : n, n};
    rung_matrix d[3];
    void *parts[3][RANKS];
    float *whole = NULL;
    rung_status status = RUNG_INTERNAL;
    for (int i = 0; i < 3; i++) {
        d[i] = draw_matrix(edge + (rows[i] > 0 ? rows[i] : 1), edge + (cols[i] > 0 ? cols[i] : 1), ranks);
        for (int r = 0; r < ranks; r++)
            if (rung_multi_alloc(multi, r, (int64_t)PART_FLOATS * 4, &parts[i][r]))
                exit(2);
    }
    float *const *at[3] = {(float *const *)parts[0], (float *const *)parts[1], (float *const *)parts[2]};
    const int64_t from = edge ? 1 + draw(edge) : 1;
    const char *const names[] = {" product", " redistribute", " scatter", " gather"};
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s %c%c %lldx%lldx%lld at %lld", names[what], trans_a ? 'T' : 'N',
             trans_b ? 'T' : 'N', (long long)m, (long long)n, (long long)k, (long long)from);
    for (int i = 0; i < (what == 0 ? 3 : what == 1 ? 2 : 1); i++)
        say_matrix(&d[i]);
    if (what > 1)
        whole = calloc(HOST_FLOATS, sizeof *whole);
    begin(multi);
    if (what == 0)
        status = rung_psgemm(multi, trans_a ? RUNG_TRANS : RUNG_NO_TRANS, trans_b ? RUNG_TRANS : RUNG_NO_TRANS, m, n, k,
                             0.5f, (const float *const *)at[0], from, 1, &d[0], (const float *const *)at[1], 1, from,
                             &d[1], draw(2) ? 0.0f : 2.0f, at[2], from, from, &d[2]);
    else if (what == 1)
        status = rung_redistribute(multi, d[0].m < d[1].m ? d[0].m : d[1].m, d[0].n < d[1].n ? d[0].n : d[1].n,
                                   (const float *const *)at[0], 1, 1, &d[0], at[1], 1, 1, &d[1]);
    else if (what == 2)
        status = rung_scatter(multi, draw(ranks), whole, d[0].m, at[0], &d[0]);
    else
        status = rung_gather(multi, draw(ranks), (const float *const *)at[0], &d[0], whole, d[0].m);
    say_end(multi, status);
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < ranks; r++)
            rung_multi_free(multi, r, parts[i][r]);
    rung_multi_destroy(multi);
    free(whole);
}

static void draw_from_host(void)
{
    static const int64_t memories[] = {0, 1 << 19, 1 << 20, 3 << 20};
    const int64_t memory = memories[draw(4)];
    rung_multi *multi = open_ranks(1 + draw(RANKS), memory);
    const int row = draw(2), trans_a = draw(2), trans_b = draw(2), pinned = draw(2), pad = draw(3);
    const int64_t m = draw_size(), n = draw_size(), k = draw_size();
    float *at[3];
    for (int i = 0; i < 3; i++) {
        if (pinned && rung_multi_host_alloc(multi, (int64_t)HOST_FLOATS * 4, (void **)&at[i]))
            exit(2);
        if (!pinned)
            at[i] = calloc(HOST_FLOATS, sizeof(float));
    }
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, " from %s memory, %lld bytes a GPU, %s %c%c %lldx%lldx%lld pad %d",
             pinned ? "pinned" : "host", (long long)memory, row ? "row" : "col", trans_a ? 'T' : 'N',
             trans_b ? 'T' : 'N', (long long)m, (long long)n, (long long)k, pad);
    begin(multi);
    rung_status status =
        rung_multi_sgemm(multi, row ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR, trans_a ? RUNG_TRANS : RUNG_NO_TRANS,
                         trans_b ? RUNG_TRANS : RUNG_NO_TRANS, m, n, k, 0.5f, at[0], (row != trans_a ? k : m) + pad,
                         at[1], (row != trans_b ? n : k) + pad, draw(2) ? 0.0f : 2.0f, at[2], (row ? n : m) + pad);
    say_end(multi, status);
    for (int i = 0; i < 3; i++) {
        if (pinned)
            rung_multi_host_free(multi, at[i]);
        else
            free(at[i]);
    }
    rung_multi_destroy(multi);
}

int main(int count, char **words)
{
    enum { PRINTED = 12, SUMMED_UP = 150, KINDS = 6 };
    static const char *const kinds[KINDS] = {"product", "redistribute", "scatter", "gather", "host", "fast"};
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
        for (int i = 0; i < PRINTED + SUMMED_UP; i++) {
            may_be_fast = kind == 5;
            kind == 4 ? draw_from_host() : draw_distributed(kind % 5);
            if (i < PRINTED || every)
                printf("%s %s\n", kinds[kind], said);
            if (i >= PRINTED)
                all = mix_text(all, said);
        }
        printf("%s %d more %08x\n", kinds[kind], SUMMED_UP, folded(all));
    }
    const int open = gpu->memory + gpu->pinned + gpu->streams + gpu->events + gpu->graphs; /* a GPU keeps its pool */
    printf("end: %d faults, %d still open\n", gpu->faults, open);
    return gpu->faults || open;
}
