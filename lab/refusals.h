/* Wrong calls that must be refused with the right status and a sentence, leave C alone, and leave the context usable.
 */
#ifndef LAB_REFUSALS_H
#define LAB_REFUSALS_H

#include "lab/place.h"

int lab_refusals(void); /* how many there are */
const char *lab_refusal_name(int index);
/* 1: refused as it should be; 0: not, *why says how; -1: does not apply to this place. */
int lab_refusal_check(int index, lab_place *place, char *why, size_t why_bytes);

#endif
