/* l31_tf32x3: hi and lo in TF32, three products: what rounding took is multiplied too.
 * Contract: NN, any size and leading dimension. Changed: two parts an element, 22 bits; lo*lo is left out.
 * Limits: a third of TF32's rate at best. */
#define T_NAME l31_tf32x3
#define T_TF32 1
#define T_IMAGES 3
#define T_PRODUCTS_SMALL X(2, 1) X(1, 2)

#include "split_body.inc"
