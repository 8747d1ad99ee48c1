/* What the ladder's launchers share. */
#ifndef RUNG_CUDA_LADDER_H
#define RUNG_CUDA_LADDER_H

#include "cuda/driver/device.h"
#include "core/divide.h"

/* A rung is asked for by name, never ranked: the time of its FMAs stands for its cost. */
static inline double rung_ladder_cost_us(const rung_machine *machine, const rung_problem *p)
{
    return 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch /
           (machine->sms * 256e3 * machine->clock_ghz);
}

#endif
