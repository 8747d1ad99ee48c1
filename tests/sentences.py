#!/usr/bin/env python3
"""Every sentence that the library, the drop-ins, the lab or the command can say stands in a test, word for word.

    sentences.py SOURCE_DIR [--show | --heard FILE ...]

A sentence is a text of the sources, three words or more. It is heard where all of it but the values is in a test, a transcript or a table that a
test compares. tests/sentences.txt lists those that are not, each under the reason: a new one fails this test, and so does one that is listed
although it is heard or gone. --show prints what is not heard; --heard counts what these files have, which programs printed, as heard too.
"""
import pathlib
import re
import sys

TEXT = r'"(?:\\.|[^"\\\n])*"'
SPOKEN = ("src/", "shim/", "lab/", "cli/")
SILENT = re.compile(r"^src/(lens/cuda|cuda/device|ladder)/|/tiles?\.(h|inc)$|\.cu$|kernels/|/[a-z]+\.inc$|lab/device/")  # device code, rows, assembler
MADE = re.compile(r"(^|/)(__pycache__|\.\w+_cache)/|\.pyc$|(^|/)\.")
TABLES = ("calls", "launches-gpu", "launches-ladder", "moves-gpu", "plans-cpu")
VALUE = r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[diouxXeEfgGcspaA]|%\d*\[\^[^]]*\]"
WORD = r"[A-Za-z]{2,}"


def texts_of(source):
    """Yields the texts of a C source, with those that the compiler joins in one."""
    source = re.sub(rf"({TEXT})|/\*.*?\*/|//[^\n]*", lambda found: found[1] or " ", source, flags=re.S)
    for found in re.finditer(rf"{TEXT}(?:\s*(?:PRI\w+|{TEXT}))*", source):
        parts = re.findall(TEXT, re.sub(r"\bPRI\w+", '"lld"', found[0]))
        text = "".join(part[1:-1] for part in parts)
        yield text.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


def pieces_of(sentence):
    """Returns what of a sentence is the same each time: the pieces of two words or more between its values and ends of lines."""
    between = re.split(VALUE, sentence.replace("%%", "\0"))
    pieces = [line.replace("\0", "%").strip() for piece in between for line in piece.split("\n")]
    return [piece for piece in pieces if len(re.findall(WORD, piece)) > 1] or [max(pieces, key=len)]


def sentences(root, names):
    """Yields file and sentence."""
    for name in names:
        if name.startswith(SPOKEN) and name.endswith((".c", ".h")) and not SILENT.search(name):
            for text in texts_of((root / name).read_text()):
                words = re.findall(WORD, re.sub(VALUE, " ", text))
                if len(words) > 2 and " " in text.strip() and not re.match(r"\s*[<{#]", text):
                    yield name, text


def all_tests(root, names, more):
    """Returns what tests say: their files, the texts of those in C, and the tables."""
    said = [path.read_text(errors="replace") for path in [root / "results" / f"{table}.txt" for table in TABLES] + more]
    for name in names:
        if name.startswith("tests/") and not name.startswith(("tests/faults/", "tests/sentences")):
            text = (root / name).read_text(errors="replace")
            said += [text, *(texts_of(text) if name.endswith((".c", ".h")) else ())]
    return "\n".join(said).replace("\\", "")


def main():
    root, words = pathlib.Path(sys.argv[1]), sys.argv[2:]
    # Without git, which a bare machine does not have.
    found = (path for folder in (*SPOKEN, "tests/") for path in (root / folder).rglob("*") if path.is_file())
    names = sorted(name for name in (str(path.relative_to(root)) for path in found) if not MADE.search(name))
    said = all_tests(root, names, [pathlib.Path(word) for word in words[1:]])
    one_line = {sentence: f"{name}: {sentence.strip()!r}" for name, sentence in sentences(root, names)}
    unheard = {line for sentence, line in one_line.items() if not all(piece.replace("\\", "") in said for piece in pieces_of(sentence))}
    if words:
        print(*sorted(unheard), sep="\n")
        return 0
    listed = {line for line in (root / "tests" / "sentences.txt").read_text().splitlines() if line and not line.startswith("#")}
    for line in sorted(unheard - listed):
        print(f"FAILED: no test says {line}")
    for line in sorted(listed - unheard):
        print(f"FAILED: tests/sentences.txt lists a sentence that is {'heard' if line in one_line.values() else 'gone'}: {line}")
    print(f"{len(one_line)} sentences, {len(unheard)} of them in no test")
    return unheard != listed or len(one_line) < 1000


if __name__ == "__main__":
    sys.exit(main())
