"""The record of planners: predictions of approved plans against measurements.

The error of a figure is |measured - approved| / max(approved, floor). The floor (`FLOORS`) keeps
errors of small figures small: an imbalance of 0.02 instead of 0.01 is not an error of 100 %.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from django.db.models import QuerySet

from controlplane.models import Cluster, LedgerEntry
from controlplane.pagination.listing import NO_FILTERS, Filters, Listing
from controlplane.planning.measures import SKEW, SPLIT_OVERLOAD
from controlplane.policies.assessment import DROPPED, LATENCY

# The effects that planners predict. State moved and pause are costs; a pause depends on batches.
EFFECTS: Final = ("imbalance", "fullest", "replication_factor")
COST: Final = ("bytes",)
# 0.05 is the default of the smallest gain that a policy requires.
FLOORS: Final = {
    "imbalance": 0.05,
    "fullest": 0.05,
    "replication_factor": 1.0,
    "traffic": 1.0,
    "bytes": 10_000.0,
    "pause_ms": 100.0,
    "latency_ms": 100.0,
    SKEW: 0.05,
    SPLIT_OVERLOAD: 1.0,
    DROPPED: 0.05,
}
# No planner predicts a latency: what an entry has as approved is that before the execution.
FIGURES: Final = tuple(figure for figure in FLOORS if figure != LATENCY)
# Planner and cluster change, so only the newest plans count.
RECENT: Final = 50


@dataclass(frozen=True)
class Record:
    """The accuracy of a planner's predictions.

    `runs`: the number of executed plans that count, at most the newest 50; `median_error`: the
    median of their errors, None without runs. The error of a plan is the mean of its errors in
    imbalance, load of the fullest node and replication factor. `cost_error`: that of the bytes of
    state that moved.
    """

    runs: int
    median_error: float | None
    cost_error: float | None = None

    @property
    def largest_error(self) -> float | None:
        """Return the larger one, which automatic approval compares with its limit."""
        errors = (self.median_error, self.cost_error)
        return max((error for error in errors if error is not None), default=None)


@dataclass(frozen=True)
class Calibration:
    """The accuracy of one figure's predictions by one algorithm of a planner on a cluster.

    `ratio`: the median of measured/predicted, None without predictions above 0; `error`: the
    median error; `runs`: the number of executed plans that have both.
    """

    planner: str
    algorithm: str
    figure: str
    runs: int
    ratio: float | None
    error: float


def error_of(figure: str, predicted: float, measured: float) -> float:
    """Return the relative error of a prediction; a pause shorter than predicted is none."""
    measured = max(measured, predicted) if figure == "pause_ms" else measured
    return abs(measured - predicted) / max(abs(predicted), FLOORS[figure])


def record_of(cluster: Cluster, planner: str) -> Record:
    """Return the record of a planner on a cluster, over all of its algorithms."""
    rows = _tried(cluster).filter(planner=planner)
    errors, costs = _run_errors(rows), _run_errors(rows, COST)
    return Record(len(errors), median(errors) if errors else None, median(costs) if costs else None)


def median_error(entries: QuerySet[LedgerEntry]) -> float | None:
    """Return the median of the errors of the newest entries, None without any."""
    errors = _run_errors(entries)
    return median(errors) if errors else None


def _run_errors(entries: QuerySet[LedgerEntry], figures: Sequence[str] = EFFECTS) -> list[float]:
    values = entries.order_by("-at", "-id").values_list("approved", "measured")[:RECENT]
    return [error for pair in values if (error := _run_error(*pair, figures)) is not None]


def _run_error(
    approved: Mapping[str, Any], measured: Mapping[str, Any], figures: Sequence[str]
) -> float | None:
    errors = [
        error_of(figure, approved[figure], measured[figure])
        for figure in figures
        if figure in approved and figure in measured
    ]
    return fmean(errors) if errors else None


def _tried(cluster: Cluster) -> QuerySet[LedgerEntry]:
    """Return the entries of plans that count: neither rolled back nor stale."""
    outcomes = (LedgerEntry.Outcome.DONE, LedgerEntry.Outcome.STOPPED)
    return LedgerEntry.objects.filter(cluster=cluster, outcome__in=outcomes)


def calibration(cluster: Cluster) -> list[Calibration]:
    """Return every figure's calibration by planner and algorithm, over the whole ledger."""
    pairs: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    rows = _tried(cluster).order_by("planner", "algorithm")
    for planner, algorithm, approved, measured in rows.values_list(
        "planner", "algorithm", "approved", "measured"
    ):
        for figure in FIGURES:
            if figure in approved and figure in measured:
                pair = (approved[figure], measured[figure])
                pairs[planner, algorithm, figure].append(pair)
    return [_calibrated(*key, values) for key, values in pairs.items()]


def _calibrated(
    planner: str, algorithm: str, figure: str, pairs: Sequence[tuple[float, float]]
) -> Calibration:
    ratios = [measured / predicted for predicted, measured in pairs if predicted > 0]
    return Calibration(
        planner,
        algorithm,
        figure,
        runs=len(pairs),
        ratio=median(ratios) if ratios else None,
        error=median(error_of(figure, *pair) for pair in pairs),
    )


def ledger_listing(
    cluster: Cluster, filters: Filters = NO_FILTERS
) -> Listing[LedgerEntry, LedgerEntry]:
    """Return the entries of the ledger, the newest first."""
    entries = LedgerEntry.objects.filter(cluster=cluster)
    return Listing(entries, ("-at", "-pk"), list, filters)
