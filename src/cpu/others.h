/* What another BLAS in the process is told, by the drop-in and by `rung run`. */
#ifndef RUNG_CPU_OTHERS_H
#define RUNG_CPU_OTHERS_H

#include <unistd.h>

/* Returns for how many ticks OpenBLAS's workers may spin after each of its calls, as a power of two: by themselves they
 * spin for 2^26, some 26 ms, on CPUs that Rung's next product needs. 2^22, a millisecond or two, outlast the pauses
 * between the steps of a factorisation. Waking a worker on each of many CPUs takes longer than they take from Rung:
 * there they last through a product of some milliseconds. */
static inline const char *rung_spins_of_openblas(void)
{
    enum { MANY_CPUS = 8 };
    return sysconf(_SC_NPROCESSORS_ONLN) < MANY_CPUS ? "22" : "24";
}

#endif
