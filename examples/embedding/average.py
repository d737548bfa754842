"""The first tutorial's actor, asked from Python: average.py PLUGIN SCHEMA [ENGINE].
docs/tutorials/05-embedding-from-c-and-python.md explains it."""

import pathlib
import sys

import gyre

plugin, schema = sys.argv[1:3]
engine = sys.argv[3] if len(sys.argv) > 3 else "auto"

actors = gyre.Actors.load(plugin, "averages", {"average.capnp": pathlib.Path(schema).read_text()})
with gyre.launch(actors, engine=engine) as runtime:
    client = runtime.client()
    print(client.ask("averages::Average", 1, "Add", {"numbers": [1, 2, 3]}))
    print(client.ask("averages::Average", 1, "Add", {"numbers": [10]}))
    try:
        client.ask("averages::Average", 2, "Add", {"numbers": []})
    except gyre.Error as error:
        print(error)
