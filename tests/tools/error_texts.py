#!/usr/bin/env python3
"""error_texts.py SOURCE_DIR: every text of an error that users see stands in docs/errors.md, and no other.

The texts are taken from the sources: what is thrown at set-up (Error, BadOptions, EngineUnavailable), the lines of
what is wrong with options and launches, and what Failure::message() says. What a text takes from the run stands as …
on the page. `error_texts.py SOURCE_DIR --rows` prints the rows that the page should have.
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
         "runtime/actor_set.cpp": {"refuse"}}
RETURNS = {"runtime/errors.cpp": "Failure", "runtime/cpu/engine.cpp": "Error", "runtime/cuda/engine.cpp": "Error",
           "runtime/cuda/memory.cpp": "Error"}
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
        if following == "(" and (text in THROWN and before == "throw" or
                                 call in CALLS.get(name, ()) and before in (";", "{", "}", ")", ".", "else")):
            argument = split(tokens[at + 2:until(tokens, at + 2, {")"})], ",")[0]
            source = text if text in THROWN else "Error" if name == "runtime/cuda/launch_check.cpp" else "BadOptions"
            yield from ((source, found) for found in texts_of(argument))
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


def rows_of_page(root):
    page = (root / "docs/errors.md").read_text()
    if HEADING not in page:
        return set()
    row = re.compile(r"^\| ([A-Za-z]+) \| `` ?(.*?) ?`` \|", re.MULTILINE)
    return {(source, text) for source, text in row.findall(page[page.index(HEADING):])}


def main():
    root = Path(sys.argv[1])
    wanted = texts_of_sources(root)
    if sys.argv[2:] == ["--rows"]:
        for (source, text), name in sorted(wanted.items(), key=lambda item: (item[1], item[0])):
            print(f"| {source} | `` {text} `` | {name} |")
        return 0
    there = rows_of_page(root)
    for source, text in sorted(set(wanted) - there):
        print(f"FAILED: {wanted[source, text]} says, and docs/errors.md does not: | {source} | `` {text} `` |")
    for source, text in sorted(there - set(wanted)):
        print(f"FAILED: docs/errors.md has, and no source says: | {source} | `` {text} `` |")
    if len(wanted) < 100:
        print(f"FAILED: only {len(wanted)} texts were found in the sources; this script does not read them any more")
        return 1
    print(f"{len(wanted)} texts in the sources, {len(there)} on the page")
    return int(set(wanted) != there)


if __name__ == "__main__":
    sys.exit(main())
