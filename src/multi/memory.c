/* Device memory of ranks and pinned host memory, for callers; and the switch of the trace. */
#include "multi/multi.h"
#include "multi/timeline.h"

static rung_status check(const rung_multi *multi, int held, int64_t bytes)
{
    if (!multi)
        return rung_fail(RUNG_INVALID_ARGUMENT, "multi is NULL");
    if (held < 0 || held >= multi->held)
        return rung_fail(RUNG_INVALID_ARGUMENT, "held is %d: this process holds ranks 0 to %d of its own", held,
                         multi->held - 1);
    if (bytes < 0)
        return rung_fail(RUNG_INVALID_ARGUMENT, "bytes is %lld: it must not be negative", (long long)bytes);
    return RUNG_SUCCESS;
}

static rung_status check_given(const void *given, const char *name)
{
    return given ? RUNG_SUCCESS : rung_fail(RUNG_INVALID_ARGUMENT, "%s is NULL", name);
}

rung_status rung_multi_alloc(rung_multi *multi, int held, int64_t bytes, void **memory)
{
    RUNG_TRY(check(multi, held, bytes));
    RUNG_TRY(check_given(memory, "memory"));
    return multi->engines[held].ops->alloc(&multi->engines[held], bytes > 0 ? bytes : 1, memory);
}

void rung_multi_free(rung_multi *multi, int held, void *memory)
{
    if (memory && check(multi, held, 0) == RUNG_SUCCESS)
        multi->engines[held].ops->free(&multi->engines[held], memory);
}

rung_status rung_multi_host_alloc(rung_multi *multi, int64_t bytes, void **memory)
{
    RUNG_TRY(check(multi, 0, bytes));
    RUNG_TRY(check_given(memory, "memory"));
    return multi->engines[0].ops->host_alloc(&multi->engines[0], bytes > 0 ? bytes : 1, memory);
}

void rung_multi_host_free(rung_multi *multi, void *memory)
{
    if (memory && check(multi, 0, 0) == RUNG_SUCCESS)
        multi->engines[0].ops->host_free(&multi->engines[0], memory);
}

/* Describes bytes as lines of floats, with a shorter last line. */
static rung_status copy(rung_multi *multi, int held, void *to, const void *from, int64_t bytes, int to_host)
{
    RUNG_TRY(check(multi, held, bytes));
    RUNG_TRY(multi_usable(multi));
    if (bytes % 4)
        return rung_fail(RUNG_INVALID_ARGUMENT, "bytes is %lld: it must be a multiple of 4", (long long)bytes);
    if (bytes == 0)
        return RUNG_SUCCESS;
    RUNG_TRY(check_given(to, "to"));
    RUNG_TRY(check_given(from, "from"));
    multi_engine *e = &multi->engines[held];
    multi_copy c = {from, bytes / 4, to, bytes / 4, bytes / 4, 1, !to_host, to_host};
    rung_status status = e->ops->copy(e, to_host ? LANE_OUT : LANE_IN, &c, NULL);
    if (status == RUNG_SUCCESS)
        status = multi_finish(multi);
    return status == RUNG_SUCCESS ? status : multi_drain(multi, status);
}

rung_status rung_multi_upload(rung_multi *multi, int held, void *to, const void *from, int64_t bytes)
{
    return copy(multi, held, to, from, bytes, 0);
}

rung_status rung_multi_download(rung_multi *multi, int held, void *to, const void *from, int64_t bytes)
{
    return copy(multi, held, to, from, bytes, 1);
}

rung_status rung_multi_trace(rung_multi *multi, int on)
{
    if (!multi)
        return rung_fail(RUNG_INVALID_ARGUMENT, "multi is NULL");
    RUNG_TRY(multi_usable(multi));
    if (on)
        multi_timeline_restart(multi->timeline);
    for (int i = 0; i < multi->held; i++)
        RUNG_TRY(multi->engines[i].ops->trace(&multi->engines[i], on, multi_timeline_now_us(multi->timeline)));
    return RUNG_SUCCESS;
}

int rung_multi_spans(const rung_multi *multi, const rung_span **spans)
{
    if (!spans)
        return 0;
    *spans = NULL;
    return multi ? multi_timeline_spans(multi->timeline, spans) : 0;
}
