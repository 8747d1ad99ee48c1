/* Cutting a few rows and columns off C, so that what is left fills the tiles of a large kernel. */
#ifndef RUNG_CORE_PEEL_H
#define RUNG_CORE_PEEL_H

#include "core/backend.h"

/* The parts of a cut C: what fills tiles, the columns right of it, all of the rows below. */
typedef enum rung_part { RUNG_PART_MAIN, RUNG_PART_RIGHT, RUNG_PART_BELOW, RUNG_PARTS } rung_part;

/* Cuts C where the parts, each by its best kernel, are predicted to take less time than *choice, made for the whole. */
void rung_peel(const rung_backend *backend, void *state, const rung_problem *problem, rung_choice *choice);
/* Makes the part's product and finds the choice for it. Returns 0 when the cuts leave it nothing. */
int rung_peeled(const rung_problem *problem, const rung_choice *choice, rung_part part, rung_problem *product,
                rung_choice *its_choice);

#endif
