#!/usr/bin/env python3
"""Runs each verb of the command over and over, and makes one call of the system fail each time: memory, files, threads, processes, libraries;
or, where the command's line begins with "driver", one call of the GPU's driver.

    run.py [--show] BUILD_DIR [REGEX]

failing.c and driver.c beside this file make it fail. What must hold: the command ends by itself with 0, 1 or 2; with 0 it prints and writes what it
does otherwise, or says what it went without; with 1 or 2 it says why, of a driver by the error's name; no stream stays open. REGEX chooses commands.
"""
import argparse
import itertools
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "transcripts"))
from run import Bench  # noqa: E402

SECONDS = 2000

# Commands, one of each verb and of each of its ways at least; "gpu" and "driver": with the lens as the GPU.
COMMANDS = """
list
list --format json -o out
explain --device cpu 64x64x64
explain --device cpu 300x200x100:TN --format json -o out
verify --device cpu --kernel c01_naive --case NN:5x7x3:row,pad=1 -o out
verify --device cpu --via ranks --math strict --no-vendor --case NN:17x33x20:col,beta=0.5
verify --device cpu --bits bits
bench --device cpu --threads 1 --budget-ms 1 --against= 8x8x8 -o out
bench --device cpu --threads 2 --budget-ms 1 --against= --shapes shapes
bench --gpus cpu2 --repeats 1 8x8x8 --timeline out
fuzz --device cpu --calls 3 --size 20
explain --device cpu --data signed 64x64x64
climb --device cpu --size 16 --kernel c01_naive --against= -o out
reduce --device cpu --quick --budget-ms 1 1000 -o out
report rows -o out
doctor
version --format json
help lens
run -o out -- true
learn
learn check 01 solution.cu
learn 01
learn hint 01
learn reset 01
learn solution 01 --now
gpu lens l01_naive 16x16x16
gpu lens l01_naive 16x16x16 --svg out
gpu lens l01_naive 16x16x16 --html out
gpu verify --device gpu --no-vendor --kernel l01_naive --case NN:5x7x3:row,pad=1
gpu tune 8x8x8 --budget-ms 1 --candidates 1
gpu profile --no-counters l01_naive 16x16x16
gpu profile l01_naive 1024x1024x1024 --counters counters
gpu bench --device gpu --budget-ms 1 --against= 8x8x8
gpu explain --gpu h200 64x64x64
driver verify --device gpu --no-vendor --kernel l01_naive --case NN:5x7x3:row,pad=1
driver verify --device gpu --math strict --no-vendor --case NN:17x33x20:col,beta=0.5
driver verify --device gpu --via host --math strict --no-vendor --case TN:17x33x20:col
driver verify --device gpu --math accurate --no-vendor --case NN:40x33x600:row,bias=row
driver bench --device gpu --budget-ms 1 --against= 8x8x8
driver reduce --device gpu --quick --budget-ms 1 1000
driver profile --launch l01_naive,l02_coalesced 16x16x16
driver profile --launch r02_shared 1000
driver tune 8x8x8 --budget-ms 1 --candidates 1 --dry-run
driver explain --device gpu --math strict --data signed 16x16x16
driver fuzz --device gpu --calls 2 --size 20
driver bench --gpus 1 --repeats 1 --no-peer 8x8x8
driver doctor
""".strip().splitlines()

def rungs():
    """Returns a command for one rung of each launcher of the GPU's ladder."""
    rows = (HERE.parent.parent / "src/ladder/gpu/rows.inc").read_text()
    first = {launch: name for name, launch in reversed(re.findall(r'^RUNG_CUDA\((\w+),[^)]*?\.launch = "(\w+)"', rows, re.M))}
    return [f"driver verify --device gpu --no-vendor --kernel {name} --case NN:40x33x70:row,beta=0.5" for name in first.values()]


def families():
    """Returns a command for the first tile of each family, on operands that its copies or its guard are for."""
    cases = {"vector": "NN:70x1x300:row,beta=0.5", "lines": "NN:40x33x6:row,beta=0.5"}
    firsts = {file.parent.name: re.search(r"^RUNG_TILE\((\w+)", file.read_text(), re.M)[1] for file in sorted(HERE.parent.parent.glob("src/cuda/families/*/tiles.inc"))}
    return [f"driver verify --device gpu --no-vendor --kernel {name} --case {cases.get(family, 'NN:40x33x70:row,pad=1,beta=0.5')}" for family, name in firsts.items()]


# Words of which one is in every sentence that says what a command went without, or why it failed.
REASONS = re.compile(r"no memory|[Cc]annot|no such|not |without|left out|failed|Too many|Input/output|Permission|out of|unavailable|no |was ignored")


# What sentences call the driver's functions.
NAMES = {symbol: name for name, symbol in re.findall(r'X\((\w+), "(\w+)"', (HERE.parent.parent / "src/cuda/driver/driver.h").read_text())}


class Command:
    """Is a command of the table, with what it prints and writes when nothing fails."""

    def __init__(self, bench, words):
        self.driver = words.startswith("driver ")
        self.gpu = words.startswith("gpu ") or self.driver
        self.words = words.removeprefix("gpu ").removeprefix("driver ").split()
        self.bench = bench
        self.normal = self.run(0)

    def run(self, number, alone=False):
        """Returns exit code, output, complaints, what was written, what failed, how many calls counted, how many streams stayed open, and the user's files."""
        bench, says, out = self.bench, self.bench.root / "says", self.bench.work / "out"
        for file in (says, out):
            file.unlink(missing_ok=True)
        shutil.rmtree(bench.work / "home", ignore_errors=True)
        bench.set_up(["gpu"] if self.gpu else [])
        still, tests = f"{bench.build}/tests/libstill.so", bench.build / "tests"
        fails = {"LD_PRELOAD": still, "RUNG_LIBCUDA": str(tests / "libfailing_driver.so"), "FAILING_DRIVER": str(number)} if self.driver else \
            {"LD_PRELOAD": f"{tests}/libfailing.so:{still}", "FAILING": str(number), **({"FAILING_ALONE": "1"} if alone else {})}
        try:
            done = subprocess.run([bench.build / "bin" / "rung", *self.words], cwd=bench.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                                  env={**bench.environment(), **fails, "FAILING_SAYS": str(says)})
        except subprocess.TimeoutExpired:
            return None
        failed, counted, left_open = says.read_text().split() if says.exists() else ("?", 0, 0)
        written = out.read_text(errors="backslashreplace") if out.exists() else ""
        kept = "".join(f"{file.name}: {file.read_text(errors='backslashreplace')}" for file in sorted((bench.work / "home").rglob("*")) if file.is_file())
        text = [bench.masked(each.decode(errors="backslashreplace")) for each in (done.stdout, done.stderr)]
        return done.returncode, text[0], text[1], bench.masked(written), failed, int(counted), int(left_open), bench.masked(kept)

    def judge(self, number, alone=False):
        """Returns what is wrong where this call fails, None where nothing is, and the call's name."""
        result = self.run(number, alone)
        if result is None:
            return f"it did not end within {SECONDS} s", "?"
        code, out, complaints, written, failed, _, left_open, kept = result
        if code not in (0, 1, 2):
            return f"exit code {code}", failed
        if failed == "?":
            return "it ended without an exit", failed
        if left_open:
            return f"{left_open} streams stay open", failed
        if code and not re.search(r"^rung: |FAIL", complaints + out, re.M):
            return f"exit code {code} without a sentence: {complaints!r}", failed
        if code == 0 and re.search(f"^rung: {self.words[0]}: ", complaints, re.M):
            return f"exit code 0 beside the sentence of a failure: {complaints!r}", failed
        if re.search(r"^rung: .*: *$", complaints, re.M):
            return f"a sentence without an end: {complaints!r}", failed
        call = r"cuMemAlloc\w*" if failed.startswith("cuMemAlloc") else f"({failed.removesuffix('_v2')}|{NAMES.get(failed)})"
        if code and self.driver and not re.search(call + " (failed:|returned) CUDA_ERROR_", complaints + out):
            return f"exit code {code} without the driver's call and error: {complaints!r}", failed
        if "--timeline" in self.words and failed == "realloc":
            written = self.normal[3]  # a trace has as many spans as it has memory for
        if code == 0 and without_names(out + written) != without_names(self.normal[1] + self.normal[3]) and not REASONS.search(complaints + out):
            return f"another output without a word: {complaints!r}" + difference(self.normal[1] + self.normal[3], out + written), failed
        if code == 0 and kept != self.normal[7] and not REASONS.search(complaints):
            return f"other files of the user's without a word: {complaints!r}" + difference(self.normal[7], kept), failed
        if failed == "nothing" and not alone and not self.driver:  # it was a call of a process that the command has started
            return self.judge(number, True)
        return None, failed


def without_names(text):
    """Takes out what a command may not know of the machine: the CPU's name, which then is CPU, clocks, which are left out, and where the documents lie."""
    return re.sub(r" \(in [^)\n]*\)|\b1530\b|\s+", "", text.replace("Still CPU", "CPU"))


def difference(normal, now):
    """Returns the first lines that are not the same."""
    pairs = itertools.zip_longest(normal.splitlines(), now.splitlines(), fillvalue="")
    return "".join(f"\n    - {old}\n    + {new}" for old, new in pairs if old != new)[:500]


def options():
    parser = argparse.ArgumentParser(description="makes calls of the system fail, one at a time, in every verb")
    parser.add_argument("--show", action="store_true", help="say of each call what became of it")
    parser.add_argument("build", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("regex", nargs="?", default="")
    return parser.parse_args()


def prepare(bench):
    """Writes the files that commands read."""
    (bench.work / "shapes").write_text("NN 9 7 5\nTN 16 8 4\n")
    (bench.work / "bits").write_text("c01_naive NN:5x7x3:row\nc01_naive NN:6x7x3:row\n")
    shutil.copy(HERE.parent / "transcripts" / "results.jsonl", bench.work / "rows")
    shutil.copy(HERE.parent.parent / "results" / "counters-1024-h200.jsonl", bench.work / "counters")
    course = HERE.parent.parent / "learn"
    shutil.copy(sorted(course.glob("e01*/solution.cu"))[0], bench.work / "solution.cu")


def main():
    o = options()
    bench = Bench(o.build)
    tried, bad, left_out = 0, 0, set()
    try:
        prepare(bench)
        for words in COMMANDS + rungs() + families():
            if not re.search(o.regex, words):
                continue
            lacking = [reason for reason in (bench.lacks("LENS"),) if reason and re.match("gpu|driver|learn", words)]
            if lacking:
                left_out.update(lacking)
                continue
            command = Command(bench, words)
            counted = command.normal[5]
            if counted == 0 or command.normal[0] or command.normal[6]:
                print(f"FAILED: rung {words}: exit code {command.normal[0]}; of {counted} calls that could fail {command.normal[6]} leave a stream open")
                bad += 1
            for number in range(1, counted + 1):
                wrong, failed = command.judge(number)
                tried += 1
                if wrong or o.show:
                    print(f"{'FAILED: ' if wrong else ''}rung {words}: {failed}, call {number} of {counted}: {wrong}", flush=True)
                bad += wrong is not None
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)
    for reason in left_out:
        print(f"left out: commands of the lens, {reason}")
    print(f"{tried} calls failed one at a time, {bad} of them end badly")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
