/* The caller's own threads. OpenMP's threads spin on their cores for milliseconds after each loop: libgomp's for some
 * ten, Intel's for 200. Workers of Rung's own would wait for these cores. So a product that comes from a program or
 * library with OpenMP's threads is shared out to them. */
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

/* Returns the team of the call that this thread is in; NULL where it has none, and in a forked process, whose parent
 * has OpenMP's threads. It is that of the object that sent the call or, where nobody said so, that made the context: if
 * that is linked to OpenMP. Else it is that of a BLAS beside Rung which multiplies on OpenMP's threads, as MKL does,
 * unless two of them have different ones. */
const rung_team *rung_team_of_call(const void *creator);

#endif
