#!/usr/bin/env python3
"""Runs whole programs in FP32 with and without Rung in front: language, vision, recurrent and graph models in training and
inference, generation, factorisations, least squares, kernel methods, optimisers, matrices of few terms. Models are built from configurations
with random weights; nothing is downloaded. Every program runs in processes of its own, with and without in turn:

    python3 lab/torch/programs.py --rung build/release/bin/rung [--rounds 3] [--only NAME,...] [--json FILE]

A program is warmed until its time is steady. Its outcome is held against the same program in FP64 where that is
possible, else the two outcomes are held against each other.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

PROGRAMS = {}


def program(group, wide=True):
    """Holds a function that makes a step for a dtype; the step returns its outcome. `wide` says that the outcome in FP64 is comparable."""
    def keep(make):
        PROGRAMS[make.__name__] = (group, make, wide)
        return make
    return keep


# ---- language ----

def bert(batch, length, dtype):
    import torch
    from transformers import BertConfig, BertModel
    model = BertModel(BertConfig(attn_implementation="eager")).to("cuda", dtype).eval()
    tokens = torch.randint(0, 30000, (batch, length), device="cuda")

    def step():
        with torch.no_grad():
            return model(input_ids=tokens).last_hidden_state
    return step


@program("language")
def bert_base_32x256(dtype):
    return bert(32, 256, dtype)


@program("language")
def bert_base_1x128(dtype):
    return bert(1, 128, dtype)


@program("language")
def bert_base_many_lengths(dtype):
    """Yields batches whose length differs from call to call."""
    import torch
    from transformers import BertConfig, BertModel
    model = BertModel(BertConfig(num_hidden_layers=4, attn_implementation="eager")).to("cuda", dtype).eval()
    batches = [torch.randint(0, 30000, (8, length), device="cuda") for length in range(17, 273, 4)]

    def step():
        with torch.no_grad():
            return torch.stack([model(input_ids=tokens).pooler_output for tokens in batches])
    return step


def gpt2(dtype, **given):
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(attn_implementation="eager", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **given)).to("cuda", dtype)


def training(model, loss_of):
    import torch
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss.detach().reshape(1)
    return step


@program("language", wide=False)
def gpt2_training_8x512(dtype):
    import torch
    model = gpt2(dtype)
    tokens = torch.randint(0, 50000, (8, 512), device="cuda")
    return training(model, lambda: model(input_ids=tokens, labels=tokens).loss)


def generation(batch, dtype):
    import torch
    model = gpt2(dtype).eval()
    tokens = torch.randint(0, 50000, (batch, 16), device="cuda")

    def step():
        with torch.no_grad():
            return model.generate(tokens, max_new_tokens=64, min_new_tokens=64, do_sample=False, pad_token_id=0).float()
    return step


@program("language", wide=False)
def gpt2_generation_1(dtype):
    return generation(1, dtype)


@program("language", wide=False)
def gpt2_generation_16(dtype):
    return generation(16, dtype)


@program("language")
def llama_small_inference_4x512(dtype):
    import torch
    from transformers import LlamaConfig, LlamaModel
    model = LlamaModel(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
                                   attn_implementation="eager")).to("cuda", dtype).eval()
    tokens = torch.randint(0, 30000, (4, 512), device="cuda")

    def step():
        with torch.no_grad():
            return model(input_ids=tokens).last_hidden_state
    return step


@program("language", wide=False)
def t5_training_4x256(dtype):
    import torch
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(T5Config(dropout_rate=0, decoder_start_token_id=0)).to("cuda", dtype)
    tokens = torch.randint(0, 30000, (4, 256), device="cuda")
    return training(model, lambda: model(input_ids=tokens, labels=tokens[:, :128].contiguous()).loss)


@program("language", wide=False)
def llama_lora_training_4x256(dtype):
    """Trains matrices of rank 8 beside the frozen ones, so that half of the products are thin."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=4, num_attention_heads=16,
                                         vocab_size=8192, attn_implementation="eager")).to("cuda", dtype)
    model.requires_grad_(False)

    class Beside(torch.nn.Module):
        def __init__(self, linear):
            super().__init__()
            self.linear = linear
            self.down = torch.nn.Linear(linear.in_features, 8, bias=False).to("cuda", dtype)
            self.up = torch.nn.Linear(8, linear.out_features, bias=False).to("cuda", dtype)

        def forward(self, x):
            return self.linear(x) + self.up(self.down(x))

    for layer in model.model.layers:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(layer.self_attn, name, Beside(getattr(layer.self_attn, name)))
    tokens = torch.randint(0, 8000, (4, 256), device="cuda")
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        return loss.detach().reshape(1)
    return step


@program("language", wide=False)
def mixture_of_experts_2048(dtype):
    """Sends each of 2048 tokens to two of 16 experts, which so get other numbers of tokens at each layer."""
    import torch
    from transformers import MixtralConfig, MixtralModel
    model = MixtralModel(MixtralConfig(vocab_size=8192, hidden_size=512, intermediate_size=1792, num_hidden_layers=4, num_attention_heads=8,
                                       num_key_value_heads=4, num_local_experts=16, attn_implementation="eager")).to("cuda", dtype).eval()
    tokens = torch.randint(0, 8000, (4, 512), device="cuda")

    def step():
        with torch.no_grad():
            return model(input_ids=tokens).last_hidden_state
    return step


@program("language")
def whisper_encoder_4(dtype):
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    model = WhisperEncoder(WhisperConfig(d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048,
                                         attn_implementation="eager")).to("cuda", dtype).eval()
    sound = matrix(4 * 80, 3000, dtype).view(4, 80, 3000)

    def step():
        with torch.no_grad():
            return model(sound).last_hidden_state
    return step


# ---- vision ----

def vit(batch, dtype):
    import torch
    from transformers import ViTConfig, ViTModel
    model = ViTModel(ViTConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
                               attn_implementation="eager")).to("cuda", dtype).eval()
    images = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype)

    def step():
        with torch.no_grad():
            return model(pixel_values=images).last_hidden_state
    return step


@program("vision")
def vit_large_32(dtype):
    return vit(32, dtype)


@program("vision")
def vit_large_1(dtype):
    return vit(1, dtype)


def timm_model(name, batch, train, dtype):
    import timm
    import torch
    model = timm.create_model(name, pretrained=False, num_classes=100).to("cuda", dtype)
    images = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype)
    labels = torch.randint(0, 100, (batch,), device="cuda")
    if train:
        model.train()
        return training(model, lambda: torch.nn.functional.cross_entropy(model(images), labels))
    model.eval()

    def step():
        with torch.no_grad():
            return model(images)
    return step


@program("vision", wide=False)
def mixer_b16_training_32(dtype):
    return timm_model("mixer_b16_224", 32, True, dtype)


@program("vision")
def swin_tiny_inference_32(dtype):
    return timm_model("swin_tiny_patch4_window7_224", 32, False, dtype)


@program("vision")
def convnext_tiny_inference_32(dtype):
    return timm_model("convnext_tiny", 32, False, dtype)


@program("vision", wide=False)
def resnet50_training_32(dtype):
    import torch
    import torchvision
    model = torchvision.models.resnet50(num_classes=100).to("cuda", dtype)
    images = torch.randn(32, 3, 224, 224, device="cuda", dtype=dtype)
    labels = torch.randint(0, 100, (32,), device="cuda")
    return training(model, lambda: torch.nn.functional.cross_entropy(model(images), labels))


# ---- recurrent and small ----

def recurrent(cell, batch, width, dtype):
    import torch
    model = cell(width, width).to("cuda", dtype)
    data = torch.randn(64, batch, width, device="cuda", dtype=dtype)

    def step():
        with torch.no_grad():
            state = None
            for x in data:
                state = model(x, state)
            return state[0] if isinstance(state, tuple) else state
    return step


@program("recurrent")
def lstm_cell_64x512(dtype):
    import torch
    return recurrent(torch.nn.LSTMCell, 64, 512, dtype)


@program("recurrent")
def gru_cell_1x1024(dtype):
    import torch
    return recurrent(torch.nn.GRUCell, 1, 1024, dtype)


@program("recurrent", wide=False)
def mlp_training_many_batches(dtype):
    """Makes a small network that takes batches whose size differs from step to step."""
    import torch
    net = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.GELU(), torch.nn.Linear(512, 512), torch.nn.GELU(),
                              torch.nn.Linear(512, 10)).to("cuda", dtype)
    batches = [torch.randn(n, 784, device="cuda", dtype=dtype) for n in range(33, 161, 2)]
    labels = [torch.randint(0, 10, (len(x),), device="cuda") for x in batches]
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step():
        for x, y in zip(batches, labels):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        return loss.detach().reshape(1)
    return step


@program("recurrent")
def graph_convolution(dtype):
    import torch
    from torch_geometric.nn import GCN
    model = GCN(256, 256, 3).to("cuda", dtype).eval()
    x = torch.randn(20000, 256, device="cuda", dtype=dtype)
    edges = torch.randint(0, 20000, (2, 200000), device="cuda")

    def step():
        with torch.no_grad():
            return model(x, edges)
    return step


@program("recurrent")
def lstm_two_layers_32x128(dtype):
    import torch
    model = torch.nn.LSTM(256, 512, num_layers=2).to("cuda", dtype).eval()
    data = matrix(128 * 32, 256, dtype).view(128, 32, 256)

    def step():
        with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):
            return model(data)[0]
    return step


@program("recurrent", wide=False)
def dlrm_training_2048(dtype):
    """Recommends from 26 tables: their rows meet each other in small products, one batch of them a step."""
    import torch
    tables = torch.nn.EmbeddingBag(26000, 64, mode="sum").to("cuda", dtype)
    low = torch.nn.Sequential(torch.nn.Linear(13, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64), torch.nn.ReLU()).to("cuda", dtype)
    high = torch.nn.Sequential(torch.nn.Linear(64 + 351, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256), torch.nn.ReLU(),
                               torch.nn.Linear(256, 1)).to("cuda", dtype)
    dense = torch.randn(2048, 13, device="cuda", dtype=dtype)
    rows = torch.randint(0, 26000, (2048 * 26, 1), device="cuda")
    labels = torch.rand(2048, 1, device="cuda", dtype=dtype).round()
    above = torch.triu_indices(27, 27, 1, device="cuda")
    both = torch.nn.ModuleList([tables, low, high])

    def loss():
        x = low(dense)
        t = torch.cat([x[:, None], tables(rows).view(2048, 26, 64)], 1)
        meet = torch.bmm(t, t.transpose(1, 2))[:, above[0], above[1]]
        return torch.nn.functional.binary_cross_entropy_with_logits(high(torch.cat([x, meet], 1)), labels)
    return training(both, loss)


@program("recurrent", wide=False)
def physics_informed_10000x20(dtype):
    """Trains a small network by the second derivatives of what it computes, at points in the plane."""
    import torch
    layers = [torch.nn.Linear(2, 20), torch.nn.Tanh()]
    for _ in range(6):
        layers += [torch.nn.Linear(20, 20), torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(20, 1)).to("cuda", dtype)
    points = torch.rand(10000, 2, device="cuda", dtype=dtype, requires_grad=True)

    def loss():
        u = net(points)
        first = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
        second = torch.autograd.grad(first[:, 0].sum(), points, create_graph=True)[0][:, 0]
        return (first[:, 1] - 0.01 * second + u[:, 0] * first[:, 0]).square().mean()
    return training(net, loss)


@program("recurrent")
def neural_ode_512x64(dtype):
    import torch
    from torchdiffeq import odeint
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 64)).to("cuda", dtype)
    start, times = matrix(512, 64, dtype), torch.linspace(0, 1, 33, device="cuda", dtype=dtype)

    def step():
        with torch.no_grad():
            return odeint(lambda t, x: net(x), start, times, method="rk4")
    return step


@program("recurrent")
def graph_attention(dtype):
    import torch
    from torch_geometric.nn import GAT
    model = GAT(128, 64, 2, heads=4).to("cuda", dtype).eval()
    x = matrix(20000, 128, dtype)
    edges = torch.randint(0, 20000, (2, 200000), device="cuda")

    def step():
        with torch.no_grad():
            return model(x, edges)
    return step


# ---- linear algebra ----

def matrix(n, m, dtype):
    import torch
    return torch.randn(n, m, device="cuda", dtype=torch.float64).to(dtype)


def positive(n, dtype):
    import torch
    a = torch.randn(n, n, device="cuda", dtype=torch.float64)
    return (a @ a.T / n + torch.eye(n, device="cuda", dtype=torch.float64)).to(dtype)


@program("linalg")
def cholesky_8192(dtype):
    import torch
    a = positive(8192, dtype)
    return lambda: torch.linalg.cholesky(a)


@program("linalg")
def lu_solve_8192(dtype):
    import torch
    a, b = matrix(8192, 8192, dtype), matrix(8192, 64, dtype)
    return lambda: torch.linalg.solve(a, b)


@program("linalg")
def qr_2048(dtype):
    import torch
    a = matrix(2048, 2048, dtype)
    return lambda: torch.linalg.qr(a)[1].abs()


@program("linalg")
def qr_8192(dtype):
    import torch
    a = matrix(8192, 8192, dtype)
    return lambda: torch.linalg.qr(a)[1].abs()


@program("linalg")
def least_squares_16384x1024(dtype):
    import torch
    a, b = matrix(16384, 1024, dtype), matrix(16384, 16, dtype)
    return lambda: torch.linalg.lstsq(a, b).solution


@program("linalg")
def eigenvalues_2048(dtype):
    import torch
    a = positive(2048, dtype)
    return lambda: torch.linalg.eigvalsh(a)


@program("linalg")
def gram_8192x32768(dtype):
    a = matrix(8192, 32768, dtype)
    return lambda: a @ a.T


@program("linalg")
def cupy_qr_4096(dtype):
    import cupy
    import torch
    a = cupy.from_dlpack(matrix(4096, 4096, dtype))
    return lambda: torch.from_dlpack(abs(cupy.linalg.qr(a)[1]))


@program("linalg")
def inverse_4096(dtype):
    import torch
    a = positive(4096, dtype)
    return lambda: torch.linalg.inv(a)


@program("linalg")
def eigenvectors_1024(dtype):
    import torch
    a = positive(1024, dtype)
    return lambda: torch.linalg.eigh(a)[0]


@program("linalg")
def singular_values_1024(dtype):
    import torch
    a = matrix(1024, 1024, dtype)
    return lambda: torch.linalg.svdvals(a)


@program("linalg")
def low_rank_svd_20000x1000(dtype):
    """Approximates by products with 50 columns and their QR."""
    import torch
    a = matrix(20000, 1000, dtype)

    def step():
        torch.manual_seed(3)
        return torch.svd_lowrank(a, q=50, niter=2)[1][:10]
    return step


@program("linalg")
def matrix_exponential_256x64(dtype):
    import torch
    a = matrix(256 * 64, 64, dtype).view(256, 64, 64) / 16
    return lambda: torch.linalg.matrix_exp(a)


@program("linalg")
def triangular_solve_4096x512(dtype):
    import torch
    a, b = torch.linalg.cholesky(positive(4096, torch.float64)).to(dtype), matrix(4096, 512, dtype)
    return lambda: torch.linalg.solve_triangular(a, b, upper=False)


# ---- kernel methods, optimisers ----

@program("methods")
def kernel_ridge_8192(dtype):
    import torch
    x, y = matrix(8192, 64, dtype), matrix(8192, 8, dtype)

    def step():
        k = torch.exp(-torch.cdist(x, x, compute_mode="use_mm_for_euclid_dist") ** 2 / 128)
        k.diagonal().add_(1.0)
        return torch.cholesky_solve(y, torch.linalg.cholesky(k))
    return step


@program("methods", wide=False)
def gaussian_process_4096(dtype):
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    x, y = matrix(4096, 8, dtype), matrix(4096, 1, dtype)[:, 0]
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to("cuda", dtype)
    model = Model(x, y, likelihood).to("cuda", dtype)
    model.train(), likelihood.train()
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    return training(model, lambda: -marginal(model(x), y))


@program("methods")
def k_means_65536x128(dtype):
    import torch
    x = matrix(65536, 128, dtype)
    start = x[:256].clone()

    def step():
        centres = start
        for _ in range(4):
            distance = centres.square().sum(1) - 2 * (x @ centres.T)
            near = torch.nn.functional.one_hot(distance.argmin(1), 256).to(x.dtype)
            centres = (near.T @ x) / near.sum(0).clamp(min=1)[:, None]
        return centres
    return step


@program("methods")
def newton_schulz_1024x4096(dtype):
    """Does what the Muon optimiser does with a gradient."""
    g = matrix(1024, 4096, dtype)

    def step():
        x = g / g.norm()
        for _ in range(5):
            s = x @ x.T
            x = 3.4445 * x + (-4.7750 * s + 2.0315 * (s @ s)) @ x
        return x
    return step


@program("methods")
def shampoo_roots_1024(dtype):
    """Takes inverse fourth roots by coupled Newton iterations, as the Shampoo optimiser does."""
    import torch
    a = positive(1024, dtype)

    def step():
        m = a / a.norm()
        x = torch.eye(1024, device="cuda", dtype=dtype)
        for _ in range(8):
            t = (5 * torch.eye(1024, device="cuda", dtype=dtype) - m) / 4
            x, t2 = x @ t, t @ t
            m = (t2 @ t2) @ m
        return x
    return step


@program("methods")
def nearest_of_100000x96(dtype):
    import torch
    x, queries = matrix(100000, 96, dtype), matrix(1000, 96, dtype)
    squares = x.square().sum(1)
    return lambda: torch.topk(squares - 2 * (queries @ x.T), 10, largest=False).values


@program("methods")
def nonnegative_factors_4096x3000(dtype):
    """Factors by multiplicative updates; all elements are above zero."""
    v, w0, h0 = matrix(4096, 3000, dtype).abs(), matrix(4096, 40, dtype).abs(), matrix(40, 3000, dtype).abs()

    def step():
        w, h = w0, h0
        for _ in range(5):
            h = h * (w.T @ v) / (w.T @ w @ h)
            w = w * (v @ h.T) / (w @ (h @ h.T))
        return w
    return step


@program("methods")
def conjugate_gradients_8192(dtype):
    """Multiplies a matrix by a vector, 32 times."""
    import torch
    a, b = positive(8192, dtype), matrix(8192, 1, dtype)[:, 0]

    def step():
        x, r = torch.zeros_like(b), b
        p, rr = r, r @ r
        for _ in range(32):
            q = a @ p
            step_size = rr / (p @ q)
            x, r = x + step_size * p, r - step_size * q
            rr, before = r @ r, rr
            p = r + (rr / before) * p
        return x
    return step


@program("methods")
def sinkhorn_4096(dtype):
    """Scales a kernel of distances to given sums of rows and columns; its elements span many powers of two."""
    import torch
    x, y = matrix(4096, 16, dtype), matrix(4096, 16, dtype)
    kernel = torch.exp(-torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist") ** 2 / 4)

    def step():
        u = torch.full((4096,), 1 / 4096, device="cuda", dtype=dtype)
        for _ in range(16):
            v = (1 / 4096) / (kernel.T @ u)
            u = (1 / 4096) / (kernel @ v)
        return u
    return step


@program("methods")
def tensor_network_einsum(dtype):
    """Contracts a chain of 24 tensors of three and four indices, as states of quantum systems are."""
    import torch
    site = [matrix(48 * 4, 48, dtype).view(48, 4, 48) / 14 for _ in range(24)]
    operator = [matrix(5 * 4 * 4, 5, dtype).view(5, 4, 4, 5) / 6 for _ in range(24)]

    def step():
        left = torch.ones(48, 5, 48, device="cuda", dtype=dtype) / 48
        for a, o in zip(site, operator):
            left = torch.einsum("apb,asc,pstq,btd->cqd", left, a, o, a)
            left = left / left.norm()
        return left
    return step


@program("methods", wide=False)
def logistic_regression_lbfgs(dtype):
    import torch
    x = matrix(50000, 300, dtype)
    y = torch.randint(0, 10, (50000,), device="cuda")
    torch.optim.LBFGS([torch.zeros(1, requires_grad=True)])  # the first one imports for seconds

    def step():
        w = torch.zeros(300, 10, device="cuda", dtype=dtype, requires_grad=True)
        optimizer = torch.optim.LBFGS([w], max_iter=10)

        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(x @ w, y)
            loss.backward()
            return loss
        return optimizer.step(closure).detach().reshape(1)
    return step


# ---- data that few terms carry: the guard of accurate mode refuses it, or parts of it ----

@program("awkward")
def distances_4096x3000(dtype):
    """Has PyTorch compute distances by one product, whose lines hold a squared length and a 1 beside 512 ordinary elements."""
    import torch
    x, y = matrix(4096, 512, dtype), matrix(3000, 512, dtype)
    return lambda: torch.cdist(x, y)


@program("awkward")
def neighbours_4000x128(dtype):
    """Adds up features over a graph's edges, as an adjacency matrix that is mostly zeros."""
    import torch
    edges = (torch.rand(4000, 4000, device="cuda") < 0.002).to(dtype)
    features = matrix(4000, 128, dtype)
    return lambda: edges @ (edges @ features)


@program("awkward")
def one_hot_rows_4096x5000(dtype):
    """Looks rows up by a product, as graphs of operations that know no index do."""
    import torch
    chosen = torch.nn.functional.one_hot(torch.randint(0, 5000, (4096,), device="cuda"), 5000).to(dtype)
    table = matrix(5000, 256, dtype)
    return lambda: chosen @ table


@program("awkward")
def steps_of_a_chain_1500(dtype):
    import torch
    p = torch.softmax(3 * matrix(1500, 1500, dtype), -1)
    return lambda: p @ p @ p


@program("awkward")
def running_sums_1024x2048(dtype):
    import torch
    below, x = torch.ones(1024, 1024, device="cuda", dtype=dtype).tril(), matrix(1024, 2048, dtype)
    return lambda: below @ x


@program("awkward")
def experts_of_any_size(dtype):
    """Sends 64 batches of 1 to 400 rows to eight experts."""
    import torch
    sizes = torch.randint(1, 400, (64,), generator=torch.Generator().manual_seed(5)).tolist()
    x, experts = matrix(400, 512, dtype), [matrix(512, 1024, dtype) for _ in range(8)]
    return lambda: torch.cat([x[:size] @ experts[i % 8] for i, size in enumerate(sizes)])


# ---- measuring ----

def sample(outcome):
    """Returns at most 4096 elements, evenly spread, in FP64 on the host."""
    flat = outcome.detach().flatten()
    return flat[:: max(1, flat.numel() // 4096)][:4096].double().cpu()


def steady_us(step, budget_s):
    """Times until the median of the last steps stays within 1 % of the median before, or the budget ends."""
    import torch
    times, end = [], time.monotonic() + budget_s
    while time.monotonic() < end or len(times) < 6:
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
        half = len(times) // 2
        if len(times) >= 20 and half >= 10:
            before, after = statistics.median(times[half - 10:half]), statistics.median(times[-10:])
            if abs(before - after) <= 0.01 * after and time.monotonic() > end - 0.5 * budget_s:
                break
    last = times[len(times) // 2:]
    return statistics.median(last), min(last), max(last), len(last)


def share_of_products(step):
    """Returns what share of the kernels' time FP32 products take, by their kernels' names."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        step()
        torch.cuda.synchronize()
    events = [(e.device_time_total, e.key.lower()) for e in trace.key_averages() if e.device_time_total > 0]
    total = sum(us for us, _ in events)
    names = ("gemm", "gemv", "cutlass", "splitkreduce", "sm90_", "sm80_", "f16x3")
    products = sum(us for us, name in events if any(n in name for n in names) and "dgemm" not in name)
    return products / total if total else 0.0


def child(names, budget_s, folder, extras):
    """Runs programs one after the other and prints a JSON line for each."""
    import torch
    torch.set_float32_matmul_precision("highest")
    for name in names:
        group, make, wide = PROGRAMS[name]
        line = {"program": name, "group": group}
        try:
            torch.manual_seed(7)
            step = make(torch.float32)
            torch.cuda.synchronize()
            start = time.perf_counter()
            outcome = sample(step())
            line["first_ms"] = (time.perf_counter() - start) * 1e3
            torch.save(outcome, os.path.join(folder, name + ".pt"))
            line["us"], line["least_us"], line["most_us"], line["steps"] = steady_us(step, budget_s)
            line["reserved_mib"] = (torch.cuda.mem_get_info()[1] - torch.cuda.mem_get_info()[0]) / 2**20
            if extras:
                line["share"] = share_of_products(step)
            del step
            if extras and wide:
                torch.manual_seed(7)
                torch.save(sample(make(torch.float64)()), os.path.join(folder, name + ".wide.pt"))
        except Exception as error:  # a package may be missing, or memory too small: the line says so
            line["left_out"] = f"{type(error).__name__}: {error}"[:200]
        torch.cuda.empty_cache()
        print("LINE " + json.dumps(line), flush=True)


def run_child(command, names, budget_s, folder, extras, limit_s):
    os.makedirs(folder, exist_ok=True)
    full = command + [sys.executable, os.path.abspath(__file__), "--child", ",".join(names), "--budget", str(budget_s),
                      "--folder", folder] + (["--extras"] if extras else [])
    try:
        out = subprocess.run(full, capture_output=True, text=True, timeout=limit_s)
        text, errors = out.stdout, out.stderr
    except subprocess.TimeoutExpired as late:
        text, errors = (late.stdout or b"").decode(errors="replace"), f"stopped after {limit_s} s"
    lines = {}
    for row in text.splitlines():
        if row.startswith("LINE "):
            line = json.loads(row[5:])
            lines[line["program"]] = line
    for name in names:
        if name not in lines:
            lines[name] = {"program": name, "group": PROGRAMS[name][0], "left_out": "its process ended early: " + errors[-160:]}
    return lines


def difference(x, y):
    """Returns the largest difference relative to the largest element of y."""
    import torch
    scale = y.abs().max().item()
    return (x - y).abs().max().item() / scale if scale and torch.isfinite(x).all() else math.inf


def outcome_of(name, wide, folders):
    import torch
    load = lambda folder, end: torch.load(os.path.join(folder, name + end))
    try:
        plain, ours = load(folders[0], ".pt"), load(folders[1], ".pt")
        result = {"apart": difference(ours, plain)}
        if wide:
            exact = load(folders[0], ".wide.pt")
            result["error_without"], result["error_with"] = difference(plain, exact), difference(ours, exact)
        return result
    except FileNotFoundError:
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rung", default="rung", help="the rung command that puts the drop-in in front")
    parser.add_argument("--math", default="accurate")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="programs or groups, comma-separated")
    parser.add_argument("--json", help="append a line a program to this file")
    parser.add_argument("--budget", type=float, default=1.5, help="seconds for a program's steady time")
    parser.add_argument("--limit", type=float, default=240, help="seconds for a process")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="build/programs", help="where outcomes are kept")
    parser.add_argument("--extras", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child.split(","), args.budget, args.folder, args.extras)
    only = args.only.split(",") if args.only else []
    unknown = set(only) - set(PROGRAMS) - {group for group, _, _ in PROGRAMS.values()}
    if unknown:
        parser.error(f"no program or group is called {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    chosen = [name for name, (group, _, _) in PROGRAMS.items() if not only or name in only or group in only]
    folders = [os.path.join(args.folder, "without"), os.path.join(args.folder, "with")]
    commands = [[], [args.rung, "run", "--math", args.math, "--"]]
    taken = {name: ([], []) for name in chosen}
    for turn in range(args.rounds):
        print(f"round {turn + 1} of {args.rounds}", file=sys.stderr, flush=True)
        for group in dict.fromkeys(PROGRAMS[n][0] for n in chosen):
            names = [n for n in chosen if PROGRAMS[n][0] == group]
            for which in (0, 1):
                extras = turn == 0 and which == 0
                for name, line in run_child(commands[which], names, args.budget, folders[which], extras, args.limit).items():
                    taken[name][which].append(line)
                    told = line.get("left_out") or f"{line['us'] / 1e3:.3f} ms, the first {line['first_ms']:.0f} ms"
                    print(f"  {('without', 'with')[which]:8} {name:30} {told}", file=sys.stderr, flush=True)
    report(args, taken, folders)


def report(args, taken, folders):
    print(f"{'program':30} {'without ms':>11} {'with ms':>9} {'ratio':>7} {'first':>6} {'products':>9} {'error':>18}")
    ratios = []
    for name, (plain, ours) in taken.items():
        missing = [line["left_out"] for line in plain + ours if "left_out" in line]
        row = {"program": name, "command": " ".join(sys.argv), "math": args.math}
        if missing:
            row["left_out"] = missing[0]
            print(f"{name:30} left out: {missing[0][:90]}")
        else:
            us = [statistics.median(line["us"] for line in lines) for lines in (plain, ours)]
            first = [statistics.median(line["first_ms"] for line in lines) for lines in (plain, ours)]
            row.update({"without_us": us[0], "with_us": us[1], "ratio": us[0] / us[1], "first_without_ms": first[0],
                        "first_with_ms": first[1], "share_of_products": plain[0].get("share"),
                        "takes_us": [[line["us"] for line in lines] for lines in (plain, ours)]})
            row.update(outcome_of(name, PROGRAMS[name][2], folders))
            error = f"{row['error_without']:.1e} {row['error_with']:.1e}" if "error_with" in row else f"apart {row.get('apart', math.nan):.1e}"
            print(f"{name:30} {us[0] / 1e3:11.3f} {us[1] / 1e3:9.3f} {row['ratio']:7.3f} {first[0] / first[1]:6.2f} "
                  f"{100 * (row['share_of_products'] or 0):8.0f}% {error:>18}")
            ratios.append(row["ratio"])
        if args.json:
            with open(args.json, "a") as file:
                file.write(json.dumps(row) + "\n")
    if ratios:
        print(f"{len(ratios)} programs, geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, worst {min(ratios):.3f}")


if __name__ == "__main__":
    main()
