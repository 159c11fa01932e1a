"""What Weir does when something is lost: real processes, and records of tide gauges.

The tests follow each other on one Weir, as Spark's starts take most of the time. Each begins and
ends with every window of every query right.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.end_to_end.gauges import Coast, Disk
from tests.support.running_weir import RunningWeir

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly("losses"),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts file systems"),
]

# From the moment that Spark's process stops to the start of the next one, on default settings.
NOTICED_S = 90.0


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Disk]]:
    """A disk for the data directory, which a start wants 2 GB of, and one for checkpoints."""
    folder = tmp_path_factory.mktemp("disks")
    made = {"data": Disk(folder / "data", 3000), "checkpoints": Disk(folder / "checkpoints", 400)}
    yield made
    for disk in made.values():
        disk.end()


@pytest.fixture(scope="module")
def coast(disks: dict[str, Disk]) -> Iterator[Coast]:
    """A Weir without any demonstration, whose queries have a closed window and an open one."""
    environment = {"WEIR_DEMO": "0", "WEIR_CHECKPOINTS": str(disks["checkpoints"].path)}
    weir = RunningWeir(disks["data"].path / "weir", environment)
    # What it says is kept elsewhere: on the full disk it could not be written.
    weir.output = disks["data"].path.with_name("weir.out")
    weir.start()
    try:
        coast = Coast(weir)
        coast.begin()
        for window in range(3):
            coast.send(window)
        coast.wait(coast.is_right)
        yield coast
    finally:
        weir.end()


def known(coast: Coast) -> set[int]:
    """Return the numbers of the incidents so far."""
    return {one["id"] for one in coast.health()["incidents"]}


def incident(coast: Coast, kind: str, before: set[int]) -> dict[str, Any]:
    """Wait until another incident of a kind is recorded, and return it."""

    def found() -> list[dict[str, Any]]:
        rows = coast.health().get("incidents", ())
        return [one for one in rows if one["kind"] == kind and one["id"] not in before]

    coast.wait(found)
    (newest,) = found()
    assert newest["lost"]
    assert newest["done"]
    page = coast.page()
    assert all(text in page for text in (*newest["lost"], *newest["done"]))
    return newest


def goes_on(coast: Coast) -> None:
    """Send further records of an open window and wait until all windows are right."""
    coast.send(2)
    coast.wait(coast.is_right)
    coast.wait(lambda: coast.state() in {"running", "catching up"})


def test_a_stopped_jvm_is_noticed_and_restarted(
    coast: Coast, record_property: Callable[[str, object], None]
) -> None:
    """While records come; the reason is kept and shown, and no record is lost or doubled."""
    first = coast.jvm()
    assert first is not None
    with coast.flow(2):
        first.send_signal(signal.SIGSTOP)
        stopped_at = time.monotonic()
        coast.wait(lambda: (found := coast.jvm()) is not None and found.pid != first.pid)
        seconds = time.monotonic() - stopped_at
        record_property("seconds", seconds)
        assert seconds < NOTICED_S
        death = coast.health()["restarts"][0]
        assert death["cause"] in {"jvm-silent", "no-progress"}
        assert death["cause"] in coast.page()
        assert death["detail"] in coast.page()
    goes_on(coast)


def test_redis_that_is_emptied_while_it_runs(coast: Coast) -> None:
    """Open windows are written again by the nodes; closed ones are on disk."""
    coast.wait(lambda: (coast.health().get("progress") or {}).get("unread") is not None)
    before = known(coast)
    with redis.Redis.from_url(coast.weir.redis_url()) as client:
        client.flushall()
    found = incident(coast, "redis-lost", before)
    assert "records that no micro-batch had read" in found["lost"][0]
    coast.wait(coast.is_right)
    goes_on(coast)


def test_redis_that_is_emptied_while_all_is_stopped(coast: Coast) -> None:
    before = known(coast)
    assert coast.weir.interrupt() == 0
    shutil.rmtree(coast.weir.data / "redis")
    coast.weir.start()
    incident(coast, "redis-lost", before)
    coast.wait(coast.is_right)
    goes_on(coast)


def test_a_checkpoint_that_is_removed(coast: Coast, disks: dict[str, Disk]) -> None:
    """Under the running driver: results before it and after it add up."""
    before = known(coast)
    (checkpoint,) = Path(disks["checkpoints"].path).glob("coast-*[0-9]")
    shutil.rmtree(checkpoint)
    found = incident(coast, "checkpoint-lost", before)
    assert "states of 2 queries" in found["lost"][0]
    goes_on(coast)


def test_a_full_disk_of_checkpoints(coast: Coast, disks: dict[str, Disk]) -> None:
    """The cause is named, and there is nothing to do but to make room."""

    def deaths() -> list[dict[str, Any]]:
        return [one for one in coast.health().get("restarts", ()) if one["cause"] == "disk-full"]

    with disks["checkpoints"].full():
        coast.send(2)
        coast.wait(deaths)
        page = coast.page()
        assert "disk-full" in page
        assert f"The disk of {disks['checkpoints'].path} is full" in page
    goes_on(coast)


def test_a_full_disk_of_the_data_directory(coast: Coast, disks: dict[str, Disk]) -> None:
    """Neither the database nor Redis takes a write; every page says so."""
    assert coast.page()  # logged in: a session cannot be saved on a full disk
    with disks["data"].full():
        coast.wait(lambda: f"The disk of {coast.weir.data} is full" in coast.page())
        coast.wait(lambda: "starting it again in 10 s" in coast.weir.said())
        assert [one["path"] for one in coast.health()["full_disks"]] == [str(coast.weir.data)]
        assert coast.weir.process is not None
        # Four deaths within a minute would end Weir.
        ends = coast.weir.said().count("starting it again in 10 s") + 6
        coast.wait(lambda: coast.weir.said().count("starting it again in 10 s") >= ends)
        assert coast.weir.process.poll() is None
    goes_on(coast)
