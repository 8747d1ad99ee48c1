/* Asks whatever BLAS is loaded for products of ever other shapes, with every letter in turn: program_blas N, each once,
 * or twice from 4096 on. program_blas wrong: one with a letter that BLAS does not know, and one with too short an ldc.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void routine(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
                     const int *, const float *, const int *, const float *, float *, const int *);

int main(int argc, char **argv)
{
    static const char letters[] = "NnTtCc";
    static float a[100 * 100], b[100 * 100], c[100 * 100];
    int shapes = argc > 1 ? atoi(argv[1]) : 1, ld = 100;
    float one = 1, zero = 0;
    routine *sgemm = (routine *)dlsym(RTLD_DEFAULT, "sgemm_");
    if (sgemm && argc > 1 && strcmp(argv[1], "wrong") == 0) {
        int two = 2;
        sgemm("X", "N", &ld, &ld, &ld, &one, a, &ld, b, &ld, &zero, c, &ld);
        sgemm("N", "N", &ld, &ld, &ld, &one, a, &ld, b, &ld, &zero, c, &two);
        return 0;
    }
    for (int round = 0; sgemm && round < (shapes > 4096 ? 2 : 1); round++)
        for (int i = 0; i < shapes; i++) {
            int m = 1 + i % 90, n = 1 + i / 90, k = 3;
            sgemm(&letters[i % 6], &letters[(i + 1) % 6], &m, &n, &k, &one, a, &ld, b, &ld, &zero, c, &ld);
        }
    return sgemm ? 0 : 1;
}
