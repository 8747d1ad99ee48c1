"""What docs/results.md and README.md show of files under results/: Rung beside other libraries, one line of a table a file.

A block's arguments are NAME=FILE; ~ stands for a space in the name. A file is of lines of `rung bench` (*.jsonl), or one of shapes drawn at random, whose head
has a line for each way in which they were timed (*.txt: DRAWN).
"""
import math
import os
import re

from records import Missing

LISTS = [("squares.txt", "squares, 64 to 16384"), ("transposes.txt", "transposes"), ("odd.txt", "odd sizes and leading dimensions"),
         ("skinny.txt", "tall, skinny, long k"), ("batched.txt", "strided batches"), ("deepbench", "DeepBench's training shapes"),
         ("/random.txt", "270 shapes drawn at random"), ("random2.txt", "245 others, drawn after the planner was fitted to timings")]
CPU_LISTS = [("cpu.txt", "usual"), ("cpu-skinny.txt", "thin"), ("cpu-random.txt", "random"), ("cpu-drawn.txt", "drawn"),
             ("cpu-drawn2.txt", "drawn anew"), ("cpu-drawn3.txt", "drawn last")]
PEERS = {"openblas": "OpenBLAS", "openblas_pypi": "OpenBLAS", "mkl": "MKL", "aocl": "AOCL", "blis": "BLIS", "cublas": "cuBLAS"}
DRAWN = re.compile(r"^# (?:seed (\d+), )?(strict|accurate), (stream|graph): (\d+) shapes, geometric mean ([\d.]+), worst ([\d.]+), (\d+) below 1, (\d+) below 0.95", re.M)


def number(value, decimals):
    if value is None:
        return ""
    return f"{value:,.{decimals}f}".replace(",", " ") if abs(value) >= 10000 else f"{value:.{decimals}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def mean_and_worst(values):
    return f"{geomean(values):.2f}×, {min(values):.2f}×" if values else ""


def named(arguments):
    """Returns name and file of each argument."""
    pairs = [argument.partition("=")[::2] for argument in arguments]
    if any(not path for _, path in pairs):
        raise Missing(f"{' '.join(arguments)} is no list of NAME=FILE")
    return [(name.replace("~", " "), path) for name, path in pairs]


def shape_of(said):
    """Writes a shape for readers: 1x4x249:NT+16 as 1×4×249 NT+16."""
    return said.replace(":", " ").replace("x", "×")


class Beside:
    """The blocks of Page (fill.py) that compare; self.r are the records, self.path is the page."""

    def file(self, path):
        """Returns a link to a file under results/."""
        at = os.path.relpath(os.path.join(self.r.root, path), os.path.dirname(os.path.abspath(self.path)))
        return f"[{os.path.basename(path)}]({at})"

    def compared(self, path, lists=None):
        """Returns the lines of a file that compare the shapes of these lists (all lines, where the file has none of a list)."""
        lines = [x for x in self.r.load(path) if x.get("kind") == "bench" and x["peers"]]
        if not lines:
            raise Missing(f"{path} has no lines of rung bench beside another library")
        lists = lists or (CPU_LISTS if "threads" in lines[0] else LISTS)
        return [x for x in lines if any(match in x["command"] for match, _ in lists)] or lines

    @staticmethod
    def best(line):
        """Returns the peer that was the fastest at this shape: cuBLAS by name, where it was timed."""
        return min([p for p in line["peers"] if p["name"] == "cublas"] or line["peers"], key=lambda p: p["ratio"]["median"])

    def ratios(self, lines):
        return [self.best(x)["ratio"]["median"] for x in lines]

    def heads(self, path):
        """Returns what the head of a file of drawn shapes says: seed, mode and way to count of shapes, mean, worst, how many below 1 and 0.95."""
        with open(os.path.join(self.r.root, path), encoding="utf-8") as file:
            text = file.read()
        found = DRAWN.findall(text)
        if not found:
            raise Missing(f"{path} has no line like '# strict, graph: 1000 shapes, geometric mean ...'")
        seed = re.search(r"--seed (\d+)", text)
        return {(told or seed.group(1), mode, way): numbers for told, mode, way, *numbers in reversed(found)}

    def block_reached(self, *arguments):
        """Shows a row a file: how many shapes, the mean of the ratios to the best peer of each, the worst, and how many are below 1 and 0.95."""
        rows = []
        for name, path in named(arguments):
            lines = self.compared(path)
            peers = sorted({PEERS[p["name"].partition("@")[0]] for x in lines for p in x["peers"]}, key=str.lower)
            values = self.ratios(lines)
            rows.append([name, "the best of " + ", ".join(peers) if len(peers) > 1 else peers[0], len(values), f"{geomean(values):.2f}×",
                         f"{min(values):.2f}×", sum(v < 1 for v in values), sum(v < 0.95 for v in values), self.file(path)])
        return table(["on", "beside", "shapes", "mean", "worst", "below 1", "below 0.95", "file"], rows)

    def block_lists(self, *arguments):
        """Shows the lists of shapes on a GPU, a column a file, beside cuBLAS: mean, worst, and how many are below 0.95."""
        files, rows = named(arguments), []
        for match, name in LISTS:
            cells = []
            for _, path in files:
                values = self.ratios([x for x in self.compared(path) if match in x["command"]])
                low = sum(v < 0.95 for v in values)
                cells.append(f"{geomean(values):.2f}×, worst {min(values):.2f}×" + (f", {low} below 0.95×" if low else "") if values else "")
            rows.append([name, *cells])
        return table(["list in lab/shapes", *(name for name, _ in files)], rows)

    def block_peaks(self, strict, accurate):
        """Shows squares in both modes, each beside cuBLAS in its own run."""
        rows = []
        for m in (1024, 2048, 4096, 8192, 16384):
            cells = [m]
            for path in (strict, accurate):
                line = self.r.one(path, f"{m}x{m}x{m}", lambda x: x.get("shape") == f"{m}x{m}x{m}")
                peer = self.best(line)
                cells += [f"{2 * m ** 3 / peer['us']['median'] / 1e6:.1f}",
                          f"{line['gflops'] / 1000:.1f} ({peer['ratio']['median']:.2f}×)"]
            rows.append(cells + [f"{peer['error_u']:.1f}", f"{line['error_u']:.1f}"])
        return table(["m = n = k", "cuBLAS", "`strict`", "cuBLAS", "`accurate`", "error, cuBLAS", "error, `accurate`"], rows)

    def block_seeds(self, *arguments):
        """Shows the newest seed of each file of drawn shapes: mean, how many below 1 and 0.95, by mode and way."""
        ways, rows = [(mode, way) for mode in ("strict", "accurate") for way in ("stream", "graph")], []
        for name, path in named(arguments):
            heads = self.heads(path)
            seed = list(heads)[-1][0]
            cells = []
            for mode, way in ways:
                if (seed, mode, way) not in heads:
                    raise Missing(f"{path} has no {mode}, {way} of seed {seed}")
                _, mean, _, below_1, below_95 = heads[seed, mode, way]
                cells.append(f"{float(mean):.2f}×, {below_1}, {below_95}")
            rows.append([name, seed, *cells, self.file(path)])
        return table(["GPU", "seed", *(f"`{mode}`, {way}" for mode, way in ways), "file"], rows)

    def block_processors(self, *arguments):
        """Shows CPUs beside their peers: a row a file, a column a peer at its first setting in the file; then the best peer of each shape."""
        columns, rows = {"OpenBLAS": ("openblas_pypi", "openblas"), "MKL": ("mkl",), "AOCL": ("aocl",), "BLIS": ("blis",)}, []
        for name, path in named(arguments):
            lines, cells = self.compared(path, CPU_LISTS), []
            for peers in columns.values():
                found = [[p["ratio"]["median"] for p in x["peers"] if p["name"].partition("@")[0] == peer][:1] for peer in peers for x in lines]
                cells.append(mean_and_worst([v for values in found for v in values][:len(lines)]))
            values = self.ratios(lines)
            rows.append([name, *cells, mean_and_worst(values), sum(v < 0.95 for v in values), self.file(path)])
        return table(["on", *columns, "the best at each shape", "below 0.95", "file"], rows)

    def block_shape_lists(self, *arguments):
        """Shows CPUs beside the best peer of each shape: a row a file, a column a list."""
        rows = []
        for name, path in named(arguments):
            lines = self.compared(path, CPU_LISTS)
            rows.append([name, *(mean_and_worst(self.ratios([x for x in lines if match in x["command"]])) for match, _ in CPU_LISTS)])
        return table(["on", *(name for _, name in CPU_LISTS)], rows)

    def block_unseen(self, *arguments):
        """Shows shapes that nobody had seen: a row is NAME=FILE, or NAME=FILE:HEAD for the line of the file's head that begins so."""
        rows = []
        for name, path in named(arguments):
            path, _, head = path.partition(":")
            if head:
                head = head.replace("~", " ")
                text = open(os.path.join(self.r.root, path), encoding="utf-8").read()
                line = re.search(rf"^# {head}.*$", text, re.M)
                found = re.search(r"([\d.]+)(?:,| times the best of the [a-z]+,) (\d+)(?: of \d+)? below 0\.95, (?:the )?worst ([\d.]+)", line.group(0) if line else "")
                if not found:
                    raise Missing(f"{path} has no line that begins with '# {head}' and has a mean, how many are below 0.95 and the worst")
                count = sum(bool(x) and x[0] != "#" for x in text.split("\n"))
                mean, below, worst = float(found.group(1)), found.group(2), float(found.group(3))
            else:
                values = self.ratios(self.compared(path))
                count, mean, below, worst = len(values), geomean(values), sum(v < 0.95 for v in values), min(values)
            rows.append([name, count, f"{mean:.2f}×", f"{worst:.2f}×", below, self.file(path)])
        return table(["on", "shapes", "mean", "worst", "below 0.95", "file"], rows)

    def block_ahead(self, count, *arguments):
        """Lists the shapes of each file at which a peer is ahead by the most, as many as `count`."""
        lines = []
        for name, path in named(arguments):
            if path.endswith(".txt"):
                said = self.drawn_ahead(path, int(count))
            else:
                slow = sorted((self.best(x)["ratio"]["median"], x["shape"], self.best(x)) for x in self.compared(path))
                said = [f"{shape_of(shape)} {ratio:.2f}×" + (f" ({PEERS[peer['name'].partition('@')[0]]})" if peer["name"] != "cublas" else "")
                        for ratio, shape, peer in slow[:int(count)] if ratio < 1]
            lines.append(f"- {name}: {', '.join(said) or 'none'}.")
        return "\n".join(lines)

    def drawn_ahead(self, path, count):
        """Returns the slowest of a file of drawn shapes, in strict mode from captured graphs, of the newest seed."""
        seed = list(self.heads(path))[-1][0]
        with open(os.path.join(self.r.root, path), encoding="utf-8") as file:
            slow = sorted((float(words[-1]), words[3]) for words in map(str.split, file) if words[:3] == [seed, "strict", "graph"])
        return [f"{shape_of(shape)} {ratio:.2f}×" for ratio, shape in slow[:count]]

    def block_programs(self, *arguments):
        """Shows whole programs with and without Rung: a row a file; programs of which Rung answered no product are left out."""
        rows = []
        for name, path in named(arguments):
            found = sorted((x["ratio"], x["program"]) for x in self.r.load(path) if x.get("calls") != 0)
            if not found:
                raise Missing(f"{path} has no programs")
            (least, slowest), (most, fastest) = found[0], found[-1]
            rows.append([name, len(found), f"{geomean([ratio for ratio, _ in found]):.2f}×", f"{least:.2f}× `{slowest}`", f"{most:.2f}× `{fastest}`",
                         sum(ratio < 0.95 for ratio, _ in found), self.file(path)])
        return table(["on", "programs", "mean", "least gain", "most", "below 0.95", "file"], rows)

    def block_gpus(self, path):
        """Shows what four GPUs reach of four times one, in strict mode and by the rule for panels, by size and where the matrices lie."""
        share = {}
        for x in self.r.load(path):
            if (x.get("ranks"), x.get("math")) == (4, "strict") and x["panels"] in ("default", "2048:8192:4096") and x.get("one_gpu_us"):
                share[x["shape"], x["operands"]] = f"{100 * x['one_gpu_us'] / x['us'] / 4:.0f}%"
        shapes = [shape for shape, operands in share if operands == "distributed"]
        if not shapes:
            raise Missing(f"{path} has no lines of four GPUs")
        return table(["m × n × k", "matrices in the GPUs' memory", "in host memory"],
                     [[shape_of(shape), share[shape, "distributed"], share.get((shape, "host"), "")] for shape in shapes])
