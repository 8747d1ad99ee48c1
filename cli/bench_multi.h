/* rung bench over several ranks. */
#ifndef CLI_BENCH_MULTI_H
#define CLI_BENCH_MULTI_H

#include "cli/cli.h"

typedef struct bench_multi_options {
    const char *gpus; /* "4", "1,2,4": counts of GPUs, one after the other; "cpu4": CPU ranks in this process */
    /* this process is one rank of several: over MPI, or over NCCL where the environment names the rank */
    int distributed;
    const char *operands; /* "distributed", "host", "parts", with commas between them */
    /* NULL, or values of RUNG_MULTI_PANEL with commas between them, which are tried one after the other */
    const char *panels;
    const char *grid; /* "2x2"; NULL: as square as C allows */
    const char *timeline, *output, *command;
    int64_t block, repeats, memory_mib;
    int math, format, no_peer;
} bench_multi_options;

int cli_bench_multi(const bench_multi_options *options, const lab_shapes *shapes);

#endif
