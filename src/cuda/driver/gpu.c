/* GPUs of the process: discovery, the primary context, kernel files loaded on first use and then ahead of it, functions
 * kept by name. */
#include "cuda/driver/background.h"
#include "cuda/driver/device.h"
#include "cuda/driver/images.h"
#include "tile_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const stems[] = {
#define RUNG_CPU(id, ...)
#define RUNG_CUDA(id, arch_, ...) #id,
#include "core/all_rows.inc"
#undef RUNG_CUDA
#undef RUNG_CPU
#define RUNG_MODULE(id) #id,
#include "cuda/driver/modules.inc"
#undef RUNG_MODULE
};
enum { STEMS = sizeof stems / sizeof stems[0] };

typedef struct loaded_symbol {
    const char *stem;
    char symbol[96];
    rung_function function;
} loaded_symbol;

struct rung_gpu {
    const rung_driver *driver;
    CUdevice device;
    CUcontext context;
    CUmemoryPool pool;
    rung_idle_buffers idle_buffers;
    rung_machine machine;
    pthread_mutex_t lock, loading; /* `lock` guards `symbols`; `loading` is held while a kernel is loaded, which takes
                                      `lock` only to look and to enter */
    int ahead;                     /* 1: kernels that were not used yet are being loaded, or have been */
    int waiting;                   /* how many calls wait for `loading` */
    void *images;                  /* NULL: the driver finds kernel files by their names */
    CUlibrary libraries[STEMS];
    loaded_symbol symbols[RUNG_MOST_SYMBOLS];
};

static rung_gpu *gpus[RUNG_MOST_GPUS];
static pthread_mutex_t gpus_lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns how much memory gives beside an H200's, by its clock and width; 1 where the driver does not say. */
static double memory_speed(const rung_driver *d, CUdevice device)
{
    const double h200 = 3201e3 * 6144.0; /* kHz times bits */
    int khz = 0, bits = 0;
    d->device_attribute(&khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device);
    d->device_attribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);
    return khz > 0 && bits > 0 ? khz * (double)bits / h200 : 1.0;
}

static rung_status describe(rung_gpu *gpu)
{
    const rung_driver *d = gpu->driver;
    rung_machine *m = &gpu->machine;
    int major, minor, clock_khz, l2;
    size_t memory;
    CU_TRY(d, device_name(m->name, sizeof m->name, gpu->device));
    CU_TRY(d, device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu->device));
    CU_TRY(d, device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu->device));
    CU_TRY(d, device_attribute(&m->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->device));
    CU_TRY(d, device_attribute(&m->shared_per_block_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                               gpu->device));
    CU_TRY(d, device_attribute(&clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, gpu->device));
    CU_TRY(d, device_attribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, gpu->device));
    CU_TRY(d, device_memory(&memory, gpu->device));
    CU_TRY(d, driver_version(&m->driver_version));
    m->arch = major * 10 + minor;
    m->clock_ghz = clock_khz * 1e-6;
    m->memory_speed = memory_speed(d, gpu->device);
    m->l2_bytes = l2;
    m->memory_bytes = (int64_t)memory;
    if (m->arch < 75)
        return rung_fail(RUNG_NO_DEVICE,
                         "GPU %s has compute capability %d.%d: Rung needs 8.0 (Ampere) or later, its first rungs 7.5",
                         m->name, major, minor);
    return RUNG_SUCCESS;
}

/* Makes the pool that workspace comes from: our own, so that the program's default pool keeps its settings. What is
 * freed beyond what contexts keep goes back to the driver when the program next waits for the GPU. */
static rung_status make_pool(rung_gpu *gpu)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = CU_MEM_HANDLE_TYPE_NONE};
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = (int)gpu->device;
    cuuint64_t keep = RUNG_KEPT_BYTES;
    CU_TRY(gpu->driver, pool_create(&gpu->pool, &properties));
    CU_TRY(gpu->driver, pool_set(gpu->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    return RUNG_SUCCESS;
}

static rung_status open_gpu(const rung_driver *driver, int index, rung_gpu **out)
{
    int count = 0;
    CU_TRY(driver, device_count(&count));
    if (count == 0)
        return rung_fail(RUNG_NO_DEVICE, "the NVIDIA driver sees no GPU");
    if (index >= count)
        return rung_fail(RUNG_NO_DEVICE, "GPU %d was asked for, this machine has %d (numbered from 0)", index, count);
    rung_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a GPU's state (%zu bytes)", sizeof *gpu);
    gpu->driver = driver;
    pthread_mutex_init(&gpu->lock, NULL);
    pthread_mutex_init(&gpu->loading, NULL);
    pthread_mutex_init(&gpu->idle_buffers.lock, NULL);
    rung_status status;
    CU_TRY_OUT(driver, device_get(&gpu->device, index));
    RUNG_TRY_OUT(describe(gpu));
    if (!driver->library_named)
        RUNG_TRY_OUT(rung_images_open(gpu->machine.arch, gpu->machine.name, &gpu->images));
    CU_TRY_OUT(driver, primary_retain(&gpu->context, gpu->device));
    RUNG_TRY_OUT(make_pool(gpu));
    *out = gpu;
    return RUNG_SUCCESS;
out:
    if (gpu->pool)
        driver->pool_destroy(gpu->pool);
    if (gpu->context)
        driver->primary_release(gpu->device);
    pthread_mutex_destroy(&gpu->lock);
    pthread_mutex_destroy(&gpu->loading);
    pthread_mutex_destroy(&gpu->idle_buffers.lock);
    free(gpu);
    return status;
}

static rung_status open_beside_recordings(const rung_driver *driver, int index, rung_gpu **out)
{
    rung_thread_mode mode = rung_driver_relax(driver);
    rung_status status = open_gpu(driver, index, out);
    rung_driver_put_back(driver, mode);
    return status;
}

rung_status rung_gpu_get(int index, rung_gpu **gpu)
{
    if (index < 0 || index >= RUNG_MOST_GPUS)
        return rung_fail(RUNG_NO_DEVICE, "GPU %d was asked for: numbers go from 0 to %d", index, RUNG_MOST_GPUS - 1);
    const rung_driver *driver;
    rung_status status = RUNG_SUCCESS;
    RUNG_TRY(rung_driver_open(&driver)); /* before the lock, which a thread of the parent may have had at the fork */
    pthread_mutex_lock(&gpus_lock);
    if (!gpus[index])
        status = open_beside_recordings(driver, index, &gpus[index]);
    *gpu = gpus[index];
    pthread_mutex_unlock(&gpus_lock);
    return status;
}

const rung_driver *rung_gpu_driver(const rung_gpu *gpu)
{
    return gpu->driver;
}

const rung_machine *rung_gpu_machine(const rung_gpu *gpu)
{
    return &gpu->machine;
}

CUcontext rung_gpu_context(const rung_gpu *gpu)
{
    return gpu->context;
}

CUmemoryPool rung_gpu_pool(const rung_gpu *gpu)
{
    return gpu->pool;
}

rung_idle_buffers *rung_gpu_idle_buffers(rung_gpu *gpu)
{
    return &gpu->idle_buffers;
}

const char *rung_gpu_unusable(const rung_machine *machine, const rung_kernel *kernel)
{
    if (kernel->arch == 90 && machine->arch != 90)
        return "needs a Hopper GPU (compute capability 9.0)";
    if (kernel->arch > machine->arch)
        return "needs a newer GPU";
    if (kernel->shared_bytes > machine->shared_per_block_bytes)
        return "needs more shared memory than this GPU gives a block";
    return NULL;
}

static int index_of(const char *stem)
{
    for (int i = 0; i < STEMS; i++)
        if (strcmp(stems[i], stem) == 0)
            return i;
    return -1;
}

rung_status rung_gpu_library(rung_gpu *gpu, const char *stem, CUlibrary *library)
{
    const rung_driver *d = gpu->driver;
    const void *image;
    if (d->library_named) {
        CU_TRY(d, library_named(library, stem));
        return RUNG_SUCCESS;
    }
    RUNG_TRY(rung_images_find(gpu->images, stem, &image));
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED; /* no copy is needed: modules stay open */
    void *yes = (void *)1;
    CU_TRY(d, library_load(library, image, NULL, NULL, 0, &option, &yes, 1));
    return RUNG_SUCCESS;
}

static rung_status load_symbol(rung_gpu *gpu, int index, const char *symbol, rung_function *f)
{
    const rung_driver *d = gpu->driver;
    if (!gpu->libraries[index])
        RUNG_TRY(rung_gpu_library(gpu, stems[index], &gpu->libraries[index]));
    CUkernel kernel;
    CU_TRY(d, library_kernel(&kernel, gpu->libraries[index], symbol));
    CU_TRY(d, kernel_function(&f->function, kernel));
    CU_TRY(d, function_attribute(&f->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f->function));
    CU_TRY(d, function_attribute(&f->local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f->function));
    CU_TRY(d, function_attribute(&f->shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f->function));
    int most =
        gpu->machine.shared_per_block_bytes - f->shared_bytes; /* launches may ask for more than the kernel does */
    CU_TRY(d, function_set(f->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    return RUNG_SUCCESS;
}

static rung_status load_beside_recordings(rung_gpu *gpu, int index, const char *symbol, rung_function *function)
{
    rung_thread_mode mode = rung_driver_relax(gpu->driver);
    rung_status status = load_symbol(gpu, index, symbol, function);
    rung_driver_put_back(gpu->driver, mode);
    return status;
}

/* Hashes a text, eight letters at a time, since every launch looks its function up. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    size_t left = strlen(text);
    for (; left > 0; text += 8) {
        uint64_t word = 0;
        size_t bytes = left < sizeof word ? left : sizeof word;
        memcpy(&word, text, bytes);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
        left -= bytes;
    }
    return hash;
}

/* Returns the slot that holds the symbol, or the free one where it belongs (open addressing). */
static loaded_symbol *slot_of(rung_gpu *gpu, const char *stem, const char *symbol)
{
    uint64_t at = hash_text(hash_text(0, symbol), stem);
    for (int tries = 0; tries < RUNG_MOST_SYMBOLS; tries++, at++) {
        loaded_symbol *slot = &gpu->symbols[at % RUNG_MOST_SYMBOLS];
        if (!slot->stem || (strcmp(slot->symbol, symbol) == 0 && strcmp(slot->stem, stem) == 0))
            return slot;
    }
    return NULL;
}

/* Returns 1 when the function is there. */
static int look_up(rung_gpu *gpu, const char *stem, const char *symbol, rung_function *function)
{
    pthread_mutex_lock(&gpu->lock);
    const loaded_symbol *slot = slot_of(gpu, stem, symbol);
    const int there = slot && slot->stem;
    if (there)
        *function = slot->function;
    pthread_mutex_unlock(&gpu->lock);
    return there;
}

static rung_status enter_symbol(rung_gpu *gpu, const char *stem, const char *symbol, const rung_function *function)
{
    pthread_mutex_lock(&gpu->lock);
    loaded_symbol *slot = slot_of(gpu, stem, symbol);
    if (slot) {
        slot->function = *function;
        snprintf(slot->symbol, sizeof slot->symbol, "%s", symbol);
        slot->stem = stem;
    }
    pthread_mutex_unlock(&gpu->lock);
    return slot ? RUNG_SUCCESS : rung_fail(RUNG_INTERNAL, "more than %d kernels are loaded", RUNG_MOST_SYMBOLS);
}

/* One thread at a time loads; others go on finding what is loaded. */
static rung_status load(rung_gpu *gpu, const char *stem, const char *symbol, rung_function *function)
{
    int index = index_of(stem);
    if (index < 0)
        return rung_fail(RUNG_INTERNAL, "no kernel file is called %s", stem);
    rung_status status = RUNG_SUCCESS;
    __atomic_add_fetch(&gpu->waiting, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&gpu->loading);
    __atomic_sub_fetch(&gpu->waiting, 1, __ATOMIC_RELAXED);
    if (!look_up(gpu, stem, symbol, function)) {
        status = load_beside_recordings(gpu, index, symbol, function);
        if (status == RUNG_SUCCESS)
            status = enter_symbol(gpu, stems[index], symbol, function);
    }
    pthread_mutex_unlock(&gpu->loading);
    return status;
}

static int is_wanted(const rung_gpu *gpu, const char *stem)
{
    const rung_kernel *kernel = rung_kernel_find(stem);
    return kernel ? kernel->role == RUNG_PRODUCTION && !rung_gpu_unusable(&gpu->machine, kernel) : index_of(stem) >= 0;
}

/* Waits until the calls that want to load have done so: a mutex may go to the same thread again and again while another
 * one waits. */
static void let_others_load(rung_gpu *gpu)
{
    const struct timespec moment = {.tv_nsec = 20000};
    while (__atomic_load_n(&gpu->waiting, __ATOMIC_RELAXED) > 0)
        nanosleep(&moment, NULL);
}

/* Returns whether there is room for all kernels, whose code takes some 50 MiB of a GPU's memory: a program that has
 * filled it keeps its room. */
static int has_room(const rung_gpu *gpu)
{
    size_t left = 0, all = 0;
    return gpu->driver->memory_info(&left, &all) == CUDA_SUCCESS && left >= (size_t)2 << 30;
}

/* Loads all that the module's table names: "symbol registers stack spill shared stem" a line. */
static void load_listed(rung_gpu *gpu, const int *stop)
{
    char symbol[96], stem[96];
    rung_function function;
    for (const char *line = rung_images_table(gpu->images); line && *line && !__atomic_load_n(stop, __ATOMIC_ACQUIRE);
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        let_others_load(gpu);
        if (sscanf(line, "%95s %*d %*d %*d %*d %95s", symbol, stem) == 2 && is_wanted(gpu, stem) &&
            !look_up(gpu, stem, symbol, &function) && load(gpu, stem, symbol, &function) != RUNG_SUCCESS)
            return;
    }
}

static void load_all(void *of, const int *stop)
{
    rung_gpu *gpu = of;
    CUcontext popped;
    rung_thread_mode mode = rung_driver_relax(gpu->driver);
    if (gpu->driver->context_push(gpu->context) == CUDA_SUCCESS) {
        if (has_room(gpu))
            load_listed(gpu, stop);
        gpu->driver->context_pop(&popped);
    }
    rung_driver_put_back(gpu->driver, mode);
}

enum {
    FIRST_COMPILED_BY_DRIVER = 100
}; /* later chips have no machine code in the modules, and to compile it takes seconds for each file */

/* Starts a thread that loads all other kernels once the first one was loaded. One takes up to milliseconds: the
 * process's first product does not wait for them, and later ones find theirs. A module that lists none has none. */
static void load_others_ahead(rung_gpu *gpu)
{
    if (gpu->images && gpu->machine.arch < FIRST_COMPILED_BY_DRIVER && rung_images_table(gpu->images) &&
        !__atomic_exchange_n(&gpu->ahead, 1, __ATOMIC_ACQ_REL))
        rung_background_start(load_all, gpu);
}

rung_status rung_gpu_function(rung_gpu *gpu, const char *stem, const char *symbol, rung_function *function)
{
    if (look_up(gpu, stem, symbol, function))
        return RUNG_SUCCESS;
    RUNG_TRY(load(gpu, stem, symbol, function));
    load_others_ahead(gpu);
    return RUNG_SUCCESS;
}
