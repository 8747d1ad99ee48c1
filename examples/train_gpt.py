#!/usr/bin/env python3
"""Trains a small GPT in FP32 on synthetic text and prints a line a step: loss, step time, time in matrix products.

    python3 examples/train_gpt.py --steps 50 [--seed 1] [--mode eager|compile|graph] [--json FILE]
    rung run -- python3 examples/train_gpt.py ...          # the same program on Rung

The data is a made-up language with structure at several distances, so the loss falls for a reason.
"""

import argparse
import ctypes
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=2))
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_text(vocabulary, count, generator):
    """Each token depends on the one before and on the one eight back, with some noise."""
    text = torch.randint(vocabulary, (count,), generator=generator)
    for _ in range(2):
        rolled = (text.roll(1) * 7 + text.roll(8) * 3 + 11) % vocabulary
        keep = torch.rand(count, generator=generator) < 0.85
        text = torch.where(keep, rolled, text)
    return text


def batches(text, batch, length, generator):
    while True:
        starts = torch.randint(len(text) - length - 1, (batch,), generator=generator)
        rows = torch.stack([text[s : s + length + 1] for s in starts.tolist()])
        yield rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def graph_step(step, tokens, targets):
    """Captures one training step; returns a function that replays it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(tokens, targets)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(tokens, targets)
    return lambda: (graph.replay(), loss)[1]


def in_front():
    """Whether this process was started with Rung's drop-in."""
    return hasattr(ctypes.CDLL(None), "rung_cublas_answer")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("steps", 50), ("seed", 1), ("batch", 8), ("length", 512), ("width", 1024), ("heads", 16),
                          ("layers", 6), ("vocabulary", 8192)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--mode", choices=("eager", "compile", "graph"), default="eager")
    parser.add_argument("--json", help="append losses and times to this file, a line")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(1234)  # the same data for every seed of the weights
    text = make_text(args.vocabulary, 1 << 20, generator)
    model = GPT(args.vocabulary, args.length, args.width, args.heads, args.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, capturable=args.mode == "graph")
    forward = torch.compile(model) if args.mode == "compile" else model

    def step(tokens, targets):
        optimizer.zero_grad(set_to_none=args.mode != "graph")
        loss = forward(tokens, targets)
        loss.backward()
        optimizer.step()
        return loss

    source = batches(text, args.batch, args.length, generator)
    tokens, targets = (t.to(device) for t in next(source))
    replay = graph_step(step, tokens, targets) if args.mode == "graph" else None
    losses, times = [], []
    for index in range(args.steps):
        for buffer, new in zip((tokens, targets), next(source)):
            buffer.copy_(new)
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        loss = replay() if replay else step(tokens, targets)
        losses.append(loss.item())
        times.append((time.perf_counter() - start) * 1e3)
        if index % 10 == 0 or index == args.steps - 1:
            print(f"step {index:4d}  loss {losses[-1]:.4f}  {times[-1]:8.2f} ms", flush=True)
    print(f"median step {statistics.median(times[len(times) // 4:]):.2f} ms ({args.mode}, {device})")
    if args.json:
        setting = {key: value for key, value in vars(args).items() if key != "json"}
        line = {"command": " ".join(sys.argv), "rung": in_front(), "median_step_ms": statistics.median(times[len(times) // 4 :]),
                **setting, "losses": losses, "step_ms": times}
        with open(args.json, "a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
