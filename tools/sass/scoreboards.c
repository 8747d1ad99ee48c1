/* Scoreboards: see scoreboards.h. */
#include "scoreboards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_PASSES = 4 /* enough for what is under way to travel around the loops in each other */ };

static void add_registers(uint8_t set[REGISTERS], int first, int count)
{
    for (int r = first; r < first + count && r < RZ; ++r)
        set[r] = 1;
}

/* A copy to shared memory reads a pair of registers, where from, and one that stands where other instructions have
 * their result, where to. */
static void copy_step(struct pending *p, struct word w)
{
    int board = read_scoreboard(w);
    add_registers(p->uncounted, field_a(w), 2);
    add_registers(p->uncounted, field_d(w), 1);
    if (board >= SCOREBOARDS)
        return;
    for (int r = 0; r < REGISTERS; ++r)
        p->read[board][r] |= p->uncounted[r];
    memset(p->uncounted, 0, REGISTERS);
}

void pending_step(struct pending *p, struct word w)
{
    for (int b = 0; b < SCOREBOARDS; ++b)
        if (waits(w) >> b & 1) {
            memset(p->written[b], 0, REGISTERS);
            memset(p->read[b], 0, REGISTERS);
        }
    if (has_no_registers(w))
        return;
    if (opcode(w) == OP_LDGSTS) {
        copy_step(p, w);
        return;
    }
    int written = write_scoreboard(w), read = read_scoreboard(w);
    if (written < SCOREBOARDS)
        add_registers(p->written[written], field_d(w), VECTOR);
    /* A load may read its address late. Where no scoreboard says when it has, the arrival of its data does. */
    if (read >= SCOREBOARDS)
        read = written;
    if (read >= SCOREBOARDS)
        return;
    if (is_plain_load(w)) {
        add_registers(p->read[read], field_a(w), 1);
        return;
    }
    add_registers(p->read[read], field_a(w), VECTOR);
    add_registers(p->read[read], field_b(w), VECTOR);
    add_registers(p->read[read], field_c(w), VECTOR);
}

void pending_join(struct pending *p, const struct pending *other)
{
    uint8_t *to = (uint8_t *)p;
    const uint8_t *from = (const uint8_t *)other;
    for (size_t i = 0; i < sizeof *p; ++i)
        to[i] |= from[i];
}

unsigned pending_new(const struct pending *p, const struct pending *before)
{
    unsigned boards = 0;
    for (int b = 0; b < SCOREBOARDS; ++b)
        for (int r = 0; r < REGISTERS; ++r)
            if ((p->written[b][r] && !before->written[b][r]) || (p->read[b][r] && !before->read[b][r]))
                boards |= 1u << b;
    return boards;
}

unsigned pending_waits(const struct pending *p, const int source[3], int d, int width)
{
    unsigned boards = 0;
    for (int b = 0; b < SCOREBOARDS; ++b) {
        bool hit = false;
        for (int s = 0; s < 3; ++s)
            hit |= source[s] >= 0 && p->written[b][source[s]];
        for (int r = d; r < d + width; ++r)
            hit |= p->written[b][r] || p->read[b][r];
        boards |= (unsigned)hit << b;
    }
    return boards;
}

/* ---- labels ---- */

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory) {
        fprintf(stderr, "sass: out of memory\n");
        exit(1);
    }
    return memory;
}

/* Follows what is under way by passes over the code, until nothing is added. */
static void follow(struct labels *labels, const struct word *code)
{
    for (int pass = 0; pass < LABEL_PASSES; ++pass) {
        static struct pending now;
        memset(&now, 0, sizeof now);
        for (int i = 0; i < labels->n; ++i) {
            if (labels->at[i]) {
                pending_join(labels->at[i], &now);
                pending_join(&now, labels->at[i]);
            }
            pending_step(&now, code[i]);
            int64_t to = branch_target(code[i], i);
            if (to >= 0 && to <= labels->n)
                pending_join(labels->at[to], &now);
        }
    }
}

void labels_find(struct labels *labels, const struct word *code, int n)
{
    *labels = (struct labels){allocate((size_t)n + 1, sizeof *labels->at), n};
    for (int i = 0; i < n; ++i) {
        int64_t to = branch_target(code[i], i);
        if (to >= 0 && to <= n && !labels->at[to])
            labels->at[to] = allocate(1, sizeof **labels->at);
    }
    follow(labels, code);
}

void labels_free(struct labels *labels)
{
    for (int i = 0; i <= labels->n; ++i)
        free(labels->at[i]);
    free(labels->at);
    labels->at = NULL;
}

/* ---- a waiter right behind its load ---- */

/* (A stall of 0 holds the warp back in another way.) */
bool is_unseen(struct word w, struct word waiter)
{
    unsigned raised = 0;
    if (write_scoreboard(w) < SCOREBOARDS)
        raised |= 1u << write_scoreboard(w);
    if (read_scoreboard(w) < SCOREBOARDS)
        raised |= 1u << read_scoreboard(w);
    return (raised & waits(waiter)) && stall(w) == 1;
}

void scoreboards_settle(struct word *code, int n)
{
    for (int i = 0; i + 1 < n; ++i)
        if (is_unseen(code[i], code[i + 1]))
            lengthen_stall(&code[i], 1);
}
