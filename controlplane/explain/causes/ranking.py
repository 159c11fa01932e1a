"""The changes before an exceeded limit, ranked by their part of the disturbance and their time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import log
from typing import Final

from controlplane.explain.cause import Cause
from controlplane.explain.causes.effects import (
    ChangeEffect,
    LoadEffects,
    capacity_effects,
    unmeasured_effects,
)
from controlplane.explain.causes.evidence import NodeEvidence
from controlplane.explain.node_findings import shift_of
from controlplane.explain.node_speed import slow_cause, stalled_cause
from controlplane.explain.observation import ClusterObservation, mean
from controlplane.explain.series_shifts import LEAST
from controlplane.explain.values import RankedChange, TimeRelation
from controlplane.models import Node

# Ranked changes of an explanation.
RANKED: Final = 5
# A change with a smaller part of the disturbance is left out.
_LEAST_SHARE: Final = 0.05
# A change that is so far from the start of the disturbance counts half for its rank.
_HALF: Final = timedelta(minutes=15)
# So close to the start, a change and the disturbance began together.
_TOGETHER: Final = timedelta(minutes=1)
# A node that processes no records is as slow as one that needs a hundred times as long for each.
_STALLED: Final = 100.0
# A load that rises from nothing counts as one that rises a hundredfold.
_FROM_NOTHING: Final = 0.01

# Effects with their parts of the disturbance, None if they are not measured.
Shares = list[tuple[ChangeEffect, float | None]]


def ranked_changes(
    evidence: NodeEvidence, shares: Shares, start: datetime | None, *, is_latency: bool = False
) -> list[RankedChange]:
    """Return the changes with the largest scores, at most `RANKED`, the largest first.

    `shares`: of `shares_of_node`; `start`: when the limit was exceeded, None if not known.
    `is_latency`: True for a latency, which the slowest node of the cluster causes: slow nodes
    besides the explained one are ranked, too.
    """
    began = start or evidence.shift.time
    if is_latency:
        shares = _with_slow_nodes(evidence, shares)
    rows = [_ranked(effect, share, began) for effect, share in shares]
    chosen = [row for row in rows if row.share is None or row.share >= _LEAST_SHARE]
    chosen.sort(key=lambda row: (-_score(row), row.share is None, abs(row.lead_s or 0.0)))
    return chosen[:RANKED]


def with_share(cause: Cause | None, ranked: Sequence[RankedChange]) -> Cause | None:
    """Return the likely cause with its share in the ranking; the first ranked one without any."""
    if cause is None:
        return next((row.cause for row in ranked if row.share is not None), None)
    same = [row for row in ranked if _subject(row.cause) == _subject(cause)]
    return replace(cause, share=same[0].share) if same and same[0].share is not None else cause


def _subject(cause: Cause) -> tuple[object, ...]:
    return cause.code, cause.node, cause.stream, cause.query, cause.key, cause.proposal


def shares_of_node(evidence: NodeEvidence) -> Shares:
    """Return the changes at a node with their parts of the disturbance.

    The disturbance is the growth of the node's work over its capacity: of its load, of the time per
    record, and the loss of capacity, each by the logarithm of its factor.
    """
    adding = LoadEffects(evidence).all()
    factors = [effect for effect in capacity_effects(evidence) if (effect.factor or 1.0) > 1]
    factors += _speed(evidence.observed, evidence.node, factors)
    known = [effect for effect in adding if effect.added is not None and effect.added > 0]
    grown = _growth(evidence, known)
    total = grown + sum(log(effect.factor or 1.0) for effect in factors)
    added = max(sum(effect.added or 0.0 for effect in known), _increase(evidence, known))
    result: Shares = []
    if total > 0:
        result += [(row, log(row.factor or 1.0) / total) for row in factors]
        result += [(row, grown / total * (row.added or 0.0) / added) for row in known]
    unmeasured = [effect for effect in adding if effect.added is None]
    return [*result, *((row, None) for row in (*unmeasured, *unmeasured_effects(evidence)))]


def _growth(evidence: NodeEvidence, known: Sequence[ChangeEffect]) -> float:
    """Return the logarithm of the factor by which the load grew, 0 if it did not grow."""
    load, increase = evidence.shift.after, _increase(evidence, known)
    if load <= 0 or increase <= 0 or not known:
        return 0.0
    return log(load / max(load - increase, _FROM_NOTHING * load))


def _increase(evidence: NodeEvidence, known: Sequence[ChangeEffect]) -> float:
    """Return the increase of the load since before the first change, in records/s."""
    observed, shift = evidence.observed, evidence.shift
    times = [effect.cause.time for effect in known if effect.cause.time is not None]
    before = shift.before
    if times:
        loads = observed.series.loads[:, evidence.node.index]
        earlier = observed.series.between(loads, observed.start, min(times) - _TOGETHER / 2)
        if len(earlier) >= LEAST:
            before = min(before, mean(earlier) or before)
    return max(0.0, shift.after - before)


def _speed(
    observed: ClusterObservation, node: Node, lowered: Sequence[ChangeEffect]
) -> list[ChangeEffect]:
    """Return that a node processes no records or needs longer for each, with its factor.

    A lowered capacity that is emulated makes the node slower, too: it is counted once.
    """
    stalled = stalled_cause(observed, node)
    if stalled is not None:
        return [ChangeEffect(stalled, factor=_STALLED)]
    slow = slow_cause(observed, node)
    if slow is None or not slow.before or not slow.after:
        return []
    factor = slow.after / slow.before
    for effect in lowered:
        factor /= effect.factor or 1.0
    return [ChangeEffect(slow, factor=factor)] if factor > 1 else []


def _with_slow_nodes(evidence: NodeEvidence, shares: Shares) -> Shares:
    """Return the changes with slow nodes besides; each node counts by its latency."""
    observed, own = evidence.observed, evidence.node
    slow = [
        (node, effect)
        for node in observed.nodes if node.index != own.index
        for effect in _speed(observed, node, ())
    ]  # fmt: skip
    if not slow:
        return shares
    weights = [_latency(observed, node) for node, _ in slow]
    own_weight = _latency(observed, own) if any(share for _, share in shares) else 0.0
    total = sum(weights) + own_weight
    result: Shares = [
        (effect, None if share is None else share * own_weight / total) for effect, share in shares
    ]
    for (node, effect), weight in zip(slow, weights, strict=True):
        result.append((effect, _part_of_speed(observed, node, effect) * weight / total))
    return result


def _latency(observed: ClusterObservation, node: Node) -> float:
    """Return the latency of a node, that of the cluster if it is not measured."""
    own = mean(observed.recent(observed.series.p95_by_node)[:, node.index])
    return own or mean(observed.recent(observed.series.p95)) or 1.0


def _part_of_speed(observed: ClusterObservation, node: Node, effect: ChangeEffect) -> float:
    """Return the part of the growth of a node's work that its speed explains, beside its load."""
    slower = log(effect.factor or 1.0)
    before, after, time = shift_of(observed, observed.series.loads[:, node.index])
    if time is None or after <= before:
        return 1.0
    grown = log(after / max(before, _FROM_NOTHING * after))
    return slower / (slower + grown)


def _ranked(effect: ChangeEffect, share: float | None, start: datetime | None) -> RankedChange:
    cause, (size, unit) = replace(effect.cause, share=share), effect.size
    if cause.time is None or start is None:
        return RankedChange(cause, size, unit, share, TimeRelation.UNKNOWN)
    lead = start - cause.time
    relation = TimeRelation.WITH
    if abs(lead) > _TOGETHER:
        relation = TimeRelation.BEFORE if lead > timedelta() else TimeRelation.AFTER
    return RankedChange(cause, size, unit, share, relation, lead.total_seconds())


def _score(row: RankedChange) -> float:
    """Return the share, less for a change that is far from the start of the disturbance."""
    away = 0.0 if row.lead_s is None else abs(row.lead_s)
    return float((row.share or 0.0) * 0.5 ** (away / _HALF.total_seconds()))
