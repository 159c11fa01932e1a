"""Before a driver starts: a real database, a real Redis, and the files of a checkpoint."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.utils import timezone

from controlplane.connections import redis_client
from controlplane.models import Cluster, ClusterHealth, Incident
from controlplane.wire import keys
from tests.support.cluster import actor, placed, small_cluster
from tests.support.destinations import list_destinations
from workers.agent.driver import Site
from workers.agent.fleet import spec_of
from workers.agent.gate import Gate, read_checkpoint
from workers.pipeline.checkpoints.bootstrap import BootstrapWriter
from workers.pipeline.split_nodes.offset import Offset

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sf(redis_url: str, transactional_db: None) -> Cluster:
    """A cluster that should run."""
    by = actor()
    cluster = small_cluster(by)
    placed(by, cluster, {"a": ["s0"]})
    Cluster.objects.update(desired="running")
    cluster.refresh_from_db()
    return cluster


def write_batch(path: Path, number: int, *, batch: int, version: int, whole: bool = True) -> None:
    """Write what Spark writes of a batch."""
    for name in ("offsets", "commits"):
        (path / name).mkdir(parents=True, exist_ok=True)
    (path / "metadata").touch()
    row = Offset(batch, "1-0", 5, version).to_json()
    text = f"v1\n{json.dumps({'conf': {}})}\n{json.dumps(row)}"
    (path / "offsets" / str(number)).write_text(text)
    if whole:
        (path / "commits" / str(number)).write_text("v1\n{}")


def test_a_checkpoint_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    """A full disk cuts the newest file off."""
    assert read_checkpoint(tmp_path) is None
    write_batch(tmp_path, 0, batch=1, version=2)
    write_batch(tmp_path, 1, batch=2, version=3, whole=False)
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert (found.whole, found.started, found.version) == (1, 2, 3)
    (tmp_path / "offsets" / "1").write_text("v1\n")
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert (found.whole, found.started) == (1, 1)


def test_a_new_cluster_may_start(sf: Cluster, tmp_path: Path) -> None:
    gate = Gate(Site(tmp_path, "redis://unused", {}))
    assert gate.hold(spec_of(sf), 1.0, runs=False) is None
    assert ClusterHealth.objects.get().generation
    assert not Incident.objects.exists()


def test_a_master_that_the_site_does_not_allow_gets_no_driver(
    sf: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be older than the rule, or the list may have become shorter."""
    gate = Gate(Site(tmp_path, "redis://unused", {}))
    spec = replace(spec_of(sf), master="spark://spark:7077")
    for runs in (False, True):
        held = gate.hold(spec, 1.0, runs=runs)
        assert held is not None
        assert (held.state, held.code) == ("failed", "master-not-allowed")
    list_destinations(monkeypatch, "spark://spark:7077")
    assert gate.hold(spec, 1.0, runs=False) is None


def test_a_removed_checkpoint_is_repaired_before_the_start(sf: Cluster, tmp_path: Path) -> None:
    site = Site(tmp_path, "redis://unused", {})
    gate = Gate(site)
    gate.hold(spec_of(sf), 1.0, runs=False)
    path = site.checkpoint("sf")
    ClusterHealth.objects.update(batch=9, checkpoint=path.name, observed_at=timezone.now())
    row = {"batch": 9, "version": sf.routing_version, "end": "1-0"}
    redis_client().xadd(keys.telemetry_key("sf"), {"t": json.dumps(row)}, id="9-0")
    write_batch(path, 3, batch=9, version=sf.routing_version)
    assert gate.hold(spec_of(sf), 2.0, runs=False) is None
    assert not Incident.objects.exists()
    # From a backup: it is moved away, and whatever begins anew is recorded.
    (path / "offsets" / "3").unlink()
    write_batch(path, 2, batch=8, version=sf.routing_version)
    assert gate.hold(spec_of(sf), 3.0, runs=False) is None
    assert Incident.objects.get().kind == "checkpoint-older"
    assert not path.exists()
    assert len(list(path.parent.glob("sf-4.older-*"))) == 1


def test_a_decision_that_is_due_holds_the_driver_back(sf: Cluster, tmp_path: Path) -> None:
    """And ends one that runs: its routing is not the database's."""
    gate = Gate(Site(tmp_path, "redis://unused", {}))
    Cluster.objects.update(routing_version=sf.routing_version - 1)
    for runs in (False, True):
        held = gate.hold(spec_of(sf), 1.0 + 9 * runs, runs=runs)
        assert held is not None
        assert held.state == "needs decision"
        assert "adopt-database or stop" in held.detail


def test_an_emptied_redis_is_noticed_under_a_running_driver(sf: Cluster, tmp_path: Path) -> None:
    gate = Gate(Site(tmp_path, "redis://unused", {}))
    gate.hold(spec_of(sf), 1.0, runs=False)
    redis_client().flushdb()
    assert gate.hold(spec_of(sf), 1.5, runs=True) is None
    assert not Incident.objects.exists(), "looked at every two seconds"
    assert gate.hold(spec_of(sf), 4.0, runs=True) is None
    assert Incident.objects.get().kind == "redis-lost"


def test_trouble_with_one_cluster_is_a_report_and_no_exception(
    sf: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent keeps other clusters in the same loop; a driver that runs goes on."""

    def refuse(*_: object) -> None:
        raise RuntimeError("the routing table changes too quickly")

    monkeypatch.setattr("workers.agent.gate.reconcile", refuse)
    gate = Gate(Site(tmp_path, "redis://unused", {}))
    held = gate.hold(spec_of(sf), 1.0, runs=False)
    assert held is not None
    assert (held.state, held.code) == ("failed", "gate")
    assert gate.hold(spec_of(sf), 9.0, runs=True) is None


def test_a_checkpoint_that_was_made_from_another_one_is_not_lost(
    sf: Cluster, tmp_path: Path
) -> None:
    """It has no batch yet, but the state of all nodes: a new run would throw that away."""
    site = Site(tmp_path, "redis://unused", {})
    path, version = site.checkpoint("sf"), sf.routing_version
    Gate(site).hold(spec_of(sf), 1.0, runs=False)
    ClusterHealth.objects.update(batch=9, checkpoint=path.name, observed_at=timezone.now())
    row = {"batch": 9, "version": version, "end": "1-0"}
    redis_client().xadd(keys.telemetry_key("sf"), {"t": json.dumps(row)}, id="9-0")
    BootstrapWriter(path).finish(2, Offset(9, "1-0", 5, version).to_json())
    assert Gate(site).hold(spec_of(sf), 2.0, runs=False) is None
    # Killed between the two renames of a swap: the driver finishes it.
    path.rename(path.with_name("sf-4.next"))
    path.with_name("sf-4.swap").touch()
    assert Gate(site).hold(spec_of(sf), 3.0, runs=False) is None
    assert not Incident.objects.exists()


def test_a_checkpoint_that_was_removed_under_a_running_query_is_lost(tmp_path: Path) -> None:
    """Spark has written on, but what it would start from is gone."""
    write_batch(tmp_path, 7, batch=8, version=2)
    (tmp_path / "metadata").unlink()
    assert read_checkpoint(tmp_path) is None


def test_a_running_driver_without_its_checkpoint_is_ended(sf: Cluster, tmp_path: Path) -> None:
    """Found at the next start alone, all that it computes until then would be lost, too."""
    site = Site(tmp_path, "redis://unused", {})
    gate, path = Gate(site), site.checkpoint("sf")
    gate.hold(spec_of(sf), 1.0, runs=False)
    write_batch(path, 3, batch=9, version=sf.routing_version)
    assert gate.hold(spec_of(sf), 4.0, runs=True) is None
    (path / "metadata").unlink()
    assert gate.hold(spec_of(sf), 7.0, runs=True) is None, "Spark may be about to write it"
    ClusterHealth.objects.update(batch=9, checkpoint=path.name)
    held = gate.hold(spec_of(sf), 10.0, runs=True)
    assert held is not None
    assert held.code == "checkpoint-lost"
