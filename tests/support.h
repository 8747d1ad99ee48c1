/* What the tests share: cmocka, random numbers, an FP64 reference, memory that faults one element too far. Tests see
 * the public headers only. RUNG_TEST_DEVICE=0 runs them on a GPU instead of the CPU. */
#ifndef RUNG_TESTS_SUPPORT_H
#define RUNG_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rung.h"

/* assert_int_equal with the library's sentence when it fails. */
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        rung_status status_ = (call);                                                                                  \
        if (status_ != RUNG_SUCCESS)                                                                                   \
            fail_msg("%s: %s: %s", #call, rung_status_name(status_), rung_last_error());                               \
    } while (0)

/* Loops of the tests' own, over what one thread has: a sanitizer looks at the library, and would make them most of a
 * test's time; they are optimised in every tree. */
#ifdef __clang__
#define TEST_UNWATCHED __attribute__((noinline, no_sanitize("address", "undefined", "thread")))
#else
#define TEST_UNWATCHED                                                                                                 \
    __attribute__((noinline, optimize("O3"), no_sanitize("address"), no_sanitize("undefined"), no_sanitize("thread")))
#endif

rung_context *test_context(int threads);

float random_float(uint64_t *state); /* in [-1, 1) */

/* `count` floats that end flush with an unmapped page; all NaN at first. */
float *guarded_new(size_t count);
void guarded_free(float *memory, size_t count);

/* A product with operands of its own, random, in guarded memory, with `pad` extra elements a line. */
typedef struct product {
    rung_gemm gemm;
    float *before; /* C as it was */
    size_t count_a, count_b, count_c;
} product;

void product_new(product *p, rung_layout layout, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, int pad,
                 int64_t batch, uint64_t seed);
void product_free(product *p);
/* Puts C back: NaN everywhere when beta is 0 (it must not be read), random otherwise. */
void product_reset(product *p);
/* Fails the test unless C is right within FP32's bound and every element around it is untouched. */
void product_check(const product *p, const char *what);

#endif
