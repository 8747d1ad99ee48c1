#!/usr/bin/env python3
"""The book's drawings: docs/book/img/*.svg, made by `./dev pages`.

Each function below draws one picture. What a picture shows of a kernel (which lane touches what, how many tiles there
are) is computed here from the kernel's own sizes, not drawn by eye.
"""
import math
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools/pages"))
from pictures import DIM, GRID, INK, Drawing  # noqa: E402

BLUE, SKY, ORANGE, SAND, GREEN, LEAF, RED, PLUM = ("#1f5f9e", "#bcd9f2", "#c8641b", "#f6d9b8", "#3a7d44", "#cfe8cf", "#b8322a", "#7d3c98")
PALE = "#eef1f4"
LANES, SECTOR, BANKS, SMS = 32, 32, 32, 132


def framed(d, x, y, w, h, fill, words="", size=12, colour=INK):
    d.box(x, y, w, h, fill)
    for x1, y1, x2, y2 in ((x, y, x + w, y), (x, y + h, x + w, y + h), (x, y, x, y + h), (x + w, y, x + w, y + h)):
        d.line(x1, y1, x2, y2, "#8a949e")
    if words:
        d.text(x + w / 2, y + h / 2 + size * 0.36, words, size, colour, "middle")


def arrow(d, x1, y1, x2, y2, colour=DIM, width=1.6):
    d.line(x1, y1, x2, y2, colour, width)
    angle = math.atan2(y2 - y1, x2 - x1)
    for turn in (2.7, -2.7):
        d.line(x2, y2, x2 + 9 * math.cos(angle + turn), y2 + 9 * math.sin(angle + turn), colour, width)


def title(d, words):
    d.text(20, 24, words, 14, INK, bold=True)


def chip():
    d = Drawing(760, 400, "A GPU: 132 processors around one cache")
    title(d, "One H200: 132 SMs, one L2 cache, one memory")
    for i in range(SMS):
        row, column = divmod(i, 22)
        y = 48 + row * 36 + (110 if row >= 3 else 0)
        framed(d, 24 + column * 26, y, 22, 30, SKY)
    framed(d, 24, 166, 568, 82, SAND, "L2 cache, 60 MB: every SM reads and writes through it", 13)
    d.text(24, 382, "Each small box is an SM (streaming multiprocessor): 132 of them.", 12, DIM)
    for i in range(6):
        framed(d, 620, 48 + i * 54, 116, 46, LEAF, "HBM stack", 12)
    arrow(d, 594, 196, 618, 196)
    arrow(d, 618, 216, 594, 216)
    d.text(678, 392, "141 GB, 4.8 TB/s", 12, INK, "middle")
    return d.done()


def sm():
    d = Drawing(760, 420, "Inside an SM")
    title(d, "Inside one SM: four schedulers, one shared memory")
    for i in range(4):
        x = 20 + i * 184
        framed(d, x, 44, 170, 250, PALE)
        d.text(x + 85, 64, f"partition {i}", 12, INK, "middle", True)
        framed(d, x + 10, 74, 150, 34, SAND, "scheduler: 1 instruction", 11)
        d.text(x + 85, 124, "a cycle, from 16 warps", 11, DIM, "middle")
        framed(d, x + 10, 134, 150, 46, LEAF, "16384 registers", 12)
        d.text(x + 85, 198, "32 FMA lanes", 11, DIM, "middle")
        for lane in range(LANES):
            d.box(x + 13 + lane % 16 * 9.1, 206 + lane // 16 * 14, 7.5, 11, BLUE)
        framed(d, x + 10, 244, 150, 36, "#e3d3ee", "tensor core", 12)
    framed(d, 20, 310, 722, 54, SKY, "shared memory and L1 cache: 256 KB in 32 banks, 128 bytes a cycle", 13)
    framed(d, 20, 374, 722, 28, PALE, "copy engine (TMA): moves whole tiles, one thread asks", 12)
    return d.done()


def hierarchy():
    d = Drawing(760, 330, "Grid, block, warp, lane")
    title(d, "A launch: grid of blocks, block of warps, warp of 32 lanes")
    for i in range(24):
        framed(d, 24 + i % 6 * 34, 56 + i // 6 * 34, 30, 30, SKY if i != 8 else ORANGE)
    d.text(24, 216, "the grid: all blocks.", 12)
    d.text(24, 232, "Any SM may take any.", 12)
    arrow(d, 244, 120, 280, 120)
    for i in range(8):
        framed(d, 290, 56 + i * 20, 150, 16, SAND if i != 3 else ORANGE, f"warp {i}", 10)
    d.text(290, 240, "a block: its warps live on one", 12)
    d.text(290, 256, "SM and share its memory.", 12)
    arrow(d, 450, 122, 486, 122)
    for i in range(LANES):
        framed(d, 496 + i % 8 * 29, 72 + i // 8 * 29, 25, 25, LEAF, str(i), 10)
    d.text(496, 212, "a warp: 32 lanes that run the", 12)
    d.text(496, 228, "same instruction together, each", 12)
    d.text(496, 244, "with registers of its own.", 12)
    d.text(24, 296, "256 threads a block = 8 warps. Thread 100 is lane 4 of warp 3: 100 = 3 · 32 + 4.", 12, DIM)
    return d.done()


def levels():
    rows = [("registers", "33 MB in all SMs", 1, 152000, LEAF), ("shared memory", "30 MB", 30, 33500, SKY),
            ("L2 cache", "60 MB", 270, 5500, SAND), ("device memory", "141 GB", 700, 4800, "#f3c9c4"),
            ("the host's memory", "over PCIe", 2000, 55, PALE)]
    d = Drawing(760, 300, "Levels of memory")
    title(d, "Where a number can lie, and what reaching it costs")
    d.text(220, 52, "cycles until it is there", 11, DIM)
    d.text(470, 52, "GB a second, all SMs together (logarithmic)", 11, DIM)
    for i, (name, size, cycles, rate, fill) in enumerate(rows):
        y = 64 + i * 44
        d.text(20, y + 16, name, 12, INK, bold=True)
        d.text(20, y + 31, size, 11, DIM)
        wide = 40 + 50 * math.log10(cycles)
        framed(d, 220, y, wide, 28, fill)
        d.text(226 + wide, y + 18, f"~{cycles}", 11)
        wide = 44 * math.log10(rate)
        framed(d, 470, y, wide, 28, fill)
        d.text(476 + wide, y + 18, f"{rate:,}".replace(",", " "), 11)
    d.text(20, 290, "Orders of magnitude at 1.98 GHz; the shared-memory rate is 128 bytes a cycle an SM.", 11, DIM)
    return d.done()


def sectors_touched(stride_floats):
    return sorted({lane * stride_floats * 4 // SECTOR for lane in range(LANES)})


def sectors():
    d = Drawing(760, 300, "A warp's load in sectors")
    title(d, "One load of one warp: which 32-byte sectors move")
    for n, (words, stride) in enumerate((("neighbouring floats", 1), ("every other float", 2), ("a float of each row (a column of a row-major matrix)", 4096))):
        y = 56 + n * 84
        touched = sectors_touched(stride)
        d.text(20, y, f"{words}: {len(touched)} sectors, {100 * LANES * 4 // (len(touched) * SECTOR)}% of the bytes are used", 12)
        for lane in range(LANES):
            framed(d, 20 + lane * 22.4, y + 8, 20, 16, SAND, str(lane), 9)
        for s in range(LANES):
            used = s < len(touched)
            framed(d, 20 + s * 22.4, y + 40, 20, 16, BLUE if used else PALE)
        for lane in range(LANES):
            at = touched.index(lane * stride * 4 // SECTOR)
            d.line(30 + lane * 22.4, y + 24, 30 + at * 22.4, y + 40, "#9aa5b1", 0.8)
    return d.done()


def passes_of(address_of):
    """Returns the passes of a 4-byte load: the most different words that one bank must give."""
    words = {}
    for lane in range(LANES):
        word = address_of(lane)
        words.setdefault(word % BANKS, set()).add(word)
    return max(len(w) for w in words.values()), words


def banks():
    d = Drawing(760, 310, "Banks of shared memory")
    title(d, "Shared memory: 32 banks, each gives one word a cycle")
    cases = (("row of a tile: lane i takes word i", lambda i: i), ("all lanes the same word: a broadcast", lambda i: 5),
             ("column of a 32-wide tile: lane i takes word 32·i", lambda i: 32 * i), ("the same, rows padded to 33 words", lambda i: 33 * i))
    for n, (words, address) in enumerate(cases):
        passes, by_bank = passes_of(address)
        y = 56 + n * 62
        d.text(20, y, f"{words}: {passes} pass{'es' if passes > 1 else ''}", 12, RED if passes > 1 else INK)
        for bank in range(BANKS):
            count = len(by_bank.get(bank, ()))
            framed(d, 20 + bank * 22.4, y + 10, 20, 24, PALE if not count else SKY if count == 1 else RED, str(bank), 9,
                   "#ffffff" if count > 1 else INK)
    return d.done()


def issue():
    """Works out who issues when: four warps on one scheduler, each with one load of 12 cycles, then four FMAs."""
    d = Drawing(760, 290, "How warps hide waiting")
    title(d, "One scheduler, one instruction a cycle: other warps fill the wait")
    for part, count in enumerate((1, 4)):
        y0 = 52 + part * 92
        d.text(20, y0, f"{count} warp{'s' if count > 1 else ''}", 12, INK, bold=True)
        ready, step, done = [0] * count, [0] * count, []
        for cycle in range(44):
            able = [w for w in range(count) if ready[w] <= cycle]
            if not able:
                done.append(None)
                continue
            w = min(able, key=lambda v: (step[v], v))
            is_load = step[w] % 5 == 0
            done.append((w, is_load))
            step[w] += 1
            ready[w] = cycle + (12 if is_load else 1)
        busy = sum(x is not None for x in done)
        for cycle, what in enumerate(done):
            colours = [BLUE, GREEN, ORANGE, PLUM]
            x = 110 + cycle * 14
            if what is None:
                framed(d, x, y0 - 14, 12, 30, PALE)
            else:
                framed(d, x, y0 - 14, 12, 30, colours[what[0]], "L" if what[1] else "", 9, "#ffffff")
        d.text(110, y0 + 34, f"{busy} of {len(done)} issue slots used", 11, DIM)
    d.text(20, 252, "L: a load, whose answer takes 12 cycles here; then four FMAs that need it. A colour is a warp, grey an idle slot.", 11, DIM)
    d.text(20, 270, "On an H200 a load from shared memory takes about 30 cycles, one from device memory 500 to 800.", 11, DIM)
    return d.done()


def reads():
    d = Drawing(760, 280, "Register banks")
    title(d, "An FMA reads three registers from two banks")
    for n, (words, names) in enumerate((("R8 · R16 + R40: three registers of one bank", ("R8", "R16", "R40")),
                                        ("R8 · R17 + R40: the even bank gives two", ("R8", "R17", "R40")),
                                        ("R8 again, kept from the FMA before · R17 + R40", ("R8 kept", "R17", "R40")))):
        y = 58 + n * 70
        d.text(20, y, words, 12)
        for i, name in enumerate(names):
            kept = "kept" in name
            even = int(name.split()[0][1:]) % 2 == 0
            fill = LEAF if kept else SKY if even else SAND
            framed(d, 20 + i * 110, y + 10, 96, 26, fill, name, 12)
        load = {0: 0, 1: 0}
        for name in names:
            if "kept" not in name:
                load[int(name.split()[0][1:]) % 2] += 1
        d.text(370, y + 28, f"even bank {load[0]}, odd bank {load[1]}: {max(load.values())} cycle{'s' if max(load.values()) > 1 else ''}",
               12, RED if max(load.values()) > 1 else GREEN)
    d.text(20, 268, "Blue: even bank. Sand: odd bank. Green: an operand that the instruction before had in the same place.", 11, DIM)
    return d.done()


def tile():
    d = Drawing(760, 350, "Why a tile saves memory traffic")
    title(d, "A tile of C needs a strip of A and a strip of B")
    framed(d, 60, 140, 180, 180, PALE)
    framed(d, 260, 140, 180, 180, PALE)
    framed(d, 260, 44, 180, 86, PALE)
    framed(d, 60, 200, 180, 45, SAND, "BM rows of A", 11)
    framed(d, 305, 44, 45, 86, SKY, "", 11)
    d.text(450, 92, "BN columns of B", 11)
    d.line(352, 88, 446, 88, "#8a949e")
    framed(d, 305, 200, 45, 45, ORANGE, "C", 13, "#ffffff")
    d.text(470, 150, "For each step of k:", 12, INK, bold=True)
    d.text(470, 172, "BM + BN floats come in,", 12)
    d.text(470, 192, "BM · BN FMAs are done with them.", 12)
    for i, (bm, bn) in enumerate(((1, 1), (32, 32), (128, 128), (128, 256))):
        d.text(470, 226 + i * 20, f"{bm} × {bn}: {2 * bm * bn / (4 * (bm + bn)):.2f} FLOP a byte".replace(".00", ""), 12, DIM)
    return d.done()


def waves():
    d = Drawing(760, 250, "Tiles in rounds")
    title(d, "4096 × 4096 in tiles of 128 × 256: 512 tiles on 132 SMs")
    tiles = (4096 // 128) * (4096 // 256)
    for n in range(-(-tiles // SMS)):
        busy = min(SMS, tiles - n * SMS)
        y = 54 + n * 44
        d.text(20, y + 18, f"round {n + 1}", 12)
        d.box(90, y, 4.8 * busy, 28, BLUE)
        d.box(90 + 4.8 * busy, y, 4.8 * (SMS - busy), 28, "#f0c4bf")
        d.text(100, y + 19, f"{busy} tiles" + (f", {SMS - busy} SMs wait" if busy < SMS else ""), 12, "#ffffff")
    d.text(20, 240, f"{tiles} / {SMS} = {tiles / SMS:.2f} rounds of work take {-(-tiles // SMS)}: at most {100 * tiles / SMS / -(-tiles // SMS):.0f}% of the chip.", 12, DIM)
    return d.done()


def thread_tile():
    d = Drawing(760, 300, "Results of a thread")
    title(d, "More results a thread: fewer loads for each FMA")
    x = 24
    for tm, tn in ((1, 1), (4, 1), (4, 4), (8, 8), (8, 16)):
        unit = 9
        for i in range(tm):
            framed(d, x, 70 + i * unit, unit - 1, unit - 1, SAND)
            for j in range(tn):
                framed(d, x + 14 + j * unit, 70 + i * unit, unit - 1, unit - 1, ORANGE)
        for j in range(tn):
            framed(d, x + 14 + j * unit, 56, unit - 1, unit - 1, SKY)
        d.text(x, 170, f"{tm} × {tn}", 13, INK, bold=True)
        d.text(x, 190, f"{tm + tn} floats", 12)
        d.text(x, 208, f"{tm * tn} FMAs", 12)
        d.text(x, 230, f"{(tm + tn) / (tm * tn):.3g} a FMA", 12, GREEN, bold=True)
        d.text(x, 248, f"{tm * tn} registers", 12, DIM)
        x += 110 + tn * 4
    d.text(24, 282, "Sand: floats of A. Blue: floats of B. Orange: sums that stay in registers.", 11, DIM)
    return d.done()


def overlap():
    d = Drawing(760, 330, "Time axis of a block")
    title(d, "What one block does over time")
    rows = (("one tile at a time", [("load", 60), ("wait", 90), ("compute", 110)] * 2, 0),
            ("next tile fetched into registers", [("load", 20), ("compute", 110), ("store", 26)] * 4, 0))
    for n, (words, parts, _) in enumerate(rows):
        y = 62 + n * 66
        d.text(20, y - 8, words, 12)
        x = 20
        for name, wide in parts:
            if x + wide > 740:
                break
            framed(d, x, y, wide, 26, {"load": SAND, "wait": "#f0c4bf", "compute": SKY, "store": LEAF}[name], name if wide > 30 else "", 10)
            x += wide
    y = 194
    d.text(20, y - 8, "a ring: a producer copies, consumers only compute", 12)
    for i in range(6):
        framed(d, 20 + i * 112, y, 110, 24, SAND, f"copy tile {i + 3}", 10)
        framed(d, 20 + i * 112, y + 30, 110, 24, SKY, f"compute tile {i}", 10)
    d.text(20, 286, "Sand: asking for a tile. Red: nothing to do. Blue: FMAs. Green: storing a tile to shared memory.", 11, DIM)
    d.text(20, 304, "In the ring the copy of a tile has the time of three tiles' FMAs to arrive.", 11, DIM)
    return d.done()


def ring():
    d = Drawing(760, 300, "A ring of stages")
    title(d, "A ring of four stages with two barriers each")
    framed(d, 24, 90, 130, 70, SAND, "producer", 13)
    framed(d, 600, 70, 136, 110, SKY, "8 consumer warps", 13)
    for i in range(4):
        framed(d, 220 + i * 84, 84, 70, 84, [LEAF, LEAF, "#fdf3d6", PALE][i], f"stage {i}", 12)
        d.text(255 + i * 84, 188, ["full", "full", "arriving", "empty"][i], 11, DIM, "middle")
    arrow(d, 156, 110, 216, 110, ORANGE)
    arrow(d, 556, 110, 598, 110, BLUE)
    d.text(24, 224, "full[s]: the engine counts the bytes of a stage; when all are there, the consumers go on.", 12)
    d.text(24, 246, "empty[s]: every consumer says that it is done with the stage; then the producer may refill it.", 12)
    d.text(24, 268, "No barrier stops the whole block, and a fast warp may be a stage ahead of a slow one.", 12)
    return d.done()


def stream_k():
    d = Drawing(760, 260, "The last round, shared out")
    title(d, "Five tiles on four SMs: whole tiles, and even stretches of k")
    colours = [SKY, SAND, LEAF, "#e3d3ee", "#f0c4bf"]
    d.text(20, 54, "whole tiles: two rounds", 12)
    for i in range(5):
        framed(d, 110 + i // 4 * 240, 62 + i % 4 * 16, 236, 14, colours[i], f"tile {i}", 9)
    d.text(20, 156, "stretches: 1.25 rounds", 12)
    total = 5 * 64
    for s in range(4):
        begin, end, x = total * s // 4, total * (s + 1) // 4, 110.0
        while begin < end:
            t = begin // 64
            stop = min(end, (t + 1) * 64)
            wide = (stop - begin) * 236 / 64
            framed(d, x, 164 + s * 16, wide, 14, colours[t], f"tile {t}", 9)
            x += wide
            begin = stop
    d.text(20, 250, "A tile that is cut is added up from its pieces, always in the same order: the same bits every time.", 11, DIM)
    return d.done()


def split():
    d = Drawing(760, 250, "One FP32 number as two fp16")
    title(d, "x · s = hi + lo · 2^-11: 24 bits in two pieces of 11")
    bits = "101101110010110011101001"
    for i, bit in enumerate(bits):
        fill = SKY if i < 11 else SAND if i < 22 else "#f0c4bf"
        framed(d, 24 + i * 29, 60, 26, 30, fill, bit, 12)
    d.text(24 + 11 * 14.5, 112, "hi: the first 11 bits, rounded to nearest", 12, BLUE, "middle")
    d.text(24 + 16.5 * 29, 112, "lo: the next 11", 12, ORANGE, "middle")
    d.text(24 + 22 * 29, 132, "below 2^-23:", 11, RED)
    d.text(24 + 22 * 29, 146, "what is lost", 11, RED)
    d.text(24, 176, "a · b = hi·hi + (hi·lo + lo·hi) · 2^-11 + lo·lo · 2^-22", 14, INK, bold=True)
    d.text(24, 200, "three products on the tensor cores; the fourth is smaller than a rounding and is left out", 12)
    d.text(24, 226, "rounding to nearest lets lo be negative: its sign is worth the 24th bit", 11, DIM)
    return d.done()


def panels():
    d = Drawing(760, 270, "Panels over GPUs")
    title(d, "Two GPUs, panels of k: the next panel travels while this one is multiplied")
    for g in range(2):
        y = 56 + g * 92
        d.text(20, y + 16, f"GPU {g}", 12, INK, bold=True)
        for i in range(5):
            if i < 4:
                framed(d, 90 + i * 128, y, 60 if i else 30, 24, SAND, f"copy {i + 1}" if i else "copy", 10)
            framed(d, 120 + i * 128 if i else 122, y + 32, 124, 28, SKY, f"multiply panel {i}", 11)
    d.text(20, 254, "The first panel is narrow, so that the first product starts early; the last is narrow, so that little follows it.", 11, DIM)
    return d.done()


def all_of():
    import drawings_later  # these two take their colours and boxes from here
    import drawings_sections
    names = ("chip", "sm", "hierarchy", "levels", "sectors", "banks", "issue", "reads", "tile", "waves", "thread_tile", "overlap", "ring",
             "stream_k", "split", "panels")
    return {name.replace("_", "-") + ".svg": globals()[name]() for name in names} | drawings_later.all_of() | drawings_sections.all_of()
