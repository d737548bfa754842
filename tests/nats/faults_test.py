#!/usr/bin/env python3
"""faults_test.py NODE ACTORS [--events N] [--cluster] [--seed N]: nodes, servers and clients die, are suspended and cut off
in random order under load, and nothing is lost silently.

NODE: gyre-nats. ACTORS: the shared object with witness::Witness."""

import argparse
import collections
import json
import pathlib
import random
import signal
import sys
import tempfile
import time

import links
import processes
import wire
from witness import client, evidence

SHARDS = 16
CLOCK_ERROR = 0.1
# What docs/reference/nats.md and docs/reference/errors.md name, and what a client says of a lost connection or reply.
OUTCOMES = {
    "ok", "check_failed", "no_such_node", "no_responders", "timed_out", "expired", "ring_full", "call_table_full",
    "old_lease", "connection_lost", "no_reply",
}


class Node(processes.Node):
    """A node that is started again until it runs."""

    def __init__(self, test, name, link=None):
        super().__init__(test.program, test.servers, *test.arguments, name=name, link=link)
        self.environment = {"GYRE_WITNESS_FILE": str(test.folder / "handled"), "GYRE_LOG": "info"}
        self.summaries = []

    def run(self):
        if not self.running():
            self.spawn()

    def leave(self):
        """Asks it to end, and keeps its summary."""
        before = len(self.output())
        self.stop()
        if (line := self.output()[before:].splitlines()[-1:]) and line[0].startswith("gyre-nats: {"):
            self.summaries.append(json.loads(line[0].removeprefix("gyre-nats: ")))


class Faults:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)
        self.program = options.node
        self.lease = options.lease / 1000
        self.arguments = [
            "--actors", options.actors, "--shards", str(SHARDS), "--lease", str(options.lease), "--clock-error",
            str(int(CLOCK_ERROR * 1000)), "--ack-wait", "1500", "--replicas", "3" if options.cluster else "1",
            "--workers", "2",
        ]
        if options.cluster:
            self.servers = processes.Cluster(host="0.0.0.0").start()
            self.members = self.servers.servers
        else:
            self.servers = processes.Server(host="0.0.0.0").start()
            self.members = [self.servers]
        self.link = links.make(self.members)
        print(f"seed {options.seed}, {options.events} events, lease {options.lease} ms; node3 is behind a {self.link.kind}")
        self.nodes = [Node(self, "node1"), Node(self, "node2"), Node(self, "node3", self.link)]
        self.load = evidence.Load(folder, self.servers, "--shards", str(SHARDS), "--asks", "200", "--tells", "25", "--long-tells", "700")
        self.count = collections.Counter()
        self.begun = time.monotonic()
        self.history = []
        self.longest = 0.0, ""
        self.kept = 0

    def run(self):
        for node in self.nodes:
            node.run()
        self.recover()
        self.load.start()
        self.acknowledgements = evidence.Acknowledgements(self.servers, "gyre_test_tells")
        lives = evidence.Lives(self.nodes)
        events = [
            self.kill_node, self.kill_server, self.kill_client, self.suspend_node, self.cut_off, self.leave_and_join,
            self.die_in_handover, self.stop_in_handover, self.leave_cut_off, self.suspend_server,
        ]
        order = [events[i % len(events)] for i in range(self.options.events)]
        self.random.shuffle(order)
        longest = next((number for number, event in enumerate(order) if event == self.cut_off), None)
        for number, event in enumerate(order):
            time.sleep(self.random.uniform(0.05, 0.3))
            begun = time.monotonic()
            self.history.append(f"{begun - self.begun:8.2f} s  {event.__name__}")
            event(long=number == longest and self.options.events > 20)
            self.count[event.__name__] += 1
            if self.random.random() < 0.75:  # else the next comes before all is well again
                injected = time.monotonic()
                self.recover()
                self.longest = max(self.longest, (time.monotonic() - injected, event.__name__))
        self.recover()
        time.sleep(1)
        self.load.stop()
        self.wait_for_tells()
        for node in self.nodes:
            node.leave()
        lives.stop()
        self.acknowledgements.stop()
        return self.judge(self.acknowledgements.told, lives)

    def recover(self):
        """Waits until all runs and all shards are served."""
        deadline = time.monotonic() + 60
        connection = None
        while True:
            for server in self.members:
                if not server.running():
                    server.spawn()
            for node in self.nodes:
                node.run()  # it ends if it starts while no server answers
            try:
                connection = connection or self.servers.connect(timeout=1)
                if processes.all_served(connection, "test"):
                    return
            except (OSError, TimeoutError, ConnectionError, wire.JetStreamError):
                connection = None
            if time.monotonic() > deadline:
                raise TimeoutError("shards are not served after 60 s:\n" + self.said())
            time.sleep(0.05)

    def said(self):
        """Returns what helps to find out what happened."""
        text = "\n".join(self.history) + "\n"
        for node in self.nodes:
            text += f"--- {node.name}, process {node.pid()}\n"
            text += "".join(line[:300] + "\n" for line in node.output().splitlines()[-12:])
        try:
            with self.servers.connect() as connection:
                for node in self.nodes:
                    text += f"{node.name}: {connection.get('gyre_test', 'node.' + node.name)}\n"
                for shard in range(SHARDS):
                    text += f"shard {shard}: {connection.get('gyre_test', f'shard.{shard}')}\n"
                text += f"tells: {connection.jet_stream('STREAM.INFO.gyre_test_tells')['state']}\n"
                for shard in range(SHARDS):
                    consumer = connection.jet_stream(f"CONSUMER.INFO.gyre_test_tells.shard_{shard}")
                    names = ["delivered", "ack_floor", "num_ack_pending", "num_redelivered", "num_waiting", "num_pending"]
                    text += f"shard {shard}: {({name: consumer.get(name) for name in names})}\n"
        except (OSError, TimeoutError, wire.JetStreamError) as error:
            text += str(error)
        return text

    def wait_for_tells(self):
        """Waits until each tell that JetStream acknowledged was handled, and none waits to be delivered. A server that was
        killed may keep tells, and deliveries, whose end it had not stored: they are counted."""
        deadline = time.monotonic() + 60
        while True:
            tells = {number for number, *_ in evidence.read(client.TELL, self.folder, "tells.*")}
            lost = tells - {number for _, _, number, *_ in evidence.read(client.RECORD, self.folder, "handled")}
            try:
                with self.servers.connect() as connection:
                    consumers = [
                        connection.jet_stream(f"CONSUMER.INFO.gyre_test_tells.shard_{shard}") for shard in range(SHARDS)
                    ]
                    self.kept = connection.jet_stream("STREAM.INFO.gyre_test_tells")["state"]["messages"]
                if not lost and all(consumer["num_pending"] == 0 for consumer in consumers):
                    return
            except (OSError, TimeoutError, wire.JetStreamError):
                pass
            if time.monotonic() > deadline:
                lines = "\n".join(self.story(number) for number in sorted(lost)[:20])
                raise TimeoutError(
                    f"{len(lost)} of {len(tells)} tells were not handled after 60 s:\n{lines}\n{self.said()}"
                )
            time.sleep(0.2)

    def story(self, number):
        """Returns what is known of a tell: when it was stored, whether it still is, what nodes said of it."""
        _, sequence, stored, _ = next(tell for tell in evidence.read(client.TELL, self.folder, "tells.*") if tell[0] == number)
        try:
            with self.servers.connect() as connection:
                connection.jet_stream("STREAM.MSG.GET.gyre_test_tells", {"seq": sequence})
                state = "in the stream"
        except wire.JetStreamError as error:
            state = f"not in the stream: {error}"
        said = [(verdict, f"{seen / 1e9 - self.begun:.3f} s") for verdict, of, seen in self.acknowledgements.told if of == sequence]
        return f"{number:x}, sequence {sequence}, stored at {stored / 1e9 - self.begun:.3f} s, {state}; nodes said {said}"

    # The events.

    def any_node(self):
        return self.random.choice([node for node in self.nodes if node.running()] or [self.start(self.nodes[0])])

    def start(self, node):
        node.run()
        return node

    def kill_node(self, **_):
        node = self.any_node()
        node.kill()
        if self.random.random() < 0.5:
            time.sleep(self.random.uniform(0, 2 * self.lease))
        node.run()

    def kill_server(self, **_):
        server = self.random.choice(self.members)
        if server.running():
            server.kill()
        time.sleep(self.random.uniform(0, 1.5))
        server.spawn()

    def suspend_server(self, **_):
        server = self.random.choice(self.members)
        if server.running():
            server.suspend()
            time.sleep(self.random.uniform(0.1, 4 * self.lease))
            server.resume()

    def kill_client(self, **_):
        self.load.kill()
        self.load.start()

    def suspend_node(self, **_):
        node = self.any_node()
        node.suspend()
        time.sleep(self.lease * self.random.choice([0.3, 1, 1.5, 2, 4]) + CLOCK_ERROR)
        node.resume()

    def cut_off(self, long=False):
        self.link.cut()
        time.sleep(self.random.uniform(0.2, 4 * self.lease))
        if self.random.random() < 0.3:  # two at once
            self.random.choice([self.kill_server, self.kill_client, self.suspend_node])()
        if long:
            time.sleep(10)
        self.link.mend()

    def leave_and_join(self, **_):
        node = self.any_node()
        node.leave()
        node.run()

    def die_in_handover(self, **_):
        leaving = self.any_node()
        leaving.signal(signal.SIGTERM)
        time.sleep(self.random.uniform(0, 0.1))
        victim = self.random.choice([leaving, self.random.choice(self.nodes)])
        if victim.running():
            victim.kill()
        processes.wait_for(lambda: victim is leaving or not leaving.running(), "a node leaving")
        leaving.run()
        victim.run()

    def stop_in_handover(self, **_):
        """A node is suspended while another hands its shards over, perhaps to it."""
        leaving = self.any_node()
        other = self.random.choice([node for node in self.nodes if node is not leaving])
        leaving.signal(signal.SIGTERM)
        time.sleep(self.random.uniform(0, 0.1))
        if other.running():
            other.suspend()
            time.sleep(self.lease * self.random.choice([0.3, 1.5, 3]))
            other.resume()
        processes.wait_for(lambda: not leaving.running(), "a node leaving")
        leaving.run()

    def leave_cut_off(self, **_):
        """A node that reaches no server ends all the same."""
        node = self.nodes[2]
        node.run()
        self.link.cut()
        time.sleep(self.random.uniform(0, self.lease))
        node.leave()
        self.link.mend()
        node.run()

    # What is to hold.

    def judge(self, told, lives):
        wrong, counts = evidence.judge(self.folder, told, lives)
        outcomes, contradictions, late = self.load.summary()
        wrong += contradictions
        summaries = [summary for node in self.nodes for summary in node.summaries]
        books = collections.Counter()
        for summary in summaries:
            books.update(summary["gateway"])
            if not summary["balanced"] or not summary["left"]:
                wrong.append(f"books are not balanced, or the node did not leave: {summary}")
        if late > 1:
            wrong.append(f"an ask ended {late} s after its deadline")
        unknown = set(outcomes) - OUTCOMES - {"published", "published_twice"}
        if unknown:
            wrong.append(f"asks ended with {unknown}")
        print(f"  events: {dict(self.count)}; until all shards were served again: "
              f"{self.longest[0]:.1f} s at most, after {self.longest[1]}")
        print(f"  {self.load.number} clients: {dict(outcomes)}; an ask ended {late:.2f} s after its deadline at most")
        print(f"  compared: {counts}")
        print(f"  new lives: {sum(map(len, lives.begun.values()))}; tells that the server kept: {self.kept}")
        print(f"  books of {len(summaries)} nodes that ended in order: {({k: v for k, v in books.items() if v})}")
        return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("node")
    parser.add_argument("actors")
    parser.add_argument("--events", type=int, default=10)
    parser.add_argument("--lease", type=int, default=600, help="milliseconds")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--cluster", action="store_true", help="three servers")
    options = parser.parse_args()
    processes.nats_server()
    with tempfile.TemporaryDirectory(prefix="gyre-faults-") as folder:
        wrong = Faults(options, pathlib.Path(folder)).run()
    for line in wrong[:20]:
        print("WRONG:", line)
    if wrong:
        sys.exit(f"{len(wrong)} contradictions; repeat it with --seed {options.seed}")


if __name__ == "__main__":
    main()
