/* device/mma.h under the lens: it has the same calls. */
#ifndef RUNG_DEVICE_MMA_H
#define RUNG_DEVICE_MMA_H

RUNG_LENS_INLINE void mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    rung_lens_mma_tf32(d, a, b);
}

#endif
