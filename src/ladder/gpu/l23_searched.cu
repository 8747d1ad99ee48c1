/* l23_searched: the persistent kernel in six tiles; which one runs was found by timing them all.
 * Changed from l22_persistent: nothing in the kernel. Tile, stages and blocks an SM are macros, each line below makes
 * a kernel, and the launcher takes the one with the least predicted time: rounds of tiles on the SMs times the tile's
 * measured time for a step of k (docs/ladder/l23_searched.md has the search and its table).
 * Limits: sm_90; one thread tile, 8x16, in all of them. The launcher copies unaligned operands first.
 */
#define KERNEL l23_searched
#define NAME(x) l23_128x256_##x
#define BM 128
#define BN 256
#define STAGES 4
#define BLOCKS 1
#include "ladder/gpu/l22_persistent.cu"

#define KERNEL l23_searched_256x128
#define NAME(x) l23_256x128_##x
#define BM 256
#define BN 128
#define STAGES 4
#define BLOCKS 1
#include "ladder/gpu/l22_persistent.cu"

#define KERNEL l23_searched_128x128
#define NAME(x) l23_128x128_##x
#define BM 128
#define BN 128
#define STAGES 3
#define BLOCKS 2
#include "ladder/gpu/l22_persistent.cu"

#define KERNEL l23_searched_64x256
#define NAME(x) l23_64x256_##x
#define BM 64
#define BN 256
#define STAGES 2
#define BLOCKS 2
#include "ladder/gpu/l22_persistent.cu"

#define KERNEL l23_searched_64x128
#define NAME(x) l23_64x128_##x
#define BM 64
#define BN 128
#define STAGES 4
#define BLOCKS 2
#include "ladder/gpu/l22_persistent.cu"

#define KERNEL l23_searched_64x64
#define NAME(x) l23_64x64_##x
#define BM 64
#define BN 64
#define STAGES 3
#define BLOCKS 4
#include "ladder/gpu/l22_persistent.cu"
