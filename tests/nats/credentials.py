"""Accounts and users of a NATS server as `nsc` makes them: signed claims (JWT), whose keys Ed25519 makes (openssl)."""

import base64
import binascii
import json
import pathlib
import subprocess

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0, 20 << 3, 18 << 3  # first bytes, which make the first letters O, A, U, S


def openssl(*arguments, data=b""):
    return subprocess.run(["openssl", *arguments], input=data, check=True, capture_output=True).stdout


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """A key pair of an operator, an account, or a user."""

    def __init__(self, kind, folder, name):
        self.kind = kind
        self.file = pathlib.Path(folder) / f"{name}.pem"
        openssl("genpkey", "-algorithm", "ed25519", "-out", str(self.file))
        self.private = openssl("pkey", "-in", str(self.file), "-outform", "DER")[-32:]
        self.raw_public = openssl("pkey", "-in", str(self.file), "-pubout", "-outform", "DER")[-32:]

    @staticmethod
    def _text(data):
        return base64.b32encode(data + binascii.crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")

    @property
    def public(self):
        return self._text(bytes([self.kind]) + self.raw_public)

    @property
    def seed(self):
        return self._text(bytes([SEED | self.kind >> 5, (self.kind & 31) << 3]) + self.private)

    def sign(self, data):
        file = self.file.with_suffix(".signed")
        file.write_bytes(data)
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", str(self.file), "-in", str(file))

    def claims(self, subject, name, content):
        """Returns claims of `subject`, another key or this one, that this key signs."""
        head = base64url(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        body = {"jti": name, "iat": 1700000000, "iss": self.public, "name": name, "sub": subject.public, "nats": content}
        signed = f"{head}.{base64url(json.dumps(body).encode())}"
        return f"{signed}.{base64url(self.sign(signed.encode()))}"


class Account:
    """An operator with one account. `config` is a server's configuration that knows it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        operator, system = Key(OPERATOR, folder, "operator"), Key(ACCOUNT, folder, "system")
        self.key = Key(ACCOUNT, folder, "account")
        none = {"subs": -1, "data": -1, "payload": -1}
        all_of_it = {**none, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
        storage = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
        self.config = f"""
operator: "{operator.claims(operator, 'operator', {'type': 'operator', 'version': 2, 'system_account': system.public})}"
system_account: {system.public}
resolver: MEMORY
resolver_preload: {{
  {system.public}: "{operator.claims(system, 'system', {'type': 'account', 'version': 2, 'limits': all_of_it})}"
  {self.key.public}: "{operator.claims(self.key, 'account', {'type': 'account', 'version': 2,
                                                             'limits': {**all_of_it, **storage}})}"
}}
"""

    def user(self, name, permissions=None):
        """Makes a user. Returns the path of its credentials, and what wire.Connection needs to be it.

        permissions: {"pub": {"allow": [subjects]}, "sub": …}, by default all."""
        key = Key(USER, self.folder, name)
        content = {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, **(permissions or {})}
        claims = self.key.claims(key, name, content)
        file = self.folder / f"{name}.creds"
        file.write_text(
            f"-----BEGIN NATS USER JWT-----\n{claims}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{key.seed}\n------END USER NKEY SEED------\n"
        )
        return file, {"jwt": claims, "sign": lambda nonce: base64url(key.sign(nonce.encode()))}
