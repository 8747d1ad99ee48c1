/* The variables that the drop-ins share. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "settings.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int setting_flag(const char *variable)
{
    const char *value = getenv(variable);
    return value && strcmp(value, "1") == 0;
}

void setting_tell_flag(const char *drop_in, const char *variable)
{
    const char *value = getenv(variable);
    if (value && *value && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        fprintf(stderr, "%s: %s is '%s': 1 or 0; 0 is taken\n", drop_in, variable, value);
}

rung_math setting_math(const char *drop_in, rung_math otherwise)
{
    static const char *const names[] = {"strict", "accurate", "fast"}; /* in the order of rung_math */
    const char *value = getenv("RUNG_MATH");
    if (!value || !*value)
        return otherwise;
    for (int math = RUNG_STRICT; math <= RUNG_FAST; math++)
        if (strcmp(value, names[math]) == 0)
            return (rung_math)math;
    fprintf(stderr, "%s: RUNG_MATH is '%s': strict, accurate or fast; %s is taken\n", drop_in, value, names[otherwise]);
    return otherwise;
}

int setting_device(const char *drop_in, int otherwise)
{
    const char *value = getenv("RUNG_DEVICE");
    if (!value || !*value || strcmp(value, "cpu") == 0)
        return value && *value ? RUNG_DEVICE_CPU : otherwise;
    const char *number = strncmp(value, "gpu", 3) == 0 ? value + 3 : value;
    size_t digits = strspn(number, "0123456789");
    if (!number[digits] && digits <= 4 && (digits || number > value))
        return atoi(number);
    fprintf(stderr, "%s: RUNG_DEVICE is '%s': cpu, gpu or a GPU's number; %s is taken\n", drop_in, value,
            otherwise == RUNG_DEVICE_CPU ? "cpu" : "gpu");
    return otherwise;
}

void *driver_function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found)
        return found;
    const char *named = getenv("RUNG_LIBCUDA");
    void *driver = dlopen(named && *named ? named : "libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}
