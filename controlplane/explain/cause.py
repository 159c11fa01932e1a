"""The likely cause of an exceeded limit, as a value with its sentence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from controlplane.explain.units import ValueUnit, pair, quantity
from controlplane.numbers import counted, raised

# From this part of the streams on, all rose together.
_ALL: Final = 0.9


class CauseCode(StrEnum):
    """The changes and states that explain an exceeded limit."""

    CAPACITY_LOWERED = "capacity_lowered"
    STREAM_ROSE = "stream_rose"
    STREAMS_ROSE = "streams_rose"
    HOT_KEY = "hot_key"
    PLAN_MOVED = "plan_moved"
    QUERIES_PLACED = "queries_placed"
    SLOW_NODE = "slow_node"
    NODE_STALLED = "node_stalled"
    EXPENSIVE_QUERY = "expensive_query"
    RESTARTED = "restarted"
    SPLIT_NODE_FULL = "split_node_full"
    LIMIT_TOO_LOW = "limit_too_low"
    UNBALANCED = "unbalanced"
    ALL_FULL = "all_full"
    DROPS_CHANGED = "drops_changed"
    LADDER_CHANGED = "ladder_changed"


# The measure that placements and rates change, but not the speed of nodes.
_TRAFFIC: Final = "replication_factor"
_OF_TRAFFIC: Final = (
    CauseCode.PLAN_MOVED, CauseCode.QUERIES_PLACED, CauseCode.STREAM_ROSE, CauseCode.STREAMS_ROSE,
)  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """The likely cause of an exceeded limit.

    `share`: of the disturbance that it explains, None for a state. `before`, `after`: in `unit`.
    `full_share`: load of all nodes over their capacity, if it is above 1. `key`: the text of a key;
    `key_share`: its part of the records of the query. `count`: of queries, streams or waiting
    records, `total`: of all streams with records. `measure`: whose limit is too low.
    """

    code: CauseCode
    time: datetime | None = None
    node: int | None = None
    node_name: str = ""
    stream: int | None = None
    stream_name: str = ""
    query: int | None = None
    query_name: str = ""
    key: str = ""
    key_share: float | None = None
    proposal: int | None = None
    actor: str = ""
    before: float | None = None
    after: float | None = None
    unit: ValueUnit = ValueUnit.RATE
    count: int = 0
    total: int = 0
    measure: str = ""
    share: float | None = None
    full_share: float | None = None

    @property
    def subject(self) -> tuple[object, ...]:
        """Return what the cause is about: equal for the same cause on several nodes."""
        node = None if self.stream or self.query or self.proposal else self.node
        return self.code, node, self.stream, self.query, self.key, self.proposal

    def explains(self, measure: str) -> bool:
        """Return True if the cause is about a measure: traffic, or the work of nodes."""
        if self.measure:
            return self.measure == measure
        return measure != _TRAFFIC or self.code in _OF_TRAFFIC

    @property
    def text(self) -> str:
        """Return the cause as one sentence."""
        return _TEXTS[self.code](self)

    @property
    def full_text(self) -> str:
        """Return the load of all nodes as a sentence, "" if they have room."""
        if self.full_share is None or self.code is CauseCode.ALL_FULL:
            return ""
        return f" All nodes together have {quantity(self.full_share, ValueUnit.SHARE)} load."

    @property
    def since(self) -> str:
        """Return the time of the cause for a sentence: " at 10:36", "" if it is not known."""
        return "" if self.time is None else f" at {self.time:%H:%M}"


def _capacity_lowered(cause: Cause) -> str:
    who = f" by {cause.actor}" if cause.actor else ""
    change = pair(cause.before, cause.after, cause.unit)
    return f"The capacity of {cause.node_name} was set {change}{who}{cause.since}."


def _stream_rose(cause: Cause) -> str:
    change = pair(cause.before, cause.after, cause.unit)
    return f"Stream {cause.stream_name} rose {change}{cause.since}."


def _streams_rose(cause: Cause) -> str:
    all_of_them = cause.total and cause.count >= _ALL * cause.total
    streams = "All streams" if all_of_them else f"{cause.count:,} of {cause.total:,} streams"
    times = (cause.after or 0.0) / (cause.before or 1.0)
    change = pair(cause.before, cause.after, cause.unit)
    most = f", most of all {cause.stream_name}" if cause.stream_name else ""
    return f"{streams} have {times:.1f} times as many records{_since(cause)}: {change}{most}."


def _hot_key(cause: Cause) -> str:
    query = f"query {cause.query_name}"
    of = f"stream {cause.stream_name} ({query})" if cause.stream_name else query
    change = f"has {quantity(cause.after, cause.unit)}{_since(cause)}"
    if cause.before is not None:
        change += f", at most {quantity(cause.before, cause.unit)} before"
    if cause.key_share is not None:
        change += f": {quantity(cause.key_share, ValueUnit.SHARE)} of the query's records"
    return f"Key {cause.key} of {of} {change}."


def _since(cause: Cause) -> str:
    return "" if cause.time is None else f" since {cause.time:%H:%M}"


def _plan_moved(cause: Cause) -> str:
    where = f" to {cause.node_name}" if cause.node_name else ""
    if not cause.count:
        return f"Proposal {cause.proposal} took effect{cause.since}."
    return (
        f"Proposal {cause.proposal} moved {counted(cause.count, 'queries')}{where}{cause.since}"
        f"{_added(cause)}."
    )


def _queries_placed(cause: Cause) -> str:
    is_named = cause.count == 1 and cause.query_name
    what = f"Query {cause.query_name}" if is_named else counted(cause.count, "queries")
    verb = "was" if cause.count == 1 else "were"
    return f"{what} {verb} placed{_on(cause)}{cause.since}{_added(cause)}."


def _expensive_query(cause: Cause) -> str:
    others = f" and {counted(cause.count - 1, 'queries')} more" if cause.count > 1 else ""
    needs = pair(cause.before, cause.after, cause.unit)
    what = f"Query {cause.query_name}{others}, placed{_on(cause)}{cause.since}"
    return f"{what}, needs much processor time: {needs} per 1,000 records of the node."


def _on(cause: Cause) -> str:
    return f" on {cause.node_name}" if cause.node_name else ""


def _added(cause: Cause) -> str:
    return f", which added {quantity(cause.after, cause.unit)}" if cause.node_name else ""


def _slow_node(cause: Cause) -> str:
    if cause.count:
        needs, others = quantity(cause.after, cause.unit), quantity(cause.before, cause.unit)
        return (
            f"{raised(cause.node_name)} needs more processor time per record than other nodes"
            f"{_since(cause)}: {needs} per 1,000 records, the others {others}."
        )
    change = pair(cause.before, cause.after, cause.unit)
    more = f"{raised(cause.node_name)} needs more processor time per record{_since(cause)}"
    return f"{more}: {change} per 1,000 records."


def _node_stalled(cause: Cause) -> str:
    rate = quantity(cause.before, ValueUnit.RATE)
    what = f"{raised(cause.node_name)} processes no records{_since(cause)}"
    return f"{what}: {rate} arrive, {cause.count:,} records wait."


def _restarted(cause: Cause) -> str:
    return f"The Spark driver restarted{cause.since}, and works off the backlog of that time."


def _split_node_full(cause: Cause) -> str:
    return f"Split node {cause.node} uses {quantity(cause.after, cause.unit)} of its capacity."


def _limit_too_low(cause: Cause) -> str:
    limit, least = quantity(cause.before, cause.unit), quantity(cause.after, cause.unit)
    return (
        f"No change explains it; the limit of {limit} is below what this workload allows:"
        f" at least {least}."
    )


def _unbalanced(cause: Cause) -> str:
    load, mean = quantity(cause.after, cause.unit), quantity(cause.before, cause.unit)
    return f"{raised(cause.node_name)} has {load} of its capacity, the mean of all nodes is {mean}."


def _all_full(cause: Cause) -> str:
    load = quantity(cause.full_share, ValueUnit.SHARE)
    return f"The input exceeds what all nodes together can process: {load} of their capacity."


def _drops_changed(cause: Cause) -> str:
    who = f" by {cause.actor}" if cause.actor else ""
    text = f"A drop rule of stream {cause.stream_name} changed{who}{cause.since}"
    if cause.before is None or cause.after is None:
        return f"{text}."
    return f"{text}: it drops {pair(cause.before, cause.after, cause.unit)} of the records."


_TEXTS: Final[Mapping[CauseCode, Callable[[Cause], str]]] = {
    CauseCode.CAPACITY_LOWERED: _capacity_lowered,
    CauseCode.STREAM_ROSE: _stream_rose,
    CauseCode.STREAMS_ROSE: _streams_rose,
    CauseCode.HOT_KEY: _hot_key,
    CauseCode.PLAN_MOVED: _plan_moved,
    CauseCode.QUERIES_PLACED: _queries_placed,
    CauseCode.SLOW_NODE: _slow_node,
    CauseCode.NODE_STALLED: _node_stalled,
    CauseCode.EXPENSIVE_QUERY: _expensive_query,
    CauseCode.RESTARTED: _restarted,
    CauseCode.SPLIT_NODE_FULL: _split_node_full,
    CauseCode.LIMIT_TOO_LOW: _limit_too_low,
    CauseCode.UNBALANCED: _unbalanced,
    CauseCode.ALL_FULL: _all_full,
    CauseCode.DROPS_CHANGED: _drops_changed,
    CauseCode.LADDER_CHANGED: lambda cause: f"The shedding plan changed{cause.since}.",
}
