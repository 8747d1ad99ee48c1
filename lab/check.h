/* The six operations that verification is made of, each on the CPU (threads) or on the GPU (lab/device). */
#ifndef LAB_CHECK_H
#define LAB_CHECK_H

#include "lab/place.h"

rung_status lab_fill(lab_place *place, const lab_fill_args *args);
rung_status lab_reference(lab_place *place, const lab_reference_args *args);

/* A round of checks begins with lab_tally_begin(). Then come any of compare, untouched and hash. The end waits and
 * gives the tally. */
rung_status lab_tally_begin(lab_place *place);
rung_status lab_tally_end(lab_place *place, lab_tally *tally);
rung_status lab_compare(lab_place *place, const lab_compare_args *args);  /* the callee fills in the tally */
rung_status lab_untouched(lab_place *place, const lab_region_args *args); /* the callee fills in the tally */
rung_status lab_hash(lab_place *place, const void *at, int64_t words);
rung_status lab_sum(lab_place *place, const float *at, int64_t words);

double lab_packed(uint64_t worst); /* the number in a tally's `worst` or `share` */

#endif
