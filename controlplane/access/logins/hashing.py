"""Hashing of passwords in one thread of low priority.

A hash takes half a second of a core. One thread per process computes all of them (log-in, change of
a password, the admin), so sixteen clients that log in take no more of the machine than two, and
the scheduler prefers the threads that answer pages. OpenSSL releases the interpreter meanwhile.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from django.contrib.auth.hashers import PBKDF2PasswordHasher

NICENESS: Final = 10


def _yield_to_pages() -> None:
    # Linux has a priority per thread. Elsewhere the number of threads alone bounds the work.
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_THREAD: Final = ThreadPoolExecutor(1, "password-hashing", initializer=_yield_to_pages)


class YieldingPBKDF2Hasher(PBKDF2PasswordHasher):
    """Django's PBKDF2 with its parameters and encoded form, computed in the thread."""

    def encode(self, password: str, *parts: Any) -> str:
        """Return the encoded hash of a password; wait for the hashes before it."""
        return _THREAD.submit(super().encode, password, *parts).result()
