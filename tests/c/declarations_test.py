#!/usr/bin/env python3
"""declarations_test.py HEADER LIBRARY_PY GYRE_CS GYRE_SYS_RS: what the Python package, the .NET sample and the Rust
example declare of gyre.h is what
it says: each function's parameters, each struct's fields, all by their types."""

import ctypes
import os
import re
import sys

failures = []


def fail(text):
    failures.append(text)
    print("FAILED:", text)


def read_header(path):
    """Functions: name → (result, [parameter type]); structs: name → [(field, type)]. Types are "int32", "double",
    "text" (a const char*), "pointer to <type>" and struct names."""
    with open(path) as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
    # The structs' typedefs name themselves, and are matched first.
    basic = {"size_t": "size", "int32_t": "int32", "uint32_t": "uint32", "uint64_t": "uint64", "int64_t": "int64",
             "uint16_t": "uint16", "double": "double", "char": "char", "void": "void"}
    for name in re.findall(r"typedef \w+ \(\*(gyre_\w+)\)\(", text):
        basic[name] = "function"
    structs = {}
    bodies = re.findall(r"typedef struct (\w+) \{(.*?)\} (\w+);", text, flags=re.S)
    for tag, _, name in bodies:
        assert tag == name, name
        basic[name] = name
    for base, name in re.findall(r"typedef (\w+) (gyre_\w+);", text):
        basic[name] = basic[base]

    def type_of(words):
        words = words.replace("const", " ")
        stars = words.count("*")
        base = basic[words.replace("*", " ").split()[0]]
        if stars and base == "char":
            stars, base = stars - 1, "text"
        return "pointer to " * stars + base

    for _, body, name in bodies:
        fields = []
        for declaration in filter(None, (part.strip() for part in body.split(";"))):
            base, names = re.match(r"((?:const\s+)?\w+(?:\s+const)?)\s*(.*)$", declaration, flags=re.S).groups()
            for declared in names.split(","):
                stars = declared.count("*")
                field = re.match(r"(\w+)(\[(\d+)\])?$", declared.replace("const", " ").replace("*", " ").strip())
                kind = type_of(base + "*" * stars)
                fields.append((field[1], f"{kind}[{field[3]}]" if field[3] else kind))
        structs[name] = fields
    functions = {}
    for result, name, parameters in re.findall(r"GYRE_API ([\w\s*]+?)\b(gyre_\w+)\(([^)]*)\);", text):
        takes = []
        for parameter in filter(None, (part.strip() for part in parameters.split(","))):
            if parameter != "void":
                takes.append(type_of(re.sub(r"\w+$", "", parameter)))
        functions[name] = (type_of(result), takes)
    assert len(functions) >= 45 and len(structs) >= 12, (len(functions), len(structs))
    return functions, structs


def check_python(path, functions, structs):
    # The declarations alone: without the library that they are for.
    module = {"__name__": "declarations", "__file__": path}
    with open(path) as file:
        exec(compile(file.read().replace("\nlib = _load()\n", "\n"), path, "exec"), module)
    struct_names = {declared: name for name, declared in module["STRUCTS"].items()}
    simple = {ctypes.c_int32: "int32", ctypes.c_uint32: "uint32", ctypes.c_int64: "int64", ctypes.c_uint64: "uint64",
              ctypes.c_uint16: "uint16", ctypes.c_double: "double", ctypes.c_char_p: "text"}

    def matches(declared, said):
        if declared is ctypes.c_void_p:
            return said == "pointer to void"
        if declared is ctypes.c_size_t and said == "size":
            return True
        if issubclass(declared, ctypes._CFuncPtr):
            return said == "function"
        if declared in struct_names:
            return said == struct_names[declared]
        if hasattr(declared, "_type_") and not isinstance(declared._type_, str):
            if declared._type_ is ctypes.c_void_p:
                return said == "pointer to pointer to void"
            return said.startswith("pointer to ") and matches(declared._type_, said[len("pointer to "):])
        return simple.get(declared) == said

    for name, (returns, takes) in module["FUNCTIONS"].items():
        if name not in functions:
            fail(f"Python declares {name}, and the header does not")
            continue
        result, parameters = functions[name]
        if not matches(returns, result) or len(takes) != len(parameters):
            fail(f"Python's {name}: it returns {result} and takes {parameters}")
            continue
        for i, (declared, said) in enumerate(zip(takes, parameters)):
            if not matches(declared, said):
                fail(f"Python's {name}: parameter {i} is {declared}, and the header says {said}")
    for name, declared in module["STRUCTS"].items():
        fields = [(field, kind) for field, kind in declared._fields_]
        if [field for field, _ in fields] != [field for field, _ in structs[name]]:
            fail(f"Python's {name} has the fields {[field for field, _ in fields]}")
            continue
        for (field, kind), (_, said) in zip(fields, structs[name]):
            if not matches(kind, said):
                fail(f"Python's {name}.{field} is {kind}, and the header says {said}")
    return len(module["FUNCTIONS"]), len(module["STRUCTS"])


def check_dotnet(path, functions, structs):
    with open(path) as file:
        text = re.sub(r"//[^\n]*", "", file.read())
    simple = {"int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64", "ushort": "uint16",
              "double": "double", "UIntPtr": "size"}

    def struct_name(declared):
        return re.sub(r"(?<!^)(?=[A-Z])", "_", declared).lower()

    def matches(declared, said):
        if declared == "IntPtr":
            return said == "text" or said.startswith("pointer to ")
        if declared in ("byte[]", "float[]"):
            return said in ("text", "pointer to void", "pointer to char")
        by_reference = re.match(r"(?:ref|out) (\w+)$", declared)
        if by_reference:
            return said.startswith("pointer to ") and matches(by_reference[1], said[len("pointer to "):])
        if declared.endswith("[]"):
            return said.startswith("pointer to ") and matches(declared[:-2], said[len("pointer to "):])
        return simple.get(declared, struct_name(declared)) == said

    imports = re.findall(r"\[DllImport\(Library\)\] public static extern (\w+) (\w+)\(([^)]*)\);", text)
    for returns, name, parameters in imports:
        if name not in functions:
            fail(f".NET declares {name}, and the header does not")
            continue
        result, said = functions[name]
        takes = [" ".join(part.split()[:-1]) for part in parameters.split(",") if part.strip()]
        if not matches(returns, result) or len(takes) != len(said):
            fail(f".NET's {name}: it returns {result} and takes {said}")
            continue
        for i, (declared, parameter) in enumerate(zip(takes, said)):
            if not matches(declared, parameter):
                fail(f".NET's {name}: parameter {i} is {declared}, and the header says {parameter}")
    if text.count("DllImport(") != len(imports):
        fail(f".NET imports {text.count('DllImport(')} functions, and {len(imports)} can be read")
    declared_structs = re.findall(r"\[StructLayout\(LayoutKind.Sequential\)\]\s*public struct (\w+)\s*\{(.*?)\}", text,
                                  flags=re.S)
    for declared, body in declared_structs:
        name = struct_name(declared)
        fields = [(struct_name(field), kind) for kind, field in re.findall(r"public (\w+) (\w+);", body)]
        if name not in structs or [field for field, _ in fields] != [field for field, _ in structs[name]]:
            fail(f".NET's {declared} has the fields {[field for field, _ in fields]}")
            continue
        for (field, kind), (_, said) in zip(fields, structs[name]):
            if not matches(kind, said):
                fail(f".NET's {declared}.{field} is {kind}, and the header says {said}")
    if not declared_structs or not imports:
        fail(".NET declares nothing that can be read")
    return len(imports), len(declared_structs)


def check_rust(path, functions, structs):
    with open(path) as file:
        text = re.sub(r"//[^\n]*", "", file.read())
    simple = {"i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64", "u16": "uint16", "f64": "double",
              "usize": "size", "c_char": "char", "c_void": "void"}
    simple.update((name, simple[base]) for name, base in re.findall(r"pub type (\w+) = (\w+);", text))
    # What is never looked into is an empty enum of the struct's name.
    opaque = re.findall(r"pub enum (\w+) \{\}", text)

    def matches(declared, said):
        pointer = re.match(r"\*(?:const|mut) (.*)$", declared)
        if pointer:
            return said == "text" and pointer[1] == "c_char" or (
                said.startswith("pointer to ") and matches(pointer[1], said[len("pointer to "):]))
        return simple.get(declared, declared) == said

    declared = re.findall(r"pub fn (\w+)\(([^)]*)\)\s*->\s*([^;]+);", text)
    for name, parameters, returns in declared:
        if name not in functions:
            fail(f"Rust declares {name}, and the header does not")
            continue
        result, said = functions[name]
        takes = [part.split(":")[1].strip() for part in parameters.split(",") if part.strip()]
        if not matches(returns, result) or len(takes) != len(said):
            fail(f"Rust's {name}: it returns {result} and takes {said}")
            continue
        for i, (kind, parameter) in enumerate(zip(takes, said)):
            if not matches(kind, parameter):
                fail(f"Rust's {name}: parameter {i} is {kind}, and the header says {parameter}")
    if text.count("pub fn ") != len(declared):
        fail(f"Rust declares {text.count('pub fn ')} functions, and {len(declared)} can be read")
    declared_structs = re.findall(r"#\[repr\(C\)\]\s*pub struct (\w+) \{(.*?)\}", text, flags=re.S)
    for name, body in declared_structs:
        fields = re.findall(r"pub (\w+): ([^,]+),", body)
        if name not in structs or [field for field, _ in fields] != [field for field, _ in structs[name]]:
            fail(f"Rust's {name} has the fields {[field for field, _ in fields]}")
            continue
        for (field, kind), (_, said) in zip(fields, structs[name]):
            if not matches(kind, said):
                fail(f"Rust's {name}.{field} is {kind}, and the header says {said}")
    for name in opaque:
        if name not in structs:
            fail(f"Rust names a struct {name}, and the header does not")
    if not declared_structs or not declared:
        fail("Rust declares nothing that can be read")
    return len(declared), len(declared_structs)


def main():
    header, python, dotnet, rust = sys.argv[1:]
    languages = (("Python", check_python, python), (".NET", check_dotnet, dotnet), ("Rust", check_rust, rust))
    functions, structs = read_header(header)
    # A declaration that is not right is seen.
    wrong = dict(functions, gyre_launch=("int32", ["uint64", "pointer to gyre_options", "pointer to uint32"]))
    sys.stdout = open(os.devnull, "w")
    for _, check, path in languages:
        check(path, wrong, structs)
        check(path, functions, dict(structs, gyre_options=structs["gyre_options"][::-1]))
    sys.stdout = sys.__stdout__
    if len(failures) != 2 * len(languages):
        print(f"FAILED: of {2 * len(languages)} wrong declarations {len(failures)} were seen")
        return 1
    failures.clear()
    for language, check, path in languages:
        print("{}: {} functions and {} structs as the header declares them".format(
            language, *check(path, functions, structs)))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
