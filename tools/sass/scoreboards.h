/* Scoreboards: which registers loads and stores still have in hand, and who has to wait for them. A load raises a
 * scoreboard when it goes and lowers it when its data is there; an instruction waits until the scoreboards that it
 * names are at zero.
 */
#ifndef RUNG_TOOLS_SCOREBOARDS_H
#define RUNG_TOOLS_SCOREBOARDS_H

#include "sass.h"

/* For each scoreboard the registers that are being written, and those that are still being read. Copies to shared
 * memory read their addresses in order, so the compiler counts only some of them: `uncounted` are the registers of
 * those whose reading the next counted copy will tell. */
struct pending {
    uint8_t written[SCOREBOARDS][REGISTERS], read[SCOREBOARDS][REGISTERS], uncounted[REGISTERS];
};

/* What may be under way where a branch leads to: NULL where none leads to. */
struct labels {
    struct pending **at;
    int n;
};

/* Goes on to the state behind instruction w. */
void pending_step(struct pending *p, struct word w);

/* Adds what another state has under way. */
void pending_join(struct pending *p, const struct pending *other);

/* Returns the scoreboards on which p has a register under way that `before` has not. */
unsigned pending_new(const struct pending *p, const struct pending *before);

/* Returns the scoreboards to wait for before registers are read (-1: none) and `width` registers from d on are written.
 */
unsigned pending_waits(const struct pending *p, const int source[3], int d, int width);

void labels_find(struct labels *labels, const struct word *code, int n);

void labels_free(struct labels *labels);

/* Returns whether `waiter` comes right behind w and would not see what w has raised, as a scoreboard counts from the
 * second cycle on. Nobody after it would wait again. */
bool is_unseen(struct word w, struct word waiter);

/* Lengthens the stall of each instruction whose scoreboard the next one would not see yet. */
void scoreboards_settle(struct word *code, int n);

#endif
