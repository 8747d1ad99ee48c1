/* The BLAS drop-in in a program that has all of the process's keys for values of threads: it has none of its own, and
 * puts nothing where the program has a value. */
#include <pthread.h>
#include <stdio.h>

enum { COLUMN = 102, N = 111, MOST = 4096 };

void cblas_sgemm(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);

static pthread_key_t keys[MOST];

int main(void)
{
    float a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, c[4] = {0};
    int count = 0, changed = 0;
    while (count < MOST && pthread_key_create(&keys[count], NULL) == 0)
        count++;
    for (int i = 0; i < count; i++)
        pthread_setspecific(keys[i], &keys[i]);
    cblas_sgemm(COLUMN, N, N, 2, 2, 2, 1.0f, a, 2, b, 2, 0.0f, c, 2);
    for (int i = 0; i < count; i++)
        changed += pthread_getspecific(keys[i]) != &keys[i];
    printf("%d keys, %d values changed, %g\n", count, changed, c[3]);
    return count == MOST || changed || c[3] != 4.0f;
}
