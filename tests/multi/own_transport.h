/* A transport between ranks that are threads of one process, for tests: a message is read from its sender's memory when
 * its receiver takes it, and that is when the dice say so. What a transport may rely on is checked. */
#ifndef RUNG_TESTS_OWN_TRANSPORT_H
#define RUNG_TESTS_OWN_TRANSPORT_H

#include <stdint.h>

typedef struct own_world own_world;

/* What rung_multi_config.communicator points to: a place in a world. */
typedef struct own_seat {
    own_world *world;
    int rank;
} own_seat;

typedef own_world *own_world_new_function(int ranks, uint64_t seed);
/* Returns how many rules were broken, with the first one's sentence; all contexts of the world are closed. */
typedef int own_world_end_function(own_world *world, int64_t *operations, char why[256]);

#endif
