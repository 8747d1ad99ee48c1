/* Measures the two ceilings of a CPU: what its FMA units reach from registers, and what moving the bytes costs. */
#ifndef LAB_PEAK_H
#define LAB_PEAK_H

#include "rung_catalog.h"

#include <stdint.h>

double lab_cpu_peak_gflops(rung_context *context,
                           int threads); /* all threads at once; one sample of some ten milliseconds */

/* Reads `read` floats and writes `written` ones, as the threads of a product would: the floor under any product of
 * these operands. */
void lab_cpu_move(const float *from, int64_t read, float *to, int64_t written, int threads);

#endif
