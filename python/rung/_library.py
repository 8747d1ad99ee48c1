"""The built library through ctypes: found, opened once, and one context a thread and device."""

from __future__ import annotations

import ctypes
import os
import reprlib
import sys
import threading
from typing import Any, Iterator

HERE = os.path.dirname(os.path.abspath(__file__))
MATH = {"strict": 0, "accurate": 1, "fast": 2}
CPU = -1


class RungError(RuntimeError):
    """What the library refused, in its own words."""


class ShapeError(RungError, ValueError):
    """Shapes that do not go together. A ValueError, as NumPy's own."""


def said(value: Any) -> str:
    """A wrong value as a sentence names it: shortened, and also where Python writes no digits of it."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return f"of type {type(value).__name__}, with thousands of digits"


def check_math(math: Any) -> None:
    if not isinstance(math, str) or math not in MATH:
        raise RungError(f"math is {said(math)}: one of {', '.join(MATH)}")


class Config(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_int),
        ("threads", ctypes.c_int),
        ("math", ctypes.c_int),
        ("pointers", ctypes.c_int),
        ("stream", ctypes.c_void_p),
        ("workspace_limit_bytes", ctypes.c_int64),
    ]


class Gemm(ctypes.Structure):
    """rung_gemm of rung.h, field by field."""

    _fields_ = (
        [(name, ctypes.c_int) for name in ("layout", "trans_a", "trans_b")]
        + [(name, ctypes.c_int64) for name in ("m", "n", "k")]
        + [(name, ctypes.c_void_p) for name in ("a", "b", "c")]
        + [(name, ctypes.c_int64) for name in ("lda", "ldb", "ldc", "batch", "stride_a", "stride_b", "stride_c")]
        + [(name, ctypes.c_void_p) for name in ("a_array", "b_array", "c_array")]
        + [("alpha", ctypes.c_float), ("beta", ctypes.c_float)]
        + [("alpha_device", ctypes.c_void_p), ("beta_device", ctypes.c_void_p)]
        + [("bias_kind", ctypes.c_int), ("bias", ctypes.c_void_p), ("activation", ctypes.c_int)]
    )


def candidates(name: str) -> Iterator[str]:
    """Where a file of the library may be: where it is named, else in an installed wheel, a source tree, a prefix, anywhere."""
    named = os.environ.get("RUNG_LIBRARY_DIR")
    if named:
        yield os.path.join(named, name)
        return
    yield os.path.join(HERE, "lib", name)
    yield os.path.join(HERE, "..", "..", "build", "release", "lib", name)
    yield os.path.join(HERE, "..", "..", "..", name)
    yield name


def open_library(name: str, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    tried = []
    for path in candidates(name):
        try:
            return ctypes.CDLL(path, mode=mode)
        except OSError as error:
            tried.append(str(error))
    named = os.environ.get("RUNG_LIBRARY_DIR")
    raise RungError((f"RUNG_LIBRARY_DIR is {named!r}, from where {name} cannot be opened; set it to the folder that holds it, or unset it"
                     if named else f"{name} was not found; set RUNG_LIBRARY_DIR to the folder that holds it") + f" ({'; '.join(tried)})")


_opened: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    global _opened
    if _opened is None:
        found = open_library("librung.so.0")
        found.rung_last_error.restype = ctypes.c_char_p
        found.rung_version.restype = ctypes.c_char_p
        pointer = ctypes.c_void_p
        found.rung_context_create.argtypes = [ctypes.POINTER(pointer), ctypes.POINTER(Config)]
        found.rung_context_destroy.argtypes, found.rung_context_destroy.restype = [pointer], None
        found.rung_context_set_math.argtypes = [pointer, ctypes.c_int]
        found.rung_context_set_stream.argtypes = [pointer, pointer]
        _opened = found
    return _opened


def check(status: int) -> None:
    if status != 0:
        raise RungError(library().rung_last_error().decode())


class Context:
    """A thread's context on a device; it ends with the thread, and its workspace with it."""

    def __init__(self, device: int):
        config = Config(device=device, pointers=1 if device >= 0 else 0)
        self.handle = ctypes.c_void_p()
        self.library = library()
        check(self.library.rung_context_create(ctypes.byref(self.handle), ctypes.byref(config)))

    def __del__(self):
        if self.handle and sys is not None and not sys.is_finalizing():
            self.library.rung_context_destroy(self.handle)


class _Local(threading.local):
    """What a thread keeps: its contexts, and the descriptions of plain products of NumPy's and PyTorch's by their shapes."""

    def __init__(self):
        self.contexts: dict = {}
        self.plain: dict = {}
        self.tensors: dict = {}


local = _Local()  # a context belongs to one thread at a time


def context(device: int) -> ctypes.c_void_p:
    contexts = local.contexts
    if device not in contexts:
        contexts[device] = Context(device)
    return contexts[device].handle
