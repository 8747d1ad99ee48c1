/* librung_audit.so: an LD_AUDIT module. A program that takes cuBLAS's functions with dlsym passes LD_PRELOAD by; here
 * dlsym's answer is replaced by the function of the same name in librung_cublas.so, when that is loaded too.
 * Only bindings into cuBLAS's own libraries are watched, so no other call pays for it. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned la_version(unsigned version);
EXPORT unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie);
EXPORT uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                              const char *name);

enum { OTHER = 0, CUBLAS = 1, RUNG = 2 };

static const struct link_map *rung_map;

typedef struct dynamic {
    const Elf64_Sym *symbols;
    const char *strings;
    const uint32_t *gnu_hash;
} dynamic;

/* Returns what a pointer of the dynamic section points at. The loader has relocated most of these; an offset below the
 * load address has not been. */
static const void *at(const struct link_map *map, uint64_t value)
{
    return (const void *)(uintptr_t)(value < map->l_addr ? value + map->l_addr : value);
}

static void read_dynamic(const struct link_map *map, dynamic *out)
{
    memset(out, 0, sizeof *out);
    for (const Elf64_Dyn *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            out->symbols = at(map, d->d_un.d_ptr);
        else if (d->d_tag == DT_STRTAB)
            out->strings = at(map, d->d_un.d_ptr);
        else if (d->d_tag == DT_GNU_HASH)
            out->gnu_hash = at(map, d->d_un.d_ptr);
    }
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Returns the address of a function that `map` defines; 0: none. */
static uintptr_t find_defined(const struct link_map *map, const char *name)
{
    dynamic d;
    read_dynamic(map, &d);
    if (!d.gnu_hash || !d.symbols || !d.strings)
        return 0;
    uint32_t buckets = d.gnu_hash[0], first = d.gnu_hash[1], bloom_words = d.gnu_hash[2], hash = gnu_hash_of(name);
    const uint32_t *bucket = d.gnu_hash + 4 + bloom_words * 2, *chain = bucket + buckets;
    uint32_t i = bucket[hash % buckets];
    if (i < first)
        return 0;
    for (;; i++) {
        uint32_t link = chain[i - first];
        if ((link | 1) == (hash | 1) && strcmp(d.strings + d.symbols[i].st_name, name) == 0)
            return map->l_addr + d.symbols[i].st_value;
        if (link & 1)
            return 0;
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

unsigned la_version(unsigned version)
{
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    *cookie = OTHER;
    if (namespace != LM_ID_BASE || !map->l_name)
        return 0;
    const char *name = base_name(map->l_name);
    if (strncmp(name, "librung_cublas.so", 17) == 0) {
        rung_map = map;
        *cookie = RUNG;
        return 0;
    }
    if (strncmp(name, "libcublas", 9) == 0) {
        *cookie = CUBLAS;
        return LA_FLG_BINDTO;
    }
    return 0;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                       const char *name)
{
    (void)index;
    *flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
    /* The drop-in itself must find cuBLAS's own functions. */
    if (*flags & LA_SYMB_DLSYM && *to == CUBLAS && *from != RUNG && rung_map) {
        uintptr_t ours = find_defined(rung_map, name);
        if (ours)
            return ours;
    }
    return symbol->st_value;
}
