/* Products of which nothing is whole: made, multiplied and checked part by part, in pieces so small here that parts
 * have several. Right products pass on any grid; a piece with one wrong element fails, whichever piece it is. */
#include "lab/multi.h"
#include "lab/multi_shared.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int downloads, spoilt; /* the download that brings a wrong element, from 1 on; 0: none does */

rung_status __real_rung_multi_download(rung_multi *multi, int rank, void *to, const void *from, int64_t bytes);
rung_status __wrap_rung_multi_download(rung_multi *multi, int rank, void *to, const void *from, int64_t bytes);

rung_status __wrap_rung_multi_download(rung_multi *multi, int rank, void *to, const void *from, int64_t bytes)
{
    const rung_status status = __real_rung_multi_download(multi, rank, to, from, bytes);
    if (++downloads == spoilt)
        *(float *)to += 64.0f;
    return status;
}

static rung_multi *ranks_of(int ranks)
{
    int devices[LAB_MULTI_RANKS];
    rung_multi *multi = NULL;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.ranks = ranks;
    config.threads = 1;
    for (int i = 0; i < ranks; i++)
        devices[i] = RUNG_DEVICE_CPU;
    config.devices = devices;
    assert_int_equal(rung_multi_create(&multi, &config), RUNG_SUCCESS);
    return multi;
}

static lab_multi_row run(rung_multi *multi, const lab_shape *shape, int rows, int cols)
{
    lab_multi_row row;
    downloads = 0;
    assert_int_equal(lab_multi_parts(multi, shape, rows, cols, 1, RUNG_STRICT, &row), RUNG_SUCCESS);
    assert_true(row.bound_u > 0.0 && isfinite(row.bound_u));
    return row;
}

static const lab_shape shapes[] = {
    {.m = 1, .n = 1, .k = 1, .batch = 1},
    {.m = 130, .n = 71, .k = 96, .batch = 1},
    {.m = 96, .n = 150, .k = 41, .trans_a = RUNG_TRANS, .batch = 1},
    {.m = 57, .n = 113, .k = 170, .trans_b = RUNG_TRANS, .batch = 1},
    {.m = 200, .n = 90, .k = 130, .trans_a = RUNG_TRANS, .trans_b = RUNG_TRANS, .batch = 1},
    {.m = 3, .n = 2000, .k = 1100, .batch = 1},
};
static const int grids[][2] = {{1, 1}, {1, 3}, {4, 1}, {2, 2}, {2, 3}};

static void right_products_pass_on_any_grid(void **state)
{
    int several = 0;
    (void)state;
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
        const int ranks = grids[g][0] * grids[g][1];
        rung_multi *multi = ranks_of(ranks);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const lab_multi_row row = run(multi, &shapes[s], grids[g][0], grids[g][1]);
            if (!(row.error_u <= row.bound_u))
                fail_msg("shape %zu on %d x %d: %g u, allowed %g", s, grids[g][0], grids[g][1], row.error_u,
                         row.bound_u);
            several += downloads > 3 * ranks;
        }
        rung_multi_destroy(multi);
    }
    assert_true(several > 10); /* parts had more than one piece */
}

static void every_piece_counts(void **state)
{
    (void)state;
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
        rung_multi *multi = ranks_of(grids[g][0] * grids[g][1]);
        for (size_t s = 1; s < 4; s++) {
            spoilt = 0;
            run(multi, &shapes[s], grids[g][0], grids[g][1]);
            const int all = downloads;
            for (int one = 1; one <= all; one += 1 + all / 4) {
                spoilt = one;
                const lab_multi_row row = run(multi, &shapes[s], grids[g][0], grids[g][1]);
                if (row.error_u <= row.bound_u)
                    fail_msg("shape %zu on %d x %d: piece %d of %d may be wrong: %g u, allowed %g", s, grids[g][0],
                             grids[g][1], one, all, row.error_u, row.bound_u);
            }
        }
        rung_multi_destroy(multi);
    }
    spoilt = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_products_pass_on_any_grid),
        cmocka_unit_test(every_piece_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
