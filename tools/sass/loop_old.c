/* Reads the compiled main loop: where it stands, which sum is in which register at its end, what the new one may use.
 * What is not as device/written_loop.inc makes it is refused with a reason.
 */
#include "loop.h"

#include <string.h>

/* The mark is a store of the loop's inputs, to a place behind the barriers that nobody reads. The place tells how A
 * lies (ptx_loop_inputs in device/ptx.h). */
enum { MARK_K_OUTERMOST = 0x100, MARK_K_INNERMOST = 0x110 };

enum kind { OTHER, OF_A, OF_B };

/* What registers hold while the compiled loop is gone through. */
struct contents {
    enum kind address[REGISTERS], element[REGISTERS];
    int index[REGISTERS]; /* of an element: its row among the lane's, or its column */
};

static bool is_mark(struct word w)
{
    return (opcode(w) == OP_STS || opcode(w) == OP_STS_U) && width(w) == WIDTH_128 &&
           (offset(w) == MARK_K_OUTERMOST || offset(w) == MARK_K_INNERMOST);
}

static int count_fmas(const struct word *code, int from, int to)
{
    int fmas = 0;
    for (int i = from; i < to; i++)
        fmas += opcode(code[i]) == OP_FFMA;
    return fmas;
}

/* Returns where the loop begins whose last instruction is i; i itself where there is no loop as long as a stage. */
static int loop_top(const struct word *code, int i)
{
    if (opcode(code[i]) != OP_BRA)
        return i;
    int64_t to = branch_target(code[i], i);
    return to >= 0 && to < i && count_fmas(code, (int)to, i) >= BK * BLOCK_FMAS ? (int)to : i;
}

bool old_loop_exists(const struct function *f)
{
    for (int i = 0; i < f->n; i++)
        if (loop_top(f->code, i) < i)
            return true;
    return false;
}

/* The mark is the last store of its kind before the loop. Stores of results behind the loop may look the same. */
static const char *find_mark(struct old_loop *old)
{
    old->mark = old->full = old->uniform = -1;
    for (int i = 0, fmas = 0; i < old->n && fmas < BLOCK_FMAS; i++) {
        fmas += opcode(old->code[i]) == OP_FFMA;
        if (is_mark(old->code[i]))
            old->mark = i;
    }
    if (old->mark < 0)
        return "no mark";
    struct word mark = old->code[old->mark];
    if (opcode(mark) == OP_STS)
        old->full = field_a(mark);
    else
        old->uniform = uniform_address(mark);
    old->inputs = field_b(mark);
    old->tile.k_innermost = offset(mark) == MARK_K_INNERMOST;
    return NULL;
}

static const char *find_loop(struct old_loop *old)
{
    for (int i = old->mark; i < old->n; i++) {
        int top = loop_top(old->code, i);
        if (top == i || top <= old->mark)
            continue;
        old->bottom = i;
        old->entry = old->mark;
        while (old->entry < old->n && opcode(old->code[old->entry]) != OP_LDS)
            old->entry++;
        return old->entry < top ? NULL : "no loads before the loop";
    }
    return "no loop";
}

/* ---- which sum is where ---- */

/* Follows an address that is made of another: by addition or, where A is swizzled, by exclusive or. */
static void follow_address(struct contents *c, struct word w)
{
    int from = field_a(w), d = field_d(w), other = RZ;
    switch (opcode(w)) {
    case OP_IMAD_I:
    case OP_LOP3_I:
    case OP_IADD3_I: other = field_c(w); break;
    case OP_IADD3: other = field_b(w); break;
    case OP_VIADD_I: break;
    case OP_LEA: c->address[d] = c->address[field_b(w)]; return;
    default: return;
    }
    if (!c->address[from])
        from = other;
    if (from != RZ && d != RZ)
        c->address[d] = c->address[from];
}

static const char *follow_load(struct contents *c, const struct tile *tile, struct word w)
{
    int d = field_d(w), at = (int)offset(w);
    enum kind kind = c->address[field_a(w)];
    if (kind == OTHER || width(w) != WIDTH_128 || d + VECTOR > RZ)
        return "a load from elsewhere, or of another width";
    for (int e = 0; e < VECTOR; e++) {
        c->element[d + e] = kind;
        if (kind == OF_B)
            c->index[d + e] = at % b_row_bytes(tile) / B_LOAD_BYTES * VECTOR + e;
        else if (tile->k_innermost)
            c->index[d + e] = at / a_row_bytes(tile);
        else
            c->index[d + e] = at % a_row_bytes(tile) / A_LOAD_BYTES * VECTOR + e;
        if (c->index[d + e] >= (kind == OF_B ? TN : TM))
            return "a load of an element that a lane does not need";
    }
    return NULL;
}

static const char *follow_fma(struct old_loop *old, struct contents *c, struct word w)
{
    int a = field_a(w), b = field_b(w), d = field_d(w);
    if (c->element[a] != OF_A) {
        a = field_b(w);
        b = field_a(w);
    }
    if (c->element[a] != OF_A || c->element[b] != OF_B)
        return "an FFMA of something else";
    old->result[c->index[a]][c->index[b]] = d;
    c->element[d] = OTHER;
    return NULL;
}

static const char *find_results(struct old_loop *old)
{
    static struct contents c;
    const char *refusal = NULL;
    memset(&c, 0, sizeof c);
    c.address[old->inputs] = OF_A;
    c.address[old->inputs + 1] = OF_B;
    memset(old->result, -1, sizeof old->result);
    for (int i = old->mark + 1; i <= old->bottom && !refusal; i++) {
        struct word w = old->code[i];
        if (opcode(w) == OP_LDS)
            refusal = follow_load(&c, &old->tile, w);
        else if (opcode(w) == OP_FFMA)
            refusal = follow_fma(old, &c, w);
        else
            follow_address(&c, w);
    }
    for (int i = 0; i < TM * TN && !refusal; i++)
        if (old->result[i / TN][i % TN] < 0)
            refusal = "a sum is missing";
    return refusal;
}

/* ---- which registers are free ---- */

/* Notes what an instruction of the old loop writes. Returns false where that is not known. */
static bool own(struct old_loop *old, struct word w)
{
    switch (opcode(w)) {
    case OP_LDS:
        for (int e = 0; e < VECTOR; e++)
            old->owned[field_d(w) + e] = true;
        return true;
    case OP_FFMA: old->owned[field_d(w)] = old->owned[field_c(w)] = true; return true;
    case OP_ISETP_I:
    case OP_ISETP:
    case OP_ISETP_U:
    case OP_PHASECHK: old->predicate[predicate_set(w)] = true; return true;
    case OP_IADD3_I:
    case OP_IADD3:
    case OP_VIADD_I:
    case OP_IMAD_I:
    case OP_LOP3_I:
    case OP_LOP3:
    case OP_SHF_I:
    case OP_MOV:
    case OP_MOV_U:
    case OP_CS2R:
    case OP_SEL:
    case OP_SEL_I:
    case OP_LEA_U:
    case OP_LEA:
        if (field_d(w) != RZ)
            old->owned[field_d(w)] = true;
        return true;
    case OP_BRA:
    case OP_ARRIVE:
    case OP_NOP:
    case OP_BSSY:
    case OP_BSYNC:
    case OP_YIELD:
    case OP_WARPSYNC:
    case OP_HFMA2: /* these two could be used too, but are not looked at */
    case OP_HFMA2_I: return true;
    default: return false;
    }
}

/* Registers and predicates that the old loop writes are free for the new one; its inputs are not. */
static const char *find_owned(struct old_loop *old)
{
    for (int i = old->entry; i <= old->bottom; i++)
        if (!own(old, old->code[i]))
            return "an instruction that is not known";
    for (int i = old->mark + 1; i < old->entry; i++) {
        int d = field_d(old->code[i]), input = d - old->inputs;
        bool names_d = opcode(old->code[i]) != OP_BRA && opcode(old->code[i]) != OP_BSSY;
        if (names_d && ((input >= 0 && input < VECTOR) || d == old->full))
            return "an input changes before the loop";
    }
    for (int e = 0; e < VECTOR; e++)
        old->owned[old->inputs + e] = false;
    if (old->full >= 0 && old->owned[old->full])
        return "the barrier's register changes in the loop";
    return NULL;
}

const char *old_loop_read(struct old_loop *old, const struct function *f, const struct tile *tile)
{
    *old = (struct old_loop){.code = f->code, .n = f->n, .tile = *tile};
    const char *refusal = find_mark(old);
    if (!refusal)
        refusal = find_loop(old);
    if (!refusal)
        refusal = find_results(old);
    return refusal ? refusal : find_owned(old);
}
