/* CPU features the kernels may need, as bits. RUNG_CPU_FEATURES narrows what is found, for tests and for comparing:
 * "avx2" keeps AVX2 and drops AVX-512, "avx" keeps what has no FMA, "none" leaves the portable kernel, on 64-bit Arm as
 * well. RUNG_CPU_PLAN, for tests, has products planned as on another processor: by its caches and its manners. */
#ifndef RUNG_CPU_FEATURES_H
#define RUNG_CPU_FEATURES_H

#include "rung.h"

enum {
    RUNG_CPU_AVX2 = 1,
    RUNG_CPU_AVX512 = 2,
    RUNG_CPU_NEON = 4,
    RUNG_CPU_AVX = 8,
    RUNG_CPU_KNOWN = 15,
    RUNG_CPU_UNKNOWN = 16
};

/* Returns the bits of a comma-separated list of names, "avx", "avx2", "avx512" and "neon"; RUNG_CPU_UNKNOWN for
 * any other. NULL has no bits. */
unsigned rung_cpu_feature_bits(const char *names);

/* RUNG_CPU_FEATURES must be such a list, "none" or empty: a misspelt name would hide what it meant to keep. So must
 * RUNG_CPU_PLAN be a processor that is known. */
rung_status rung_cpu_check_features(void);

/* Returns the bits of this CPU under its operating system, narrowed by the environment at the time of the call. */
unsigned rung_cpu_features(void);

/* A processor as rules of the plan ask about it: its data caches, and its manners, each 1 or 0. A processor that nobody
 * has measured has none of these. */
typedef struct rung_processor {
    long l1_bytes, l2_bytes, l3_bytes;
    /* All of the L3 that the system tells of, of which l3_bytes is this machine's share at worst. */
    long whole_l3_bytes;
    /* The hardware loads ahead in a dozen long rows at once, and many requests at a time hold it up. */
    int follows_rows;
    /* Asking for what passes one or two rows gains, although the hardware follows it. */
    int asks_for_few;
    /* What comes from L3 in few long rows at a time comes late: dot products of several columns, and a C that is
     * written row by row, wait longer for it than tiles beside a packed B. */
    int waits_for_l3;
    /* A B that streams past few rows from afar is asked for some rows ahead. */
    int asks_next_rows;
    /* A store that reaches into a second line waits for both from L2 on: nothing has asked for them before. */
    int stores_wait;
    /* L3 is so far that operands are better read in place, asked for, than packed for few rows or columns. */
    int far_l3;
    /* Three vectors of half a line are loaded in a cycle, so that tiles lose less to empty lanes. */
    int three_loads;
    /* An FMA of 16 floats takes no longer than one of 8. */
    int wide_units;
    /* Units are four floats wide: a vector of 8 takes two passes through them, what crosses its halves three or four
     * cycles, and a load by a mask ten. */
    int units_of_four;
} rung_processor;

/* Returns what there is to know of the first CPU: its caches from the operating system's tables, common sizes where
 * these tell nothing. An L3 counts no more than a share for each CPU. Or the processor that RUNG_CPU_PLAN names. */
rung_processor rung_cpu_processor(void);

/* Returns how many CPUs this process may use: by its affinity mask, and its cgroup's quota rounded up. */
int rung_cpu_count(void);

#endif
