/* The checkers are checked: a reference that agrees with the definition, and faults of every kind that must be found,
 * on the CPU and, where there is one, on the GPU (or under the lens) with the same data and the same bits. */
#include "support.h"
#include "lab/host.h"
#include "lab/operand.h"
#include "lab/projection.h"
#include "lab/verify.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { M = 67, N = 71, K = 45 };

typedef struct products {
    float a[M * K], b[K * N], chain[M * N], reach[M * N];
    double c64[M * N], size[M * N];
} products;

static int open_place(lab_place *place, int device)
{
    rung_status status = lab_place_open(place, device, 1);
    if (status != RUNG_SUCCESS)
        fprintf(stderr, "no place %d: %s\n", device, lab_error());
    place->host_checks = device == RUNG_DEVICE_CPU; /* a GPU's by its kernels, under the lens too */
    return status == RUNG_SUCCESS;
}

/* Computes the reference of K x ... operands on a place and brings it home. */
static void make_products(lab_place *place, lab_data data, products *p)
{
    lab_buffer a = {0}, b = {0}, c64 = {0}, size = {0}, chain = {0}, reach = {0};
    assert_int_equal(lab_buffer_reserve(place, &reach, sizeof p->reach), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &a, sizeof p->a), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &b, sizeof p->b), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &c64, sizeof p->c64), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &size, sizeof p->size), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &chain, sizeof p->chain), RUNG_SUCCESS);
    lab_view view_a = {a.at, K, 1}, view_b = {b.at, 1, K}; /* B stored by columns */
    lab_fill_args fill_a = {view_a, M, K, 5, data}, fill_b = {{b.at, K, 1}, N, K, 6, data | LAB_OF_B};
    assert_int_equal(lab_fill(place, &fill_a), RUNG_SUCCESS);
    assert_int_equal(lab_fill(place, &fill_b), RUNG_SUCCESS);
    lab_reference_args r = {.a = view_a,
                            .b = view_b,
                            .m = M,
                            .n = N,
                            .k = K,
                            .alpha = -0.5f,
                            .c64 = c64.at,
                            .size = size.at,
                            .chain = chain.at,
                            .reach = reach.at};
    assert_int_equal(lab_reference(place, &r), RUNG_SUCCESS);
    lab_download(place, p->a, a.at, sizeof p->a);
    lab_download(place, p->b, b.at, sizeof p->b);
    lab_download(place, p->c64, c64.at, sizeof p->c64);
    lab_download(place, p->size, size.at, sizeof p->size);
    lab_download(place, p->chain, chain.at, sizeof p->chain);
    lab_download(place, p->reach, reach.at, sizeof p->reach);
    lab_buffer *all[] = {&a, &b, &c64, &size, &chain, &reach};
    for (int i = 0; i < 6; i++)
        lab_buffer_free(place, all[i]);
}

static void reference_is_the_definition(void **state)
{
    (void)state;
    lab_place cpu;
    assert_true(open_place(&cpu, RUNG_DEVICE_CPU));
    products *p = calloc(1, sizeof *p);
    make_products(&cpu, LAB_SIGNED, p);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0.0, size = 0.0;
            float chain = 0.0f, low = 0.0f, high = 0.0f;
            for (int q = 0; q < K; q++) {
                sum += (double)p->a[i * K + q] * p->b[j * K + q];
                size += fabs((double)p->a[i * K + q] * p->b[j * K + q]);
                chain = fmaf(p->a[i * K + q], p->b[j * K + q], chain);
                low = fminf(low, chain);
                high = fmaxf(high, chain);
            }
            assert_true(fabs(p->c64[i * N + j] + 0.5 * sum) <= 1e-14 * size);
            assert_true(fabs(p->size[i * N + j] - 0.5 * size) <= 1e-14 * size);
            assert_true(p->chain[i * N + j] == -0.5f * chain);
            assert_true(fabs(p->reach[i * N + j] - (high - low) / size) <= 1e-6);
        }
    free(p);
    lab_place_close(&cpu);
    lab_place_close(&cpu); /* nothing is there any more */
}

static void both_places_give_the_same_bits(void **state)
{
    (void)state;
    lab_place cpu, gpu;
    if (rung_tools_gpu_count() == 0)
        skip();
    assert_true(open_place(&cpu, RUNG_DEVICE_CPU));
    assert_true(open_place(&gpu, 0));
    products *x = calloc(2, sizeof *x);
    for (int data = 0; data < LAB_DATA_COUNT; data++) {
        if (data == LAB_NORMAL || data == LAB_SPECIAL) /* logf differs by rounding; NaN has many bits */
            continue;
        make_products(&cpu, (lab_data)data, &x[0]);
        make_products(&gpu, (lab_data)data, &x[1]);
        if (memcmp(&x[0], &x[1], sizeof x[0]) != 0)
            fail_msg("data %d differs between the CPU and the GPU", data);
    }
    free(x);
    lab_place_close(&gpu);
    lab_place_close(&cpu);
}

static lab_tally compare_with(lab_place *place, lab_buffer *c, lab_buffer *c64, lab_buffer *size, float value,
                              int64_t at)
{
    lab_tally tally;
    lab_compare_args args = {.c = {c->at, N, 1}, .m = M, .n = N, .c64 = c64->at, .size = size->at};
    lab_upload(place, (float *)c->at + at, &value, sizeof value);
    assert_int_equal(lab_tally_begin(place), RUNG_SUCCESS);
    assert_int_equal(lab_compare(place, &args), RUNG_SUCCESS);
    assert_int_equal(lab_tally_end(place, &tally), RUNG_SUCCESS);
    return tally;
}

static void faults_in_elements_are_found(lab_place *place)
{
    lab_buffer c = {0}, c64 = {0}, size = {0};
    double ones[M * N];
    float floats[M * N];
    for (int i = 0; i < M * N; i++)
        ones[i] = floats[i] = 1.0f;
    assert_int_equal(lab_buffer_reserve(place, &c, sizeof floats), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &c64, sizeof ones), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &size, sizeof ones), RUNG_SUCCESS);
    lab_upload(place, c.at, floats, sizeof floats);
    lab_upload(place, c64.at, ones, sizeof ones);
    lab_upload(place, size.at, ones, sizeof ones);
    lab_tally right = compare_with(place, &c, &c64, &size, 1.0f, 0);
    assert_true(lab_packed(right.worst) == 0.0 && right.wrong == 0);
    lab_tally off = compare_with(place, &c, &c64, &size, 1.0f + 4 * 0x1p-23f, 1234);
    assert_true(lab_packed(off.worst) == 8.0 && (off.worst & UINT32_MAX) == 1234);
    lab_tally nan = compare_with(place, &c, &c64, &size, NAN, 17);
    assert_true(nan.wrong == 1 && nan.wrong_at == 17);
    lab_tally inf = compare_with(place, &c, &c64, &size, -INFINITY, 5);
    assert_true(inf.wrong == 2 && inf.wrong_at == 5);
    double special = NAN;
    lab_upload(place, (double *)c64.at + 17, &special, sizeof special);
    lab_tally expected = compare_with(place, &c, &c64, &size, 1.0f, 5);
    assert_true(expected.wrong == 0);
    lab_buffer_free(place, &c);
    lab_buffer_free(place, &c64);
    lab_buffer_free(place, &size);
}

/* An error that stays within every element's own bound, one that does not, and bounds that have no end. */
static void each_element_has_its_bound(lab_place *place)
{
    enum { COUNT = 4 };
    static const double c64[COUNT] = {1.0, 1.0, 1.0, 0.0}, sizes[COUNT] = {1.0, 1.0, 1.0, 0x1p-140};
    static const float reach[COUNT] = {0.0f, 0.5f, 1.0f, 1.0f};
    static const float values[COUNT] = {1.0f + 0x1p-21f, 1.0f + 0x1p-20f, 1.0f + 0x1p-19f, 0x1p-148f};
    static const double shares[COUNT] = {8.0 / 4.0, 16.0 / 10.0, 32.0 / 20.0, 0.5};
    lab_buffer c = {0}, reference = {0}, size = {0}, reached = {0};
    assert_int_equal(lab_buffer_reserve(place, &c, sizeof values), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &reference, sizeof c64), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &size, sizeof sizes), RUNG_SUCCESS);
    assert_int_equal(lab_buffer_reserve(place, &reached, sizeof reach), RUNG_SUCCESS);
    lab_upload(place, reference.at, c64, sizeof c64);
    lab_upload(place, size.at, sizes, sizeof sizes);
    lab_upload(place, reached.at, reach, sizeof reach);
    for (int i = 0; i < COUNT; i++) {
        float exact[COUNT] = {1.0f, 1.0f, 1.0f, 0.0f};
        lab_tally tally;
        exact[i] = values[i];
        lab_upload(place, c.at, exact, sizeof exact);
        lab_compare_args args = {.c = {c.at, COUNT, 1}, .m = 1, .n = COUNT, .c64 = reference.at, .size = size.at};
        args.reach = reached.at;
        args.bound = (lab_bound){.least_u = 4.0, .reach_u = 20.0, .roundings = 4.0};
        assert_int_equal(lab_tally_begin(place), RUNG_SUCCESS);
        assert_int_equal(lab_compare(place, &args), RUNG_SUCCESS);
        assert_int_equal(lab_tally_end(place, &tally), RUNG_SUCCESS);
        assert_true(fabs(lab_packed(tally.share) - shares[i]) < 0.01);
        assert_int_equal(tally.share & UINT32_MAX, i);
    }
    lab_buffer *all[] = {&c, &reference, &size, &reached};
    for (int i = 0; i < 4; i++)
        lab_buffer_free(place, all[i]);
}

static void faults_around_c_are_found(lab_place *place)
{
    lab_operand x = {0};
    lab_region_args region;
    lab_tally tally;
    float one = 1.0f;
    assert_int_equal(lab_operand_make(place, &x, 5, 7, 3, 1, 4), RUNG_SUCCESS);
    lab_operand_region(&x, &region);
    /* A fault is put into an element, into the padding of its line, between two entries, before all and behind all. */
    const int64_t places[] = {3, x.ld - 1, 5 * x.ld, -1, 4 * x.stride};
    for (int i = 0; i < 5; i++) {
        lab_upload(place, x.at + places[i], &one, sizeof one);
        assert_int_equal(lab_tally_begin(place), RUNG_SUCCESS);
        assert_int_equal(lab_untouched(place, &region), RUNG_SUCCESS);
        assert_int_equal(lab_tally_end(place, &tally), RUNG_SUCCESS);
        assert_int_equal(tally.touched, i);
    }
    lab_buffer_free(place, &x.memory);
}

/* The same words in other places, and other words, have other hashes. */
static void bits_are_told_apart(lab_place *place)
{
    lab_buffer words = {0};
    uint64_t hashes[4];
    assert_int_equal(lab_buffer_reserve(place, &words, 64 * sizeof(float)), RUNG_SUCCESS);
    for (int i = 0; i < 4; i++) {
        float values[64];
        lab_tally tally;
        for (int at = 0; at < 64; at++)
            values[at] = (float)(at / 2);
        values[i == 1 ? 3 : 40] = i == 3 ? -20.0f : 20.0f; /* as it is; another word; two exchanged; a sign */
        if (i == 2)
            values[1] = 31.0f, values[63] = 0.0f;
        lab_upload(place, words.at, values, sizeof values);
        assert_int_equal(lab_tally_begin(place), RUNG_SUCCESS);
        assert_int_equal(lab_hash(place, words.at, 64), RUNG_SUCCESS);
        assert_int_equal(lab_tally_end(place, &tally), RUNG_SUCCESS);
        hashes[i] = tally.hash;
        for (int j = 0; j < i; j++)
            assert_true(hashes[i] != hashes[j]);
    }
    lab_buffer_free(place, &words);
}

static void every_fault_is_found(void **state)
{
    (void)state;
    for (int device = RUNG_DEVICE_CPU; device < (rung_tools_gpu_count() > 0 ? 1 : 0); device++) {
        lab_place place;
        assert_true(open_place(&place, device));
        faults_in_elements_are_found(&place);
        each_element_has_its_bound(&place);
        faults_around_c_are_found(&place);
        bits_are_told_apart(&place);
        lab_place_close(&place);
    }
}

static void overflow_and_specials(void **state)
{
    (void)state;
    assert_true(lab_error_of(INFINITY, 1e39, 1e39) == 0.0);
    assert_true(lab_error_of(NAN, 1e10, 1e39) == 0.0); /* sums of that size may overflow on the way */
    assert_true(lab_error_of(INFINITY, 1e10, 1e12) < 0.0);
    assert_true(lab_error_of(INFINITY, INFINITY, INFINITY) == 0.0);
    assert_true(lab_error_of(-INFINITY, INFINITY, INFINITY) < 0.0);
    assert_true(lab_error_of(1.0f, NAN, 1.0) < 0.0);
    assert_true(lab_error_of(0.0f, 0.0, 0.0) == 0.0);
    assert_true(lab_error_of(1.0f, 0.0, 0.0) > 1e9);
}

static void verdicts_see_the_kernel(void **state)
{
    (void)state;
    lab_place cpu;
    lab_verifier v;
    lab_verdict verdict;
    lab_case c;
    assert_true(open_place(&cpu, RUNG_DEVICE_CPU));
    assert_int_equal(lab_verifier_open(&v, &cpu, RUNG_STRICT, NULL), RUNG_SUCCESS);
    assert_int_equal(lab_case_parse("NN:33x17x9:row,pad=3,offset=1,alpha=-0.5,beta=1", &c), RUNG_SUCCESS);
    assert_int_equal(lab_verify(&v, rung_kernel_find("c01_naive"), &c, &verdict), RUNG_SUCCESS);
    assert_int_equal(verdict.outcome, LAB_PASS);
    assert_string_equal(verdict.kernel, "c01_naive");
    assert_int_equal(lab_case_parse("TN:33x17x9:row", &c), RUNG_SUCCESS);
    assert_int_equal(lab_verify(&v, rung_kernel_find("c01_naive"), &c, &verdict), RUNG_SUCCESS);
    assert_int_equal(verdict.outcome, LAB_SKIP); /* a ladder rung takes NN */
    lab_verifier_close(&v);
    lab_place_close(&cpu);
}

/* An operand lies between guards, before it and behind it: the one behind is as deep as a tile of 130 lines, so that a
 * kernel that forgets its edge writes there. */
static void operands_lie_between_guards(void **state)
{
    enum { LINES_BEHIND = 130, WORDS = 1024, MOST_BEHIND = 1 << 20 };
    static const struct shape {
        int64_t lines, length, pad, offset, batch;
    } shapes[] = {{1, 1, 0, 0, 1}, {7, 5, 3, 2, 1}, {7, 5, 0, 3, 4},   {7, 5, 2, 1, 4},
                  {0, 9, 0, 0, 1}, {9, 0, 1, 0, 2}, {3, 9000, 1, 0, 1}};
    lab_place place;
    (void)state;
    assert_true(open_place(&place, RUNG_DEVICE_CPU));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        lab_operand x = {.words = 0};
        lab_region_args region;
        assert_int_equal(lab_operand_make(&place, &x, s->lines, s->length, s->pad, s->offset, s->batch), RUNG_SUCCESS);
        const int64_t ld = (s->length > 0 ? s->length : 1) + s->pad, deep = LINES_BEHIND * ld;
        assert_true(x.ld == ld && x.first >= WORDS && (x.first - s->offset) % 16 == 0);
        assert_true(x.batch == s->batch && x.stride >= s->lines * ld && x.stride > 0);
        assert_true(x.batch == 1 || s->pad == 0 || x.stride > s->lines * ld); /* there is a gap between matrices */
        assert_true(x.words - x.first - x.stride * x.batch >= (deep < MOST_BEHIND ? deep : MOST_BEHIND) + WORDS);
        assert_true(x.at == (float *)x.memory.at + x.first);
        for (int64_t j = 0; j < x.words; j++)
            assert_true(((const uint32_t *)x.memory.at)[j] == LAB_POISON);
        lab_operand_region(&x, &region);
        assert_true(region.words_at == x.memory.at && region.words == x.words && region.first == x.first &&
                    region.lines == s->lines && region.length == s->length && region.ld == ld &&
                    region.stride == x.stride && region.batch == s->batch);
        for (int across = 0; across < 2; across++) {
            const lab_view view = lab_operand_view(&x, s->batch - 1, across);
            assert_true(view.at == x.at + (s->batch - 1) * x.stride);
            assert_true(across ? view.line_step == 1 && view.step == ld : view.line_step == ld && view.step == 1);
        }
        lab_buffer_free(&place, &x.memory);
    }
    lab_place_close(&place);
}

/* A projection is the sums it stands for, whichever way the matrix lies. */
static void projections_are_sums(void **state)
{
    enum { ROWS = 37, COLS = 300, LD = 41 };
    static float m[LD * COLS];
    static double v[2][COLS], out[2][COLS];
    const double *given[2] = {v[0], v[1]};
    double *found[2] = {out[0], out[1]};
    (void)state;
    for (int64_t i = 0; i < LD * COLS; i++)
        m[i] = i % LD < ROWS ? lab_element(7, i) : NAN;
    for (int trans = 0; trans < 2; trans++) {
        const int lines = trans ? COLS : ROWS, terms = trans ? ROWS : COLS;
        for (int j = 0; j < terms; j++)
            v[0][j] = lab_element(3, j), v[1][j] = 2.0 + lab_element(4, j);
        lab_project(m, ROWS, COLS, LD, trans, given, found);
        for (int i = 0; i < lines; i++) {
            double sum = 0.0, size = 0.0;
            for (int j = 0; j < terms; j++) {
                const double element = trans ? m[j + i * LD] : m[i + j * LD];
                sum += element * v[0][j];
                size += fabs(element) * v[1][j];
            }
            assert_true(fabs(out[0][i] - sum) <= 1e-12 * size && fabs(out[1][i] - size) <= 1e-12 * size);
        }
    }
}

/* The error of a projection is its largest row's, in units of 2^-24 of that row's terms; one that is no number is none
 * that passes. */
static void errors_of_projections(void **state)
{
    lab_shape s = {.m = 5, .n = 4, .k = 3};
    double *memory = calloc(1, lab_vectors_bytes(&s));
    (void)state;
    assert_non_null(memory);
    const lab_vectors v = lab_vectors_of(memory, &s);
    assert_true((char *)(v.r[1] + s.m) == (char *)memory + lab_vectors_bytes(&s));
    for (int64_t j = 0; j < s.n; j++)
        assert_true(fabs(v.x[0][j]) == 1.0 && v.x[1][j] == 1.0);
    assert_true(lab_vectors_error(&v, s.m) == 0.0);
    v.z[1][1] = 4.0, v.r[0][1] = 0x1p-20; /* 2^-20 of 4 is 4 units of 2^-24 */
    v.z[1][4] = 0.5, v.z[0][4] = 0x1p-23;
    assert_true(lab_vectors_error(&v, s.m) == 4.0);
    v.z[0][4] = 0x1p-21;
    assert_true(lab_vectors_error(&v, s.m) == 16.0);
    assert_true(lab_vectors_error(&v, s.m - 1) == 4.0);
    v.r[0][3] = 1.0; /* of a row without terms, whose sum is 0 */
    assert_true(lab_vectors_error(&v, s.m) == 0x1p24);
    v.r[0][0] = NAN;
    for (double bound = 1.0; bound < 1e30; bound *= 1e9)
        assert_false(lab_vectors_error(&v, s.m) <= bound);
    assert_true(lab_projection_bound(&s, RUNG_STRICT) == 4.25 && lab_projection_bound(&s, RUNG_FAST) == 0x1p13 + 64.0);
    free(memory);
}

/* What a case takes of memory is given back, whatever its form: after many of them there is no less than after one. */
static void cases_keep_no_memory(void **state)
{
    (void)state;
    enum { TIMES = 40, LEAST = 32 /* bytes that a piece of memory takes */ };
    static const char *const texts[] = {"NN:5x7x3:row,arrays=3",
                                        "TN:5x7x3:col,arrays=2,beta=0.5",
                                        "NT:5x7x3:row,strided=2",
                                        "TT:5x7x3:row,shared_b=3",
                                        "NN:5x7x3:row,bias=row,act=relu",
                                        "NN:5x7x3:row,beta=-0.5,added=special",
                                        "NN:5x7x3:row,data=span24,judge=accuracy"};
    lab_place cpu;
    lab_verifier v;
    lab_verdict verdict;
    lab_case c;
    assert_true(open_place(&cpu, RUNG_DEVICE_CPU));
    assert_int_equal(lab_verifier_open(&v, &cpu, RUNG_STRICT, NULL), RUNG_SUCCESS);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t before = 0;
        assert_int_equal(lab_case_parse(texts[i], &c), RUNG_SUCCESS);
        for (int time = 0; time < TIMES; time++) {
            if (time == 2)
                before = mallinfo2().uordblks;
            assert_int_equal(lab_verify(&v, NULL, &c, &verdict), RUNG_SUCCESS);
            assert_int_equal(verdict.outcome, LAB_PASS);
        }
        const size_t after = mallinfo2().uordblks;
        if (after > before + TIMES * LEAST / 2)
            fail_msg("%s: %zu bytes in use, %zu before", texts[i], after, before);
    }
    lab_verifier_close(&v);
    lab_place_close(&cpu);
}

enum { MANY = 100 };

typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int here, alone;
} meeting;

/* Waits for all others: no thread has the work of two. */
static void meet(void *state, int64_t first, int64_t end)
{
    meeting *m = state;
    struct timespec last;
    clock_gettime(CLOCK_REALTIME, &last);
    last.tv_sec += 60;
    pthread_mutex_lock(&m->lock);
    m->here += (int)(end - first);
    pthread_cond_broadcast(&m->all_here);
    while (m->here < MANY && pthread_cond_timedwait(&m->all_here, &m->lock, &last) == 0)
        ;
    m->alone += end - first == 1;
    pthread_mutex_unlock(&m->lock);
}

/* A peak of 100 cores that 64 threads took would be that of fewer. */
static void each_core_has_a_thread(void **state)
{
    meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    (void)state;
    lab_parallel(MANY, MANY, meet, &m);
    assert_int_equal(m.alone, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_keep_no_memory),        cmocka_unit_test(operands_lie_between_guards),
        cmocka_unit_test(projections_are_sums),        cmocka_unit_test(errors_of_projections),
        cmocka_unit_test(reference_is_the_definition), cmocka_unit_test(both_places_give_the_same_bits),
        cmocka_unit_test(every_fault_is_found),        cmocka_unit_test(overflow_and_specials),
        cmocka_unit_test(verdicts_see_the_kernel),     cmocka_unit_test(each_core_has_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
