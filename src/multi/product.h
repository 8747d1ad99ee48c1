/* One distributed product: it is SUMMA with C in place. k goes in panels of fixed width. A panel of op(A) and one of
 * op(B) are brought to every rank that needs them (fetch.h) while the panels before are multiplied. */
#ifndef RUNG_MULTI_PRODUCT_H
#define RUNG_MULTI_PRODUCT_H

#include "multi/unit.h"

rung_status multi_product_run(multi_product *p);
/* Gives back the memory of slots. */
void multi_product_close(rung_multi *multi);

#endif
