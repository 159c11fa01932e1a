"""Texts and numbers of a stream's page: headline and tiles."""

from datetime import datetime
from typing import Final

from controlplane.admission.stream_report import StreamReport
from dashboard import numbers
from dashboard.frame.object_page import ObjectHeadline, ObjectTile
from dashboard.thresholds import LOAD

_SOON: Final = 0.8
_MODES: Final = {
    "act": "Admission redirects streams automatically, as the policy allows it.",
    "recommend": "Admission requests a plan; a person decides.",
    "off": "The policy switches redirections off: redirect it yourself, or request a plan.",
}


def headline(report: StreamReport) -> ObjectHeadline:
    """Return the headline of a stream: when the forecast exceeds its split node, and the plan."""
    outlook, own, split = report.outlook, report.own, report.stream.split
    if outlook is None:
        return ObjectHeadline(
            "No record has arrived yet.",
            "The forecast begins with the first records.",
            "",
            "no records",
        )
    if outlook.left is None:
        return ObjectHeadline(
            f"The capacity of split node {split} is not known.",
            "Declare it under Split nodes, or wait until busy split nodes show it.",
            "",
            "no capacity",
        )
    expected = f"{numbers.compact(own.expected)} of {numbers.compact(own.capacity)} records/s"
    why = f"{expected} are expected there in the next periods. {_MODES[report.policy.redirects]}"
    if outlook.overload_at is not None:
        text = f"The forecast exceeds split node {split} at {_clock(outlook.overload_at)} UTC"
        return ObjectHeadline(f"{text}; {_plan(report)}.", why, "bad", "above capacity")
    later = report.long_outlook.overload_at if report.long_outlook else None
    if later is not None:
        text = f"The forecast exceeds split node {split} about {_clock(later)} UTC"
        return ObjectHeadline(f"{text}; {_plan(report)}.", why, "warn", "near a limit")
    if (own.share or 0.0) >= _SOON:
        text = f"Split node {split} is {numbers.percent(own.share)} full; {_plan(report)}."
        return ObjectHeadline(text, why, "warn", "near a limit")
    return ObjectHeadline(
        f"Split node {split} has room for what is expected.", why, "good", "has room"
    )


def _plan(report: StreamReport) -> str:
    """Return what is planned for the stream, as the end of a sentence."""
    planned = report.planned
    if planned.target is not None:
        return f"a redirect to split node {planned.target} is planned"
    if planned.redirected:
        others = "1 other stream" if planned.redirected == 1 else f"{planned.redirected} others"
        return f"redirects of {others} are planned"
    return "no redirect is planned"


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M}"


def tiles(report: StreamReport) -> list[ObjectTile]:
    """Return the tiles of a stream."""
    stream, own, outlook = report.stream, report.own, report.outlook
    left = None if outlook is None or outlook.left is None else min(outlook.left)
    rate = stream.rate
    grade = str(LOAD.grade(own.share)) if own.share is not None else ""
    shown_grade = grade if grade in ("warn", "bad") else ""
    part = rate / own.capacity if rate is not None and own.capacity else None
    return [
        ObjectTile("Rate", numbers.compact(rate), "/s", "moving average of 10 s",
                   "" if left is None else f"left for it: {numbers.compact(left)}/s",
                   rate, left if left and left > 0 else None,
                   "bad" if left is not None and rate is not None and rate > left else ""),
        ObjectTile(f"Share of split node {own.index}", numbers.percent(part), "",
                   f"node at {numbers.percent(own.share)} with {_counted(own.streams, 'stream')}",
                   f"limit 100 % of {numbers.compact(own.capacity)}/s" if own.capacity else "",
                   own.share, 1.0 if own.share is not None else None, shown_grade),
        ObjectTile("Above what is left", _exceeded(report), "", "by the forecast of the next hour",
                   grade="warn" if _first(report) else ""),
        ObjectTile("Wait at its split node", numbers.milliseconds(own.latency_ms), "",
                   f"{numbers.compact(own.waiting)} records in its queue",
                   f"limit {report.policy.redirect_latency_s:g} s", own.latency_ms,
                   1000 * report.policy.redirect_latency_s),
        ObjectTile("Read by", f"{report.reader_count:,}", "queries",
                   f"on {_counted(report.node_count, 'node')}"),
    ]  # fmt: skip


def _first(report: StreamReport) -> datetime | None:
    near = report.outlook.overload_at if report.outlook else None
    later = report.long_outlook.overload_at if report.long_outlook else None
    return near or later


def _exceeded(report: StreamReport) -> str:
    first = _first(report)
    if first is not None:
        return f"{_clock(first)} UTC"
    return "never" if report.outlook and report.outlook.left is not None else "no data"


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
