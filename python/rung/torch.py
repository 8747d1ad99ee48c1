"""rung.matmul on PyTorch tensors, with gradients: torch.ops.rung.matmul where PyTorch has custom operators (2.4 on; torch.compile
keeps it as one operation), else an autograd function."""

from __future__ import annotations

import torch

from ._product import product


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
        return _operator(a, b, math)

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
        return _Function.apply(a, b, math)
