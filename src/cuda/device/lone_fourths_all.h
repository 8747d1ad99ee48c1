/* Compiles the lone-warp body for a B with k outermost at any address, each warp with every fourth k: STEM_nn, STEM_tn.
 */
#define LONE_JOIN_(a, b) a##b
#define LONE_JOIN(a, b) LONE_JOIN_(a, b)
#define COPIED
#define FOURTHS

#define KERNEL LONE_JOIN(STEM, _nn)
#define NAME(x) nn_##x
#define A_KC 0
#define B_KC 0
#define A_TURNED 1
#define B_TURNED 0
#include "device/lone_warp.inc"

#define KERNEL LONE_JOIN(STEM, _tn)
#define NAME(x) tn_##x
#define A_KC 0
#define B_KC 0
#define A_TURNED 0
#define B_TURNED 0
#include "device/lone_warp.inc"
