"""The record of planners: what they promised when it was approved against what was measured.

The error of a figure is |measured - approved| / approved. What is nearly nothing anyway is
compared with a least amount instead (`FLOORS`), so that 0.02 of imbalance where 0.01 was promised
is not off by 100 %.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from django.db.models import QuerySet

from controlplane.models import Cluster, LedgerEntry
from controlplane.pagination.pages import PER_PAGE, Page, page_of

FIGURES: Final = ("imbalance", "replication_factor", "bytes", "pause_ms", "latency_ms")
# What a planner answers for. Pause and latency follow from the pipeline's batches and from what
# else goes on; no planner decides them.
PLANNERS_OWN: Final = ("imbalance", "replication_factor", "bytes")
# A gain of 0.05 is the least that applies by itself; 10 kB are sent in no time; 100 ms nobody sees.
FLOORS: Final = {
    "imbalance": 0.05,
    "replication_factor": 1.0,
    "bytes": 10_000.0,
    "pause_ms": 100.0,
    "latency_ms": 100.0,
}
# A planner's record is what it did of late: versions of it and of the cluster change.
RECENT: Final = 50


@dataclass(frozen=True)
class Record:
    """How good a planner's predictions were.

    runs: executed plans that count, the newest 50 at most; median_error: the median of how far
    each was off, a share, None without runs. A run is off by the mean of its errors in imbalance,
    replication factor and bytes.
    """

    runs: int
    median_error: float | None


@dataclass(frozen=True)
class Calibration:
    """How one figure's predictions of one planner's algorithm came out on one cluster.

    ratio: the median of measured/predicted, None where nothing was ever predicted above 0; error:
    the median error, a share; runs: how many executed plans have both.
    """

    planner: str
    algorithm: str
    figure: str
    runs: int
    ratio: float | None
    error: float


def error_of(figure: str, predicted: float, measured: float) -> float:
    """Return by which share a prediction was off."""
    return abs(measured - predicted) / max(abs(predicted), FLOORS[figure])


def record_of(cluster: Cluster, planner: str) -> Record:
    """Return the record of a planner on a cluster, over all of its algorithms.

    Plans that were rolled back or went stale do not count.
    """
    rows = _tried(cluster).filter(planner=planner)
    values = rows.order_by("-at", "-id").values_list("approved", "measured")[:RECENT]
    errors = [error for pair in values if (error := _run_error(*pair)) is not None]
    return Record(len(errors), median(errors) if errors else None)


def _run_error(approved: Mapping[str, Any], measured: Mapping[str, Any]) -> float | None:
    errors = [
        error_of(figure, approved[figure], measured[figure])
        for figure in PLANNERS_OWN
        if figure in approved and figure in measured
    ]
    return fmean(errors) if errors else None


def _tried(cluster: Cluster) -> QuerySet[LedgerEntry]:
    """Return the entries of plans that count for their planner's record.

    Of one rolled back nothing was to be measured; one that went stale was made for rates, nodes or
    queries that were others by then.
    """
    outcomes = (LedgerEntry.Outcome.DONE, LedgerEntry.Outcome.STOPPED)
    return LedgerEntry.objects.filter(cluster=cluster, outcome__in=outcomes)


def calibration(cluster: Cluster) -> list[Calibration]:
    """Return every figure's calibration by planner and algorithm, over all that is written."""
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
    ratios = list(_ratios(pairs))
    return Calibration(
        planner,
        algorithm,
        figure,
        runs=len(pairs),
        ratio=median(ratios) if ratios else None,
        error=median(error_of(figure, *pair) for pair in pairs),
    )


def _ratios(pairs: Iterable[tuple[float, float]]) -> Iterable[float]:
    return (measured / predicted for predicted, measured in pairs if predicted > 0)


def ledger_page(cluster: Cluster, number: int, per_page: int = PER_PAGE) -> Page[LedgerEntry]:
    """Return one page of the ledger, the newest first."""
    entries = LedgerEntry.objects.filter(cluster=cluster).order_by("-at", "-id")
    return page_of(entries, number, per_page, list)
