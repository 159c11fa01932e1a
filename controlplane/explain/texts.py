"""Sentences about the parts of an explanation."""

from collections.abc import Callable, Mapping
from typing import Final

from controlplane.alerts.measures import KINDS, Measure
from controlplane.explain.subjects import SubjectKind
from controlplane.explain.units import ValueUnit, pair, quantity
from controlplane.explain.values import (
    Change,
    ChangeKind,
    Explanation,
    Finding,
    RankedChange,
    Remedy,
    RemedyReason,
    TimeRelation,
)
from controlplane.policies.grades import Grade


def headline(explanation: Explanation) -> str:
    """Return the finding of an explanation as one sentence."""
    finding = explanation.finding
    when = "" if explanation.is_live else f" at {explanation.time:%H:%M}"
    if finding.value is None:
        return f"No data about {explanation.title}{when}."
    if finding.measure == Measure.LOAD:
        return _load_text(explanation.finding, explanation.title, when, explanation.is_live)
    name = _title(explanation)
    value, limit = (quantity(number, finding.unit) for number in (finding.value, finding.limit))
    verb = "is" if explanation.is_live else "was"
    if finding.measure == Measure.RECORDS and explanation.subject.kind is SubjectKind.STREAM:
        receives = "receives" if explanation.is_live else "received"
        return f"{explanation.title} {receives} {value}{when}."
    if finding.limit is None:
        return f"{name} {verb} {value}{when}."
    compared = "above the limit of" if finding.grade == Grade.BAD else "limit"
    return f"{name} {verb} {value}{when}, {compared} {limit}."


def _title(explanation: Explanation) -> str:
    subject, finding = explanation.subject, explanation.finding
    kind = KINDS.get(Measure(finding.measure)) if finding.measure in list(Measure) else None
    measure = kind.title if kind is not None else finding.measure.replace("_", " ").capitalize()
    if subject.kind in (SubjectKind.MEASURE, SubjectKind.DECISION):
        return measure
    return f"{measure} of {explanation.title}"


def _load_text(finding: Finding, title: str, when: str, is_live: bool) -> str:
    value, limit = finding.value or 0.0, finding.limit or 0.0
    verb = "receives" if is_live else "received"
    share = f"{quantity(value / limit, ValueUnit.SHARE)} of its limit" if limit else "no capacity"
    name = finding.node_name or title
    name = name[:1].upper() + name[1:]
    return f"{name} {verb} {quantity(value, finding.unit)}{when}, {share}."


def change_text(change: Change) -> str:
    """Return a change as one sentence."""
    return _CHANGES[change.kind](change)


def _plan(change: Change) -> str:
    step = f", step {change.step}" if change.step else ""
    version = f" (routing v{change.version})" if change.version is not None else ""
    moved = [
        f"{_queries(count)} moved {where}"
        for count, where in ((change.arrived, "here"), (change.left, "away"))
        if count
    ]
    effect = ", ".join(moved) or "changed the topology"
    return f"Proposal {change.proposal}{step}{version}: {effect}."


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


def _placement(change: Change) -> str:
    until = "" if change.until is None else f" until {change.until:%H:%M}"
    return f"{_queries(change.arrived)} placed here{until} (online placement)."


def _capacity(change: Change) -> str:
    who = f" by {change.actor}" if change.actor else ""
    return f"Capacity set {pair(change.before, change.after, change.unit)}{who}."


def _rate(change: Change) -> str:
    change_ = pair(change.before, change.after, change.unit)
    return f"Rate of {change.name} changed {change_}."


def _redirection(change: Change) -> str:
    what = change.name if change.count == 1 else f"{change.count:,} streams"
    return f"{what} redirected from split node {change.before:.0f} to {change.after:.0f}."


def _restart(change: Change) -> str:
    cause = f": {change.reason}" if change.reason else ""
    return f"The Spark driver ended unexpectedly{cause}."


def _exceeded(change: Change) -> str:
    return f"Limit of {quantity(change.after, change.unit)} exceeded."


_CHANGES: Final[Mapping[ChangeKind, Callable[[Change], str]]] = {
    ChangeKind.PLAN: _plan,
    ChangeKind.PLACEMENT: _placement,
    ChangeKind.CAPACITY: _capacity,
    ChangeKind.ACTIVITY: lambda change: (
        "Node activated." if change.after else "Node deactivated: plans assign no work to it."
    ),
    ChangeKind.RATE: _rate,
    ChangeKind.DROP_RULE: lambda _: "A drop rule of a stream that it reads changed.",
    ChangeKind.LADDER: lambda _: "The ladder of load shedding changed.",
    ChangeKind.REDIRECTION: _redirection,
    ChangeKind.KEY_GROUPING: lambda _: "The key grouping of a query changed.",
    ChangeKind.NODES: lambda change: f"The cluster has {change.after:.0f} nodes.",
    ChangeKind.RESTART: _restart,
    ChangeKind.EXCEEDED: _exceeded,
    ChangeKind.DECISION: lambda change: change.reason,
}
_REASONS: Final[Mapping[RemedyReason, str]] = {
    RemedyReason.HOT_KEY: "A single key is most of the load: another key grouping or more tasks"
    " spread it over several nodes.",
    RemedyReason.ROOM_ELSEWHERE: "The other nodes have room: moving tasks evens out the load.",
    RemedyReason.ALL_FULL: "Dropping records takes effect within a few batches, whether or not"
    " other nodes have room.",
    RemedyReason.REPLICATION: "Queries that read the same streams on one node need fewer copies.",
    RemedyReason.SPLIT_NODE_FULL: "Redirecting streams relieves the full split node.",
    RemedyReason.WAITING: "It waits for approval.",
}


_RELATIONS: Final[Mapping[TimeRelation, str]] = {
    TimeRelation.BEFORE: "{} before the limit was exceeded",
    TimeRelation.WITH: "when the limit was exceeded",
    TimeRelation.AFTER: "{} after the limit was exceeded",
    TimeRelation.UNKNOWN: "",
}


def relation_text(row: RankedChange) -> str:
    """Return when a change was made relative to the disturbance, "" if that is not known."""
    return _RELATIONS[row.relation].format(f"{abs(row.lead_s or 0.0) / 60:.0f} min")


def share_text(row: RankedChange) -> str:
    """Return the share of a change in the disturbance."""
    return "not measured" if row.share is None else f"about {quantity(row.share, ValueUnit.SHARE)}"


def size_text(row: RankedChange) -> str:
    """Return the size of a change with its sign and unit, "" if it is not measured."""
    if row.size is None:
        return ""
    sign = "+" if row.size > 0 else ""
    return f"{sign}{quantity(row.size, row.unit)}".replace("-", "\N{MINUS SIGN}")


def ranked_text(row: RankedChange) -> str:
    """Return a ranked change as one sentence: what changed, its share, and when."""
    notes = [f"share {share_text(row)}", relation_text(row)]
    return f"{row.cause.text} ({', '.join(note for note in notes if note)})"


def remedy_text(remedy: Remedy) -> str:
    """Return why a plan would help, and what it is predicted to do."""
    effects = [
        f"{effect.title} {pair(effect.before, effect.after, effect.unit)}"
        for effect in remedy.effects
    ]
    parts = [", ".join(effects) + "." if effects else "", _REASONS[remedy.reason]]
    return " ".join(part for part in parts if part)


def summary(explanation: Explanation) -> str:
    """Return finding, cause, ranked changes, changes and plans as sentences, one a line."""
    lines = [headline(explanation)]
    if explanation.cause is not None:
        lines.append(f"Likely cause: {explanation.cause.text}")
    lines += [
        f"{place}. {ranked_text(row)}" for place, row in enumerate(explanation.ranked, start=1)
    ]
    lines += [
        f"{change.time:%H:%M:%S} UTC: {change_text(change)}" for change in explanation.changes
    ]
    for remedy in explanation.remedies:
        name = f"proposal {remedy.proposal}" if remedy.proposal else f"request {remedy.planner}"
        lines.append(f"Plan ({name}): {remedy_text(remedy)}")
    return "\n".join(lines)
