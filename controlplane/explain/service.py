"""Explanations: what is wrong with a subject, since when, why, and what would end it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from django.utils import timezone

from algorithms.vocabulary import Floats
from controlplane.alerts.measures import KINDS, AlertMeasure, LimitInput
from controlplane.catalog.queries import query_by_name
from controlplane.errors import NotFound
from controlplane.explain.cause import Cause
from controlplane.explain.causes.diagnosis import (
    cause_of_cluster,
    cause_of_latency,
    cause_of_node,
)
from controlplane.explain.causes.evidence import NodeEvidence
from controlplane.explain.causes.ranking import ranked_changes, shares_of_node, with_share
from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.explain.changes import LISTED, changes_of_node, rate_changes
from controlplane.explain.contributions import (
    key_contributions,
    query_contributions,
    stream_contributions,
)
from controlplane.explain.node_findings import (
    load_finding,
    load_limit,
    load_series,
    load_shift,
    measure_finding,
    node_facts,
    series_of,
)
from controlplane.explain.node_keys import read_node_keys
from controlplane.explain.node_work import NodeQueries, read_node_work
from controlplane.explain.observation import ClusterObservation
from controlplane.explain.remedies import remedies
from controlplane.explain.stream_rises import StreamRises, common_rise, stream_rises
from controlplane.explain.stream_subject import explain_stream
from controlplane.explain.subjects import ExplanationSubject, SubjectKind
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import Explanation, Fact, Finding, RankedChange, Series
from controlplane.models import (
    Cluster,
    Decision,
    Node,
    RoutingVersion,
    Task,
)
from controlplane.pagination.lookup import row_by
from controlplane.policies.measure_limits import reachable_of

# Measures whose cause is that of the fullest node.
_OF_NODES: Final = (AlertMeasure.LATENCY, AlertMeasure.LOAD, AlertMeasure.IMBALANCE)


@dataclass(frozen=True)
class Breach:
    """An exceeded limit: of a measure of the cluster, or of one node; `time`: None for now."""

    measure: str
    node: int | None = None
    time: datetime | None = None
    since: datetime | None = None


def likely_cause(cluster: Cluster, breach: Breach, now: datetime | None = None) -> Cause | None:
    """Return the likely cause of an exceeded limit, None if nothing is known.

    Data that are missing, or stores that are unavailable, give no error.
    """
    if breach.measure == AlertMeasure.REPLICATION:
        # It follows from the placement: no slow node, and no slow micro-batch, raises it.
        return None
    observed = _observation(cluster, breach.time, now)
    node = observed.fullest if breach.node is None else observed.node(breach.node)
    if node is None or breach.measure not in _OF_NODES:
        return cause_of_cluster(observed)
    evidence = read_evidence(observed, node)
    return _causes(evidence, breach.measure, breach.since)[0]


def explain(
    cluster: Cluster, subject: ExplanationSubject, now: datetime | None = None
) -> Explanation:
    """Return the explanation of a subject of the cluster. Raises `NotFound`."""
    observed = _observation(cluster, subject.time, now)
    return _EXPLAINERS[subject.kind](observed, subject)


def _observation(
    cluster: Cluster, time: datetime | None, now: datetime | None
) -> ClusterObservation:
    present = now or timezone.now()
    # Nothing is known before 1970, and the times beside the first ones are none.
    moment = max(min(time or present, present), datetime.fromtimestamp(0, UTC))
    return ClusterObservation(cluster, moment, present)


def read_evidence(
    observed: ClusterObservation, node: Node, work: NodeQueries | None = None,
    versions: Sequence[RoutingVersion] | None = None,
) -> NodeEvidence:  # fmt: skip
    """Return what is known of a node, for its explanation.

    `work`: its measured work, `versions`: as in `changes_of_node`; if they were read before.
    """
    if work is None or not observed.is_measured:
        work = read_node_work(observed.cluster, node.index, measured=observed.is_measured)
    shift = load_shift(observed, node)
    rises = stream_rises(observed, work.weights, work.stream_names)
    keys = read_node_keys(observed, work, rises, shift.time)
    changes = changes_of_node(
        observed.cluster, node.index, observed.start, observed.time, work.weights, versions
    )
    together = common_rise(observed, work.weights)
    return NodeEvidence(observed, node, work, shift, rises, together, keys, changes)


def _causes(
    evidence: NodeEvidence, measure: str, since: datetime | None
) -> tuple[Cause | None, list[RankedChange]]:
    """Return the likely cause of a measure, and the changes before it, the largest ones first.

    `since`: when its limit was exceeded, None if not known.
    """
    is_latency, shares = measure == AlertMeasure.LATENCY, shares_of_node(evidence)
    ranked = ranked_changes(evidence, shares, since, is_latency=is_latency)
    cause = (cause_of_latency if is_latency else cause_of_node)(evidence, shares)
    return with_share(cause, ranked), ranked


def _explain_node(observed: ClusterObservation, subject: ExplanationSubject) -> Explanation:
    node = observed.node(int(subject.name))
    if node is None:
        raise NotFound("node", subject.name)
    return explain_node(observed, subject, read_evidence(observed, node))


def explain_node(
    observed: ClusterObservation, subject: ExplanationSubject, evidence: NodeEvidence
) -> Explanation:
    """Return the explanation of a node by what is known of it."""
    node = evidence.node
    finding = load_finding(observed, node)
    series = load_series(observed, node, evidence.shift)
    return _of_node(observed, subject, evidence, node.name, finding, series)


def _of_node(
    observed: ClusterObservation, subject: ExplanationSubject, evidence: NodeEvidence, title: str,
    finding: Finding, series: Series,
) -> Explanation:  # fmt: skip
    """Return an explanation by the contributions, changes and remedies of one node."""
    node, finding = evidence.node, _since_capacity(finding, evidence.changes)
    excess = (observed.load(node.index) or 0.0) - load_limit(observed, node)
    since = None if finding.since_is_earliest else finding.since
    cause, ranked = _causes(evidence, finding.measure, since)
    queries = evidence.work.queries
    return Explanation(
        subject=subject,
        title=title,
        time=observed.time,
        is_live=observed.is_live,
        finding=finding,
        facts=[*node_facts(observed, node), _affected(observed, len(queries))],
        series=series,
        streams=stream_contributions(evidence.rises, excess),
        keys=key_contributions(evidence.keys, evidence.shift.after, excess),
        queries=query_contributions(list(queries.values())),
        changes=_timeline(evidence.changes, evidence.rises, finding),
        cause=cause,
        ranked=ranked,
        remedies=remedies(observed, node.index, cause, finding.measure),
        assignment_is_present=_is_present(observed, evidence),
    )


def _since_capacity(finding: Finding, changes: Sequence[NearbyChange]) -> Finding:
    """Return the finding of a load, exceeded at the earliest since the last change of capacity."""
    times = [change.time for change in changes if change.kind is ChangeKind.CAPACITY]
    if finding.measure != AlertMeasure.LOAD or finding.since is None or not times:
        return finding
    if max(times) <= finding.since:
        return finding
    return replace(finding, since=max(times), since_is_earliest=False)


def _affected(observed: ClusterObservation, count: int) -> Fact:
    return Fact("queries", count, ValueUnit.COUNT, total=observed.running_queries)


def _is_present(observed: ClusterObservation, evidence: NodeEvidence) -> bool:
    """Return False if tasks have moved to the node after the explained moment."""
    if observed.is_live:
        return True
    after = changes_of_node(observed.cluster, evidence.node.index, observed.time, observed.now)
    return not any(change.arrived for change in after)


def _timeline(
    changes: Sequence[NearbyChange], rises: StreamRises, finding: Finding
) -> list[NearbyChange]:
    """Return the changes with those of rates and the exceeded limit, oldest first."""
    rows = [*changes, *rate_changes(rises)]
    if finding.since is not None:
        rows.append(
            NearbyChange(
                ChangeKind.EXCEEDED, finding.since, after=finding.limit, unit=finding.unit,
                name=finding.measure,
            )
        )  # fmt: skip
    return sorted(rows, key=lambda change: change.time)[-LISTED:]


def _explain_measure(observed: ClusterObservation, subject: ExplanationSubject) -> Explanation:
    measure = AlertMeasure(subject.name)
    kind, node = KINDS[measure], observed.fullest
    values, limit = _values_of(observed, measure), kind.limit(_limit_input(observed))
    finding = measure_finding(observed, measure, values, limit)
    series = series_of(observed, kind.title, values, ValueUnit(kind.unit), limit)
    if node is None:
        return Explanation(
            subject, kind.title, observed.time, observed.is_live, finding, series=series,
            cause=cause_of_cluster(observed),
        )  # fmt: skip
    evidence = read_evidence(observed, node)
    return _of_node(observed, subject, evidence, kind.title, finding, series)


def _limit_input(observed: ClusterObservation) -> LimitInput:
    cluster = observed.cluster
    return LimitInput(cluster, observed.policy, reachable_of([cluster.pk]).get(cluster.pk))


def _values_of(observed: ClusterObservation, measure: AlertMeasure) -> Floats:
    """Return a measure of the cluster over time, NaN where it is not measured."""
    series = observed.series
    loads = series.loads[:, : len(observed.nodes)] / observed.capacities
    values: dict[AlertMeasure, Floats] = {
        AlertMeasure.LATENCY: series.p95,
        AlertMeasure.IMBALANCE: series.imbalance,
        AlertMeasure.REPLICATION: series.replication,
        AlertMeasure.RECORDS: series.arrived,
        AlertMeasure.LOAD: loads.max(axis=1, initial=-1.0),
    }
    return values.get(measure, series.arrived * float("nan"))


def _explain_query(observed: ClusterObservation, subject: ExplanationSubject) -> Explanation:
    """Explain the latency of a query by the fullest of its nodes."""
    query = query_by_name(observed.cluster, subject.name)
    hosts = set(Task.objects.filter(query=query).values_list("node__index", flat=True))
    nodes = [
        (share or 0.0, -node.index, node)
        for share, node in zip(observed.shares, observed.nodes, strict=True)
        if node.index in hosts
    ]
    kind, limit = KINDS[AlertMeasure.LATENCY], float(observed.policy.latency_ms)
    if not nodes:
        finding = Finding(AlertMeasure.LATENCY, None, limit, ValueUnit.MS, kind.setting)
        return Explanation(subject, query.name, observed.time, observed.is_live, finding)
    node = max(nodes, key=lambda row: row[:2])[2]
    values = observed.series.p95_by_node[:, node.index]
    finding = measure_finding(observed, AlertMeasure.LATENCY, values, limit)
    finding = replace(finding, node=node.index, node_name=node.name)
    series = series_of(observed, f"Latency of {node.name}", values, ValueUnit.MS, limit)
    evidence = read_evidence(observed, node)
    explanation = _of_node(observed, subject, evidence, query.name, finding, series)
    own = evidence.work.queries.get(query.pk)
    rate = None if own is None else own.records_per_s
    return replace(explanation, facts=[*explanation.facts, Fact("records", rate, ValueUnit.RATE)])


# The measure of each watch loop; loops about nodes and split nodes have that of the fullest node.
_LOOPS: Final[Mapping[str, AlertMeasure]] = {
    "latency": AlertMeasure.LATENCY,
    "imbalance": AlertMeasure.IMBALANCE,
    "replication": AlertMeasure.REPLICATION,
    "overload": AlertMeasure.LOAD,
}


def _explain_decision(observed: ClusterObservation, subject: ExplanationSubject) -> Explanation:
    """Explain the measure of a decision of a watch loop, when it was first made."""
    rows = Decision.objects.filter(cluster=observed.cluster)
    row = row_by(rows, "decision", pk=int(subject.name))
    moment = _observation(observed.cluster, subject.time or row.last_at, observed.now)
    measure = _LOOPS.get(row.loop, AlertMeasure.LOAD)
    inner = ExplanationSubject(SubjectKind.MEASURE, measure, moment.time)
    explanation = _explain_measure(moment, inner)
    change = NearbyChange(
        ChangeKind.DECISION, row.first_at, name=row.loop, id=row.pk, proposal=row.proposal_id,
        before=row.limit, after=row.number, reason=row.text, count=row.count, until=row.last_at,
    )  # fmt: skip
    changes = sorted([*explanation.changes, change], key=lambda item: item.time)
    return replace(explanation, subject=subject, changes=changes)


_EXPLAINERS: Final[
    Mapping[SubjectKind, Callable[[ClusterObservation, ExplanationSubject], Explanation]]
] = {
    SubjectKind.NODE: _explain_node,
    SubjectKind.STREAM: explain_stream,
    SubjectKind.QUERY: _explain_query,
    SubjectKind.MEASURE: _explain_measure,
    SubjectKind.DECISION: _explain_decision,
}
