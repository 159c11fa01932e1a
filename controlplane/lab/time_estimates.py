"""Estimates of the time of a run from the measured times of finished runs, and what remains of it.

The model of an experiment (`algorithms.estimates`) is an upper bound. Finished runs show which part
of it this machine needs: their smallest, median and largest ratio give the range of the estimate.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from algorithms.estimates import Estimate
from controlplane.models import LabRun

# The newest finished runs that count.
_RUNS: Final = 20
# A range of fewer runs is widened by the factor below.
_ENOUGH: Final = 3
_WIDER: Final = 2.0
# Below this part of the progress, the estimate is better than what the progress extrapolates to.
_EARLY: Final = 0.02


@dataclass(frozen=True)
class TimeEstimate:
    """The expected time of a run with its range, in seconds.

    `runs`: the number of finished runs it is based on; `basis`: experiment (runs of the same one),
    planner (of the same planner), or model (none: `high_s` is the model's upper bound, and the
    expected time is not known).
    """

    expected_s: float | None
    low_s: float
    high_s: float
    runs: int
    basis: str

    def to_json(self) -> dict[str, Any]:
        """Return the values as the column `estimate` of a run keeps them."""
        return {
            "expected_s": self.expected_s, "low_s": self.low_s, "high_s": self.high_s,
            "runs": self.runs, "basis": self.basis,
        }  # fmt: skip


def estimate_time(planner: str, experiment: str, master: str, need: Estimate) -> TimeEstimate:
    """Return the estimated time of a run whose model is `need`."""
    for basis, experiments in (("experiment", {"experiment": experiment}), ("planner", {})):
        ratios = _ratios(planner, experiments, spark=bool(master))
        if ratios:
            return _scaled(need.seconds, ratios, basis)
    return TimeEstimate(None, 0.0, round(need.seconds, 1), 0, "model")


def _ratios(planner: str, wanted: Mapping[str, str], *, spark: bool) -> list[float]:
    """Return measured over modelled time of the newest finished runs."""
    done = LabRun.objects.filter(planner=planner, state=LabRun.State.DONE, **wanted)
    done = done.exclude(master="") if spark else done.filter(master="")
    rows = done.order_by("-finished_at").values_list("started_at", "finished_at", "estimate")
    return [
        (finished - started).total_seconds() / estimate["seconds"]
        for started, finished, estimate in rows[:_RUNS]
        if started and finished and estimate.get("seconds")
    ]


def _scaled(seconds: float, ratios: list[float], basis: str) -> TimeEstimate:
    wider = 1.0 if len(ratios) >= _ENOUGH and basis == "experiment" else _WIDER
    return TimeEstimate(
        expected_s=round(seconds * statistics.median(ratios), 1),
        low_s=round(seconds * min(ratios) / wider, 1),
        high_s=round(seconds * max(ratios) * wider, 1),
        runs=len(ratios),
        basis=basis,
    )


def remaining_s(run: LabRun, now: datetime) -> float | None:
    """Return the seconds that a run in progress still needs, None before anything is known.

    The estimate at the request counts less, the more of the run is done.
    """
    if run.state != LabRun.State.RUNNING or run.started_at is None:
        return None
    passed = (now - run.started_at).total_seconds()
    expected = run.estimate.get("expected_s")
    if run.progress <= _EARLY:
        return None if expected is None else max(0.0, expected - passed)
    by_progress = passed / run.progress
    share = 1.0 if expected is None else run.progress
    whole = share * by_progress + (1.0 - share) * (expected or 0.0)
    return max(0.0, whole - passed)
