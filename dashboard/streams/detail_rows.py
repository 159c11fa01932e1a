"""Texts and numbers of a stream's page: headline and tiles."""

from datetime import datetime
from typing import Final

from django.utils import timezone

from controlplane import numbers
from controlplane.explain import ExplanationSubject, SubjectKind, explain
from controlplane.planners.admission.problem import NO_CAPACITY
from controlplane.planners.admission.stream_report import StreamReport
from dashboard.frame.headline import Headline
from dashboard.frame.tile import Tile
from dashboard.thresholds import LOAD

_SOON: Final = 0.8
_MODES: Final = {
    "act": "Admission redirects streams automatically, as the policy allows it.",
    "recommend": "Admission requests a plan; a person decides.",
    "off": "The policy switches redirections off: redirect it yourself, or request a plan.",
}


def headline(report: StreamReport) -> Headline:
    """Return the headline of a stream, with the likely causes of a rate that is too high."""
    shown = _forecast(report)
    if shown.grade not in ("bad", "warn"):
        return shown
    subject = ExplanationSubject(SubjectKind.STREAM, report.stream.name)
    return shown.explained(explain(report.stream.cluster, subject).ranked)


def _forecast(report: StreamReport) -> Headline:
    """Return when the forecast of a stream exceeds its split node, and the plan."""
    outlook, own, split = report.outlook, report.own, report.own.index
    if outlook is None:
        return Headline(
            "No record has arrived yet.",
            "The forecast begins with the first records.",
            "",
            "no records",
        )
    if outlook.left is None:
        return Headline(
            f"{numbers.compact(report.stream.rate or 0.0)} records/s arrive,"
            f" read by {numbers.counted(report.reader_count, 'queries')}.",
            f"{NO_CAPACITY}.",
            "",
            "capacity unknown",
        )
    expected = f"{numbers.compact(own.expected)} of {numbers.compact(own.capacity)} records/s"
    why = f"{expected} are expected there in the next periods. {_MODES[report.policy.redirects]}"
    if outlook.overload_at is not None:
        text = f"The forecast exceeds split node {split} at {_clock(outlook.overload_at)}"
        return Headline(f"{text}; {_plan(report)}.", why, "bad", "above capacity")
    later = report.long_outlook.overload_at if report.long_outlook else None
    if later is not None:
        text = f"The forecast exceeds split node {split} about {_clock(later)}"
        return Headline(f"{text}; {_plan(report)}.", why, "warn", "near a limit")
    if (own.share or 0.0) >= _SOON:
        text = f"Split node {split} is {numbers.percent(own.share)} full; {_plan(report)}."
        return Headline(text, why, "warn", "near a limit")
    return Headline(f"Split node {split} has room for what is expected.", why, "good", "has room")


def _plan(report: StreamReport) -> str:
    """Return what is planned for the stream, as the end of a sentence."""
    planned = report.planned
    if planned.targets:
        nodes = " and ".join(map(str, sorted(planned.targets)))
        return f"a redirect to split node {nodes} is planned"
    if planned.redirected:
        others = "1 other" if planned.redirected == 1 else f"{planned.redirected} others"
        return f"redirects of {others} are planned"
    return "no redirect is planned"


def _clock(moment: datetime) -> str:
    return f"{numbers.clock(moment, timezone.now())} UTC"


def tiles(report: StreamReport) -> list[Tile]:
    """Return the tiles of a stream."""
    stream, own, outlook = report.stream, report.own, report.outlook
    left = None if outlook is None or outlook.left is None else min(outlook.left)
    rate = stream.rate
    grade = str(LOAD.grade(own.share)) if own.share is not None else ""
    shown_grade = grade if grade in ("warn", "bad") else ""
    own_rate = None if rate is None else rate * report.shares[own.index]
    part = own_rate / own.capacity if own_rate is not None and own.capacity else None
    shown = [
        Tile("Rate", numbers.compact(rate), "/s", "moving average of 2 min",
             "" if left is None else f"left for it: {numbers.compact(left)}/s",
             rate, left if left and left > 0 else None,
             grade="bad" if left is not None and rate is not None and rate > left else ""),
        Tile(f"Share of split node {own.index}", numbers.percent(part), "",
             _share_note(own.share, own.streams),
             f"limit 100 % of {numbers.compact(own.capacity)}/s" if own.capacity else "",
             own.share, 1.0 if own.share is not None else None, grade=shown_grade,
             term="Share of split node"),
        Tile("Above what is left", _exceeded(report), "", _forecast_of(report),
             grade="warn" if _first(report) else ""),
        _lag_tile(report),
        Tile("Read by", f"{report.reader_count:,}",
             "query" if report.reader_count == 1 else "queries",
             f"on {numbers.counted(report.node_count, 'nodes')}"),
    ]  # fmt: skip
    # Without a capacity nothing is known about what is left of it.
    return [tile for tile in shown if own.capacity or tile not in shown[1:3]]


def _share_note(share: float | None, streams: int) -> str:
    """Return the load of the split node and what it reads."""
    load = "capacity not known" if share is None else f"node at {numbers.percent(share)}"
    return f"{load}, {numbers.counted(streams, 'streams')}"


def _forecast_of(report: StreamReport) -> str:
    """Return which forecast shows when the rate exceeds what is left."""
    outlook = report.long_outlook
    if outlook is None:
        return "by the forecast of the next minutes"
    if not outlook.peaks:
        return "by the forecast of the next hour"
    chance = outlook.peaks[0].chance
    likely = "" if chance is None else f"{numbers.percent(chance)} likely "
    return f"{likely}in its next period"


def _lag_tile(report: StreamReport) -> Tile:
    """Return the lag of the stream, and the wait of records that its split node has read."""
    lag, own, limit_s = report.lag, report.own, report.policy.redirect_latency_s
    lag_s = None if lag is None else lag.seconds
    wait = f"then {numbers.milliseconds(own.latency_ms)} at split node {own.index}"
    if lag is not None and lag_s is None:
        return Tile("Lag", numbers.compact(lag.unread), "records", f"none arrive; {wait}")
    shown = "no data" if lag_s is None else numbers.seconds(lag_s)
    note = wait if own.latency_ms is not None else "of unread records"
    grade = "bad" if lag_s is not None and lag_s > limit_s else ""
    return Tile("Lag", shown, "", note, f"limit {limit_s:g} s", lag_s, limit_s, grade=grade)


def _first(report: StreamReport) -> datetime | None:
    near = report.outlook.overload_at if report.outlook else None
    later = report.long_outlook.overload_at if report.long_outlook else None
    return near or later


def _exceeded(report: StreamReport) -> str:
    first = _first(report)
    if first is not None:
        return _clock(first)
    return "never" if report.outlook and report.outlook.left is not None else "no data"
