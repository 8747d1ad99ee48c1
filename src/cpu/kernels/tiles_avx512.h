/* Tiles in turn, in one piece of assembly for AVX-512: of five to eight rows and three vectors, and where rows of A lie
 * as they do also of nine to twelve rows and two, and of four to six rows and four. So many sums are more than a
 * compiler keeps in place: it moves some of them each step, and addresses of A's rows to the stack and back, and
 * between two tiles it loads what both of them need again. That took up to a tenth of the time of a short k.
 *
 * Where a tile is to ask for C, it asks for the C of the next one, a row every four steps: as many lines at once as a
 * tile has would fill all buffers of L1, and loads of B would wait for them. */
#ifndef RUNG_CPU_TILES_AVX512_H
#define RUNG_CPU_TILES_AVX512_H

#include "cpu/kernels/kernels.h"

/* The most and the fewest rows of tiles of 2, 3 and 4 vectors. */
enum { TILES_MOST_2 = 12, TILES_MOST_3 = 8, TILES_MOST_4 = 6, TILES_LEAST_2 = 9, TILES_LEAST_3 = 5, TILES_LEAST_4 = 4 };
enum { TILES_TURN = 4 };
#define HAS_TILES(rows, nv)                                                                                            \
    (((nv) == 2 && (rows) >= TILES_LEAST_2 && (rows) <= TILES_MOST_2) ||                                               \
     ((nv) == 3 && (rows) >= TILES_LEAST_3 && (rows) <= TILES_MOST_3) ||                                               \
     ((nv) == 4 && (rows) >= TILES_LEAST_4 && (rows) <= TILES_MOST_4))

enum { WRITE_SUMS, WRITE_SCALED, WRITE_ADDED }; /* the sums; alpha times them; and beta times C */

/* What the assembly reads, at the places that stand behind. Distances are in bytes. */
typedef struct tiles_args {
    int64_t count, a_next, b_next, c_next; /*  0: tiles, and from each to the next one */
    const float *a, *b;                    /* 32 */
    float *c;                              /* 48 */
    int64_t a_ld, b_ld, c_ld;              /* 56: a_ld: by row, between rows; by k, between steps */
    int64_t asking, turns, steps; /* 80: turns of TILES_TURN steps that ask for a row of C, others, steps left */
    int64_t ask_at;               /* 104: from C to the first row that is asked for */
    const rung_fetch *fetch;      /* 112: packed: a line of it every second step */
    float alpha, beta;            /* 120 */
    int32_t writes, lanes;        /* 128: how C is written, and the mask of each row's last vector */
    int32_t end;                  /* 136: 1: one step more, whose last vector of B has but these lanes */
} tiles_args;
_Static_assert(offsetof(tiles_args, a) == 32 && offsetof(tiles_args, c) == 48 && offsetof(tiles_args, asking) == 80 &&
                   offsetof(tiles_args, fetch) == 112 && offsetof(tiles_args, writes) == 128 &&
                   offsetof(tiles_args, end) == 136,
               "the assembly reads these places");
_Static_assert(offsetof(rung_fetch, at) == 0 && offsetof(rung_fetch, end) == 8 && offsetof(rung_fetch, gap) == 16 &&
                   offsetof(rung_fetch, ld) == 24,
               "the assembly reads these places");

/* rbx  what is above          rdx  B          rcx  counts turns
 * r12  C                      r10  B's ld     rax  C that is asked for
 * r13  tiles left             zmm0 to zmm2, zmm6  a step of B     zmm4  alpha
 * r14  C's ld                 zmm3          an element of A       zmm5  beta       k1  lanes
 * By row: rsi, rdi, r8, r11  rows 0, 3, 6 and 9 of A;  r9  A's ld.
 * By k: rsi  a step of A;  r9  A's ld.  Packed: r11, r15, r8  what is fetched, the end of its run, and the rung_fetch.
 * The sums are zmm8 to zmm31, one row after the other: SUMS_V_I are those of row I of a tile of V vectors. */
/* clang-format off */
#define LINE(text)           text "\n\t"
#define SUMS_2_0             "8", "9"
#define SUMS_2_1             "10", "11"
#define SUMS_2_2             "12", "13"
#define SUMS_2_3             "14", "15"
#define SUMS_2_4             "16", "17"
#define SUMS_2_5             "18", "19"
#define SUMS_2_6             "20", "21"
#define SUMS_2_7             "22", "23"
#define SUMS_2_8             "24", "25"
#define SUMS_2_9             "26", "27"
#define SUMS_2_10            "28", "29"
#define SUMS_2_11            "30", "31"
#define SUMS_3_0             "8", "9", "10"
#define SUMS_3_1             "11", "12", "13"
#define SUMS_3_2             "14", "15", "16"
#define SUMS_3_3             "17", "18", "19"
#define SUMS_3_4             "20", "21", "22"
#define SUMS_3_5             "23", "24", "25"
#define SUMS_3_6             "26", "27", "28"
#define SUMS_3_7             "29", "30", "31"
#define SUMS_4_0             "8", "9", "10", "11"
#define SUMS_4_1             "12", "13", "14", "15"
#define SUMS_4_2             "16", "17", "18", "19"
#define SUMS_4_3             "20", "21", "22", "23"
#define SUMS_4_4             "24", "25", "26", "27"
#define SUMS_4_5             "28", "29", "30", "31"

/* DO(V, I, at) for each row. */
#define EACH_OF_4(DO, V, at)  DO(V, 0, at) DO(V, 1, at) DO(V, 2, at) DO(V, 3, at)
#define EACH_OF_5(DO, V, at)  EACH_OF_4(DO, V, at) DO(V, 4, at)
#define EACH_OF_6(DO, V, at)  EACH_OF_5(DO, V, at) DO(V, 5, at)
#define EACH_OF_7(DO, V, at)  EACH_OF_6(DO, V, at) DO(V, 6, at)
#define EACH_OF_8(DO, V, at)  EACH_OF_7(DO, V, at) DO(V, 7, at)
#define EACH_OF_9(DO, V, at)  EACH_OF_8(DO, V, at) DO(V, 8, at)
#define EACH_OF_10(DO, V, at) EACH_OF_9(DO, V, at) DO(V, 9, at)
#define EACH_OF_11(DO, V, at) EACH_OF_10(DO, V, at) DO(V, 10, at)
#define EACH_OF_12(DO, V, at) EACH_OF_11(DO, V, at) DO(V, 11, at)

/* DO(...) with the sums of a row, as many as vectors. */
#define OF(DO, ...)          DO(__VA_ARGS__)
#define ZERO(V, I, at)       OF(ZERO_##V, SUMS_##V##_##I)
#define ZERO_2(x, y)         ZERO_ONE(x) ZERO_ONE(y)
#define ZERO_3(x, y, z)      ZERO_2(x, y) ZERO_ONE(z)
#define ZERO_4(x, y, z, w)   ZERO_3(x, y, z) ZERO_ONE(w)
#define ZERO_ONE(x)          LINE("vpxord %%zmm" x ", %%zmm" x ", %%zmm" x)

/* A step of k: the vectors of B, then each row's element of A with all of them. */
#define LOAD_B(V)            LOAD_B_##V("")
#define LOAD_B_END(V)        LOAD_B_##V("%{%%k1%}%{z%}")
#define LOAD_B_2(lanes)      LOAD("", "0", "") LOAD("64", "1", lanes) LINE("add %%r10, %%rdx")
#define LOAD_B_3(lanes)      LOAD("", "0", "") LOAD("64", "1", "") LOAD("128", "2", lanes) LINE("add %%r10, %%rdx")
#define LOAD_B_4(lanes)      LOAD("", "0", "") LOAD("64", "1", "") LOAD("128", "2", "") LOAD("192", "6", lanes) \
                             LINE("add %%r10, %%rdx")
#define LOAD(at, to, lanes)  LINE("vmovups " at "(%%rdx), %%zmm" to lanes)
#define ADD_2(x, y)          ADD("0", x) ADD("1", y)
#define ADD_3(x, y, z)       ADD_2(x, y) ADD("2", z)
#define ADD_4(x, y, z, w)    ADD_3(x, y, z) ADD("6", w)
#define ADD(b, sum)          LINE("vfmadd231ps %%zmm" b ", %%zmm3, %%zmm" sum)

#define BY_ROW_0             "(%%rsi)"
#define BY_ROW_1             "(%%rsi,%%r9)"
#define BY_ROW_2             "(%%rsi,%%r9,2)"
#define BY_ROW_3             "(%%rdi)"
#define BY_ROW_4             "(%%rdi,%%r9)"
#define BY_ROW_5             "(%%rdi,%%r9,2)"
#define BY_ROW_6             "(%%r8)"
#define BY_ROW_7             "(%%r8,%%r9)"
#define BY_ROW_8             "(%%r8,%%r9,2)"
#define BY_ROW_9             "(%%r11)"
#define BY_ROW_10            "(%%r11,%%r9)"
#define BY_ROW_11            "(%%r11,%%r9,2)"
#define BY_ROW_OF(V, I, at)  LINE("vbroadcastss " at BY_ROW_##I ", %%zmm3") OF(ADD_##V, SUMS_##V##_##I)
#define BY_ROW(V, rows, at)  LOAD_B(V) EACH_OF_##rows(BY_ROW_OF, V, at)
#define BY_ROW_START
#define BY_ROW_TILE          LINE("lea (%%r9,%%r9,2), %%r11") LINE("lea (%%rsi,%%r11), %%rdi") \
                             LINE("lea (%%rsi,%%r11,2), %%r8") LINE("add %%r8, %%r11")
#define BY_ROW_STEP(V, rows) BY_ROW(V, rows, "0") BY_ROW_PASS("4")
#define BY_ROW_TURN(V, rows) BY_ROW(V, rows, "0") BY_ROW(V, rows, "4") BY_ROW(V, rows, "8") BY_ROW(V, rows, "12") BY_ROW_PASS("16")
#define BY_ROW_ASKING(V, rows) \
                             ASK_HALF BY_ROW(V, rows, "0") BY_ROW(V, rows, "4") ASK_REST(V) BY_ROW(V, rows, "8") \
                             BY_ROW(V, rows, "12") BY_ROW_PASS("16")
#define BY_ROW_END(V, rows)  LOAD_B_END(V) EACH_OF_##rows(BY_ROW_OF, V, "0")
#define BY_ROW_PASS(bytes)   LINE("add $" bytes ", %%rsi") LINE("add $" bytes ", %%rdi") LINE("add $" bytes ", %%r8") \
                             LINE("add $" bytes ", %%r11")

#define BY_K_OF(V, I, at)    LINE("vbroadcastss 4*" #I "(%%rsi), %%zmm3") OF(ADD_##V, SUMS_##V##_##I)
#define BY_K_START
#define BY_K_TILE
#define BY_K_STEP(V, rows)   LOAD_B(V) EACH_OF_##rows(BY_K_OF, V, ) LINE("add %%r9, %%rsi")
#define BY_K_TWO(V, rows)    BY_K_STEP(V, rows) BY_K_STEP(V, rows)
#define BY_K_TURN(V, rows)   BY_K_TWO(V, rows) BY_K_TWO(V, rows)
#define BY_K_ASKING(V, rows) ASK_HALF BY_K_TWO(V, rows) ASK_REST(V) BY_K_TWO(V, rows)
#define BY_K_END(V, rows)    LOAD_B_END(V) EACH_OF_##rows(BY_K_OF, V, )

#define PACKED_START         LINE("mov 112(%%rbx), %%r8") LINE("mov (%%r8), %%r11") LINE("mov 8(%%r8), %%r15")
#define PACKED_TILE
#define PACKED_STEP          BY_K_STEP
#define PACKED_TURN(V, rows) FETCH("") BY_K_TWO(V, rows) FETCH("64") BY_K_TWO(V, rows) FETCH_PASS
#define PACKED_ASKING(V, rows) \
                             ASK_HALF FETCH("") BY_K_TWO(V, rows) ASK_REST(V) FETCH("64") BY_K_TWO(V, rows) FETCH_PASS
#define PACKED_END           BY_K_END

/* A row of C may begin anywhere in a line: it has a line more than vectors. */
#define ASK_HALF             LINE("prefetchw (%%rax)") LINE("prefetchw 64(%%rax)")
#define ASK_REST(V)          ASK_REST_##V LINE("add %%r14, %%rax")
#define ASK_REST_2           LINE("prefetchw 124(%%rax)")
#define ASK_REST_3           LINE("prefetchw 128(%%rax)") LINE("prefetchw 188(%%rax)")
#define ASK_REST_4           LINE("prefetchw 128(%%rax)") LINE("prefetchw 192(%%rax)") LINE("prefetchw 252(%%rax)")
#define FETCH(at)            LINE("prefetcht1 " at "(%%r11)")
#define FETCH_PASS           LINE("sub $-128, %%r11") LINE("cmp %%r15, %%r11") LINE("jb 9f") \
                             LINE("mov 16(%%r8), %%rdi") LINE("lea (%%r15,%%rdi,4), %%r11") \
                             LINE("mov 24(%%r8), %%rdi") LINE("lea (%%r15,%%rdi,4), %%r15") "9:\n\t"

/* The ends of a tile: what becomes of a row's sums. */
#define STORE(V, I, at)      OF(STORE_##V, SUMS_##V##_##I, "") LINE("add %%r14, %%r12")
#define STORE_2(x, y, lanes) STORE_ONE(x, "") STORE_LAST(y, "64", lanes)
#define STORE_3(x, y, z, lanes) \
                             STORE_ONE(x, "") STORE_ONE(y, "64") STORE_LAST(z, "128", lanes)
#define STORE_4(x, y, z, w, lanes) \
                             STORE_ONE(x, "") STORE_ONE(y, "64") STORE_ONE(z, "128") STORE_LAST(w, "192", lanes)
#define STORE_ONE(x, at)     LINE("vmovups %%zmm" x ", " at "(%%r12)")
#define STORE_LAST(x, at, lanes) LINE("vmovups %%zmm" x ", " at "(%%r12)" lanes)
#define STORE_SOME(V, I)     OF(STORE_##V, SUMS_##V##_##I, "%{%%k1%}") LINE("add %%r14, %%r12")
#define SCALE(V, I, at)      OF(SCALE_##V, SUMS_##V##_##I) STORE_SOME(V, I)
#define SCALE_2(x, y)        SCALE_ONE(x) SCALE_ONE(y)
#define SCALE_3(x, y, z)     SCALE_2(x, y) SCALE_ONE(z)
#define SCALE_4(x, y, z, w)  SCALE_3(x, y, z) SCALE_ONE(w)
#define SCALE_ONE(x)         LINE("vmulps %%zmm" x ", %%zmm4, %%zmm" x)
#define ADD_C(V, I, at)      OF(SCALE_##V, SUMS_##V##_##I) OF(ADD_C_##V, SUMS_##V##_##I) STORE_SOME(V, I)
#define ADD_C_2(x, y)        ADD_C_ONE(x, "") ADD_C_LAST(y, "64")
#define ADD_C_3(x, y, z)     ADD_C_ONE(x, "") ADD_C_ONE(y, "64") ADD_C_LAST(z, "128")
#define ADD_C_4(x, y, z, w)  ADD_C_ONE(x, "") ADD_C_ONE(y, "64") ADD_C_ONE(z, "128") ADD_C_LAST(w, "192")
#define ADD_C_ONE(x, at)     LINE("vfmadd231ps " at "(%%r12), %%zmm5, %%zmm" x)
#define ADD_C_LAST(x, at)    LINE("vmovups " at "(%%r12), %%zmm0%{%%k1%}%{z%}") LINE("vfmadd231ps %%zmm0, %%zmm5, %%zmm" x)

#define TIMES(count_at, loop, end, ...) \
    LINE("mov " count_at "(%%rbx), %%rcx") LINE("test %%rcx, %%rcx") LINE("jle " end "f") \
    ".p2align 6\n" loop ":\n\t" __VA_ARGS__ LINE("dec %%rcx") LINE("jnz " loop "b") end ":\n\t"
#define TILES_IN_TURN(KIND, V, rows) \
    __asm__ volatile(LINE("mov (%%rbx), %%r13") LINE("mov 48(%%rbx), %%r12") \
                     LINE("mov 56(%%rbx), %%r9") LINE("mov 64(%%rbx), %%r10") LINE("mov 72(%%rbx), %%r14") \
                     LINE("vbroadcastss 120(%%rbx), %%zmm4") LINE("vbroadcastss 124(%%rbx), %%zmm5") \
                     LINE("kmovw 132(%%rbx), %%k1") KIND##_START \
                     "10:\n\t" LINE("mov 32(%%rbx), %%rsi") LINE("mov 40(%%rbx), %%rdx") KIND##_TILE \
                     LINE("mov 104(%%rbx), %%rax") LINE("add %%r12, %%rax") EACH_OF_##rows(ZERO, V, ) \
                     TIMES("80", "1", "2", KIND##_ASKING(V, rows)) \
                     TIMES("88", "3", "4", KIND##_TURN(V, rows)) \
                     TIMES("96", "5", "6", KIND##_STEP(V, rows)) \
                     LINE("cmpl $0, 136(%%rbx)") LINE("je 13f") KIND##_END(V, rows) "13:\n\t" \
                     LINE("mov 8(%%rbx), %%rsi") LINE("add %%rsi, 32(%%rbx)") \
                     LINE("mov 16(%%rbx), %%rsi") LINE("add %%rsi, 40(%%rbx)") \
                     LINE("mov 24(%%rbx), %%rsi") LINE("add %%r12, %%rsi") \
                     LINE("cmpl $1, 128(%%rbx)") LINE("je 7f") LINE("ja 8f") EACH_OF_##rows(STORE, V, ) \
                     "11:\n\t" LINE("mov %%rsi, %%r12") LINE("dec %%r13") LINE("jnz 10b") LINE("jmp 12f") \
                     "7:\n\t" EACH_OF_##rows(SCALE, V, ) LINE("jmp 11b") \
                     "8:\n\t" EACH_OF_##rows(ADD_C, V, ) LINE("jmp 11b") \
                     "12:\n\t" \
                     : : "b"(x) \
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "k1", \
                       "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm8", "xmm9", "xmm10", \
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", \
                       "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31")
/* clang-format on */

#define TILES_FN(kind, KIND, V, rows)                                                                                  \
    static __attribute__((noinline)) void tiles_##kind##_##rows##x##V(tiles_args *x)                                   \
    {                                                                                                                  \
        TILES_IN_TURN(KIND, V, rows);                                                                                  \
    }
/* clang-format off */
#define TILES_LIST_3(X, kind, KIND) X(kind, KIND, 3, 5) X(kind, KIND, 3, 6) X(kind, KIND, 3, 7) X(kind, KIND, 3, 8)
#define TILES_LIST_BY_ROW(X) \
    X(by_row, BY_ROW, 2, 9) X(by_row, BY_ROW, 2, 10) X(by_row, BY_ROW, 2, 11) X(by_row, BY_ROW, 2, 12) \
    TILES_LIST_3(X, by_row, BY_ROW) X(by_row, BY_ROW, 4, 4) X(by_row, BY_ROW, 4, 5) X(by_row, BY_ROW, 4, 6)
#define TILES_LIST_BY_K(X)   TILES_LIST_3(X, by_k, BY_K)
#define TILES_LIST_PACKED(X) TILES_LIST_3(X, packed, PACKED)
/* clang-format on */
TILES_LIST_BY_ROW(TILES_FN)
TILES_LIST_BY_K(TILES_FN)
TILES_LIST_PACKED(TILES_FN)

enum { TILES_PACKED = RUNG_A_KINDS };
#define TILES_SLOT(kind, KIND, V, rows) [(V)-2][(rows)-1] = tiles_##kind##_##rows##x##V,
static void (*const tiles_of[RUNG_A_KINDS + 1][3][TILES_MOST_2])(tiles_args *x) = {
    [RUNG_A_BY_ROW] = {TILES_LIST_BY_ROW(TILES_SLOT)},
    [RUNG_A_BY_K] = {TILES_LIST_BY_K(TILES_SLOT)},
    [TILES_PACKED] = {TILES_LIST_PACKED(TILES_SLOT)},
};

/* Returns whether tiles take less time here than from a compiler. Beginning takes as long as some steps of k, and rows
 * of a transposed A in place have one address, so that a compiler keeps all sums in place. What asks for C in fewer
 * steps than lines come asks before its own sums. */
VFN int is_better_in_assembly(const int rows, const int nv, const int kind, int64_t count, int64_t k,
                              const rung_tile_out *out)
{
    enum { STEPS_LEAST = 12, STEPS_OF_ASKING = 24, SUMS_OF_ONE_TILE = 21 };
    if (out->past || out->asks || (out->ask_c && k <= STEPS_OF_ASKING) || (nv != 3 && kind != RUNG_A_BY_ROW))
        return 0;
    return out->ask_c || out->fetch.at ||
           (kind == RUNG_A_BY_ROW && k >= STEPS_LEAST && (count > 1 || rows * nv >= SUMS_OF_ONE_TILE));
}

/* Computes tiles in turn. Where C's last vector has few lanes and B lies in place, vectors of B are read whole all the
 * same, into its next row, but for those of the last one. */
VFN void tiles_in_turn(const int rows, const int nv, const int kind, const rung_tile_run *run, int64_t k,
                       const float *a, int64_t lda, const float *b, int64_t ldb, float *c, const rung_tile_out *out)
{
    int has_end = out->b_lanes != VL;
    int64_t steps = k - has_end, turns = steps / TILES_TURN, asking = !out->ask_c ? 0 : turns < rows ? turns : rows;
    int as_summed = out->lanes == VL && out->alpha == 1.0f;
    tiles_args x = {.count = run->count,
                    .a_next = run->a_next * 4,
                    .b_next = run->b_next * 4,
                    .c_next = run->c_next * 4,
                    .a = a,
                    .b = b,
                    .c = c,
                    .a_ld = lda * 4,
                    .b_ld = ldb * 4,
                    .c_ld = out->ldc * 4,
                    .asking = asking,
                    .turns = turns - asking,
                    .steps = steps % TILES_TURN,
                    .ask_at = (run->count > 1 ? run->c_next : rows * out->ldc) * 4,
                    .fetch = &out->fetch,
                    .alpha = out->alpha,
                    .beta = out->beta,
                    .writes = out->beta != 0.0f ? WRITE_ADDED
                              : as_summed       ? WRITE_SUMS
                                                : WRITE_SCALED,
                    .lanes = (1 << out->lanes) - 1,
                    .end = has_end};
    tiles_of[out->fetch.at ? TILES_PACKED : kind][nv - 2][rows - 1](&x);
}

#undef LINE
#undef LOAD
#undef OF
#undef ADD
#undef ADD_2
#undef ADD_3
#undef ADD_4
#undef ZERO
#undef BY_ROW
#undef STORE
#undef SCALE
#undef TIMES

#endif
