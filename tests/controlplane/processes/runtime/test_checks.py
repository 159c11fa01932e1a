"""Each check fails with one line and an advice that helps."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.processes.runtime.checks import (
    check_disk,
    check_port,
    check_python,
    lock_data,
    prepare_data,
    proxy_warning,
)
from controlplane.processes.runtime.errors import CheckFailed


def test_https_without_a_trusted_proxy_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_warning() == ""
    monkeypatch.setenv("WEIR_HTTPS", "1")
    assert "WEIR_TRUSTED_PROXIES" in proxy_warning()
    monkeypatch.setenv("WEIR_TRUSTED_PROXIES", "127.0.0.1")
    assert proxy_warning() == ""


def test_an_old_python_is_refused() -> None:
    """A .venv of an older Python may still stand there."""
    with pytest.raises(CheckFailed, match=r"Python 3\.10 is too old"):
        check_python((3, 10))
    check_python((3, 11))


def test_a_full_disk_is_told_in_gigabytes(tmp_path: Path) -> None:
    """Asking for more than any disk has stands for a disk that is full."""
    check_disk(tmp_path, needed=1)
    with pytest.raises(CheckFailed, match=r"Weir needs 1000000000\.0 GB") as caught:
        check_disk(tmp_path, needed=10**18)
    assert "WEIR_DATA" in caught.value.advice


def test_a_taken_port_names_its_process_and_a_free_port() -> None:
    """The advice can be pasted as it stands."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CheckFailed) as caught:
            check_port("127.0.0.1", port)
    assert f"(process {os.getpid()})" in str(caught.value)
    proposed = int(caught.value.advice.partition("WEIR_PORT=")[2].split()[0])
    check_port("127.0.0.1", proposed)


def test_a_host_that_is_not_ours_is_told() -> None:
    """192.0.2.0/24 is set aside for documentation: no machine has it."""
    with pytest.raises(CheckFailed, match=r"cannot listen on 192\.0\.2\.1"):
        check_port("192.0.2.1", 8000)


def test_a_data_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file in its place fails for root too, unlike a missing permission."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckFailed, match="cannot be written"):
        prepare_data(tmp_path / "file" / "data")


def test_a_second_run_on_the_same_data_is_refused_by_name(tmp_path: Path) -> None:
    """Two runs would share one database and one set of checkpoints."""
    program = (
        "import sys, pathlib; from controlplane.processes.runtime.checks import lock_data;"
        "lock_data(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(CheckFailed, match=f"process {holder.pid}"):
        lock_data(tmp_path)
    holder.kill()
    holder.communicate()
    os.close(lock_data(tmp_path))
