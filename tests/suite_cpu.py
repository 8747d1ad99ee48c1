#!/usr/bin/env python3
"""Measures CPU and wall seconds of each test of the suite, the dearest first: what a pass costs, and where a second is to be saved. As many tests
run at once as there are cores, or -j N, the costly ones first.
usage: tests/suite_cpu.py build/release [argument of ctest]... >results/suite-cpu.txt
       tests/suite_cpu.py build/release -j 1 -C Exhaustive -R '_(long|every)$' >results/suite-exhaustive.txt"""

import concurrent.futures
import json
import os
import subprocess
import sys
import time

TREE, CHOICE, AT_ONCE = sys.argv[1], sys.argv[2:], os.cpu_count()
if "-j" in CHOICE:
    AT_ONCE = int(CHOICE.pop(CHOICE.index("-j") + 1))
    CHOICE.remove("-j")
CONFIGURATION = ["-C", "Exhaustive"] if "Exhaustive" in CHOICE else []


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        lines = file.readlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "an unknown processor")
    return f"{sum(line.startswith('processor') for line in lines)} cores of {model}"


def commit():
    """Of the sources that the tree was built from."""
    said = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return f" at {said.stdout.strip()}" if said.stdout else ""


def listed():
    said = subprocess.run(["ctest", "--test-dir", TREE, *CHOICE, "--show-only=json-v1"], check=True, capture_output=True, text=True).stdout
    tests = json.loads(said)["tests"]
    cost = lambda test: next((p["value"] for p in test["properties"] if p["name"] == "COST"), 0)
    return [test["name"] for test in sorted(tests, key=cost, reverse=True)]


def look(name):
    """(CPU seconds, wall seconds, outcome, name): of ctest, which runs this test alone, and of all that it starts."""
    start = time.monotonic()
    with subprocess.Popen(["ctest", "--test-dir", TREE, *CONFIGURATION, "-R", f"^{name.replace('.', '[.]')}$"], stdout=subprocess.PIPE, text=True) as ctest:
        said = ctest.stdout.read()
        used = os.wait4(ctest.pid, 0)[2]
        ctest.returncode = 0
    outcome = "skip" if "***Skipped" in said else "pass" if "100% tests passed" in said else "FAIL"
    print(f"{name} {outcome}", file=sys.stderr, flush=True)
    return used.ru_utime + used.ru_stime, time.monotonic() - start, outcome, name


def main():
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        rows = sorted(pool.map(look, listed()), reverse=True)
    print(f"# CPU and wall seconds of each test of the suite, {AT_ONCE} at once, on {machine()}{commit()}.")
    print("# tests/suite_cpu.py " + " ".join(f"'{word}'" if "$" in word else word for word in sys.argv[1:]))
    for cpu, wall, outcome, name in rows:
        print(f"{name:28} {outcome}  cpu {cpu:7.1f}  wall {wall:7.1f}")
    print(f"{len(rows)} tests, {sum(row[0] for row in rows):.0f} s of CPU time, {time.monotonic() - start:.0f} s in all")


main()
