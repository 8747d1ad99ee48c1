/* The report says at exit what a drop-in did: calls by entry point and shape, who answered, why others were handed on.
 * RUNG_REPORT=FILE or stderr turns it on, and FILE is appended to, since a program may be several processes;
 * RUNG_REPORT_TIME=1 adds GPU time; RUNG_REPORT_COMPARE=1 also times the same calls on cuBLAS (those with beta = 0,
 * which can run twice). Off, each call costs one test of a flag. */
#ifndef RUNG_SHIM_REPORT_H
#define RUNG_SHIM_REPORT_H

#include "rung.h"

/* The first tells the report of a context that answers calls, the second of one whose thread ends: what accurate mode's
 * guard did is read before the context goes. */
void report_context(rung_context *context);
void report_context_closing(rung_context *context);

extern const char *report_target; /* where it goes; NULL: nobody wants it */
static inline int report_wanted(void)
{
    return report_target != NULL;
}
void report_begin(const char *entry, const rung_gemm *gemm, void *stream); /* gemm: read at report_end */
void report_kernel(const char *kernel);
void report_end(const char *reason); /* NULL: Rung answered */

/* These stand around the real library's run of the same call, which comes after report_end; report_compare says whether
 * to make it. */
int report_compare(void);
void report_peer_begin(void);
void report_peer_end(void);

#endif
