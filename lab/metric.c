/* Each metric is a row: its name, its words, how it is counted, and which accesses answer for it. */
#include "lab/metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct figures {
    const lab_metric_run *run;
    const char *array;
    lab_lens_totals totals;
} figures;

typedef int (*chooser)(const rung_lens_site *site);

typedef struct metric {
    const char *name, *words;
    double (*value)(const figures *f);
    chooser blames; /* the accesses whose worst line is to blame; NULL: none */
} metric;

static int is_global_load(const rung_lens_site *s)
{
    return s->space == RUNG_LENS_GLOBAL && (s->kind == RUNG_LENS_LOAD || s->kind == RUNG_LENS_ASYNC);
}

static int is_global_store(const rung_lens_site *s)
{
    return s->space == RUNG_LENS_GLOBAL && s->kind == RUNG_LENS_STORE;
}

static int is_shared(const rung_lens_site *s)
{
    return s->space == RUNG_LENS_SHARED && s->wavefronts > 0 && s->kind != RUNG_LENS_MMA;
}

static int is_shared_load(const rung_lens_site *s)
{
    return is_shared(s) && s->kind == RUNG_LENS_LOAD;
}

/* Returns whether a site has that name: "@12" names the accesses of line 12, anything else an operand or shared array.
 */
static int is_named(const rung_lens_site *s, const char *array)
{
    if (array[0] == '@')
        return s->line == atoi(array + 1);
    return array[0] == 0 || strcmp(s->name, array) == 0;
}

static double cost(const rung_lens_site *s)
{
    return (s->space == RUNG_LENS_GLOBAL ? s->sectors : s->wavefronts) / s->requests;
}

/* Finds the most expensive request of a kind. It returns NULL where there is none. */
static const rung_lens_site *worst(chooser chooses, const char *array)
{
    const rung_lens_site *most = NULL;
    for (int i = 0; i < lab_lens_launches(); i++) {
        const rung_lens_launch *l = lab_lens_launch(i);
        for (int j = 0; j < l->site_count; j++)
            if (chooses(&l->sites[j]) && is_named(&l->sites[j], array) && (!most || cost(&l->sites[j]) > cost(most)))
                most = &l->sites[j];
    }
    return most;
}

static double worst_cost(chooser chooses, const char *array)
{
    const rung_lens_site *site = worst(chooses, array);
    return site ? cost(site) : NAN;
}

/* Adds one field over the sites of a kind. */
static double sum_over(chooser chooses, const char *array, double (*field)(const rung_lens_site *))
{
    double sum = 0;
    for (int i = 0; i < lab_lens_launches(); i++) {
        const rung_lens_launch *l = lab_lens_launch(i);
        for (int j = 0; j < l->site_count; j++)
            if (chooses(&l->sites[j]) && is_named(&l->sites[j], array))
                sum += field(&l->sites[j]);
    }
    return sum;
}

static double requests_of(const rung_lens_site *s)
{
    return s->requests;
}

static double lost_of(const rung_lens_site *s)
{
    return s->merged_wavefronts - s->merged_ideal;
}

static int has_conflicts(const rung_lens_site *s)
{
    return is_shared(s) && lost_of(s) > 0;
}

static int is_atomic(const rung_lens_site *s)
{
    return s->space == RUNG_LENS_GLOBAL && s->kind == RUNG_LENS_ATOMIC;
}

static int is_copy(const rung_lens_site *s)
{
    return s->space == RUNG_LENS_GLOBAL && s->kind == RUNG_LENS_ASYNC;
}

static double warp_fmas(const figures *f)
{
    return f->run->products / 32;
}

static const rung_lens_launch *first_launch(void)
{
    return lab_lens_launches() > 0 ? lab_lens_launch(0) : NULL;
}

/* ---- the metrics ---- */

static double sectors_per_load(const figures *f)
{
    return worst_cost(is_global_load, f->array);
}

static double sectors_per_store(const figures *f)
{
    return worst_cost(is_global_store, f->array);
}

static double load_requests_per_fma(const figures *f)
{
    return sum_over(is_global_load, f->array, requests_of) / warp_fmas(f);
}

static double passes_per_fma(const figures *f)
{
    return f->totals.shared_load_wavefronts / warp_fmas(f);
}

static double passes_per_load(const figures *f)
{
    return worst_cost(is_shared_load, f->array);
}

static double conflict_passes(const figures *f)
{
    return sum_over(is_shared, f->array, lost_of);
}

static double intensity(const figures *f)
{
    return f->totals.global_load_bytes > 0 ? 2 * f->run->products / f->totals.global_load_bytes : NAN;
}

static double barriers(const figures *f)
{
    const rung_lens_launch *l = first_launch();
    return l ? f->totals.barriers / (double)l->blocks : NAN;
}

static double shuffles(const figures *f)
{
    const rung_lens_launch *l = first_launch();
    (void)f;
    return l ? l->shuffles / ((double)l->blocks * ((l->threads + 31) / 32)) : NAN;
}

static double atomics(const figures *f)
{
    return sum_over(is_atomic, f->array, requests_of);
}

static double copies(const figures *f)
{
    return sum_over(is_copy, f->array, requests_of);
}

static double blocks(const figures *f)
{
    const rung_lens_launch *l = first_launch();
    (void)f;
    return l ? (double)l->blocks : NAN;
}

static double error_u(const figures *f)
{
    return f->run->error_u;
}

/* Compares the workspace that is written and read again with the operands themselves. */
static double extra_traffic(const figures *f)
{
    const lab_lens_case *c = f->run->of;
    double own = (double)c->m * (double)c->k + (double)c->k * (double)c->n + (double)c->m * (double)c->n;
    return 2.0 * (c->parts > 1 ? c->parts : 0) * (double)c->m * (double)c->n / own;
}

static void occupancy_on(const lab_chip *chip, const figures *f, lab_occupancy *o)
{
    const rung_lens_launch *l = first_launch();
    lab_resources resources = {.registers = f->run->registers, .static_shared_bytes = l->static_shared_bytes};
    lab_occupancy_of(chip, &resources, (int)l->threads, l->dynamic_shared_bytes, o);
    if (l->static_shared_bytes + l->dynamic_shared_bytes > chip->shared_per_block_bytes)
        o->blocks = o->percent = 0;
}

/* Takes the least over the chips. */
static double least(const figures *f, int percent)
{
    double least = NAN;
    lab_occupancy o;
    for (int i = 0; i < f->run->chip_count && first_launch(); i++) {
        occupancy_on(f->run->chips[i], f, &o);
        double value = percent ? o.percent : o.blocks;
        least = isnan(least) || value < least ? value : least;
    }
    return least;
}

static double occupancy(const figures *f)
{
    return least(f, 1);
}

static double blocks_per_sm(const figures *f)
{
    return least(f, 0);
}

static const metric metrics[] = {
    {"sectors_per_load", "sectors a global load request", sectors_per_load, is_global_load},
    {"sectors_per_store", "sectors a global store request", sectors_per_store, is_global_store},
    {"load_requests_per_fma", "global load requests an FMA of a warp", load_requests_per_fma, NULL},
    {"passes_per_fma", "shared load passes an FMA of a warp", passes_per_fma, is_shared_load},
    {"passes_per_load", "passes a shared load request", passes_per_load, is_shared_load},
    {"conflict_passes", "shared passes lost to bank conflicts", conflict_passes, has_conflicts},
    {"intensity", "FLOP a byte loaded from global memory", intensity, NULL},
    {"barriers", "barriers a block", barriers, NULL},
    {"shuffles", "shuffles a warp", shuffles, NULL},
    {"atomics", "atomic requests", atomics, is_atomic},
    {"copies", "requests of asynchronous copies", copies, NULL},
    {"blocks", "blocks", blocks, NULL},
    {"error_u", "units of error", error_u, NULL},
    {"extra_traffic", "bytes of partial sums a byte of operands", extra_traffic, NULL},
    {"occupancy", "percent occupancy", occupancy, NULL},
    {"blocks_per_sm", "blocks on one multiprocessor", blocks_per_sm, NULL},
};

static const metric *find(const char *name)
{
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
        if (strcmp(metrics[i].name, name) == 0)
            return &metrics[i];
    return NULL;
}

const char *lab_metric_words(const char *name)
{
    const metric *m = find(name);
    return m ? m->words : NULL;
}

double lab_metric_value(const char *name, const char *array, const lab_metric_run *run)
{
    const metric *m = find(name);
    figures f = {.run = run, .array = array};
    lab_lens_sum(&f.totals);
    return m ? m->value(&f) : NAN;
}

/* ---- why a figure is as it is ---- */

static double would_do(const rung_lens_site *s)
{
    return s->space == RUNG_LENS_GLOBAL ? ceil(s->bytes_used / s->requests / 32) : s->ideal_wavefronts / s->requests;
}

static const char *verb_of(const rung_lens_site *s)
{
    return s->kind == RUNG_LENS_STORE ? "write" : "read";
}

/* Tells how lane 1's element lies to lane 0's. */
static void global_pattern(const rung_lens_site *s, char *text, size_t bytes)
{
    int64_t rows = s->sample_row[1] - s->sample_row[0], columns = s->sample_column[1] - s->sample_column[0];
    int64_t apart = s->sample_offset[1] - s->sample_offset[0];
    text[0] = 0;
    if ((s->sample_mask & 3) != 3)
        return;
    if (s->sample_row[0] < 0)
        snprintf(text, bytes, ": neighbouring lanes %s %lld bytes apart", verb_of(s), (long long)apart);
    else if (rows == 1 && columns == 0)
        snprintf(text, bytes, ": neighbouring lanes %s neighbouring rows", verb_of(s));
    else if (rows != 0)
        snprintf(text, bytes, ": neighbouring lanes %s different rows, %lld apart", verb_of(s), (long long)rows);
    else if (llabs(columns) * 4 > s->bytes)
        snprintf(text, bytes, ": neighbouring lanes %s columns %lld apart", verb_of(s), (long long)columns);
    else if (columns * 4 == s->bytes && s->sample_offset[0] % 32 != 0)
        snprintf(text, bytes, ": the lanes %s side by side, but from byte %lld of a sector on", verb_of(s),
                 (long long)(s->sample_offset[0] % 32));
}

/* Finds two lanes that want different words of one bank. */
static void shared_pattern(const rung_lens_site *s, char *text, size_t bytes)
{
    int together = s->bytes <= 4 ? 32 : s->bytes == 8 ? 16 : 8;
    text[0] = 0;
    for (int i = 0; i < RUNG_LENS_LANES; i++)
        for (int j = i + 1; j < RUNG_LENS_LANES && j / together == i / together; j++) {
            int64_t a = s->sample_offset[i] / 4, b = s->sample_offset[j] / 4;
            if (!(s->sample_mask >> i & 1) || !(s->sample_mask >> j & 1) || a == b || (b - a) % 32 != 0)
                continue;
            snprintf(text, bytes, ": lanes %d and %d want words %lld apart, which lie in the same bank", i, j,
                     (long long)(b > a ? b - a : a - b));
            return;
        }
}

void lab_metric_why(const char *name, const char *array, char *text, size_t bytes)
{
    const metric *m = find(name);
    const rung_lens_site *s = m && m->blames ? worst(m->blames, array) : NULL;
    char pattern[160];
    text[0] = 0;
    if (!s || s->line <= 0)
        return;
    if (s->space == RUNG_LENS_GLOBAL)
        global_pattern(s, pattern, sizeof pattern);
    else
        shared_pattern(s, pattern, sizeof pattern);
    if (cost(s) <= would_do(s) + 0.01)
        snprintf(text, bytes, "the dearest is line %d: its access to %s takes %.4g %s a request", s->line, s->name,
                 cost(s), s->space == RUNG_LENS_GLOBAL ? "sectors" : "passes");
    else
        snprintf(text, bytes, "line %d asks %s for %.4g %s a request, %.4g would do%s", s->line, s->name, cost(s),
                 s->space == RUNG_LENS_GLOBAL ? "sectors" : "passes", would_do(s), pattern);
}
