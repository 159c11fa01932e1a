"""What the agent reads from the database and writes to it."""

import time

import pytest
from django.db import OperationalError

from controlplane.models import Cluster, DriverRestart
from workers.agent.causes import Death
from workers.agent.driver import DriverSpec
from workers.agent.fleet import Deaths, recent_deaths, wanted_drivers, write_reports
from workers.agent.progress import Report

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
    write_reports({"sf": Report("starting")})
    since = Cluster.objects.get().state_at
    write_reports({"sf": Report("starting", "Spark starts", "start")})
    write_reports({"sf": Report("starting", "Spark starts", "start")})
    assert since is not None
    assert Cluster.objects.get().state_at == since, "the state is the same"
    write_reports({"sf": Report("running")})
    assert told == ["starting", "running"]
    later = Cluster.objects.get().state_at
    assert later is not None
    assert later > since


def test_a_cluster_deleted_meanwhile_is_passed_over() -> None:
    """Between reading and writing a second may pass."""
    write_reports({"gone": Report("running")})
    assert not Cluster.objects.exists()


def test_numbers_that_change_are_stored_and_not_announced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A backlog changes each second."""
    make_cluster("sf", Cluster.Desired.RUNNING)
    told: list[str] = []
    monkeypatch.setattr("workers.agent.fleet.announce", lambda _, event: told.append(event["text"]))
    for unread in (300, 200, 100):
        write_reports({"sf": Report("catching up", f"{unread} records unread", "backlog")})
    assert told == ["catching up: 300 records unread"]
    assert Cluster.objects.get().state_detail == "100 records unread"


def test_deaths_are_kept_until_the_database_takes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A driver may well die because the machine that has both is in trouble."""
    make_cluster("sf", Cluster.Desired.RUNNING)
    waiting, now = Deaths(), time.time()
    waiting.add("sf", Death(now - 20, "memory", "OutOfMemoryError", 1, 812, 40, 61.5))
    waiting.add("sf", Death(now - 10, "no-progress", "no step", None, 813))
    with monkeypatch.context() as broken:
        broken.setattr("workers.agent.fleet.record_death", _refuse)
        with pytest.raises(OperationalError):
            waiting.flush()
    waiting.flush()
    waiting.flush()
    found = recent_deaths("sf")
    assert [(one.cause, one.batch, one.unread) for one in found] == [
        ("memory", 812, 40), ("no-progress", 813, None),
    ]  # fmt: skip
    assert DriverRestart.objects.count() == 2


def _refuse(slug: str, death: Death) -> None:
    raise OperationalError("database is locked")
