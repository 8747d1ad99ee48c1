"""A layer's product by Rung with gradients, beside PyTorch's own."""

import torch
import rung

torch.manual_seed(1)
x = torch.randn(64, 128, requires_grad=True)
w = torch.randn(128, 32, requires_grad=True)
rung.matmul(x, w).square().mean().backward()
ours = x.grad.clone(), w.grad.clone()
x.grad = w.grad = None
(x @ w).square().mean().backward()
error = max((ours[0] - x.grad).abs().max().item(), (ours[1] - w.grad).abs().max().item())
print(f"rung {rung.__version__}: the largest difference of a gradient to PyTorch is {error:.2g}")
assert error < 1e-4
