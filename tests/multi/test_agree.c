/* Ranks agree on their arguments: whatever one of them was given otherwise, all are told by name, with both values; who
 * failed, or called something else, is told before. The connections are this file's: each rank's message is kept, then
 * rank 0 judges them, and its verdict goes to the others. */
#include "multi/multi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, MESSAGE = 4096, WORDS = 512 };

static unsigned char sent[RANKS][MESSAGE], verdict[MESSAGE];
static int sent_bytes, now_rank, told, no_memory, gather_fails;
static char told_why[WORDS];

void *__real_calloc(size_t, size_t), *__wrap_calloc(size_t, size_t);

void *__wrap_calloc(size_t count, size_t bytes)
{
    return no_memory ? NULL : __real_calloc(count, bytes);
}

rung_status multi_control_check(multi_control *control)
{
    assert_non_null(control);
    return RUNG_SUCCESS;
}

void multi_control_tell(multi_control *control, rung_status status, const char *why)
{
    assert_non_null(control);
    assert_int_not_equal(status, RUNG_SUCCESS);
    told++;
    snprintf(told_why, sizeof told_why, "%s", why);
}

rung_status multi_control_gather(multi_control *control, const void *mine, void *all, int bytes, const char *what,
                                 double timeout_s)
{
    (void)control, (void)timeout_s;
    assert_true(bytes <= MESSAGE && strncmp(what, "called ", 7) == 0);
    if (gather_fails)
        return rung_fail(RUNG_DEVICE_ERROR, "rank 2 is gone: its process ended");
    memcpy(sent[now_rank], mine, (size_t)bytes);
    sent_bytes = bytes;
    for (int i = 0; i < RANKS && now_rank == 0; i++)
        memcpy((char *)all + i * bytes, sent[i], (size_t)bytes);
    return RUNG_SUCCESS;
}

rung_status multi_control_share(multi_control *control, void *data, int bytes, const char *what, double timeout_s)
{
    (void)control, (void)timeout_s;
    assert_true(bytes <= MESSAGE && strcmp(what, "agreed") == 0);
    memcpy(now_rank ? data : verdict, now_rank ? verdict : data, (size_t)bytes);
    return RUNG_SUCCESS;
}

/* ---- four ranks ---- */

typedef struct rank {
    multi_record record;
    rung_status mine;
    const char *why, *call;
    rung_multi multi;
    rung_status status;
    char said[WORDS];
} rank;

static rank ranks[RANKS];

static const rung_matrix matrices[3] = {
    {.m = 11, .n = 12, .mb = 13, .nb = 14, .grid_rows = 15, .grid_cols = 16, .row_source = 17, .col_source = 18},
    {.m = 21, .n = 22, .mb = 23, .nb = 24, .grid_rows = 25, .grid_cols = 26, .row_source = 27, .col_source = 28},
    {.m = 31, .n = 32, .mb = 33, .nb = 34, .grid_rows = 35, .grid_cols = 36, .row_source = 37, .col_source = 38}};
static const char *const fields[] = {"m", "n", "mb", "nb", "grid_rows", "grid_cols", "row_source", "col_source"};

static void give_all(void)
{
    memset(ranks, 0, sizeof ranks);
    told = no_memory = gather_fails = 0;
    for (int i = 0; i < RANKS; i++) {
        rank *r = &ranks[i];
        r->call = "rung_psgemm", r->why = "";
        r->multi.ranks = RANKS, r->multi.first_rank = i, r->multi.held = 1;
        r->multi.control = (multi_control *)(void *)r;
        multi_record_add(&r->record, "m", 5);
        for (int x = 0; x < 3; x++)
            multi_record_matrix(&r->record, (char)('a' + x), &matrices[x]);
        multi_record_add(&r->record, "alpha (its bits)", INT64_C(0x3f800000));
    }
}

static void call_one(int number)
{
    rank *r = &ranks[number];
    now_rank = number;
    if (r->mine)
        rung_fail(r->mine, "%s", r->why);
    r->status = multi_agree(&r->multi, &r->record, r->mine, r->call);
    snprintf(r->said, sizeof r->said, "%s", r->status == RUNG_SUCCESS ? "" : rung_last_error());
}

/* All ranks' messages, then rank 0, then the others with its verdict. */
static void call_all(void)
{
    for (int i = 1; i < RANKS; i++)
        call_one(i);
    call_one(0);
    for (int i = 1; i < RANKS; i++)
        call_one(i);
}

static void expect(rung_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Every rank says so, and none of them is broken. */
static void expect(rung_status status, const char *format, ...)
{
    char words[WORDS];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    call_all();
    for (int i = 0; i < RANKS; i++)
        if (ranks[i].status != status || strcmp(ranks[i].said, words) != 0 || ranks[i].multi.broken || told)
            fail_msg("rank %d: %s '%s', not '%s'", i, rung_status_name(ranks[i].status), ranks[i].said, words);
}

/* ---- what is tested ---- */

static void who_is_given_the_same_agrees(void **state)
{
    (void)state;
    give_all();
    expect(RUNG_SUCCESS, "%s", "");
    give_all();
    for (int i = 0; i < RANKS; i++) /* no matrix at all is what every rank has, too */
        multi_record_matrix(&ranks[i].record, 'c', NULL);
    expect(RUNG_SUCCESS, "%s", "");
    for (int i = 0; i < RANKS; i++)
        ranks[i].multi.control = NULL; /* all ranks in one process: nobody is asked */
    ranks[0].mine = RUNG_UNSUPPORTED, ranks[0].why = "no";
    call_one(0);
    assert_int_equal(ranks[0].status, RUNG_UNSUPPORTED);
    assert_string_equal(ranks[0].said, "no");
}

/* Each value, at each rank, by one, in its sign, and by what 32 bits do not show. */
static void each_value_is_compared(void **state)
{
    (void)state;
    give_all();
    const int count = ranks[0].record.count;
    assert_int_equal(count, 1 + 3 * 8 + 1);
    for (int j = 0; j < 3 * 8; j++) /* each stands where its name does */
        assert_int_equal(ranks[0].record.values[1 + j], 10 * (j / 8 + 1) + j % 8 + 1);
    for (int which = 0; which < RANKS; which++)
        for (int j = 0; j < count; j++)
            for (int change = 0; change < 5; change++) {
                give_all();
                int64_t *value = &ranks[which].record.values[j], was = *value;
                *value = change == 0   ? was + 1
                         : change == 1 ? was - 1
                         : change == 2 ? -was
                         : change == 3 ? was + (INT64_C(1) << 32)
                                       : INT64_MIN;
                char name[64] = "alpha (its bits)";
                if (j == 0)
                    snprintf(name, sizeof name, "m");
                else if (j <= 24)
                    snprintf(name, sizeof name, "desc_%c.%s", 'a' + (j - 1) / 8, fields[(j - 1) % 8]);
                const int first = which ? which : 1; /* the first that differs from rank 0 */
                expect(RUNG_INVALID_ARGUMENT, "rank %d was given %s = %lld, rank 0 %lld", first, name,
                       (long long)ranks[first].record.values[j], (long long)ranks[0].record.values[j]);
            }
}

static void the_first_that_differs_is_told(void **state)
{
    (void)state;
    give_all();
    ranks[2].record.values[3]++;
    ranks[2].record.values[9]++;
    ranks[3].record.values[1]++;
    expect(RUNG_INVALID_ARGUMENT, "rank 2 was given desc_a.mb = 14, rank 0 13");
    give_all();
    ranks[3].call = "rung_gather";
    ranks[3].record.count = 2, ranks[3].mine = RUNG_INVALID_ARGUMENT, ranks[3].why = "root is 9";
    expect(RUNG_INVALID_ARGUMENT, "rank 3 called rung_gather, rank 0 rung_psgemm");
    give_all();
    ranks[0].mine = RUNG_OUT_OF_MEMORY, ranks[0].why = "no memory for a product";
    ranks[1].mine = RUNG_INVALID_ARGUMENT, ranks[1].why = "m is -1";
    expect(RUNG_OUT_OF_MEMORY, "rank 0: no memory for a product");
    give_all();
    ranks[2].mine = RUNG_UNSUPPORTED, ranks[2].why = "not here";
    ranks[2].record.values[0]++;
    ranks[3].record.values[0]++;
    expect(RUNG_UNSUPPORTED, "rank 2: not here");
}

/* A long sentence is cut, and what follows it in the message is as it was. */
static void long_sentences_are_cut(void **state)
{
    (void)state;
    char whole[400];
    memset(whole, 'x', sizeof whole - 1);
    whole[sizeof whole - 1] = 0;
    for (int length = 253; length <= 258; length++) {
        give_all();
        ranks[3].mine = RUNG_INVALID_ARGUMENT, ranks[3].why = whole + sizeof whole - 1 - length;
        expect(RUNG_INVALID_ARGUMENT, "rank 3: %.255s", ranks[3].why);
    }
    give_all();
    for (int i = 0; i < RANKS; i++)
        ranks[i].call = "rung_a_call_with_a_name_that_is_too_long_for_its_place";
    expect(RUNG_SUCCESS, "%s", "");
}

/* Who cannot judge tells the others, who would wait, and can only be destroyed; so can who misses a rank. */
static void who_cannot_judge_is_broken(void **state)
{
    (void)state;
    give_all();
    no_memory = 1;
    call_one(0);
    no_memory = 0;
    assert_int_equal(ranks[0].status, RUNG_OUT_OF_MEMORY);
    assert_string_equal(ranks[0].said, "no memory for the arguments of 4 ranks");
    assert_int_equal(ranks[0].multi.broken, RUNG_OUT_OF_MEMORY);
    assert_int_equal(told, 1);
    assert_string_equal(told_why, "no memory for the arguments of 4 ranks");
    assert_int_equal(multi_usable(&ranks[0].multi), RUNG_OUT_OF_MEMORY);
    for (int i = 0; i < 2; i++) {
        give_all();
        gather_fails = 1;
        call_one(i);
        assert_int_equal(ranks[i].status, RUNG_DEVICE_ERROR);
        assert_int_equal(ranks[i].multi.broken, RUNG_DEVICE_ERROR);
        assert_string_equal(ranks[i].said, "rank 2 is gone: its process ended");
        assert_int_equal(told, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_given_the_same_agrees), cmocka_unit_test(each_value_is_compared),
        cmocka_unit_test(the_first_that_differs_is_told), cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(who_cannot_judge_is_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
