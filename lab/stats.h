/* Computes medians and their spread, and tells when enough has been measured. */
#ifndef LAB_STATS_H
#define LAB_STATS_H

typedef struct lab_stats {
    double median, min, max;
    double noise; /* half width of the median's 95% interval, as a share of it, from the median absolute deviation */
    int samples;
} lab_stats;

lab_stats lab_stats_of(double *values, int count); /* puts the values in order; zeros for none */
/* Returns the mean of those that are positive: a peer without such a product has a ratio of 0. 0 for none. */
double lab_geometric_mean(const double *values, int count);

#endif
