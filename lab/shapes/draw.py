#!/usr/bin/env python3
"""Draws shapes at random, for lists that nobody has seen before a measurement:

    python3 lab/shapes/draw.py --count 1000 --seed N >shapes.txt
    build/release/bin/rung bench shapes.txt --device gpu --against cublas

    python3 lab/shapes/draw.py --count 60 --seed N --sides 3000 >cpu.txt

Squares, any three sizes, one small size, long k, short k, panels, vectors, batches; all transposes, a third with padded rows.
The same seed draws the same list. With --sides the three sizes are drawn evenly by their logarithms, from 1 to that.
None has more than 2^39 multiplications (with --sides 2^32) or 2^28 elements in a matrix.
"""

import argparse
import random

MOST_WORK, MOST_WORK_OF_SIDES, MOST_ELEMENTS = 2**39, 2**32, 2**28


def size(draw, least, most):
    """Draws a size, as often between 1 and 2 as between 1024 and 2048. Half of them are whole eights, as models have them."""
    value = int(least * (most / least) ** draw.random())
    return value if draw.random() < 0.5 or value < 8 else value // 8 * 8


def sizes(draw, kind):
    if kind == "square":
        n = size(draw, 64, 4096)
        return n, n, n, 1
    if kind == "any":
        return size(draw, 8, 8192), size(draw, 8, 8192), size(draw, 8, 8192), 1
    if kind == "small":
        three = [size(draw, 1, 64), size(draw, 32, 16384), size(draw, 32, 8192)]
        draw.shuffle(three)
        return (*three, 1)
    if kind == "long":
        return size(draw, 8, 512), size(draw, 8, 512), size(draw, 4096, 131072), 1
    if kind == "short":
        return size(draw, 256, 16384), size(draw, 256, 16384), size(draw, 1, 128), 1
    if kind == "panel":
        two = [size(draw, 8192, 131072), size(draw, 16, 512)]
        draw.shuffle(two)
        return (*two, size(draw, 16, 512), 1)
    if kind == "vector":
        two = [1, size(draw, 64, 32768)]
        draw.shuffle(two)
        return (*two, size(draw, 64, 32768), 1)
    return size(draw, 8, 256), size(draw, 8, 256), size(draw, 8, 256), size(draw, 16, 4096)


KINDS = ["square", "any", "any", "any", "small", "small", "long", "short", "panel", "vector", "batch"]


def shape(draw, sides):
    while True:
        m, n, k, batch = (*(int((sides + 1) ** draw.random()) for _ in "mnk"), 1) if sides else sizes(draw, draw.choice(KINDS))
        if m * n * k * batch <= (MOST_WORK_OF_SIDES if sides else MOST_WORK) and max(m * n, m * k, n * k) * batch <= MOST_ELEMENTS:
            break
    forms = draw.choice("NT") + draw.choice("NT")
    pad = draw.choice([1, 3, 4, 16]) if draw.random() < 0.33 else 0
    return f"{forms} {m} {n} {k}" + (f" {batch}" if batch > 1 else "") + (f" pad={pad}" if pad else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--sides", type=int, default=0)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    print(f"# lab/shapes/draw.py --count {args.count} --seed {args.seed}" + (f" --sides {args.sides}" if args.sides else ""))
    print("# NT m n k [batch] [pad=P], column-major as in BLAS; NT: a letter for A and one for B, N as it lies, T transposed")
    for _ in range(args.count):
        print(shape(draw, args.sides))


if __name__ == "__main__":
    main()
