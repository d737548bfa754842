#!/usr/bin/env python3
"""Draws results of gyre-bench as SVG; needs nothing but Python.

    plot.py latency RESULT.json… --out latency.svg [--rows gyre,raw,…] [--title TEXT]
        the latency of each row of `gyre-bench rtt --json`: how many of the messages took longer than so long, both
        axes logarithmic, so that each nine of the percentiles has as much room
    plot.py load RESULT.json… --out load.svg [--title TEXT]
        latency against offered load, of `gyre-bench sweep --json`: p50, p99 and p99.9

Several files are several sets of lines, named by their files.
"""
import argparse
import json
import math
import os
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 80, 230, 48, 56
COLOURS = ("#0b6e4f", "#c1292e", "#235789", "#e08e00", "#6f2dbd", "#3a3a3a", "#008c9e", "#a05195")
DASHES = ("", "6 3", "2 3")


class Axis:
    """From values to pixels; both ends are pixels."""

    def __init__(self, low, high, first, last, logarithmic):
        self.logarithmic = logarithmic
        self.low, self.high = (math.log10(low), math.log10(high)) if logarithmic else (low, high)
        self.first, self.last = first, last

    def at(self, value):
        value = math.log10(value) if self.logarithmic else value
        part = (value - self.low) / (self.high - self.low)
        return self.first + min(max(part, 0), 1) * (self.last - self.first)


def time_text(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"


def decades(low, high):
    """1, 2 and 5 of each power of ten from low to high."""
    return [step * 10 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for step in (1, 2, 5) if low <= step * 10 ** power <= high]


class Chart:
    def __init__(self, title, subtitle, x, y, x_title, y_title):
        self.x, self.y = x, y
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            f'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            self.text(LEFT, 20, title, size=15), self.text(LEFT, 37, subtitle, size=11, colour="#555"),
            self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_title, anchor="middle"),
            f'<g transform="rotate(-90 18 {(TOP + HEIGHT - BOTTOM) / 2})">'
            + self.text(18, (TOP + HEIGHT - BOTTOM) / 2, y_title, anchor="middle") + "</g>"]
        self.lines = 0

    @staticmethod
    def text(x, y, text, size=12, anchor="start", colour="#222"):
        return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">' \
               f"{escape(text)}</text>"

    def ticks(self, xs, ys):
        """Each a list of (value, label)."""
        for value, label in xs:
            at = self.x.at(value)
            self.parts.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>')
            self.parts.append(self.text(at, HEIGHT - BOTTOM + 17, label, anchor="middle"))
        for value, label in ys:
            at = self.y.at(value)
            self.parts.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#ddd"/>')
            self.parts.append(self.text(LEFT - 8, at + 4, label, anchor="end"))

    def line(self, points, name, colour, dash):
        path = " ".join(f"{self.x.at(x):.1f},{self.y.at(y):.1f}" for x, y in points)
        style = f'fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"'
        self.parts.append(f'<polyline points="{path}" {style}/>')
        x, y = WIDTH - RIGHT + 14, TOP + 10 + 18 * self.lines
        self.parts.append(f'<polyline points="{x},{y} {x + 26},{y}" {style}/>')
        self.parts.append(self.text(x + 32, y + 4, name))
        self.lines += 1

    def svg(self):
        return "\n".join(self.parts + ["</svg>", ""])


def buckets(row):
    return [tuple(map(int, bucket.split(":"))) for bucket in row["histogram_ns"].split()]


def machine_text(document):
    machine = document["machine"]
    where = machine.get("gpu") or machine["cpu"]
    return f"{where}, {machine['transport']}, {machine['date'][:10]}"


def latency(documents, rows_wanted, title):
    series = []  # (name, [(ns, part of the messages that took longer)])
    for label, document in documents:
        for row in document["rows"]:
            if rows_wanted and row["name"] not in rows_wanted:
                continue
            counts = buckets(row)
            left = total = sum(count for _, count in counts)
            points = []
            for ns, count in counts:
                points.append((max(ns, 1), left / total))
                left -= count
            points.append((max(row["max_ns"], points[-1][0]), 1 / total))
            name = f"{row['name']}, {row['size']} B" if row["size"] else row["name"]
            name += ", random gaps" if row.get("gaps") == "random" else ""
            series.append((f"{label}: {name}" if label else name, points))
    if not series:
        sys.exit("plot.py: no such rows in these results")
    low = min(points[0][0] for _, points in series) * 0.9
    high = max(points[-1][0] for _, points in series) * 1.1
    least = min(points[-1][1] for _, points in series)
    nines = max(3, math.ceil(-math.log10(least)))
    x = Axis(low, high, LEFT, WIDTH - RIGHT, True)
    y = Axis(1, 10 ** -nines, TOP, HEIGHT - BOTTOM, True)
    chart = Chart(title or "Round trips: how many take longer", machine_text(documents[0][1]), x, y,
                  "round-trip time", "messages that take longer")
    marks = [value for value in decades(low, high) if high / low < 300 or str(value)[0] == "1"]
    names = ["all", "1 in 10", "1 in 100"] + [f"1 in 10^{n}" for n in range(3, nines + 1)]
    chart.ticks([(value, time_text(value)) for value in marks], [(10 ** -n, names[n]) for n in range(nines + 1)])
    for i, (name, points) in enumerate(series):
        chart.line(points, name, COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)])
    return chart.svg()


def load(documents, title):
    rows = [row for _, document in documents for row in document["rows"] if "offered_per_s" in row]
    if not rows:
        sys.exit("plot.py: these are no results of gyre-bench sweep")
    figures = (("p50_ns", "p50"), ("p99_ns", "p99"), ("p999_ns", "p99.9"))
    low = min(row["p50_ns"] for row in rows) * 0.8
    high = max(row["p999_ns"] for row in rows) * 1.25
    most = max(row["offered_per_s"] for row in rows)
    x = Axis(0, most, LEFT, WIDTH - RIGHT, False)
    y = Axis(low, high, HEIGHT - BOTTOM, TOP, True)
    chart = Chart(title or "Latency against offered load", machine_text(documents[0][1]), x, y,
                  "offered, messages a second", "latency from the intended moment")
    chart.ticks([(most * part / 5, f"{most * part / 5 / 1e6:.2f} M") for part in range(6)],
                [(value, time_text(value)) for value in decades(low, high)])
    for i, (label, document) in enumerate(documents):
        for k, (figure, name) in enumerate(figures):
            points = [(row["offered_per_s"], row[figure]) for row in document["rows"] if "offered_per_s" in row]
            chart.line(points, f"{label}: {name}" if label else name, COLOURS[i % len(COLOURS)], DASHES[k])
    return chart.svg()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("latency", "load"))
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    parser.add_argument("--out", required=True, metavar="FILE.svg")
    parser.add_argument("--rows", default="", help="names of rows, by commas; all where it is not given")
    parser.add_argument("--title", default="")
    settings = parser.parse_args()
    documents = []
    for path in settings.results:
        label = os.path.splitext(os.path.basename(path))[0] if len(settings.results) > 1 else ""
        with open(path) as file:
            documents.append((label, json.load(file)))
    if settings.what == "latency":
        svg = latency(documents, [name for name in settings.rows.split(",") if name], settings.title)
    else:
        svg = load(documents, settings.title)
    with open(settings.out, "w") as file:
        file.write(svg)


if __name__ == "__main__":
    main()
