"""What other users of the machine can read of a running Weir: no secret."""

import os
import stat
from pathlib import Path

import pytest
import redis

from tests.end_to_end.conftest import SPARK_SECRET
from tests.support.running_weir import RunningWeir

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def secrets(weir: RunningWeir) -> dict[str, str]:
    """The secrets of the running Weir by name; each is long enough to be no accident."""
    folder = weir.data / "secrets"
    names = ("redis_password", "secret_key", "demo_token")
    files = {name: (folder / name).read_text().strip() for name in names}
    known = {**files, "login": weir.login()[1], "spark": SPARK_SECRET}
    assert all(len(secret) >= 19 for secret in known.values())
    return known


def test_no_command_line_has_a_secret(weir: RunningWeir, secrets: dict[str, str]) -> None:
    """Those of Redis, the driver, its JVM and its Python workers among them."""
    lines = [" ".join(process.cmdline()) for process in weir.processes()]
    for part in ("redis-server", "workers.pipeline", "SparkSubmit", "workers.demo.replay"):
        assert any(part in line for line in lines), part
    for name, secret in secrets.items():
        assert [line for line in lines if secret in line] == [], name


def test_nothing_but_the_files_of_secrets_has_one(
    weir: RunningWeir, secrets: dict[str, str]
) -> None:
    """Logs, database and its audit log, checkpoints, the log in Redis."""
    own = {weir.data / "secrets", weir.data / "redis" / "redis.conf"}
    files = [path for path in _files(weir.data) if not own & {path, *path.parents}]
    assert {"web-1.log", "agent.log", "driver-sf.log", "db.sqlite3"} <= {
        path.name for path in files
    }
    for path in files:
        # Some disappear meanwhile: checkpoints.
        content = path.read_bytes() if path.exists() else b""
        assert [name for name, secret in secrets.items() if secret.encode() in content] == [], path


def test_other_users_cannot_read_the_data_directory(weir: RunningWeir) -> None:
    places = [weir.data, *(Path(folder) for folder, _, _ in os.walk(weir.data))]
    modes = {
        path: stat.S_IMODE(path.lstat().st_mode)
        for path in (*places, *_files(weir.data))
        if path.exists()
    }
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


def test_another_user_of_the_machine_gets_nothing_from_redis(weir: RunningWeir) -> None:
    with redis.Redis.from_url(weir.redis_url()) as client:
        port = client.connection_pool.connection_kwargs["port"]
        assert client.ping()
    with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.keys()


def _files(data: Path) -> list[Path]:
    """Return all regular files of a directory."""
    return [
        Path(folder) / name
        for folder, _, names in os.walk(data)
        for name in names
        if not (Path(folder) / name).is_symlink()
    ]
