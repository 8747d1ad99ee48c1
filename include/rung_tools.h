/* For measuring tools, not stable: memory, time and kernels of their own on the GPU that the library uses, so that the
 * lab, the command line and the tests need nothing of CUDA themselves. Everything runs on one stream, in order, in the
 * GPU's primary context, which is current on the calling thread from open to close (cuBLAS finds it there).
 * Failures read through rung_last_error(). A build without nvcc answers RUNG_NO_DEVICE to open. */
#ifndef RUNG_TOOLS_H
#define RUNG_TOOLS_H

#include "rung_catalog.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_tools rung_tools;

typedef struct rung_tools_machine {
    char name[128];
    char pci_bus_id[24];
    int arch; /* 80, 90 ... */
    int sms;
    int driver_version; /* 13000: CUDA 13.0 */
    int shared_per_block_bytes;
    int64_t l2_bytes, memory_bytes;
    double clock_ghz;
    double fma_gflops;          /* 128 FP32 units an SM at that clock */
    double memory_gbytes_per_s; /* by bus width and memory clock; 0: the driver does not say */
} rung_tools_machine;

RUNG_API int rung_tools_gpu_count(void); /* 0 without a driver or GPU: rung_last_error() says why */
RUNG_API rung_status rung_tools_open(rung_tools **tools, int gpu);
RUNG_API void rung_tools_close(rung_tools *tools);
RUNG_API const rung_tools_machine *rung_tools_describe(const rung_tools *tools);
RUNG_API void *rung_tools_stream(const rung_tools *tools); /* a CUstream, for rung_config.stream and peers */
RUNG_API rung_status rung_tools_synchronize(rung_tools *tools);

RUNG_API rung_status rung_tools_alloc(rung_tools *tools, size_t bytes, void **memory);
RUNG_API void rung_tools_free(rung_tools *tools, void *memory);
RUNG_API rung_status rung_tools_free_bytes(rung_tools *tools, int64_t *bytes);
RUNG_API rung_status rung_tools_upload(rung_tools *tools, void *device, const void *host, size_t bytes);   /* waits */
RUNG_API rung_status rung_tools_download(rung_tools *tools, void *host, const void *device, size_t bytes); /* waits */
RUNG_API rung_status rung_tools_copy(rung_tools *tools, void *to, const void *from, size_t bytes); /* on the device */
RUNG_API rung_status rung_tools_fill(rung_tools *tools, void *device, uint32_t pattern, size_t words);

RUNG_API rung_status rung_tools_event_create(rung_tools *tools, void **event);
RUNG_API void rung_tools_event_destroy(rung_tools *tools, void *event);
RUNG_API rung_status rung_tools_event_record(rung_tools *tools, void *event);
RUNG_API rung_status rung_tools_event_elapsed(rung_tools *tools, void *start, void *stop,
                                              float *ms); /* waits for stop */

/* What is queued between begin and end becomes a graph that can be launched again and again. */
RUNG_API rung_status rung_tools_capture_begin(rung_tools *tools);
RUNG_API rung_status rung_tools_capture_end(rung_tools *tools, void **graph);
RUNG_API rung_status rung_tools_graph_launch(rung_tools *tools, void *graph);
RUNG_API void rung_tools_graph_destroy(rung_tools *tools, void *graph);

/* Kernels that are no products: a kernel file by its stem, from the device code beside the library. */
RUNG_API rung_status rung_tools_load(rung_tools *tools, const char *stem, void **module);
/* What the compiler gave each kernel on a chip of this compute capability, a line a kernel: "symbol registers stack
 * spill shared", the last three in bytes. Needs no GPU. NULL where this installation has no device code for the chip.
 */
RUNG_API const char *rung_tools_resources(int arch);
RUNG_API void rung_tools_unload(rung_tools *tools, void *module);
RUNG_API rung_status rung_tools_function(rung_tools *tools, void *module, const char *symbol, void **function);
RUNG_API rung_status rung_tools_launch(rung_tools *tools, void *function, const unsigned grid[3], unsigned threads,
                                       unsigned shared_bytes, void **parameters);

/* A kernel of the user's own, from a cubin in memory: a symbol that takes rung_args, one block a bm x bn tile of C with
 * columns along grid x, row-major operands. As rung_lens_own, on the GPU. */
typedef struct rung_tools_own {
    int bm, bn, threads, shared_bytes;
    int64_t m, n, k, lda, ldb, ldc;
    const float *a, *b;
    float *c;
    float alpha, beta;
    int parts, split_k; /* grid z; the parts that rung_args names */
    void *workspace;
} rung_tools_own;
RUNG_API rung_status rung_tools_load_image(rung_tools *tools, const void *image, void **module);
RUNG_API rung_status rung_tools_own_gemm(rung_tools *tools, void *function, const rung_tools_own *own);

/* What the driver says of a catalog kernel once it is loaded. */
typedef struct rung_tools_kernel {
    int registers, local_bytes, shared_bytes; /* a thread's, a thread's, a block's static and dynamic */
    int blocks_per_sm;                        /* resident at once */
} rung_tools_kernel;
/* symbol NULL: the row's own name. */
RUNG_API rung_status rung_tools_kernel_inspect(rung_tools *tools, const rung_kernel *kernel, const char *symbol,
                                               rung_tools_kernel *out);
/* Runs one kernel of the reduce ladder by name; NULL: the one rung_ssum takes. */
RUNG_API rung_status rung_tools_reduce(rung_tools *tools, const char *kernel, int64_t n, const float *x, float *result);

/* Tuned shapes: what a context prefers over its own ranking. Recording changes this context at once, saving writes the
 * user's cache file for later ones. Only devices with an identity can be tuned (GPUs). */
RUNG_API rung_status rung_tune_record(rung_context *context, const rung_gemm *gemm, const char *kernel, double us);
RUNG_API rung_status rung_tune_save(rung_context *context);
RUNG_API const char *rung_tune_path(const rung_context *context);  /* "" when there is no cache folder */
RUNG_API const char *rung_tune_state(const rung_context *context); /* what was loaded, or why nothing was */
/* The production kernels that take a product, best first by prediction; returns how many names were written. */
RUNG_API int rung_tune_candidates(rung_context *context, const rung_gemm *gemm, const char **kernels, int capacity);

/* Of the calling thread: products whose plan was made, products whose plan was remembered, and estimates of what a
 * kernel would take, made to choose one. */
typedef struct rung_recent_counts {
    int64_t planned, found, estimated;
} rung_recent_counts;
RUNG_API void rung_recent_count(rung_recent_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
