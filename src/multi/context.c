/* Making and unmaking a multi context: its engines, its transport, its control connection. */
#define _GNU_SOURCE /* dladdr */
#include "cpu/threads.h"
#include "multi/nccl.h"
#include "multi/product.h"
#include "multi/stage.h"
#include "multi/timeline.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* How many steps of k a panel has at a time, by device: results depend on it. On a GPU the product of one panel must
 * hide the copies of the next and the ends of tiles; tensor cores need wider panels to do so, and fewer pieces, since
 * each splits its operands anew. On a CPU a panel must stay in the caches. */
static const multi_panels cpu_panels = {512, 512, 512, 1, 1}, strict_panels = {2048, 8192, 4096, 4, 2},
                          tensor_panels = {8192, 8192, 8192, 2, 1};
enum { GPU_WAVE = 1 << 22 };

void rung_multi_config_init(rung_multi_config *config)
{
    memset(config, 0, sizeof *config);
    config->device = RUNG_DEVICE_BEST;
}

/* Where the variable is not set, or empty, the value stays. */
static rung_status positive_from_environment(const char *name, double *value)
{
    const char *text = getenv(name);
    char *end;
    double said = text && *text ? strtod(text, &end) : *value;
    if (text && *text && (*end || !(said > 0.0 && said < 1e9)))
        return rung_fail(RUNG_INVALID_ARGUMENT, "%s is '%s': set it to a number above 0 and below 1e9, or unset it",
                         name, text);
    *value = said;
    return RUNG_SUCCESS;
}

/* Reads numbers from 1 to `most` with a ':' between them. Returns how many; 0: there is something else, too. */
static int read_numbers(const char *text, int64_t most, int64_t *numbers, int room)
{
    int count = 0;
    for (char *end; count < room && *text >= '0' && *text <= '9'; text = end + 1) {
        numbers[count] = strtoll(text, &end, 10);
        if (numbers[count] < 1 || numbers[count] > most)
            return 0;
        count++;
        if (!*end)
            return count;
        if (*end != ':')
            return 0;
    }
    return 0;
}

/* Reads RUNG_MULTI_PANEL: "width", or "first:widest:last", or "first:widest:last:bands:chunks". What it does not say is
 * 0. */
static rung_status read_panels(multi_panels *panels)
{
    enum { MOST = 1 << 30 };
    const char *text = getenv("RUNG_MULTI_PANEL");
    int64_t x[5] = {0};
    int count = text ? read_numbers(text, MOST, x, 5) : 0;
    if (text && *text && count != 1 && count != 3 && count != 5)
        return rung_fail(RUNG_INVALID_ARGUMENT,
                         "RUNG_MULTI_PANEL is '%s': expected a width, first:widest:last or "
                         "first:widest:last:bands:chunks, numbers from 1 to %d",
                         text, MOST);
    *panels = (multi_panels){x[0], x[count == 1 ? 0 : 1], x[count == 1 ? 0 : 2], (int)x[3], (int)x[4]};
    return RUNG_SUCCESS;
}

static rung_status check_control(void)
{
    const char *text = getenv("RUNG_CONTROL");
    if (text && *text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return rung_fail(RUNG_INVALID_ARGUMENT,
                         "RUNG_CONTROL is '%s': set it to 0, for no connection to rank 0, or to 1, or unset it", text);
    return RUNG_SUCCESS;
}

/* What the environment says comes before any other rank or device is asked. */
static rung_status read_settings(rung_multi *multi)
{
    RUNG_TRY(check_control());
    multi->timeout_s = multi->config.timeout_s;
    if (multi->timeout_s == 0.0) {
        multi->timeout_s = 60.0;
        RUNG_TRY(positive_from_environment("RUNG_TIMEOUT_S", &multi->timeout_s));
    }
    double wave = GPU_WAVE;
    RUNG_TRY(positive_from_environment("RUNG_MULTI_WAVE", &wave)); /* tests set small ones */
    multi->wave_elements = wave < 1.0 ? 1 : (int64_t)wave;         /* sizes are divided by it */
    return read_panels(&multi->panels);
}

/* Fills in what the environment has not said. */
static void choose_panels(rung_multi *multi, int gpu)
{
    const multi_panels *usual = !gpu                                ? &cpu_panels
                                : multi->config.math == RUNG_STRICT ? &strict_panels
                                                                    : &tensor_panels;
    multi_panels *panels = &multi->panels;
    if (!panels->first)
        *panels = *usual;
    if (!panels->bands) {
        panels->bands = usual->bands;
        panels->chunks = usual->chunks;
    }
}

static rung_status check_config(const rung_multi_config *c)
{
    if (c->transport < RUNG_TRANSPORT_LOCAL || c->transport > RUNG_TRANSPORT_NCCL)
        return rung_fail(RUNG_INVALID_ARGUMENT, "transport is %d: local (0), MPI (1) or NCCL (2)", c->transport);
    if (c->math < RUNG_STRICT || c->math > RUNG_FAST)
        return rung_fail(RUNG_INVALID_ARGUMENT, "math is %d: strict (0), accurate (1) or fast (2)", c->math);
    if (c->ranks < 0 || c->ranks > MULTI_MAX_HELD)
        return rung_fail(RUNG_INVALID_ARGUMENT, "ranks is %d: a process holds 1 to %d", c->ranks, MULTI_MAX_HELD);
    if (c->threads < 0)
        return rung_fail(RUNG_INVALID_ARGUMENT, "threads is %d: it must not be negative", c->threads);
    if (!(c->timeout_s >= 0.0 && c->timeout_s <= 1e9))
        return rung_fail(RUNG_INVALID_ARGUMENT, "timeout_s is %g: 0 (the default) or the longest wait in seconds",
                         c->timeout_s);
    if (c->memory_bytes < 0)
        return rung_fail(RUNG_INVALID_ARGUMENT, "memory_bytes is %lld: it must not be negative",
                         (long long)c->memory_bytes);
    return RUNG_SUCCESS;
}

static rung_status open_engine(rung_multi *multi, int held, int device, int threads)
{
    multi_engine *e = &multi->engines[held];
    e->rank = multi->first_rank + held;
    e->timeline = multi->timeline;
    e->timeout_s = multi->timeout_s;
    rung_status status = device == RUNG_DEVICE_CPU ? multi_engine_open_cpu(e, threads, multi->config.math)
                                                   : multi_engine_open_gpu(e, device, multi->config.math);
    if (status == RUNG_SUCCESS)
        multi->held = held + 1;
    return status;
}

/* Opens a context within this process: GPU i for rank i unless told otherwise; without a GPU one CPU rank. */
static rung_status open_local(rung_multi *multi)
{
    const rung_multi_config *c = &multi->config;
    int gpus = c->devices ? 0 : multi_gpu_count();
    int count = c->ranks ? c->ranks : gpus ? gpus : 1;
    for (int i = 0; i < count; i++) {
        int device = c->devices ? c->devices[i] : gpus ? i : RUNG_DEVICE_CPU;
        if (i > 0 && (device == RUNG_DEVICE_CPU) == multi->is_gpu)
            return rung_fail(RUNG_INVALID_ARGUMENT, "rank %d's device is %d: ranks are all GPUs or all CPUs", i,
                             device);
        multi->is_gpu = device != RUNG_DEVICE_CPU;
        RUNG_TRY(open_engine(multi, i, device, c->threads));
    }
    multi->ranks = count;
    choose_panels(multi, multi->is_gpu);
    for (int i = 0; multi->is_gpu && i < count; i++)
        for (int j = 0; j < count; j++)
            if (multi->engines[i].device != multi->engines[j].device)
                RUNG_TRY(multi_engine_connect_gpu(&multi->engines[i], &multi->engines[j]));
    return RUNG_SUCCESS;
}

/* ---- processes of one rank each ---- */

/* Opens librung_mpi.so: named by RUNG_MPI, beside this library, or where the loader looks. */
static void *open_plugin(char *where, size_t bytes)
{
    const char *named = getenv("RUNG_MPI");
    Dl_info here;
    if (named && *named) {
        snprintf(where, bytes, "%s", named);
        return dlopen(named, RTLD_NOW | RTLD_GLOBAL);
    }
    if (dladdr((void *)(uintptr_t)&rung_multi_config_init, &here) && strrchr(here.dli_fname, '/')) {
        int folder = (int)(strrchr(here.dli_fname, '/') - here.dli_fname);
        snprintf(where, bytes, "%.*s/librung_mpi.so", folder, here.dli_fname);
        void *library = dlopen(where, RTLD_NOW | RTLD_GLOBAL);
        if (library || access(where, F_OK) == 0) /* what it lacks is the reason to tell */
            return library;
    }
    return dlopen("librung_mpi.so", RTLD_NOW | RTLD_GLOBAL);
}

static rung_status open_mpi(rung_multi *multi, multi_transport *t)
{
    char where[512] = "librung_mpi.so", why[MULTI_WHY_BYTES] = "";
    multi->plugin = open_plugin(where, sizeof where);
    if (!multi->plugin)
        return rung_fail(RUNG_MISSING_LIBRARY,
                         "the MPI transport is a library of its own, librung_mpi.so, built where "
                         "mpicc is installed (Debian: libopenmpi-dev): %s",
                         dlerror());
    multi_mpi_open_function *open;
    *(void **)&open = dlsym(multi->plugin, MULTI_MPI_SYMBOL);
    if (!open)
        return rung_fail(RUNG_MISSING_LIBRARY, "%s is no MPI transport of Rung: it lacks %s", where, MULTI_MPI_SYMBOL);
    return multi_transport_try(multi, open(t, multi->config.communicator, why), why);
}

static int is_set(const char *name)
{
    const char *text = getenv(name);
    return text && *text;
}

/* Reads rank and size that a launcher put into the environment. */
static rung_status read_environment(multi_transport *t)
{
    const char *names[] = {"RUNG_RANK", "RUNG_SIZE"};
    long values[2];
    for (int i = 0; i < 2; i++) {
        char *end;
        const char *text = getenv(names[i]);
        values[i] = text ? strtol(text, &end, 10) : -1;
        if (!text || *end || values[i] < i || values[i] > 1 << 20)
            return rung_fail(RUNG_INVALID_ARGUMENT,
                             "%s is '%s': a launcher sets RUNG_RANK (0, 1 ...), RUNG_SIZE and "
                             "RUNG_ADDRESS (host:port, rank 0's)",
                             names[i], text ? text : "not set");
    }
    t->rank = (int)values[0];
    t->size = (int)values[1];
    if (t->rank >= t->size)
        return rung_fail(RUNG_INVALID_ARGUMENT, "RUNG_RANK is %d but RUNG_SIZE %d", t->rank, t->size);
    if (t->size > 1 && !is_set("RUNG_ADDRESS"))
        return rung_fail(RUNG_INVALID_ARGUMENT, "RUNG_ADDRESS is not set: host:port where rank 0 can be reached");
    return RUNG_SUCCESS;
}

/* Where the ranks meet, and the secret that lets them in. */
typedef struct meeting {
    char address[CONTROL_ADDRESS_BYTES], secret[CONTROL_SECRET_BYTES];
} meeting;

/* The secret comes from the environment; else rank 0 makes one for this run, which the transport hands to the others.
 */
static rung_status find_secret(const multi_transport *t, meeting *at)
{
    const char *given = getenv("RUNG_SECRET");
    if (given && strlen(given) >= sizeof at->secret)
        return rung_fail(RUNG_INVALID_ARGUMENT, "RUNG_SECRET has %zu characters: at most %zu are used", strlen(given),
                         sizeof at->secret - 1);
    if (given && *given) {
        snprintf(at->secret, sizeof at->secret, "%s", given);
        return RUNG_SUCCESS;
    }
    if (t->share) {
        unsigned char random[(CONTROL_SECRET_BYTES - 1) / 2];
        if (t->rank == 0 && getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return rung_fail(RUNG_INTERNAL, "no random numbers for the ranks' secret");
        for (size_t i = 0; t->rank == 0 && i < sizeof random; i++)
            snprintf(at->secret + 2 * i, 3, "%02x", random[i]);
        return RUNG_SUCCESS;
    }
    if (multi_control_is_local(at->address))
        return RUNG_SUCCESS;
    return rung_fail(
        RUNG_INVALID_ARGUMENT,
        "other machines can reach RUNG_ADDRESS %s: set RUNG_SECRET to the same text for every rank, so that "
        "strangers are not let in",
        at->address);
}

/* Opens the control connection. Rank 0 listens; the transport tells the others where, or the environment does. */
static rung_status open_control(rung_multi *multi, multi_transport *t)
{
    meeting at = {"", ""};
    char why[MULTI_WHY_BYTES] = "";
    const char *off = getenv("RUNG_CONTROL");
    if (off && strcmp(off, "0") == 0) /* simulated processes have no sockets */
        return multi->config.transport == RUNG_TRANSPORT_MPI
                   ? RUNG_SUCCESS
                   : rung_fail(RUNG_INVALID_ARGUMENT,
                               "the NCCL transport needs the control connection: RUNG_CONTROL is 0");
    if (is_set("RUNG_ADDRESS"))
        snprintf(at.address, sizeof at.address, "%s", getenv("RUNG_ADDRESS"));
    else if (t->size == 1) /* nobody comes */
        snprintf(at.address, sizeof at.address, "127.0.0.1:0");
    rung_status listening = find_secret(t, &at); /* who fails says so after it has shared, which the others wait for */
    if (t->rank == 0) {
        char actual[CONTROL_ADDRESS_BYTES] = "";
        if (listening == RUNG_SUCCESS)
            listening = multi_control_listen(&multi->control, t->size, at.address, at.secret, actual);
        snprintf(at.address, sizeof at.address, "%s", actual);
    }
    if (t->share)
        RUNG_TRY(multi_transport_try(multi, t->share(t->state, &at, sizeof at, why), why));
    RUNG_TRY(listening);
    if (!at.address[0])
        return rung_fail(RUNG_DEVICE_ERROR, "rank 0 cannot listen for the other ranks");
    if (t->rank == 0)
        return multi_control_accept(multi->control, multi->timeout_s);
    return multi_control_connect(&multi->control, t->rank, t->size, at.address, at.secret, multi->timeout_s);
}

/* Finds this rank's place among those of the same host, where the launcher does not tell it. */
static rung_status find_local_rank(rung_multi *multi, multi_transport *t)
{
    enum { NAME = 64 };
    char mine[NAME] = "", *all = NULL;
    int32_t *places = calloc((size_t)t->size, sizeof *places);
    rung_status status = RUNG_SUCCESS;
    gethostname(mine, sizeof mine - 1);
    if (t->rank == 0)
        all = calloc((size_t)t->size, NAME);
    if (!places || (t->rank == 0 && !all))
        RUNG_TRY_OUT(rung_fail(RUNG_OUT_OF_MEMORY, "no memory for the names of %d hosts", t->size));
    RUNG_TRY_OUT(multi_control_gather(multi->control, mine, all, NAME, "told its host", multi->timeout_s));
    for (int i = 1; all && i < t->size; i++)
        for (int j = 0; j < i; j++)
            places[i] += strcmp(all + i * NAME, all + j * NAME) == 0;
    RUNG_TRY_OUT(multi_control_share(multi->control, places, t->size * (int)sizeof *places, "told the ranks' hosts",
                                     multi->timeout_s));
    t->local_rank = places[t->rank];
out:
    free(places);
    free(all);
    return status;
}

/* Ranks that share a machine's cores take equal parts of them, unless somebody said how many or bound them. */
static int choose_threads(const rung_multi *multi, const multi_transport *t)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (multi->config.threads || rung_cpu_said_threads() || t->local_size < 2)
        return multi->config.threads;
    int mine = rung_process_threads();
    return mine < cores ? mine : mine / t->local_size > 1 ? mine / t->local_size : 1;
}

static rung_status open_rank(rung_multi *multi, multi_transport *t)
{
    if (multi->config.transport == RUNG_TRANSPORT_MPI)
        return open_engine(multi, 0, RUNG_DEVICE_CPU, choose_threads(multi, t));
    if (t->local_rank < 0)
        RUNG_TRY(find_local_rank(multi, t));
    multi->is_gpu = 1;
    int device = multi->config.device == RUNG_DEVICE_BEST ? t->local_rank : multi->config.device;
    RUNG_TRY(open_engine(multi, 0, device, 0));
    return multi_nccl_open(multi, t);
}

static rung_status open_processes(rung_multi *multi)
{
    multi_transport *t = calloc(1, sizeof *t);
    if (!t)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a transport");
    t->local_rank = -1;
    multi->transport = t;
    int from_environment = multi->config.transport == RUNG_TRANSPORT_NCCL && is_set("RUNG_RANK");
    RUNG_TRY(from_environment ? read_environment(t) : open_mpi(multi, t));
    multi->ranks = t->size;
    multi->first_rank = t->rank;
    choose_panels(multi, multi->config.transport == RUNG_TRANSPORT_NCCL);
    RUNG_TRY(open_control(multi, t));
    rung_status status = open_rank(multi, t);
    multi_record record = {.count = 0};
    multi_record_add(&record, "transport", multi->config.transport);
    multi_record_add(&record, "math", multi->config.math);
    multi_record_add(&record, "RUNG_MULTI_PANEL's first width", multi->panels.first);
    multi_record_add(&record, "RUNG_MULTI_PANEL's widest", multi->panels.widest);
    multi_record_add(&record, "RUNG_MULTI_PANEL's last width", multi->panels.last);
    multi_record_add(&record, "RUNG_MULTI_PANEL's bands", multi->panels.bands); /* each is a message of its own */
    RUNG_TRY(multi_agree(multi, &record, status, "rung_multi_create"));
    if (multi->config.transport != RUNG_TRANSPORT_NCCL)
        return RUNG_SUCCESS;
    status = multi_nccl_connect(multi, t);
    if (status != RUNG_SUCCESS)
        return multi_break(multi, status);
    return multi_agree(multi, &(multi_record){.count = 0}, status, "rung_multi_create");
}

rung_status rung_multi_create(rung_multi **out, const rung_multi_config *given)
{
    if (!out)
        return rung_fail(RUNG_INVALID_ARGUMENT, "rung_multi_create was given NULL for the result");
    *out = NULL;
    rung_multi_config config;
    rung_multi_config_init(&config);
    if (given)
        config = *given;
    RUNG_TRY(check_config(&config));
    rung_multi *multi = calloc(1, sizeof *multi);
    if (!multi || !(multi->timeline = multi_timeline_create())) {
        free(multi);
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a multi context");
    }
    multi->config = config;
    rung_status status = read_settings(multi);
    if (status == RUNG_SUCCESS)
        status = config.transport == RUNG_TRANSPORT_LOCAL ? open_local(multi) : open_processes(multi);
    multi->config.devices = NULL; /* the array is the caller's */
    if (status != RUNG_SUCCESS) {
        char why[512];
        snprintf(why, sizeof why, "%s", rung_last_error());
        rung_multi_destroy(multi);
        return rung_fail(status, "%s", why);
    }
    *out = multi;
    return RUNG_SUCCESS;
}

void rung_multi_destroy(rung_multi *multi)
{
    if (!multi)
        return;
    for (int i = 0; i < multi->held; i++)
        multi->engines[i].ops->drain(&multi->engines[i]);
    multi_stage_close(multi);
    multi_product_close(multi);
    if (multi->transport && multi->transport->close)
        multi->transport->close(multi->transport->state, multi->broken != RUNG_SUCCESS);
    multi_control_close(multi->control);
    for (int i = 0; i < multi->held; i++)
        multi->engines[i].ops->close(&multi->engines[i]);
    free(multi->transport);
    multi_timeline_destroy(multi->timeline);
    free(multi); /* the plugin stays loaded: MPI may not be started twice */
}

int rung_multi_ranks(const rung_multi *multi)
{
    return multi ? multi->ranks : 0;
}

int rung_multi_first_rank(const rung_multi *multi)
{
    return multi ? multi->first_rank : 0;
}

int rung_multi_held_ranks(const rung_multi *multi)
{
    return multi ? multi->held : 0;
}

int rung_multi_device(const rung_multi *multi, int held)
{
    return multi && held >= 0 && held < multi->held ? multi->engines[held].device : RUNG_DEVICE_CPU;
}
