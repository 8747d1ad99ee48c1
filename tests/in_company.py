#!/usr/bin/env python3
"""What a verb says of one of several things is what it says of that thing alone, wherever it stands among them.

    in_company.py BUILD_DIR

Shapes, kernels, sizes and numbers of ranks go through each command alone, then in both orders. Rows are compared by their fields, their
texts, their whole numbers and their errors; times differ. The machine is that of the transcripts, with its peers and its GPU.
"""
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "transcripts"))
from run import Bench  # noqa: E402

# What is there, what a build must have for it, the command with ITEMS, two of them and what stands between, and the field that names one.
COMMANDS = [
    ("peers", "", "rung bench ITEMS --device cpu --threads 1 --budget-ms 1 --against mkl,openblas -o out >said; cat out", "16x16x16 8x9x10:TN", " ", "shape"),
    ("peers", "", "rung bench ITEMS --device cpu --threads 1 --budget-ms 1 --against mkl,openblas --format json", "9x8x7:NTx3 8x9x10", " ", "shape"),
    ("", "", "rung bench ITEMS --gpus cpu2 --repeats 1 --format json", "16x16x16 24x8x8", " ", "shape"),
    ("", "", "rung bench 24x24x24 --gpus cpuITEMS --operands distributed,host --repeats 1 --format json", "1 2", ",", "ranks"),
    ("", "", "rung verify --device cpu --no-vendor --threads 1 --kernel ITEMS --case NN:9x9x9 --format json", "c01_naive c03_register_tile", ",", "kernel"),
    ("", "", "rung climb --device cpu --threads 1 --size 16 --kernel ITEMS --against '' -o out >said; cat out", "c01_naive c03_register_tile", ",", "kernel"),
    ("", "", "rung reduce --device cpu --quick --budget-ms 1 ITEMS --format json", "1000 2047", " ", "n"),
    ("", "", "rung list ITEMS --format json", "c01_naive l04_shared_16x16", " ", "name"),
    ("", "LENS", "rung profile ITEMS 64x48x32 --no-counters --format json", "l01_naive l04_shared_16x16", " ", "kernel"),
    ("gpu", "LENS", "rung climb --size 16 --kernel ITEMS --against '' -o out >said; cat out", "l15_double_buffer l10_thread_tile_8x8", ",", "kernel"),
    ("gpu", "LENS", "rung bench ITEMS --budget-ms 1 --against cublas,cublaslt -o out >said; cat out", "16x16x16 24x16x8:TN", " ", "shape"),
    ("gpu", "LENS", "rung tune ITEMS --budget-ms 1 --candidates 2 --dry-run --format json", "16x16x16 24x16x8:TN", " ", "shape"),
    ("gpu", "LENS", "rung tune ITEMS --budget-ms 1 --candidates 2 --times out; cat out", "16x16x16 24x16x8:TN", " ", "shape"),
    ("gpu", "LENS", "rung lens --check ITEMS --format json", "l04_shared_16x16 sm80_small_f32_8x8x8_s1", " ", "kernel"),
    ("gpu", "LENS", "rung reduce --kernel ITEMS --quick --budget-ms 1 1000 --format json", "r02_shared r05_shuffle", ",", "kernel"),
]
# In both orders, but for what takes ten seconds a thing: of a climb under the lens, whose every rung is tried with 43 cases, the things are
# turned round, and a climb on the CPU shows both orders.
DEAR = re.compile(r"^rung climb (?!.*--device cpu)")
# Fields that tell of times, of the rows before, of which sample came when, or of what was asked for altogether.
OTHERS = re.compile(r"^(time|command|samples.*|sm_mhz|seconds|s|bar|.*_mhz|previous|step|cases?|of_ranks|of_one.*|x_.*|longest.*|chosen|best|gain.*)$")
EXACT = re.compile(r"error|bound|chain|^(lens|m|n|k|batch|ranks|checked|passed|failed|refused|findings)$")


def masked(value, name=""):
    """Returns what does not depend on time."""
    if isinstance(value, dict):
        return {key: masked(x, key) for key, x in value.items() if not OTHERS.match(key)}
    if isinstance(value, list):
        return [masked(x, name) for x in value]
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return value if EXACT.search(name) else "a number"
    return value


def rows_of(bench, command, items):
    """Returns the rows, and all that was printed."""
    lines = bench.run(f"rm -f out; {command.replace('ITEMS', items)}", None)
    rows = [json.loads(line[2:].removesuffix("~")) for line in lines if line.startswith("| {")]
    return rows, "\n".join(lines)  # a sum over all has a row of its own, which names none of them


def of(rows, field, item):
    return [masked(row) for row in rows if str(row.get(field)) == item]


def compare(bench, command, items, between, field):
    """Returns what differs."""
    items = items.split()
    alone = {item: rows_of(bench, command, item) for item in items}
    for item, (rows, said) in alone.items():
        if not of(rows, field, item):
            return f"no row of {item} alone:\n{said}"
    for order in [items[::-1]] if DEAR.match(command) else [items, items[::-1]]:
        together, _ = rows_of(bench, command, between.join(order))
        for item, (rows, _) in alone.items():
            was, now = of(rows, field, item), of(together, field, item)
            if was != now:
                return f"{item} alone: {was}\namong {' then '.join(order)}: {now}"
    return ""


def main():
    bench = Bench(pathlib.Path(sys.argv[1]).resolve())
    failed = tried = 0
    for what, need, command, items, between, field in COMMANDS:
        why = bench.lacks(need) if need else None
        if why:
            print(f"left out: {command}: {why}")
            continue
        bench.set_up(what)
        differs = compare(bench, command, items, between, field)
        tried += 1
        if differs:
            print(f"FAILED: {command}: {differs}")
            failed = 1
    shutil.rmtree(bench.work)
    print(f"{tried} commands, each with two things in both orders and with each of them alone")
    return failed


if __name__ == "__main__":
    sys.exit(main())
