/* Errors inside the lab: the library's statuses, and one sentence for the failures of both. */
#ifndef LAB_ERROR_H
#define LAB_ERROR_H

#include "rung.h"

#define LAB_TRY(call)                                                                                                  \
    do {                                                                                                               \
        rung_status status_ = (call);                                                                                  \
        if (status_ != RUNG_SUCCESS)                                                                                   \
            return status_;                                                                                            \
    } while (0)
#define LAB_TRY_OUT(call)                                                                                              \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != RUNG_SUCCESS)                                                                                    \
            goto out;                                                                                                  \
    } while (0)

/* Records a failure of the lab's own. */
rung_status lab_fail(rung_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the sentence of the last failure, the lab's or the library's; reading it clears the lab's. */
const char *lab_error(void);

#endif
