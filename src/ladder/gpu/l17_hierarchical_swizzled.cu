/* l17_hierarchical_swizzled: the same kernel with its tiles dealt out in groups of eight tile rows.
 * Changed from l17_hierarchical: only the order of tiles. The 264 blocks in flight on 132 SMs cover about 8x33 tiles
 * of C instead of 2x132 (or whole rows, where C is narrower), so they want 41 panels of A and B instead of 134.
 * Limits: gains only where those panels did not fit the L2 cache together.
 */
/* lesson */
#define KERNEL l17_hierarchical_swizzled
#define GROUP 8
#include "ladder/gpu/l17_hierarchical.cu"
/* /lesson */
