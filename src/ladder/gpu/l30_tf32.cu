/* l30_tf32: tensor cores, one TF32 pass: operands rounded to 11 significant bits, one wgmma product.
 * Contract: NN, any size and leading dimension. Changed: the FMA pipe is left to the sums' promotion.
 * Limits: errs some thousand u (u = 2^-24); FP32 it is not. */
#define T_NAME l30_tf32
#define T_TF32 1
#define T_IMAGES 1
#define T_PRODUCTS_SMALL

#include "split_body.inc"
