/* Your figures: passes a request. */
#include "device/exercise.h"

ANSWER(in_a_row, 0);
ANSWER(two_apart, 0);
ANSWER(three_apart, 0);
ANSWER(half_and_half, 0);
ANSWER(rows_of_32, 0);
ANSWER(sixteen_bytes, 0);
