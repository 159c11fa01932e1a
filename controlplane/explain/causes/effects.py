"""The changes at a node with their effects: records/s that each adds, and factors of the load."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.causes.evidence import NodeEvidence, load_of
from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.explain.node_keys import NodeKey
from controlplane.explain.units import ValueUnit

# Streams whose rises are compared, the largest ones.
_STREAMS: Final = 8
# Changes without a known effect on the load.
_UNMEASURED: Final = {
    ChangeKind.LADDER: CauseCode.LADDER_CHANGED,
    ChangeKind.KEY_GROUPING: CauseCode.KEY_GROUPING_CHANGED,
    ChangeKind.REDIRECTION: CauseCode.REDIRECTED,
    ChangeKind.ACTIVITY: CauseCode.ACTIVITY_CHANGED,
    ChangeKind.NODES: CauseCode.NODE_COUNT_CHANGED,
    ChangeKind.RESTART: CauseCode.RESTARTED,
}


@dataclass(frozen=True)
class ChangeEffect:
    """A change with its effect on a node: `added` records/s, or a `factor` of load over capacity.

    `added`: None if the change is of another kind, or if its effect is not measured; `factor`:
    above 1 for a change that leaves less capacity.
    """

    cause: Cause
    added: float | None = None
    factor: float | None = None

    @property
    def size(self) -> tuple[float | None, ValueUnit]:
        """Return the size of the change with its unit, None if it is not measured."""
        cause = self.cause
        if self.added is not None:
            return self.added, ValueUnit.RATE
        if cause.code is CauseCode.NODE_STALLED:
            return float(cause.count), ValueUnit.RECORDS
        if self.factor is not None and cause.before is not None and cause.after is not None:
            return cause.after - cause.before, cause.unit
        return None, cause.unit


@dataclass(frozen=True, eq=False)
class LoadEffects:
    """The effects of changes on the records/s of a node, each without those of the others.

    A change counts with the state of its time: a rise of a stream with the queries that were on the
    node before it, a placement with the rates of its time. So their sum is the whole increase, in
    whatever order they were made.
    """

    evidence: NodeEvidence

    def all(self) -> list[ChangeEffect]:
        """Return the changes that add records, in any order."""
        keys = list(self._keys())
        hot: dict[int, float] = {}
        for effect in keys:
            if effect.cause.stream is not None:
                hot[effect.cause.stream] = hot.get(effect.cause.stream, 0.0) + (effect.added or 0.0)
        streams = list(self._streams(hot))
        result = [*keys, *streams, *self._moves(), *self._drops()]
        return [*result, *self._together(sum(effect.added or 0.0 for effect in (*keys, *streams)))]

    @cached_property
    def _placed(self) -> dict[int, datetime]:
        """Return when queries were placed on the node, by query."""
        placed: dict[int, datetime] = {}
        for change in self.evidence.changes:
            placed |= change.placed
        return placed

    def _weights(self, moment: datetime, without: frozenset[int] = frozenset()) -> dict[int, float]:
        """Return the part of each stream that the node received at a moment."""
        left_out = without | {query for query, time in self._placed.items() if time > moment}
        work = self.evidence.work
        return work.weights_without(left_out) if left_out else work.weights

    def _rates(self, moment: datetime) -> Mapping[int, float]:
        """Return the records/s of streams at a moment, before or after their change."""
        return self.evidence.rises.rates_at(moment)

    def _streams(self, hot: Mapping[int, float]) -> Iterator[ChangeEffect]:
        """Yield the streams that rose, without the rise of their hot keys (`hot`, by stream)."""
        rises = self.evidence.rises
        for rise in rises.largest(rises.rise, _STREAMS, rises.are_changed):
            if rise.time is None:
                continue
            weight = self._weights(rise.time).get(rise.id, 0.0)
            added = weight * (rise.source_after - rise.source_before) - hot.get(rise.id, 0.0)
            cause = self.evidence.named(
                CauseCode.STREAM_ROSE, time=rise.time, stream=rise.id, stream_name=rise.name,
                before=rise.source_before, after=rise.source_after,
            )  # fmt: skip
            yield ChangeEffect(cause, added)

    def _keys(self) -> Iterator[ChangeEffect]:
        """Yield the keys that are more frequent than before, each once over all queries."""
        keys = self.evidence.keys
        seen: set[tuple[int | None, str]] = set()
        for row in () if keys is None else keys.rows:
            if not row.stands_out or row.before is None or (row.stream, row.label) in seen:
                continue
            seen.add((row.stream, row.label))
            yield ChangeEffect(hot_key(self.evidence, row), row.rate - row.before)

    def _moves(self) -> Iterator[ChangeEffect]:
        """Yield the plans and placements that placed queries on the node."""
        for change in self.evidence.changes:
            if not change.placed:
                continue
            moment = max(change.placed.values())
            rates = self._rates(moment)
            load = load_of(self._weights(moment), rates)
            added = load - load_of(self._weights(moment, frozenset(change.placed)), rates)
            is_plan = change.kind is ChangeKind.PLAN
            cause = self.evidence.named(
                CauseCode.PLAN_MOVED if is_plan else CauseCode.QUERIES_PLACED,
                time=min(change.placed.values()), proposal=change.proposal,
                count=len(change.placed), after=added,
            )  # fmt: skip
            yield ChangeEffect(cause, added)

    def _drops(self) -> Iterator[ChangeEffect]:
        """Yield the changes of drop rules: of input edges with the records that they drop less."""
        for change in self.evidence.changes:
            if change.kind is not ChangeKind.DROP_RULE or change.id is None:
                continue
            rate = self._rates(change.time).get(change.id, 0.0)
            weight = self._weights(change.time).get(change.id, 0.0)
            added = None
            if change.before is not None and change.after is not None:
                added = weight * rate * (change.before - change.after)
            names = self.evidence.work.stream_names
            cause = self.evidence.named(
                CauseCode.DROPS_CHANGED, time=change.time, stream=change.id,
                stream_name=names.get(change.id, str(change.id)), before=change.before,
                after=change.after, unit=ValueUnit.SHARE, actor=change.actor,
            )  # fmt: skip
            yield ChangeEffect(cause, added)

    def _together(self, known: float) -> Iterator[ChangeEffect]:
        """Yield the rise of all streams together, without what single ones explain (`known`)."""
        rise, cause = self.evidence.together, streams_rose(self.evidence)
        if rise is not None and cause is not None:
            yield ChangeEffect(cause, rise.after - rise.before - known)


def hot_key(evidence: NodeEvidence, key: NodeKey) -> Cause:
    """Return a frequent key as the cause on a node."""
    names = evidence.work.stream_names
    return evidence.named(
        CauseCode.HOT_KEY, time=evidence.shift.time, key=key.label, key_share=key.share,
        query=key.query.id, query_name=key.query.name, stream=key.stream, before=key.before,
        after=key.rate, stream_name="" if key.stream is None else names.get(key.stream, ""),
    )  # fmt: skip


def streams_rose(evidence: NodeEvidence) -> Cause | None:
    """Return the rise of all streams together as the cause on a node, None without one."""
    rise = evidence.together
    if rise is None or rise.count == 1:
        return None
    return evidence.named(
        CauseCode.STREAMS_ROSE, time=rise.time, stream=rise.largest, count=rise.count,
        stream_name=evidence.work.stream_names.get(rise.largest, str(rise.largest)),
        before=rise.source_before, after=rise.source_after,
    )  # fmt: skip


def capacity_effects(evidence: NodeEvidence) -> list[ChangeEffect]:
    """Return the changes of the capacity of a node, with their factors of load over capacity."""
    return [
        ChangeEffect(
            evidence.named(
                CauseCode.CAPACITY_LOWERED, time=change.time, actor=change.actor,
                before=change.before, after=change.after, proposal=change.proposal,
            ),
            factor=change.before / change.after,
        )
        for change in evidence.changes
        if change.kind is ChangeKind.CAPACITY and change.before and change.after
    ]  # fmt: skip


def unmeasured_effects(evidence: NodeEvidence) -> list[ChangeEffect]:
    """Return the changes whose effect on the load is not measured."""
    return [
        ChangeEffect(evidence.named(_UNMEASURED[change.kind], time=change.time, **_details(change)))
        for change in evidence.changes
        if change.kind in _UNMEASURED
    ]


def _details(change: NearbyChange) -> dict[str, object]:
    return {
        "before": change.before, "after": change.after, "unit": ValueUnit.COUNT,
        "actor": change.actor, "stream_name": change.name, "count": change.count,
        "stream": change.id if change.kind is ChangeKind.REDIRECTION else None,
        "query": change.id if change.kind is ChangeKind.KEY_GROUPING else None,
    }  # fmt: skip
