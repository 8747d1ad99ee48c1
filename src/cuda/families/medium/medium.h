/* What plan and launch of the medium tiles share. */
#ifndef RUNG_MEDIUM_MEDIUM_H
#define RUNG_MEDIUM_MEDIUM_H

#include "cuda/driver/device.h"

double medium_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p);
const char *medium_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice);

#endif
