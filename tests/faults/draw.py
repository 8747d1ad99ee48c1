#!/usr/bin/env python3
"""Draws lines of code for a look at unseen faults: a fault is planted at each, or at the nearest line after it where one can be.

    tests/faults/draw.py SEED COUNT [FOLDER ...]

Every line of code has the same chance: blank lines, comments and lines of braces alone have none. Beside each stand the tests that the
lists name for its file, or, in brackets, for the other files of its folder.
"""
import random
import re
import subprocess
import sys

from run import ROOT, read_lists

DRAWN = ("src/core/ src/cpu/ src/cuda/host/ src/cuda/driver/ src/cuda/families/ src/cuda/device/ src/multi/ src/lens/ shim/ lab/ cli/ "
         "tools/sass/ tools/pages/").split()


def lines_of_code(path):
    """Yields the numbers of its lines of code."""
    comment = False
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        line = line.strip()
        begins, comment = comment, (comment or line.startswith("/*")) and "*/" not in line
        if not begins and not line.startswith(("/*", "//", "#", '"""')) and re.search(r"\w", line):
            yield number


def places_in(folders, endings):
    """Returns file and number of every line of code in these folders."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, check=True, text=True).stdout.split()
    code = [name for name in listed if name.endswith(endings) and not name.endswith("tiles.inc")]
    return [(name, number) for name in code for number in lines_of_code(name)]


def tests_named(faults, folder):
    """Returns the tests that faults of this file or folder name."""
    return sorted({test for f in faults if f.path.startswith(folder) for test in f.tests})


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    places = places_in(sys.argv[3:] or DRAWN, (".c", ".h", ".inc", ".py"))
    faults = read_lists()
    for name, number in sorted(random.Random(seed).sample(places, count)):
        tests = tests_named(faults, name)
        folder = name.rsplit("/", 1)[0]
        near = sorted({test for f in faults if f.path.rsplit("/", 1)[0] == folder for test in f.tests})
        print(f"{name}:{number}: {', '.join(tests) if tests else '[' + ', '.join(near) + ']'}")
        print(f"    {(ROOT / name).read_text().splitlines()[number - 1].strip()}")
    print(f"seed {seed}: {count} of {len(places)} lines of code in {len({name for name, _ in places})} files")


if __name__ == "__main__":
    main()
