/* How the tables of launches and moves sum up what they do not print. */
#ifndef RUNG_TESTS_SUMS_H
#define RUNG_TESTS_SUMS_H

#include <stdint.h>

static inline uint64_t mix_text(uint64_t sum, const char *text)
{
    for (; *text; text++)
        sum = (sum ^ (uint64_t)(unsigned char)*text) * 0x100000001b3u;
    return sum;
}

static inline unsigned folded(uint64_t sum)
{
    return (unsigned)(sum ^ sum >> 32);
}

#endif
