/* Rectangles between ranks. */
#include "multi/mover.h"

#include <stdlib.h>
#include <string.h>

static rung_status no_memory(void)
{
    return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a list of messages");
}

static rung_status message_of(multi_mover *m, int peer, int receive, mover_message **out)
{
    for (int i = 0; i < m->count; i++)
        if (m->messages[i].peer == peer && m->messages[i].receive == receive) {
            *out = &m->messages[i];
            return RUNG_SUCCESS;
        }
    if (m->count == m->capacity) {
        int capacity = m->capacity ? 2 * m->capacity : 8;
        mover_message *list = realloc(m->messages, (size_t)capacity * sizeof *list);
        if (!list)
            return no_memory();
        memset(list + m->capacity, 0, (size_t)(capacity - m->capacity) * sizeof *list);
        m->messages = list;
        m->capacity = capacity;
    }
    *out = &m->messages[m->count++];
    (*out)->peer = peer;
    (*out)->receive = receive;
    return RUNG_SUCCESS;
}

static rung_status add_piece(mover_message *x, const multi_copy *copy)
{
    if (x->count == x->capacity) {
        int capacity = x->capacity ? 2 * x->capacity : 8;
        multi_copy *pieces = realloc(x->pieces, (size_t)capacity * sizeof *pieces);
        if (!pieces)
            return no_memory();
        x->pieces = pieces;
        x->capacity = capacity;
    }
    x->pieces[x->count++] = *copy;
    x->floats += copy->length * copy->lines;
    return RUNG_SUCCESS;
}

rung_status multi_mover_add(rung_multi *multi, multi_mover *m, int from, int to, const multi_copy *copy)
{
    if (copy->length == 0 || copy->lines == 0)
        return RUNG_SUCCESS;
    int sends = multi_holds(multi, from), receives = multi_holds(multi, to);
    if (sends && receives) {
        /* A GPU's lane in serves both ways: the rank whose memory is no host memory issues it. */
        multi_engine *engine = multi_engine_of(multi, copy->to_host ? from : to);
        multi_engine *other = copy->from_host || copy->to_host || from == to ? NULL : multi_engine_of(multi, from);
        return engine->ops->copy(engine, LANE_IN, copy, other);
    }
    mover_message *x = NULL;
    if (sends || receives) {
        RUNG_TRY(message_of(m, sends ? to : from, receives, &x));
        RUNG_TRY(add_piece(x, copy));
    }
    return RUNG_SUCCESS;
}

/* Copies between the pieces and the message's buffer, where they stand one after the other without gaps. */
static rung_status copy_pieces(multi_engine *engine, mover_message *x)
{
    float *at = x->buffer.at;
    for (int i = 0; i < x->count; i++) {
        multi_copy copy = x->pieces[i];
        if (x->receive) {
            copy.from = at;
            copy.from_ld = copy.length;
            copy.from_host = 0;
        } else {
            copy.to = at;
            copy.to_ld = copy.length;
            copy.to_host = 0;
        }
        RUNG_TRY(engine->ops->copy(engine, LANE_IN, &copy, NULL));
        at += copy.length * copy.lines;
    }
    return RUNG_SUCCESS;
}

rung_status multi_mover_begin(rung_multi *multi, multi_mover *m, int64_t tag)
{
    if (m->count == 0)
        return RUNG_SUCCESS;
    multi_engine *engine = &multi->engines[0];
    multi_message *messages = calloc((size_t)m->count, sizeof *messages);
    char why[MULTI_WHY_BYTES] = "";
    rung_status status = messages ? RUNG_SUCCESS : no_memory();
    for (int i = 0; i < m->count && status == RUNG_SUCCESS; i++) {
        mover_message *x = &m->messages[i];
        if (x->buffer.at && x->buffer.floats < x->floats) /* freeing waits for the device, and nothing ends that wait */
            status = multi_finish(multi);
        if (status == RUNG_SUCCESS)
            status = multi_buffer_reserve(engine, &x->buffer, x->floats);
        if (status == RUNG_SUCCESS && !x->receive)
            status = copy_pieces(engine, x);
        messages[i] = (multi_message){x->buffer.at, x->floats * 4, x->peer, x->receive};
    }
    multi_transport *t = multi->transport;
    if (status == RUNG_SUCCESS)
        status = multi_transport_try(multi, t->exchange(t->state, messages, m->count, tag, &m->pending, why), why);
    free(messages);
    return status;
}

rung_status multi_mover_poll(rung_multi *multi, multi_mover *m, int *done, int *waiting_for)
{
    char why[MULTI_WHY_BYTES] = "";
    *done = 1;
    if (m->pending) {
        multi_transport *t = multi->transport;
        RUNG_TRY(multi_transport_try(multi, t->poll(t->state, m->pending, done, waiting_for, why), why));
    }
    if (!*done)
        return RUNG_SUCCESS;
    m->pending = NULL;
    for (int i = 0; i < m->count; i++)
        if (m->messages[i].receive)
            RUNG_TRY(copy_pieces(&multi->engines[0], &m->messages[i]));
    multi_mover_reset(m);
    return RUNG_SUCCESS;
}

rung_status multi_mover_finish(rung_multi *multi, multi_mover *m, const char *what)
{
    multi_deadline deadline = multi_deadline_start(multi);
    int done = 0, waiting_for = -1;
    for (;;) {
        RUNG_TRY(multi_mover_poll(multi, m, &done, &waiting_for));
        if (done)
            return RUNG_SUCCESS;
        RUNG_TRY(multi_wait_turn(multi, &deadline, what, waiting_for));
    }
}

void multi_mover_reset(multi_mover *m)
{
    for (int i = 0; i < m->count; i++) {
        m->messages[i].count = 0;
        m->messages[i].floats = 0;
    }
    m->count = 0;
}

void multi_mover_free(rung_multi *multi, multi_mover *m)
{
    if (m->pending && multi->transport)
        multi->transport->abandon(multi->transport->state, m->pending);
    for (int i = 0; i < m->capacity; i++) {
        /* After a fault messages may still arrive in these buffers: they are left to the process. */
        if (!m->pending && multi->held > 0)
            multi_buffer_free(&multi->engines[0], &m->messages[i].buffer);
        free(m->messages[i].pieces);
    }
    free(m->messages);
    memset(m, 0, sizeof *m);
}
