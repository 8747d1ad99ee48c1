"""Rung from Python: FP32 matrix products on whatever holds the operands (NumPy, CuPy, PyTorch, JAX, anything with DLPack).

    import rung
    c = rung.matmul(a, b)                    # on the GPU or CPU where a and b are
    c = rung.matmul(a, b, math="strict")     # "accurate" (default), "strict" or "fast"
    rung.enable()                            # from here on, this process's cuBLAS FP32 products run on Rung

The library is found through RUNG_LIBRARY_DIR, inside an installed wheel, in a source tree (build/release/lib), or along the
system's search path.
"""

from __future__ import annotations

import ctypes
import numbers
import os
import sys
from typing import Any

from . import _library
from ._library import Gemm, RungError, ShapeError

try:
    from . import _threads as _threads  # threadpoolctl, where it is installed, sees and limits Rung
except ImportError:
    pass

__all__ = ["matmul", "enable", "version", "RungError", "ShapeError", "__version__"]


def version() -> str:
    """The library's version."""
    return _library.library().rung_version().decode()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version()
    raise AttributeError(f"module 'rung' has no attribute {name!r}")


_empty: Any = None  # NumPy's, once there is a NumPy
_float32: Any = None
_ndarray: Any = None
_char, _address = ctypes.c_char.from_buffer, ctypes.addressof


def _use_numpy() -> bool:
    global _empty, _float32, _ndarray
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        _empty, _float32, _ndarray = numpy.empty, numpy.dtype("float32"), numpy.ndarray
    return numpy is not None


def _plain(a: Any, b: Any) -> Any:
    """The product of two NumPy matrices in rows without gaps, whose call is described once a shape and thread: a small
    product takes less time than asking arrays where they are. None: not of this kind.

    A description is taken out while it is used: a signal's handler, or what ends an object, may multiply such matrices in the
    middle of this and then describes its own call."""
    if a.dtype is not _float32 or b.dtype is not _float32:
        return None
    key = (a.shape, b.shape)
    plain = _library.local.plain
    kept = plain.pop(key, None)
    if kept is None:
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or 0 in a.shape + b.shape:
            return None
        (m, k), n, lib = a.shape, b.shape[1], _library.library()
        g = Gemm(layout=1, m=m, n=n, k=k, lda=k, ldb=n, ldc=n, batch=1, alpha=1.0)
        kept = g, ctypes.byref(g), (m, n), lib.rung_gemm_run, _library.context(_library.CPU)
    g, reference, shape, run, context = kept
    c = None
    try:
        g.a, g.b = _address(_char(a)), _address(_char(b))
        c = _empty(shape, _float32)
        g.c = _address(_char(c))
        if run(context, reference):  # refused, as at an odd address: the long way copies, or says why
            c = None
    except (TypeError, ValueError, BufferError):  # read-only, or not in rows without gaps
        pass
    if len(plain) < 4096:
        plain[key] = kept
    return c


def matmul(a: Any, b: Any, out: Any = None, *, alpha: float = 1.0, beta: float = 0.0, math: str = "accurate") -> Any:
    """alpha * (a @ b) + beta * out in FP32; returns out, or a new array of a's kind (JAX's where b alone is JAX's).

    As numpy.matmul: vectors, matrices, and batches of matrices whose leading dimensions are broadcast; any strides, negative
    ones too; an out that lies on an operand gets the right result. Classes made from numpy.ndarray are kept. On a CPU all
    modes compute in strict FP32. PyTorch tensors that require gradients get them, without an out; JAX arrays may be traced
    (jit, vmap, grad).

    math: "accurate" (tensor cores with FP32's error, the default), "strict" (FP32 multiply-adds only), "fast" (one
    tensor-core pass). Raises TypeError for what is not float32, ShapeError (a ValueError) for shapes that do not go
    together, RungError for what the library refuses.
    """
    if type(math) is not str or math not in _library.MATH:
        _library.check_math(math)
    if type(alpha) is not float or type(beta) is not float or alpha != 1.0 or beta != 0.0:
        alpha, beta = _number(alpha, "alpha"), _number(beta, "beta")
    if type(a) is _ndarray and type(b) is _ndarray and out is None and alpha == 1.0 and beta == 0.0:
        c = _plain(a, b)
        if c is not None:
            return c
    torch = sys.modules.get("torch")
    if torch is not None and out is None and beta == 0.0 and isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        from .torch import matmul as of_tensors

        if alpha == 1.0:
            return of_tensors(a, b, math)
        if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
            return alpha * of_tensors(a, b, math)
    if _ndarray is None and _use_numpy():  # behind PyTorch, whose compiler follows no NumPy
        return matmul(a, b, out, alpha=alpha, beta=beta, math=math)
    jax = sys.modules.get("jax")
    kind = getattr(jax, "Array", ())
    if isinstance(a, kind) or isinstance(out, kind) or (out is None and isinstance(b, kind)):
        if out is not None or beta != 0.0:
            raise RungError("JAX arrays do not change: there is no out, and beta is 0")
        from .jax import matmul as of_arrays

        c = of_arrays(a, b, math)
        return c if alpha == 1.0 else alpha * c
    from ._product import product

    result = product(a, b, out, alpha, beta, math)
    return result if out is not None else _in_class(result, a, b)


_INFINITE_IN_FP32 = (2 - 2**-24) * 2.0**127  # what is as large or larger is rounded to infinity


def _number(value: Any, name: str) -> float:
    """A scalar that the library takes in FP32: what is finite must stay so."""
    try:
        is_complex = isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real)
        if is_complex or isinstance(value, (str, bytes, bytearray)):  # float() takes some of them
            raise TypeError
        number = float(value)
    except OverflowError:
        number = _INFINITE_IN_FP32
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {_library.said(value)}: it must be a real number") from None
    if _INFINITE_IN_FP32 <= abs(number) < float("inf"):
        raise RungError(f"{name} is {_library.said(value)}: the largest number of FP32 is 3.4e38")
    return number


def _in_class(result: Any, a: Any, b: Any) -> Any:
    """The result in the class that NumPy would give it."""
    if type(result) is not _ndarray:
        return result
    subclasses = [x for x in (a, b) if isinstance(x, _ndarray) and type(x) is not _ndarray]
    if subclasses:
        result = max(subclasses, key=lambda x: x.__array_priority__).__array_wrap__(result)
    return result[()] if type(result) is _ndarray and not result.ndim else result  # of two vectors: a number


def enable(math: str = "accurate") -> int:
    """Lets Rung answer this process's cuBLAS FP32 products from here on; returns how many callers were changed.

    Best called before PyTorch or CuPy is imported; objects already loaded are changed in place.
    """
    _library.check_math(math)
    os.environ["RUNG_MATH"] = math
    shim = _library.open_library("librung_cublas.so", ctypes.RTLD_GLOBAL)
    changed = shim.rung_cublas_enable()
    if changed < 0:
        raise RungError("a library's table of imports could not be changed")
    return changed
