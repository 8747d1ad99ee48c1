/* The caller's own threads. A library that multiplies on OpenMP's threads, as MKL does under PyTorch, has them spin on
 * their cores for some milliseconds after each of its loops. Workers of Rung's own would wait for these cores; so a
 * product that such a caller sends is shared out to the caller's threads. */
#ifndef RUNG_CPU_TEAM_H
#define RUNG_CPU_TEAM_H

#include "rung.h"

/* An OpenMP runtime: what Rung calls of it. */
typedef struct rung_team {
    void (*run)(void (*fn)(void *), void *data, unsigned threads, unsigned flags); /* GOMP_parallel */
    int (*number)(void);                                                           /* omp_get_thread_num */
    int (*most)(void);                                                             /* omp_get_max_threads */
    int (*is_inside)(void);                                                        /* omp_in_parallel */
} rung_team;

/* Says where the call returns to that this thread is in: an address in the code of whoever sent it. NULL once it is
 * done. The drop-in says so of calls that may want several threads. */
RUNG_API void rung_team_say_caller(const void *return_address);

/* Returns the team of the call that this thread is in; NULL where nobody said who sent it, where its sender is not
 * linked to OpenMP, and in a forked process, whose parent has OpenMP's threads. */
const rung_team *rung_team_of_call(void);

#endif
