/* What the stand-in for cuBLAS and its test share. */
#ifndef RUNG_TESTS_FAKE_CUBLAS_H
#define RUNG_TESTS_FAKE_CUBLAS_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_CUBLAS(X)                                                                                                 \
    X(0, cublasSgemm_v2)                                                                                               \
    X(1, cublasSgemm_v2_64)                                                                                            \
    X(2, cublasSgemmStridedBatched)                                                                                    \
    X(3, cublasSgemmStridedBatched_64)                                                                                 \
    X(4, cublasSgemmBatched)                                                                                           \
    X(5, cublasSgemmBatched_64)                                                                                        \
    X(6, cublasSgemmEx)                                                                                                \
    X(7, cublasSgemmEx_64)                                                                                             \
    X(8, cublasGemmEx)                                                                                                 \
    X(9, cublasGemmEx_64)                                                                                              \
    X(10, cublasGemmStridedBatchedEx)                                                                                  \
    X(11, cublasGemmStridedBatchedEx_64)                                                                               \
    X(12, cublasGemmBatchedEx)                                                                                         \
    X(13, cublasGemmBatchedEx_64)                                                                                      \
    X(14, cublasLtMatmul)                                                                                              \
    X(15, cublasDgemm_v2)

enum { FAKE_ENTRIES = 16, FAKE_CAPTURING = 8 }; /* the stream of that address records a graph */

typedef struct fake_handle {
    void *stream;
    int pointer_mode, math_mode;
} fake_handle;

#endif
