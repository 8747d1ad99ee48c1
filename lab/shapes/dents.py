#!/usr/bin/env python3
"""Finds products that take longer than larger ones, which no peer is needed for: a wrong choice shows as a dent in a walk of sizes.

    python3 lab/shapes/dents.py --walk NN 60-300 40 300 >walk.txt
    build/release/bin/rung bench walk.txt --device cpu --threads 1 --against '' --budget-ms 5 --no-verify -o walk.jsonl
    python3 lab/shapes/dents.py walk.jsonl

A walk is a list of all sizes from the first to the last, where a size is two of them. A dent is a product that takes at least
--times (1.08) as long as one of the same file, form, batch and padding none of whose sizes is smaller; the deepest come first. What
is left in a quiet run has a reason: rows of C that begin in the middle of cache lines cost a few steps of k, a tile that is not full costs one.
"""

import argparse
import json
import re


def walk(forms, *sizes):
    ranges = [range(int(first), int(last or first) + 1) for first, _, last in (size.partition("-") for size in sizes)]
    for m in ranges[0]:
        for n in ranges[1]:
            for k in ranges[2]:
                print(forms, m, n, k)


def timed(file):
    """Returns the least time of each shape, by what the products that it is compared with have in common."""
    kinds = {}
    for line in file:
        row = json.loads(line)
        if row.get("kind") != "bench" or not row.get("us"):
            continue
        kind = re.sub(r"^\d+x\d+x\d+", "", row["shape"])
        shapes = kinds.setdefault(kind, {})
        sizes = (row["m"], row["n"], row["k"])
        shapes[sizes] = min(row["us"]["median"], shapes.get(sizes, float("inf")))
    return kinds


def dents(shapes, times):
    for sizes, us in shapes.items():
        larger = [(other, s) for s, other in shapes.items() if s != sizes and all(x >= y for x, y in zip(s, sizes))]
        if larger and us >= times * min(larger)[0]:
            yield us / min(larger)[0], sizes, us, min(larger)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--walk", nargs=4, metavar=("FORMS", "M", "N", "K"), help="print the list of a walk, such as NN 60-300 40 300")
    parser.add_argument("--times", type=float, default=1.08)
    parser.add_argument("results", nargs="?", help="what rung bench -o has written")
    args = parser.parse_args()
    if args.walk:
        walk(*args.walk)
        return
    if not args.results:
        parser.error("name a file of rung bench -o, or a --walk")
    with open(args.results) as file:
        found = [(*dent, kind) for kind, shapes in timed(file).items() for dent in dents(shapes, args.times)]
    for ratio, sizes, us, other, kind in sorted(found, reverse=True):
        print(f"{'x'.join(map(str, sizes))}{kind} takes {us:.3f} us, {ratio:.2f} times {'x'.join(map(str, other))}{kind}")
    print(f"{len(found)} dents")


if __name__ == "__main__":
    main()
