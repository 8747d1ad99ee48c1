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
    """Returns the same values on the CPU in FP64."""
    if isinstance(value, torch.Tensor):
        copy = value.detach().cpu()
        return copy.double() if copy.is_floating_point() else copy
    return value


def tensors(value):
    return [x for x in tree_flatten(value)[0] if isinstance(x, torch.Tensor) and x.is_floating_point()]


def call(op, sample_input, args, kwargs):
    return op(sample_input, *args, **kwargs)


def outcome(op, sample):
    with torch.random.fork_rng(devices=[0]):
        torch.manual_seed(7)
        ours = tensors(call(op, sample.input, sample.args, sample.kwargs))
    exact = tensors(call(op, *(tree_map(wide, part) for part in (sample.input, sample.args, sample.kwargs))))
    for mine, reference in zip(ours, exact):
        close = torch.isclose(mine.detach().cpu().double(), reference, rtol=1e-3, atol=1e-3, equal_nan=True)
        if mine.shape != reference.shape or not close.all():
            return "differs"
    leaves = [x for x in tensors((sample.input, sample.args, sample.kwargs)) if x.requires_grad]
    wanted = [x for x in ours if x.requires_grad]
    if leaves and wanted:
        grads = torch.autograd.grad([x.sum() for x in wanted], leaves, allow_unused=True)
        if any(g is not None and not g.isfinite().all() for g in grads):
            return "ok, gradient not finite"
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
