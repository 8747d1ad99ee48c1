/* rung explain's two halves: a shape's plan (cmd_explain.c) and a kernel (cmd_explain_kernel.c). */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "lab/explain.h"

#include <stdio.h>

/* These write their text to `to`. */
int explain_kernel(FILE *to, const rung_kernel *kernel, int chip_index, double m, double n, double k);
void explain_floors(FILE *to, const lab_chip *chip, rung_arith arith, double m, double n, double k);

#endif
