/* Memory of one engine that grows and is used again. */
#include "multi/multi.h"

#include <string.h>

rung_status multi_buffer_reserve(multi_engine *e, multi_buffer *b, int64_t floats)
{
    if (b->floats >= floats)
        return RUNG_SUCCESS;
    multi_buffer_free(e, b);
    RUNG_TRY(e->ops->alloc(e, floats * (int64_t)sizeof(float), (void **)&b->at));
    b->floats = floats;
    return RUNG_SUCCESS;
}

void multi_buffer_free(multi_engine *e, multi_buffer *b)
{
    if (b->at)
        e->ops->free(e, b->at);
    memset(b, 0, sizeof *b);
}
