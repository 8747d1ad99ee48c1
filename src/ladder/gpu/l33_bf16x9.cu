/* l33_bf16x9: all nine products of three bf16 parts: each product is as exact as FP32's own.
 * Contract: NN, any size and leading dimension. Changed: the three smallest products are there too.
 * Limits: nine passes leave a ninth of the bf16 rate. */
#define T_NAME l33_bf16x9
#define T_TF32 0
#define T_IMAGES 4
#define T_PRODUCTS_SMALL X(3, 3) X(3, 2) X(2, 3) X(3, 1) X(2, 2) X(1, 3) X(2, 1) X(1, 2)

#include "split_body.inc"
