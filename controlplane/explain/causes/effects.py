"""The changes at a node with their effects: records/s that each adds, and factors of its work."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.causes.evidence import NodeEvidence
from controlplane.explain.causes.node_speed import computes_longest
from controlplane.explain.causes.stream_rises import BEYOND, StreamRises
from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.explain.node_keys import NodeKey
from controlplane.explain.units import ValueUnit

# Streams whose rises are compared, the largest ones.
_STREAMS: Final = 8
# A node that processes no records is as slow as one that needs a hundred times as long for each.
_STALLED: Final = 100.0
# A placement so long before or after a node became slower is its cause, if it moved few queries.
_BEFORE: Final = timedelta(minutes=3)
_AFTER: Final = timedelta(minutes=1)
_FEW: Final = 3
_CODES: Final = {
    ChangeKind.PLAN: CauseCode.PLAN_MOVED,
    ChangeKind.PLACEMENT: CauseCode.QUERIES_PLACED,
    ChangeKind.CAPACITY: CauseCode.CAPACITY_LOWERED,
    ChangeKind.DROP_RULE: CauseCode.DROPS_CHANGED,
    ChangeKind.LADDER: CauseCode.LADDER_CHANGED,
}


@dataclass(frozen=True)
class ChangeEffect:
    """A change with its effect on a node: `added` records/s, or a `factor` of its work.

    `factor`: above 1 for less capacity, or for more time per record.
    """

    cause: Cause
    added: float = 0.0
    factor: float = 1.0

    @property
    def size(self) -> tuple[float | None, ValueUnit]:
        """Return the size of the change with its unit, None if it is not measured."""
        cause = self.cause
        if self.added:
            return self.added, ValueUnit.RATE
        if cause.code is CauseCode.NODE_STALLED:
            return float(cause.count), ValueUnit.RECORDS
        if cause.before is None or cause.after is None:
            return None, cause.unit
        return cause.after - cause.before, cause.unit


def effects_of(evidence: NodeEvidence) -> list[ChangeEffect]:
    """Return the changes that add work to a node, in any order.

    A change counts with the state of its time: a rise of a stream with the queries that were on the
    node before it, a placement with the rates of its time. So their sum is the whole increase, in
    whatever order they were made.
    """
    keys = list(_keys(evidence))
    hot: dict[int, float] = {}
    for effect in keys:
        if effect.cause.stream is not None:
            hot[effect.cause.stream] = hot.get(effect.cause.stream, 0.0) + effect.added
    capacity = list(_capacity(evidence))
    return [
        effect
        for effect in (
            *keys, *_streams(evidence, hot), *_moves(evidence), *_drops(evidence), *capacity,
            *speed_effects(evidence, capacity),
        )
        if effect.added > 0 or effect.factor > 1
    ]  # fmt: skip


def _keys(evidence: NodeEvidence) -> Iterator[ChangeEffect]:
    """Yield the keys that are more frequent than before, each once over all queries.

    A key that has more records because most streams have is none.
    """
    common, seen = evidence.cluster.rises.common, set[tuple[int | None, str]]()
    usual = 1.0 if common is None else BEYOND * common.factor
    for row in () if evidence.keys is None else evidence.keys.rows:
        if not row.stands_out or row.before is None or (row.stream, row.label) in seen:
            continue
        if row.rate > usual * row.before:
            seen.add((row.stream, row.label))
            yield ChangeEffect(hot_key(evidence, row), row.rate - row.before)


def hot_key(evidence: NodeEvidence, key: NodeKey) -> Cause:
    """Return a frequent key as the cause on a node."""
    names = evidence.observed.stream_names
    return evidence.named(
        CauseCode.HOT_KEY, time=evidence.shift.time, key=key.label, key_share=key.share,
        query=key.query.id, query_name=key.query.name, stream=key.stream, before=key.before,
        after=key.rate, stream_name="" if key.stream is None else names.get(key.stream, ""),
    )  # fmt: skip


def _streams(evidence: NodeEvidence, hot: Mapping[int, float]) -> Iterator[ChangeEffect]:
    """Yield the streams that rose alone, and the rise of most streams, without hot keys (`hot`)."""
    rises, weights = evidence.cluster.rises, evidence.weights
    single = rises.are_single & (weights > 0)
    for place in rises.largest(weights * (rises.after - rises.before), _STREAMS, single):
        rise = rises.row(place)
        if rise.time is None:
            continue
        weight = _weights_at(evidence, rise.time).get(rise.id, 0.0)
        cause = evidence.named(
            CauseCode.STREAM_ROSE, time=rise.time, stream=rise.id, stream_name=rise.name,
            before=rise.before, after=rise.after,
        )  # fmt: skip
        yield ChangeEffect(cause, weight * (rise.after - rise.before) - hot.get(rise.id, 0.0))
    cause_of_all = common_cause(rises)
    if cause_of_all is not None and rises.common is not None:
        risen = rises.common.risen & ~single
        added = np.where(risen, weights * (rises.common.after - rises.common.before), 0.0)
        keys = sum(hot.get(stream, 0.0) for stream in rises.streams[risen].tolist())
        yield ChangeEffect(cause_of_all, float(added.sum()) - keys)


def common_cause(rises: StreamRises) -> Cause | None:
    """Return the rise of most streams as a cause, None without one."""
    common = rises.common
    if common is None:
        return None
    more = np.where(common.risen, common.after - common.before, 0.0)
    largest = int(rises.streams[int(np.argmax(more))])
    return Cause(
        CauseCode.STREAMS_ROSE, time=common.time, count=int(common.risen.sum()),
        total=int((common.before > 0).sum()), stream=largest,
        stream_name=rises.names.get(largest, str(largest)),
        before=float(common.before[common.risen].sum()),
        after=float(common.after[common.risen].sum()),
    )  # fmt: skip


def _weights_at(
    evidence: NodeEvidence, moment: datetime, without: frozenset[int] = frozenset()
) -> dict[int, float]:
    """Return the part of each stream that the node received at a moment."""
    placed = {q: time for change in evidence.changes for q, time in change.placed.items()}
    left_out = without | {query for query, time in placed.items() if time > moment}
    return evidence.work.weights_without(left_out) if left_out else evidence.work.weights


def _moves(evidence: NodeEvidence) -> Iterator[ChangeEffect]:
    """Yield the plans and placements that placed queries on the node."""
    for change in evidence.disturbing:
        if not change.placed:
            continue
        moment = max(change.placed.values())
        rates = evidence.cluster.rises.rates_at(moment)
        with_it = _weights_at(evidence, moment)
        without = _weights_at(evidence, moment, frozenset(change.placed))
        added = _load(with_it, rates) - _load(without, rates)
        yield ChangeEffect(replace(_at_node(evidence, change), after=added), added)


def _load(weights: Mapping[int, float], rates: Mapping[int, float]) -> float:
    return sum(weight * rates.get(stream, 0.0) for stream, weight in weights.items())


def cause_of(change: NearbyChange, names: Mapping[int, str]) -> Cause:
    """Return a change as a cause; `names`: of the streams, by id."""
    is_drop = change.kind is ChangeKind.DROP_RULE
    stream = change.id if is_drop else None
    return Cause(
        _CODES[change.kind], time=min(change.placed.values(), default=change.time), stream=stream,
        stream_name="" if stream is None else names.get(stream, str(stream)),
        proposal=change.proposal, actor=change.actor, before=change.before, after=change.after,
        unit=ValueUnit.SHARE if is_drop else change.unit, count=len(change.placed),
    )  # fmt: skip


def _at_node(evidence: NodeEvidence, change: NearbyChange) -> Cause:
    """Return a change at a node as a cause, with the query placed there that has most records."""
    queries = evidence.work.queries
    largest = max(
        (queries[pk] for pk in change.placed if pk in queries),
        key=lambda query: query.evaluations_per_s or 0.0, default=None,
    )  # fmt: skip
    return replace(
        cause_of(change, evidence.observed.stream_names), node=evidence.node.index,
        node_name=evidence.node.name, query=None if largest is None else largest.id,
        query_name="" if largest is None else largest.name,
    )  # fmt: skip


def _drops(evidence: NodeEvidence) -> Iterator[ChangeEffect]:
    """Yield the changes of drop rules of input edges, with the records that they drop less."""
    for change in evidence.disturbing:
        known = change.before is not None and change.after is not None
        if change.kind is not ChangeKind.DROP_RULE or change.id is None or not known:
            continue
        rate = evidence.cluster.rises.rates_at(change.time).get(change.id, 0.0)
        weight = _weights_at(evidence, change.time).get(change.id, 0.0)
        added = weight * rate * ((change.before or 0.0) - (change.after or 0.0))
        yield ChangeEffect(cause_of(change, evidence.observed.stream_names), added)


def _capacity(evidence: NodeEvidence) -> Iterator[ChangeEffect]:
    """Yield the changes of the capacity of a node, with their factors of load over capacity."""
    for change in evidence.disturbing:
        if change.kind is ChangeKind.CAPACITY and change.before and change.after:
            cause = _at_node(evidence, change)
            yield ChangeEffect(cause, factor=change.before / change.after)


def speed_effects(
    evidence: NodeEvidence, lowered: list[ChangeEffect] | None = None
) -> Iterator[ChangeEffect]:
    """Yield that a node processes no records or needs longer for each, with its factor.

    A few queries that were placed when it became slower are the cause. A lowered capacity that is
    emulated makes the node slower, too: it is counted once.
    """
    slow = evidence.cluster.speeds.get(evidence.node.index)
    if slow is None:
        return
    if slow.code is CauseCode.NODE_STALLED:
        yield ChangeEffect(slow, factor=_STALLED)
        return
    factor = (slow.after or 0.0) / (slow.before or 1.0)
    for effect in lowered or ():
        factor /= effect.factor
    expensive = _expensive(evidence, slow)
    if expensive is not None:
        yield ChangeEffect(expensive, factor=factor)
    elif computes_longest(evidence.observed, evidence.node.index):
        yield ChangeEffect(slow, factor=factor)


def _expensive(evidence: NodeEvidence, slow: Cause) -> Cause | None:
    """Return the query that was placed on a node when it became slower, None without one."""
    if slow.time is None:
        return None
    for change in reversed(evidence.disturbing):
        placed = change.placed.values()
        if 0 < len(placed) <= _FEW and slow.time - _BEFORE <= min(placed) <= slow.time + _AFTER:
            moved = _at_node(evidence, change)
            return replace(
                moved, code=CauseCode.EXPENSIVE_QUERY, before=slow.before, after=slow.after,
                unit=slow.unit,
            )  # fmt: skip
    return None
