#!/usr/bin/env python3
"""The figures that explain prints agree with each other: of a kernel at one k and at a multiple of it, and of threads with sizes.

figures.py RUNG LIBRUNG_LENS
"""
import os
import re
import subprocess
import sys

RUNG, LENS = sys.argv[1:3]
failed = looked = 0


def rung(*words, **settings):
    done = subprocess.run([RUNG, *words], env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    if done.returncode:
        check(False, f"rung {' '.join(words)} ended with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def check(holds, sentence):
    global failed, looked
    looked += 1
    if not holds:
        failed += 1
        print("FAILED:", sentence)


def near(a, b, share=1e-3):
    return a is not None and b is not None and abs(a - b) <= share * max(abs(a), abs(b), 1e-30)


def accesses(said):
    """Returns explain's loads of a result: by formula and under the lens, global and shared."""
    found = re.findall(r"(?:global|shared) loads +([\d.]+) +([\d.]+)", said)
    return [float(x) for pair in found for x in pair]


def explain():
    """What is counted at 1024 is scaled to other k: twice the k means twice the loads, and a size may be counted or scaled."""
    kernel, m, n, k = "l05_fewer_registers", 2048, 2048, 3072
    one, more = rung("explain", kernel, f"{m}x{n}x{k // 3}"), rung("explain", kernel, f"{m}x{n}x{k}")
    few, many = accesses(one), accesses(more)
    check(len(few) == 4 and len(many) == 4, f"explain {kernel} names no loads:\n{one}")
    for a, b in zip(few, many):
        check(near(3 * a, b, 0.01), f"explain {kernel}: {a} loads at k = {k // 3} and {b} at {k}")
    gflop, flop_a_byte = (float(re.search(what, more).group(1)) for what in (r"([\d.]+) GFLOP at", r"roofline +([\d.]+) FLOP"))
    check(near(gflop, 2 * m * n * k / 1e9), f"explain {kernel}: {gflop} GFLOP for {m} x {n} x {k}")
    check(near(flop_a_byte, 2 * m * n * k / 4 / (m * k + k * n + m * n), 0.01), f"explain {kernel}: {flop_a_byte} FLOP a byte")


def threads():
    """A larger product is planned for as many threads as a smaller one at least, and a small one for one thread."""
    said = [rung("explain", f"{n}x{n}x{n}", "--device", "cpu", RUNG_NUM_THREADS="2") for n in (1, 8, 64, 300, 900)]
    counts = [int((re.search(r" (\d+) threads?,", text) or [0, 0])[1]) for text in said]
    check(counts[:2] == [1, 1] and counts == sorted(counts), f"explain: threads of products that grow: {counts}\n{said[1]}")


threads()
if os.path.exists(LENS):
    explain()
else:
    print("left out: what explain and lens print, no lens in this build")
print(f"{looked} figures compared, {failed} wrong")
sys.exit(failed > 0)
