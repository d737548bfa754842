"""A client of NATS in Python's own library, for tests: they need no package, and see messages as they are sent."""

import base64
import collections
import json
import os
import select
import socket
import time

Message = collections.namedtuple("Message", "subject reply headers status body")
Message.__doc__ = """A message received. headers: a list of values for each name. status: 503 if nobody listens; else 0."""


class JetStreamError(Exception):
    """JetStream refused a request. code: its error code, such as 10071, a wrong last sequence."""

    def __init__(self, error):
        super().__init__(f"{error.get('description')} (code {error.get('err_code')})")
        self.code = error.get("err_code")


class Connection:
    """One connection, for one thread. It does not reconnect."""

    def __init__(self, host, port, timeout=10, tls=None, sign=None, **options):
        """tls: an ssl.SSLContext. sign: returns the signature of the server's nonce, for jwt in options. options: more for the protocol's CONNECT, such as user and pass, by its names."""
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.at = bytearray(), 0
        self.received = collections.deque()
        self.subscriptions = 0
        self.inbox = "_INBOX." + os.urandom(8).hex()
        self.requests = 0
        self.buckets = set()  # those that are known to be made
        if (line := self._line(time.monotonic() + timeout)) is None:
            raise TimeoutError(f"the server at {host}:{port} said nothing")
        self.info = json.loads(line.removeprefix(b"INFO "))
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        if sign:
            options["sig"] = sign(self.info["nonce"])
        options = {"verbose": False, "headers": True, "no_responders": True, "protocol": 1, "name": "test", **options}
        self.socket.sendall(b"CONNECT " + json.dumps(options).encode() + b"\r\n")
        self.inbox_subscription = self.subscribe(self.inbox + ".*")
        self.flush(timeout)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def subscribe(self, subject, queue=""):
        """Returns the subscription's number, for unsubscribe(). Its messages come by next()."""
        self.subscriptions += 1
        self.socket.sendall(f"SUB {subject} {queue} {self.subscriptions}\r\n".encode())
        return self.subscriptions

    def unsubscribe(self, subscription):
        self.socket.sendall(f"UNSUB {subscription}\r\n".encode())

    def publish(self, subject, body=b"", headers=None, reply=""):
        """headers: a value, or a list of values, for each name."""
        self.socket.sendall(encode(subject, body, headers, reply))

    def flush(self, timeout=10):
        """Waits until the server has processed all that was sent."""
        self.socket.sendall(b"PING\r\n")
        until = time.monotonic() + timeout
        kept = []
        while (message := self._read(until)) != "PONG":
            if message is None:
                raise TimeoutError("the server did not answer a PING")
            kept.append(message)
        self.received.extend(kept)

    def next(self, timeout=10):
        """Returns the next message, or None after the timeout. Raises ConnectionError if the connection is lost."""
        if self.received:
            return self.received.popleft()
        until = time.monotonic() + timeout
        while (message := self._read(until)) == "PONG":
            pass
        return message

    def request(self, subject, body=b"", headers=None, timeout=10):
        """Returns the reply. Raises TimeoutError. Messages of other subscriptions stay for next()."""
        self.requests += 1
        inbox = f"{self.inbox}.{self.requests}"
        self.publish(subject, body, headers, inbox)
        until = time.monotonic() + timeout
        while (message := self._read(until)) is not None:
            if message != "PONG" and message.subject == inbox:
                return message
            # The reply to a request that timed out is nobody's.
            if message != "PONG" and not message.subject.startswith(self.inbox):
                self.received.append(message)
        raise TimeoutError(f"no reply on {subject} within {timeout} s")

    def jet_stream(self, name, request=None, timeout=10):
        """Returns the reply to $JS.API.NAME as a dict. Raises JetStreamError."""
        body = json.dumps(request).encode() if request is not None else b""
        message = self.request("$JS.API." + name, body, timeout=timeout)
        if message.status == 503:
            raise JetStreamError({"description": "the server has no JetStream"})
        reply = json.loads(message.body)
        if "error" in reply:
            raise JetStreamError(reply["error"])
        return reply

    def publish_to_stream(self, subject, body=b"", headers=None, timeout=10):
        """Returns JetStream's acknowledgement as a dict: stream, seq, duplicate. Raises JetStreamError."""
        message = self.request(subject, body, headers, timeout)
        if message.status == 503:
            raise JetStreamError({"description": f"no stream has the subject {subject}"})
        reply = json.loads(message.body)
        if "error" in reply:
            raise JetStreamError(reply["error"])
        return reply

    def create_bucket(self, bucket, replicas=1):
        self.jet_stream(
            f"STREAM.CREATE.KV_{bucket}",
            {
                "name": f"KV_{bucket}", "subjects": [f"$KV.{bucket}.>"], "max_msgs_per_subject": 1, "storage": "file",
                "allow_rollup_hdrs": True, "deny_delete": True, "allow_direct": True, "num_replicas": replicas,
                "discard": "new",
            },
        )

    def put(self, bucket, key, value):
        """Returns the entry's revision."""
        return self.publish_to_stream(f"$KV.{bucket}.{key}", value.encode())["seq"]

    def get(self, bucket, key):
        """Returns an entry's value and revision; None and 0 if bucket or entry are not there."""
        by_subject = {"last_by_subj": f"$KV.{bucket}.{key}"}
        try:
            if bucket not in self.buckets and not self._is_made(bucket, by_subject):
                return None, 0
            message = self.jet_stream(f"STREAM.MSG.GET.KV_{bucket}", by_subject)["message"]
        except JetStreamError as error:
            if error.code in (10037, 10059):  # no message found, stream not found
                return None, 0
            raise
        if b"KV-Operation" in base64.b64decode(message.get("hdrs", "")):
            return None, message["seq"]
        return base64.b64decode(message.get("data", "")).decode(), message["seq"]

    def _is_made(self, bucket, by_subject):
        """Returns true once the server has made all of a bucket: nats-server 2.9.10 ends with a nil pointer if it is asked
        for a message, by MSG.GET, while it makes the stream. A direct get has no reply then."""
        self.jet_stream(f"STREAM.INFO.KV_{bucket}")
        try:
            self.request(f"$JS.API.DIRECT.GET.KV_{bucket}", json.dumps(by_subject).encode(), timeout=0.5)
        except TimeoutError:
            return False
        self.buckets.add(bucket)
        return True

    def _fill(self, until):
        left = until - time.monotonic()
        decrypted = getattr(self.socket, "pending", int)()  # bytes that TLS has read already
        if not decrypted and (left <= 0 or not select.select([self.socket], [], [], left)[0]):
            return False
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection")
        del self.buffer[: self.at]
        self.at = 0
        self.buffer += data
        return True

    def _line(self, until):
        """Returns the next line. None at the time limit: nothing of it was taken."""
        while (end := self.buffer.find(b"\r\n", self.at)) < 0:
            if not self._fill(until):
                return None
        line = bytes(self.buffer[self.at : end])
        self.at = end + 2
        return line

    def _read(self, until):
        """Returns a Message, "PONG", or None at the time limit."""
        while (line := self._line(until)) is not None:
            if line.startswith((b"MSG ", b"HMSG ")):
                return self._message(line.decode().split(" "))
            if line == b"PING":
                self.socket.sendall(b"PONG\r\n")
            elif line == b"PONG":
                return "PONG"
            elif line.startswith(b"-ERR"):
                raise ConnectionError(line.decode())
        return None

    def _message(self, words):
        header_size = int(words[-2]) if words[0] == "HMSG" else 0
        size = int(words[-1])
        reply = words[3] if len(words) == (6 if header_size else 5) else ""
        while len(self.buffer) - self.at < size + 2:
            if not self._fill(time.monotonic() + 10):
                raise ConnectionError("half a message came")
        middle, end = self.at + header_size, self.at + size
        head, body = bytes(self.buffer[self.at : middle]), bytes(self.buffer[middle:end])
        self.at = end + 2
        headers, status = {}, 0
        if header_size:
            first, *lines = head.decode().rstrip("\r\n").split("\r\n")
            status = int(first.split()[1]) if " " in first else 0
            for line in lines:
                name, _, value = line.partition(":")
                headers.setdefault(name, []).append(value.strip())
        return Message(words[1], reply, headers, status, body)


def encode(subject, body=b"", headers=None, reply=""):
    """Returns the bytes that publish a message."""
    if not headers:
        return f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n"
    lines = ["NATS/1.0\r\n"]
    for name, values in headers.items():
        for value in [values] if isinstance(values, str) else values:
            lines.append(f"{name}: {value}\r\n")
    head = "".join(lines).encode() + b"\r\n"
    return f"HPUB {subject} {reply} {len(head)} {len(head) + len(body)}\r\n".encode() + head + body + b"\r\n"
