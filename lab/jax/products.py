#!/usr/bin/env python3
"""Runs FP32 products of JAX, which takes cuBLAS's functions with dlsym, and prints error against FP64 and time a call.

    python3 lab/jax/products.py
    rung run --report -- python3 lab/jax/products.py       # the same through librung_audit.so

XLA is kept from its own Triton products; precision "highest" asks it for FP32 instead of TF32.
"""

import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=false")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_default_matmul_precision", "highest")

CASES = (
    ("a @ b 512", lambda a, b: a @ b, (512, 512), (512, 512)),
    ("a @ b 2048", lambda a, b: a @ b, (2048, 2048), (2048, 2048)),
    ("a @ b 4096", lambda a, b: a @ b, (4096, 4096), (4096, 4096)),
    ("a @ b.T 1024x4096x1024", lambda a, b: a @ b.T, (1024, 4096), (1024, 4096)),
    ("relu(a @ b) 1024", lambda a, b: jax.nn.relu(a @ b), (1024, 1024), (1024, 1024)),
    ("einsum bij,bjk->bik", lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (16, 512, 256), (16, 256, 512)),
)


def main():
    print(f"JAX {jax.__version__}, {jax.devices()[0].device_kind}")
    random = np.random.default_rng(3)
    for name, function, shape_a, shape_b in CASES:
        a, b = (random.standard_normal(shape, dtype=np.float32) for shape in (shape_a, shape_b))
        compiled = jax.jit(function)
        on_gpu = jax.device_put(a), jax.device_put(b)
        c = np.asarray(compiled(*on_gpu))
        rows = slice(0, 64)
        part = a[..., rows, :].astype(np.float64), b.astype(np.float64)
        plain = {"a @ b.T": lambda x, y: x @ y.T}.get(name[:7], np.matmul)
        exact, scale = plain(*part), plain(*(abs(x) for x in part))
        if name.startswith("relu"):
            exact = np.maximum(exact, 0)
        error = (abs(c[..., rows, :] - exact) / scale).max() * 2**24
        times = []
        for _ in range(10):
            since = time.perf_counter()
            for _ in range(20):
                out = compiled(*on_gpu)
            out.block_until_ready()
            times.append((time.perf_counter() - since) / 20)
        print(f"{name:28} {sorted(times)[5] * 1e6:9.1f} us  {error:7.2f} u", flush=True)
        if not error <= 64:
            raise SystemExit(f"{name}: the result is wrong")


if __name__ == "__main__":
    main()
