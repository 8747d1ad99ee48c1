/* Compiles BODY for the four transposes, for operands aligned to 16 bytes and for any: NAME_nn ... NAME_tt_u. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define KERNEL JOIN(NAME, _nn)
#define A_KC 1
#define B_KC 0
#define ALIGNED 1
#include BODY

#define KERNEL JOIN(NAME, _nt)
#define A_KC 1
#define B_KC 1
#define ALIGNED 1
#include BODY

#define KERNEL JOIN(NAME, _tn)
#define A_KC 0
#define B_KC 0
#define ALIGNED 1
#include BODY

#define KERNEL JOIN(NAME, _tt)
#define A_KC 0
#define B_KC 1
#define ALIGNED 1
#include BODY

#define KERNEL JOIN(NAME, _nn_u)
#define A_KC 1
#define B_KC 0
#define ALIGNED 0
#include BODY

#define KERNEL JOIN(NAME, _nt_u)
#define A_KC 1
#define B_KC 1
#define ALIGNED 0
#include BODY

#define KERNEL JOIN(NAME, _tn_u)
#define A_KC 0
#define B_KC 0
#define ALIGNED 0
#include BODY

#define KERNEL JOIN(NAME, _tt_u)
#define A_KC 0
#define B_KC 1
#define ALIGNED 0
#include BODY
