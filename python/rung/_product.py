"""matmul on views: any number of dimensions, broadcasting, any strides. Leading dimensions become as few batched calls as
their strides allow; what no call can take is copied by the library that owns the array."""

from __future__ import annotations

import ctypes
import itertools
import sys
from typing import Any

from ._array import View, assign, contiguous, describe, like_which, new_like, stream_of, wants_gradient
from ._library import MATH, Gemm, RungError, ShapeError, check, check_math, context, library

ROW_MAJOR = 1


def _as_matrix(view: View, name: str, right: bool) -> View:
    """A vector is one row on the left and one column on the right."""
    if len(view.shape) >= 2:
        return view
    if not view.shape:
        raise ShapeError(f"{name} is a single number: matmul takes vectors, matrices and batches of them")
    (length,), (step,) = view.shape, view.strides
    shape, strides = ((length, 1), (step, 1)) if right else ((1, length), (max(length, 1) * step, step))
    return view.like(shape, strides)


def _batch_shape(va: View, vb: View) -> tuple:
    """NumPy's rule for what comes before the last two dimensions."""
    found = []
    for x, y in itertools.zip_longest(reversed(va.shape[:-2]), reversed(vb.shape[:-2]), fillvalue=1):
        if x != y and 1 not in (x, y):
            raise ShapeError(f"the batches of a, {va.shape[:-2]}, and of b, {vb.shape[:-2]}, cannot be broadcast together")
        found.append(y if x == 1 else x)
    return tuple(reversed(found))


def _broadcast(view: View, batch: tuple) -> View:
    missing = len(batch) - (len(view.shape) - 2)
    sizes, strides = (1,) * missing + view.shape[:-2], (0,) * missing + view.strides[:-2]
    strides = tuple(0 if size == 1 else stride for size, stride in zip(sizes, strides))
    return view.like(batch + view.shape[-2:], strides + view.strides[-2:])


def _as_rows(view: View) -> Any:
    """(transposed, leading dimension) of a row-major matrix; None where no leading dimension describes it."""
    rows, columns = view.shape[-2:]
    by_row, by_column = view.strides[-2:]
    if rows == 0 or columns == 0:  # whose strides mean nothing
        return False, max(columns, 1)
    if (by_column == 1 or columns == 1) and (rows == 1 or by_row >= max(columns, 1)):
        return False, by_row if rows > 1 else max(columns, 1)
    if (by_row == 1 or rows == 1) and (columns == 1 or by_column >= max(rows, 1)):
        return True, by_column if columns > 1 else max(rows, 1)
    return None


def _overlaps_itself(view: View) -> bool:
    """Whether two indices may name one element: each step must leave room for all smaller ones."""
    extent = 1
    for step, size in sorted((abs(s), n) for s, n in zip(view.strides, view.shape) if n > 1):
        if step < extent:
            return True
        extent += step * (size - 1)
    return False


def _span(view: View) -> tuple:
    steps = [4 * s * (n - 1) for s, n in zip(view.strides, view.shape)]
    return view.pointer + sum(s for s in steps if s < 0), view.pointer + sum(s for s in steps if s > 0) + 4


def _share_memory(x: View, y: View) -> bool:
    (low_x, high_x), (low_y, high_y) = _span(x), _span(y)
    return 0 not in x.shape and 0 not in y.shape and x.device == y.device and low_x < high_y and low_y < high_x


def _readable(view: View, array: Any, name: str, right: bool) -> View:
    """The operand itself, or a copy of it whose rows are rows."""
    matrix = _as_matrix(view, name, right)
    if 0 in matrix.shape or (_as_rows(matrix) and all(s >= 0 for s in matrix.strides[:-2]) and view.pointer % 4 == 0):
        return matrix
    return _as_matrix(describe(contiguous(array, name, copy=view.pointer % 4 != 0), name), name, right)


def _merged(batch: tuple, strides: list) -> tuple:
    """Neighbouring batch dimensions that all operands cross in one stride become one."""
    sizes: list = []
    steps: list = []
    for i, size in enumerate(batch):
        if size == 1:
            continue
        here = [s[i] for s in strides]
        if sizes and all(before == size * now for before, now in zip(steps[-1], here)):
            sizes[-1] *= size
            steps[-1] = here
        else:
            sizes.append(size)
            steps.append(here)
    return sizes, steps


def _run(va: View, vb: View, vc: View, scalars: tuple, math: str, stream: int | None) -> None:
    (ta, lda), (tb, ldb), (tc, ldc) = _as_rows(va), _as_rows(vb), _as_rows(vc)
    if tc:  # out by columns: its transpose is the product of the transposes, exchanged
        va, vb, vc = (v.like(v.shape[:-2] + v.shape[:-3:-1], v.strides[:-2] + v.strides[:-3:-1]) for v in (vb, va, vc))
        ta, lda, tb, ldb = not tb, ldb, not ta, lda
    handle, lib = context(va.device), library()
    check(lib.rung_context_set_math(handle, MATH[math]))
    if va.device >= 0:
        check(lib.rung_context_set_stream(handle, stream))
    sizes, steps = _merged(vc.shape[:-2], [v.strides[:-2] for v in (va, vb, vc)])
    batch, step = (sizes.pop(), steps.pop()) if sizes else (1, (0, 0, 0))
    (m, n), k = vc.shape[-2:], va.shape[-1]
    g = Gemm(layout=ROW_MAJOR, trans_a=ta, trans_b=tb, m=m, n=n, k=k, lda=max(lda, 1), ldb=max(ldb, 1), ldc=max(ldc, 1),
             batch=batch, stride_a=step[0], stride_b=step[1], stride_c=step[2], alpha=scalars[0], beta=scalars[1])
    for index in itertools.product(*(range(size) for size in sizes)):
        g.a, g.b, g.c = (v.pointer + 4 * sum(i * s[which] for i, s in zip(index, steps))
                         for which, v in enumerate((va, vb, vc)))
        check(lib.rung_gemm_run(handle, ctypes.byref(g)))


def product(a: Any, b: Any, out: Any, alpha: float, beta: float, math: str) -> Any:
    check_math(math)
    for array, name in ((a, "a"), (b, "b"), (out, "out")):
        if wants_gradient(array):
            raise RungError(f"{name} requires a gradient, which only a product of two tensors without an out gets: "
                            "leave out and beta out, or call it under torch.no_grad()")
    seen_a, seen_b = describe(a, "a"), describe(b, "b")
    if seen_a.device != seen_b.device:
        raise RungError(f"a is on {seen_a.where()} but b is on {seen_b.where()}")
    va, vb = _readable(seen_a, a, "a", False), _readable(seen_b, b, "b", True)
    if va.shape[-1] != vb.shape[-2]:
        raise ShapeError(f"a is {seen_a.shape} and b is {seen_b.shape}: the inner sizes {va.shape[-1]} and {vb.shape[-2]} differ")
    batch, matrix = _batch_shape(va, vb), (va.shape[-2], vb.shape[-1])
    shape = batch + (matrix[:1] if len(seen_a.shape) > 1 else ()) + (matrix[1:] if len(seen_b.shape) > 1 else ())
    if out is None and beta != 0.0:
        raise RungError("beta is not 0 but there is no out to add to")
    result = new_like(a, shape) if out is None else out
    vc = describe(result, "out")
    if not vc.writable:
        raise RungError("out is read-only")
    if vc.shape != shape or vc.device != va.device:
        raise ShapeError(f"out is {vc.shape} on {vc.where()}: it must be {shape} on {va.where()}")
    if 0 in shape:
        return result
    if _overlaps_itself(vc):
        raise RungError(f"out has strides {vc.strides}: its elements overlap")
    full = _full(vc, batch + matrix, len(seen_a.shape) > 1, len(seen_b.shape) > 1)
    target = result
    if out is not None and (vc.pointer % 4 or not _as_rows(full) or any(s < 0 for s in full.strides) or _share_memory(vc, seen_a) or
                            _share_memory(vc, seen_b)):
        target = contiguous(out, "out", copy=True) if beta != 0.0 else new_like(like_which(out, a), shape)
        full = _full(describe(target, "out"), batch + matrix, len(seen_a.shape) > 1, len(seen_b.shape) > 1)
    _run(_broadcast(va, batch), _broadcast(vb, batch), full, (alpha, beta), math, stream_of(a))
    if target is not result:
        assign(result, target)
    return result


def _full(view: View, shape: tuple, has_rows: bool, has_columns: bool) -> View:
    """The result with the row or column that a vector operand took away."""
    strides = list(view.strides)
    if not has_columns:
        strides.append(1)
    if not has_rows:
        strides.insert(len(strides) - 1, shape[-1] if has_columns else 1)
    return view.like(shape, tuple(strides))
