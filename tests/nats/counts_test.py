#!/usr/bin/env python3
"""counts_test.py SOURCE_DIR GYRE GYRE_ASK GYRE_NATS ACTORS: a node's counts are in gyre stat and, if it serves metrics, at
its Prometheus endpoint. ACTORS: the shared object with averages::Average."""

import json
import os
import re
import subprocess
import sys
import unittest
import urllib.request

import processes

SOURCE, GYRE, GYRE_ASK, GYRE_NATS, ACTORS = "", "", "", "", ""
GAUGES = {"connected", "leased", "shards", "shards_owned", "asks_in_flight", "nodes"}


def documented_counts():
    """Returns the names of GatewayBooks' counts: those that the gateway's header declares."""
    header = open(f"{SOURCE}/runtime/nats/gateway.hpp").read()
    books = re.search(r"struct GatewayBooks \{(.*?)\n\};", header, re.S).group(1)
    return set(re.findall(r"^  uint64_t (\w+) = 0;", books, re.M))


class Counts(unittest.TestCase):
    def start(self, *arguments):
        self.server = processes.Server().start()
        self.addCleanup(self.server.stop)
        self.node = processes.Node(GYRE_NATS, self.server, "--actors", ACTORS, "--shards", "8", *arguments)
        os.environ["GYRE_STATS_DIR"] = str(self.node.folder / "stats")
        self.node.start()

    def ask(self, key, text, expect):
        command = [GYRE_ASK, "--server", self.server.url, "--namespace", "test", "averages::Average", key, "Add", text]
        schema = ["--schema", f"{SOURCE}/examples/first_actor/average.capnp", "--reply", "Mean"]
        done = subprocess.run(command + schema, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, expect, done)

    def stat(self, *arguments):
        return subprocess.run([GYRE, "stat", *arguments], capture_output=True, check=True, text=True, timeout=60).stdout

    def counts(self):
        [runtime] = json.loads(self.stat("--json", "-"))
        return runtime["program"].get("nats", {})

    def test_a_nodes_counts_are_in_gyre_stat(self):
        self.start()
        for n in range(3):
            self.ask("17", f"(numbers = [{n}])", expect=0)

        def counts():
            now = self.counts()
            # The file is written five times a second.
            return now if now.get("asks_answered") == 3 and now["shards_owned"] == 8 else None

        nats = processes.wait_for(counts, "the counts of three asks")
        self.assertEqual(set(nats), documented_counts() | GAUGES)
        self.assertGreater(len(nats), 20)
        expected = {
            "asks_received": 3, "asks_answered": 3, "asks_refused": 0, "connected": 1, "leased": 1, "shards": 8,
            "asks_in_flight": 0, "nodes": 1, "shards_taken": 8,
        }
        self.assertEqual({name: nats[name] for name in expected}, expected)
        self.assertRegex(self.stat(), r"\n  nats\n(    .*\n)* +asks_answered +3\b")

        self.server.suspend()
        try:
            processes.wait_for(lambda: self.counts()["leased"] == 0, "the lease's end")
        finally:
            self.server.resume()
        self.assertIn("leases_lost", self.counts())

    def test_a_nodes_counts_are_in_a_scrape(self):
        for attempts_left in range(4, -1, -1):  # another program may take the port first
            port = processes.free_port()
            try:
                self.start("--metrics", f"{processes.HOST}:{port}")
                break
            except RuntimeError:
                if "built without prometheus-cpp" in self.node.output():
                    self.skipTest("gyre-nats is built without prometheus-cpp")
                if attempts_left == 0 or "the port free?" not in self.node.output():
                    raise
        self.ask("17", "(numbers = [1])", expect=0)

        def scrape():
            with urllib.request.urlopen(f"http://{processes.HOST}:{port}/metrics", timeout=30) as answer:
                return answer.read().decode()

        # The outcome is counted behind the reply.
        text = processes.wait_for(
            lambda: (found := scrape()) and '\ngyre_program_asks_answered_total{section="nats"} 1\n' in found and found, "the ask"
        )
        types = dict(re.findall(r"^# TYPE gyre_program_(\w+) (\w+)$", text, re.M))
        expected = {f"{name}_total": "counter" for name in documented_counts()} | {name: "gauge" for name in GAUGES}
        self.assertEqual(types, expected)
        self.assertIn("\n# HELP gyre_program_leased 1 while the node's lease is valid, else 0.\n", text)
        self.assertIn('\ngyre_program_shards{section="nats"} 8\n', text)
        self.assertIn('\ngyre_program_connected{section="nats"} 1\n', text)


if __name__ == "__main__":
    SOURCE, GYRE, GYRE_ASK, GYRE_NATS, ACTORS = sys.argv[1:6]
    del sys.argv[1:6]
    processes.nats_server()
    unittest.main(verbosity=2)
