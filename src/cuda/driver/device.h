/* One GPU as its contexts share it, and what a launcher is given: the machine, kernels by name, workspace. */
#ifndef RUNG_CUDA_DEVICE_H
#define RUNG_CUDA_DEVICE_H

#include "core/backend.h"
#include "core/divide.h"
#include "cuda/device/args.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/graph_memory.h"

#include <pthread.h>

enum {
    RUNG_MOST_GPUS = 64,
    RUNG_MOST_SYMBOLS = 1024,
    RUNG_KEPT_BUFFERS = 4,
    RUNG_KNOWN_FUNCTIONS = 256,
    RUNG_KEPT_BYTES = 160 << 20,        /* of the pool, between products */
    RUNG_KEPT_BUFFER_BYTES = 156 << 20, /* of a buffer with its counters: zeros have room beside it */
};

/* What planning needs to know of a chip; on a machine without one, tests fill it by hand. */
typedef struct rung_machine {
    char name[128];
    int arch; /* 80, 90 ... */
    int sms;
    int shared_per_block_bytes; /* with opt-in */
    int64_t l2_bytes, memory_bytes;
    double clock_ghz, memory_speed; /* bytes that memory gives in the same time, an H200's are 1 */
    int driver_version;
} rung_machine;

typedef struct rung_gpu rung_gpu;
typedef struct rung_staging rung_staging;
typedef struct rung_chain rung_chain;
typedef struct rung_recorded rung_recorded;
typedef struct rung_recall_table rung_recall_table;

/* One loaded kernel function with its dynamic shared memory already allowed. */
typedef struct rung_function {
    CUfunction function;
    int registers, local_bytes, shared_bytes;
} rung_function;

/* A function that a context has launched: a kernel's form for some transposes, or the kernel that has no forms. */
typedef struct rung_known_function {
    const rung_kernel *kernel; /* NULL: none yet */
    const char *end;
    int form;
    rung_function function;
} rung_known_function;

/* Small workspace is kept between calls, one buffer a stream: allocating costs more than a small product. */
typedef struct rung_kept_buffer {
    void *memory;
    int64_t bytes;
    unsigned long long stream_id;
    CUevent last_use;
    int use_recorded; /* last_use was recorded behind all that uses the buffer */
    int in_use;
    int dirty; /* of zeros: they are not known to be zero */
} rung_kept_buffer;

typedef struct rung_kept {
    rung_kept_buffer buffers[RUNG_KEPT_BUFFERS];
    int next;    /* the buffer that is given to another stream next */
    int several; /* more than one stream has been lent a buffer */
} rung_kept;

/* A launch as the driver was given it. */
typedef struct __attribute__((may_alias)) rung_kept_launch {
    CUfunction function;
    CUlaunchConfig config;
    CUlaunchAttribute attributes[2];
    rung_args args;
    int swapped; /* args.a is the problem's b, and args.b its a */
} rung_kept_launch;

typedef struct rung_cuda {
    const rung_driver *driver;
    rung_gpu *gpu;
    const rung_machine *machine;
    int index;
    char identity[160];
    rung_config config;
    void *known_stream; /* the last stream that was found to be this GPU's */
    rung_known_function known_functions[RUNG_KNOWN_FUNCTIONS];
    rung_kept kept, zeros;
    rung_graph_loans graph_loans;
    void *guard_counts;        /* device counters of accurate mode's guard; made by its first product */
    rung_recall_table *recall; /* what accurate mode's guard said before; made by its first product */
    int recall_failed;         /* there was no memory for it: it is not asked for again */
    rung_staging *staging;     /* made by the first product on host operands */
    rung_chain *chain;         /* made by the first product of several launches in a row */
    rung_recorded *recorded;   /* made by the first of them that a graph records */
    const rung_kernel *ran;    /* that computed the last product */
    uint64_t writes;           /* so many launches that may have written C are queued */
    uint64_t writes_before;    /* the last product */
    /* Where the launch of this run is kept, if it is the only one, and whose operands it reads; NULL: nowhere. */
    rung_rerun *keep;
    const rung_problem *keep_of;
} rung_cuda;

/* Gets a GPU's shared state (primary context, loaded modules), which is made once per process and kept until exit. */
rung_status rung_gpu_get(int index, rung_gpu **gpu);
const rung_driver *rung_gpu_driver(const rung_gpu *gpu);
const rung_machine *rung_gpu_machine(const rung_gpu *gpu);
CUcontext rung_gpu_context(const rung_gpu *gpu);
CUmemoryPool rung_gpu_pool(const rung_gpu *gpu);
rung_idle_buffers *rung_gpu_idle_buffers(rung_gpu *gpu);

/* Loads a kernel file's image, which the caller then owns. */
rung_status rung_gpu_library(rung_gpu *gpu, const char *stem, CUlibrary *library);
/* Finds the function `symbol` of the catalog file `stem` and loads its image on first use. Any thread may call this. A
 * launch may ask for all the shared memory that the chip gives a block. */
rung_status rung_gpu_function(rung_gpu *gpu, const char *stem, const char *symbol, rung_function *function);
/* Returns NULL when the build has the kernel's machine code and the chip is new enough for it, else why not. */
const char *rung_gpu_unusable(const rung_machine *machine, const rung_kernel *kernel);

/* Returns the most memory that may be kept for a loan of so many bytes: where the user has said what a product may
 * borrow, no more than that. */
static inline int64_t rung_kept_most(const rung_cuda *cuda, int64_t bytes, int64_t otherwise)
{
    const int64_t limit = cuda->config.workspace_limit_bytes;
    return limit > 0 && limit < otherwise ? max64(limit, bytes) : otherwise;
}

/* Lends device memory for the length of the launches that use it, in the order of the context's stream. Its contents
 * are undefined. Every get is followed by a put on the same stream. Under stream capture it is the graph's: allocated
 * by its nodes, or kept for it (graph_memory.h). */
rung_status rung_workspace_get(rung_cuda *cuda, int64_t bytes, void **memory);
void rung_workspace_put(rung_cuda *cuda, void *memory);
/* Does the same with RUNG_TICKET_BYTES of counters just before the memory: they are zero when handed out, and the
 * launches must leave them zero. Those of a kept buffer are cleared once, so that parts of k cost no extra launch. NULL
 * for no bytes. */
rung_status rung_workspace_get_with_tickets(rung_cuda *cuda, int64_t bytes, void **memory);
void rung_workspace_put_with_tickets(rung_cuda *cuda, void *memory);
/* Lends memory and, beside it, zero_bytes that stay with the stream. They are zero when handed out, and the launches
 * that use them must leave them zero; are_zero = 0 says that they may not be. The zeros are NULL where more are asked
 * for than are kept, and without memory: the caller then clears memory of its own. */
rung_status rung_workspace_get_with_zeros(rung_cuda *cuda, int64_t bytes, int64_t zero_bytes, void **memory,
                                          void **zeros);
void rung_workspace_put_with_zeros(rung_cuda *cuda, void *memory, void *zeros, int are_zero);
void rung_workspace_close(rung_cuda *cuda);
/* Waits for all that is queued on the GPU in this process, on whichever stream. */
void rung_wait_for_all(rung_cuda *cuda);

/* What a launch of a chain waits for. */
typedef enum rung_chain_order {
    RUNG_AFTER_ALL,   /* for all before it */
    RUNG_BESIDE_LAST, /* for what the one before it waits for: both may run at the same time */
    RUNG_AFTER_LAST   /* for the one before it alone */
} rung_chain_order;

typedef struct rung_grid {
    unsigned x, y, z; /* blocks; y and z 0: one */
    unsigned threads, shared_bytes;
    unsigned cluster; /* blocks of a cluster along x; 0: none */
    int overlaps;     /* the kernel calls rung_after_earlier_kernels(): it may start while the one before it ends */
    unsigned argument_bytes; /* size of the argument, where a chain may hold the launch back (chain.h); 0: it may not */
    rung_chain_order order;  /* in a chain */
    int may_crowd;           /* where they are many, blocks need the first level of cache more than even shares */
    int beside_next;         /* the next kernel's blocks have room beside this one's: they wait there */
    int repeats;             /* the argument is a rung_args, and the product has no other launch */
    int prepares;            /* it writes workspace only */
} rung_grid;

/* From so many blocks a multiprocessor on, a share that is uneven by one block costs less than a smaller cache. */
enum { RUNG_MANY_BLOCKS = 5 };

/* Launches on the context's stream. `argument` points at the kernel's one struct parameter. */
rung_status rung_launch(rung_cuda *cuda, const rung_function *function, const rung_grid *grid, const void *argument);
/* Launches what is kept on the problem's operands and the workspace. */
rung_status rung_launch_again(rung_cuda *cuda, rung_rerun *rerun, const rung_problem *problem, void *workspace);

/* Finds the kernel's function for the problem's transposes: its name with _nn, _nt, _tn or _tt, and `end`, a literal,
 * behind. */
rung_status rung_form_function(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *problem, const char *end,
                               rung_function *function);
/* Finds the function of a kernel that has one for all transposes. */
rung_status rung_kernel_function(rung_cuda *cuda, const rung_kernel *kernel, rung_function *function);

/* Fills the argument struct from the problem. */
void rung_args_fill(rung_args *args, const rung_problem *problem);

/* Returns whether the context's stream records a graph. */
int rung_is_capturing(const rung_cuda *cuda);

/* Returns when the kernel after this choice's starts (rung_args.next_start): of products that are predicted to take
 * less than short_us before their blocks' ends, of longer ones up to long_us at once, of others after all blocks' ends.
 * In a graph all gain by a start at once (docs/costs.md). */
rung_next_start rung_next_starts(rung_cuda *cuda, const rung_choice *choice, double short_us, double long_us);

/* Returns whether a kernel asks for its operands while it waits for the one before it (rung_args.asks). The arguments
 * say when the next kernel starts. There are so many blocks, and a multiprocessor holds so many: those of two kernels
 * must have room at once, or most of these would not wait. Beyond three and a half blocks a multiprocessor what they
 * ask for takes longer than they wait, and on chips before Hopper none waits. Where an array holds the operands'
 * addresses, these may still be written. */
int rung_asks(const rung_cuda *cuda, const rung_args *args, int64_t blocks, int64_t resident);

/* A launcher knows the grid, parameters and cost of a family of kernels. Rows name theirs in .launch. */
typedef struct rung_launcher {
    const char *name;
    /* Fills *choice and returns NULL when the kernel takes the problem, else the reason why not. It needs no GPU, only
     * the machine. */
    const char *(*estimate)(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *problem, rung_choice *choice);
    /* Launches what was chosen, on choice->workspace_bytes with counters before them (NULL where there are none). */
    rung_status (*launch)(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem, char *workspace);
    /* NULL, or a function that is called in place of launch() and finds workspace by itself. */
    rung_status (*run)(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem);
    /* NULL, or a function that returns at most the cost that estimate() gives, in far less time. Of a product that
     * estimate() refuses it may return anything. */
    double (*floor_us)(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *problem);
} rung_launcher;

extern const rung_launcher *const rung_launchers[]; /* ends with NULL; src/cuda/host/launchers.c */
const rung_launcher *rung_launcher_find(const char *name);
const rung_launcher *rung_launcher_of(const rung_kernel *kernel); /* the one that its row names */

#endif
