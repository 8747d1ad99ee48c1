/* One self-contained HTML page from result lines. */
#ifndef LAB_REPORT_H
#define LAB_REPORT_H

#include "lab/error.h"

/* Reads every file first. Where one is damaged it names file and line (RUNG_INVALID_ARGUMENT) and writes nothing. */
rung_status lab_report(const char *const *files, int count, const char *output);

/* Returns whether this build can make reports: jansson's headers were there. */
int lab_report_built(void);

#endif
