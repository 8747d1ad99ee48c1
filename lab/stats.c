/* Robust statistics: a few outliers change nothing. */
#include "lab/stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *left, const void *right)
{
    double x = *(const double *)left, y = *(const double *)right;
    return (x > y) - (x < y);
}

/* Finds the median of the deviations from the median. Of values in order the nearest is always the next one on one of
 * the two sides, so that it takes no second array. */
static double median_deviation(const double *values, int count, double median)
{
    int below = (count - 1) / 2, above = below + 1;
    double last = 0.0, before = 0.0;
    for (int i = 0; i <= count / 2; i++) {
        const double down = below >= 0 ? median - values[below] : INFINITY,
                     up = above < count ? values[above] - median : INFINITY;
        before = last;
        last = down <= up ? down : up;
        if (down <= up)
            below--;
        else
            above++;
    }
    return count % 2 ? last : 0.5 * (before + last);
}

lab_stats lab_stats_of(double *values, int count)
{
    lab_stats s = {0};
    if (count <= 0)
        return s;
    qsort(values, (size_t)count, sizeof *values, ascending);
    s.samples = count;
    s.median = count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
    s.min = values[0];
    s.max = values[count - 1];
    /* 1.4826: deviation to sigma; 1.2533: a median's standard error over a mean's; 1.96: 95%. */
    if (s.median > 0.0)
        s.noise = 1.96 * 1.2533 * 1.4826 * median_deviation(values, count, s.median) / sqrt(count) / s.median;
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
