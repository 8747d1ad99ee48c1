/* Worker threads, and workspace for each of them. Every context has a pool of its own with its workspace; the workers
 * belong to the process, so that sixteen callers with eight threads make seven workers and not 112. They start at the
 * first parallel call, spin briefly between jobs, then sleep, and end with the last pool. One caller at a time to a
 * pool. After fork() the child starts workers anew. */
#ifndef RUNG_CPU_POOL_H
#define RUNG_CPU_POOL_H

#include "cpu/team.h"

#include <stdint.h>

typedef struct rung_pool rung_pool;
typedef void (*rung_task_fn)(void *job, int64_t task, float *workspace);

rung_pool *rung_pool_create(void); /* NULL where there is no memory */
void rung_pool_destroy(rung_pool *pool);

/* Makes `slots` workspaces of at least `floats` each (64-byte aligned, kept for later calls). Returns 0 where there is
 * no memory. */
int rung_pool_reserve(rung_pool *pool, int slots, int64_t floats);
float *rung_pool_workspace(rung_pool *pool, int slot);
/* Runs tasks 0 ... tasks-1, each once, in any order, on at most `threads` threads, the caller among them. Each task
 * gets the workspace of the slot it runs on, and computes in the caller's mode (cpu/float_mode.h). The caller works
 * alone while another context has the workers, and where none can be started. */
void rung_pool_run(rung_pool *pool, int threads, int64_t tasks, rung_task_fn fn, void *job);
/* Sends the jobs that follow to the caller's own threads; NULL: to the workers. A team as large as the job's threads is
 * asked for, and the caller is its number 0. */
void rung_pool_use_team(rung_pool *pool, const rung_team *team);
/* Returns whether this process was forked: then its parent has the threads that were there. */
int rung_pool_is_forked(void);
/* Returns how much work a job has to have for each of its threads. Waking a worker that sleeps costs the caller some 15
 * microseconds, and the worker comes 10 later: one job pays for that if it is long, and several that follow each other
 * closely if they are together, since a worker woken for one still spins at the next. So the work of such jobs is added
 * up here, this one's included. Workers that lately came too late for what they were woken for are worth it for long
 * jobs alone. */
double rung_pool_least_share_us(rung_pool *pool, double work_us);

#endif
