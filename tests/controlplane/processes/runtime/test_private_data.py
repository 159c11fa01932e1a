"""Passwords and files that other users of the machine cannot read."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
import redis

from controlplane.installation import env
from controlplane.processes.runtime.checks import restrict
from controlplane.processes.runtime.redis_server import answers, find_server
from controlplane.wire.redaction import without_password


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_weirs_redis_requires_a_password_that_its_command_line_does_not_have(
    tmp_path: Path,
) -> None:
    """Every user of the machine reaches its port and reads its command line."""
    (tmp_path / "redis").mkdir()
    own = find_server(os.environ, tmp_path / "redis", print)
    command = own.command()
    assert own.password
    assert own.password not in " ".join(command) + repr(own)
    assert _mode(Path(command[-1])) == 0o600
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while not answers(own.url):
                assert server.poll() is None
            with (
                redis.Redis(port=own.port) as stranger,
                pytest.raises(redis.AuthenticationError),
            ):
                stranger.ping()
        finally:
            server.terminate()
    assert find_server(os.environ, tmp_path / "redis", print).password == own.password


def test_commands_on_this_machine_read_the_url_of_weirs_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has the password; a variable, or the file that it names, takes precedence."""
    monkeypatch.setenv("WEIR_DATA", str(tmp_path))
    monkeypatch.delenv("REDIS_URL", raising=False)
    env.write_private(env.redis_url_file(tmp_path), "redis://:own@127.0.0.1:1/0")
    assert env.redis_url() == "redis://:own@127.0.0.1:1/0"
    assert env.external_redis_url() is None
    env.write_private(tmp_path / "url", "redis://:other@127.0.0.1:1/0\n")
    monkeypatch.setenv("REDIS_URL_FILE", str(tmp_path / "url"))
    assert env.external_redis_url() == env.redis_url() == "redis://:other@127.0.0.1:1/0"


def test_a_refused_variable_is_shown_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is printed at the start and logged."""
    monkeypatch.setenv("REDIS_URL", "http://:pass-word@127.0.0.1/0")
    with pytest.raises(env.EnvironmentValueError) as refused:
        env.redis_url()
    assert "pass-word" not in str(refused.value)


def test_other_users_lose_their_permissions_on_an_existing_data_directory(tmp_path: Path) -> None:
    """The target of a link belongs to somebody else."""
    outside = tmp_path / "outside"
    outside.write_text("")
    outside.chmod(0o644)
    data = tmp_path / "data"
    (data / "checkpoints" / "sf").mkdir(parents=True)
    file, tool, link = data / "checkpoints" / "sf" / "0", data / "java", data / "link"
    file.write_text("")
    tool.write_text("")
    for path, mode in ((data, 0o755), (file.parent, 0o755), (file, 0o644), (tool, 0o755)):
        path.chmod(mode)
    link.symlink_to(outside)
    restrict(data)
    assert [_mode(path) for path in (data, file.parent, file, tool, outside)] == [
        0o700, 0o700, 0o600, 0o700, 0o644,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "url",
    [
        "redis://:pw-1@h:6379/0",
        "rediss://user:pw-1@h/0",
        "redis://:a@pw-1@h/0",
        "unix:///run/redis.sock?password=pw-1",
        "kafka://user:pw-1@b:9092,c:9092/topic?lost=skip",
        "postgresql://weir:pw-1@db/weir?sslmode=require",
        "no answer from redis://:pw-1@h:6379/0: refused",
    ],
)
def test_no_shown_url_has_its_password(url: str) -> None:
    """URLs are in pages, exports, the audit log and messages."""
    shown = without_password(url)
    assert "pw-1" not in shown
    assert "***" in shown
    assert without_password("https://h:80/a@b?x=1") == "https://h:80/a@b?x=1"
