/* Compiles the crowd's body for the four transposes: NAME_nn ... NAME_tt. */
#define CROWD_JOIN_(a, b) a##b
#define CROWD_JOIN(a, b) CROWD_JOIN_(a, b)
#include "device/crowd_copy.h"

#define KERNEL CROWD_JOIN(NAME, _nn)
#define A_KC 1
#define B_KC 0
#include "device/crowd.h"

#define KERNEL CROWD_JOIN(NAME, _nt)
#define A_KC 1
#define B_KC 1
#include "device/crowd.h"

#define KERNEL CROWD_JOIN(NAME, _tn)
#define A_KC 0
#define B_KC 0
#include "device/crowd.h"

#define KERNEL CROWD_JOIN(NAME, _tt)
#define A_KC 0
#define B_KC 1
#include "device/crowd.h"
