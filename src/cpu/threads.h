/* How many threads a CPU product may use. rung.h has the two functions that set and tell it for the whole process. */
#ifndef RUNG_CPU_THREADS_H
#define RUNG_CPU_THREADS_H

/* By the environment, else the cores that this process may use. Reads files: not for every call. */
int rung_cpu_default_threads(void);

/* Now, for a context that asked for a number, or for none (0) and would then use `otherwise`. */
int rung_cpu_threads_now(int asked, int otherwise);

#endif
