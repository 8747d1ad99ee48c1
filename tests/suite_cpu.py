#!/usr/bin/env python3
"""CPU and wall seconds of each test of the suite, one after another, the dearest first: what a pass costs, and where a second is to be saved.
usage: tests/suite_cpu.py build/release [argument of ctest]... >results/suite-cpu.txt"""

import json
import resource
import subprocess
import sys
import time


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        lines = file.readlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "an unknown processor")
    return f"{sum(line.startswith('processor') for line in lines)} cores of {model}"


def outcome(text):
    return "skip" if "***Skipped" in text else "pass" if "100% tests passed" in text else "FAIL"


def main():
    ctest = ["ctest", "--test-dir", *sys.argv[1:]]
    listed = json.loads(subprocess.run([*ctest, "--show-only=json-v1"], check=True, capture_output=True, text=True).stdout)
    rows = []
    for name in (test["name"] for test in listed["tests"]):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        said = subprocess.run(["ctest", "--test-dir", sys.argv[1], "-R", f"^{name.replace('.', '[.]')}$"], capture_output=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rows.append((cpu, time.monotonic() - start, outcome(said), name))
        print(f"{name} {cpu:.1f}", file=sys.stderr, flush=True)
    print(f"# CPU seconds and wall seconds of each test of the default suite, one at a time, on {machine()}.")
    print(f"# tests/suite_cpu.py {' '.join(sys.argv[1:])}")
    for cpu, wall, result, name in sorted(rows, reverse=True):
        print(f"{name:28} {result}  cpu {cpu:7.1f}  wall {wall:7.1f}")
    print(f"{len(rows)} tests, {sum(row[0] for row in rows):.0f} s of CPU time")


main()
