/* Opens a place and moves bytes about in it. */
#include "lab/place.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

static rung_status load_kernels(lab_place *place)
{
    static const char *const names[LAB_KERNELS] = {"lab_fill",      "lab_reference", "lab_compare",
                                                   "lab_untouched", "lab_hash",      "lab_sum"};
    LAB_TRY(rung_tools_load(place->tools, "lab_kernels", &place->module));
    for (int i = 0; i < LAB_KERNELS; i++)
        LAB_TRY(rung_tools_function(place->tools, place->module, names[i], &place->functions[i]));
    return RUNG_SUCCESS;
}

static rung_status open_gpu(lab_place *place)
{
    LAB_TRY(rung_tools_open(&place->tools, place->device));
    LAB_TRY(load_kernels(place));
    void *tally;
    LAB_TRY(rung_tools_alloc(place->tools, sizeof *place->tally, &tally));
    place->tally = tally;
    const rung_tools_machine *machine = rung_tools_describe(place->tools);
    place->cache_bytes = machine->l2_bytes;
    place->host_checks = strncmp(machine->name, "the lens", 8) == 0;
    snprintf(place->name, sizeof place->name, "%s", machine->name);
    return RUNG_SUCCESS;
}

static void name_cpu(char *name, size_t bytes)
{
    char line[256];
    snprintf(name, bytes, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = 0;
        if (value[0]) /* a virtual machine's may be empty */
            snprintf(name, bytes, "%s", value);
        break;
    }
    if (file)
        fclose(file);
}

static rung_status open_cpu(lab_place *place)
{
    rung_context *context;
    LAB_TRY(lab_place_context(place, RUNG_STRICT, &context));
    place->threads = rung_context_threads(context);
    place->host_checks = 1;
    rung_context_destroy(context);
    place->tally = malloc(sizeof *place->tally);
    if (!place->tally)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the lab's state");
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    place->cache_bytes = cache > 0 ? cache : 32 << 20;
    name_cpu(place->name, sizeof place->name);
    return RUNG_SUCCESS;
}

rung_status lab_place_open(lab_place *place, int device, int threads)
{
    memset(place, 0, sizeof *place);
    place->threads = threads;
    if (device == RUNG_DEVICE_BEST)
        device = rung_tools_gpu_count() > 0 ? 0 : RUNG_DEVICE_CPU;
    place->device = device;
    /* Where the lens is the GPU, a launch in which it finds something wrong fails: on the CPU a race may well end
     * right. */
    setenv("RUNG_LENS_FINDINGS", "fail", 0);
    rung_status status = device == RUNG_DEVICE_CPU ? open_cpu(place) : open_gpu(place);
    if (status != RUNG_SUCCESS)
        lab_place_close(place);
    return status;
}

void lab_place_close(lab_place *place)
{
    if (place->device == RUNG_DEVICE_CPU) {
        free(place->tally);
    } else if (place->tools) {
        rung_tools_free(place->tools, place->tally);
        rung_tools_unload(place->tools, place->module);
        rung_tools_close(place->tools);
    }
    place->tally = NULL;
    place->tools = NULL;
}

rung_status lab_place_context(const lab_place *place, rung_math math, rung_context **context)
{
    rung_config config;
    rung_config_init(&config);
    config.device = place->device;
    config.threads = place->threads;
    config.math = math;
    config.pointers = place->tools ? RUNG_POINTERS_DEVICE : RUNG_POINTERS_AUTO;
    config.stream = place->tools ? rung_tools_stream(place->tools) : NULL;
    return rung_context_create(context, &config);
}

/* Returns whether there is less memory than that. The system promises memory before it is there; using more than there
 * is would end the process later. */
int lab_memory_lacks(int64_t bytes)
{
    char line[128];
    long long available_kb = -1;
    if (bytes < (int64_t)1 << 28)
        return 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && available_kb < 0 && fgets(line, sizeof line, file))
        sscanf(line, "MemAvailable: %lld", &available_kb);
    if (file)
        fclose(file);
    return available_kb >= 0 && bytes / 1024 > available_kb - available_kb / 8;
}

rung_status lab_buffer_reserve(lab_place *place, lab_buffer *buffer, int64_t bytes)
{
    if (bytes < 4)
        bytes = 4;
    if (buffer->at && buffer->bytes >= (size_t)bytes)
        return RUNG_SUCCESS;
    lab_buffer_free(place, buffer);
    const int lacks = place->host_checks && lab_memory_lacks(bytes); /* the lens's memory is this machine's, too */
    if (place->tools && !lacks)
        LAB_TRY(rung_tools_alloc(place->tools, (size_t)bytes, &buffer->at));
    else if (!lacks)
        buffer->at = aligned_alloc(4096, ((size_t)bytes + 4095) & ~(size_t)4095);
    if (!buffer->at)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for operands of %lld bytes", (long long)bytes);
    buffer->bytes = (size_t)bytes;
    return RUNG_SUCCESS;
}

void lab_buffer_free(lab_place *place, lab_buffer *buffer)
{
    if (place->tools)
        rung_tools_free(place->tools, buffer->at);
    else
        free(buffer->at);
    buffer->at = NULL;
    buffer->bytes = 0;
}

rung_status lab_upload(lab_place *place, void *to, const void *host, size_t bytes)
{
    if (place->tools)
        return rung_tools_upload(place->tools, to, host, bytes);
    memcpy(to, host, bytes);
    return RUNG_SUCCESS;
}

rung_status lab_download(lab_place *place, void *host, const void *from, size_t bytes)
{
    if (place->tools)
        return rung_tools_download(place->tools, host, from, bytes);
    memcpy(host, from, bytes);
    return RUNG_SUCCESS;
}

rung_status lab_copy(lab_place *place, void *to, const void *from, size_t bytes)
{
    if (place->tools)
        return rung_tools_copy(place->tools, to, from, bytes);
    memcpy(to, from, bytes);
    return RUNG_SUCCESS;
}

rung_status lab_pattern(lab_place *place, void *at, uint32_t pattern, size_t words)
{
    if (place->tools)
        return rung_tools_fill(place->tools, at, pattern, words);
    uint32_t *word = at;
    for (size_t i = 0; i < words; i++)
        word[i] = pattern;
    return RUNG_SUCCESS;
}

rung_status lab_wait(lab_place *place)
{
    return place->tools ? rung_tools_synchronize(place->tools) : RUNG_SUCCESS;
}
