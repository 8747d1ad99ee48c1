#!/usr/bin/env python3
"""Runs the commands of transcripts and compares all that they print with what stands there: each difference is a failure.

    run.py [--write] BUILD_DIR [NAME ...]

README.md beside this file says what a transcript looks like. --write puts what the commands print into the transcripts.
"""
import argparse
import difflib
import fcntl
import functools
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
SECONDS = 2000

# The machine that the commands believe to be on: four CPUs whose files /proc and /sys have.
MACHINE = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Still CPU\nflags\t\t: avx2 fma\n",
    "proc/meminfo": "MemTotal:       16000000 kB\nMemFree:        9000000 kB\nMemAvailable:   12000000 kB\n",
    "proc/self/cgroup": "0::/\n",
    "sys/fs/cgroup/cpu.max": "max 100000\n",
    "usr/share/javascript/chart.js/chart.min.js": "/* charts */\n",
}
for number, (level, kind, size) in enumerate([(1, "Data", "32K"), (1, "Instruction", "32K"), (2, "Unified", "512K"), (3, "Unified", "16384K")]):
    for name, word in (("level", level), ("type", kind), ("size", size)):
        MACHINE[f"sys/devices/system/cpu/cpu0/cache/index{number}/{name}"] = f"{word}\n"


PEERS = ["OPENBLAS", "OPENBLAS64", "MKL", "AOCL", "BLIS"]


class Bench:
    """Is the place where the commands run: a folder of its own, names for what is there, and what they may need."""

    def __init__(self, build):
        self.build, self.work = build, pathlib.Path(tempfile.mkdtemp(prefix="rung-transcripts-"))
        self.root = self.work / ".machine"
        for name, text in MACHINE.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        for name in ("bin", "lib"):
            (self.root / name).mkdir()
        rung = build / "bin" / "rung"
        still = build / "tests" / "libstill.so"
        start = self.root / "bin" / "rung"
        start.write_text(f'#!/bin/sh\nLD_PRELOAD="{still}${{LD_PRELOAD:+:$LD_PRELOAD}}" exec "{rung}" "$@"\n')
        start.chmod(0o755)
        (self.root / "bin" / "show").symlink_to(HERE / "show.py")
        tests = build / "tests"
        self.names = {"LENS": build / "lib" / "rung-lens" / "librung_lens.so", "WRONG": tests / "libjudge_wrong.so",
                      "ZEROS": tests / "libpeer_zeros.so", "STILL_GPU": tests / "libstill_gpu.so", "BLAS": tests / "shim" / "program_blas",
                      "IMAGES": tests / "still_images", "TESTS": HERE.parent, "SOURCE": SOURCE}
        self.names |= {name: tests / f"libstill_{name.lower()}.so" for name in PEERS}
        said = subprocess.run([rung, "version", "--format", "json"], capture_output=True, text=True, check=True).stdout
        self.commit = json.loads(said)["commit"]
        self.features = " ".join(self.cpu_features())
        self.gpu = self.peers = False

    @staticmethod
    def cpu_features():
        flags = re.search(r"^flags\s*:(.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
        flags = flags[1].split() if flags else []
        return [word for flag, word in (("avx2", "AVX2"), ("fma", "FMA"), ("avx512f", "AVX-512")) if flag in flags]

    def set_up(self, what):
        """Puts stand-ins where the commands look for a GPU's libraries and for a CPU's peers, or takes them away."""
        self.gpu, self.peers = "gpu" in what, "peers" in what
        for name in ("libnvidia-ml.so.1", "libcublas.so.13", "libcublasLt.so.13"):
            link = self.root / "lib" / name
            link.unlink(missing_ok=True)
            if self.gpu:
                link.symlink_to(self.names["STILL_GPU"])

    def environment(self):
        kept = {name: os.environ[name] for name in ("TMPDIR", "RUNG_LENS_CXX", "LD_LIBRARY_PATH") if name in os.environ}
        return {**kept, **{name: str(path) for name, path in self.names.items()}, "HOME": str(self.work / "home"),
                "PATH": f"{self.root}/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "STILL_ROOT": str(self.root),
                "RUNG_CPU_FEATURES": "avx2", "RUNG_CPU_PLAN": "emerald", "RUNG_LIBCUDA": "/nowhere/libcuda.so", "RUNG_DEVICE_IMAGES": "/nowhere", "RUNG_MPI": "/nowhere/librung_mpi.so",
                "RUNG_LENS_SMS": "3", "TERM": "xterm", **self.stand_ins()}

    def stand_ins(self):
        named = {"RUNG_LIBCUDA": self.names["LENS"], "RUNG_CUB": self.names["STILL_GPU"]} if self.gpu else {}
        if self.peers:
            named |= {f"RUNG_{'OPENBLAS_PYPI' if name == 'OPENBLAS64' else name}": self.names[name] for name in PEERS}
        return {name: str(path) for name, path in named.items()}

    @functools.cache
    def lacks(self, need):
        """Returns why a transcript's part cannot be run here; None where it can."""
        if need == "report":
            said = subprocess.run([self.build / "bin" / "rung", "report", "/dev/null"], capture_output=True, text=True).stderr
            return "no jansson (libjansson-dev)" if "this build has no report" in said else None
        if need == "avx2":
            return None if {"AVX2", "FMA"} <= set(self.cpu_features()) else "a CPU without AVX2"
        if need not in self.names:
            sys.exit(f"'{need}' is nothing that a transcript can need")
        return None if self.names[need].exists() else f"no {self.names[need].name} in this build"

    def masked(self, text):
        """Gives what differs from machine to machine, and nothing else, a name."""
        text = re.sub(r"rung: compiling \S+ for the lens, this once\n", "", text)
        for path, name in ((self.work, "<work>"), (self.build, "<build>"), (SOURCE, "<source>")):
            # A path that is /rung stands in neither data/rung nor /rung-learn; -I may stand before one.
            text = re.sub(r"(?<![a-z0-9>.-])" + re.escape(str(path)) + r"(?![\w-])", name, text)
        # Where it stands: without git the commit is the word "unknown", which others print too.
        for around in ('"commit": "%s"', 'commit: "%s"', "(%s)", ",%s\n"):
            text = text.replace(around % self.commit, around % "<commit>")
        text = re.sub(r"0x[0-9a-f]{8,}", "<address>", text)
        text = re.sub(r"(\.jsonl)\.\d+", r"\1.<process>", text)
        more = "" if "AVX-512" in self.features else "AVX-512 would double the FMA width"
        return re.sub(rf"(CPU features.*){re.escape(self.features)}(\W.*)?{re.escape(more)}.*", r"\1<features>", text)

    def run(self, command, terminal):
        """Returns the lines that a command prints, as a transcript has them."""
        if terminal:
            return self.run_in_terminal(command, terminal)
        process = subprocess.Popen(["sh", "-c", command], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return [f"= it did not end within {SECONDS} s"]
        lines = []
        for mark, text in (("|", out), ("!", err)):
            text = self.masked(text.decode(errors="backslashreplace"))
            lines += [seen(f"{mark} {line}") for line in text.split("\n")[:-1]]
            if text and not text.endswith("\n"):
                lines += [seen(f"{mark} {text.split(chr(10))[-1]}") + "<no newline>"]
        return lines + ([f"= {process.returncode}"] if process.returncode else [])

    def run_in_terminal(self, command, columns):
        process, terminal = pty.fork()
        if process == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.chdir(self.work)
            os.execve("/bin/sh", ["sh", "-c", command], self.environment())
        text = b""
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        os.close(terminal)
        text = self.masked(text.decode(errors="backslashreplace").replace("\r\n", "\n"))
        return [seen(f"> {line}") for line in text.rstrip("\n").split("\n")] + ([f"= {code}"] if code else [])


def seen(line):
    """Returns a line with what an editor would hide: a blank at its end, and characters that move a terminal's cursor."""
    line = line.replace("\033", "<esc>").replace("\r", "<return>").replace("\t", "<tab>")
    body = line[2:].rstrip(" ")
    return line[0] if line[2:] == "" else line[:2] + body + "~" * (len(line) - 2 - len(body))


def replay(bench, text):
    """Returns a transcript with what its commands print now; parts that cannot be run here stay as they are."""
    lines, out, terminal, left_out, at = text.splitlines(), [], 0, [], 0
    needs, wishes = [], []
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("@ "):
            words = line.split()[1:]
            if words[0] == "needs":
                needs = [need for need in words[1:] if need != "nothing"]
            elif words[0] == "with":
                wishes = ["LENS"] if "gpu" in words else []
                bench.set_up(words[1:])
            elif words[0] == "terminal":
                terminal = int(words[1]) if words[1] != "none" else 0
            else:
                sys.exit(f"'{line}' is nothing that a transcript can say")
        out.append(line)
        if not line.startswith("$ "):
            continue
        old = []
        while at < len(lines) and lines[at][:1] in ("|", "!", "=", ">"):
            old.append(lines[at])
            at += 1
        lacking = [reason for reason in map(bench.lacks, needs + wishes) if reason]
        left_out += lacking
        out += old if lacking else bench.run(line[2:], terminal)
    return "\n".join(out) + "\n", left_out


def untried_options(bench):
    """Returns the options in the verbs' helps that no command of a transcript has."""
    rung, untried = bench.build / "bin" / "rung", []
    tried = "\n".join(line for path in HERE.glob("*.txt") for line in path.read_text().splitlines() if line.startswith("$ "))
    helped = lambda *words: subprocess.run([rung, *words], capture_output=True, text=True, check=True).stdout
    for verb in re.findall(r"^  (\w+) ", helped("help"), re.M):
        if verb == "help":
            continue
        for option in re.findall(r"^  (-\S+?),? ", helped("help", verb), re.M):
            if option in ("-h", "-V"):  # help.txt asks every verb for them
                continue
            if not re.search(rf"rung {verb} (.* )?({option}|-{option})([ =]|$)", tried, re.M):
                untried.append(f"rung {verb} {option}")
    return untried


def options():
    parser = argparse.ArgumentParser(prog="run.py", description="runs the commands of transcripts")
    parser.add_argument("--write", action="store_true", help="put what is printed into the transcripts")
    parser.add_argument("--options", action="store_true", help="run nothing, but say which options of the verbs no transcript tries")
    parser.add_argument("build", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("names", nargs="*", help="transcripts, without .txt; all of them where none is named")
    return parser.parse_args()


def main():
    o = options()
    failed, commands = 0, 0
    if o.options:
        untried = untried_options(Bench(o.build))
        print(*(f"FAILED: no transcript tries {option}" for option in untried), "every other option is tried", sep="\n")
        return len(untried) > 0
    for path in [HERE / f"{name}.txt" for name in o.names] or sorted(HERE.glob("*.txt")):
        bench = Bench(o.build)
        try:
            text = path.read_text()
            now, left_out = replay(bench, text)
        finally:
            shutil.rmtree(bench.work, ignore_errors=True)
        commands += sum(line.startswith("$ ") for line in text.splitlines())
        for reason in sorted(set(left_out)):
            print(f"left out: parts of {path.name}, {reason}")
        if o.write and now != text:
            path.write_text(now)
            print(f"written: {path.name}")
        elif now != text:
            failed += 1
            difference = list(difflib.unified_diff(text.splitlines(), now.splitlines(), "expected", "printed", lineterm="", n=3))
            print(f"FAILED: {path.name}: another output (./dev transcripts {path.stem} takes it over)", *difference[:200], sep="\n")
    print(f"{commands} commands, {failed} transcripts differ")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
