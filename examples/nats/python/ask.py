"""Asks the actors of a gyre-nats node from Python, by nats-py and pycapnp: none of Gyre's code is here.

It asks averages::Average, the first tutorial's actor: one number goes in, and the mean and the count of all numbers that
the actor was sent come out. As each actor is always sent one number, the mean must be that number, and each count must
come once.

    pip install nats-py pycapnp
    python3 ask.py --server nats://127.0.0.1:4222 --namespace default --asks 10 --keys 2
"""

import argparse
import asyncio
import collections
import pathlib
import sys

import capnp
import nats
import nats.errors
import nats.js.errors

SCHEMA = pathlib.Path(__file__).parents[2] / "first_actor" / "average.capnp"
average = capnp.load(str(SCHEMA), imports=["/usr/include"])  # where /capnp/c++.capnp is
ACTOR = "averages_Average"  # in a subject: averages::Average

# These may go well the next time. After no_reply, timed_out and engine_failed the actor may have had the message, so
# retry only what may be handled twice: a count is then left out.
TRANSIENT = {"no_such_node", "ring_full", "call_table_full", "draining", "timed_out", "engine_failed", "no_reply", "old_lease"}


def shard_of(actor: str, key: int, shards: int) -> int:
    hash_ = 0xCBF29CE484222325
    for byte in actor.encode() + key.to_bytes(8, "little"):
        hash_ = (hash_ ^ byte) * 0x100000001B3 % 2**64
    return (hash_ >> 32) % shards


class Client:
    def __init__(self, connection, namespace: str, shards: int, timeout: float):
        self.connection, self.namespace, self.shards, self.timeout = connection, namespace, shards, timeout
        self.leases = [0] * shards  # the highest that a reply of the shard has had

    @classmethod
    async def connect(cls, server: str, namespace: str, timeout: float):
        try:
            connection = await asyncio.wait_for(nats.connect(server.split(","), max_reconnect_attempts=-1), 10)
        except asyncio.TimeoutError:
            sys.exit(f"no NATS server answers at {server}")
        try:
            bucket = await connection.jetstream().key_value(f"gyre_{namespace}")
            config = (await bucket.get("config")).value.decode()  # shards=64 lease_ms=3000 ...
        except nats.js.errors.NotFoundError:
            sys.exit(f"there is no bucket gyre_{namespace} with an entry config: start a node in that namespace")
        shards = int(dict(pair.split("=") for pair in config.split())["shards"])
        return cls(connection, namespace, shards, timeout)

    async def ask(self, actor: str, key: int, request):
        """Returns the status, the reason, the lease, and the reply's body."""
        shard = shard_of(actor, key, self.shards)
        headers = {
            "Gyre-Type": f"{request.schema.node.id:016x}",
            "Gyre-Key": str(key),
            "Gyre-Timeout": str(round(self.timeout * 1e6)),
        }
        try:
            reply = await self.connection.request(
                f"gyre.{self.namespace}.{actor}.{shard}", request.to_bytes(), headers=headers,
                timeout=self.timeout + 0.5,  # so that the node's own timed_out comes first
            )
        except nats.errors.NoRespondersError:
            return "no_such_node", f"no node owns shard {shard} now", 0, b""
        except nats.errors.TimeoutError:
            return "no_reply", f"nothing came within {self.timeout + 0.5} s", 0, b""
        headers = reply.headers or {}
        lease = int(headers.get("Gyre-Lease", 0))
        if "Gyre-Lease" in headers:  # no_such_node comes without one
            if lease < self.leases[shard]:
                # From a node that was suspended, and does not know that another one has the shard.
                return "old_lease", f"a reply under lease {lease} came after one under {self.leases[shard]}", 0, b""
            self.leases[shard] = lease
        return headers.get("Gyre-Status", "no status"), headers.get("Gyre-Reason", ""), lease, reply.data


class Check:
    """Finds wrong replies: of one actor's life, which a lease begins, the counts are numbers in a row, each once."""

    def __init__(self, show: bool):
        self.show = show
        self.sent = collections.Counter()  # by key, with those that were not answered
        self.counts = collections.defaultdict(set)  # by key and lease
        self.wrong = 0

    def reply(self, key: int, number: float, lease: int, body: bytes):
        try:
            with average.Mean.from_bytes(body) as reply:
                mean, count = reply.mean, reply.count
        except (capnp.KjException, ValueError) as error:
            self.wrong += 1
            print(f"key {key}: a reply of {len(body)} bytes is no message: {error}", file=sys.stderr)
            return
        counts = self.counts[key, lease]
        if mean != number or count in counts:
            self.wrong += 1
            print(f"key {key}: mean {mean} of {count} numbers; each number sent was {number}", file=sys.stderr)
        counts.add(count)
        if self.show:
            print(f"key {key}: the mean of {count} numbers is {mean}")

    def end(self):
        for (key, lease), counts in self.counts.items():
            if max(counts) - min(counts) >= self.sent[key]:
                self.wrong += 1
                print(f"key {key}, lease {lease}: {max(counts) - min(counts) + 1} messages were handled, and "
                      f"{self.sent[key]} were sent", file=sys.stderr)


async def main() -> bool:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--server", default="nats://127.0.0.1:4222")
    options.add_argument("--namespace", default="default")
    options.add_argument("--asks", type=int, default=10)
    options.add_argument("--keys", type=int, default=2, help="how many actors, from key 0 on")
    options.add_argument("--in-flight", type=int, default=64)
    options.add_argument("--timeout", type=float, default=5, help="seconds")
    options.add_argument("--retry", type=int, default=0, help="most attempts beyond the first, after a transient error")
    given = options.parse_args()

    client = await Client.connect(given.server, given.namespace, given.timeout)
    check, errors, answered = Check(show=given.asks <= 10), collections.Counter(), 0
    numbers = iter(range(given.asks))  # shared by all that ask

    async def ask_until_none_are_left():
        nonlocal answered
        for i in numbers:
            key = i % given.keys
            request = average.Add.new_message(numbers=[key + 0.5])
            for attempt in range(given.retry + 1):
                check.sent[key] += 1
                status, reason, lease, body = await client.ask(ACTOR, key, request)
                if status == "ok":
                    answered += 1
                    check.reply(key, key + 0.5, lease, body)
                    break
                errors[status] += 1
                if errors[status] == 1:
                    print(f"key {key}: {status}: {reason}", file=sys.stderr)
                if status not in TRANSIENT or attempt == given.retry:
                    break
                await asyncio.sleep(min(1, 0.05 * 2**attempt))

    await asyncio.gather(*(ask_until_none_are_left() for _ in range(given.in_flight)))
    check.end()
    await client.connection.close()
    failed = "".join(f" {status}={count}" for status, count in sorted(errors.items()))
    print(f"asked={given.asks} answered={answered} wrong={check.wrong} attempts={check.sent.total()}{failed}")
    return answered == given.asks and check.wrong == 0


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
