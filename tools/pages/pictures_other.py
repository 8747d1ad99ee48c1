"""Draws pictures of the rungs for sums and for the CPU: rate against size, and what changed from the rung before."""
import math

from pictures import DIM, GRID, INK, Drawing, spread
from pictures_rungs import bars
from records import CPU, Missing, occupancy

ROOF, NOW, BEFORE, PEER = "#c0392b", "#1f5f9e", "#7fb0dd", "#8a949e"
MEMORY = 4800  # GB/s: an H200's memory, by its data sheet


def curves(title, unit, sizes, ticks, height, lines):
    """Draws curves over a logarithmic axis: label, points, colour, width, dash. `ticks` are labels of sizes, `height` the lowest and highest
    rate and the labels between; from 0 the scale is even, from anything else logarithmic."""
    d = Drawing(640, 330, title)
    left, top, right, bottom = 64, 54, 470, 270
    low, high, rates = height
    size_of, scale = math.log2, (math.log2 if low else float)

    def x(size):
        return left + (size_of(size) - size_of(min(sizes))) / (size_of(max(sizes)) - size_of(min(sizes))) * (right - left)

    def y(rate):
        return bottom - (scale(rate) - scale(low)) / (scale(high) - scale(low)) * (bottom - top)

    d.text(20, 22, title, 13, INK, bold=True)
    d.text(left - 8, top - 8, unit, 11, DIM, "end")
    for rate in rates:
        d.line(left, y(rate), right, y(rate), GRID)
        d.text(left - 8, y(rate) + 4, f"{rate:g}", 11, DIM, "end")
    for size, label in ticks:
        d.text(x(size), bottom + 18, label, 11, DIM, "middle")
    labels = []
    for label, points, colour, width, dash in lines:
        places = [(x(size), y(rate)) for size, rate in points]
        if places:
            d.path(places, colour, width, dash)
            for place in places if not dash else ():
                d.dot(*place, colour)
            labels.append((places[-1][1], label, colour))
    for at, label, colour in spread(labels, 14, bottom):
        d.text(480, at, label[:26], 11, colour)
    return d


def sum_rate(r, name):
    own, before = r.sums(name), r.row(name)["previous"]
    if not own:
        return None
    sizes = sorted({n for rung in r.order if rung[0] == "r" for n in r.sums(rung)})
    last = own[max(own)]
    d = curves(f"{name}: rate against size, one {last['device'].replace('NVIDIA ', '')}", "GB/s", sizes, [
        (n, f"2^{n.bit_length() - 1}") for n in sizes], (0, 5000, range(0, 5001, 1000)), [
        ("bandwidth, by data sheet", [(n, MEMORY) for n in (sizes[0], sizes[-1])], ROOF, 1, "6 4"),
        ("CUB", [(n, 4 * n / own[n]["cub_us"] / 1000) for n in sorted(own)], PEER, 2, ""),
        (before, [(n, x["gbytes_per_s"]) for n, x in sorted(r.sums(before).items())] if before else [], BEFORE, 1.5, ""),
        (name, [(n, own[n]["gbytes_per_s"]) for n in sorted(own)], NOW, 3, "")])
    d.text(267, 306, "floats that are added", 11, DIM, "middle")
    return d.done()


def cpu_rate(r, name):
    own, before = r.cpu_sizes(name), r.row(name)["previous"]
    if not own:
        return None
    threads = max(t for _, t in own)
    mine = {m: x for (m, t), x in own.items() if t == threads}
    sizes = sorted({m for rung in r.order if rung[0] == "c" for m, _ in r.cpu_sizes(rung)})
    other = {m: x for (m, t), x in r.cpu_sizes(before).items() if t == 1} if before else {}
    peer = {m: 2 * m ** 3 / x["peers"][0]["us"]["median"] / 1e3 for m, x in mine.items() if x["peers"]}
    roof = threads * max(x["fma_peak_gflops"] / t for (_, t), x in own.items())
    d = curves(f"{name}: rate against size, {'one thread' if threads == 1 else f'{threads} threads'}", "GFLOP/s", sizes, [
        (m, str(m)) for m in sizes], (0.25, 256, [4 ** i for i in range(-1, 5)]), [
        ("roof of the FMA units", [(m, roof) for m in (sizes[0], sizes[-1])], ROOF, 1, "6 4"),
        ("OpenBLAS" + ("" if threads == 1 else f", {threads} threads"), sorted(peer.items()), PEER, 2, ""),
        (f"{before}" if threads == 1 or not before else f"{before}, one", [(m, other[m]["gflops"]) for m in sorted(other)], BEFORE, 1.5, ""),
        (name, [(m, mine[m]["gflops"]) for m in sorted(mine)], NOW, 3, "")])
    d.text(267, 306, "m = n = k", 11, DIM, "middle")
    return d.done()


def sum_counts(r, name):
    """Returns what a sum of 2^20 floats costs, by the lens and the build."""
    lens, build = r.lens_of_sum(name), r.build_of(name)
    found = [("requests to global memory, thousands", (lens["global_load_requests"] + lens["atomic_requests"]) / 1000, 1),
             ("shared loads and stores, thousands", (lens["shared_load_requests"] + lens["shared_store_passes"]) / 1000, 1),
             ("barriers of a block", lens["barriers"] or 0, 0), ("registers of a thread", build["registers"], 0), ("warps on an SM", occupancy(r, name)["warps"], 0)]
    try:
        found.append(("of what memory can move at 2^28, %", r.counters(name)["dram_percent"], 0))
    except Missing:
        pass
    for power in (20, 30):
        try:
            found.append((f"GB/s at 2^{power}", r.reduce_of(name, 1 << power)["gbytes_per_s"], 1 if power == 20 else 0))
        except Missing:
            pass
    return found


def cpu_counts(r, name):
    """Returns what a multiply-add costs, by cachegrind, and the rate."""
    one = r.cpu_counts(name)
    madds = one["m"] ** 3
    return [("instructions for each multiply-add", one["instructions"] / madds, 2), ("loads and stores for each", (one["reads"] + one["writes"]) / madds, 3),
            ("misses of L1 in a thousand of them", 1000 * one["l1_misses"] / madds, 1), ("misses of L2 in a thousand", 1000 * one["l2_misses"] / madds, 1),
            ("GFLOP/s at 1024", r.bench(name, 1024)[0]["gflops"], 1)]


def shared_counts(r, name):
    """Returns what threads change at 1024, by count (four blocks of B, c08's two jobs for each, its pieces of rows) and by the clock."""
    rates = {x["threads"]: x["gflops"] for x in r.load(CPU) if x.get("kernel") == name and x["m"] == x["n"] == x["k"] == 1024}
    threads = max(rates)
    rows = 120 if threads == 1 else 6 * math.ceil((1024 // (8 * threads) + 1) / 6)
    return [("threads that compute", threads, 0), ("times that all wait for the last one", 0 if threads == 1 else 4 * 2, 0),
            ("pieces of rows for each block of B", math.ceil(1024 / rows), 0), ("GFLOP/s at 1024, one thread", rates[1], 1),
            ("GFLOP/s at 1024, all threads", rates[threads], 1)]


def changes(r, name):
    """Returns the rows of bars(), of a rung that adds up or runs on a CPU."""
    counts = sum_counts if name[0] == "r" else shared_counts if name == "c08_threads" else cpu_counts
    now, old = counts(r, name), {label: value for label, value, _ in counts(r, r.row(name)["previous"])}
    return [(label, old[label], value, decimals) for label, value, decimals in now if label in old]


def changed(r, name):
    before = r.row(name)["previous"]
    if not before:
        return None
    try:
        return bars(name, before, changes(r, name))
    except Missing:
        return None
