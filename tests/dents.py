#!/usr/bin/env python3
"""lab/shapes/dents.py lists the sizes of a walk, and of timed products finds those that take longer than a larger one: of the same form, batch and
padding, none of whose sizes is smaller, in the quickest of several runs.

dents.py SOURCE_DIR
"""
import json
import pathlib
import subprocess
import sys
import tempfile

DENTS = pathlib.Path(sys.argv[1]) / "lab/shapes/dents.py"
failed = 0


def run(*words):
    return subprocess.run([sys.executable, DENTS, *words], capture_output=True, text=True)


def check(holds, sentence, said):
    global failed
    if not holds:
        failed += 1
        print("FAILED:", sentence, "\n", said)


def row(m, n, k, us, rest="", kind="bench"):
    return json.dumps({"kind": kind, "shape": f"{m}x{n}x{k}{rest}", "m": m, "n": n, "k": k, "us": {"median": us}})


ROWS = [
    row(8, 8, 8, 2.0),  # twice the time of the one below, in the quicker of its runs
    row(8, 9, 8, 1.0),
    row(8, 9, 8, 5.0),
    row(9, 8, 8, 1.07),  # 8x9x8 is not larger, and 10x10x8 takes as long
    row(10, 10, 8, 1.07),
    row(4, 4, 4, 1.08),  # a border: the larger 8x9x8 takes 1.0
    row(4, 4, 5, 1.07),
    row(20, 20, 20, 0.5, ":NT"),  # other forms, paddings and batches are no measure
    row(20, 20, 20, 0.5, "+3"),
    row(20, 20, 20, 0.5, "x7"),
    row(20, 20, 20, 0.5, kind="climb"),
    json.dumps({"kind": "bench", "shape": "90x90x90", "m": 90, "n": 90, "k": 90, "us": None}),
    row(6, 6, 6, 3.0, ":NT+1"),
    row(6, 6, 7, 1.5, ":NT+1"),
]
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "walk.jsonl"
    file.write_text("\n".join(ROWS) + "\n")
    done = run(str(file))
    wanted = "8x8x8 takes 2.000 us, 2.00 times 8x9x8\n6x6x6:NT+1 takes 3.000 us, 2.00 times 6x6x7:NT+1\n4x4x4 takes 1.080 us, 1.08 times 8x9x8\n3 dents\n"
    check(done.returncode == 0 and done.stdout == wanted, "the dents of some rows are others", done)
    done = run(str(file), "--times", "1.5")
    check(done.stdout == "".join(line + "\n" for line in wanted.splitlines()[:2]) + "2 dents\n", "--times counts otherwise", done)
done = run("--walk", "TN", "7", "2-3", "9-10")
check(done.stdout == "TN 7 2 9\nTN 7 2 10\nTN 7 3 9\nTN 7 3 10\n", "a walk has other sizes", done)
done = run()
check(done.returncode == 2 and "name a file of rung bench -o, or a --walk" in done.stderr, "a call without a file", done)
print("dents of", len(ROWS), "rows")
sys.exit(failed > 0)
