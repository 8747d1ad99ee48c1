/* Waits that end: by faults that others report, by the time limit; and what a broken context answers. */
#include "multi/clock.h"
#include "multi/multi.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

rung_status multi_usable(const rung_multi *multi)
{
    if (!multi->broken)
        return RUNG_SUCCESS;
    return rung_fail(multi->broken, "this context can only be destroyed, since an earlier call failed: %s",
                     multi->broken_why);
}

rung_status multi_break(rung_multi *multi, rung_status status)
{
    char why[448];
    snprintf(why, sizeof why, "%s", rung_last_error());
    if (multi->control)
        multi_control_tell(multi->control, status, why);
    if (multi->transport && multi->transport->stop)
        multi->transport->stop(multi->transport->state);
    multi->broken = status;
    snprintf(multi->broken_why, sizeof multi->broken_why, "%s", why);
    return rung_fail(status, "%s", why);
}

multi_deadline multi_deadline_start(const rung_multi *multi)
{
    double now = multi_now_s();
    return (multi_deadline){now, now + multi->timeout_s, 0};
}

static rung_status check_transport(rung_multi *multi)
{
    char why[MULTI_WHY_BYTES] = "";
    multi_transport *t = multi->transport;
    return t && t->check ? multi_transport_try(multi, t->check(t->state, why), why) : RUNG_SUCCESS;
}

rung_status multi_wait_turn(rung_multi *multi, multi_deadline *d, const char *what, int waiting_for)
{
    double now = multi_now_s();
    if (multi->control && (d->idle & 15) == 0)
        RUNG_TRY(multi_control_check(multi->control));
    if ((d->idle & 15) == 0)
        RUNG_TRY(check_transport(multi));
    if (now > d->end_s) {
        if (waiting_for >= 0)
            return rung_fail(RUNG_DEVICE_ERROR, "%s: rank %d has not answered for %.1f s (rank %d waits for it)", what,
                             waiting_for, now - d->start_s, multi->first_rank);
        return rung_fail(RUNG_DEVICE_ERROR, "%s: not finished within %.1f s (rank %d)", what, now - d->start_s,
                         multi->first_rank);
    }
    if (++d->idle < 2000)
        sched_yield();
    else
        nanosleep(&(struct timespec){0, 50000}, NULL);
    return RUNG_SUCCESS;
}

rung_status multi_transport_try(rung_multi *multi, int result, const char *why)
{
    if (!result)
        return RUNG_SUCCESS;
    /* Often a rank that died is the reason, which makes the better sentence. The news of it may still be on its way. */
    for (double end_s = multi_now_s() + 0.5; multi->control && multi_now_s() < end_s;) {
        RUNG_TRY(multi_control_check(multi->control));
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    return rung_fail((rung_status)result, "%s", why);
}

rung_status multi_finish(rung_multi *multi)
{
    multi_deadline deadline = multi_deadline_start(multi);
    for (int i = 0; i < multi->held; i++) {
        multi_engine *e = &multi->engines[i];
        int done = 0;
        RUNG_TRY(e->ops->poll(e, &done));
        while (!done) {
            RUNG_TRY(multi_wait_turn(multi, &deadline, "waiting for a GPU's queued work", -1));
            RUNG_TRY(e->ops->poll(e, &done));
        }
        RUNG_TRY(e->ops->collect(e));
    }
    return RUNG_SUCCESS;
}

rung_status multi_drain(rung_multi *multi, rung_status status)
{
    char why[448]; /* a drain that fails, too, would have its own words in this place */
    int stuck = 0;
    snprintf(why, sizeof why, "%s", rung_last_error());
    for (int i = 0; i < multi->held; i++) {
        multi->engines[i].ops->drain(&multi->engines[i]);
        stuck |= multi->engines[i].stuck;
    }
    if (status != RUNG_SUCCESS)
        rung_fail(status, "%s", why);
    return stuck && !multi->broken ? multi_break(multi, status) : status;
}
