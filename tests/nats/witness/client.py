#!/usr/bin/env python3
"""client.py FOLDER NUMBER SERVERS [--name value]…: asks witnesses and publishes durable tells until it gets SIGTERM; then it
waits for what is in flight. FOLDER gets what it learned, for the test that judges: asks.NUMBER has an ASK for each reply
taken, tells.NUMBER a TELL for each tell that JetStream acknowledged, and client.NUMBER a summary as JSON, five times a second.

It links nothing of Gyre, and keeps the rules of docs/reference/nats.md for clients."""

import argparse
import collections
import json
import pathlib
import random
import signal
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import wire  # noqa: E402

ACTOR, TYPE = "witness_Witness", "f3b06c2a9d5e4871"
ASK = struct.Struct("<QQQqqQQ")  # id, key, lease, sent and received in ns, began, count
TELL = struct.Struct("<QQqQ")  # id, sequence in the stream, acknowledged in ns, 1 if its handler is to fail
RECORD = struct.Struct("<QQQqq")  # of a handler, as plugin.cpp writes it: process, key, id, begun and ended in ns
GRACE = 0.25  # seconds that a reply may take beyond the deadline that the node keeps


def shard_of(key, shards):
    value = 0xCBF29CE484222325
    for byte in ACTOR.encode() + key.to_bytes(8, "little"):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return (value >> 32) % shards


def act(number, sleep_us, fail):
    return struct.pack("<IIQQII", 0, 3, 2 << 32, number, sleep_us, fail)


def acted(body):
    """Returns when the actor began, and its count."""
    (root,) = struct.unpack_from("<Q", body, 8)
    return struct.unpack_from("<QQ", body, 16 + 8 * (root >> 2 & 0x3FFFFFFF))


Pending = collections.namedtuple("Pending", "number key sent deadline fail floor")


class Client:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.number)
        self.shards = [shard_of(key, options.shards) for key in range(options.keys)]
        self.leases = [0] * options.shards  # the highest that a reply of the shard has had
        self.latest = {}  # by key: began, count and lease of the latest reply taken
        self.began = {}  # by key and lease
        self.counts = set()  # key, began, count
        self.number = options.number << 40
        self.asks, self.tells = {}, {}
        self.outcomes = collections.Counter()
        self.wrong = []
        self.late = 0.0  # seconds after its deadline that the last ask ended
        self.connection = None
        self.ending = False
        folder = pathlib.Path(options.folder)
        self.summary_file = folder / f"client.{options.number}"
        self.asks_file = open(folder / f"asks.{options.number}", "wb")
        self.tells_file = open(folder / f"tells.{options.number}", "wb", buffering=0)
        signal.signal(signal.SIGTERM, self.end)

    def end(self, *_):
        self.ending = True

    def run(self):
        next_ask = next_tell = next_flush = time.monotonic()
        while not self.ending or self.asks or self.tells:
            try:
                if self.connection is None:
                    self.connect()
                now = time.monotonic()
                if not self.ending and now >= next_ask and len(self.asks) < self.options.in_flight:
                    next_ask = max(next_ask + 1 / self.options.asks, now - 0.1)
                    self.ask(now)
                if not self.ending and self.options.tells and now >= next_tell and len(self.tells) < 64:
                    next_tell = max(next_tell + 1 / self.options.tells, now - 0.1)
                    self.number += 1
                    self.tell(self.number, self.random.random() < 0.05)
                due = min(next_ask, next_tell) if self.options.tells else next_ask
                if self.ending or len(self.asks) >= self.options.in_flight or len(self.tells) >= 64:
                    due = now + 0.01
                wait = due - time.monotonic()
                message = self.connection.next(timeout=max(wait, 0))
                while message is not None:
                    self.take(message)
                    message = self.connection.next(timeout=0)
                self.expire()
            except (OSError, TimeoutError, ConnectionError):
                self.lose_connection()
            if time.monotonic() > next_flush:
                next_flush = time.monotonic() + 0.2
                self.write()

    def write(self):
        self.asks_file.flush()
        made = self.summary_file.with_suffix(".new")
        made.write_text(json.dumps({"outcomes": self.outcomes, "wrong": self.wrong[:20], "late": self.late}))
        made.rename(self.summary_file)

    def connect(self):
        host, port = self.random.choice(self.options.servers.split(",")).removeprefix("nats://").split(":")
        try:
            self.connection = wire.Connection(host, int(port), timeout=2)
        except (OSError, TimeoutError, ConnectionError):
            time.sleep(0.02)
            raise
        for number, fail in [(number, fail) for number, (_, fail) in self.tells.items()]:
            self.tell(number, fail)  # JetStream may have it: Nats-Msg-Id says so

    def lose_connection(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        for pending in self.asks.values():
            self.end_ask(pending, "connection_lost")
        self.asks.clear()

    def ask(self, now):
        self.number += 1
        key = self.random.randrange(self.options.keys)
        slow = self.random.random() < self.options.slow
        fail = self.random.random() < self.options.fail
        timeout = self.options.timeout
        pending = Pending(self.number, key, time.monotonic_ns(), now + timeout, fail, self.latest.get(key))
        self.asks[self.number] = pending
        self.connection.publish(
            f"gyre.test.{ACTOR}.{self.shards[key]}", act(self.number, 20000 if slow else 0, fail),
            {"Gyre-Type": TYPE, "Gyre-Key": str(key), "Gyre-Timeout": str(int(timeout * 1e6)),
             "Gyre-Id": f"{self.number:x}"},
            f"{self.connection.inbox}.a{self.number}",
        )

    def tell(self, number, fail):
        self.tells[number] = time.monotonic() + 2, fail
        key = number % self.options.keys
        sleep_us = self.options.long_tells * 1000 if number % 101 == 0 else 20000 if number % 50 == 0 else 0
        self.connection.publish(
            f"gyre.test.durable.{ACTOR}.{self.shards[key]}", act(number, sleep_us, fail),
            {"Gyre-Type": TYPE, "Gyre-Key": str(key), "Gyre-Id": f"{number:x}", "Nats-Msg-Id": f"{number:x}"},
            f"{self.connection.inbox}.d{number}",
        )

    def take(self, message):
        kind, number = message.subject.rsplit(".", 1)[1][0], int(message.subject.rsplit(".", 1)[1][1:])
        if kind == "d":
            reply = json.loads(message.body) if message.body else {}
            if "seq" in reply and number in self.tells:
                _, fail = self.tells.pop(number)
                self.tells_file.write(TELL.pack(number, reply["seq"], time.monotonic_ns(), fail))
                self.outcomes["published"] += 1
                self.outcomes["published_twice"] += bool(reply.get("duplicate"))
        elif number in self.asks:
            self.take_reply(self.asks.pop(number), message)

    def take_reply(self, ask, message):
        if message.status == 503:
            return self.end_ask(ask, "no_responders")
        headers = {name: values[0] for name, values in message.headers.items()}
        if headers.get("Gyre-Id") != f"{ask.number:x}":
            self.wrong.append(f"the reply to {ask} repeats the id {headers.get('Gyre-Id')}")
        status, shard = headers["Gyre-Status"], self.shards[ask.key]
        if "Gyre-Lease" in headers:
            lease = int(headers["Gyre-Lease"])
            if lease < self.leases[shard]:
                return self.end_ask(ask, "old_lease")
            self.leases[shard] = lease
        if status == "ok":
            self.judge(ask, lease, *acted(message.body))
        elif status == "check_failed" and not ask.fail:
            self.wrong.append(f"{ask} failed: {headers.get('Gyre-Reason')}")
        return self.end_ask(ask, status)

    def judge(self, ask, lease, began, count):
        """Finds replies that no single actor gives which handles each message once, in some order, and one after the
        other."""
        reply = f"an actor of {began / 1e9:.6f} s and count {count} under lease {lease} in reply to {ask}"
        if ask.fail:
            self.wrong.append(f"its handler was to fail: {reply}")
        if self.began.setdefault((ask.key, lease), began) != began:
            self.wrong.append(f"two actors of one lease, the other of {self.began[ask.key, lease] / 1e9:.6f} s: {reply}")
        if (ask.key, began, count) in self.counts:
            self.wrong.append(f"a count that came before: {reply}")
        self.counts.add((ask.key, began, count))
        if ask.floor is not None and ask.floor[0] == began and count <= ask.floor[1]:
            self.wrong.append(f"sent after count {ask.floor[1]} was received: {reply}")
        if ask.floor is not None and lease < ask.floor[2]:
            self.wrong.append(f"sent after lease {ask.floor[2]} was received: {reply}")
        latest = self.latest.get(ask.key)
        if latest is None or latest[2] < lease or (latest[0] == began and latest[1] < count):
            self.latest[ask.key] = began, count, lease
        self.asks_file.write(
            ASK.pack(ask.number, ask.key, lease, ask.sent, time.monotonic_ns(), began, count)
        )

    def end_ask(self, ask, outcome):
        self.outcomes[outcome] += 1
        self.late = max(self.late, time.monotonic() - ask.deadline)

    def expire(self):
        """Ends asks whose time is over, and publishes tells again that JetStream did not acknowledge in time."""
        now = time.monotonic()
        for number in [number for number, ask in self.asks.items() if now > ask.deadline + GRACE]:
            self.end_ask(self.asks.pop(number), "no_reply")
        for number, fail in [(number, fail) for number, (until, fail) in self.tells.items() if now > until]:
            self.tell(number, fail)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("number", type=int)
    parser.add_argument("servers")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--asks", type=float, default=500, help="a second")
    parser.add_argument("--tells", type=float, default=50, help="a second")
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--timeout", type=float, default=2, help="seconds")
    parser.add_argument("--slow", type=float, default=0.01, help="part of the asks whose handlers take 20 ms")
    parser.add_argument("--fail", type=float, default=0.01, help="part of the asks whose handlers fail")
    parser.add_argument("--long-tells", type=int, default=0, help="milliseconds that the handler of one tell in 101 takes")
    client = Client(parser.parse_args())
    client.run()
    client.write()


if __name__ == "__main__":
    main()
