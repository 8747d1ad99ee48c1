#!/usr/bin/env python3
"""The figures that the command prints agree with each other: what is computed from other columns of a table, or said in two places.

Bars, ratios, rates and times of climb, bench and reduce; what explain says of a kernel at one k and at a multiple, and of threads; that numbers
which options take count from 1 on.

figures.py RUNG LIBRUNG_LENS
"""
import json
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


def rows(*words, **settings):
    return [json.loads(line) for line in rung(*words, "--format", "json", **settings).splitlines() if line.startswith("{")]


def bar_cells(text):
    """Returns how many cells a bar fills; its last character tells eighths. Where characters are bytes a cell is a #."""
    return sum(1.0 if c in "█#" else (ord("█") + 8 - ord(c)) / 8 for c in text if c == "#" or "█" <= c <= "▏")


def climb(locale, cell):
    """Each line: the ratio to the line before and to the vendor, and the bar, which is the share of the vendor in steps of `cell`."""
    said = rung("climb", "--device", "cpu", "--size", "16", "--threads", "1", LC_ALL=locale)
    lines = [re.match(r"(\S.*?) +16 +([\d.]+) +([\d.]+) +(.*?) ok +(\S*)$", line) for line in said.splitlines()]
    lines = [line.groups() for line in lines if line]
    check(len(lines) >= 8, f"climb has {len(lines)} lines:\n{said}")
    before = None
    for name, gflops, us, rest, bar in lines:
        gflops, us, ratios = float(gflops), float(us), re.findall(r"\d+\.\d+", rest)
        check(near(gflops, 2 * 16**3 / us / 1e3, 0.1 / us + 0.1 / gflops), f"climb: {name}: {us} us are not {gflops} GFLOP/s")
        if len(ratios) == 3 and before:
            check(near(float(ratios[0]), gflops / before, 0.01 + 0.1 / min(gflops, before)),
                  f"climb: {name}: {gflops} after {before} is not {ratios[0]} times as fast")
        if len(ratios) >= 2:
            of_vendor = float(ratios[-2])
            check(-0.05 <= 24 * min(of_vendor, 1.5) - bar_cells(bar) <= cell + 0.05,
                  f"climb: {name}: a bar of {bar_cells(bar)} cells of 24 for {of_vendor} of the vendor")
        before = gflops


def bench():
    """Times and rates, shares and ratios of peers, for products and batches."""
    for row in rows("bench", "64x64x64", "33x20x17:TNx3", "128x8x300", "--device", "cpu", "--threads", "1", "--budget-ms", "5"):
        m, n, k, batch = map(int, re.match(r"(\d+)x(\d+)x(\d+)(?::..)?(?:x(\d+))?", row["shape"]).groups("1"))
        check(near(row["gflops"], 2 * m * n * k * batch / row["us"] / 1e3), f"bench: us and gflops differ: {row}")
        ratios = [row[name] for name in row if name.endswith("_ratio") and name != "best_ratio" and row[name] is not None]
        if ratios:
            check(near(row["best_ratio"], min(ratios)), f"bench: best_ratio is not the least: {row}")
        for name in row:
            if name.endswith("_ratio") and name != "best_ratio" and row[name] is not None:
                # Ratios are medians over rounds, which need not be the ratio of the medians.
                check(near(row[name], row[name.replace("_ratio", "_us")] / row["us"], 0.5), f"bench: {name}: {row}")


def reduce():
    for row in rows("reduce", "10000", "--device", "cpu", "--quick", "--budget-ms", "2"):
        check(near(row["gbytes_per_s"], 4 * row["n"] / row["us"] / 1e3), f"reduce: us and gbytes_per_s differ: {row}")


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
    counts = [int((re.search(r"predicted .* (\d+) threads?,", text) or [0, 0])[1]) for text in said]
    check(counts[:2] == [1, 1] and counts == sorted(counts), f"explain: threads of products that grow: {counts}\n{said[1]}")


def numbers():
    """A number that an option takes counts from 1 on."""
    ran = [int((re.search(r"(\d+) of 16 blocks ran", rung("lens", "l01_naive", "128x128x16", "--blocks", str(n))) or [0, 0])[1]) for n in (1, 2, 3)]
    check(0 < ran[0] < ran[1] < ran[2], f"lens --blocks 1, 2 and 3 run {ran} blocks")
    for n in (1, 2, 3):
        said = rung("fuzz", "--device", "cpu", "--size", "8", "--calls", str(n))
        check(f"{n} calls of" in said or f"{n} call of" in said, f"fuzz --calls {n}: {said}")


climb("C", 1)
climb("C.UTF-8", 1 / 8)
bench()
threads()
reduce()
if os.path.exists(LENS):
    explain()
    numbers()
else:
    print("left out: what explain and lens print, no lens in this build")
print(f"{looked} figures compared, {failed} wrong")
sys.exit(failed > 0)
