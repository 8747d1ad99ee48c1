"""Fills a page: figures, tables and excerpts between markers, from records.py and the sources.

    <!--= EXPRESSION [% decimals] -->29.6<!--/-->      a figure in a sentence; words: records.py
    <!-- fill KIND [arguments] --> ... <!-- /fill -->  a block; kinds: the functions block_* below
An excerpt is what stands in a source between the comment lines `lesson NAME` and `/lesson`.
"""
import os
import re
import subprocess

from beside import Beside, number, table
from records import BATCHES, BUILD, CLIMB, COUNTERS, CPU, CPU_COUNTS, CPU_SIZES, ERRORS, FFMAS, LENS, LENS_SUMS, LISTING, MADE_FOR, METHOD_ERRORS, PATTERNS, REDUCE, REDUCE_H100, SHAPES, SIZES, \
    SIZES_H100, SUM_COUNTERS, SUM_SIZE, Missing, occupancy, words

FIGURE = re.compile(r"<!--= *(.+?) *-->(.*?)<!--/-->", re.S)
BLOCK = re.compile(r"<!-- fill (\S+) *(.*?) *-->\n.*?<!-- /fill -->", re.S)
KINDS = {"c": "cpu", "r": "reduce", "l": "gpu"}
REDUCE_SIZES = [16, 20, 24, 28, 30]
METHOD_DATA = [("signed", "U(−1,1)"), ("positive", "U(0,1)"), ("normal", "N(0,1)"), ("span10", "span 2¹⁰"), ("span24", "span 2²⁴"), ("span40", "span 2⁴⁰"),
               ("span100", "span 2¹⁰⁰"), ("sparse", "90% zeros"), ("integers", "integers"), ("scaled", "lines by 2^±60"), ("spike", "one huge a line"),
               ("softmax", "softmax")]

STALLS = [  # key, words of a picture, colour
    ("selected", "issues", "#3a7d44"), ("not_selected", "ready, another was taken", "#9ccc9f"),
    ("long_scoreboard", "waits for memory", "#c0392b"), ("lg_throttle", "queue to memory full", "#e59866"),
    ("short_scoreboard", "waits for shared memory", "#7d3c98"), ("mio_throttle", "queue to shared memory full", "#bb8fce"),
    ("barrier", "waits at a barrier", "#2e5fa3"), ("dispatch_stall", "register ports", "#d4ac0d"),
    ("math_pipe_throttle", "arithmetic pipe busy", "#7f8c8d"), ("wait", "fixed delay", "#b2babb"),
    ("branch_resolving", "waits for a branch", "#a04000"), ("gmma", "waits for tensor cores", "#117a65"), ("no_instruction", "waits for instructions", "#5d6d7e"),
    ("drain", "has ended, its stores have not left", "#6e5b3a"),
]


def short(error):
    return f"{error:.2f}" if error < 10 else f"{error:.0f}"


def told_changes(rows):
    """Says which bars of a picture of changes moved: three with their figures, those that moved by the most, then the others."""
    moved = []
    for label, was, value, decimals in rows:
        less, more, shown = min(was, value), max(was, value), (f"{was:.{decimals}f}", f"{value:.{decimals}f}")
        if more - less > 0.02 * more and shown[0] != shown[1]:
            label, percent = re.subn(", %$", "", label.replace(", less is better", ""))
            moved.append((less / more, label, f"{label} {shown[0]} → {shown[1]}{'%' * percent}"))
    moved.sort(key=lambda x: x[0])
    if not moved:
        return "No bar moved by more than 2%: these counts do not see what this rung does."
    told = f"Moved by the most: {'; '.join(shown for _, _, shown in moved[:3])}."
    told += f" By less: {'; '.join(label for _, label, _ in moved[3:])}." if moved[3:] else ""
    return told + (" The others stayed within 2%." if len(moved) < len(rows) else "")


CHAINED = ("l34", "l35", "l36", "l37", "l38", "l39", "l40")  # rungs whose warpgroups take turns at the tensor cores


class Page(Beside):
    said = {}  # what the command printed: asked once, for all pages

    def __init__(self, records, path, rung=None):
        self.r = records
        self.path = path
        self.rung = rung
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.words = words(records)
        self.faults = []

    def fill(self, text):
        text = BLOCK.sub(self.block, text)
        return FIGURE.sub(self.figure, text)

    def figure(self, match):
        source, decimals = match.group(1), 2
        at = re.search(r" % (\d)$", source)
        if at:
            source, decimals = source[:at.start()], int(at.group(1))
        try:
            value = eval(source, {"__builtins__": {}}, self.words)  # the project's own pages, its own words
        except Missing as fault:
            self.faults.append(f"{source}: {fault}")
            return match.group(0)
        except Exception as fault:  # a misspelt word of a page
            self.faults.append(f"{source}: {type(fault).__name__}: {fault}")
            return match.group(0)
        value = value if isinstance(value, str) else number(value, decimals)
        return f"<!--= {match.group(1)} -->{value}<!--/-->"

    def block(self, match):
        kind, arguments = match.group(1), match.group(2)
        if kind == "said" and not self.rung:
            return match.group(0)  # only a build can say it
        try:
            body = getattr(self, "block_" + kind)(*arguments.split())
        except Missing as fault:
            self.faults.append(f"{kind} {arguments}: {fault}")
            return match.group(0)
        except (AttributeError, TypeError) as fault:
            self.faults.append(f"{kind} {arguments}: {fault}")
            return match.group(0)
        opening = f"<!-- fill {kind} {arguments} -->" if arguments else f"<!-- fill {kind} -->"
        return f"{opening}\n{body}\n<!-- /fill -->"

    # ---- what stands at the head and the foot of a rung's page

    def link(self, name):
        at = os.path.join(self.r.root, "docs/ladder", name + ".md")
        return f"[{name}]({os.path.relpath(at, os.path.dirname(os.path.abspath(self.path)))})"

    def block_head(self):
        row = self.r.row(self.name)
        before, after = self.r.neighbours(self.name)
        parts = [f"Previous: {self.link(before)}" if before else "The first rung",
                 f"Next: {self.link(after)}" if after else "The last rung", "[All rungs](README.md)", "[Words](../glossary.md)"]
        idea = row["idea"] if re.match("[kmn] ", row["idea"]) else row["idea"][0].upper() + row["idea"][1:]
        lines = [" · ".join(parts), "", f"> {idea}."]
        changed = f" Changes {self.link(row['previous'])}." if row["previous"] and row["previous"] != before else ""
        seeds = row.get("seeds")
        told = f" In the [source documents](../sources.md): {seeds.replace(' ', ', ')}." if seeds else ""
        return "\n".join(lines) + f"\n\nSource: [`{row['file']}`](../../{row['file']}).{changed}{told}"

    def block_foot(self):
        before, after = self.r.neighbours(self.name)
        return " · ".join([f"Previous: {self.link(before)}" if before else "[All rungs](README.md)",
                           f"Next: {self.link(after)}" if after else "[All rungs](README.md)"])

    # ---- code

    def lines_of(self, path):
        full = os.path.join(self.r.root, path)
        if not os.path.exists(full):
            raise Missing(f"{path} is not there")
        with open(full, encoding="utf-8") as file:
            return file.read().split("\n")

    @staticmethod
    def excerpt(lines):
        """Shows lines of C without the marks of lessons in them, moved to the left together; lines of the preprocessor stay."""
        cut = [line for line in lines if not re.fullmatch(r"\s*/\* /?lesson.*\*/", line)]
        indent = min((len(line) - len(line.lstrip()) for line in cut if line.strip() and line[0] != "#"), default=0)
        return "```c\n" + "\n".join(line if line.startswith("#") else line[indent:] for line in cut) + "\n```\n"

    def block_code(self, name="", file=None):
        path = file or self.r.row(self.name)["file"]
        lines = self.lines_of(path)
        opening = ("/* lesson " + name).strip() + " */"
        starts = [i for i, line in enumerate(lines) if line.strip() == opening]
        if len(starts) != 1:
            raise Missing(f"{path} has {len(starts)} lines '{opening}'")
        end = next((i for i in range(starts[0] + 1, len(lines)) if lines[i].strip() == "/* /lesson */"), None)
        if end is None:
            raise Missing(f"{path}: '{opening}' does not end with /* /lesson */")
        return self.excerpt(lines[starts[0] + 1:end]) + f"From `{path}`."

    def block_lines(self, path, start, end):
        """Shows the lines of a source from the first that has `start` to the next that has `end`; ~ stands for a space."""
        start, end = start.replace("~", " "), end.replace("~", " ")
        lines = self.lines_of(path)
        first = next((i for i, line in enumerate(lines) if start in line), None)
        last = first if first is None else next((i for i in range(first, len(lines)) if end in lines[i]), None)
        if last is None:
            raise Missing(f"{path} has no lines from '{start}' to '{end}'")
        return self.excerpt(lines[first:last + 1]) + f"[`{path}`](../../{path}), line {first + 1}."

    def block_listing(self):
        """Shows the beginning of the rung's main loop in machine code."""
        line = self.r.one(LISTING, f"listing of {self.name}", lambda x: x["kernel"] == self.name)
        return "```\n" + "\n".join(line["lines"]) + f"\n```\nFile `{LISTING}`, command `{line['command']}`."

    # ---- what the command prints

    def block_said(self, lines, *command):
        """Shows some of what `rung COMMAND` prints, cut at 112 characters: lines FIRST-LAST (LAST may be left out); START..END, from the first line
        that has START to the next that has END, where ~ stands for a space; or `errors`, its error stream."""
        key = " ".join(command)
        if key not in Page.said:
            done = subprocess.run([self.rung, *command], capture_output=True, text=True, check=False, timeout=120, cwd=self.r.root)
            Page.said[key] = done.stdout.rstrip("\n").split("\n"), [x for x in done.stderr.rstrip("\n").split("\n") if ": compiling " not in x]
        out, errors = Page.said[key]
        if lines == "errors":
            first, shown = 1, errors
        elif ".." in lines:
            start, end = (word.replace("~", " ") for word in lines.split("..", 1))
            first = next((i for i, line in enumerate(out, 1) if start in line), 0)
            last = next((i for i, line in enumerate(out, 1) if end in line and i >= first), 0)
            shown = out[first - 1:last] if first else []
        else:
            first, _, last = lines.partition("-")
            first, shown = int(first), out[int(first) - 1:int(last) if last else None]
        if not any(shown):
            raise Missing(f"rung {key} prints no lines {lines}")
        cut = [line if len(line) <= 112 or lines == "errors" else line[:111] + "…" for line in (x.rstrip() for x in shown)]
        return "```\n" + "\n".join([f"$ rung {key}", *(["…"] if first > 1 else []), *cut]) + "\n```"

    # ---- counts

    def block_counts(self):
        r, row = self.r, self.r.row(self.name)
        o, build, rows = occupancy(r, self.name), r.build_of(self.name), []
        try:
            lens = r.lens_of(self.name)
        except Missing:
            lens = None
        if lens and self.name[0] == "l":
            results = lens["m"] * lens["n"]
            fmas = results * lens["k"] / 32
            asked = lens["global_load_bytes"] / 4 / results / lens["k"]
            rows.append(["floats asked of global memory a result", f"{asked:.4g} k, {1 / (2 * asked):.3g} FLOP a byte"])
            if lens["global_load_requests"]:
                rows.append(["sectors of 32 bytes a load of a warp, on average",
                             f"{lens['sectors_per_request']:.3g}; {lens['used_percent']:.0f}% of the bytes moved are used"])
            elif lens["bulk_copies"]:
                rows.append(["global loads", "bulk copies by the engine; no load instructions"])
            if lens["shared_load_requests"]:
                lost = lens["shared_load_lost"] / lens["shared_load_passes"] * 100
                rows.append(["shared loads an FMA", f"{lens['shared_load_requests'] / fmas:.3g}, in "
                             f"{lens['shared_load_passes'] / fmas:.3g} passes; {lost:.0f}% of them lost to bank conflicts"])
            if lens["shared_store_passes"]:
                lost = lens["shared_store_lost"] / lens["shared_store_passes"] * 100
                rows.append(["passes of shared stores an FMA",
                             f"{lens['shared_store_passes'] / fmas:.3g}; {lost:.0f}% of them lost to bank conflicts"])
        rows.append(["registers a thread, shared memory a block",
                     f"{build['registers']}, {build['shared_bytes']} bytes"
                     + (f"; {build['spill_bytes']} bytes spilled" if build["spill_bytes"] else "")])
        rows.append(["blocks and warps an SM, and what limits them",
                     f"{o['blocks']}, {o['warps']} of 64; {' and '.join(o['limiter'])}"])
        sources = f"Counted by the lens (`{LENS}`) and the compiler (`{BUILD}`)." if lens else \
            f"Counted by the compiler (`{BUILD}`)."
        return table(["what", "count"], rows) + "\n\n" + sources

    def block_occupancy(self, name=""):
        r, name = self.r, name or self.name
        row, o, build = r.row(name), occupancy(r, name), r.build_of(name)
        warps = row["threads"] // 32
        return "\n".join([
            "| step | sum |", "| --- | --- |",
            f"| registers of a warp | {build['registers']} × 32 = {build['registers'] * 32}, in units of 256: {o['a_warp']} |",
            f"| warps that a quarter of the SM holds | 16384 / {o['a_warp']} = {16384 // o['a_warp']}, four quarters: "
            f"{16384 // o['a_warp'] * 4} |",
            f"| blocks by registers | {16384 // o['a_warp'] * 4} / {warps} warps a block = {o['limits']['registers']} |",
            f"| blocks by shared memory | 233472 / ({build['shared_bytes']} + 1024 of the system) = {o['limits']['shared memory']} |",
            f"| blocks by threads | 2048 / {row['threads']} = {o['limits']['threads']} |",
            f"| the least of them | {o['blocks']} block{'s' * (o['blocks'] > 1)}, {o['warps']} warps of 64: {100 * o['warps'] / 64:g}% |"])

    # ---- timings

    def block_measured(self):
        r, row = self.r, self.r.row(self.name)
        line, path = r.bench(self.name)
        peer = [p for p in line["peers"] if p["name"] == "cublas"][0]
        before = row["previous"]
        step = ""
        if before:
            step = f"; {line['gflops'] / r.bench(before)[0]['gflops']:.2f} times {before}"
        return (f"One {line['device']}, m = n = k = {line['m']}, median of {line['us']['samples']}: **{line['gflops'] / 1000:.2f} "
                f"TFLOP/s** ({line['us']['median']:.1f} µs), {peer['ratio']['median']:.3f} of cuBLAS timed in turn{step}. Error "
                f"{line['error_u']:.2f} u; a plain FMA chain on the same data {line['chain_u']:.2f} u.\n\n"
                f"File `{path}`, command `{line['command'].split(' -o ')[0]}`.")

    def block_sizes(self):
        found, other = self.r.sizes(self.name), self.r.sizes(self.name, SIZES_H100)
        if not found:
            raise Missing(f"{SIZES} has no {self.name}")
        rows = []
        for chip, lines in (("H200", found), ("H100", other)):
            chip = f", {chip}" if other else ""
            if lines:
                ratio = {m: [p for p in x["peers"] if p["name"] == "cublas"][0]["ratio"]["median"] for m, x in lines.items()}
                rows += [[f"TFLOP/s{chip}"] + [number(lines[m]["gflops"] / 1000, 2) if m in lines else "" for m in sorted(found)],
                         [f"of cuBLAS{chip}"] + [number(ratio[m], 3) if m in lines else "" for m in sorted(found)]]
        return (table(["m = n = k"] + [str(m) for m in sorted(found)], rows)
                + f"\n\n![Rate against size](img/{self.name}-rate.svg)\n\n"
                + "The line is this rung" + (", dashed the same on an H100" if other else "")
                + ", the thin one the rung before, grey cuBLAS; the roof is what the FMA pipes could do. Look for the size from which on the rung has work "
                "for every SM, and for dips, where the last round of blocks is nearly empty. "
                + (f"Files `{SIZES}`, `{SIZES_H100}`" if other else f"File `{SIZES}`") + "; each line has its command.")

    def block_shapes(self, *rungs):
        return self.beside(SHAPES, rungs)

    def block_batches(self, *rungs):
        return self.beside(BATCHES, rungs)

    def beside(self, path, rungs):
        """Shows times of rungs on the shapes of a file, with cuBLAS's, and the library's where the file has them."""
        shapes, rungs = {}, [self.r.find(x) for x in rungs] or [self.name]
        for line in self.r.load(path):
            if line.get("kind") == "bench":
                name = line["kernel"] if line["kernel"] in self.r.rows else "library"
                shapes.setdefault((line["m"], line["n"], line["k"], line["batch"]), {})[name] = line
        shapes = {shape: found for shape, found in shapes.items() if any(x in found for x in rungs)}
        if not shapes:
            raise Missing(f"{path} has none of {', '.join(rungs)}")
        library = ["library"] * any("library" in found for found in shapes.values())
        rows = []
        for (m, n, k, batch), found in shapes.items():
            peer = [p for p in found[next(x for x in rungs if x in found)]["peers"] if p["name"] == "cublas"][0]
            rows.append([f"{m}×{n}×{k}" + (f", {batch} of them" if batch > 1 else "")] + [
                f"{found[x]['us']['median']:.1f}" if x in found else "" for x in rungs + library] + [f"{peer['us']['median']:.1f}"])
        return table(["m × n × k, µs"] + [self.link(x) for x in rungs] + ["the library"] * len(library) + ["cuBLAS"],
                     rows) + f"\n\nFile `{path}`."

    def block_patterns(self):
        """Shows how FFMAs issue with chosen registers: counted and measured."""
        rows = [[line["pattern"], f"{line['reads_even']:.2f}, {line['reads_odd']:.2f}", f"{line['predicted']:.2f}",
                 f"{line['measured']:.3f}", f"{line['tflops']:.1f}"] for line in self.r.load(PATTERNS)]
        if not rows:
            raise Missing(f"{PATTERNS} is empty")
        return table(["FFMAs with", "reads of the even, the odd bank", "FFMAs a cycle, counted", "measured", "as TFLOP/s"], rows) \
            + f"\n\nReads are for each FFMA. File `{PATTERNS}`, command `rung profile --ports`."

    def block_errors(self, *rungs):
        """Shows errors of rungs over k on positive and on normal data, with the FP32 chain's on the same operands."""
        found, names = {}, [self.r.find(x) for x in rungs]
        for line in self.r.load(ERRORS):
            if line.get("kernel") in names:
                found[line["kernel"], line["data"], line["k"]] = line
        depths = sorted({k for _, _, k in found})
        rows = []
        for data, said in (("positive", "U(0,1)"), ("normal", "N(0,1)")):
            for name in names:
                if (name, data, depths[0]) not in found if depths else True:
                    raise Missing(f"{ERRORS} has no {name} on {data} data")
                rows.append([said, self.link(name)] + [f"{found[name, data, k]['error_u']:.3g}" for k in depths])
            rows.append([said, "FP32 chain"] + [f"{found[names[-1], data, k]['chain_u']:.3g}" for k in depths])
        return table(["error in u", ""] + [f"k = {k}" for k in depths], rows) + \
            f"\n\n256 × 256 results; U(0,1): numbers evenly spread from 0 to 1, N(0,1): normal ones around 0. File `{ERRORS}`."

    def block_method_errors(self):
        """Shows what the accurate mode erred, cuBLAS and the FP32 chain, by data and k: the first case of each."""
        depths = [1, 16, 64, 257, 1024, 4096, 32768]
        found = {}
        for line in self.r.load(METHOD_ERRORS):
            if line["kernel"] not in self.r.rows:
                found.setdefault((line["data"], line["k"]), line)
        rows = []
        for data, said in METHOD_DATA:
            if (data, 4096) not in found:
                raise Missing(f"{METHOD_ERRORS} has no {data} data")
            lines = [found.get((data, k)) for k in depths]
            rows.append([said] + [" / ".join(short(line[key]) for key in ("error_u", "vendor_u", "chain_u")) if line else "" for line in lines])
        return table(["data"] + [f"k = {k}" for k in depths], rows)

    def block_rung_errors(self):
        """Shows what the rungs on tensor cores err, on positive and on normal data."""
        depths = [257, 1024, 4096, 32768]
        found = {(x["kernel"], x["data"], x["k"]): x["error_u"] for x in self.r.load(ERRORS) if "kernel" in x}
        rows = []
        for name in (name for name in self.r.order if re.match(r"l[34]\d", name)):
            if any((name, data, k) not in found for data in ("positive", "normal") for k in depths):
                raise Missing(f"{ERRORS} lacks some of {name}")
            rows.append([name] + [" / ".join(short(found[name, data, k]) for data in ("positive", "normal")) for k in depths])
        return table(["rung", "k = 257", *(str(k) for k in depths[1:])], rows)

    # ---- why

    def block_stalls(self):
        line = self.r.counters_line(self.name)
        counters = line["counter"]
        total = sum(v for k, v in counters.items() if k.startswith("stall_"))
        if not total:
            raise Missing(f"{COUNTERS} has no stalls of {self.name}")
        share = sorted(((100 * counters.get("stall_" + key, 0) / total, text) for key, text, _ in STALLS), reverse=True)
        told = ", ".join(f"{text} {value:.0f}%" for value, text in share if value >= 4)
        if self.name[0] == "r":
            return (f"![What the warps do](img/{self.name}-stalls.svg)\n\n"
                    f"A warp's time, counted by the hardware for 2^{SUM_SIZE.bit_length() - 1} floats, in the longest launch: {told}. The schedulers issue in "
                    f"{counters['issued_percent']:.2g}% of the cycles, and device memory moves {counters['dram_percent']:.2g}% of what it could. File `{SUM_COUNTERS}`, "
                    f"command `{line['command']}`; [what the words mean](../glossary.md#what-a-warp-waits-for).")
        fma = (2048 ** 3 / 32) / counters["instructions"]
        extra = f" {1 / fma:.2f} instructions are issued for each FMA." if fma > 0.2 else ""
        return (f"![What the warps do](img/{self.name}-stalls.svg)\n\n"
                f"A warp's time, counted by the hardware at 2048: {told}. The schedulers issue in {counters['issued_percent']:.0f}% of "
                f"the cycles, the FMA pipe works in {counters['fma_percent']:.0f}%.{extra} File `{COUNTERS}`, command "
                f"`{line['command']}`; [what the words mean](../glossary.md#what-a-warp-waits-for).")

    def block_hardware(self, path):
        """Shows the lens beside a chip's counters: for each rung the counter, and in brackets the lens over it."""
        columns = [("ld_requests", "global load requests"), ("ld_sectors_per_request", "sectors a request"), ("st_sectors", "global store sectors"),
                   ("sass_shared_ld_wavefronts", "shared load passes"), ("sass_shared_st_wavefronts", "shared store passes"),
                   ("sass_shared_ldgsts_wavefronts", "cp.async passes")]
        rows, lines = [], {line["kernel"]: line for line in self.r.load(path)}
        for name in (name for name in self.r.order if name in lines):
            cells = [name]
            for key, _ in columns:
                counted, told = lines[name]["counter"].get(key) or 0, lines[name]["lens"]
                shown = f"{counted:.0f}" if counted >= 100 else f"{counted:.5g}"
                shown += f" ({(told.get(key) or 0) / counted:.3f})" if told and counted else ""
                cells.append(shown if counted else "none")
            rows.append(cells)
        if not rows:
            raise Missing(f"{path} is empty")
        return table(["rung"] + [head for _, head in columns], rows)

    # ---- pictures of one rung

    def block_changed(self):
        files = {"c": (CPU_COUNTS, CPU), "r": (LENS_SUMS, BUILD, SUM_COUNTERS, REDUCE), "l": (LENS, BUILD, COUNTERS, SIZES)}[self.name[0]] if self.name != "c08_threads" else (CPU,)
        if self.name in MADE_FOR and len(set(MADE_FOR[self.name])) > 1:
            files += (SHAPES,)
        import pictures_other, pictures_rungs  # noqa: E401, which draw with what is made from this file's words
        rows = (pictures_rungs if self.name[0] == "l" else pictures_other).changes(self.r, self.name)
        return (f"![What changed](img/{self.name}-changed.svg)\n\nWhat changed from {self.link(self.r.row(self.name)['previous'])}, light before and dark now. "
                f"{told_changes(rows)} Files {', '.join(f'`{x}`' for x in files)}.")

    def served(self, name):
        """In how many FMAs a float takes part that a kernel asks of global memory: two floats go into each."""
        lens = self.r.lens_of(name)
        return f"{2 * lens['m'] * lens['n'] * lens['k'] / (lens['global_load_bytes'] / 4):.3g}"

    def block_flow(self):
        row, said = self.r.row(self.name), ""
        if "tm" in row:
            now, results = self.served(self.name), row["tm"] * row["tn"]
            before = self.served(row["previous"]) if row.get("previous") else now
            said = (f"At 1024 a float that is asked of global memory takes part in {now} FMA{'' if now == '1' else 's'}"
                    + (f" ({before} in {self.link(row['previous'])})" if before != now else ", as before" if row.get("previous") else "")
                    + f"; for a step of k a thread makes {results} FMA{'s' if results > 1 else ''} of {row['tm'] + row['tn']} floats in registers. ")
        return (f"![The way of the operands](img/{self.name}-flow.svg)\n\nFrom memory to the sums, what a block needs for one step ({row['bk']} of k), by count. Look for what serves "
                f"more than one result at each station, and for what is written and read on the way. {said}Files `{LENS}`, `{BUILD}`.")

    def block_time(self):
        if self.name[:3] == "l34":
            return (f"![Products over time](img/{self.name}-time.svg)\n\nThe tensor cores and the two warpgroups over time, by count and not measured; a "
                    "number is a step's, 32 of k. Look for what is missing: nobody adds, for one sum runs through all of k in the tensor cores.")
        if self.name[:3] in CHAINED:
            return (f"![Chains over time](img/{self.name}-time.svg)\n\nThe tensor cores and the two warpgroups over time, by count and not measured; a "
                    "number is a chain's. Look for where a warpgroup's additions lie, and for what is queued behind them.")
        import pictures_rungs  # draws with what is made from this file's words
        ns, ahead = pictures_rungs.step_ns(self.r, self.name), pictures_rungs.steps_ahead(self.r, self.name)
        depth = self.r.row(self.name)["bk"]
        early = f"one step, {depth} of k and {ns / 1000:.1f} µs," if ahead == 1 else f"{ahead} steps of {depth} of k and {ns / 1000:.1f} µs, {ahead * ns / 1000:.1f} in all,"
        return (f"![Tiles over time](img/{self.name}-time.svg)\n\nOne line is a place for a tile; time goes to the right. A tile is asked for {early} before it is "
                f"used: what takes longer to come is waited for. A step's length is counted from the rate at 4096 in `{SIZES}`.")

    def block_banks(self):
        line = self.r.one(FFMAS, f"loop of {self.name}", lambda x: x["kernel"] == self.name)
        busier = max(line["reads_even"], line["reads_odd"])
        return (f"![Registers and banks](img/{self.name}-banks.svg)\n\nA column is one FFMA, with the registers of its row, its column and its sum. "
                "A bank gives one register a cycle, so look for a red 2: it costs a cycle, if no FFMA close by leaves that bank idle. Over the whole "
                f"loop an FFMA reads {line['reads_even']:.3f} even and {line['reads_odd']:.3f} odd registers, so the busier bank asks for "
                f"{max(busier, 1):.2f} cycles an FFMA; {line['ffmas']} of the loop's {line['instructions']} instructions are FFMAs. File `{FFMAS}`.")

    # ---- tables of whole ladders

    def block_index(self, which):
        r, rows = self.r, []
        for name in r.order:
            if name[0] != which:
                continue
            row = r.row(name)
            if which == "r":
                line = r.reduce_of(name, 1 << 20)
                try:
                    large = r.reduce_of(name, 1 << 30)
                except Missing:
                    large = None
                rows.append([self.link(name), row["idea"], f"{line['us']:.2f}", f"{large['gbytes_per_s']:.0f}" if large else "not run",
                             f"{large['cub_ratio']:.3f}" if large else ""])
                continue
            try:
                line, _ = r.bench(name, 1024 if which == "c" else 4096)
                rate = f"{line['gflops']:.1f}" if which == "c" else f"{line['gflops'] / 1000:.2f}"
                peers = [p for p in line["peers"] if p["name"] == "cublas"] or line["peers"]
                ratio = f"{min(p['ratio']['median'] for p in peers):.3f}" if peers else ""
                share = f"{100 * line['gflops'] / 66900:.0f}%"
            except Missing:
                rate = ratio = share = "not timed yet"
            if which == "c":
                rows.append([self.link(name), row["idea"], rate, ratio])
            else:
                tile = f"{row['bm']}×{row['bn']}×{row['bk']}"
                thread = f"{row['tm']}×{row['tn']}" if "tm" in row else "tensor cores"
                rows.append([self.link(name), row["idea"], tile, thread, rate, share, ratio])
        if which == "r":
            return table(["rung", "idea", "µs at 2^20", "GB/s at 2^30", "of CUB at 2^30"], rows)
        if which == "c":
            return table(["rung", "idea", "GFLOP/s", "of the best library"], rows)
        return table(["rung", "idea", "block tile", "thread", "TFLOP/s", "of 66.9", "of cuBLAS"], rows)

    def block_reduce(self):
        rows = []
        for power in REDUCE_SIZES:
            try:
                line = self.r.reduce_of(self.name, 1 << power)
            except Missing:
                continue
            rows.append([f"2^{power}", f"{line['us']:.2f}", f"{line['gbytes_per_s']:.1f}", f"{line['cub_ratio']:.3f}",
                         "yes" if line["same_bits"] else "no"])
        if not rows:
            raise Missing(f"{REDUCE} has no {self.name}")
        line = [x for x in self.r.load(REDUCE) if x["kernel"] == self.name][-1]
        return table(["n", "µs", "GB/s", "times CUB", "same bits"], rows) + (
            f"\n\n![Rate against size](img/{self.name}-rate.svg)\n\nThe thick line is this rung, the thin one the rung before, grey CUB. Look for the size from "
            f"which on memory decides, and not the launch.\n\nOne {line['device']}, medians, in turn with CUB's DeviceReduce. File `{REDUCE}`, command "
            f"`{line['command'].split(' -o ')[0]}`.") + self.reduce_elsewhere()

    def reduce_elsewhere(self):
        """Says what the largest sum takes on another chip."""
        lines = [x for x in self.r.load(REDUCE_H100) if x["kernel"] == self.name]
        if not lines:
            return ""
        line = max(lines, key=lambda x: x["n"])
        return (f" One {line['device']} adds 2^{line['n'].bit_length() - 1} at {line['gbytes_per_s']:.1f} GB/s, {line['cub_ratio']:.3f} times CUB (`{REDUCE_H100}`).")

    def block_cpu(self):
        """Shows the last line of the rung, and one on a single thread where that line is on several."""
        last, path = self.r.bench(self.name, 1024)
        lines = [x for x in self.r.load(path) if x.get("kernel") == self.name and x["threads"] == 1 and last["threads"] != 1]
        before = self.r.row(self.name)["previous"]
        said = []
        for line in [*lines, last]:
            step = f", {line['gflops'] / self.r.bench(before, 1024)[0]['gflops']:.2f} times {before}" if before else ""
            best = min(line["peers"], key=lambda p: p["ratio"]["median"], default=None)
            version, _, core = best["version"].partition(" ") if best else ("", "", "")
            peer = f"; {best['ratio']['median']:.2g} of {best['name']} {version}{core and f' (its kernels for {core})'}, timed in turn" if best else ""
            on = "one thread" if line["threads"] == 1 else f"{line['threads']} threads"
            said.append(f"**{line['gflops']:.2f} GFLOP/s** ({line['us']['median'] / 1000:.2f} ms){step}{peer}. m = n = k = 1024, {on} of an "
                        f"{line['device']} ({line['processor']}).\n\nFile `{path}`, command `{line['command'].split(' -o ')[0]}`.")
        return "\n\n".join(said)

    def block_cpu_sizes(self):
        lines = [x for x in self.r.load(CPU_SIZES) if x.get("kernel") == self.name]
        if not lines:
            raise Missing(f"{CPU_SIZES} has no {self.name}")
        return (f"![Rate against size](img/{self.name}-rate.svg)\n\nThe thick line is this rung, the thin one the rung before, grey OpenBLAS, timed in turn; a line up is four times the rate. Look for "
                f"where the line bends: there a matrix has outgrown a cache. An {lines[-1]['device']} ({lines[-1]['processor']}) with other work besides, so each point is "
                f"the fastest of three runs. File `{CPU_SIZES}`, command `{lines[-1]['command'].split(' -o ')[0]}`.")

    def block_cpu_counts(self):
        """Shows what a multiply-add cost, this rung and the one before."""
        rows = []
        for name in (self.r.row(self.name)["previous"], self.name):
            if name:
                one = self.r.cpu_counts(name)
                share = {key: value / one["m"] ** 3 for key, value in one.items() if isinstance(value, int)}
                rows.append([self.link(name), f"{share['instructions']:.2f}", f"{share['reads'] + share['writes']:.3f}",
                             f"{1000 * share['l1_misses']:.1f}", f"{1000 * share['l2_misses']:.1f}"])
        return table(["", "instructions", "loads and stores", "misses of L1 in a thousand", "of L2 in a thousand"], rows) + (
            f"\n\nFor each multiply-add, and misses for a thousand of them, at 1024, with caches of 32 KB and 1 MB as a Zen 4 has them, modelled by valgrind's cachegrind. File "
            f"`{CPU_COUNTS}`, command `{one['command']}`.")

    def block_results(self, path, columns, *where):
        """Shows lines of a results file as a table. `columns` are separated by commas, conditions are key=value or key=value,value."""
        keep = dict(w.split("=", 1) for w in where)
        rows = []
        for line in self.r.load(path):
            if all(str(line.get(k)) in v.split(",") for k, v in keep.items()):
                cells = []
                for column in columns.split(","):
                    name, _, decimals = column.partition(":")
                    value = line
                    for part in name.split("."):
                        value = value[int(part)] if isinstance(value, list) else value.get(part, "")
                    cells.append(number(value, int(decimals)) if decimals and value != "" else value)
                rows.append(cells)
        if not rows:
            raise Missing(f"{path} has no lines with {keep}")
        return table([c.partition(":")[0] for c in columns.split(",")], rows) + f"\n\nFile `{path}`."
