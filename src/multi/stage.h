/* Host memory that is not pinned: copies go through rings of pinned buffers, one in each direction, which a few threads
 * fill and empty. Pinned memory is copied directly, and nothing here waits. */
#ifndef RUNG_MULTI_STAGE_H
#define RUNG_MULTI_STAGE_H

#include "multi/multi.h"

/* Copies to or from host memory; copy->from_host or copy->to_host is set. pinned: whether that side is. A copy to host
 * memory that is not pinned has arrived only after multi_stage_flush. */
rung_status multi_stage_copy(rung_multi *multi, int held, multi_lane lane, const multi_copy *copy, int pinned);
rung_status multi_stage_flush(rung_multi *multi);
/* Lets nothing be delivered any more; it is called after a failure. */
void multi_stage_forget(rung_multi *multi);
void multi_stage_close(rung_multi *multi);

#endif
