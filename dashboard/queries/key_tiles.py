"""The tiles of the key microscope: largest key, imbalance, fullest task, memory, keys."""

from controlplane.numbers import change_in_points, compact, percent, points, ratio
from controlplane.planners.partitioning.key_report import KeyReport
from dashboard.frame.tile import Tile
from dashboard.queries.key_rows import HourlyChange, KeyBars, KeyStatus, TaskColumns
from dashboard.thresholds import BAD


def key_tiles(
    report: KeyReport, columns: TaskColumns, status: KeyStatus, bars: KeyBars, trend: HourlyChange
) -> list[Tile]:
    """Return the tiles of a query; a click on each opens the part of the page that explains it."""
    unit, fullest = columns.unit, status.fullest
    return [
        _largest(report, columns, status, trend),
        Tile(
            "Imbalance", points(report.imbalance), "points",
            f"fullest {unit} minus the mean" if trend.imbalance is None
            else f"{change_in_points(trend.imbalance)} points in 1 h",
            f"limit {points(status.limit)} points of capacity", report.imbalance, status.limit,
            grade=status.imbalance_grade, link="#imbalance", name="imbalance",
        ),
        Tile(
            f"Fullest {unit}", percent(fullest.share), "",
            f"{fullest.title}, mean {percent(columns.mean)}",
            f"of {compact(fullest.capacity)} records/s, by this query", fullest.share, 1.0,
            grade=status.load_grade, link="#places", term="Fullest", name="fullest",
        ),
        Tile(
            "Memory", compact(report.memory), "pairs",
            f"{ratio(report.pairs_per_key)} {unit}s per key", "bound: 1 per key, with key grouping",
            report.pairs_per_key, bound=1.0, link="#key-groupings", name="memory",
        ),
        Tile(
            "Keys", compact(report.distinct), "",
            "estimated" if report.exponent is None
            else f"estimated, exponent {ratio(report.exponent)}",
            f"{len(bars.bars)} have {percent(bars.listed)} of the records", bars.listed, top=1.0,
            link="#shares", name="keys",
        ),
    ]  # fmt: skip


def _largest(
    report: KeyReport, columns: TaskColumns, status: KeyStatus, trend: HourlyChange
) -> Tile:
    """Return the tile of the most frequent key against what the largest task holds."""
    largest, unit = status.largest, columns.unit
    share = None if largest is None else largest.share
    rate = None if largest is None else largest.records_per_s
    holds = columns.largest / report.records_per_s if report.records_per_s else None
    if holds is None:
        limit = "no records"
    elif holds < 1:
        limit = f"one {unit} holds up to {percent(holds)}"
    else:
        limit = f"one {unit} could hold all keys"
    note = f"{compact(rate)} records/s"
    if trend.top_share is not None:
        note = f"{change_in_points(trend.top_share)} points in 1 h"
    return Tile(
        "Largest key", percent(share), "", note, limit, share, holds,
        grade=BAD if status.overloads else "", link="#shares", name="largest",
    )  # fmt: skip
