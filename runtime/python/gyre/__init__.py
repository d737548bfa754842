"""Gyre: actors on a GPU, or on CPU threads if there is none.

    import gyre, numpy

    with gyre.launch() as runtime:
        client = runtime.client()
        reply = client.ask("gyre::actors::VectorAdd", 1, "VectorAddRequest", {"a": [1, 2], "b": [10, 20]})
        print(reply["result"])

See docs/reference/python.md.
"""

from ._buffer import Buffer
from ._errors import BadArgument, Closed, EngineUnavailable, Error, TimedOut
from ._library import lib as _lib
from ._runtime import Actors, Client, DeadLetter, Runtime, launch
from ._schema import Schema

__version__ = _lib.gyre_version().decode()
__all__ = [
    "Actors", "BadArgument", "Buffer", "Client", "Closed", "DeadLetter", "EngineUnavailable", "Error", "Runtime",
    "Schema", "TimedOut", "launch",
]
