#!/usr/bin/env python3
"""page_test.py SOURCE_DIR GYRE_NATS GYRE_ASK EMBEDDED: the commands of docs/how-to/nats.md do what the page shows, with two
nodes on this machine, and the program that it shows is a third. The reference has each status that a node can answer.

EMBEDDED: the program of examples/nats/embed.cpp."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import processes

SOURCE, GYRE_NATS, GYRE_ASK, EMBEDDED = "", "", "", ""
# Outcomes of a program that calls the runtime itself. No reply of a node has them.
NO_REPLYS = {"nested_fill", "forked", "buffer_lost", "cancelled", "worker_stuck"}


def blocks(page):
    """Returns the page's code blocks: language, and text. A block of another language than sh shows what is printed."""
    text = pathlib.Path(SOURCE, page).read_text()
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


class Reference(unittest.TestCase):
    def test_the_reference_has_every_status_that_a_node_can_answer(self):
        page = pathlib.Path(SOURCE, "docs/reference/nats.md").read_text()
        table = page.split("\n## Statuses\n")[1].split("\n## ")[0]
        shown = re.findall(r"^\| `(\w+)` \| (?:yes|no|maybe) \|", table, re.MULTILINE)
        self.assertEqual(len(shown), len(set(shown)))
        outcomes = pathlib.Path(SOURCE, "messages/status.hpp").read_text().split("enum class Status")[1]
        of_runtime = set(re.findall(r"^  (\w+) = \d+,", outcomes, re.MULTILINE))
        headers = pathlib.Path(SOURCE, "runtime/nats/headers.hpp").read_text()
        of_gateway = set(re.findall(r'"(\w+)"', headers.split("namespace status {")[1].split("}")[0]))
        self.assertLessEqual(NO_REPLYS, of_runtime)
        self.assertEqual(set(shown), (of_runtime - NO_REPLYS) | of_gateway)


class Machine:
    """Runs the page's commands as on the machines alpha and beta, which are both this one. Ends with the test."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gyre-page-"))
        self.port = processes.free_port()
        (self.folder / "messages").symlink_to(pathlib.Path(SOURCE, "messages").absolute())
        programs = self.folder / "programs"
        programs.mkdir()
        for name, target in (("gyre-nats", GYRE_NATS), ("gyre-ask", GYRE_ASK)):
            (programs / name).symlink_to(pathlib.Path(target).absolute())
        (programs / "sudo").write_text("#!/bin/sh\nexit 0\n")  # nothing is installed, and no service is ended
        (programs / "sudo").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        self.running = []

    def here(self, text):
        """Returns what the page shows with this test's port, and with this machine's address in place of alpha."""
        text = text.replace("port: 4222", f"port: {self.port}").replace("/usr/sbin/nats-server", processes.nats_server())
        return text.replace("alpha:4222", f"{processes.HOST}:{self.port}")

    def run(self, command):
        """Runs a block of commands, and returns what they print."""
        done = subprocess.run(
            ["bash", "-ec", self.here(command)], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{command}\nended with {done.returncode}: {done.stderr}"
        return done.stdout

    def start(self, command, log):
        """Starts a block of commands, the last of which stays. Returns its process."""
        *first, last = self.here(command).replace("\\\n", " ").rstrip("\n").splitlines()
        lines = "\n".join([*first, "exec " + last])
        with open(self.folder / log, "wb") as output:
            process = subprocess.Popen(
                ["bash", "-ec", lines], cwd=self.folder, env=self.environment, stdin=subprocess.PIPE, stdout=output, stderr=output
            )
        processes.end_with_test(process)
        self.running.append(process)
        return process

    def output(self, log):
        return (self.folder / log).read_text(errors="replace")

    def wait_for_output(self, process, log, text):
        def is_there():
            assert process.poll() is None, f"ended with {process.returncode}: {self.output(log)}"
            return text in self.output(log)

        processes.wait_for(is_there, f"«{text}» in {log}")

    def end(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class HowTo(unittest.TestCase):
    def test_the_commands_of_the_page_do_what_it_shows(self):
        shown = blocks("docs/how-to/nats.md")
        commands = [text for language, text in shown if language == "sh"]
        self.assertEqual(len(commands), 5, "a block was added or removed: say here what is to be seen of it")
        serve, _, node, ask, durable = commands  # the second builds Gyre
        after = {text: shown[i + 1][1] for i, (language, text) in enumerate(shown) if language == "sh" and i + 1 < len(shown)}
        machine = Machine()
        self.addCleanup(machine.end)

        server = machine.start(serve, "server")
        machine.wait_for_output(server, "server", "Server is ready")
        nodes = []
        for name in ("alpha", "beta"):
            # Two machines have two names. The page's commands take the GPU where there is one.
            nodes.append(machine.start(node.rstrip("\n") + f" --node {name} --engine cpu\n", name))
            machine.wait_for_output(nodes[-1], name, machine.here(after[node]).replace("node beta", f"node {name}"))
        self.wait_for_owners(machine, {"alpha", "beta"})
        self.assertEqual(machine.run(ask), after[ask])
        self.assertEqual(machine.run(durable), after[durable])
        with processes.wire.Connection(processes.HOST, machine.port) as connection:
            def is_empty():
                return connection.jet_stream("STREAM.INFO.gyre_demo_tells")["state"]["messages"] == 0

            processes.wait_for(is_empty, "the durable tell being handled")

        embedded = machine.start(f"{EMBEDDED} nats://alpha:4222\n", "embedded")
        self.wait_for_owners(machine, {"alpha", "beta", "embedded"})
        self.assertEqual(machine.run(ask), after[ask])
        embedded.stdin.close()
        self.assertEqual(embedded.wait(60), 0, machine.output("embedded"))
        self.wait_for_owners(machine, {"alpha", "beta"})
        for process, name in zip(nodes, ("alpha", "beta")):
            self.assertEqual(machine.run(ask), after[ask])
            process.terminate()
            self.assertEqual(process.wait(60), 0, machine.output(name))
            self.assertIn('"left":true', machine.output(name))

    def wait_for_owners(self, machine, names):
        with processes.wire.Connection(processes.HOST, machine.port) as connection:
            def are_owners():
                owners = {shard["node"] for shard in processes.owners(connection, "demo") if shard}
                return owners == names and processes.all_served(connection, "demo")

            processes.wait_for(are_owners, f"shards being served by {sorted(names)}")


if __name__ == "__main__":
    SOURCE, GYRE_NATS, GYRE_ASK, EMBEDDED = sys.argv[1:5]
    del sys.argv[1:5]
    processes.nats_server()
    unittest.main(verbosity=2)
