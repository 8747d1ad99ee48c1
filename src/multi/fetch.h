/* What brings units to where they are multiplied: within a process, or between processes. */
#ifndef RUNG_MULTI_FETCH_H
#define RUNG_MULTI_FETCH_H

#include "multi/unit.h"

rung_status fetch_local_begin(multi_product *p, const product_unit *u);
rung_status fetch_message_open(multi_product *p);
rung_status fetch_message_begin(multi_product *p, const product_unit *u);
rung_status fetch_message_finish(multi_product *p, const product_unit *u);
/* Lets what is under way go on; never waits. */
rung_status fetch_message_progress(multi_product *p);
void fetch_message_close(multi_product *p);

#endif
