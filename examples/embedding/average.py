"""The first tutorial's actor, asked from Python: average.py PLUGIN [ENGINE].
docs/tutorials/05-embedding-from-c-and-python.md explains it."""

import sys

import gyre

plugin = sys.argv[1]
engine = sys.argv[2] if len(sys.argv) > 2 else "auto"

actors = gyre.Actors.load(plugin)
with gyre.launch(actors, engine=engine) as runtime:
    client = runtime.client()
    print(client.ask("averages::Average", 1, "Add", {"numbers": [1, 2, 3]}))
    print(client.ask("averages::Average", 1, "Add", {"numbers": [10]}))
    try:
        client.ask("averages::Average", 2, "Add", {"numbers": []})
    except gyre.Error as error:
        print(error)
