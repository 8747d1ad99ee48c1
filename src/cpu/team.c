/* The caller's own threads: found through the object that its code lies in, or through the BLAS that it would reach. */
#define _GNU_SOURCE
#include "cpu/pool.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* What is known of one place that calls came from. */
typedef struct known_place {
    const void *address;
    unsigned long long changes; /* of the list of loaded objects, when it was searched */
    unsigned calls;             /* since then */
    rung_team team;             /* run is NULL: it has none */
} known_place;

enum { PLACE_BITS = 4, PLACES = 1 << PLACE_BITS, MOST_NAME = 256, CALLS_UNASKED = 8 };

static _Thread_local const void *caller;
static _Thread_local known_place places[PLACES];

void rung_team_say_caller(const void *return_address)
{
    caller = return_address;
}

typedef struct search {
    ElfW(Addr) address;
    unsigned long long changes;
    char of_caller[MOST_NAME]; /* the OpenMP library of the object that the address lies in */
    char of_blas[MOST_NAME];   /* the OpenMP library of a BLAS */
    int is_unclear;            /* others use another one */
} search;

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int is_openmp(const char *name)
{
    return begins(name, "libgomp") || begins(name, "libiomp5") || begins(name, "libomp");
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

/* Finds the OpenMP library that an object is linked to; leaves `found` as it is where there is none. */
static void note_openmp(const struct dl_phdr_info *object, char *found)
{
    const ElfW(Dyn) *first = dynamic_of(object);
    ElfW(Addr) names = 0;
    for (const ElfW(Dyn) *d = first; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB) /* an address, or an offset where the loader does not write into the table */
            names = d->d_un.d_ptr < object->dlpi_addr ? object->dlpi_addr + d->d_un.d_ptr : d->d_un.d_ptr;
    for (const ElfW(Dyn) *d = first; names && d->d_tag != DT_NULL; d++) {
        const char *name = (const char *)names + d->d_un.d_val;
        if (d->d_tag == DT_NEEDED && is_openmp(name) && strlen(name) < MOST_NAME)
            strcpy(found, name);
    }
}

/* Finds the OpenMP library that a BLAS uses. MKL's threading layers are linked to none: they find the one that they
 * were made for when they are loaded. */
static void note_blas(const struct dl_phdr_info *object, char *found)
{
    const char *slash = strrchr(object->dlpi_name, '/'), *name = slash ? slash + 1 : object->dlpi_name;
    if (begins(name, "libmkl_intel_thread"))
        strcpy(found, "libiomp5.so");
    else if (begins(name, "libmkl_gnu_thread"))
        strcpy(found, "libgomp.so.1");
    else if (begins(name, "libopenblas") || begins(name, "libblis") || begins(name, "libblas"))
        note_openmp(object, found);
}

static int search_object(struct dl_phdr_info *object, size_t bytes, void *state)
{
    search *s = state;
    (void)bytes;
    s->changes = object->dlpi_adds + object->dlpi_subs;
    if (contains(object, s->address))
        note_openmp(object, s->of_caller);
    char of_this[MOST_NAME] = "";
    note_blas(object, of_this);
    s->is_unclear |= s->of_blas[0] && of_this[0] && strcmp(s->of_blas, of_this) != 0;
    if (!s->of_blas[0])
        strcpy(s->of_blas, of_this);
    return 0;
}

static int note_changes(struct dl_phdr_info *object, size_t bytes, void *state)
{
    (void)bytes;
    *(unsigned long long *)state = object->dlpi_adds + object->dlpi_subs;
    return 1;
}

/* Fills in a team's functions; leaves it without where the library is not there, or lacks one. */
static void bind(rung_team *team, const char *runtime)
{
    void *library = runtime[0] ? dlopen(runtime, RTLD_LAZY | RTLD_NOLOAD) : NULL; /* kept: it stays for good */
    if (!library)
        return;
    *(void **)&team->number = dlsym(library, "omp_get_thread_num");
    *(void **)&team->most = dlsym(library, "omp_get_max_threads");
    *(void **)&team->is_inside = dlsym(library, "omp_in_parallel");
    if (team->number && team->most && team->is_inside)
        *(void **)&team->run = dlsym(library, "GOMP_parallel");
}

static void look_up(known_place *place, const void *address)
{
    search s = {.address = (ElfW(Addr))address};
    dl_iterate_phdr(search_object, &s);
    *place = (known_place){.address = address, .changes = s.changes};
    bind(&place->team, s.of_caller);
    if (!place->team.run && !s.is_unclear)
        bind(&place->team, s.of_blas);
}

/* A place without a team is looked at again when objects have come or gone: MKL loads its layer at its first product.
 * Asking for that costs some 60 ns, so not every call does. */
static int is_known(known_place *place, const void *address)
{
    unsigned long long changes = 0;
    if (place->address != address)
        return 0;
    if (place->team.run || place->calls++ % CALLS_UNASKED)
        return 1;
    dl_iterate_phdr(note_changes, &changes);
    return place->changes == changes;
}

/* Functions lie at round distances from each other; the upper bits of a product differ all the same. */
static unsigned slot_of(const void *address)
{
    return (unsigned)((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> (64 - PLACE_BITS));
}

const rung_team *rung_team_of_call(const void *creator)
{
    const void *address = caller ? caller : creator;
    known_place *place = &places[slot_of(address)];
    if (!address || rung_pool_is_forked())
        return NULL;
    if (!is_known(place, address))
        look_up(place, address);
    return place->team.run ? &place->team : NULL;
}
