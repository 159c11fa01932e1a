"""The choice of the likely cause: the change that explains most of an exceeded limit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.contributions import NodeKeys, StreamRise
from controlplane.explain.node_findings import LoadShift
from controlplane.explain.node_speed import slow_cause, stalled_cause
from controlplane.explain.node_work import NodeWork
from controlplane.explain.observation import FULL, ClusterObservation, mean, median
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import Change, ChangeKind
from controlplane.models import Node

# A single change explains an increase from this part on.
MOST: Final = 0.5
# A restart explains the latency of this time.
_RESTART: Final = timedelta(minutes=10)


@dataclass(frozen=True, eq=False)
class NodeEvidence:
    """What is known of a node, for its likely cause.

    `rises`: of streams; `changes`: before the moment; `shift`: of its load.
    """

    observed: ClusterObservation
    node: Node
    work: NodeWork
    shift: LoadShift
    rises: Sequence[StreamRise]
    keys: NodeKeys | None
    changes: Sequence[Change]


def cause_of_node(evidence: NodeEvidence) -> Cause | None:
    """Return the likely cause of the load, backlog or latency of a node, None without any."""
    candidates = [
        *_capacity(evidence), *_keys(evidence), *_streams(evidence), *_moves(evidence),
        *_speed(evidence),
    ]  # fmt: skip
    full = evidence.observed.full_share
    above = full if full is not None and full > FULL else None
    if candidates:
        # The largest part; of equal ones the more specific one, which is first.
        best = max(candidates, key=lambda cause: round(cause.share or 0.0, 1))
        return replace(best, full_share=above)
    restarted = _restart(evidence)
    if restarted is not None:
        return restarted
    if above is not None:
        return Cause(CauseCode.ALL_FULL, full_share=above)
    return _unbalanced(evidence)


def _increase(evidence: NodeEvidence) -> float:
    """Return the increase of the load in records/s, at least what is above the capacity."""
    shift = evidence.shift
    above = shift.after - FULL * evidence.node.capacity
    return max(float(shift.after - shift.before), float(above), 1e-9)


def _named(evidence: NodeEvidence, code: CauseCode, **values: object) -> Cause:
    node = evidence.node
    cause = Cause(code, node=node.index, node_name=node.name)
    return replace(cause, **values)  # type: ignore[arg-type]


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
        _named(
            evidence, CauseCode.CAPACITY_LOWERED, time=change.time, actor=change.actor,
            before=before, after=after, proposal=change.proposal, share=min(1.0, share),
        )
    ]  # fmt: skip


def _streams(evidence: NodeEvidence) -> list[Cause]:
    """Return the stream that explains most of the increase, or all streams that rose."""
    rises = [rise for rise in evidence.rises if rise.time is not None and rise.after > rise.before]
    if not rises or evidence.shift.after <= evidence.shift.before:
        return []
    increase = _increase(evidence)
    largest = max(rises, key=lambda rise: rise.after - rise.before)
    share = (largest.after - largest.before) / increase
    if share >= MOST:
        return [
            _named(
                evidence, CauseCode.STREAM_ROSE, time=largest.time, stream=largest.id,
                stream_name=largest.name, before=largest.source_before,
                after=largest.source_after, share=min(1.0, share),
            )
        ]  # fmt: skip
    total = sum(rise.after - rise.before for rise in rises)
    if total / increase < MOST:
        return []
    return [
        _named(
            evidence, CauseCode.STREAMS_ROSE, time=min(rise.time for rise in rises if rise.time),
            stream=largest.id, stream_name=largest.name, count=len(rises),
            before=sum(rise.source_before for rise in rises),
            after=sum(rise.source_after for rise in rises), share=min(1.0, total / increase),
        )
    ]  # fmt: skip


def _keys(evidence: NodeEvidence) -> list[Cause]:
    """Return the key whose increase, or whose rate if it is above the excess, explains most."""
    if evidence.keys is None or not evidence.keys.rows:
        return []
    top = evidence.keys.rows[0]
    if not top.stands_out:
        return []
    common = {
        "query": top.query.id, "query_name": top.query.name, "key": top.label, "after": top.rate,
    }  # fmt: skip
    if top.before is not None:
        share = (top.rate - top.before) / _increase(evidence)
        if share >= MOST:
            moment = evidence.shift.time
            return [
                _named(
                    evidence,
                    CauseCode.HOT_KEY,
                    time=moment,
                    before=top.before,
                    share=share,
                    **common,
                )
            ]
    load, capacity = evidence.shift.after, evidence.node.capacity
    excess = load - capacity
    # Without a known change: a key that is most of the load of a node above its capacity.
    is_static = evidence.shift.time is None and 0 < excess <= top.rate and top.rate >= MOST * load
    return [_named(evidence, CauseCode.HOT_KEY, share=1.0, **common)] if is_static else []


def _moves(evidence: NodeEvidence) -> list[Cause]:
    """Return the plan or the placements that cause most of the increase."""
    arrived = [
        change for change in evidence.changes
        if change.kind in (ChangeKind.PLAN, ChangeKind.PLACEMENT) and change.arrived
    ]  # fmt: skip
    if not arrived or not evidence.work.queries:
        return []
    rates = {rise.id: rise.source_after for rise in evidence.rises}
    load = sum(weight * rates.get(s, 0.0) for s, weight in evidence.work.weights.items())
    causes = []
    for change in arrived:
        # The mean part of a query: which records they share with others is not stored.
        added = load * min(1.0, change.arrived / len(evidence.work.queries))
        share = added / _increase(evidence)
        if share < MOST or evidence.shift.after <= evidence.shift.before:
            continue
        is_plan = change.kind is ChangeKind.PLAN
        code = CauseCode.PLAN_MOVED if is_plan else CauseCode.QUERIES_PLACED
        causes.append(
            _named(
                evidence, code, time=change.time, proposal=change.proposal, count=change.arrived,
                after=added, share=min(1.0, share),
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
    return _named(evidence, CauseCode.UNBALANCED, before=average, after=own, unit=ValueUnit.SHARE)


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
