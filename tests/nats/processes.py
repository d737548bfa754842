"""What tests on NATS start: servers, clusters of servers, and nodes. Each is a process of the test's own, with free ports
and a temporary folder; all end with the test."""

import atexit
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import wire

HOST = "127.0.0.1"
_started = []


def skip(reason):
    """Ends the test as skipped."""
    print("skipped:", reason)
    sys.exit(77)


def nats_server():
    """Returns the path of nats-server, or skips the test."""
    path = shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    return path or skip("nats-server is not installed (Debian: nats-server)")


def wait_for(condition, what, timeout=60):
    """Returns what `condition()` returns once that is true. Raises TimeoutError."""
    until = time.monotonic() + timeout
    while not (result := condition()):
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(0.02)
    return result


def free_port():
    """Returns a port that nobody listens on. It lies below those that the kernel gives to outgoing connections."""
    while True:
        port = random.randint(12000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
                return port
            except OSError:
                pass


class Process:
    """A process that may be killed, suspended and started again. Its output is in the file `log`."""

    def __init__(self, name, folder=None):
        self.name = name
        self.process = None
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix=f"gyre-{name}-"))
        if folder is None:
            atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.log = self.folder / f"{name}.log"
        self.environment = {}  # more than the test's own

    def command(self):
        raise NotImplementedError

    def spawn(self):
        """Starts the process, and waits for nothing."""
        assert not self.running(), f"{self.name} runs already"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **self.environment}
            )
        _started.append(self.process)

    def pid(self):
        return self.process.pid

    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def suspend(self):
        """Stops it as a machine that is suspended does: it keeps its connections and does nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """Ends it at once, as a loss of power does to a process."""
        self.process.kill()
        return self.process.wait()

    def stop(self, timeout=60):
        """Asks it to end, and returns its exit code."""
        self.process.terminate()
        return self.process.wait(timeout)

    def output(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class Server(Process):
    """A NATS server with JetStream, on a port that it keeps over restarts."""

    def __init__(self, config="", name="server", folder=None, cluster="", user="", host=HOST, ping_interval="1s", **options):
        """config: more of the server's configuration, such as `authorization { … }`. user: NAME:PASSWORD, in the URL. host:
        where it listens. ping_interval: the server finds within three of them that a quiet client is gone. options: those
        of wire.Connection, by which connect() connects, such as tls."""
        super().__init__(name, folder)
        self.program = nats_server()
        self.config, self.host, self.ping_interval = config, host, ping_interval
        self.user, self.options = user, options
        if user:
            self.options["user"], self.options["pass"] = user.split(":")
        self.cluster = cluster  # the configuration's part of a cluster's member
        self.jet_stream = True
        self.port = free_port()
        self.monitoring_port = free_port()

    @property
    def url(self):
        return f"nats://{self.user}{'@' if self.user else ''}{HOST}:{self.port}"

    def command(self):
        configuration = self.folder / f"{self.name}.conf"
        jet_stream = f"{{ store_dir: \"{self.folder / (self.name + '-store')}\", max_memory_store: 64MB, max_file_store: 1GB }}"
        configuration.write_text(
            f"""server_name: "{self.name}"
listen: "{self.host}:{self.port}"
http: "{HOST}:{self.monitoring_port}"
ping_interval: "{self.ping_interval}"
ping_max: 2
jetstream: {jet_stream if self.jet_stream else "disabled"}
{self.cluster}
{self.config}
"""
        )
        return [self.program, "-c", str(configuration)]

    def start(self):
        """Starts it, and waits until JetStream takes requests."""
        for attempt in range(10):
            self.spawn()
            try:
                self.wait_until_ready()
                return self
            except RuntimeError:
                # Somebody took the port since it was free. A member of a cluster must keep its ports.
                if "address already in use" not in self.output() or self.cluster or attempt == 9:
                    raise
                self.log.unlink()
                self.port, self.monitoring_port = free_port(), free_port()
        return self

    def restart(self):
        """Kills it and starts it again, with what it had stored."""
        self.kill()
        return self.start()

    def wait_until_ready(self, timeout=60):
        def ready():
            if not self.running():
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.output()}")
            try:
                return self.monitor("healthz").get("status") == "ok"
            except (OSError, urllib.error.HTTPError):
                return False

        wait_for(ready, f"{self.name} being ready", timeout)

    def monitor(self, path):
        """Returns what the server's monitoring says, such as `jsz` or `connz`, as a dict."""
        with urllib.request.urlopen(f"http://{HOST}:{self.monitoring_port}/{path}", timeout=5) as reply:
            return json.loads(reply.read())

    def connect(self, **options):
        """Returns a wire.Connection."""
        return wire.Connection(HOST, self.port, **{**self.options, **options})


class Cluster:
    """Several servers, which elect leaders and copy streams among them."""

    def __init__(self, size=3, config="", host=HOST):
        self.size, self.config, self.host = size, config, host
        self.servers = self._members()

    def _members(self):
        routes = [free_port() for _ in range(self.size)]
        urls = ", ".join(f'"nats://{HOST}:{port}"' for port in routes)
        return [
            Server(
                self.config, f"server{i + 1}",
                cluster=f'cluster {{ name: "test", listen: "{HOST}:{routes[i]}", routes: [{urls}] }}',
                host=self.host,
            )
            for i in range(self.size)
        ]

    @property
    def url(self):
        """The URLs of all servers, with commas."""
        return ",".join(server.url for server in self.servers)

    def start(self):
        for attempt in range(10):
            for server in self.servers:
                server.spawn()
            try:
                for server in self.servers:
                    server.wait_until_ready()
                return self
            except RuntimeError:
                # Somebody took a port since it was free: all members know the others' ports.
                if attempt == 9 or not any("address already in use" in server.output() for server in self.servers):
                    raise
                self.stop()
                self.servers = self._members()
        return self

    def stop(self):
        for server in self.servers:
            if server.running():
                server.stop()

    def running_server(self):
        return next(server for server in self.servers if server.running())

    def leader(self):
        """Returns the server that leads JetStream. Waits for an election."""

        def elected():
            try:
                name = self.running_server().monitor("jsz").get("meta_cluster", {}).get("leader")
            except OSError:
                return None
            return next((server for server in self.servers if server.name == name and server.running()), None)

        return wait_for(elected, "a leader of JetStream")

    def connect(self, **options):
        return self.running_server().connect(**options)


class Node(Process):
    """A node: the program gyre-nats on the CPU engine, for the servers of a Server or a Cluster."""

    def __init__(self, program, servers, *arguments, name="node1", namespace="test", link=None):
        """arguments: more options of gyre-nats, such as "--actors", "lib.so". link: the way to the servers, of links.py; None: a
        direct one."""
        super().__init__(name)
        self.program, self.servers, self.namespace, self.arguments = program, servers, namespace, arguments
        self.link = link

    def command(self):
        command = [
            self.program, "--server", self.link.url if self.link else self.servers.url, "--namespace", self.namespace,
            "--node", self.name, "--engine", "cpu", *self.arguments,
        ]
        return self.link.wrap(command) if self.link else command

    def start(self):
        """Starts it, and waits until its namespace's shards are all served."""
        self.spawn()
        self.wait_until_serving()
        return self

    def wait_until_serving(self, timeout=60):
        def serving():
            if not self.running():
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.output()}")
            return all_served(connection, self.namespace)

        with self.servers.connect() as connection:
            wait_for(serving, f"shards being served in {self.namespace}", timeout)


def fields(text):
    """Returns an entry of a namespace's bucket, `name=value` pairs, as a dict."""
    return dict(pair.split("=", 1) for pair in text.split())


def owners(connection, namespace):
    """Returns the entries of the namespace's shards, each a dict or None, in a list; an empty one: no namespace."""
    config, _ = connection.get(f"gyre_{namespace}", "config")
    if config is None:
        return []
    entries = [connection.get(f"gyre_{namespace}", f"shard.{k}")[0] for k in range(int(fields(config)["shards"]))]
    return [fields(entry) if entry else None for entry in entries]


def all_served(connection, namespace):
    """Returns true if each shard is served, by a node that its entry says to be alive."""
    shards = owners(connection, namespace)
    if not shards or not all(shard and shard["state"] == "serving" for shard in shards):
        return False
    for name in {shard["node"] for shard in shards}:
        node, _ = connection.get(f"gyre_{namespace}", f"node.{name}")
        if not node or fields(node)["state"] != "serving":
            return False
        if any(shard["life"] != fields(node)["life"] for shard in shards if shard["node"] == name):
            return False
    return True


def end_with_test(process):
    """Kills a subprocess.Popen at the end of the test."""
    _started.append(process)


@atexit.register
def _end_all():
    for process in _started:
        if process.poll() is None:
            process.kill()
            process.wait()


# Ends by exit(), which ends what was started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
