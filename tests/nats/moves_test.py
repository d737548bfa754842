#!/usr/bin/env python3
"""moves_test.py NODE ACTORS: nodes join and leave under load, and no ask is lost.

NODE: gyre-nats. ACTORS: the shared object with witness::Witness."""

import pathlib
import sys
import tempfile
import time
import unittest

import processes
from witness import client, evidence
from witness.nodes import SHARDS, Node, prefers_node2, wait_for_shares


class Moves(unittest.TestCase):
    def test_no_ask_is_lost_while_a_node_joins_and_another_leaves(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-moves-") as name, server.connect() as connection:
            folder = pathlib.Path(name)
            nodes = [Node(server, folder, f"node{i}") for i in (1, 2, 3)]
            nodes[0].start()
            nodes[1].start()
            wait_for_shares(connection, "node1", "node2")
            acknowledgements = evidence.Acknowledgements(server, "gyre_test_tells")
            load = evidence.Load(folder, server, "--asks", "400", "--tells", "40", "--timeout", "20", "--fail", "0").start()
            processes.wait_for(lambda: (folder / "asks.1").exists() and (folder / "asks.1").stat().st_size, "replies")
            time.sleep(1)
            moves = [("at rest", time.monotonic_ns())]

            nodes[2].spawn()
            shares = wait_for_shares(connection, "node1", "node2", "node3")
            print(f"  three nodes own {shares}")
            moves.append(("while a third node joined", time.monotonic_ns()))
            self.assertEqual(nodes[0].stop(), 0, nodes[0].output())
            print(f"  two nodes own {wait_for_shares(connection, 'node2', 'node3')}")
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
            wait_for_shares(connection, "node1")
            shard = next(s for s in range(SHARDS) if prefers_node2(s))
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
    Node.files = sys.argv[1:]
    del sys.argv[1:]
    processes.nats_server()
    unittest.main(verbosity=2)
