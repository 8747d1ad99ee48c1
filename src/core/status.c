/* Status names and the thread-local detail of the last failure. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct failure {
    char text[512];
    int argument;
} failure;

static _Thread_local failure failures[2]; /* the last one; and before or behind it what only was an attempt */
static _Thread_local int last, attempts;

static rung_status record(rung_status status, int argument, const char *format, va_list list)
{
    vsnprintf(failures[last].text, sizeof failures[last].text, format, list);
    failures[last].argument = argument;
    return status;
}

void rung_attempt_begin(void)
{
    if (attempts++ == 0)
        last = !last;
}

rung_status rung_attempt_end(rung_status status)
{
    if (--attempts == 0 && status == RUNG_SUCCESS)
        last = !last;
    return status;
}

rung_status rung_fail(rung_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    record(status, 0, format, list);
    va_end(list);
    return status;
}

rung_status rung_fail_argument(int argument, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    record(RUNG_INVALID_ARGUMENT, argument, format, list);
    va_end(list);
    return RUNG_INVALID_ARGUMENT;
}

const char *rung_last_error(void)
{
    return failures[last].text;
}

int rung_last_error_argument(void)
{
    return failures[last].argument;
}

const char *rung_status_name(rung_status status)
{
    switch (status) {
    case RUNG_SUCCESS: return "success";
    case RUNG_INVALID_ARGUMENT: return "invalid argument";
    case RUNG_OUT_OF_MEMORY: return "out of memory";
    case RUNG_UNSUPPORTED: return "unsupported";
    case RUNG_NO_DEVICE: return "no device";
    case RUNG_DEVICE_ERROR: return "device error";
    case RUNG_MISSING_LIBRARY: return "missing library";
    case RUNG_INTERNAL: return "internal error";
    }
    return "unknown status";
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *rung_version(void)
{
    return TEXT(RUNG_VERSION_MAJOR) "." TEXT(RUNG_VERSION_MINOR) "." TEXT(RUNG_VERSION_PATCH);
}
