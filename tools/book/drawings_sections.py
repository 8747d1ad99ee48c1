"""Draws the pictures of single sections of the book: docs/book/img/*.svg, made by `./dev pages`.

As in drawings.py what a picture shows is worked out here from the sizes and rules that the text states, or read from
results/.
"""
import math
import os
import statistics
import struct
import sys

from drawings import (BLUE, DIM, GREEN, GRID, INK, LEAF, ORANGE, PALE, PLUM, RED, ROOT, SAND, SKY, Drawing, arrow, framed, title)
from drawings_later import FOURS, LILAC, ROSE, axes, lines_of

sys.path.insert(0, os.path.join(ROOT, "tools/pages"))
from records import COUNTERS, CPU, PORTS, Records, port_points  # noqa: E402

ROOF, L2_TBS = 66.9, 5.5


def counters():
    return {line["kernel"]: line["counter"] for line in lines_of(COUNTERS)}


def tile_need():
    d = Drawing(760, 300, "What a block's tile asks of L2")
    title(d, "FLOP for each byte that a square tile brings in, and what L2 asks for")
    need = ROOF / L2_TBS
    for i, side in enumerate((8, 16, 32, 48, 64, 96, 128)):
        flop, y = side / 4, 48 + i * 31
        d.text(20, y + 16, f"{side} × {side}", 12)
        framed(d, 120, y, flop * 17, 22, LEAF if flop > need - 0.5 else ROSE)
        d.text(128 + flop * 17, y + 16, f"{flop:g}", 12)
    at = 120 + need * 17
    d.line(at, 40, at, 266, RED, 1.5, "5 3")
    d.text(at + 6, 284, f"{need:.0f} FLOP a byte: {ROOF} TFLOP/s from {L2_TBS} TB/s", 12, RED)
    return d.done()


def squares():
    d = Drawing(760, 290, "64 results in four shapes")
    title(d, "64 results of a thread in four shapes, and the floats that one step of k needs")
    x = 36
    for rows, columns in ((64, 1), (16, 4), (4, 16), (8, 8)):
        cell = min(200 / max(rows, 8), 13)
        for r in range(rows):
            d.box(x - cell - 3, 52 + r * cell, cell - 1, cell - 1, ORANGE)
            for c in range(columns):
                d.box(x + c * cell, 52 + r * cell, cell - 1, cell - 1, SKY)
        for c in range(columns):
            d.box(x + c * cell, 49 - cell, cell - 1, cell - 1, BLUE)
        best = rows == columns
        d.text(x - 10, 268, f"{rows} × {columns}: {rows + columns}", 12, GREEN if best else INK, bold=best)
        x += max(columns * cell, 70) + 84
    d.text(20, 284, "Pale: results. Orange: floats of A. Blue: floats of B. The square has the least border.", 11, DIM)
    return d.done()


def two_buffers():
    d = Drawing(760, 290, "One buffer and two barriers, two buffers and one")
    title(d, "One tile's turn of two warps: l14 with one buffer, l15 with two")
    rows = (("l14", (("compute", 150, SKY), ("barrier", 0, RED), ("store", 60, SAND), ("barrier", 0, RED))),
            ("l15", (("compute", 150, SKY), ("store", 60, SAND), ("barrier", 0, RED))))
    for n, (name, parts) in enumerate(rows):
        late = (0, 34)
        at = [70.0, 70.0]
        y = 56 + n * 106
        d.text(20, y + 34, name, 13, INK, bold=True)
        for turn in range(2):
            for words, wide, fill in parts:
                if wide:
                    for w in range(2):
                        span = wide + (late[(w + turn) % 2] if words == "compute" else 0)
                        framed(d, at[w], y + w * 30, span, 24, fill, words, 11)
                        at[w] += span
                else:
                    meet = max(at)
                    for w in range(2):
                        d.box(at[w], y + w * 30 + 8, meet - at[w], 8, ROSE)
                    d.line(meet + 1, y - 6, meet + 1, y + 60, RED, 2)
                    at = [meet + 3, meet + 3]
        d.text(70, y + 78, "two turns end here" if turn else "", 11, DIM)
    d.text(20, 264, "Red lines: barriers. Rose: a warp that waits there, because the other's multiplications took longer this time.", 11, DIM)
    d.text(20, 280, "With two buffers nobody reads what is stored to, so the barrier between the two is gone.", 11, DIM)
    return d.done()


def busy():
    d = Drawing(760, 316, "Busy and useful")
    title(d, "Three gauges of four rungs, in per cent: L1 hits, busiest unit of the SM, multiply-adds")
    found = counters()
    for i, name in enumerate(("l01_naive", "l05_fewer_registers", "l10_thread_tile_8x8", "l24_register_banks")):
        y = 46 + i * 58
        d.text(20, y + 26, name, 12)
        for j, (key, fill) in enumerate((("l1_hit", SAND), ("sm_percent", LILAC), ("fma_percent", GREEN))):
            value = found[name].get(key) or 0
            d.box(190, y + j * 16, value * 5, 13, fill)
            d.text(196 + value * 5, y + j * 16 + 11, f"{value:.0f}", 10)
    d.text(20, 288, "Sand: hits in L1. Lilac: the busiest unit. Green: the FMA pipe, the only gauge that is work.", 11, DIM)
    d.text(20, 304, "From results/ladder-counters-2048-h200.jsonl.", 11, DIM)
    return d.done()


def lens_hardware():
    d = Drawing(760, 340, "The lens's counts and the hardware's")
    title(d, "Shared memory's passes of each rung at 1024: counted by the lens, counted by an H200")
    left, top, right, bottom = 90, 56, 560, 286
    place = lambda v, a, b: a + (math.log10(v) - 6) / 2 * (b - a)
    axes(d, left, top, right, bottom, "the lens's count (logarithmic)", "the hardware's")
    for power in (6, 7, 8):
        for a, b, over in ((left, right, True), (bottom, top, False)):
            at = place(10 ** power, a, b)
            d.line(at, bottom, at, bottom + 4, INK) if over else d.line(left - 4, at, left, at, INK)
            d.text(at if over else left - 8, bottom + 18 if over else at + 4, f"{10 ** (power - 6)} million", 10, DIM, "middle" if over else "end")
    d.line(place(1e6, left, right), place(1e6, bottom, top), place(1e8, left, right), place(1e8, bottom, top), GRID, 1.5)
    told = {line["kernel"]: line["counter"] for line in lines_of("results/lens_vs_counters.jsonl")}
    worst, count = 0.0, 0
    for line in lines_of("results/ladder-lens-1024.jsonl"):
        by_lens, by_chip = line["shared_load_passes"], told.get(line["kernel"], {}).get("sass_shared_ld_wavefronts")
        if by_lens and by_chip and line["kernel"] < "l3":
            d.dot(place(by_lens, left, right), place(by_chip, bottom, top), BLUE)
            worst, count = max(worst, abs(by_chip / by_lens - 1)), count + 1
    d.text(580, 90, f"{count} rungs", 12)
    d.text(580, 108, "largest difference:", 12)
    d.text(580, 126, f"{100 * worst:.2f}%", 12, INK, bold=True)
    d.text(20, 334, "All points lie on the diagonal. From results/ladder-lens-1024.jsonl and results/lens_vs_counters.jsonl.", 11, DIM)
    return d.done()


def main_loops():
    d = Drawing(760, 330, "What stands in the main loops")
    title(d, "Main loops as compiled: of 100 instructions, multiply-adds and others")
    loops = {line["kernel"]: line for line in lines_of(PORTS)}
    names = ("l04_shared_32x32", "l08_float4", "l10_thread_tile_8x8", "l12_a_transposed", "l15_double_buffer", "l20_multistage", "l21_tma",
             "l24_register_banks", "l27_written_loop")
    for i, name in enumerate(names):
        y, share = 44 + i * 28, 100 * loops[name]["ffmas"] / loops[name]["instructions"]
        d.text(20, y + 15, name, 11)
        d.box(190, y, share * 4.7, 20, GREEN)
        d.box(190 + share * 4.7, y, 470 - share * 4.7, 20, "#e0b050")
        d.text(196, y + 14, f"{share:.0f}", 11, "#ffffff")
        d.text(668, y + 14, f"{loops[name]['ffmas']} of {loops[name]['instructions']}", 10, DIM)
    d.text(20, 312, "Green: FFMA. Yellow: loads, addresses, barriers, jumps. Right: the loop's own numbers; how far it is unrolled decides its length.", 11, DIM)
    d.text(20, 326, "From results/ladder-ports.jsonl.", 11, DIM)
    return d.done()


def batch():
    d = Drawing(760, 280, "A batch of small products")
    title(d, "Small products on one SM: a block for each, or a warp that goes on to the next")
    for w in range(3):
        y = 54 + w * 24
        for i in range(3):
            x = 120 + i * 205 + w * 12
            framed(d, x, y, 30, 18, PALE, "start", 8)
            framed(d, x + 31, y, 92, 18, ROSE, "waits for operands", 9)
            framed(d, x + 124, y, 30, 18, SKY, "FMA", 9)
            framed(d, x + 155, y, 30, 18, SAND, "C", 9)
    d.text(20, 84, "a block each", 12)
    for w in range(3):
        y = 162 + w * 24
        framed(d, 120, y, 92, 18, ROSE, "waits", 9)
        for i in range(9):
            framed(d, 213 + i * 57, y, 28, 18, SKY, "FMA", 9)
            framed(d, 242 + i * 57, y, 27, 18, SAND, "C", 9)
    d.text(20, 192, "a warp, many", 12)
    d.text(20, 262, "Below: while a warp multiplies and stores one product, the next one's operands are on their way. Only the first is waited for.", 11, DIM)
    return d.done()


def port_model():
    d = Drawing(760, 340, "The model of the ports against the hardware")
    points = port_points(Records(ROOT), "l14")
    r = statistics.correlation(*zip(*points))
    title(d, f"{len(points)} rungs from l14 on: what the model says is lost, and what the hardware holds back")
    left, top, right, bottom = 80, 60, 600, 280
    x_of, y_of = lambda v: left + v / 18 * (right - left), lambda v: bottom - v / 18 * (bottom - top)
    axes(d, left, top, right, bottom, "cycles of the loop lost at the ports, by the model, %", "time at dispatch, counted, %")
    for v in (0, 4, 8, 12, 16):
        d.text(x_of(v), bottom + 18, f"{v}", 11, DIM, "middle")
        d.text(left - 8, y_of(v) + 4, f"{v}", 11, DIM, "end")
        d.line(left, y_of(v), right, y_of(v), GRID)
    for x, y in points:
        d.dot(x_of(x), y_of(y), PLUM)
    d.text(620, 90, "correlation", 12)
    d.text(620, 110, f"{r:.2f}", 16, PLUM, bold=True)
    d.text(20, 332, "The two at the upper right are l21 and l22. From results/ladder-ports.jsonl and results/ladder-counters-2048-h200.jsonl.", 11, DIM)
    return d.done()


def turn_slots():
    d = Drawing(760, 230, "Where a turn's slots go")
    title(d, "One turn of the written loop: 512 multiply-adds, and the slots that they take")
    loop = next(x for x in lines_of(PORTS) if x["kernel"] == "l29_one_kernel")
    counted = counters()["l29_one_kernel"]
    took = 100 * loop["ffmas"] / counted["fma_percent"]
    issued = loop["ffmas"] * counted["issued_percent"] / counted["fma_percent"]
    scale = 700 / took
    rows = (("512 multiply-adds, nothing else: the roof", ((loop["ffmas"], GREEN),)),
            (f"the loop as written: {loop['instructions']} instructions, {loop['cycles']} cycles by the model",
             ((loop["ffmas"], GREEN), (loop["cycles"] - loop["ffmas"], "#e0b050"))),
            (f"counted on the chip at 2048, the ends of tiles included: {took:.0f} cycles for 512 multiply-adds",
             ((loop["ffmas"], GREEN), (issued - loop["ffmas"], "#e0b050"), (took - issued, ROSE))))
    for i, (words, parts) in enumerate(rows):
        x, y = 20, 46 + i * 54
        d.text(20, y + 10, words, 12)
        for wide, fill in parts:
            framed(d, x, y + 16, wide * scale, 22, fill)
            x += wide * scale
    d.text(20, 212, "Green: multiply-adds. Yellow: other instructions. Rose: nothing was issued.", 11, DIM)
    d.text(20, 226, "l29; results/ladder-ports.jsonl, results/ladder-counters-2048-h200.jsonl.", 11, DIM)
    return d.done()


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def cancel():
    d = Drawing(760, 230, "Two products that nearly cancel")
    title(d, "One rounding of a large product, seen beside a small sum")
    large = 1000000.05
    rounded, exact = float32(large), large - 999999.0
    got = float32(rounded - 999999.0)
    scale = 640 / 1000001
    framed(d, 20, 52, 1000000 * scale, 26, SKY, f"first product: {large}, kept as {rounded}", 12)
    framed(d, 20, 86, 999999 * scale, 26, ROSE, "second product: −999999", 12)
    framed(d, 20, 120, 4, 26, LEAF)
    d.text(32, 138, f"their sum: {got:g} instead of {exact:.2f}", 12)
    d.text(20, 178, f"error {abs(got - exact):.4f}: {100 * abs(got - exact) / exact:.1f}% of the sum, but {abs(got - exact) / 1999999.05 / 2 ** -24:.2f} u of the magnitudes that were added", 12)
    d.text(20, 212, "Worked out in FP32. The rounding is a share of what was rounded; the measure looks at that.", 11, DIM)
    return d.done()


def formats():
    d = Drawing(760, 260, "Four formats")
    title(d, "Bits of a number: sign, exponent (its range), fraction (its accuracy)")
    for i, (name, exponent, fraction) in enumerate((("FP32", 8, 23), ("TF32", 8, 10), ("fp16", 5, 10), ("bf16", 8, 7))):
        y = 48 + i * 44
        d.text(20, y + 20, name, 13, INK, bold=True)
        for b in range(1 + exponent + fraction):
            framed(d, 80 + b * 16.5, y, 15, 28, PALE if b == 0 else SAND if b <= exponent else SKY)
        d.text(88 + (1 + exponent + fraction) * 16.5, y + 19, f"{fraction + 1} significant bits", 12)
    d.text(20, 246, "One bit more than the fraction is significant: the leading 1 is not stored. TF32 and fp16 are equally accurate.", 11, DIM)
    return d.done()


def image():
    d = Drawing(760, 280, "Split first, multiply after")
    title(d, "An operand becomes an image: split once, laid out as a stage of the ring will hold it")
    for r in range(4):
        for c in range(8):
            framed(d, 30 + c * 20, 70 + r * 20, 18, 18, FOURS[r])
    d.text(30, 62, "A in memory, FP32", 12)
    arrow(d, 200, 110, 250, 110)
    d.text(196, 98, "split kernel", 11, DIM)
    for n, words in enumerate(("hi", "lo")):
        for i in range(32):
            framed(d, 262 + i % 16 * 15, 70 + n * 56 + i // 16 * 20, 13, 18, FOURS[i // 2 % 4])
        d.text(262, 64 + n * 56, f"{words}: fp16, in the tensor core's order", 11)
    arrow(d, 510, 110, 560, 110)
    d.text(508, 98, "bulk copy", 11, DIM)
    framed(d, 572, 70, 150, 34, SKY, "stage: hi", 12)
    framed(d, 572, 110, 150, 34, SAND, "stage: lo", 12)
    d.text(572, 62, "shared memory", 12)
    d.text(30, 216, "Splitting inside the product's loop happens once for each block that needs the element: n/128 times.", 12)
    d.text(30, 236, "Here it happens once. The product's kernel copies bytes and starts tensor instructions.", 12)
    d.text(20, 268, "A colour is a row. Not to scale: an image also groups its rows by eight.", 11, DIM)
    return d.done()


def accurate_time():
    d = Drawing(760, 240, "Where accurate mode's time goes at 4096")
    title(d, "accurate at 4096: what can be counted beforehand, and what was measured")
    line = [x for x in lines_of("results/accurate-normal-h200.jsonl") if x.get("m") == 4096 and x.get("n") == 4096][-1]
    took = line["us"]["median"]
    split, products = 4 * 4096 ** 2 * 4 / 4.8e12 * 1e6, 3 * 2 * 4096 ** 3 / 740e12 * 1e6
    rows = ((f"three fp16 products at 740 TFLOP/s: {products:.0f} µs", ((products, SKY),)),
            (f"and the split at 4.8 TB/s: {products + split:.0f} µs", ((products, SKY), (split, SAND))),
            (f"measured: {took:.0f} µs", ((products, SKY), (split, SAND), (took - products - split, ROSE))))
    for i, (words, parts) in enumerate(rows):
        x, y = 20, 46 + i * 54
        d.text(20, y + 10, words, 12)
        for wide, fill in parts:
            framed(d, x, y + 16, wide * 700 / took, 22, fill)
            x += wide * 700 / took
    d.text(20, 228, "Rose: promotion, the ends of tiles, the last round, the launch. From results/accurate-normal-h200.jsonl.", 11, DIM)
    return d.done()


def order_of_parts():
    d = Drawing(760, 220, "The order of parts")
    title(d, "Three parts of one sum, added in two orders (FP32)")
    parts = (16777216.0, 1.0, 1.0)
    first = float32(float32(parts[0] + parts[1]) + parts[2])
    second = float32(parts[0] + float32(parts[1] + parts[2]))
    for i, (words, order, value) in enumerate((("in the order of k", ("16777216", "+ 1", "+ 1"), first), ("the small ones first", ("1", "+ 1", "+ 16777216"), second))):
        y = 56 + i * 62
        d.text(20, y + 20, words, 12)
        for j, part in enumerate(order):
            framed(d, 200 + j * 120, y, 112, 30, SKY if "1677" in part else SAND, part, 12)
        arrow(d, 566, y + 15, 592, y + 15)
        framed(d, 600, y, 120, 30, LEAF, f"{value:.0f}", 12)
    d.text(20, 200, "Both are right to within a rounding. They are not the same bits; so the order must not depend on who is ready first.", 11, DIM)
    return d.done()


def links():
    d = Drawing(760, 250, "How wide the ways are")
    title(d, "Bytes a second on each way, as lines of that length (logarithmic)")
    ways = (("a GPU's memory", 4800, LEAF), ("between two GPUs, one way", 390, SKY), ("host to four GPUs, all together", 171, SAND), ("host to one GPU", 55, ROSE))
    for i, (words, rate, fill) in enumerate(ways):
        y = 48 + i * 42
        d.text(20, y + 18, words, 12)
        wide = 104 * math.log10(rate)
        framed(d, 270, y, wide, 26, fill)
        d.text(280 + wide, y + 18, f"{rate} GB/s", 12)
    d.text(20, 236, "3 · 16384² · 4 bytes need 19 ms on the third way. The multiplication of four GPUs takes 39 ms: long enough to hide them behind it.", 11, DIM)
    return d.done()


def alarm():
    d = Drawing(760, 290, "When a rank dies")
    title(d, "Five ranks: the way of the data, and each rank's own line to rank 0")
    x_of = lambda i: 40 + i * 145
    for i in range(5):
        dead = i == 3
        framed(d, x_of(i), 130, 90, 40, ROSE if dead else SKY, f"rank {i}" + (" †" if dead else ""), 13)
        if i:
            arrow(d, x_of(i) - 53, 150, x_of(i) - 3, 150, DIM)
            d.line(x_of(0) + 45, 92 - i * 9, x_of(i) + 45, 92 - i * 9, RED if dead else GREEN, 1.6, "4 3" if dead else "")
            d.line(x_of(i) + 45, 92 - i * 9, x_of(i) + 45, 130, RED if dead else GREEN, 1.6, "4 3" if dead else "")
    d.line(x_of(0) + 45, 56, x_of(0) + 45, 130, GREEN, 1.6)
    for i, words in enumerate(("1. Rank 3 dies; its line closes by itself.", "2. Rank 0 sees that, and tells ranks 1, 2 and 4 on theirs.",
                               "3. Each stops its wait for data and returns an error that names rank 3.")):
        d.text(70, 206 + i * 20, words, 12)
    d.text(20, 282, "Without the lines above, rank 4 would wait for rank 3's data for ever, and then all others for rank 4's.", 11, DIM)
    return d.done()


def walk():
    d = Drawing(760, 270, "Two orders of the same loops")
    title(d, "The inner loop's way through B: c01 goes down a column, c02 along a row")
    for n, (name, step) in enumerate((("c01: a line of 64 bytes for each float", "down"), ("c02: a line of 64 bytes for sixteen floats", "along"))):
        x0 = 30 + n * 370
        d.text(x0, 54, name, 12, INK, bold=True)
        for r in range(8):
            for c in range(16):
                framed(d, x0 + c * 20, 66 + r * 20, 18, 18, ROSE if step == "down" and c == 0 else SAND if step == "down" else LEAF if r == 0 else PALE)
        if step == "down":
            arrow(d, x0 + 9, 70, x0 + 9, 222, RED, 2)
        else:
            arrow(d, x0 + 4, 75, x0 + 312, 75, GREEN, 2)
    d.text(20, 250, "A row of 16 boxes is a cache line here. Rose: used. Sand: fetched beside it, gone before its turn comes. Green: fetched and used.", 11, DIM)
    return d.done()


def cpu_climb():
    d = Drawing(760, 310, "The climb on a CPU")
    title(d, "The rungs of the CPU at 1024, one thread, GFLOP/s")
    found = {x["kernel"]: x["gflops"] for x in lines_of(CPU) if x.get("threads") == 1 and x.get("kernel", "")[:1] == "c"}
    peak = next(x["fma_peak_gflops"] for x in lines_of(CPU) if x.get("fma_peak_gflops"))
    for i, name in enumerate(sorted(x for x in found if x != "c08_threads")):
        y = 44 + i * 32
        d.text(20, y + 17, name, 12)
        framed(d, 170, y, found[name] / peak * 500, 24, LEAF)
        d.text(178 + found[name] / peak * 500, y + 17, f"{found[name]:.1f}", 12)
    d.line(670, 38, 670, 268, RED, 1.5, "5 3")
    d.text(664, 284, f"what the FMA units could do: {peak:.0f}", 12, RED, "end")
    d.text(20, 304, "From results/cpu_climb_1024.jsonl.", 11, DIM)
    return d.done()


def geomean():
    d = Drawing(760, 330, "One figure for many shapes")
    title(d, "Squares beside cuBLAS: each ratio, their geometric mean, and the worst")
    ratios = []
    for line in lines_of("results/strict-squares-h200.jsonl"):
        if line.get("kind") == "bench" and "squares.txt" in line["command"]:
            ratios.append((line["m"], [p for p in line["peers"] if p["name"] == "cublas"][0]["ratio"]["median"]))
    ratios.sort()
    left, bottom, right = 60, 270, 730
    y_of = lambda v: bottom - math.log2(v / 0.9) / math.log2(3.6 / 0.9) * 210
    step = (right - left) / len(ratios)
    worst = min(v for _, v in ratios)
    for i, (m, value) in enumerate(ratios):
        d.box(left + i * step + 2, y_of(value), step - 4, bottom - y_of(value), ROSE if value == worst else SKY)
        d.text(left + i * step + step / 2, bottom + 14, f"{m}", 8, DIM, "middle")
    mean = math.exp(statistics.mean(math.log(v) for _, v in ratios))
    for value, colour, words in ((1, INK, "1"), (mean, GREEN, f"{mean:.2f}"), (worst, RED, f"{worst:.2f}")):
        d.line(left, y_of(value), right, y_of(value), colour, 1.4, "5 3")
        d.text(left - 6, y_of(value) + 4, words, 11, colour, "end")
    d.text(20, 310, "Logarithmic: twice as fast is as far from 1 as half as fast. Green: the geometric mean. Red: the worst. The sizes stand below.", 11, DIM)
    d.text(20, 324, "From results/strict-squares-h200.jsonl.", 11, DIM)
    return d.done()


def figure_source():
    d = Drawing(760, 220, "A figure's way onto a page")
    title(d, "A figure's way onto a page, and the way back")
    for i, (head, words) in enumerate((("rung bench", "verifies, times"), ("results/*.jsonl", "a line: command, chip"), ("a page's marker", "which value, how many digits"), ("the page", "51.5"))):
        x = 20 + i * 186
        framed(d, x, 64, 162, 56, (SAND, SKY, LILAC, LEAF)[i])
        d.text(x + 81, 88, head, 12, INK, "middle", True)
        d.text(x + 81, 106, words, 10, DIM, "middle")
        if i < 3:
            arrow(d, x + 164, 92, x + 184, 92)
    d.line(660, 122, 660, 156, RED, 1.5)
    d.line(660, 156, 286, 156, RED, 1.5)
    arrow(d, 286, 156, 286, 124, RED)
    d.text(310, 174, "the suite reads both, and fails where they differ", 12, RED)
    d.text(20, 206, "A sentence with a rate or a time but no marker fails as well.", 11, DIM)
    return d.done()


def two_compilers():
    d = Drawing(760, 250, "One source, two compilers")
    title(d, "One kernel file, compiled twice")
    framed(d, 20, 96, 130, 44, SAND, "l02_coalesced.cu", 12)
    for n, (compiler, out, words) in enumerate((("nvcc", "machine code", "runs on an SM: 32 lanes at a time"), ("the host's compiler", "functions with calls", "runs on a CPU: one fiber a thread"))):
        y = 56 + n * 84
        arrow(d, 152, 118, 196, y + 20)
        framed(d, 200, y, 150, 40, PALE, compiler, 12)
        arrow(d, 352, y + 20, 386, y + 20)
        framed(d, 390, y, 150, 40, SKY if n == 0 else LEAF, out, 12)
        d.text(552, y + 24, words, 11)
    d.text(740, 204, "before each load and store: “I shall read 4 bytes at this address”", 12, INK, "end")
    d.text(20, 238, "Below: the calls of -fsanitize=thread, which the lens answers in place of the compiler's own library.", 11, DIM)
    return d.done()


def merged():
    d = Drawing(760, 230, "Loads as written and as compiled")
    title(d, "Four loads of a thread in the source, and what nvcc makes of them")
    for n, (words, start) in enumerate((("tile[row][4k] … tile[row][4k + 3], rows of 32 floats", 0), ("the same, rows of 33 floats: row 1 begins at byte 132", 1))):
        y = 56 + n * 74
        d.text(20, y, words, 12)
        for unit in range(3):
            framed(d, 20 + unit * 184, y + 10, 180, 34, PALE)
        for f in range(4):
            at = start + f
            framed(d, 24 + at // 4 * 184 + at % 4 * 44, y + 14, 40, 26, SKY if start == 0 else ROSE, f"{4 * at}", 11)
        d.text(590, y + 32, "one load of 16 bytes" if start == 0 else "cannot be one load", 12, GREEN if start == 0 else RED)
    d.text(20, 216, "Grey: aligned units of 16 bytes, by the byte at which they lie behind a multiple of 16. A load may not cross into the next unit.", 11, DIM)
    return d.done()


def written_mark():
    d = Drawing(760, 210, "What the lens knows of each byte")
    title(d, "Marks of a shared tile under the lens: written in this block, or not")
    for r in range(4):
        for c in range(24):
            done = not (c >= 20 and r == 2)
            framed(d, 20 + c * 26, 50 + r * 26, 24, 24, LEAF if done else ROSE)
    d.line(20 + 21.5 * 26, 50 + 2.5 * 26, 668, 118, RED, 1.5)
    d.text(672, 116, "read here:", 11, RED)
    d.text(672, 130, "told at once", 11, RED)
    d.text(20, 178, "Green: this block has stored there. Rose: nobody has. On a GPU the rose boxes hold what the last block left, often zeros.", 12)
    d.text(20, 200, "A kernel whose last four columns are filled only if k is a multiple of four looks like this.", 11, DIM)
    return d.done()


def two_rows():
    d = Drawing(760, 220, "Loads for two multiply-adds")
    title(d, "Two multiply-adds of a warp: what l02 loads, and what two rows a thread load")
    for n, (name, loads) in enumerate((("l02", ("A", "B", "A", "B")), ("two rows", ("A upper", "A lower", "B")))):
        y = 56 + n * 64
        d.text(20, y + 22, name, 12, INK, bold=True)
        for i, words in enumerate(loads):
            framed(d, 110 + i * 92, y, 86, 34, SAND if words[0] == "A" else SKY, words, 12)
        x = 110 + 4 * 92
        for i in range(2):
            framed(d, x + 16 + i * 70, y, 64, 34, LEAF, "FMA", 12)
        d.text(x + 172, y + 22, f"{len(loads)} passes", 12, GREEN if len(loads) == 3 else INK)
    d.text(20, 200, "A: one float for all lanes, one sector. B: 32 neighbouring floats, four sectors, one pass. The float of B is loaded once and used twice.", 11, DIM)
    return d.done()


def case_sizes():
    d = Drawing(760, 270, "Sizes around a tile")
    title(d, "Sizes that the row of a tile gives: its edges, and the last tile in each state")
    tile = 32
    sizes = (1, tile - 1, tile, tile + 1, 2 * tile + 1)
    for i, size in enumerate(sizes):
        y = 48 + i * 36
        d.text(20, y + 18, f"{size}", 13, INK, bold=True)
        for t in range(3):
            framed(d, 80 + t * 200, y, 192, 26, PALE)
            used = max(0, min(tile, size - t * tile))
            if used:
                framed(d, 80 + t * 200, y, 192 * used / tile, 26, SKY if used == tile else SAND)
    d.text(20, 252, "Boxes: tiles of 32. Blue: whole. Sand: a part. A kernel without a test for its edge is wrong in one of these, never in 4096.", 11, DIM)
    return d.done()


def guess_loop():
    d = Drawing(760, 230, "The way of a kernel")
    title(d, "Guess, write, look, verify, time: each step has its own way back")
    steps = (("guess", "a pencil"), ("write", "one file, one row"), ("look", "rung lens"), ("verify", "rung verify"), ("time", "rung bench"))
    for i, (head, words) in enumerate(steps):
        x = 20 + i * 148
        framed(d, x, 70, 120, 50, (SAND, SKY, LILAC, LEAF, ROSE)[i])
        d.text(x + 60, 92, head, 13, INK, "middle", True)
        d.text(x + 60, 110, words, 11, DIM, "middle")
        if i < 4:
            arrow(d, x + 122, 95, x + 146, 95)
    for i, words in ((2, "32 sectors: write again"), (3, "a failing case: look at it"), (4, "not as guessed: guess again")):
        x, to, y = 80 + i * 148, 80 + (0 if i == 4 else i - 1) * 148, 128 + (i - 2) * 26
        d.line(x, 122, x, y + 12, RED, 1.2)
        d.line(x, y + 12, to, y + 12, RED, 1.2)
        arrow(d, to, y + 12, to, 123, RED, 1.2)
        d.text((x + to) / 2, y + 24, words, 10, RED, "middle")
    d.text(20, 222, "All but the last step run without a GPU.", 11, DIM)
    return d.done()


NAMES = ("tile_need", "squares", "two_buffers", "busy", "lens_hardware", "main_loops", "batch", "port_model", "turn_slots", "cancel", "formats",
         "image", "accurate_time", "order_of_parts", "links", "alarm", "walk", "cpu_climb", "geomean", "figure_source", "two_compilers", "merged",
         "written_mark", "two_rows", "case_sizes", "guess_loop")


def all_of():
    return {name.replace("_", "-") + ".svg": globals()[name]() for name in NAMES}
