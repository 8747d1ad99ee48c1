#!/usr/bin/env python3
"""Lists of shapes are what the command in their first line draws, and results of a drawn list are of the shapes that its seed draws: a change of
lab/shapes/draw.py would leave both without an origin.

drawn.py SOURCE_DIR
"""
import pathlib
import re
import shlex
import subprocess
import sys

SOURCE = pathlib.Path(sys.argv[1])
failed = compared = 0


def draw(*words):
    done = subprocess.run([sys.executable, SOURCE / "lab/shapes/draw.py", *words], capture_output=True, text=True, check=True)
    return done.stdout


def check(holds, sentence):
    global failed, compared
    compared += 1
    if not holds:
        failed += 1
        print("FAILED:", sentence)


def as_drawn(shape):
    """Writes a shape as the results name it, "33x20x17:TNx2+4", as the lists do."""
    m, n, k, forms, batch, pad = re.fullmatch(r"(\d+)x(\d+)x(\d+)(?::([NT]{2}))?(?:x(\d+))?(?:\+(\d+))?", shape).groups()
    return f"{forms or 'NN'} {m} {n} {k}" + (f" {batch}" if batch else "") + (f" pad={pad}" if pad else "")


def lists():
    for path in sorted((SOURCE / "lab/shapes").glob("*.txt")):
        text = path.read_text()
        command = re.match(r"# lab/shapes/draw\.py (.*)\n", text)
        if command:
            check(draw(*shlex.split(command[1])) == text, f"{path.name} is not what {command[0][2:].strip()} draws")


def results():
    for path in sorted((SOURCE / "results").glob("random-shapes-*.txt")):
        text = path.read_text()
        for count, seed in re.findall(r"lab/shapes/draw\.py --count (\d+) --seed (\d+)", text):
            drawn = draw("--count", count, "--seed", seed).splitlines()[2:]
            for math in ("strict", "accurate"):
                timed = re.findall(rf"^{seed} {math} +(\S+)", text, re.M)
                check(sorted(map(as_drawn, timed)) == sorted(drawn), f"{path.name}: the shapes of seed {seed}, {math}, are not those that it draws")


lists()
results()
print(f"{compared} lists compared")
sys.exit(failed > 0 or compared < 5)
