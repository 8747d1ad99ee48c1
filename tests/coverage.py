#!/usr/bin/env python3
"""Says which lines no test has reached, after ./dev test --coverage: of C, and of device code, which ran under the lens.

    tests/coverage.py BUILD_FOLDER [--lines PATH_BEGINNING]

Prints a line a folder: lines of code, how many ran, the share. With --lines, the lines that did not run in sources whose path
begins so. A process that is killed leaves no counts: what only such ones reach looks unreached.
Threads may count a line at the same moment and lose one of the counts; whether it ran is right all the same, and asked for alone.
The preset says -fno-ivopts: GCC would let a loop count by such a counter instead of its own index, which other threads change meanwhile.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

SOURCES = ("src/", "lab/", "cli/", "shim/")
ROOT = pathlib.Path(__file__).resolve().parent.parent


def counts_of(data):
    """Yields (file, line, times) of what one object file counted."""
    run = subprocess.run(["gcov", "--json-format", "--stdout", data], capture_output=True, check=False)
    found = []
    for text in run.stdout.splitlines():
        try:
            files = json.loads(text)["files"]
        except ValueError:
            continue
        for file in files:
            name = os.path.normpath(file["file"])
            name = os.path.relpath(name, ROOT) if os.path.isabs(name) else name
            if name.startswith(SOURCES):
                found += [(name, line["line_number"], line["count"]) for line in file["lines"]]
    return found


def ranges(numbers):
    """Joins neighbours: 1 2 3 7 becomes 1-3, 7."""
    runs = []
    for n in sorted(numbers):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in runs)


def main():
    parser = argparse.ArgumentParser(description="lines that no test has reached")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--lines", help="name the lines of the sources whose path begins so")
    o = parser.parse_args()
    data = sorted(o.build.rglob("*.gcno"))
    if not data:
        sys.exit(f"{o.build} holds no counts: run ./dev test --coverage")
    times = collections.defaultdict(lambda: collections.defaultdict(int))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(counts_of, data):
            for name, line, count in found:
                times[name][line] += count
    folders = collections.defaultdict(lambda: [0, 0])
    for name, lines in times.items():
        ran = sum(count > 0 for count in lines.values())
        for folder in {os.path.dirname(name), "all"}:
            folders[folder][0] += len(lines)
            folders[folder][1] += ran
    print(f"{'folder':34} {'lines':>6} {'ran':>6} {'share':>6}")
    for folder, (lines, ran) in sorted(folders.items()):
        print(f"{folder:34} {lines:6} {ran:6} {100 * ran / lines:5.1f}%")
    for name, lines in sorted(times.items()):
        left = [line for line, count in lines.items() if not count]
        if o.lines is not None and name.startswith(o.lines) and left:
            print(f"{name}: {ranges(left)}")


if __name__ == "__main__":
    main()
