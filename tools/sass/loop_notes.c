/* The compiler lists each instruction that arrives at a barrier or waits for one, for tools that watch barriers. The
 * old loop's notes become the new one's, which has as many such instructions.
 */
#include "loop.h"

#include <stdlib.h>
#include <string.h>

enum {
    NOTES_MAX = 256,
    RETURN_WITHIN = 4 /* instructions from a wait outside the loop to the branch back into it */
};

static bool inside(const struct old_loop *old, int at)
{
    return at >= old->entry && at <= old->bottom;
}

static int place_of(const struct note *x)
{
    return (int)(x->at / INSTRUCTION_BYTES);
}

/* Returns whether the old loop waited there when a stage was not filled: nothing leads to that code any more. */
static bool was_waited_for(const struct old_loop *old, const struct note *x)
{
    int at = place_of(x);
    if (x->kind != NOTE_WAIT || inside(old, at))
        return false;
    for (int i = at + 1; i < at + RETURN_WITHIN && i < old->n; i++)
        if (opcode(old->code[i]) == OP_BRA && inside(old, (int)branch_target(old->code[i], i)))
            return true;
    return false;
}

static bool is_of_loop(const struct old_loop *old, const struct note *x)
{
    return inside(old, place_of(x)) || was_waited_for(old, x);
}

static int by_place(const void *x, const void *y)
{
    const struct note *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

static struct note note_of(struct word w, int at, const struct note *was)
{
    return (struct note){.at = (uint32_t)(at * INSTRUCTION_BYTES),
                         .base = (uint32_t)field_a(w),
                         .offset = (int32_t)offset(w),
                         .kind = opcode(w) == OP_ARRIVE ? NOTE_ARRIVE : NOTE_WAIT,
                         .known = was->known,
                         .uniform = NOTE_NO_UNIFORM,
                         .stride = was->stride};
}

const char *loop_notes_write(const struct old_loop *old, const struct word *code, int n, const struct function *f)
{
    static struct note notes[NOTES_MAX];
    int next = 0, count = f->note_count;
    if (count < 1 || count > NOTES_MAX)
        return "the compiler noted no barriers, or too many";
    memcpy(notes, f->notes, (size_t)count * sizeof *notes);
    for (int i = 0; i < n; i++) {
        if (opcode(code[i]) != OP_ARRIVE && opcode(code[i]) != OP_PHASECHK)
            continue;
        while (next < count && !is_of_loop(old, &notes[next]))
            next++;
        if (next == count)
            return "the compiler noted fewer barriers";
        notes[next] = note_of(code[i], old->entry + i, &notes[next]);
        next++;
    }
    for (; next < count; next++)
        if (inside(old, place_of(&notes[next])))
            return "the compiler noted more barriers";
    qsort(notes, (size_t)count, sizeof *notes, by_place);
    memcpy(f->notes, notes, (size_t)count * sizeof *notes);
    return NULL;
}
