#!/usr/bin/env python3
"""Runs PyTorch's own operator samples (its OpInfo database) for linear algebra, FP32 on the GPU, forward and backward, against
FP64 on the CPU. Prints a line a sample; run it with and without the drop-in and compare the lines:

    python3 lab/torch/opinfo.py > without.txt
    rung run -- python3 lab/torch/opinfo.py > with.txt && diff without.txt with.txt

An argument like 2/6 takes the third of six parts of the operators; lab/torch/own_tests.sh runs them side by side.
"""

import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

NAMES = ("matmul", "__rmatmul__", "mm", "bmm", "mv", "dot", "vdot", "inner", "outer", "addmm", "addbmm", "baddbmm",
         "addmv", "addr", "chain_matmul", "einsum", "tensordot", "kron", "nn.functional.linear",
         "nn.functional.bilinear", "nn.functional.scaled_dot_product_attention", "nn.functional.multi_head_attention_forward",
         "linalg.multi_dot", "linalg.matrix_power", "linalg.inv", "linalg.solve", "linalg.cholesky", "linalg.qr",
         "linalg.lu", "linalg.lstsq", "linalg.pinv", "linalg.det", "linalg.slogdet", "linalg.householder_product",
         "linalg.vecdot", "linalg.matrix_norm", "cdist", "corrcoef", "cov", "nn.functional.conv1d",
         "nn.functional.conv2d", "nn.functional.unfold", "block_diag", "trapezoid", "triangular_solve", "cholesky_solve",
         "lu_solve", "ormqr", "matrix_exp", "svd", "pca_lowrank", "svd_lowrank")


def wide(value):
    """Returns the same values on the CPU in FP64, with gradients where they have them."""
    if isinstance(value, torch.Tensor):
        copy = value.detach().cpu()
        return copy.double().requires_grad_(value.requires_grad) if copy.is_floating_point() else copy
    return value


def tensors(value):
    return [x for x in tree_flatten(value)[0] if isinstance(x, torch.Tensor) and x.is_floating_point()]


def call(op, sample_input, args, kwargs):
    return op(sample_input, *args, **kwargs)


def is_close(mine, exact):
    mine, exact = mine.detach().cpu().double(), exact.detach()
    return mine.shape == exact.shape and torch.isclose(mine, exact, rtol=1e-3, atol=1e-3, equal_nan=True).all()


def gradients(parts, results):
    """Returns the gradient of the results' sum by each tensor of the operands that has one; None: it does not matter."""
    leaves = [x for x in tensors(parts) if x.requires_grad]
    wanted = [x.sum() for x in results if x.requires_grad]
    return torch.autograd.grad(wanted, leaves, allow_unused=True) if leaves and wanted else ()


def outcome(op, sample):
    parts = sample.input, sample.args, sample.kwargs
    wide_parts = tree_map(wide, parts)
    with torch.random.fork_rng(devices=[0]):
        torch.manual_seed(7)
        ours = tensors(call(op, *parts))
    exact = tensors(call(op, *wide_parts))
    if len(ours) != len(exact) or not all(map(is_close, ours, exact)):
        return "differs"
    for mine, reference in zip(gradients(parts, ours), gradients(wide_parts, exact)):
        if (mine is None) != (reference is None) or (mine is not None and not is_close(mine, reference)):
            return "ok, gradient differs"
    return "ok"


def main():
    warnings.simplefilter("ignore")
    counts = {}
    part, parts = (int(x) for x in sys.argv[1].split("/")) if len(sys.argv) > 1 else (0, 1)
    # In the order of NAMES: what is nearest to a product comes first.
    ops = sorted((o for o in op_db if o.name in NAMES), key=lambda o: (NAMES.index(o.name), o.variant_test_name))
    for op in ops[part::parts]:
        if torch.float32 not in op.supported_dtypes("cuda"):
            continue
        torch.manual_seed(11)
        for index, sample in enumerate(op.sample_inputs("cuda", torch.float32, requires_grad=op.supports_autograd)):
            try:
                result = outcome(op, sample)
            except Exception as error:  # the same error must come with and without the drop-in
                result = f"raises {type(error).__name__}"
            counts[result] = counts.get(result, 0) + 1
            print(f"{op.name}.{op.variant_test_name or '-'}[{index}] {result.replace(' ', '_')}", flush=True)
    print(counts, file=sys.stderr)


if __name__ == "__main__":
    main()
