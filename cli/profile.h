/* What the files of rung profile share. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include "rung_catalog.h"

#include <stdint.h>

/* A product of m x n x k, or the sum of n floats: then m and k are 0. */
typedef struct profile_size {
    int64_t m, n, k;
} profile_size;

static inline int profile_is_sum(const profile_size *size)
{
    return size->k == 0;
}

/* What runs under ncu: each kernel of the list once, and nothing else. */
int cli_profile_launch(const char *list, const profile_size *size);
/* The rungs of the CPU, from counts of their instructions and accesses in a file. */
int cli_profile_cpu(const char **words, int count, const profile_size *size, const char *file, int format);
/* How fast FFMAs issue with chosen registers. */
int cli_profile_ports(int format, const char *file);

#endif
