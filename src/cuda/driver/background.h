/* Work that a thread of its own does beside the program, and that ends with it. */
#ifndef RUNG_CUDA_BACKGROUND_H
#define RUNG_CUDA_BACKGROUND_H

/* Calls work(argument, stop) in a new thread, which handles no signals; *stop becomes 1 when the process exits or the
 * library is unloaded, which both wait until work returns. Where no thread can be had, nothing is done. */
typedef void rung_background_work(void *argument, const int *stop);
void rung_background_start(rung_background_work *work, void *argument);

#endif
