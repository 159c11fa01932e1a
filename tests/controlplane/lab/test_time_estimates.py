"""The expected time of a run follows from finished runs; the rest from its progress."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from algorithms.estimates import Estimate
from controlplane.lab.time_estimates import TimeEstimate, estimate_time, remaining_s
from controlplane.models import LabRun

pytestmark = pytest.mark.django_db
NOW = timezone.now()
NEED = Estimate(1.0, 100.0)


def finished(seconds: float, modelled: float = 100.0, **columns: Any) -> None:
    """Keep a finished run that took `seconds`."""
    wanted: dict[str, Any] = {"planner": "placement", "experiment": "fig3a", "state": "done"}
    LabRun.objects.create(
        **(wanted | columns), requested_at=NOW, started_at=NOW,
        finished_at=NOW + timedelta(seconds=seconds), estimate={"seconds": modelled},
    )  # fmt: skip


def estimated(master: str = "") -> TimeEstimate:
    return estimate_time("placement", "fig3a", master, NEED)


def test_without_finished_runs_only_the_upper_bound_is_known() -> None:
    finished(20.0, state="failed")
    finished(20.0, planner="migration")
    assert estimated() == TimeEstimate(None, 0.0, 100.0, 0, "model")


def test_the_range_is_that_of_finished_runs_in_parts_of_the_model() -> None:
    """Run sizes differ: 30 of 300 modelled seconds are 10 of 100."""
    finished(20.0)
    finished(30.0, modelled=300.0)
    finished(40.0)
    assert estimated() == TimeEstimate(20.0, 10.0, 40.0, 3, "experiment")


def test_few_runs_have_a_wider_range() -> None:
    """One run shows no spread."""
    finished(20.0)
    assert estimated() == TimeEstimate(20.0, 10.0, 40.0, 1, "experiment")


def test_other_experiments_of_the_planner_are_better_than_none() -> None:
    """With a wider range, whatever their number."""
    for seconds in (10.0, 20.0, 30.0):
        finished(seconds, experiment="fig4a")
    assert estimated() == TimeEstimate(20.0, 5.0, 60.0, 3, "planner")


def test_runs_on_spark_are_estimated_from_runs_on_spark() -> None:
    """They use several processors."""
    finished(20.0)
    finished(5.0, master="local[4]")
    assert estimated("local[2]").expected_s == 5.0
    assert estimated().expected_s == 20.0


def running(progress: float, passed_s: float, expected_s: float | None) -> LabRun:
    return LabRun(
        state="running", progress=progress, started_at=NOW - timedelta(seconds=passed_s),
        estimate={"expected_s": expected_s},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("run", "rest"),
    [
        (running(0.0, 5.0, None), None),
        (running(0.0, 5.0, 100.0), 95.0),
        (running(0.5, 50.0, None), 50.0),
        (running(0.5, 50.0, 60.0), 30.0),
        (running(0.9, 90.0, 10.0), 1.0),
        (running(0.01, 200.0, 100.0), 0.0),
        (LabRun(state="queued", estimate={"expected_s": 3.0}), None),
    ],
)
def test_the_rest_mixes_estimate_and_progress(run: LabRun, rest: float | None) -> None:
    """The more is done, the more the progress counts."""
    assert remaining_s(run, NOW) == (None if rest is None else pytest.approx(rest))
