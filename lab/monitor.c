/* The few NVML calls, declared here so that no header of NVIDIA's is needed. */
#include "lab/monitor.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_SM = 1, TEMPERATURE_GPU = 0 };
enum { /* reasons for lower clocks */
       POWER_CAP = 0x4,
       HARDWARE = 0x8,
       SOFTWARE_HEAT = 0x20,
       HARDWARE_HEAT = 0x40,
       POWER_BRAKE = 0x80,
};

/* clang-format off */
#define NVML_CALLS(X)                                                                     \
    X(init, "nvmlInit_v2", (void))                                                        \
    X(shutdown, "nvmlShutdown", (void))                                                   \
    X(by_bus, "nvmlDeviceGetHandleByPciBusId_v2", (const char *, void **))                \
    X(clock, "nvmlDeviceGetClockInfo", (void *, int, unsigned *))                         \
    X(power, "nvmlDeviceGetPowerUsage", (void *, unsigned *))                             \
    X(temperature, "nvmlDeviceGetTemperature", (void *, int, unsigned *))                 \
    X(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", (void *, unsigned long long *)) \
    X(driver, "nvmlSystemGetDriverVersion", (char *, unsigned))
/* clang-format on */

typedef struct nvml {
    void *library;
#define X(name, symbol, signature) int(*name) signature;
    NVML_CALLS(X)
#undef X
} nvml;

static int open_calls(nvml *calls)
{
    calls->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!calls->library)
        return 0;
#define X(name, symbol, signature)                                                                                     \
    *(void **)&calls->name = dlsym(calls->library, symbol);                                                            \
    if (!calls->name)                                                                                                  \
        return 0;
    NVML_CALLS(X)
#undef X
    return calls->init() == 0;
}

void lab_monitor_open(lab_monitor *monitor, const lab_place *place)
{
    memset(monitor, 0, sizeof *monitor);
    nvml *calls = place->tools ? calloc(1, sizeof *calls) : NULL;
    if (!calls)
        return;
    if (!open_calls(calls)) {
        if (calls->library)
            dlclose(calls->library);
        free(calls);
        return;
    }
    monitor->calls = calls;
    if (calls->by_bus(rung_tools_describe(place->tools)->pci_bus_id, &monitor->device) != 0)
        monitor->device = NULL;
    calls->driver(monitor->driver, sizeof monitor->driver);
}

void lab_monitor_close(lab_monitor *monitor)
{
    nvml *calls = monitor->calls;
    if (calls) {
        calls->shutdown();
        dlclose(calls->library);
        free(calls);
    }
    memset(monitor, 0, sizeof *monitor);
}

lab_reading lab_monitor_read(const lab_monitor *monitor)
{
    lab_reading reading = {0};
    const nvml *calls = monitor->calls;
    unsigned milliwatts = 0;
    unsigned long long reasons = 0;
    if (!calls || !monitor->device)
        return reading;
    reading.known = calls->clock(monitor->device, CLOCK_SM, &reading.sm_mhz) == 0;
    if (calls->power(monitor->device, &milliwatts) == 0)
        reading.power_w = milliwatts * 1e-3;
    calls->temperature(monitor->device, TEMPERATURE_GPU, &reading.temperature_c);
    if (calls->reasons(monitor->device, &reasons) == 0) {
        reading.throttled = (reasons & (HARDWARE | SOFTWARE_HEAT | HARDWARE_HEAT | POWER_BRAKE)) != 0;
        reading.power_capped = (reasons & POWER_CAP) != 0;
    }
    return reading;
}
