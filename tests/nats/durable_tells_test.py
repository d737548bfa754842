#!/usr/bin/env python3
"""durable_tells_test.py NODE ACTORS: the stream of durable tells takes those of shards that exist, and a node needs it. A
server that was killed comes back with a consumer that is older than its stream, and tells are handled all the same.

NODE: gyre-nats. ACTORS: the shared object with witness::Witness."""

import collections
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import processes
import wire
from witness import client, evidence
from witness.nodes import Node

STREAM, CONSUMER = "gyre_test_tells", "gyre_test_tells.shard_0"
GONE = range(1, 9)
NEW = range(9, 12)


def publish(connection, number):
    connection.publish_to_stream(
        f"gyre.test.durable.{client.ACTOR}.0", client.act(number, 0, False),
        {"Gyre-Type": client.TYPE, "Gyre-Key": "1", "Gyre-Id": f"{number:x}"},
    )


def stored(connection):
    return connection.jet_stream(f"STREAM.INFO.{STREAM}")["state"]["messages"]


class OldConsumer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gyre-old-consumer-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = processes.Server().start()
        self.node = Node(self.server, self.folder, "node1", "--ack-wait", "1000", shards=1)

    def consumer(self, connection):
        return connection.jet_stream(f"CONSUMER.INFO.{CONSUMER}")

    def deliver(self, connection, count):
        """Takes deliveries, and returns their reply subjects."""
        inbox = "_INBOX.old_consumer"
        subscription = connection.subscribe(inbox)
        request = {"batch": count, "expires": 10**10}
        connection.publish(f"$JS.API.CONSUMER.MSG.NEXT.{CONSUMER}", json.dumps(request).encode(), reply=inbox)
        replies = [connection.next().reply for _ in range(count)]
        connection.unsubscribe(subscription)
        return replies

    def make_consumer_old(self):
        """Leaves a server whose consumer waits for the acknowledgements of tells that its stream has no more, as a server
        does that was killed before it wrote the consumer's state."""
        self.node.start()
        with self.server.connect() as connection:
            processes.wait_for(lambda: connection.jet_stream(f"CONSUMER.NAMES.{STREAM}")["consumers"], "a consumer")
            self.assertEqual(self.node.stop(), 0, self.node.output())
            # To nobody: a consumer forgets what is older than all of its stream.
            config = connection.jet_stream(f"STREAM.INFO.{STREAM}")["config"]
            config["subjects"].append("gyre.test.nobody")
            connection.jet_stream(f"STREAM.UPDATE.{STREAM}", config)
            connection.publish_to_stream("gyre.test.nobody")
            for number in GONE:
                publish(connection, number)
            deliveries = self.deliver(connection, len(GONE))
        self.server.stop()
        [state] = self.server.folder.rglob("obs/shard_0/o.dat")
        shutil.copy(state, self.folder / "o.dat")
        self.server.start()
        with self.server.connect() as connection:
            for reply in deliveries:
                connection.publish(reply, b"+ACK")
            processes.wait_for(lambda: stored(connection) == 1, "the tells being removed")
        self.server.stop()
        shutil.copy(self.folder / "o.dat", state)
        self.server.start()

    def handled(self):
        return collections.Counter(number for _, _, number, *_ in evidence.read(client.RECORD, self.folder, "handled"))

    def test_tells_are_handled_past_a_consumer_that_waits_for_tells_that_are_gone(self):
        self.make_consumer_old()
        self.node.start()
        with self.server.connect() as connection:
            self.assertEqual(self.consumer(connection)["num_ack_pending"], len(GONE))
            delivers_none = connection.info["version"].startswith("2.9.")  # later servers pass over what is gone
            if delivers_none:
                processes.wait_for(lambda: self.consumer(connection)["num_redelivered"], "a search for what is gone")
            for number in NEW:
                publish(connection, number)
            processes.wait_for(lambda: stored(connection) == 1, f"tells being handled; the consumer: {self.consumer(connection)}")
        self.assertEqual(self.handled(), dict.fromkeys(NEW, 1))
        self.assertEqual(self.node.stop(), 0, self.node.output())
        summary = self.node.summary()
        self.assertTrue(summary["balanced"] and summary["left"], summary)
        self.assertEqual(summary["gateway"]["durable_processed"], len(NEW))
        if delivers_none:
            self.assertGreaterEqual(summary["gateway"]["durable_consumers_renewed"], 1, summary)


class Stream(unittest.TestCase):
    def test_a_node_that_cannot_store_tells_does_not_join(self):
        server = processes.Server(
            config="accounts { A { jetstream: { max_streams: 1 }, users: [{ user: a, password: b }] } }", user="a:b"
        ).start()
        with tempfile.TemporaryDirectory(prefix="gyre-stream-") as name, server.connect() as connection:
            node = Node(server, pathlib.Path(name), "node1")
            node.spawn()
            self.assertEqual(node.process.wait(60), 1, node.output())
            self.assertIn("creating the stream gyre_test_tells", node.output())
            self.assertEqual(connection.get("gyre_test", "node.node1"), (None, 0))
            self.assertNotEqual(connection.get("gyre_test", "config"), (None, 0))

    def test_the_server_refuses_durable_tells_to_shards_that_are_none(self):
        server = processes.Server().start()
        with tempfile.TemporaryDirectory(prefix="gyre-stream-") as name, server.connect() as connection:
            node = Node(server, pathlib.Path(name), "node1").start()
            headers = {"Gyre-Type": client.TYPE, "Gyre-Key": "1", "Gyre-Id": "tell"}
            for shard in ("64", "-1", "01", "x", "3.4"):
                with self.assertRaisesRegex(wire.JetStreamError, "no stream has the subject"):
                    connection.publish_to_stream(f"gyre.test.durable.{client.ACTOR}.{shard}", headers=headers)
            self.assertEqual(connection.publish_to_stream(f"gyre.test.durable.{client.ACTOR}.63", headers=headers)["seq"], 1)
            reply = connection.request("gyre.test.durable.3", headers=headers)
            self.assertEqual(reply.headers["Gyre-Status"], ["unknown_actor"])
            self.assertEqual(node.stop(), 0, node.output())


if __name__ == "__main__":
    Node.files = sys.argv[1:]
    del sys.argv[1:]
    processes.nats_server()
    unittest.main(verbosity=2)
