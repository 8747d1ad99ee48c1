/* Errors inside the library: RUNG_TRY forwards, rung_fail records the sentence (thread-local) and returns the status.
 */
#ifndef RUNG_CORE_STATUS_H
#define RUNG_CORE_STATUS_H

#include "rung.h"

#define RUNG_TRY(call)                                                                                                 \
    do {                                                                                                               \
        rung_status status_ = (call);                                                                                  \
        if (status_ != RUNG_SUCCESS)                                                                                   \
            return status_;                                                                                            \
    } while (0)

/* Between these two a call may fail at one way and succeed at another one. What stood as the last failure before stays
 * so where the call as a whole, whose status the second one is given and returns, succeeds. */
void rung_attempt_begin(void);
rung_status rung_attempt_end(rung_status status);

/* For functions that clean up at `out:` and keep their result in `status`. */
#define RUNG_TRY_OUT(call)                                                                                             \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != RUNG_SUCCESS)                                                                                    \
            goto out;                                                                                                  \
    } while (0)

rung_status rung_fail(rung_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `argument` is the position in BLAS's sgemm, 1 ... 13. */
rung_status rung_fail_argument(int argument, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
