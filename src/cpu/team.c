/* The caller's own threads: found through the object that its code lies in. */
#define _GNU_SOURCE
#include "cpu/team.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* What is known of one place that calls came from. */
typedef struct known_place {
    const void *address;
    rung_team team; /* run is NULL: it has none */
} known_place;

enum { PLACES = 16 };

static _Thread_local const void *caller;
static _Thread_local known_place places[PLACES];
static atomic_int is_forked;

void rung_team_say_caller(const void *return_address)
{
    caller = return_address;
}

typedef struct search {
    ElfW(Addr) address;
    char runtime[256]; /* the name of the OpenMP library that the object at the address needs */
} search;

static int is_openmp(const char *name)
{
    return strncmp(name, "libgomp", 7) == 0 || strncmp(name, "libiomp5", 8) == 0 || strncmp(name, "libomp", 6) == 0;
}

static int contains(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && address - object->dlpi_addr - part->p_vaddr < part->p_memsz)
            return 1;
    }
    return 0;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return NULL;
}

static int search_object(struct dl_phdr_info *object, size_t bytes, void *state)
{
    search *s = state;
    (void)bytes;
    if (!contains(object, s->address))
        return 0;
    const ElfW(Dyn) *first = dynamic_of(object);
    ElfW(Addr) names = 0;
    for (const ElfW(Dyn) *d = first; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB) /* an address, or an offset where the loader does not write into the table */
            names = d->d_un.d_ptr < object->dlpi_addr ? object->dlpi_addr + d->d_un.d_ptr : d->d_un.d_ptr;
    for (const ElfW(Dyn) *d = first; names && d->d_tag != DT_NULL; d++) {
        const char *name = (const char *)names + d->d_un.d_val;
        if (d->d_tag == DT_NEEDED && is_openmp(name) && strlen(name) < sizeof s->runtime)
            strcpy(s->runtime, name);
    }
    return 1;
}

/* Fills in a team's functions; returns 0 where the library lacks one. */
static int bind(rung_team *team, const char *runtime)
{
    void *library = dlopen(runtime, RTLD_LAZY | RTLD_NOLOAD); /* kept: the library stays for good */
    if (!library)
        return 0;
    *(void **)&team->run = dlsym(library, "GOMP_parallel");
    *(void **)&team->number = dlsym(library, "omp_get_thread_num");
    *(void **)&team->most = dlsym(library, "omp_get_max_threads");
    *(void **)&team->is_inside = dlsym(library, "omp_in_parallel");
    return team->run && team->number && team->most && team->is_inside;
}

static void forked(void)
{
    atomic_store(&is_forked, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

static void look_up(known_place *place)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    *place = (known_place){.address = caller};
    search s = {.address = (ElfW(Addr))caller};
    dl_iterate_phdr(search_object, &s);
    if (!s.runtime[0] || !bind(&place->team, s.runtime))
        place->team = (rung_team){0};
}

const rung_team *rung_team_of_call(void)
{
    if (!caller)
        return NULL;
    known_place *place = &places[(uintptr_t)caller / 4 % PLACES];
    if (place->address != caller)
        look_up(place);
    return place->team.run && !atomic_load_explicit(&is_forked, memory_order_relaxed) ? &place->team : NULL;
}
