/* The stand-in for OpenMP: what it answers, and what it was asked for. */
#ifndef TESTS_BLAS_TEAM_OPENMP_H
#define TESTS_BLAS_TEAM_OPENMP_H

extern int fake_most, fake_is_inside; /* what it says of itself */
extern int fake_teams, fake_threads;  /* how many teams it has made, and the last one's threads */

void GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_max_threads(void);
int omp_in_parallel(void);

#endif
