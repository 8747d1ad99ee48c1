/* The small tiles' kernels: see tile.inc, brief.inc, crowd.inc and batch.inc. Compiled once for each row of tiles.inc,
 * whose numbers are macros. A crowd takes operands at odd addresses in each of its forms. */
#include "device/ask.h"
#include "device/copies.h"
#include "device/end.h"
#include "device/fragments.h"
#include "device/marks.h"
#include "device/parts.h"
#include "families/small/end.h"
#include "families/small/tile.h"

#if CROWD
#include "families/small/crowd_copy.h"
#define BODY "families/small/crowd.inc"
#elif BRIEF
#define BODY "families/small/brief.inc"
#elif BATCH
#define BODY "families/small/batch.inc"
#else
#define BODY "families/small/tile.inc"
#endif
#define B_EITHER 1
#define ODD_FORMS (!CROWD)
#include "device/forms.inc"
