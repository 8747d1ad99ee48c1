/* Compiles the body of paired tiles for operands at any address, all transposes: STEM_nn ... STEM_tt. */
#include "device/lone_warp.h"
#include "device/shifted.h"

#define SHIFTED
#define PAIR_JOIN_(a, b) a##b
#define PAIR_JOIN(a, b) PAIR_JOIN_(a, b)

#define KERNEL PAIR_JOIN(STEM, _nn)
#define NAME(x) nn_##x
#define FROM_A_KC 1
#define FROM_B_KC 0
#define A_KC 0
#include "device/pair.inc"
#undef FROM_A_KC
#undef FROM_B_KC

#define KERNEL PAIR_JOIN(STEM, _nt)
#define NAME(x) nt_##x
#define FROM_A_KC 1
#define FROM_B_KC 1
#define A_KC 0
#include "device/pair.inc"
#undef FROM_A_KC
#undef FROM_B_KC

#define KERNEL PAIR_JOIN(STEM, _tn)
#define NAME(x) tn_##x
#define FROM_A_KC 0
#define FROM_B_KC 0
#define A_KC 0
#include "device/pair.inc"
#undef FROM_A_KC
#undef FROM_B_KC

#define KERNEL PAIR_JOIN(STEM, _tt)
#define NAME(x) tt_##x
#define FROM_A_KC 0
#define FROM_B_KC 1
#define A_KC 0
#include "device/pair.inc"
#undef FROM_A_KC
#undef FROM_B_KC
