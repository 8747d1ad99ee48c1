/* Makes random calls. Each follows from a seed and a number, so a failure can be made again; it is then made smaller.
 */
#ifndef LAB_FUZZ_H
#define LAB_FUZZ_H

#include "lab/verify.h"

/* Makes call `number` of the run `seed`: sizes up to `most` and products of at most 2^24 multiply-adds. */
void lab_fuzz_case(uint64_t seed, uint64_t number, int64_t most, lab_case *c);

/* Takes away what not every entry of the library has: batches, bias, activation, device scalars. */
void lab_fuzz_plain(lab_case *c);

/* Makes a failing case smaller and plainer, step by step, as long as it still fails. `verdict` is that of the result.
 */
rung_status lab_fuzz_shrink(lab_verifier *v, const rung_kernel *kernel, lab_case *c, lab_verdict *verdict);

#endif
