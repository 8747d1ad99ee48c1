/* Checks and times sums. */
#define _GNU_SOURCE
#include "lab/reduce.h"
#include "lab/check.h"
#include "lab/library.h"
#include "lab/names.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 10, MOST_SETS = 256 };

/* Opens CUB's peer, which lies beside librung or where RUNG_CUB says. */
static void open_cub(lab_reduce *r)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    const char *named = lab_named("RUNG_CUB");
    lab_library_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/librung_lab_cub.so", folder);
    void *library = dlopen(named ? named : path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&r->cub = dlsym(library, "rung_cub_sum");
    if (!r->cub)
        snprintf(r->cub_missing, sizeof r->cub_missing,
                 "CUB was not found: %.200s (a build with nvcc and a C++ compiler makes it)", dlerror());
}

rung_status lab_reduce_open(lab_reduce *r, lab_place *place)
{
    memset(r, 0, sizeof *r);
    r->place = place;
    lab_monitor_open(&r->monitor, place);
    if (place->tools)
        open_cub(r);
    LAB_TRY(lab_buffer_reserve(place, &r->results, REPEATS * 4));
    return lab_place_context(place, RUNG_STRICT, &r->context);
}

void lab_reduce_close(lab_reduce *r)
{
    if (!r->place)
        return;
    lab_buffer_free(r->place, &r->x);
    lab_buffer_free(r->place, &r->results);
    lab_buffer_free(r->place, &r->cub_workspace);
    rung_context_destroy(r->context);
    lab_monitor_close(&r->monitor);
    memset(r, 0, sizeof *r);
}

static rung_status sum_once(lab_reduce *r, const char *kernel, int64_t n, const float *x, float *result)
{
    return kernel ? rung_tools_reduce(r->place->tools, kernel, n, x, result) : rung_ssum(r->context, n, x, result);
}

static rung_status cub_once(lab_reduce *r, int64_t n, const float *x, float *result)
{
    size_t bytes = r->cub_workspace.bytes;
    int code = r->cub(r->cub_workspace.at, &bytes, x, result, n, rung_tools_stream(r->place->tools));
    return code == 0 ? RUNG_SUCCESS : lab_fail(RUNG_DEVICE_ERROR, "CUB's sum of %lld returned %d", (long long)n, code);
}

static rung_status prepare_cub(lab_reduce *r, int64_t n)
{
    size_t bytes = 0;
    r->cub(NULL, &bytes, r->x.at, r->results.at, n, rung_tools_stream(r->place->tools));
    return lab_buffer_reserve(r->place, &r->cub_workspace, (int64_t)bytes);
}

static rung_status fill(lab_reduce *r, int64_t n, int64_t offset, lab_data data)
{
    LAB_TRY(lab_buffer_reserve(r->place, &r->x, (n + offset) * 4));
    int64_t lines = data <= LAB_NORMAL || n < 4096 ? 1 : n / 4096, length = lines > 0 ? n / lines : 0;
    lab_fill_args args = {{(float *)r->x.at + offset, length, 1}, lines, length, (uint64_t)n + 7, (int32_t)data};
    lab_fill_args rest = {{(float *)r->x.at + offset + lines * length, n, 1}, 1, n - lines * length, 3, (int32_t)data};
    LAB_TRY(lab_fill(r->place, &args));
    return lab_fill(r->place, &rest);
}

static rung_status judge(lab_reduce *r, const float *x, int64_t n, float result, double *error_u)
{
    lab_tally tally;
    LAB_TRY(lab_tally_begin(r->place));
    LAB_TRY(lab_sum(r->place, x, n));
    LAB_TRY(lab_tally_end(r->place, &tally));
    double error = lab_error_of(result, tally.sum, tally.magnitude);
    *error_u = error < 0.0 ? INFINITY : error;
    return RUNG_SUCCESS;
}

/* Returns what a sum may err. A rung may add one by one: then it is the classical bound of n - 1 additions. rung_ssum
 * adds in a tree: a few chains of length sqrt(n) at most, and errors of random sign. */
static double bound_u(const char *kernel, int64_t n)
{
    return kernel ? (double)n + 1.0 : 8.0 + sqrt(sqrt((double)n));
}

rung_status lab_reduce_check(lab_reduce *r, const char *kernel, int64_t n, int64_t offset, lab_data data,
                             lab_reduce_row *row)
{
    float results[REPEATS];
    LAB_TRY(fill(r, n, offset, data));
    const float *x = (const float *)r->x.at + offset;
    LAB_TRY(lab_pattern(r->place, r->results.at, LAB_POISON, REPEATS));
    for (int i = 0; i < REPEATS; i++)
        LAB_TRY(sum_once(r, kernel, n, x, (float *)r->results.at + i));
    LAB_TRY(lab_wait(r->place));
    LAB_TRY(lab_download(r->place, results, r->results.at, sizeof results));
    row->n = n;
    row->same_bits = 1;
    for (int i = 1; i < REPEATS; i++)
        row->same_bits &= memcmp(&results[i], &results[0], sizeof(float)) == 0;
    row->bound_u = bound_u(kernel, n);
    LAB_TRY(judge(r, x, n, results[0], &row->error_u));
    if (!r->cub || n == 0)
        return RUNG_SUCCESS;
    LAB_TRY(prepare_cub(r, n));
    LAB_TRY(cub_once(r, n, x, r->results.at));
    LAB_TRY(lab_download(r->place, results, r->results.at, sizeof(float)));
    return judge(r, x, n, results[0], &row->cub_error_u);
}

rung_status lab_reduce_edges(lab_reduce *r, const char *kernel, int *ran, int *failed, char *why, size_t why_bytes)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 31, 33, 255, 257, 1023, 1025, 4097, 65535, 1048577, 3000001};
    static const lab_data data[] = {LAB_SIGNED, LAB_SPIKE, LAB_SPECIAL};
    const int under_lens = r->place->tools && r->place->host_checks; /* where a million floats take seconds */
    for (int i = 0; i < (int)(sizeof sizes / sizeof sizes[0]) * 3; i++) {
        lab_reduce_row row = {0};
        int64_t n = sizes[i / 3], offset = i % 4;
        if (under_lens && n > 1 << 12)
            break;
        LAB_TRY(lab_reduce_check(r, kernel, n, offset, data[i % 3], &row));
        ++*ran;
        int bits_differ = !kernel && !row.same_bits; /* rung_ssum promises them; of a rung they are shown */
        if (row.error_u <= row.bound_u && !bits_differ)
            continue;
        if ((*failed)++ == 0)
            snprintf(why, why_bytes, "the sum of %lld floats (%s, offset %lld) errs %.4g u, the bound is %.4g u%s",
                     (long long)n, lab_data_names[data[i % 3]], (long long)offset, row.error_u, row.bound_u,
                     bits_differ ? ", and its bits differ from run to run" : "");
    }
    return RUNG_SUCCESS;
}

typedef struct runner {
    lab_reduce *reduce;
    const char *kernel;
    int64_t n, stride;
    int is_cub;
} runner;

static rung_status run_set(void *state, int set)
{
    const runner *x = state;
    const float *at = (const float *)x->reduce->x.at + x->stride * set;
    return x->is_cub ? cub_once(x->reduce, x->n, at, x->reduce->results.at)
                     : sum_once(x->reduce, x->kernel, x->n, at, x->reduce->results.at);
}

rung_status lab_reduce_time(lab_reduce *r, const char *kernel, int64_t n, lab_reduce_row *row)
{
    int64_t stride = (n + 63) & -64;
    lab_measure_options options = lab_measure_defaults(r->place);
    options.sets = (int)fmin(fmax(ceil(3.0 * (double)r->place->cache_bytes / ((double)stride * 4.0)), 2.0), MOST_SETS);
    if (!r->place->tools)
        options.sets = 2;
    if (r->budget_s > 0.0)
        options.budget_s = r->budget_s;
    LAB_TRY(fill(r, stride * options.sets, 0, LAB_SIGNED));
    runner ours = {r, kernel, n, stride, 0}, cub = {r, NULL, n, stride, 1};
    lab_contender contenders[] = {{run_set, &ours}, {run_set, &cub}};
    if (r->cub)
        LAB_TRY(prepare_cub(r, n));
    LAB_TRY(lab_measure(r->place, &r->monitor, contenders, r->cub ? 2 : 1, &options, &row->time));
    row->n = n;
    row->sets = options.sets;
    row->us = row->time.us[0].median;
    row->gbytes_per_s = (double)n * 4.0 / row->us * 1e-3;
    row->cub_us = r->cub ? row->time.us[1].median : 0.0;
    row->ratio = r->cub ? row->time.ratio[1].median : 0.0;
    return RUNG_SUCCESS;
}
