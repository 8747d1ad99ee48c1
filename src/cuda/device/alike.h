/* A store that many blocks of a launch make alike. Whichever comes last, the same lies there. The lens, which names two
 * blocks that store at one place, learns by a volatile store that they mean to. */
#ifndef RUNG_DEVICE_ALIKE_H
#define RUNG_DEVICE_ALIKE_H

#ifdef RUNG_LENS
#define STORE_ALIKE(at, value) ((void)(*(volatile __typeof__(*(at)) *)(at) = (value)))
#else
#define STORE_ALIKE(at, value) ((void)(*(at) = (value)))
#endif

#endif
