"""threadpoolctl sees Rung and limits it (threads.sh finds a Python that has it)."""

import os
import sys

from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

os.environ["RUNG_NUM_THREADS"] = "5"
import numpy as np  # noqa: E402
import rung  # noqa: E402
from rung import _library  # noqa: E402

with threadpool_limits(limits=2):  # before Rung's first product
    assert _library.library().rung_process_threads() == 2

a = np.random.default_rng(1).standard_normal((300, 300), np.float32)
first = rung.matmul(a, a)


def mine():
    found = [x for x in threadpool_info() if x["internal_api"] == "rung"]
    assert len(found) == 1, found
    return found[0]


def of_context():
    return _library.library().rung_context_threads(_library.context(_library.CPU))


assert mine()["user_api"] == "blas" and mine()["version"] == rung.version(), mine()
assert mine()["num_threads"] == 5 == of_context()
with threadpool_limits(limits=1, user_api="blas"):
    assert mine()["num_threads"] == 1 == of_context()
    assert (rung.matmul(a, a) == first).all()  # the same bits on any number of threads
assert mine()["num_threads"] == 5 == of_context()
with ThreadpoolController().select(internal_api="rung").limit(limits=2):
    assert of_context() == 2
assert of_context() == 5
print("threadpoolctl", sys.modules["threadpoolctl"].__version__, "sees and limits Rung")
