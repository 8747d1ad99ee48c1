/* Sectors a request. */
#include "device/exercise.h"

ANSWER(one_each, 4);     /* 128 bytes, from a multiple of 32 on */
ANSWER(every_second, 8); /* 256 bytes, half of them wanted */
ANSWER(from_one, 5);     /* bytes 4 to 131: a fifth sector for the last float */
ANSWER(four_each, 16);   /* 512 bytes, all wanted */
ANSWER(all_the_same, 1); /* one float lies in one sector */
ANSWER(down, 32);        /* a sector a row */
