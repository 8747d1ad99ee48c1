"""Times accurate products of data that the guard refuses: the first call at an address, the second and the third, cuBLAS beside.

    python3 lab/torch/refused.py build/release/lib/librung.so
"""
import ctypes
import statistics
import sys

import torch

SETS = 20  # operands at as many addresses
SHAPES = [(1003, 1001, 1005, False), (2049, 2047, 2051, False), (2047, 2049, 2048, False), (1537, 1023, 2049, True),
          (1024, 1024, 1024, False), (2048, 2048, 2048, False)]  # row-major m, n, k; A transposed


class Config(ctypes.Structure):
    _fields_ = [("device", ctypes.c_int), ("threads", ctypes.c_int), ("math", ctypes.c_int), ("pointers", ctypes.c_int),
                ("stream", ctypes.c_void_p), ("limit", ctypes.c_int64)]


lib = ctypes.CDLL(sys.argv[1])
lib.rung_last_error.restype = ctypes.c_char_p
torch.backends.cuda.matmul.allow_tf32 = False


def context(stream):
    config, made = Config(), ctypes.c_void_p()
    lib.rung_config_init(ctypes.byref(config))
    config.device, config.pointers, config.math, config.stream = 0, 1, 1, stream.cuda_stream
    if lib.rung_context_create(ctypes.byref(made), ctypes.byref(config)):
        raise SystemExit(lib.rung_last_error().decode())
    return made


def span(rows, columns):
    """Numbers whose exponents are spread over a hundred."""
    x = torch.randn(rows, columns, device="cuda")
    return x * torch.exp2(torch.randint(-50, 50, (rows, columns), device="cuda").float())


def times(call):
    """Returns the median of one call for each set of operands, in microseconds."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(SETS + 1)]
    torch.cuda._sleep(4000000)  # so that all calls are queued before the first one runs
    events[0].record()
    for i in range(SETS):
        call(i)
        events[i + 1].record()
    torch.cuda.synchronize()
    return statistics.median(events[i].elapsed_time(events[i + 1]) * 1e3 for i in range(SETS))


def compare(c, m, n, k, turned):
    a = [span(k, m) if turned else span(m, k) for _ in range(SETS)]
    b = [span(k, n) for _ in range(SETS)]
    r = [torch.empty(m, n, device="cuda") for _ in range(SETS)]

    def rung(i):
        at = (ctypes.c_void_p(x.data_ptr()) for x in (a[i], b[i], r[i]))
        long = ctypes.c_int64
        if lib.rung_sgemm(c, 1, int(turned), 0, long(m), long(n), long(k), ctypes.c_float(1), next(at), long(m if turned else k),
                          next(at), long(n), ctypes.c_float(0), next(at), long(n)):
            raise SystemExit(lib.rung_last_error().decode())

    def cublas(i):
        torch.mm(a[i].t() if turned else a[i], b[i], out=r[i])

    cublas(0)
    ours = [times(rung) for _ in range(3)]
    theirs = min(times(cublas) for _ in range(2))
    print(f"{m}x{n}x{k} {'TN' if turned else 'NN'} row-major: first {ours[0]:.1f} us, second {ours[1]:.1f}, third {ours[2]:.1f}, cuBLAS {theirs:.1f}: "
          + ", ".join(f"{theirs / x:.3f}" for x in ours), flush=True)


with torch.cuda.stream(torch.cuda.Stream()):
    made = context(torch.cuda.current_stream())
    for shape in SHAPES:
        compare(made, *shape)
