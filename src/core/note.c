/* The phrase that an estimate adds to its choice, for `rung explain`. */
#include "core/backend.h"

#include <stdarg.h>
#include <stdio.h>

void rung_note(rung_choice *choice, const char *format, ...)
{
    va_list list;
    if (!choice->note)
        return;
    va_start(list, format);
    vsnprintf(choice->note, RUNG_NOTE_BYTES, format, list);
    va_end(list);
}
