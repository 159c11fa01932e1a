"""Texts, numbers and links of an explanation for its panel."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from controlplane import numbers
from controlplane.alerts.measures import AlertMeasure
from controlplane.explain import Explanation, ExplanationSubject, SubjectKind
from controlplane.explain.units import ValueUnit, quantity
from controlplane.explain.values import Contributions
from controlplane.models import Cluster, Node
from controlplane.policies.grades import Grade
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from dashboard.explain.plot import plot_of

# One cell of the heat map.
STEP: Final = timedelta(minutes=1)
_FACTS: Final = {
    "load": "Load",
    "backlog": "Backlog",
    "latency": "Latency p95 here",
    "busy": "Processor time",
    "state": "State",
    "queries": "Queries affected",
    "evaluations": "Evaluations of the query",
    "split_node": "Split node",
    "split_utilisation": "Split node used",
}
_CHIPS: Final = {
    Grade.BAD: "above limit",
    Grade.WARN: "near limit",
    Grade.GOOD: "within limit",
    Grade.UNKNOWN: "no data",
}


@dataclass(frozen=True)
class BarList:
    """The contributions of one kind with their title and its explanation.

    `page`: the name of the pages of its rows, "" without any; `things`: the plural of the kind.
    """

    title: str
    about: str
    value: Contributions
    page: str
    things: str


def explain_url(cluster: Cluster, subject: str) -> str:
    """Return the URL of the cluster's page with an explanation beside it."""
    return f"{reverse('cluster', args=[cluster.slug])}?{urlencode({'explain': subject})}"


def explanation_row(cluster: Cluster, explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as its panel shows it, with the subjects that arrows open."""
    subject, finding = explanation.subject, explanation.finding
    earlier, later = _neighbours(explanation)
    above, below = _nodes_beside(cluster, subject)
    return {
        "value": explanation,
        "subject": str(replace(subject, time=None) if explanation.is_live else subject),
        "chip": _CHIPS[Grade(finding.grade)],
        "setting": _setting(cluster, explanation),
        "since": _since(explanation),
        # The node whose facts and changes the explanation of another subject has.
        "node": "" if subject.kind is SubjectKind.NODE else finding.node_name,
        "facts": [
            (_FACTS[fact.name], fact) for fact in explanation.facts if fact.value is not None
        ],
        "plot": plot_of(explanation.series, explanation.headline),
        "bars": list(_bars(explanation)),
        "page_url": _page_url(cluster, subject),
        "earlier": earlier,
        "later": later,
        "above": above,
        "below": below,
    }


def _setting(cluster: Cluster, explanation: Explanation) -> str:
    """Return the setting of the policy with the limit that follows from it, "" without one."""
    finding = explanation.finding
    field = PolicySettings.model_fields.get(finding.setting)
    if field is None:
        return ""
    limit = quantity(finding.limit, ValueUnit(finding.unit))
    if finding.measure == AlertMeasure.REPLICATION:
        share = numbers.percent(policy_of(cluster).watch_replication)
        return f"{field.title} {share}: limit {limit}"
    return f"{field.title} {limit}"


def _since(explanation: Explanation) -> str:
    """Return for how long the limit is exceeded, "" if it is not."""
    finding = explanation.finding
    if finding.since is None:
        return ""
    lasted = numbers.duration(explanation.time - finding.since)
    return f"more than {lasted}" if finding.since_is_earliest else lasted


def _bars(explanation: Explanation) -> Iterator[BarList]:
    """Yield the contributions that are known."""
    streams, keys, queries = explanation.streams, explanation.keys, explanation.queries
    if streams is not None:
        sign = "+" if streams.is_change else ""
        about = f"{sign}{quantity(streams.total, ValueUnit.DELIVERY_RATE)}"
        about += _before(explanation) if streams.is_change else ", share of the load"
        yield BarList("Streams", about, streams, "stream", "streams")
    if keys is not None:
        about = f"share of the node's load, from {keys.sampled:,} sampled records"
        yield BarList("Keys", about, keys, "", "keys")
    if queries is not None and explanation.subject.kind is SubjectKind.STREAM:
        yield BarList("Nodes", "share of its queries", queries, "", "nodes")
    elif queries is not None:
        yield BarList("Queries", "share of the node's evaluations", queries, "query", "queries")


def _before(explanation: Explanation) -> str:
    series = explanation.series
    if series is None or series.changed_at is None:
        return ""
    moment = datetime.fromtimestamp(series.changed_at / 1000, UTC)
    return f" since {moment:%H:%M}"


def _neighbours(explanation: Explanation) -> tuple[str, str]:
    """Return the subject one minute earlier, and one minute later: "" for a live one."""
    subject = explanation.subject
    earlier = ExplanationSubject(subject.kind, subject.name, explanation.time - STEP)
    if explanation.is_live:
        return str(earlier), ""
    later = explanation.time + STEP
    is_now = later >= timezone.now() - STEP
    return str(earlier), str(
        ExplanationSubject(subject.kind, subject.name, None if is_now else later)
    )


def _nodes_beside(cluster: Cluster, subject: ExplanationSubject) -> tuple[str, str]:
    """Return the nodes before and after a node at the same time, "" without one."""
    if subject.kind is not SubjectKind.NODE:
        return "", ""
    index = int(subject.name)
    known = set(
        Node.objects.filter(
            cluster=cluster, index__in=(index - 1, index + 1), index__lt=cluster.slots
        ).values_list("index", flat=True)
    )
    above, below = (
        str(ExplanationSubject(subject.kind, str(other), subject.time)) if other in known else ""
        for other in (index - 1, index + 1)
    )
    return above, below


def _page_url(cluster: Cluster, subject: ExplanationSubject) -> str:
    """Return the page of the explained thing, "" for others than nodes."""
    if subject.kind is SubjectKind.NODE:
        return reverse("node", args=[cluster.slug, int(subject.name)])
    return ""
