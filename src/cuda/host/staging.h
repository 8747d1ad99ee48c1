/* Operands in host memory with a GPU context: find out where they are, bring them over, bring C back. */
#ifndef RUNG_CUDA_STAGING_H
#define RUNG_CUDA_STAGING_H

#include "cuda/driver/device.h"

/* *on_host: all operands are host memory. A mixture, or another GPU's memory, is an error that names the operand. */
rung_status rung_operands_where(rung_cuda *cuda, const rung_problem *problem, int *on_host);

typedef rung_status rung_run_function(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem);

/* Copies the operands in, runs the product, copies C's m x n back (padding between its lines stays untouched), and
 * waits. */
rung_status rung_run_staged(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem,
                            rung_run_function *run);

void rung_staging_close(rung_cuda *cuda);

#endif
