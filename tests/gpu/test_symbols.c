/* Kernel functions by their files and names, with the stand-in for libcuda: as many as there is room for, each found
 * again, though files have functions of the same names; one more is refused. */
#include "cuda/driver/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FILES = 32, NAMES = RUNG_MOST_SYMBOLS / FILES };

static void functions_are_told_apart(void **state)
{
    (void)state;
    static CUfunction known[RUNG_MOST_SYMBOLS];
    const char *files[FILES];
    const rung_driver *driver;
    rung_gpu *gpu;
    rung_function f;
    int count = 0;
    assert_int_equal(rung_driver_open(&driver), RUNG_SUCCESS);
    assert_int_equal(rung_gpu_get(0, &gpu), RUNG_SUCCESS);
    assert_int_equal(driver->context_push(rung_gpu_context(gpu)), CUDA_SUCCESS);
    for (int i = 0; i < rung_kernel_count() && count < FILES; i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel->backend == RUNG_BACKEND_CUDA && !rung_gpu_unusable(rung_gpu_machine(gpu), kernel))
            files[count++] = kernel->name;
    }
    assert_int_equal(count, FILES);
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < RUNG_MOST_SYMBOLS; i++) {
            char name[16];
            snprintf(name, sizeof name, "part_%d", i / FILES);
            if (rung_gpu_function(gpu, files[i % FILES], name, &f) != RUNG_SUCCESS)
                fail_msg("function %d: %s", i, rung_last_error());
            for (int j = 0; j < i; j++)
                assert_ptr_not_equal(f.function, known[j]);
            if (again)
                assert_ptr_equal(f.function, known[i]);
            known[i] = f.function;
        }
    assert_int_equal(rung_gpu_function(gpu, files[0], "one_more", &f), RUNG_INTERNAL);
    assert_non_null(strstr(rung_last_error(), "more than 1024 kernels are loaded"));
    CUcontext popped;
    driver->context_pop(&popped);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        setenv("RUNG_LIBCUDA", argv[1], 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_are_told_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
