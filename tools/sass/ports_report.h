/* `sass ports` and `sass list`: what the model of the register ports says of a kernel's main loop, and its beginning.
 */
#ifndef RUNG_TOOLS_PORTS_REPORT_H
#define RUNG_TOOLS_PORTS_REPORT_H

#include "cubin.h"

/* Prints a line on the function's main loop: its FFMAs, its instructions, and its cycles by the model (ports.h) if
 * nothing else is waited for. The main loop is the shortest one with at least half of the FFMAs. Prints nothing where
 * there is none.
 */
void ports_report(const struct function *f);

/* Prints the first `lines` instructions of that loop: FFMAs and shared loads with their registers, stalls and
 * scoreboards, and how many registers an FFMA reads from each bank by the model.
 */
void ports_list(const struct function *f, int lines);

#endif
