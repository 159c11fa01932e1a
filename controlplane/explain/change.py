"""A change near the subject of an explanation, with its sentence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from controlplane.explain.units import ValueUnit, pair, quantity
from controlplane.numbers import counted


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
class NearbyChange:
    """A change near the subject.

    `arrived`: the number of queries whose tasks it moved to the node; `placed`: when they arrived,
    by the id of the query. `before`, `after`: values that it replaced and
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
    before: float | None = None
    after: float | None = None
    unit: ValueUnit = ValueUnit.RATE
    actor: str = ""
    reason: str = ""
    count: int = 1
    until: datetime | None = None
    placed: Mapping[int, datetime] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the change as one sentence."""
        return _TEXTS[self.kind](self)

    @property
    def mark(self) -> str:
        """Return "plan" for a plan, "bad" for an exceeded limit or a restart, "" for others."""
        if self.kind is ChangeKind.PLAN or self.proposal is not None:
            return "plan"
        return "bad" if self.kind in (ChangeKind.EXCEEDED, ChangeKind.RESTART) else ""


def _plan(change: NearbyChange) -> str:
    step = f", step {change.step}" if change.step else ""
    version = f" (routing v{change.version})" if change.version is not None else ""
    effect = "changed the topology"
    if change.arrived:
        effect = f"{counted(change.arrived, 'queries')} moved here"
    return f"Proposal {change.proposal}{step}{version}: {effect}."


def _placement(change: NearbyChange) -> str:
    until = "" if change.until is None else f" until {change.until:%H:%M}"
    return f"{counted(change.arrived, 'queries')} placed here{until} (online placement)."


def _capacity(change: NearbyChange) -> str:
    who = f" by {change.actor}" if change.actor else ""
    return f"Capacity set {pair(change.before, change.after, change.unit)}{who}."


def _redirection(change: NearbyChange) -> str:
    what = change.name if change.count == 1 else f"{change.count:,} streams"
    return f"{what} redirected from split node {change.before:.0f} to {change.after:.0f}."


def _restart(change: NearbyChange) -> str:
    cause = f": {change.reason}" if change.reason else ""
    return f"The Spark driver ended unexpectedly{cause}."


_TEXTS: Final[Mapping[ChangeKind, Callable[[NearbyChange], str]]] = {
    ChangeKind.PLAN: _plan,
    ChangeKind.PLACEMENT: _placement,
    ChangeKind.CAPACITY: _capacity,
    ChangeKind.ACTIVITY: lambda change: (
        "Node activated." if change.after else "Node deactivated: plans assign no work to it."
    ),
    ChangeKind.RATE: lambda change: (
        f"Rate of {change.name} changed {pair(change.before, change.after, change.unit)}."
    ),
    ChangeKind.DROP_RULE: lambda _: "A drop rule of a stream that it reads changed.",
    ChangeKind.LADDER: lambda _: "The shedding plan changed.",
    ChangeKind.REDIRECTION: _redirection,
    ChangeKind.KEY_GROUPING: lambda _: "The key grouping of a query changed.",
    ChangeKind.NODES: lambda change: f"The cluster has {change.after:.0f} nodes.",
    ChangeKind.RESTART: _restart,
    ChangeKind.EXCEEDED: lambda change: f"Limit of {quantity(change.after, change.unit)} exceeded.",
    ChangeKind.DECISION: lambda change: change.reason,
}
