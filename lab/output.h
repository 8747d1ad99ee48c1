/* Files that appear whole or not at all, and closing that tells whether everything was written. */
#ifndef LAB_OUTPUT_H
#define LAB_OUTPUT_H

#include "lab/error.h"

#include <stdio.h>

typedef struct lab_output {
    FILE *to;
    const char *path;
    char
        unfinished[4200]; /* renamed to path at the end; empty where path is no regular file and is written to itself */
} lab_output;

/* Fails for a file that could not be opened (errno) to be written. No folder is made: the one that is not there is
 * named, since it may be a typing error. */
rung_status lab_cannot_write(const char *path);

/* While it is written the file has another name, with this process's number: two may write the same file. */
rung_status lab_output_open(lab_output *output, const char *path);
rung_status lab_output_close(lab_output *output);

/* Closes a file. The status is RUNG_INTERNAL, with the path, when not all of it could be written (a full disk). */
rung_status lab_close(FILE *to, const char *path);

/* Returns whether both paths lead to one regular file. */
int lab_is_same_file(const char *path, const char *other);

#endif
