"""rung.matmul on PyTorch tensors, with gradients: torch.ops.rung.matmul where PyTorch has custom operators (2.4 on; torch.compile
keeps it as one operation), else an autograd function. Two plain matrices that nobody records go to the library at once: an
operator written in Python costs some 50 us a call."""

from __future__ import annotations

import ctypes
from typing import Optional

import torch

from . import _library
from ._product import product

_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def _nobody_looks(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether no gradient, compiler, tracer, transformation or mode of PyTorch's wants to see the operation."""
    try:
        return not (
            (torch.is_grad_enabled() and (a.requires_grad or b.requires_grad))
            or torch._C._len_torch_dispatch_stack()
            or torch._C._len_torch_function_stack()
            or torch._C._get_tracing_state()
            or torch._C._functorch.peek_interpreter_stack()
        )
    except AttributeError:  # a PyTorch that lacks one of these
        return False


def _plain(a: torch.Tensor, b: torch.Tensor, math: str) -> Optional[torch.Tensor]:
    """The product of two matrices in rows without gaps; None for all others, and for what has to be refused with a sentence. A
    description is taken out while it is used, as for NumPy's."""
    if type(a) is not torch.Tensor or type(b) is not torch.Tensor or not _nobody_looks(a, b):
        return None
    device = a.device
    key = (a.shape, b.shape, device, math)
    local = _library.local
    kept = local.tensors.pop(key, None)
    if kept is None:
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0] or 0 in (*a.shape, b.shape[1]):
            return None
        if math not in _library.MATH or device.type not in ("cpu", "cuda") or (device.type == "cuda" and not _current_stream):
            return None
        (m, k), n, lib = a.shape, b.shape[1], _library.library()
        g = _library.Gemm(layout=1, m=m, n=n, k=k, lda=k, ldb=n, ldc=n, batch=1, alpha=1.0)
        context = _library.context(device.index if device.type == "cuda" else _library.CPU)
        kept = g, ctypes.byref(g), (m, n), lib, context, _library.MATH[math]
    c = _run(a, b, kept)
    if len(local.tensors) < 4096:
        local.tensors[key] = kept
    return c


def _run(a: torch.Tensor, b: torch.Tensor, kept: tuple) -> Optional[torch.Tensor]:
    device = a.device
    if a.dtype is not torch.float32 or b.dtype is not torch.float32 or b.device != device:
        return None
    if not (a.is_contiguous() and b.is_contiguous()) or a.is_neg() or b.is_neg():
        return None
    g, reference, shape, lib, context, mode = kept
    c = torch.empty(shape, dtype=torch.float32, device=device)
    g.a, g.b, g.c = a.data_ptr(), b.data_ptr(), c.data_ptr()
    status = lib.rung_context_set_math(context, mode)
    if not status and device.type == "cuda":
        status = lib.rung_context_set_stream(context, _current_stream(device.index))
    _library.check(status or lib.rung_gemm_run(context, reference))
    return c


def _forward(a: torch.Tensor, b: torch.Tensor, math: str) -> torch.Tensor:
    return product(a.detach(), b.detach(), None, 1.0, 0.0, math)


def _sum_to(gradient: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Takes back the broadcasting of leading dimensions."""
    extra = gradient.dim() - len(shape)
    gradient = gradient.sum(tuple(range(extra))) if extra else gradient
    ones = tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(ones, keepdim=True) if ones else gradient


def _gradients(a: torch.Tensor, b: torch.Tensor, gradient: torch.Tensor, math: str, wanted: tuple) -> tuple:
    left = a.unsqueeze(0) if a.dim() == 1 else a
    right = b.unsqueeze(-1) if b.dim() == 1 else b
    full = gradient
    if b.dim() == 1:
        full = full.unsqueeze(-1)
    if a.dim() == 1:
        full = full.unsqueeze(-2)
    of_a = of_b = None
    if wanted[0]:
        of_a = _sum_to(matmul(full, right.transpose(-1, -2), math), left.shape).reshape(a.shape)
    if wanted[1]:
        of_b = _sum_to(matmul(left.transpose(-1, -2), full, math), right.shape).reshape(b.shape)
    return of_a, of_b


if hasattr(torch.library, "custom_op"):

    @torch.library.custom_op("rung::matmul", mutates_args=())
    def _operator(a: torch.Tensor, b: torch.Tensor, math: str) -> torch.Tensor:
        return _forward(a, b, math)

    @_operator.register_fake
    def _shape_of(a, b, math):
        return torch.matmul(a, b).contiguous()

    def _keep(ctx, inputs, output):
        a, b, ctx.math = inputs
        ctx.save_for_backward(a, b)

    def _backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return (*_gradients(a, b, gradient, ctx.math, ctx.needs_input_grad[:2]), None)

    _operator.register_autograd(_backward, setup_context=_keep)

    def matmul(a: torch.Tensor, b: torch.Tensor, math: str = "accurate") -> torch.Tensor:
        """a @ b by Rung, differentiable, one operation to torch.compile."""
        c = None if torch.compiler.is_compiling() else _plain(a, b, math)
        return _operator(a, b, math) if c is None else c

else:

    class _Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, math):
            ctx.math = math
            ctx.save_for_backward(a, b)
            return _forward(a, b, math)

        @staticmethod
        def backward(ctx, gradient):
            a, b = ctx.saved_tensors
            return (*_gradients(a, b, gradient, ctx.math, ctx.needs_input_grad[:2]), None)

    def matmul(a: torch.Tensor, b: torch.Tensor, math: str = "accurate") -> torch.Tensor:
        """a @ b by Rung, differentiable."""
        c = _plain(a, b, math)
        return _Function.apply(a, b, math) if c is None else c
