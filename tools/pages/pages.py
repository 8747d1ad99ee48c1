#!/usr/bin/env python3
"""Fills the pages under docs/ from the records: ./dev pages.

    pages.py           writes figures, tables, excerpts and curves into the pages
    pages.py BUILD_FOLDER   and what the command prints, where a page shows it (the lens of that build)
    pages.py --check [BUILD_FOLDER]   says what differs and fails (a test of the suite)
    pages.py --record BUILD_FOLDER   counts and draws anew with the lens and the build: results/ladder-{lens-1024,lens-sums,build,ports,listing}.jsonl,
                     and ladder-ffmas.jsonl where cuobjdump is installed
    pages.py --check-record BUILD_FOLDER   fails where the build's records differ from the file
    pages.py --check-lens BUILD_FOLDER [RUNG ...]   fails where the lens counts or draws these rungs otherwise (default: the quick ones; all: every one)
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "book"))
import drawings  # noqa: E402
import pictures  # noqa: E402
from fill import BLOCK, FIGURE, Page  # noqa: E402
from machine_code import disassembler, line_of  # noqa: E402
from records import BUILD, FFMAS, LENS, LENS_SUMS, LISTING, PORTS, Records, lens_cells, lens_requests, lens_totals  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["README.md", "docs/*.md", "docs/ladder/*.md", "docs/book/*.md"]
MEASURED = re.compile(r"\d[\d.,]*\s*(TFLOP/s|GFLOP/s|GB/s|TB/s|µs|us\b|ms\b)")
PLACEHOLDER = re.compile(r"\{[a-z_]+\[['\"][^{}]*\}|\{[A-Z][A-Z_]{2,}\}")  # what a format string left in its text: {line['device']}, {REDUCE}
FREE = ["expected", "expectation", "prediction", "try", "guess", "questions"]  # sections whose figures are predictions or sums


def unsourced(text):
    """Finds sentences of a lesson that state a rate or a time without a marker, outside predictions."""
    text = BLOCK.sub("", text)
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    found, section = [], ""
    for line in text.split("\n"):
        if line.startswith("#"):
            section = line.lower()
        bare = FIGURE.sub("", line)
        if section and not any(word in section for word in FREE) and "<!-- count -->" not in line and MEASURED.search(bare):
            found.append(bare.strip()[:120])
    return found


def contradictions(picture):
    """Finds captions of a picture that the lens drew which say what is not drawn: a bank conflict without red, bytes moved in vain without their colour."""
    found = []
    for part in re.split(r'(?=<text [^>]*class="[hb]")', picture):
        head = re.match(r'<text [^>]*class="h">(.*?)</text>', part)
        if not head:
            continue
        words, told = head.group(1), "drawn" in part
        used = re.search(r"([\d.]+)% of the bytes moved are used", words)
        shown, moved = part.count('class="used"') + part.count('class="mark"'), 8 * part.count('class="waste"')
        if ("class=\"conflict\"" in part) != words.endswith(", bank conflicts"):
            found.append(f"its red is not what it says: {words}")
        if used and not told and (float(used.group(1)) < 99.5) != (shown < moved):
            found.append(f"bytes moved in vain are not what it says: {words}")
    return found


def write(path, text, check, faults):
    old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
    if old == text:
        return
    if check:
        faults.append(f"{os.path.relpath(path, ROOT)} is not what its sources give: run ./dev pages")
        return
    with open(path, "w", encoding="utf-8") as to:
        to.write(text)


def fill_all(check, rung=None):
    records, faults = Records(ROOT), []
    for pattern in PAGES:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
            text = open(path, encoding="utf-8").read()
            if "<!-- fill " not in text and "<!--=" not in text:
                continue
            page = Page(records, path, rung)
            filled = page.fill(text)
            faults += [f"{os.path.relpath(path, ROOT)}: {fault}" for fault in page.faults]
            if re.match(r"docs/(ladder/[lcr]\d|book/)", os.path.relpath(path, ROOT)):
                faults += [f"{os.path.relpath(path, ROOT)}: a figure without a source: {line}" for line in unsourced(filled)]
            faults += [f"{os.path.relpath(path, ROOT)}: left in the text: {left}" for left in PLACEHOLDER.findall(filled)]
            write(path, filled, check, faults)
    for name, text in pictures.all_of(records).items():
        write(os.path.join(ROOT, "docs/ladder/img", name), text, check, faults)
    for path in sorted(glob.glob(os.path.join(ROOT, "docs/ladder/img/*.svg"))):
        faults += [f"{os.path.relpath(path, ROOT)}: {fault}" for fault in contradictions(open(path, encoding="utf-8").read())]
    for name, text in drawings.all_of().items():
        write(os.path.join(ROOT, "docs/book/img", name), text, check, faults)
    return faults


def command_of(folder):
    """Returns the build's command, if it has the lens."""
    rung = os.path.join(folder, "bin/rung")
    return rung if os.path.exists(rung) and glob.glob(os.path.join(folder, "**/librung_lens.so"), recursive=True) else None


def compiler_of(folder):
    """Returns nvcc's version, since another compiler gives out registers in another way."""
    for line in open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8"):
        if line.startswith("RUNG_NVCC:"):
            said = subprocess.run([line.split("=", 1)[1].strip(), "--version"], capture_output=True, text=True, check=False).stdout
            found = re.search(r"V([0-9.]+)", said)
            return found.group(1) if found else None
    return None


def build_lines(records, folder):
    """Reads what ptxas said of each rung on Hopper: "symbol registers stack spill shared stem"."""
    path = os.path.join(folder, "device/sm_90a/resources.txt")
    if not os.path.exists(path):
        return None
    used = {}
    for line in open(path, encoding="utf-8"):
        symbol, *numbers = line.split()
        used[symbol] = [int(x) for x in numbers[:4]]
    lines, compiler = [], compiler_of(folder)
    for name in records.order:
        if name[0] in "lr" and name in used:
            registers, _, spill, shared = used[name]
            row = records.rows[name]
            lines.append({"kernel": name, "arch": 90, "registers": registers, "spill_bytes": spill,
                          "shared_bytes": shared + row.get("shared_bytes", 0), "threads": row["threads"],
                          "nvcc": compiler})
    return lines


def ports_lines(records, folder):
    """Asks tools/sass for the model of the register ports on each FP32 rung's main loop, as built for Hopper."""
    sass, lines, compiler = os.path.join(folder, "sass"), [], compiler_of(folder)
    for name in records.order:
        cubin = os.path.join(folder, "device/sm_90a", name + ".cubin")
        if not re.match(r"l[0-2]", name) or not os.path.exists(sass) or not os.path.exists(cubin):
            continue
        said = subprocess.run([sass, "ports", cubin], capture_output=True, text=True, check=True).stdout
        found = re.search(rf"^{name} ffmas (\d+) instructions (\d+) cycles (\d+)$", said, re.M)
        if found:
            ffmas, instructions, cycles = (int(x) for x in found.groups())
            lines.append({"kernel": name, "arch": 90, "command": f"sass ports {name}.cubin", "ffmas": ffmas,
                          "instructions": instructions, "cycles": cycles, "nvcc": compiler})
    return lines


def ffma_lines(records, folder):
    """Reads the main loops of the rungs that are limited by FFMAs; None without a disassembler."""
    nvcc = [line.split("=", 1)[1].strip() for line in open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8")
            if line.startswith("RUNG_NVCC:")]
    cuobjdump = disassembler(nvcc[0]) if nvcc else None
    if not cuobjdump:
        return None
    made = [line_of(name, os.path.join(folder, f"device/sm_90a/{name}.cubin"), cuobjdump) for name in records.order
            if records.rows[name].get("min_ffma_percent")]
    return [line for line in made if line]


LISTED = ["l27_written_loop"]  # rungs whose page shows the machine code of their loop


def listing_lines(records, folder):
    """Asks tools/sass for the beginning of the main loop, as built for Hopper."""
    sass, lines, compiler = os.path.join(folder, "sass"), [], compiler_of(folder)
    for name in LISTED:
        cubin = os.path.join(folder, "device/sm_90a", name + ".cubin")
        if os.path.exists(sass) and os.path.exists(cubin):
            said = subprocess.run([sass, "list", cubin], capture_output=True, text=True, check=True).stdout
            lines.append({"kernel": name, "arch": 90, "command": f"sass list {name}.cubin", "lines": said.rstrip("\n").split("\n"), "nvcc": compiler})
    return lines


# In these rungs blocks deal out work among them, or wait for each other: here a few blocks cannot stand for the rest.
EVERY_BLOCK = ("l29_one_kernel", "l38_f16x3_pipeline")
# These take a quarter of a minute each: all of their blocks run, or their sums on tensor cores are made bit by bit.
SLOW = ("l29", "l34", "l35", "l36", "l37", "l38", "l39", "l40")


def look(rung, name, folder):
    """Runs a rung under the lens once: draws what it asks of memory into this folder, and returns its line of the record."""
    words = [] if name[0] == "r" else ["1024x1024x1024"] + ["--all"] * (name in EVERY_BLOCK)
    said = subprocess.run([rung, "lens", name, *words, "--svg", os.path.join(folder, name + ".svg"), "--format", "csv"], capture_output=True, text=True,
                          check=False).stdout
    line = {"kernel": name, "command": " ".join(["rung lens", name, *words, "--format csv"])}
    totals = lens_totals(lens_cells(said))
    if not totals:
        return None
    return line | (sum_counts(totals, lens_cells(said)) if name[0] == "r" else product_counts(totals))


def counts(totals):
    """Returns what the record has of every rung, whose products' counts are all different: a count in another one's place shows there."""
    return {"global_load_requests": totals["global load requests of warps"],
            "sectors_per_request": totals.get("sectors per global load request"),
            "shared_load_requests": totals["shared load requests as nvcc merges them"],
            "shared_load_passes": totals["shared load passes"],
            "shared_store_passes": totals["shared store passes"], "barriers": totals.get("barriers a block")}


def product_counts(totals):
    results = 1024.0 * 1024.0
    return {"m": 1024, "n": 1024, "k": 1024,
            "global_load_bytes": totals["global loads per result (floats)"] * 4 * results,
            **counts(totals),
            "used_percent": totals.get("global load bytes used of bytes moved (%)"), "bulk_copies": totals["bulk copies"],
            "shared_load_lost": totals["shared load passes lost to bank conflicts"],
            "shared_store_lost": totals["shared store passes lost to bank conflicts"]}


def sum_counts(totals, cells):
    """Returns what a rung for sums asks for at 2^20, which is the lens's own size."""
    return {"n": 1 << 20, "atomic_requests": lens_requests(cells, "global atomic"), **counts(totals)}


def dump(path, lines):
    with open(os.path.join(ROOT, path), "w", encoding="utf-8") as to:
        to.writelines(json.dumps(line) + "\n" for line in lines)


def record(folder, only):
    records = Records(ROOT)
    build = build_lines(records, folder)
    if build is None:
        return [f"{folder} has no device/sm_90a/resources.txt: build with nvcc and RUNG_CUDA_ARCHS=90a first"]
    dump(BUILD, build)
    ports = ports_lines(records, folder)
    if not ports:
        return [f"{folder} has no sass, or no device/sm_90a/*.cubin: {PORTS} stays as it is"]
    dump(PORTS, ports)
    dump(LISTING, listing_lines(records, folder))
    ffmas = ffma_lines(records, folder)
    if ffmas:
        dump(FFMAS, ffmas)
    rung, img = os.path.join(folder, "bin/rung"), os.path.join(ROOT, "docs/ladder/img")
    for path, kind in ((LENS, "l"), (LENS_SUMS, "r")):
        known = {line["kernel"]: line for line in records.load(path)}
        for name in records.order:
            if name[0] == kind and (not only or name in only):
                line = look(rung, name, img)
                if line:
                    known[name] = line
        dump(path, [known[name] for name in records.order if name in known])
    return []


def check_record(folder):
    records = Records(ROOT)
    built = build_lines(records, folder)
    if built is None:
        return []  # this build has no device code for Hopper: there is nothing to compare
    faults = []
    for path, lines in ((BUILD, built), (PORTS, ports_lines(records, folder)), (LISTING, listing_lines(records, folder))):
        kept = {line["kernel"]: line for line in records.load(path)}
        faults += [f"{path}: {line['kernel']} is {kept.get(line['kernel'])}, the build says {line}: run ./dev pages --record"
                   for line in lines if kept.get(line["kernel"], line if path == PORTS else None) != line and line["nvcc"] == kept.get(line["kernel"], line).get("nvcc")]
    if not any(line["nvcc"] != known.get("nvcc") for line in built for known in records.load(BUILD) if known["kernel"] == line["kernel"]):
        ffmas = ffma_lines(records, folder)
        if ffmas and ffmas != records.load(FFMAS):
            faults.append(f"{FFMAS}: the main loops in the build are others: run ./dev pages --record")
    return faults


def check_lens(folder, names):
    """Compares what the lens counts and draws today with the records and the pictures."""
    records, faults, looked = Records(ROOT), [], 0
    known = {line["kernel"]: line for path in (LENS, LENS_SUMS) for line in records.load(path)}
    for name in records.order:
        if name[0] not in "lr" or not (name in names or names == ["all"] or (not names and name[:3] not in SLOW)):
            continue
        looked += 1
        with tempfile.TemporaryDirectory() as drawn:
            line = look(os.path.join(folder, "bin/rung"), name, drawn)
            if line != known.get(name):
                faults.append(f"{LENS_SUMS if name[0] == 'r' else LENS}: {name} is {known.get(name)}, the lens counts {line}: run ./dev pages --record {name}")
            pictures = [open(os.path.join(at, name + ".svg"), encoding="utf-8").read() if os.path.exists(os.path.join(at, name + ".svg")) else None
                        for at in (drawn, os.path.join(ROOT, "docs/ladder/img"))]
            if pictures[0] is None or pictures[0] != pictures[1]:
                faults.append(f"{name}.svg is not what the lens draws: run ./dev pages --record {name}")
    print(f"{looked} rungs looked at")
    return faults


def main(words):
    if words[:1] == ["--record"]:
        faults = record(words[1], words[2:])
    elif words[:1] == ["--check-record"]:
        faults = check_record(words[1])
    elif words[:1] == ["--check-lens"]:
        faults = check_lens(words[1], words[2:])
    elif words[:1] in ([], ["--check"]) and len(words) < 3:
        faults = fill_all(bool(words), command_of(words[1]) if len(words) == 2 else None)
    elif len(words) == 1 and os.path.isdir(words[0]):
        faults = fill_all(False, command_of(words[0]))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


sys.exit(main(sys.argv[1:]))
