/* The words the command line and the reports use for the enums, and "did you mean" for the ones they don't. */
#ifndef LAB_NAMES_H
#define LAB_NAMES_H

#include "lab/device/lab_shared.h"
#include "rung_catalog.h"

extern const char *const lab_data_names[];   /* signed positive normal span10 ... ends with NULL */
extern const char *const lab_math_names[];   /* strict accurate fast */
extern const char *const lab_layout_names[]; /* col row */
extern const char *const lab_arith_names[];
extern const char *const lab_role_names[];
extern const char *const lab_via_names[]; /* direct host graph blas cublas ranks */

/* Returns the position of `word` in a NULL-terminated list, -1 when it is not there. */
int lab_name_find(const char *const *names, const char *word);
/* Returns the nearest of the names by edit distance when it is near enough to be meant, else NULL. */
const char *lab_name_nearest(const char *const *names, const char *word);
/* Returns the nearest kernel of the catalog. */
const char *lab_kernel_nearest(const char *word);

#endif
