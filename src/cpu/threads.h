/* How many threads a CPU product may use. rung.h has the two functions that set and tell it for the whole process. */
#ifndef RUNG_CPU_THREADS_H
#define RUNG_CPU_THREADS_H

#include "cpu/team.h"

/* RUNG_NUM_THREADS, Rung's own, must be a number or empty; what others' variables hold is theirs to judge. */
rung_status rung_cpu_check_threads(void);

/* Returns the number that the environment says: of the first variable that has one; 0 where none has. */
int rung_cpu_said_threads(void);

/* Returns the number by the environment, else the cores that this process may use. It reads files, so it is not for
 * every call. */
int rung_cpu_default_threads(void);

/* Returns the number now, for a context that asked for `asked`, or for none (0) and would then use `otherwise`. */
int rung_cpu_threads_now(int asked, int otherwise);

/* Returns how many of these threads a call gets from its caller's team: no more than the program lets OpenMP have
 * (omp_set_num_threads), unless Rung itself was told a number, and one alone within a parallel loop, whose threads are
 * all at work. */
int rung_cpu_threads_of_team(const rung_team *team, int asked, int threads);

#endif
