/* What can be said of a kernel without running it on a GPU: floors, occupancy, accesses, and a small model of its time.
 */
#ifndef LAB_EXPLAIN_H
#define LAB_EXPLAIN_H

#include "lab/lens.h"

typedef struct lab_chip {
    const char *name, *title;
    int arch, sms, fma_lanes; /* FP32 multiply-adds an SM starts in a clock */
    int half_fmas;            /* fp16 or bf16 ones with FP32 sums on its tensor cores; TF32: half as many */
    double clock_ghz, memory_tb_s, l2_mb;
    int shared_per_sm_bytes, shared_per_block_bytes, threads_per_sm, blocks_per_sm;
} lab_chip;
extern const lab_chip lab_chips[]; /* ends with a NULL name */
/* Returns their names in the same order; NULL behind the last. */
const char *const *lab_chip_names(void);

typedef struct lab_resources {
    int registers, stack_bytes, spill_bytes, static_shared_bytes;
} lab_resources;
/* Finds what ptxas used for a kernel on that architecture (its own, or the next lower that was built). Returns 0 where
 * it is not known. */
int lab_resources_of(const char *symbol, int arch, lab_resources *resources);
/* Finds what it used for a rung on Hopper when the ladder was recorded, and by which compiler. Returns 0 where there is
 * no such record. */
int lab_resources_recorded(const rung_kernel *kernel, lab_resources *resources, char *compiler, size_t bytes);

typedef struct lab_occupancy {
    int by_registers, by_shared, by_threads, by_blocks, blocks; /* of one SM; blocks: the least of them */
    int warps, percent;
    int system_bytes, shared_unit_bytes; /* shared memory that a block's start takes, and what it is given out in */
    const char *limiter;
} lab_occupancy;
void lab_occupancy_of(const lab_chip *chip, const lab_resources *resources, int threads, int shared_bytes,
                      lab_occupancy *occupancy);

typedef struct lab_floors {
    double flops, bytes, fma_us, memory_us, intensity, ridge;
    int products;     /* on tensor cores, of these operands' pieces; 0: FFMA */
    const char *unit; /* what multiplies */
} lab_floors;
void lab_floors_of(const lab_chip *chip, rung_arith arith, double m, double n, double k, lab_floors *floors);

/* Finds the busiest of the units that a kernel needs, by what the lens counted: its time, if that unit alone set the
 * pace. */
typedef struct lab_model {
    double fma_us, issue_us, shared_us, l1_us, memory_us, us;
    const char *unit, *limit; /* unit: what multiplies */
    double waves;
} lab_model;
/* Models a run. scale is the problem's m*n*k over that of the lens's run; blocks are the problem's. */
void lab_model_of(const lab_chip *chip, rung_arith arith, const lab_lens_totals *totals, double scale, double m,
                  double n, double k, double blocks, const lab_occupancy *occupancy, lab_model *model);

#endif
