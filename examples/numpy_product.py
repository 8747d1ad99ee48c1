"""rung.matmul beside NumPy's own: the same call, any shapes and strides, an out of one's own."""

import numpy as np
import rung

rng = np.random.default_rng(1)
a = rng.standard_normal((8, 300, 200), dtype=np.float32)
b = rng.standard_normal((200, 100), dtype=np.float32)
c = rung.matmul(a, b)  # b for every matrix of the batch
out = np.empty((300, 100), np.float32)
rung.matmul(a[0, ::-1], b, out=out)  # rows backwards
error = max(np.abs(c - a @ b).max(), np.abs(out - (a[0] @ b)[::-1]).max())
print(f"rung {rung.__version__}: the largest difference to NumPy is {error:.2g}")
assert error < 1e-3
