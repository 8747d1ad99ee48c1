#!/usr/bin/env python3
"""Every option of every verb does something or is refused, in each situation of a verb that the table below has.

    idle_options.py BUILD_DIR [--show]

What is refused in a situation is told there, word for word. Any other option of the verb's help must change what is printed, the exit code or what is
written, in one of the situations at least; those in ANYWAY ask for what is so anyway. The commands run on a machine that stands still
(transcripts/README.md), so that nothing else differs. --show prints what each option did.
"""
import functools
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "transcripts"))
from run import Bench  # noqa: E402

SEVERAL = {"bench --X does nothing over several ranks: leave it out, or --gpus and --distributed":
           "device against kernel threads layout data pad beta graph cold no-verify budget-ms"}
OWN = {"--tile, --threads, --shared and --symbol describe a kernel of your own: they need --file": "tile threads shared symbol"}
SHOWN = "sh -c 'env | grep -E \"RUNG|LD_\" | sort'"

# A verb, what the command has, what it needs, or that nothing but refusals is tried, and which options are refused, by sentence.
SITUATIONS = [
    ("list", "", "", {}),
    ("bench", "8x8x8 --device cpu --against= --budget-ms 1", "", {
        "bench --X does nothing on one device: it is for --gpus and --distributed": "operands grid block panels repeats memory-mib no-peer timeline",
        "bench --X does nothing on a CPU": "graph"}),
    ("bench", "9x20x8 --gpus cpu2", "", {**SEVERAL, "bench --X does nothing without host operands": "memory-mib"}),
    ("bench", "8x8x8 --gpus cpu2 --operands host", "", {**SEVERAL, "bench --X does nothing without distributed operands": "block grid"}),
    ("bench", "8x8x8 --gpus cpu2 --operands parts", "refusals", {
        "bench --X does nothing without distributed operands": "block", "bench --X does nothing without host operands": "memory-mib",
        "parts have no --X: it is drawn of distributed and of host operands": "timeline"}),
    ("bench", "8x8x8 --distributed", "refusals", {
        **SEVERAL, "bench --X does nothing beside --distributed, which counts its ranks itself": "gpus",
        "bench --X does nothing without host operands": "memory-mib", "--distributed cuts k as RUNG_MULTI_PANEL says: --X is for --gpus": "panels"}),
    ("verify", "--device cpu --no-vendor --case NN:3x4x5:row", "", {"verify --X does nothing beside --case": "quick pairs huge"}),
    ("verify", "--device cpu --bits bits.txt", "refusals", {
        "verify --X does nothing beside --bits": "kernel math quick pairs huge case repeat via wrong-calls no-vendor verbose format o"}),
    ("verify", "--device cpu --wrong-calls", "refusals", {
        "verify --X does nothing beside --wrong-calls": "kernel math quick pairs huge case repeat workspace-mb via no-vendor"}),
    ("verify", "--device cpu --no-vendor --via blas", "refusals", {
        "verify --X does nothing beside --via, where the library chooses": "kernel",
        "verify --X does nothing beside --via, which has its own cases": "huge"}),
    ("fuzz", "--device cpu --calls 12 --size 5 --threads 1", "", {}),
    ("fuzz", "--device cpu --calls 2 --via blas", "refusals", {"fuzz --X does nothing beside --via, where the library chooses": "kernel"}),
    ("reduce", "100 --device cpu --quick --budget-ms 1", "", {}),
    ("explain", "512x512x512 --device cpu", "", {"explain --X does nothing on a CPU": "gpu"}),
    ("explain", "8x8x8 --device gpu --format csv", "refusals", {
        "explain --X does nothing as csv or json beside --device: they hold the plan alone": "gpu",
        "explain --X does nothing as csv or json, which hold the plan alone": "data"}),
    ("explain", "8x8x8:NNx2 --device gpu", "refusals", {"explain --X does nothing for a batch beside --device: floors are of one product": "gpu"}),
    ("explain", "l01_naive", "refusals", {"explain --X does nothing where a kernel itself is explained": "device math kernel layout threads pad data"}),
    ("explain", "c01_naive", "refusals", {"explain --X does nothing where a kernel of the CPU is explained": "device math kernel layout threads pad data gpu"}),
    ("doctor", "", "", {}),
    ("version", "", "", {}),
    ("tune", "8x8x8 --times times.jsonl", "refusals", {"tune --X does nothing beside --times, which prints no rows": "format o"}),
    ("report", "results.jsonl", "report", {}),
    ("learn", "", "", {"learn --X does nothing for the list": "watch html gpu now seed"}),
    ("learn", "01", "refusals", {"learn --X does nothing for an exercise's text": "watch html gpu now seed format o"}),
    ("learn", "hint 01", "refusals", {"learn --X does nothing for hint": "watch html gpu now seed format o"}),
    ("learn", "check 01", "refusals", {"learn --X does nothing for check": "now"}),
    ("learn", "compare 01", "refusals", {"learn --X does nothing for compare": "watch html gpu now"}),
    ("learn", "solution 01", "", {"learn --X does nothing for solution": "watch html gpu seed format o"}),
    ("learn", "reset 01", "refusals", {"learn --X does nothing for reset": "watch html gpu now seed format o"}),
    ("learn", "prove", "refusals", {"learn --X does nothing for prove": "watch html gpu now"}),
    ("run", f"-- {SHOWN}", "", {"run --X does nothing without --report or --report-file": "time compare"}),
    ("run", f"--report -- {SHOWN}", "", {}),
    ("run", f"--only blas -- {SHOWN}", "", {"run --X does nothing beside --only blas": "math time compare"}),
    ("lens", "l02_coalesced 160x96x5", "LENS", OWN),
    ("lens", "l02_coalesced 160x96x5 --all", "refusals", {**OWN, "lens --X does nothing beside --all": "blocks"}),
    ("lens", "r02_shared 1x100x1", "LENS", {**OWN, "lens --X does nothing for a sum": "alpha beta pad"}),
    ("lens", "--check l01_naive", "refusals", {
        "lens --X does nothing beside --check": "file tile threads shared symbol svg html pictures alpha beta pad offset blocks all patience"}),
    ("lens", "--pictures . l01_naive", "refusals", {
        "lens --X does nothing beside --pictures": "file tile threads shared symbol svg html alpha beta pad offset blocks all patience",
        "lens --X does nothing beside --pictures: it prints no rows": "format o"}),
    ("profile", "l01_naive 16x16x16 --counters counters.jsonl", "refusals", {"profile --X does nothing beside --counters": "no-counters"}),
    ("profile", "--ports", "refusals", {"profile --X does nothing beside --ports": "counters no-counters launch", "--ports takes no kernel": "ladder"}),
    ("profile", "--launch l01_naive", "refusals", {"profile --X does nothing beside --launch": "ladder counters no-counters format o"}),
    ("profile", "c01_naive", "refusals", {"profile --X does nothing for a rung of the CPU": "ladder no-counters"}),
]

# What an option is given: for all verbs, or for one.
VALUES = {
    "-o": "rows.jsonl", "--against": "blis", "--alpha": "0.3", "--beta": "1", "--bits": "bits.txt", "--block": "3", "--blocks": "1", "--budget-ms": "50",
    "--calls": "3", "--candidates": "1", "--case": "TN:3x4x5:row", "--counters": "counters.jsonl", "--data": "normal", "--device": "gpu", "--file": "x.cu",
    "--format": "json", "--from": "5", "--gpu": "a100", "--gpus": "cpu1", "--grid": "2x1", "--html": "page.html", "--jobs": "2",
    "--kernel": "c02_loop_order", "--launch": "l01_naive", "--layout": "row", "--math": "accurate", "--memory-mib": "1", "--offset": "1",
    "--only": "blas", "--operands": "host", "--pad": "3", "--panels": "2", "--patience": "1", "--pictures": ".", "--repeat": "3", "--repeats": "3",
    "--report": "page.html", "--report-file": "report.txt", "--role": "ladder", "--seconds": "1", "--seed": "7", "--shapes": "9x9x9", "--shared": "64",
    "--size": "9", "--svg": "x.svg", "--symbol": "x", "--threads": "2", "--tile": "8x8", "--timeline": "line.json", "--via": "blas", "fuzz --via": "ranks",
    "--workspace-mb": "1", "--times": "times.jsonl", "fuzz --math": "fast", "list --device": "cpu", "run --math": "fast",
}

# A climb takes long, and each of its options does something. What makes another situation of it, or takes long; what asks for what is so anyway, or shows only where somebody waits, fails or lacks memory.
ELSEWHERE = {"bench": "gpus distributed", "verify": "bits wrong-calls via quick pairs huge", "lens": "check pictures file",
             "explain": "gpu", "profile": "ports launch ladder counters", "reduce": "kernel", "learn": "watch html gpu seed",
             "tune": "device shapes math candidates budget-ms graph dry-run times"}
ANYWAY = {"bench": "cold no-peer memory-mib repeats no-verify block", "verify": "no-vendor repeat threads workspace-mb",
          "fuzz": "seconds jobs threads math via from", "lens": "patience all", "run": "no-audit time compare", "profile": "no-counters"}

FILES = {"bits.txt": "* NN:8x8x8:row\n", "counters.jsonl": ""}


@functools.cache
def options_of(bench, verb):
    """Returns name and kind of each option in a verb's help."""
    said = subprocess.run([bench.build / "bin" / "rung", "help", verb], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^  (-\S+?)(?:, --\S+)?(?: ([A-Z]+))? ", said, re.M)
    return [(option, kind) for option, kind in found if option not in ("-h", "-V")]


def outcome(bench, command):
    """Returns what a command prints, with its exit code, and what it leaves behind."""
    before = set(bench.work.iterdir())
    lines, made = bench.run(command, 0), {}
    for path in set(bench.work.iterdir()) - before:
        made[path.name] = path.stat().st_size if path.is_file() else 0
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return [re.sub(r"/proc/\d+/", "/proc/<process>/", line) for line in lines], made


def refusal(bench, words):
    """Returns what a command says that is refused before anything runs, and what it wrote; nothing where it is not refused."""
    before = set(bench.work.iterdir())
    said = subprocess.run([bench.build / "bin" / "rung", *words], cwd=bench.work, env=bench.environment(), capture_output=True, text=True)
    made = set(bench.work.iterdir()) - before
    for path in made:
        path.unlink()
    written = "".join(f", and writes {path.name}" for path in made)
    return said.stderr.removeprefix("rung: ").rstrip("\n") + written if said.returncode == 2 else ""


def given_to(verb, words, option, kind):
    """Returns the words with the option behind them, or before the program that `run` starts, in place of the same one with another value."""
    words = [word for word in words if not word.startswith(f"{option}=")]
    value = VALUES.get(f"{verb} {option}", VALUES.get(option)) if kind else ""
    if value is None:
        sys.exit(f"VALUES has none for {verb} {option}")
    more = [option] + ([value] if kind else [])
    at = words.index("--") if "--" in words else len(words)
    return words[:at] + more + words[at:]


class Judge:
    """Tries the options of a verb in its situations. What has done something in one is not run again in the others."""

    def __init__(self, bench, show):
        self.bench, self.show, self.tried, self.wrong, self.seen, self.idle = bench, show, 0, 0, set(), {}

    def tell(self, command, option, did, right):
        self.tried += 1
        self.wrong += not right
        if self.show or not right:
            print(f"{'' if right else 'FAILED: '}rung {shlex.join(command)}: {option} {did}")

    def situation(self, verb, words, need, refused):
        plain, words = None, shlex.split(words)
        command = [verb, *words]
        for option, kind in options_of(self.bench, verb):
            name = option.lstrip("-")
            due = next((sentence for sentence, names in refused.items() if name in names.split()), None)
            if due:
                tried = given_to(verb, words, option, kind)
                said = refusal(self.bench, [verb, *tried])
                if ("-o", "FILE") in options_of(self.bench, verb) and "o" not in " ".join(refused.values()).split():
                    said = said and refusal(self.bench, [verb, *given_to(verb, tried, "-o", "FILE")]) # nothing is written to either
                self.tell(command, option, f"says: {said}", said == due.replace("--X", option))
            elif need != "refusals" and (verb, name) not in self.seen and name not in ELSEWHERE.get(verb, "").split() and option not in command:
                plain = plain or outcome(self.bench, f"rung {shlex.join(command)}")
                now = outcome(self.bench, f"rung {shlex.join([verb, *given_to(verb, words, option, kind)])}")
                if now == plain or now[0][-1:] == ["= 2"]:
                    self.idle[verb, name] = command, option, f"does nothing: {now[0][-1:]}"
                else:
                    self.seen.add((verb, name))
                    self.tell(command, option, "does something", True)

    def end(self):
        for (verb, name), what in self.idle.items():
            if (verb, name) not in self.seen:
                self.tell(*what, name in ANYWAY.get(verb, "").split())


def main():
    bench = Bench(pathlib.Path(sys.argv[1]).resolve())
    judge = Judge(bench, "--show" in sys.argv)
    try:
        for name, text in FILES.items():
            (bench.work / name).write_text(text)
        shutil.copy(HERE / "transcripts" / "results.jsonl", bench.work)
        for verb, words, need, refused in SITUATIONS:
            lacking = bench.lacks(need) if need not in ("", "refusals") else None
            if lacking:
                print(f"left out: {verb} {words}, {lacking}")
            else:
                judge.situation(verb, words, need, refused)
        judge.end()
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)
    print(f"{judge.tried} options tried, {judge.wrong} of them neither do anything nor are refused as they should be")
    return judge.wrong > 0


if __name__ == "__main__":
    sys.exit(main())
