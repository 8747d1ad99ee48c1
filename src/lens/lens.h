/* What the parts of the lens share. It runs one launch at a time, blocks one after another, the threads of a block as
 * fibers. */
#ifndef RUNG_LENS_LENS_H
#define RUNG_LENS_LENS_H

#include "rung_lens.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LENS_MOST_THREADS = 2048, /* of a cluster */
    LENS_BLOCK_THREADS = 1024,
    LENS_MOST_BLOCKS = 16,    /* of a cluster */
    LENS_NAMED_BARRIERS = 16, /* those of a GPU */
    LENS_WARPS = LENS_MOST_THREADS / 32,
    LENS_STACK_BYTES = 96 * 1024, /* the lowest page of it is a fence */
    LENS_STACK_FENCE_BYTES = 4096,
    LENS_LOG_TURN = 1 << 14, /* after this many accesses a lane without barriers gives way, so that logs stay small */
    LENS_MANY_LOGS = 64, /* from a million accesses without a barrier on, only patience tells it from an endless loop */
    LENS_MOST_ARGUMENT_BYTES = 4096,
    LENS_MOST_SHARED_BYTES = 227 * 1024,
    LENS_MOST_ENTRIES = 1 << 26, /* most accesses of one lane between two barriers */
    LENS_MOST_FINDINGS = 32,
    LENS_MOST_ARRAYS = 255, /* __shared__ variables of a file: symbols.c numbers them by bytes */
    LENS_ASYNC_GROUPS = 16,
};

/* An access in a lane's log. */
typedef struct lens_entry {
    uintptr_t pc;
    uint64_t where; /* the address and, in its upper 16 bits, log2 of the size and kind << 4 */
} lens_entry;

static inline uint64_t lens_pack(const void *at, unsigned log2_bytes, unsigned kind)
{
    return (uint64_t)(uintptr_t)at | (uint64_t)(log2_bytes | kind << 4) << 48;
}
static inline uint64_t lens_address(uint64_t where)
{
    return where & 0xffffffffffffull;
}
static inline unsigned lens_bytes(uint64_t where)
{
    return 1u << (where >> 48 & 15);
}
static inline rung_lens_kind lens_kind(uint64_t where)
{
    return (rung_lens_kind)(where >> 52);
}

typedef enum lens_state {
    LENS_READY,
    LENS_AT_BARRIER,
    LENS_AT_WARP,
    LENS_AT_MBARRIER,
    LENS_AT_CLUSTER,
    LENS_DONE
} lens_state;

/* What reads shared memory by itself, past the caches of threads: the "async proxy". A warp has one of each. */
typedef enum lens_engine { LENS_BULK_STORE, LENS_TENSOR_CORE } lens_engine;

typedef struct lens_copy { /* one cp.async that has not landed */
    void *to;
    unsigned char data[16];
    int bytes, group;
} lens_copy;

typedef struct lens_thread {
    void *sp;
    unsigned char *stack; /* its lowest byte */
    lens_state state;
    int index;
    size_t entries;  /* accesses since the last barrier, or since the warp's logs were last turned into requests */
    lens_entry last; /* the last of these accesses */
    uintptr_t wait_pc;
    int barrier_id, barrier_count; /* of the named barrier it waits at; count 0: the whole block */
    const void *wait_object;       /* the mbarrier it waits at */
    unsigned wait_parity;
    uint32_t warp_mask;
    uint32_t arrived_at; /* the named barriers it has arrived at without waiting, as bits */
    int predicate;
    int predicates;  /* of all threads at the block-wide barrier that opened last: others may be at the next one */
    lens_entry *log; /* all of them, where requests are counted */
    size_t capacity;
    int full_logs;    /* how often it gave way with a full log since it last waited or looked */
    uint64_t met[32]; /* what the lanes of the last warp operation brought */
    lens_copy *copies;
    int copy_count, copy_capacity, open_group;
    uintptr_t store_pc; /* of its last bulk store; 0 where it has waited until all were read */
    uint32_t store_stamp;
    unsigned product_groups; /* of wgmma, that it has committed */
    bool early;              /* its launch may overlap the one before it, for which it has not waited yet */
} lens_thread;

typedef struct lens_array {   /* a __shared__ variable of the kernel's object */
    char name[48], owner[96]; /* owner: the function that it stands in; "" for none */
    uint32_t offset, bytes;
    bool dynamic; /* as large as a launch says; all of them lie at the same place */
} lens_array;

/* A compiled kernel file. */
typedef struct lens_module {
    char stem[96];
    char path[512];
    void *handle;
    uintptr_t base; /* its load address: the debug information knows pc - base */
    uintptr_t end;
    unsigned char *shared; /* this host thread's copy of its __shared__ variables, the dynamic array last */
    size_t shared_bytes;
    lens_array arrays[LENS_MOST_ARRAYS];
    int array_count, kernel_count;
    uintptr_t room, room_bytes; /* where the object lists the empty bytes before kernels, which are their bounds */
} lens_module;

/* Which warp comes next: each in turn, or the first or last one that can go on, as far as it can. Who lacks a wait may
 * be right by the one order and wrong by another. */
typedef enum lens_pace { LENS_IN_TURN, LENS_FIRST_AHEAD, LENS_LAST_AHEAD } lens_pace;

typedef struct lens_launch_config {
    void (*entry)(void);
    lens_module *module;
    const char *symbol;
    unsigned grid[3], threads, cluster, dynamic_shared_bytes;
    const void *argument;
    size_t argument_bytes;
    bool finite_poison; /* shared memory holds a finite number before it is written; else NaN */
    lens_pace pace;
    bool overlaps; /* its blocks may start while earlier kernels still run */
} lens_launch_config;

typedef struct lens_block {
    unsigned index[3]; /* of the cluster's first block */
    unsigned threads;  /* of all blocks of the cluster; without clusters there is one */
    unsigned block_threads, cluster;
    unsigned rank; /* the block whose shared memory kernels see now */
    int current;   /* the running thread; -1: the scheduler runs */
    lens_thread thread[LENS_MOST_THREADS];
    void *scheduler_sp;
    double weight;
    bool abandoned;
    bool sampled;             /* sample requests and owners are taken from this block */
    bool looked;              /* the running thread has looked whether something has come, and gave way */
    uint64_t turns, progress; /* turns of threads; progress: those in which one did more than look */
} lens_block;

/* ---- now.c ---- */
extern lens_block lens_now;
extern lens_module *lens_module_now;
extern rung_lens_options lens_options;
static inline unsigned lens_rank_of(int thread)
{
    return lens_now.cluster > 1 ? (unsigned)thread / lens_now.block_threads : 0;
}

/* Returns whether these bytes of shared memory are there at all, whoever's they are. */
static inline bool lens_in_image(uint64_t offset, uint64_t bytes)
{
    return offset + bytes <= lens_module_now->shared_bytes;
}

/* ---- fiber.c ---- */
void lens_switch(void **save_sp, void *load_sp);
void *lens_fiber_prepare(unsigned char *stack, size_t stack_bytes, void (*entry)(void), const void *argument,
                         size_t argument_bytes);
int lens_stacks_make(void);                        /* returns 0 when every thread has its stack */
void lens_wait(lens_state state);                  /* the running thread gives way */
void lens_give_way(uintptr_t pc);                  /* the running thread could go on, but others come first */
void lens_look(uintptr_t pc);                      /* the same, in a loop that waits for what another thread does */
void lens_thread_exit(void);                       /* where a kernel's return leads */
void lens_abandon(void) __attribute__((noreturn)); /* ends the launch from inside a thread */
extern unsigned char *lens_stacks;
extern size_t lens_stacks_bytes;
static inline bool lens_in_stacks(uintptr_t address)
{
    return address - (uintptr_t)lens_stacks < lens_stacks_bytes;
}
bool lens_below_stack(uintptr_t address); /* in the fence of a stack: it has overflowed */

/* ---- cluster.c ---- */
int lens_cluster_begin(unsigned blocks); /* makes room for the shared memory of all blocks; 0: there is room */
void lens_cluster_poison(bool finite);   /* fills it with what it holds before it is written */
extern float lens_poison;
void lens_cluster_enter(unsigned rank);   /* brings a block's shared memory to where kernels see it */
unsigned char *lens_image(unsigned rank); /* returns where a block of the cluster has its shared memory now */
void lens_cluster_note_read(uintptr_t pc, unsigned rank); /* of this block's shared memory by the running thread */
void lens_cluster_meets(void);                            /* all threads have come to the cluster's barrier */
void lens_cluster_ends(void); /* finds reads that no cluster's barrier follows: the block may end before them */

/* ---- block.c ---- */
int lens_run(const lens_launch_config *config); /* returns 0 when it ran to its end */

/* ---- hooks.c ---- */
void lens_access(uintptr_t pc, const void *at, unsigned log2_bytes, rung_lens_kind kind);

/* ---- accesses.c ---- */
void lens_log(uintptr_t pc, uint64_t where);
void lens_flush_warp(int warp); /* turns a warp's logs into requests */
extern double lens_shuffles;    /* counts those of warps, weighted as blocks are */
extern bool lens_counting;      /* somebody will ask for requests: else the logs are not turned into any */
void lens_sites_begin(void);
void lens_sites_end(rung_lens_launch *launch, uintptr_t **pcs); /* gives sites and owners, and a pc for each site */
/* Finds the files and lines of the sites; those of one line, kind and width become one. */
void lens_sites_resolve(rung_lens_launch *launch, const lens_module *module, uintptr_t *pcs);
void lens_bulk(uintptr_t pc, rung_lens_space space, rung_lens_kind kind, const void *at, double bytes, double sectors);

/* ---- shadow.c ---- */
void lens_shadow_begin(size_t shared_bytes);
void lens_shadow_block(unsigned threads);
void lens_shadow_shared(uintptr_t pc, uint32_t offset, unsigned bytes, bool write);
bool lens_shadow_value(uintptr_t pc, uint32_t offset, unsigned bytes); /* returns false where poison is read */
void lens_shadow_atomic(uintptr_t pc, uint32_t offset, unsigned bytes);
void lens_shadow_mbarrier(uintptr_t pc, uint32_t offset); /* checks the place of one */
/* It is written now, and not to be read before it has landed. */
void lens_shadow_async(uint32_t offset, unsigned bytes);
void lens_shadow_landed(uint32_t offset, unsigned bytes);
/* For the copy engine's writes into shared memory. */
void lens_shadow_bulk(uintptr_t pc, unsigned rank, uint32_t offset, unsigned bytes, int agent);
/* For reads of the copy engine and the tensor cores, which go on when the thread that started them does. */
void lens_shadow_engine_read(uintptr_t pc, uint32_t offset, unsigned bytes, lens_engine engine);
/* Returns the clock of what the engine was asked so far; later requests have another. */
uint32_t lens_engine_stamp(lens_engine engine);
void lens_engine_done(lens_engine engine, uint32_t stamp); /* the running thread knows that it has read so far */
void lens_shadow_fence(void);                              /* fence.proxy.async by the running thread */
uint32_t lens_order_now(void);                             /* the running thread's clock, for its writes */
bool lens_order_knows(int thread, uint32_t clock);         /* the running thread, of what that one did then */
void lens_order_fence(void);                               /* __threadfence by the running thread */
bool lens_order_has_fenced(void);                          /* some thread of this block */
/* Raises each thread's clock to that of its writes before a fence, if known. */
void lens_order_publish(uint32_t *published);
void lens_order_block(unsigned from, unsigned to); /* at a barrier of a block's threads, or of a cluster's */
void lens_gather(uintptr_t pc, uint64_t value, uint64_t all[32]); /* every lane of a warp calls this */
void lens_converge(uintptr_t pc);                                 /* and this */
void lens_order_warp(int warp, uint32_t mask);                    /* between lanes of a warp */
void lens_order_some(const bool *member, unsigned threads);       /* at a named barrier */
/* These handle what an mbarrier carries from those who arrive to those who wait. */
uint32_t *lens_order_new(void);
void lens_order_release(uint32_t *carried);
void lens_order_acquire(const uint32_t *carried);
void lens_order_release_agent(uint32_t *carried, int agent);
void lens_order_clear(uint32_t *carried);
void lens_order_copy(uint32_t *to, const uint32_t *from);

/* ---- publish.c ---- */
void lens_publish_begin(void);                                             /* a launch */
void lens_publish_block(void);                                             /* a block, or a cluster's */
void lens_publish_write(uintptr_t pc, uintptr_t address, unsigned bytes);  /* of data, to global memory */
void lens_publish_flag(uintptr_t address, unsigned bytes);                 /* a volatile store: others learn by it */
void lens_publish_atomic(uintptr_t pc, uintptr_t address, unsigned bytes); /* others learn by it, and it leaves data */
void lens_publish_read(uintptr_t pc, uintptr_t address, unsigned bytes);

/* ---- memory.c ---- */
void *lens_memory_get(size_t bytes);
void *lens_memory_get_host(size_t bytes); /* pinned memory: kernels reach it, but it is not the GPU's */
int lens_memory_put(void *at);
bool lens_memory_owns(const void *at);
void lens_check_global(uintptr_t pc, uintptr_t address, unsigned bytes, bool write);
/* Names an address: the operand and element, where it is one. Returns the operand's start, NULL if there is none. */
const unsigned char *lens_memory_name(uintptr_t address, char *name, size_t name_bytes, int64_t *row, int64_t *column);
bool lens_is_operand_c(uintptr_t address, int64_t *row, int64_t *column);
void lens_memory_reset(void);

/* ---- objects.c ---- */
typedef struct lens_object {
    char stem[96], path[600];
} lens_object;

/* Finds the object of the kernel file that holds the symbol, and compiles it first where there is none or its sources
 * are newer. */
bool lens_object_find(const char *symbol, lens_object *object, char *why, size_t why_bytes);

/* ---- symbols.c ---- */
lens_module *lens_module_find(const char *symbol, char *why, size_t why_bytes);
lens_module *lens_module_open(const char *path, const char *stem, char *why, size_t why_bytes);
void lens_module_enter(lens_module *module, uint32_t dynamic_bytes);
/* Finds the file and line of each return address. */
void lens_lines(const lens_module *module, const uintptr_t *pcs, int count, char (*files)[256], int *lines);
uint32_t lens_static_bytes(const lens_module *module, const char *kernel);
/* Returns how many threads a kernel's __launch_bounds__ allows a block; 0 where it says nothing. */
unsigned lens_bound(const lens_module *module, void (*entry)(void));
const lens_array *lens_array_at(const lens_module *module, uint32_t offset);

/* This is what a tensor map holds under the lens, in place of the driver's 128 bytes. */
typedef struct lens_map {
    void *address;
    uint64_t dims[5], strides[5]; /* strides are in bytes, the first is that of an element */
    uint32_t box[5];
    uint8_t rank, element_bytes, swizzle; /* swizzle: 0 none, 1 32, 2 64, 3 128 bytes */
} lens_map;

/* ---- findings.c ---- */
void lens_find(rung_lens_fault fault, uintptr_t pc, const char *format, ...) __attribute__((format(printf, 3, 4)));
void lens_findings_begin(void);
extern bool lens_findings_fail; /* a launch with findings fails: for production kernels, whose results are judged too */
void lens_findings_end(rung_lens_launch *launch, uintptr_t **pcs);
/* Puts block, thread and line before the sentence. */
void lens_finding_compose(rung_lens_finding *finding);
const char *lens_where_shared(uint32_t offset, char *text, size_t text_bytes);
/* Says how an address misses shared memory that is near; NULL: none is. */
const char *lens_beside_shared(uintptr_t address, char *text, size_t text_bytes);

/* ---- sync.c ---- */
void lens_sync_begin(unsigned threads);
void lens_sync_end(void);                        /* all threads of the block, or of its cluster, are done */
bool lens_sync_poll(unsigned from, unsigned to); /* returns true when somebody need not wait any longer */
/* An mbarrier is known by its place and block. */
const void *lens_mbarrier_key(const void *object, unsigned rank);
void lens_mbarrier_complete(uintptr_t pc, const void *key, int64_t bytes, int agent);
bool lens_mbarrier_ready(const void *object, unsigned parity);
const char *lens_mbarrier_state(const void *object, char *text, size_t bytes);

#endif
