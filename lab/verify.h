/* Runs one case on one kernel and judges it: FP64 reference, guards, inputs unchanged, the same bits twice. */
#ifndef LAB_VERIFY_H
#define LAB_VERIFY_H

#include "lab/case.h"
#include "lab/entry.h"
#include "lab/operand.h"
#include "lab/peer.h"

typedef enum lab_outcome { LAB_PASS, LAB_FAIL, LAB_SKIP } lab_outcome; /* SKIP: the kernel refused, with its reason */

typedef struct lab_verdict {
    lab_outcome outcome;
    char kernel[64];
    char why[320];   /* what failed, or why it was skipped */
    double error_u;  /* max |c - c64| / (|A||B|) in u = 2^-24 */
    double chain_u;  /* of a plain FP32 FMA chain in k order */
    double vendor_u; /* of the vendor's SGEMM; negative: not asked */
    double bound_u;  /* the last that was compared with; a contract's case has one of its own for each element */
    uint64_t bits;   /* a hash of all that C's memory held after the first call */
} lab_verdict;

/* How the library gets a product. On a GPU: device operands on a stream, operands in host memory that it stages itself,
 * or device operands in a captured graph that is then replayed; then the drop-ins, and ranks (lab/entry.h). */
typedef enum lab_via { LAB_DIRECT, LAB_HOST, LAB_GRAPH, LAB_BLAS, LAB_CUBLAS, LAB_RANKS } lab_via;

/* A case that passed. The same bits by the same kernel need no second judgement. */
typedef struct lab_judged {
    char text[LAB_CASE_TEXT];
    lab_verdict verdict;
} lab_judged;

typedef struct lab_verifier {
    lab_place *place;
    lab_peer *vendor; /* may be NULL */
    rung_context *context;
    lab_via via;
    lab_entry entry;         /* of the last three ways */
    int64_t workspace_bytes; /* what a product may borrow where its case does not say; 0: what pays */
    int64_t repeats;         /* calls of a case whose results must be the same bits; fewer than two: two */
    int bits_alone;          /* one call, hashed and not judged */
    lab_operand a, b, c;
    lab_buffer c_start, c64, size, chain, reach, bias, scalars, pointers;
    lab_judged *judged;
    int judged_count, judged_room;
} lab_verifier;

rung_status lab_verifier_open(lab_verifier *v, lab_place *place, rung_math math, lab_peer *vendor);
rung_status lab_verifier_set_via(lab_verifier *v, lab_via via);
rung_status lab_run_via(lab_verifier *v, rung_plan *plan, const rung_gemm *gemm); /* once, by that way */
int lab_via_chooses(lab_via via); /* whether the library chooses the kernel there, whatever plan there is */
const char *lab_via_refuses(lab_via via, const lab_case *c); /* why this way has no such call; NULL: it has */
void lab_verifier_close(lab_verifier *v);

/* Verifies a case with a kernel; NULL is what the library chooses. A status other than success means that the machine
 * failed (a lost GPU), not the kernel: the caller stops then. */
rung_status lab_verify(lab_verifier *v, const rung_kernel *kernel, const lab_case *c, lab_verdict *verdict);

/* Judges by the acceptance rule of docs/numerics.md, from the peers' errors on the same data. */
double lab_bound_u(const rung_kernel *kernel, rung_arith arith, int64_t k, double chain_u, double vendor_u);
/* Gives the bounds of a contract's case, one for each element, which no right product exceeds (docs/measuring.md). */
lab_bound lab_bound_each(rung_arith arith, int64_t k, lab_data data, int fused);

#endif
