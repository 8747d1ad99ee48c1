/* How a thread rounds, what it makes of denormal numbers, and which exceptions end it. Each thread has a mode of its
 * own, and a new one that of the thread that starts it. */
#ifndef RUNG_CPU_FLOAT_MODE_H
#define RUNG_CPU_FLOAT_MODE_H

#include <stdint.h>

#define RUNG_FLOAT_HAPPENED 0x3fu /* the bits of MXCSR that tell which exceptions there were: they are no mode */

static inline uint64_t rung_float_mode(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~RUNG_FLOAT_HAPPENED;
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
#else
    return 0;
#endif
}

static inline void rung_float_mode_set(uint64_t mode)
{
    if (mode == rung_float_mode())
        return;
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((unsigned)mode | (__builtin_ia32_stmxcsr() & RUNG_FLOAT_HAPPENED));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

#endif
