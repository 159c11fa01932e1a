"""Texts and numbers of a query's page: headline, tiles, why it is on its nodes, history."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from controlplane import numbers
from controlplane.explain.query_report import QueryReport, TaskPlacement
from controlplane.explain.units import ValueUnit, quantity
from controlplane.models import Query
from controlplane.planners.partitioning.skew_history import recent_skews
from controlplane.policies.grades import Grade
from controlplane.policies.store import policy_of
from controlplane.telemetry.measures import PRESENT
from dashboard.frame.headline import Headline
from dashboard.frame.tile import Tile, number_and_unit
from dashboard.streams.losses import InputLosses


@dataclass(frozen=True)
class HistoryRow:
    """An event of a query: its time, its text, and the proposal that caused it."""

    time: datetime
    text: str
    proposal: int | None = None
    grade: str = ""


def headline(report: QueryReport, losses: InputLosses | None = None) -> Headline:
    """Return the headline of a query: its state, what its input lacks, its skew, its latency."""
    shown = _with_skew(_headline(report), report.query)
    if losses is None or not losses.lines or report.query.state != Query.State.RUNNING:
        return shown
    return _led_by(losses.lines[0], shown, losses.grade, "input dropped")


def _led_by(what: str, shown: Headline, grade: str, chip: str) -> Headline:
    """Return a headline whose text is followed by that of another one."""
    why = " ".join(filter(None, (shown.sentence, shown.why)))
    return replace(shown, what=what, why=why, grade=grade, chip=chip)


def _with_skew(shown: Headline, query: Query) -> Headline:
    """Return the headline with the skew of a query of several tasks, if it is beyond its limit."""
    if query.task_count < 2 or shown.chip != "running":  # noqa: PLR2004 - several tasks
        return shown
    skews = recent_skews(query.cluster, timezone.now() - PRESENT, [query.pk])
    skew = skews[0].imbalance if skews else 0.0
    limit = policy_of(query.cluster).watch_skew
    if skew <= limit:
        return shown
    text = (
        f"Its keys load its tasks unevenly: skew {numbers.percent(skew)}, "
        f"limit {numbers.percent(limit)}"
    )
    return _led_by(f"{text}.", shown, "warn", "skewed")


def _headline(report: QueryReport) -> Headline:
    query = report.query
    if query.state == Query.State.FAILED:
        return Headline(
            f"The query failed: {query.detail or 'see its fault'}.", "", "bad", "failed"
        )
    if query.state in (Query.State.ENDED, Query.State.ENDING):
        return Headline(_end(query), _kept(query), "", str(query.state))
    if query.state == Query.State.PENDING:
        why = query.detail or "Online placement chooses its nodes, usually within seconds."
        return Headline("The query waits for a node.", why, "warn", "pending")
    explanation = report.explanation
    finding = explanation.finding
    if finding.value is None:
        return Headline(
            "The query runs; no latency was measured in the last minute.", "", "", "running"
        )
    latency, limit = (quantity(value, finding.unit) for value in (finding.value, finding.limit))
    text = f"Results arrive {latency} after their records (p95), limit {limit}"
    if report.slowest_is_full:
        text += f", and {finding.node_name} is above its load limit"
    chips = {Grade.BAD: "late", Grade.WARN: "near limit", Grade.GOOD: "running"}
    grade, chip = str(finding.grade), chips.get(finding.grade, "running")
    if report.slowest_is_full and finding.grade == Grade.GOOD:
        grade, chip = "warn", "node above limit"
    shown = Headline(f"{text}.", _part(report), grade, chip)
    return shown.explained(explanation.ranked) if grade in ("bad", "warn") else shown


def _end(query: Query) -> str:
    """Return when a query ended, and how long it ran."""
    if query.ended_at is None:
        return "The query ends with the next routing version."
    text = f"The query ended {numbers.age(query.ended_at, timezone.now())}"
    if query.placed_at is None:
        return f"{text}; it never ran."
    return f"{text}; it ran for {numbers.duration(query.ended_at - query.placed_at)}."


def _kept(query: Query) -> str:
    kept = numbers.seconds(query.retention_s)
    return f"Its results stay readable: the windows of the newest {kept} of event time."


def _part(report: QueryReport) -> str:
    """Return the part of the query in the work of its node, and the plans that change it."""
    texts = []
    if report.node_share is not None:
        share = quantity(report.node_share, ValueUnit.SHARE)
        texts.append(f"It is {share} of the evaluations on {report.node_share_name}.")
    texts += [
        f"Proposal {plan.proposal} would change it by {numbers.counted(plan.actions, 'actions')}."
        for plan in report.waiting[:1]
    ]
    return " ".join(texts)


def tiles(report: QueryReport, losses: InputLosses) -> list[Tile]:
    """Return the tiles of a query, none after its end: nothing is measured then."""
    if report.query.state in (Query.State.ENDED, Query.State.ENDING):
        return []
    finding = report.explanation.finding
    latency, unit = number_and_unit(finding.value, finding.unit)
    size, size_unit = number_and_unit(report.state_bytes, ValueUnit.BYTES)
    grade = str(finding.grade) if finding.grade in (Grade.BAD, Grade.WARN) else ""
    rate = _or_missing(report.evaluations_per_s, numbers.compact)
    share = _or_missing(report.node_share, numbers.percent)
    source = numbers.compact(report.source_per_s)
    shared = "same computation, stream and node" if report.shared_count else "no other query"
    return [
        Tile("Latency p95", latency, unit, finding.node_name,
             f"limit {quantity(finding.limit, finding.unit)}", finding.value, finding.limit,
             grade=grade),
        Tile("Evaluations", rate, "" if report.evaluations_per_s is None else "/s",
             f"of {source} records/s in {numbers.counted(report.stream_count, 'streams')}"),
        Tile("Share of node", share, "", report.node_share_name,
             "of its evaluations", report.node_share, top=1.0),
        Tile("State", size, size_unit, "of all tasks"),
        Tile("Processor time", _or_missing(report.processor, numbers.percent), "",
             "estimated", "of one processor", report.processor, top=1.0,
             term="Processor time of a query"),
        Tile("Shared with", f"{report.shared_count:,}", "queries", shared),
        losses.tile,
    ]  # fmt: skip


def _or_missing(value: float | None, write: Callable[[float], str]) -> str:
    return "no data" if value is None else write(value)


def tasks_of(placement: TaskPlacement, count: int) -> str:
    """Return the tasks of a placement in words."""
    if count == 1:
        return "The query"
    if placement.stop - placement.first == 1:
        return f"Task {placement.first}"
    return f"Tasks {placement.first} to {placement.stop - 1}"


def history(report: QueryReport) -> list[HistoryRow]:
    """Return the events of a query, newest first."""
    query = report.query
    rows = [HistoryRow(query.submitted_at, f"Submitted by {query.submitted_by or 'unknown'}.")]
    if query.placed_at is not None:
        took = (query.placed_at - query.submitted_at).total_seconds()
        rows.append(HistoryRow(query.placed_at, f"Placed on a node after {took:.1f} s."))
    rows += [
        HistoryRow(
            placement.time,
            f"{tasks_of(placement, query.task_count)} moved to {placement.node_name}.",
            placement.proposal,
            "plan",
        )
        for placement in report.placements
        if placement.time is not None and placement.proposal is not None
    ]
    if query.ended_at is not None:
        failed = query.state == Query.State.FAILED
        text = f"Failed: {query.detail}." if failed else "Ended."
        rows.append(HistoryRow(query.ended_at, text, grade="bad" if failed else ""))
    return sorted(rows, key=lambda row: row.time, reverse=True)
