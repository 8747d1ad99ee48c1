/* One rank's device: memory, copies and products on a few lanes (streams), and marks that order lanes of any engines of
 * the process. The CPU's engine does everything at once; a GPU's only queues it. */
#ifndef RUNG_MULTI_ENGINE_H
#define RUNG_MULTI_ENGINE_H

#include "core/status.h"
#include "rung_multi.h"

enum { WORK_LANES = 4 };

typedef enum multi_lane {
    LANE_IN,     /* what comes from other ranks or from host memory */
    LANE_SPREAD, /* what came to one GPU of operands in host memory goes on to the others */
    LANE_WORK,   /* products; there are several lanes, so that one's last tiles run beside another's first */
    LANE_OUT = LANE_WORK + WORK_LANES, /* results to host memory */
    MULTI_LANES
} multi_lane;

/* A piece to copy: `lines` lines of `length` floats. */
typedef struct multi_copy {
    const float *from;
    int64_t from_ld;
    float *to;
    int64_t to_ld, length, lines;
    int from_host, to_host;
} multi_copy;

typedef struct multi_engine multi_engine;

/* A mark: a point in a lane's work. */
typedef struct multi_mark {
    void *event;
} multi_mark;

/* What a span of the timeline shows. */
typedef struct multi_label {
    const char *side; /* "A", "B", "C" */
    int panel, part;
} multi_label;

typedef struct multi_engine_ops {
    void (*close)(multi_engine *engine);
    rung_status (*alloc)(multi_engine *engine, int64_t bytes, void **memory);
    void (*free)(multi_engine *engine, void *memory);
    rung_status (*host_alloc)(multi_engine *engine, int64_t bytes, void **memory);
    void (*host_free)(multi_engine *engine, void *memory);
    rung_status (*free_bytes)(multi_engine *engine, int64_t *bytes);
    /* Copies a piece. from_engine: whose memory is read, when it is another's. */
    rung_status (*copy)(multi_engine *engine, multi_lane lane, const multi_copy *copy, multi_engine *from_engine);
    rung_status (*product)(multi_engine *engine, multi_lane lane, const rung_gemm *gemm);
    rung_status (*mark)(multi_engine *engine, multi_lane lane, multi_mark *mark);
    rung_status (*wait)(multi_engine *engine, multi_lane lane, multi_mark mark);
    /* Returns whether a mark's work has run; *status tells of a fault. */
    int (*reached)(multi_engine *engine, multi_mark mark, rung_status *status);
    int (*is_pinned)(multi_engine *engine, const void *memory);
    /* Begins a call: marks of earlier ones may be used again. */
    rung_status (*begin)(multi_engine *engine);
    /* Sets *done when everything queued has run. */
    rung_status (*poll)(multi_engine *engine, int *done);
    /* Waits for what is queued, whatever became of it, so that memory may be freed, but not longer than the time limit.
     * After that the engine is stuck, and its memory stays. */
    void (*drain)(multi_engine *engine);
    rung_status (*trace)(multi_engine *engine, int on, double now_us);
    /* Turns taken times into spans; it is called once all has run. */
    rung_status (*collect)(multi_engine *engine);
} multi_engine_ops;

struct multi_engine {
    const multi_engine_ops *ops;
    int rank, device;
    int queues; /* work is only queued: host memory is not read or written at once */
    int tracing;
    int stuck;         /* its work did not finish in time */
    double timeout_s;  /* as the context's */
    multi_label label; /* what the timeline calls that which is issued next */
    struct multi_timeline *timeline;
    void *state;
};

rung_status multi_engine_open_cpu(multi_engine *engine, int threads, rung_math math);
/* Opens a GPU by its number. Returns RUNG_NO_DEVICE without the CUDA backend. */
rung_status multi_engine_open_gpu(multi_engine *engine, int device, rung_math math);
/* Lets `engine` copy from `other`'s memory directly where the machine can. */
rung_status multi_engine_connect_gpu(multi_engine *engine, multi_engine *other);
/* Returns a lane's CUstream, for NCCL. */
void *multi_engine_gpu_stream(multi_engine *engine, multi_lane lane);
/* These stand before and after work that another library queues on a lane, and make it a span of the timeline under the
 * engine's label. The GPU must be current. */
rung_status multi_engine_gpu_span_start(multi_engine *engine, multi_lane lane);
rung_status multi_engine_gpu_span_stop(multi_engine *engine, multi_lane lane);
int multi_gpu_count(void);
/* These make the engine's GPU current for the calling thread, and undo it: for calls into other libraries. */
rung_status multi_engine_gpu_enter(multi_engine *engine);
void multi_engine_gpu_leave(multi_engine *engine);

#endif
