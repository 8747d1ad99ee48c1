/* Compiled kernel files: each .cu is one shared object, its __shared__ variables are in thread-local storage, and
 * addr2line knows its lines. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lens.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_MODULES = 256, CACHE = 1024 };

static lens_module modules[MOST_MODULES];
static int module_count;
static uint8_t *array_map; /* for the current module: 1 + the index of the array that a 4-byte word belongs to */
static size_t array_map_words;

/* ---- the object's own symbol table: thread-local variables with their places and sizes ---- */

/* Returns the last name in a mangled one: _ZZ4kernE6a_tile is a_tile. */
static void plain_name(const char *mangled, char *name, size_t bytes)
{
    size_t length = strlen(mangled);
    snprintf(name, bytes, "%s", mangled);
    if (strncmp(mangled, "_Z", 2) != 0)
        return;
    for (size_t i = 2; i < length; i++) {
        if (mangled[i] < '1' || mangled[i] > '9' || (mangled[i - 1] >= '0' && mangled[i - 1] <= '9'))
            continue;
        char *end;
        size_t n = strtoul(mangled + i, &end, 10);
        size_t from = (size_t)(end - mangled);
        if (from + n == length || (from + n < length && mangled[from + n] == '_'))
            snprintf(name, bytes, "%.*s", (int)n, end);
    }
}

/* Returns the dynamic array that was found before: the names of all others are names of the same memory. */
static lens_array *dynamic_array(lens_module *module)
{
    for (int i = 0; i < module->array_count; i++)
        if (module->arrays[i].dynamic)
            return &module->arrays[i];
    return NULL;
}

static void add_array(lens_module *module, const Elf64_Sym *symbol, const char *name)
{
    const bool dynamic = symbol->st_size == LENS_MOST_SHARED_BYTES;
    lens_array *known = dynamic ? dynamic_array(module) : NULL;
    if (known) {
        char plain[sizeof known->name];
        plain_name(name, plain, sizeof plain);
        const size_t length = strlen(known->name);
        snprintf(known->name + length, sizeof known->name - length, "/%s", plain);
        return;
    }
    if (module->array_count++ >= LENS_MOST_ARRAYS)
        return; /* the caller refuses such a file */
    lens_array *a = &module->arrays[module->array_count - 1];
    plain_name(name, a->name, sizeof a->name);
    a->offset = (uint32_t)symbol->st_value;
    a->bytes = (uint32_t)symbol->st_size;
    a->dynamic = dynamic;
    if (strncmp(name, "_ZZ", 3) == 0) {
        char *end;
        unsigned long length = strtoul(name + 3 + (name[3] == 'L'), &end, 10);
        snprintf(a->owner, sizeof a->owner, "%.*s", (int)length, end);
    }
}

/* A kernel is a function of C that others see; its helpers have C++'s names. */
static bool is_kernel(const Elf64_Sym *symbol, const char *name)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL &&
           symbol->st_shndx != SHN_UNDEF && strncmp(name, "_Z", 2) != 0;
}

/* Returns whether the object has the variable whose address tells where the others lie. */
static bool read_symbols(lens_module *module, const unsigned char *image, size_t bytes, uint32_t *anchor)
{
    bool found = false;
    const Elf64_Ehdr *header = (const void *)image;
    if (bytes < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    const Elf64_Phdr *segments = (const void *)(image + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_TLS)
            module->shared_bytes = segments[i].p_memsz;
        uintptr_t end = module->base + segments[i].p_vaddr + segments[i].p_memsz;
        if (segments[i].p_type == PT_LOAD && end > module->end)
            module->end = end;
    }
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    const char *titles = (const char *)image + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++) {
        if (strcmp(titles + sections[i].sh_name, "__patchable_function_entries") == 0) {
            module->room = module->base + sections[i].sh_addr;
            module->room_bytes = sections[i].sh_size;
        }
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
        const char *strings = (const char *)image + sections[sections[i].sh_link].sh_offset;
        for (size_t j = 0; j < sections[i].sh_size / sizeof *symbols; j++) {
            const char *name = strings + symbols[j].st_name;
            module->kernel_count += is_kernel(&symbols[j], name);
            if (ELF64_ST_TYPE(symbols[j].st_info) != STT_TLS)
                continue;
            if (strcmp(name, "rung_lens_anchor") == 0) {
                *anchor = (uint32_t)symbols[j].st_value;
                found = true;
            } else {
                add_array(module, &symbols[j], name);
            }
        }
    }
    return found;
}

static bool read_object(lens_module *module, uint32_t *anchor)
{
    FILE *file = fopen(module->path, "rb");
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    unsigned char *image = bytes > 0 ? malloc((size_t)bytes) : NULL;
    bool good = image && fread(image, 1, (size_t)bytes, file) == (size_t)bytes &&
                read_symbols(module, image, (size_t)bytes, anchor);
    free(image);
    fclose(file);
    return good;
}

/* The hooks that a kernel's object calls live in this library, which its opener may have kept to itself. */
static void show_hooks(void)
{
    Dl_info info;
    if (dladdr((void *)(uintptr_t)show_hooks, &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

static lens_module *open_module(const char *path, const char *stem, char *why, size_t why_bytes)
{
    if (module_count == MOST_MODULES) {
        snprintf(why, why_bytes, "more than %d kernel files are open", MOST_MODULES);
        return NULL;
    }
    lens_module *module = &modules[module_count];
    memset(module, 0, sizeof *module);
    snprintf(module->path, sizeof module->path, "%s", path);
    snprintf(module->stem, sizeof module->stem, "%s", stem);
    show_hooks();
    module->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct link_map *map = NULL;
    if (!module->handle || dlinfo(module->handle, RTLD_DI_LINKMAP, &map) != 0) {
        snprintf(why, why_bytes, "%s does not load: %s", path, dlerror());
        return NULL;
    }
    if (dlsym(module->handle, "rung_lens_fma") && !__builtin_cpu_supports("fma")) {
        snprintf(why, why_bytes, "%s was made on a processor with FMA, which this one lacks: remove it", path);
        dlclose(module->handle);
        return NULL;
    }
    module->base = map->l_addr;
    uint32_t anchor = 0;
    unsigned char *at = dlsym(module->handle, "rung_lens_anchor");
    if (!at || !read_object(module, &anchor)) {
        snprintf(why, why_bytes, "%s was not made for the lens", path);
        dlclose(module->handle);
        return NULL;
    }
    if (module->array_count > LENS_MOST_ARRAYS) {
        snprintf(why, why_bytes, "%s has %d __shared__ variables: the lens knows %d of a file at most", stem,
                 module->array_count, LENS_MOST_ARRAYS);
        dlclose(module->handle);
        return NULL;
    }
    module->shared = at - anchor;
    module_count++;
    return module;
}

lens_module *lens_module_find(const char *symbol, char *why, size_t why_bytes)
{
    lens_object object;
    if (!lens_object_find(symbol, &object, why, why_bytes))
        return NULL;
    for (int i = 0; i < module_count; i++)
        if (strcmp(modules[i].path, object.path) == 0)
            return &modules[i];
    return open_module(object.path, object.stem, why, why_bytes);
}

lens_module *lens_module_open(const char *path, const char *stem, char *why, size_t why_bytes)
{
    return open_module(path, stem, why, why_bytes);
}

void lens_module_enter(lens_module *module, uint32_t dynamic_bytes)
{
    lens_module_now = module;
    size_t need = module->shared_bytes / 4 + 1;
    if (need > array_map_words) {
        free(array_map);
        array_map = malloc(need);
        array_map_words = array_map ? need : 0;
        if (!array_map)
            abort();
    }
    memset(array_map, 0, need);
    for (int i = 0; i < module->array_count; i++) {
        lens_array *a = &module->arrays[i];
        if (a->dynamic)
            a->bytes = dynamic_bytes;
        memset(array_map + a->offset / 4, i + 1, (a->bytes + 3) / 4);
    }
}

/* What stands in a function that kernels call, or in none, is a file's only kernel's. Where there are several nothing
 * tells whose it is, and it is not counted. */
uint32_t lens_static_bytes(const lens_module *module, const char *kernel)
{
    uint32_t bytes = 0;
    for (int i = 0; i < module->array_count; i++)
        if (!module->arrays[i].dynamic && (module->kernel_count == 1 || strcmp(module->arrays[i].owner, kernel) == 0))
            bytes += module->arrays[i].bytes;
    return bytes;
}

/* The list names where each kernel's empty bytes begin; the kernel's own are those that end at its entry. */
unsigned lens_bound(const lens_module *module, void (*entry)(void))
{
    enum { EMPTY = 0x90 }; /* the instruction that does nothing */
    const uintptr_t *room = (const uintptr_t *)module->room, end = (uintptr_t)entry;
    for (size_t i = 0; i < module->room_bytes / sizeof *room; i++) {
        const unsigned char *at = (const unsigned char *)room[i];
        while ((uintptr_t)at < end && end - room[i] <= UINT16_MAX && *at == EMPTY)
            at++;
        if ((uintptr_t)at == end)
            return (unsigned)(end - room[i]);
    }
    return 0;
}

const lens_array *lens_array_at(const lens_module *module, uint32_t offset)
{
    size_t word = offset / 4;
    int index = word < module->shared_bytes / 4 + 1 ? array_map[word] : 0;
    return index ? &module->arrays[index - 1] : NULL;
}

/* ---- lines ---- */

typedef struct cached_line {
    const lens_module *module;
    uintptr_t pc;
    int line;
    char file[256];
} cached_line;

static cached_line cache[CACHE];

static cached_line *cached(uintptr_t pc)
{
    return &cache[(pc * 0x9e3779b97f4a7c15ull >> 40) % CACHE];
}

/* addr2line prints the address, then a line "file:number" for each frame, innermost first. The kernel's own file
 * counts, not the mechanism header that a frame was inlined from. */
static void take_frame(cached_line *entry, char *text, bool *settled)
{
    if (*settled)
        return;
    char *discriminator = strstr(text, " (");
    if (discriminator)
        *discriminator = 0;
    char *colon = strrchr(text, ':');
    if (!colon || text[0] == '?')
        return;
    *colon = 0;
    int line = atoi(colon + 1);
    if (line <= 0)
        return;
    snprintf(entry->file, sizeof entry->file, "%.255s", text);
    entry->line = line;
    *settled = !strstr(text, "/device/") && !strstr(text, "/lens/cuda/");
}

static void look_up(const lens_module *module, const uintptr_t *pcs, int count)
{
    size_t room = strlen(module->path) + 64 + (size_t)count * 20;
    char *command = malloc(room);
    if (!command)
        return;
    size_t at = (size_t)snprintf(command, room, "addr2line -a -i -e '%s'", module->path);
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(command + at, room - at, " 0x%lx", (unsigned long)(pcs[i] - module->base - 1));
    snprintf(command + at, room - at, " 2>/dev/null");
    FILE *pipe = popen(command, "r");
    char text[600];
    cached_line *entry = NULL;
    bool settled = false;
    for (int i = -1; pipe && fgets(text, sizeof text, pipe);) {
        text[strcspn(text, "\n")] = 0;
        if (strncmp(text, "0x", 2) == 0) {
            if (++i >= count)
                break;
            entry = cached(pcs[i]);
            *entry = (cached_line){.module = module, .pc = pcs[i]};
            settled = false;
        } else if (entry) {
            take_frame(entry, text, &settled);
        }
    }
    if (pipe)
        pclose(pipe);
    free(command);
}

void lens_lines(const lens_module *module, const uintptr_t *pcs, int count, char (*files)[256], int *lines)
{
    for (int i = 0; i < count; i++) {
        const cached_line *entry = cached(pcs[i]);
        if (entry->module != module || entry->pc != pcs[i]) {
            int some = count - i < 200 ? count - i : 200;
            look_up(module, pcs + i, some);
            if (entry->pc != pcs[i]) /* another of them took its place in the cache */
                look_up(module, pcs + i, 1);
        }
        memset(files[i], 0, sizeof files[i]);
        lines[i] = 0;
        if (entry->module == module && entry->pc == pcs[i]) {
            memcpy(files[i], entry->file, sizeof entry->file);
            lines[i] = entry->line;
        }
    }
}
