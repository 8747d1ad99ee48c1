/* The spans of a traced context. */
#ifndef RUNG_MULTI_TIMELINE_H
#define RUNG_MULTI_TIMELINE_H

#include "multi/engine.h"

typedef struct multi_timeline multi_timeline;

multi_timeline *multi_timeline_create(void); /* NULL: there is no memory */
void multi_timeline_destroy(multi_timeline *timeline);
void multi_timeline_restart(multi_timeline *timeline);
/* Spans that find no memory are left out. */
void multi_timeline_add(multi_timeline *timeline, int rank, multi_lane lane, const multi_label *label, double start_us,
                        double stop_us);
double multi_timeline_now_us(const multi_timeline *timeline);
int multi_timeline_spans(const multi_timeline *timeline, const rung_span **spans);

#endif
