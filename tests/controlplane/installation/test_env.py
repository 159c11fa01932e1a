"""A wrong value of the environment is told by name; secrets are written once."""

import os
import re
from pathlib import Path

import pytest

from controlplane.installation import env


@pytest.mark.parametrize(
    ("value", "wanted"), [("many", "whole number"), ("0", "from 1 to 9"), ("10", "from 1 to 9")]
)
def test_a_bad_number_is_told_by_name(
    monkeypatch: pytest.MonkeyPatch, value: str, wanted: str
) -> None:
    """Whoever set it must find it."""
    monkeypatch.setenv("WEIR_N", value)
    with pytest.raises(env.EnvironmentValueError, match=f"WEIR_N.*{wanted}"):
        env.integer("WEIR_N", 5, minimum=1, maximum=9)


def test_a_blank_value_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty line of an env file is not a value."""
    monkeypatch.setenv("WEIR_N", "  ")
    assert env.integer("WEIR_N", 5) == 5


def test_a_switch_takes_words_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """`maybe` must not silently be off."""
    monkeypatch.setenv("WEIR_F", "Yes")
    assert env.flag("WEIR_F")
    monkeypatch.setenv("WEIR_F", "maybe")
    with pytest.raises(env.EnvironmentValueError):
        env.flag("WEIR_F")


def test_a_url_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """http:// is not a Redis."""
    monkeypatch.setenv("REDIS_URL", "http://localhost")
    with pytest.raises(env.EnvironmentValueError):
        env.redis_url()


def test_the_secret_key_is_made_once_and_private(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sessions survive a restart."""
    monkeypatch.delenv("WEIR_SECRET_KEY", raising=False)
    first = env.secret_key(tmp_path)
    assert env.secret_key(tmp_path) == first
    file = tmp_path / "secrets" / "secret_key"
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("WEIR_SECRET_KEY", "given")
    assert env.secret_key(tmp_path) == "given"


@pytest.mark.parametrize(
    "word",
    ["redis://10.0.0.0/8", "redis://10.0.0.0/8:0", "redis://10.0.0.0/8:9-8", "kafka://a:70000",
     "kafka://fd00::/8:443", "10.0.0.0/8:443", "kafka://10.0.0.1:a", "kafka://127.1:9092",
     "redis://0x7f.1:1", "redis://2130706433:1", "ftp://a:21", "kafka://a:1,b:1", "unix:relative",
     "spark://", "redis://10.0.0.0/33:1", "redis://*:6379", "Yarn"],
)  # fmt: skip
def test_a_destination_without_protocol_host_and_ports_is_refused(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name and the value are in the message."""
    monkeypatch.setenv("WEIR_DESTINATIONS", f"kafka://broker-1:9092 {word}")
    with pytest.raises(env.EnvironmentValueError, match=f"WEIR_DESTINATIONS='{re.escape(word)}'"):
        env.set_destinations("", "redis://127.0.0.1:6390/0")


@pytest.mark.parametrize(
    ("redis", "place"),
    [("redis://:pw@127.0.0.1:6390/0", "redis://127.0.0.1:6390"), ("rediss://r", "rediss://r:6379"),
     ("redis://[::1]:7/1", "redis://[::1]:7"), ("unix:///r.sock?db=1", "unix:///r.sock")],
)  # fmt: skip
def test_the_redis_of_the_site_is_a_destination(
    redis: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the environment of child processes, which set it again."""
    monkeypatch.setenv("WEIR_DESTINATIONS", " yarn ")
    monkeypatch.setenv("WEIR_DESTINATIONS_LIST", "")
    for _ in range(2):
        env.set_destinations("unused", redis)
        assert os.environ["WEIR_DESTINATIONS_LIST"] == f"yarn {place}"


def test_an_installed_package_keeps_its_data_in_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not in its own folder, as the repository does."""
    monkeypatch.delenv("WEIR_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert env.data_dir() == env.ROOT / ".weir"
    monkeypatch.setattr(env, "ROOT", tmp_path / "site-packages")
    assert env.data_dir() == tmp_path / ".local" / "share" / "weir"


def test_the_secret_key_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All hosts of a site have the same one."""
    monkeypatch.delenv("WEIR_SECRET_KEY", raising=False)
    (tmp_path / "key").write_text("from-a-file\n")
    monkeypatch.setenv("WEIR_SECRET_KEY_FILE", str(tmp_path / "key"))
    assert env.secret_key(tmp_path) == "from-a-file"
