/* Host operands in memory that is not pinned: a ring of pinned buffers for each GPU. */
#ifndef RUNG_MULTI_STAGE_H
#define RUNG_MULTI_STAGE_H

#include "multi/multi.h"

void multi_stage_close(rung_multi *multi);

#endif
