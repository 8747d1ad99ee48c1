/* Each measurement is one line of JSON: what was measured, on what, by which build and command. results/ holds such
 * lines. */
#ifndef LAB_RECORD_H
#define LAB_RECORD_H

#include "lab/bench.h"
#include "lab/json.h"

const char *lab_commit(void); /* of the source this was built from; "unknown" outside a checkout */

/* Writes the fields that every record begins with: kind, time, command, library, commit, device, driver, threads. It
 * leaves the object open; the caller adds its own and closes it. */
void lab_record_begin(lab_json *json, const char *kind, const char *command, const lab_place *place,
                      const lab_monitor *monitor);
void lab_record_bench(FILE *to, const char *kind, const char *command, const lab_bench *bench,
                      const lab_bench_row *row);
/* Opens `file` to append to it; NULL with lab_error() set when that fails. lab_close (lab/output.h) tells whether all
 * of it arrived. */
FILE *lab_record_open(const char *file);

#endif
