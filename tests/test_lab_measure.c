/* The timing loop with contenders whose times are known: ratios, rotation over the sets, failures handed on. */
#include "support.h"
#include "lab/json.h"
#include "lab/measure.h"
#include "lab/record.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { SETS = 3 };

/* The clock of this test: it goes on when a contender works, and a busy machine does not hurry it. */
static double clock_us;

int clock_gettime(clockid_t which, struct timespec *now)
{
    (void)which;
    now->tv_sec = (time_t)(clock_us * 1e-6);
    now->tv_nsec = (long)((clock_us - 1e6 * (double)now->tv_sec) * 1e3);
    return 0;
}

/* How often the system took the core away: as often as this test says. */
static long taken_away, taken_each_time;

int getrusage(__rusage_who_t who, struct rusage *usage)
{
    (void)who;
    memset(usage, 0, sizeof *usage);
    usage->ru_nivcsw = taken_away += taken_each_time;
    return 0;
}

typedef struct worker {
    double work_us;
    int seen[SETS], calls, fail_at;
} worker;

static int next_set; /* whoever runs takes it: nobody meets the operands of the one before */

static rung_status run(void *state, int set)
{
    worker *w = state;
    assert_int_equal(set, next_set);
    next_set = (next_set + 1) % SETS;
    w->seen[set]++;
    if (++w->calls == w->fail_at)
        return lab_fail(RUNG_UNSUPPORTED, "as planned");
    clock_us += w->work_us;
    return RUNG_SUCCESS;
}

static lab_measure_options quick(const lab_place *place)
{
    lab_measure_options options = lab_measure_defaults(place);
    options.sets = SETS;
    options.budget_s = 0.3;
    next_set = 0;
    return options;
}

static void ratios_and_rotation(void **state)
{
    (void)state;
    lab_place place = {.device = RUNG_DEVICE_CPU};
    lab_monitor monitor = {0};
    worker short_one = {.work_us = 2000.0}, long_one = {.work_us = 8000.0};
    lab_contender contenders[] = {{run, &short_one}, {run, &long_one}};
    lab_measurement m;
    lab_measure_options options = quick(&place);
    assert_int_equal(lab_measure(&place, &monitor, contenders, 2, &options, &m), RUNG_SUCCESS);
    assert_true(fabs(m.us[0].median - 2000.0) < 0.1 && fabs(m.us[1].median - 8000.0) < 0.1);
    assert_true(m.ratio[0].median == 1.0);
    assert_true(fabs(m.ratio[1].median - 4.0) < 1e-3);
    assert_true(m.us[0].min <= m.us[0].median && m.us[0].median <= m.us[0].max);
    assert_true(m.us[0].samples >= 3 && m.us[0].samples == m.us[1].samples);
    for (int i = 0; i < SETS; i++)
        assert_true(short_one.seen[i] > 0 && long_one.seen[i] > 0);
}

/* A contender that takes three times in turn: by two of them the median would be quiet. */
typedef struct unsteady {
    double us[3];
    int calls;
} unsteady;

static rung_status run_unsteady(void *state, int set)
{
    unsteady *w = state;
    (void)set;
    clock_us += w->us[w->calls++ % 3];
    return RUNG_SUCCESS;
}

/* Quiet times end with the least number of rounds; others with the budget, but not before three rounds, or where there
 * is no more room. */
static void rounds_end_by_the_rule(void **state)
{
    (void)state;
    lab_place place = {.device = RUNG_DEVICE_CPU};
    lab_monitor monitor = {0};
    lab_measurement m;
    lab_measure_options options = lab_measure_defaults(&place);
    options.sample_s = 1e-3; /* of one call */
    for (int least = 1; least <= 30; least++) {
        unsteady steady = {{5000.0, 5000.0, 5000.0}, 0};
        lab_contender contender = {run_unsteady, &steady};
        options.least_rounds = least;
        assert_int_equal(lab_measure(&place, &monitor, &contender, 1, &options, &m), RUNG_SUCCESS);
        assert_int_equal(m.us[0].samples, least);
        assert_int_equal(m.calls[0], 1);
    }
    options.least_rounds = 9;
    for (int budget_ms = 0; budget_ms <= 200; budget_ms += 7) {
        unsteady noisy = {{4000.0, 9000.0, 20000.0}, 0};
        lab_contender contender = {run_unsteady, &noisy};
        options.budget_s = (budget_ms + 0.5) * 1e-3;
        assert_int_equal(lab_measure(&place, &monitor, &contender, 1, &options, &m), RUNG_SUCCESS);
        static const int ms_of[] = {20, 4, 9}; /* as after two calls that are not counted */
        int rounds = 0;
        for (int ms = 0; rounds < 3 || ms <= budget_ms; rounds++)
            ms += ms_of[rounds % 3];
        assert_int_equal(m.us[0].samples, rounds);
    }
    unsteady noisy = {{4000.0, 9000.0, 20000.0}, 0};
    lab_contender contender = {run_unsteady, &noisy};
    options.budget_s = 1e9;
    assert_int_equal(lab_measure(&place, &monitor, &contender, 1, &options, &m), RUNG_SUCCESS);
    assert_int_equal(m.us[0].samples, LAB_ROUNDS);
}

/* A sample during which others got the core is taken again, twelve times at most, and counted; a long one once. */
static void disturbed_samples_are_taken_again(void **state)
{
    (void)state;
    enum { TRIES = 12, SAMPLES = 2 + 9 }; /* two to find out how many calls, and nine rounds */
    lab_place place = {.device = RUNG_DEVICE_CPU};
    lab_monitor monitor = {0};
    lab_measurement m;
    lab_measure_options options = lab_measure_defaults(&place);
    for (int is_long = 0; is_long < 2; is_long++) {
        const double us = is_long ? 101000.0 : 5000.0;
        unsteady steady = {{us, us, us}, 0};
        lab_contender contender = {run_unsteady, &steady};
        taken_each_time = 1;
        rung_status status = lab_measure(&place, &monitor, &contender, 1, &options, &m);
        taken_each_time = 0;
        assert_int_equal(status, RUNG_SUCCESS);
        assert_int_equal(m.us[0].samples, 9);
        assert_int_equal(m.disturbed, (is_long ? 1 : TRIES) * SAMPLES);
        assert_int_equal(steady.calls, (is_long ? 1 : TRIES) * SAMPLES);
    }
}

static void failures_are_handed_on(void **state)
{
    (void)state;
    lab_place place = {.device = RUNG_DEVICE_CPU};
    lab_monitor monitor = {0};
    worker fails = {.work_us = 10.0, .fail_at = 5};
    lab_contender contender = {run, &fails};
    lab_measurement m;
    lab_measure_options options = quick(&place);
    assert_int_equal(lab_measure(&place, &monitor, &contender, 1, &options, &m), RUNG_UNSUPPORTED);
    assert_string_equal(lab_error(), "as planned");
}

static void result_lines_are_json(void **state)
{
    (void)state;
    char text[256] = "";
    lab_json json = {.to = fmemopen(text, sizeof text, "w")};
    assert_non_null(json.to);
    lab_json_open(&json, NULL);
    lab_json_text(&json, "name", "a \"b\"\\\n");
    lab_json_number(&json, "nan", NAN);
    lab_json_list(&json, "list");
    lab_json_open(&json, NULL);
    lab_json_integer(&json, "n", -5);
    lab_json_close(&json);
    lab_json_open(&json, NULL);
    lab_json_close(&json);
    lab_json_list_end(&json);
    lab_json_number(&json, "x", 0.5);
    lab_json_close(&json);
    lab_json_end_line(&json);
    fclose(json.to);
    assert_string_equal(
        text, "{\"name\": \"a \\\"b\\\"\\\\\\u000a\", \"nan\": null, \"list\": [{\"n\": -5}, {}], \"x\": 0.5}\n");
}

/* Times and ratios stand in the order of who was timed: a peer that refuses has none. */
static void peers_have_their_own_times(void **state)
{
    (void)state;
    lab_place place = {.device = RUNG_DEVICE_CPU, .threads = 1};
    static lab_bench bench;
    static lab_bench_row row;
    bench.place = &place;
    bench.peer_count = 3;
    for (int refused = 0; refused < 8; refused++) {
        char text[8192] = "", name[16], wanted[32];
        int timed = 1;
        FILE *to = fmemopen(text, sizeof text, "w");
        assert_non_null(to);
        for (int i = 0; i < 3; i++) {
            static const char *const names[] = {"first", "second", "third"};
            bench.peers[i].name = names[i];
            row.peer_refused[i] = refused >> i & 1;
            if (!row.peer_refused[i])
                row.time.us[timed++].median = 10.0 + i;
        }
        lab_record_bench(to, "bench", "a test", &bench, &row);
        fclose(to);
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "\"%s\"", bench.peers[i].name);
            snprintf(wanted, sizeof wanted, "\"us\": {\"median\": %d,", 10 + i);
            const char *its = strstr(text, name);
            if (refused >> i & 1)
                assert_null(its);
            else
                assert_true(its && strstr(its, wanted) && strstr(its, wanted) < its + 60);
        }
    }
}

/* Operands that take half of what the system says it can give are made, those that take twice as much are refused; and
 * nobody asks about little. */
static void memory_lacks_by_what_there_is(void **state)
{
    (void)state;
    const int64_t asked_from = (int64_t)1 << 28;
    long long available_kib = -1;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && available_kib < 0 && fgets(line, sizeof line, file))
        sscanf(line, "MemAvailable: %lld", &available_kib);
    if (file)
        fclose(file);
    if (available_kib < 0) /* this system does not say it */
        return;
    const int64_t bytes = (int64_t)available_kib * 1024;
    assert_false(lab_memory_lacks(0));
    assert_false(lab_memory_lacks(asked_from - 1));
    assert_false(lab_memory_lacks(bytes / 2));
    assert_true(lab_memory_lacks(2 * bytes > asked_from ? 2 * bytes : asked_from));
    assert_true(lab_memory_lacks(INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios_and_rotation),
        cmocka_unit_test(rounds_end_by_the_rule),
        cmocka_unit_test(disturbed_samples_are_taken_again),
        cmocka_unit_test(failures_are_handed_on),
        cmocka_unit_test(result_lines_are_json),
        cmocka_unit_test(peers_have_their_own_times),
        cmocka_unit_test(memory_lacks_by_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
