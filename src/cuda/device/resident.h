/* How many blocks of a kernel an SM shall hold at once, where Turing holds fewer: it has room for 1024 threads, later
 * chips for 1536 or 2048. A launch bound that asks for more is refused by ptxas. */
#ifndef RUNG_DEVICE_RESIDENT_H
#define RUNG_DEVICE_RESIDENT_H

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define RUNG_RESIDENT(threads, blocks) ((threads) * (blocks) > 1024 ? 1024 / (threads) : (blocks))
#else
#define RUNG_RESIDENT(threads, blocks) (blocks)
#endif

#endif
