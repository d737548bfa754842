#!/usr/bin/env python3
"""gyre_ask_test.py SOURCE_DIR GYRE_ASK GYRE_NATS ACTORS: gyre-ask asks, tells, and tells durably, and its exit codes are
those of docs/reference/exit_codes.md. ACTORS: the shared object with averages::Average."""

import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest

import credentials
import processes
import stub_node

SOURCE, GYRE_ASK, GYRE_NATS, ACTORS = "", "", "", ""
AVERAGE = "averages::Average"
ANSWERED, FAILED, USAGE, NO_NODE = 0, 1, 2, 3


def capnp(command, struct, data):
    schema = f"{SOURCE}/examples/first_actor/average.capnp"
    return subprocess.run(["capnp", command, "-I/usr/include", schema, struct], input=data, capture_output=True, check=True).stdout


class Asks(unittest.TestCase):
    def run_it(self, *arguments, server, expect, body=b""):
        command = [GYRE_ASK, "--server", server.url, "--namespace", "test", *map(str, arguments)]
        # The library that reads schemas warns if PWD is another folder; that is not to be seen.
        environment = {**os.environ, "PWD": "/"}
        done = subprocess.run(command, input=body, capture_output=True, timeout=60, env=environment)
        self.assertEqual(done.returncode, expect, done)
        return done.stdout, done.stderr.decode()

    def ask(self, *arguments, server=None, expect=ANSWERED, body=b""):
        """Asks with the schema. Returns what was printed, as text."""
        schema = ["--schema", f"{SOURCE}/examples/first_actor/average.capnp"]
        out, err = self.run_it(*arguments, *schema, server=server or self.server, expect=expect, body=body)
        return out.decode(), err


class WithNode(Asks):
    @classmethod
    def setUpClass(cls):
        cls.server = processes.Server().start()
        cls.node = processes.Node(GYRE_NATS, cls.server, "--actors", ACTORS).start()

    @classmethod
    def tearDownClass(cls):
        assert cls.node.stop() == 0, cls.node.output()

    def sum_at(self, key):
        """Sends a zero, and returns the sum of all numbers that the actor has."""
        out, _ = self.ask(AVERAGE, key, "Add", "(numbers = [0])", "--reply", "Mean")
        mean, count = re.fullmatch(r"\(mean = (\S+), count = (\d+)\)\n", out).groups()
        return round(float(mean) * int(count))

    def test_text_goes_in_and_comes_out(self):
        out, _ = self.ask(AVERAGE, 17, "Add", "(numbers = [1, 2.5])", "--reply", "Mean")
        self.assertEqual(" ".join(out.split()), "(mean = 1.75, count = 2)")
        out, _ = self.ask("averages_Average", 17, "Add", "(numbers = [5.5])", "--reply", "Mean", "--id", "a", "--timeout", 60000)
        self.assertEqual(" ".join(out.split()), "(mean = 3, count = 3)")
        out, _ = self.ask(AVERAGE, 2**64 - 1, "Add", "(numbers = [-1])", "--reply", "Mean")
        self.assertEqual(" ".join(out.split()), "(mean = -1, count = 1)")

    def test_a_stream_goes_in_and_comes_out(self):
        body = capnp("encode", "Add", b"(numbers = [4])")
        type_id = stub_node.type_id_of(f"{SOURCE}/examples/first_actor/average.capnp", "Add")
        out, _ = self.run_it(AVERAGE, 18, "--type", type_id, server=self.server, expect=ANSWERED, body=body)
        self.assertEqual(capnp("decode", "Mean", out), b"(mean = 4, count = 1)\n")
        out, _ = self.ask(AVERAGE, 18, "Add", "--reply", "Mean", body=body)
        self.assertEqual(" ".join(out.split()), "(mean = 4, count = 2)")

    def test_a_tell_is_handled_and_not_waited_for(self):
        out, _ = self.ask(AVERAGE, 19, "Add", "(numbers = [7])", "--tell")
        self.assertEqual(out, "")
        self.assertEqual(processes.wait_for(lambda: self.sum_at(19), "the tell"), 7)

    def test_a_durable_tell_is_stored_and_handled_once_for_its_id(self):
        stream = {}
        for text in ("", ", where it was already"):
            out, _ = self.ask(AVERAGE, 20, "Add", "(numbers = [7])", "--durable", "--id", "transfer-1")
            self.assertEqual(out, f"transfer-1 is message 1 of gyre_test_tells{text}\n")

        def handled():
            with self.server.connect() as client:
                stream.update(client.jet_stream("STREAM.INFO.gyre_test_tells")["state"])
            return stream["messages"] == 0

        processes.wait_for(handled, "the acknowledgement of the durable tell")
        self.assertEqual(self.sum_at(20), 7)
        out, _ = self.ask(AVERAGE, 20, "Add", "(numbers = [7])", "--durable")
        self.assertRegex(out, "^[0-9a-f]{32} is message 2 of gyre_test_tells\n$")

    def test_an_actors_error_has_its_status_its_reason_and_exit_code_1(self):
        _, said = self.ask(AVERAGE, 21, "Add", "()", expect=FAILED)
        self.assertRegex(said, "^gyre-ask: check_failed: handling a message: .* averages/average.hpp line [0-9]+\n$")
        _, said = self.ask("other::Actor", 21, "Add", "()", expect=FAILED)
        self.assertRegex(said, "^gyre-ask: unknown_actor: ")
        _, said = self.ask(AVERAGE, 21, "Mean", "()", expect=FAILED)
        self.assertRegex(said, "^gyre-ask: unknown_message: ")
        _, said = self.ask(AVERAGE, 21, "Add", body=b"no message", expect=FAILED)
        self.assertRegex(said, "^gyre-ask: malformed: ")

    def test_a_body_that_is_too_large_for_the_server_is_refused_with_both_sizes(self):
        _, said = self.ask(AVERAGE, 22, "Add", body=bytes(2 << 20), expect=FAILED)
        self.assertIn("2097152 bytes", said)
        self.assertIn("1048576 bytes", said)

    def test_wrong_usage_has_exit_code_2(self):
        schema = f"{SOURCE}/examples/first_actor/average.capnp"
        for arguments, says in (
            ([AVERAGE, 1, "Add", "()"], "give --schema"),
            ([AVERAGE, 1, "Add", "()", "--schema", "/none.capnp"], "reading the schema /none.capnp"),
            ([AVERAGE, 1, "Add", "()", "--schema", sys.argv[0]], "gyre_ask_test.py:"),
            ([AVERAGE, 1, "Other", "()", "--schema", schema], "has no such struct"),
            ([AVERAGE, 1, "Add", "()", "--schema", schema, "--reply", "Other"], "looking for Other"),
            ([AVERAGE, 1, "Add", "(other = 3)", "--schema", schema], "no field named 'other'"),
            ([AVERAGE, 1, "Add", "(numbers = [a])", "--schema", schema], "reading (numbers = [a])"),
            ([AVERAGE, "-1", "Add", "()", "--schema", schema], "reading the key"),
            ([AVERAGE, "1x", "Add", "()", "--schema", schema], "reading the key"),
            ([AVERAGE, 2**64, "Add", "()", "--schema", schema], "reading the key"),
            ([AVERAGE, 1, "--type", "xyz"], "reading --type"),
            ([AVERAGE, 1, "Add", "()", "--type", "12"], "need --schema"),
            ([AVERAGE, 1, "Add", "()", "--type", "12", "--schema", schema], "xcludes"),
            ([AVERAGE, 1, "Add", "()", "--tell", "--durable"], "xcludes"),
            ([AVERAGE, 1, "Add", "()", "--schema", schema, "-I", "/none"], "/none"),
            ([AVERAGE, 1, "Add", "()", "--schema", schema, "--id", "two words"], "reading --id"),
        ):
            with self.subTest(arguments=arguments):
                out, said = self.run_it(*arguments, server=self.server, expect=USAGE)
                self.assertIn(says, said)
                self.assertEqual(out, b"")


class WithoutNode(Asks):
    def test_no_server_no_namespace_no_node_and_no_reply_have_exit_code_3(self):
        request = AVERAGE, 1, "Add", "(numbers = [1])"
        server = processes.Server().start()
        _, said = self.ask(*request, server=server, expect=NO_NODE)
        self.assertIn("gyre_test", said)
        type_id = stub_node.type_id_of(f"{SOURCE}/examples/first_actor/average.capnp", "Add")
        node = stub_node.StubNode(server, type_id).create_namespace()
        _, said = self.ask(*request, server=server, expect=NO_NODE)
        self.assertRegex(said, "^gyre-ask: no_such_node: no node owns shard [0-9]+ now")
        _, said = self.ask(*request, "--durable", server=server, expect=FAILED)
        self.assertIn("gyre_test_tells", said)
        node.change = lambda *_: None
        with node:
            _, said = self.ask(*request, "--timeout", 100, server=server, expect=NO_NODE)
            self.assertEqual(said, "gyre-ask: no_reply: nothing came within 600 ms\n")
            self.assertEqual(node.mistakes, [])
            node.change = lambda number, key, headers, body: ({"Gyre-Status": "no_such_node", "Gyre-Reason": "lost"}, b"")
            _, said = self.ask(*request, server=server, expect=NO_NODE)
            self.assertEqual(said, "gyre-ask: no_such_node: lost\n")
            node.change = lambda number, key, headers, body: (headers, b"no message")
            _, said = self.ask(*request, "--reply", "Mean", server=server, expect=FAILED)
            self.assertIn("the reply of 10 bytes", said)
            node.change = lambda number, key, headers, body: ({}, body)
            _, said = self.ask(*request, server=server, expect=FAILED)
            self.assertIn("a reply without a status", said)
        server.stop()
        _, said = self.ask(*request, server=server, expect=NO_NODE)
        self.assertIn("connecting to NATS", said)

    def test_a_password_is_used_and_not_shown(self):
        server = processes.Server('authorization { user: "me", password: "secret" }', user="me:secret").start()
        node = processes.Node(GYRE_NATS, server, "--actors", ACTORS).start()
        out, _ = self.ask(AVERAGE, 1, "Add", "(numbers = [1])", "--reply", "Mean", server=server)
        self.assertIn("count = 1", out)
        server.user = "me:wrong"
        _, said = self.ask(AVERAGE, 1, "Add", "(numbers = [1])", server=server, expect=NO_NODE)
        self.assertRegex(said.lower(), "authorization")
        self.assertNotIn("wrong", said)
        self.assertEqual(node.stop(), 0)
        self.assertNotIn("secret", node.output())

    def test_credentials_are_those_of_a_user_who_may_ask(self):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed (Debian: openssl)")
        with tempfile.TemporaryDirectory() as folder:
            account = credentials.Account(folder)
            node_file, node_user = account.user("node")
            asker_file, _ = account.user("asker")
            reader_file, _ = account.user("reader", {"pub": {"allow": ["$JS.API.>"]}})
            server = processes.Server(account.config, **node_user).start()
            node = processes.Node(GYRE_NATS, server, "--actors", ACTORS, "--creds", str(node_file)).start()
            request = AVERAGE, 1, "Add", "(numbers = [1])", "--reply", "Mean"
            out, _ = self.ask(*request, "--creds", asker_file, server=server)
            self.assertIn("count = 1", out)
            self.ask(*request, server=server, expect=NO_NODE)
            self.ask(*request, "--creds", "/none.creds", server=server, expect=NO_NODE)
            # The server drops what a user may not publish: there is no reply.
            _, said = self.ask(*request, "--creds", reader_file, "--timeout", 100, server=server, expect=NO_NODE)
            self.assertIn("no_reply", said)
            out, _ = self.ask(*request, "--creds", asker_file, server=server)
            self.assertIn("count = 2", out)
            self.assertEqual(node.stop(), 0, node.output())

    def test_tls_with_certificates_of_both_sides(self):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed (Debian: openssl)")
        with tempfile.TemporaryDirectory() as folder:
            ca, certificate, key = make_certificates(pathlib.Path(folder))
            context = ssl.create_default_context(cafile=ca)
            context.load_cert_chain(certificate, key)
            tls = f'tls {{ cert_file: "{certificate}", key_file: "{key}", ca_file: "{ca}", verify: true }}'
            server = processes.Server(tls, tls=context).start()
            options = ["--tls-ca", ca, "--tls-cert", certificate, "--tls-key", key]
            node = processes.Node(GYRE_NATS, server, "--actors", ACTORS, *options).start()
            request = AVERAGE, 1, "Add", "(numbers = [1])", "--reply", "Mean"
            out, _ = self.ask(*request, *options, server=server)
            self.assertIn("count = 1", out)
            for wrong in ([], ["--tls-ca", ca], ["--tls-cert", certificate, "--tls-key", key], ["--tls-ca", "/none"]):
                self.ask(*request, *wrong, server=server, expect=NO_NODE)
            self.assertEqual(node.stop(), 0, node.output())


def make_certificates(folder):
    """Makes an authority, and a certificate of it for this host, with its key. Returns their paths."""
    names = [str(folder / name) for name in ("ca.pem", "host.pem", "host.key")]
    ca, certificate, key = names

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *curve, "-subj", "/CN=test", "-days", "2", "-keyout", "ca.key", "-out", ca)
    openssl("req", *curve, "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", "host.csr")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl("x509", "-req", "-in", "host.csr", "-CA", ca, "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile",
            "names", "-out", certificate)
    return ca, certificate, key


if __name__ == "__main__":
    SOURCE, GYRE_ASK, GYRE_NATS, ACTORS = sys.argv[1:5]
    del sys.argv[1:5]
    processes.nats_server()
    unittest.main(verbosity=2)
