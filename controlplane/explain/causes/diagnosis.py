"""The choice of the likely cause: the change that explains most of an exceeded limit."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.causes.evidence import GROWS, INEXACT, NodeEvidence, load_of
from controlplane.explain.node_findings import shift_of
from controlplane.explain.node_keys import NodeKey
from controlplane.explain.node_speed import slow_cause, slowest_cause, stalled_cause
from controlplane.explain.observation import FULL, ClusterObservation, mean, median
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import ChangeKind

# A single change explains an increase from this part on.
MOST: Final = 0.5
# A restart explains the latency of this time.
_RESTART: Final = timedelta(minutes=10)
# Of causes with nearly the share of the largest one, the most specific is chosen.
_NEARLY: Final = 0.8


def cause_of_node(evidence: NodeEvidence) -> Cause | None:
    """Return the likely cause of the load, backlog or latency of a node, None without any."""
    return change_of_node(evidence) or _state_of_node(evidence)


def change_of_node(evidence: NodeEvidence) -> Cause | None:
    """Return the change that explains most of the increase of a node's load, None without any."""
    candidates = [
        *_capacity(evidence), *_keys(evidence), *_streams(evidence), *_moves(evidence),
        *_speed(evidence),
    ]  # fmt: skip
    if not candidates:
        return None
    # Specific causes are first.
    least = _NEARLY * max(cause.share or 0.0 for cause in candidates)
    best = next(cause for cause in candidates if (cause.share or 0.0) >= least)
    return replace(best, full_share=_above_capacity(evidence.observed))


def _state_of_node(evidence: NodeEvidence) -> Cause | None:
    """Return what explains a load, backlog or latency without a change of the load."""
    restarted = _restart(evidence)
    if restarted is not None:
        return restarted
    above = _above_capacity(evidence.observed)
    if above is not None:
        return Cause(CauseCode.ALL_FULL, full_share=above)
    return _unbalanced(evidence)


def _above_capacity(observed: ClusterObservation) -> float | None:
    """Return the load of all nodes over their capacity if it is above 1, else None."""
    full = observed.full_share
    return full if full is not None and full > FULL else None


def _capacity(evidence: NodeEvidence) -> list[Cause]:
    """Return the last lowered capacity, with its part of the increase of load over capacity."""
    lowered = [
        change for change in evidence.changes
        if change.kind is ChangeKind.CAPACITY and change.before and change.after
        and change.after < change.before
    ]  # fmt: skip
    if not lowered:
        return []
    change, load = lowered[-1], evidence.shift.after
    before, after = change.before or 1.0, change.after or 1.0
    grown = load / after - evidence.shift.before / before
    share = (load / after - load / before) / grown if grown > 0 else 1.0
    return [
        evidence.named(
            CauseCode.CAPACITY_LOWERED, time=change.time, actor=change.actor,
            before=before, after=after, proposal=change.proposal, share=min(1.0, share),
        )
    ]  # fmt: skip


def _streams(evidence: NodeEvidence) -> list[Cause]:
    """Return the stream that explains most of the increase, or all streams that rose."""
    if evidence.shift.after <= evidence.shift.before:
        return []
    rises, increase = evidence.rises, evidence.increase
    risen = rises.are_changed & (rises.rise > 0)
    largest = next(iter(rises.largest(rises.rise, 1, risen)), None)
    share = (largest.after - largest.before) / increase if largest is not None else 0.0
    if largest is not None and share >= MOST:
        return [
            evidence.named(
                CauseCode.STREAM_ROSE, time=largest.time, stream=largest.id,
                stream_name=largest.name, before=largest.source_before,
                after=largest.source_after, share=min(1.0, share),
            )
        ]  # fmt: skip
    return _all_streams(evidence, increase)


def _all_streams(evidence: NodeEvidence, increase: float) -> list[Cause]:
    """Return the streams that rose together with the load (`increase` in records/s)."""
    rise, moment = evidence.together, evidence.shift.time
    if rise is None or moment is None or abs(rise.time - moment) > GROWS:
        return []
    share = (rise.after - rise.before) / increase
    if rise.count == 1 or share < MOST:
        return []
    return [
        evidence.named(
            CauseCode.STREAMS_ROSE, time=moment, stream=rise.largest,
            stream_name=evidence.work.stream_names.get(rise.largest, str(rise.largest)),
            count=rise.count, before=rise.source_before, after=rise.source_after,
            share=min(1.0, share),
        )
    ]  # fmt: skip


def _keys(evidence: NodeEvidence) -> list[Cause]:
    """Return the key whose increase, or whose rate if it is above the excess, explains most."""
    if evidence.keys is None:
        return []
    frequent = [row for row in evidence.keys.rows if row.stands_out]
    grown = [row for row in frequent if row.before is not None]
    if grown:
        top = max(grown, key=_growth)
        share = _growth(top) / evidence.increase
        if share >= MOST:
            return [_hot_key(evidence, top, evidence.shift.time, min(1.0, share))]
    load, capacity = evidence.shift.after, evidence.node.capacity
    excess = load - capacity
    # Without a known change: a key that is most of the load of a node above its capacity.
    if evidence.shift.time is None and frequent:
        top = frequent[0]
        if 0 < excess <= top.rate and top.rate >= MOST * load:
            return [_hot_key(evidence, top, None, 1.0)]
    return []


def _growth(key: NodeKey) -> float:
    return key.rate - (key.before or 0.0)


def _hot_key(
    evidence: NodeEvidence, key: NodeKey, time: datetime | None, share: float
) -> Cause:  # fmt: skip
    names = evidence.work.stream_names
    return evidence.named(
        CauseCode.HOT_KEY, time=time, key=key.label, key_share=key.share,
        query=key.query.id, query_name=key.query.name, stream=key.stream,
        stream_name="" if key.stream is None else names.get(key.stream, ""),
        before=None if time is None else key.before, after=key.rate, share=share,
    )  # fmt: skip


def _moves(evidence: NodeEvidence) -> list[Cause]:
    """Return the plan or the placements just before the increase that cause most of it."""
    shift, work = evidence.shift, evidence.work
    if shift.time is None or shift.after <= shift.before:
        return []
    rates = evidence.rises.newest_rates
    load = load_of(work.weights, rates)
    causes = []
    for change in evidence.changes:
        if change.kind not in (ChangeKind.PLAN, ChangeKind.PLACEMENT):
            continue
        arrived = frozenset(
            query for query, moment in change.placed.items()
            if shift.time - GROWS <= moment <= shift.time + INEXACT
        )  # fmt: skip
        # Without the records that they share with the other queries on the node.
        added = load - load_of(work.weights_without(arrived), rates)
        share = added / evidence.increase
        if not arrived or share < MOST:
            continue
        is_plan = change.kind is ChangeKind.PLAN
        code = CauseCode.PLAN_MOVED if is_plan else CauseCode.QUERIES_PLACED
        causes.append(
            evidence.named(
                code, time=min(change.placed[query] for query in arrived),
                proposal=change.proposal, count=len(arrived), after=added, share=min(1.0, share),
            )
        )  # fmt: skip
    return causes


def _speed(evidence: NodeEvidence) -> list[Cause]:
    """Return that the node processes no records, or needs more time for each."""
    observed, node = evidence.observed, evidence.node
    causes = (stalled_cause(observed, node), slow_cause(observed, node))
    return [cause for cause in causes if cause is not None]


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


def cause_of_latency(observed: ClusterObservation, evidence: NodeEvidence) -> Cause | None:
    """Return the cause of a latency, None without any; `evidence`: of the node that is explained.

    A micro-batch waits for its slowest node, which need not be the one with the largest load.
    """
    slowest = slowest_cause(observed)
    if slowest is not None:
        return slowest
    load, limit = evidence.shift.after, observed.policy.watch_load * evidence.node.capacity
    if load > limit:
        return cause_of_node(evidence)
    change = change_of_node(evidence)
    if change is not None and _raised(observed, change):
        return change
    return cause_of_cluster(observed) or change or _state_of_node(evidence)


def _raised(observed: ClusterObservation, cause: Cause) -> bool:
    """Return True if the latency has risen since the time of a cause."""
    before, after, time = shift_of(observed, observed.series.p95)
    if time is None or cause.time is None or after <= before:
        return False
    return abs(time - cause.time) <= GROWS


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
