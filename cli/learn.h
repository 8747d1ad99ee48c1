/* What the parts of rung learn share. */
#ifndef CLI_LEARN_H
#define CLI_LEARN_H

#include "cli/cli.h"
#include "lab/learn.h"
#include "lab/metric.h"

typedef struct learn_request {
    const lab_course *course;
    const lab_exercise *exercise;
    const char *file, *html;
    const char *driver; /* RUNG_LIBCUDA as it was before the lens took its place; NULL: it was not set */
    int watch, now, gpu, format;
    int64_t seed; /* 0: the clock gives one */
} learn_request;

uint64_t learn_seed(const learn_request *r);
/* Shows the learner's counts beside those of the rung or of the solution. */
int learn_compare(const learn_request *r);
/* Times what passed, beside the rung and cuBLAS. learn_time is its other half, in a process of its own. */
int learn_check_gpu(const learn_request *r, const char *file, const lab_grade_result *v);
int learn_time(const learn_request *r, const char **words, int count);
/* Proves a course, for its authors: each start fails for its stated reason, each solution passes, each goal refuses
 * whom it names. */
int learn_prove(const learn_request *r, const char **words, int count);

#endif
