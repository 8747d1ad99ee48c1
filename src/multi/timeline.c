/* Spans of a traced context, with their texts. */
#include "multi/clock.h"
#include "multi/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 32, MOST_SPANS = 1 << 20 };

struct multi_timeline {
    rung_span *spans;
    char (*texts)[TEXT_BYTES];
    int count, capacity;
    double start_s;
};

multi_timeline *multi_timeline_create(void)
{
    return calloc(1, sizeof(multi_timeline));
}

void multi_timeline_destroy(multi_timeline *t)
{
    if (!t)
        return;
    free(t->spans);
    free(t->texts);
    free(t);
}

void multi_timeline_restart(multi_timeline *t)
{
    t->count = 0;
    t->start_s = multi_now_s();
}

double multi_timeline_now_us(const multi_timeline *t)
{
    return (multi_now_s() - t->start_s) * 1e6;
}

static int grow(multi_timeline *t)
{
    int capacity = t->capacity ? 2 * t->capacity : 256;
    if (capacity > MOST_SPANS)
        return 0;
    rung_span *spans = realloc(t->spans, (size_t)capacity * sizeof *spans);
    if (spans)
        t->spans = spans;
    char(*texts)[TEXT_BYTES] = realloc(t->texts, (size_t)capacity * sizeof *texts);
    if (texts)
        t->texts = texts;
    if (!spans || !texts)
        return 0;
    t->capacity = capacity;
    return 1;
}

void multi_timeline_add(multi_timeline *t, int rank, multi_lane lane, const multi_label *label, double start_us,
                        double stop_us)
{
    static const char *const lanes[] = {"copy in",   "copy between GPUs", "product", "product 2",
                                        "product 3", "product 4",         "copy out"};
    if (t->count == t->capacity && !grow(t))
        return;
    t->spans[t->count] = (rung_span){.rank = rank, .lane = lanes[lane], .start_us = start_us, .stop_us = stop_us};
    snprintf(t->texts[t->count], TEXT_BYTES, "%s panel %d.%d", label->side ? label->side : "", label->panel,
             label->part);
    t->count++;
}

int multi_timeline_spans(const multi_timeline *t, const rung_span **spans)
{
    for (int i = 0; i < t->count; i++) /* the texts may have moved while their memory grew */
        t->spans[i].what = t->texts[i];
    *spans = t->spans;
    return t->count;
}
