/* Keeps the lab's own failures until they are read. */
#include "lab/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char pending[512];
static _Thread_local char shown[512];

rung_status lab_fail(rung_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(pending, sizeof pending, format, list);
    va_end(list);
    return status;
}

const char *lab_error(void)
{
    if (!pending[0])
        return rung_last_error();
    memcpy(shown, pending, sizeof shown);
    pending[0] = 0;
    return shown;
}
