/* How much room the copies of operands at any address take in shared memory (device/shifted.h), for host and device. */
#ifndef RUNG_DEVICE_SHIFTED_ROOM_H
#define RUNG_DEVICE_SHIFTED_ROOM_H

enum { RUNG_SHIFTED_CHUNK = 128 }; /* floats of a row that one copy takes, besides the four more that a shift needs */

#define SHIFTED_BK 16 /* along k of a stage */
/* For a stage of W rows or columns: bytes from row to row, from one copy's box to the next (the copy engine wants
 * multiples of 128), of all boxes, and what the copies bring. K_INNERMOST is 1 where k is innermost. */
#define SHIFTED_CHUNKS(W, K_INNERMOST) ((K_INNERMOST) || (W) < RUNG_SHIFTED_CHUNK ? 1 : (W) / RUNG_SHIFTED_CHUNK)
#define SHIFTED_ROW(W, K_INNERMOST) (((K_INNERMOST) ? SHIFTED_BK + 4 : (W) / SHIFTED_CHUNKS(W, K_INNERMOST) + 4) * 4)
#define SHIFTED_ROWS(W, K_INNERMOST) (((K_INNERMOST) ? (W) : SHIFTED_BK) / 4) /* of a box */
#define SHIFTED_BOX(W, K_INNERMOST) ((SHIFTED_ROWS(W, K_INNERMOST) * SHIFTED_ROW(W, K_INNERMOST) + 127) / 128 * 128)
#define SHIFTED_BYTES(W, K_INNERMOST) (4 * SHIFTED_CHUNKS(W, K_INNERMOST) * SHIFTED_BOX(W, K_INNERMOST))

#endif
