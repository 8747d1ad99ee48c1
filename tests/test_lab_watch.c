/* What the lens is told of a verified product's operands, in front of a stand-in for it: results entry by entry, so
 * that a write into a gap is a finding; what is read, and batches of many, as one piece. */
#include "support.h"

#include "lab/watch.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static float memory[1 << 16];

typedef struct told {
    char name[8];
    const void *at;
    int64_t rows, columns, ld;
} told;

static const told *telling(int which)
{
    return (const told *)dlsym(library, "watched") + which;
}

static int count(void)
{
    return *(const int *)dlsym(library, "watched_count");
}

static void assert_told(int which, const char *name, const float *at, int64_t rows, int64_t columns, int64_t ld)
{
    const told *t = telling(which);
    assert_string_equal(t->name, name);
    assert_ptr_equal(t->at, at);
    assert_int_equal(t->rows, rows);
    assert_int_equal(t->columns, columns);
    assert_int_equal(t->ld, ld);
}

static lab_operand operand(int64_t lines, int64_t length, int64_t ld, int64_t stride, int64_t batch)
{
    return (lab_operand){
        .at = memory + 8, .lines = lines, .length = length, .ld = ld, .stride = stride, .batch = batch};
}

static void results_are_told_entry_by_entry(void **state)
{
    (void)state;
    for (int64_t batch = 1; batch <= 12; batch++) {
        const lab_operand c = operand(5, 7, 9, 50, batch);
        lab_watch_begin();
        assert_int_equal(count(), 0);
        lab_watch("C", &c, 1);
        if (batch <= 10) { /* the lens keeps sixteen operands */
            assert_int_equal(count(), batch);
            for (int e = 0; e < batch; e++)
                assert_told(e, "C", c.at + 50 * e, 5, 7, 9);
        } else {
            assert_int_equal(count(), 1);
            assert_told(0, "C", c.at, 1, 50 * (batch - 1) + 9 * 4 + 7, 50 * (batch - 1) + 9 * 4 + 7);
        }
    }
}

static void what_is_read_is_one_piece(void **state)
{
    (void)state;
    const lab_operand one = operand(5, 7, 9, 50, 1), several = operand(5, 7, 9, 50, 3), shared = operand(5, 7, 9, 0, 3);
    lab_watch_begin();
    lab_watch("A", &one, 0);
    lab_watch("B", &several, 0);
    lab_watch("B", &shared, 0);
    assert_int_equal(count(), 3);
    assert_told(0, "A", one.at, 5, 7, 9);
    assert_told(1, "B", several.at, 1, 100 + 36 + 7, 100 + 36 + 7);
    assert_told(2, "B", shared.at, 1, 36 + 7, 36 + 7);
}

static void what_is_empty_is_not_told(void **state)
{
    (void)state;
    const lab_operand no_lines = operand(0, 7, 7, 0, 1), no_length = operand(5, 0, 1, 0, 1);
    lab_watch_begin();
    lab_watch("A", &no_lines, 0);
    lab_watch("C", &no_length, 1);
    assert_int_equal(count(), 0);
}

int main(int words, char **word)
{
    if (words < 2)
        return 2;
    library = dlopen(word[1], RTLD_NOW);
    setenv("RUNG_LIBCUDA", word[1], 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_told_entry_by_entry),
        cmocka_unit_test(what_is_read_is_one_piece),
        cmocka_unit_test(what_is_empty_is_not_told),
    };
    return library ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
