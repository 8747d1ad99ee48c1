/* Memory that belongs to a captured graph: launches find in it what the ones before them left, counters that are zero.
 * What a graph allocates by its own nodes is new for each product, and one more node would have to clear it. */
#ifndef RUNG_CUDA_GRAPH_MEMORY_H
#define RUNG_CUDA_GRAPH_MEMORY_H

#include "cuda/driver/driver.h"

#include <pthread.h>
#include <stdint.h>

struct rung_cuda;

enum {
    RUNG_GRAPH_BUFFERS = 16,            /* that a context remembers */
    RUNG_GRAPH_BUFFER_BYTES = 16 << 20, /* more becomes nodes of the graph */
};

typedef struct rung_graph_buffer rung_graph_buffer;

/* Buffers whose graphs are gone. One for each GPU. */
typedef struct rung_idle_buffers {
    pthread_mutex_t lock;
    rung_graph_buffer *first;
} rung_idle_buffers;

/* A buffer of the graph that a stream of this context records, or has recorded: the number of the recording says which.
 */
typedef struct rung_graph_lent {
    void *memory; /* NULL: none */
    int64_t bytes;
    unsigned long long recording;
    void *stream; /* a stream that records may not be asked for its number: that would end the recording */
    int in_use;
    int zeros;            /* it is lent as zeros; */
    int64_t record_bytes; /* so many bytes behind them are records */
} rung_graph_lent;

typedef struct rung_graph_loans {
    rung_graph_lent lent[RUNG_GRAPH_BUFFERS];
    int next; /* the one that is forgotten next */
} rung_graph_loans;

/* Lends so many bytes, of which the first `zero_bytes` are zero, to what the context's stream records next. Launches
 * must leave these zero. The same buffer goes to all products of a stream in a recording, which run in its order; NULL
 * where there is none, or the driver has no way to keep one. */
void *rung_graph_memory_get(struct rung_cuda *cuda, int64_t bytes, int64_t zero_bytes);
/* Lends so many bytes that are zero and must be left zero. They are never those that the call above lends. */
void *rung_graph_zeros_get(struct rung_cuda *cuda, int64_t bytes);
/* Says whether this memory is lent here. */
int rung_graph_memory_lent(struct rung_cuda *cuda, const void *memory);
/* Beside zeros that are lent: gives so many bytes to the product that is recorded next. They are zero when the graph is
 * made, and each replay finds them as the one before left them. NULL where no room is left, or the zeros are others. */
void *rung_graph_record_get(struct rung_cuda *cuda, const void *zeros, int64_t bytes);
/* Takes memory back; as_lent = 0 says that what should be zero may not be. Returns 0 for memory that was not lent here.
 */
int rung_graph_memory_put(struct rung_cuda *cuda, const void *memory, int as_lent);
/* Frees what no graph uses. */
void rung_graph_memory_close(struct rung_cuda *cuda);

#endif
