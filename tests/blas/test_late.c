/* The drop-in is opened for one caller alone, as Python does, and a CBLAS for all after it: the latter's cblas_xerbla
 * is called, and its own flag says whether the call was row-major. usage: test_blas_late DROP_IN LATE */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef void sgemm(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda,
                   const float *b, int ldb, float beta, float *c, int ldc);

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANS = 111 };

int main(int count, char **words)
{
    if (count != 3)
        return puts("usage: test_blas_late DROP_IN LATE"), 2;
    void *drop_in = dlopen(words[1], RTLD_NOW | RTLD_LOCAL), *late = dlopen(words[2], RTLD_NOW | RTLD_GLOBAL);
    if (!drop_in || !late)
        return printf("FAILED: %s\n", dlerror()), 2;
    sgemm *call;
    *(void **)&call = dlsym(drop_in, "cblas_sgemm");
    const int64_t *position = dlsym(late, "late_position");
    const int *row_major = dlsym(late, "late_row_major");
    if (!call || !position || !row_major)
        return printf("FAILED: %s\n", dlerror()), 2;
    const float a[4] = {0};
    float c[4];
    int failed = 0;
    for (int row = 0; row < 4; row++) { /* it is set anew each time */
        call(row & 1 ? ROW_MAJOR : COLUMN_MAJOR, NO_TRANS, NO_TRANS, -1, 2, 2, 1.0f, a, 2, a, 2, 0.0f, c, 2);
        if (*row_major != (row & 1) || *position != (row & 1 ? 5 : 4)) {
            printf("FAILED: %s: RowMajorStrg is %d, the position %d\n", row & 1 ? "row-major" : "column-major",
                   *row_major, (int)*position);
            failed = 1;
        }
    }
    return failed;
}
