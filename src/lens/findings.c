/* What was found wrong. Each place and kind counts once; the first of them are kept and told in one sentence each. */
#include "lens.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct place {
    rung_lens_fault fault;
    uintptr_t pc;
} place;

static rung_lens_finding found[LENS_MOST_FINDINGS];
static uintptr_t found_pcs[LENS_MOST_FINDINGS];
static place *more; /* those beyond the kept ones */
static int count, left_out, room;

bool lens_findings_fail;

void lens_findings_begin(void)
{
    const char *wish = getenv("RUNG_LENS_FINDINGS");
    lens_findings_fail = wish && strcmp(wish, "fail") == 0;
    count = left_out = 0;
}

static void leave_out(rung_lens_fault fault, uintptr_t pc)
{
    for (int i = 0; i < left_out; i++)
        if (more[i].fault == fault && more[i].pc == pc)
            return;
    if (left_out == room) {
        room = 2 * room + 64;
        more = realloc(more, (size_t)room * sizeof *more);
        if (!more)
            abort(); /* else a launch would seem better than it is */
    }
    more[left_out++] = (place){.fault = fault, .pc = pc};
}

void lens_find(rung_lens_fault fault, uintptr_t pc, const char *format, ...)
{
    for (int i = 0; i < count; i++)
        if (found[i].fault == fault && found_pcs[i] == pc)
            return;
    if (count == LENS_MOST_FINDINGS) {
        leave_out(fault, pc);
        return;
    }
    rung_lens_finding *f = &found[count];
    memset(f, 0, sizeof *f);
    f->fault = fault;
    unsigned rank = lens_now.current < 0 ? 0 : lens_rank_of(lens_now.current);
    memcpy(f->block, lens_now.index, sizeof f->block);
    f->block[0] += rank;
    f->thread = lens_now.current - (int)(rank * lens_now.block_threads);
    va_list list;
    va_start(list, format);
    vsnprintf(f->text, sizeof f->text, format, list);
    va_end(list);
    found_pcs[count++] = pc;
}

void lens_findings_end(rung_lens_launch *launch, uintptr_t **pcs)
{
    launch->findings_left_out = left_out;
    rung_lens_finding *copy = malloc((size_t)(count + 1) * sizeof *copy);
    *pcs = malloc((size_t)(count + 1) * sizeof **pcs);
    launch->findings = copy;
    if (!copy || !*pcs)
        abort();
    memcpy(copy, found, (size_t)count * sizeof *copy);
    memcpy(*pcs, found_pcs, (size_t)count * sizeof **pcs);
    launch->finding_count = count;
}

void lens_finding_compose(rung_lens_finding *f)
{
    char sentence[sizeof f->text];
    const char *name = strrchr(f->file, '/');
    char line[300] = "";
    if (f->line > 0)
        snprintf(line, sizeof line, ", %s line %d", name ? name + 1 : f->file, f->line);
    snprintf(sentence, sizeof sentence, "block (%u,%u,%u), thread %d%s: %.300s", f->block[0], f->block[1], f->block[2],
             f->thread, line, f->text);
    memcpy(f->text, sentence, sizeof sentence);
}

const char *lens_where_shared(uint32_t offset, char *text, size_t text_bytes)
{
    const lens_array *array = lens_array_at(lens_module_now, offset);
    if (!array)
        snprintf(text, text_bytes, "shared memory at byte %u", offset);
    else
        snprintf(text, text_bytes, "shared %s at byte %u (float %u)", array->name, offset - array->offset,
                 (offset - array->offset) / 4);
    return text;
}

const char *lens_beside_shared(uintptr_t address, char *text, size_t text_bytes)
{
    const int64_t near = LENS_MOST_SHARED_BYTES, at = (int64_t)(address - (uintptr_t)lens_module_now->shared);
    const lens_array *first = NULL;
    for (int i = 0; i < lens_module_now->array_count; i++)
        if (!first || lens_module_now->arrays[i].offset < first->offset)
            first = &lens_module_now->arrays[i];
    if (!first || at < -near || at >= near)
        return NULL;
    if (at < 0)
        snprintf(text, text_bytes, "%lld bytes before shared %s", (long long)(first->offset - at), first->name);
    else
        snprintf(text, text_bytes, "shared memory at byte %lld, which no variable holds", (long long)at);
    return text;
}
