/* A compiled file (a cubin, which is an ELF file): its functions, and what the compiler noted about their barriers. */
#ifndef RUNG_TOOLS_CUBIN_H
#define RUNG_TOOLS_CUBIN_H

#include "sass.h"

#include <stddef.h>

struct cubin {
    unsigned char *image;
    size_t size;
};

/* A barrier's instruction, as the section .nv.info lists them for tools that watch barriers (compute-sanitizer): its
 * place in the code, and the barrier's address, which is the sum of a register, a uniform register and a constant. */
struct note {
    uint32_t at, base;
    int32_t offset;
    uint8_t kind, known, uniform, stride;
};

enum { NOTE_ARRIVE = 1, NOTE_WAIT = 10, NOTE_NO_UNIFORM = 63 };

/* A function: its code and its notes lie in the cubin's image, and change there. */
struct function {
    const char *name;
    struct word *code;
    int n;
    struct note *notes;
    int note_count;
};

/* Returns false where the file cannot be read or is no ELF file. */
bool cubin_read(struct cubin *cubin, const char *path);

bool cubin_write(const struct cubin *cubin, const char *path);

void cubin_free(struct cubin *cubin);

/* Returns the number of sections, and the function that lies in section i: false where it holds none. */
int cubin_sections(const struct cubin *cubin);
bool cubin_function(const struct cubin *cubin, int i, struct function *f);

#endif
