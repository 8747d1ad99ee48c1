"""What a type checker must accept, and the one line that it must not: run.sh asks mypy where it is there."""

import numpy as np

import rung

a = np.ones((2, 2), dtype=np.float32)
c = rung.matmul(a, a, out=None, alpha=1.0, beta=0.0, math="strict")
changed: int = rung.enable()
version: str = rung.version()
wrong: int = rung.version()  # type: ignore[assignment]
