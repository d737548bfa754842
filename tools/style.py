#!/usr/bin/env python3
"""Reports how pages and comments are written.

    style.py [--lengths] [--quiet] [FILE…]      default: every page and every source file of the tree

Words: each use of a phrase of tools/style_words.txt, in a page's prose or in a comment, with the wording that replaces it.
Lengths, with --lengths: the mean sentence of each page in words, and each sentence of more than 40. Code blocks, headings and
HTML comments are not prose; a cell of a table is a sentence from 4 words on; `code` and a link count as their words.

Exit: 0 nothing to report, 1 a phrase was found, or with --lengths a page's mean is over 20 words or a sentence over 40;
2 bad usage.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEAN_WORDS, MOST_WORDS, CELL_WORDS = 20, 40, 4
LINE_COMMENTS = {
    ".hpp": "//", ".cpp": "//", ".h": "//", ".cu": "//", ".cuh": "//", ".capnp": "#", ".py": "#", ".sh": "#", ".cmake": "#",
    ".rs": "//", ".cs": "//",
}


def rules():
    for line in (ROOT / "tools/style_words.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        phrase, instead, *allowed = line.split("\t")
        yield (re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE), instead,
               re.compile(allowed[0], re.IGNORECASE) if allowed else None)


def paragraphs(text):
    """Yields (line number, text, whether it is a cell) of each paragraph, list item and table cell of Markdown text."""
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    gathered, begin, fenced = [], 0, False

    def end():
        nonlocal gathered
        if gathered:
            yield begin, " ".join(gathered), False
        gathered = []

    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith("```"):
            yield from end()
            fenced = not fenced
        elif fenced:
            pass
        elif not bare or bare.startswith("#") or line.startswith("    ") and not gathered:
            yield from end()
        elif bare.startswith("|"):
            yield from end()
            if not set(bare) <= set("|-: "):
                for cell in re.split(r"(?<!\\)\|", bare.strip("|")):
                    yield number, cell.strip(), True
        else:
            item = re.match(r"(?:[-*+]|\d+\.)\s+(.*)", bare)
            if item:
                yield from end()
                bare = item[1]
            if not gathered:
                begin = number
            gathered.append(bare)
    yield from end()


def plain(text):
    """Markdown without its marks: links are their text, code is one word."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("*", "")


def sentences(text):
    """Yields (line number, sentence, its words) of Markdown text."""
    for number, paragraph, cell in paragraphs(text):
        for sentence in re.split(r"(?<=[.!?])[)\"'”»]*\s+(?=[A-Z0-9`(«“\"])", plain(paragraph)):
            words = len(re.findall(r"[^\W_][\w'’.,/+:-]*", sentence))
            if words >= (CELL_WORDS if cell else 1):
                yield number, sentence.strip(), words


def comments(path, text):
    """Yields (line number, text) of each line's comment in a source file."""
    mark = LINE_COMMENTS[path.suffix]
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(rf"(?:^|\s){re.escape(mark)}+[/!]?(?:\s|$)(.*)", line)
        if found:
            yield number, found[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="only what is to be changed")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    files = arguments.files
    if not files:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
        if listed.returncode == 0:
            files = [ROOT / name for name in listed.stdout.split("\0") if name]
        else:  # a source archive
            files = [path for path in ROOT.rglob("*") if "build" not in path.relative_to(ROOT).parts]
        files = [path for path in files if path.suffix == ".md" or path.suffix in LINE_COMMENTS]
    known, failures, pages = list(rules()), 0, 0

    def report(path, number, text):
        nonlocal failures
        failures += 1
        path = path.resolve()
        print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{number}: {text}")

    def find_phrases(path, number, text):
        for phrase, instead, allowed in known:
            for found in phrase.finditer(text):
                around = text[max(0, found.start() - 24):found.end() + 24]
                if not (allowed and allowed.search(around)):
                    report(path, number, f"«{found[0]}»: {instead}")

    for path in files:
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            parser.error(f"reading {path}: {error}")
        if path.suffix in LINE_COMMENTS:
            for number, comment in comments(path, text):
                find_phrases(path, number, comment)
            continue
        if path.suffix != ".md":
            parser.error(f"{path} is neither a page (.md) nor a source file")
        pages += 1
        for number, paragraph, _ in paragraphs(text):
            find_phrases(path, number, plain(paragraph))
        lengths = list(sentences(text))
        words = sum(length for _, _, length in lengths)
        mean = words / len(lengths) if lengths else 0
        if not arguments.quiet:
            print(f"{path.name}: {words} words in {len(lengths)} sentences, {mean:.1f} a sentence")
        if arguments.lengths:
            if mean > MEAN_WORDS:
                report(path, 1, f"{mean:.1f} words a sentence; at most {MEAN_WORDS}")
            for number, sentence, length in lengths:
                if length > MOST_WORDS:
                    report(path, number, f"{length} words in a sentence, at most {MOST_WORDS}: «{sentence[:60]}…»")
    print(f"{len(files)} files, {pages} pages: {failures} to change")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
