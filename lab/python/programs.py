#!/usr/bin/env python3
"""Runs programs on the CPU in FP32 with and without Rung in front, in turn and in processes of their own: NumPy, SciPy, scikit-learn,
numba, pandas, NetworkX and PyTorch, on made-up data. None of them was written with Rung in mind.

    python3 lab/python/programs.py --rung build/release/bin/rung [--threads 1,2] [--rounds 3] [--only NAME,...] [--json FILE]

A program's time is the median of its steps, and of the rounds' medians. Its outcome is held against the same program's without Rung, and
where it takes FP64 too, both are held against that. `calls` is of one more step, with a report: how many calls of BLAS Rung answered. What
is not installed is left out. --realtime runs the timed processes with chrt -r 10, for machines with other work.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = {}


def program(group, wide=True):
    """Holds a function that makes a step for a dtype; the step returns its outcome. `wide` says that FP64 gives a comparable one."""
    def keep(make):
        PROGRAMS[make.__name__] = (group, make, wide)
        return make
    return keep


def random(dtype, *shape):
    import numpy
    generator = numpy.random.default_rng(sum(shape))
    return generator.standard_normal(shape, dtype=numpy.float32).astype(dtype)


def definite(dtype, n):
    import numpy
    a = random(dtype, n, n)
    return a @ a.T / n + numpy.eye(n, dtype=dtype)


# ---- NumPy ----

@program("numpy")
def einsum_chain(dtype):
    import numpy
    a, b, c = random(dtype, 200, 300), random(dtype, 300, 400), random(dtype, 400, 100)
    return lambda: numpy.einsum("ij,jk,kl->il", a, b, c, optimize=True)


@program("numpy")
def tensordot_4d(dtype):
    import numpy
    a, b = random(dtype, 20, 30, 16, 12), random(dtype, 16, 12, 25, 10)
    return lambda: numpy.tensordot(a, b, axes=([2, 3], [0, 1]))


@program("numpy")
def batched_64(dtype):
    a, b = random(dtype, 256, 64, 64), random(dtype, 256, 64, 64)
    return lambda: a @ b


@program("numpy")
def batched_8(dtype):
    a, b = random(dtype, 4000, 8, 8), random(dtype, 4000, 8, 8)
    return lambda: a @ b


@program("numpy")
def batched_transposed(dtype):
    a, b = random(dtype, 64, 100, 48), random(dtype, 64, 90, 48)
    return lambda: a @ b.swapaxes(1, 2)


@program("numpy")
def attention(dtype):
    import numpy
    q, k, v = (random(dtype, 8, 256 + i, 64)[:, :256] for i in range(3))

    def step():
        s = q @ k.swapaxes(1, 2) / 8
        p = numpy.exp(s - s.max(axis=2, keepdims=True))
        return p / p.sum(axis=2, keepdims=True) @ v
    return step


@program("numpy")
def convolution_by_columns(dtype):
    import numpy
    x, w = random(dtype, 8, 16, 34, 34), random(dtype, 32, 16, 3, 3)

    def step():
        columns = numpy.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        return numpy.einsum("bcyxuv,ocuv->boyx", columns, w, optimize=True)
    return step


@program("numpy")
def perceptron_by_hand(dtype):
    import numpy
    x, y = random(dtype, 256, 100), random(dtype, 256, 10)
    w, v = random(dtype, 100, 200) * 0.1, random(dtype, 200, 10) * 0.1

    def step():
        first, second = w.copy(), v.copy()
        for _ in range(10):
            h = numpy.maximum(x @ first, 0)
            e = (h @ second - y) / len(x)
            first, second = first - 0.1 * x.T @ (e @ second.T * (h > 0)), second - 0.1 * h.T @ e
        return first
    return step


@program("numpy")
def power_iteration(dtype):
    import numpy
    a, start = definite(dtype, 1000), numpy.ones(1000, dtype)

    def step():
        v = start
        for _ in range(20):
            v = a @ v
            v = v / numpy.linalg.norm(v)
        return v
    return step


@program("numpy")
def covariance(dtype):
    x = random(dtype, 5000, 200)

    def step():
        c = x - x.mean(axis=0)
        return c.T @ c / len(x)
    return step


@program("numpy")
def solve_800(dtype):
    import numpy
    a, b = definite(dtype, 800), random(dtype, 800, 50)
    return lambda: numpy.linalg.solve(a, b)


@program("numpy")
def inverse_of_many(dtype):
    import numpy
    a = numpy.stack([definite(dtype, 40 + i % 2)[:40, :40] for i in range(100)])
    return lambda: numpy.linalg.inv(a)


@program("numpy")
def kalman_filter(dtype):
    import numpy
    f, h, q = numpy.eye(12, dtype=dtype) + 0.01 * random(dtype, 12, 12), random(dtype, 4, 12), numpy.eye(12, dtype=dtype)
    seen = random(dtype, 200, 4)

    def step():
        x, p = numpy.zeros(12, dtype), q
        for z in seen:
            x, p = f @ x, f @ p @ f.T + q
            gain = numpy.linalg.solve(h @ p @ h.T + numpy.eye(4, dtype=dtype), h @ p).T
            x, p = x + gain @ (z - h @ x), p - gain @ h @ p
        return x
    return step


# ---- SciPy ----

def linalg(name, make, wide=True):
    def maker(dtype):
        import scipy.linalg
        return make(scipy.linalg, dtype)
    maker.__name__ = name
    PROGRAMS[name] = ("scipy", maker, wide)


def on(a, function):
    return lambda: function(a)


linalg("qr_800", lambda s, d: on(random(d, 800, 800), lambda a: abs(s.qr(a)[1])))
linalg("svd_400", lambda s, d: on(random(d, 500, 400), lambda a: s.svd(a, full_matrices=False)[1]))
linalg("eigh_500", lambda s, d: on(definite(d, 500), lambda a: s.eigh(a)[0]))
linalg("lstsq_2000x300", lambda s, d: on(random(d, 2000, 300), lambda a: s.lstsq(a, a[:, :20] + 1)[0]))
linalg("cholesky_1200", lambda s, d: on(definite(d, 1200), lambda a: s.cholesky(a)))
linalg("lu_1000", lambda s, d: on(definite(d, 1000), lambda a: s.lu_factor(a)[0]))
linalg("solve_triangular_1000", lambda s, d: on(s.cholesky(definite(d, 1000)), lambda a: s.solve_triangular(a, a.T[:, :200])))
linalg("expm_200", lambda s, d: on(definite(d, 200), lambda a: s.expm(a)))
linalg("polar_300", lambda s, d: on(random(d, 300, 300), lambda a: s.polar(a)[1]))


@program("scipy")
def sgemm_of_scipy(dtype):
    import numpy
    import scipy.linalg.blas as blas
    gemm = blas.sgemm if dtype == "float32" else blas.dgemm
    a, b = numpy.asfortranarray(random(dtype, 500, 400)), numpy.asfortranarray(random(dtype, 400, 300))
    return lambda: gemm(1.0, a, b)


@program("scipy", wide=False)
def minimize_least_squares(dtype):
    import numpy
    import scipy.optimize
    a, b = random(dtype, 2000, 100), random(dtype, 2000)

    def step():
        def value(x):
            r = a @ x.astype(dtype) - b
            return float(r @ r), (2 * a.T @ r).astype(numpy.float64)
        return scipy.optimize.minimize(value, numpy.zeros(100), jac=True, method="L-BFGS-B", options={"maxiter": 20}).x
    return step


# ---- scikit-learn ----

def estimator(name, make, x, y=None, outcome=lambda fitted, x: fitted.predict(x), wide=False):
    def maker(dtype):
        import numpy
        data, labels = x(dtype), None
        if y:
            labels = y(data)
        model = make()

        def step():
            return numpy.asarray(outcome(model.fit(data, labels) if y else model.fit(data), data))
        return step
    maker.__name__ = name
    PROGRAMS[name] = ("sklearn", maker, wide)


def sk(path, **given):
    def make():
        import importlib
        module, name = path.rsplit(".", 1)
        return getattr(importlib.import_module("sklearn." + module), name)(**given)
    return make


def blobs(n, d, far=1.5):
    return lambda dtype: random(dtype, n, d) + (far * (random(dtype, n, 1) > 0)).astype(dtype)


def variance(m, x):
    return m.explained_variance_


estimator("pca_covariance", sk("decomposition.PCA", n_components=20, svd_solver="covariance_eigh"), blobs(10000, 200), None, variance, True)
estimator("pca_full", sk("decomposition.PCA", n_components=20, svd_solver="full"), blobs(3000, 200), None, variance, True)
estimator("pca_randomized", sk("decomposition.PCA", n_components=20, svd_solver="randomized", random_state=0), blobs(4000, 500), None, variance)
estimator("truncated_svd", sk("decomposition.TruncatedSVD", n_components=30, random_state=0), blobs(3000, 400), None, variance)
estimator("nmf", sk("decomposition.NMF", n_components=20, max_iter=20, init="nndsvd", random_state=0, tol=0), lambda d: abs(random(d, 1000, 300)), None,
          lambda m, x: m.components_)
estimator("kmeans", sk("cluster.KMeans", n_clusters=30, n_init=1, max_iter=10, random_state=0, tol=0), blobs(10000, 64), None, lambda m, x: m.inertia_)
estimator("gaussian_mixture", sk("mixture.GaussianMixture", n_components=5, max_iter=5, random_state=0, tol=0), blobs(4000, 40), None,
          lambda m, x: m.weights_)
estimator("gaussian_process", sk("gaussian_process.GaussianProcessRegressor", alpha=1e-1, optimizer=None), blobs(600, 10), lambda x: x[:, 0] + x[:, 1])
estimator("kernel_ridge", sk("kernel_ridge.KernelRidge", kernel="rbf", alpha=1.0), blobs(800, 50), lambda x: x[:, :5])
estimator("nystroem", sk("kernel_approximation.Nystroem", n_components=200, random_state=0), blobs(4000, 50), None, lambda m, x: m.transform(x))
estimator("linear_regression", sk("linear_model.LinearRegression"), blobs(5000, 200), lambda x: x[:, :3] * 2)
estimator("ridge", sk("linear_model.Ridge"), blobs(10000, 200), lambda x: x[:, :3] * 2)
estimator("logistic_regression", sk("linear_model.LogisticRegression", max_iter=20), blobs(5000, 100), lambda x: (x[:, 0] > 0.5).astype(int),
          lambda m, x: m.coef_)
estimator("nearest_neighbours", sk("neighbors.KNeighborsClassifier", algorithm="brute"), blobs(3000, 64), lambda x: (x[:, 0] > 0.5).astype(int))
estimator("mlp_classifier", sk("neural_network.MLPClassifier", hidden_layer_sizes=(128, 64), max_iter=3, random_state=0), blobs(2000, 100),
          lambda x: (x[:, 0] > 0.5).astype(int), lambda m, x: m.predict_proba(x))
estimator("random_projection", sk("random_projection.GaussianRandomProjection", n_components=100, random_state=0), blobs(4000, 1000), None,
          lambda m, x: m.transform(x))
estimator("lda", sk("discriminant_analysis.LinearDiscriminantAnalysis"), blobs(5000, 100), lambda x: (x[:, 0] > 0.5).astype(int),
          lambda m, x: m.coef_)


# ---- others ----

@program("others")
def numba_dot(dtype):
    import numba
    import numpy
    a, b = random(dtype, 300, 300), random(dtype, 300, 301)[:, :300].copy()

    @numba.njit
    def chain(a, b):
        x = a
        for _ in range(5):
            x = numpy.dot(x, b) * numpy.float32(0.05)
        return x
    return lambda: chain(a, b)


@program("others")
def pandas_dot(dtype):
    import pandas
    x, w = pandas.DataFrame(random(dtype, 4000, 100)), pandas.DataFrame(random(dtype, 100, 60))
    return lambda: x.dot(w).to_numpy()


@program("others")
def networkx_walks(dtype):
    import networkx
    import numpy
    graph = networkx.gnp_random_graph(400, 0.05, seed=1)
    adjacency = networkx.to_numpy_array(graph, dtype=dtype) / 20
    return lambda: numpy.linalg.matrix_power(adjacency, 9)


# ---- PyTorch ----

def torch_training(module, make_x, make_y, loss):
    def maker(dtype):
        import torch
        torch.manual_seed(0)
        kind = getattr(torch, dtype)
        model = module(torch).to(kind)
        x, y = make_x(torch).to(kind), make_y(torch)
        first = [p.detach().clone() for p in model.parameters()]

        def step():
            with torch.no_grad():
                for p, start in zip(model.parameters(), first):
                    p.copy_(start)
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
            for _ in range(2):
                optimizer.zero_grad()
                value = loss(torch, model(x), y.to(kind) if y.is_floating_point() else y)
                value.backward()
                optimizer.step()
            return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()
        return step
    return maker


def torch_program(name, *given, wide=True):
    maker = torch_training(*given)
    maker.__name__ = name
    PROGRAMS[name] = ("torch", maker, wide)


def squares(torch, out, y):
    return torch.nn.functional.mse_loss(out, y)


def classes(torch, out, y):
    return torch.nn.functional.cross_entropy(out, y)


torch_program("torch_mlp_training", lambda t: t.nn.Sequential(t.nn.Linear(200, 400), t.nn.ReLU(), t.nn.Linear(400, 400), t.nn.ReLU(), t.nn.Linear(400, 10)),
              lambda t: t.randn(256, 200), lambda t: t.randint(0, 10, (256,)), classes)
torch_program("torch_transformer_training", lambda t: t.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True),
              lambda t: t.randn(16, 64, 128), lambda t: t.randn(16, 64, 128), squares)
torch_program("torch_convolution_training", lambda t: t.nn.Sequential(t.nn.Conv2d(3, 16, 3), t.nn.ReLU(), t.nn.Conv2d(16, 32, 3), t.nn.Flatten(),
                                                                     t.nn.Linear(32 * 28 * 28, 10)),
              lambda t: t.randn(16, 3, 32, 32), lambda t: t.randint(0, 10, (16,)), classes)


def lstm(t):
    class Last(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = t.nn.LSTM(64, 128, batch_first=True)

        def forward(self, x):
            return self.cells(x)[0][:, -1]
    return Last()


torch_program("torch_lstm_training", lstm, lambda t: t.randn(32, 40, 64), lambda t: t.randn(32, 128), squares)


def torch_step(name, make):
    def maker(dtype):
        import torch
        torch.manual_seed(0)
        step = make(torch, getattr(torch, dtype))

        def counted():
            with torch.no_grad():
                return step().numpy()
        return counted
    maker.__name__ = name
    PROGRAMS[name] = ("torch", maker, True)


def torch_random(t, kind, *shape):
    return t.randn(*shape, dtype=t.float32).to(kind)


def torch_one_row(t, kind):
    model = t.nn.Sequential(t.nn.Linear(512, 1024), t.nn.ReLU(), t.nn.Linear(1024, 512)).to(kind)
    x = torch_random(t, kind, 1, 512)
    return lambda: model(x)


def torch_products(t, kind):
    a, b = torch_random(t, kind, 64, 96, 64), torch_random(t, kind, 64, 64, 80)
    return lambda: a @ b


def torch_einsum(t, kind):
    a, b = torch_random(t, kind, 16, 40, 60), torch_random(t, kind, 60, 40, 50)
    return lambda: t.einsum("bij,jik->bk", a, b)


def torch_linalg(t, kind):
    a = torch_random(t, kind, 400, 400)
    a = a @ a.T / 400 + t.eye(400, dtype=kind)
    return lambda: t.linalg.solve(a, t.linalg.cholesky(a))


torch_step("torch_one_row", torch_one_row)
torch_step("torch_batched_products", torch_products)
torch_step("torch_einsum", torch_einsum)
torch_step("torch_linalg", torch_linalg)


# ---- running ----

def timed(step, budget_s):
    """Warms the step, then times it again and again. Returns the median in microseconds, and the number of times."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < budget_s / 4:
        step()
    taken, begin = [], time.perf_counter()
    while len(taken) < 3 or (time.perf_counter() - begin < budget_s and len(taken) < 5000):
        start = time.perf_counter()
        step()
        taken.append(1e6 * (time.perf_counter() - start))
    return statistics.median(taken), len(taken)


def child(names, budget_s, folder, wide):
    import warnings

    import numpy
    warnings.simplefilter("ignore")
    os.makedirs(folder, exist_ok=True)
    for name in names:
        line = {"program": name}
        try:
            step = PROGRAMS[name][1]("float32")
            start = time.perf_counter()
            numpy.save(os.path.join(folder, name), numpy.asarray(step()))
            line["first_us"] = 1e6 * (time.perf_counter() - start)
            if budget_s > 0:
                line["us"], line["times"] = timed(step, budget_s)
            if wide and PROGRAMS[name][2]:
                numpy.save(os.path.join(folder, name + ".wide"), numpy.asarray(PROGRAMS[name][1]("float64")()))
        except ImportError as missing:
            line["left_out"] = str(missing)
        print("LINE " + json.dumps(line), flush=True)


def run_child(command, names, options, folder, threads, budget_s, wide=False):
    environment = {**os.environ, **{name: str(threads) for name in ("RUNG_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}}
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    words = [*command, sys.executable, os.path.abspath(__file__), "--child", ",".join(names), "--budget", str(budget_s), "--folder", folder]
    if options.realtime:
        words = ["chrt", "-r", "10", *words]
    out = subprocess.run(words + ["--wide"] * wide, env=environment, capture_output=True, text=True, timeout=600)
    lines = [json.loads(row[5:]) for row in out.stdout.splitlines() if row.startswith("LINE ")]
    if out.returncode or len(lines) < len(names):
        sys.exit(f"{' '.join(words)}\nexit code {out.returncode}\n{out.stderr[-2000:]}")
    return {line["program"]: line for line in lines}


def answered(rung, name, options, threads):
    """Runs a step once with a report. Returns the number of calls that Rung answered."""
    with tempfile.NamedTemporaryFile(mode="r", suffix=".txt") as report:
        run_child([rung, "run", "--report-file", report.name, "--"], [name], options, options.folder + "/counted", threads, 0)
        rows = [row.split() for row in report.read().splitlines()]
    rows = [row for row in rows if len(row) >= 9 and re.fullmatch(r"[NT]{2}", row[1])]
    return sum(int(row[6]) for row in rows)


def difference(x, y):
    """Returns the largest difference relative to the largest element of y."""
    import numpy
    x, y = numpy.asarray(x, numpy.float64), numpy.asarray(y, numpy.float64)
    scale = abs(y).max()
    return float(abs(x - y).max() / scale) if scale and numpy.isfinite(x).all() else math.inf


def outcome(name, folders):
    import numpy
    plain, ours = (numpy.load(os.path.join(folder, name + ".npy")) for folder in folders)
    row = {"apart": difference(ours, plain)}
    wide = os.path.join(folders[0], name + ".wide.npy")
    if PROGRAMS[name][2] and os.path.exists(wide):
        exact = numpy.load(wide)
        row["error_without"], row["error_with"] = difference(plain, exact), difference(ours, exact)
    return row


def measure(options, chosen, threads):
    folders = [os.path.join(options.folder, "without"), os.path.join(options.folder, "with")]
    commands = [[], [options.rung, "run", "--"]]
    taken = {name: ([], []) for name in chosen}
    for turn in range(options.rounds):
        for group in dict.fromkeys(PROGRAMS[name][0] for name in chosen):
            names = [name for name in chosen if PROGRAMS[name][0] == group]
            print(f"threads {threads}, round {turn + 1} of {options.rounds}: {group}", file=sys.stderr, flush=True)
            for which in ((0, 1), (1, 0))[turn % 2]:
                lines = run_child(commands[which], names, options, folders[which], threads, options.budget, turn == 0 and which == 0)
                for name in names:
                    taken[name][which].append(lines[name])
    for name, (plain, ours) in taken.items():
        row = {"program": name, "group": PROGRAMS[name][0], "threads": threads}
        if "left_out" in plain[0]:
            row["left_out"] = plain[0]["left_out"]
        else:
            us = [statistics.median(line["us"] for line in lines) for lines in (plain, ours)]
            row |= {"without_us": us[0], "with_us": us[1], "ratio": us[0] / us[1], "calls": answered(options.rung, name, options, threads),
                    "takes_us": [[line["us"] for line in lines] for lines in (plain, ours)], **outcome(name, folders)}
        yield row


def circumstances(options):
    """Returns what every row says of its origin: the command, the processor, the versions."""
    import importlib.metadata as installed
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    versions = {}
    for name in ("numpy", "scipy", "scikit-learn", "numba", "pandas", "networkx", "torch"):
        try:
            versions[name] = installed.version(name)
        except installed.PackageNotFoundError:
            pass
    rung = subprocess.run([options.rung, "--version"], capture_output=True, text=True).stdout.strip()
    return {"command": "lab/python/programs.py " + " ".join(sys.argv[1:]), "rung": rung, "processor": processor, "versions": versions}


def tell(row):
    if "left_out" in row:
        return f"{row['program']:28} {row['threads']}  left out: {row['left_out']}"
    error = f"{row['error_without']:.1e} {row['error_with']:.1e}" if "error_with" in row else f"apart {row['apart']:.1e}"
    return (f"{row['program']:28} {row['threads']} {row['without_us'] / 1e3:11.3f} {row['with_us'] / 1e3:10.3f} {row['ratio']:7.3f} "
            f"{row['calls']:7} {error:>16}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rung", default="rung", help="the rung command that puts the drop-in in front")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="programs or groups, comma-separated")
    parser.add_argument("--budget", type=float, default=0.6, help="seconds for a program's times")
    parser.add_argument("--realtime", action="store_true", help="run the timed processes with chrt -r 10")
    parser.add_argument("--json", help="append a line a program to this file")
    parser.add_argument("--folder", default="build/programs-cpu", help="where outcomes are kept")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--wide", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child.split(","), options.budget, options.folder, options.wide)
    only = options.only.split(",") if options.only else []
    unknown = set(only) - set(PROGRAMS) - {group for group, _, _ in PROGRAMS.values()}
    if unknown:
        parser.error(f"no program or group is called {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    chosen = [name for name, (group, _, _) in PROGRAMS.items() if not only or name in only or group in only]
    print(f"{'program':28} {'t':1} {'without ms':>11} {'with ms':>10} {'ratio':>7} {'calls':>7} {'error':>16}")
    ratios, origin = [], circumstances(options)
    for threads in (int(word) for word in options.threads.split(",")):
        for row in measure(options, chosen, threads):
            print(tell(row), flush=True)
            ratios += [row["ratio"]] if "ratio" in row else []
            if options.json:
                with open(options.json, "a") as file:
                    file.write(json.dumps(row | origin) + "\n")
    if ratios:
        print(f"{len(ratios)} times, geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, worst {min(ratios):.3f}")


if __name__ == "__main__":
    main()
