#!/usr/bin/env python3
"""Makes faults by program: draws lines of host code, changes one token on each, and sees whether the tests that reach the file fail.

    tests/faults/mutants.py SEED COUNT [FOLDER ...] [--seconds S] [--list]
    tests/faults/mutants.py --again FILE [--tests NAME,...] [--seconds S]

README.md beside this file says how lines, changes and tests are chosen. What is printed is itself a list of faults, with each verdict as
a comment; --again tries what such a list holds. Exit code: 0, or 2 where the sources as they are cannot be built.
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import run
from draw import places_in, tests_named
from run import Fault, read_list, read_lists

DRAWN = "src/core/ src/cpu/ src/cuda/driver/ src/cuda/host/ src/cuda/families/ src/multi/ shim/ lab/ cli/".split()
DEVICE = re.compile(r"/device/|families/[a-z]+/(?!accurate|recall|plan)\w+\.h$")  # what a GPU runs
# The tables and properties of an area, whatever the lists name: what a line in core can break shows in what every backend does.
BESIDE = {"src/core/": ["alloc", "blas", "calls", "cpu_plans", "failing_calls", "gpu_alloc", "gpu_launches", "multi_moves", "predictions", "tuned"],
          "src/cpu/": ["alloc", "blas_plain", "calls", "context", "cpu_plans", "extremes_cpu", "machine", "pool"],
          "src/cuda/": ["gpu_alloc", "gpu_chain", "gpu_launches", "gpu_recall", "gpu_walk", "gpu_workspace", "multi_moves", "predictions"],
          "src/lens/": ["lens_bounds", "lens_driver", "lens_faults", "lens_findings", "lens_loops", "lens_meetings", "lens_memory", "lens_objects", "lens_requests", "lens_tensor_bits", "transcripts_lens"],
          "src/multi/": ["calls", "gpu_alloc", "multi", "multi_agree", "multi_control", "multi_messages", "multi_moves", "multi_mpi_layouts", "multi_mpi_threads", "multi_nccl_bits", "multi_nccl_lives"],
          "shim/": ["blas_translation", "shim_cublas_abi", "shim_cublas_real", "shim_few_memory", "shim_jax"],
          "lab/": ["failing_calls", "lab_text", "tried"],
          "cli/": ["exit_codes", "failing_calls"]}
MOST_OBJECTS = 20  # that are compiled for one change
UNMEASURED_SECONDS = 2.0  # that a test is taken to last of which the suite's table says nothing, or 0
TRIES = 3  # changes of a line that are tried until one compiles to other code

# ---- the changes ----

COMPARED = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="]}
CALCULATED = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "|": "&", "&": "|", "+=": "-=", "-=": "+="}
EXTREMES = {"min": "max", "min64": "max64", "least": "most", "smaller": "larger", "fmin": "fmax"}
EXTREMES.update({most: least for least, most in EXTREMES.items()})
BUFFER = re.compile(r"\s*(static )?char \w+\[\d+\]")  # one character more or less of it shows nowhere
VERDICTS = {"CLI_FAIL": "CLI_PASS", "CLI_USAGE": "CLI_FAIL", "CLI_PASS": "CLI_FAIL", "code": "0", "status": "RUNG_SUCCESS", "LAB_FAIL": "LAB_PASS", "NULL": '""'}
STATEMENT = re.compile(r"\s*[\w>.\[\]*()-]+( ([-+*/|&]|<<|>>)?= .*|\(.*\)|\+\+|--);$")


def without_text(line):
    """Returns the line with blanks in place of comments and of what stands in strings and characters."""
    line = re.sub(r'(["\'])((?:\\.|(?!\1)[^\\])*)\1', lambda text: text[1] + " " * len(text[2]) + text[1], line)
    return re.sub(r"/\*.*?(\*/|$)|//.*", lambda text: " " * len(text.group()), line)


def end_of(code, at):
    """Returns the place of the bracket that closes the one at `at`; -1 where it is on another line."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i
    return -1


def split_arguments(code, begin, end):
    """Yields where each argument between two brackets begins and ends, without blanks around it."""
    depth, first = 0, begin
    for i in range(begin, end + 1):
        if i == end or code[i] == "," and depth == 0:
            text = code[first:i]
            yield first + len(text) - len(text.lstrip()), first + len(text.rstrip())
            first = i + 1
        else:
            depth += (code[i] in "([{") - (code[i] in ")]}")


def changes_of(lines, at, fields):
    """Yields (operator, changed line) for each change of a line."""
    line = lines[at]
    code = without_text(line)

    def put(begin, end, text):
        return line[:begin] + text + line[end:]

    for found in re.finditer(r" (<=|>=|==|!=|<|>) ", code):
        for other in COMPARED[found[1]]:
            yield "comparison", put(*found.span(1), other)
    for found in re.finditer(r" (&&|\|\|)( |$)", code):
        yield "and, or", put(*found.span(1), "||" if found[1] == "&&" else "&&")
    for found in re.finditer(r" ([-+*/%|&]|<<|>>|[-+]=) ", code):
        yield "arithmetic", put(*found.span(1), CALCULATED[found[1]])
    for found in re.finditer(r" ([+|])= ", code):
        yield "sum", put(*found.span(1), "")
    for found in re.finditer(r"\breturn (\w+);", code):
        if found[1] in VERDICTS:
            yield "verdict", put(*found.span(1), VERDICTS[found[1]])
    for found in re.finditer(r"\b(?:LAB|RUNG)_TRY\(", code):
        end = end_of(code, found.end() - 1)
        if end > 0:
            yield "check", line[:found.start()] + "(void)(" + line[found.end():]
    for found in re.finditer(r" (&&|\|\|) ([^&|?:;]+?)(?=\)? (?:&&|\|\|)|\) ?{?$|;$)", code):
        if found[2].count("(") == found[2].count(")"):
            yield "term", put(*found.span(), "")
    for found in re.finditer(r"(?<![\w.])(\d+)(\.\d+f?)?(?![\w.])", "" if BUFFER.match(code) else code):
        for by in (1, -1):
            if int(found[1]) + by >= 0:
                yield "constant", put(*found.span(1), str(int(found[1]) + by))
    for found in re.finditer(r"\b(\w+)\(", code):
        end = end_of(code, found.end() - 1)
        if end < 0 or found[1] in ("if", "while", "for", "switch", "sizeof", "return", "strcmp"):
            continue
        places = list(split_arguments(code, found.end(), end))
        for (a, b), (c, d) in zip(places, places[1:]):
            if line[a:b] != line[c:d]:
                yield "arguments", line[:a] + line[c:d] + line[b:c] + line[a:b] + line[d:]
    before = next((lines[i].rstrip() for i in range(at - 1, -1, -1) if lines[i].strip()), ";")
    if STATEMENT.match(code.rstrip()) and code.count("(") == code.count(")") and before.endswith((";", "{", "}", ")", ":", "else", "*/")):
        yield "statement", re.match(r"\s*", line).group() + "{}"
    if re.match(r"\s*\.\w+ = [^{}()]*,$", code):
        yield "statement", ""
    for found in re.finditer(r"\b(if|while) \(", code):
        end = end_of(code, found.end() - 1)
        if end > 0:
            for answer in (" || 1", " && 0"):
                yield "condition", put(found.end(), end, f"({line[found.end():end]}){answer}")
    for found in re.finditer(r" \? ([^?:;,]+) : ([^?:;,]+?)(?=[;,]|$)", code):
        if all(found[i].count("(") == found[i].count(")") for i in (1, 2)):
            (a, b), (c, d) = found.span(1), found.span(2)
            yield "condition", line[:a] + line[c:d] + line[b:c] + line[a:b] + line[d:]
    for found in re.finditer(r"!(?=[\w(])", code):
        yield "not", put(*found.span(), "")
    for found in re.finditer(r"\b(\w+(?:->|\.))([a-z]\w*)\b(?!\()", code):
        for other in sorted(fields[found[1]] - {found[2]}):
            yield "field", put(*found.span(2), other)
    for found in re.finditer(r"\b(break|continue);", code):
        yield "break, continue", put(*found.span(1), "continue" if found[1] == "break" else "break")
    for found in re.finditer(r"\b(" + "|".join(EXTREMES) + r")\(", code):
        yield "least, most", put(*found.span(1), EXTREMES[found[1]])
    for found in re.finditer(r"\((int64_t|size_t|uint64_t)\)|^\s*(?:const )?(int64_t|size_t|uint64_t)(?= \w+ = )", code):
        which = 1 if found[1] else 2
        yield "32 bits", put(*found.span(which), "int32_t" if found[which] == "int64_t" else "uint32_t")


def changes_in_order(lines, at, fields, dice):
    """Returns a line's changes: each operator has the same chance to come first, whatever it finds to change."""
    by_operator = collections.defaultdict(list)
    for operator, changed in changes_of(lines, at, fields):
        if changed != lines[at]:
            by_operator[operator].append(changed)
    for changed in by_operator.values():
        dice.shuffle(changed)
    order = []
    while any(by_operator.values()):
        operator = dice.choice(sorted(name for name in by_operator if by_operator[name]))
        order.append((operator, by_operator[operator].pop()))
    return order


def fault_of(name, lines, at, operator, changed):
    """Makes a fault of a change, with as many lines before it as make its place the only one."""
    text = "\n".join(lines)
    first = at
    while first > 0 and text.count("\n".join(lines[first:at + 1])) > 1:
        first -= 1
    fault = Fault("mutants", name, [])
    fault.why, fault.was, fault.now = f"line {at + 1}, {operator}", lines[first:at + 1], lines[first:at] + [changed]
    return fault


def drawn_faults(seed, folders):
    """Yields for each drawn line the faults to try there, in their order."""
    places = [place for place in places_in(folders, (".c", ".h")) if not DEVICE.search(place[0])]
    random.Random(seed).shuffle(places)
    for name, number in places:
        lines = (run.ROOT / name).read_text().splitlines()
        fields = collections.defaultdict(set)
        for found in re.finditer(r"\b(\w+(?:->|\.))([a-z]\w*)\b(?!\()", without_text(" ".join(lines))):
            fields[found[1]].add(found[2])
        order = changes_in_order(lines, number - 1, fields, random.Random(f"{seed} {name} {number}"))
        if order:
            yield [fault_of(name, lines, number - 1, *change) for change in order[:TRIES]]


# ---- building ----


class Build:
    """Is the copy's build. It knows each object's code without a fault, so that a change that changes no code is told."""

    def __init__(self):
        run.set_scratch("faults.mutants")
        run.SCRATCH.mkdir(parents=True, exist_ok=True)
        run.copy_tree()
        self.folder = run.BUILD / "release"
        # Without device code, which no line here is in, and without the commit, which may change meanwhile.
        if run.build("release", "-DRUNG_WITH_CUDA=OFF", "-DCMAKE_DISABLE_FIND_PACKAGE_Git=ON") != 0:
            sys.exit(2)
        self.objects = {path: (path.stat().st_mtime_ns, self.code(path)) for path in self.folder.rglob("*.o")}
        self.code_was = {path: code for path, (_, code) in self.objects.items()}

    @staticmethod
    def code(path):
        return hashlib.sha256(path.read_bytes()).digest()

    def made(self):
        """Builds; returns 'other code', 'same code', 'does not compile', or 'takes minutes' where a kernel would be compiled."""
        asked = subprocess.run(["ninja", "-n", "-C", self.folder], capture_output=True, text=True, check=False).stdout
        if "/kernels/" in asked or asked.count("Building C object") > MOST_OBJECTS:
            return "takes minutes"
        if run.build("release") != 0:
            return "does not compile"
        other = False
        for path, (at, code) in self.objects.items():
            now = path.stat().st_mtime_ns
            if now != at:
                code = self.code(path)
                self.objects[path] = (now, code)
            other = other or code != self.code_was[path]
        return "other code" if other else "same code"


class Suite:
    """Runs tests of the copy. One is sound once it has passed; what a test takes is the CPU time that it took, before that what the suite's table says."""

    def __init__(self, folder):
        said = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], capture_output=True, check=True, text=True).stdout
        self.commands, self.properties, self.seconds = {}, {}, {}
        for test in json.loads(said)["tests"]:
            name, properties = test["name"], {each["name"]: each["value"] for each in test["properties"]}
            self.commands[name], self.properties[name] = test["command"], properties
            self.seconds[name] = float(properties.get("COST", 0)) or UNMEASURED_SECONDS
        self.sound = set()

    def passes(self, name):
        """tests/limit.c ends a sound test after five times the CPU time that it took; any other may compile kernels for the lens first."""
        limit = 10 + 5 * self.seconds[name] if name in self.sound else 600
        with open(run.SCRATCH / "test.log", "wb") as log:
            process = subprocess.Popen(["env", *self.properties[name].get("ENVIRONMENT", []), f"RUNG_LIMIT_SECONDS={limit:.0f}", *self.commands[name]],
                                       stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=self.properties[name]["WORKING_DIRECTORY"])
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        passed, took = process.returncode in (0, 77), used.ru_utime + used.ru_stime
        if passed and (name in self.sound or took < self.seconds[name] or self.seconds[name] == UNMEASURED_SECONDS):
            self.seconds[name] = took
        if passed:
            self.sound.add(name)
        return passed

    def verdict(self, names, budget, passes_without):
        """Runs the tests in this order, leaving out those that would take longer than what is left of the budget."""
        for name in names:
            if name not in self.seconds or self.seconds[name] > budget:
                continue
            budget -= self.seconds[name]
            if self.passes(name):
                continue
            if name in self.sound or passes_without(name):
                return f"caught by {name}"
            print(f"# {name} fails without a fault and is left out", flush=True)
            del self.seconds[name]
        return "missed"


def tests_for(faults, name, seconds):
    """Returns the tests that the lists name for a file, or else for its folder, and those of its area, the quickest first."""
    tables = next((tables for area, tables in BESIDE.items() if name.startswith(area)), [])
    place, own = name, []
    while place and not own:  # those of the file, or of the nearest folder that has any
        own = tests_named(faults, place)
        place = os.path.dirname(place)
    return sorted({*own, *tables}, key=lambda test: seconds.get(test, 0))


def options():
    parser = argparse.ArgumentParser(description="makes faults by program and sees whether the tests fail")
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("count", nargs="?", type=int, default=20)
    parser.add_argument("folders", nargs="*", default=DRAWN)
    parser.add_argument("--seconds", type=float, default=45.0, help="of CPU time that a fault's tests may take (default 45)")
    parser.add_argument("--list", action="store_true", help="prints the first change of each line and builds nothing")
    parser.add_argument("--again", type=pathlib.Path, help="a list of faults, as this program prints it")
    parser.add_argument("--tests", default="", help="these tests instead of those that are named, commas between")
    return parser.parse_args()


def show(fault, verdict, seconds):
    print(f"# {verdict}, {seconds:.0f} s\n{fault.path}: {', '.join(fault.tests)}\n  {fault.why}")
    print("\n".join([f"- {line}" for line in fault.was] + [f"+ {line}" for line in fault.now]) + "\n", flush=True)


def summary(counts):
    """Prints a table of operators and folders: caught of those that were run."""
    folders, operators = (sorted({key[i] for key in counts}) for i in (0, 1))
    for folder in folders:
        cells = [f"{operator} {counts[folder, operator][0]} of {sum(counts[folder, operator])}" for operator in operators if (folder, operator) in counts]
        print(f"# {folder}: {', '.join(cells)}")
    caught, missed = (sum(count[i] for count in counts.values()) for i in (0, 1))
    print(f"# {caught} of {caught + missed} caught")


def main():
    o = options()
    lists = read_lists()
    drawn = ([fault] for fault in read_list(o.again)) if o.again else drawn_faults(o.seed, o.folders)
    if o.list:
        for _, faults in zip(range(o.count), drawn):
            show(faults[0], "not run", 0)
        return 0
    build = Build()
    suite = Suite(build.folder)
    counts, left_out = collections.defaultdict(lambda: [0, 0]), collections.Counter()

    def try_one(fault):
        """Plants a fault and judges it; returns why not, where it is none."""
        file = run.TREE / fault.path
        text, since = file.read_text(), file.stat()
        made, begin = "", time.monotonic()
        if not fault.plant():
            return "does not stand in its file"

        def passes_without(name):
            planted = file.read_text()
            file.write_text(text)
            build.made()
            passed = suite.passes(name)
            file.write_text(planted)
            build.made()
            return passed

        try:
            made = build.made()
            if made == "other code":
                names = o.tests.split(",") if o.tests else fault.tests if o.again else tests_for(lists, fault.path, suite.seconds)
                verdict = suite.verdict(names, o.seconds, passes_without)
                fault.tests = [name for name in names if name in suite.seconds]
                show(fault, verdict, time.monotonic() - begin)
                counts[os.path.dirname(fault.path), fault.why.split(", ", 1)[-1]][verdict == "missed"] += 1
            return made
        finally:
            file.write_text(text)  # and is built anew with the next fault, unless the fault was not built
            if made == "takes minutes":
                os.utime(file, ns=(since.st_atime_ns, since.st_mtime_ns))

    try:
        for faults in drawn:
            for fault in faults:
                made = try_one(fault)
                if made == "other code":
                    break
                left_out[made] += 1
                if made == "takes minutes":
                    break
            if not o.again and sum(map(sum, counts.values())) == o.count:
                break
    except KeyboardInterrupt:
        pass
    if build.made() != "same code":
        print("# the copy has other code than at first: do not trust these verdicts")
    summary(counts)
    print(f"# left out: {', '.join(f'{count} {why}' for why, count in left_out.items())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
