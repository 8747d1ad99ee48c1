/* The catalog: one row a kernel, every backend. What launchers, planner, tests, bench, lens and docs know of a kernel
 * comes from its row. For tools; fields may be added between minor versions. */
#ifndef RUNG_CATALOG_H
#define RUNG_CATALOG_H

#include "rung.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_backend_id { RUNG_BACKEND_CPU = 0, RUNG_BACKEND_CUDA = 1 } rung_backend_id;
typedef enum rung_role { RUNG_LADDER = 0, RUNG_PRODUCTION = 1, RUNG_REDUCE = 2 } rung_role;
typedef enum rung_arith {
    RUNG_F32 = 0,
    RUNG_TF32 = 1,
    RUNG_TF32X3 = 2,
    RUNG_BF16X6 = 3,
    RUNG_BF16X9 = 4,
    RUNG_F16X3 = 5,
    RUNG_F16X3_CHAIN = 6, /* without promotion: drifts */
    RUNG_F16X3_ALONE = 7, /* promoted, no guard: where single products stand alone they err up to 8 u */
} rung_arith;

enum { /* rung_kernel.accepts: bits */
       RUNG_ACCEPTS_NN = 1,
       RUNG_ACCEPTS_NT = 2,
       RUNG_ACCEPTS_TN = 4,
       RUNG_ACCEPTS_TT = 8,
       RUNG_ACCEPTS_ANY_TRANS = 15,
       RUNG_ACCEPTS_BATCH = 16,    /* strided */
       RUNG_ACCEPTS_ARRAYS = 32,   /* pointer arrays */
       RUNG_ACCEPTS_EPILOGUE = 64, /* bias and activation */
       RUNG_ACCEPTS_DEVICE_SCALARS = 128,
       RUNG_ACCEPTS_ALL = 255,
       RUNG_KEEPS_ORDER = 256, /* can add up each element by k alone: the same bits however C is divided */
};

typedef struct rung_kernel {
    const char *name;     /* file stem = symbol = row = CLI = report */
    const char *file;     /* from the repository's root */
    const char *idea;     /* one line: what it does, or what changed from the previous rung */
    const char *previous; /* previous rung; NULL for the first and for production */
    rung_backend_id backend;
    rung_role role;
    rung_arith arith;
    unsigned accepts;
    int align_bytes;        /* operands and leading dimensions must be multiples of this; 0 or 4: none */
    int bm, bn, bk, stages; /* block tile */
    int wm, wn;             /* warp tile */
    int tm, tn;             /* thread (GPU) or micro-kernel (CPU: MR x NR) tile */
    int threads;            /* a block's (GPU) */
    int shared_bytes;       /* dynamic shared memory a block asks for (GPU) */
    int arch;               /* minimum: 80, 90 (GPU); 0 on the CPU */
    const char *cpu_needs;  /* CPU features, comma separated; NULL: none */
    int max_registers;      /* build-time limits, checked where a disassembler or ptxas output is at hand; 0: none */
    int max_spill_bytes;
    int min_ffma_percent;                       /* of the main loop's instructions */
    const char *seeds;                          /* which steps of the source documents it stands for */
    const char *launch;                         /* name of the launcher that knows its grid and parameters (GPU) */
    int tile;                                   /* its row in that family's tiles.inc, from 0 (GPU, production) */
    rung_status (*cpu_entry)(const void *args); /* CPU: struct rung_cpu_args */
    const char *post;                           /* a verb of tools/sass that rewrites the compiled code; NULL: none */
} rung_kernel;

RUNG_API int rung_kernel_count(void);
RUNG_API const rung_kernel *rung_kernel_at(int index);
RUNG_API const rung_kernel *rung_kernel_find(const char *name); /* NULL: no such kernel */
/* NULL when this context can run the kernel at all, else why not ("needs an sm_90 GPU", "not built: no nvcc"). */
RUNG_API const char *rung_kernel_unusable(rung_context *context, const rung_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
