/* What this CPU's FMA units reach when nothing else is asked of them: registers only, all threads at once. */
#ifndef LAB_PEAK_H
#define LAB_PEAK_H

double lab_cpu_peak_gflops(int threads); /* one sample of some ten milliseconds */

#endif
