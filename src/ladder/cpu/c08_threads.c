/* c08_threads: the rows of C are dealt out in strips to all threads.
 * Changed from c07_prefetch: nothing inside; each strip is a product of its own and runs c07. No two threads write the
 * same element, so there is nothing to wait for but the end. More strips than threads even out a thread that is late.
 */
#include "ladder/cpu/start.h"

#include <stdatomic.h>

rung_status c07_prefetch(const void *arguments);
rung_status c08_threads(const void *arguments);

enum { STRIPS_A_THREAD = 4, ROWS_LEAST = 48 };

typedef struct strips {
    const rung_cpu_args *all;
    int64_t rows; /* of a strip */
    _Atomic int status;
} strips;

/* lesson */
static void run_strip(void *job, int64_t number, float *workspace)
{
    (void)workspace;
    strips *s = job;
    rung_cpu_args mine = *s->all;
    int64_t first = number * s->rows;
    mine.m = mine.m - first < s->rows ? mine.m - first : s->rows;
    mine.a += first * mine.lda;
    mine.c += first * mine.ldc;
    rung_status status = c07_prefetch(&mine);
    if (status != RUNG_SUCCESS)
        atomic_store(&s->status, (int)status);
}

rung_status c08_threads(const void *arguments)
{
    const rung_cpu_args *g = arguments;
    int64_t rows = g->m / ((int64_t)g->threads * STRIPS_A_THREAD) / 6 * 6; /* whole tiles */
    strips s = {.all = g, .rows = rows > ROWS_LEAST ? rows : ROWS_LEAST};
    rung_pool_run(g->pool, g->threads, (g->m + s.rows - 1) / s.rows, run_strip, &s);
    return (rung_status)atomic_load(&s.status);
}
/* /lesson */
