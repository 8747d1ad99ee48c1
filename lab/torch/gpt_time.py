#!/usr/bin/env python3
"""Asks PyTorch's profiler how long the matrix products of a training step of examples/train_gpt.py take, in one process:

    python3 lab/torch/gpt_time.py [--steps 8] [--json FILE]
    rung run -- python3 lab/torch/gpt_time.py ...          # the same with Rung in front
"""

import argparse
import json
import os
import sys

from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import train_gpt

# Parts of kernels' names: cuBLAS's and CUTLASS's products, Rung's with what they pack, split and finish.
PRODUCTS = ("gemm", "cutlass", "splitKreduce", "sm90_", "sm80_", "f16x3_", "strict_pack", "row_copy")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--json", help="append a line to this file")
    args = parser.parse_args()
    command = " ".join(sys.argv)
    sys.argv = ["train_gpt.py", "--steps", str(args.steps)]
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        train_gpt.main()
    kernels = sorted(((event.device_time_total / args.steps * 1e-3, event.count / args.steps, event.key)
                      for event in trace.key_averages()), reverse=True)
    products = [kernel for kernel in kernels if any(part in kernel[2] for part in PRODUCTS)]
    for ms, count, name in products:
        print(f"{ms:9.3f} ms a step {count:6.1f} launches  {name[:90]}")
    in_products, in_all = sum(kernel[0] for kernel in products), sum(kernel[0] for kernel in kernels)
    print(f"{in_products:9.3f} ms a step in products, {in_all:.3f} ms on the GPU in all")
    if args.json:
        line = {"command": command, "rung": train_gpt.in_front(), "products_ms": in_products, "gpu_ms": in_all,
                "kernels": [{"ms": ms, "launches": count, "name": name[:120]} for ms, count, name in products]}
        with open(args.json, "a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
