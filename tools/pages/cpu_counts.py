#!/usr/bin/env python3
"""Counts what the CPU's rungs ask of the caches.

    cpu_counts.py [--record] BUILD_FOLDER [SIZE...] [NAME...]   each rung alone, under valgrind's cachegrind, with a Zen 4's L1 (32 KB) and L2
                                                                (1 MB, "LL"); --record: into results/ladder-cpu-counts.jsonl, too

Only what the rung's own file executes is counted. cachegrind models the caches, least recently used first, without prefetchers:
misses are those of the order of accesses, not of a clock. c08 computes c07's tiles on several threads and is left out.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TO = "results/ladder-cpu-counts.jsonl"
FLAGS = ["-std=gnu17", "-O3", "-ffp-contract=fast", "-g", "-D_GNU_SOURCE"]  # as src/CMakeLists.txt compiles the ladder
CACHES = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,8,64"]
MAIN = """
#include "cpu/cpu.h"
#include <stdio.h>
#include <stdlib.h>
rung_status %(name)s(const void *arguments);
int main(void)
{
    size_t bytes = sizeof(float) * %(n)d * %(n)d;
    float *m[3];
    for (int i = 0; i < 3; i++) {
        m[i] = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        for (size_t j = 0; j < bytes / sizeof(float); j++)
            m[i][j] = (float)(j %% 7) - 3.0f;
    }
    rung_cpu_args g = {.m = %(n)d, .n = %(n)d, .k = %(n)d, .a = m[0], .lda = %(n)d, .b = m[1], .ldb = %(n)d,
                       .c = m[2], .ldc = %(n)d, .alpha = 1.0f, .threads = 1};
    return (int)%(name)s(&g);
}
"""


def counted(name, n, folder, build):
    source = os.path.join(ROOT, "src/ladder/cpu", name + ".c")
    main, program, out = (os.path.join(folder, x) for x in ("main.c", name, "cachegrind.out"))
    with open(main, "w", encoding="utf-8") as to:
        to.write(MAIN % {"name": name, "n": n})
    subprocess.run(["cc", *FLAGS, f"-I{ROOT}/src", f"-I{ROOT}/include", "-I" + os.path.join(build, "generated"), main, source, "-o", program], check=True)
    subprocess.run(["valgrind", "-q", "--tool=cachegrind", *CACHES, f"--cachegrind-out-file={out}", program], check=True)
    events, counts, ours = [], {}, False
    for line in open(out, encoding="utf-8"):
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("fl="):
            ours = line.strip().endswith(("/" + name + ".c", "ladder/cpu/start.h"))
        elif ours and line[0].isdigit():
            for event, value in zip(events, line.split()[1:]):
                counts[event] = counts.get(event, 0) + int(value)
    return {"kernel": name, "m": n, "n": n, "k": n, "command": f"tools/pages/cpu_counts.py build/release {n}", "instructions": counts["Ir"],
            "reads": counts["Dr"], "writes": counts["Dw"], "l1_misses": counts["D1mr"] + counts["D1mw"],
            "l2_misses": counts["DLmr"] + counts["DLmw"]}


def main(words):
    path = os.path.join(ROOT, TO)
    record = "--record" in words
    words = [x for x in words if x != "--record"]
    old = [json.loads(line) for line in open(path, encoding="utf-8")] if os.path.exists(path) else []
    known = {(line["kernel"], line["m"]): line for line in old}
    rungs = sorted(x[:-2] for x in os.listdir(os.path.join(ROOT, "src/ladder/cpu")) if re.match(r"c0[1-7]_.*\.c$", x))
    with tempfile.TemporaryDirectory() as folder:
        for n in [int(x) for x in words[1:] if x.isdigit()] or [1024]:
            for name in [x for x in words[1:] if not x.isdigit()] or rungs:
                known[name, n] = counted(name, n, folder, words[0])
                print(json.dumps(known[name, n]), flush=True)
    if record:
        with open(path, "w", encoding="utf-8") as to:
            to.writelines(json.dumps(known[key]) + "\n" for key in sorted(known))
    return 0


sys.exit(main(sys.argv[1:]))
