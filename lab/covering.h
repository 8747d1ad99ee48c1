/* Few rows in which every pair of values of every two factors stands together at least once. */
#ifndef RUNG_LAB_COVERING_H
#define RUNG_LAB_COVERING_H

enum { LAB_FACTORS = 15, LAB_LEVELS = 8, LAB_ROWS = 128 };

typedef struct lab_covering {
    int count;
    unsigned char row[LAB_ROWS][LAB_FACTORS];
} lab_covering;

/* Makes rows in which every two values of two factors meet. levels[f] is how many values factor f takes, 1 to
 * LAB_LEVELS. The rows are the same every time. */
void lab_cover_pairs(const int *levels, int factors, lab_covering *out);

#endif
