/* BLAS's rules, in BLAS's order, then the row-major form. */
#ifndef RUNG_CORE_VALIDATE_H
#define RUNG_CORE_VALIDATE_H

#include "core/problem.h"

/* Fills *problem. *nothing is set when C needs no work at all (m, n or batch is 0, or alpha*AB = 0 with beta = 1). */
rung_status rung_validate(const rung_gemm *gemm, rung_math math, rung_problem *problem, int *nothing);

/* Returns the largest power of two, at most 16, that divides the address of every row, in bytes. */
static inline int rung_alignment(const void *pointer, int64_t ld, int64_t stride)
{
    const uintptr_t bits = (uintptr_t)pointer | (uintptr_t)ld * 4 | (uintptr_t)stride * 4 | 16;
    return (int)(bits & -bits);
}

/* Refuses a NULL among the pointers that a pointer-array batch lists. It looks only where the arrays lie in host
 * memory. */
rung_status rung_refuse_null_elements(const rung_problem *problem, const rung_gemm *gemm);

#endif
