/* How a matrix meets a vector by bulk copies. */
#ifndef RUNG_VECTOR_PLAN_H
#define RUNG_VECTOR_PLAN_H

typedef struct vector_plan {
    int blocks; /* to which all copies are dealt evenly */
} vector_plan;

#endif
