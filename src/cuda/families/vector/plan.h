/* How a matrix is multiplied by a vector. */
#ifndef RUNG_VECTOR_PLAN_H
#define RUNG_VECTOR_PLAN_H

#include <stdint.h>

typedef struct vector_plan {
    int64_t parts_bytes, gather_bytes; /* of the workspace, in this order */
} vector_plan;

#endif
