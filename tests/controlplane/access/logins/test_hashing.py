"""Hashes of passwords take the processor from nobody."""

import os
import threading
from typing import Any

import pytest
from django.contrib.auth.hashers import check_password, make_password
from django.test import override_settings

from controlplane.access.logins.hashing import NICENESS, YieldingPBKDF2Hasher

HASHER = "controlplane.access.logins.hashing.YieldingPBKDF2Hasher"


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
