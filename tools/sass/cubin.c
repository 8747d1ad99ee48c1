/* Reads and writes compiled files: see cubin.h. */
#include "cubin.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* .nv.info is a list of items: a format, an attribute, and two bytes that hold a size where the format says so. */
enum { FORMAT_SIZED = 4, ATTRIBUTE_BARRIERS = 0x39, ITEM_BYTES = 4 };

static unsigned char *read_whole(FILE *file, size_t *size)
{
    if (fseek(file, 0, SEEK_END))
        return NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *image = malloc(*size);
    if (image && fread(image, 1, *size, file) == *size)
        return image;
    free(image);
    return NULL;
}

bool cubin_read(struct cubin *cubin, const char *path)
{
    FILE *file = fopen(path, "rb");
    cubin->image = file ? read_whole(file, &cubin->size) : NULL;
    if (file)
        fclose(file);
    if (cubin->image && cubin->size >= sizeof(Elf64_Ehdr) && !memcmp(cubin->image, ELFMAG, SELFMAG))
        return true;
    fprintf(stderr, "sass: %s is no compiled kernel (cubin)\n", path);
    cubin_free(cubin);
    return false;
}

bool cubin_write(const struct cubin *cubin, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (file && fwrite(cubin->image, 1, cubin->size, file) == cubin->size && !fclose(file))
        return true;
    perror(path);
    return false;
}

void cubin_free(struct cubin *cubin)
{
    free(cubin->image);
    cubin->image = NULL;
}

static const Elf64_Ehdr *header(const struct cubin *cubin)
{
    return (const Elf64_Ehdr *)cubin->image;
}

static const Elf64_Shdr *section(const struct cubin *cubin, int i)
{
    return (const Elf64_Shdr *)(cubin->image + header(cubin)->e_shoff) + i;
}

static const char *section_name(const struct cubin *cubin, int i)
{
    const Elf64_Shdr *names = section(cubin, header(cubin)->e_shstrndx);
    return (const char *)cubin->image + names->sh_offset + section(cubin, i)->sh_name;
}

int cubin_sections(const struct cubin *cubin)
{
    return header(cubin)->e_shnum;
}

static struct note *find_notes(unsigned char *info, size_t size, int *count)
{
    for (size_t i = 0; i + ITEM_BYTES <= size;) {
        size_t bytes = info[i] == FORMAT_SIZED ? info[i + 2] | (size_t)info[i + 3] << 8 : 0;
        if (info[i] == FORMAT_SIZED && info[i + 1] == ATTRIBUTE_BARRIERS) {
            *count = (int)(bytes / sizeof(struct note));
            return (struct note *)(info + i + ITEM_BYTES);
        }
        i += ITEM_BYTES + bytes;
    }
    return NULL;
}

bool cubin_function(const struct cubin *cubin, int i, struct function *f)
{
    static const char code[] = ".text.", info[] = ".nv.info.";
    const char *name = section_name(cubin, i);
    if (strncmp(name, code, sizeof code - 1))
        return false;
    *f = (struct function){.name = name + sizeof code - 1,
                           .code = (struct word *)(cubin->image + section(cubin, i)->sh_offset),
                           .n = (int)(section(cubin, i)->sh_size / INSTRUCTION_BYTES)};
    for (int j = 0; j < cubin_sections(cubin) && !f->notes; j++) {
        const char *other = section_name(cubin, j);
        if (!strncmp(other, info, sizeof info - 1) && !strcmp(other + sizeof info - 1, f->name))
            f->notes =
                find_notes(cubin->image + section(cubin, j)->sh_offset, section(cubin, j)->sh_size, &f->note_count);
    }
    return true;
}
