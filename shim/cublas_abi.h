/* The part of cuBLAS's binary interface that the drop-in answers or asks: plain C types, so that no CUDA header is
 * needed to build it. tests/ check these numbers against NVIDIA's headers where those are installed. */
#ifndef RUNG_SHIM_CUBLAS_ABI_H
#define RUNG_SHIM_CUBLAS_ABI_H

#include <stdint.h>

typedef int cublas_status;
enum { CUBLAS_OK = 0, CUBLAS_NOT_INITIALIZED = 1, CUBLAS_FAILED = 13 }; /* CUBLAS_STATUS_EXECUTION_FAILED */
enum { CUBLAS_N = 0, CUBLAS_T = 1, CUBLAS_C = 2 };
enum { CUBLAS_ON_HOST = 0, CUBLAS_ON_DEVICE = 1 }; /* pointer modes */
enum {
    CUBLAS_MATH_DEFAULT = 0,
    CUBLAS_MATH_PEDANTIC = 2,
    CUBLAS_MATH_F32_EMULATED = 4, /* by BF16x9 */
    CUBLAS_MATH_NO_REDUCED_REDUCTION = 16
};
enum { CUBLAS_TYPE_F32 = 0 }; /* CUDA_R_32F */
enum { CUBLAS_COMPUTE_F32 = 68, CUBLAS_COMPUTE_F32_PEDANTIC = 69, CUBLAS_COMPUTE_F32_EMULATED = 78 };

/* cublasLtMatmulDescAttributes_t */
enum {
    LT_COMPUTE_TYPE = 0,
    LT_SCALE_TYPE = 1,
    LT_POINTER_MODE = 2,
    LT_TRANS_A = 3,
    LT_TRANS_B = 4,
    LT_TRANS_C = 5,
    LT_EPILOGUE = 7,
    LT_BIAS_POINTER = 8,
    LT_A_SCALE = 17,
    LT_B_SCALE = 18,
    LT_C_SCALE = 19,
    LT_D_SCALE = 20,
    LT_AMAX_D = 21,
    LT_BIAS_TYPE = 26,
};
/* cublasLtMatrixLayoutAttribute_t */
enum {
    LT_TYPE = 0,
    LT_ORDER = 1,
    LT_ROWS = 2,
    LT_COLS = 3,
    LT_LD = 4,
    LT_BATCH = 5,
    LT_STRIDE = 6,
    LT_PLANE = 7,
    LT_BATCH_MODE = 8
};
enum { LT_ORDER_COLUMN = 0, LT_ORDER_ROW = 1 };
enum { LT_PLAIN = 1, LT_RELU = 2, LT_BIAS = 4, LT_RELU_BIAS = 6, LT_GELU = 32, LT_GELU_BIAS = 36 };

#endif
