/* Compares C x with op(A) (op(B) x) in FP64, where x has random signs: a check that costs n^2. */
#ifndef LAB_PROJECTION_H
#define LAB_PROJECTION_H

#include "lab/shape.h"
#include "rung.h"

#include <stddef.h>

/* The vectors of a projection. Beside each stands the sum of its terms' sizes. */
typedef struct lab_vectors {
    double *x[2], *y[2], *z[2], *r[2]; /* y = op(B) x, z = op(A) y, r = C x */
} lab_vectors;

size_t lab_vectors_bytes(const lab_shape *shape);
/* Lays the vectors out in `memory` and fills x. */
lab_vectors lab_vectors_of(double *memory, const lab_shape *shape);
/* Returns the largest of |r - z| against z's terms, in units of 2^-24. */
double lab_vectors_error(const lab_vectors *vectors, int64_t m);
/* Returns what a right C stays below. */
double lab_projection_bound(const lab_shape *shape, rung_math math);

/* Computes out = M*v and out_size = |M|*v_size, or the same with the transpose. */
void lab_project(const float *m, int64_t rows, int64_t cols, int64_t ld, int trans, const double *v[2], double *out[2]);

/* Returns the operands' elements: uniform on [-1, 1), from where they stand. */
static inline float lab_element(uint64_t seed, int64_t index)
{
    uint64_t x = ((uint64_t)index + seed) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return (float)(int32_t)(x >> 32) * 0x1p-31f;
}

static inline int64_t lab_stored_rows(int trans, int64_t rows, int64_t cols)
{
    return trans ? cols : rows;
}

int lab_all_cores(void);

#endif
