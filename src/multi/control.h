/* The control connection of several processes: each keeps a TCP connection to rank 0, over which they agree, and
 * through which all learn at once when one fails or dies. */
#ifndef RUNG_MULTI_CONTROL_H
#define RUNG_MULTI_CONTROL_H

#include "core/status.h"

enum { CONTROL_ADDRESS_BYTES = 128, CONTROL_SECRET_BYTES = 64 };

typedef struct multi_control multi_control;

/* Returns whether only processes of this machine can reach the address. */
int multi_control_is_local(const char *address);
/* Rank 0 listens. address: "host:port", ":port" or "" (any port); `actual` is where others reach it. On a loopback
 * address only this machine reaches it. secret: what a rank has to know to be let in; shorter than
 * CONTROL_SECRET_BYTES. */
rung_status multi_control_listen(multi_control **control, int size, const char *address, const char *secret,
                                 char actual[CONTROL_ADDRESS_BYTES]);
/* Rank 0 takes the connections of all others. */
rung_status multi_control_accept(multi_control *control, double timeout_s);
/* The other ranks connect; they try again until the time is over. */
rung_status multi_control_connect(multi_control **control, int rank, int size, const char *address, const char *secret,
                                  double timeout_s);
/* Tells the others that this rank leaves, unless something failed. */
void multi_control_close(multi_control *control);

/* Brings every rank's `bytes` to rank 0, in rank order (all: NULL elsewhere). what: "called rung_psgemm", for the
 * error. */
rung_status multi_control_gather(multi_control *control, const void *mine, void *all, int bytes, const char *what,
                                 double timeout_s);
/* Brings rank 0's `bytes` to every rank. */
rung_status multi_control_share(multi_control *control, void *data, int bytes, const char *what, double timeout_s);
/* Returns success while no rank is known to have failed, and never waits. Rank 0 passes the news on. */
rung_status multi_control_check(multi_control *control);
/* Tells all ranks that this one failed, and why. */
void multi_control_tell(multi_control *control, rung_status status, const char *why);

#endif
