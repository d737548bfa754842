#!/usr/bin/env python3
"""clients_test.py SOURCE_DIR FOLDER LANGUAGE NODE ACTORS: the client of examples/nats in that language finds every reply that
is wrong. It asks two nodes, each in a network namespace of its own where the machine allows it, for GYRE_TEST_ASKS
means (10000), of which none is.

FOLDER: where the client is built, or its packages are installed. LANGUAGE: c, go, or python. NODE: gyre-nats. ACTORS: the
shared object with averages::Average."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import links
import processes
import stub_node

PACKAGES = ["nats-py==2.16.0", "pycapnp==2.2.4"]
CLIENT, NODE, ACTORS, TYPE_ID = [], "", "", ""


def need(program, package):
    return shutil.which(program) or processes.skip(f"{program} is not installed (Debian: {package})")


def c_client(source, folder):
    need("cc", "gcc")
    if not pathlib.Path("/usr/include/nats/nats.h").exists():
        processes.skip("libnats is not installed (Debian: libnats-dev)")
    subprocess.run([source / "examples/nats/c/build.sh", folder], check=True)
    return [folder / "ask"]


def go_client(source, folder):
    need("go", "golang-go")
    if not pathlib.Path("/usr/share/gocode/src/github.com/nats-io/nats.go").exists():
        processes.skip("nats.go is not installed (Debian: golang-github-nats-io-go-nats-dev)")
    subprocess.run([source / "examples/nats/go/build.sh", folder], check=True)
    return [folder / "ask", "--schema", source / "examples/first_actor/average.capnp"]


def python_client(source, folder):
    python, pip = folder / "bin/python", folder / "bin/pip"
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
            install = [pip, "install", "--quiet", "--disable-pip-version-check", "--retries", "0", *PACKAGES]
            subprocess.run(install, check=True, capture_output=True, timeout=120)
        except (subprocess.SubprocessError, OSError):
            shutil.rmtree(folder, ignore_errors=True)
            processes.skip(f"{' and '.join(PACKAGES)} could not be installed from PyPI (Debian: python3-venv)")
        (folder / "installed").touch()
    return [python, source / "examples/nats/python/ask.py"]


def read_arguments():
    global CLIENT, NODE, ACTORS, TYPE_ID
    source, folder, language, NODE, ACTORS = sys.argv[1:6]
    del sys.argv[1:6]
    processes.nats_server()
    need("capnp", "capnproto")
    source = pathlib.Path(source)
    build = {"c": c_client, "go": go_client, "python": python_client}[language]
    CLIENT = [str(word) for word in build(source, pathlib.Path(folder).absolute())]
    TYPE_ID = stub_node.type_id_of(source / "examples/first_actor/average.capnp", "Add")


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = processes.Server().start()

    def ask(self, *options, server=None, expect=0):
        """Runs the client, and returns its summary as a dict, and what it wrote to stderr."""
        command = [*CLIENT, "--server", (server or self.server).url, "--namespace", "test", *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        said = f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        self.assertEqual(done.returncode, expect, said)
        self.lines = done.stdout.splitlines()
        summary = self.lines[-1] if self.lines else ""
        if len(self.lines) <= 1:
            print(" ", summary)
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", summary)}, done.stderr

    def node(self, change=None):
        """Returns a node that answers rightly unless `change` changes that, in a namespace that is new."""
        node = stub_node.StubNode(self.server, TYPE_ID)
        try:
            node.connection.jet_stream("STREAM.DELETE.KV_gyre_test")
        except stub_node.wire.JetStreamError:
            pass  # there was none
        if change:
            node.change = change
        return node.create_namespace()

    def test_every_request_has_its_headers_and_shard_and_every_reply_is_checked(self):
        with self.node() as node:
            summary, _ = self.ask("--asks", 5000, "--keys", 300, "--in-flight", 50)
            self.assertEqual(node.mistakes[:1], [])
            self.assertEqual(node.requests, 5000)
            self.assertEqual(sorted(node.counts), list(range(300)))
        self.assertEqual(summary, {"asked": 5000, "answered": 5000, "wrong": 0, "attempts": 5000})

    def test_many_asks_to_two_nodes_are_all_answered_rightly(self):
        asks = int(os.environ.get("GYRE_TEST_ASKS", 10000))
        server = processes.Server(host="0.0.0.0").start()
        ways = [links.make([server]) for _ in range(2)]
        nodes = [
            processes.Node(NODE, server, "--actors", ACTORS, name=f"node{number}", link=way) for number, way in enumerate(ways)
        ]
        for node in nodes:
            node.start()

        def both_own():
            entries = processes.owners(connection, "test")
            return all(e["state"] == "serving" for e in entries) and {e["node"] for e in entries} == {"node0", "node1"}

        with server.connect() as connection:
            processes.wait_for(both_own, "both nodes having shards")
        summary, _ = self.ask("--asks", asks, "--keys", 1000, "--in-flight", 64, server=server)
        self.assertEqual(summary, {"asked": asks, "answered": asks, "wrong": 0, "attempts": asks})
        received = []
        for node, way in zip(nodes, ways):
            self.assertEqual(node.stop(), 0, node.output())
            books = json.loads(node.output().splitlines()[-1].removeprefix("gyre-nats: "))
            self.assertTrue(books["balanced"])
            gateway = books["gateway"]
            self.assertEqual(gateway["asks_received"], gateway["asks_answered"] + gateway["asks_forwarded"])
            received.append(gateway["asks_answered"])
            print(f"  {node.name}, behind a {way.kind}, answered {gateway['asks_answered']}")
        self.assertEqual(sum(received), asks)
        self.assertGreater(min(received), 0)

    def test_few_replies_are_shown(self):
        with self.node():
            self.ask("--asks", 3, "--keys", 2, "--in-flight", 1)
        self.assertEqual(
            self.lines[:3],
            [
                "key 0: the mean of 1 numbers is 0.5",
                "key 1: the mean of 1 numbers is 1.5",
                "key 0: the mean of 2 numbers is 0.5",
            ],
        )

    def test_a_wrong_mean_and_a_count_that_comes_twice_are_found(self):
        def change(number, key, headers, body):
            if number == 3:
                body = stub_node.mean(9.25, 1)
            if number == 5:  # of key 0, whose first count was 1
                body = stub_node.mean(0.5, 1)
            return headers, body

        with self.node(change):
            summary, said = self.ask("--asks", 8, "--keys", 4, "--in-flight", 1, expect=1)
        self.assertEqual((summary["answered"], summary["wrong"]), (8, 2))
        self.assertIn("key 2: mean 9.25 of 1", said)

    def test_an_ask_that_was_handled_twice_is_found(self):
        def change(number, key, headers, body):
            return headers, stub_node.mean(0.5, 6) if number == 5 else body

        with self.node(change):
            summary, said = self.ask("--asks", 5, "--keys", 1, "--in-flight", 1, expect=1)
        self.assertEqual((summary["answered"], summary["wrong"]), (5, 1))
        self.assertIn("6 messages were handled, and 5 were sent", said)

    def test_a_reply_that_is_no_message_is_wrong(self):
        bodies = [b"", b"\0", bytes(7), stub_node.mean(0.5, 1)[:-8], b"\xff" * 64, bytes(8)]

        def change(number, key, headers, body):
            return headers, bodies[number - 1]

        with self.node(change):
            summary, _ = self.ask("--asks", len(bodies), "--keys", 6, "--in-flight", 1, expect=1)
        self.assertEqual((summary["answered"], summary["wrong"]), (len(bodies), len(bodies)))

    def test_statuses_are_counted_with_the_first_reason_and_retried_if_wanted(self):
        def change(number, key, headers, body):
            if number in (2, 3):
                return {**headers, "Gyre-Status": "ring_full", "Gyre-Reason": "no room for 1 more message"}, b""
            return headers, body

        with self.node(change):
            summary, said = self.ask("--asks", 5, "--keys", 1, "--in-flight", 1, expect=1)
        self.assertEqual(summary, {"asked": 5, "answered": 3, "wrong": 0, "attempts": 5, "ring_full": 2})
        self.assertIn("ring_full: no room for 1 more message", said)
        with self.node(change) as node:
            summary, _ = self.ask("--asks", 5, "--keys", 1, "--in-flight", 1, "--retry", 2)
            self.assertEqual(node.requests, 7)
        self.assertEqual(summary, {"asked": 5, "answered": 5, "wrong": 0, "attempts": 7, "ring_full": 2})

    def test_an_error_that_stays_is_not_retried(self):
        def change(number, key, headers, body):
            return {**headers, "Gyre-Status": "check_failed", "Gyre-Reason": "numbers.size() != 0"}, b""

        with self.node(change) as node:
            summary, _ = self.ask("--asks", 1, "--keys", 1, "--retry", 5, expect=1)
            self.assertEqual(node.requests, 1)
        self.assertEqual(summary["check_failed"], 1)

    def test_replies_under_an_old_lease_are_dropped(self):
        def change(number, key, headers, body):
            if number == 4:  # the new owner's
                headers["Gyre-Lease"] = str(2**40)
            if number == 5:  # the old owner's, as if it were all right
                body = stub_node.mean(0.5, 4)
            if number > 5:
                headers["Gyre-Lease"] = str(2**40)
            return headers, body

        with self.node(change):
            summary, _ = self.ask("--asks", 6, "--keys", 1, "--in-flight", 1, expect=1)
        self.assertEqual(summary, {"asked": 6, "answered": 5, "wrong": 0, "attempts": 6, "old_lease": 1})
        with self.node(change):
            summary, _ = self.ask("--asks", 6, "--keys", 1, "--in-flight", 1, "--retry", 1)
        self.assertEqual((summary["answered"], summary["old_lease"]), (6, 1))

    def test_a_reply_without_a_lease_is_not_dropped_and_changes_no_lease(self):
        def change(number, key, headers, body):
            if number == 2:
                return {"Gyre-Status": "no_such_node", "Gyre-Reason": "its lease has ended"}, b""
            if number == 3:
                headers["Gyre-Lease"] = str(stub_node.LEASE - 1)
            return headers, body

        with self.node(change):
            summary, said = self.ask("--asks", 4, "--keys", 1, "--in-flight", 1, expect=1)
        self.assertEqual(
            summary, {"asked": 4, "answered": 2, "wrong": 0, "attempts": 4, "no_such_node": 1, "old_lease": 1}
        )
        self.assertIn("no_such_node: its lease has ended", said)

    def test_a_lease_of_one_shard_says_nothing_of_another(self):
        def change(number, key, headers, body):
            return {**headers, "Gyre-Lease": str(100 - key)}, body  # keys 0 to 9 have shards of their own

        with self.node(change):
            summary, _ = self.ask("--asks", 50, "--keys", 10)
        self.assertEqual(summary, {"asked": 50, "answered": 50, "wrong": 0, "attempts": 50})

    def test_an_ask_without_a_reply_ends_and_so_does_one_that_nobody_takes(self):
        def change(number, key, headers, body):
            return None if number == 1 else (headers, body)

        with self.node(change):
            summary, _ = self.ask("--asks", 2, "--keys", 1, "--in-flight", 1, "--timeout", 0.2, expect=1)
        self.assertEqual(summary, {"asked": 2, "answered": 1, "wrong": 0, "attempts": 2, "no_reply": 1})
        with self.node(change):
            summary, _ = self.ask("--asks", 2, "--keys", 1, "--in-flight", 1, "--timeout", 0.2, "--retry", 1)
        self.assertEqual((summary["answered"], summary["no_reply"]), (2, 1))
        self.node().connection.close()  # the namespace is there, and no node
        summary, said = self.ask("--asks", 2, "--keys", 1, expect=1)
        self.assertEqual(summary, {"asked": 2, "answered": 0, "wrong": 0, "attempts": 2, "no_such_node": 2})
        self.assertIn("no_such_node", said)

    def test_a_node_that_comes_later_answers_what_is_retried(self):
        node = self.node()
        command = [*CLIENT, "--server", self.server.url, "--namespace", "test", "--asks", "20", "--keys", "5"]
        client = subprocess.Popen([*command, "--retry", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in client.stderr:
            if "no_such_node" in line:
                break
        with node:
            out, _ = client.communicate(timeout=60)
        self.assertEqual(client.returncode, 0, out)
        self.assertRegex(out, r"asked=20 answered=20 wrong=0 attempts=\d+ no_such_node=\d+")

    def test_a_namespace_and_a_server_that_are_not_there_are_errors(self):
        server = processes.Server().start()
        _, said = self.ask(server=server, expect=1)
        self.assertIn("gyre_test", said)
        server.stop()
        _, said = self.ask(server=server, expect=1)
        self.assertNotEqual(said, "")


if __name__ == "__main__":
    read_arguments()
    unittest.main(verbosity=2)
