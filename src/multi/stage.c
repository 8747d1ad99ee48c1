/* Rings of pinned buffers between pageable memory and the GPUs. */
#include "multi/stage.h"

#include "cpu/pool.h"

#include <stdlib.h>
#include <string.h>

enum { RING = 4, PIECE_FLOATS = 1 << 20, COPY_THREADS = 8 };

typedef struct slot {
    float *pinned;
    multi_mark done;
    int busy;
    multi_copy deliver; /* lines > 0: results that still have to reach host memory */
} slot;

typedef struct ring {
    slot slots[RING];
    int next;
} ring;

struct multi_stage {
    ring in[MULTI_MAX_HELD], out[MULTI_MAX_HELD];
    rung_pool *pool;
    int threads;
};

static rung_status open_stage(rung_multi *multi)
{
    if (multi->stage)
        return RUNG_SUCCESS;
    multi->stage = calloc(1, sizeof *multi->stage);
    if (!multi->stage || !(multi->stage->pool = rung_pool_create())) {
        free(multi->stage);
        multi->stage = NULL;
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for the rings of pinned buffers");
    }
    const int threads = rung_process_threads();
    multi->stage->threads = threads < COPY_THREADS ? threads : COPY_THREADS;
    return RUNG_SUCCESS;
}

static void copy_line(void *argument, int64_t task, float *workspace)
{
    const multi_copy *c = argument;
    (void)workspace;
    memcpy(c->to + task * c->to_ld, c->from + task * c->from_ld, (size_t)c->length * sizeof(float));
}

/* Copies lines, shared out to threads; a single long line is cut first. */
static void copy_host(multi_stage *s, multi_copy c)
{
    enum { CUT = 1 << 16 };
    if (c.lines == 1 && c.length > CUT) {
        multi_copy rest = {.from = c.from + c.length / CUT * CUT,
                           .to = c.to + c.length / CUT * CUT,
                           .length = c.length % CUT,
                           .lines = 1};
        copy_line(&rest, 0, NULL);
        c.lines = c.length / CUT;
        c.length = c.from_ld = c.to_ld = CUT;
    }
    rung_pool_run(s->pool, s->threads, c.lines, copy_line, &c);
}

/* Waits until the slot's last copy is over, and delivers what it brought. */
static rung_status settle(rung_multi *multi, int held, slot *x)
{
    multi_engine *e = &multi->engines[held];
    multi_deadline deadline = multi_deadline_start(multi);
    rung_status status = RUNG_SUCCESS;
    while (x->busy && !e->ops->reached(e, x->done, &status)) {
        RUNG_TRY(status);
        RUNG_TRY(multi_wait_turn(multi, &deadline, "waiting for a copy between host and GPU", -1));
    }
    RUNG_TRY(status);
    x->busy = 0;
    if (x->deliver.lines > 0)
        copy_host(multi->stage, x->deliver);
    x->deliver.lines = 0;
    return RUNG_SUCCESS;
}

static rung_status copy_piece(rung_multi *multi, int held, multi_lane lane, ring *r, const multi_copy *piece)
{
    multi_engine *e = &multi->engines[held];
    slot *x = &r->slots[r->next];
    r->next = (r->next + 1) % RING;
    RUNG_TRY(settle(multi, held, x));
    if (!x->pinned)
        RUNG_TRY(e->ops->host_alloc(e, PIECE_FLOATS * (int64_t)sizeof(float), (void **)&x->pinned));
    multi_copy near = *piece, far = *piece; /* near: the host's part; far: the GPU's */
    if (piece->from_host) {
        near.to = x->pinned;
        near.to_ld = piece->length;
        copy_host(multi->stage, near);
        far.from = x->pinned;
        far.from_ld = piece->length;
    } else {
        far.to = x->pinned;
        far.to_ld = piece->length;
        near.from = x->pinned;
        near.from_ld = piece->length;
        x->deliver = near;
    }
    RUNG_TRY(e->ops->copy(e, lane, &far, NULL));
    x->busy = 1;
    return e->ops->mark(e, lane, &x->done);
}

rung_status multi_stage_copy(rung_multi *multi, int held, multi_lane lane, const multi_copy *c, int pinned)
{
    multi_engine *e = &multi->engines[held];
    if (c->lines <= 0 || c->length <= 0)
        return RUNG_SUCCESS;
    if (pinned || !e->queues)
        return e->ops->copy(e, lane, c, NULL);
    RUNG_TRY(open_stage(multi));
    ring *r = c->from_host ? &multi->stage->in[held] : &multi->stage->out[held];
    int64_t width = min64(c->length, PIECE_FLOATS), height = min64(c->lines, PIECE_FLOATS / width);
    for (int64_t i = 0; i < c->lines; i += height)
        for (int64_t j = 0; j < c->length; j += width) {
            multi_copy piece = *c;
            piece.from += i * c->from_ld + j;
            piece.to += i * c->to_ld + j;
            piece.lines = min64(height, c->lines - i);
            piece.length = min64(width, c->length - j);
            RUNG_TRY(copy_piece(multi, held, lane, r, &piece));
        }
    return RUNG_SUCCESS;
}

rung_status multi_stage_flush(rung_multi *multi)
{
    for (int i = 0; multi->stage && i < multi->held; i++)
        for (int j = 0; j < RING; j++) { /* they are taken in the order in which they were filled */
            RUNG_TRY(settle(multi, i, &multi->stage->in[i].slots[(multi->stage->in[i].next + j) % RING]));
            RUNG_TRY(settle(multi, i, &multi->stage->out[i].slots[(multi->stage->out[i].next + j) % RING]));
        }
    return RUNG_SUCCESS;
}

void multi_stage_forget(rung_multi *multi)
{
    for (int i = 0; multi->stage && i < multi->held; i++)
        for (int j = 0; j < RING; j++) {
            multi->stage->out[i].slots[j].busy = multi->stage->in[i].slots[j].busy = 0;
            multi->stage->out[i].slots[j].deliver.lines = 0;
        }
}

void multi_stage_close(rung_multi *multi)
{
    for (int i = 0; multi->stage && i < multi->held; i++)
        for (int j = 0; j < RING; j++) {
            slot *both[] = {&multi->stage->in[i].slots[j], &multi->stage->out[i].slots[j]};
            for (int k = 0; k < 2; k++)
                if (both[k]->pinned)
                    multi->engines[i].ops->host_free(&multi->engines[i], both[k]->pinned);
        }
    if (multi->stage)
        rung_pool_destroy(multi->stage->pool);
    free(multi->stage);
    multi->stage = NULL;
}
