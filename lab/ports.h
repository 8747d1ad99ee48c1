/* How fast FFMAs issue with chosen registers: times the loops of lab/device/lab_ports.h on a GPU. */
#ifndef LAB_PORTS_TIMES_H
#define LAB_PORTS_TIMES_H

#include "lab/device/lab_ports.h"
#include "lab/place.h"

typedef struct lab_ports_row {
    const ports_pattern *pattern;
    double reads[2];  /* of the even and the odd registers, for each FFMA; counted by hand */
    double predicted; /* FFMAs a cycle of a partition: as many as the busier bank can feed, one at most */
    double measured;
} lab_ports_row;

enum { LAB_PORTS_PATTERNS = 16 };

/* Fills a row for each pattern and returns how many there are in *count. RUNG_UNSUPPORTED: no Hopper, or a build whose
 * machine code the tool left alone. */
rung_status lab_ports_time(lab_place *place, lab_ports_row *rows, int *count);

#endif
