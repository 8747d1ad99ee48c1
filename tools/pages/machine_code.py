"""Reads the main loops of compiled rungs: which registers their FFMAs read from which bank, as the machine code says."""
import os
import re
import shutil
import subprocess

FFMA = re.compile(r"FFMA R(\d+), R(\d+)(\.reuse)?, R(\d+)(\.reuse)?, R(\d+)(\.reuse)?$")
SHOWN = 24


def disassembler(nvcc):
    """Finds cuobjdump, beside nvcc or in the path."""
    return shutil.which("cuobjdump", path=os.path.join(os.path.dirname(os.path.realpath(nvcc)), "") + os.pathsep + os.environ["PATH"])


def main_loop(text, kernel):
    """Finds the loop of this kernel with the largest share of FFMAs among those that have 512: a file may have others (l23_searched has six)."""
    best, best_share, instructions, wanted = [], 0.0, [], False
    for line in text.split("\n"):
        if "Function :" in line:
            instructions, wanted = [], line.split()[-1] == kernel
        found = re.match(r"\s+/\*([0-9a-f]{4,5})\*/\s+(.*?)\s*;", line)
        if not found or not wanted:
            continue
        instructions.append((int(found[1], 16), found[2]))
        back = re.search(r"\bBRA\b.* 0x([0-9a-f]+)$", found[2])
        if back and int(back[1], 16) < instructions[-1][0]:
            body = [what for at, what in instructions if at >= int(back[1], 16)]
            ffmas = sum("FFMA" in what for what in body)
            if ffmas >= 512 and ffmas / len(body) > best_share:
                best, best_share = body, ffmas / len(body)
    return best


def reads_of(body):
    """Returns for each FFMA the registers of row, column and sum, and whether each is read or lies in the operand cache. An instruction
    keeps, for each of the first two places, the register that it marks, one of each bank."""
    cache, done = {}, []
    for what in body:
        found = FFMA.match(what)
        if not found:
            done.append(None)
            continue
        _, a, keep_a, b, keep_b, c, _ = found.groups()
        fresh = []
        for place, register, keep in ((0, int(a), keep_a), (1, int(b), keep_b)):
            fresh.append(cache.get((place, register % 2)) != register)
            cache[place, register % 2] = register if keep else None
        done.append([[int(a), fresh[0]], [int(b), fresh[1]], [int(c), True]])
    return done


def longest_run(done):
    best = at = 0
    run = []
    while at < len(done):
        end = at
        while end < len(done) and done[end]:
            end += 1
        if end - at > len(run):
            best, run = at, done[at:end]
        at = end + 1
    return done[best:best + SHOWN]


def line_of(kernel, cubin, cuobjdump):
    """Returns the record of one kernel, or None where it has no such loop."""
    said = subprocess.run([cuobjdump, "-sass", cubin], capture_output=True, text=True, check=False).stdout
    body = main_loop(said, kernel)
    done = reads_of(body)
    ffmas = [x for x in done if x]
    if not ffmas:
        return None
    total = [sum(1 for x in ffmas for register, fresh in x if fresh and register % 2 == bank) for bank in (0, 1)]
    return {"kernel": kernel, "command": f"cuobjdump -sass {kernel}.cubin", "arch": 90, "instructions": len(body), "ffmas": len(ffmas),
            "reads_even": round(total[0] / len(ffmas), 4), "reads_odd": round(total[1] / len(ffmas), 4), "shown": longest_run(done)}
