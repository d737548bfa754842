#!/usr/bin/env python3
"""Draws docs/explanation/architecture.svg.  --write makes it; --check fails where the file differs from the drawing."""
import pathlib
import sys

FILE = pathlib.Path(__file__).with_suffix(".svg")
WIDTH, HEIGHT = 860, 400


def box(x, y, width, height, title, *lines, fill="#ffffff"):
    text = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" stroke="#44546a"/>',
            f'<text x="{x + width / 2:g}" y="{y + 20}" text-anchor="middle" font-weight="bold">{title}</text>']
    for n, line in enumerate(lines):
        text.append(f'<text x="{x + width / 2:g}" y="{y + 39 + 16 * n}" text-anchor="middle">{line}</text>')
    return text


def arrow(x1, y1, x2, y2, label="", above=True):
    text = [f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#1f4e79" stroke-width="1.6" marker-end="url(#tip)"/>']
    if label:
        y = (y1 + y2) / 2 + (-6 if above else 16)
        text.append(f'<text x="{(x1 + x2) / 2:g}" y="{y:g}" text-anchor="middle" fill="#1f4e79">{label}</text>')
    return text


def drawing():
    host, bridge, engine = "#eef4fb", "#f7f3e8", "#eef8ee"
    parts = [
        f'<rect x="10" y="30" width="240" height="360" rx="8" fill="{host}"/>',
        f'<rect x="270" y="30" width="300" height="360" rx="8" fill="{bridge}"/>',
        f'<rect x="590" y="30" width="260" height="360" rx="8" fill="{engine}"/>',
        '<text x="130" y="22" text-anchor="middle" font-weight="bold">program</text>',
        '<text x="420" y="22" text-anchor="middle" font-weight="bold">bridge: memory of both sides</text>',
        '<text x="720" y="22" text-anchor="middle" font-weight="bold">engine: GPU or CPU threads</text>',
        *box(30, 50, 200, 92, "Client", "builds the request", "claims a slot", "stores its packets"),
        *box(30, 170, 200, 76, "call slot", "get, co_await or callback", "completes here"),
        *box(30, 290, 200, 76, "Runtime", "launch, lifecycle, books", "frees arena blocks"),
        *box(290, 60, 260, 60, "host-to-device ring, one a worker", "slots of stamped packets"),
        *box(290, 178, 260, 60, "device-to-host ring, one a worker", "slots of stamped packets"),
        *box(290, 262, 125, 58, "arena", "large bodies"),
        *box(425, 262, 125, 58, "buffers", "by handle"),
        *box(290, 330, 260, 52, "commands, credit, counters", "one writer for each line"),
        *box(610, 50, 220, 92, "worker: poll", "all stamps match:", "the message is whole", "match actor and handler"),
        *box(610, 170, 220, 76, "actor's handler", "state, context,", "request view, reply builder"),
        *box(610, 290, 220, 76, "worker: reply", "stores the packets, publishes", "credit when a quarter is read"),
        *arrow(230, 90, 290, 90), *arrow(550, 90, 610, 90),
        *arrow(720, 142, 720, 170), *arrow(720, 246, 720, 290),
        *arrow(610, 310, 550, 216), *arrow(290, 208, 230, 208),
        *arrow(230, 332, 290, 352),
    ]
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">\n'
            '<title>How a message goes from a client to an actor and back</title>\n'
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L10 5L0 10z" fill="#1f4e79"/></marker></defs>\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n')


def main():
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(drawing())
    elif sys.argv[1:] == ["--check"]:
        if not FILE.is_file() or FILE.read_text() != drawing():
            print(f"FAILED: {FILE} is not what this script draws; run it with --write")
            return 1
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
