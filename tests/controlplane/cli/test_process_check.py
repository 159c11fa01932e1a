"""`weir process NAME --check`: the heartbeat of this host, or of the site where one is enough."""

from argparse import Namespace
from pathlib import Path

import pytest

from controlplane.cli.commands.site import process
from controlplane.connections import redis_client
from controlplane.processes.runtime.beats import BEATS, beat
from controlplane.processes.runtime.leases import holder_of


@pytest.mark.parametrize(
    ("name", "instance", "code"),
    [
        ("relay", "", 1), ("relay", "another-host", 1), ("relay", "own", 0), ("relay", "relay", 0),
        ("agent", "another-host", 1), ("agent", "own", 0), ("worker", "worker@weir", 0),
    ],
)  # fmt: skip
def test_the_heartbeat_of_a_process_that_several_hosts_have_is_its_own(
    name: str, instance: str, code: int, redis_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("WEIR_DATA", str(tmp_path))
    monkeypatch.setenv("REDIS_URL", redis_url)
    client = redis_client()
    client.delete(BEATS)
    if instance:
        beat(client, name, holder_of(tmp_path) if instance == "own" else instance)
    assert process(Namespace(name=name, check=True)) == code
