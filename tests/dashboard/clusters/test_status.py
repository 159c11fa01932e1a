"""Verdicts on clusters: the sentence that opens the pages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.models import Cluster, ClusterHealth
from dashboard import thresholds as grades
from dashboard.clusters.status import ClusterStatus, cluster_status, fleet_status

NOW = datetime(2026, 11, 17, 10, 46, tzinfo=UTC)
FINE: dict[str, Any] = {"imbalance": 0.05, "p95": 900.0}


def running(age_s: float = 1.0, **changed: Any) -> Cluster:
    values = {"state": "running", "desired": "running", "trigger_ms": 1000}
    seen = NOW - timedelta(seconds=age_s)
    return Cluster(**{**values, "name": "Orders", "last_sample_at": seen, **changed})


@pytest.mark.parametrize(
    ("sample", "age_s", "grade", "title"),
    [
        (FINE, 1, grades.GOOD, "Imbalance and latency are within their limits, and data are fresh"),
        (
            FINE | {"imbalance": 0.12}, 1, grades.WARN,
            "Near a limit: imbalance is 12 % (limit 25 %)",
        ),
        (
            FINE | {"imbalance": 0.3, "p95": 12_000.0}, 1, grades.BAD,
            "2 limits exceeded: imbalance is 30 % (limit 25 %), "
            "p95 latency is 12.0 s (limit 10.0 s)",
        ),
        (FINE, 90, grades.BAD, "1 limit exceeded: no data for 2 min (limit 1 min)"),
    ],
)  # fmt: skip
def test_a_running_cluster_is_judged_by_its_limits(
    sample: dict[str, Any], age_s: float, grade: str, title: str
) -> None:
    found = cluster_status(running(age_s), sample, NOW)
    assert (found.grade, found.title) == (grade, title)


@pytest.mark.parametrize(
    ("unread", "observed_s", "grade"),
    [(0, 2, grades.GOOD), (7, 2, grades.BAD), (None, 2, grades.BAD), (0, 60, grades.BAD)],
)
def test_a_cluster_to_which_no_records_come_keeps_its_limits(
    unread: int | None, observed_s: float, grade: str
) -> None:
    """As long as the agent sees that none waits."""
    quiet = running(age_s=3_600)
    quiet.health = ClusterHealth(
        cluster=quiet, unread=unread, observed_at=NOW - timedelta(seconds=observed_s)
    )
    found = cluster_status(quiet, FINE, NOW)
    assert found.grade == grade
    assert ("idle" in found.title) == (grade == grades.GOOD)


def test_what_is_near_a_limit_is_told_behind_what_exceeds_one() -> None:
    found = cluster_status(running(), {"imbalance": 0.3, "p95": 5_000.0}, NOW)
    assert found.cause == "Near a limit: p95 latency is 5,000 ms (limit 10.0 s)."


def test_a_state_that_is_not_running_is_the_status() -> None:
    """Whatever the last sample said before."""
    broken = running(state="crash loop", state_detail="the driver has ended 3 times")
    assert cluster_status(broken, FINE, NOW) == ClusterStatus(
        grades.BAD, "The Spark application fails repeatedly", "The driver has ended 3 times."
    )
    assert cluster_status(running(state="stopped"), FINE, NOW).grade == grades.UNKNOWN
    starting = cluster_status(running(state="starting"), {}, NOW)
    assert "Figures appear with the first micro-batch" in starting.cause


def test_every_state_has_a_status() -> None:
    for state in Cluster.State.values:
        found = cluster_status(running(state=state), FINE, NOW)
        wanted = grades.STATES[state] if state != "running" else grades.GOOD
        assert found.grade == wanted, state


def test_a_cluster_without_figures_says_when_they_come() -> None:
    found = cluster_status(running(last_sample_at=None), {}, NOW)
    assert (found.grade, found.title) == (grades.UNKNOWN, "No figures yet")


GOOD, UNKNOWN = (
    ClusterStatus(grades.GOOD, "Fine"),
    ClusterStatus(grades.UNKNOWN, "The cluster is stopped"),
)
WARN, BAD = (
    ClusterStatus(grades.WARN, "Near a limit"),
    ClusterStatus(grades.BAD, "One limit exceeded"),
)


@pytest.mark.parametrize(
    ("statuses", "grade", "title", "cause"),
    [
        (
            [("a", GOOD), ("b", GOOD)], grades.GOOD,
            "All 2 running clusters are within their limits", "",
        ),
        (
            [("a", GOOD), ("b", UNKNOWN)], grades.GOOD,
            "The running cluster is within its limits", "",
        ),
        (
            [("a", UNKNOWN)], grades.UNKNOWN, "No cluster is running",
            "Start a cluster on its page.",
        ),
        ([("a", WARN), ("b", GOOD)], grades.WARN, "1 of 2 clusters to watch", "a: near a limit."),
        (
            [("a", WARN), ("b", BAD)], grades.BAD, "1 of 2 clusters needs attention",
            "b: one limit exceeded. a: near a limit.",
        ),
        ([("a", BAD)], grades.BAD, "1 of 1 cluster needs attention", "a: one limit exceeded."),
    ],
)  # fmt: skip
def test_the_fleet_is_as_bad_as_its_worst_cluster(
    statuses: list[tuple[str, ClusterStatus]], grade: str, title: str, cause: str
) -> None:
    found = fleet_status(statuses)
    assert (found.grade, found.title, found.cause) == (grade, title, cause)
