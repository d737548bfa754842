#!/usr/bin/env python3
"""takeover_test.py NODE ACTORS: a node is suspended or dies, or the servers lose their data, and no request is handled by
two owners.

NODE: gyre-nats. ACTORS: the shared object with witness::Witness."""

import pathlib
import shutil
import sys
import tempfile
import time
import unittest

import processes
import wire
from witness import client, evidence
from witness.nodes import SHARDS, Node, prefers_node2, wait_for_shares


def wait_for_subscriptions(server):
    connections = lambda: server.monitor("connz")["connections"]  # noqa: E731
    processes.wait_for(lambda: any(each["subscriptions"] > SHARDS for each in connections()), "a node being connected")


def has_leader(connection):
    try:
        return connection.jet_stream("STREAM.INFO.KV_gyre_test", timeout=1)["cluster"].get("leader")
    except (TimeoutError, wire.JetStreamError):
        return None


class Takeovers(unittest.TestCase):
    def ask(self, connection, numbers):
        """Asks one actor for each number, one after the other, and returns the outcomes. Subscribe to outcome.* before."""
        outcomes = {}
        for number in numbers:
            headers = {"Gyre-Type": client.TYPE, "Gyre-Key": str(number), "Gyre-Timeout": "20000000"}
            subject = f"gyre.test.{client.ACTOR}.{client.shard_of(number, SHARDS)}"
            connection.publish(subject, client.act(number, 0, False), headers, f"outcome.{number}")
            reply = connection.next(timeout=30)
            self.assertIsNotNone(reply, f"the reply to ask {number}")
            outcomes[int(reply.subject.removeprefix("outcome."))] = reply.headers["Gyre-Status"][0]
        return outcomes

    def lease_numbers(self, connection, numbers):
        """Asks an actor for each number, and returns the leases of the replies. The actors of ranges of 100 are alike."""
        leases = []
        for number in numbers:
            headers = {"Gyre-Type": client.TYPE, "Gyre-Key": str(number % 100), "Gyre-Timeout": "20000000"}
            subject = f"gyre.test.{client.ACTOR}.{client.shard_of(number % 100, SHARDS)}"
            reply = connection.request(subject, client.act(number, 0, False), headers, timeout=30)
            self.assertEqual(reply.headers["Gyre-Status"], ["ok"])
            leases += reply.headers["Gyre-Lease"]
        return leases

    def tell_durably(self, connection, numbers):
        for number in numbers:
            headers = {"Gyre-Type": client.TYPE, "Gyre-Key": str(number), "Gyre-Id": f"{number:x}"}
            subject = f"gyre.test.durable.{client.ACTOR}.{client.shard_of(number, SHARDS)}"
            connection.publish_to_stream(subject, client.act(number, 0, False), headers)

    def check_that_each_was_handled_once(self, folder, numbers):
        handled = [number for _, _, number, *_ in evidence.read(client.RECORD, folder, "handled")]
        self.assertEqual(sorted(handled), list(numbers))

    def test_a_suspended_node_takes_no_requests_from_the_next_owners_of_its_shards(self):
        server = processes.Server(ping_interval="2m").start()  # it keeps the suspended node's subscriptions
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name, server.connect() as connection:
            folder = pathlib.Path(name)
            nodes = [Node(server, folder, f"node{i}", "--lease", "1000") for i in (1, 2)]
            nodes[0].start()
            nodes[1].start()
            wait_for_shares(connection, "node1", "node2")
            connection.subscribe("outcome.*")
            nodes[1].suspend()
            wait_for_shares(connection, "node1")
            self.assertEqual(self.ask(connection, range(1000)), dict.fromkeys(range(1000), "ok"))

            # What the server sent it too has one reply, and one handler: the new owners'.
            nodes[1].resume()
            wait_for_shares(connection, "node1", "node2")
            self.assertEqual(self.ask(connection, range(1000, 2000)), dict.fromkeys(range(1000, 2000), "ok"))
            for node in nodes:
                self.assertEqual(node.stop(), 0, node.output())
            self.assertIsNone(connection.next(timeout=0.1))
            self.check_that_each_was_handled_once(folder, range(2000))
            for summary in (node.summary() for node in nodes):
                self.assertTrue(summary["balanced"], summary)
            self.assertGreater(nodes[1].summary()["gateway"]["asks_lost"], 0)

    def test_what_a_shard_holds_is_answered_if_its_next_owner_dies_before_it_serves(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name, server.connect() as connection:
            node = Node(server, pathlib.Path(name), "node1", "--lease", "1000", "--clock-error", "200").start()
            number = next(n for n in range(10_000) if prefers_node2(client.shard_of(n, SHARDS)))
            shard = client.shard_of(number, SHARDS)
            connection.put("gyre_test", "node.node2", "life=000000000000000b state=serving")
            handed = lambda: processes.owners(connection, "test")[shard]["node"] == "node2"  # noqa: E731
            processes.wait_for(handed, "the shard being handed over to a node that is none")
            headers = {"Gyre-Type": client.TYPE, "Gyre-Key": str(number)}
            ask = (f"gyre.test.{client.ACTOR}.{shard}", client.act(number, 0, False), headers)
            self.assertEqual(connection.request(*ask, timeout=30).headers["Gyre-Status"], ["no_such_node"])
            wait_for_shares(connection, "node1")
            self.assertEqual(connection.request(*ask, timeout=30).headers["Gyre-Status"], ["ok"])
            self.assertEqual(node.stop(), 0, node.output())
            self.assertTrue(node.summary()["balanced"], node.summary())

    def check_that_the_late_owner_handles_nothing(self, folder, old, new, servers, *names):
        """Wakes up a node, whose lease is valid, while another one has its shards in a bucket that was made again. `names`: of
        the nodes that have them in the end."""
        with servers.connect() as connection, servers.connect() as teller:
            connection.subscribe("outcome.*")
            old.resume()
            for first in range(0, 2000, 20):
                asks = range(first, first + 18)
                self.assertEqual(self.ask(connection, asks), dict.fromkeys(asks, "ok"))
                self.tell_durably(teller, range(first + 18, first + 20))
            wait_for_shares(teller, *names)
            tells = lambda: teller.jet_stream("STREAM.INFO.gyre_test_tells")["state"]["messages"]  # noqa: E731
            processes.wait_for(lambda: tells() == 0, "tells being handled")
            for node in (old, new):
                self.assertEqual(node.stop(), 0, node.output())
                self.assertTrue(node.summary()["balanced"], node.summary())
            self.assertIsNone(connection.next(timeout=0.1))
        self.assertIn("the servers have lost its entry", old.output())
        self.assertNotIn("begins a new life", new.output())
        self.check_that_each_was_handled_once(folder, range(2000))

    def test_an_owner_that_comes_back_to_servers_without_data_handles_nothing(self):
        for new_name, names in (("node2", ("node1", "node2")), ("node1", ("node1",))):
            with self.subTest(new_name), tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
                folder, server = pathlib.Path(name), processes.Server().start()
                old, new = (Node(server, folder, each, "--lease", "20000") for each in ("node1", new_name))
                old.start()
                old.suspend()
                server.kill()
                shutil.rmtree(server.folder / "server-store")
                server.start()
                new.start()  # it finds neither entries nor subscribers
                self.check_that_the_late_owner_handles_nothing(folder, old, new, server, *names)

    def test_an_owner_that_comes_back_to_servers_with_data_of_before_it_handles_nothing(self):
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
            folder, server = pathlib.Path(name), processes.Server().start()
            store, older = server.folder / "server-store", folder / "older-store"
            old, new = (Node(server, folder, each, "--lease", "20000") for each in ("node1", "node2"))
            new.start()
            self.assertEqual(new.stop(), 0, new.output())
            server.stop()
            shutil.copytree(store, older)
            server.start()
            old.start()
            old.suspend()
            server.stop()
            shutil.rmtree(store)
            older.rename(store)
            server.start()
            new.start()
            self.check_that_the_late_owner_handles_nothing(folder, old, new, server, "node1", "node2")

    def test_a_cluster_makes_a_bucket_again_at_the_old_time_and_it_has_one_owner(self):
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
            folder, cluster = pathlib.Path(name), processes.Cluster().start()
            info = lambda connection: connection.jet_stream("STREAM.INFO.KV_gyre_test")  # noqa: E731
            with cluster.connect() as connection:
                connection.create_bucket("gyre_test")
                made = info(connection)["created"]
                host = info(connection)["cluster"]["leader"]
            server = next(member for member in cluster.servers if member.name == host)
            old, new = (Node(at, folder, each, "--lease", "40000") for at, each in ((server, "node1"), (cluster, "node2")))
            old.start()
            old.suspend()
            server.kill()
            shutil.rmtree(server.folder / f"{host}-store")
            server.start()
            cluster.leader()
            with cluster.connect() as connection:
                processes.wait_for(lambda: has_leader(connection), "a leader of the bucket")
                self.assertEqual((info(connection)["created"], info(connection)["state"]["last_seq"]), (made, 0))
                new.spawn()
                wait_for_shares(connection, "node2")
            self.check_that_the_late_owner_handles_nothing(folder, old, new, cluster, "node1", "node2")
            cluster.stop()

    def test_shards_move_after_servers_have_come_back_with_older_entries(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
            folder = pathlib.Path(name)
            store, older = server.folder / "server-store", folder / "older-store"
            nodes = [Node(server, folder, f"node{i}", "--lease", "20000") for i in (1, 2)]
            nodes[0].start()
            server.stop()
            shutil.copytree(store, older)
            server.start()
            with server.connect() as connection:
                for _ in range(3):  # to entries of much later revisions
                    nodes[1].spawn()
                    wait_for_shares(connection, "node1", "node2")
                    self.assertEqual(nodes[1].stop(), 0, nodes[1].output())
                    wait_for_shares(connection, "node1")
            server.stop()
            shutil.rmtree(store)
            older.rename(store)
            server.start()
            nodes[1].spawn()
            with server.connect() as connection:
                wait_for_shares(connection, "node1", "node2")
                connection.subscribe("outcome.*")
                self.assertEqual(self.ask(connection, range(200)), dict.fromkeys(range(200), "ok"))
            for node in nodes:
                self.assertEqual(node.stop(), 0, node.output())
                self.assertTrue(node.summary()["balanced"], node.summary())
            self.check_that_each_was_handled_once(folder, range(200))

    def test_nodes_that_stay_connected_find_that_the_bucket_has_older_entries(self):
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
            folder, cluster = pathlib.Path(name), processes.Cluster().start()
            with cluster.connect() as connection:
                connection.create_bucket("gyre_test")
                host_name = connection.jet_stream("STREAM.INFO.KV_gyre_test")["cluster"]["leader"]
            host = next(member for member in cluster.servers if member.name == host_name)
            other = next(member for member in cluster.servers if member is not host)
            store, older = host.folder / f"{host.name}-store", folder / "older-store"
            nodes = [Node(other, folder, f"node{i}") for i in (1, 2)]
            nodes[0].start()

            def restart_host(change_store):
                host.kill()
                change_store()
                host.start()
                with other.connect() as connection:
                    processes.wait_for(lambda: has_leader(connection), "a leader of the bucket")

            restart_host(lambda: shutil.copytree(store, older))
            with other.connect() as connection:
                for _ in range(4):  # to entries of much later revisions
                    nodes[1].spawn()
                    wait_for_shares(connection, "node1", "node2")
                    self.assertEqual(nodes[1].stop(), 0, nodes[1].output())
                    wait_for_shares(connection, "node1")
            restart_host(lambda: (shutil.rmtree(store), older.rename(store)))
            nodes[1].spawn()
            with other.connect() as connection:
                wait_for_shares(connection, "node1", "node2")
                connection.subscribe("outcome.*")

                def each_has_one_reply():
                    for key in range(100):
                        headers = {"Gyre-Type": client.TYPE, "Gyre-Key": str(key)}
                        subject = f"gyre.test.{client.ACTOR}.{client.shard_of(key, SHARDS)}"
                        connection.publish(subject, client.act(key, 0, False), headers, f"outcome.{key}")
                    replies = []
                    while reply := connection.next(timeout=0.5):
                        replies.append(reply.subject)
                    return sorted(replies) == sorted(f"outcome.{key}" for key in range(100))

                processes.wait_for(each_has_one_reply, "one owner of each shard")
            for node in nodes:
                self.assertEqual(node.stop(), 0, node.output())
            cluster.stop()

    def test_an_owner_writes_entries_again_that_the_servers_have_lost(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
            node = Node(server, pathlib.Path(name), "node1").start()
            with server.connect() as connection:
                connection.jet_stream("STREAM.PURGE.KV_gyre_test", {"filter": "$KV.gyre_test.shard.*"})
                self.assertEqual(processes.owners(connection, "test"), [None] * SHARDS)
            server.restart()
            with server.connect() as connection:
                wait_for_shares(connection, "node1")
            self.assertEqual(node.output().count("joins the namespace"), 1)
            self.assertEqual(node.stop(), 0, node.output())

    def test_a_node_that_died_is_followed_though_the_other_one_connects_again_and_again(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
            nodes = [Node(server, pathlib.Path(name), f"node{i}", "--lease", "3000", "--clock-error", "100") for i in (1, 2)]
            nodes[0].start()
            nodes[1].start()
            with server.connect() as connection:
                wait_for_shares(connection, "node1", "node2")
            nodes[1].kill()

            def is_gone():
                server.restart()
                with server.connect() as connection:
                    state = lambda: processes.fields(connection.get("gyre_test", "node.node2")[0])["state"]  # noqa: E731
                    try:
                        return processes.wait_for(lambda: state() == "gone", "its end", timeout=1.5)
                    except TimeoutError:
                        return False

            self.assertTrue(any(is_gone() for _ in range(12)))
            self.assertEqual(nodes[0].stop(), 0, nodes[0].output())

    def test_a_node_whose_numbers_are_no_longer_those_of_its_namespace_does_not_serve(self):
        for lease_ends in (False, True):
            with self.subTest(lease_ends=lease_ends), tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
                server = processes.Server().start()
                node = Node(server, pathlib.Path(name), "node1", "--lease", "1000" if lease_ends else "20000").start()
                node.suspend()
                with server.connect() as connection:
                    other = "shards=32 lease_ms=3000 clock_error_ms=500 actors=witness_Witness"
                    connection.put("gyre_test", "config", other)
                server.restart()
                if lease_ends:
                    time.sleep(1)  # the lease
                node.resume()
                refusal = "the number of shards is 64, but the namespace test has 32"
                processes.wait_for(lambda: node.output().count(refusal) > 2, "the node being refused")
                self.assertEqual(node.output().count("joins the namespace"), 1)
                self.assertEqual("its lease ended" in node.output(), lease_ends, node.output())
                self.assertEqual(node.stop(), 0, node.output())

    def test_an_owner_serves_though_servers_that_come_back_do_not_say_whether_they_have_its_entry(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-takeovers-") as name:
            folder = pathlib.Path(name)
            node = Node(server, folder, "node1", "--lease", "20000").start()
            with server.connect() as connection:
                numbers = self.lease_numbers(connection, range(100))
            server.kill()
            server.jet_stream = False
            server.start()
            with server.connect() as connection:
                wait_for_subscriptions(server)
                self.assertEqual(self.lease_numbers(connection, range(100, 200)), numbers)
            server.kill()
            server.jet_stream = True
            server.start()
            wait_for_subscriptions(server)
            with server.connect() as connection:
                self.assertEqual(self.lease_numbers(connection, range(200, 300)), numbers)
            self.check_that_each_was_handled_once(folder, range(300))
            self.assertEqual(node.stop(), 0, node.output())
            self.assertTrue(node.summary()["balanced"], node.summary())


if __name__ == "__main__":
    Node.files = sys.argv[1:]
    del sys.argv[1:]
    processes.nats_server()
    unittest.main(verbosity=2)
