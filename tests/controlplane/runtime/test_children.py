"""The command lines that Weir starts, as they really run."""

import os
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from controlplane.runtime.children import web_command
from tests.controlplane.runtime.waiting import is_gone, wait_for
from tests.support.redis_server import free_port


def is_served(port: int) -> bool:
    """Tell whether somebody listens."""
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def test_workers_of_a_killed_web_end_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left behind, they would keep the port, and the next web could not start."""
    monkeypatch.setenv("WEIR_WEB_WORKERS", "2")
    environment = {**os.environ, "WEIR_DATA": str(tmp_path)}
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        web = subprocess.Popen(
            web_command("127.0.0.1", port), env=environment, stdout=log, stderr=log
        )
    try:
        wait_for(lambda: (tmp_path / "log").read_text().count("startup complete") == 2, 60)
        children = [one.pid for one in psutil.Process(web.pid).children()]
        assert is_served(port)
    finally:
        web.kill()
        web.wait()
    wait_for(lambda: all(map(is_gone, children)))
    assert not is_served(port)
