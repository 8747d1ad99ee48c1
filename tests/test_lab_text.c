/* What the lab reads and writes as text: cases, shapes, names; and its statistics. */
#include "support.h"
#include "lab/case.h"
#include "lab/covering.h"
#include "lab/error.h"
#include "lab/json.h"
#include "lab/multi.h"
#include "lab/names.h"
#include "lab/profile.h"
#include "lab/shape.h"
#include "lab/stats.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void cases_survive_their_text(void **state)
{
    (void)state;
    int seen = 0, apart = 0; /* cases whose C has rows further apart than the operands' */
    for (int i = 0; i < rung_kernel_count(); i++) {
        lab_cases cases;
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel->role == RUNG_REDUCE)
            continue;
        assert_int_equal(lab_cases_for(kernel, RUNG_STRICT, kernel->backend, LAB_HUGE, &cases), RUNG_SUCCESS);
        for (int j = 0; j < cases.count; j++, seen++) {
            char text[LAB_CASE_TEXT], again[LAB_CASE_TEXT];
            lab_case back;
            lab_case_print(&cases.list[j], text);
            assert_int_equal(lab_case_parse(text, &back), RUNG_SUCCESS);
            lab_case_print(&back, again);
            assert_string_equal(text, again);
            assert_int_equal(back.m, cases.list[j].m);
            assert_true(back.alpha == cases.list[j].alpha);
            assert_true(back.c_pad == cases.list[j].c_pad && back.c_offset == cases.list[j].c_offset);
            assert_true(back.a_pad == cases.list[j].a_pad && back.a_offset == cases.list[j].a_offset);
            apart += back.c_pad > 0 && back.a_pad > 0;
        }
        free(cases.list);
    }
    assert_true(seen > 100 && apart > 100);
}

static int stands(const lab_covering *x, int f, int v, int g, int w)
{
    for (int i = 0; i < x->count; i++)
        if (x->row[i][f] == v && x->row[i][g] == w)
            return 1;
    return 0;
}

static int rows_that_cover(const int *levels, int count)
{
    lab_covering x;
    lab_cover_pairs(levels, count, &x);
    for (int f = 0; f < count; f++)
        for (int g = f + 1; g < count; g++)
            for (int v = 0; v < levels[f]; v++)
                for (int w = 0; w < levels[g]; w++)
                    if (!stands(&x, f, v, g, w))
                        fail_msg("value %d of factor %d never meets value %d of factor %d", v, f, w, g);
    return x.count;
}

/* Whichever factor comes first, comes last or has the most values. */
static void every_pair_is_covered(void **state)
{
    (void)state;
    static const int many[] = {2, 4, 5, 5, 6, 4, 3, 8, 1, 3, 3, 2}, few[] = {2, 3, 8};
    enum { MANY = sizeof many / sizeof many[0], FEW = sizeof few / sizeof few[0] };
    int levels[MANY];
    for (int turn = 0; turn < MANY; turn++) {
        for (int i = 0; i < MANY; i++)
            levels[i] = many[(i + turn) % MANY];
        assert_in_range(rows_that_cover(levels, MANY), 48, 72); /* 6 x 8 is the least there can be */
        for (int i = 0; i < FEW; i++)
            levels[i] = few[(i + turn) % FEW];
        assert_in_range(rows_that_cover(levels, FEW), 24, 30);
    }
}

/* The longest case there is ends within its text. */
static void a_long_case_keeps_to_its_text(void **state)
{
    (void)state;
    char room[LAB_CASE_TEXT + 256];
    lab_case c;
    lab_case_init(&c);
    c.m = c.n = c.k = c.pad = c.offset = c.a_pad = c.a_offset = c.c_pad = c.c_offset = c.workspace_kib = INT64_MIN;
    c.seed = UINT32_MAX;
    memset(room, '#', sizeof room);
    lab_case_print(&c, room);
    assert_int_equal(strnlen(room, sizeof room), LAB_CASE_TEXT - 1);
    for (size_t i = LAB_CASE_TEXT; i < sizeof room; i++)
        assert_int_equal(room[i], '#');
}

static void a_seed_is_printed(void **state)
{
    (void)state;
    lab_case c;
    char text[LAB_CASE_TEXT];
    lab_case_init(&c);
    c.m = c.n = c.k = 2;
    c.seed = 7;
    lab_case_print(&c, text);
    assert_non_null(strstr(text, "seed=7"));
}

static void bad_cases_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "NX:1x1x1",
                                      "NN:1x1",
                                      "NN:-1x1x1",
                                      "NN:1x1x1:row,padd=3",
                                      "NN:1x1x1:pad=-1",
                                      "NN:1x1x1:alpha",
                                      "NN:1x1x1:cpad=-1",
                                      "NN:1x1x1:coffset=-1",
                                      "NN:1x1x1:pad=9223372036854775807,cpad=1"};
    lab_case c;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(lab_case_parse(bad[i], &c), RUNG_INVALID_ARGUMENT);
        assert_true(strlen(lab_error()) > 10);
    }
    static const char *const counts[] = {"NN:1x1x1:strided=0", "NN:1x1x1:arrays=-2", "NN:1x1x1:pad=-1"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        assert_int_equal(lab_case_parse(counts[i], &c), RUNG_INVALID_ARGUMENT);
        assert_non_null(strstr(lab_error(), "batch, pads and offsets must not be negative"));
    }
}

static void shapes_are_read(void **state)
{
    (void)state;
    lab_shape s;
    char text[LAB_SHAPE_TEXT];
    assert_int_equal(lab_shape_parse("35x700x2048", &s), RUNG_SUCCESS);
    assert_true(s.m == 35 && s.n == 700 && s.k == 2048 && s.batch == 1 && !s.trans_a && !s.trans_b);
    assert_int_equal(lab_shape_parse("64x32x16:TNx100", &s), RUNG_SUCCESS);
    assert_true(s.batch == 100 && s.trans_a && !s.trans_b);
    lab_shape_print(&s, text);
    assert_string_equal(text, "64x32x16:TNx100");
    assert_int_equal(lab_shape_parse("64x32x16:NT+7", &s), RUNG_SUCCESS);
    assert_true(s.pad == 7 && s.batch == 1);
    lab_shape_print(&s, text);
    assert_string_equal(text, "64x32x16:NT+7");
    static const char *const bad[] = {"", "1x2", "1x2x3x", "0x2x3", "1x2x3:T", "1x2x3:AB", "1x2x3junk", "1x2x3:NNx0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(lab_shape_parse(bad[i], &s), RUNG_INVALID_ARGUMENT);
        lab_error();
    }
}

/* What speeds are counted from: two operations a product, and each float of A, B and C once, of all matrices. */
static void work_and_bytes_are_those_of_all_matrices(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        double flops, bytes;
    } all[] = {{"3x5x7", 210, 284},
               {"3x5x7:TTx4", 840, 1136},
               {"1x1x1:NNx9", 18, 108},
               {"3x5x7+8", 210, 284},
               {"100000x100000x100000", 2e15, 12e10}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        lab_shape s;
        assert_int_equal(lab_shape_parse(all[i].shape, &s), RUNG_SUCCESS);
        assert_true(lab_shape_flops(&s) == all[i].flops);
        assert_true(lab_shape_bytes(&s) == all[i].bytes);
    }
}

static void shape_files_name_the_bad_line(void **state)
{
    (void)state;
    char name[] = "/tmp/rung-shapes-XXXXXX";
    int file = mkstemp(name);
    assert_true(file >= 0);
    static const char text[] = "# comment\nNN 1 2 3\n\nTT 4 5 6 7 pad=3\nNN 1 2\n";
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    close(file);
    lab_shapes shapes = {0};
    assert_int_equal(lab_shapes_read(name, &shapes), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(lab_error(), ":5:"));
    assert_int_equal(shapes.count, 2);
    assert_int_equal(shapes.list[1].batch, 7);
    assert_int_equal(shapes.list[1].pad, 3);
    static const char *const bad[] = {"",
                                      "# nothing",
                                      "NN 1 2 3x",
                                      "NN 1 2 3 4x",
                                      "NN 1 2 3 4 5",
                                      "NN 1 2 3 pad=x",
                                      "NN 1 2 3 4 pad=1 5",
                                      "NN 1 2 3 pad=-1",
                                      "NN 1 2 3 0",
                                      "NN 1 2 3 pad=1 4",
                                      "NN 4611686018427387904 2 3", /* each number alone is too large */
                                      "NN 2 4611686018427387904 3",
                                      "NN 2 3 4611686018427387904",
                                      "NN 1 2 3 4611686018427387904",
                                      "NN 1 2 3 pad=4611686018427387904"};
    const size_t count = sizeof bad / sizeof bad[0];
    for (size_t i = 0; i <= count; i++) {
        const char *line = i < count ? bad[i] : "NN 1 2 3 4 pad=5 # a remark";
        FILE *to = fopen(name, "w");
        assert_non_null(to);
        fprintf(to, "%s\n", line);
        fclose(to);
        lab_shapes alone = {0};
        rung_status want = i < count ? RUNG_INVALID_ARGUMENT : RUNG_SUCCESS;
        assert_int_equal(lab_shapes_read(name, &alone), want); /* whether it is the first file that is read or not */
        assert_int_equal(lab_shapes_read(name, &shapes), want);
        free(alone.list);
        lab_error();
    }
    free(shapes.list);
    unlink(name);
}

/* A line ends where it ends: what stands far behind a remark's beginning is no shape, and counts as no line. */
static void long_remarks_are_one_line(void **state)
{
    static const int lengths[] = {1, 200, 510, 1020, 4090, 70000};
    (void)state;
    char name[64];
    snprintf(name, sizeof name, "/tmp/rung_remarks_%ld", (long)getpid());
    for (int i = 0; i < (int)(sizeof lengths / sizeof lengths[0]) * 64; i++) {
        lab_shapes shapes = {0};
        FILE *to = fopen(name, "w");
        assert_non_null(to);
        fprintf(to, "#%*sNN 1 2 3\nNT 4 5 6 #%*sTT 7 8 9\nNN 1\n", lengths[i / 64] + i % 64, "",
                lengths[i / 64] + i % 64, "");
        fclose(to);
        assert_int_equal(lab_shapes_read(name, &shapes), RUNG_INVALID_ARGUMENT);
        assert_non_null(strstr(lab_error(), ":3: "));
        assert_int_equal(shapes.count, 1);
        assert_int_equal(shapes.list[0].m, 4);
        free(shapes.list);
    }
    unlink(name);
}

static void near_names_are_suggested(void **state)
{
    (void)state;
    static const char *const names[] = {"verify", "bench", "climb", NULL};
    assert_string_equal(lab_name_nearest(names, "verfy"), "verify");
    assert_string_equal(lab_name_nearest(names, "benhc"), "bench");
    assert_null(lab_name_nearest(names, "zzzzzzzzzz"));
    assert_string_equal(lab_kernel_nearest("c01_naiv"), "c01_naive");
    /* Half of a word's letters may differ, or two; dropped, exchanged and added ones count alike. The nearest of
     * several is named, wherever it stands. */
    for (int length = 1; length <= 24; length++)
        for (int wrong = 0; wrong <= length; wrong++) {
            char right[32] = "abcdefghijklmnopqrstuvwx", typed[32], added[64];
            right[length] = '\0';
            const char *const one[] = {right, NULL}, *const between[] = {"0123456789", right, "9876543210", NULL};
            snprintf(typed, sizeof typed, "%s", right);
            for (int i = 0; i < wrong; i++)
                typed[i * length / wrong] = '_';
            const int taken = wrong <= (length / 2 > 2 ? length / 2 : 2);
            assert_true((lab_name_nearest(one, typed) == right) == taken);
            assert_true(!taken || lab_name_nearest(between, typed) == right || wrong == length);
            snprintf(added, sizeof added, "%s%.*s", right, wrong, "________________________");
            assert_true((lab_name_nearest(one, added) == right) ==
                        (wrong <= ((length + wrong) / 2 > 2 ? (length + wrong) / 2 : 2)));
        }
}

static void statistics_are_robust(void **state)
{
    (void)state;
    double values[] = {10, 11, 10.5, 1000, 10.2};
    lab_stats s = lab_stats_of(values, 5);
    assert_true(s.median == 10.5 && s.min == 10 && s.max == 1000 && s.samples == 5);
    assert_true(s.noise > 0.0 && s.noise < 0.1);
    const double pair[] = {2, 8};
    assert_true(lab_geometric_mean(pair, 2) > 3.999999 && lab_geometric_mean(pair, 2) < 4.000001);
    const double some[] = {2.0, 0.0, 8.0, -1.0, NAN}; /* what is no positive number is left out */
    assert_true(fabs(lab_geometric_mean(some, 5) - 4.0) < 1e-9);
    assert_true(lab_geometric_mean(some + 1, 1) == 0.0 && lab_geometric_mean(some, 0) == 0.0);
    assert_true(lab_stats_of(values, 0).samples == 0);
    s = lab_stats_of((double[]){4.0, 1.0, 3.0, 8.0}, 4); /* 3.5 lies 0.5, 0.5, 2.5 and 4.5 away */
    assert_true(s.median == 3.5 && fabs(s.noise - 1.96 * 1.2533 * 1.4826 * 1.5 / 2.0 / 3.5) < 1e-12);
    static double many[10001]; /* every one counts: the largest stand last */
    for (int i = 0; i < 10001; i++)
        many[i] = i;
    s = lab_stats_of(many, 10001);
    assert_true(s.samples == 10001 && s.median == 5000.0 && s.max == 10000.0);
    assert_true(fabs(s.noise - 1.96 * 1.2533 * 1.4826 * 2500.0 / sqrt(10001.0) / 5000.0) < 1e-12);
}

/* A picture of many ranks has a row for each of their lanes, and each span lies in its own. */
static void every_lane_has_its_row(void **state)
{
    enum { RANKS = 300 };
    static rung_span spans[2 * RANKS];
    static const char *const lanes[] = {"copy in", "product"};
    (void)state;
    char name[64], line[512];
    int labels = 0, bars = 0;
    snprintf(name, sizeof name, "/tmp/rung_spans_%ld.svg", (long)getpid());
    for (int i = 0; i < 2 * RANKS; i++)
        spans[i] = (rung_span){.rank = i / 2, .lane = lanes[i % 2], .what = "A", .start_us = i, .stop_us = i + 1};
    assert_int_equal(lab_timeline_write(name, spans, 2 * RANKS), RUNG_SUCCESS);
    FILE *from = fopen(name, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from)) {
        int rank, y;
        if (sscanf(line, "<text x=\"4\" y=\"%d\">rank %d", &y, &rank) == 2) {
            assert_int_equal(rank, labels / 2);
            assert_int_equal(y, 34 + 16 * labels++);
        } else if (strstr(line, "<title>A: ") && sscanf(line, "<rect x=\"%*[^\"]\" y=\"%d\"", &y) == 1) {
            assert_int_equal(y, 24 + 16 * bars++);
        }
    }
    fclose(from);
    unlink(name);
    assert_int_equal(labels, 2 * RANKS);
    assert_int_equal(bars, 2 * RANKS);
}

/* Returns all that a file holds, at most what `text` has room for. */
static void read_all(const char *name, char *text, size_t bytes)
{
    FILE *from = fopen(name, "r");
    assert_non_null(from);
    const size_t length = fread(text, 1, bytes - 1, from);
    text[length] = '\0';
    fclose(from);
    unlink(name);
}

/* A picture begins where its first span does: the same spans at any other time are the same picture. */
static void pictures_begin_with_their_first_span(void **state)
{
    static char pictures[2][1 << 14];
    (void)state;
    char name[64];
    snprintf(name, sizeof name, "/tmp/rung_spans_%ld.svg", (long)getpid());
    for (int i = 0; i < 2; i++) {
        rung_span spans[6];
        for (int j = 0; j < 6; j++) {
            const double start = (i ? 1 << 20 : 0) + 256.0 * j + 64.0;
            spans[j] = (rung_span){.rank = j % 2,
                                   .lane = j % 3 ? "product" : "copy in",
                                   .what = "B",
                                   .start_us = start,
                                   .stop_us = start + 96.0 * (j + 1)};
        }
        assert_int_equal(lab_timeline_write(name, spans, 6), RUNG_SUCCESS);
        read_all(name, pictures[i], sizeof pictures[i]);
    }
    assert_non_null(strstr(pictures[0], "1.856 ms"));
    assert_string_equal(pictures[0], pictures[1]);
}

/* Of records that differ in one thing only, each is found by all of it, and what no record has is not found. */
static void counts_are_found_by_all_their_keys(void **state)
{
    enum { RECORDS = 5 };
    static const char *const kernels[RECORDS] = {"k_one", "k_other", "k_one", "k_one", "k_one"};
    static const int64_t sizes[RECORDS][3] = {{16, 32, 48}, {16, 32, 48}, {17, 32, 48}, {16, 33, 48}, {16, 32, 49}};
    static const char *const keys[] = {"cycles", "loads"};
    (void)state;
    char name[64];
    double values[2];
    const int first = lab_counter_index(lab_counters[0].key);
    assert_int_equal(first, 0);
    snprintf(name, sizeof name, "/tmp/rung_counts_%ld", (long)getpid());
    for (int order = 0; order < 2; order++) {
        FILE *to = fopen(name, "w");
        assert_non_null(to);
        for (int i = 0; i < RECORDS; i++) {
            const int r = order ? RECORDS - 1 - i : i;
            fprintf(to, "{\"kernel\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"cycles\": %d, \"loads\": %d, ",
                    kernels[r], (int)sizes[r][0], (int)sizes[r][1], (int)sizes[r][2], 100 + r, 200 + r);
            fprintf(to, "\"counter\": {\"%s\": %d}}\n", lab_counters[0].key, 300 + r);
        }
        fclose(to);
        for (int r = 0; r < RECORDS; r++) {
            const int64_t m = sizes[r][0], n = sizes[r][1], k = sizes[r][2];
            lab_profile profile = {.measured = {0}};
            int found = 0;
            assert_int_equal(lab_counts_read(name, kernels[r], m, n, k, keys, 2, values), RUNG_SUCCESS);
            assert_true(values[0] == 100 + r && values[1] == 200 + r);
            snprintf(profile.kernel, sizeof profile.kernel, "%s", kernels[r]);
            assert_int_equal(lab_counters_read(name, m, n, k, &profile, 1, &found), RUNG_SUCCESS);
            assert_true(found == 1 && profile.measured[0] == 300 + r);
            assert_int_not_equal(lab_counts_read(name, kernels[r], m + 2, n, k, keys, 2, values), RUNG_SUCCESS);
            assert_int_not_equal(lab_counts_read(name, kernels[r], m, n + 2, k, keys, 2, values), RUNG_SUCCESS);
            assert_int_not_equal(lab_counts_read(name, "k_on", m, n, k, keys, 2, values), RUNG_SUCCESS);
            assert_int_not_equal(lab_counters_read(name, m, n, k + 2, &profile, 1, &found), RUNG_SUCCESS);
        }
    }
    unlink(name);
}

/* What is no finite number has no form in JSON; a text may hold any byte. */
static void objects_are_json_whatever_they_hold(void **state)
{
    (void)state;
    static const double values[] = {1.5, -0.0, 1e300, INFINITY, -INFINITY, NAN, 1e-320};
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    lab_json json = {.to = to};
    lab_json_open(&json, NULL);
    lab_json_list(&json, "values");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        lab_json_number(&json, NULL, values[i]);
    lab_json_list_end(&json);
    lab_json_text(&json, "a\"b", "c\\d\te\x7f");
    lab_json_open(&json, "inner");
    lab_json_close(&json);
    lab_json_integer(&json, "least", INT64_MIN);
    lab_json_close(&json);
    lab_json_end_line(&json);
    lab_json_open(&json, NULL);
    lab_json_close(&json);
    fclose(to);
    assert_string_equal(text, "{\"values\": [1.5, -0, 1e+300, null, null, null, 9.999889e-321], \"a\\\"b\": "
                              "\"c\\\\d\\u0009e\x7f\", \"inner\": {}, \"least\": -9223372036854775808}\n{}");
    free(text);
    for (int byte = 1; byte < 256; byte++) { /* letters beyond ASCII are several bytes: one alone is none */
        const char one[] = {(char)byte, 0};
        char expected[32];
        to = open_memstream(&text, &bytes);
        json = (lab_json){.to = to};
        lab_json_text(&json, one, one);
        fclose(to);
        snprintf(expected, sizeof expected,
                 byte < 0x20                   ? "\"\\u%04x\": \"\\u%04x\""
                 : byte == '"' || byte == '\\' ? "\"\\%c\": \"\\%c\""
                 : byte >= 0x80                ? "\"\\ufffd\": \"\\ufffd\""
                                               : "\"%c\": \"%c\"",
                 byte, byte);
        assert_string_equal(text, expected);
        free(text);
    }
}

/* The lab's own failure is told once; what the library says of its next one comes after that, and another thread has
 * failures of its own. */
static void *fail_elsewhere(void *argument)
{
    lab_fail(RUNG_INTERNAL, "of the other thread");
    return argument;
}

static void each_failure_is_told_as_itself(void **state)
{
    (void)state;
    rung_context *context;
    pthread_t other;
    assert_int_equal(lab_fail(RUNG_INTERNAL, "the %s", "first"), RUNG_INTERNAL);
    assert_string_equal(lab_error(), "the first");
    assert_int_equal(rung_context_create(NULL, NULL), RUNG_INVALID_ARGUMENT);
    assert_string_equal(lab_error(), rung_last_error());
    assert_true(strstr(lab_error(), "NULL") != NULL);
    lab_fail(RUNG_INTERNAL, "one that nobody reads");
    lab_fail(RUNG_INTERNAL, "the last");
    assert_int_equal(rung_context_create(&context, NULL), RUNG_SUCCESS);
    rung_context_destroy(context);
    assert_int_equal(pthread_create(&other, NULL, fail_elsewhere, NULL), 0);
    pthread_join(other, NULL);
    assert_string_equal(lab_error(), "the last");
    assert_string_equal(lab_error(), rung_last_error());
}

static void numbers_and_texts_of_lines(void **state)
{
    static const struct {
        const char *text, *quoted;
    } texts[] = {{"a\"b\\c\n", "\"a\\\"b\\\\c\\u000a\""},
                 {"\xc3\xa9", "\"\xc3\xa9\""},
                 {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
                 {"\xe9 x", "\"\\ufffd x\""},
                 {"\xc3", "\"\\ufffd\""},
                 {"\xc1\x81", "\"\\ufffd\\ufffd\""},
                 {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
                 {"\x80z", "\"\\ufffdz\""},
                 {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}};
    static const struct {
        double value;
        const char *text;
    } numbers[] = {{1073741824.0, "1073741824"},
                   {-3.0, "-3"},
                   {0x1p52 + 1.0, "4503599627370497"},
                   {0.12345678, "0.123457"},
                   {1e20, "1e+20"}};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *got = NULL;
        size_t bytes;
        FILE *to = open_memstream(&got, &bytes);
        lab_json_quote(to, texts[i].text);
        fclose(to);
        assert_string_equal(got, texts[i].quoted);
        free(got);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[40];
        lab_json_digits(text, sizeof text, numbers[i].value, 6);
        assert_string_equal(text, numbers[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failure_is_told_as_itself),
        cmocka_unit_test(objects_are_json_whatever_they_hold),
        cmocka_unit_test(numbers_and_texts_of_lines),
        cmocka_unit_test(every_lane_has_its_row),
        cmocka_unit_test(pictures_begin_with_their_first_span),
        cmocka_unit_test(counts_are_found_by_all_their_keys),
        cmocka_unit_test(cases_survive_their_text),
        cmocka_unit_test(every_pair_is_covered),
        cmocka_unit_test(a_long_case_keeps_to_its_text),
        cmocka_unit_test(a_seed_is_printed),
        cmocka_unit_test(bad_cases_are_refused),
        cmocka_unit_test(shapes_are_read),
        cmocka_unit_test(work_and_bytes_are_those_of_all_matrices),
        cmocka_unit_test(shape_files_name_the_bad_line),
        cmocka_unit_test(long_remarks_are_one_line),
        cmocka_unit_test(near_names_are_suggested),
        cmocka_unit_test(statistics_are_robust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
