/* Rung on several GPUs and several machines. A multi context is a set of ranks, each with one device and its own
 * memory: the GPUs of one process (local), or one rank a process, over MPI (CPU) or NCCL (GPU). Matrices are
 * distributed in two-dimensional blocks as ScaLAPACK's and cuBLASMp's are: column-major, block-cyclic, each rank
 * holding its blocks in one local array. Indices of sub-matrices count from 1, as theirs do.
 *
 * k is never divided between ranks, and the kernel and the order of k do not depend on how C is divided, so any number
 * of ranks of one kind of device gives the same bits. Calls wait for their result. On several processes each call is
 * made by all of them with the same arguments; a rank that dies or a link that fails makes it return an error that
 * names what happened within the time limit, and the context can then only be destroyed.
 */
#ifndef RUNG_MULTI_H
#define RUNG_MULTI_H

#include "rung.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rung_multi rung_multi;

typedef enum rung_transport {
    RUNG_TRANSPORT_LOCAL = 0, /* all ranks in this process */
    RUNG_TRANSPORT_MPI = 1,   /* one CPU rank a process; needs librung_mpi.so. MPI_Init is called if it was not */
    /* One GPU rank a process; libnccl 2.18 or later is opened at run time (RUNG_NCCL names it where the loader does not
     * find it). Started by MPI, or by any launcher that sets RUNG_RANK, RUNG_SIZE and RUNG_ADDRESS (host:port of rank
     * 0), and RUNG_SECRET, the same text for every rank, where other machines can reach that address. */
    RUNG_TRANSPORT_NCCL = 2,
} rung_transport;

/* Zero every field you do not set, or start from rung_multi_config_init. */
typedef struct rung_multi_config {
    rung_transport transport;
    rung_math math;
    int ranks; /* local: how many; 0: one a GPU, or one CPU rank where there is no GPU */
    const int
        *devices;     /* local: each rank's device (GPU numbers, or RUNG_DEVICE_CPU for all); NULL: GPU i for rank i */
    int device;       /* NCCL: this rank's GPU; RUNG_DEVICE_BEST: by its place among the ranks of its host */
    int threads;      /* CPU threads a rank; 0: as rung_config says (local: ranks compute in turn; MPI: their part) */
    double timeout_s; /* longest wait for another rank or a device; 0: RUNG_TIMEOUT_S, then 60 */
    int64_t memory_bytes; /* operands in host memory: what each GPU may use; 0: most of what is free */
    void *communicator;   /* MPI: points at an MPI_Comm to use (it is duplicated); NULL: MPI_COMM_WORLD */
} rung_multi_config;

RUNG_API void rung_multi_config_init(rung_multi_config *config);
RUNG_API rung_status rung_multi_create(rung_multi **multi, const rung_multi_config *config); /* NULL: local, all GPUs */
RUNG_API void rung_multi_destroy(rung_multi *multi);                                         /* NULL is fine */
/* Without a group of ranks (NULL) these say 0, and the CPU. */
RUNG_API int rung_multi_ranks(const rung_multi *multi);      /* of all processes */
RUNG_API int rung_multi_first_rank(const rung_multi *multi); /* this process holds [first, first + held) */
RUNG_API int rung_multi_held_ranks(const rung_multi *multi);
RUNG_API int rung_multi_device(const rung_multi *multi, int held); /* RUNG_DEVICE_CPU or a GPU's number */

/* A distributed matrix, column-major. Rank r of the grid stands in row r / grid_cols and column r % grid_cols. */
typedef struct rung_matrix {
    int64_t m, n;               /* rows and columns */
    int64_t mb, nb;             /* rows and columns of a block */
    int grid_rows, grid_cols;   /* their product is at most the number of ranks; ranks beyond it hold nothing */
    int row_source, col_source; /* where the first block lies (RSRC, CSRC) */
    int64_t ld;                 /* leading dimension of the local arrays: at least each one's rows, and 1 */
} rung_matrix;

/* Fills a descriptor, source 0, 0, ld as large as the rank with most rows needs. */
RUNG_API void rung_matrix_init(rung_matrix *matrix, int64_t m, int64_t n, int64_t mb, int64_t nb, int grid_rows,
                               int grid_cols);
/* Rows and columns that a rank holds (NUMROC); 0 outside the grid, and of a descriptor that no call would take. */
RUNG_API int64_t rung_matrix_rows(const rung_matrix *matrix, int rank);
RUNG_API int64_t rung_matrix_cols(const rung_matrix *matrix, int rank);

/* C(ic.., jc..) = alpha*op(A(ia.., ja..))*op(B(ib.., jb..)) + beta*C(ic.., jc..), op(A) m x k, op(B) k x n. Layouts,
 * blocks and grids of the three need not match. a, b and c list the local arrays of the ranks that this process holds,
 * in the memory of their devices. */
RUNG_API rung_status rung_psgemm(rung_multi *multi, rung_transpose trans_a, rung_transpose trans_b, int64_t m,
                                 int64_t n, int64_t k, float alpha, const float *const *a, int64_t ia, int64_t ja,
                                 const rung_matrix *desc_a, const float *const *b, int64_t ib, int64_t jb,
                                 const rung_matrix *desc_b, float beta, float *const *c, int64_t ic, int64_t jc,
                                 const rung_matrix *desc_c);

/* B(ib.., jb..) = A(ia.., ja..), m x n, between any two distributions. */
RUNG_API rung_status rung_redistribute(rung_multi *multi, int64_t m, int64_t n, const float *const *a, int64_t ia,
                                       int64_t ja, const rung_matrix *desc_a, float *const *b, int64_t ib, int64_t jb,
                                       const rung_matrix *desc_b);
/* Between a whole column-major matrix in rank root's host memory and its distributed form. Other processes than the
 * root's pass NULL for whole. */
RUNG_API rung_status rung_scatter(rung_multi *multi, int root, const float *whole, int64_t ld, float *const *a,
                                  const rung_matrix *desc_a);
RUNG_API rung_status rung_gather(rung_multi *multi, int root, const float *const *a, const rung_matrix *desc_a,
                                 float *whole, int64_t ld);

/* rung_sgemm for several GPUs (a rung_context is one device, so it is a call of its own):
 * C = alpha*op(A)*op(B) + beta*C on operands in this process's host memory, tiles of C shared out over its GPUs (local
 * transport). C must lie apart from A and B, as there. They may be larger than the GPUs' memory. Pinned memory
 * (rung_multi_host_alloc) travels directly, other memory through pinned buffers. */
RUNG_API rung_status rung_multi_sgemm(rung_multi *multi, rung_layout layout, rung_transpose trans_a,
                                      rung_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                                      const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                                      int64_t ldc);

/* Memory of a held rank's device, and pinned memory that all devices of the process reach. */
RUNG_API rung_status rung_multi_alloc(rung_multi *multi, int held, int64_t bytes, void **memory);
RUNG_API void rung_multi_free(rung_multi *multi, int held, void *memory);
RUNG_API rung_status rung_multi_host_alloc(rung_multi *multi, int64_t bytes, void **memory);
RUNG_API void rung_multi_host_free(rung_multi *multi, void *memory);
/* Between host memory and a held rank's array; both wait. */
RUNG_API rung_status rung_multi_upload(rung_multi *multi, int held, void *to, const void *from, int64_t bytes);
RUNG_API rung_status rung_multi_download(rung_multi *multi, int held, void *to, const void *from, int64_t bytes);

/* All ranks reach this point, or the time limit passes. */
RUNG_API rung_status rung_multi_barrier(rung_multi *multi);

/* What ran when: while tracing is on, each copy and product of the calls leaves a span. Tracing costs a little time. */
typedef struct rung_span {
    int rank;                 /* of the device it ran on */
    const char *lane;         /* "copy in", "product", "copy out" ... */
    const char *what;         /* "A panel 0" ... */
    double start_us, stop_us; /* since tracing was turned on */
} rung_span;

RUNG_API rung_status rung_multi_trace(rung_multi *multi, int on); /* turning it on forgets earlier spans */
/* Spans of the ranks that this process holds, at most 2^20, fewer where memory runs short; they stay valid until the
 * next call. */
RUNG_API int rung_multi_spans(const rung_multi *multi, const rung_span **spans);

#ifdef __cplusplus
}
#endif
#endif
