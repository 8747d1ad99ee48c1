/* rung_cublas_enable: puts the drop-in in front of a process that is already running. It reads every loaded object's
 * table of imported addresses and points the slots of cuBLAS's FP32 products at this library's functions. */
#define _GNU_SOURCE
#include "rung.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns how many slots were changed; -1 when a page could not be made writable. No other thread may be inside
 * cuBLAS meanwhile. */
RUNG_API int rung_cublas_enable(void);

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOBAL_DATA = R_X86_64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOBAL_DATA = R_AARCH64_GLOB_DAT };
#endif

typedef struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * lists[2];
    size_t bytes[2];
} tables;

static uintptr_t at(uintptr_t base, uintptr_t value)
{
    return value < base ? value + base : value;
}

static void read_tables(const ElfW(Dyn) * dynamic, uintptr_t base, tables *t)
{
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_val;
        switch (dynamic->d_tag) {
        case DT_SYMTAB: t->symbols = (const void *)at(base, value); break;
        case DT_STRTAB: t->strings = (const void *)at(base, value); break;
        case DT_JMPREL: t->lists[0] = (const void *)at(base, value); break;
        case DT_PLTRELSZ: t->bytes[0] = value; break;
        case DT_RELA: t->lists[1] = (const void *)at(base, value); break;
        case DT_RELASZ: t->bytes[1] = value; break;
        default: break;
        }
    }
}

static int write_slot(void **slot, void *function)
{
    if (*slot == function)
        return 0;
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)slot & ~(page_bytes - 1);
    /* In most libraries the page was read-only after relocation. It is left writable, as lazy binding leaves it in the
     * others. */
    if (mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) != 0)
        return -1;
    *slot = function;
    return 1;
}

typedef struct walk {
    void *self; /* this library may have been opened by dlopen */
    uintptr_t own_base;
    int changed;
} walk;

static void patch_list(const tables *t, int list, uintptr_t base, walk *w)
{
    for (size_t i = 0; i < t->bytes[list] / sizeof(ElfW(Rela)); i++) {
        const ElfW(Rela) *r = &t->lists[list][i];
        if (ELF64_R_TYPE(r->r_info) != JUMP_SLOT && ELF64_R_TYPE(r->r_info) != GLOBAL_DATA)
            continue;
        const char *name = t->strings + t->symbols[ELF64_R_SYM(r->r_info)].st_name;
        if (strncmp(name, "cublas", 6) != 0)
            continue;
        void *ours = dlsym(w->self, name);
        Dl_info owner;
        if (!ours || !dladdr(ours, &owner) || (uintptr_t)owner.dli_fbase != w->own_base)
            continue;
        int wrote = write_slot((void **)(base + r->r_offset), ours);
        w->changed = wrote < 0 || w->changed < 0 ? -1 : w->changed + wrote;
    }
}

static int patch_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    walk *w = data;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(name, "libcublas", 9) == 0 || strncmp(name, "librung", 7) == 0)
        return 0; /* what cuBLAS calls of itself stays as it is */
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        tables t = {0};
        read_tables((const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), info->dlpi_addr, &t);
        for (int list = 0; list < 2; list++)
            if (t.symbols && t.strings && t.lists[list])
                patch_list(&t, list, info->dlpi_addr, w);
    }
    return 0;
}

int rung_cublas_enable(void)
{
    Dl_info me;
    if (!dladdr((void *)(uintptr_t)rung_cublas_enable, &me))
        return -1;
    walk w = {.self = dlopen(me.dli_fname, RTLD_LAZY | RTLD_NOLOAD), .own_base = (uintptr_t)me.dli_fbase};
    if (!w.self)
        return -1;
    dl_iterate_phdr(patch_object, &w);
    return w.changed; /* it stays open, whoever else closes it: slots point into it now */
}
