/* The bits of results, kept: a list of products, each with the kernel that computes it and a hash of what C then holds.
 * A line of the list is "KERNEL CASE" or "KERNEL CASE HASH"; '#' begins a comment. What lab_bits() prints is such a
 * list, so that one build's output is what another build is checked against. */
#ifndef LAB_BITS_H
#define LAB_BITS_H

#include "lab/verify.h"

#include <stdio.h>

typedef struct lab_bits_counts {
    int same, differ; /* of the lines with a hash */
    int new_ones;     /* lines without a hash, computed */
    int refused;      /* by the kernel; their hash is "-" */
    int unknown;      /* lines whose kernel this build does not have, or cannot run here */
} lab_bits_counts;

/* Runs every line of `list` and prints it with its hash to `out`; a sentence on stderr for each that differs. */
rung_status lab_bits(lab_verifier *v, FILE *list, FILE *out, lab_bits_counts *counts);

#endif
