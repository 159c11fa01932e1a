"""Sixteen clients that log in: they wait in turn, hold no thread, and are bounded."""

import asyncio
import os
import threading
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.hashers import check_password, make_password
from django.test import override_settings

from controlplane.logins import login_queue
from controlplane.logins.hashing import NICENESS, YieldingPBKDF2Hasher
from controlplane.logins.login_queue import LoginQueue

HASHER = "controlplane.logins.hashing.YieldingPBKDF2Hasher"


class Door:
    """An application that answers a log-in when it is let to, and counts those inside."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.inside = self.most = 0
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.bodies.append((await receive())["body"] if scope["method"] == "POST" else b"")
        if scope["path"] == "/login/":
            await self.open.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        self.inside -= 1


async def ask(
    queue: LoginQueue, address: str, path: str = "/login/", *, body: bytes = b"a=1"
) -> Any:
    scope = {"type": "http", "method": "POST", "path": path, "client": (address, 1)}
    peer: Any = ApplicationCommunicator(queue, scope)  # type: ignore[no-untyped-call]
    await peer.send_input({"type": "http.request", "body": body, "more_body": False})
    return peer


async def status(peer: Any) -> int:
    return int((await peer.receive_output(timeout=60))["status"])


async def test_logins_wait_in_turn_and_pages_do_not() -> None:
    door = Door()
    queue = LoginQueue(door, frozenset({"/login/"}))
    waiting = [await ask(queue, f"192.0.2.{number}") for number in range(16)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert await status(await ask(queue, "192.0.2.99", "/elsewhere/")) == 200
    door.open.set()
    assert [await status(peer) for peer in waiting] == [200] * 16
    # A log-in and the page; never two log-ins.
    assert door.most == 2
    assert door.bodies.count(b"a=1") == 17


async def test_more_than_the_bounds_are_refused() -> None:
    """By address (429), and altogether (503); a body that is too large holds no place."""
    door = Door()
    queue = LoginQueue(door, frozenset({"/login/"}))
    of_one = [await ask(queue, "192.0.2.1") for _ in range(login_queue.MAX_WAITING_OF_ADDRESS)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert await status(await ask(queue, "192.0.2.1")) == 429
    assert (
        await status(await ask(queue, "192.0.2.2", body=b"x" * (login_queue.MAX_BODY + 1))) == 413
    )
    others = login_queue.MAX_WAITING - login_queue.MAX_WAITING_OF_ADDRESS
    more = [await ask(queue, f"198.51.100.{number}") for number in range(others)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert await status(await ask(queue, "203.0.113.1")) == 503
    door.open.set()
    assert [await status(peer) for peer in of_one + more] == [200] * login_queue.MAX_WAITING


def test_hashes_are_computed_by_one_thread_of_low_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever hashes; the encoded form is Django's own."""
    threads = set()
    plain = YieldingPBKDF2Hasher.__mro__[1].encode  # type: ignore[attr-defined]

    def encode(self: Any, password: str, salt: str, iterations: int | None = None) -> str:
        thread = threading.get_native_id()
        threads.add((thread, os.getpriority(os.PRIO_PROCESS, thread)))
        return str(plain(self, password, salt, 10))

    monkeypatch.setattr("django.contrib.auth.hashers.PBKDF2PasswordHasher.encode", encode)
    with override_settings(PASSWORD_HASHERS=[HASHER]):
        encoded = [make_password("secret") for _ in range(3)]
    assert len(threads) == 1
    (thread, niceness) = threads.pop()
    assert thread != threading.get_native_id()
    assert niceness >= NICENESS
    monkeypatch.undo()
    assert encoded[0].startswith("pbkdf2_sha256$10$")
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.PBKDF2PasswordHasher"]):
        assert check_password("secret", encoded[0])
