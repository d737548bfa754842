#!/usr/bin/env python3
"""reference_pages_test.py SOURCE_DIR: docs/reference/options.md has every option of runtime/options.hpp with its default,
what gyre.h and the programs call it, and no other; docs/reference/environment.md has every variable that product code
reads, and no other; docs/reference/exit_codes.md has the codes that programs say they end with."""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
failures = 0


def fail(text):
    global failures
    failures += 1
    print("FAILED:", text)


def rows(page):
    """The cells of each row of the page's first table, by the names in the first cell."""
    table = re.search(r"(?m)^\| (?:option|variable) .*\n\|[-| ]+\|\n((?:\|.*\n)+)", (source / page).read_text())
    for line in table[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`([^`]+)`", cells[0]):
            yield name, cells


# Options.
header = (source / "runtime/options.hpp").read_text()
struct = re.search(r"(?s)^struct Options \{(.*?)^  /// Returns", header, re.MULTILINE)[1]
struct = re.sub(r"//.*", "", struct)
declared = {}
for name, default in re.findall(r"\b(\w+)(?: = ([^;]+)|\{(?:\d+)\})?;", struct):
    declared[name] = default
for name, value in re.findall(r"std::chrono::milliseconds (\w+)\{(\d+)\}", struct):
    declared[name] = value
gyre_options = re.search(r"(?s)typedef struct gyre_options \{(.*?)\} gyre_options;", (source / "runtime/c/gyre.h").read_text())[1]
c_fields = set(re.findall(r"(\w+);", re.sub(r"(?s)/\*.*?\*/", "", gyre_options)))
flags = set(re.findall(r'"(--[a-z-]+)"', (source / "tools/gyre/common_options.cpp").read_text()))
page = dict(rows("docs/reference/options.md"))
for name in sorted(declared.keys() | page.keys()):
    if name not in page:
        fail(f"options.md has no row for Options::{name}")
    elif name not in declared:
        fail(f"options.md has a row for {name}, and Options has no such field")
    else:
        _, default, _, _, flag, c_name, *_ = page[name]
        wanted = declared[name].split("::")[-1] if re.match(r"\w+Kind::|WaitPolicy::|Isolation::|CudaContext::", declared[name]) else declared[name]
        wanted = re.sub(r"uint64_t\((\d+)\) << 20", r"\1 MiB", wanted)
        wanted = re.sub(r"uint64_t\((\d+)\) << 30", r"\1 GiB", wanted)
        if default != f"`{wanted}`":
            fail(f"options.md says that {name} is {default} by default, and the header says {wanted}")
        if flag and flag.strip("`") not in flags:
            fail(f"options.md names {flag} for {name}, which no program has")
        for field in re.findall(r"`(\w+)`", c_name):
            if field not in c_fields:
                fail(f"options.md names the C field {field} for {name}, which gyre_options does not have")
named = {field for row in page.values() for field in re.findall(r"`(\w+)`", row[5])} | {"struct_size", "reserved", "reserved_2", "pin_worker_count", "grid_scoped"}
for field in sorted(c_fields - named):
    fail(f"options.md does not name gyre_options' field {field}")
for flag in sorted(flags - {row[4].strip("`") for row in page.values()} - {"--metrics", "--json"}):
    fail(f"options.md does not name the programs' option {flag}")
if len(declared) < 20 or len(c_fields) < 20:
    fail(f"only {len(declared)} options and {len(c_fields)} C fields could be read")

# Environment variables.
read = set()
for path in [source / "CMakeLists.txt", *(source / "cmake").rglob("*.cmake")]:
    read |= set(re.findall(r"\bENV[ {](\w+)", path.read_text()))
for folder in ("runtime", "bridge", "device", "messages", "tools", "bench"):
    for path in (source / folder).rglob("*"):
        if path.suffix in (".cpp", ".hpp"):
            text = path.read_text()
            read |= set(re.findall(r'getenv\("(\w+)"\)', text))
            if "std::getenv(name)" in text:  # a function of the file that takes the name
                read |= set(re.findall(r'absolute\("(\w+)"', text))
        elif path.suffix == ".py":
            read |= set(re.findall(r'os\.environ(?:\.get\(|\[)"(\w+)"', path.read_text()))
        elif path.suffix == ".sh":
            read |= set(re.findall(r"\$\{([A-Z][A-Z_]+):-", path.read_text()))
page = dict(rows("docs/reference/environment.md"))
for name in sorted(read - page.keys()):
    fail(f"environment.md has no row for {name}, which is read")
for name in sorted(page.keys() - read):
    fail(f"environment.md has a row for {name}, which nothing reads")
if len(read) < 10:
    fail(f"only {len(read)} variables could be read")

# Exit codes: what each program's source says of its own, against the page's columns.
said = {}
for name, enum, file in (("`gyre`, `gyre-bench`", "ExitCode", "tools/gyre/common_options.hpp"),
                         ("`gyre-ask`", "AskExit", "tools/gyre_ask/main.cpp")):
    codes = re.search(rf"enum {enum} \{{([^}}]*)\}}", (source / file).read_text())[1]
    said[name] = set(re.findall(r"= (\d+)", codes))
for name, files in (("`tools/gpu_test.sh`, `tools/measure.sh`", ("tools/gpu_test.sh", "tools/measure.sh")),
                    ("`bench/compare.py`", ("bench/compare.py",))):
    said[name] = set()
    for file in files:
        line = re.search(r"(?m)^#? ?Exit: (.*(?:\n#? ?[a-z].*)?)$", (source / file).read_text())[1]
        said[name] |= set(re.findall(r"(?:^|, )(\d+) ", line))
lines = [line for line in (source / "docs/reference/exit_codes.md").read_text().splitlines() if line.startswith("|")]
heads = [cell.strip() for cell in lines[0].strip("|").split("|")]
for name, codes in said.items():
    column = heads.index(name)
    on_page = set()
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[column]:
            on_page.add(cells[0])
    if on_page != codes:
        fail(f"exit_codes.md has {sorted(on_page, key=int)} for {name}, and it ends with {sorted(codes, key=int)}")

print(f"{len(declared)} options, {len(read)} variables: {failures} wrong")
sys.exit(failures != 0)
