/* Another BLAS, as a program may load and unload it: it says who it is and what it was given; letters of other lengths
 * than one make it say that it is the negative one. */
#include "other_blas.h"

static void say(int who, float alpha, float beta, float *c, int64_t ldc)
{
    c[0] = (float)who;
    c[1] = alpha;
    c[2] = beta;
    c[3] = (float)ldc;
}

#define X(name, integer)                                                                                               \
    void name(const char *ta, const char *tb, const integer *m, const integer *n, const integer *k,                    \
              const float *alpha, const float *a, const integer *lda, const float *b, const integer *ldb,              \
              const float *beta, float *c, const integer *ldc, size_t of_ta, size_t of_tb)                             \
    {                                                                                                                  \
        (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb;                         \
        say(of_ta == 1 && of_tb == 1 ? MARK : -MARK, *alpha, *beta, c, *ldc);                                          \
    }
FORTRAN_NAMES(X)
#undef X

#define X(name, integer)                                                                                               \
    void name(int layout, int ta, int tb, integer m, integer n, integer k, float alpha, const float *a, integer lda,   \
              const float *b, integer ldb, float beta, float *c, integer ldc)                                          \
    {                                                                                                                  \
        (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb;                         \
        say(MARK, alpha, beta, c, ldc);                                                                                \
        c[4] = (float)layout;                                                                                          \
    }
C_NAMES(X)
#undef X
