/* Operands are overwritten although nobody waits until the tensor cores have read them. */
#define KERNEL_NAME missing_products_wait
#define AWAIT_PRODUCTS() PTX_WGMMA_WAIT(1)
#include "engines.h"
