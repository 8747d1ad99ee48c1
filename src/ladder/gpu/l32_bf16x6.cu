/* l32_bf16x6: three bf16 parts an element, the six products that matter: bf16 has FP32's range and twice TF32's rate.
 * Contract: NN, any size and leading dimension. Changed: parts of 8 bits, 24 together, so nothing of an element is
 * lost. Limits: products below 2^-24 of the leading one are left out. */
#define T_NAME l32_bf16x6
#define T_TF32 0
#define T_IMAGES 4
#define T_PRODUCTS_SMALL X(3, 1) X(2, 2) X(1, 3) X(2, 1) X(1, 2)

#include "split_body.inc"
