#!/usr/bin/env python3
"""Prints what is in a page or a picture that a command has written, but for what never changes: of a page the data between the two parts
of its frame, of a picture the elements with their texts. usage: show FILE"""
import hashlib
import json
import re
import sys


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def show(name, value, depth=0):
    """Prints JSON, a line for each leaf or short list; a long text by its first line and a hash."""
    said = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and "\n" in value or len(said) > 20000:
        print(f"{'  ' * depth}{name}: {said[:60]} ... {len(said)} characters, {digest(said)}")
    elif len(said) < 400 or not isinstance(value, (list, dict)):
        print(f"{'  ' * depth}{name}: {said}")
    else:
        print(f"{'  ' * depth}{name}:")
        for key, of in enumerate(value) if isinstance(value, list) else value.items():
            show(key, of, depth + 1)


def page(text):
    for name, data in re.findall(r"^(?:const|var|let) (\w+) *= *([\[{\"].*[\]}\"]);?$", text, re.M):
        try:
            value = json.loads(data)
        except json.JSONDecodeError:
            continue
        if name == "kernels": # the catalog, which `rung list` shows
            value = {key: value[key] for key in ("l01_naive", "avx2_f32_6x16", "r02_shared")}
        show(name, value)


def picture(text):
    shapes = {}
    for name, attributes, words in re.findall(r"<(\w+)((?:\s[^<>]*)?)>([^<]*)", text):
        if words.strip():
            print(f"{name}: {words.strip()}")
        shapes.setdefault(name, []).append(attributes)
    for name, of in sorted(shapes.items()):
        print(f"{len(of)} {name}, {digest(''.join(of))}")


content = open(sys.argv[1], encoding="utf-8").read()
(picture if content.lstrip().startswith(("<svg", "<?xml")) else page)(content)
