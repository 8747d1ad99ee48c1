/* Host memory that is not pinned: copies go through a ring of pinned buffers a direction, filled and emptied by a few
 * threads. Pinned memory is copied directly, and nothing here waits. */
#ifndef RUNG_MULTI_STAGE_H
#define RUNG_MULTI_STAGE_H

#include "multi/multi.h"

/* copy->from_host or copy->to_host is set. pinned: whether that side is. A copy to host memory that is not pinned has
 * arrived after multi_stage_flush only. */
rung_status multi_stage_copy(rung_multi *multi, int held, multi_lane lane, const multi_copy *copy, int pinned);
rung_status multi_stage_flush(rung_multi *multi);
/* Called after a failure: nothing is delivered any more. */
void multi_stage_forget(rung_multi *multi);
void multi_stage_close(rung_multi *multi);

#endif
