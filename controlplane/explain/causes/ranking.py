"""The changes before an exceeded limit, ranked by their part of the disturbance and their time.

The only ranking: explanations, headlines and alerts name its first row. States of the cluster
explain a limit where no change does.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import log
from typing import Final

from controlplane.alerts.measures import KINDS, AlertMeasure, LimitInput
from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.causes.effects import ChangeEffect, effects_of, hot_key, speed_effects
from controlplane.explain.causes.evidence import Evidence, NodeEvidence
from controlplane.explain.causes.flow_effects import flow_effects
from controlplane.explain.change import ChangeKind
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import RankedChange, TimeRelation
from controlplane.models import Node
from controlplane.telemetry.grid import mean
from controlplane.watch.observation import FULL, ClusterObservation
from controlplane.watch.series_shifts import LEAST

# Ranked changes of an explanation.
RANKED: Final = 5
# Nodes whose changes are read, those with the most disturbance.
_NODES: Final = 3
# A change with a smaller part of the disturbance is left out.
_LEAST_SHARE: Final = 0.05
# Work that has grown by a smaller factor has not changed.
_LEAST_GROWTH: Final = log(1.15)
# A change that is so far from the start of the disturbance counts half for its rank.
_HALF: Final = timedelta(minutes=15)
# So close to the start, a change and the disturbance began together.
_TOGETHER: Final = timedelta(minutes=1)
# A load that rises from nothing counts as one that rises a hundredfold.
_FROM_NOTHING: Final = 0.01
# The measures of the work of nodes; those of traffic and losses are explained by `flow_effects`.
_OF_WORK: Final = frozenset(AlertMeasure) - {AlertMeasure.REPLICATION}

# An effect with its weight: the growth of work by it, times how far its node is to a limit.
_Weighted = tuple[ChangeEffect, float]


def ranked_changes(
    evidence: Evidence, measures: Collection[str], nodes: Sequence[Node] = (),
    start: datetime | None = None,
) -> list[RankedChange]:  # fmt: skip
    """Return the changes with the largest scores, at most `RANKED`, the largest first.

    `measures`: that are explained; `nodes`: only the changes at these, by default at all; slow
    nodes delay the micro-batches of all, so for a latency they count everywhere. `start`: when the
    limit was exceeded, None if not known. Without a change that explains it, the only row is a
    state of the cluster: no row if none is known.
    """
    weighted: list[_Weighted] = []
    unexplained = 0.0
    if not _OF_WORK.isdisjoint(measures):
        disturbed = _disturbed(evidence, nodes)
        weighted, unexplained = _work(evidence, measures, nodes, disturbed)
        start = start or next((evidence.shifts[node.index].time for node in disturbed), None)
    weighted += flow_effects(evidence, measures)
    merged: dict[object, _Weighted] = {}
    for effect, weight in sorted(weighted, key=lambda row: -row[1]):
        merged.setdefault(effect.cause.subject, (effect, weight))
    total = sum(weight for _, weight in merged.values()) + unexplained
    rows = [_ranked(effect, weight / total, start) for effect, weight in merged.values() if total]
    chosen = [row for row in rows if row.share is not None and row.share >= _LEAST_SHARE]
    chosen.sort(key=lambda row: (-_score(row), abs(row.lead_s or 0.0)))
    if not chosen:
        state = state_of(evidence, measures, nodes)
        chosen = [] if state is None else [_ranked(ChangeEffect(state), None, start)]
    full = evidence.observed.full_share
    if chosen and full is not None and full > FULL:
        chosen[0] = replace(chosen[0], cause=replace(chosen[0].cause, full_share=full))
    return chosen[:RANKED]


def _work(
    evidence: Evidence, measures: Collection[str], nodes: Sequence[Node],
    disturbed: Sequence[Node],
) -> tuple[list[_Weighted], float]:  # fmt: skip
    """Return the changes of the work of nodes, and the largest weight that none explains."""
    result, unexplained = list[_Weighted](), 0.0
    for node in disturbed:
        own, rest = _of_node(evidence.of_node(node))
        pressure = max(float(evidence.pressures[node.index]), _FROM_NOTHING)
        result += [(effect, pressure * growth) for effect, growth in own]
        unexplained = max(unexplained, pressure * rest)
    if nodes and AlertMeasure.LATENCY in measures:
        others = {place for place in evidence.speeds if place not in {n.index for n in disturbed}}
        for node in evidence.observed.nodes:
            if node.index in others:
                pressure = float(evidence.pressures[node.index])
                for effect in speed_effects(evidence.of_node(node)):
                    result.append((effect, pressure * log(effect.factor)))
    return result, unexplained


def _disturbed(evidence: Evidence, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes with the most disturbance, the largest first."""
    count = len(evidence.observed.nodes)
    known = [node for node in nodes or evidence.observed.active if node.index < count]
    return sorted(known, key=lambda node: -_disturbance(evidence, node))[:_NODES]


def _disturbance(evidence: Evidence, node: Node) -> float:
    """Return how far a node is to its limits times how much its work has grown, estimated."""
    shift, speed = evidence.shifts[node.index], evidence.speeds.get(node.index)
    grown = (
        _LEAST_GROWTH if shift.time is None else _growth(shift.after, shift.after - shift.before)
    )
    if speed is not None:
        grown += log(max(1.0, (speed.after or 100.0) / (speed.before or 1.0)))
    if node.index in evidence.lowered:
        grown += 1.0
    return float(evidence.pressures[node.index]) * max(grown, _LEAST_GROWTH)


def _of_node(evidence: NodeEvidence) -> tuple[list[tuple[ChangeEffect, float]], float]:
    """Return the changes at a node with the growth of its work by each, and what none explains.

    The growth is that of its load, of the time per record, and of the loss of capacity, each by the
    logarithm of its factor.
    """
    effects = effects_of(evidence)
    adding = [effect for effect in effects if effect.added > 0]
    increase = _increase(evidence, adding)
    grown = _growth(evidence.load, increase) if adding else 0.0
    added = max(sum(effect.added for effect in adding), increase)
    factors = [effect for effect in effects if effect.added <= 0]
    if grown + sum(log(effect.factor) for effect in factors) < _LEAST_GROWTH:
        return [], 0.0
    result = [(effect, log(effect.factor)) for effect in factors]
    result += [(effect, grown * effect.added / added) for effect in adding if added]
    explained = sum(effect.added for effect in adding) / added if added else 1.0
    return result, grown * (1 - explained)


def _growth(load: float, increase: float) -> float:
    """Return the logarithm of the factor by which a load grew, 0 if it did not grow."""
    if load <= 0 or increase <= 0:
        return 0.0
    return log(load / max(load - increase, _FROM_NOTHING * load))


def _increase(evidence: NodeEvidence, adding: Sequence[ChangeEffect]) -> float:
    """Return the increase of the load since before the first change, in records/s."""
    observed, shift = evidence.observed, evidence.shift
    times = [effect.cause.time for effect in adding if effect.cause.time is not None]
    before = evidence.load if shift.time is None else shift.before
    if times:
        loads = observed.series.loads[:, evidence.node.index]
        earlier = observed.series.between(loads, observed.settled, min(times) - _TOGETHER / 2)
        if len(earlier) >= LEAST:
            before = min(before, mean(earlier) or before)
    return max(0.0, evidence.load - before)


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


# A restart explains the latency of this time.
_RESTART: Final = timedelta(minutes=10)
# The part of the load of a full node that a key must have.
_MOST: Final = 0.3
_OF_LOAD: Final = frozenset({AlertMeasure.LATENCY, AlertMeasure.LOAD, AlertMeasure.AGE})


def state_of(evidence: Evidence, measures: Collection[str], nodes: Sequence[Node]) -> Cause | None:
    """Return the state that explains these measures, None if none is known."""
    observed = evidence.observed
    node = nodes[0] if nodes else observed.fullest
    if not _OF_LOAD.isdisjoint(measures) and node is not None:
        own = evidence.of_node(node)
        state = _full_split_node(observed) or _frequent_key(own) or _restart(own) or _full(observed)
        if state is not None:
            return state
    for measure in map(AlertMeasure, measures):
        if (state := _too_low(observed, measure)) is not None:
            return state
    if node is None or not {AlertMeasure.LOAD, AlertMeasure.IMBALANCE}.intersection(measures):
        return None
    return _unbalanced(evidence.of_node(node))


def limit_of(observed: ClusterObservation, measure: AlertMeasure) -> float | None:
    """Return the limit of a measure of the cluster by its policy, None without one."""
    return KINDS[measure].limit(_limit_input(observed))


def _limit_input(observed: ClusterObservation) -> LimitInput:
    return LimitInput(observed.cluster, observed.policy, observed.reachable)


def _full_split_node(observed: ClusterObservation) -> Cause | None:
    used = observed.recent_means(observed.series["split_utilisation"]).tolist()
    share = max((share for share in used if share > FULL), default=None)
    if share is None:
        return None
    return Cause(
        CauseCode.SPLIT_NODE_FULL, node=used.index(share), after=share, unit=ValueUnit.SHARE
    )


def _frequent_key(evidence: NodeEvidence) -> Cause | None:
    """Return the key that is most of the load of a node above its capacity."""
    rows = () if evidence.keys is None else evidence.keys.rows
    top = next((row for row in rows if row.stands_out), None)
    if top is None or evidence.load <= evidence.node.capacity:
        return None
    if top.rate < _MOST * evidence.load:
        return None
    return hot_key(evidence, replace(top, before=None))


def _restart(evidence: NodeEvidence) -> Cause | None:
    recent = evidence.observed.time - _RESTART
    restarts = [
        change for change in evidence.changes
        if change.kind is ChangeKind.RESTART and change.time >= recent
    ]  # fmt: skip
    return Cause(CauseCode.RESTARTED, time=restarts[-1].time) if restarts else None


def _full(observed: ClusterObservation) -> Cause | None:
    full = observed.full_share
    return Cause(CauseCode.ALL_FULL, full_share=full) if full is not None and full > FULL else None


def _too_low(observed: ClusterObservation, measure: AlertMeasure) -> Cause | None:
    """Return that a limit is below what the workload allows, None where that is not known."""
    limit, least = limit_of(observed, measure), _reachable(observed, measure)
    if limit is None or least is None or least <= limit:
        return None
    unit = ValueUnit(KINDS[measure].unit)
    return Cause(CauseCode.LIMIT_TOO_LOW, before=limit, after=least, unit=unit, measure=measure)


def _reachable(observed: ClusterObservation, measure: AlertMeasure) -> float | None:
    """Return the least value of a measure that is known to be possible, None if it is not known."""
    if measure is AlertMeasure.LATENCY:
        return float(observed.cluster.trigger_ms)
    if observed.reachable is None and measure is AlertMeasure.LOAD:
        return observed.full_share
    return KINDS[measure].reachable(_limit_input(observed))


def _unbalanced(evidence: NodeEvidence) -> Cause | None:
    """Return a node that is far above the mean of all nodes."""
    shares = [share for share in evidence.observed.shares if share is not None]
    own = evidence.load / evidence.node.capacity
    if not shares:
        return None
    average = sum(shares) / len(shares)
    if own - average <= evidence.observed.policy.watch_imbalance:
        return None
    return evidence.named(CauseCode.UNBALANCED, before=average, after=own, unit=ValueUnit.SHARE)
