"""The parts of an explanation, as values with their sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.change import NearbyChange
from controlplane.explain.subjects import ExplanationSubject, SubjectKind
from controlplane.explain.units import ValueUnit, pair, quantity
from controlplane.numbers import compact, raised
from controlplane.policies.grades import Grade


@dataclass(frozen=True)
class Finding:
    """A measure of the subject against its limit.

    `value`: the mean over `span_s` seconds up to the explained moment, None without data; `limit`:
    None if the policy has none; `setting`: the setting of the policy that declares it. `since`:
    when the limit was exceeded, None if it is not; `since_is_earliest`: True if it was exceeded
    already when the read samples begin. `node`: the index of the node that the finding is about,
    None for the whole cluster.
    """

    measure: str
    value: float | None
    limit: float | None
    unit: ValueUnit
    setting: str = ""
    grade: Grade = Grade.UNKNOWN
    since: datetime | None = None
    since_is_earliest: bool = False
    node: int | None = None
    node_name: str = ""
    span_s: int = 60


@dataclass(frozen=True)
class Fact:
    """A figure beside the finding.

    `per_s`: its change per second, `before`: its mean of the five minutes before, None if not
    known.
    """

    name: str
    value: float | None
    unit: ValueUnit
    limit: float | None = None
    grade: Grade = Grade.UNKNOWN
    per_s: float | None = None
    total: float | None = None
    before: float | None = None

    @property
    def text(self) -> str:
        """Return the value with its unit."""
        return quantity(self.value, self.unit)

    @property
    def note(self) -> str:
        """Return the total, the change per second or the limit in words, "" without them."""
        if self.total is not None:
            return f"of {quantity(self.total, self.unit)}"
        if self.per_s is not None and round(self.per_s):
            return f"{self.per_s:+,.0f}/s".replace("-", "\N{MINUS SIGN}")
        return "" if self.limit is None else f"limit {quantity(self.limit, self.unit)}"


@dataclass(frozen=True)
class Series:
    """A measure over time; None where it was not measured.

    `times`: ms since the epoch; `limits`: a limit that moves, at each time; `baseline`: the mean
    before the change at `changed_at` (ms), both None without a change; `explained_at`: the
    explained moment (ms); `is_lower`: values below the limit exceed it.
    """

    title: str
    unit: ValueUnit
    times: Sequence[int]
    values: Sequence[float | None]
    limit: float | None = None
    limit_title: str = ""
    baseline: float | None = None
    changed_at: int | None = None
    explained_at: int | None = None
    is_lower: bool = False
    limits: Sequence[float | None] = ()


@dataclass(frozen=True)
class Contribution:
    """The part of a stream, key or query in the load of the subject.

    `id`: of the stream or query, None for a key; `query`: the name of the query whose key it is.
    `rate`, `before`: records/s now and before the change, None if not known; `change`: their
    difference; `share`: of the total, from 0 to 1. `is_large`: True if the subject would be below
    its limit without it.
    """

    name: str
    rate: float
    share: float
    id: int | None = None
    query: str = ""
    before: float | None = None
    is_large: bool = False

    @property
    def change(self) -> float | None:
        """Return the change of the rate in records/s, None if it is not known."""
        return None if self.before is None else self.rate - self.before

    @property
    def text(self) -> str:
        """Return the change of the rate with its sign, the rate if the change is not known."""
        if self.change is None:
            return f"{compact(self.rate)}/s"
        sign = "+" if self.change >= 0 else "\N{MINUS SIGN}"
        return f"{sign}{compact(abs(self.change))}/s"


@dataclass(frozen=True)
class Contributions:
    """The largest contributions of one kind, and all others together.

    `is_change`: True if shares are parts of the increase, False if they are parts of the load.
    `total`: records/s that the shares are parts of. `sampled`: the number of sampled records from
    which shares of keys are estimated.
    """

    total: float
    rows: Sequence[Contribution]
    others: int = 0
    others_rate: float = 0.0
    others_share: float = 0.0
    is_change: bool = False
    sampled: int | None = None

    @property
    def others_text(self) -> str:
        """Return the rate of all others, with its sign if it is a change."""
        return f"{'+' if self.is_change else ''}{compact(self.others_rate)}/s"


class TimeRelation(StrEnum):
    """When a change was made, relative to the start of the disturbance."""

    BEFORE = "before"
    WITH = "with"
    AFTER = "after"
    UNKNOWN = "unknown"


# A single change explains a disturbance from this share on; a second one is named from that.
MOST: Final = 0.5
_NAMED: Final = 0.1
_RELATIONS: Final[Mapping[TimeRelation, str]] = {
    TimeRelation.BEFORE: "{} before the limit was exceeded",
    TimeRelation.WITH: "when the limit was exceeded",
    TimeRelation.AFTER: "{} after the limit was exceeded",
    TimeRelation.UNKNOWN: "",
}


@dataclass(frozen=True)
class RankedChange:
    """A change before an exceeded limit, with its share of the disturbance.

    `cause`: what changed; `size`: its effect in `unit`, None if it is not measured. `share`: the
    estimated part of the disturbance, None if it is not measured; all shares add up to 1 at most.
    `lead_s`: seconds from the change to the start of the disturbance, negative for a later change,
    None if one of the times is not known.
    """

    cause: Cause
    size: float | None
    unit: ValueUnit
    share: float | None
    relation: TimeRelation
    lead_s: float | None = None

    @property
    def text(self) -> str:
        """Return the change as one sentence: what changed, its share, and when."""
        notes = [f"share {self.share_text}", self.relation_text]
        return f"{self.cause.text} ({', '.join(note for note in notes if note)})"

    @property
    def relation_text(self) -> str:
        """Return when the change was made relative to the disturbance, "" if not known."""
        return _RELATIONS[self.relation].format(f"{abs(self.lead_s or 0.0) / 60:.0f} min")

    @property
    def share_text(self) -> str:
        """Return the share of the change in the disturbance."""
        if self.share is None:
            return "not measured"
        return f"about {quantity(self.share, ValueUnit.SHARE)}"

    @property
    def size_text(self) -> str:
        """Return the size of the change with its sign and unit, "" if it is not measured."""
        if self.size is None:
            return ""
        sign = "+" if self.size > 0 else ""
        return f"{sign}{quantity(self.size, self.unit)}".replace("-", "\N{MINUS SIGN}")

    @property
    def mark(self) -> str:
        """Return "bad" for a change that explains the disturbance alone, "" for others."""
        return "bad" if self.share is not None and self.share >= MOST else ""


def named_changes(ranked: Sequence[RankedChange]) -> Sequence[RankedChange]:
    """Return the ranked changes that headlines name: the first one, and the second if large."""
    is_large = any(row.share is not None and row.share >= _NAMED for row in ranked[1:2])
    return ranked[: 2 if is_large else 1]


def causes_text(ranked: Sequence[RankedChange]) -> str:
    """Return the named changes as sentences, with their shares if there are two."""
    named = named_changes(ranked)
    texts = [row.cause.text for row in named]
    if not named or named[0].cause.code is CauseCode.LIMIT_TOO_LOW:
        return "".join(texts)
    if len(named) == 1:
        return f"Likely cause: {texts[0]}{named[0].cause.full_text}"
    parts = (f"{row.cause.text.removesuffix('.')} ({row.share_text})." for row in named)
    return f"Likely causes: {' '.join(parts)}{named[0].cause.full_text}"


class RemedyReason(StrEnum):
    """Why a plan would end what is explained."""

    HOT_KEY = "hot_key"
    ROOM_ELSEWHERE = "room_elsewhere"
    ALL_FULL = "all_full"
    REPLICATION = "replication"
    SPLIT_NODE_FULL = "split_node_full"
    WAITING = "waiting"


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


@dataclass(frozen=True)
class PredictedEffect:
    """The predicted effect of a plan on a measure; `title` for people."""

    name: str
    title: str
    unit: ValueUnit
    before: float
    after: float


@dataclass(frozen=True)
class Remedy:
    """A plan that would end what is explained: a waiting proposal, or a planner to request.

    `planner`: its name, with `parameters` of the request; `title`: the effect of its plans.
    `proposal`: the id of a waiting proposal; `actions`: those that touch the subject; `extent`: of
    how many, in words. `effects`: predicted by the plan, none before it is computed. `is_best`: the
    first one to consider.
    """

    planner: str
    title: str
    reason: RemedyReason
    parameters: dict[str, Any] = field(default_factory=dict)
    proposal: int | None = None
    ready_at: datetime | None = None
    actions: int = 0
    extent: str = ""
    effects: Sequence[PredictedEffect] = ()
    is_best: bool = False

    @property
    def heading(self) -> str:
        """Return what a person can do: review the proposal, or request a plan."""
        if self.proposal is not None:
            return f"Proposal {self.proposal}: {self.title}, {self.extent}"
        if self.reason is RemedyReason.ALL_FULL:
            return "Drop a part of the input: a shedding plan"
        return f"Request a plan: {self.title}"

    @property
    def text(self) -> str:
        """Return what the plan is predicted to do, and why it would help."""
        effects = [
            f"{effect.title} {pair(effect.before, effect.after, effect.unit)}"
            for effect in self.effects
        ]
        parts = [", ".join(effects) + "." if effects else "", _REASONS[self.reason]]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Explanation:
    """What is wrong with a subject, since when, why, and what would end it.

    `time`: the explained moment; `is_live`: True if it is now. `title`: the name of the subject.
    `ranked`: what explains it, the largest share first. `assignment_is_present`: False if
    tasks have moved since `time`, so that contributions are those of the tasks of today.
    """

    subject: ExplanationSubject
    title: str
    time: datetime
    is_live: bool
    finding: Finding
    facts: Sequence[Fact] = ()
    series: Series | None = None
    streams: Contributions | None = None
    keys: Contributions | None = None
    queries: Contributions | None = None
    changes: Sequence[NearbyChange] = ()
    ranked: Sequence[RankedChange] = ()
    remedies: Sequence[Remedy] = ()
    assignment_is_present: bool = True

    @property
    def cause(self) -> Cause | None:
        """Return the likely cause: the first of the ranked changes."""
        return self.ranked[0].cause if self.ranked else None

    @property
    def causes_text(self) -> str:
        """Return the likely causes as sentences, "" if none is known."""
        return causes_text(self.ranked)

    @property
    def headline(self) -> str:
        """Return the finding as one sentence."""
        finding = self.finding
        when = "" if self.is_live else f" at {self.time:%H:%M}"
        if finding.value is None:
            return f"No data about {self.title}{when}."
        if finding.measure == AlertMeasure.LOAD:
            return self._load_text(when)
        value, limit = (quantity(number, finding.unit) for number in (finding.value, finding.limit))
        verb = "is" if self.is_live else "was"
        if finding.measure == AlertMeasure.RECORDS and self.subject.kind is SubjectKind.STREAM:
            receives = "receives" if self.is_live else "received"
            return f"{self.title} {receives} {value}{when}."
        if finding.limit is None:
            return f"{self._measure_title} {verb} {value}{when}."
        compared = "above the limit of" if finding.grade == Grade.BAD else "limit"
        return f"{self._measure_title} {verb} {value}{when}, {compared} {limit}."

    @property
    def _measure_title(self) -> str:
        title = KINDS[AlertMeasure(self.finding.measure)].title
        if self.subject.kind in (SubjectKind.MEASURE, SubjectKind.DECISION):
            return title
        return f"{title} of {self.title}"

    def _load_text(self, when: str) -> str:
        finding = self.finding
        value, limit = finding.value or 0.0, finding.limit or 0.0
        verb, share = "receives" if self.is_live else "received", "no capacity"
        if limit:
            share = f"{quantity(value / limit, ValueUnit.SHARE)} of its limit"
        name = raised(finding.node_name or self.title)
        return f"{name} {verb} {quantity(value, finding.unit)}{when}, {share}."

    @property
    def summary(self) -> str:
        """Return finding, cause, ranked changes, changes and plans as sentences, one a line."""
        lines = [self.headline]
        if self.ranked:
            lines.append(self.causes_text)
        lines += [f"{place}. {row.text}" for place, row in enumerate(self.ranked, start=1)]
        lines += [f"{change.time:%H:%M:%S} UTC: {change.text}" for change in self.changes]
        for remedy in self.remedies:
            name = f"proposal {remedy.proposal}" if remedy.proposal else f"request {remedy.planner}"
            lines.append(f"Plan ({name}): {remedy.text}")
        return "\n".join(lines)
