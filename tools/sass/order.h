/* Puts the FFMAs and shared loads of a function into a better order: see order.c. */
#ifndef RUNG_TOOLS_ORDER_H
#define RUNG_TOOLS_ORDER_H

#include "cubin.h"
#include "schedule.h"

/* `turns`: warps of several blocks share a partition (see ports.h). A function with a branch to a computed address is
 * left as it is. */
void order_function(const struct function *f, bool turns, struct dice *dice);

#endif
