/* The figures that a goal may name: which counts move each of them, and what is said of lanes that lie apart. The lens
 * is a launch that the tests make. */
#include "lab/metric.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SITES = 9 };

static rung_lens_site sites[SITES];
static rung_lens_launch launch;
static lab_lens_totals totals;
static lab_occupancy occupancy;
static struct {
    int static_bytes, dynamic_bytes, threads;
} asked; /* of lab_occupancy_of */

int lab_lens_launches(void)
{
    return 1;
}

const rung_lens_launch *lab_lens_launch(int index)
{
    return index == 0 ? &launch : NULL;
}

void lab_lens_sum(lab_lens_totals *out)
{
    *out = totals;
}

void lab_occupancy_of(const lab_chip *chip, const lab_resources *resources, int threads, int dynamic_shared_bytes,
                      lab_occupancy *out)
{
    (void)chip;
    asked.static_bytes = resources->static_shared_bytes;
    asked.dynamic_bytes = dynamic_shared_bytes;
    asked.threads = threads;
    *out = occupancy;
}

/* Each kind of access once, with counts that are all different. */
static const struct {
    const char *name;
    rung_lens_space space;
    rung_lens_kind kind;
} kinds[SITES] = {
    {"load", RUNG_LENS_GLOBAL, RUNG_LENS_LOAD},          {"store", RUNG_LENS_GLOBAL, RUNG_LENS_STORE},
    {"copy", RUNG_LENS_GLOBAL, RUNG_LENS_ASYNC},         {"atomic", RUNG_LENS_GLOBAL, RUNG_LENS_ATOMIC},
    {"bulk", RUNG_LENS_GLOBAL, RUNG_LENS_BULK},          {"shared load", RUNG_LENS_SHARED, RUNG_LENS_LOAD},
    {"shared store", RUNG_LENS_SHARED, RUNG_LENS_STORE}, {"landing", RUNG_LENS_SHARED, RUNG_LENS_ASYNC},
    {"tensor", RUNG_LENS_SHARED, RUNG_LENS_MMA}};

static const struct {
    const char *name;
    size_t at;
} fields[] = {{"requests", offsetof(rung_lens_site, requests)},
              {"lanes", offsetof(rung_lens_site, lanes)},
              {"sectors", offsetof(rung_lens_site, sectors)},
              {"lines", offsetof(rung_lens_site, lines)},
              {"bytes_used", offsetof(rung_lens_site, bytes_used)},
              {"bytes_moved", offsetof(rung_lens_site, bytes_moved)},
              {"wavefronts", offsetof(rung_lens_site, wavefronts)},
              {"ideal_wavefronts", offsetof(rung_lens_site, ideal_wavefronts)},
              {"merged_requests", offsetof(rung_lens_site, merged_requests)},
              {"merged_wavefronts", offsetof(rung_lens_site, merged_wavefronts)},
              {"merged_ideal", offsetof(rung_lens_site, merged_ideal)}};
enum { FIELDS = sizeof fields / sizeof *fields };

static double *field_of(int site, int field)
{
    return (double *)((char *)&sites[site] + fields[field].at);
}

static int begin(void **state)
{
    (void)state;
    memset(sites, 0, sizeof sites);
    for (int i = 0; i < SITES; i++) {
        sites[i].space = kinds[i].space, sites[i].kind = kinds[i].kind, sites[i].bytes = 4, sites[i].line = 10 + i;
        snprintf(sites[i].name, sizeof sites[i].name, "%s", kinds[i].name);
        for (int f = 0; f < FIELDS; f++)
            *field_of(i, f) = 1000 + 100 * i + f;
    }
    launch = (rung_lens_launch){
        .threads = 96, .blocks = 7, .barriers = 21, .shuffles = 42, .sites = sites, .site_count = SITES};
    for (size_t i = 0; i < sizeof totals / sizeof(double); i++)
        ((double *)&totals)[i] = 5000 + (double)i;
    occupancy = (lab_occupancy){.blocks = 3, .percent = 40};
    return 0;
}

static const lab_lens_case problem = {.m = 6, .n = 10, .k = 15, .parts = 4};

static double value_of(const char *metric, const char *array)
{
    static const lab_chip chip = {.shared_per_block_bytes = 1 << 20};
    lab_metric_run run = {.of = &problem, .products = 3200, .error_u = 2.5, .chips = {&chip}, .chip_count = 1};
    return lab_metric_value(metric, array, &run);
}

static void each_count_moves_its_figures(void **state)
{
    (void)state;
    /* A figure is moved by these fields of these accesses, asked for by the access's name. */
    static const struct {
        const char *metric, *fields, *accesses;
    } rows[] = {{"sectors_per_load", "requests sectors ", "load copy "},
                {"sectors_per_store", "requests sectors ", "store "},
                {"load_requests_per_fma", "requests ", "load copy "},
                {"passes_per_load", "requests wavefronts ", "shared load "},
                {"conflict_passes", "merged_wavefronts merged_ideal ", "shared load shared store landing "},
                {"atomics", "requests ", "atomic "},
                {"copies", "requests ", "copy "},
                {"intensity", "", ""},
                {"barriers", "", ""},
                {"error_u", "", ""}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char moved[300] = "", accesses[300] = "";
        for (int f = 0; f < FIELDS; f++) {
            int moves = 0;
            for (int i = 0; i < SITES; i++) {
                const double was = value_of(rows[r].metric, kinds[i].name);
                *field_of(i, f) *= 3;
                const double now = value_of(rows[r].metric, kinds[i].name);
                begin(NULL);
                moves |= was != now && !(isnan(was) && isnan(now));
                if (was != now && !(isnan(was) && isnan(now)) && !strstr(accesses, kinds[i].name))
                    snprintf(accesses + strlen(accesses), sizeof accesses - strlen(accesses), "%s ", kinds[i].name);
            }
            if (moves)
                snprintf(moved + strlen(moved), sizeof moved - strlen(moved), "%s ", fields[f].name);
        }
        if (strcmp(moved, rows[r].fields) != 0)
            fail_msg("%s is moved by '%s', not by '%s'", rows[r].metric, moved, rows[r].fields);
        if (strcmp(accesses, rows[r].accesses) != 0)
            fail_msg("%s is moved by '%s', not by '%s'", rows[r].metric, accesses, rows[r].accesses);
    }
}

static void figures_of_a_launch(void **state)
{
    (void)state;
    totals.shared_load_wavefronts = 700, totals.global_load_bytes = 1600, totals.barriers = 21;
    assert_true(value_of("load_requests_per_fma", "load") == 1000.0 / 100);
    assert_true(value_of("load_requests_per_fma", "") == (1000.0 + 1200.0) / 100);
    assert_true(value_of("load_requests_per_fma", "@12") == 1200.0 / 100); /* the copy's line */
    assert_true(value_of("passes_per_fma", "") == 7);
    assert_true(value_of("intensity", "") == 4);
    assert_true(value_of("barriers", "") == 3);
    assert_true(value_of("shuffles", "") == 2);
    launch.threads = 97; /* a warp that is not whole is one */
    assert_true(value_of("shuffles", "") == 1.5);
    assert_true(value_of("blocks", "") == 7);
    assert_true(value_of("error_u", "") == 2.5);
    assert_true(value_of("extra_traffic", "") == 2.0 * 4 * 60 / (90 + 150 + 60));
    assert_true(value_of("occupancy", "") == 40 && value_of("blocks_per_sm", "") == 3);
    for (int of_it = 0; of_it <= 4;
         of_it++) { /* what the kernel declares and what the launch asks for share what a block may have */
        launch.static_shared_bytes = of_it << 18;
        launch.dynamic_shared_bytes = (4 - of_it) << 18;
        assert_true(value_of("occupancy", "") == 40 && value_of("blocks_per_sm", "") == 3);
        assert_true(asked.static_bytes == of_it << 18 && asked.dynamic_bytes == (4 - of_it) << 18 &&
                    asked.threads == 97);
        launch.dynamic_shared_bytes++;
        assert_true(value_of("occupancy", "") == 0 && value_of("blocks_per_sm", "") == 0);
    }
    assert_true(isnan(value_of("passes_per_load", "load")) && isnan(value_of("nothing", "")));
    assert_null(lab_metric_words("nothing"));
}

/* Lays lane i at row0 + i * rows and column0 + i * columns of rows that are 100 elements long. rows 1000: of no
 * operand.
 */
static const char *said_of(rung_lens_kind kind, int bytes, int64_t rows, int64_t columns, int64_t first)
{
    static char text[400];
    begin(NULL);
    sites[0].kind = kind;
    sites[0].bytes = bytes;
    sites[0].sample_mask = ~0u;
    sites[0].requests = 1, sites[0].sectors = 32, sites[0].bytes_used = 128;
    for (int i = 0; i < RUNG_LENS_LANES; i++) {
        sites[0].sample_row[i] = rows == 1000 ? -1 : 500 + i * rows;
        sites[0].sample_column[i] = rows == 1000 ? -1 : 2000 + first + i * columns;
        sites[0].sample_offset[i] = rows == 1000 ? 4 * (2000 + first + i * columns)
                                                 : 4 * (100 * sites[0].sample_row[i] + sites[0].sample_column[i]);
    }
    launch.site_count = 1;
    lab_metric_why(kind == RUNG_LENS_STORE ? "sectors_per_store" : "sectors_per_load", "", text, sizeof text);
    const char *pattern = strstr(text, " would do");
    assert_non_null(pattern);
    return pattern + strlen(" would do");
}

/* Returns the last number in a text; 0 where there is none. */
static long number_in(const char *text)
{
    long number = 0;
    for (; *text; text++)
        if ((*text >= '0' && *text <= '9') || (*text == '-' && text[1] >= '0' && text[1] <= '9')) {
            char *end;
            number = strtol(text, &end, 10);
            text = end - 1;
        }
    return number;
}

/* Lanes that are told of are told of whichever way they go, by as much; those side by side are not, nor those that want
 * one element. */
static void lanes_that_lie_apart_are_told_of(void **state)
{
    (void)state;
    static const int64_t steps[] = {-33, -9, -2, -1, 0, 1, 2, 9, 33};
    enum { STEPS = sizeof steps / sizeof *steps };
    for (int store = 0; store < 2; store++)
        for (int r = 0; r < STEPS; r++)
            for (int c = 0; c < STEPS; c++)
                for (int bytes = 4; bytes <= 16; bytes *= 2) {
                    const int64_t rows = steps[r], columns = steps[c];
                    const rung_lens_kind kind = store ? RUNG_LENS_STORE : RUNG_LENS_LOAD;
                    const char *text = said_of(kind, bytes, rows, columns, 0);
                    const int beside = rows == 0 && llabs(columns) * 4 <= bytes;
                    if (beside != (text[0] == '\0'))
                        fail_msg("rows %lld and columns %lld apart, %d bytes: '%s'", (long long)rows,
                                 (long long)columns, bytes, text);
                    if (beside)
                        continue;
                    assert_non_null(strstr(text, store ? "lanes write " : "lanes read "));
                    if (rows == 1 && columns == 0)
                        assert_non_null(strstr(text, "neighbouring rows"));
                    else if (number_in(text) != (rows ? rows : columns) || !strstr(text, rows ? "rows" : "columns"))
                        fail_msg("rows %lld and columns %lld apart: '%s'", (long long)rows, (long long)columns, text);
                }
    assert_string_equal(said_of(RUNG_LENS_LOAD, 4, 1000, -7, 0), ": neighbouring lanes read -28 bytes apart");
    for (int64_t first = 0; first < 9; first++) { /* side by side, but not from a sector's first byte on */
        const char *text = said_of(RUNG_LENS_LOAD, 4, 0, 1, first);
        assert_int_equal(number_in(text), 4 * first % 32);
        assert_true((strstr(text, "side by side") != NULL) == (first % 8 != 0));
    }
    said_of(RUNG_LENS_LOAD, 4, 5, 5, 0);
    sites[0].sample_mask = ~1u; /* a lane that asks for nothing lies nowhere */
    char text[400];
    lab_metric_why("sectors_per_load", "", text, sizeof text);
    assert_null(strstr(text, "neighbouring"));
    sites[0].sectors = 4; /* as few as would do */
    lab_metric_why("sectors_per_load", "", text, sizeof text);
    assert_string_equal(text, "the dearest is line 10: its access to load takes 4 sectors a request");
}

/* Two lanes want words of one bank where these are a multiple of 32 words apart, in the lanes that go together. */
static void lanes_of_one_bank_are_told_of(void **state)
{
    (void)state;
    for (int bytes = 4; bytes <= 16; bytes *= 2)
        for (int i = 0; i < RUNG_LENS_LANES; i++)
            for (int j = i + 1; j < RUNG_LENS_LANES; j++)
                for (int apart = -64; apart <= 64; apart += 16) {
                    char text[400], wanted[100];
                    rung_lens_site *s = &sites[0];
                    begin(NULL);
                    s->space = RUNG_LENS_SHARED, s->bytes = bytes, s->requests = 1;
                    s->wavefronts = 2, s->ideal_wavefronts = 1;
                    s->sample_mask = 1u << i | 1u << j;
                    s->sample_offset[i] = 4 * 100, s->sample_offset[j] = 4 * (100 + apart);
                    launch.site_count = 1;
                    lab_metric_why("passes_per_load", "", text, sizeof text);
                    const int meet = apart != 0 && apart % 32 == 0 && i / (128 / bytes) == j / (128 / bytes);
                    snprintf(wanted, sizeof wanted, "lanes %d and %d want words %d apart", i, j, abs(apart));
                    if ((strstr(text, "same bank") != NULL) != meet || (meet && !strstr(text, wanted)))
                        fail_msg("lanes %d and %d of %d bytes, %d words apart: '%s'", i, j, bytes, apart, text);
                }
}

/* Of accesses to shared memory the one that loses passes is to blame for passes lost, whatever others take. */
static void who_loses_passes_is_blamed(void **state)
{
    (void)state;
    enum { STORE = 6, LOAD = 5 };
    char text[400];
    for (int i = 0; i < SITES; i++)
        sites[i].merged_ideal = sites[i].merged_wavefronts;
    sites[LOAD].requests = 1, sites[LOAD].wavefronts = sites[LOAD].ideal_wavefronts = 4;
    sites[STORE].requests = 1, sites[STORE].wavefronts = 2, sites[STORE].ideal_wavefronts = 1;
    lab_metric_why("conflict_passes", "", text, sizeof text);
    assert_string_equal(text, "");
    sites[STORE].merged_wavefronts = 2, sites[STORE].merged_ideal = 1;
    lab_metric_why("conflict_passes", "", text, sizeof text);
    assert_string_equal(text, "line 16 asks shared store for 2 passes a request, 1 would do");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(each_count_moves_its_figures, begin),
                                       cmocka_unit_test_setup(figures_of_a_launch, begin),
                                       cmocka_unit_test_setup(lanes_that_lie_apart_are_told_of, begin),
                                       cmocka_unit_test_setup(lanes_of_one_bank_are_told_of, begin),
                                       cmocka_unit_test_setup(who_loses_passes_is_blamed, begin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
