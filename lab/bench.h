/* Verifies one shape against FP64, then times it beside the peers: for bench, climb and tune. */
#ifndef LAB_BENCH_H
#define LAB_BENCH_H

#include "lab/measure.h"
#include "lab/peer.h"
#include "lab/shape.h"

enum { LAB_PEERS = LAB_CONTENDERS - 2, LAB_SKINNY = 32 };

typedef struct lab_bench_options {
    rung_math math;
    const rung_kernel *kernel; /* NULL: the library's choice */
    rung_layout layout;
    lab_data data;
    float alpha, beta;
    int64_t pad; /* elements that are added to leading dimensions */
    int graph;
    int cold;        /* on a CPU: rotate over more than the last-level cache (a GPU always does) */
    int unverified;  /* skip the reference: for tuning, after a run that was verified */
    double budget_s; /* for one shape; 0: the default */
} lab_bench_options;

typedef struct lab_bench {
    lab_place *place;
    lab_monitor monitor;
    rung_context *context;
    lab_bench_options options;
    lab_peer peers[LAB_PEERS];
    int peer_count;
    double peak_gflops; /* of a CPU: the FMA peak, the best sample so far; of a GPU: that of its units and clock */
    lab_buffer a, b, c, c64, size, chain;
} lab_bench;

typedef struct lab_bench_row {
    lab_shape shape;
    char kernel[64];
    double error_u, bound_u, chain_u; /* bound_u 0: it was not verified */
    char wrong[160];                  /* what else is wrong with the library's product; "": nothing */
    double peer_error_u[LAB_PEERS];
    int peer_refused[LAB_PEERS]; /* this peer has no such product: its ratio is 0 */
    double us, gflops;
    double peer_us[LAB_PEERS], ratio[LAB_PEERS]; /* ratio: the peer's time over ours, above 1 we are faster */
    double floor_us;                             /* what FP32 arithmetic or memory traffic alone would take */
    int floor_measured;                          /* the traffic's time was measured beside ours (skinny, CPU) */
    double best_ratio;                           /* against the fastest peer of the same promise; 0: none */
    int sets;
    lab_measurement time;
} lab_bench_row;

/* Opens a bench. peers are comma-separated names, "" for none. A peer that is not installed is left out and named in
 * *missing (text). */
rung_status lab_bench_open(lab_bench *bench, lab_place *place, const lab_bench_options *options, const char *peers,
                           char *missing, size_t missing_bytes);
void lab_bench_close(lab_bench *bench);
/* Measures one shape. It succeeds also when the result is wrong, as lab_bench_wrong says. RUNG_UNSUPPORTED: no kernel
 * takes the shape. */
rung_status lab_bench_shape(lab_bench *bench, const lab_shape *shape, lab_bench_row *row);
/* Says why what was verified is wrong, and returns 1. Returns 0 where it is right, or was not verified. */
int lab_bench_wrong(const lab_bench_row *row, char *why, size_t bytes);

#endif
