"""A node for tests of clients: it checks each request as docs/reference/nats.md has it, and answers as a test wants,
also as no real node does. It plays averages::Average, the first tutorial's actor."""

import collections
import re
import struct
import subprocess
import threading

import wire

ACTOR = "averages_Average"
LEASE = 1000


def type_id_of(schema, name):
    """Returns the type id of a struct as Gyre-Type has it."""
    command = ["capnp", "compile", "-I/usr/include", "-ocapnp", schema]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.search(rf"struct {name} @0x([0-9a-f]{{16}})", shown)[1]


def shard_of(actor, key, shards):
    value = 0xCBF29CE484222325
    for byte in actor.encode() + key.to_bytes(8, "little"):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return (value >> 32) % shards


def numbers_in(body):
    """Returns the numbers of an Add, a message of one segment. Raises an exception if it is none."""
    segments, words = struct.unpack_from("<II", body)
    assert segments == 0 and len(body) == 8 + 8 * words, f"{segments + 1} segments, {words} words, {len(body)} bytes"
    (root,) = struct.unpack_from("<Q", body, 8)
    assert root & 3 == 0, "the root is no struct"
    pointer_at = 16 + 8 * ((root >> 2 & 0x3FFFFFFF) + (root >> 32 & 0xFFFF))
    assert root >> 48 == 1, "an Add has one pointer"
    (pointer,) = struct.unpack_from("<Q", body, pointer_at)
    assert pointer & 3 == 1 and pointer >> 32 & 7 == 5, "the list has no elements of 8 bytes"
    return struct.unpack_from(f"<{pointer >> 35}d", body, pointer_at + 8 + 8 * (pointer >> 2 & 0x3FFFFFFF))


def mean(value, count):
    """Returns a Mean as a stream."""
    return struct.pack("<IIQdQ", 0, 3, 2 << 32, value, count)


class StubNode:
    """Answers on a thread of its own until it is closed. A request that no node would take is kept in `mistakes`."""

    def __init__(self, server, type_id, shards=64, namespace="test"):
        self.type_id, self.shards, self.namespace = type_id, shards, namespace
        self.connection = server.connect()
        self.mistakes = []
        self.requests = 0
        self.counts = collections.Counter()
        # Called with the number of a request, from 1 on, its key, and the right headers and body of its reply: returns
        # those to be sent, or None for no reply.
        self.change = lambda number, key, headers, body: (headers, body)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._serve)

    def create_namespace(self):
        self.connection.create_bucket(f"gyre_{self.namespace}")
        self.connection.put(
            f"gyre_{self.namespace}", "config",
            f"shards={self.shards} lease_ms=3000 clock_error_ms=500 actors={ACTOR}",
        )
        return self

    def __enter__(self):
        self.connection.subscribe(f"gyre.{self.namespace}.*.*")
        self.connection.flush()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.connection.close()

    def _serve(self):
        while not self.ended.is_set():
            if (message := self.connection.next(timeout=0.05)) is not None:
                self._answer(message)

    def _answer(self, message):
        self.requests += 1
        try:
            key, numbers = self._read(message)
        except Exception as error:  # the test shows it
            self.mistakes.append(f"{message}: {error!r}")
            self.connection.publish(message.reply, b"", {"Gyre-Status": "bad_header", "Gyre-Reason": str(error)})
            return
        self.counts[key] += len(numbers)
        headers = {"Gyre-Status": "ok", "Gyre-Lease": str(LEASE)}
        reply = self.change(self.requests, key, headers, mean(numbers[0], self.counts[key]))
        if reply is not None:
            self.connection.publish(message.reply, reply[1], reply[0])

    def _read(self, message):
        _, _, actor, shard = message.subject.split(".")
        headers = {name: values[0] for name, values in message.headers.items() if len(values) == 1}
        assert set(headers) == set(message.headers), "a header is repeated"
        key = int(headers["Gyre-Key"])
        assert actor == ACTOR and headers["Gyre-Type"] == self.type_id
        assert str(shard_of(actor, key, self.shards)) == shard, f"wrong_shard: {shard} of key {key}"
        assert 1 <= int(headers["Gyre-Timeout"]) <= 10**12
        return key, numbers_in(message.body)
