/* Tells the lens, where it stands in for the driver, which memory holds which operand: what kernels touch besides is a
 * finding. Elsewhere these do nothing. */
#ifndef RUNG_LAB_WATCH_H
#define RUNG_LAB_WATCH_H

#include "lab/operand.h"

void lab_watch_begin(void);                                          /* forgets all operands */
void lab_watch(const char *name, const lab_operand *x, int written); /* written: padding must stay as it is */

#endif
