/* Compiles device/strict_warp.inc for the four transposes: NAME_OF(x, nn) ... NAME_OF(x, tt). */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define KERNEL JOIN(ROW, _nn)
#define NAME(x) warp_nn_##x
#define A_KC 1
#define B_KC 0
#include "device/strict_warp.inc"

#define KERNEL JOIN(ROW, _nt)
#define NAME(x) warp_nt_##x
#define A_KC 1
#define B_KC 1
#include "device/strict_warp.inc"

#define KERNEL JOIN(ROW, _tn)
#define NAME(x) warp_tn_##x
#define A_KC 0
#define B_KC 0
#include "device/strict_warp.inc"

#define KERNEL JOIN(ROW, _tt)
#define NAME(x) warp_tt_##x
#define A_KC 0
#define B_KC 1
#include "device/strict_warp.inc"
