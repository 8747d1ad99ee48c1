/* The kernels in an object that the lens has compiled of a file of the user's own: the C functions that it exports. */
#include "lab/lens.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

static int names_in(const char *image, const char *only, char names[][LAB_LENS_NAME_BYTES], int most)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)image;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(image + head->e_shoff);
    int count = 0;
    for (int s = 0; s < head->e_shnum; s++) {
        if (sections[s].sh_type != SHT_DYNSYM)
            continue;
        const ElfW(Sym) *symbols = (const ElfW(Sym) *)(image + sections[s].sh_offset);
        const char *texts = image + sections[sections[s].sh_link].sh_offset;
        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols && count < most; i++) {
            const char *name = texts + symbols[i].st_name;
            /* C++'s names, and those of the compiler, begin with an underscore. */
            if ((symbols[i].st_info & 0xf) == STT_FUNC && symbols[i].st_shndx != SHN_UNDEF && *name != '_' &&
                (!only || strcmp(name, only) == 0))
                snprintf(names[count++], LAB_LENS_NAME_BYTES, "%s", name);
        }
    }
    qsort(names, (size_t)count, LAB_LENS_NAME_BYTES, compare);
    return count;
}

int lab_lens_kernels(const char *object, const char *only, char names[][LAB_LENS_NAME_BYTES], int most)
{
    int file = open(object, O_RDONLY | O_CLOEXEC), count = 0;
    struct stat info;
    if (file < 0)
        return 0;
    if (fstat(file, &info) == 0) {
        void *image = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (image != MAP_FAILED) {
            count = names_in(image, only, names, most);
            munmap(image, (size_t)info.st_size);
        }
    }
    close(file);
    return count;
}
