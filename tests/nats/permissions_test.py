#!/usr/bin/env python3
"""permissions_test.py SOURCE_DIR GYRE_NATS GYRE_ASK ACTORS: a node and a client do all they do with the permissions of
docs/reference/nats.md, and nothing in another namespace. A node that the server refuses says so."""

import pathlib
import re
import subprocess
import sys
import unittest

import processes

SOURCE, GYRE_NATS, GYRE_ASK, ACTORS = "", "", "", ""


def permissions(user, action):
    """What the page's table says that the user may do, in the namespace `test`."""
    page = pathlib.Path(SOURCE, "docs/reference/nats.md").read_text()
    row = re.search(rf"\| a {user} \| (.*) \| (.*) \|", page)
    cell = row[1 if action == "publish" else 2]
    return [subject.replace("NAMESPACE", "test") for subject in re.findall(r"`(\S+)`", cell)]


def user_config(name, user):
    lists = {action: ", ".join(f'"{subject}"' for subject in permissions(user, action)) for action in ("publish", "subscribe")}
    return (
        f'{{ user: "{name}", password: "secret", permissions: '
        f'{{ publish: {{ allow: [{lists["publish"]}] }}, subscribe: {{ allow: [{lists["subscribe"]}] }} }} }}'
    )


def server_with_users():
    users = [user_config("node", "node"), user_config("client", "client"), '{ user: "admin", password: "secret" }']
    return processes.Server(f"authorization {{ users: [ {', '.join(users)} ] }}", user="admin:secret").start()


def denied(server):
    """What the server's log says that it did not permit."""
    return sorted(set(re.findall(r"(\w+ Violation .*)", server.output())))


class Users:
    """The servers of processes.Node, as a user of theirs sees them."""

    def __init__(self, server, user):
        self.server = server
        self.url = server.url.replace("admin:secret@", user + "@")

    def connect(self):
        return self.server.connect()


class Permissions(unittest.TestCase):
    def ask(self, server, *arguments):
        schema = f"{SOURCE}/examples/first_actor/average.capnp"
        command = [GYRE_ASK, "--server", Users(server, "client:secret").url, "--namespace", "test", *map(str, arguments)]
        return subprocess.run([*command, "--schema", schema], capture_output=True, text=True, timeout=60)

    def test_nodes_and_clients_need_what_the_page_says(self):
        server = server_with_users()
        name = "averages_Average"
        first = processes.Node(GYRE_NATS, Users(server, "node:secret"), "--actors", ACTORS, name="node1")
        first.spawn()
        try:
            first.wait_until_serving()
        except (RuntimeError, TimeoutError) as error:
            self.fail(f"{error}; the server denied: {denied(server)}")
        request = "averages::Average", 7, "Add", "(numbers = [2, 4])"
        done = self.ask(server, *request, "--reply", "Mean")
        self.assertEqual(done.returncode, 0, done.stderr + server.output())
        self.assertIn("count = 2", done.stdout)
        self.assertEqual(self.ask(server, *request, "--tell").returncode, 0)
        self.assertEqual(self.ask(server, *request, "--durable").returncode, 0)
        with server.connect() as admin:
            def is_empty():
                return admin.jet_stream("STREAM.INFO.gyre_test_tells")["state"]["messages"] == 0

            processes.wait_for(is_empty, "the durable tell being handled")
            # A second node takes shards, which come back when it leaves.
            second = processes.Node(GYRE_NATS, Users(server, "node:secret"), "--actors", ACTORS, name="node2")
            second.spawn()

            def shares():
                owners = [shard["node"] for shard in processes.owners(admin, "test") if shard]
                return len(set(owners)) == 2 and processes.all_served(admin, "test")

            processes.wait_for(shares, "both nodes owning shards")
            self.assertEqual(second.stop(), 0, second.output())
            processes.wait_for(lambda: processes.all_served(admin, "test"), "shards coming back")
            done = self.ask(server, *request, "--reply", "Mean")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(first.stop(), 0, first.output())
        self.assertEqual(denied(server), [])

        # And no more than that.
        other = processes.Node(GYRE_NATS, Users(server, "node:secret"), "--actors", ACTORS, namespace="other")
        other.spawn()
        self.assertEqual(other.process.wait(60), 1)
        self.assertIn("gyre_other", other.output())
        with server.connect(**{"user": "client", "pass": "secret"}) as client:
            for subject in (f"gyre.other.{name}.5", "$KV.gyre_test.shard.1", "$JS.API.STREAM.DELETE.gyre_test_tells"):
                client.publish(subject, b"x")
                with self.assertRaisesRegex(ConnectionError, "Permissions Violation for Publish"):
                    while client.next() is not None:
                        pass
            client.subscribe("gyre.test.>")
            with self.assertRaisesRegex(ConnectionError, "Permissions Violation for Subscription"):
                while client.next() is not None:
                    pass

    def test_a_node_that_the_server_refuses_when_it_connects_again_ends(self):
        def users(password):
            return f'authorization {{ users: [ {{ user: "node", password: "{password}" }}, {{ user: "admin", password: "secret" }} ] }}'

        server = processes.Server(users("secret"), user="admin:secret").start()
        node = processes.Node(GYRE_NATS, Users(server, "node:secret"), "--actors", ACTORS).start()
        server.kill()
        server.config = users("other")
        server.start()
        self.assertEqual(node.process.wait(60), 1, node.output())
        self.assertRegex(node.output(), r"connecting to NATS again \(nats://127\.0\.0\.1:\d+\): a server refused this node's credentials")
        self.assertIn('"balanced":true', node.output())

    def test_a_client_reaches_nothing_of_the_servers_by_the_reply_to_its_ask(self):
        server = server_with_users()
        node = processes.Node(GYRE_NATS, Users(server, "node:secret"), "--actors", ACTORS)
        node.start()
        self.assertEqual(self.ask(server, "averages::Average", 7, "Add", "(numbers = [2])", "--durable").returncode, 0)
        with server.connect() as admin:
            config = admin.get("gyre_test", "config")
            with server.connect(**{"user": "client", "pass": "secret"}) as client:
                for reply in ("$KV.gyre_test.config", "$KV.gyre_test.node.node1", "$JS.API.STREAM.DELETE.gyre_test_tells"):
                    client.publish("gyre.test.averages_Average.5", reply=reply)
                self.assertEqual(client.request("gyre.test.averages_Average.5").headers["Gyre-Status"], ["bad_header"])
            self.assertEqual(admin.get("gyre_test", "config"), config)
            admin.jet_stream("STREAM.INFO.gyre_test_tells")  # raises if there is none
        self.assertEqual(self.ask(server, "averages::Average", 7, "Add", "(numbers = [2])").returncode, 0)
        self.assertEqual(node.stop(), 0, node.output())

    def test_a_node_that_the_server_refuses_says_so_without_the_password(self):
        server = server_with_users()
        for user in ("node:wrong", "stranger:secret"):
            node = processes.Node(GYRE_NATS, Users(server, user), "--actors", ACTORS)
            node.spawn()
            self.assertEqual(node.process.wait(60), 1)
            self.assertRegex(node.output(), r"connecting to NATS \(nats://127\.0\.0\.1:\d+\).*[Aa]uthorization")
            self.assertNotIn(user.split(":")[1], node.output())
        tls = processes.Node(GYRE_NATS, Users(server, "node:secret"), "--actors", ACTORS, "--tls-ca", "/none.pem")
        tls.spawn()
        self.assertEqual(tls.process.wait(60), 1)
        self.assertIn("reading the trusted certificates /none.pem", tls.output())


class ExitCodes(unittest.TestCase):
    def test_wrong_options_and_another_namespaces_numbers_are_bad_usage(self):
        server = processes.Server().start()
        first = processes.Node(GYRE_NATS, server, "--actors", ACTORS, "--shards", "8").start()
        for arguments, said in (
            (["--shards", "9"], "the number of shards is 9, but the namespace test has 8; leave the option out"),
            (["--shards", "5000"], "the number of shards is 5000; give 0 to 1024"),
            (["--no-such-option"], "--no-such-option"),
        ):
            node = processes.Node(GYRE_NATS, server, "--actors", ACTORS, *arguments, name="node2")
            node.spawn()
            self.assertEqual(node.process.wait(60), 2, node.output())
            self.assertIn(said, node.output())
        self.assertEqual(first.stop(), 0, first.output())


if __name__ == "__main__":
    SOURCE, GYRE_NATS, GYRE_ASK, ACTORS = sys.argv[1:5]
    del sys.argv[1:5]
    processes.nats_server()
    unittest.main(verbosity=2)
