#!/usr/bin/env python3
"""error_texts.py SOURCE_DIR: every text of an error that users see stands in docs/reference/errors.md, and no other.

The texts are taken from the sources: what is thrown, or returned to throw, at set-up (Error, BadOptions, EngineUnavailable), the lines of
what is wrong with options and launches, what Failure::message() says, and what gyre_last_error() does. What a text takes from the run stands as …
on the page. `error_texts.py SOURCE_DIR --write` mends the page: it adds rows that are missing, whose last column a
person then fills in where the text does not say all, and removes those whose text is gone.
"""
import re
import sys
from pathlib import Path

HEADING = "## Texts"
TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)+')
  | (?P<word>[A-Za-z_][A-Za-z_0-9]*|[0-9][A-Za-z_0-9']*)
  | (?P<space>\s+|\\\n)
  | (?P<other>::|->|\#|.)
""", re.VERBOSE | re.DOTALL)
OPEN, CLOSE = "([{", ")]}"
SKIPPED = {"comment", "space"}

# Where texts are made, besides `throw Error(…)`: the calls whose first argument is one, and `return …;` in whole files.
CALLS = {"runtime/options.cpp": {"wrong"}, "runtime/cuda/launch_check.cpp": {"wrong", "problems.push_back"},
         "runtime/actor_set.cpp": {"refuse"}, "runtime/nats/gateway.cpp": {"wrong"}, "runtime/nats/membership.cpp": {"wrong"}, "runtime/process/engine_process.cpp": {"not_started"}}
RETURNS = {"runtime/errors.cpp": "Failure", "runtime/cpu/engine.cpp": "Error", "runtime/cuda/engine.cpp": "Error",
           "runtime/cuda/memory.cpp": "Error", "runtime/core/make_engine.cpp": "BadOptions"}
# Which table of the page is whose: the first that fits.
TABLES = [("runtime/runtime.cpp", "Options"), ("runtime/options", "Options"), ("runtime/core/make_engine", "Options"),
          ("runtime/cpu/engine", "Options"), ("runtime/cpu/actor_memory", "Options"),
          ("runtime/actor_", "Actor sets"), ("runtime/actors/", "Actor sets"), ("runtime/cuda/launch_check", "A launch on a GPU"),
          ("runtime/cuda/engine", "A launch on a GPU"), ("runtime/core", "A launch on a GPU"),
          ("runtime/process", "The engine process"), ("bridge/shared_memory", "The engine process"),
          ("bridge/cuda/device_lease", "A launch on a GPU"), ("runtime/cuda/arguments", "A launch on a GPU"),
          ("bridge/cuda/driver", "The CUDA driver and NVRTC"), ("bridge", "Transports"),
          ("runtime/buffer", "Buffers"), ("runtime/memory/buffer", "Buffers"), ("runtime/cuda/memory", "Buffers"), ("runtime/cpu/memory", "Buffers"),
          ("runtime/cuda", "The CUDA driver and NVRTC"),
          ("runtime/c/", "The C interface"), ("runtime/stats", "Watching"), ("runtime/telemetry", "Watching"),
          ("tools/gyre/watching", "Watching"), ("runtime/nats", "The gateway to NATS"), ("runtime/testing", "The test kit"), ("runtime", "Messages"), ("tools", "The programs")]
AS_IT_SAYS = "do as the text says"
NO_ERRORS = {"nothing failed", "unknown status", "CPU, … worker thread…"}
THROWN = {"Error", "BadOptions", "EngineUnavailable"}


def tokens_of(text):
    return [(m.lastgroup, m.group()) for m in TOKEN.finditer(text) if m.lastgroup not in SKIPPED]


def until(tokens, begin, ends):
    """The index of the first token of `ends` that stands at the level of `begin`."""
    depth = 0
    for at in range(begin, len(tokens)):
        text = tokens[at][1]
        if tokens[at][0] == "other":
            if depth == 0 and text in ends:
                return at
            depth += (text in OPEN) - (text in CLOSE)
    raise ValueError("brackets do not close")


def split(tokens, separator):
    parts, begin = [], 0
    while True:
        try:
            at = until(tokens, begin, {separator})
        except ValueError:
            return parts + [tokens[begin:]]
        parts.append(tokens[begin:at])
        begin = at + 1


def texts_of(tokens):
    """What an expression may be as text, with … for what only the run knows: one for each of its alternatives."""
    tokens = [t for t in tokens if t[1] != "\\"]
    if not tokens:
        return ["…"]
    branches = split(tokens, "?")
    if len(branches) > 1:  # a ? b : c, also where b or c is another
        rest = tokens[len(branches[0]) + 1:]
        depth = 0
        for at, (kind, text) in enumerate(rest):
            if kind == "other":
                depth += (text in OPEN + "?") - (text in CLOSE) - (text == ":" and depth > 0)
                if depth == 0 and text == ":":
                    return texts_of(rest[:at]) + texts_of(rest[at + 1:])
    sums = split(tokens, "+")
    if len(sums) > 1:
        found = [""]
        for part in sums:
            found = [a + b for a in found for b in texts_of(part)]
        return found
    words = "".join(text for kind, text in tokens)
    if tokens[0][0] == "string":
        joined = ""
        for kind, text in tokens:
            joined += text[1:-1] if kind == "string" else "…" if kind == "word" else ""
        return [joined]
    for call in ("fmt::format(", "std::string(", "("):
        if words.startswith(call) and tokens[-1][1] == ")":
            inner = split(tokens[[t[1] for t in tokens].index("(") + 1:-1], ",")
            texts = texts_of(inner[0])
            return [re.sub(r"\{[^{}]*\}", "…", text) for text in texts] if call == "fmt::format(" else texts
    return ["…"]


def clean(text):
    text = text.replace('\\"', '"').replace("\\n", " ").replace("|", "\\|")
    return re.sub(r"\s+", " ", re.sub("…+", "…", text)).strip()


def literal(text):
    return sum(len(part) for part in text.split("…"))


def texts_in(name, tokens):
    for at, (kind, text) in enumerate(tokens):
        following = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        before = tokens[at - 1][1] if at else ""
        call = tokens[at - 2][1] + "." + text if before == "." else text
        if kind != "word":
            continue
        if following == "(" and (text in THROWN and before in ("throw", "return", ":") or
                                 call in CALLS.get(name, ()) and before in (";", "{", "}", ")", ".", "else")):
            argument = split(tokens[at + 2:until(tokens, at + 2, {")"})], ",")[0]
            source = text if text in THROWN else "EngineUnavailable" if text == "not_started" else "Error" if name == "runtime/cuda/launch_check.cpp" else "BadOptions"
            yield from ((source, found) for found in texts_of(argument))
        if name.startswith("runtime/c/") and text in ("invalid", "refuse") and (before, following) == ("return", "("):
            arguments = split(tokens[at + 2:until(tokens, at + 2, {")"})], ",")
            if len(arguments) == 2:
                status = arguments[0][0][1] if text == "refuse" else "GYRE_INVALID_ARGUMENT"
                yield from ((status if status.startswith("GYRE_") else "gyre_status", found) for found in texts_of(arguments[1]))
        if text == "return" and name in RETURNS:
            returned = tokens[at + 1:until(tokens, at + 1, {";"})]
            if any(kind == "string" and " " in value for kind, value in returned):
                yield from ((RETURNS[name], found) for found in texts_of(returned))


def texts_of_sources(root):
    found = {}
    for folder in ("runtime", "bridge", "tools/gyre"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            name = str(path.relative_to(root))
            for source, text in texts_in(name, tokens_of(path.read_text())):
                text = clean(text)
                if literal(text) >= 12 and text not in NO_ERRORS:
                    found.setdefault(("BadOptions" if text.startswith("--") else source, text), name)
    return found


ROW = re.compile(r"^\| ([A-Za-z_]+) \| `` ?(.*?) ?`` \| (.*) \|$")


def rows_of_page(lines):
    """(kind, text): last column, of the rows below the heading."""
    rows = map(ROW.match, lines[lines.index(HEADING):] if HEADING in lines else [])
    return {(row[1], row[2]): row[3] for row in rows if row}


def mended(lines, wanted):
    """The page's lines with a row for each of `wanted` in its file's table, and no others; what rows say is kept."""
    remarks = rows_of_page(lines)
    tables = {}
    for (kind, text), name in sorted(wanted.items(), key=lambda item: (item[1], item[0][1])):
        table = next(title for prefix, title in TABLES if name.startswith(prefix))
        tables.setdefault(table, []).append(f"| {kind} | `` {text} `` | {remarks.get((kind, text), AS_IT_SAYS)} |")
    begin, result, table = lines.index(HEADING), [], None
    for number, line in enumerate(lines):
        if number < begin or not ROW.match(line):
            result.append(line)
        if number > begin and line.startswith("### "):
            table = line[4:]
        if number > begin and line.startswith("| --- "):
            result += tables.pop(table, [])
    if tables:
        raise ValueError(f"docs/reference/errors.md has no table {', '.join(tables)}")
    return result


def main():
    root = Path(sys.argv[1])
    page = root / "docs/reference/errors.md"
    lines = page.read_text().split("\n")
    wanted = texts_of_sources(root)
    if sys.argv[2:] == ["--write"]:
        page.write_text("\n".join(mended(lines, wanted)))
        return 0
    there = rows_of_page(lines)
    for kind, text in sorted(set(wanted) - set(there)):
        print(f"FAILED: {wanted[kind, text]} says, and docs/reference/errors.md does not: | {kind} | `` {text} `` |")
    for kind, text in sorted(set(there) - set(wanted)):
        print(f"FAILED: docs/reference/errors.md has, and no source says: | {kind} | `` {text} `` |")
    if len(wanted) < 100:
        print(f"FAILED: only {len(wanted)} texts were found in the sources; this script does not read them any more")
        return 1
    if set(wanted) != set(there):
        print("tests/tools/error_texts.py . --write mends the page")
        return 1
    print(f"{len(wanted)} texts in the sources, all on the page")
    return 0


if __name__ == "__main__":
    sys.exit(main())
