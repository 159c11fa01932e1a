"""A gateway of a broker for tests: it requires TLS, a client's certificate, or a login by SASL.

It is the server of Kafka's handshakes (PLAIN, SCRAM) and of TLS, which Tansu cannot be in memory,
and hands everything else to the broker, which names the gateway's address to clients.
"""

import base64
import hashlib
import hmac
import secrets
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from tests.support.topics import free_address, running_broker

_HANDSHAKE, _VERSIONS, _AUTHENTICATE = 17, 18, 36
_FAILED: Final = 58
_ITERATIONS: Final = 4096
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


@dataclass(frozen=True)
class Login:
    """A mechanism of SASL, and whom it lets in."""

    mechanism: str
    user: str
    password: str


class _Refused(Exception):
    """A client that may not enter."""


@contextmanager
def running_gateway(
    context: ssl.SSLContext | None = None, login: Login | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the addresses of a gateway and of the broker behind it, which requires nothing."""
    address = free_address()
    host, port = address.split(":")
    with running_broker(address) as broker:

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError, _Refused, struct.error):
                    client = self.request
                    if context is not None:
                        client = context.wrap_socket(client, server_side=True)
                    name, number = broker.split(":")
                    with client, socket.create_connection((name, int(number))) as server:
                        if login is not None:
                            _authenticate(client, server, login)
                        _join(client, server)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = allow_reuse_address = True

        with Server((host, int(port)), Handler) as gateway:
            threading.Thread(target=gateway.serve_forever, daemon=True).start()
            yield address, broker
            gateway.shutdown()


def _join(client: Any, server: Any) -> None:
    def pump(source: Any, target: Any) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    back = threading.Thread(target=pump, args=(server, client), daemon=True)
    back.start()
    pump(client, server)
    back.join()


def _frame(source: Any) -> bytes:
    (size,) = struct.unpack(">i", _exactly(source, 4))
    return _exactly(source, size)


def _exactly(source: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise _Refused
        data += part
    return data


def _sent(target: Any, frame: bytes) -> None:
    target.sendall(struct.pack(">i", len(frame)) + frame)


def _authenticate(client: Any, server: Any, login: Login) -> None:
    """Return once a client has logged in. Raises `_Refused`."""
    exchange = {"PLAIN": _plain, "OAUTHBEARER": _bearer}.get(login.mechanism, _scram)(login)
    next(exchange)
    while True:
        frame = _frame(client)
        key, version, number, name_size = struct.unpack_from(">hhih", frame)
        body = frame[10 + max(0, name_size) :]
        head = struct.pack(">i", number)
        if key == _VERSIONS:
            _sent(server, frame)
            _sent(client, _frame(server))
        elif key == _HANDSHAKE:
            error = 0 if body[2:].decode() == login.mechanism else 33
            mechanism = login.mechanism.encode()
            known = struct.pack(">hih", error, 1, len(mechanism)) + mechanism
            _sent(client, head + known)
        elif key == _AUTHENTICATE:
            try:
                answer, error = exchange.send(body[4:]), 0
            except _Refused:
                answer, error = b"", _FAILED
            lifetime = struct.pack(">q", 0) if version else b""
            content = struct.pack(">hhi", error, -1, len(answer)) + answer + lifetime
            _sent(client, head + content)
            if error:
                raise _Refused
            if exchange.gi_frame is None or next(exchange) == b"done":
                return
        else:
            raise _Refused


def _plain(login: Login) -> Any:
    token = yield b""
    if token != f"\0{login.user}\0{login.password}".encode():
        raise _Refused
    yield b""
    yield b"done"


def _bearer(login: Login) -> Any:
    token = yield b""
    if token != f"n,,\x01auth=Bearer {login.password}\x01\x01".encode():
        raise _Refused
    yield b""
    yield b"done"


def _scram(login: Login) -> Any:
    """Be the server of SCRAM (RFC 5802)."""
    kind = _HASHES[login.mechanism]
    first = (yield b"").decode()
    bare = first[3:]
    user, nonce = (part[2:] for part in bare.split(","))
    if user != login.user:
        raise _Refused
    salt, nonce = secrets.token_bytes(16), nonce + secrets.token_hex(8)
    challenge = f"r={nonce},s={base64.b64encode(salt).decode()},i={_ITERATIONS}"
    yield challenge.encode()
    final = (yield b"").decode()
    without, _, proof = final.rpartition(",p=")
    salted = hashlib.pbkdf2_hmac(kind, login.password.encode(), salt, _ITERATIONS)
    text = f"{bare},{challenge},{without}".encode()
    client_key = hmac.digest(salted, b"Client Key", kind)
    signature = hmac.digest(hashlib.new(kind, client_key).digest(), text, kind)
    expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    if base64.b64decode(proof) != expected:
        raise _Refused
    server_key = hmac.digest(salted, b"Server Key", kind)
    yield b"v=" + base64.b64encode(hmac.digest(server_key, text, kind))
    yield b"done"
