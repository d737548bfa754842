"""For pyproject.toml: the package with what it loads and starts in it, so that it installs without building."""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

# Libraries that every Linux has which the wheel's name admits (PEP 600). Others are taken along.
SYSTEMS = re.compile(r"^(lib(c|m|dl|rt|pthread|util|resolv|nsl|stdc\+\+|gcc_s)|ld-linux-x86-64|linux-vdso)\.so")


class BuildPy(build_py):
    """Takes along the library, gyre-engine, the extension gyre._ask, and the libraries that these need.

    GYRE_LIBRARY, GYRE_ENGINE and GYRE_PYTHON_EXTENSION name the files; where an installed library is named, the others are
    found beside it. Without GYRE_LIBRARY all are built by CMake from the tree that this is in; CMAKE_ARGS has further
    arguments for configuring. There is no gyre-engine where Gyre was built without the CUDA toolkit, and no extension where
    it was built without Python's headers."""

    def run(self):
        super().run()
        given = os.environ.get("GYRE_LIBRARY")
        library = pathlib.Path(given) if given else self._build()
        engine = self._beside(library, os.environ.get("GYRE_ENGINE"), "libexec/gyre/gyre-engine")
        installed = "lib/python3/dist-packages/gyre/_ask.abi3.so"
        extension = self._beside(library, os.environ.get("GYRE_PYTHON_EXTENSION"), installed)
        to = pathlib.Path(self.build_lib) / "gyre"
        to.mkdir(parents=True, exist_ok=True)
        for file, name in ((library, "libgyre.so"), (engine, "gyre-engine"), (extension, "_ask.abi3.so")):
            if file is not None:
                shutil.copy(file, to / name)
        # Where the installed library and engine look for them: beside themselves.
        for name, path in {**_needed(library), **_needed(engine)}.items():
            shutil.copyfile(path, to / name)

    @staticmethod
    def _beside(library, named, below_prefix):
        found = [library.parent / up / below_prefix for up in ("..", "../..")]
        paths = [pathlib.Path(named)] if named else [path for path in found if path.exists()]
        return paths[0] if paths else None

    def _build(self):
        tree = pathlib.Path(__file__).resolve().parents[2]
        folder = pathlib.Path(self.get_finalized_command("build").build_temp).resolve() / "libgyre"
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        off = [f"-DGYRE_{part}=OFF" for part in ("TOOLS", "BENCH", "EXAMPLES", "TESTS")]
        subprocess.run(
            ["cmake", "-S", tree, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DGYRE_STATIC=ON", "-DGYRE_C=ON"]
            + off + os.environ.get("CMAKE_ARGS", "").split(),
            check=True,
        )
        subprocess.run(["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1)], check=True)
        installed = folder / "installed"
        subprocess.run(["cmake", "--install", folder, "--component", "runtime", "--prefix", installed], check=True)
        return next(installed.rglob("libgyre.so*")).resolve()


def _needed(program):
    """The libraries that a program or library needs, by name, but for every system's."""
    if program is None:
        return {}
    listed = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^\s*(\S+) => (\S+)", listed, re.MULTILINE)
    missing = [name for name, path in found if path == "not"]
    if missing:
        raise SystemExit(f"packing {program}: it needs {', '.join(missing)}, which ldd does not find; install what it needs")
    return {name: path for name, path in found if not SYSTEMS.match(name)}


class PlatformWheel(bdist_wheel):
    """For Linux with this machine's C library or a later one, and any Python 3."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        library, version = os.confstr("CS_GNU_LIBC_VERSION").split()
        platform = super().get_tag()[2]
        if library == "glibc" and platform.startswith("linux_"):
            platform = platform.replace("linux_", f"manylinux_{version.replace('.', '_')}_", 1)
        return ("py3", "none", platform)
