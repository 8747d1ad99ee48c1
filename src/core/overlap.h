/* Tells whether the result of a product lies on what it is computed from. */
#ifndef RUNG_CORE_OVERLAP_H
#define RUNG_CORE_OVERLAP_H

#include "core/problem.h"

/* Refuses (RUNG_INVALID_ARGUMENT, argument 12) a product in which a float of C is one of A's or B's that would be read,
 * or of another result of the batch. What pointer arrays list is not looked at. `gemm` is what the problem was made
 * from. */
rung_status rung_refuse_overlap(const rung_problem *problem, const rung_gemm *gemm);

#endif
