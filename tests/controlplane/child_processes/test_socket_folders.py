"""The directory of an application's Unix domain sockets."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.child_processes import socket_folders as sockets


def test_a_socket_as_spark_names_it_fits_into_the_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A path may have 107 bytes: where the temporary directory is too long, another is used."""
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    found = sockets.own_directory()
    assert found is not None
    assert not Path(found).is_relative_to(long)
    assert Path(found).stat().st_mode & 0o077 == 0, "nobody else may connect"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{found}/.64704f48-8886-4e47-bd16-e127510d33d4.sock")


def test_directories_of_killed_applications_are_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Those of processes that live are left."""
    parent = Path("/tmp") / f"weir-test-{os.getpid()}"
    parent.mkdir()
    try:
        monkeypatch.setattr("tempfile.tempdir", str(parent))
        ended = subprocess.run([sys.executable, "-c", ""], check=True, capture_output=True)
        assert ended.returncode == 0
        gone = parent / "weir-sockets-4194304-abcdefgh"
        alive = parent / f"weir-sockets-{os.getppid()}-abcdefgh"
        for one in (gone, alive):
            one.mkdir()
        found = sockets.own_directory()
        assert found is not None
        assert not gone.exists()
        assert alive.exists()
        assert Path(found).parent == parent
    finally:
        subprocess.run(["rm", "-r", str(parent)], check=True)
