/* Figures that a goal may name, from the lens's last run: what there are, and why one is as it is. */
#ifndef LAB_METRIC_H
#define LAB_METRIC_H

#include "lab/explain.h"

typedef struct lab_metric_run {
    const lab_lens_case *of;
    double products; /* multiply-adds of the problem; a sum: its elements */
    double error_u;  /* the worst of all cases */
    int registers;   /* of a thread, for the occupancy; 0: not known */
    const lab_chip *chips[4];
    int chip_count;
} lab_metric_run;

/* Returns what the figure is called in a sentence; NULL where there is no such metric. */
const char *lab_metric_words(const char *metric);
/* Returns a metric's value; array "" means all of them. It is NaN where nothing of the kind happened. */
double lab_metric_value(const char *metric, const char *array, const lab_metric_run *run);
/* Writes a sentence that names the line to blame, or "" where no line is. */
void lab_metric_why(const char *metric, const char *array, char *text, size_t bytes);

#endif
