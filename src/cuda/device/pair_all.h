/* Compiles the body of paired tiles for operands as they lie: STEM_nn, A with k innermost, and STEM_tn. */
#include "device/lone_warp.h"

#define PAIR_JOIN_(a, b) a##b
#define PAIR_JOIN(a, b) PAIR_JOIN_(a, b)

#define KERNEL PAIR_JOIN(STEM, _nn)
#define NAME(x) nn_##x
#define A_KC 1
#include "device/pair.inc"

#define KERNEL PAIR_JOIN(STEM, _tn)
#define NAME(x) tn_##x
#define A_KC 0
#include "device/pair.inc"
