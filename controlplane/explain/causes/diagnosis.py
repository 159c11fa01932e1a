"""The choice of the likely cause: the change that explains most of an exceeded limit."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.causes.effects import hot_key, streams_rose
from controlplane.explain.causes.evidence import NodeEvidence
from controlplane.explain.causes.ranking import Shares
from controlplane.explain.change import ChangeKind
from controlplane.explain.node_findings import shift_of
from controlplane.explain.node_speed import slowest_cause
from controlplane.explain.observation import FULL, ClusterObservation, mean, median
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import MOST

# A latency follows its cause within this time.
_GROWS: Final = timedelta(minutes=2)
# A restart explains the latency of this time.
_RESTART: Final = timedelta(minutes=10)
_RISES: Final = (CauseCode.STREAM_ROSE, CauseCode.STREAMS_ROSE)


def cause_of_node(evidence: NodeEvidence, shares: Shares) -> Cause | None:
    """Return the likely cause of the load, backlog or latency of a node, None without any."""
    return _change_of_node(evidence, shares) or _state_of_node(evidence)


def _change_of_node(evidence: NodeEvidence, shares: Shares) -> Cause | None:
    """Return the change that explains most of the growth of a node's work, None without any.

    That is a single change, or the streams that rose together. What adds records counts only if the
    load has grown by more than chance.
    """
    has_grown = evidence.shift.time is not None
    causes = [
        replace(effect.cause, share=share)
        for effect, share in shares
        if share is not None and (has_grown or effect.added is None)
    ]
    best = max(causes, key=_share, default=None)
    if best is not None and _share(best) < MOST:
        rise = sum(_share(cause) for cause in causes if cause.code in _RISES)
        together = streams_rose(evidence) if rise >= MOST else None
        best = None if together is None else replace(together, share=rise)
    return None if best is None else replace(best, full_share=_above_capacity(evidence.observed))


def _share(cause: Cause) -> float:
    return cause.share or 0.0


def _state_of_node(evidence: NodeEvidence) -> Cause | None:
    """Return what explains a load, backlog or latency without a change of the load."""
    explained = _frequent_key(evidence) or _restart(evidence)
    if explained is not None:
        return explained
    above = _above_capacity(evidence.observed)
    if above is not None:
        return Cause(CauseCode.ALL_FULL, full_share=above)
    return _unbalanced(evidence)


def _above_capacity(observed: ClusterObservation) -> float | None:
    """Return the load of all nodes over their capacity if it is above 1, else None."""
    full = observed.full_share
    return full if full is not None and full > FULL else None


def _frequent_key(evidence: NodeEvidence) -> Cause | None:
    """Return the key that is most of the load of a node above its capacity, without a change."""
    rows = () if evidence.keys is None else evidence.keys.rows
    top = next((row for row in rows if row.stands_out), None)
    load = evidence.shift.after
    if top is None or evidence.shift.time is not None:
        return None
    if not 0 < load - evidence.node.capacity <= top.rate or top.rate < MOST * load:
        return None
    cause = hot_key(evidence, replace(top, before=None))
    return replace(cause, share=1.0, full_share=_above_capacity(evidence.observed))


def _restart(evidence: NodeEvidence) -> Cause | None:
    recent = evidence.observed.time - _RESTART
    restarts = [
        change for change in evidence.changes
        if change.kind is ChangeKind.RESTART and change.time >= recent
    ]  # fmt: skip
    return Cause(CauseCode.RESTARTED, time=restarts[-1].time) if restarts else None


def _unbalanced(evidence: NodeEvidence) -> Cause | None:
    """Return a node that is far above the mean of all nodes, without a known change."""
    shares = [share for share in evidence.observed.shares if share is not None]
    own = evidence.shift.after / evidence.node.capacity
    if not shares:
        return None
    average = sum(shares) / len(shares)
    if own - average <= evidence.observed.policy.watch_imbalance:
        return None
    return evidence.named(CauseCode.UNBALANCED, before=average, after=own, unit=ValueUnit.SHARE)


def cause_of_latency(evidence: NodeEvidence, shares: Shares) -> Cause | None:
    """Return the cause of a latency, None without any; `evidence`: of the node that is explained.

    A micro-batch waits for its slowest node, which need not be the one with the largest load.
    """
    observed = evidence.observed
    slowest = slowest_cause(observed)
    if slowest is not None:
        return slowest
    load, limit = evidence.shift.after, observed.policy.watch_load * evidence.node.capacity
    if load > limit:
        return cause_of_node(evidence, shares)
    change = _change_of_node(evidence, shares)
    if change is not None and _raised(observed, change):
        return change
    return cause_of_cluster(observed) or change or _state_of_node(evidence)


def _raised(observed: ClusterObservation, cause: Cause) -> bool:
    """Return True if the latency has risen since the time of a cause."""
    before, after, time = shift_of(observed, observed.series.p95)
    if time is None or cause.time is None or after <= before:
        return False
    return abs(time - cause.time) <= _GROWS


def cause_of_cluster(observed: ClusterObservation) -> Cause | None:
    """Return the cause of a latency that no node explains: a full split node, slow batches."""
    splits = observed.recent(observed.series.splits)
    used = [mean(splits[:, place]) for place in range(splits.shape[1])]
    full = [(share, place) for place, share in enumerate(used) if share is not None]
    if full and max(full)[0] > FULL:
        share, place = max(full)
        return Cause(CauseCode.SPLIT_NODE_FULL, node=place, after=share, unit=ValueUnit.SHARE)
    took, trigger = median(observed.recent(observed.series.batch_ms)), observed.cluster.trigger_ms
    if took is None or took <= trigger:
        return None
    busy = observed.recent(observed.series.busy)
    times = [mean(busy[:, place]) or 0.0 for place in range(len(observed.nodes))]
    busiest = observed.nodes[times.index(max(times))] if any(times) else None
    return Cause(
        CauseCode.SLOW_BATCH, before=float(trigger), after=took, unit=ValueUnit.MS,
        node=None if busiest is None else busiest.index,
        node_name="" if busiest is None else busiest.name,
    )  # fmt: skip
