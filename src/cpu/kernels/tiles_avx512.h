/* Tiles of five to eight rows and three vectors, in turn, in one piece of assembly for AVX-512. So many sums are more
 * than a compiler keeps in place: it moves some of them each step, and addresses of A's rows to the stack and back, and
 * between two tiles it loads what both of them need again. That took up to a tenth of the time of a short k.
 *
 * Where a tile is to ask for C, it asks for the C of the next one, a row every four steps: as many lines at once as a
 * tile has would fill all buffers of L1, and loads of B would wait for them. */
#ifndef RUNG_CPU_TILES_AVX512_H
#define RUNG_CPU_TILES_AVX512_H

#include "cpu/kernels/kernels.h"

enum { TILES_VECTORS = 3, TILES_ROWS_LEAST = 5, TILES_ROWS_MOST = 8, TILES_TURN = 4 };
#define HAS_TILES(rows, nv) ((nv) == TILES_VECTORS && (rows) >= TILES_ROWS_LEAST && (rows) <= TILES_ROWS_MOST)

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
 * r13  tiles left             zmm0 to zmm2  a step of B           zmm4  alpha
 * r14  C's ld                 zmm3          an element of A       zmm5  beta       k1  lanes
 * By row: rsi, rdi, r8  rows 0, 3 and 6 of A;  r9  A's ld.
 * By k: rsi  a step of A;  r9  A's ld.  Packed: r11, r15, r8  what is fetched, the end of its run, and the rung_fetch.
 */
/* clang-format off */
#define SUMS_0               "8", "9", "10" /* zmm8 to zmm10: row 0 of the tile */
#define SUMS_1               "11", "12", "13"
#define SUMS_2               "14", "15", "16"
#define SUMS_3               "17", "18", "19"
#define SUMS_4               "20", "21", "22"
#define SUMS_5               "23", "24", "25"
#define SUMS_6               "26", "27", "28"
#define SUMS_7               "29", "30", "31"
#define EACH_OF_5(DO)        DO(SUMS_0) DO(SUMS_1) DO(SUMS_2) DO(SUMS_3) DO(SUMS_4)
#define EACH_OF_6(DO)        EACH_OF_5(DO) DO(SUMS_5)
#define EACH_OF_7(DO)        EACH_OF_6(DO) DO(SUMS_6)
#define EACH_OF_8(DO)        EACH_OF_7(DO) DO(SUMS_7)
#define LINE(text)           text "\n\t"

#define ZERO(sums)           ZERO_THREE(sums)
#define ZERO_THREE(x, y, z)  ZERO_ONE(x) ZERO_ONE(y) ZERO_ONE(z)
#define ZERO_ONE(x)          LINE("vpxord %%zmm" x ", %%zmm" x ", %%zmm" x)

/* A step of k: three vectors of B, then each row's element of A with all of them. */
#define LOAD_B               LOAD_B_SOME("")
#define LOAD_B_SOME(lanes)   LINE("vmovups (%%rdx), %%zmm0") LINE("vmovups 64(%%rdx), %%zmm1") \
                             LINE("vmovups 128(%%rdx), %%zmm2" lanes) LINE("add %%r10, %%rdx")
#define LOAD_B_END           LOAD_B_SOME("%{%%k1%}%{z%}")
#define ROW(a_at, sums)      LINE("vbroadcastss " a_at ", %%zmm3") ADD_THREE(sums)
#define ADD_THREE(x, y, z)   ADD("0", x) ADD("1", y) ADD("2", z)
#define ADD(b, sum)          LINE("vfmadd231ps %%zmm" b ", %%zmm3, %%zmm" sum)

#define BY_ROW_5(at)         ROW(at "(%%rsi)", SUMS_0) ROW(at "(%%rsi,%%r9)", SUMS_1) ROW(at "(%%rsi,%%r9,2)", SUMS_2) \
                             ROW(at "(%%rdi)", SUMS_3) ROW(at "(%%rdi,%%r9)", SUMS_4)
#define BY_ROW_6(at)         BY_ROW_5(at) ROW(at "(%%rdi,%%r9,2)", SUMS_5)
#define BY_ROW_7(at)         BY_ROW_6(at) ROW(at "(%%r8)", SUMS_6)
#define BY_ROW_8(at)         BY_ROW_7(at) ROW(at "(%%r8,%%r9)", SUMS_7)
#define BY_ROW_START
#define BY_ROW_TILE          LINE("lea (%%r9,%%r9,2), %%rdi") LINE("lea (%%rsi,%%rdi,2), %%r8") LINE("add %%rsi, %%rdi")
#define BY_ROW_STEP(ROWS)    LOAD_B ROWS("0") BY_ROW_PASS("4")
#define BY_ROW_TURN(ROWS)    LOAD_B ROWS("0") LOAD_B ROWS("4") LOAD_B ROWS("8") LOAD_B ROWS("12") BY_ROW_PASS("16")
#define BY_ROW_ASKING(ROWS)  ASK_HALF LOAD_B ROWS("0") LOAD_B ROWS("4") ASK_REST LOAD_B ROWS("8") LOAD_B ROWS("12") BY_ROW_PASS("16")
#define BY_ROW_END(ROWS)     LOAD_B_END ROWS("0")
#define BY_ROW_PASS(bytes)   LINE("add $" bytes ", %%rsi") LINE("add $" bytes ", %%rdi") LINE("add $" bytes ", %%r8")

#define BY_K_5(at)           ROW(at "(%%rsi)", SUMS_0) ROW(at "+4(%%rsi)", SUMS_1) ROW(at "+8(%%rsi)", SUMS_2) \
                             ROW(at "+12(%%rsi)", SUMS_3) ROW(at "+16(%%rsi)", SUMS_4)
#define BY_K_6(at)           BY_K_5(at) ROW(at "+20(%%rsi)", SUMS_5)
#define BY_K_7(at)           BY_K_6(at) ROW(at "+24(%%rsi)", SUMS_6)
#define BY_K_8(at)           BY_K_7(at) ROW(at "+28(%%rsi)", SUMS_7)
#define BY_K_START
#define BY_K_TILE
#define BY_K_STEP(ROWS)      LOAD_B ROWS("0") LINE("add %%r9, %%rsi")
#define BY_K_TWO(ROWS)       BY_K_STEP(ROWS) BY_K_STEP(ROWS)
#define BY_K_TURN(ROWS)      BY_K_TWO(ROWS) BY_K_TWO(ROWS)
#define BY_K_ASKING(ROWS)    ASK_HALF BY_K_TWO(ROWS) ASK_REST BY_K_TWO(ROWS)
#define BY_K_END(ROWS)       LOAD_B_END ROWS("0")

#define PACKED_5             BY_K_5
#define PACKED_6             BY_K_6
#define PACKED_7             BY_K_7
#define PACKED_8             BY_K_8
#define PACKED_START         LINE("mov 112(%%rbx), %%r8") LINE("mov (%%r8), %%r11") LINE("mov 8(%%r8), %%r15")
#define PACKED_TILE
#define PACKED_STEP(ROWS)    BY_K_STEP(ROWS)
#define PACKED_TURN(ROWS)    FETCH("") BY_K_TWO(ROWS) FETCH("64") BY_K_TWO(ROWS) FETCH_PASS
#define PACKED_ASKING(ROWS)  ASK_HALF FETCH("") BY_K_TWO(ROWS) ASK_REST FETCH("64") BY_K_TWO(ROWS) FETCH_PASS
#define PACKED_END(ROWS)     LOAD_B_END ROWS("0")

/* A row of C may begin anywhere in a line: it has a line more than vectors. */
#define ASK_HALF             LINE("prefetchw (%%rax)") LINE("prefetchw 64(%%rax)")
#define ASK_REST             LINE("prefetchw 128(%%rax)") LINE("prefetchw 188(%%rax)") LINE("add %%r14, %%rax")
#define FETCH(at)            LINE("prefetcht1 " at "(%%r11)")
#define FETCH_PASS           LINE("sub $-128, %%r11") LINE("cmp %%r15, %%r11") LINE("jb 9f") \
                             LINE("mov 16(%%r8), %%rdi") LINE("lea (%%r15,%%rdi,4), %%r11") \
                             LINE("mov 24(%%r8), %%rdi") LINE("lea (%%r15,%%rdi,4), %%r15") "9:\n\t"

/* The ends of a tile: what becomes of a row's sums. */
#define STORE(sums)          STORE_THREE(sums, "")
#define STORE_THREE(...)     STORE_SOME(__VA_ARGS__)
#define STORE_SOME(x, y, z, lanes) \
                             LINE("vmovups %%zmm" x ", (%%r12)") LINE("vmovups %%zmm" y ", 64(%%r12)") \
                             LINE("vmovups %%zmm" z ", 128(%%r12)" lanes) LINE("add %%r14, %%r12")
#define SCALE(sums)          SCALE_THREE(sums) STORE_THREE(sums, "%{%%k1%}")
#define SCALE_THREE(x, y, z) SCALE_ONE(x) SCALE_ONE(y) SCALE_ONE(z)
#define SCALE_ONE(x)         LINE("vmulps %%zmm" x ", %%zmm4, %%zmm" x)
#define ADD_C(sums)          SCALE_THREE(sums) ADD_C_THREE(sums) STORE_THREE(sums, "%{%%k1%}")
#define ADD_C_THREE(x, y, z) LINE("vmovups 128(%%r12), %%zmm0%{%%k1%}%{z%}") LINE("vfmadd231ps (%%r12), %%zmm5, %%zmm" x) \
                             LINE("vfmadd231ps 64(%%r12), %%zmm5, %%zmm" y) LINE("vfmadd231ps %%zmm0, %%zmm5, %%zmm" z)

#define TIMES(count_at, loop, end, ...) \
    LINE("mov " count_at "(%%rbx), %%rcx") LINE("test %%rcx, %%rcx") LINE("jle " end "f") \
    ".p2align 6\n" loop ":\n\t" __VA_ARGS__ LINE("dec %%rcx") LINE("jnz " loop "b") end ":\n\t"
#define TILES_IN_TURN(KIND, rows) \
    __asm__ volatile(LINE("mov (%%rbx), %%r13") LINE("mov 48(%%rbx), %%r12") \
                     LINE("mov 56(%%rbx), %%r9") LINE("mov 64(%%rbx), %%r10") LINE("mov 72(%%rbx), %%r14") \
                     LINE("vbroadcastss 120(%%rbx), %%zmm4") LINE("vbroadcastss 124(%%rbx), %%zmm5") \
                     LINE("kmovw 132(%%rbx), %%k1") KIND##_START \
                     "10:\n\t" LINE("mov 32(%%rbx), %%rsi") LINE("mov 40(%%rbx), %%rdx") KIND##_TILE \
                     LINE("mov 104(%%rbx), %%rax") LINE("add %%r12, %%rax") EACH_OF_##rows(ZERO) \
                     TIMES("80", "1", "2", KIND##_ASKING(KIND##_##rows)) \
                     TIMES("88", "3", "4", KIND##_TURN(KIND##_##rows)) \
                     TIMES("96", "5", "6", KIND##_STEP(KIND##_##rows)) \
                     LINE("cmpl $0, 136(%%rbx)") LINE("je 13f") KIND##_END(KIND##_##rows) "13:\n\t" \
                     LINE("mov 8(%%rbx), %%rsi") LINE("add %%rsi, 32(%%rbx)") \
                     LINE("mov 16(%%rbx), %%rsi") LINE("add %%rsi, 40(%%rbx)") \
                     LINE("mov 24(%%rbx), %%rsi") LINE("add %%r12, %%rsi") \
                     LINE("cmpl $1, 128(%%rbx)") LINE("je 7f") LINE("ja 8f") EACH_OF_##rows(STORE) \
                     "11:\n\t" LINE("mov %%rsi, %%r12") LINE("dec %%r13") LINE("jnz 10b") LINE("jmp 12f") \
                     "7:\n\t" EACH_OF_##rows(SCALE) LINE("jmp 11b") \
                     "8:\n\t" EACH_OF_##rows(ADD_C) LINE("jmp 11b") \
                     "12:\n\t" \
                     : : "b"(x) \
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "k1", \
                       "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm8", "xmm9", "xmm10", "xmm11", \
                       "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", \
                       "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31")
/* clang-format on */

#define TILES_FN(kind, KIND, rows)                                                                                     \
    static __attribute__((noinline)) void tiles_##kind##_##rows(tiles_args *x)                                         \
    {                                                                                                                  \
        TILES_IN_TURN(KIND, rows);                                                                                     \
    }
#define TILES_FNS(kind, KIND)                                                                                          \
    TILES_FN(kind, KIND, 5) TILES_FN(kind, KIND, 6) TILES_FN(kind, KIND, 7) TILES_FN(kind, KIND, 8)
TILES_FNS(by_row, BY_ROW)
TILES_FNS(by_k, BY_K)
TILES_FNS(packed, PACKED)

enum { TILES_PACKED = RUNG_A_KINDS };
#define TILES_ROW(kind)                                                                                                \
    {                                                                                                                  \
        tiles_##kind##_5, tiles_##kind##_6, tiles_##kind##_7, tiles_##kind##_8                                         \
    }
static void (*const tiles_of[RUNG_A_KINDS + 1][TILES_ROWS_MOST - TILES_ROWS_LEAST + 1])(tiles_args *x) = {
    [RUNG_A_BY_ROW] = TILES_ROW(by_row),
    [RUNG_A_BY_K] = TILES_ROW(by_k),
    [TILES_PACKED] = TILES_ROW(packed),
};

/* Returns whether tiles take less time here than from a compiler. Beginning takes as long as some steps of k, and rows
 * of a transposed A in place have one address, so that a compiler keeps all sums in place. What asks for C in fewer
 * steps than lines come asks before its own sums. */
VFN int is_better_in_assembly(const int rows, const int kind, int64_t count, int64_t k, const rung_tile_out *out)
{
    enum { STEPS_LEAST = 12, STEPS_OF_ASKING = 24, ROWS_OF_ONE_TILE = 7 };
    if (out->past || out->asks || (out->ask_c && k <= STEPS_OF_ASKING))
        return 0;
    return out->ask_c || out->fetch.at ||
           (kind == RUNG_A_BY_ROW && k >= STEPS_LEAST && (count > 1 || rows >= ROWS_OF_ONE_TILE));
}

/* Computes tiles in turn. Where C's last vector has few lanes and B lies in place, vectors of B are read whole all the
 * same, into its next row, but for those of the last one. */
VFN void tiles_in_turn(const int rows, const int kind, const rung_tile_run *run, int64_t k, const float *a, int64_t lda,
                       const float *b, int64_t ldb, float *c, const rung_tile_out *out)
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
    tiles_of[out->fetch.at ? TILES_PACKED : kind][rows - TILES_ROWS_LEAST](&x);
}

#undef SUMS_0
#undef SUMS_1
#undef SUMS_2
#undef SUMS_3
#undef SUMS_4
#undef SUMS_5
#undef SUMS_6
#undef SUMS_7
#undef LINE
#undef ZERO
#undef ROW
#undef ADD
#undef STORE
#undef SCALE
#undef TIMES

#endif
