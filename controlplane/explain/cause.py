"""The likely cause of an exceeded limit, as a value with its sentence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from controlplane.explain.units import ValueUnit, pair, quantity


class CauseCode(StrEnum):
    """The likely causes, and the other changes before an exceeded limit."""

    CAPACITY_LOWERED = "capacity_lowered"
    STREAM_ROSE = "stream_rose"
    STREAMS_ROSE = "streams_rose"
    HOT_KEY = "hot_key"
    PLAN_MOVED = "plan_moved"
    QUERIES_PLACED = "queries_placed"
    SLOW_NODE = "slow_node"
    NODE_STALLED = "node_stalled"
    RESTARTED = "restarted"
    SPLIT_NODE_FULL = "split_node_full"
    SLOW_BATCH = "slow_batch"
    UNBALANCED = "unbalanced"
    ALL_FULL = "all_full"
    DROPS_CHANGED = "drops_changed"
    LADDER_CHANGED = "ladder_changed"
    KEY_GROUPING_CHANGED = "key_grouping_changed"
    REDIRECTED = "redirected"
    ACTIVITY_CHANGED = "activity_changed"
    NODE_COUNT_CHANGED = "node_count_changed"


@dataclass(frozen=True)
class Cause:
    """The likely cause of an exceeded limit.

    `share`: of the increase that it explains, None if there was no increase. `before`, `after`: in
    `unit`. `full_share`: load of all nodes over their capacity, if it is above 1. `key`: the text
    of a key; `key_share`: its part of the records of the query.
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
    share: float | None = None
    full_share: float | None = None

    @property
    def text(self) -> str:
        """Return the cause as one sentence."""
        text = _TEXTS[self.code](self)
        if self.full_share is not None and self.code is not CauseCode.ALL_FULL:
            text += f" All nodes together have {quantity(self.full_share, ValueUnit.SHARE)} load."
        return text

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
    return f"Stream {cause.stream_name} rose {change}{cause.since}{_part(cause)}."


def _streams_rose(cause: Cause) -> str:
    change = pair(cause.before, cause.after, cause.unit)
    most = f", most of all {cause.stream_name}" if cause.stream_name else ""
    return f"The rates of {cause.count} streams rose together {change}{cause.since}{most}."


def _hot_key(cause: Cause) -> str:
    query = f"query {cause.query_name}"
    of = f"stream {cause.stream_name} ({query})" if cause.stream_name else query
    change = f"has {quantity(cause.after, cause.unit)}{_since(cause)}"
    if cause.before is not None:
        change += f", at most {quantity(cause.before, cause.unit)} before"
    share = "" if cause.key_share is None else f"{quantity(cause.key_share, ValueUnit.SHARE)}"
    parts = [f"{share} of the query's records" if share else "", _part(cause).removeprefix(": ")]
    shares = ", ".join(part for part in parts if part)
    return f"Key {cause.key} of {of} {change}{': ' if shares else ''}{shares}."


def _since(cause: Cause) -> str:
    return "" if cause.time is None else f" since {cause.time:%H:%M}"


def _plan_moved(cause: Cause) -> str:
    added = f", which added {quantity(cause.after, cause.unit)}"
    queries = _queries(cause.count)
    return f"Proposal {cause.proposal} moved {queries} to {cause.node_name}{cause.since}{added}."


def _queries_placed(cause: Cause) -> str:
    added = f", which added {quantity(cause.after, cause.unit)}"
    return f"{_queries(cause.count)} were placed on {cause.node_name}{cause.since}{added}."


def _slow_node(cause: Cause) -> str:
    if cause.count:
        needs, others = quantity(cause.after, cause.unit), quantity(cause.before, cause.unit)
        return (
            f"{_name(cause)} needs more processor time per record than other nodes{_since(cause)}:"
            f" {needs} per 1,000 records, the others {others}."
        )
    change = pair(cause.before, cause.after, cause.unit)
    more = f"{_name(cause)} needs more processor time per record{_since(cause)}"
    return f"{more}: {change} per 1,000 records."


def _node_stalled(cause: Cause) -> str:
    rate = quantity(cause.before, ValueUnit.RATE)
    what = f"{_name(cause)} processes no records{_since(cause)}"
    return f"{what}: {rate} arrive, {cause.count:,} records wait."


def _restarted(cause: Cause) -> str:
    return f"The Spark driver restarted{cause.since}, and works off the backlog of that time."


def _split_node_full(cause: Cause) -> str:
    return f"Split node {cause.node} uses {quantity(cause.after, cause.unit)} of its capacity."


def _slow_batch(cause: Cause) -> str:
    took = quantity(cause.after, cause.unit)
    limit = quantity(cause.before, cause.unit)
    busiest = f"; {cause.node_name} computes longest" if cause.node_name else ""
    return f"A micro-batch takes {took}, longer than the trigger of {limit}{busiest}."


def _unbalanced(cause: Cause) -> str:
    load, mean = quantity(cause.after, cause.unit), quantity(cause.before, cause.unit)
    return f"{_name(cause)} has {load} of its capacity, the mean of all nodes is {mean}."


def _all_full(cause: Cause) -> str:
    load = quantity(cause.full_share, ValueUnit.SHARE)
    return f"The input exceeds what all nodes together can process: {load} of their capacity."


def _drops_changed(cause: Cause) -> str:
    who = f" by {cause.actor}" if cause.actor else ""
    text = f"A drop rule of stream {cause.stream_name} changed{who}{cause.since}"
    if cause.before is None or cause.after is None:
        return f"{text}."
    return f"{text}: it drops {pair(cause.before, cause.after, cause.unit)} of the records."


def _redirected(cause: Cause) -> str:
    what = f"Stream {cause.stream_name}" if cause.count == 1 else f"{cause.count:,} streams"
    ends = f"from split node {cause.before or 0:.0f} to {cause.after or 0:.0f}"
    return f"{what} {'was' if cause.count == 1 else 'were'} redirected {ends}{cause.since}."


def _activity_changed(cause: Cause) -> str:
    what = "activated" if cause.after else "deactivated"
    return f"{_name(cause)} was {what}{cause.since}."


def _node_count_changed(cause: Cause) -> str:
    return f"The number of nodes was set to {cause.after or 0:.0f}{cause.since}."


def _part(cause: Cause) -> str:
    if cause.share is None:
        return ""
    of = f"the increase on {cause.node_name}" if cause.node_name else "the increase"
    return f": {quantity(min(1.0, cause.share), ValueUnit.SHARE)} of {of}"


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


def _name(cause: Cause) -> str:
    return cause.node_name[:1].upper() + cause.node_name[1:]


_TEXTS: Final[Mapping[CauseCode, Callable[[Cause], str]]] = {
    CauseCode.CAPACITY_LOWERED: _capacity_lowered,
    CauseCode.STREAM_ROSE: _stream_rose,
    CauseCode.STREAMS_ROSE: _streams_rose,
    CauseCode.HOT_KEY: _hot_key,
    CauseCode.PLAN_MOVED: _plan_moved,
    CauseCode.QUERIES_PLACED: _queries_placed,
    CauseCode.SLOW_NODE: _slow_node,
    CauseCode.NODE_STALLED: _node_stalled,
    CauseCode.RESTARTED: _restarted,
    CauseCode.SPLIT_NODE_FULL: _split_node_full,
    CauseCode.SLOW_BATCH: _slow_batch,
    CauseCode.UNBALANCED: _unbalanced,
    CauseCode.ALL_FULL: _all_full,
    CauseCode.DROPS_CHANGED: _drops_changed,
    CauseCode.LADDER_CHANGED: lambda cause: f"The ladder of load shedding changed{cause.since}.",
    CauseCode.KEY_GROUPING_CHANGED: lambda cause: (
        f"The key grouping of a query changed{cause.since}."
    ),
    CauseCode.REDIRECTED: _redirected,
    CauseCode.ACTIVITY_CHANGED: _activity_changed,
    CauseCode.NODE_COUNT_CHANGED: _node_count_changed,
}
