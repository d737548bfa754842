"""Gyre: actors on a GPU, or on CPU threads if there is none.

    import gyre, numpy

    with gyre.launch() as runtime:
        client = runtime.client()
        reply = client.ask("gyre::actors::VectorAdd", 1, "VectorAddRequest", {"a": [1, 2], "b": [10, 20]})
        print(reply["result"])

See docs/reference/python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._buffer import Buffer
from ._copies import Copy
from ._errors import BadArgument, Closed, EngineUnavailable, Error, TimedOut
from ._library import lib as _lib
from ._runtime import Actors, Client, DeadLetter, FromActor, Runtime, launch
from ._schema import Schema
from ._stream import PendingReply

if TYPE_CHECKING:
    from ._prepared import Prepared as Prepared

__version__: str = _lib.gyre_version().decode()
__all__ = [
    "Actors", "BadArgument", "Buffer", "Client", "Closed", "Copy", "DeadLetter", "EngineUnavailable", "Error",
    "FromActor", "PendingReply", "Runtime", "Schema", "TimedOut", "launch",
]


def __getattr__(name: str) -> Any:
    if name == "Prepared":  # not before: it needs NumPy
        from ._prepared import Prepared

        return Prepared
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
