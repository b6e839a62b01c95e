# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plots of a comparison as SVG, which adapt to the width of the window and to dark pages."""

import math
from html import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 36, 44
COLOURS = ["#0b6bcb", "#d1495b", "#2e8b57", "#b8860b", "#7b52ab", "#00868b", "#a0522d", "#5f6b7a", "#c71585"]
STYLE = """<style>
.hocket{max-width:100%;height:auto;color-scheme:light dark;background:#ffffff;fill:#1f2328;font:12px system-ui,sans-serif}
.hocket .page{fill:#ffffff}
.hocket .title{font-size:15px;font-weight:600}
.hocket .axis{stroke:#6e7781;stroke-width:1}
.hocket .grid{stroke:#d0d7de;stroke-width:1}
.hocket .line{fill:none;stroke-width:2}
.hocket .ours{stroke-width:3.5}
@media (prefers-color-scheme:dark){
.hocket{background:#0d1117;fill:#e6edf3}
.hocket .page{fill:#0d1117}
.hocket .grid{stroke:#30363d}
}
</style>
"""


def size_label(size):
    for unit, name in ((1024**2, "Mi"), (1024, "Ki")):
        if size >= unit:
            return f"{size // unit} {name}"
    return str(size)


def power_label(power, unit):
    """Ten to a power: for times, with the unit that keeps it short."""
    if unit == "µs" and power >= 3:
        return f"{10 ** (power - 3):g} ms"
    return f"{10 ** power:g} {unit}".strip()


class Plot:
    """Lines over sizes, with logarithmic axes."""

    def __init__(self, title, sizes, least, most):
        self.title = title
        self.sizes = sizes
        self.low, self.high = math.log10(least), math.log10(most)
        if self.high - self.low < 0.3:
            self.low, self.high = self.low - 0.15, self.high + 0.15
        self.parts = [f'<text class="title" x="{LEFT}" y="22">{escape(title)}</text>\n']
        self.entries = 0

    def x(self, size):
        first, last = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log2(size) - first) / max(last - first, 1e-9)

    def y(self, value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - math.log10(value)) / (self.high - self.low)

    def axes(self, unit):
        for power in range(math.ceil(self.low), math.floor(self.high) + 1):
            self.level(10**power, "grid", power_label(power, unit))
        if self.high - self.low < 1.2:  # few powers of ten, if any
            for value in (0.2, 0.5, 0.7, 1.5, 2, 3, 5):
                if self.low <= math.log10(value) <= self.high:
                    self.level(value, "grid", f"{value:g} {unit}".strip())
        step = max(1, len(self.sizes) // 8)
        for size in self.sizes[::step]:
            self.parts.append(
                f'<text x="{self.x(size):.1f}" y="{HEIGHT - 22}" text-anchor="middle">{size_label(size)}</text>\n'
            )
        self.parts.append(
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>\n'
        )
        self.parts.append(
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">bytes</text>\n'
        )

    def level(self, value, style, label):
        y = self.y(value)
        self.parts.append(f'<line class="{style}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>\n')
        self.parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>\n')

    def line(self, name, points, colour, ours):
        if not points:
            return
        path = " ".join(f"{self.x(size):.1f},{self.y(value):.1f}" for size, value in points)
        style = "line ours" if ours else "line"
        y = TOP + 10 + 20 * self.entries
        self.entries += 1
        self.parts.append(f'<polyline class="{style}" stroke="{colour}" points="{path}"/>\n')
        if len(points) == 1:
            self.parts.append(
                f'<circle fill="{colour}" r="4" cx="{self.x(points[0][0]):.1f}" cy="{self.y(points[0][1]):.1f}"/>\n'
            )
        left = WIDTH - RIGHT + 14
        self.parts.append(f'<line class="{style}" stroke="{colour}" x1="{left}" x2="{left + 22}" y1="{y}" y2="{y}"/>\n')
        self.parts.append(f'<text x="{left + 28}" y="{y + 4}">{escape(name)}</text>\n')

    def text(self):
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="hocket" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.title)}">\n{STYLE}'
            f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>\n{"".join(self.parts)}</svg>\n'
        )


def lines_of(cells, names, value_of):
    """Points by name; sizes without a value are left out."""
    found = {}
    for name in names:
        points = [(cell.size, value_of(cell, name)) for cell in cells]
        found[name] = [(size, value) for size, value in points if value]
    return {name: points for name, points in found.items() if points}


def draw(title, lines, unit, mark=None):
    """The picture as text; `mark`: a value at which a line is drawn."""
    values = [value for points in lines.values() for _, value in points] + ([mark] if mark else [])
    sizes = sorted({size for points in lines.values() for size, _ in points})
    plot = Plot(title, sizes, min(values), max(values))
    plot.axes(unit)
    if mark:
        plot.level(mark, "axis", f"{mark:g}")
    for number, (name, points) in enumerate(lines.items()):
        plot.line(name, points, COLOURS[number % len(COLOURS)], name.startswith("hocket"))
    return plot.text()


def write_all(cells, results, folder):
    """The times of each call, and the ratios of all calls, for each cache and way of timing."""
    cells = [cell for cell in cells if cell.size > 0]
    names = [peer["name"] for peer in results["peers"]]
    for cache, timing in dict.fromkeys((cell.cache, cell.timing) for cell in cells):
        chosen = [cell for cell in cells if (cell.cache, cell.timing) == (cache, timing)]
        calls = list(dict.fromkeys(cell.call for cell in chosen))
        for call in calls:
            lines = lines_of(
                [cell for cell in chosen if cell.call == call],
                names,
                lambda cell, name: cell.rows[name]["median_us"] if name in cell.rows else None,
            )
            title = f"{call}, {results['ranks']} ranks, {cache} buffers, {timing.replace('_', ' ')}"
            (folder / f"{call}.{cache}.{timing}.svg").write_text(draw(title, lines, "µs"))
    for name in (each for each in names if each.startswith("hocket")):
        found = {(cell.cache, cell.timing, cell.call, cell.size): cell.ratio(name) for cell in cells}
        write_ratios(name, {key: ratio for key, ratio in found.items() if ratio}, folder)


def write_ratios(name, ratios, folder):
    """`ratios` by (cache, timing, call, size): a plot for each cache and way of timing, with a line for each call."""
    ratios = {key: ratio for key, ratio in ratios.items() if key[3] > 0}
    for cache, timing in dict.fromkeys(key[:2] for key in ratios):
        lines = {}
        for (_, _, call, size), ratio in (each for each in ratios.items() if each[0][:2] == (cache, timing)):
            lines.setdefault(call, []).append((size, ratio))
        title = f"best peer / {name} (above 1: hocket is ahead), {cache}, {timing.replace('_', ' ')}"
        (folder / f"ratio.{name}.{cache}.{timing}.svg").write_text(draw(title, lines, "", 1))
