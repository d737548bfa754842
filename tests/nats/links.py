"""The way from a node to its servers, which a test can cut: a network namespace of the node's own where the machine allows it,
else a proxy that stops forwarding."""

import os
import random
import selectors
import socket
import subprocess
import threading
import time

import processes


def make(servers):
    """Returns a Namespace, or a Proxy where no namespace can be made. The servers must listen on all addresses."""
    try:
        return Namespace(servers)
    except (OSError, subprocess.CalledProcessError):
        return Proxy(servers)


class Namespace:
    """A network namespace with one pair of virtual interfaces."""

    kind = "network namespace"

    def __init__(self, servers):
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        processes.end_with_test(self.holder)  # the namespace and the interfaces go with it
        own = os.readlink("/proc/self/ns/net")
        until = time.monotonic() + 5
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:
            if self.holder.poll() is not None or time.monotonic() > until:
                raise OSError("no network namespace can be made")
            time.sleep(0.01)
        network = f"169.254.{random.randint(1, 254)}"
        third = 4 * random.randint(0, 62)
        self.outside = f"gy{self.holder.pid}o"
        inside = f"gy{self.holder.pid}i"
        self.address = f"{network}.{third + 1}"
        self._ip("link", "add", self.outside, "type", "veth", "peer", "name", inside)
        self._ip("link", "set", inside, "netns", str(self.holder.pid))
        self._ip("address", "add", f"{self.address}/30", "dev", self.outside)
        self._ip("link", "set", self.outside, "up")
        self._ip("address", "add", f"{network}.{third + 2}/30", "dev", inside, within=True)
        self._ip("link", "set", inside, "up", within=True)
        self.url = ",".join(f"nats://{self.address}:{server.port}" for server in servers)

    def _ip(self, *words, within=False):
        enter = ["nsenter", "--target", str(self.holder.pid), "--net"] if within else []
        subprocess.run([*enter, "ip", *words], check=True, capture_output=True)

    def wrap(self, command):
        """Returns the command that runs `command` behind the link."""
        return ["nsenter", "--target", str(self.holder.pid), "--net", *command]

    def cut(self):
        self._ip("link", "set", self.outside, "down")

    def mend(self):
        self._ip("link", "set", self.outside, "up")


class Proxy:
    """Forwards connections. What comes while it is cut waits, as it does in TCP."""

    kind = "proxy"

    def __init__(self, servers):
        self.selector = selectors.DefaultSelector()
        self.uncut = threading.Event()
        self.uncut.set()
        urls = []
        for server in servers:
            listener = socket.create_server((processes.HOST, 0))
            self.selector.register(listener, selectors.EVENT_READ, server.port)
            urls.append(f"nats://{processes.HOST}:{listener.getsockname()[1]}")
        self.url = ",".join(urls)
        threading.Thread(target=self._forward, daemon=True).start()

    def wrap(self, command):
        return command

    def cut(self):
        self.uncut.clear()

    def mend(self):
        self.uncut.set()

    def _forward(self):
        while True:
            for key, _ in self.selector.select():
                self.uncut.wait()
                if isinstance(key.data, int):
                    self._connect(key.fileobj, key.data)
                else:
                    self._pass_on(key.fileobj, key.data)

    def _connect(self, listener, port):
        near, _ = listener.accept()
        try:
            far = socket.create_connection((processes.HOST, port))
        except OSError:
            near.close()
            return
        self.selector.register(near, selectors.EVENT_READ, far)
        self.selector.register(far, selectors.EVENT_READ, near)

    def _pass_on(self, source, target):
        try:
            data = source.recv(1 << 16)
            target.sendall(data)
        except OSError:
            data = b""
        if not data:
            for end in (source, target):
                if end in self.selector.get_map():
                    self.selector.unregister(end)
                end.close()
