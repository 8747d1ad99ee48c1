/* The names of a BLAS's product. */
#ifndef OTHER_BLAS_H
#define OTHER_BLAS_H

#include <stddef.h>
#include <stdint.h>

#define FORTRAN_NAMES(X) X(sgemm_, int) X(sgemm_64_, int64_t) X(scipy_sgemm_, int) X(scipy_sgemm_64_, int64_t)
#define C_NAMES(X)                                                                                                     \
    X(cblas_sgemm, int) X(cblas_sgemm64_, int64_t) X(scipy_cblas_sgemm, int) X(scipy_cblas_sgemm64_, int64_t)

#ifdef MARK /* the other BLAS itself, as a Fortran compiler makes it: the letters' lengths come last */
#define LENGTHS , size_t, size_t
#else
#define LENGTHS
#endif
#define X(name, integer)                                                                                               \
    void name(const char *, const char *, const integer *, const integer *, const integer *, const float *,            \
              const float *, const integer *, const float *, const integer *, const float *, float *,                  \
              const integer *LENGTHS);
FORTRAN_NAMES(X)
#undef X
#define X(name, integer)                                                                                               \
    void name(int, int, int, integer, integer, integer, float, const float *, integer, const float *, integer, float,  \
              float *, integer);
C_NAMES(X)
#undef X

#endif
