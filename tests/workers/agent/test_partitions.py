"""Another number of Spark partitions for a cluster that an agent looks after."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.errors import Conflict, NotFound
from controlplane.models import Cluster, Node
from tests.support.cluster import actor, small_cluster
from workers.agent.driver import DriverSpec, Site
from workers.agent.partitions import change_partitions, repartition_command


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site whose cluster sf has a checkpoint of six partitions."""
    site = Site(tmp_path, "redis://127.0.0.1:1/0", {})
    offsets = site.checkpoint("sf") / "offsets"
    offsets.mkdir(parents=True)
    own = json.dumps({"conf": {"spark.sql.shuffle.partitions": "6"}})
    (offsets / "0").write_text(f"v1\n{own}\n{json.dumps({'batch': 1})}")
    return site


@pytest.fixture
def sf(db: None) -> Cluster:
    """A stopped cluster of four nodes."""
    return small_cluster(actor(name="op"))


def test_the_command_has_the_places_of_the_driver(tmp_path: Path) -> None:
    """It works on what the driver has."""
    spec = DriverSpec("sf", nodes=4, splits=2, trigger_ms=1000, master="yarn")
    assert repartition_command(spec, Site(tmp_path, "redis://h/0", {}), 6, dry_run=True) == [
        sys.executable, "-m", "workers.pipeline.repartition", "--cluster", "sf",
        "--checkpoint", str(tmp_path / "checkpoints" / "sf-4"),
        "--partitions", "6", "--dry-run",
    ]  # fmt: skip


def test_a_checkpoint_that_was_changed_before_a_kill_is_not_changed_again(
    site: Site, sf: Cluster
) -> None:
    """Only the database is behind."""
    assert change_partitions(site, "op", sf, 6) == 6
    sf.refresh_from_db()
    assert sf.partitions == 6
    assert (sf.slots, Node.objects.count()) == (4, 4), "nodes do not depend on partitions"


def test_by_default_a_partition_for_each_core_of_the_master(tmp_path: Path, sf: Cluster) -> None:
    """Nothing is stored: a checkpoint that is begun anew follows the master, too."""
    Cluster.objects.update(master="local[3]")
    sf.refresh_from_db()
    site = Site(tmp_path, "redis://127.0.0.1:1/0", {})
    assert change_partitions(site, "op", sf) == 3
    sf.refresh_from_db()
    assert sf.partitions is None


def test_a_cluster_that_runs_keeps_its_partitions(site: Site, sf: Cluster) -> None:
    """Its driver has the checkpoint."""
    Cluster.objects.update(desired="running")
    sf.refresh_from_db()
    with pytest.raises(Conflict) as refusal:
        change_partitions(site, "op", sf, 6)
    assert refusal.value.code == "not_stopped"


def test_a_refusal_leaves_the_database_as_it_is(
    site: Site, sf: Cluster, redis_server: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The checkpoint decides: here it holds no whole batch."""
    with pytest.raises(Conflict) as refusal:
        change_partitions(replace(site, redis_url=redis_server), "op", sf, 5)
    assert refusal.value.code == "checkpoint"
    assert "holds no whole batch" in capfd.readouterr().err
    sf.refresh_from_db()
    assert sf.partitions is None


def test_a_dry_run_writes_nothing(site: Site, sf: Cluster) -> None:
    """It only says whether it can be done."""
    change_partitions(site, "op", sf, 6, dry_run=True)
    sf.refresh_from_db()
    assert sf.partitions is None


def test_nobody_knows_a_stranger(site: Site, sf: Cluster) -> None:
    """The audit log names who did it."""
    with pytest.raises(NotFound):
        change_partitions(site, "nobody", sf, 6)
