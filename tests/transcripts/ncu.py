#!/usr/bin/env python3
"""A stand-in for ncu: every figure that is asked for is a number made of its name, so that a table shows which figure stands where. One launch of each kernel."""
import sys
import zlib

words = sys.argv[1:]
metrics = words[words.index("--metrics") + 1].split(",")
kernels = words[words.index("--launch") + 1].split(",")
print(",".join(f'"{name}"' for name in ["ID", "Kernel Name", *metrics]))
print(",".join('""' for _ in ["", "", *metrics]))
for number, kernel in enumerate(kernels):
    print(",".join(f'"{cell}"' for cell in [number, kernel, *(1000 + zlib.crc32(f"{kernel} {name}".encode()) % 100000 for name in metrics)]))
