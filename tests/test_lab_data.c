/* The lab's data are what their names say: bounds that are reached and not passed, means, zeros, and what is arranged
 * along a line or between A and B. Each kind is held to its sentence in lab_shared.h, not to its formula. */
#include "lab/names.h" /* whose header has the data */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LINES = 256, LENGTH = 1200 };

static float all[2][LINES * LENGTH]; /* of A, of B */
static float (*const a)[LENGTH] = (void *)all[0], (*const b)[LENGTH] = (void *)all[1];

static void fill(lab_data data)
{
    lab_fill_args of_a = {.length = LENGTH, .seed = 11, .data = data}, of_b = of_a;
    of_b.data |= LAB_OF_B;
    for (int64_t i = 0; i < LINES; i++)
        for (int64_t p = 0; p < LENGTH; p++) {
            a[i][p] = lab_value(&of_a, i, p);
            b[i][p] = lab_value(&of_b, i, p);
        }
}

static double largest_of(const float line[LENGTH])
{
    double most = 0.0;
    for (int p = 0; p < LENGTH; p++)
        most = fmax(most, fabs((double)line[p]));
    return most;
}

static int zeros_of(const float line[LENGTH], int from, int to, int step)
{
    int zeros = 0;
    for (int p = from; p < to; p += step)
        zeros += line[p] == 0.0f;
    return zeros;
}

/* Numbers that are drawn alike for every element of both operands. */
static void elements_lie_where_they_should(void **state)
{
    static const struct {
        lab_data data;
        double least, most, mean, square, zeros; /* square: the mean of squares; NAN: it is not looked at */
    } kinds[] = {
        {LAB_SIGNED, -1.0, 1.0, 0.0, 1.0 / 3.0, 0.0},     {LAB_POSITIVE, 0.0, 1.0, 0.5, 1.0 / 3.0, 0.0},
        {LAB_NORMAL, -5.6, 5.6, 0.0, 1.0, 0.0},           {LAB_SPARSE, -1.0, 1.0, 0.0, 1.0 / 30.0, 0.9},
        {LAB_INTEGERS, -8.0, 8.0, 0.0, 24.0, 1.0 / 17.0},
    };
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        fill(kinds[kind].data);
        const double most = kinds[kind].most, least = kinds[kind].least, spread = most - least;
        for (int which = 0; which < 2; which++) {
            double low = 0.0, high = 0.0, sum = 0.0, squares = 0.0, zeros = 0.0;
            for (int i = 0; i < LINES * LENGTH; i++) {
                const double x = all[which][i];
                low = fmin(low, x), high = fmax(high, x), sum += x, squares += x * x, zeros += x == 0.0;
                assert_true(kinds[kind].data != LAB_INTEGERS || x == floor(x));
            }
            assert_true(low >= least && high <= most && low <= least + 0.15 * spread && high >= most - 0.15 * spread);
            assert_true(fabs(sum / (LINES * LENGTH) - kinds[kind].mean) < 0.003 * spread);
            assert_true(fabs(squares / (LINES * LENGTH) / kinds[kind].square - 1.0) < 0.03);
            assert_true(fabs(zeros / (LINES * LENGTH) - kinds[kind].zeros) < 0.003);
        }
    }
}

/* Exponents are spread evenly over so many binades, those at both ends too, and half of the numbers are negative. */
static void spans_are_even(void **state)
{
    static const int spans[][2] = {{LAB_SPAN10, 10}, {LAB_SPAN24, 24}, {LAB_SPAN40, 40}, {LAB_SPAN100, 100}};
    (void)state;
    for (size_t s = 0; s < sizeof spans / sizeof *spans; s++) {
        const int span = spans[s][1];
        int counts[128] = {0}, negative = 0;
        fill((lab_data)spans[s][0]);
        for (int i = 0; i < LINES * LENGTH; i++) {
            int exponent;
            frexp((double)all[0][i], &exponent);
            exponent += span / 2 - 1;
            assert_in_range(exponent, 0, span);
            counts[exponent]++;
            negative += all[0][i] < 0.0f;
        }
        for (int e = 0; e <= span; e++)
            assert_true(fabs((double)counts[e] * (span + 1) / (LINES * LENGTH) - 1.0) < 0.15);
        assert_true(fabs((double)negative / (LINES * LENGTH) - 0.5) < 0.005);
    }
}

/* Lines, or a place in each, are larger than others by as much as is said. */
static void lines_have_their_sizes(void **state)
{
    int large = 0, outlying = 0;
    (void)state;
    fill(LAB_SCALED);
    for (int i = 0; i < LINES; i++) {
        const double most = largest_of(a[i]);
        large += most > 1.0;
        assert_true((most > 0x1.fp59 && most <= 0x1p60) || (most > 0x1.fp-61 && most <= 0x1p-60));
    }
    assert_in_range(large, LINES / 4, LINES - LINES / 4);
    fill(LAB_SPIKE);
    for (int i = 0; i < LINES; i++) {
        int spikes = 0;
        for (int p = 0; p < LENGTH; p++)
            spikes += fabsf(a[i][p]) > 1.0f;
        assert_int_equal(spikes, 1);
        assert_true(largest_of(a[i]) <= 0x1p30);
    }
    fill(LAB_OUTLIERS);
    for (int i = 0; i < LINES; i++)
        for (int p = 0; p < LENGTH; p++) {
            const int is_one = fabsf(a[i][p]) > 1.0f;
            assert_true(fabsf(a[i][p]) <= 300.0f && (!is_one || p % 512 == 3));
            outlying += is_one;
        }
    assert_true(outlying > LINES * (LENGTH / 512 + 1) * 9 / 10);
    fill(LAB_CONSTANT);
    for (int i = 0; i < LINES * LENGTH; i++)
        assert_true(all[0][i] == a[0][0] && all[1][i] == b[0][0] && a[0][0] > 0.0f && b[0][0] > 0.0f);
}

/* What A is scaled by at a place B is scaled by the other way, so that all terms count alike. */
static void operands_are_scaled_against_each_other(void **state)
{
    double highest = 0.0, lowest = INFINITY;
    (void)state;
    fill(LAB_ACROSS);
    for (int p = 0; p < LENGTH; p++) {
        double of_a = 0.0, of_b = 0.0;
        for (int i = 0; i < LINES; i++) {
            of_a = fmax(of_a, fabs((double)a[i][p]));
            of_b = fmax(of_b, fabs((double)b[i][p]));
        }
        assert_true(of_a * of_b > 0.8 && of_a * of_b <= 1.0);
        highest = fmax(highest, of_a), lowest = fmin(lowest, of_a);
    }
    assert_true(highest > 0x1p58 && highest <= 0x1p60 && lowest < 0x1p-58 && lowest > 0x1p-61);
    fill(LAB_FIXED);
    for (int i = 0; i < LINES; i++)
        for (int p = 0; p < LENGTH; p++)
            assert_true(a[i][p] * b[i][p] >= 1.0f && a[i][p] * b[i][p] < 4.0f && a[i][p] > 0.0f);
    for (int i = 1; i < LINES; i++)
        assert_true(a[i][0] == a[0][i] && a[i][LENGTH - 1] == a[0][i - 1] && b[i][7] == b[0][7 + i]);
    /* 62 - log2 of the length's next power of two */
    assert_true(a[0][0] >= 0x1p51f && a[0][0] < 0x1p52f && a[0][LENGTH - 1] >= 0x1p-51f && a[0][LENGTH - 1] < 0x1p-50f);
    fill(LAB_SUBNORMAL);
    int least = 0;
    for (int i = 0; i < LINES * LENGTH; i++) {
        assert_true(fabsf(all[0][i]) < 0x1p-126f && fabsf(all[1][i]) <= 1e20f);
        least += fabsf(all[0][i]) > 0x1.fp-127f;
    }
    assert_true(fabs((double)least / (LINES * LENGTH) - 0.2) < 0.02);
    assert_true(largest_of(b[0]) > 0.9e20);
    fill(LAB_LARGE);
    assert_true(largest_of(a[0]) > 0.99 * FLT_MAX && largest_of(b[0]) <= 0.01);
}

/* Zeros stand where a method that adds or scales would be wrong about them. */
static void zeros_stand_in_their_places(void **state)
{
    int trapped = 0, halved[2] = {0, 0};
    (void)state;
    fill(LAB_TRAP);
    for (int i = 0; i < LINES; i++) {
        const int even = zeros_of(b[i], 0, LENGTH, 2), odd = zeros_of(b[i], 1, LENGTH, 2);
        assert_true(odd == 0 && (even == 0 || even == LENGTH / 2));
        trapped += even > 0;
        for (int p = 1; p < LENGTH; p += 2)
            assert_true(fabsf(a[i][p]) <= 0x1p-8f);
        assert_true(largest_of(a[i]) > 0.98);
    }
    assert_in_range(trapped, LINES / 4, LINES - LINES / 4);
    fill(LAB_UNIT);
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(zeros_of(b[i], 0, LENGTH, 1), LENGTH - 1);
        assert_true(b[i][i % LENGTH] == 1.0f && largest_of(a[i]) <= 1.0);
    }
    fill(LAB_HALVES);
    for (int i = 0; i < LINES; i++) {
        int zero_half[2];
        for (int which = 0; which < 2; which++) {
            const float *line = which ? b[i] : a[i];
            const int first = zeros_of(line, 0, LENGTH / 2, 1), second = zeros_of(line, LENGTH / 2, LENGTH, 1);
            assert_true((first == 0 || first == LENGTH / 2) && (second == 0 || second == LENGTH / 2));
            assert_true(first + second == (i % 2 ? LENGTH / 2 : 0)); /* half of the lines have half of them */
            zero_half[which] = second > 0;
            halved[which] += first > 0;
        }
        assert_true(i % 2 == 0 || zero_half[0] != zero_half[1]); /* their product is zero */
    }
    assert_true(halved[0] == LINES / 4 && halved[1] == LINES / 4);
}

/* A line is one element against all others, which are as much together; and where that one is. */
static void gradients_sum_to_nothing(void **state)
{
    double sums = 0.0;
    int last[2] = {0, 0};
    (void)state;
    fill(LAB_SOFTMAX);
    for (int i = 0; i < LINES; i++) {
        int targets = 0;
        for (int p = 0; p < LENGTH; p++) {
            targets += a[i][p] == -1.0f;
            assert_true(a[i][p] == -1.0f || (a[i][p] > 0.0f && a[i][p] < 1.0f));
            sums += a[i][p];
        }
        assert_int_equal(targets, 1);
        last[i / 128] += a[i][LENGTH - 1] == -1.0f;
    }
    assert_true(fabs(sums / LINES) < 0.02);
    assert_true(last[0] < 8 && last[1] > 96 && last[1] < 128);
}

static void rare_numbers_are_as_many_as_they_should(void **state)
{
    int nan_lines = 0, inf_lines[2] = {0, 0}, zero_lines = 0, plain_lines = 0;
    double widest = 0.0;
    (void)state;
    fill(LAB_SPECIAL);
    for (int i = 0; i < LINES; i++) {
        int special = 0;
        for (int p = 0; p < LENGTH; p++) {
            special += !isfinite(a[i][p]);
            nan_lines += isnan(a[i][p]) != 0;
            if (isinf(a[i][p]))
                inf_lines[a[i][p] > 0.0f]++;
        }
        assert_in_range(special, 0, 1);
    }
    assert_in_range(nan_lines + inf_lines[0] + inf_lines[1], LINES / 6, LINES / 3);
    assert_true(nan_lines > LINES / 16 && inf_lines[0] > LINES / 32 && inf_lines[1] > LINES / 32);
    fill(LAB_FUZZ);
    for (int i = 0; i < LINES; i++) {
        const int zeros = zeros_of(a[i], 0, LENGTH, 1);
        double least = INFINITY;
        for (int p = 0; p < LENGTH; p++) {
            assert_true(isfinite(a[i][p]));
            least = a[i][p] != 0.0f ? fmin(least, fabs((double)a[i][p])) : least;
        }
        zero_lines += zeros > LENGTH / 2;
        plain_lines += zeros == 0;
        widest = fmax(widest, largest_of(a[i]) / least);
    }
    assert_true(zero_lines > LINES / 10 && plain_lines > LINES / 3 && widest > 0x1p90 && widest < 0x1p146);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_lie_where_they_should),
        cmocka_unit_test(spans_are_even),
        cmocka_unit_test(lines_have_their_sizes),
        cmocka_unit_test(operands_are_scaled_against_each_other),
        cmocka_unit_test(zeros_stand_in_their_places),
        cmocka_unit_test(gradients_sum_to_nothing),
        cmocka_unit_test(rare_numbers_are_as_many_as_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
