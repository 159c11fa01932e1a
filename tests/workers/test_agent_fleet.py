"""What the agent reads from the database and writes to it."""

import pytest

from controlplane.models import Cluster
from workers.agent.driver import DriverSpec
from workers.agent.fleet import wanted_drivers, write_reports
from workers.agent.keeper import Report

pytestmark = pytest.mark.django_db


def make_cluster(slug: str, desired: str) -> Cluster:
    """Store a cluster."""
    return Cluster.objects.create(slug=slug, name=slug, desired=desired, slots=3, trigger_ms=500)


def test_only_clusters_that_should_run_want_a_driver() -> None:
    """A stopped one is still looked after: a driver that runs must end."""
    make_cluster("sf", Cluster.Desired.RUNNING)
    make_cluster("ny", Cluster.Desired.STOPPED)
    assert wanted_drivers() == {"sf": DriverSpec("sf", 3, 2, 500, "local[2]"), "ny": None}


def test_a_driver_is_told_where_its_log_is() -> None:
    """Another log means another driver."""
    make_cluster("sf", Cluster.Desired.RUNNING)
    Cluster.objects.update(log_url="kafka://b:9092/t")
    (spec,) = wanted_drivers().values()
    assert spec is not None
    assert spec.log_url == "kafka://b:9092/t"


def test_a_report_is_stored_with_its_detail() -> None:
    """The page shows the last error line."""
    make_cluster("sf", Cluster.Desired.RUNNING)
    write_reports({"sf": Report("failed", "ValueError: x (restart 1 in 1 s)")})
    row = Cluster.objects.get()
    assert (row.state, row.state_detail) == ("failed", "ValueError: x (restart 1 in 1 s)")


def test_only_changes_are_announced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An event a second would bury those that matter."""
    make_cluster("sf", Cluster.Desired.RUNNING)
    told: list[str] = []
    monkeypatch.setattr("workers.agent.fleet.announce", lambda _, event: told.append(event["text"]))
    write_reports({"sf": Report("starting", "Spark starts")})
    write_reports({"sf": Report("starting", "Spark starts")})
    write_reports({"sf": Report("running")})
    assert told == ["starting: Spark starts", "running"]


def test_a_cluster_deleted_meanwhile_is_passed_over() -> None:
    """Between reading and writing a second may pass."""
    write_reports({"gone": Report("running")})
    assert not Cluster.objects.exists()
