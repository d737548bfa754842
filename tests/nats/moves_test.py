#!/usr/bin/env python3
"""moves_test.py NODE ACTORS: nodes join and leave under load, and no ask is lost; and what
becomes of shards whose node is suspended, dies or cannot start.

NODE: gyre-nats. ACTORS: the shared object with witness::Witness."""

import json
import pathlib
import sys
import tempfile
import time
import unittest

import processes
import wire
from witness import client, evidence

NODE, ACTORS = "", ""
SHARDS = 64


class Node(processes.Node):
    def __init__(self, server, folder, name, *arguments):
        super().__init__(NODE, server, "--actors", ACTORS, "--shards", str(SHARDS), *arguments, name=name)
        self.environment = {"GYRE_WITNESS_FILE": str(folder / "handled")}

    def summary(self):
        return json.loads(self.output().splitlines()[-1].removeprefix("gyre-nats: "))


class Moves(unittest.TestCase):
    def owned(self, connection):
        """Returns the owner of each shard; None while one moves."""
        shards = processes.owners(connection, "test")
        return [s["node"] for s in shards] if all(s and s["state"] == "serving" for s in shards) else None

    def wait_for_shares(self, connection, *names):
        """Waits until the owners are those of rendezvous hashing."""
        wanted = [max(names, key=lambda name: evidence.preference(name, shard)) for shard in range(SHARDS)]
        processes.wait_for(lambda: self.owned(connection) == wanted, f"{names} having their shards")
        return {name: wanted.count(name) for name in names}

    def prefers_node2(self, shard):
        return evidence.preference("node2", shard) > evidence.preference("node1", shard)

    def test_no_ask_is_lost_while_a_node_joins_and_another_leaves(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-moves-") as name, server.connect() as connection:
            folder = pathlib.Path(name)
            nodes = [Node(server, folder, f"node{i}") for i in (1, 2, 3)]
            nodes[0].start()
            nodes[1].start()
            self.wait_for_shares(connection, "node1", "node2")
            acknowledgements = evidence.Acknowledgements(server, "gyre_test_tells")
            load = evidence.Load(folder, server, "--asks", "400", "--tells", "40", "--timeout", "20", "--fail", "0").start()
            processes.wait_for(lambda: (folder / "asks.1").exists() and (folder / "asks.1").stat().st_size, "replies")
            time.sleep(1)
            moves = [("at rest", time.monotonic_ns())]

            nodes[2].spawn()
            shares = self.wait_for_shares(connection, "node1", "node2", "node3")
            print(f"  three nodes own {shares}")
            moves.append(("while a third node joined", time.monotonic_ns()))
            self.assertEqual(nodes[0].stop(), 0, nodes[0].output())
            print(f"  two nodes own {self.wait_for_shares(connection, 'node2', 'node3')}")
            moves.append(("while a node left", time.monotonic_ns()))

            load.stop()
            state = lambda: connection.jet_stream("STREAM.INFO.gyre_test_tells")["state"]["messages"]  # noqa: E731
            processes.wait_for(lambda: state() == 0, "durable tells being handled")
            for node in nodes[1:]:
                self.assertEqual(node.stop(), 0, node.output())
            acknowledgements.stop()

            outcomes, wrong, _ = load.summary()
            self.assertEqual(wrong, [])
            published = outcomes.pop("published")
            self.assertEqual(outcomes.pop("published_twice"), 0)
            self.assertEqual(set(outcomes), {"ok"}, outcomes)
            wrong, counts = evidence.judge(folder, acknowledgements.told)
            print(f"  {counts}")
            self.assertEqual(wrong[:20], [])
            self.assertEqual((counts["asks"], counts["tells"]), (outcomes["ok"], published))
            self.assertEqual(counts["handled"], counts["asks"] + published)
            self.show_latencies(folder, moves)
            self.check_books([node.summary() for node in nodes], counts)

    def test_what_waits_for_a_move_expires_by_its_timeout(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-moves-") as name, server.connect() as connection:
            folder = pathlib.Path(name)
            nodes = [Node(server, folder, f"node{i}") for i in (1, 2)]
            nodes[0].start()
            self.wait_for_shares(connection, "node1")
            shard = next(s for s in range(SHARDS) if self.prefers_node2(s))
            key = next(k for k in range(10_000) if client.shard_of(k, SHARDS) == shard)

            def send(number, sleep_us, timeout_us, reply):
                headers = {"Gyre-Type": client.TYPE, "Gyre-Key": str(key), "Gyre-Timeout": str(timeout_us)}
                connection.publish(f"gyre.test.{client.ACTOR}.{shard}", client.act(number, sleep_us, False), headers, reply)

            connection.subscribe("outcome.*")
            send(1, 6_000_000, 30_000_000, "outcome.1")  # the shard moves once it has ended
            connection.flush()
            nodes[1].spawn()
            moving = lambda: (processes.owners(connection, "test")[shard] or {}).get("state") == "moving"  # noqa: E731
            processes.wait_for(moving, "the shard being about to move")
            send(2, 0, 200_000, "outcome.2")
            send(3, 0, 30_000_000, "outcome.3")
            send(4, 0, 200_000, "")
            replies = [connection.next(timeout=30) for _ in range(3)]
            outcomes = {reply.subject: reply.headers["Gyre-Status"][0] for reply in replies}
            self.assertEqual(outcomes, {"outcome.1": "ok", "outcome.2": "expired", "outcome.3": "ok"})
            for node in nodes:
                self.assertEqual(node.stop(), 0, node.output())
            handled = [number for _, _, number, *_ in evidence.read(client.RECORD, folder, "handled")]
            self.assertEqual(sorted(handled), [1, 3])
            summary = nodes[0].summary()
            self.assertTrue(summary["balanced"], summary)
            counts = {name: count for name, count in summary["gateway"].items() if name.startswith(("asks", "tells")) and count}
            self.assertEqual(counts, {"asks_received": 3, "asks_answered": 1, "asks_expired": 1, "asks_forwarded": 1,
                                      "tells_received": 1, "tells_refused": 1})

    def test_a_suspended_node_takes_no_requests_from_the_next_owners_of_its_shards(self):
        server = processes.Server(ping_interval="2m").start()  # it keeps the suspended node's subscriptions
        with tempfile.TemporaryDirectory(prefix="gyre-moves-") as name, server.connect() as connection:
            folder = pathlib.Path(name)
            nodes = [Node(server, folder, f"node{i}", "--lease", "1000") for i in (1, 2)]
            nodes[0].start()
            nodes[1].start()
            self.wait_for_shares(connection, "node1", "node2")
            connection.subscribe("outcome.*")

            def ask(numbers):
                """Asks one actor for each number, and returns the outcomes."""
                outcomes = {}
                for number in numbers:
                    shard = client.shard_of(number, SHARDS)
                    headers = {"Gyre-Type": client.TYPE, "Gyre-Key": str(number), "Gyre-Timeout": "20000000"}
                    subject = f"gyre.test.{client.ACTOR}.{shard}"
                    connection.publish(subject, client.act(number, 0, False), headers, f"outcome.{number}")
                    reply = connection.next(timeout=30)
                    self.assertIsNotNone(reply, f"the reply to ask {number}")
                    outcomes[int(reply.subject.removeprefix("outcome."))] = reply.headers["Gyre-Status"][0]
                return outcomes

            nodes[1].suspend()
            self.wait_for_shares(connection, "node1")
            self.assertEqual(ask(range(1000)), {number: "ok" for number in range(1000)})

            # What the server sent it too has one reply, and one handler: the new owners'.
            nodes[1].resume()
            self.wait_for_shares(connection, "node1", "node2")
            self.assertEqual(ask(range(1000, 2000)), {number: "ok" for number in range(1000, 2000)})
            for node in nodes:
                self.assertEqual(node.stop(), 0, node.output())
            self.assertIsNone(connection.next(timeout=0.1))
            handled = [number for _, _, number, *_ in evidence.read(client.RECORD, folder, "handled")]
            self.assertEqual(sorted(handled), list(range(2000)))
            for summary in (node.summary() for node in nodes):
                self.assertTrue(summary["balanced"], summary)
            self.assertGreater(nodes[1].summary()["gateway"]["asks_lost"], 0)

    def test_what_a_shard_holds_is_answered_if_its_next_owner_dies_before_it_serves(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-moves-") as name, server.connect() as connection:
            node = Node(server, pathlib.Path(name), "node1", "--lease", "1000", "--clock-error", "200").start()
            number = next(n for n in range(10_000) if self.prefers_node2(client.shard_of(n, SHARDS)))
            shard = client.shard_of(number, SHARDS)
            connection.put("gyre_test", "node.node2", "life=000000000000000b state=serving")
            handed = lambda: processes.owners(connection, "test")[shard]["node"] == "node2"  # noqa: E731
            processes.wait_for(handed, "the shard being handed over to a node that is none")
            headers = {"Gyre-Type": client.TYPE, "Gyre-Key": str(number)}
            ask = (f"gyre.test.{client.ACTOR}.{shard}", client.act(number, 0, False), headers)
            self.assertEqual(connection.request(*ask, timeout=30).headers["Gyre-Status"], ["no_such_node"])
            self.wait_for_shares(connection, "node1")
            self.assertEqual(connection.request(*ask, timeout=30).headers["Gyre-Status"], ["ok"])
            self.assertEqual(node.stop(), 0, node.output())
            self.assertTrue(node.summary()["balanced"], node.summary())

    def test_a_node_that_cannot_store_tells_does_not_join(self):
        server = processes.Server(
            config="accounts { A { jetstream: { max_streams: 1 }, users: [{ user: a, password: b }] } }", user="a:b"
        ).start()
        with tempfile.TemporaryDirectory(prefix="gyre-moves-") as name, server.connect() as connection:
            node = Node(server, pathlib.Path(name), "node1")
            node.spawn()
            self.assertEqual(node.process.wait(60), 1, node.output())
            self.assertIn("creating the stream gyre_test_tells", node.output())
            self.assertEqual(connection.get("gyre_test", "node.node1"), (None, 0))
            self.assertNotEqual(connection.get("gyre_test", "config"), (None, 0))

    def test_the_server_refuses_durable_tells_to_shards_that_are_none(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-moves-") as name, server.connect() as connection:
            node = Node(server, pathlib.Path(name), "node1").start()
            headers = {"Gyre-Type": client.TYPE, "Gyre-Key": "1", "Gyre-Id": "tell"}
            for shard in ("64", "-1", "01", "x", "3.4"):
                with self.assertRaisesRegex(wire.JetStreamError, "no stream has the subject"):
                    connection.publish_to_stream(f"gyre.test.durable.{client.ACTOR}.{shard}", headers=headers)
            self.assertEqual(connection.publish_to_stream(f"gyre.test.durable.{client.ACTOR}.63", headers=headers)["seq"], 1)
            reply = connection.request("gyre.test.durable.3", headers=headers)
            self.assertEqual(reply.headers["Gyre-Status"], ["unknown_actor"])
            self.assertEqual(node.stop(), 0, node.output())

    def show_latencies(self, folder, moves):
        asks = [(sent, (received - sent) / 1e6) for _, _, _, sent, received, _, _ in evidence.read(client.ASK, folder, "asks.*")]
        begun = 0
        for what, ended in moves:
            ms = sorted(taken for sent, taken in asks if begun <= sent < ended)
            begun = ended
            if ms:
                print(f"  {what}: {len(ms)} asks, p50 {ms[len(ms) // 2]:.2f} ms, p99 {ms[len(ms) * 99 // 100]:.2f} ms, "
                      f"max {ms[-1]:.2f} ms")

    def check_books(self, summaries, counts):
        for summary in summaries:
            self.assertTrue(summary["balanced"] and summary["left"], summary)
        total = {name: sum(summary["gateway"][name] for summary in summaries) for name in summaries[0]["gateway"]}
        print(f"  {({name: count for name, count in total.items() if count})}")
        self.assertEqual(total["asks_answered"], counts["asks"])
        self.assertEqual(total["asks_received"], counts["asks"] + total["asks_forwarded"])
        self.assertEqual(total["durable_processed"] + total["durable_failed"], counts["tells"])


if __name__ == "__main__":
    NODE, ACTORS = sys.argv[1:]
    del sys.argv[1:]
    processes.nats_server()
    unittest.main(verbosity=2)
