"""Draws the way of one step's operands, from device memory to the sums, a station a box: by count, from the catalog, the lens and the build."""
import re

from pictures import DIM, INK, Drawing
from records import Missing

SKY, SAND, LEAF, LILAC = "#d6e8f7", "#f7e3c3", "#d3ead2", "#e3d3ee"
WIDTH, GAP = 176, 26
# Who brings a tile into shared memory. The first pattern that fits a rung's name counts.
WAYS = (("l0[123]", "direct"), ("l18|l20|l19_(tall|lone|batches)", "copies"), ("l2[458]", "both"), ("l2[123679]", "engine"),
        ("l30_tf32_bulk|l3[4-9]|l40", "images"), ("l0|l1|l3[0-3]", "registers"))
SPLITS = {"l30_tf32_mma": "each is rounded to TF32", "l30_tf32": "each is rounded to TF32", "l31": "each is split in two", "l32": "each is split in three",
          "l33": "each is split in three"}
IMAGES = {"l31": "a tile as three images", "l32": "a tile as four images", "l33": "a tile as four images"}
LONE = ("l19_lone_warps", "l19_batches")  # a ring for each warp
PAIRED = ("l36", "l37", "l38", "l39", "l40")  # each of two blocks brings half of the B that both need


def way_of(name):
    return next(way for pattern, way in WAYS if re.match(pattern, name))


def prefix(name, table):
    return next((text for key, text in table.items() if name == key or name.startswith(key + "_")), None)


def bring(name, way, columns, lens):
    """Returns the station between device memory and shared memory."""
    sectors = lens["sectors_per_request"]
    load = f"{sectors:.3g} sectors a load" if sectors else ""
    if way == "direct":
        return "the SM's L1 cache", [load + " of a warp", "4 bytes a lane" + (f" of A, {4 * columns} of B" if columns > 1 else "")], SAND
    if way == "registers":
        return "registers, on the way", [load + " of a warp", prefix(name, SPLITS) or "then a store each"], LEAF
    if way == "copies":
        return "asynchronous copies", [load and load.replace("load", "copy") + " of a warp", "past the registers"], SAND
    if way == "both":
        return "two ways at once", ["A: copies of 4 bytes", "B: bulk copies"], SAND
    return "bulk copies", ["one thread asks,", "the engine copies"] + ["half of B for two blocks"] * (name[:3] in PAIRED), SAND


def first_kernel(name):
    """Returns what lays the operands out before the product's copies, for the rungs that do that once."""
    if name.startswith("l30"):
        return "a kernel of its own", ["rounds to TF32, once", "in the order of use"]
    if name.startswith("l38"):
        return "three warps a block", ["split in halves, once", "what later tiles need"]
    return "a kernel of its own", ["splits in two halves,", "once an element"]


def per_fma(lens, key):
    return lens[key] / (lens["m"] * lens["n"] * lens["k"] / 32)


def shared(name, way, row, lens, build):
    places = f"{row['stages']} place{'s' if row['stages'] > 1 else ''} for a tile" + (" a warp" if name in LONE else "")
    places = prefix(name, IMAGES) or places
    stores = f"stores: {per_fma(lens, 'shared_store_passes'):.2g} passes an FMA" if way == "registers" else "no stores on the way"
    return "shared memory", [places, f"{build['shared_bytes'] / 1024:.1f} KB a block", stores], SKY


def use(name, row, lens):
    """Returns the last two stations: what is multiplied, and the sums."""
    if "tm" in row:
        tm, tn, passes = row["tm"], row["tn"], per_fma(lens, "shared_load_passes")
        loads = [f"{tm} of A, {tn} of B", "for each step of k"] + ([f"{passes:.3g} passes an FMA"] if passes else [])
        return [("registers of a thread", loads, LEAF), ("sums of a thread", [f"{tm} × {tn} = {tm * tn}", f"{tm * tn} FMA{'s' * (tm * tn > 1)} for {tm + tn} floats"], LILAC)]
    sums = row["bm"] * row["bn"] // 256
    if name == "l30_tf32_mma":
        read = "fragments in registers", ["16 × 8 of A, 8 × 8 of B", "an instruction of a warp", f"{per_fma(lens, 'shared_load_passes'):.3g} passes an FMA"], LEAF
    else:
        read = "tensor cores", ["read shared memory", "by themselves (wgmma)"], LEAF
    return [read, ("sums of a thread", [f"{sums} in registers", "of 256 threads"], LILAC)]


def flow(r, name):
    try:
        row, lens, build = r.row(name), r.lens_of(name), r.build_of(name)
    except Missing:
        return None
    way, bm, bn, bk = way_of(name), row["bm"], row["bn"], row["bk"]
    step = f"{(bm + bn) * bk * 4 / 1024:.3g} KB a step"
    stations = [("device memory, L2", [f"A: {bm} × {bk}", f"B: {bk} × {bn}", step], SAND)]
    if way == "images":
        stations = [("device memory", ["A and B", "as they are given"], SAND), (*first_kernel(name), LEAF), ("device memory, L2", [
            f"A: {bm} × {bk}", f"B: {bk} × {bn}", step], SAND)]
    stations.append(bring(name, way, row.get("tn", 0), lens))
    if way != "direct":
        stations.append(shared(name, way, row, lens, build))
    stations += use(name, row, lens)
    d = Drawing(20 + len(stations) * (WIDTH + GAP), 176, f"{name}: the way of its operands")
    d.text(20, 24, f"{name}: the way of a block's operands for {bk} of k", 13, INK, bold=True)
    for i, (head, lines, colour) in enumerate(stations):
        x = 20 + i * (WIDTH + GAP)
        d.box(x, 40, WIDTH, 84, colour)
        d.text(x + WIDTH / 2, 60, head, 12, INK, "middle", True)
        for j, line in enumerate(x for x in lines if x):
            d.text(x + WIDTH / 2, 80 + 16 * j, line, 11, INK, "middle")
        if i:
            d.line(x - GAP + 4, 82, x - 6, 82, INK, 1.5)
            d.path([(x - 12, 77), (x - 5, 82), (x - 12, 87)], INK, 1.5)
    if way == "direct":
        serves = f"Nothing is kept for the block: a thread uses a float of A for {row['tn']} result{'s' * (row['tn'] > 1)}, a float of B for {row['tm']}"
    elif "tm" in row:
        serves = f"A float of A serves {bn} results of the block and {row['tn']} of its thread, a float of B {bm} and {row['tm']}"
    else:
        serves = f"A float of A serves {bn} results of the block, a float of B {bm}"
    d.text(20, 148, serves + ".", 11, DIM)
    return d.done()
