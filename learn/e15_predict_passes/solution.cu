/* Passes a request. */
#include "device/exercise.h"

ANSWER(in_a_row, 1);
ANSWER(two_apart, 2);     /* even banks only, each with two words */
ANSWER(three_apart, 1);   /* 3 and 32 have no common divisor */
ANSWER(half_and_half, 1); /* one word goes to any number of lanes */
ANSWER(rows_of_32, 4);    /* four rows in the same eight banks */
ANSWER(sixteen_bytes, 4); /* 512 bytes, 128 a pass */
