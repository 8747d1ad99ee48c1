/* The split, the product and the launcher of the fp16x3 method share this, on host and device.
 * An operand line (row of op(A), column of op(B)) is scaled by a power of two and kept as hi + lo 2^-11, both fp16.
 * Image: for each block of 32 along k, for each 8 lines, 1024 bytes: 8 rows of 128 bytes (32 hi, 32 lo), the
 * 16-byte chunks of row r exchanged by XOR with r, which is what wgmma's 128-byte swizzle reads. */
#ifndef RUNG_DEVICE_F16X3_H
#define RUNG_DEVICE_F16X3_H

#include "cuda/device/args.h"
#include "cuda/device/turn.h"

enum {
    F16X3_KB = 32,    /* of k in one row of the image */
    F16X3_GROUP = 64, /* lines that are judged together */
    F16X3_BM = 128,   /* rows of a block tile */
    F16X3_FIX_MAX =
        64, /* so many elements of a block tile at most are computed again one by one; more: the whole block is */
    F16X3_THREADS = 256, /* of the split pass */
    F16X3_COLS = 64,     /* lines across k that one block turns (TF32) */
    F16X3_LINES = 32,    /* lines across k that one cluster splits */
    F16X3_TAIL = 1024,   /* elements after a line's largest that still move an FP32 sum: a long tail */
    F16X3_TAIL_BIT = 16,
    F16X3_LOOK_K = 1 << 20, /* a longer k is not looked at: f16x3_look.h */
    F16X3_WITNESSES = 512,  /* of both operands, two a block of lines */
    F16X3_WITNESS_BITS = 7, /* a witness's place among the lines of its block */
};

#define F16X3_ALONE 0x1p-6f /* an element stands out that has so large a share of its line's sum of magnitudes */
#define F16X3_DENSE 32.0f   /* a line of k elements whose largest is at most so many k-ths of its sum is dense */

/* One line: the power of two it was scaled by, and how many elements were too small to keep whole. */
typedef struct f16x3_line {
    int32_t scale;
    uint32_t tiny;
} f16x3_line;

/* A line of a block of 128, as the last split saw it. Each block has two: the one whose largest element has the largest
 * share of its sum, and the one with the largest element. The bits are, from the top: the number of the product that
 * was split, 16 bits of that share or magnitude, the line's place in the block. So the largest of such words is the
 * newest product's largest line. */
typedef unsigned long long f16x3_witness;

/* What is recalled of a product from one call, or one replay of a captured graph, to the next. It lies in device
 * memory, and whether there is a look is decided there. */
typedef struct f16x3_recalled {
    uint64_t refused; /* the number of the product of which all blocks were refused the last time, or one of these: */
    uint32_t pause;   /* so many refused products went without a look after the last one in vain */
    uint32_t left;    /* of that pause */
    uint32_t good;    /* looks since one was in vain */
} f16x3_recalled;

#define F16X3_NOT_KNOWN 0ull /* nobody has said so of any */
#define F16X3_NOT_ALL (~0ull)

/* What a look sees of a line: its largest magnitude, and that one's share of the line's sum, both as bits. */
typedef struct f16x3_seen {
    uint32_t max_bits, peak_bits;
} f16x3_seen;

/* 64 lines. Every field only grows, so that integer atomics give the same bits in any order. */
typedef struct f16x3_group {
    uint32_t max_bits;  /* largest magnitude, as bits; >= 0x7f800000 means Inf or NaN */
    uint32_t peak_bits; /* largest (max / sum) of a line, as bits: 1 is one element alone, 1/k is all alike */
    uint32_t tiny;
    uint32_t alone; /* lines in which few elements stand out; above F16X3_TAIL_BIT, those of them with a long tail */
} f16x3_group;

/* One operand as the split pass sees it. */
typedef struct f16x3_operand {
    const float *x;
    const float *const *x_array; /* pointer-array batch: x is its entry `entry` */
    int64_t ld;
    int32_t k_innermost; /* neighbours in memory are neighbours along k */
    int32_t lines, k;
    int32_t k_blocks;   /* k / 32, padded to an even number */
    int64_t row_groups; /* lines / 8, with padding */
    char *image;
    f16x3_line *line;
    f16x3_group *group;
    int32_t turn_blocks; /* TF32, lines across k: pieces of 32 along k that a block turns */
    int32_t line_bits;   /* lines along k: 2^line_bits threads share one, 8 to 256 */
    uint32_t *wild;      /* becomes 1 where a line has a peak above `tame_peak`, or its largest magnitude `wild_bits` */
    float tame_peak;
    uint32_t wild_bits;
    f16x3_witness *witness; /* two a block of 128 lines; NULL: nobody asks */
    uint64_t number;        /* of the product: the witnesses of others have lesser ones */
} f16x3_operand;

/* What the guard judges the blocks of a product by (f16x3_guard.h). No byte is padding, as arguments are compared. */
typedef struct f16x3_guard {
    const f16x3_group *a, *b;
    const uint32_t *wild;    /* where this is 0 all lines that were split for this product are so even that the guard
                                allows    all blocks of any two of them */
    const uint32_t *refused; /* where this is not 0 all blocks are refused; NULL: nobody has looked */
    int64_t least_safe;      /* where the guard allows fewer blocks than this, it refuses them too */
    int32_t rows, columns;   /* of blocks inside C */
    int32_t k;
    float min_terms; /* where fewer terms matter than this, the guard refuses the block */
} f16x3_guard;

typedef struct f16x3_split_args {
    f16x3_operand a, b;
    int32_t a_blocks; /* so many blocks of the launch, its first, are for a; the rest for b */
    int32_t cluster;  /* blocks that share lines across k */
    int32_t entry;
    void *zero;         /* what must be zero before the operands are looked at */
    int64_t zero_words; /* of 16 bytes */
    void *marks;        /* of the product that follows: all cleared here */
    int64_t mark_words; /* of 16 bytes */
} f16x3_split_args;

/* The split of operands, and before it, where the guard is expected to refuse every block, a look at them
 * (f16x3_look.h). */
typedef struct f16x3_look_args {
    f16x3_split_args split;
    int32_t blocks;        /* so many blocks of the launch, its first, look, or do nothing; the others split */
    int32_t rows, columns; /* of blocks inside C */
    int32_t any;           /* the place of the byte that says whether any block is marked */
    int32_t least_safe;    /* as in f16x3_guard */
    float min_terms;       /* as in f16x3_guard */
    f16x3_seen *seen;      /* room for what is seen of each witness, those of A first */
    uint8_t *marks;        /* of all blocks; they are written where all are refused */
    uint32_t *arrived;     /* counts the blocks that have looked; zero before and after */
    uint32_t *decided;     /* becomes F16X3_TO_SPLIT or F16X3_TO_REFUSE; zero before */
    uint32_t *refused;     /* becomes 1 where all blocks are refused; zero before */
    f16x3_recalled *recalled;
    volatile uint32_t *told; /* in host memory: becomes 0 where recalled->refused does; NULL: the host does not ask */
    unsigned long long *counts; /* as in f16x3_args */
} f16x3_look_args;

/* Operands that are turned where all blocks are refused, for the large tiles that compute C then. */
typedef struct f16x3_turn_args {
    f16x3_guard guard;
    rung_turn_args of[2];
    int32_t tiles, tiles_of_first; /* of both, and those of the first, which may be the only one */
} f16x3_turn_args;

enum { F16X3_TO_SPLIT = 1, F16X3_TO_REFUSE = 2 };

typedef struct f16x3_args {
    rung_args g; /* one product: m, n, k, operands, scalars, bias; doubtful elements read A and B through it */
    int32_t entry;
    f16x3_guard guard;
    int32_t both_split; /* for this product; else one operand's image is that of a panel before */
    const char *a_image, *b_image;
    int64_t a_row_groups, b_row_groups;
    const f16x3_line *a_line, *b_line;
    int32_t k_blocks;
    int32_t tiles_m, tiles_n; /* tiles of one cluster */
    int32_t band;             /* tiles of m that are walked together, for L2 */
    int32_t split_tiles;      /* the first so many tiles are cut along k, evenly over */
    int32_t split_clusters;   /* the first so many clusters */
    float *partial;           /* one accumulator tile a block */
    uint32_t *ready;          /* one a block */
    uint8_t *marks; /* one a block tile that is left to strict arithmetic, and behind them one that says whether any is,
                       and one that says whether the guard refused all before anything was multiplied */
    unsigned long long
        *counts; /* blocks seen, strict blocks, strict elements, for `rung explain`; NULL where nobody asks */
} f16x3_args;

#endif
