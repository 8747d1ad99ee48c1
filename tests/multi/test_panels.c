/* How k is cut into panels: an element's bits follow from the cuts, and products wait for the first panel. Every k of
 * some length, and longer ones, by the rules that contexts have and by others. */
#include "multi/multi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { STEP = 256 };

static const multi_panels rules[] = {{512, 512, 512, 1, 1},    {2048, 8192, 4096, 4, 2}, {8192, 8192, 8192, 2, 1},
                                     {256, 4096, 256, 1, 1},   {1024, 1024, 256, 1, 1},  {256, 1 << 20, 512, 1, 1},
                                     {4096, 16384, 1024, 1, 1}};

/* The cuts cover k once. A panel is as wide as all before it together, but not less than the first width nor more than
 * the widest; nor wider than half of what is left, in whole steps, but for the last width; nor than what is left. */
static void check(const multi_panels *rule, int64_t k)
{
    multi_cuts cuts;
    int64_t k0 = 0, widest = 0;
    assert_int_equal(multi_panels_cut(rule, k, &cuts), RUNG_SUCCESS);
    for (int64_t i = 0; i < cuts.count; i++) {
        const int64_t width = cuts.edges[i + 1] - cuts.edges[i], left = k - k0;
        int64_t before = k0 < rule->widest ? k0 : rule->widest, half = 0;
        while (half < left / 2)
            half += STEP;
        before = before > rule->first ? before : rule->first;
        half = half > rule->last ? half : rule->last;
        const int64_t limit = before < half ? before : half;
        assert_int_equal(cuts.edges[i], k0);
        assert_int_equal(width, left < limit ? left : limit);
        assert_true(k0 % STEP == 0 && width > 0);
        widest = width > widest ? width : widest;
        k0 += width;
    }
    assert_true(k0 == k && cuts.edges[cuts.count] == k && cuts.widest == widest);
    multi_panels_free(&cuts);
    assert_true(!cuts.edges && cuts.count == 0);
}

static void every_k_is_cut_by_the_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        for (int64_t k = 0; k < 3000; k++)
            check(&rules[i], k);
        for (int64_t k = 3000; k < 200000; k += 1 + k / 40)
            check(&rules[i], k);
    }
}

/* Results depend on these: whoever changes them changes the bits of every product over ranks. */
static void cuts_stay_as_they_are(void **state)
{
    static const struct known {
        int rule;
        int64_t k, edges[12];
    } all[] = {{0, 1200, {512, 1024, 1200}},
               {1, 5000, {2048, 4096, 5000}},
               {1, 20000, {2048, 4096, 8192, 14336, 18432, 20000}},
               {1, 40000, {2048, 4096, 8192, 16384, 24576, 32512, 36608, 40000}},
               {2, 20000, {8192, 16384, 20000}},
               {3, 6000, {256, 512, 1024, 2048, 4096, 5120, 5632, 5888, 6000}}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        multi_cuts cuts;
        assert_int_equal(multi_panels_cut(&rules[all[i].rule], all[i].k, &cuts), RUNG_SUCCESS);
        for (int64_t j = 0; j < cuts.count; j++)
            assert_int_equal(cuts.edges[j + 1], all[i].edges[j]);
        assert_int_equal(cuts.edges[cuts.count], all[i].k);
        multi_panels_free(&cuts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_k_is_cut_by_the_rule),
                                       cmocka_unit_test(cuts_stay_as_they_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
