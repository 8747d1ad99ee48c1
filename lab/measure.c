/* Times several contenders on one place, in turn. */
#include "lab/measure.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST_CALLS = 2000, MOST_CPU_CALLS = 50000, MOST_GRAPH_CALLS = 256, MOST_DISCARDED = 50, TRIES = 12 };

static const double LONG_S = 0.1, LEAD_S = 0.02;

typedef struct timer {
    lab_place *place;
    const lab_measure_options *options;
    void *start, *stop;
    void *graphs[LAB_CONTENDERS];
    int calls[LAB_CONTENDERS];
    double host_us[LAB_CONTENDERS], last_s[LAB_CONTENDERS];
    int next_set; /* of all contenders: who took the set of the one before would find it in the caches */
    int disturbed;
} timer;

double lab_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

lab_measure_options lab_measure_defaults(const lab_place *place)
{
    if (place->tools)
        return (lab_measure_options){.sets = 1, .sample_s = 1e-3, .budget_s = 0.6, .least_rounds = 9, .quiet = 2e-3};
    return (lab_measure_options){.sets = 1, .sample_s = 2e-3, .budget_s = 2.0, .least_rounds = 9, .quiet = 5e-3};
}

static rung_status queue(timer *t, const lab_contender *contender, int calls)
{
    for (int i = 0; i < calls; i++) {
        LAB_TRY(contender->run(contender->state, t->next_set));
        t->next_set = (t->next_set + 1) % t->options->sets;
    }
    return RUNG_SUCCESS;
}

static rung_status queue_sample(timer *t, const lab_contender *contender, int which)
{
    if (t->graphs[which])
        return rung_tools_graph_launch(t->place->tools, t->graphs[which]);
    double start = lab_now_s();
    LAB_TRY(queue(t, contender, t->calls[which]));
    double us = (lab_now_s() - start) * 1e6 / t->calls[which];
    if (t->host_us[which] == 0.0 || us < t->host_us[which])
        t->host_us[which] = us;
    return RUNG_SUCCESS;
}

/* Takes one sample and gives its seconds. A GPU that has nothing to do notes the start's time at once and then waits
 * until the host has made the first call. So one call that isn't counted goes ahead, but not where it would cost more
 * than it mends. */
static rung_status sample(timer *t, const lab_contender *contender, int which, double *seconds)
{
    rung_tools *tools = t->place->tools;
    float ms;
    if (!tools) {
        double start = lab_now_s();
        LAB_TRY(queue(t, contender, t->calls[which]));
        *seconds = lab_now_s() - start;
        return RUNG_SUCCESS;
    }
    if (t->last_s[which] < LEAD_S)
        LAB_TRY(queue(t, contender, 1));
    LAB_TRY(rung_tools_event_record(tools, t->start));
    LAB_TRY(queue_sample(t, contender, which));
    LAB_TRY(rung_tools_event_record(tools, t->stop));
    LAB_TRY(rung_tools_event_elapsed(tools, t->start, t->stop, &ms));
    *seconds = t->last_s[which] = ms * 1e-3;
    return RUNG_SUCCESS;
}

/* Tells how often the system took a core away from this process so far. */
static long preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Takes a sample. On a CPU that others use too, a sample during which they got our core is taken again, right behind
 * the interruption, where the chance of a whole time slice is best. Long samples are never free of it: they are kept
 * after a few tries.
 */
static rung_status sample_undisturbed(timer *t, const lab_contender *contender, int which, double *seconds)
{
    for (int i = 0; i < TRIES; i++) {
        long before = preemptions();
        double start = lab_now_s();
        LAB_TRY(sample(t, contender, which, seconds));
        if (t->place->tools || preemptions() == before)
            break; /* a GPU's own events tell its time */
        t->disturbed++;
        if (lab_now_s() - start > LONG_S)
            break;
    }
    return RUNG_SUCCESS;
}

/* Doubles the calls until a sample is long enough. The first call warms up and is not counted. */
static rung_status calibrate(timer *t, const lab_contender *contender, int which)
{
    double seconds;
    int most = !t->place->tools ? MOST_CPU_CALLS : t->options->graph ? MOST_GRAPH_CALLS : MOST_CALLS;
    t->calls[which] = 1;
    LAB_TRY(sample_undisturbed(t, contender, which, &seconds));
    LAB_TRY(sample_undisturbed(t, contender, which, &seconds));
    while (seconds < t->options->sample_s && t->calls[which] < most) {
        double grow = t->options->sample_s / (seconds > 1e-7 ? seconds : 1e-7);
        int calls = grow > 8.0 ? t->calls[which] * 8 : (int)(t->calls[which] * grow) + 1;
        t->calls[which] = calls < most ? calls : most;
        LAB_TRY(sample_undisturbed(t, contender, which, &seconds));
    }
    return RUNG_SUCCESS;
}

static rung_status capture(timer *t, const lab_contender *contender, int which)
{
    LAB_TRY(rung_tools_capture_begin(t->place->tools));
    rung_status queued = queue(t, contender, t->calls[which]);
    rung_status ended = rung_tools_capture_end(t->place->tools, &t->graphs[which]);
    return queued != RUNG_SUCCESS ? queued : ended;
}

static rung_status prepare(timer *t, const lab_contender *contenders, int count)
{
    if (t->place->tools) {
        LAB_TRY(rung_tools_event_create(t->place->tools, &t->start));
        LAB_TRY(rung_tools_event_create(t->place->tools, &t->stop));
    }
    for (int i = 0; i < count; i++) {
        LAB_TRY(calibrate(t, &contenders[i], i));
        if (t->options->graph && t->place->tools) {
            double seconds;
            LAB_TRY(capture(t, &contenders[i], i));
            LAB_TRY(sample(t, &contenders[i], i, &seconds));
        }
    }
    return RUNG_SUCCESS;
}

static void finish(timer *t, int count)
{
    for (int i = 0; i < count && t->place->tools; i++)
        rung_tools_graph_destroy(t->place->tools, t->graphs[i]);
    if (t->place->tools) {
        rung_tools_event_destroy(t->place->tools, t->start);
        rung_tools_event_destroy(t->place->tools, t->stop);
    }
}

typedef struct rounds {
    double us[LAB_CONTENDERS][LAB_ROUNDS];
    double ratio[LAB_CONTENDERS][LAB_ROUNDS];
    double mhz[LAB_ROUNDS], watts[LAB_ROUNDS];
    int count;
} rounds;

static int quiet(rounds *r, int contenders, const lab_measure_options *o)
{
    if (r->count < o->least_rounds)
        return 0;
    for (int i = 0; i < contenders; i++) { /* alone, a contender has no ratio: its own time must be quiet */
        lab_stats s = i ? lab_stats_of(r->ratio[i], r->count) : lab_stats_of(r->us[0], r->count);
        if (s.noise > o->quiet)
            return 0;
    }
    return 1;
}

static rung_status run_rounds(timer *t, const lab_monitor *monitor, const lab_contender *contenders, int count,
                              rounds *r, lab_measurement *out)
{
    double end = lab_now_s() + t->options->budget_s;
    while (r->count < LAB_ROUNDS) {
        int n = r->count;
        for (int i = 0; i < count; i++) {
            double seconds;
            LAB_TRY(sample_undisturbed(t, &contenders[i], i, &seconds));
            r->us[i][n] = seconds * 1e6 / t->calls[i];
            r->ratio[i][n] = r->us[i][n] / r->us[0][n];
        }
        lab_reading reading = lab_monitor_read(monitor);
        if (reading.throttled && out->discarded < MOST_DISCARDED && lab_now_s() < end) {
            out->discarded++;
            continue;
        }
        r->mhz[n] = reading.sm_mhz;
        r->watts[n] = reading.power_w;
        out->power_capped += reading.power_capped;
        r->count++;
        if (quiet(r, count, t->options) || (r->count >= 3 && lab_now_s() > end))
            break;
    }
    return RUNG_SUCCESS;
}

rung_status lab_measure(lab_place *place, const lab_monitor *monitor, const lab_contender *contenders, int count,
                        const lab_measure_options *options, lab_measurement *out)
{
    timer t = {.place = place, .options = options};
    memset(out, 0, sizeof *out);
    rounds *r = calloc(1, sizeof *r);
    if (!r)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the samples");
    rung_status status = prepare(&t, contenders, count);
    if (status == RUNG_SUCCESS)
        status = run_rounds(&t, monitor, contenders, count, r, out);
    for (int i = 0; i < count; i++) {
        out->us[i] = lab_stats_of(r->us[i], r->count);
        out->ratio[i] = lab_stats_of(r->ratio[i], r->count);
        out->calls[i] = t.calls[i];
        out->host_us[i] = options->graph ? 0.0 : t.host_us[i];
    }
    out->sm_mhz = (unsigned)lab_stats_of(r->mhz, r->count).median;
    out->power_w = lab_stats_of(r->watts, r->count).median;
    out->disturbed = t.disturbed;
    finish(&t, count);
    free(r);
    return status;
}
