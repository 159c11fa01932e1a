"""A planner's record and its calibration are medians over what was executed."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.models import Cluster, LedgerEntry, Proposal
from controlplane.planning.measures import SKEW, SPLIT_OVERLOAD
from controlplane.policies.assessment import DROPPED
from controlplane.policies.planner_record import calibration, error_of, record_of

pytestmark = pytest.mark.django_db


def entry(
    cluster: Cluster,
    approved: dict[str, float],
    measured: dict[str, float],
    *,
    planner: str = "placement",
    algorithm: str = "mms",
    outcome: str = "done",
) -> LedgerEntry:
    now = timezone.now()
    proposal = Proposal.objects.create(
        cluster=cluster, planner=planner, algorithm=algorithm, requested_at=now
    )
    return LedgerEntry.objects.create(
        proposal=proposal, cluster=cluster, planner=planner, algorithm=algorithm,
        approved=approved, measured=measured, outcome=outcome, at=now,
    )  # fmt: skip


def test_without_runs_there_is_no_error(sf: Cluster) -> None:
    record = record_of(sf, "placement")
    assert (record.runs, record.median_error) == (0, None)


def test_a_record_is_the_median_of_what_each_run_was_off_by(sf: Cluster) -> None:
    """By the mean of the effects; the state moved, the pause and the latency are none."""
    costs = {"bytes": 1e6, "pause_ms": 1000.0, "latency_ms": 100.0}
    for factor in (1.0, 1.1, 3.0):
        entry(
            sf,
            {"imbalance": 0.2, "fullest": 0.5, "replication_factor": 2.0} | costs,
            {"imbalance": 0.2 * factor, "fullest": 0.5 * factor, "replication_factor": 2.0 * factor}
            | dict.fromkeys(costs, 9e9),
        )
    entry(sf, {"imbalance": 1.0}, {"imbalance": 9.0}, planner="migration")
    entry(sf, {"imbalance": 1.0}, {"imbalance": 9.0}, outcome="rolled back")
    entry(sf, {"imbalance": 1.0}, {})
    entry(sf, {}, {"imbalance": 1.0})
    record = record_of(sf, "placement")
    assert record.runs == 3
    assert record.median_error == pytest.approx(0.1)
    assert record.largest_error == record.cost_error == pytest.approx(9e9 / 1e6 - 1)
    other = Cluster.objects.create(slug="other", name="Other", slots=1)
    assert record_of(other, "placement").runs == 0


def test_only_the_newest_runs_count(sf: Cluster) -> None:
    for _ in range(60):
        entry(sf, {"imbalance": 0.2}, {"imbalance": 0.2})
    LedgerEntry.objects.update(at=timezone.now() + timedelta(days=1))
    for _ in range(40):
        entry(sf, {"imbalance": 0.2}, {"imbalance": 0.9})
    record = record_of(sf, "placement")
    assert (record.runs, record.median_error) == (50, 0.0)


def test_calibration_is_per_planner_algorithm_and_figure(sf: Cluster) -> None:
    for measured in (2e6, 3e6, 8e6):
        approved = {"bytes": 2e6, "pause_ms": 1000.0, "latency_ms": 100.0}
        entry(sf, approved, {"bytes": measured, "latency_ms": 90.0})
    entry(sf, {"bytes": 0}, {"bytes": 0}, algorithm="mqp")
    found = {(one.algorithm, one.figure): one for one in calibration(sf)}
    assert set(found) == {("mms", "bytes"), ("mqp", "bytes")}
    bytes_ = found["mms", "bytes"]
    assert (bytes_.runs, bytes_.ratio, bytes_.error) == (3, 1.5, 0.5)
    nothing = found["mqp", "bytes"]
    assert (nothing.ratio, nothing.error) == (None, 0.0)


@pytest.mark.parametrize(
    ("figure", "predicted", "measured", "error"),
    [
        ("bytes", 1e6, 5e5, 0.5),
        ("imbalance", 0.01, 0.02, 0.2),
        ("imbalance", 0.0, 0.05, 1.0),
        ("bytes", 0, 1000, 0.1),
        ("fullest", 0.02, 0.07, 1.0),
        ("replication_factor", 0.5, 1.0, 0.5),
        ("pause_ms", 10.0, 60.0, 0.5),
        ("pause_ms", 2000.0, 1000.0, 0.0),
        ("latency_ms", 50.0, 100.0, 0.5),
        ("latency_ms", 200.0, 100.0, 0.5),
        ("traffic", 0.0, 1.0, 1.0),
        (SKEW, 0.0, 0.05, 1.0),
        (DROPPED, 0.0, 0.05, 1.0),
        (SPLIT_OVERLOAD, 0.0, 1.0, 1.0),
    ],
)
def test_what_is_nearly_nothing_is_compared_with_a_least_amount(
    figure: str, predicted: float, measured: float, error: float
) -> None:
    assert error_of(figure, predicted, measured) == pytest.approx(error)
