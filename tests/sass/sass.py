#!/usr/bin/env python3
"""tools/sass over kernels as the compiler left them, which lie beside this file: what each verb says, and the bytes of what it writes. And over such
kernels with one instruction damaged: what is refused, with which words, and what `check` finds.

    tests/sass/sass.py SASS [--write]        writes said.txt anew: a change of the tool is seen in its diff
"""
import difflib
import hashlib
import lzma
import os
import pathlib
import random
import resource
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAID = HERE / "said.txt"
KERNELS = {path.name.split(".")[0]: lzma.decompress(path.read_bytes()) for path in HERE.glob("*.xz")}
LOOP, FFMAS, SLICE, SHIFT, PORTS = ("l27_written_loop", "l26_operand_reuse", "sm90_tmaslice_f32_64x64x16_s2", "sm90_tmashift_f32_128x128x16_s2", "lab_ports")
CODE = {"FFMA": 0x223, "LDS": 0x984, "barrier": 0xB1D, "NOP": 0x918}


class Bench:
    def __init__(self, sass, folder):
        self.sass, self.folder, self.said = sass, folder, []

    def run(self, words, data, name):
        """Returns the exit code, what was said, and the file that is there now."""
        path = self.folder / name
        path.write_bytes(data)
        done = subprocess.run([self.sass, *words, name], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr, path.read_bytes()

    def tell(self, command, data, name):
        code, said, now = self.run(command.split(), data, name)
        lines = said.splitlines()
        if lines and lines[0] in self.said and lines[0].startswith("usage"):
            lines = ["usage ..."]
        self.said += [f"$ sass {command} {name}", *lines, f"= {code}, " + ("unchanged" if now == data else hashlib.sha256(now).hexdigest()[:16])]
        return now

    def note(self, what, data):
        """Notes what becomes of the loop of such a kernel."""
        code, said, now = self.run(["loop", "--tile", "128x256", "--stages", "8"], data, LOOP)
        self.said.append(f"{what}: {code}, " + " ".join(said.splitlines()) + ("" if now == data else " " + hashlib.sha256(now).hexdigest()[:16]))


def words_of(data):
    """Yields place and both halves of each instruction."""
    sections, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    names, = struct.unpack_from("<Q", data, sections + size * struct.unpack_from("<H", data, 62)[0] + 24)
    for i in range(count):
        name, _, _, _, begin, length = struct.unpack_from("<IIQQQQ", data, sections + size * i)
        if data[names + name:names + name + 6] == b".text.":
            for at in range(begin, begin + length, 16):
                yield at, *struct.unpack_from("<2Q", data, at)


def damaged(data, at, low, high):
    changed = bytearray(data)
    struct.pack_into("<2Q", changed, at, low, high)
    return bytes(changed)


def spread(places, count):
    places = list(places)
    return places[::max(1, len(places) // count)]


def verbs(bench):
    written = bench.tell("loop --tile 128x256 --stages 8 --strict", KERNELS[LOOP], LOOP)
    ordered = bench.tell("order", KERNELS[FFMAS], FFMAS)
    slice_ = bench.tell("loop --tile 64x64 --stages 2 --gather copies --strict", KERNELS[SLICE], SLICE)
    bench.tell("loop --tile 128x128 --stages 2 --gather moves --strict", KERNELS[SHIFT], SHIFT)
    bench.tell("turns", KERNELS[FFMAS], FFMAS)
    bench.tell("turns_tt", KERNELS[SHIFT], SHIFT)
    patterns = bench.tell("pattern", KERNELS[PORTS], PORTS)
    for verb in ("ports", "list", "check"):
        for name, data in ((LOOP, KERNELS[LOOP]), (LOOP, written), (FFMAS, KERNELS[FFMAS]), (FFMAS, ordered), (PORTS, patterns), (SLICE, slice_)):
            bench.tell(verb, data, name)
    return written, ordered


def refusals(bench):
    loop, code = KERNELS[LOOP], list(words_of(KERNELS[LOOP]))
    for words in ("loop --tile 128x128 --stages 8", "loop --tile 256x128 --stages 8", "loop --tile 128x256 --stages 4", "loop --tile 128x256 --stages 3",
                  "loop --tile 96x256 --stages 8", "loop --tile 128x256 --stages 16", "loop --tile 128x256 --stages 8 --gather copies --strict",
                  "loop --tile 128x256 --stages 8 --gather none", "loop --tile 128x256x --stages 8", "loop --tile 128x256 --stages 4x", "loop --stages 8", "loop --tile 128x256 --stages", "order --strict",
                  "orders", "pattern"):
        bench.tell(words, loop, LOOP)
    bench.tell("loop --tile 64x64 --stages 2", KERNELS[FFMAS], FFMAS)
    for data, name in ((b"", "empty"), (loop[:63], "short"), (b"\x7fELG" + loop[4:], "no_elf")):
        bench.tell("check", data, name)
    bench.said += [f"$ sass check nowhere\n= {subprocess.run([bench.sass, 'check', 'nowhere'], cwd=bench.folder, capture_output=True, check=False).returncode}"]
    # What cannot be written is told, also where only the last bytes have no room. Python has let the signal of a file that is too long be ignored.
    for most in (4096, len(KERNELS[FFMAS]) // 4096 * 4096):
        (bench.folder / "full").write_bytes(KERNELS[FFMAS])
        done = subprocess.run([bench.sass, "order", "full"], cwd=bench.folder, capture_output=True, text=True, check=False, restore_signals=False,
                              preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
        bench.said += [f"$ sass order full (at most {most} bytes)", done.stderr.strip(), f"= {done.returncode}"]
    # Instructions that are gone, and bits that are turned round, by a generator that any Python has: many of these are no loop that the tool knows.
    nop = next((low, high) for _, low, high in code if low & 0xFFF == CODE["NOP"])
    for kind in ("FFMA", "LDS", "barrier"):
        for at, *_ in spread((x for x in code if x[1] & 0xFFF == CODE[kind]), 5):
            bench.note(f"{kind} {at:x} gone", damaged(loop, at, *nop))
    dice = random.Random(1)
    for _ in range(100):
        at, low, high = code[int(dice.random() * len(code))]
        bit = int(dice.random() * 64)
        bench.note(f"{at:x} bit {bit}", damaged(loop, at, low ^ 1 << bit, high))


def findings(bench, written, ordered):
    """What `check` says of an instruction that waits for nothing, that stalls for one cycle, or that reads or writes another register."""
    for data, name in ((written, LOOP), (ordered, FFMAS)):
        code = list(words_of(data))
        for what, places, change in (
                ("waits for nothing", (x for x in code if x[2] >> 52 & 63), lambda low, high: (low, high & ~(63 << 52))),
                ("does not stall", (x for x in code if x[2] >> 41 & 15 > 4), lambda low, high: (low, high & ~(15 << 41) | 1 << 41)),
                ("sets no scoreboard", (x for x in code if x[1] & 0xFFF == CODE["LDS"]), lambda low, high: (low, high | 7 << 46)),
                ("writes another register", (x for x in code if x[1] & 0xFFF == CODE["FFMA"]), lambda low, high: (low ^ 1 << 16, high)),
                ("reads another register", (x for x in code if x[1] & 0xFFF == CODE["FFMA"]), lambda low, high: (low ^ 1 << 26, high))):
            for at, low, high in spread(places, 10):
                code_, said, _ = bench.run(["check"], damaged(data, at, *change(low, high)), name)
                lines = said.splitlines()
                bench.said += [f"{name} {at:x} {what}: {code_}, {len(lines)} lines", *lines[:2]]


def main():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(sys.argv[1]), pathlib.Path(folder))
        written, ordered = verbs(bench)
        refusals(bench)
        findings(bench, written, ordered)
    now = "\n".join(bench.said) + "\n"
    if "--write" in sys.argv:
        SAID.write_text(now)
        return 0
    differences = list(difflib.unified_diff(SAID.read_text().splitlines(), now.splitlines(), "said.txt", "now", lineterm="", n=1))
    print("\n".join(differences[:60]) if differences else f"{len(bench.said)} lines as they were")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
