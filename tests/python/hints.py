"""A program as a type checker sees it: hints_test.sh has mypy check it with --strict, where an ignored error that is none
is an error."""

from __future__ import annotations

import asyncio
from typing import Any

import gyre
import numpy
from numpy.typing import NDArray


def asks(runtime: gyre.Runtime) -> dict[str, Any]:
    client: gyre.Client = runtime.client()
    ask: gyre.Prepared = client.prepare("my::Net", 1, "Infer", {"scale": 2}, timeout=0.5, features=64)
    ask.request.features[:] = numpy.zeros(64, dtype="f4")
    scores = ask().scores
    ask.send()
    ask.wait()
    ask.key = 7
    client.prepare("my::Net", 1, 5, features="64")  # type: ignore[arg-type]
    client.prepare("my::Net", "1", "Infer")  # type: ignore[arg-type]
    client.ask("my::Net", 1, "Infer", {"features": scores}, timeout="5")  # type: ignore[arg-type]
    client.aks("my::Net", 1, "Infer", {})  # type: ignore[attr-defined]
    return ask.as_dict()


def buffers(runtime: gyre.Runtime) -> NDArray[Any]:
    with runtime.buffer(("float32", 100), memory="pinned") as buffer:
        buffer.write(numpy.zeros(100))
        buffer.read("out")  # type: ignore[arg-type]
        return buffer.read()


async def later(client: gyre.Client, ask: gyre.Prepared) -> None:
    ask.send()
    await asyncio.gather(ask.wait_async(), client.ask_async("my::Net", 1, "Infer", {}))


def main() -> None:
    actors = gyre.Actors.from_source("struct Net {};", ["my::Net"], {"net.capnp": "@0x1;"})
    gyre.launch(actors, engine=3)  # type: ignore[arg-type]
    with gyre.launch(actors, engine="cpu", workers=2) as runtime:
        letters: list[gyre.DeadLetter] = runtime.dead_letters()
        print(runtime.terminate(timeout=1.5)["balanced"], [letter.reason for letter in letters])
    try:
        gyre.Schema({"a.capnp": ""}).encode("A", {})
    except gyre.BadArgument as error:
        status: int = error.status
        print(status, error.name)
