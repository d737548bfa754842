"""Nodes of the namespace `test` that serve witness::Witness, and who owns its shards."""

import json

import processes
from witness import evidence

SHARDS = 64


class Node(processes.Node):
    """A node that writes to FOLDER/handled what its actors handled, as evidence.read() reads it."""

    files = ()  # gyre-nats, and the shared object with witness::Witness

    def __init__(self, server, folder, name, *arguments, shards=SHARDS):
        program, actors = self.files
        super().__init__(program, server, "--actors", actors, "--shards", str(shards), *arguments, name=name)
        self.environment = {"GYRE_WITNESS_FILE": str(folder / "handled"), "GYRE_LOG": "info"}

    def summary(self):
        """Returns what the node printed when it ended."""
        return json.loads(self.output().splitlines()[-1].removeprefix("gyre-nats: "))


def owned(connection):
    """Returns the owner of each shard; None while one moves."""
    shards = processes.owners(connection, "test")
    return [s["node"] for s in shards] if all(s and s["state"] == "serving" for s in shards) else None


def wait_for_shares(connection, *names):
    """Waits until the owners are those of rendezvous hashing. Returns how many shards each has."""
    wanted = [max(names, key=lambda name: evidence.preference(name, shard)) for shard in range(SHARDS)]
    processes.wait_for(lambda: owned(connection) == wanted, f"{names} having their shards")
    return {name: wanted.count(name) for name in names}


def prefers_node2(shard):
    """Returns whether node2 is to own the shard, of node1 and node2."""
    return evidence.preference("node2", shard) > evidence.preference("node1", shard)
