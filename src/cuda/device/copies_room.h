/* How many floats tiles of operands take in shared memory (device/copies.h), for host and device. */
#ifndef RUNG_DEVICE_COPIES_ROOM_H
#define RUNG_DEVICE_COPIES_ROOM_H

/* `depth` k of `extent` rows with k innermost: rows are padded by four floats, so that no two threads of a load meet in
 * a bank. They lie in four quarters, row r in quarter r % 4, so that threads with four rows each read neighbouring
 * places. At a depth of 16 a quarter of a warp copies two rows; there the quarters are shifted by half the banks. */
#define QUARTER_FLOATS(extent, depth)                                                                                  \
    ((extent) / 4 * ((depth) + 4) + ((depth) == 16 && (extent) / 4 * ((depth) + 4) % 32 == 0 ? 16 : 0))
#define INNERMOST_FLOATS(extent, depth) (3 * QUARTER_FLOATS(extent, depth) + (extent) / 4 * ((depth) + 4))

/* The same rows with k outermost, turned while they are copied: from one k to the next, and in all. */
#define TURNED_PITCH(extent) ((extent) + 4)
#define TURNED_FLOATS(extent, depth) (TURNED_PITCH(extent) * (depth))

#endif
