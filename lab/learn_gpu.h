/* A learner's product on a GPU, checked, then timed in turn with a rung and cuBLAS. */
#ifndef LAB_LEARN_GPU_H
#define LAB_LEARN_GPU_H

#include "lab/measure.h"

typedef struct lab_learn_gpu {
    const char *file, *symbol, *finish; /* finish: the second kernel; NULL: none */
    const char *includes;               /* the folder that has device/args.h */
    const char *rung;                   /* NULL: none */
    int bm, bn, threads, shared_bytes, parts;
    int64_t m, n, k;
} lab_learn_gpu;

typedef struct lab_learn_times {
    char device[128], without[200]; /* without: a contender that could not run, and why */
    const char *names[3];
    int count;
    double error_u;
    lab_measurement time;
} lab_learn_times;

/* Times the learner's kernel. The status is RUNG_MISSING_LIBRARY without nvcc (RUNG_NVCC names it), RUNG_NO_DEVICE
 * without a GPU. */
rung_status lab_learn_time(const lab_learn_gpu *what, lab_learn_times *times);

#endif
