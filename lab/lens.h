/* Kernels under the lens, from the lab's side: opens librung_lens.so as this process's GPU, runs a product, checks it,
 * and adds up what was seen. Once opened, every GPU call of this process goes to the lens. */
#ifndef LAB_LENS_H
#define LAB_LENS_H

#include "lab/error.h"
#include "rung_catalog.h"
#include "rung_lens.h"

/* What a user's own kernel computes: C = alpha A B + beta C, alpha A + beta C, alpha A^T + beta C, or the sum of m n
 * floats. */
typedef enum lab_lens_problem { LAB_LENS_PRODUCT, LAB_LENS_ADD, LAB_LENS_TRANSPOSE, LAB_LENS_SUM } lab_lens_problem;

typedef struct lab_lens_case {
    const rung_kernel *kernel;    /* NULL: the user's own, below */
    int64_t m, n, k, pad, offset; /* a kernel of the ladder of sums sums m n floats */
    float alpha, beta;
    uint64_t seed;      /* 0: the data of every run without one */
    int64_t max_blocks; /* of each kind; 0: all */
    double patience_seconds;
    int sms;
    /* The user's own kernel. */
    lab_lens_problem problem;
    const char *object, *symbol;
    int bm, bn, threads, shared_bytes;
    int parts;          /* of k, each with blocks of its own along grid z; a sum: its blocks; 0: one, or by bm */
    const char *finish; /* a second kernel, which adds the parts: a row of C and 256 columns a block; NULL: none */
    int one_result;     /* a sum: out[0] is all of it, not one result a block */
} lab_lens_case;

/* Sums over a launch's sites. Shared counts are as nvcc would issue them (neighbouring accesses merged). */
typedef struct lab_lens_totals {
    double global_load_requests, global_load_sectors, global_load_lanes,
        global_load_bytes; /* bytes that lanes asked for */
    double global_load_used, global_load_moved;
    double global_store_requests, global_store_sectors, global_store_bytes, global_store_used, global_store_moved;
    double global_atomic_requests, global_atomic_sectors; /* of those */
    double async_requests, async_sectors, bulk_requests, bulk_bytes;
    double shared_load_requests, shared_load_wavefronts, shared_load_ideal, shared_load_bytes;
    double shared_store_requests, shared_store_wavefronts, shared_store_ideal;
    double async_wavefronts, async_ideal;                                /* cp.async into shared memory */
    double written_shared_load_requests, written_shared_load_wavefronts; /* as the source has it, before merging */
    double global_lines; /* 128-byte lines looked up in the L1, loads and stores */
    double barriers, blocks;
} lab_lens_totals;

typedef struct lab_lens_result {
    int launches, findings, findings_left_out;
    int64_t checked; /* elements compared with FP64 */
    double error_u;  /* the worst of them */
    int right;
    int unjudged;  /* no element was compared: the blocks that ran read what others would have written */
    int untouched; /* results are missing, and no operand was touched */
    char why[400]; /* when it is not right, or did not run */
} lab_lens_result;

/* Opens the lens. The status is RUNG_MISSING_LIBRARY, with the reason, when this build or machine has none. */
rung_status lab_lens_open(void);
const char *lab_lens_missing(const rung_kernel *kernel); /* NULL: it can run under the lens */
/* Returns why no block of a kernel stands for others, so that all of them run; NULL: some stand for all. */
const char *lab_lens_whole(const rung_kernel *kernel);
/* Runs and checks. What was seen stays available until the next call. */
rung_status lab_lens_run(const lab_lens_case *c, lab_lens_result *result);
int lab_lens_launches(void);
const rung_lens_launch *lab_lens_launch(int index);
void lab_lens_sum(lab_lens_totals *totals); /* over all launches of the last run */
/* Compiles a user's kernel file; object gets the path of the result, in a folder that lab_lens_close removes. */
rung_status lab_lens_compile(const char *source, char *object, size_t object_bytes);
/* Returns the folder whose device/args.h a kernel file includes. */
const char *lab_lens_sources(void);
/* Returns what a compiled kernel file defines under that name; NULL where it defines nothing. */
void *lab_lens_symbol(const char *object, const char *name);
enum { LAB_LENS_NAME_BYTES = 96 };
/* Finds the names of the kernels in an object that lab_lens_compile() made, `most` at most; with `only` whether there
 * is one of that name. Returns how many. A variable is none. */
int lab_lens_kernels(const char *object, const char *only, char names[][LAB_LENS_NAME_BYTES], int most);
void lab_lens_close(void);

extern const char *const lab_lens_faults[];

#endif
