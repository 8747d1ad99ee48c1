"""Draws pictures of single rungs from records: what changed from the rung before, the ring over time, register banks."""
from pictures import DIM, GRID, INK, Drawing
from records import FFMAS, MADE_FOR, Missing, occupancy

NOW, BEFORE, EVEN, ODD, WARN = "#1f5f9e", "#bcd9f2", "#c8641b", "#1f5f9e", "#b8322a"
FILL, USE, WAIT = "#bcd9f2", "#3a7d44", "#eef1f4"
SMS = 132
# These rungs bring the next tile while they multiply this one: steps of k shown, and who brings it.
OVERLAPPED = {
    "l14_register_prefetch": "registers", "l15_double_buffer": "registers", "l16_thread_remap": "registers",
    "l17_hierarchical": "registers", "l17_hierarchical_swizzled": "registers", "l18_async_ping_pong": "copies",
    "l19_split_k": "registers", "l19_tall_skinny": "copies", "l19_lone_warps": "copies", "l19_batches": "copies",
    "l20_multistage": "copies", "l21_tma": "engine", "l22_persistent": "engine", "l23_searched": "engine",
    "l24_register_banks": "engine", "l25_stream_k": "engine", "l26_operand_reuse": "engine", "l27_written_loop": "engine",
    "l28_thread_tile_12x16": "engine", "l29_one_kernel": "engine", "l30_tf32_mma": "registers", "l30_tf32": "registers", "l30_tf32_bulk": "engine", "l31_tf32x3": "registers",
    "l32_bf16x6": "registers", "l33_bf16x9": "registers"}
LONE = ("l19_lone_warps", "l19_batches")  # each warp has a ring of its own, and takes a step while seven others take theirs
# In these rungs two warpgroups take turns at the tensor cores: k of a chain, whether its sums are promoted, and whether that is done while
# its corrections are multiplied.
CHAINED = {"l34_f16x3_chain": (32, False, False), "l35_f16x3_promoted": (64, True, False), "l36_f16x3_overlapped": (64, True, True),
           "l37_f16x3_guarded": (64, True, True), "l38_f16x3_pipeline": (64, True, True),
           "l39_f16x3_read_once": (64, True, True), "l40_f16x3_whole_tiles": (64, True, True)}


def own_aim(r, name, page):
    """Returns what the rung of this page was made for, where that is not the rate at 4096: its size, or the error. Of a rung or of the one before."""
    m, n, k = MADE_FOR.get(page, (0, 0, 0))
    found = []
    if m:
        rate, us = r.bench(name, m, n, k)[0]["gflops"] / 1000, r.bench(name, m, n, k)[0]["us"]["median"]
        found.append((f"TFLOP/s at {m}", rate, 2) if m == n == k else (f"µs at {m}×{n}×{k}, less is better", us, 1))
    if page[:2] in ("l3", "l4"):
        error = r.bench(name)[0]["error_u"]
        found.append(("error at 4096 in u, less is better", error, 2))
    return found


def counts_of(r, name, page):
    """Returns what a rung costs, as far as records have it and as this page shows it: label, value, decimals."""
    found, build = [], r.build_of(name)
    try:
        lens = r.lens_of(name)
        results, fmas = lens["m"] * lens["n"], lens["m"] * lens["n"] * lens["k"] / 32
        flop = results * lens["k"] * 2 / lens["global_load_bytes"]
        found.append(("FLOP for each byte asked of global memory", flop, 1 if flop >= 8 else 2))
        if lens["shared_load_requests"]:
            passes = lens["shared_load_passes"] / fmas
            found.append(("shared loads, passes for each FMA", passes, 3 if passes >= 0.01 else 5))
    except (Missing, ZeroDivisionError, KeyError):
        pass
    try:
        issued = r.counters(name)["instructions"] / (2048 ** 3 / 32)
        found.append(("instructions for each FMA", issued, 2 if issued >= 0.5 else 3))
        found.append(("cycles in which a scheduler issues, %", r.counters(name)["issued_percent"], 0))
    except (Missing, KeyError):
        pass
    found.append(("registers of a thread", build["registers"], 0))
    found.append(("shared memory of a block, KB", build["shared_bytes"] / 1024, 1))
    found.append(("warps on an SM", occupancy(r, name)["warps"], 0))
    try:
        found.append(("TFLOP/s at 4096", r.bench(name)[0]["gflops"] / 1000, 2))
        found += own_aim(r, name, page)
    except Missing:
        pass
    return found


def bars(name, before, rows):
    """Draws pairs of bars, a rung's and the one's before it: label, before, now, decimals."""
    d = Drawing(700, 62 + 34 * len(rows), f"{name}: what changed from {before}")
    d.text(20, 24, f"{name}: what changed from {before}", 13, INK, bold=True)
    for i, (label, was, value, decimals) in enumerate(rows):
        y, most = 44 + 34 * i, max(was, value, 1e-9)
        d.text(300, y + 17, label, 12, INK, "end")
        d.box(312, y, 270 * was / most, 11, BEFORE)
        d.box(312, y + 13, 270 * value / most, 11, NOW)
        d.text(318 + 270 * was / most, y + 10, f"{was:.{decimals}f} before", 10, DIM)
        d.text(318 + 270 * value / most, y + 23, f"{value:.{decimals}f}", 10, INK)
    return d.done()


def changes(r, name):
    """Returns the rows of bars(), of a rung that multiplies on a GPU."""
    now, old = counts_of(r, name, name), {label: value for label, value, _ in counts_of(r, r.row(name)["previous"], name)}
    return [(label, old[label], value, decimals) for label, value, decimals in now if label in old]


def changed(r, name):
    before = r.row(name)["previous"]
    if not before or name[0] != "l":
        return None
    try:
        return bars(name, before, changes(r, name))
    except Missing:
        return None


def step_ns(r, name):
    """Returns how long a block takes for one step of its tile, or a warp where each has a ring, from the rate at 4096."""
    row, rate = r.row(name), r.bench(name)[0]["gflops"] * 1e9
    return 2 * row["bm"] * row["bn"] * row["bk"] * occupancy(r, name)["blocks"] * SMS / rate * 1e9 * (row["threads"] // 32 if name in LONE else 1)


def steps_ahead(r, name):
    """Returns how many steps before its use a tile is asked for: with registers one, in a ring as many as there are places but the one in use."""
    return 1 if OVERLAPPED[name] == "registers" else r.row(name)["stages"] - 1


def play(k, promoted, overlapped, until):
    """Counts two warpgroups' chains in cycles: 64 for a wgmma of 64 x 128 x 16, 64 for the additions of a chain. The tensor cores take
    what was queued first. Gives bars: row, start, end, kind, number of the chain."""
    bars, free, at = [], 0, [0, 0]
    before, turn = [0, 0], [0, 0]  # the end of the corrections before, the number of the chain

    def queue(group, length, kind):
        nonlocal free
        start = max(at[group], free)
        free = start + length
        bars.append((0, start, free, kind + 2 * group, turn[group]))
        return free

    leading, corrections = k // 16 * 64, k // 16 * 128
    while min(at) < until:
        group = at.index(min(at))
        done = queue(group, leading, 0)
        if overlapped:
            at[group] = max(at[group], before[group])
            before[group] = queue(group, corrections, 1)
        else:
            done = queue(group, corrections, 1)
        at[group] = max(at[group], done)
        if promoted:
            bars.append((1 + group, at[group], at[group] + 64, 4, turn[group]))
            at[group] += 64
        turn[group] += 1
    return bars


def chains_axis(r, name):
    """Draws what the tensor cores and the two warpgroups do over time, by count."""
    k, promoted, overlapped = CHAINED[name]
    left, width, until, splits = 150, 690, 5 * 768, name.startswith("l38")
    d = Drawing(left + width + 30, 196 + 30 * splits, f"{name} over time")
    d.text(20, 24, f"{name}: {'chains' if promoted else 'products'} of {k} of k over time, by count", 13, INK, bold=True)
    for i, label in enumerate(("tensor cores", "warpgroup 0", "warpgroup 1") + ("three more warps",) * splits):
        d.text(left - 10, 60 + 30 * i, label, 11, INK, "end")
        d.box(left, 44 + 30 * i, width, 24, WAIT)
    for cycle in range(0, until + 1, 768):
        x = left + cycle * width / until
        d.line(x, 40, x, 132 + 30 * splits, GRID)
        d.text(x, 146 + 30 * splits, str(cycle), 10, DIM, "middle")
    for row, start, end, kind, number in play(k, promoted, overlapped, until):
        x, w = left + start * width / until, (min(end, until) - start) * width / until - 1
        if start < until and w > 1:
            d.box(x, 44 + 30 * row, w, 24, ("#3a7d44", "#8fbf97", "#1f5f9e", "#8fb4d6", WARN)[kind])
            if w > 16:
                d.text(x + w / 2, 60 + 30 * row, str(number), 10, "#ffffff", "middle")
    if splits:
        d.box(left, 134, width, 24, FILL)
        d.text(left + width / 2, 150, "split the pieces that later tiles need", 10, DIM, "middle")
    y, x = 160 + 30 * splits, 20
    for colour, words in (("#3a7d44", "hi·hi of group 0"), ("#8fbf97", "its corrections"), ("#1f5f9e", "hi·hi of group 1"),
                          ("#8fb4d6", "its corrections"), *([(WARN, "additions to FP32")] * promoted), (WAIT, "waits")):
        d.box(x, y, 12, 12, colour)
        d.text(x + 18, y + 10, words, 11)
        x += 142
    d.text(20, y + 28, "Cycles: 64 for each wgmma of 64×128×16" + ", 64 for a thread's additions" * promoted + ". What was queued first is multiplied first.", 11, DIM)
    return d.done()


def time_axis(r, name):
    """Draws each place for a tile over steps of k: when it is filled, when it is used."""
    if name in CHAINED:
        return chains_axis(r, name)
    if name not in OVERLAPPED:
        return None
    try:
        ns = step_ns(r, name)
    except Missing:
        return None
    row, who = r.row(name), OVERLAPPED[name]
    slots, steps, left, step = row["stages"], 9, 150, 76
    in_registers = who == "registers"
    d = Drawing(left + steps * step + 30, 128 + 26 * (slots + in_registers), f"{name} over time")
    d.text(20, 24, f"{name}: a {'warp' if name in LONE else 'block'}'s tiles over time, one step = {row['bk']} of k = {ns:.0f} ns", 13, INK, bold=True)
    for i in range(steps + 1):
        d.line(left + i * step, 42, left + i * step, 52 + 26 * (slots + in_registers), GRID)
    at = 46
    if in_registers:
        d.text(left - 10, at + 15, "registers: next tile", 11, INK, "end")
        for i in range(steps):
            d.box(left + i * step + 2, at, step - (16 if slots == 1 else 6), 20, FILL)
            d.text(left + i * step + step / 2, at + 14, f"load {i + 1}", 10, DIM, "middle")
        at += 26
    for slot in range(slots):
        d.text(left - 10, at + 15, f"tile {slot} in shared memory", 11, INK, "end")
        for i in range(-slots, steps):
            if (i - slot) % slots:
                continue
            use, end = left + i * step, left + steps * step
            if i >= 0:
                d.box(use + 1, at, step - (14 if in_registers and slots == 1 else 2), 20, USE)
                d.text(use + step / 2, at + 14, f"step {i}", 10, "#ffffff", "middle")
            if in_registers:
                start, stop = use + slots * step - 12, use + slots * step
            else:  # the slot is free when the step is over, and is asked to be full for step i + slots
                start, stop = max(use + step, left), min(use + slots * step, end)
            start, stop = max(start, left), min(stop, end)
            if stop - start > 6:
                d.box(start + 1, at, stop - start - 2, 20, FILL)
                if stop - start > 50:
                    d.text((start + stop) / 2, at + 14, f"copy for {i + slots}", 10, DIM, "middle")
        at += 26
    ahead = steps_ahead(r, name)
    d.box(20, at + 16, 12, 12, USE)
    d.text(38, at + 26, "multiplied", 11)
    d.box(120, at + 16, 12, 12, FILL)
    d.text(138, at + 26, "free for the next copy: on its way from memory" if not in_registers else "on its way from memory (above), stored to shared memory (narrow)", 11)
    d.text(20, at + 50, f"A tile is asked for {ahead} step{'s' if ahead > 1 else ''} ahead: {ahead * ns:.0f} ns. A load takes 500 to 800 cycles: 250 to 400 ns.", 11, DIM)
    return d.done()


def banks(r, name):
    found = [x for x in r.load(FFMAS) if x["kernel"] == name]
    if not found:
        return None
    shown, left, step = found[-1]["shown"], 130, 34
    d = Drawing(left + step * len(shown) + 20, 250, f"{name}: registers of its FFMAs")
    d.text(20, 24, f"{name}: {len(shown)} FFMAs of the main loop on end, and the banks that they read", 13, INK, bold=True)
    for i, label in enumerate(("row (a)", "column (b)", "sum (c)")):
        d.text(left - 10, 60 + 34 * i, label, 12, INK, "end")
    for i, label in enumerate(("reads, even bank", "reads, odd bank")):
        d.text(left - 10, 166 + 24 * i, label, 11, INK, "end")
    for i, operands in enumerate(shown):
        x, reads = left + i * step, [0, 0]
        for j, (register, fresh) in enumerate(operands):
            colour = ODD if register % 2 else EVEN
            if fresh:
                d.box(x, 42 + 34 * j, step - 3, 26, colour)
                reads[register % 2] += 1
            else:
                d.box(x, 42 + 34 * j, step - 3, 26, WAIT)
            d.text(x + (step - 3) / 2, 59 + 34 * j, f"R{register}", 9, "#ffffff" if fresh else DIM, "middle")
        for bank in (0, 1):
            d.text(x + (step - 3) / 2, 166 + 24 * bank, str(reads[bank]), 12, WARN if reads[bank] > 1 else INK, "middle", reads[bank] > 1)
    for x, colour, words in ((20, EVEN, "even register, read"), (190, ODD, "odd register, read"), (350, WAIT, "in the operand cache: free")):
        d.box(x, 216, 12, 12, colour)
        d.text(x + 18, 226, words, 11)
    return d.done()
