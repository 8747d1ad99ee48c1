"""Rung from Python: FP32 matrix products on whatever holds the operands (NumPy, CuPy, PyTorch, anything with DLPack).

    import rung
    c = rung.matmul(a, b)                    # on the GPU or CPU where a and b are
    c = rung.matmul(a, b, math="strict")     # "accurate" (default), "strict" or "fast"
    rung.enable()                            # from here on, this process's cuBLAS FP32 products run on Rung

The library is found through RUNG_LIBRARY_DIR, beside this package (../../build/release/lib in a source tree), or the
system's search path.
"""

import ctypes
import os
import sys
import threading

from ._array import describe, new_like, stream_of

__all__ = ["matmul", "enable", "version", "RungError"]

_MATH = {"strict": 0, "accurate": 1, "fast": 2}
_CPU, _BEST = -1, -2


class RungError(RuntimeError):
    """What the library refused, in its own words."""


class _Config(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_int),
        ("threads", ctypes.c_int),
        ("math", ctypes.c_int),
        ("pointers", ctypes.c_int),
        ("stream", ctypes.c_void_p),
        ("workspace_limit_bytes", ctypes.c_int64),
    ]


def _candidates(name):
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("RUNG_LIBRARY_DIR")
    if named:
        yield os.path.join(named, name)
    yield os.path.join(here, "..", "..", "build", "release", "lib", name)
    yield os.path.join(here, "..", "..", "..", name)
    yield name


def _open(name, mode=ctypes.DEFAULT_MODE):
    tried = []
    for path in _candidates(name):
        try:
            return ctypes.CDLL(path, mode=mode)
        except OSError as error:
            tried.append(str(error))
    raise RungError(f"{name} was not found; set RUNG_LIBRARY_DIR to the folder that holds it ({'; '.join(tried)})")


def _load():
    library = _open("librung.so.0")
    library.rung_last_error.restype = ctypes.c_char_p
    library.rung_version.restype = ctypes.c_char_p
    i64, f32, ptr = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
    library.rung_sgemm_strided_batched.argtypes = (
        [ptr, ctypes.c_int, ctypes.c_int, ctypes.c_int, i64, i64, i64, f32]
        + [ptr, i64, i64] * 2 + [f32, ptr, i64, i64, i64])
    library.rung_context_create.argtypes = [ctypes.POINTER(ptr), ctypes.POINTER(_Config)]
    library.rung_context_destroy.argtypes, library.rung_context_destroy.restype = [ptr], None
    for setter in ("rung_context_set_math", "rung_context_set_stream"):
        getattr(library, setter).argtypes = [ptr, ctypes.c_int if setter.endswith("math") else ptr]
    return library


_library = None
_local = threading.local()  # a context belongs to one thread at a time


def _lib():
    global _library
    if _library is None:
        _library = _load()
    return _library


def _check(status):
    if status != 0:
        raise RungError(_lib().rung_last_error().decode())


class _Context:
    """A thread's context on a device; it ends with the thread, and its workspace with it."""

    def __init__(self, device):
        config = _Config(device=device, pointers=1 if device >= 0 else 0)
        self.handle = ctypes.c_void_p()
        self.library = _lib()
        _check(self.library.rung_context_create(ctypes.byref(self.handle), ctypes.byref(config)))

    def __del__(self):
        if self.handle and not sys.is_finalizing():
            self.library.rung_context_destroy(self.handle)


def _context(device):
    contexts = _local.__dict__.setdefault("contexts", {})
    if device not in contexts:
        contexts[device] = _Context(device)
    return contexts[device].handle


def version():
    """The library's version."""
    return _lib().rung_version().decode()


def _as_rows(view, name):
    """A 2- or 3-D view as (transposed, leading dimension, batch stride) of a row-major matrix, or None."""
    *_, rows, columns = view.shape
    if 0 in view.shape:  # whose strides mean nothing
        return False, max(columns, 1), 0
    stride_row, stride_column = view.strides[-2:]
    if columns == 1 and rows != 1 and stride_row == 1:  # a column vector: its transpose is a contiguous row
        transposed, leading = True, max(rows, 1)
    elif stride_column == 1 or columns == 1:
        transposed, leading = False, stride_row if rows > 1 else max(columns, 1)
    elif stride_row == 1 or rows == 1:
        transposed, leading = True, stride_column if columns > 1 else max(rows, 1)
    else:
        raise RungError(f"{name} has strides {view.strides}: one of the last two must be 1; make it contiguous first")
    batch_stride = view.strides[0] if len(view.shape) == 3 and view.shape[0] > 1 else 0
    return transposed, leading, batch_stride


def matmul(a, b, out=None, *, alpha=1.0, beta=0.0, math="accurate"):
    """alpha * a @ b + beta * out, in FP32, for 2-D operands or 3-D batches of them; returns out."""
    if math not in _MATH:
        raise RungError(f"math is {math!r}: one of {', '.join(_MATH)}")
    va, vb = describe(a, "a"), describe(b, "b")
    if va.device != vb.device:
        raise RungError(f"a is on {va.where()} but b is on {vb.where()}")
    if len(va.shape) not in (2, 3) or len(vb.shape) not in (2, 3):
        raise RungError(f"a has {len(va.shape)} dimensions and b {len(vb.shape)}: each must have 2 or 3")
    m, k, n = va.shape[-2], va.shape[-1], vb.shape[-1]
    if vb.shape[-2] != k:
        raise RungError(f"a is {m} x {k} but b is {vb.shape[-2]} x {n}: the inner sizes differ")
    batches = {v.shape[0] for v in (va, vb) if len(v.shape) == 3} - {1}
    if len(batches) > 1:
        raise RungError(f"the batches differ: {sorted(batches)}")
    batched = 3 in (len(va.shape), len(vb.shape))
    batch = batches.pop() if batches else 1
    if out is None:
        if beta != 0.0:
            raise RungError("beta is not 0 but there is no out to add to")
        out = new_like(a, (batch, m, n) if batched else (m, n))
    vc = describe(out, "out")
    if not vc.writable:
        raise RungError("out is read-only")
    if vc.shape != ((batch, m, n) if batched else (m, n)) or vc.device != va.device:
        raise RungError(f"out is {vc.shape} on {vc.where()}: it must be {(batch, m, n) if batched else (m, n)} on {va.where()}")
    if 0 in vc.shape:
        return out
    return _run(va, vb, vc, out, (m, n, k, batch), (alpha, beta), math, stream_of(a))


def _run(va, vb, vc, out, sizes, scalars, math, stream):
    m, n, k, batch = sizes
    (ta, lda, sa), (tb, ldb, sb), (tc, ldc, sc) = _as_rows(va, "a"), _as_rows(vb, "b"), _as_rows(vc, "out")
    if tc:  # column-major out: out^T = b^T a^T
        va, vb, ta, tb, lda, ldb, sa, sb, m, n = vb, va, not tb, not ta, ldb, lda, sb, sa, n, m
    if ldc < n or (batch > 1 and sc == 0):
        raise RungError(f"out has strides {vc.strides}: its elements overlap")
    context = _context(va.device)
    _check(_lib().rung_context_set_math(context, _MATH[math]))
    if va.device >= 0:
        _check(_lib().rung_context_set_stream(context, stream))
    _check(_lib().rung_sgemm_strided_batched(
        context, 1, int(ta), int(tb), m, n, k, scalars[0], va.pointer, lda, sa, vb.pointer, ldb, sb, scalars[1],
        vc.pointer, ldc, sc, batch))
    return out


def enable(math="accurate"):
    """Lets Rung answer this process's cuBLAS FP32 products from here on; returns how many callers were changed.

    Best called before PyTorch or CuPy is imported; objects already loaded are changed in place.
    """
    if math not in _MATH:
        raise RungError(f"math is {math!r}: one of {', '.join(_MATH)}")
    os.environ["RUNG_MATH"] = math
    shim = _open("librung_cublas.so", ctypes.RTLD_GLOBAL)
    changed = shim.rung_cublas_enable()
    if changed < 0:
        raise RungError("a library's table of imports could not be changed")
    return changed


def _main():
    print(f"rung {version()}", file=sys.stdout)


if __name__ == "__main__":
    _main()
