"""Finds what the pages may quote: the catalog's rows, lines of results/*.jsonl, the lens's counts and the build's records.

Every function below is a word that a page can use between `<!--=` and `-->` (fill.py). A word that finds nothing raises
Missing, so that no figure without a source gets onto a page.
"""
import csv
import glob
import io
import json
import math
import os
import re
import statistics

ERRORS = "results/ladder-tensor-errors-h200.jsonl"
METHOD_ERRORS = "results/accurate_errors.jsonl"
SIZES = "results/ladder-sizes-h200.jsonl"
SIZES_H100 = "results/ladder-sizes-h100.jsonl"
CLIMB = "results/ladder-climb-4096-h200.jsonl"
SHAPES = "results/ladder-shapes-h200.jsonl"
BATCHES = "results/ladder-batches-h200.jsonl"
PATTERNS = "results/ffma-patterns-h200.jsonl"
FFMAS = "results/ladder-ffmas.jsonl"
REDUCE = "results/ladder-reduce-h200.jsonl"
REDUCE_H100 = "results/ladder-reduce-h100.jsonl"
CPU = "results/cpu_climb_1024.jsonl"
CPU_COUNTS = "results/ladder-cpu-counts.jsonl"
CPU_SETS = "results/ladder-cpu-sets.jsonl"
CPU_SIZES = "results/ladder-cpu-sizes.jsonl"
COUNTERS = "results/ladder-counters-2048-h200.jsonl"
SUM_COUNTERS = "results/ladder-counters-sums-h200.jsonl"
SUM_SIZE = 1 << 28  # floats: what the pages say of a sum's warps is counted at
LENS = "results/ladder-lens-1024.jsonl"
LENS_SUMS = "results/ladder-lens-sums.jsonl"
BUILD = "results/ladder-build.jsonl"
PORTS = "results/ladder-ports.jsonl"
LISTING = "results/ladder-listing.jsonl"
ROWS = ["src/ladder/gpu/rows.inc", "src/ladder/cpu/rows.inc", "src/ladder/reduce/rows.inc"]
# Rungs that were made for another size than 4096.
MADE_FOR = {"l19_split_k": (64, 64, 65536), "l19_tall_skinny": (65536, 16, 1024), "l19_lone_warps": (4096, 16, 4096), "l23_searched": (1024, 1024, 1024),
            "l25_stream_k": (3072, 3072, 3072), "l29_one_kernel": (3072, 3072, 3072), "l40_f16x3_whole_tiles": (2048, 2048, 2048)}


class Missing(Exception):
    """Is raised where a page asks for something that no file has."""


class Records:
    def __init__(self, root):
        self.root = root
        self.lines = {}
        self.rows = {}
        self.order = []
        for path in ROWS:
            self.read_rows(path)

    # ---- the catalog

    def read_rows(self, path):
        text = open(os.path.join(self.root, path), encoding="utf-8").read()
        folder = os.path.dirname(path)
        for match in re.finditer(r"^RUNG_(CUDA|CPU|REDUCE)\w*\((\w+)(.*?)\)\s*$", text, re.M | re.S):
            kind, name, body = match.groups()
            row = {"name": name, "folder": folder, "file": f"{folder}/{name}.{'c' if kind == 'CPU' else 'cu'}"}
            for field, value in re.findall(r'\.(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|[\w-]+)', body):
                row[field] = value[1:-1] if value[0] == '"' else int(value) if re.fullmatch(r"-?\d+", value) else value
            if row.get("previous") in (None, "NULL"):
                row["previous"] = None
            self.rows[name] = row
            self.order.append(name)

    def find(self, rung):
        if rung in self.rows:
            return rung
        found = [name for name in self.order if name.startswith(rung + "_")]
        if len(found) != 1:
            raise Missing(f"'{rung}' names {len(found)} rungs" + (": " + ", ".join(found) if found else ""))
        return found[0]

    def row(self, rung):
        return self.rows[self.find(rung)]

    def neighbours(self, rung):
        """Returns the rung before and the one after it in the order of the catalog, of the same ladder."""
        same = [name for name in self.order if name[0] == rung[0]]
        at = same.index(rung)
        return (same[at - 1] if at else None), (same[at + 1] if at + 1 < len(same) else None)

    # ---- results

    def load(self, path):
        if path not in self.lines:
            full = os.path.join(self.root, path)
            self.lines[path] = [json.loads(line) for line in open(full, encoding="utf-8") if line.startswith("{")] \
                if os.path.exists(full) else []
        return self.lines[path]

    def one(self, path, what, keep):
        found = [line for line in self.load(path) if keep(line)]
        if not found:
            raise Missing(f"{path} has no {what}")
        return found[-1]

    def bench(self, rung, m=4096, n=None, k=None):
        """Returns the line of a rung at a size, and the file it is from: one recount of all rungs, or the climb at 4096."""
        rung, n, k = self.find(rung), n or m, k or n or m
        paths = [CPU] if rung[0] == "c" else [SIZES, SHAPES] if (m, n, k) != (4096, 4096, 4096) else [SIZES, CLIMB]
        for path in paths:
            found = [x for x in self.load(path) if x.get("kernel") == rung and (x["m"], x["n"], x["k"]) == (m, n, k)]
            if found:
                return found[-1], path
        raise Missing(f"no timing of {rung} at {m}x{n}x{k} in {' or '.join(paths)}")

    def sizes(self, rung, path=SIZES):
        """Returns the lines of a rung on squares, by size."""
        return {line["m"]: line for line in self.load(path)
                if line.get("kernel") == rung and line["m"] == line["n"] == line["k"]}

    def counters_line(self, rung):
        rung = self.find(rung)
        if rung[0] == "r":
            return self.one(SUM_COUNTERS, f"counters of {rung}", lambda x: x["kernel"] == rung and x["n"] == SUM_SIZE)
        return self.one(COUNTERS, f"counters of {rung}", lambda x: x["kernel"] == rung)

    def counters(self, rung):
        return self.counters_line(rung)["counter"]

    def lens_of(self, rung):
        rung = self.find(rung)
        return self.one(LENS, f"line of {rung}", lambda x: x["kernel"] == rung)

    def build_of(self, rung):
        rung = self.find(rung)
        return self.one(BUILD, f"line of {rung}", lambda x: x["kernel"] == rung)

    def ports_of(self, rung):
        rung = self.find(rung)
        return self.one(PORTS, f"line of {rung}", lambda x: x["kernel"] == rung)

    def cpu_counts(self, rung, m=1024):
        rung = self.find(rung)
        return self.one(CPU_COUNTS, f"counts of {rung} at {m}", lambda x: x["kernel"] == rung and x["m"] == m)

    def cpu_sizes(self, rung):
        """Returns the lines of a rung of the CPU's ladder on squares, by size and threads."""
        return {(line["m"], line["threads"]): line for line in self.load(CPU_SIZES) if line.get("kernel") == rung}

    def sums(self, rung):
        """Returns the lines of a rung for sums, by how many floats it added."""
        return {line["n"]: line for line in self.load(REDUCE) if line.get("kernel") == rung}

    def lens_of_sum(self, rung):
        rung = self.find(rung)
        return self.one(LENS_SUMS, f"line of {rung}", lambda x: x["kernel"] == rung)

    def reduce_of(self, rung, n):
        rung = self.find(rung)
        return self.one(REDUCE, f"line of {rung} at {n}", lambda x: x["kernel"] == rung and x["n"] == n)


def words(r):
    """Returns the words of a page's expressions, each a function."""

    def default(rung):
        return 1024 if r.find(rung)[0] == "c" else 4096

    def tflops(rung, m=4096, n=None, k=None):
        return r.bench(rung, m, n, k)[0]["gflops"] / 1000

    def gflops(rung, m=1024):
        return r.bench(rung, m)[0]["gflops"]

    def us(rung, m=4096, n=None, k=None):
        return r.bench(rung, m, n, k)[0]["us"]["median"]

    def ratio(rung, m=4096, n=None, k=None):
        """Returns the ratio to cuBLAS, timed in turn; on a CPU to the best library."""
        peers = r.bench(rung, m, n, k)[0]["peers"]
        best = [p for p in peers if p["name"] == "cublas"] or peers
        return min(p["ratio"]["median"] for p in best)

    def cublas(rung="l10_thread_tile_8x8", m=4096, n=None, k=None):
        line, _ = r.bench(rung, m, n, k)
        peer = [p for p in line["peers"] if p["name"] == "cublas"][0]
        return 2 * line["m"] * line["n"] * line["k"] / peer["us"]["median"] / 1e6

    def step(rung, before=None, m=None):
        m = m or default(rung)
        before = before or r.row(rung)["previous"]
        return r.bench(rung, m)[0]["gflops"] / r.bench(before, m)[0]["gflops"]

    def error(rung, m=4096, n=None, k=None):
        return r.bench(rung, m, n, k)[0]["error_u"]

    def chain(rung, m=4096, n=None, k=None):
        return r.bench(rung, m, n, k)[0]["chain_u"]

    def samples(rung, m=4096, n=None, k=None):
        return r.bench(rung, m, n, k)[0]["us"]["samples"]

    def counter(rung, key):
        value = r.counters(rung).get(key)
        if value is None:
            raise Missing(f"no '{key}' counted of {rung}")
        return value

    def stall(rung, why):
        """Returns how many warps wait for this reason, for each instruction issued."""
        return counter(rung, "stall_" + why)

    def stall_share(rung, why):
        """Returns what share of all warps' time this reason takes, in per cent."""
        found = r.counters(rung)
        return 100 * stall(rung, why) / sum(v for k, v in found.items() if k.startswith("stall_"))

    def per_fma(rung):
        """Returns the instructions issued for each FMA of the product, a warp's instructions against a warp's FMAs, at 2048."""
        return counter(rung, "instructions") / (2048 ** 3 / 32)

    def per_float(rung):
        """Returns the instructions of a thread issued for each float that a sum adds."""
        return counter(rung, "instructions") * 32 / SUM_SIZE

    def port(symbol, key="measured"):
        """Returns the FFMAs a cycle of a pattern (lab/device/lab_ports.h), or another field of its line."""
        return r.one(PATTERNS, f"pattern {symbol}", lambda x: x.get("symbol") == "lab_ports_" + symbol)[key]

    def loop(rung, key):
        """Returns a field of a rung's main loop in machine code: instructions, ffmas, reads_even, reads_odd."""
        return r.one(FFMAS, f"loop of {rung}", lambda x: x["kernel"] == r.find(rung))[key]

    def batch_us(rung, m, n, k, batch, peer=None):
        line = r.one(BATCHES, f"{rung} at {m}x{n}x{k}x{batch}", lambda x: x.get("kernel") == r.find(rung) and (
            x["m"], x["n"], x["k"], x["batch"]) == (m, n, k, batch))
        return [p for p in line["peers"] if p["name"] == peer][0]["us"]["median"] if peer else line["us"]["median"]

    def lens(rung, key):
        value = r.lens_of(rung).get(key)
        if value is None:
            raise Missing(f"{LENS} has no '{key}' of {rung}")
        return value

    def ports(rung):
        """Returns the cycles that an FFMA of the main loop takes by the model of the register ports, other instructions counted in."""
        found = r.ports_of(rung)
        return found["cycles"] / found["ffmas"]

    def ports_lost(rung):
        """Returns the cycles lost at the ports by the model, of all cycles of the main loop, in per cent."""
        found = r.ports_of(rung)
        return 100 * (found["cycles"] - found["instructions"]) / found["cycles"]

    def dispatch_rate(rung):
        """Returns how many warps stand at dispatch in an average cycle of a scheduler."""
        return stall(rung, "dispatch_stall") * counter(rung, "issued_percent") / 100

    def ports_agree(first):
        """Returns how the model's lost cycles and the hardware's go together, over the FP32 rungs from this one on: their correlation."""
        return statistics.correlation(*zip(*port_points(r, first)))

    def registers(rung):
        return r.build_of(rung)["registers"]

    def spills(rung):
        return r.build_of(rung)["spill_bytes"]

    def shared_bytes(rung):
        return r.build_of(rung)["shared_bytes"]

    def blocks(rung):
        return occupancy(r, rung)["blocks"]

    def warps(rung):
        return occupancy(r, rung)["warps"]

    def gbytes(rung, n):
        return r.reduce_of(rung, n)["gbytes_per_s"]

    def reduce_us(rung, n):
        return r.reduce_of(rung, n)["us"]

    def reduce_error(rung, n):
        return r.reduce_of(rung, n)["error_u"]

    def sets_gflops(rung, m):
        rung = r.find(rung)
        return r.one(CPU_SETS, f"{rung} at {m}", lambda x: x.get("kernel") == rung and x["m"] == m)["gflops"]

    def cpu_count(rung, key, m=1024):
        """Returns what a rung of the CPU's ladder did for each multiply-add: instructions, reads, writes, l1_misses, l2_misses."""
        return r.cpu_counts(rung, m)[key] / m ** 3

    def cub(rung, n):
        return r.reduce_of(rung, n)["cub_ratio"]

    def geomean(values):
        return math.exp(statistics.mean(math.log(v) for v in values))

    def ratios(path, match, peer="cublas", **where):
        """Returns the ratios to a peer, of the lines whose command names this list."""
        values = [p["ratio"]["median"] for x in r.load(path)
                  if x.get("kind") == "bench" and match in x["command"] and all(x.get(k) == v for k, v in where.items())
                  for p in x["peers"] if p["name"] == peer]
        if not values:
            raise Missing(f"{path} has no lines of '{match}' beside {peer}")
        return values

    def mean(path, match, peer="cublas", **where):
        return geomean(ratios(path, match, peer, **where))

    def worst(path, match, peer="cublas", **where):
        return min(ratios(path, match, peer, **where))

    def values(path, key):
        """Returns this field of every line of a file that has it."""
        return [x[key] for x in r.load(path) if key in x]

    def line(path, value, **where):
        """Returns a value of the last line of a file that has these fields; 'us.median' goes one level down."""
        found = r.one(path, str(where), lambda x: all(x.get(k) == v for k, v in where.items()))
        for part in value.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
        return found

    def sources(folders):
        """Returns every file of the project in these folders, but pages."""
        for pattern in folders:
            for path in sorted(glob.glob(os.path.join(r.root, pattern), recursive=True)):
                if os.path.isfile(path) and not path.endswith(".md"):
                    yield open(path, encoding="utf-8").read()

    def files_in(*folders):
        return len(list(sources(folders)))

    def lines_in(*folders):
        return sum(text.count("\n") for text in sources(folders))

    def matches(regex, *folders):
        """Returns how often the files hold it."""
        return sum(len(re.findall(regex, text, re.M)) for text in sources(folders))

    def kinds(regex, *folders):
        """Returns how many different texts match it."""
        return len({found for text in sources(folders) for found in re.findall(regex, text, re.M)})

    def cost_numbers():
        return sum(len(re.findall(r"= -?[0-9]", cost)) for text in sources(["src/cuda/families/*/tiles.inc"]) for cost in re.findall(r"cost = {[^}]*}", text))

    def cost_names():
        return len({name for text in sources(["src/cuda/families/*/tiles.inc"]) for cost in re.findall(r"cost = {[^}]*}", text) for name in re.findall(r"[.]([a-z_]+) =", cost)})

    return {name: value for name, value in locals().items() if callable(value) and name not in ("default", "sources")} | {
        "min": min, "max": max, "round": round, "sum": sum, "abs": abs, "peak": 4 * 32 * 2 * 132 * 1.98e9 / 1e12}


def port_points(r, first):
    """Returns, for each FP32 rung for square products from `first` on, cycles lost by the model and time at dispatch by the hardware, in
        per cent."""
    points = []
    for line in r.load(PORTS):
        rung = line["kernel"]
        stalls = {k: v for k, v in r.counters(rung).items() if k.startswith("stall_")} if rung >= r.find(first) and rung[:3] != "l19" else {}
        if stalls:
            points.append((100 * (line["cycles"] - line["instructions"]) / line["cycles"], 100 * stalls["stall_dispatch_stall"] / sum(stalls.values())))
    return points


def occupancy(r, rung):
    """Works out by hand what a Hopper SM holds: 65536 registers in units of 256 a warp, 228 KB shared with 1 KB a block for the system."""
    row, build = r.row(rung), r.build_of(rung)
    warps = row["threads"] // 32
    a_warp = -(-build["registers"] * 32 // 256) * 256
    shared = build["shared_bytes"] + 1024
    limits = {"registers": 65536 // 4 // a_warp * 4 // warps, "shared memory": 233472 // (-(-shared // 128) * 128),
              "threads": 2048 // row["threads"], "blocks": 32}
    blocks = min(limits.values())
    return {"limits": limits, "blocks": blocks, "warps": blocks * warps, "a_warp": a_warp, "shared": shared,
            "limiter": [name for name, value in limits.items() if value == blocks]}


def lens_cells(said):
    """Returns the cells of what `rung lens KERNEL --format csv` printed."""
    return list(csv.reader(io.StringIO(said)))


def lens_totals(cells):
    """Returns the lens's totals of a kernel."""
    return {row[0]: float(row[1]) for row in cells if len(row) == 2 and re.fullmatch(r"-?[\d.e+]+", row[1])}


def lens_requests(cells, access):
    """Returns how many requests of warps the lens counts in the lines of one kind of access, such as "global atomic"."""
    return sum(float(row[3]) for row in cells if len(row) > 3 and row[1].startswith(access))
