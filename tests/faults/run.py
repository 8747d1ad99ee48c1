#!/usr/bin/env python3
"""Plants faults, one at a time, in a copy of the sources, and sees whether the tests named for them fail.

    ./dev faults [--only REGEX] [--part I/N] [--gpu] [--list | --stand] [--least PERCENT]

README.md beside this file says what a list looks like. Exit code: 0 where at least the wanted share is caught, 1 where less is, 2 where
a fault cannot be planted or judged.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCRATCH = TREE = BUILD = ROOT  # set_scratch()
BUILD_SECONDS = 900
JOBS = os.environ.get("RUNG_JOBS", "2")
SKIPPED = 77  # the exit code of a test that lacks something here, and so shows nothing


def set_scratch(name):
    """Each part has a folder of its own, so that parts can run side by side."""
    global SCRATCH, TREE, BUILD
    SCRATCH = ROOT / "build" / name
    TREE, BUILD = SCRATCH / "tree", SCRATCH / "build"


class Fault:
    """Is a piece of code that other code replaces."""

    def __init__(self, where, path, tests):
        self.where, self.path, self.tests = where, path, tests
        self.why, self.was, self.now = "", [], []
        self.on_gpu = any(test.startswith("gpu ") for test in tests)

    def stands(self, tree):
        """Returns whether its code is there once."""
        file = tree / self.path
        return file.is_file() and file.read_text().count("\n".join(self.was)) == 1

    def plant(self):
        if not self.stands(TREE):
            return False
        file = TREE / self.path
        file.write_text(file.read_text().replace("\n".join(self.was), "\n".join(self.now)))
        return True


def read_list(file):
    faults = []
    for line in file.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("- "):
            faults[-1].was.append(line[2:])
        elif line.startswith("+"):
            faults[-1].now.append(line[2:])
        elif line.startswith("  "):
            faults[-1].why = line.strip()
        else:
            path, tests = line.split(":")
            faults.append(Fault(file.name, path, [test.strip() for test in tests.split(",")]))
    return faults


def read_lists():
    return [fault for file in sorted(HERE.glob("*.txt")) for fault in read_list(file)]


def copy_tree():
    """Copies what git knows; files that are the same stay, so that little is built again."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True).stdout
    names = {name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, copy = ROOT / name, TREE / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes() or copy.stat().st_mode != source.stat().st_mode:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
            os.utime(copy)
    for old in TREE.rglob("*"):
        if old.is_file() and "__pycache__" not in old.parts and str(old.relative_to(TREE)) not in names:
            old.unlink()


def run(command, seconds, log, **settings):
    """Runs a command, with these settings in its environment, and returns its exit code; None where the time is over."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, **settings})
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None


def preset_of(test):
    return test.split(".")[0] if re.match(r"(asan|tsan)\.", test) else "release"


def build(preset, *settings):
    """Builds a preset's tree; what it is configured with beside counts when it is built first."""
    folder, same = BUILD / preset, TREE / "tests" / "same_objects.sh"
    if (folder / "build.ninja").exists():
        return run(["ninja", "-C", folder, "-j", JOBS], BUILD_SECONDS, SCRATCH / "build.log")
    # Nothing is linked again because a shared library has changed.
    code = run(["cmake", "-S", TREE, "--preset", preset, "-B", folder, "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON",
                f"-DCMAKE_C_COMPILER_LAUNCHER={same};take", *settings], BUILD_SECONDS, SCRATCH / "configure.log")
    if code != 0:
        return code
    # What ./dev has compiled of the same sources is not compiled again.
    made = ROOT / "build" / preset
    run([same, "list", made, ROOT, folder, TREE], BUILD_SECONDS, SCRATCH / "same.log")
    code = run(["ninja", "-C", folder, "-j", JOBS], BUILD_SECONDS, SCRATCH / "build.log", RUNG_SAME=f"{folder}/same", RUNG_SAME_FROM=str(made))
    shutil.rmtree(folder / "same")
    take_lens_kernels(made, folder)
    return code


def take_lens_kernels(made, folder):
    """Copies the kernels that were compiled for the lens of the sources as they are; the others are compiled when they are asked for."""
    to = folder / "lib" / "rung-lens"
    for rule in made.glob("lib/rung-lens/*.d"):
        kernel = rule.with_suffix(".so")
        read = [pathlib.Path(word) for word in rule.read_text().replace("\\\n", " ").split() if not word.endswith(":")]
        if kernel.is_file() and to.is_dir() and all(file.is_file() and file.stat().st_mtime <= kernel.stat().st_mtime for file in read):
            (to / rule.name).write_text(rule.read_text().replace(f"{ROOT}/", f"{TREE}/").replace(f"{TREE}/build/{folder.name}/", f"{folder}/"))
            shutil.copy(kernel, to)


def tile_of(test, tree):
    """Returns the first tile of "lens FAMILY FIELD=VALUE ...", "suite FAMILY ..." or "gpu FAMILY ..."; empty where there is none."""
    said = subprocess.run([tree / "tests" / "tiles_with.sh", "-1", tree, *test.split()[1:]], capture_output=True, text=True)
    return said.stdout.strip()


def command_of(test):
    folder = BUILD / preset_of(test)
    rung = folder / "bin" / "rung"
    if test.startswith("gpu "):
        verify = f"{rung} verify --device gpu --kernel {tile_of(test, TREE)} --no-vendor"
        return ["sh", "-c", f"{verify} --pairs && {verify}"]
    if test.startswith("lens "):
        library = folder / "lib" / "rung-lens" / "librung_lens.so"
        library = library if library.exists() else folder / "lib" / "librung_lens.so"
        return ["env", f"RUNG_LIBCUDA={library}", "RUNG_LENS_FINDINGS=fail", "RUNG_LENS_SMS=3", "RUNG_LENS_CAPTURING=1", "RUNG_LENS_DRIVER=12020", rung, "verify", "--device", "gpu",
                "--kernel", tile_of(test, TREE), "--pairs", "--no-vendor"]
    if test.startswith("suite "):
        library = folder / "lib" / "rung-lens" / "librung_lens.so"
        library = library if library.exists() else folder / "lib" / "librung_lens.so"
        tests = TREE / "tests"
        return ["env", f"RUNG_ONLY_KERNELS={tile_of(test, TREE)}", "sh", "-c",
                f"{tests}/lens_production.sh {rung} {library} 0 1 && {tests}/lens_pairs.sh {rung} {library}"]
    if test == "verify_cpu_quick":
        return [rung, "verify", "--device", "cpu", "--quick"]
    return ["ctest", "--test-dir", folder, "-R", f"^({test})$", "--no-tests=error", "--output-on-failure", "--timeout", "100000"]


def run_test(test, limit):
    """Runs a test that may take so much CPU time; returns its exit code, SKIPPED where ctest says so and None where tests/limit.c ended it, and the
    CPU time that it took."""
    command, log = command_of(test), SCRATCH / "test.log"
    if command[0] != "ctest":
        command = [BUILD / preset_of(test) / "tests" / "limit", f"{limit:.0f}", *command]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, "RUNG_LIMIT_SECONDS": f"{limit:.0f}"})
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    said = log.read_bytes()
    ended, skipped = re.search(rb"^limit: .*: ended$", said, re.M), command[0] == "ctest" and b"***Skipped" in said
    return None if ended else SKIPPED if skipped else process.returncode, used.ru_utime + used.ru_stime


class Tests:
    """Measures the CPU time of each test without a fault. It must pass; with a fault it is ended after five times as much."""

    def __init__(self):
        self.seconds, self.skipped = {}, set()

    def pass_without_fault(self, tests):
        for test in tests:
            if test not in self.seconds:
                if build(preset_of(test)) != 0:
                    sys.exit("the sources as they are cannot be built: see build.log in build/faults*")
                code, seconds = run_test(test, 1800)
                if code == SKIPPED:
                    self.skipped.add(test)
                elif code != 0:
                    shutil.copy(SCRATCH / "test.log", SCRATCH / f"{test.replace(' ', '_')}.log")
                self.seconds[test] = seconds if code in (0, SKIPPED) else None
        return all(self.seconds[test] is not None for test in tests)

    def verdict(self, fault):
        """Returns 'caught by TEST', 'missed', 'skipped: TEST ...' where no test of it runs here, or why it is none of these."""
        if not self.pass_without_fault(fault.tests):
            failing = " ".join(test for test in fault.tests if self.seconds[test] is None)
            return f"not judged: {failing} fails without a fault"
        able = [test for test in fault.tests if test not in self.skipped]
        if not able:
            return f"skipped: {' '.join(fault.tests)} cannot run here"
        file = TREE / fault.path
        text = file.read_text() if file.is_file() else ""
        if not fault.plant():
            return "not planted: its code does not stand in the file exactly once"
        try:
            silent = [test for test in fault.tests if test in self.skipped]
            for test in sorted(able, key=self.seconds.get):
                if build(preset_of(test)) != 0:
                    cut = re.search(r"\[-Werror=(float-)?conversion\]", (SCRATCH / "build.log").read_text(errors="replace"))
                    return "caught by the compiler, which says that a number is cut" if cut else "not built: see build.log in build/faults*"
                code, _ = run_test(test, 30 + 5 * self.seconds[test])
                if code == SKIPPED:
                    silent.append(test)
                elif code != 0:
                    return f"caught by {test}" + (", which did not end" if code is None else "")
            return "missed" + (f" ({' '.join(silent)} skipped)" if silent else "")
        finally:
            file.write_text(text)


def options():
    parser = argparse.ArgumentParser(prog="./dev faults", description="plants faults and sees whether the tests fail")
    parser.add_argument("--only", default="", help="faults whose file, place or description matches this")
    parser.add_argument("--part", default="1/1", help="such as 2/4: the second quarter of them; parts can run side by side")
    parser.add_argument("--gpu", action="store_true", help="those that only a GPU shows, on this machine's; else all others")
    parser.add_argument("--list", action="store_true", help="names the faults and plants none")
    parser.add_argument("--stand", action="store_true", help="plants none, but says which ones' code has changed")
    parser.add_argument("--least", type=float, default=95.0, help="the percentage that must be caught, or stand (default 95)")
    return parser.parse_args()


def main():
    o = options()
    part, parts = (int(x) for x in o.part.split("/"))
    faults = [f for f in read_lists() if re.search(o.only, f"{f.where} {f.path} {f.why}")]
    if o.gpu or not o.stand and not o.list:
        faults = [f for f in faults if f.on_gpu == o.gpu]
    faults = faults[(part - 1) * len(faults) // parts:part * len(faults) // parts]
    if o.list:
        for f in faults:
            print(f"{f.where:12} {f.path:34} {f.why}{' (only a GPU shows it)' if f.on_gpu else ''}")
        return 0
    if o.stand:
        gone = [f for f in faults if not f.stands(ROOT)]
        for f in gone:
            print(f"left out: {f.where} {f.path}, whose code has changed: {f.why}")
        untested = [(f, test) for f in faults for test in f.tests if test.startswith(("lens ", "suite ", "gpu ")) and not tile_of(test, ROOT)]
        for f, test in untested:
            print(f"{f.where} {f.path}: no tile for '{test}': name another one, or take the fault out: {f.why}")
        print(f"{len(faults) - len(gone)} of {len(faults)} faults can be planted")
        return 1 if untested else 0 if 100.0 * (len(faults) - len(gone)) >= o.least * len(faults) else 1
    set_scratch("faults" if parts == 1 else f"faults.{part}")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    copy_tree()
    tests = Tests()
    caught = broken = skipped = 0
    for f in faults:
        tests.pass_without_fault(f.tests)
        begin = time.monotonic()
        verdict = tests.verdict(f)
        caught += verdict.startswith("caught")
        broken += verdict.startswith("not")
        skipped += verdict.startswith("skipped")
        print(f"{f.where:12} {time.monotonic() - begin:5.0f} s  {verdict:40} {f.path}: {f.why}", flush=True)
    judged = len(faults) - skipped
    share = 100.0 * caught / judged if judged else 100.0
    print(f"{caught} of {judged} caught: {share:.0f}%" + (f"; {skipped} not tried, since their tests are skipped here" if skipped else ""))
    return 2 if broken else 0 if share >= o.least else 1


if __name__ == "__main__":
    sys.exit(main())
