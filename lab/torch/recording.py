#!/usr/bin/env python3
"""Records a CUDA graph in global mode in one thread while another multiplies, grows its workspace, loads kernels and ends:

    rung run [--math strict] -- python3 lab/torch/recording.py

Each line: whether the recording went on to its end, and the error of what the graph computes in units of 2^-24. The other
thread "stays" until the recording is over, or "ends" during it; before the recording it multiplied ("warm") or did not
("cold"). cuBLAS alone, in the same process, comes last. Exits with 1 where a recording with Rung was ended.
"""

import ctypes
import os
import threading
import time

import torch

GLOBAL = 0
SIZES = (256, 512, 1024, 1536, 2048, 3072)
pointer = ctypes.c_void_p
cuda = ctypes.CDLL("libcuda.so.1")
answer = ctypes.CDLL(None).rung_cublas_answer


def operands(n):
    return [torch.randn(n, n, device="cuda") for _ in range(2)] + [torch.empty(n, n, device="cuda")]


def error_u(a, b, c):
    rows = a[:32].double()
    return (((c[:32].double() - rows @ b.double()).abs() / (rows.abs() @ b.double().abs())).max() * 2**24).item()


def multiply_on(streams, products):
    for stream in streams:
        with torch.cuda.stream(stream):
            for a, b, c in products:
                torch.mm(a, b, out=c)


class Other(threading.Thread):
    """Multiplies on each of its streams in turn while the recording is on."""

    def __init__(self, streams, warm, ends, multiplies, rung):
        super().__init__()
        self.streams, self.warm, self.ends, self.multiplies, self.rung = streams, warm, ends, multiplies, rung
        self.ready, self.go, self.leave = (threading.Event() for _ in range(3))
        self.failed = ""

    def run(self):
        try:
            self.prepare()
            self.ready.set()
            self.go.wait()
            if self.multiplies:
                multiply_on(self.streams * 2, others)
        except RuntimeError as error:
            self.failed = str(error).splitlines()[0]
        self.ready.set()
        if not self.ends:
            self.leave.wait()

    def prepare(self):
        answer(0)  # PyTorch's own cuBLAS handle and workspaces: to make them would end a recording without Rung too
        multiply_on(self.streams, others[:1])
        answer(self.rung)
        if self.warm:
            multiply_on(self.streams, others)
        torch.cuda.synchronize()


def record(stream, other, products_of_its_own):
    """Returns the graph, or what ended the recording."""
    graph, failed = pointer(), ""
    with torch.cuda.stream(stream):
        cuda.cuStreamBeginCapture_v2(pointer(stream.cuda_stream), GLOBAL)
        other.go.set()
        for _ in range(20 if products_of_its_own else 0):
            try:
                torch.mm(mine[0], mine[1], out=mine[2])
            except RuntimeError as error:
                failed = str(error).splitlines()[0]
                break
            time.sleep(0.005)
        time.sleep(0 if products_of_its_own else 0.1)
        result = cuda.cuStreamEndCapture(pointer(stream.cuda_stream), ctypes.byref(graph))
    return (graph, "") if result == 0 else (None, failed or f"CUDA error {result}")


def replay(stream, graph):
    run = pointer()
    result = cuda.cuGraphInstantiateWithFlags(ctypes.byref(run), graph, ctypes.c_ulonglong(0))
    result = result or cuda.cuGraphLaunch(run, pointer(stream.cuda_stream))
    torch.cuda.synchronize()
    cuda.cuGraphExecDestroy(run)
    cuda.cuGraphDestroy(graph)
    return result


def situation(name, streams, warm=True, ends=False, multiplies=True, own=True, rung=1):
    other = Other(streams, warm, ends, multiplies, rung)
    stream = torch.cuda.Stream()
    other.start()
    other.ready.wait()
    with torch.cuda.stream(stream):
        torch.mm(mine[0], mine[1], out=mine[2])
    mine[2].zero_()
    torch.cuda.synchronize()
    graph, ended = record(stream, other, own)
    other.leave.set()
    other.join()
    failed = ended or other.failed or (replay(stream, graph) if graph else 0)
    print(f"{name:50} {failed if failed else 'recorded'}{f', {error_u(*mine):.2f} u' if own and not failed else ''}", flush=True)
    return not failed


mine = operands(2048)
others = [operands(n) for n in SIZES]
seven = [torch.cuda.Stream() for _ in range(7)]
legacy = [torch.cuda.default_stream()]
good = all(
    [
        situation("cold, stays", seven, warm=False),
        situation("cold, ends", seven, warm=False, ends=True),
        situation("warm, stays", seven),
        situation("warm, ends", seven, ends=True),
        situation("warm, multiplies no more, ends", seven, ends=True, multiplies=False),
        situation("one stream, ends", seven[:1], ends=True),
        situation("the legacy stream, cold, stays", legacy, warm=False),
        situation("the legacy stream, ends", legacy, ends=True),
        situation("cold, ends; nothing of Rung's in the graph", seven, warm=False, ends=True, own=False),
    ]
)
for name, streams in (("cuBLAS: cold, ends", seven), ("cuBLAS: the legacy stream, ends", legacy)):
    situation(name, streams, warm=False, ends=True, rung=0)
os._exit(not good)
