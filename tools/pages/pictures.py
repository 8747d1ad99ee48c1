"""Draws pictures of results: rate against size, stalls, all rungs against size. They are plain SVG with colours of their own."""
import colorsys
import math

from fill import STALLS
from records import SIZES_H100, Missing

ROOF = 66.9  # TFLOP/s: 132 SMs, 128 FMAs a cycle, 1.98 GHz
FONT = "font-family=\"DejaVu Sans, Verdana, sans-serif\""
INK, DIM, GRID, PAPER = "#1b1f24", "#59636e", "#dde2e7", "#ffffff"


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Drawing:
    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      f'role="img"><title>{escape(title)}</title>', self.rect(0, 0, width, height, PAPER)]

    @staticmethod
    def rect(x, y, w, h, fill):
        return f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{fill}"/>'

    def box(self, x, y, w, h, fill):
        self.parts.append(self.rect(x, y, w, h, fill))

    def line(self, x1, y1, x2, y2, colour, width=1, dash=""):
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                          f'stroke-width="{width}"{dash}/>')

    def path(self, points, colour, width=2, dash=""):
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>')

    def dot(self, x, y, colour):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')

    def text(self, x, y, words, size=12, colour=INK, anchor="start", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {FONT} font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
                          f'{weight}>{escape(words)}</text>')

    def done(self):
        return "\n".join(self.parts) + "\n</svg>\n"


def axes(d, left, top, right, bottom, sizes, most, step):
    low, high = math.log2(min(sizes)), math.log2(max(sizes))

    def x(m):
        return left + (math.log2(m) - low) / max(high - low, 1) * (right - left)

    def y(rate):
        return bottom - rate / most * (bottom - top)

    for rate in range(0, int(most) + 1, step):
        d.line(left, y(rate), right, y(rate), GRID)
        d.text(left - 8, y(rate) + 4, str(rate), 11, DIM, "end")
    for m in sizes:
        d.text(x(m), bottom + 18, str(m), 11, DIM, "middle")
    d.text((left + right) / 2, bottom + 36, "m = n = k", 11, DIM, "middle")
    d.text(left - 8, top - 8, "TFLOP/s", 11, DIM, "end")
    return x, y


def spread(labels, apart, lowest):
    """Puts labels beside the ends of their lines, from above; none on another, none below `lowest`, where the axis has its numbers."""
    places, last = [], -99
    for at, name, colour in sorted(labels):
        last = max(at + 4, last + apart)
        places.append([last, name, colour])
    for i, place in enumerate(reversed(places)):
        place[0] = min(place[0], lowest - apart * i)
    return places


def rate(records, kernel):
    own = records.sizes(kernel)
    if not own:
        return None
    before = records.row(kernel)["previous"]
    other = records.sizes(before) if before else {}
    h100 = records.sizes(kernel, SIZES_H100)
    highest = max(line["gflops"] for line in own.values()) / 1000
    sizes = sorted(own)
    tensor = highest > 70
    top_rate = 70 if not tensor else 260 if highest < 255 else 320
    d = Drawing(640, 330, f"{kernel}: rate against size")
    x, y = axes(d, 60, 54, 470, 270, sizes, top_rate, 50 if tensor else 10)
    d.line(60, y(ROOF), 470, y(ROOF), "#c0392b", 1, "6 4")
    labels = [(y(ROOF), "roof of the FMA pipes", "#c0392b")]
    vendor = [(m, 2 * m ** 3 / [p for p in own[m]["peers"] if p["name"] == "cublas"][0]["us"]["median"] / 1e6) for m in sizes]
    for points, colour, width, dash, name in (
            (vendor, "#8a949e", 2, "", "cuBLAS, FP32"),
            ([(m, other[m]["gflops"] / 1000) for m in sizes if m in other], "#7fb0dd", 1.5, "", before),
            ([(m, h100[m]["gflops"] / 1000) for m in sizes if m in h100], "#1f5f9e", 1.5, "5 4", "the same, H100"),
            ([(m, own[m]["gflops"] / 1000) for m in sizes], "#1f5f9e", 3, "", kernel)):
        if points:
            d.path([(x(m), y(v)) for m, v in points], colour, width, dash)
            for m, v in points if not dash else ():
                d.dot(x(m), y(v), colour)
            labels.append((y(points[-1][1]), name, colour))
    for at, name, colour in spread(labels, 14, 270):
        d.text(480, at, name[:26], 11, colour)
    d.text(20, 22, f"{kernel}: rate against size, one H200" + (" and one H100" if h100 else ""), 13, INK, bold=True)
    return d.done()


def shade(part):
    """Returns a colour between blue (0) and red (1), as every renderer reads it."""
    red, green, blue = colorsys.hls_to_rgb((210 - 190 * part) / 360, (42 - 6 * math.sin(part * math.pi)) / 100, 0.62)
    return "#" + "".join(f"{round(255 * x):02x}" for x in (red, green, blue))


def panel(d, records, names, top, bottom, most, step):
    """Draws rungs against size, with cuBLAS's median and the roof."""
    sizes = sorted({m for n in names for m in records.sizes(n)})
    x, y = axes(d, 60, top, 620, bottom, sizes, most, step)
    d.line(60, y(ROOF), 620, y(ROOF), "#c0392b", 1, "6 4")
    labels, vendor = [(y(ROOF), "roof of the FMA pipes", "#c0392b")], {}
    for i, name in enumerate(names):
        own = records.sizes(name)
        for m, line in own.items():
            vendor.setdefault(m, []).append(2 * m ** 3 / [p for p in line["peers"] if p["name"] == "cublas"][0]["us"]["median"] / 1e6)
        colour = shade(i / max(len(names) - 1, 1))
        points = [(x(m), y(own[m]["gflops"] / 1000)) for m in sorted(own)]
        d.path(points, colour, 1.6, "4 3" if name.startswith("l19") else "")
        labels.append((points[-1][1], name, colour))
    points = [(x(m), y(sorted(v)[len(v) // 2])) for m, v in sorted(vendor.items())]
    d.path(points, INK, 3)
    labels.append((points[-1][1], "cuBLAS, FP32", INK))
    for at, name, colour in spread(labels, 13, bottom + 2):
        d.text(642, at, name, 10, colour)


def overview(records):
    """Draws every rung of the GPU's climb against size: FP32 above, tensor cores below."""
    names = [n for n in records.order if n[0] == "l" and records.sizes(n)]
    if not names:
        return None
    d = Drawing(860, 1010, "Every rung against size")
    d.text(20, 24, "Every rung against size, one H200: multiplications in FP32", 14, INK, bold=True)
    panel(d, records, [n for n in names if n < "l30"], 50, 590, 70, 10)
    d.text(20, 660, "The rungs on tensor cores, on another scale", 14, INK, bold=True)
    panel(d, records, [n for n in names if n >= "l30"], 690, 950, 320, 40)
    return d.done()


def stalls(records, kernel):
    try:
        counters = records.counters(kernel)
    except Missing:
        return None
    total = sum(v for k, v in counters.items() if k.startswith("stall_"))
    if not total:
        return None
    shares = [(100 * counters.get("stall_" + key, 0) / total, text, colour) for key, text, colour in STALLS]
    rest = 100 - sum(s for s, _, _ in shares)
    shares = [s for s in shares if s[0] >= 0.5] + ([(rest, "other", "#d6dbdf")] if rest >= 0.5 else [])
    rows = (len(shares) + 1) // 2
    d = Drawing(640, 92 + 20 * rows, f"{kernel}: what its warps do")
    d.text(20, 24, f"{kernel}: what its warps do, of all their time", 13, INK, bold=True)
    at = 20.0
    for share, text, colour in shares:
        d.box(at, 40, 600 * share / 100, 30, colour)
        at += 600 * share / 100
    for i, (share, text, colour) in enumerate(shares):
        x, y = 20 + 310 * (i // rows), 92 + 20 * (i % rows)
        d.box(x, y - 10, 12, 12, colour)
        d.text(x + 20, y, f"{text}: {share:.1f}%", 12)
    return d.done()


def all_of(records):
    """Returns every picture: its path under docs/ladder/img and its text."""
    import pictures_flow, pictures_other, pictures_rungs  # noqa: E401, which draw with this file's Drawing
    made = {"overview.svg": overview(records)}
    for name in records.order:
        if name[0] == "l":
            made[f"{name}-rate.svg"] = rate(records, name)
            made[f"{name}-stalls.svg"] = stalls(records, name)
            made[f"{name}-changed.svg"] = pictures_rungs.changed(records, name)
            made[f"{name}-time.svg"] = pictures_rungs.time_axis(records, name)
            made[f"{name}-banks.svg"] = pictures_rungs.banks(records, name)
            made[f"{name}-flow.svg"] = pictures_flow.flow(records, name)
        else:
            made[f"{name}-rate.svg"] = (pictures_other.cpu_rate if name[0] == "c" else pictures_other.sum_rate)(records, name)
            made[f"{name}-changed.svg"] = pictures_other.changed(records, name)
            made[f"{name}-stalls.svg"] = stalls(records, name) if name[0] == "r" else None
    return {name: text for name, text in made.items() if text}
