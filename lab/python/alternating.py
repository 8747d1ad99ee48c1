#!/usr/bin/env python3
"""Times NumPy's sgemm, and sgemm and dgemm in turn: the one Rung answers, the other OpenBLAS, whose idle workers spin meanwhile.

    python3 lab/python/alternating.py [SIZE ...]
    build/release/bin/rung run -- python3 lab/python/alternating.py [SIZE ...]

Milliseconds of the first quartile and the median of 31 calls: of an FP32 product, and of an FP32 and an FP64 one together.
"""

import sys
import time

import numpy


def timed(call, calls=31):
    """Returns "QUARTILE/MEDIAN" in milliseconds."""
    call()
    call()
    took = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        took.append(1e3 * (time.perf_counter() - start))
    took.sort()
    return f"{took[calls // 4]:.2f}/{took[calls // 2]:.2f}"


def main(sizes):
    draw = numpy.random.default_rng(1)
    for n in sizes:
        a, b = (draw.random((n, n), dtype=numpy.float32) for _ in "ab")
        c, d = a.astype(float), b.astype(float)
        print(f"{n}: f32 {timed(lambda: a @ b)} in turn {timed(lambda: (a @ b, c @ d))}", flush=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [256, 400, 600, 1024, 1500, 2048])
