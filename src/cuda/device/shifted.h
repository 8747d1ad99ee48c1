/* Here the copy engine brings operands whose rows start at any address, though it reads from multiples of 16 bytes
 * only. Rows r, r + 4, r + 8 and so on start alike. So one copy takes a box of them, four floats wider than needed,
 * from the multiple of 16 bytes before the first row on. What it brings lies up to three floats off its place. Warps
 * then move it, four bytes a lane, to where the main loop wants it, with k outermost. The x of a map runs over the
 * whole operand and its y over every fourth row, so that four maps serve all batches. What is read beyond a row's end
 * lies inside the operand or is zero, but for the 16 bytes around the operand's first and last element, which lie in
 * one page with it. Limits: four rows at least; positions in the operand below 2^31. */
#ifndef RUNG_DEVICE_SHIFTED_H
#define RUNG_DEVICE_SHIFTED_H

#include "device/args.h"
#include "device/ptx.h"
#include "device/shifted_args.h"

#define SHIFTED_COPIED(W, K_INNERMOST)                                                                                 \
    (4 * SHIFTED_CHUNKS(W, K_INNERMOST) * SHIFTED_ROWS(W, K_INNERMOST) * SHIFTED_ROW(W, K_INNERMOST))

/* Where the copies of a tile begin: the x of each class of rows, and the first row in a class. */
struct shifted_source {
    int x[4], row;
};

RUNG_DEVICE void shifted_begin(struct shifted_source *s, const rung_shifted *x, int at, int batch, const int kc)
{
    const int along = x->origin + batch * x->stride + (kc ? 0 : at);
    s->row = kc ? at / 4 : 0;
#pragma unroll
    for (int c = 0; c < 4; c++)
        s->x[c] = __shfl_sync(~0u, (along + c * x->ld) & ~3,
                              0); /* keeps the compiler from computing it again at every stage */
}

/* Starts the copies of the stage at k. A whole warp calls this with the same values in all lanes; one lane is elected.
 */
RUNG_DEVICE void shifted_load(const rung_shifted *x, const struct shifted_source *s, uint32_t to, uint32_t bar, int k,
                              const int w, const int kc)
{
    ptx_mbar_arrive_tx_elected(bar, SHIFTED_COPIED(w, kc));
#pragma unroll
    for (int h = 0; h < SHIFTED_CHUNKS(w, kc); h++)
        ptx_tensor_load_four_elected(to + h * SHIFTED_BOX(w, kc), SHIFTED_CHUNKS(w, kc) * SHIFTED_BOX(w, kc), x->of,
                                     bar, s->x, kc ? k : h * RUNG_SHIFTED_CHUNK, kc ? s->row : (int)((unsigned)k / 4));
}

/* Where a lane finds its elements of a batch's stages, and where it puts four of one k, in bytes from the start of the
 * stage. The lanes of a warp take eight fours of four k. With k innermost they never meet in a bank, with k outermost
 * only where rows start alike. */
struct shifted_lane {
    uint32_t from[4], to; /* with k outermost only the first is used: the others lie beside it */
};

RUNG_DEVICE void shifted_place(struct shifted_lane *l, const rung_shifted *x, int batch, const int w, const int kc)
{
    const int four = threadIdx.x % 8, k = threadIdx.x / 8 % 4, start = x->origin + batch * x->stride;
    l->to = (k * w + 4 * four) * 4;
#pragma unroll
    for (int c = 0; c < (kc ? 4 : 1); c++)
        l->from[c] = kc ? c * SHIFTED_BOX(w, 1) + four * SHIFTED_ROW(w, 1) + (((start + c * x->ld) & 3) + k) * 4
                        : k * SHIFTED_CHUNKS(w, 0) * SHIFTED_BOX(w, 0) + (((start + k * x->ld) & 3) + 4 * four) * 4;
}

/* Moves four k of a stage, from 4 * quad on. With k innermost and `partial`, those from `left` on become zero; with k
 * outermost the copies have brought zeros. */
RUNG_DEVICE void shifted_move_four(const struct shifted_lane *l, uint32_t from, uint32_t to, int left, const int quad,
                                   const int w, const int kc, const int partial)
{
#pragma unroll
    for (int j0 = 0; j0 < w / 32; j0 += 2) {
        float v[2][4];
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int u = 0; u < 4; u++)
                v[j][u] = kc ? ptx_shared_load(from + l->from[u] + (j0 + j) * (8 * SHIFTED_ROW(w, 1)) + quad * 16)
                             : ptx_shared_load(from + l->from[0] + (j0 + j) / 4 * SHIFTED_BOX(w, 0) +
                                               (j0 + j) % 4 * 128 + quad * SHIFTED_ROW(w, 0) + u * 4);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int none = kc && partial && (int)threadIdx.x / 8 % 4 >= left - 4 * quad;
            ptx_shared_store4(to + l->to + quad * (16 * w) + (j0 + j) * 128,
                              none ? make_float4(0.0f, 0.0f, 0.0f, 0.0f)
                                   : make_float4(v[j][0], v[j][1], v[j][2], v[j][3]));
        }
    }
}

/* Moves half of a stage's k, the first or the second eight. */
RUNG_DEVICE void shifted_move(const struct shifted_lane *l, uint32_t from, uint32_t to, int left, int half, const int w,
                              const int kc)
{
    from += half * 2 * (kc ? 16 : SHIFTED_ROW(w, 0));
    to += half * (32 * w);
    left -= half * 8;
    if (!kc || left >= 8) {
        shifted_move_four(l, from, to, left, 0, w, kc, 0);
        shifted_move_four(l, from, to, left, 1, w, kc, 0);
    } else {
        shifted_move_four(l, from, to, left, 0, w, kc, 1);
        shifted_move_four(l, from, to, left, 1, w, kc, 1);
    }
}

#endif
