/* Opens libcuda at run time and fills the table of calls. */
#include "cuda/driver/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rung_driver table;
static rung_status open_status = RUNG_INTERNAL;
static char open_error[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(void *library, const char *symbol)
{
    return dlsym(library, symbol);
}

static void refuse(const char *format, const char *what)
{
    snprintf(open_error, sizeof open_error, format, what);
    open_status = RUNG_NO_DEVICE;
}

static void *open_library(void)
{
    const char *named = getenv("RUNG_LIBCUDA");
    if (named && *named)
        return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? library : dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
}

static void open_once(void)
{
    void *library = open_library();
    if (!library) {
        refuse("no NVIDIA driver: %s", dlerror());
        return;
    }
#define X(name, symbol, signature)                                                                                     \
    *(void **)&table.name = find(library, symbol);                                                                     \
    if (!table.name) {                                                                                                 \
        refuse("the NVIDIA driver is too old: it has no %s (Rung needs CUDA 12 or later)", symbol);                    \
        return;                                                                                                        \
    }
    RUNG_DRIVER_CALLS(X)
#undef X
    *(void **)&table.library_named = find(library, "rung_library_named");
    CUresult result = table.init(0);
    if (result != CUDA_SUCCESS) {
        const char *name = "unknown error";
        table.error_name(result, &name);
        refuse("the NVIDIA driver does not start: cuInit returned %s", name);
        return;
    }
    open_status = RUNG_SUCCESS;
}

rung_status rung_driver_open(const rung_driver **driver)
{
    pthread_once(&once, open_once);
    *driver = &table;
    if (open_status != RUNG_SUCCESS)
        return rung_fail(open_status, "%s", open_error);
    const CUresult result = table.init(0);
    if (result == CUDA_ERROR_NOT_INITIALIZED) /* it was started, in another process */
        return rung_fail(
            RUNG_NO_DEVICE,
            "this process was forked after its parent had started the NVIDIA driver, which then has no GPU "
            "for it: start it anew ('spawn' in Python's multiprocessing), or use the CPU");
    return result == CUDA_SUCCESS ? RUNG_SUCCESS : rung_driver_fail(&table, result, "init(0)");
}

/* Returns the driver's name of a call that is written as launch(...) or as cuLaunchKernelEx. */
static const char *name_of_call(const char *call)
{
    static const struct {
        const char *name, *symbol;
    } calls[] = {
#define X(name, symbol, signature) {#name, symbol},
        RUNG_DRIVER_CALLS(X)
#undef X
    };
    const size_t length = strcspn(call, "(");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strlen(calls[i].name) == length && strncmp(calls[i].name, call, length) == 0)
            return calls[i].symbol;
    return call;
}

rung_status rung_driver_fail(const rung_driver *driver, CUresult result, const char *call)
{
    const char *name = "unknown error", *text = "", *called = name_of_call(call);
    driver->error_name(result, &name);
    driver->error_string(result, &text);
    const int length = (int)strcspn(called, "_("); /* without a version */
    rung_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? RUNG_OUT_OF_MEMORY : RUNG_DEVICE_ERROR;
    return rung_fail(status, "%.*s failed: %s (%s)", length, called, name, text);
}

rung_thread_mode rung_driver_relax(const rung_driver *driver)
{
    rung_thread_mode mode = {.before = CU_STREAM_CAPTURE_MODE_RELAXED};
    mode.changed = driver->capture_mode(&mode.before) == CUDA_SUCCESS;
    return mode;
}

void rung_driver_put_back(const rung_driver *driver, rung_thread_mode mode)
{
    if (mode.changed)
        driver->capture_mode(&mode.before);
}
