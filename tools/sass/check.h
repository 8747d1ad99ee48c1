/* `sass check`: does compiled code wait where it must? See check.c. */
#ifndef RUNG_TOOLS_CHECK_H
#define RUNG_TOOLS_CHECK_H

#include "sass.h"

/* Prints what a function's code does not wait for: a waiter that would not see the load before it, a load close behind
 * a barrier, an FFMA or a shared load whose registers a load or a copy still has in hand. Returns how many there are.
 */
int check_function(const struct word *code, int n, const char *name);

#endif
