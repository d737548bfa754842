"""For pyproject.toml: the package with the C library and the engine's program in it."""

import os
import pathlib
import shutil
import subprocess

from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel


class BuildPy(build_py):
    """Takes the library that GYRE_LIBRARY names and the gyre-engine that GYRE_ENGINE names, or one where an installed
    library has it. Without GYRE_LIBRARY builds both by CMake from the tree that this is in; CMAKE_ARGS has further
    arguments for configuring. There is no gyre-engine where Gyre was built without the CUDA toolkit."""

    def run(self):
        super().run()
        given = os.environ.get("GYRE_LIBRARY")
        built = pathlib.Path(given) if given else self._build()
        to = pathlib.Path(self.build_lib) / "gyre"
        to.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, to / "libgyre.so")
        named = os.environ.get("GYRE_ENGINE")
        beside = [built.parent / up / "libexec/gyre/gyre-engine" for up in ("..", "../..")]
        engines = [pathlib.Path(named)] if named else [path for path in beside if path.exists()]
        for engine in engines[:1]:
            shutil.copy(engine, to / "gyre-engine")

    def _build(self):
        tree = pathlib.Path(__file__).resolve().parents[2]
        folder = pathlib.Path(self.get_finalized_command("build").build_temp).resolve() / "libgyre"
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        off = [f"-DGYRE_{part}=OFF" for part in ("TOOLS", "BENCH", "EXAMPLES", "TESTS")]
        subprocess.run(
            ["cmake", "-S", tree, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DGYRE_C=ON", *off]
            + os.environ.get("CMAKE_ARGS", "").split(),
            check=True,
        )
        subprocess.run(["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1)], check=True)
        installed = folder / "installed"
        subprocess.run(["cmake", "--install", folder, "--component", "runtime", "--prefix", installed], check=True)
        return next(installed.rglob("libgyre.so*")).resolve()


class PlatformWheel(bdist_wheel):
    """For this machine's platform, and any Python 3."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])
