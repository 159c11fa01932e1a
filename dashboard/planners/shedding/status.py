"""The state of a ladder in words and grades."""

from dataclasses import dataclass, replace
from typing import Final

from controlplane import numbers
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import ClusterReadings
from controlplane.numbers import counted, percent
from controlplane.planners.shedding.inputs import CostSource
from controlplane.planners.shedding.node_costs import names_listed
from controlplane.planners.shedding.report import (
    EdgeDrop,
    LadderReport,
    RungReport,
    SheddingQueryReport,
)
from controlplane.planning.measured.costs import LEAST_SAMPLES
from dashboard.figures.shedding import rung_level
from dashboard.frame.readings import phrase
from dashboard.thresholds import BAD, GOOD, UNKNOWN, WARN, MeasureThresholds

# Input factors: from 80 % on, short bursts need a rung.
FACTOR: Final = MeasureThresholds(0.8, 1.0)
# The queries and edges with a row or a name of their own.
SHOWN_QUERIES: Final = 20
SHOWN_NODES: Final = 50
UNKNOWN_NUMBER: Final = "\N{EN DASH}"
_NAMED: Final = 2
SOURCES: Final = {
    CostSource.EMULATED: "emulated capacity",
    CostSource.SLOPE: "measured: growth of its time with its records",
    CostSource.BUSY: "measured: its time over its records while it is busy, fixed time included",
    CostSource.POOLED: "measured on all nodes of its capacity together",
    CostSource.OTHERS: "not measured: the median of the other nodes",
    CostSource.ASSUMED: "assumed: equal on all nodes, about this",
    None: "no telemetry: no records yet",
}


@dataclass(frozen=True)
class LadderStatus:
    """The state of a ladder: a grade, a sentence, and what follows."""

    grade: str
    what: str
    why: str


_PROVISIONAL: Final = (
    "The cost of a record is not measured on {}: that takes {} micro-batches with different numbers"
    " of records on at least two nodes. Until then all nodes are assumed to need the same time; the"
    " order of drops holds. The pipeline measures the factor of the costs as soon as micro-batches"
    " take twice their usual time, and drops nothing before."
)


def status_of(report: LadderReport) -> LadderStatus:
    """Return the state of a ladder in words."""
    if report.missing:
        return LadderStatus(UNKNOWN, "There is no shedding plan yet.", f"{report.missing}.")
    bound = "at about" if report.provisional else "at"
    load = f"the input is {bound} {percent(report.factor)} of what the cluster can process"
    if not report.armed:
        return _not_armed(report, load)
    status = _armed(report, load)
    if report.drift is None or not report.drift.reasons:
        return status
    again = f"Compute the shedding plan again: {'; '.join(r.text for r in report.drift.reasons)}."
    if report.position:
        return LadderStatus(WARN, status.what, f"{status.why} {again}")
    drops = "" if report.position is None else ", nothing is dropped"
    return LadderStatus(WARN, again, f"It is enabled{drops}: {load}.")


def with_capacity_limit(
    status: LadderStatus, report: LadderReport, readings: ClusterReadings
) -> LadderStatus:
    """Return the state with why a node may be beyond its capacity while nothing is dropped."""
    load = readings[AlertMeasure.LOAD]
    if report.missing or report.position or not load.is_exceeded:
        return status
    limit = (
        f"{numbers.raised(phrase(readings.cluster, load))}: that limit is of the declared capacity."
        " Planners keep it by moving queries."
        " Records are dropped only when processing time runs out."
    )
    return replace(status, why=f"{status.why} {limit}")


def _not_armed(report: LadderReport, load: str) -> LadderStatus:
    if report.provisional:
        return LadderStatus(UNKNOWN, f"Not enabled, provisional: {load}.", provisional_text(report))
    grade = BAD if (report.factor or 0) > 1 else UNKNOWN
    return LadderStatus(grade, f"Not enabled: {load}.", f"{_waits(report)} {_first_rung(report)}")


def _armed(report: LadderReport, load: str) -> LadderStatus:
    if report.provisional and not report.position:
        return LadderStatus(
            GOOD,
            "Enabled, nothing is dropped: the shedding plan is provisional.",
            provisional_text(report),
        )
    if report.position is None:
        return LadderStatus(
            UNKNOWN, f"Enabled: {load}.", "The pipeline reported no drop level yet."
        )
    if report.position == 0:
        return LadderStatus(GOOD, f"Enabled, nothing is dropped: {load}.", _first_rung(report))
    assert report.kept is not None
    lost = percent(report.kept.quality_lost)
    what = f"Drop level {report.rung} of {len(report.rungs) - 1} is active: {load}."
    kept = f"{percent(report.kept.input)} of the input is kept, {lost} of the quality is lost."
    return LadderStatus(WARN, what, f"{kept} {_why_dropping(report)}")


def _why_dropping(report: LadderReport) -> str:
    """Return why records are dropped, also at an input factor below 1, and when this ends."""
    if report.active_rung:
        return f"{report.active_by} activated level {report.active_rung}, whatever the load is."
    down = f"It steps down {report.hold_s:g} s after less arrives."
    if (report.factor or 0.0) >= report.limit:
        return down
    if report.provisional:
        return (
            "The input factor is of assumed costs until they are measured, so it is too low:"
            " micro-batches took twice their usual time, and from that the pipeline takes the"
            f" cluster to be beyond its capacity. {down}"
        )
    return f"Less arrives again than the cluster can process. {down}"


def provisional_text(report: LadderReport) -> str:
    """Return what is missing for a ladder of measured costs, and what holds until then."""
    missing = [row.name for row in report.nodes if row.source is CostSource.ASSUMED]
    return _PROVISIONAL.format(names_listed(missing), LEAST_SAMPLES)


def _waits(report: LadderReport) -> str:
    over = (report.factor or 0) > 1
    return "Records wait." if over else "Above 100 %, records would wait instead of being dropped."


def _first_rung(report: LadderReport) -> str:
    if len(report.rungs) < 2:  # noqa: PLR2004 - rung 0 and a rung
        return ""
    rung = report.rungs[1]
    lost = percent(rung.quality_lost)
    return (
        f"From 100 % on, up to level 1 at {rung.factor:.2f} times the capacity, it drops what loses"
        f" the least: {drops_text(rung.drops)}; quality lost {lost} there."
    )


def drops_text(drops: tuple[EdgeDrop, ...]) -> str:
    """Return what a rung drops: each of a few edges, else of how many queries and the largest."""
    if len(drops) <= _NAMED:
        return ", ".join(map(drop_text, drops)) or "nothing"
    readers = len({drop.query for drop in drops if drop.query})
    whose = counted(readers, "queries") if readers else counted(len(drops), "streams")
    return f"records of {whose}, such as {drop_text(drops[0])}"


def drop_text(drop: EdgeDrop) -> str:
    """Return what an edge drops."""
    edge = f"{drop.stream} for {drop.query}" if drop.query else f"input of {drop.stream}"
    if drop.windows_s:
        return f"{percent(drop.dropped)} of the {drop.windows_s:g} s windows of {edge}"
    return f"{percent(drop.dropped)} of {edge}"


@dataclass(frozen=True)
class RungRow:
    """A rung of the ladder on the page.

    `level`: of its colour, 0 to 5; `drops`: what it drops, in words; `start`: the input factor up
    to which the rung before it suffices.
    """

    report: RungReport
    level: int
    drops: str
    start: float


def rung_rows(report: LadderReport) -> list[RungRow]:
    """Return the rungs of a ladder, from the one without drops on."""
    last = len(report.rungs) - 1
    starts = [0.0, *(rung.factor for rung in report.rungs)]
    return [
        RungRow(rung, rung_level(rung.number, last), drops_text(rung.drops), start)
        for rung, start in zip(report.rungs, starts, strict=False)
    ]


def kept_now(report: LadderReport, query: SheddingQueryReport) -> float | None:
    """Return the part of a query's records that is kept now, None if the pipeline reports none."""
    if report.position is None or report.kept is None:
        return None
    return report.kept.queries.get(query.id)


def level_of(kept: float) -> int:
    """Return the colour of a cell: 0 for all kept, 5 for little."""
    return min(5, max(0, -int(-(1 - kept) * 5 // 1)))


def kept_text(kept: float | None) -> str:
    """Return a kept part in percent; 100 only if nothing was dropped, a dash if it is unknown."""
    if kept is None:
        return UNKNOWN_NUMBER
    return "100" if kept >= 1 else f"{min(99.9, 100 * kept):.1f}"


@dataclass(frozen=True)
class CostRow:
    """The cost of a node as the page shows it: numbers as text, a dash for what is not known."""

    name: str
    source: str
    text: str
    us: str
    error_us: str
    fixed_ms: str
    usable: float


def cost_rows(report: LadderReport) -> list[CostRow]:
    """Return the costs of the nodes of a ladder, the first ones."""
    return [
        CostRow(
            row.name,
            row.source or "none",
            SOURCES[row.source],
            _number(1e6 * row.seconds) if row.source else UNKNOWN_NUMBER,
            UNKNOWN_NUMBER if row.error is None else _number(1e6 * row.error),
            _number(1000 * row.fixed_s) if row.fixed_s else UNKNOWN_NUMBER,
            row.usable,
        )
        for row in report.nodes[:SHOWN_NODES]
    ]


def _number(value: float) -> str:
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - digits
