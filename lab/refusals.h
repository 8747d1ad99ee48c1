/* Wrong calls that must be refused with the right status and a sentence, leave C alone, and leave the context usable.
 */
#ifndef LAB_REFUSALS_H
#define LAB_REFUSALS_H

#include "lab/place.h"

int lab_refusals(void); /* how many there are */
const char *lab_refusal_name(int index);
/* Checks one refusal. Returns 1 where the call is refused as it should be; 0 where it is not, and *why says how; -1
 * where it does not apply to this place. */
int lab_refusal_check(int index, lab_place *place, char *why, size_t why_bytes);

#endif
