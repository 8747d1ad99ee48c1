/* The lens: CUDA C kernels run on the CPU, lane by lane, every memory access seen. librung_lens.so answers the CUDA
 * driver API, so the library's own CUDA backend drives it (RUNG_LIBCUDA names it); the calls here say what to look at
 * and give what was seen. For tools; one thread at a time; fields may be added between minor versions. */
#ifndef RUNG_LENS_H
#define RUNG_LENS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RUNG_LENS_API __attribute__((visibility("default")))
#else
#define RUNG_LENS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { RUNG_LENS_VERSION = 2, RUNG_LENS_LANES = 32 };

typedef enum rung_lens_space { RUNG_LENS_GLOBAL = 0, RUNG_LENS_SHARED = 1 } rung_lens_space;
/* ASYNC: cp.async, whose two halves are a global load and a shared store; BULK: one thread moves a box (TMA). */
typedef enum rung_lens_kind {
    RUNG_LENS_LOAD = 0,
    RUNG_LENS_STORE = 1,
    RUNG_LENS_ATOMIC = 2,
    RUNG_LENS_ASYNC = 3,
    RUNG_LENS_BULK = 4,
    RUNG_LENS_MMA = 5, /* tensor-core instructions; lanes counts the multiply-adds, bytes the shared bytes read */
} rung_lens_kind;

/* Sums over warps of what one load or store in the source did. Counts are of the whole grid: where only some blocks
 * ran, each stands for the blocks of its kind (inside, last row, last column). */
typedef struct rung_lens_site {
    char file[256]; /* "" when unknown */
    int line;
    rung_lens_space space;
    rung_lens_kind kind;
    int bytes;                      /* of one lane's access */
    double requests;                /* one a warp and execution */
    double lanes;                   /* active ones */
    double sectors;                 /* global: 32-byte sectors touched */
    double lines;                   /* global: 128-byte lines touched, which the L1 looks up one by one */
    double bytes_used, bytes_moved; /* global: distinct bytes, sectors * 32; shared: distinct bytes, wavefronts * 128 */
    double wavefronts, ideal_wavefronts; /* shared: passes it takes, passes its bytes would need without conflicts */
    /* Shared: as nvcc would issue it, neighbouring scalar accesses of one lane merged to 8 or 16 bytes where aligned.
     */
    double merged_requests, merged_wavefronts, merged_ideal;
    int ways;      /* shared: most passes any one request took beyond its ideal, as n-way (1: free of conflicts) */
    char name[48]; /* the operand or shared array */
    /* One request of a full warp, from a block in the middle of the grid where there is one. */
    uint32_t sample_mask;
    int64_t sample_offset[RUNG_LENS_LANES]; /* bytes: from the operand's start, or of shared memory */
    int64_t sample_row[RUNG_LENS_LANES], sample_column[RUNG_LENS_LANES]; /* of the operand; -1: not one */
} rung_lens_site;

typedef enum rung_lens_fault {
    RUNG_LENS_OUT_OF_BOUNDS = 0,
    RUNG_LENS_UNINITIALISED = 1,
    RUNG_LENS_RACE = 2,
    RUNG_LENS_DIVERGENT_BARRIER = 3,
    RUNG_LENS_ENDLESS = 4,
    RUNG_LENS_DEADLOCK = 5,
    RUNG_LENS_TRAP = 6,
    RUNG_LENS_MISALIGNED = 7,
} rung_lens_fault;

typedef struct rung_lens_finding {
    rung_lens_fault fault;
    unsigned block[3];
    int thread;
    char file[256];
    int line;
    char text[512]; /* one sentence */
} rung_lens_finding;

/* Which thread of one block (in the middle of the grid) wrote which element of the operand named "C". */
typedef struct rung_lens_owner {
    int64_t row, column;
    int thread;
} rung_lens_owner;

typedef struct rung_lens_launch {
    char kernel[96];
    unsigned grid[3], threads, cluster;
    int static_shared_bytes, dynamic_shared_bytes;
    int64_t blocks, blocks_run;
    double barriers; /* block-wide barriers, summed over blocks */
    double shuffles; /* warp shuffles and votes, summed over warps */
    const rung_lens_site *sites;
    int site_count;
    const rung_lens_finding *findings;
    int finding_count;
    int findings_left_out; /* places and kinds beyond those that are kept */
    const rung_lens_owner *owners;
    int owner_count;
    unsigned owner_block[3];
    double seconds;
} rung_lens_launch;

typedef struct rung_lens_options {
    int64_t max_blocks;      /* blocks to run of each kind (inside, edges, corner); 0: all */
    double patience_seconds; /* a lane that computes longer than this without a barrier loops for ever; 0: 10 */
    int sms;                 /* multiprocessors the device claims; 0: RUNG_LENS_SMS, or else 132 */
    const char *kernels; /* folder of objects made before; NULL: RUNG_LENS_KERNELS, or they are made when asked for */
} rung_lens_options;

RUNG_LENS_API int rung_lens_version(void);
/* Requests are counted in launches after the first such call: one that verifies results only has no need of them. */
RUNG_LENS_API void rung_lens_configure(const rung_lens_options *options);
/* Forgets launches and operands. */
RUNG_LENS_API void rung_lens_reset(void);
/* What a piece of device memory holds: names in reports, and a store between its rows or past its end is a fault. */
RUNG_LENS_API void rung_lens_operand(const char *name, const void *at, int64_t rows, int64_t columns, int64_t ld);
RUNG_LENS_API int rung_lens_launch_count(void);
/* Valid until the next launch or reset. */
RUNG_LENS_API const rung_lens_launch *rung_lens_launch_at(int index);
/* NULL when `kernel` can run: it is compiled for the lens when it is first asked for, which takes seconds. Else one
 * line that says why not. */
RUNG_LENS_API const char *rung_lens_missing(const char *kernel);
/* The script that compiles a kernel file: lens_cc.sh SOURCE.cu OUT.so. NULL where this installation has none. */
RUNG_LENS_API const char *rung_lens_compiler(void);

/* A kernel of the user's own: the object that lens_cc.sh made of it and a symbol that takes rung_args, one block a
 * bm x bn tile of C with columns along grid x. Operands are row-major, in the lens's device memory. NULL, or why it did
 * not run. */
typedef struct rung_lens_own {
    const char *object, *symbol;
    int bm, bn, threads, shared_bytes;
    int64_t m, n, k, lda, ldb, ldc;
    const float *a, *b;
    float *c;
    float alpha, beta;
    int parts;       /* grid z: each part of k has its own blocks; 0: one */
    int split_k;     /* the parts that rung_args names; 0: as many as grid z has */
    void *workspace; /* for the parts' sums */
} rung_lens_own;
RUNG_LENS_API const char *rung_lens_gemm(const rung_lens_own *own);

/* The same for a symbol that takes rung_reduce_args, on so many blocks. */
typedef struct rung_lens_own_sum {
    const char *object, *symbol;
    int blocks, threads, shared_bytes;
    int64_t n;
    const float *x;
    float *out, *partials; /* one a block */
    unsigned *ticket;
} rung_lens_own_sum;
RUNG_LENS_API const char *rung_lens_sum(const rung_lens_own_sum *own);

#ifdef __cplusplus
}
#endif
#endif
