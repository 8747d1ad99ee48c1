/* sass pattern: gives the FFMAs of a timing loop the registers of its pattern (lab/device/lab_ports.h). */
#ifndef RUNG_TOOLS_PATTERN_H
#define RUNG_TOOLS_PATTERN_H

#include "cubin.h"

/* Returns false where the function has no pattern's name or not the loop that lab_ports.cu asks for; it says so. */
bool pattern_function(const struct function *f);

#endif
