/* The measuring rules, in one place: warm up; every round times each contender once (A B C A B C); operands rotate;
 * samples taken while the GPU throttles, or others have our core, are thrown away; stop when the ratios are quiet or
 * the budget is spent. */
#ifndef LAB_MEASURE_H
#define LAB_MEASURE_H

#include "lab/monitor.h"
#include "lab/stats.h"

enum { LAB_CONTENDERS = 12, LAB_ROUNDS = 400 };

typedef struct lab_contender {
    /* Runs once, on operand set `set`; on a GPU it only queues. */
    rung_status (*run)(void *state, int set);
    void *state;
} lab_contender;

typedef struct lab_measure_options {
    int sets;        /* operand sets to rotate over */
    int graph;       /* GPU: replay a captured graph of the calls, so that launches from the host cost nothing */
    double sample_s; /* at least so long a sample; calls are repeated to reach it */
    double budget_s; /* for all contenders together */
    int least_rounds;
    double quiet; /* stop when every ratio's noise is below this */
} lab_measure_options;

typedef struct lab_measurement {
    lab_stats us[LAB_CONTENDERS];    /* of one call */
    lab_stats ratio[LAB_CONTENDERS]; /* contender i's time over contender 0's, round by round */
    int calls[LAB_CONTENDERS];       /* calls a sample */
    double
        host_us[LAB_CONTENDERS]; /* GPU: the host's time to queue one call, the least over the samples; 0 in a graph */
    int discarded;               /* rounds thrown away because the GPU throttled */
    int disturbed;               /* CPU: samples taken again because the system gave our core to others meanwhile */
    int power_capped;            /* rounds in which it sat at its power limit: kept, both sides feel it */
    unsigned sm_mhz;             /* median; 0 unknown */
    double power_w;
} lab_measurement;

lab_measure_options lab_measure_defaults(const lab_place *place);
rung_status lab_measure(lab_place *place, const lab_monitor *monitor, const lab_contender *contenders, int count,
                        const lab_measure_options *options, lab_measurement *out);
double lab_now_s(void);

#endif
