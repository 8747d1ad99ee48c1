/* The bits of results, kept: a list of products, each with the kernel that computes it and a hash of what C then holds.
 * A line of the list is "KERNEL CASE" or "KERNEL CASE HASH"; '#' begins a comment. KERNEL may be a pattern of names
 * such as *_crowd_*; the line then holds for each kernel that the pattern fits, and sizes may name its tile's: 2m-1,
 * n+m+9, m/2+3. What lab_bits() prints is a list with one kernel a line: what another build is checked against. */
#ifndef LAB_BITS_H
#define LAB_BITS_H

#include "lab/verify.h"

#include <stdio.h>

typedef struct lab_bits_counts {
    int same, differ; /* of the lines with a hash */
    int new_ones;     /* lines without a hash, computed */
    int refused;      /* by the kernel; their hash is "-" */
    int unknown;      /* lines that fit no kernel of this build that can run here */
} lab_bits_counts;

/* Runs every line of `list` and prints it with its hash to `out`; a sentence on stderr for each that differs. */
rung_status lab_bits(lab_verifier *v, FILE *list, FILE *out, lab_bits_counts *counts);

#endif
