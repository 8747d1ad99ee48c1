/* A multi context: what its parts share. */
#ifndef RUNG_MULTI_MULTI_H
#define RUNG_MULTI_MULTI_H

#include "multi/control.h"
#include "multi/engine.h"
#include "multi/layout.h"
#include "multi/transport.h"

enum { MULTI_MAX_HELD = 64 };

/* Memory of one engine that grows and is used again. */
typedef struct multi_buffer {
    float *at;
    int64_t floats;
} multi_buffer;

/* The widths of the panels that k is cut into (panels.c). Bits do not depend on the others: in how many bands the first
 * panel comes, and in how many parts of C later ones are multiplied. */
typedef struct multi_panels {
    int64_t first, widest, last;
    int bands, chunks;
} multi_panels;

/* A product's panels: panel i is [edges[i], edges[i + 1]). */
typedef struct multi_cuts {
    int64_t *edges, count, widest;
} multi_cuts;

rung_status multi_panels_cut(const multi_panels *rule, int64_t k, multi_cuts *cuts);
void multi_panels_free(multi_cuts *cuts);

typedef struct multi_stage multi_stage; /* the pinned buffers for operands in host memory (stage.c) */

struct rung_multi {
    rung_multi_config config;
    int ranks, first_rank, held;
    int is_gpu;
    multi_engine engines[MULTI_MAX_HELD];
    multi_transport *transport; /* NULL: all ranks are in this process */
    void *plugin;
    multi_control *control; /* NULL: all ranks are in this process */
    double timeout_s;
    multi_panels panels; /* how k is cut, which is part of what the bits depend on */
    /* so many elements of C fill a GPU once: cutting finer leaves multiprocessors without work */
    int64_t wave_elements;
    int64_t next_tag;
    multi_buffer *buffers[MULTI_MAX_HELD];     /* each held rank's slots (product.c) */
    multi_buffer parts[2];                     /* what is sent between processes in a queue's order (fetch_message.c) */
    multi_buffer host_buffers[MULTI_MAX_HELD]; /* tiles and panels of operands in host memory (host.c) */
    multi_stage *stage;
    rung_status broken; /* success, or what every later call answers */
    char broken_why[512];
    struct multi_timeline *timeline;
};

static inline int multi_holds(const rung_multi *multi, int rank)
{
    return rank >= multi->first_rank && rank < multi->first_rank + multi->held;
}

static inline multi_engine *multi_engine_of(rung_multi *multi, int rank)
{
    return &multi->engines[rank - multi->first_rank];
}

/* Makes the buffer hold at least so many floats; its contents are undefined. The engine must not be using it. */
rung_status multi_buffer_reserve(multi_engine *engine, multi_buffer *buffer, int64_t floats);
void multi_buffer_free(multi_engine *engine, multi_buffer *buffer);

/* ---- faults ---- */
/* Checks that the context still works; each public call begins with this. */
rung_status multi_usable(const rung_multi *multi);
/* Says that a call failed in the middle: it tells the other ranks and remembers it. Returns status. */
rung_status multi_break(rung_multi *multi, rung_status status);

/* ---- waiting: every loop that waits asks this; it fails when a rank failed or the time is over ---- */
typedef struct multi_deadline {
    double start_s, end_s;
    int idle; /* turns without progress so far */
} multi_deadline;

multi_deadline multi_deadline_start(const rung_multi *multi);
/* Checks, and lets others run. The sentence needs what and waiting_for; -1: nobody in particular. */
rung_status multi_wait_turn(rung_multi *multi, multi_deadline *deadline, const char *what, int waiting_for);
/* Turns a transport's result into a status. */
rung_status multi_transport_try(rung_multi *multi, int result, const char *why);
/* Waits until all held engines have run what is queued. */
rung_status multi_finish(rung_multi *multi);
/* Keeps what is queued from writing to the caller's memory after a fault. What does not end in time makes the context
 * unusable. Returns `status`. */
rung_status multi_drain(rung_multi *multi, rung_status status);

/* ---- agreement: a record of named integers must be the same on all ranks ---- */
typedef struct multi_record {
    int64_t values[64];
    const char *names[64];
    int count;
} multi_record;

void multi_record_add(multi_record *record, const char *name, int64_t value);
/* Adds what all ranks must be told alike of desc_a, desc_b or desc_c: `letter` is 'a', 'b' or 'c'. */
void multi_record_matrix(multi_record *record, char letter, const rung_matrix *matrix);
/* Compares verdicts. mine: this rank's own verdict on its arguments. All ranks succeed, or all get an error. */
rung_status multi_agree(rung_multi *multi, const multi_record *record, rung_status mine, const char *call);

#endif
