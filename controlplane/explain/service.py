"""Explanations: what is wrong with a subject, since when, why, and what would end it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from django.db.models import Q

from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.catalog.queries import query_by_name
from controlplane.errors import NotFound
from controlplane.explain.causes.evidence import Evidence, NodeEvidence
from controlplane.explain.causes.ranking import ranked_changes
from controlplane.explain.causes.stream_rises import rate_changes
from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.explain.changes import LISTED, changes_of_node
from controlplane.explain.contributions import (
    key_contributions,
    query_contributions,
    stream_contributions,
)
from controlplane.explain.node_findings import (
    latency_finding,
    load_limit,
    measure_finding,
    node_facts,
    node_finding,
)
from controlplane.explain.remedies import remedies
from controlplane.explain.stream_explanation import explain_stream
from controlplane.explain.subjects import ExplanationSubject, SubjectKind
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import Explanation, Fact, Finding, RankedChange, Series
from controlplane.models import Alert, Cluster, Decision, Node, Task
from controlplane.pagination.lookup import row_by
from controlplane.watch.observation import ClusterObservation

# Losses follow from a load beyond the capacity, unless a rule or ladder changed.
_EXPLAINED_BY: Final = {AlertMeasure.KEPT: (AlertMeasure.KEPT, AlertMeasure.LOAD)}


def likely_causes(
    cluster: Cluster, measures: Collection[str], time: datetime | None = None,
    since: datetime | None = None, now: datetime | None = None,
) -> list[RankedChange]:  # fmt: skip
    """Return what explains the exceeded limits of these measures of a cluster, largest first.

    `time`: None for now; `since`: when the first limit was exceeded, None if not known. Data that
    are missing, or stores that are unavailable, give no error.
    """
    evidence = Evidence(ClusterObservation.of_moment(cluster, time, now))
    return ranked_changes(evidence, _explained(measures), start=since)


def _explained(measures: Collection[str]) -> set[AlertMeasure]:
    known = map(AlertMeasure, measures)
    return {other for measure in known for other in _EXPLAINED_BY.get(measure, (measure,))}


def explain(
    cluster: Cluster, subject: ExplanationSubject, now: datetime | None = None
) -> Explanation:
    """Return the explanation of a subject of the cluster. Raises `NotFound`."""
    evidence = Evidence(ClusterObservation.of_moment(cluster, subject.time, now))
    return explanation_of(evidence, subject)


def explanation_of(evidence: Evidence, subject: ExplanationSubject) -> Explanation:
    """Return the explanation of a subject by what is known of its cluster. Raises `NotFound`."""
    return _EXPLAINERS[subject.kind](evidence, subject)


def _explain_node(evidence: Evidence, subject: ExplanationSubject) -> Explanation:
    node = evidence.observed.node(int(subject.name))
    if node is None:
        raise NotFound("node", subject.name)
    measured = node_finding(evidence, node)
    return _explanation(evidence, subject, node.name, measured, node, [node])


def _explain_measure(evidence: Evidence, subject: ExplanationSubject) -> Explanation:
    measure = AlertMeasure(subject.name)
    measured = measure_finding(evidence.observed, measure)
    node = evidence.observed.fullest
    return _explanation(evidence, subject, KINDS[measure].title, measured, node)


def _explain_query(evidence: Evidence, subject: ExplanationSubject) -> Explanation:
    """Explain the latency of a query by the slowest of its nodes."""
    observed = evidence.observed
    query = query_by_name(observed.cluster, subject.name)
    hosts = set(Task.objects.filter(query=query).values_list("node__index", flat=True))
    nodes = [node for node in observed.nodes if node.index in hosts]
    if not nodes:
        kind, limit = KINDS[AlertMeasure.LATENCY], float(observed.policy.latency_ms)
        finding = Finding(AlertMeasure.LATENCY, None, limit, ValueUnit.MS, kind.setting)
        return Explanation(subject, query.name, observed.time, observed.is_live, finding)
    latencies = np.nan_to_num(observed.window["node_p95"][0])
    node = max(nodes, key=lambda node: latencies[node.index])
    measured = latency_finding(observed, node)
    explanation = _explanation(evidence, subject, query.name, measured, node, nodes)
    own = evidence.of_node(node).work.queries.get(query.pk)
    rate = None if own is None else own.evaluations_per_s
    evaluations = Fact("evaluations", rate, ValueUnit.EVALUATION_RATE)
    return replace(explanation, facts=[*explanation.facts, evaluations])


def _explanation(
    evidence: Evidence, subject: ExplanationSubject, title: str, measured: tuple[Finding, Series],
    node: Node | None, nodes: Sequence[Node] = (),
) -> Explanation:  # fmt: skip
    """Return an explanation with the contributions, changes and remedies of one node.

    `nodes`: at which changes count, by default at all.
    """
    observed, (finding, series) = evidence.observed, measured
    if node is not None:
        finding = _since_capacity(finding, evidence.of_node(node).changes)
    finding = _since_alert(observed, finding)
    since = None if finding.since_is_earliest else finding.since
    ranked = ranked_changes(evidence, _explained([finding.measure]), nodes, since)
    cause = ranked[0].cause if ranked else None
    details = {} if node is None else _of_node(evidence.of_node(node), finding)
    place = None if node is None else node.index
    return Explanation(
        subject=subject, title=title, time=observed.time, is_live=observed.is_live,
        finding=finding, series=series, ranked=ranked,
        remedies=remedies(observed, place, cause, finding.measure), **details,
    )  # fmt: skip


def _of_node(evidence: NodeEvidence, finding: Finding) -> dict[str, Any]:
    """Return the facts, contributions and changes of a node."""
    observed, node, work = evidence.observed, evidence.node, evidence.work
    excess = evidence.load - load_limit(observed, node)
    return {
        "facts": node_facts(observed, node, len(work.queries)),
        "streams": stream_contributions(evidence.cluster.rises, evidence.weights, excess),
        "keys": key_contributions(evidence.keys, evidence.load, excess),
        "queries": query_contributions(list(work.queries.values())),
        "changes": _timeline(evidence, finding),
        "assignment_is_present": _is_present(observed, evidence),
    }


def _since_capacity(finding: Finding, changes: Sequence[NearbyChange]) -> Finding:
    """Return the finding of a load, exceeded at the earliest since the last change of capacity."""
    times = [change.time for change in changes if change.kind is ChangeKind.CAPACITY]
    if finding.measure != AlertMeasure.LOAD or finding.since is None or not times:
        return finding
    if max(times) <= finding.since:
        return finding
    return replace(finding, since=max(times), since_is_earliest=False)


def _since_alert(observed: ClusterObservation, finding: Finding) -> Finding:
    """Return the finding with the onset that its alert and the headline of the cluster state."""
    if finding.since is None:
        return finding
    is_open = Q(cleared_at=None) | Q(cleared_at__gt=observed.time)
    alerts = Alert.objects.filter(is_open, cluster=observed.cluster, subject=finding.measure)
    if finding.measure == AlertMeasure.LOAD:
        alerts = alerts.filter(node=finding.node)
    since = alerts.filter(since__lte=observed.until).order_by("-since").values_list("since")[:1]
    return replace(finding, since=since[0][0], since_is_earliest=False) if since else finding


def _is_present(observed: ClusterObservation, evidence: NodeEvidence) -> bool:
    """Return False if tasks have moved to the node after the explained moment."""
    if observed.is_live:
        return True
    after = changes_of_node(observed.cluster, evidence.node.index, observed.until, observed.now)
    return not any(change.arrived for change in after)


def _timeline(evidence: NodeEvidence, finding: Finding) -> list[NearbyChange]:
    """Return the changes with those of rates and the exceeded limit, oldest first."""
    rows = [*evidence.changes, *rate_changes(evidence.cluster.rises, evidence.weights)]
    if finding.since is not None:
        rows.append(
            NearbyChange(
                ChangeKind.EXCEEDED, finding.since, after=finding.limit, unit=finding.unit,
                name=finding.measure,
            )
        )  # fmt: skip
    return sorted(rows, key=lambda change: change.time)[-LISTED:]


# The measure of each watch loop; loops about nodes and split nodes have that of the fullest node.
_LOOPS: Final[Mapping[str, AlertMeasure]] = {
    "latency": AlertMeasure.LATENCY,
    "imbalance": AlertMeasure.IMBALANCE,
    "replication": AlertMeasure.REPLICATION,
    "overload": AlertMeasure.LOAD,
}


def _explain_decision(evidence: Evidence, subject: ExplanationSubject) -> Explanation:
    """Explain the measure of a decision of a watch loop, when it was first made."""
    observed = evidence.observed
    rows = Decision.objects.filter(cluster=observed.cluster)
    row = row_by(rows, "decision", pk=int(subject.name))
    moment = ClusterObservation.of_moment(
        observed.cluster, subject.time or row.last_at, observed.now
    )
    measure = _LOOPS.get(row.loop, AlertMeasure.LOAD)
    inner = ExplanationSubject(SubjectKind.MEASURE, measure, moment.time)
    explanation = _explain_measure(Evidence(moment), inner)
    change = NearbyChange(
        ChangeKind.DECISION, row.first_at, name=row.loop, id=row.pk, proposal=row.proposal_id,
        before=row.limit, after=row.number, reason=row.text, count=row.count, until=row.last_at,
    )  # fmt: skip
    changes = sorted([*explanation.changes, change], key=lambda item: item.time)
    return replace(explanation, subject=subject, changes=changes)


_EXPLAINERS: Final[Mapping[SubjectKind, Callable[[Evidence, ExplanationSubject], Explanation]]] = {
    SubjectKind.NODE: _explain_node,
    SubjectKind.STREAM: explain_stream,
    SubjectKind.QUERY: _explain_query,
    SubjectKind.MEASURE: _explain_measure,
    SubjectKind.DECISION: _explain_decision,
}
