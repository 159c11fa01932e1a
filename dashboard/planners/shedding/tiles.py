"""The tiles of load shedding: the state of the ladder, and what a drill would have dropped."""

from controlplane.numbers import MISSING, compact, percent, ratio, seconds
from controlplane.planners.shedding.drill import Drill, LeastKept
from controlplane.planners.shedding.report import LadderReport
from dashboard.frame.tile import Tile
from dashboard.templatetags.weir import age
from dashboard.thresholds import WARN


def ladder_tiles(report: LadderReport, factor_grade: str) -> list[Tile]:
    """Return the tiles of a ladder; `factor_grade`: of its input factor."""
    if report.ladder is None or report.kept is None:
        return []
    bound = "costs are assumed" if report.provisional else ""
    drift = report.drift
    return [
        Tile("Input factor", ratio(report.factor), "",
             f"about: {bound}" if bound else "now, over what is processed", "limit 1.00",
             report.factor, 1.0, grade=factor_grade),
        Tile("Headroom", _headroom(report.headroom), "",
             f"about: {bound}" if bound else "same mix of inputs",
             f"up to {compact(report.capacity_per_s)}/s, now {compact(report.input_per_s)}/s"),
        Tile("Active drop level", MISSING if report.rung is None else str(report.rung),
             f"of {len(report.ladder.rungs)}", _position(report),
             f"steps down after {seconds(report.hold_s)} below",
             grade=WARN if report.position else ""),
        Tile("Input kept", percent(report.kept.input), "",
             f"quality lost {percent(report.kept.quality_lost)}", "now, all streams",
             report.kept.input, top=1.0),
        Tile("Plan age", age(report.set_at) if report.armed else MISSING, "",
             f"mix {percent(drift.mix)}, costs {percent(drift.costs)} off" if drift
             else "computed for this page", f"compute again at {percent(report.tolerated)}"),
    ]  # fmt: skip


def _headroom(headroom: float | None) -> str:
    if headroom is None:
        return MISSING
    return "none" if headroom < 0 else f"+{percent(headroom)}"


def _position(report: LadderReport) -> str:
    if not report.armed:
        return "not enabled"
    return "not reported yet" if report.position is None else f"at level {ratio(report.position)}"


def drill_tiles(drill: Drill, least: LeastKept | None) -> list[Tile]:
    """Return the tiles of a drill; `least`: the query that keeps least, None if all keep all."""
    return [
        Tile("Time above capacity", seconds(drill.above_s), "",
             f"largest input factor {ratio(drill.largest_factor)}"),
        Tile("Input dropped", percent(drill.dropped_share), "",
             f"{compact(drill.dropped)} of {compact(drill.arrived)} records"),
        Tile("Quality lost", percent(drill.quality_lost), "", "weighted, over the range"),
        Tile("Level changes", f"{len(drill.changes):,}", "",
             f"periods of {seconds(drill.seconds)}"),
        Tile("Least kept", percent(least.kept if least else 1.0), "",
             f"{least.name}, {seconds(least.seconds)}" if least else "all queries",
             f"minimum {percent(least.floor)}" if least and least.floor else "no minimum"),
    ]  # fmt: skip
