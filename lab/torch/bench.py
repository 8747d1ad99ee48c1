#!/usr/bin/env python3
"""Runs PyTorch's FP32 products with and without Rung in one process, A B A B: matmul, bmm, addmm, linear, einsum, both speed
and error against FP64. Needs a GPU and the drop-in in front:

    rung run -- python3 lab/torch/bench.py [--json FILE] [--quick]
"""

import argparse
import ctypes
import json
import math
import statistics

import torch
import torch.nn.functional as F


def cases(quick):
    r = lambda *shape: torch.randn(*shape, device="cuda")
    squares = [128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192]
    for n in squares[::3] + [4096] if quick else squares:
        yield f"matmul {n}", lambda a, b: a @ b, (r(n, n), r(n, n))
    for n in (1024, 4096):
        yield f"matmul {n} NT", lambda a, b: a @ b.t(), (r(n, n), r(n, n))
        yield f"matmul {n} TN", lambda a, b: a.t() @ b, (r(n, n), r(n, n))
        yield f"matmul {n} TT", lambda a, b: a.t() @ b.t(), (r(n, n), r(n, n))
    for m, k, n in ((1, 4096, 4096), (8, 4096, 4096), (32, 4096, 11008), (64, 4096, 4096), (128, 8192, 8192),
                    (333, 555, 777), (1000, 1000, 1000), (4097, 4097, 4097), (50257, 768, 512), (512, 768, 50257),
                    (8192, 64, 8192), (64, 65536, 64), (35, 2048, 700), (16384, 16, 16384)):
        yield f"matmul {m}x{k}x{n}", lambda a, b: a @ b, (r(m, k), r(k, n))
    for batch, m, k, n in ((8192, 16, 16, 16), (4096, 32, 32, 32), (2048, 64, 64, 64), (512, 128, 128, 128),
                           (64, 512, 64, 512), (64, 512, 512, 64), (16, 1024, 1024, 1024), (192, 197, 64, 197)):
        yield f"bmm {batch}x{m}x{k}x{n}", torch.bmm, (r(batch, m, k), r(batch, k, n))
        yield f"bmm {batch}x{m}x{k}x{n} NT", lambda a, b: torch.bmm(a, b.transpose(1, 2)), (r(batch, m, k), r(batch, n, k))
    for tokens, inside, out in ((1, 1024, 4096), (16, 4096, 4096), (512, 1024, 4096), (4096, 1024, 1024),
                                (4096, 1024, 4096), (4096, 4096, 1024), (8192, 768, 3072), (2048, 4096, 11008)):
        yield f"linear {tokens}x{inside}x{out}", F.linear, (r(tokens, inside), r(out, inside), r(out))
        yield f"addmm {tokens}x{inside}x{out}", lambda x, w, c: torch.addmm(c, x, w.t()), (
            r(tokens, inside), r(out, inside), r(tokens, out))
    yield "einsum bhid,bhjd->bhij", lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), (r(8, 16, 512, 64), r(8, 16, 512, 64))
    yield "einsum bij,jk->bik", lambda a, b: torch.einsum("bij,jk->bik", a, b), (r(8, 512, 1024), r(1024, 4096))


def time_us(function, operands, repeats):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        function(*operands)
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) * 1e3 / repeats


def compare(function, operands, answer):
    times = {0: [], 1: []}
    for on in (0, 1):
        answer(on)
        for _ in range(3):
            function(*operands)
    torch.cuda.synchronize()
    repeats = max(1, min(200, int(2000 / max(time_us(function, operands, 2), 1e-3))))
    for _ in range(7):
        for on in (0, 1):
            answer(on)
            times[on].append(time_us(function, operands, repeats))
    return statistics.median(times[0]), statistics.median(times[1])


def errors_u(function, operands, answer):
    """Returns the largest |c - c64| / (|A||B|) in units of 2^-24, without and with Rung."""
    wide = [x.double() for x in operands]
    exact, scale = function(*wide), function(*(x.abs() for x in wide))
    result = []
    for on in (0, 1):
        answer(on)
        result.append(((function(*operands).double() - exact).abs() / scale).max().item() * 2**24)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    try:
        answer = ctypes.CDLL(None).rung_cublas_answer
    except AttributeError:
        raise SystemExit("the drop-in is not in front of this process: start it with `rung run -- python3 ...`")
    torch.manual_seed(1)
    rows = []
    print(f"{'operation':32} {'cuBLAS us':>11} {'Rung us':>11} {'ratio':>7} {'cuBLAS u':>9} {'Rung u':>9}")
    for name, function, operands in cases(args.quick):
        plain, ours = compare(function, operands, answer)
        elements = max(x.numel() for x in operands)
        err = errors_u(function, operands, answer) if elements <= 1 << 24 else [math.nan, math.nan]
        rows.append({"name": name, "cublas_us": plain, "rung_us": ours, "ratio": plain / ours, "error_u": None if math.isnan(err[0]) else err})
        print(f"{name:32} {plain:11.2f} {ours:11.2f} {plain / ours:7.3f} {err[0]:9.2f} {err[1]:9.2f}", flush=True)
        del operands
    ratios = [r["ratio"] for r in rows]
    worst = min(rows, key=lambda r: r["ratio"])
    print(f"{len(rows)} cases, geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, "
          f"worst {worst['ratio']:.3f} ({worst['name']})")
    if args.json:
        with open(args.json, "w") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
