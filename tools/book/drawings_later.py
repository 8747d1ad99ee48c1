"""The drawings of the book's later chapters: docs/book/img/*.svg, made by `./dev pages`.

As in drawings.py nothing is drawn by eye: who meets in a bank, which quarters join, what a chain of sums errs and when
blocks fit an SM is computed here by the rules that the text states. Measured points are read from results/.
"""
import json
import math
import os

from drawings import (BANKS, BLUE, DIM, GREEN, GRID, INK, LANES, LEAF, ORANGE, PALE, PLUM, RED, ROOT, SAND, SKY, SMS, Drawing, arrow, framed,
                      title)

ROSE, LILAC = "#f0c4bf", "#e3d3ee"
FOURS = [SKY, SAND, LEAF, LILAC, ROSE, "#fdf3d6", "#cfe3e3", "#e8ddd0"]


def lines_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def axes(d, left, top, right, bottom, x_words, y_words):
    d.line(left, bottom, right, bottom, INK)
    d.line(left, top, left, bottom, INK)
    d.text(right, bottom + 34, x_words, 11, DIM, "end")
    d.text(left, top - 8, y_words, 11, DIM)


def roofline():
    """Draws three roofs of one chip, and rungs at their intensity towards shared memory."""
    d = Drawing(760, 360, "The roofline of an H200, for three memories")
    title(d, "One roof for each memory: what reaches the multiply-adds allows")
    left, top, right, bottom = 70, 60, 590, 300
    x_of = lambda v: left + (math.log2(v) + 4) / 12 * (right - left)
    y_of = lambda v: bottom - math.log2(v) / math.log2(128) * (bottom - top)
    axes(d, left, top, right, bottom, "FLOP for each byte that moves", "TFLOP/s")
    for v in (0.0625, 0.25, 1, 4, 16, 64, 256):
        d.line(x_of(v), bottom, x_of(v), bottom + 4, INK)
        d.text(x_of(v), bottom + 18, f"{v:g}", 11, DIM, "middle")
    for v in (1, 4, 16, 64):
        d.line(left, y_of(v), right, y_of(v), GRID)
        d.text(left - 8, y_of(v) + 4, f"{v}", 11, DIM, "end")
    peak = 66.9
    for name, rate, colour in (("device memory, 4.8", 4.8, RED), ("L2, 5.5", 5.5, ORANGE), ("shared memory, 33.5", 33.5, BLUE)):
        first = max(1 / rate, 0.0625)
        d.path([(x_of(first), y_of(first * rate)), (x_of(peak / rate), y_of(peak)), (right, y_of(peak))], colour)
    for i, (name, colour) in enumerate((("shared memory: 33.5 TB a second", BLUE), ("L2: about 5.5", ORANGE), ("device memory: 4.8", RED))):
        d.line(604, 80 + i * 20, 624, 80 + i * 20, colour, 3)
        d.text(630, 84 + i * 20, name.split(":")[0], 11)
    d.text(604, 150, "Dots: a thread's tile, by", 11, DIM)
    d.text(604, 165, "floats from shared memory", 11, DIM)
    for tm, tn in ((1, 1), (4, 1), (4, 4), (8, 8), (8, 16)):
        at = 2 * tm * tn / (4 * (tm + tn))
        d.dot(x_of(at), y_of(min(peak, at * 33.5)), PLUM)
        d.text(x_of(at) + (6 if tn < 16 else 12), y_of(min(peak, at * 33.5)) + (-8 if tn == 16 else 15), f"{tm} × {tn}", 11, PLUM)
    d.text(20, 346, "Left of a ridge memory decides, right of it arithmetic. The ridges lie at 2, 12 and 14 FLOP a byte.", 11, DIM)
    return d.done()


def l11_banks():
    """Draws who meets whom in a bank, in a warp's load of B in l10 and in l11."""
    d = Drawing(760, 300, "Columns of a thread: side by side, or in two groups")
    title(d, "A warp reads its floats of B for one step of k (its upper 16 lanes want the same as its lower)")
    y = 56
    for words, floats, address in (("l11: thread x owns columns 8x to 8x+7; its first float", 1, lambda x: 8 * x),
                                   ("l10: thread x owns columns 4x to 4x+3 (and 64 more to the right); its first four floats", 4, lambda x: 4 * x)):
        by_bank = {}
        for x in range(16):
            for f in range(floats):
                by_bank.setdefault((address(x) + f) % BANKS, []).append(x)
        deep = max(len(v) for v in by_bank.values())
        d.text(20, y, words, 12)
        for bank in range(BANKS):
            found = by_bank.get(bank, [])
            for i in range(4):
                here = i < len(found)
                framed(d, 20 + bank * 22.4, y + 10 + i * 16, 20, 14, (RED if floats == 1 and deep > 1 else SKY) if here else PALE,
                       str(found[i]) if here else "", 9, "#ffffff" if here and floats == 1 else INK)
        used = len(by_bank)
        told = f"{used} banks work, each gives {deep} words one after the other: {deep} passes for {16 * floats} floats" if floats == 1 else \
            f"all {used} banks work; 16 bytes a lane go a quarter of a warp at a time: {passes16(lambda lane: lane % 16)} passes for {16 * floats} floats"
        d.text(20, y + 88, told, 12, RED if floats == 1 else GREEN)
        y += 118
    d.text(20, 288, "A column is a bank, a number in it the thread whose word it gives. The padding of rows moves all columns alike and helps nobody.", 11, DIM)
    return d.done()


def passes16(address):
    """Counts the passes of a 16-byte load: each serves a quarter of a warp; two quarters join where every lane shares with lane xor 1 or xor 2."""
    for step in (1, 2):
        if all(address(lane) == address(lane ^ step) for lane in range(LANES)):
            return 2
    return 4


def lane_maps():
    d = Drawing(760, 330, "Which lane sits beside whom: l15 and l16")
    title(d, "The same 4 × 8 lanes, dealt out in two ways")
    maps = (("l15: lane = 8 · row + column", lambda lane: (lane // 8, lane % 8)),
            ("l16: neighbours share a row, the next but one a column", lambda lane: (lane // 2 % 4, lane // 8 * 2 + lane % 2)))
    for n, (words, place) in enumerate(maps):
        y = 60 + n * 128
        d.text(20, y, words, 12, INK, bold=True)
        for m, what in enumerate(("A", "B")):
            passes = passes16(lambda lane: place(lane)[m])
            d.text(20, y + 27 + m * 42, what, 12)
            for lane in range(LANES):
                framed(d, 44 + lane * 17.6 + lane // 8 * 8, y + 12 + m * 42, 16, 24, FOURS[place(lane)[m] % 8], str(place(lane)[m]), 10)
            d.text(650, y + 28 + m * 42, f"{passes} passes", 12, RED if passes > 2 else GREEN, bold=True)
    d.text(20, 306, "32 lanes in four quarters. A number and a colour are the 16 bytes that a lane wants. Two quarters go together", 11, DIM)
    d.text(20, 321, "only where every lane wants the same as its neighbour, or every lane the same as the next but one.", 11, DIM)
    return d.done()


def occupancy_steps():
    d = Drawing(760, 330, "Warps against registers")
    title(d, "How many warps fit an SM, by the registers of a thread")
    left, top, right, bottom = 60, 56, 720, 270
    axes(d, left, top, right, bottom, "registers a thread", "warps an SM")
    x_of, y_of = lambda r: left + r / 256 * (right - left), lambda w: bottom - w / 64 * (bottom - top)
    fits = lambda r: min(64, 65536 // 4 // (-(-r * 32 // 256) * 256) * 4)
    for w in (8, 16, 32, 48, 64):
        d.line(left, y_of(w), right, y_of(w), GRID)
        d.text(left - 8, y_of(w) + 4, str(w), 11, DIM, "end")
    for r in range(0, 257, 32):
        d.text(x_of(r), bottom + 18, str(r), 11, DIM, "middle")
    points = []
    for r in range(16, 256):
        points += [(x_of(r), y_of(fits(r))), (x_of(r + 1), y_of(fits(r)))]
    d.path(points, BLUE)
    for line in lines_of("results/ladder-build.jsonl"):
        if line["kernel"] in ("l05_fewer_registers", "l08_float4", "l09_thread_tile_4x4", "l10_thread_tile_8x8", "l20_multistage", "l24_register_banks"):
            r, warps = line["registers"], line["threads"] // 32
            lives = min(fits(r) // warps, 233472 // (-(-(line["shared_bytes"] + 1024) // 128) * 128), 2048 // line["threads"]) * warps
            d.dot(x_of(r), y_of(lives), RED)
            d.text(x_of(r) + 7, y_of(lives) - 6, f"{line['kernel'].split('_')[0]}: {lives}", 11)
    d.text(20, 318, "Blue: what registers allow, in units of 256 a warp. Red: what the rungs have; below the line whole blocks do not fit.", 11, DIM)
    return d.done()


def turn():
    d = Drawing(760, 300, "Turning A on its way into shared memory")
    title(d, "Four floats along k go to four rows: which banks do two lanes meet?")
    for n, wide in enumerate((128, 132)):
        y = 60 + n * 108
        meets = (4 * wide) % BANKS == 0
        d.text(20, y, f"rows of {wide} floats: lane 0 stores k = 0, lane 1 stores k = 4 of the same row of A", 12, INK, bold=True)
        for lane in range(2):
            bank = lane * 4 * wide % BANKS
            d.text(20, y + 27 + lane * 32, f"lane {lane}", 11)
            for b in range(BANKS):
                framed(d, 76 + b * 20.6, y + 12 + lane * 32, 18.6, 22, (RED if meets else SKY) if b == bank else PALE, str(b), 9,
                       "#ffffff" if b == bank and meets else INK)
        d.text(20, y + 88, f"row 4 begins at word {4 * wide}: bank {4 * wide % BANKS}. " +
               ("Both lanes want bank 0: two passes." if meets else "Two banks: one pass."), 12, RED if meets else GREEN)
    d.text(20, 290, "l12's lanes 2i and 2i + 1 store rows i of A, k = 0 and k = 4. Sixteen neighbouring rows fill sixteen banks, so 16 apart is enough.", 11, DIM)
    return d.done()


def group_order():
    d = Drawing(760, 300, "Which tiles run at the same time")
    title(d, "16384 × 16384: which 132 tiles are at work first")
    columns, unit = 64, 3.4
    for n, words in enumerate(("row after row", "in groups of eight rows")):
        x0 = 30 + n * 380
        d.text(x0, 56, words, 12, INK, bold=True)
        busy = {divmod(t, columns) if n == 0 else (t % 8, t // 8) for t in range(SMS)}
        for r in range(40):
            for c in range(columns):
                d.box(x0 + c * unit, 68 + r * 4.4, unit - 0.6, 3.8, ORANGE if (r, c) in busy else PALE)
        down, across = len({r for r, _ in busy}), len({c for _, c in busy})
        d.text(x0 + 232, 100, f"{down} strips of A", 12)
        d.text(x0 + 232, 120, f"{across} strips of B", 12)
        d.text(x0 + 232, 144, f"{down * 128 + across * 256} floats", 12, GREEN if n == 1 else RED, bold=True)
        d.text(x0 + 232, 160, "a step of k", 12)
    d.text(20, 270, "Tiles of 128 × 256, the upper 40 of 128 rows of tiles. Orange: the tiles of the first round.", 11, DIM)
    d.text(20, 288, "The fewer strips these need, the fewer bytes come into the L2.", 11, DIM)
    return d.done()


def port_cycles(order, kept):
    """Counts the cycles of FMAs (a, b, sum): a bank gives one read a cycle; for each operand's place one register a bank is kept."""
    rows = []
    for a, b, c in order:
        read = [c]
        for place, r in ((0, a), (1, b)):
            if kept.get((place, r % 2)) != r:
                read.append(r)
            kept[(place, r % 2)] = r
        even = sum(r % 2 == 0 for r in read)
        rows.append((read, max(even, len(read) - even)))
    return rows


def ports():
    d = Drawing(760, 400, "Two rows of FMAs through two register banks")
    title(d, "Two rows of a, four columns of b: what each multiply-add must read")
    for n, (words, a) in enumerate((("l21: the two rows lie in R0 and R4 (k lies along the registers): both even", (0, 4)),
                                    ("l24: the two rows lie in R0 and R1: one even, one odd", (0, 1)))):
        y = 58 + n * 160
        d.text(20, y, words, 12, INK, bold=True)
        order = [(a[t], 16 + u, 40 + 4 * t + u + (u + 1) % 2 - u % 2) for u in range(4) for t in ((0, 1) if u % 2 == 0 else (1, 0))]
        kept = {(0, r % 2): r for r in (a[1], a[0])}
        total = 0
        for i, ((x, z, s), (read, cycles)) in enumerate(zip(order, port_cycles(order, kept))):
            at = 20 + i * 91
            total += cycles
            framed(d, at, y + 12, 86, 22, PALE, f"R{s} += R{x} · R{z}", 9)
            for bank in range(2):
                for k, r in enumerate([r for r in read if r % 2 == bank]):
                    framed(d, at + bank * 44, y + 40 + k * 20, 42, 18, SKY if bank == 0 else SAND, f"R{r}", 10)
            d.text(at + 43, y + 100, f"{cycles}", 13, RED if cycles > 1 else GREEN, "middle", True)
        d.text(20, y + 122, f"{total} cycles for {len(order)} multiply-adds: {total / len(order):.2f} each", 12, RED if total > len(order) else GREEN)
    d.text(20, 372, "Blue: reads of the even bank, sand: of the odd one. For each operand's place one register of each bank is kept and not", 11, DIM)
    d.text(20, 387, "read again: l24's two rows stay both, l21's push each other out. Sums lie in the bank opposite to their column's.", 11, DIM)
    return d.done()


def random_floats(count, seed):
    """Draws numbers from U(0,1) in FP16's 11 bits, by a small generator that gives the same ones on every machine."""
    state, values = seed, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        values.append((state >> 53) / 2048)
    return values


def truncate(x, bits):
    if x == 0:
        return 0.0
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.trunc(mantissa * 2 ** bits), exponent - bits)


def nearest(x):
    mantissa, exponent = math.frexp(x)
    return math.ldexp(round(mantissa * 2 ** 24), exponent - 24)


def tensor_step(total, products):
    """Does one wgmma step: all are aligned to the largest, cut behind 25 fractional bits, added, cut to FP32."""
    top = max(math.frexp(v)[1] for v in products + [total])
    unit = math.ldexp(1.0, top - 1 - 25)
    return truncate(sum(math.trunc(v / unit) for v in products + [total]) * unit, 24)


def drift_errors(k, seed):
    a, b = random_floats(k, seed), random_floats(k, seed + 77)
    chain = short = promoted = fma = exact = 0.0
    marks = {}
    for i in range(0, k, 16):
        products = [x * y for x, y in zip(a[i:i + 16], b[i:i + 16])]
        chain, short = tensor_step(chain, products), tensor_step(short, products)
        if i % 64 == 48:
            promoted, short = nearest(promoted + short), 0.0
        for p in products:
            fma = nearest(fma + p)
            exact += p  # at most 2^-22 of a unit each: FP64 is exact enough here
        at = i + 16
        if at >= 64 and at & (at - 1) == 0:
            marks[at] = [abs(v - exact) / exact * 2 ** 24 for v in (chain, fma, promoted)]
    return marks


def drift():
    d = Drawing(760, 350, "How three ways of adding drift")
    title(d, "The error of one long sum, U(0,1), mean of 24 sums, in u")
    runs = [drift_errors(8192, 11 + s) for s in range(24)]
    left, top, right, bottom = 60, 60, 560, 290
    axes(d, left, top, right, bottom, "terms of the sum, k", "u")
    sizes = sorted(runs[0])
    x_of = lambda k: left + (math.log2(k) - 6) / 7 * (right - left)
    y_of = lambda u: bottom - (math.log2(max(u, 0.25)) + 2) / 12 * (bottom - top)
    for u in (0.25, 1, 4, 16, 64, 256, 1024):
        d.line(left, y_of(u), right, y_of(u), GRID)
        d.text(left - 8, y_of(u) + 4, f"{u:g}", 11, DIM, "end")
    for k in sizes:
        d.text(x_of(k), bottom + 18, str(k), 11, DIM, "middle")
    for i, (words, colour) in enumerate((("one chain on tensor cores", RED), ("FP32 multiply-adds", BLUE), ("promoted every 64", GREEN))):
        mean = [sum(r[k][i] for r in runs) / len(runs) for k in sizes]
        d.path([(x_of(k), y_of(u)) for k, u in zip(sizes, mean)], colour)
        d.text(right + 10, y_of(mean[-1]) + 4, words, 12, colour)
    d.text(20, 338, "A simulation by the rules of the text: steps of 16, cut behind 25 bits and toward zero; FP32 rounds to nearest.", 11, DIM)
    return d.done()


def align():
    d = Drawing(760, 290, "One step of a tensor core's sum")
    title(d, "All terms are aligned to the largest, then cut")
    values = [("old sum", 0, "110100101101001011010010"), ("product", 3, "1011001101"), ("product", 6, "1110010111"), ("product", 19, "1001101110")]
    for i, (name, shift, bits) in enumerate(values):
        y = 56 + i * 34
        d.text(20, y + 17, name, 12)
        for j, bit in enumerate(bits):
            at = shift + j
            framed(d, 100 + at * 20, y, 18.5, 24, (SKY if i == 0 else SAND) if at < 26 else RED, bit, 11, INK if at < 26 else "#ffffff")
    d.line(100 + 26 * 20 - 1, 46, 100 + 26 * 20 - 1, 200, RED, 2)
    d.text(100 + 26 * 20 - 6, 206, "behind 25 fractional bits: cut, never rounded up", 11, RED, "end")
    d.text(20, 238, "The columns are added as one integer. Then the result is cut to 24 bits. Both cuts go toward zero, at every step:", 12)
    d.text(20, 256, "a sum of positive terms only ever loses. Rounding to nearest loses and gains, and most of it cancels.", 12)
    d.text(20, 280, "Products have 22 bits at most; ten of each are drawn.", 11, DIM)
    return d.done()


def budget():
    d = Drawing(760, 340, "The error bound against the classical one")
    title(d, "What the method may err, and what FP32 may err, in u")
    left, top, right, bottom = 70, 60, 560, 280
    axes(d, left, top, right, bottom, "k", "u")
    x_of = lambda k: left + (math.log2(k) - 4) / 12 * (right - left)
    y_of = lambda u: bottom - (math.log2(u) - 3) / 13 * (bottom - top)
    for u in (8, 64, 512, 4096, 32768):
        d.line(left, y_of(u), right, y_of(u), GRID)
        d.text(left - 8, y_of(u) + 4, str(u), 11, DIM, "end")
    for k in (16, 64, 256, 1024, 4096, 16384, 65536):
        d.text(x_of(k), bottom + 18, str(k), 11, DIM, "middle")
    sizes = [2 ** i for i in range(4, 17)]
    d.path([(x_of(k), y_of(k)) for k in sizes], BLUE)
    d.path([(x_of(k), y_of(50 + k / 64 + 4)) for k in sizes], GREEN)
    d.line(x_of(64), top, x_of(64), bottom, RED, 1, "4 3")
    d.text(x_of(64) + 6, top + 14, "k = 64", 11, RED)
    d.text(right + 8, y_of(65536) + 4, "k: any order of FP32", 12, BLUE)
    d.text(right + 8, y_of(1078) + 4, "50 + k/64 + 4", 12, GREEN)
    d.text(20, 328, "Left of the dashed line the method could err more than FP32 may: there the mode is strict. Right of it, it cannot.", 11, DIM)
    return d.done()


def ownership():
    d = Drawing(760, 300, "Who owns what, and who needs what")
    title(d, "Four GPUs, two by two: what GPU 0 owns and what it must fetch")
    for n, name in enumerate(("A", "B", "C")):
        x0 = 40 + n * 240
        d.text(x0 + 80, 56, name, 14, INK, "middle", True)
        for r in range(2):
            for c in range(2):
                own = (r, c) == (0, 0)
                need = name == "A" and r == 0 or name == "B" and c == 0
                fill = ORANGE if own else SAND if need else PALE
                framed(d, x0 + c * 80, 66 + r * 80, 78, 78, fill, f"GPU {2 * r + c}", 12, "#ffffff" if own else INK)
    d.text(40, 250, "Orange: in GPU 0's memory already. Sand: it needs these too, and the other GPU of its row or column has them.", 12)
    d.text(40, 270, "Of A it needs the upper half and has half of that; of B the left half, the same. So a quarter of each must come.", 12)
    d.text(40, 290, "Grey: it never touches these, however large the matrices are.", 11, DIM)
    return d.done()


def tree():
    d = Drawing(760, 300, "A sum as a tree")
    title(d, "Sixteen values, four rounds: half of the threads work, then a quarter")
    values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]
    n, row = 16, 0
    while n >= 1:
        y = 56 + row * 48
        for i in range(16):
            framed(d, 30 + i * 44, y, 40, 24, (LEAF if n == 1 else SKY) if i < n else PALE, str(values[i]) if i < n else "", 11)
        if n > 1:
            half = n // 2
            for i in range(half):
                d.line(50 + i * 44, y + 24, 50 + i * 44, y + 48, "#8a949e")
                d.line(50 + (i + half) * 44, y + 24, 50 + i * 44, y + 48, "#c9d0d7")
            values[:half] = [values[i] + values[i + half] for i in range(half)]
            d.text(738, y + 40, "barrier", 10, RED, "end")
        n, row = n // 2, row + 1
    return d.done()


def in_flight():
    d = Drawing(760, 220, "Bytes under way")
    title(d, "Bytes that one SM has asked for and waits for (KB)")
    need = 4.8e12 * 700e-9 / SMS / 1000
    rows = (("r02: 2048 threads, one float each", 2048 * 4 / 1000, ROSE), ("r03: 2048 threads, eight floats each", 2048 * 32 / 1000, LEAF),
            ("r06: 1024 threads, eight times 16 bytes", 1024 * 128 / 1000, LEAF))
    for i, (words, kb, fill) in enumerate(rows):
        y = 52 + i * 44
        d.text(20, y + 18, words, 12)
        framed(d, 300, y, kb * 3, 28, fill)
        d.text(306 + kb * 3, y + 19, f"{kb:.0f}", 12)
    d.line(300 + need * 3, 44, 300 + need * 3, 184, RED, 2)
    d.text(306 + need * 3, 200, f"needed: {need:.0f} = 4.8 TB a second · 700 ns / 132", 12, RED)
    return d.done()


def cpu_sets():
    d = Drawing(760, 300, "Sets of a cache")
    title(d, "32 KB of L1 in 64 sets of 8 lines: where the rows of B's strip fall")
    for n, (words, stride) in enumerate((("B as it lies: 32 bytes of each row, rows 4096 bytes apart", 4096), ("B packed: 32 bytes a step, one behind the other", 32))):
        y = 60 + n * 104
        counts = {}
        for step in range(256):
            counts.setdefault(step * stride // 64 % 64, set()).add(step * stride // 64)
        most = max(len(v) for v in counts.values())
        d.text(20, y, words, 12, INK, bold=True)
        for s in range(64):
            here = len(counts.get(s, ()))
            framed(d, 20 + s * 11.2, y + 12, 10.2, 34, PALE if not here else SKY if here <= 8 else RED)
        d.text(20, y + 66, f"256 steps of k touch {sum(len(v) for v in counts.values())} lines in {len(counts)} of 64 sets; a set has 8 places and is asked to hold {most}.", 12,
               RED if most > 8 else GREEN)
    d.text(20, 290, "A box is a set. Red: more lines want in than there are places, and each comes from L2 again at the next use.", 11, DIM)
    return d.done()


def packing():
    d = Drawing(760, 280, "Packing B")
    title(d, "Packing: from rows of the matrix to the order of the tile's steps")
    for r in range(4):
        for c in range(12):
            framed(d, 30 + c * 24, 66 + r * 30, 22, 26, FOURS[r], f"{r}{c:x}", 9)
    d.text(30, 58, "B: rows of k, 12 columns shown", 12)
    arrow(d, 326, 124, 372, 124)
    d.text(386, 58, "packed, panels of 4 columns: each step of k beside the next", 12)
    for panel in range(3):
        for r in range(4):
            for s in range(4):
                framed(d, 386 + (r * 4 + s) * 22, 66 + panel * 40, 20, 26, FOURS[r], f"{r}{panel * 4 + s:x}", 9)
    d.text(30, 218, "The tile walks one panel: its next four floats are always the next four in memory. A line of the cache is used whole,", 12)
    d.text(30, 236, "a page of memory serves a thousand floats, and an edge is filled up with zeros, so that the tile needs no edge code.", 12)
    d.text(30, 262, "Numbers: row and column in the matrix. (c05's panels are 8 columns wide.)", 11, DIM)
    return d.done()


def interleave():
    d = Drawing(760, 320, "Timing in turn")
    title(d, "A chip that gets slower while two equal kernels are timed")
    speed = lambda i: 1 + 0.004 * i
    for n, (words, order) in enumerate((("first all of A, then all of B", "AAAAAAAABBBBBBBB"), ("in turn", "ABABABABABABABAB"))):
        y = 60 + n * 116
        times = {"A": [], "B": []}
        d.text(20, y, words, 12, INK, bold=True)
        for i, who in enumerate(order):
            t = 100 * speed(i)
            times[who].append(t)
            high = (t - 96) * 5
            d.box(30 + i * 30, y + 72 - high, 26, high, BLUE if who == "A" else ORANGE)
            d.text(43 + i * 30, y + 86, who, 11, DIM, "middle")
        ratios = sorted(b / a for a, b in zip(times["A"], times["B"]))
        middle = (ratios[3] + ratios[4]) / 2
        d.text(530, y + 40, f"median of B / A: {middle:.3f}", 13, RED if abs(middle - 1) > 0.01 else GREEN, bold=True)
        d.text(530, y + 60, "the truth: 1.000", 12, DIM)
    d.text(20, 304, "A and B are the same kernel; each sample is 0.4% slower than the one before. A bar shows the time above 96.", 11, DIM)
    return d.done()


def spread():
    d = Drawing(760, 330, "How far samples lie apart")
    title(d, "Fastest and slowest sample, as shares of the median")
    left, top, right, bottom = 110, 52, 720, 280
    lines = [x for x in lines_of("results/strict-squares-h200.jsonl") if x.get("m") in (64, 128, 512, 1024, 4096, 8192) and x.get("kind") == "bench"]
    high = math.ceil(10 * max(t["max"] / t["median"] for x in lines for t in (x["us"], x["peers"][0]["us"]))) / 10
    x_of = lambda v: left + (v - 0.8) / (high - 0.8) * (right - left)
    for tenth in range(8, round(10 * high) + 1):
        v = tenth / 10
        d.line(x_of(v), top, x_of(v), bottom, GRID)
        d.text(x_of(v), bottom + 16, f"{v:.1f}", 11, DIM, "middle")
    row = 0
    for line in lines:
        y = top + 10 + row * 37
        d.text(20, y + 14, f"{line['m']}³", 12)
        for i, (t, colour) in enumerate(((line["us"], BLUE), (line["peers"][0]["us"], ORANGE))):
            low, high = t["min"] / t["median"], t["max"] / t["median"]
            d.box(x_of(low), y + i * 13, max(2, x_of(high) - x_of(low)), 10, colour)
        row += 1
    d.text(20, 318, "Blue: Rung, orange: cuBLAS, from results/strict-squares-h200.jsonl. Below 1024 a single sample may be off by a tenth or more.", 11, DIM)
    return d.done()


def requests():
    d = Drawing(760, 300, "From accesses of lanes to requests of warps")
    title(d, "The lens: 32 logs, one for each lane, read across")
    shown = (0, 1, 2, 31)
    steps = (("line 20, A[r][0]", SAND), ("line 20, B[0][c]", SKY), ("line 20, A[r][1]", SAND), ("line 20, B[1][c]", SKY), ("line 23, C[r][c]", LEAF))
    for i, lane in enumerate(shown):
        y = 66 + i * 38 + (14 if lane == 31 else 0)
        d.text(20, y + 18, f"lane {lane}", 12)
        for j, (words, fill) in enumerate(steps):
            framed(d, 90 + j * 128, y, 122, 28, fill, words.replace("r]", f"{lane}]").replace("c]", "7]"), 10)
    d.text(90, 186, "…", 14)
    for j, (words, n) in enumerate((("32 sectors", 1), ("1 sector", 1), ("32 sectors", 1), ("1 sector", 1), ("32 sectors", 1))):
        d.line(90 + j * 128 + 61, 230, 90 + j * 128 + 61, 242, DIM)
        d.text(90 + j * 128 + 61, 258, words, 12, RED if words.startswith("32") else GREEN, "middle", True)
    d.text(20, 288, "l01: a column of the picture is one request of the warp, since all lanes came to that place in the source for the n-th time.", 11, DIM)
    return d.done()


def shadow():
    d = Drawing(760, 300, "What a thread may know")
    title(d, "Two threads, one word of shared memory: is the read ordered behind the write?")
    for n, (words, barrier) in enumerate((("with the barrier", True), ("without it", False))):
        y = 62 + n * 112
        d.text(20, y, words, 12, INK, bold=True)
        d.text(20, y + 28, "thread 3", 12)
        d.text(20, y + 66, "thread 40", 12)
        d.line(96, y + 24, 700, y + 24, "#c9d0d7", 2)
        d.line(96, y + 62, 700, y + 62, "#c9d0d7", 2)
        framed(d, 140, y + 12, 150, 24, SAND, "writes word 9, clock 5", 11)
        if barrier:
            d.line(380, y + 6, 380, y + 80, BLUE, 4)
            d.text(388, y + 47, "barrier: all learn all clocks", 11, BLUE)
        framed(d, 560, y + 50, 130, 24, LEAF if barrier else RED, "reads word 9", 11, INK if barrier else "#ffffff")
        d.text(20, y + 92, "thread 40 knows thread 3's clock up to 5: in order" if barrier else
               "thread 40 knows nothing of thread 3 since clock 0: a race, however the two happened to run", 12, GREEN if barrier else RED)
    d.text(20, 292, "The verdict does not depend on luck: the threads may even have run in the right order, and the race is found all the same.", 11, DIM)
    return d.done()


def add_kernel():
    d = Drawing(760, 250, "One file, one row")
    title(d, "A kernel of your own: what reads its row")
    framed(d, 20, 60, 200, 50, SAND, "l90_two_rows.cu", 12)
    framed(d, 20, 140, 200, 50, SKY, "its row in rows.inc", 12)
    for i, words in enumerate(("rung list", "rung lens", "rung verify", "rung bench", "rung climb", "rung explain", "the test suite", "the build's check")):
        x, y = 420 + i // 4 * 168, 50 + i % 4 * 42
        framed(d, x, y, 152, 30, LEAF, words, 12)
        if i < 4:
            arrow(d, 224, 165, 414, y + 15, "#9aa5b1", 1)
    arrow(d, 120, 112, 120, 138)
    d.text(230, 90, "compiled twice: by nvcc for", 11, DIM)
    d.text(230, 104, "the GPU, by g++ for the lens", 11, DIM)
    d.text(20, 232, "The row says what the kernel accepts and how large its tile is. From that the tests make their shapes, and the launcher its grid.", 11, DIM)
    return d.done()


def long_k():
    d = Drawing(760, 250, "Cutting k")
    title(d, "64 × 64 × 65536: one tile, and 132 SMs")
    framed(d, 60, 60, 560, 34, SAND, "k = 65536: one SM walks all of it", 12)
    d.text(20, 82, "whole", 12)
    parts = 16
    for i in range(parts):
        framed(d, 60 + i * 35, 120, 33, 34, FOURS[i % 8], f"SM {i}", 9)
        d.line(76 + i * 35, 156, 340, 186, "#c9d0d7")
    d.text(20, 142, "cut", 12)
    framed(d, 290, 186, 100, 28, LEAF, "add the parts", 11)
    d.text(402, 204, "in the order of k: the same bits every time", 11, DIM)
    d.text(20, 240, "Sixteen parts are drawn; l19 makes one for every SM that is free. More parts mean less to walk and more to add.", 11, DIM)
    return d.done()


def floors():
    d = Drawing(760, 320, "Two floors")
    title(d, "The least time of a square product on an H200, in µs")
    left, top, right, bottom = 70, 52, 560, 262
    axes(d, left, top, right, bottom, "m = n = k", "µs")
    x_of = lambda n: left + (math.log2(n) - 4) / 10 * (right - left)
    y_of = lambda t: bottom - (math.log10(t) + 4) / 10 * (bottom - top)
    for t in (1e-3, 1, 1e3, 1e5):
        d.line(left, y_of(t), right, y_of(t), GRID)
        d.text(left - 8, y_of(t) + 4, f"{t:g}" if t < 1e5 else "100 000", 11, DIM, "end")
    for n in (16, 64, 256, 1024, 4096, 16384):
        d.text(x_of(n), bottom + 18, str(n), 11, DIM, "middle")
    work, move = lambda n: 2 * n ** 3 / 66.9e6, lambda n: 12 * n ** 2 / 4.8e6
    d.path([(x_of(n), y_of(work(n))) for n in (16, 16384)], BLUE)
    d.path([(x_of(n), y_of(move(n))) for n in (16, 16384)], RED)
    meet = 12 / 4.8e6 * 66.9e6 / 2
    d.dot(x_of(meet), y_of(work(meet)), INK)
    d.text(x_of(meet) + 8, y_of(work(meet)) + 16, f"they meet at {meet:.0f}", 11)
    d.text(right + 8, y_of(work(16384)) + 4, "by operations", 12, BLUE)
    d.text(right + 8, y_of(move(16384)) + 4, "by bytes", 12, RED)
    d.text(20, 308, "Both axes are logarithmic: operations climb three decades where the size climbs one, bytes two.", 11, DIM)
    return d.done()


def slots():
    d = Drawing(760, 360, "Where the issue slots go")
    title(d, "Of 100 issue slots at 2048: multiply-adds, other instructions, empty")
    counted = {line["kernel"]: line["counter"] for line in lines_of("results/ladder-counters-2048-h200.jsonl")}
    row = 0
    for name in sorted(counted):
        if name.split("_")[0] not in ("l02", "l05", "l08", "l10", "l14", "l20", "l21", "l24", "l27", "l29"):
            continue
        fma, issued, y = counted[name]["fma_percent"], counted[name]["issued_percent"], 46 + row * 27
        d.text(20, y + 15, name, 11)
        d.box(200, y, fma * 5, 20, GREEN)
        d.box(200 + fma * 5, y, (issued - fma) * 5, 20, "#e0b050")
        d.box(200 + issued * 5, y, (100 - issued) * 5, 20, PALE)
        d.text(206, y + 14, f"{fma:.0f}", 11, "#ffffff")
        d.text(710, y + 14, f"{100 - issued:.0f}", 11, DIM)
        row += 1
    d.text(20, 336, "Green: multiply-adds. Yellow: addresses, loads, stores, jumps. Grey: nothing was issued. The figures are those of green and grey.", 11, DIM)
    d.text(20, 352, "From results/ladder-counters-2048-h200.jsonl.", 11, DIM)
    return d.done()


def wide_loads():
    d = Drawing(760, 250, "Four loads of 4 bytes, one of 16")
    title(d, "The same 512 bytes for a warp, asked for in two ways")
    for i in range(4):
        framed(d, 120 + i * 150, 56, 60, 28, SAND, "LDS", 11)
        framed(d, 182 + i * 150, 56, 60, 28, SKY, "1 pass", 11)
    d.text(20, 74, "4 × 4 bytes", 12)
    framed(d, 120, 128, 60, 28, SAND, "LDS.128", 11)
    for i in range(4):
        framed(d, 182 + i * 64, 128, 62, 28, SKY, f"lanes {8 * i}-{8 * i + 7}", 10)
    d.text(20, 146, "1 × 16 bytes", 12)
    d.text(120, 104, "four issue slots, four passes", 12, DIM)
    d.text(120, 176, "one issue slot, four passes: eight lanes want 128 bytes, all that the banks give in a cycle", 12, DIM)
    d.text(20, 216, "Sand: a slot of the scheduler. Blue: a cycle of shared memory. Wide loads save the first and not the second.", 11, DIM)
    d.text(20, 232, "All lanes the same 16 bytes: still two passes, since at most two quarters of the warp go together.", 11, DIM)
    return d.done()


def box():
    d = Drawing(760, 280, "Asking for a box")
    title(d, "One thread asks for a box; the engine does the rest")
    framed(d, 40, 60, 260, 160, PALE, "")
    d.text(46, 76, "A: 300 rows, 100 columns", 11, DIM)
    d.box(220, 160, 80, 60, ORANGE)
    d.box(300, 160, 40, 60, ROSE)
    d.box(220, 220, 120, 24, ROSE)
    d.text(226, 194, "inside", 11, "#ffffff")
    d.text(352, 236, "outside: zeros", 11, RED)
    arrow(d, 350, 180, 428, 140)
    for r in range(6):
        for c in range(8):
            framed(d, 440 + c * 30, 80 + r * 24, 28, 22, FOURS[(c ^ r) % 8], str(c ^ r), 10)
    d.text(440, 68, "shared memory: pieces of 16 bytes,", 12)
    d.text(440, 246, "in another order in each row: no conflicts", 12)
    d.text(20, 270, "The description of the matrix was made once, by the host. The box's place is all that the thread says.", 11, DIM)
    return d.done()


def exchange():
    d = Drawing(760, 220, "Registers given and taken")
    title(d, "The 64512 registers of l21's block, before and after the exchange")
    for n, (words, parts) in enumerate((("at the start", [168] * 12), ("after setmaxnreg", [24] * 4 + [240] * 8))):
        y, x = 60 + n * 66, 150.0
        d.text(20, y + 22, words, 12)
        for i, regs in enumerate(parts):
            wide = regs * 32 / 64512 * 580
            framed(d, x, y, wide - 1, 34, SAND if i < 4 else SKY, str(regs) if wide > 18 else "", 10)
            x += wide
    d.text(20, 196, "Sand: the four producer warps, of which one works. Blue: the eight warps that multiply. Twelve warps · 32 lanes, registers a thread.", 11, DIM)
    return d.done()


def checked():
    d = Drawing(760, 280, "What is looked at after a call")
    title(d, "C in memory, as a check sees it: 5 × 6 results, leading dimension 9")
    for r in range(7):
        for c in range(13):
            inside, between = 1 <= r <= 5 and 2 <= c <= 7, 1 <= r <= 5 and 8 <= c <= 10
            fill = LEAF if inside else SAND if between else ROSE
            framed(d, 60 + c * 42, 46 + r * 26, 40, 24, fill, "c" if inside else "NaN", 9)
    d.text(60, 246, "Green: results, compared with FP64; NaN there before the call, if beta is 0. Sand: the rest of each row. Rose: guards.", 11, DIM)
    d.text(60, 262, "What is not green must be the same bits afterwards.", 11, DIM)
    return d.done()


def ways():
    d = Drawing(760, 240, "1536³ in four ways")
    title(d, "1536³ on 132 SMs: the time of the multiply-adds alone, in four ways (µs)")
    rows = []
    for words, bm, bn, shared in (("128 × 256, whole tiles", 128, 256, False), ("128 × 128, whole tiles", 128, 128, False), ("64 × 128, whole tiles", 64, 128, False),
                                  ("128 × 256, shared out along k", 128, 256, True)):
        tiles = -(-1536 // bm) * -(-1536 // bn)
        rounds = tiles / SMS if shared else -(-tiles // SMS)
        rows.append((words, tiles, rounds * 1536 * bm * bn / 128 / 1980))
    for i, (words, tiles, us) in enumerate(rows):
        y = 50 + i * 38
        d.text(20, y + 17, words, 12)
        framed(d, 230, y, us * 2, 26, SKY)
        d.text(238 + us * 2, y + 17, f"{us:.0f}   ({tiles} tiles)", 12)
    d.text(20, 222, "128 lanes, 1.98 GHz. Not in it: loads, the ends of tiles, the meeting of blocks that share a tile.", 11, DIM)
    return d.done()


def vector_registers():
    d = Drawing(760, 220, "The registers of a CPU's tile")
    title(d, "What the vector registers hold")
    for n, (words, count, sums, b) in enumerate((("AVX-512, 8 × 48: 32 registers of 16 floats", 32, 24, 3), ("AVX2, 6 × 16: 16 registers of 8 floats", 16, 12, 2))):
        y = 62 + n * 74
        d.text(20, y, words, 12, INK, bold=True)
        for i in range(count):
            framed(d, 20 + i * 22.4, y + 10, 20, 30, ORANGE if i < sums else SKY if i < sums + b else SAND if i == sums + b else PALE,
                   "s" if i < sums else "b" if i < sums + b else "a" if i == sums + b else "", 10, "#ffffff" if i < sums else INK)
    d.text(20, 208, "Orange: sums, eight or more of which must be under way. Blue: a row of B. Sand: a float of A, spread over a vector. Grey: to spare.", 11, DIM)
    return d.done()


def small_tile():
    d = Drawing(760, 270, "A small tile")
    title(d, "16 × 32 results: a warp has them all, and two warps share k")
    for n in range(2):
        x0 = 40 + n * 300
        d.text(x0, 56, f"slice {n}: steps of k {16 * n} to {16 * n + 15} of each stage", 12)
        for r in range(4):
            for c in range(8):
                framed(d, x0 + c * 32, 66 + r * 32, 30, 30, SKY if n == 0 else SAND, f"t{8 * r + c}", 9)
    arrow(d, 296, 210, 330, 232)
    arrow(d, 500, 210, 440, 232)
    d.text(340, 246, "sums of both, added", 12)
    d.text(20, 262, "Each box is a thread with 4 × 4 results.", 11, DIM)
    return d.done()


def shares():
    d = Drawing(760, 250, "Shares of four times one GPU")
    title(d, "Four GPUs: what share of four times one they reach (strict)")
    best = {}
    for line in lines_of("results/multi-h200x4.jsonl"):
        if line.get("ranks") == 4 and line.get("math") == "strict" and line.get("one_gpu_us") and line["shape"] in ("4096x4096x4096", "8192x8192x8192", "16384x16384x16384", "32768x32768x32768"):
            key = (line["operands"], int(line["shape"].split("x")[0]))
            best[key] = max(best.get(key, 0), line["one_gpu_us"] / 4 / line["us"])
    for i, ((operands, n), share) in enumerate(sorted(best.items())):
        y = 46 + i * 30
        d.text(20, y + 16, f"{n}, operands {operands}", 12)
        framed(d, 260, y, share * 400, 22, LEAF if share > 0.9 else SAND)
        d.text(266 + share * 400, y + 16, f"{share:.2f}", 12)
    d.line(660, 40, 660, 46 + 30 * len(best), RED, 1, "4 3")
    d.text(20, 240, "The best cut of k in results/multi-h200x4.jsonl. Small products have nothing to hide their copies behind.", 11, DIM)
    return d.done()


def guard():
    d = Drawing(760, 250, "The guard")
    title(d, "How a block of 128 × 128 results is computed in accurate mode")
    steps = (("Inf or NaN in its rows", "strict"), ("sums might overflow", "strict"), ("few terms carry the sums", "strict"), ("over 64 results too small", "strict"))
    for i, (words, _) in enumerate(steps):
        framed(d, 20 + i * 184, 60, 172, 40, SKY, words, 11)
        arrow(d, 106 + i * 184, 102, 106 + i * 184, 142, RED)
        d.text(112 + i * 184, 126, "yes", 10, RED)
        if i < 3:
            arrow(d, 192 + i * 184, 80, 203 + i * 184, 80, GREEN)
    framed(d, 20, 146, 724, 32, ROSE, "left alone, marked; FP32 multiply-adds compute it afterwards", 12)
    d.text(20, 206, "Four times no: three short products and promoted sums. Up to 64 results that are too small are computed one by one.", 12)
    d.text(20, 234, "The first three look at what the split noted of rows and columns; the last one needs the product.", 11, DIM)
    return d.done()


NAMES = ("roofline", "l11_banks", "lane_maps", "occupancy_steps", "turn", "group_order", "ports", "drift", "align", "budget", "ownership", "tree",
         "in_flight", "cpu_sets", "packing", "interleave", "spread", "requests", "shadow", "add_kernel", "long_k", "floors",
         "slots", "wide_loads", "box", "exchange", "checked", "ways", "vector_registers", "small_tile", "shares", "guard")


def all_of():
    return {name.replace("_", "-") + ".svg": globals()[name]() for name in NAMES}
