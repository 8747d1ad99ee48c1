/* Clocks, power and throttling of a GPU through NVML, opened at run time. Without NVML everything reads as unknown. */
#ifndef LAB_MONITOR_H
#define LAB_MONITOR_H

#include "lab/place.h"

typedef struct lab_monitor {
    void *device;
    void *calls;
    char driver[32]; /* the driver's version, "" unknown */
} lab_monitor;

typedef struct lab_reading {
    int known;
    unsigned sm_mhz, temperature_c;
    double power_w;
    int throttled; /* by heat, hardware or a power brake */
    int power_capped;
} lab_reading;

void lab_monitor_open(lab_monitor *monitor, const lab_place *place); /* never fails: it only knows less */
void lab_monitor_close(lab_monitor *monitor);
lab_reading lab_monitor_read(const lab_monitor *monitor);

#endif
