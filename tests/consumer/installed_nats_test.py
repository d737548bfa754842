#!/usr/bin/env python3
"""installed_nats_test.py ROOT: gyre-nats and gyre-ask work from the files of Debian packages that were extracted into
ROOT. Exits with 77 where nats-server is missing."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "nats"))
import processes  # noqa: E402

usr = pathlib.Path(sys.argv[1]) / "usr"
server = processes.Server().start()
books_file = server.folder / "books.json"
node = processes.Node(usr / "bin/gyre-nats", server, "--builtin", "--workers", "1", "--json", books_file).start()


def ask(actor, request, text, response):
    schema = usr / "include/gyre/messages" / ("vector_add.capnp" if "Vector" in actor else "echo.capnp")
    command = [
        usr / "bin/gyre-ask", "--server", server.url, "--namespace", "test", "--schema", schema,
        "--import", usr / "include", "--reply", response, actor, "17", request, text,
    ]
    # The library that reads schemas warns if PWD is another folder.
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "PWD": "/"})
    assert done.returncode == 0, done
    return " ".join(done.stdout.split())


echoed = ask("gyre::actors::Echo", "EchoRequest", "(sequence = 7, payload = [1, 2])", "EchoResponse")
assert echoed == "(sequence = 7, payload = [1, 2])", echoed
added = ask("gyre::actors::VectorAdd", "VectorAddRequest", "(a = [1, 2], b = [10, 20])", "VectorAddResponse")
assert "result = [11, 22]" in added, added
assert node.stop() == 0, node.output()
books = json.loads(books_file.read_text())
assert books["left"] and books["balanced"] and books["gateway"]["asks_answered"] == 2, books
