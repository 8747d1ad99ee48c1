/* Robust statistics: a few outliers change nothing. */
#include "lab/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

static int ascending(const void *left, const void *right)
{
    double x = *(const double *)left, y = *(const double *)right;
    return (x > y) - (x < y);
}

static double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

lab_stats lab_stats_of(const double *values, int count)
{
    double copy[MOST];
    lab_stats s = {0};
    if (count > MOST)
        count = MOST;
    if (count <= 0)
        return s;
    memcpy(copy, values, (size_t)count * sizeof *copy);
    s.samples = count;
    s.median = median_of(copy, count);
    s.min = copy[0];
    s.max = copy[count - 1];
    for (int i = 0; i < count; i++)
        copy[i] = fabs(values[i] - s.median);
    /* 1.4826: deviation to sigma; 1.2533: a median's standard error over a mean's; 1.96: 95%. */
    if (s.median > 0.0)
        s.noise = 1.96 * 1.2533 * 1.4826 * median_of(copy, count) / sqrt(count) / s.median;
    return s;
}

double lab_geometric_mean(const double *values, int count)
{
    double sum = 0.0;
    int used = 0;
    for (int i = 0; i < count; i++)
        if (values[i] > 0.0) {
            sum += log(values[i]);
            used++;
        }
    return used > 0 ? exp(sum / used) : 0.0;
}
