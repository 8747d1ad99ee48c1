/* The copy engine signals an mbarrier; a thread has fenced, but not the one that made it. */
#define KERNEL_NAME anothers_mbarrier
#define PUBLISH()
#define PUBLISH_ANOTHERS() ptx_mbar_init_fence()
#include "engines.h"
