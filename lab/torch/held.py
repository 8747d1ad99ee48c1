"""What products hold of a GPU's memory and keep, and how long they take where little is free.

    python3 lab/torch/held.py build/release/lib/librung.so
"""
import ctypes
import sys
import time

import torch

MIB = 1 << 20
STRICT, ACCURATE = 0, 1


class Config(ctypes.Structure):
    _fields_ = [("device", ctypes.c_int), ("threads", ctypes.c_int), ("math", ctypes.c_int), ("pointers", ctypes.c_int),
                ("stream", ctypes.c_void_p), ("limit", ctypes.c_int64)]


lib = ctypes.CDLL(sys.argv[1])
lib.rung_last_error.restype = ctypes.c_char_p
lib.rung_version.restype = ctypes.c_char_p


def context(limit=0):
    config, made = Config(), ctypes.c_void_p()
    lib.rung_config_init(ctypes.byref(config))
    config.device, config.pointers, config.limit, config.stream = 0, 1, limit, torch.cuda.current_stream().cuda_stream
    if lib.rung_context_create(ctypes.byref(made), ctypes.byref(config)):
        raise SystemExit(lib.rung_last_error().decode())
    return made


def product(c, math, n, x):
    lib.rung_context_set_math(c, math)
    long = ctypes.c_int64
    a, b, r = (ctypes.c_void_p(x.data_ptr() + 4 * i * n * n) for i in range(3))
    if lib.rung_sgemm(c, 1, 0, 0, long(n), long(n), long(n), ctypes.c_float(1), a, long(n), b, long(n), ctypes.c_float(0), r, long(n)):
        raise SystemExit(lib.rung_last_error().decode())


def free():
    return torch.cuda.mem_get_info()[0]


def timed(c, math, n, x, calls=1):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        product(c, math, n, x)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6 / calls


def operands(n):
    x = torch.empty(3 * n * n, device="cuda")
    x.normal_()
    return x


def leave(mib):
    """Takes all memory but so many MiB, and returns what holds it."""
    kept = []
    size = 1 << 30
    while size >= 2 * MIB:
        if free() - size < mib * MIB:
            size //= 2
            continue
        kept.append(cuda_malloc(size))
    return kept


def cuda_malloc(size):
    at = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size)):
        raise SystemExit("no memory")
    return at


runtime = ctypes.CDLL("libcudart.so.13")
big = operands(16384)
c = context()
print(torch.cuda.get_device_name(), lib.rung_version().decode())
print(f"first strict 256^3 of the process: {timed(c, STRICT, 256, big) / 1e3:.2f} ms")
print(f"first accurate 256^3: {timed(c, ACCURATE, 256, big) / 1e3:.2f} ms")
print(f"first accurate 1024^3: {timed(c, ACCURATE, 1024, big) / 1e3:.2f} ms")
time.sleep(2)  # a thread loads the other kernels
torch.cuda.synchronize()
at_first = free()
for n in (4096, 8192, 16384):
    before = free()
    product(c, ACCURATE, n, big)
    queued = free()
    torch.cuda.synchronize()
    after = free()
    print(f"accurate {n}^3, default: held {(before - queued) / MIB:.0f} MiB more while queued, "
          f"{(before - after) / MIB:.0f} MiB more kept after; kept in all {(at_first - after) / MIB:.0f}")
whole = context(8 << 30)
for n in (8192, 16384):
    for _ in range(2):
        pair = [min(timed(x, ACCURATE, n, big) for _ in range(3)) for x in (whole, c)]
        print(f"accurate {n}^3: in one piece {pair[0]:.0f} us, as by default {pair[1]:.0f} us, {100 * (pair[1] / pair[0] - 1):+.2f}%")
        pair = [timed(x, ACCURATE, n, big, 8) for x in (whole, c)]
        print(f"accurate {n}^3, eight without waiting between: in one piece {pair[0]:.0f} us, as by default {pair[1]:.0f} us, "
              f"{100 * (pair[1] / pair[0] - 1):+.2f}%")
    print(f"strict {n}^3: {min(timed(c, STRICT, n, big) for _ in range(2)):.0f} us")
print(f"after products in one piece too: kept in all {(at_first - free()) / MIB:.0f} MiB")
lib.rung_context_destroy(c)
lib.rung_context_destroy(whole)
torch.cuda.synchronize()
print(f"contexts gone: kept {(at_first - free()) / MIB:.0f} MiB")
for mib, sizes in ((107, (2048, 8192)), (65, (1024, 4096))):
    c = context()
    kept = leave(mib)
    print(f"{free() / MIB:.0f} MiB are free")
    for n in sizes:
        us = [[timed(c, m, n, big) for _ in range(4)] for m in (ACCURATE, STRICT)]
        print(f"{n}^3 with that: accurate {min(us[0]):.0f} us, strict {min(us[1]):.0f} us; {free() / MIB:.0f} MiB free")
    lib.rung_context_destroy(c)
    for at in kept:
        runtime.cudaFree(at)
