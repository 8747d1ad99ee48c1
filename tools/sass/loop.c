/* Writes the main loop of a compiled function anew, in place. The new loop is proved before it is written. Where the
 * compiled loop is not what is expected the function stays as compiled, which is as right and slower.
 */
#include "loop.h"

#include <stdio.h>
#include <string.h>

enum { COMPILED_STALL = 4, STALL_ALONE = 1, STALL_COUNTED = 2 };

static bool is_move(struct word w, struct word before, enum gather gather)
{
    if (gather == GATHER_COPIES)
        return opcode(w) == OP_LDGSTS && opcode(before) == OP_LDGSTS;
    return opcode(w) == OP_LDS || opcode(w) == OP_STS;
}

/* Warps that copy or move operands take the issue from those that multiply: they get it over in runs. As compiled they
 * leave three cycles between any two copies, loads or stores. An address may have been made before the first copy of a
 * run, so the stall behind that one stays. Where a scoreboard is raised, a second cycle is left to see it. */
static void gather_moves(struct word *code, int n, enum gather gather)
{
    for (int i = 1; i < n && gather != GATHER_NONE; i++) {
        bool counted = write_scoreboard(code[i]) != NO_SCOREBOARD || read_scoreboard(code[i]) != NO_SCOREBOARD;
        uint64_t cycles = counted ? STALL_COUNTED : STALL_ALONE;
        if (is_move(code[i], code[i - 1], gather) && stall(code[i]) == COMPILED_STALL)
            code[i].high = (code[i].high & ~((uint64_t)STALL_MAX << CONTROL_BIT)) | cycles << CONTROL_BIT;
    }
}

bool loop_function(const struct function *f, const struct tile *tile, enum gather gather, int *written)
{
    static struct old_loop old;
    static struct word code[CODE_MAX];
    int n = 0;
    if (!old_loop_exists(f))
        return true;
    const char *refusal = old_loop_read(&old, f, tile);
    if (!refusal)
        refusal = new_loop_write(&old, code, &n);
    if (!refusal && !loop_prove(&old, code, n))
        refusal = "the new loop was not proved";
    if (!refusal)
        refusal = loop_notes_write(&old, code, n, f);
    if (refusal) {
        fprintf(stderr, "sass loop: %s stays as compiled: %s\n", f->name, refusal);
        return false;
    }
    for (int i = 0; i < room_of(&old); i++)
        f->code[old.entry + i] = i < n ? code[i] : idle(0, 1);
    gather_moves(f->code, old.mark, gather);
    f->code[old.mark] = idle(waits(f->code[old.mark]), STALL_MAX); /* nobody needs the mark any more */
    printf("%s: a loop of %d instructions\n", f->name, n);
    ++*written;
    return true;
}
