/* For the drop-ins, which have another library compute what Rung could not: whether C may still be read. */
#ifndef RUNG_CORE_WROTE_H
#define RUNG_CORE_WROTE_H

#include "rung.h"

/* Returns whether the context's last rung_gemm_run() has failed and may have written C: what beta is meant for is no
 * longer there. A GPU fails so between two launches. */
RUNG_API int rung_context_wrote(const rung_context *context);

#endif
