#!/usr/bin/env python3
"""guarantees_test.py SOURCE_DIR PAGE: each row of the page's tables names tests, and each is in the tree: a TEST_CASE or
a test of CTest."""
import pathlib
import re
import sys

source, page = pathlib.Path(sys.argv[1]), sys.argv[2]
literal = r'"(?:[^"\\]|\\.)*"'
cases, ctest = set(), []
for path in (source / "tests").rglob("*"):
    if path.suffix == ".cpp":
        for case in re.finditer(r"TEST_CASE\(\s*((?:" + literal + r"\s*)+)", path.read_text()):
            parts = re.findall(literal, case[1])
            cases.add("".join(part[1:-1] for part in parts).replace('\\"', '"'))
    elif path.name == "CMakeLists.txt":
        text = path.read_text()
        names = re.findall(r"add_test\(NAME\s+(\S+)", text) + re.findall(r"gyre_\w*test\((\w+)", text)
        # What a loop names in part stands for any text; a function's `${name}` is not a name.
        names = [name for name in names if not re.fullmatch(r"\$\{\w+\}", name)]
        ctest += [re.compile(re.sub(r"\\\$\\\{\w+\\\}", r"\\w+", re.escape(name))) for name in names]

failures = rows = 0
heading = True
for number, line in enumerate((source / page).read_text().splitlines(), 1):
    if not line.startswith("|"):
        heading = True
        continue
    if heading or set(line) <= set("|- "):
        heading = False
        continue
    rows += 1
    # A case's name may have backquotes of its own: whole cell first.
    cell = line.rstrip().rstrip("|").rsplit("|", 1)[1].strip()
    whole = cell[1:-1] if cell.startswith("`") and cell.endswith("`") else ""
    for name in [whole] if whole in cases else re.findall(r"`([^`]+)`", cell) or [""]:
        if name in cases or any(each.fullmatch(name) for each in ctest):
            continue
        failures += 1
        print(f"FAILED: {page}:{number}: «{name}» is no test")
if rows == 0:
    failures += 1
    print(f"FAILED: {page} has no rows")
if failures == 0:
    print(f"{rows} rows, each with tests that are there")
sys.exit(failures != 0)
