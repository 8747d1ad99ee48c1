/* The clock that waiting and timelines read. */
#ifndef RUNG_MULTI_CLOCK_H
#define RUNG_MULTI_CLOCK_H

/* Seconds since some moment; it never goes back. */
double multi_now_s(void);

#endif
