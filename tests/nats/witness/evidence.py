"""What tests learn of witnesses: handlers' records, what clients were told, what JetStream was told. Finds contradictions."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import processes
import wire
from witness import client

OWN = pathlib.Path(client.__file__)


class Load:
    """A client of the test's own, in a process of its own: client.py. Started and killed as often as wanted."""

    def __init__(self, folder, servers, *arguments):
        self.folder, self.servers, self.arguments = folder, servers, arguments
        self.number = 0
        self.process = None

    def start(self):
        self.number += 1
        command = [sys.executable, "-B", OWN, self.folder, str(self.number), self.servers.url, *self.arguments]
        self.process = subprocess.Popen(command)
        processes.end_with_test(self.process)
        return self

    def kill(self):
        if (code := self.process.poll()) is not None:
            raise RuntimeError(f"client {self.number} ended with {code}")
        self.process.kill()
        self.process.wait()

    def stop(self, timeout=60):
        """Waits for what is in flight."""
        self.process.terminate()
        if code := self.process.wait(timeout):
            raise RuntimeError(f"client {self.number} ended with {code}")

    def summary(self):
        """Returns the outcomes of all clients, what they found wrong, and how late an ask ended, in seconds."""
        outcomes, wrong, late = collections.Counter(), [], 0.0
        for number in range(1, self.number + 1):
            if (file := pathlib.Path(self.folder, f"client.{number}")).exists():
                summary = json.loads(file.read_text())
                outcomes.update(summary["outcomes"])
                wrong += summary["wrong"]
                late = max(late, summary["late"])
        return outcomes, wrong, late


class Acknowledgements:
    """Listens to what nodes tell JetStream of deliveries. It misses what is told while its connection is lost."""

    def __init__(self, servers, stream):
        self.servers, self.stream = servers, stream
        self.told = []  # the verdict, the delivery's sequence in the stream, when it was seen in ns
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def stop(self):
        self.ended.set()
        self.thread.join()

    def _listen(self):
        while not self.ended.is_set():
            try:
                with self.servers.connect() as connection:
                    connection.subscribe(f"$JS.ACK.{self.stream}.>")
                    while not self.ended.is_set():
                        if (message := connection.next(timeout=0.1)) is not None:
                            verdict = message.body[:4].decode()
                            self.told.append((verdict, int(message.subject.split(".")[5]), time.monotonic_ns()))
            except (OSError, TimeoutError, ConnectionError, StopIteration):
                time.sleep(0.02)


class Lives:
    """Notes when nodes begin a new life, by their logs: a process and a time in ns, a little after the event."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.begun = collections.defaultdict(list)
        self.read = collections.Counter()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def stop(self):
        self.ended.set()
        self.thread.join()

    def _follow(self):
        while not self.ended.wait(0.01):
            for node in self.nodes:
                if not node.log.exists():
                    continue
                with open(node.log, errors="replace") as log:
                    log.seek(self.read[node.name])
                    text = log.read()
                    self.read[node.name] = log.tell()
                if "begins a new life" in text:
                    self.begun[node.pid()].append(time.monotonic_ns())


def read(kind, folder, name):
    """Returns all records of the files whose names match; without the last one that was not written in full."""
    found = []
    for file in sorted(pathlib.Path(folder).glob(name)):
        data = file.read_bytes()
        found += kind.iter_unpack(data[: len(data) // kind.size * kind.size])
    return found


def judge(folder, told=(), lives=None):
    """Returns what contradicts the guarantees of docs/reference/nats.md, and counts of what was compared."""
    wrong, counts = [], collections.Counter()
    handled = collections.defaultdict(list)  # by id: process, begun, ended
    for process, _, number, begun, ended in read(client.RECORD, folder, "handled"):
        handled[number].append((process, begun, ended))
    asks = read(client.ASK, folder, "asks.*")
    tells = read(client.TELL, folder, "tells.*")
    counts["handled"] = sum(map(len, handled.values()))

    by_key = collections.defaultdict(lambda: collections.defaultdict(list))
    published = {number for number, *_ in tells}
    for number, key, lease, *_ in asks:
        counts["asks"] += 1
        if len(handled[number]) != 1:
            wrong.append(f"ask {number:x} was answered, and handled {len(handled[number])} times")
        else:
            by_key[key][lease].append(handled[number][0])
    # What an owner answered, it had handled before a later owner began.
    for key, leases in by_key.items():
        for former, latter in zip(sorted(leases), sorted(leases)[1:]):
            counts["changes of owner"] += 1
            ended = max(ended for _, _, ended in leases[former])
            begun = min(begun for _, begun, _ in leases[latter])
            if ended > begun:
                wrong.append(f"key {key}: lease {latter} began {(ended - begun) / 1e6} ms before {former} ended")

    # Of two tells of one sequence, the server had lost the first when it was killed.
    sequences = collections.Counter(sequence for _, sequence, *_ in tells)
    counts["sequences given twice"] = len(tells) - len(sequences)
    of_sequence = {}
    for number, sequence, _, fails in tells:
        counts["tells"] += 1
        of_sequence[sequence] = number, fails
        if not handled[number]:
            wrong.append(f"tell {number:x} of sequence {sequence} was acknowledged by JetStream, and is lost")
    for number, times in handled.items():
        counts["handled again"] += len(times) - 1 if len(times) > 1 else 0
        for (process, begun, _), (other, again, _) in zip(sorted(times), sorted(times)[1:]):
            between = lives.begun[process] if lives else []
            # What a former life gave to its actor may begin a little later.
            if process == other and not any(begun - 1.5e9 <= life <= again + 1e9 for life in between):
                wrong.append(f"{number:x} was handled twice in one life of process {process}: {begun} and {again}")
    for verdict, sequence, seen in told:
        if sequence not in of_sequence or sequences[sequence] > 1 or verdict not in ("+ACK", "+TER"):
            continue
        number, fails = of_sequence[sequence]
        counts["verdicts"] += 1
        if not any(ended <= seen for _, _, ended in handled[number]):
            wrong.append(f"tell {number:x} was acknowledged by {verdict} before its handler ended")
        if fails != (verdict == "+TER"):
            wrong.append(f"tell {number:x}, whose handler {'fails' if fails else 'is well'}, ended with {verdict}")
    counts["published"] = len(published)
    return wrong, dict(counts)


def preference(node, shard):
    """As docs/reference/nats.md has it."""
    value = 0xCBF29CE484222325
    for byte in node.encode() + shard.to_bytes(8, "little"):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD % 2**64
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return value ^ value >> 33
