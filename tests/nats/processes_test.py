#!/usr/bin/env python3
"""The tests' own servers, and the tests' own client of NATS."""

import unittest

import processes
import wire


class Servers(unittest.TestCase):
    def test_a_server_keeps_its_port_and_what_it_stored_when_it_is_killed(self):
        server = processes.Server().start()
        with server.connect() as client:
            client.create_bucket("gyre_test")
            client.put("gyre_test", "config", "shards=8")
            revision = client.put("gyre_test", "config", "shards=64")
        port = server.port
        server.restart()
        self.assertEqual(server.port, port)
        with server.connect() as client:
            self.assertEqual(client.get("gyre_test", "config"), ("shards=64", revision))
            self.assertEqual(client.get("gyre_test", "shard.1"), (None, 0))
            self.assertEqual(client.get("gyre_none", "config"), (None, 0))
        server.stop()
        self.assertFalse(server.running())

    def test_a_client_that_is_suspended_loses_its_connection(self):
        server = processes.Server().start()
        with server.connect() as client:  # which answers no PING while it does not read
            processes.wait_for(lambda: server.monitor("connz")["num_connections"] == 0, "the server dropping the client")
            with self.assertRaises(ConnectionError):
                while client.next(timeout=10) is None:
                    pass

    def test_two_members_of_a_cluster_of_three_elect_a_leader(self):
        cluster = processes.Cluster().start()
        with cluster.connect() as client:
            client.create_bucket("gyre_test", replicas=3)
            client.put("gyre_test", "config", "shards=64")
        leader = cluster.leader()
        leader.kill()
        other = cluster.leader()
        self.assertIsNot(other, leader)
        with cluster.connect() as client:
            self.assertEqual(processes.wait_for(lambda: value_of(client), "a leader of the stream"), "shards=64")
        leader.start()
        with leader.connect() as client:
            self.assertEqual(value_of(client), "shards=64")


def value_of(client):
    try:
        return client.get("gyre_test", "config")[0]
    except (TimeoutError, wire.JetStreamError):
        return None


class Messages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = processes.Server("max_payload: 2MB").start()

    def test_headers_repeated_empty_and_missing_come_as_they_were_sent(self):
        with self.server.connect() as sender, self.server.connect() as receiver:
            receiver.subscribe("a.*")
            receiver.flush()
            sender.publish("a.b", b"\r\n\0", {"Gyre-Key": ["1", "2"], "Empty": ""}, "back")
            sender.publish("a.c")
            sender.publish("a.d", bytes(1 << 20))
            self.assertEqual(
                receiver.next(), wire.Message("a.b", "back", {"Gyre-Key": ["1", "2"], "Empty": [""]}, 0, b"\r\n\0")
            )
            self.assertEqual(receiver.next(), wire.Message("a.c", "", {}, 0, b""))
            self.assertEqual(receiver.next(), wire.Message("a.d", "", {}, 0, bytes(1 << 20)))
            self.assertIsNone(receiver.next(timeout=0))

    def test_a_request_is_answered_and_one_that_nobody_takes_has_status_503(self):
        with self.server.connect() as client, self.server.connect() as service:
            self.assertEqual(client.request("nobody").status, 503)
            service.subscribe("somebody", "group")
            service.flush()
            with self.assertRaises(TimeoutError):
                client.request("somebody", b"one", timeout=0.01)
            late = service.next()
            service.publish(late.reply, b"late")
            client.subscribe("other")
            client.publish("other", b"kept")
            client.publish("somebody", b"two", reply=client.inbox + ".mine")
            service.publish(service.next().reply, b"mine")
            self.assertEqual({client.next().body for _ in range(3)}, {b"late", b"kept", b"mine"})


if __name__ == "__main__":
    processes.nats_server()
    unittest.main(verbosity=2)
