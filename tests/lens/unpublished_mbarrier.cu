/* The copy engine signals an mbarrier of which no fence has told it. */
#define KERNEL_NAME unpublished_mbarrier
#define PUBLISH()
#include "engines.h"
