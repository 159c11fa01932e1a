"""The parts of an explanation, as values; `explain.texts` writes them as sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from controlplane.explain.cause import Cause
from controlplane.explain.subjects import Subject
from controlplane.explain.units import ValueUnit
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
    """A figure beside the finding; `per_s`: its change per second, None if it is not known."""

    name: str
    value: float | None
    unit: ValueUnit
    limit: float | None = None
    grade: Grade = Grade.UNKNOWN
    per_s: float | None = None
    total: float | None = None


@dataclass(frozen=True)
class Series:
    """A measure over time; None where it was not measured.

    `times`: ms since the epoch; `baseline`: the mean before the change at `changed_at` (ms), both
    None without a change; `explained_at`: the explained moment (ms); `is_lower`: values below the
    limit exceed it.
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


class ChangeKind(StrEnum):
    """The kinds of changes before an exceeded limit."""

    PLAN = "plan"
    PLACEMENT = "placement"
    CAPACITY = "capacity"
    ACTIVITY = "activity"
    RATE = "rate"
    DROP_RULE = "drop_rule"
    LADDER = "ladder"
    REDIRECTION = "redirection"
    KEY_GROUPING = "key_grouping"
    NODES = "nodes"
    RESTART = "restart"
    EXCEEDED = "exceeded"
    DECISION = "decision"


@dataclass(frozen=True)
class Change:
    """A change near the subject.

    `arrived`, `left`: numbers of queries whose tasks it moved to and from the node; `placed`: when
    those that arrived did, by the id of the query. `before`, `after`: values that it replaced and
    set, in `unit`. `name`: of the changed stream or node. `count`: equal changes that the row
    stands for, until `until`.
    """

    kind: ChangeKind
    time: datetime
    name: str = ""
    id: int | None = None
    proposal: int | None = None
    step: int | None = None
    version: int | None = None
    arrived: int = 0
    left: int = 0
    before: float | None = None
    after: float | None = None
    unit: ValueUnit = ValueUnit.RATE
    actor: str = ""
    reason: str = ""
    count: int = 1
    until: datetime | None = None
    placed: Mapping[int, datetime] = field(default_factory=dict)


class TimeRelation(StrEnum):
    """When a change was made, relative to the start of the disturbance."""

    BEFORE = "before"
    WITH = "with"
    AFTER = "after"
    UNKNOWN = "unknown"


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


class RemedyReason(StrEnum):
    """Why a plan would end what is explained."""

    HOT_KEY = "hot_key"
    ROOM_ELSEWHERE = "room_elsewhere"
    ALL_FULL = "all_full"
    REPLICATION = "replication"
    SPLIT_NODE_FULL = "split_node_full"
    WAITING = "waiting"


@dataclass(frozen=True)
class Effect:
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
    `proposal`: the id of a waiting proposal; `actions`: those that touch the subject. `effects`:
    predicted by the plan, none before it is computed. `is_best`: the first one to consider.
    """

    planner: str
    title: str
    reason: RemedyReason
    parameters: dict[str, float] = field(default_factory=dict)
    proposal: int | None = None
    ready_at: datetime | None = None
    actions: int = 0
    effects: Sequence[Effect] = ()
    is_best: bool = False


@dataclass(frozen=True)
class Explanation:
    """What is wrong with a subject, since when, why, and what would end it.

    `time`: the explained moment; `is_live`: True if it is now. `title`: the name of the subject.
    `ranked`: the changes before it with the largest effects. `assignment_is_present`: False if
    tasks have moved since `time`, so that contributions are those of the tasks of today.
    """

    subject: Subject
    title: str
    time: datetime
    is_live: bool
    finding: Finding
    facts: Sequence[Fact] = ()
    series: Series | None = None
    streams: Contributions | None = None
    keys: Contributions | None = None
    queries: Contributions | None = None
    changes: Sequence[Change] = ()
    cause: Cause | None = None
    ranked: Sequence[RankedChange] = ()
    remedies: Sequence[Remedy] = ()
    assignment_is_present: bool = True
