#!/usr/bin/env python3
"""Times PyTorch's product of 256 x 400 by 400 x 400 on two threads, alone and each time behind an operation on OpenMP's threads, whose
worker then spins: microseconds, median and least of 150.

    [rung run --only blas --] python3 lab/python/beside_openmp.py
"""

import statistics
import time

import torch

torch.set_num_threads(2)
a, b, large = torch.rand(256, 400), torch.rand(400, 400), torch.rand(256, 4000)


def times(behind_openmp):
    taken = []
    for _ in range(150):
        if behind_openmp:
            torch.relu(large)
        start = time.perf_counter()
        a @ b
        taken.append(1e6 * (time.perf_counter() - start))
    return f"{statistics.median(taken):.0f} {min(taken):.0f}"


times(False)
time.sleep(0.3)  # the worker has gone to sleep
print("alone", times(False), "behind OpenMP", times(True))
