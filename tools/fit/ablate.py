#!/usr/bin/env python3
"""Says what each tile is worth and which can go, by stored timings of all candidates (rung tune --times).

usage: ablate.py TIMES.jsonl... [--lists FOLDER] [--rung BINARY [--drawn FILE]] [--keep NAME,...] [--list-percent 1] [--shape-percent 7]
       ablate.py TIMES.jsonl... --without NAME,...      what is lost without these tiles, all at once; none is looked for

A line of the timings has a product's candidates, best first by the prediction of that day, with their measured times. The planner
runs the first that is there. So without some tiles it runs the first that is left, and the line says what that takes. Tiles are taken
out one by one, the least loss first, while on every list of shapes the geometric mean loses less than --list-percent, no shape more
than --shape-percent, and no shape falls below cuBLAS that was not. With --rung the candidates are put in the order that this build
predicts, tiles that it does not have are left out, and a shape of the lists whose first two choices were not both timed is judged by
what is predicted. So are the shapes of --drawn, of which one kernel was timed beside cuBLAS. Shapes that stand in no list are judged
by the file of their timings. What chips without sm_90 need, and products of pointer arrays, which only small tiles and vector kernels
take, is judged apart, on the lines that have all kernels."""
import argparse
import json
import math
import os
import re
import subprocess
import sys


def read(files):
    lines = []
    for name in files:
        with open(name) as file:
            for text in file:
                line = json.loads(text)
                times = {k: us for k, us in line['kernels'].items() if us}
                if line['kind'] == 'times' and line['math'] == 'strict' and len(times) > 1:
                    lines.append((os.path.basename(name).split('.')[0], line['shape'], times, line.get('cublas')))
    return lines


def text_of(words):
    pad = [w for w in words if w.startswith('pad=')]
    words = [w for w in words if not w.startswith('pad=')]
    form = '' if words[0] == 'NN' else ':' + words[0]
    batch = 'x' + words[4] if len(words) > 4 and words[4] != '1' else ''
    return 'x'.join(words[1:4]) + (form or (':NN' if batch or pad else '')) + batch + ('+' + pad[0][4:] if pad else '')


def lists_of(folder):
    """Returns the list that each shape stands in: the first of them."""
    where = {}
    for name in sorted(n for n in os.listdir(folder) if n.endswith('.txt')):
        with open(os.path.join(folder, name)) as file:
            for text in file:
                words = text.split('#')[0].split()
                if len(words) >= 4:
                    where.setdefault(normal(text_of(words)), name[:-4])
    return where


def families(folder):
    """Yields each family's name and tiles, as its rows say."""
    for name in sorted(os.listdir(folder)):
        rows = os.path.join(folder, name, 'tiles.inc')
        if os.path.exists(rows):
            with open(rows) as file:
                yield name, set(re.findall(r'^RUNG_TILE[(](\w+)', file.read(), re.M))


def normal(shape):
    return shape.replace(':NN', '')


# A view says what may run: everything; what sm_80 has; what takes pointer arrays. It goes by names, as stored times name tiles that are
# gone, too.
VIEWS = {
    'strict': lambda k: True,
    'sm_80': lambda k: k.startswith('sm80_'),
    'arrays': lambda k: re.match(r'sm\d+_(cpasync|crowd|small|dot)_|sm80_axpy', k) is not None,
}


class Shape:
    def __init__(self, group, name, times, cublas):
        self.group, self.name, self.order, self.times, self.cublas = group, name, list(times), times, cublas

    def pick(self, gone):
        for kernel in self.order:
            if kernel not in gone:
                return kernel
        return None


def shapes_of(lines, where, rung):
    shapes = []
    for file, name, times, cublas in lines:
        group = where.get(normal(name), file)
        full = len(times) > 30  # all kernels were timed
        if rung:
            times = {kernel: times[kernel] for kernel, us in ranking(rung, name) if kernel in times}
            if len(times) < 2:
                continue
        shapes.append(Shape('strict ' + group, name, times, cublas))
        if full:
            for view in ('sm_80', 'arrays'):
                if view == 'arrays' and 'x' not in name.split(':')[-1].split('+')[0] and name.count('x') < 3:
                    continue
                some = {k: us for k, us in times.items() if VIEWS[view](k)}
                if some:
                    shapes.append(Shape(view, name, some, None))
    return shapes


def ranking(rung, shape):
    """Asks the planner for a shape's kernels and their predicted microseconds, best first."""
    text = subprocess.run([rung, 'explain', shape, '--gpu', 'h200'], capture_output=True, text=True, check=True).stdout
    return [(kernel, float(us)) for us, kernel in re.findall(r'^ +(\d+\.\d+)  (sm\w+)', text, re.M)]


def rankings(rung, where):
    """Asks for the rankings of all shapes of the lists."""
    found = [(shape, ranking(rung, shape)) for shape in where]
    return [(shape, rank) for shape, rank in found if len(rank) > 1]


def drawn_of(name):
    """Returns the strict shapes of a table of drawn ones (results/random-shapes-h200.txt), with Rung's time and cuBLAS's."""
    with open(name) as file:
        rows = [text.split() for text in file if not text.startswith('#')]
    return {normal(row[2]): (float(row[4]), float(row[5])) for row in rows if row[1] == 'strict'}


def predicted(ranked, timed, drawn, gone):
    """Judges the shapes whose loss was not timed: returns the worst loss in percent, its shape, and who falls below cuBLAS."""
    worst, below = (0.0, ''), []
    for shape, rank in ranked:
        if rank[0][0] not in gone:
            continue
        left, us = next(((kernel, us) for kernel, us in rank if kernel not in gone), (None, math.inf))
        if {rank[0][0], left} <= timed.get(shape, set()):
            continue
        worst = max(worst, (100 * (us / rank[0][1] - 1), shape))
        before, cublas = drawn.get(shape, (0, 0))
        if before <= cublas < before * us / rank[0][1]:
            below.append(shape)
    return *worst, below


def judge(shapes, gone):
    """Returns what each group's geometric mean loses in percent, the worst shape, and the shapes that fall below cuBLAS."""
    sums, worst, below = {}, (0.0, ''), []
    for s in shapes:
        before, after = s.pick(()), s.pick(gone)
        loss = math.log(s.times[after] / s.times[before]) if after else math.inf
        total, count = sums.get(s.group, (0.0, 0))
        sums[s.group] = total + loss, count + 1
        worst = max(worst, (loss, s.name))
        if s.cublas and after and s.times[before] <= s.cublas < s.times[after]:
            below.append(s.name)
    groups = {g: 100 * (math.exp(t / n) - 1) for g, (t, n) in sums.items()}
    return groups, (100 * (math.exp(worst[0]) - 1), worst[1]), below


def allowed(result, o):
    groups, worst, below = result
    return max(groups.values()) < o.list_percent and worst[0] <= o.shape_percent and not below


def allowed_untimed(result, o):
    return result[0] <= o.shape_percent and not result[2]


def mean_of(groups):
    return sum(groups.values()) / len(groups)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('times', nargs='+')
    parser.add_argument('--lists', default='lab/shapes')
    parser.add_argument('--families', default='src/cuda/families')
    parser.add_argument('--keep', default='')
    parser.add_argument('--without', default='')
    parser.add_argument('--list-percent', type=float, default=1.0)
    parser.add_argument('--shape-percent', type=float, default=7.0)
    parser.add_argument('--rung')
    parser.add_argument('--drawn')
    o = parser.parse_args()
    where = lists_of(o.lists)
    drawn = drawn_of(o.drawn) if o.drawn else {}
    ranked = rankings(o.rung, {**where, **drawn}) if o.rung else []
    lines = read(o.times)
    timed = {normal(name): set(times) for _, name, times, _ in lines}
    shapes = shapes_of(lines, where, o.rung)
    kernels = sorted({k for s in shapes for k in s.order})
    kept = set(o.keep.split(','))
    gone = set()
    print('python3', *sys.argv)
    print(f'{len(shapes)} products and views, {len(kernels)} tiles')
    if o.without:
        gone = set(o.without.split(','))
        unknown = gone - set(kernels)
        if unknown:
            sys.exit(f'no stored time names {", ".join(sorted(unknown))}: take times first (rung tune --times)')
        groups, worst, below = judge(shapes, gone)
        for g, loss in sorted(groups.items()):
            print(f'{g}: {loss:.2f}%')
        print(f'worst shape {worst[0]:.2f}% ({worst[1]}); below cuBLAS now: {", ".join(sorted(set(below))) or "none"}')
        return 0 if allowed((groups, worst, below), o) else 1
    while True:
        best = None
        for k in kernels:
            if k in gone or k in kept:
                continue
            result = judge(shapes, gone | {k})
            if allowed(result, o) and allowed_untimed(predicted(ranked, timed, drawn, gone | {k}), o):
                loss = mean_of(result[0])
                if best is None or loss < best[0]:
                    best = loss, k, result
        if best is None:
            break
        gone.add(best[1])
        print(f'without {best[1]:36} lists lose {best[0]:6.3f}% at most {max(best[2][0].values()):5.2f}%, '
              f'worst shape {best[2][1][0]:5.2f}% ({best[2][1][1]})')
    groups, worst, below = judge(shapes, gone)
    base = mean_of(groups)

    def worth(what, tiles):
        g, w, b = judge(shapes, gone | tiles)
        print(f'  {what:36} without it lists lose {mean_of(g) - base:6.3f}%, at most {max(g.values()):6.2f}%, '
              f'worst shape {w[0]:6.1f}% ({w[1]}), {len(b)} below cuBLAS')

    print(f'\n{len(kernels) - len(gone)} tiles stay:')
    for k in kernels:
        if k not in gone:
            worth(k, {k})
    print('whole families (inf: the stored times name no other kernel for some shape):')
    for family, tiles in families(o.families):
        if tiles & set(kernels):
            worth(f'{family}, {len(tiles)} tiles', tiles)
    for g, loss in sorted(groups.items()):
        print(f'{g}: {loss:.2f}%')
    loss, shape, below = predicted(ranked, timed, drawn, gone)
    print(f'worst shape {worst[0]:.2f}% ({worst[1]}); by prediction {loss:.2f}% ({shape})')


if __name__ == '__main__':
    sys.exit(main())
