/* What a rank says that has waited too long, and that it looks for news of others meanwhile. The connections and the
 * transport are this file's. */
#include "multi/multi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int heard, checked;
static rung_status news, fault;

rung_status multi_control_check(multi_control *control)
{
    assert_non_null(control);
    heard++;
    return news ? rung_fail(news, "rank 5 is gone") : RUNG_SUCCESS;
}

static int may_fail, told, stopped, drained;
static char told_why[64];

void multi_control_tell(multi_control *control, rung_status status, const char *why)
{
    assert_non_null(control);
    if (!may_fail)
        fail_msg("nobody has failed");
    assert_int_equal(status, RUNG_OUT_OF_MEMORY);
    snprintf(told_why, sizeof told_why, "%s", why);
    told++;
}

static int check(void *state, char *why)
{
    (void)state;
    checked++;
    strcpy(why, "a cable is out");
    return (int)fault;
}

static multi_transport transport = {.check = check};

static rung_multi waits(double timeout_s)
{
    news = fault = RUNG_SUCCESS;
    heard = checked = 0;
    return (rung_multi){.first_rank = 3,
                        .transport = &transport,
                        .control = (multi_control *)(void *)&transport,
                        .timeout_s = timeout_s};
}

static void in_time_nothing_is_said(void **state)
{
    (void)state;
    rung_multi multi = waits(1000.0);
    multi_deadline deadline = multi_deadline_start(&multi);
    for (int i = 0; i < 33; i++)
        assert_int_equal(multi_wait_turn(&multi, &deadline, "panel 7 of A", 2), RUNG_SUCCESS);
    assert_int_equal(heard, 3); /* every 16th turn, the first among them */
    assert_int_equal(checked, 3);
    assert_int_equal(deadline.idle, 33);
}

static void who_waits_too_long_says_for_whom(void **state)
{
    (void)state;
    rung_multi multi = waits(2.0);
    for (int silent = -1; silent < 2; silent++) { /* rank 0 is a rank, too */
        multi_deadline deadline = multi_deadline_start(&multi);
        deadline.start_s -= 2.5, deadline.end_s -= 2.5;
        assert_int_equal(multi_wait_turn(&multi, &deadline, "panel 7 of A", silent), RUNG_DEVICE_ERROR);
        char before[80], after[40];
        double seconds = 0.0; /* a busy machine adds some */
        if (silent < 0)
            snprintf(before, sizeof before, "panel 7 of A: not finished within %%lf s %%39[^;]");
        else
            snprintf(before, sizeof before, "panel 7 of A: rank %d has not answered for %%lf s %%39[^;]", silent);
        assert_int_equal(sscanf(rung_last_error(), before, &seconds, after), 2);
        assert_string_equal(after, silent < 0 ? "(rank 3)" : "(rank 3 waits for it)");
        assert_true(seconds >= 2.5 && seconds < 1000.0);
    }
}

static void news_of_others_end_the_wait(void **state)
{
    (void)state;
    rung_multi multi = waits(1000.0);
    multi_deadline deadline = multi_deadline_start(&multi);
    news = RUNG_DEVICE_ERROR;
    assert_int_equal(multi_wait_turn(&multi, &deadline, "panel 7 of A", 2), RUNG_DEVICE_ERROR);
    assert_string_equal(rung_last_error(), "rank 5 is gone");
    news = RUNG_SUCCESS, fault = RUNG_DEVICE_ERROR;
    multi.control = NULL;
    assert_int_equal(multi_wait_turn(&multi, &deadline, "panel 7 of A", 2), RUNG_DEVICE_ERROR);
    assert_string_equal(rung_last_error(), "a cable is out");
    multi.transport = NULL; /* all ranks are in this process */
    assert_int_equal(multi_wait_turn(&multi, &deadline, "panel 7 of A", 2), RUNG_SUCCESS);
}

static void stop(void *state)
{
    assert_non_null(state);
    stopped++;
}

static void drain(multi_engine *e)
{
    rung_fail(RUNG_DEVICE_ERROR, "the drain has words of its own");
    e->stuck = e->device == 7;
    drained++;
}

/* After a failure all engines are drained, whatever becomes of that, and the failure's status and words are what is
 * said. An engine that is stuck breaks the context: others are told why, and each later call is. */
static void the_first_failure_is_what_is_said(void **state)
{
    static const multi_engine_ops ops = {.drain = drain};
    static multi_transport stopping = {.check = check, .stop = stop, .state = &stopping};
    (void)state;
    for (int stuck = 0; stuck < 2; stuck++)
        for (int was_broken = 0; was_broken < 2; was_broken++) {
            rung_multi multi = waits(1.0);
            multi.transport = &stopping;
            multi.held = 3;
            for (int i = 0; i < 3; i++)
                multi.engines[i] = (multi_engine){.ops = &ops, .device = stuck && i == 1 ? 7 : i};
            may_fail = 1;
            told = stopped = drained = 0;
            assert_int_equal(multi_usable(&multi), RUNG_SUCCESS);
            rung_status status = rung_fail(RUNG_OUT_OF_MEMORY, "no room for a panel");
            if (was_broken)
                assert_int_equal(multi_break(&multi, status), RUNG_OUT_OF_MEMORY);
            assert_int_equal(multi_drain(&multi, status), RUNG_OUT_OF_MEMORY);
            assert_string_equal(rung_last_error(), "no room for a panel");
            assert_int_equal(drained, 3);
            assert_int_equal(told, stuck || was_broken);
            assert_int_equal(stopped, stuck || was_broken);
            may_fail = 0;
            if (!stuck && !was_broken) {
                assert_int_equal(multi_usable(&multi), RUNG_SUCCESS);
                continue;
            }
            assert_string_equal(told_why, "no room for a panel");
            assert_int_equal(multi_usable(&multi), RUNG_OUT_OF_MEMORY);
            assert_string_equal(rung_last_error(), "this context can only be destroyed, since an earlier call failed: "
                                                   "no room for a panel");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_failure_is_what_is_said), cmocka_unit_test(in_time_nothing_is_said),
        cmocka_unit_test(who_waits_too_long_says_for_whom), cmocka_unit_test(news_of_others_end_the_wait)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
