"""The agent removes the checkpoints of deleted clusters, of these alone."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from workers.agent.driver import MARK, Site
from workers.agent.removal import Removal, remove_checkpoints
from workers.pipeline.checkpoints.files import exclusive_lock

# The checkpoints of sf; of sf with another log, with what a change of partitions left; set aside.
OWN = ("sf-4", "sf-4-0123abcd", "sf-4-0123abcd.swap", "sf-4.older-20260101-000000")
# Of the clusters sf-2, sfo, sf-2-0123abcd and asf.
OTHERS = ("sf-2-3", "sfo-3", "sf-2-0123abcd-3", "asf-4")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with checkpoints of several clusters."""
    for name in (*OWN, *OTHERS):
        (tmp_path / "checkpoints" / name / "offsets").mkdir(parents=True)
    return Site(tmp_path, "redis://unused", {})


def left(site: Site) -> set[str]:
    return {path.name for path in (site.data / "checkpoints").iterdir()}


def test_only_the_checkpoints_of_the_cluster_are_removed(site: Site) -> None:
    remove_checkpoints(site, "sf")
    assert left(site) == set(OTHERS)


def test_a_slug_is_confirmed_once_its_checkpoints_are_removed(site: Site) -> None:
    """Not while a process holds a checkpoint."""
    confirmed = list[str]()
    removal = Removal(site, lambda: ["sf"], confirmed.append)
    with exclusive_lock(site.checkpoint("sf")):
        removal.step(["sf"], 1.0)
        removal.step(["sf"], 2.0)
        assert set(OTHERS) | set(OWN) <= left(site)
    # Failed attempts are repeated after a minute.
    removal.step(["sf"], 3.0)
    assert confirmed == []
    removal.step(["sf"], 70.0)
    assert (confirmed, left(site)) == (["sf"], set(OTHERS))


def test_a_lock_is_waited_for(site: Site) -> None:
    """As a driver does for that of a host which has just lost the cluster."""
    checkpoint, waits, has_it = site.checkpoint("sf"), threading.Event(), threading.Event()

    def wait() -> None:
        waits.set()
        with exclusive_lock(checkpoint, 60.0):
            has_it.set()

    with exclusive_lock(checkpoint):
        thread = threading.Thread(target=wait)
        thread.start()
        assert waits.wait(20)
        assert not has_it.is_set()
    assert has_it.wait(20)
    thread.join()


def test_processes_on_the_checkpoint_are_ended_first(site: Site) -> None:
    """They would write into the checkpoint of the next cluster with this slug."""
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
    mark = {MARK: str(site.checkpoint("sf"))}
    with subprocess.Popen(command, env=mark, stdout=subprocess.PIPE) as stray:
        assert stray.stdout is not None
        stray.stdout.readline()
        remove_checkpoints(site, "sf")
        assert stray.wait(timeout=60) == -9


def test_a_site_without_checkpoints_frees_the_slug(tmp_path: Path) -> None:
    confirmed = list[str]()
    Removal(Site(tmp_path, "", {}), lambda: ["sf"], confirmed.append).step(["sf"], 0.0)
    assert confirmed == ["sf"]
