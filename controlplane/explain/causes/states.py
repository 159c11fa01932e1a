"""States of a cluster that explain an exceeded limit where no change does."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from controlplane.alerts.measures import KINDS, AlertMeasure, LimitInput
from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.causes.effects import hot_key
from controlplane.explain.causes.evidence import Evidence, NodeEvidence
from controlplane.explain.change import ChangeKind
from controlplane.explain.units import ValueUnit
from controlplane.models import Node
from controlplane.watch.observation import FULL, ClusterObservation

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
