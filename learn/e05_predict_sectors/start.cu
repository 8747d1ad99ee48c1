/* Your figures: sectors a request. */
#include "device/exercise.h"

ANSWER(one_each, 0);
ANSWER(every_second, 0);
ANSWER(from_one, 0);
ANSWER(four_each, 0);
ANSWER(all_the_same, 0);
ANSWER(down, 0);
