/* cuBLAS-XT as a peer, with a stand-in: found by RUNG_CUBLAS, which may name a folder, the library or folders of which
 * the first has one, asked for each size of block, and each call of it that fails is named. usage: test_lab_xt WITH
 * WITHOUT (two libraries: with cuBLAS-XT and without it) */
#include "lab/error.h"
#include "lab/multi.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>

enum { ROWS = 4096, REPEATS = 3, FOLDERS = 4, FILES = 2 }; /* blocks of 1024 and of 2048 are tried */

/* A folder has links to the two libraries; where there is none, a file that is no library. */
static const char *with, *without;
static const struct {
    const char *name, *files[FILES];
    const char **links[FILES];
} folders[FOLDERS] = {{"1", {"libcublas.so.13", "libcublasLt.so.13"}, {&with, &without}},
                      {"2", {"libcublas.so.13", "libcublasLt.so.13"}, {NULL, NULL}},
                      {"old", {"libcublas.so.12", "libcublasLt.so.12"}, {&with, &without}},
                      {"other", {"libcublas.so.13", "libcublasLt.so.13"}, {&without, &without}}};
static char all[] = "/tmp/lab_xt.XXXXXX";

static const char *in_all(const char *folder, const char *file)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s/%s", all, folder, file);
    return path;
}

static int make_all(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(all));
    for (int i = 0; i < FOLDERS; i++) {
        assert_int_equal(mkdir(in_all(folders[i].name, ""), 0700), 0);
        for (int j = 0; j < FILES; j++) {
            const char *path = in_all(folders[i].name, folders[i].files[j]);
            if (folders[i].links[j]) {
                assert_int_equal(symlink(*folders[i].links[j], path), 0);
                continue;
            }
            FILE *to = fopen(path, "w");
            assert_non_null(to);
            fclose(to);
        }
    }
    return 0;
}

static int remove_all(void **state)
{
    (void)state;
    for (int i = 0; i < FOLDERS; i++) {
        for (int j = 0; j < FILES; j++)
            unlink(in_all(folders[i].name, folders[i].files[j]));
        rmdir(in_all(folders[i].name, ""));
    }
    return rmdir(all);
}

void *__real_dlopen(const char *name, int how);
void *__wrap_dlopen(const char *name, int how);

/* No cuBLAS of this machine's is found. */
void *__wrap_dlopen(const char *name, int how)
{
    const int is_cublas = name && strstr(name, "libcublas"), is_ours = name && strncmp(name, all, strlen(all)) == 0;
    return is_cublas && !is_ours ? NULL : __real_dlopen(name, how);
}

static rung_status measure(const char *named, int gpus, float *c, lab_stats *us, int *block)
{
    static float a[ROWS], b[1] = {2.0f};
    for (int i = 0; i < ROWS; i++)
        a[i] = (float)i;
    const lab_whole whole = {
        .shape = {.m = ROWS, .n = 1, .k = 1, .batch = 1}, .a = a, .b = b, .c = c, .lda = ROWS, .ldb = 1, .ldc = ROWS};
    setenv("RUNG_CUBLAS", named, 1);
    return lab_multi_cublasxt(&whole, gpus, REPEATS, us, block);
}

/* Returns what the stand-in was asked for since the last time. */
static const char *told(void)
{
    const char *(*tell)(void);
    void *library = dlopen(with, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    *(void **)&tell = dlsym(library, "xt_told");
    return tell();
}

static void is_found_and_measured(void **state)
{
    static const char *const named[][2] = {{"1", ""}, {"1", "libcublas.so.13"}, {"[12]", ""}, {"old", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        static float c[ROWS];
        lab_stats us = {0};
        int block = 0;
        memset(c, 0, sizeof c);
        if (measure(in_all(named[i][0], named[i][1]), 3, c, &us, &block) != RUNG_SUCCESS)
            fail_msg("RUNG_CUBLAS=%s: %s", getenv("RUNG_CUBLAS"), lab_error());
        for (int j = 0; j < ROWS; j++)
            assert_true(c[j] == 2.0f * (float)j);
        assert_true(us.median > 0.0 && us.samples == REPEATS);
        assert_true(block == 1024 || block == 2048);
        assert_string_equal(told(), " create devices 0 1 2 block 1024 sgemm sgemm sgemm sgemm block 2048 sgemm sgemm "
                                    "sgemm sgemm destroy");
    }
}

static void what_fails_is_named(void **state)
{
    static const struct {
        const char *call, *says, *asked;
    } each[] = {
        {"create", "cublasXtCreate returned status 7", " create"},
        {"devices", "cublasXtDeviceSelect returned status 7", " create devices 0 destroy"},
        {"block", "cublasXtSetBlockDim returned status 7", " create devices 0 block 1024 destroy"},
        {"sgemm", "cublasXtSgemm returned status 7", " create devices 0 block 1024 sgemm destroy"},
    };
    static float c[ROWS];
    lab_stats us;
    int block;
    (void)state;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        setenv("XT_FAILS", each[i].call, 1);
        assert_int_equal(measure(in_all("1", ""), 1, c, &us, &block), RUNG_DEVICE_ERROR);
        assert_string_equal(lab_error(), each[i].says);
        assert_string_equal(told(), each[i].asked);
    }
    unsetenv("XT_FAILS");
    assert_int_equal(measure(in_all("other", ""), 1, c, &us, &block), RUNG_MISSING_LIBRARY);
    assert_string_equal(lab_error(), "cuBLAS-XT: libcublas has no cublasXtCreate");
    assert_int_equal(measure(in_all("2", ""), 1, c, &us, &block), RUNG_MISSING_LIBRARY);
    assert_string_equal(lab_error(), "cuBLAS-XT: libcublas was not found (RUNG_CUBLAS may name its folder)");
}

int main(int count, char **words)
{
    if (count != 3) {
        puts("usage: test_lab_xt WITH WITHOUT");
        return 2;
    }
    with = words[1];
    without = words[2];
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_found_and_measured), cmocka_unit_test(what_fails_is_named)};
    return cmocka_run_group_tests(tests, make_all, remove_all);
}
