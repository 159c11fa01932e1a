"""GET /metrics for Prometheus: metrics of clusters, executions, queues and requests.

Metrics of clusters are read from the database on request; requests are counted by all web processes
together. It requires a token (or a session) of a viewer and returns the metrics of visible
clusters; those of queues, webhooks and requests require a viewer of all clusters.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from controlplane.access.audit_chain import last_verification
from controlplane.access.roles import Actor
from controlplane.alerts.listing import open_alerts
from controlplane.alerts.states import severity_of, status_of
from controlplane.api.common.problems import anonymous, problem
from controlplane.api.common.security import identified
from controlplane.health.liveness.readings import read_site
from controlplane.health.liveness.status import full_status
from controlplane.health.summary import skipped_in
from controlplane.models import Cluster, FollowedFile, Sink
from controlplane.processes.serving.request_metrics import collect_requests
from controlplane.sinks.status import lag_s
from controlplane.telemetry.gauges import ClusterGauges, Gauges, gauges
from controlplane.telemetry.sources import SourceStatus, known_sources
from controlplane.wire.figures import FIGURES, Figure
from controlplane.wire.foreign.entries import SITE


# Without it, the token of a POST is looked for in its body before it is refused.
@csrf_exempt
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics in Prometheus's text format."""
    actor = identified(request)
    if actor is None:
        return anonymous(request)
    if not actor.is_member:
        return problem(request, 403, "Not allowed", "This needs the role viewer")
    registry = CollectorRegistry()
    registry.register(_Figures(actor))
    if actor.is_viewer:
        collect_requests(registry)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Figures(Collector):
    """Collector of the metrics that are visible to an actor."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def collect(self) -> Iterator[Metric]:
        with transaction.atomic():
            figures = gauges(self._actor.clusters)
        yield from _of_clusters(figures, timezone.now())
        yield _gauge("queries", "Queries", ("cluster", "state"), figures.queries)
        yield _gauge("proposals", "Proposals", ("cluster", "state"), figures.proposals)
        late_streams, late_queries = figures.late_streams, figures.late_queries
        for name, about, labels, values in (
            ("decisions", "Decisions of watch loops", ("loop", "code"), figures.decisions),
            ("stream_late_records", "Late by the watermark delay", ("stream",), late_streams),
            ("query_late_records", "Too late for the query", ("query",), late_queries),
        ):
            counter = CounterMetricFamily(f"weir_{name}", about, labels=("cluster", *labels))
            for measured, value in values:
                counter.add_metric(measured, value)
            yield counter
        yield from _of_alerts(self._actor, timezone.now())
        yield from _of_descriptions(self._actor)
        yield from _of_sinks(figures.sinks, timezone.now())
        yield from _of_topics(known_sources(row.cluster for row in figures.clusters))
        slugs = [row.cluster.slug for row in figures.clusters]
        yield from _of_skipped([*slugs, SITE] if self._actor.is_viewer else slugs)
        if self._actor.is_viewer:
            yield _gauge("webhook_deliveries", "Messages", ("state",), figures.deliveries)
            yield from _of_audit_log()
            yield from _of_queues()
            yield from _of_processes([row.cluster for row in figures.clusters])


_LABELS: Final = {"node": "node", "split": "split_node"}


def _of_clusters(figures: Gauges, now: datetime) -> Iterator[Metric]:
    rows = figures.clusters
    for figure in FIGURES:
        if not figure.metric:
            continue
        labels = ("cluster", _LABELS[figure.per]) if figure.per else ("cluster",)
        yield _gauge(figure.metric, figure.title, labels, _values(rows, figure))
    yield _gauge("data_age_seconds", "Age of the newest sample", ("cluster",), _ages(rows, now))
    yield _gauge("routing_version", "Version decided last", ("cluster",), (
        ((row.cluster.slug,), float(row.cluster.routing_version)) for row in rows
    ))  # fmt: skip
    yield _gauge("applied_version", "Version a batch ran with last", ("cluster",), (
        ((row.cluster.slug,), float(row.cluster.applied_version)) for row in rows
    ))  # fmt: skip
    yield _gauge("cluster_state", "1 for the state a cluster is in", ("cluster", "state"), (
        ((row.cluster.slug, row.cluster.state), 1.0) for row in rows
    ))  # fmt: skip


def _of_alerts(actor: Actor, now: datetime) -> Iterator[Metric]:
    labels = ("cluster", "kind", "severity", "state")
    yield _gauge("alert", "1 for each open alert", labels, (
        ((row.cluster.slug, row.subject, severity_of(row.subject), status_of(row, now)), 1.0)
        for row in open_alerts(actor.clusters)
    ))  # fmt: skip


def _of_descriptions(actor: Actor) -> Iterator[Metric]:
    rows = FollowedFile.objects.all()
    if actor.clusters is not None:
        rows = rows.filter(cluster__in=actor.clusters)
    labels = ("cluster", "file")
    yield _gauge("description_synced", "1 for a cluster as its file describes", labels, (
        ((row.slug, row.name), float(row.state == FollowedFile.State.SYNCED)) for row in rows
    ))  # fmt: skip


def _of_sinks(sinks: Iterable[Sink], now: datetime) -> Iterator[Metric]:
    """Yield the lag of each sink, and how many results it has written, refused and lost."""
    labelled = [((sink.query.cluster.slug, sink.query.name, sink.name), sink) for sink in sinks]
    labels = ("cluster", "query", "sink")
    yield _gauge("sink_lag_seconds", "Time since a sink had written everything", labels, (
        (names, 0.0 if sink.paused else lag_s(sink, now)) for names, sink in labelled
    ))  # fmt: skip
    for name, about in (
        ("written", "Results that sinks have written"),
        ("refused", "Results that destinations refused"),
        ("corrected", "Changes of results that were written as final"),
        ("lost", "Results that were deleted before a sink read them"),
    ):
        counter = CounterMetricFamily(f"weir_sink_{name}", about, labels=labels)
        for names, sink in labelled:
            counter.add_metric(names, float(getattr(sink, name)))
        yield counter


def _of_topics(topics: Sequence[tuple[tuple[str, str], SourceStatus]]) -> Iterator[Metric]:
    """Yield whether the brokers of topics answer, and the lag and state of each partition."""
    yield _gauge("topic_up", "1 if the brokers of a topic answer", ("cluster", "stream"), (
        (names, float(not topic.error)) for names, topic in topics
    ))  # fmt: skip
    rows = [((*names, row.name), row) for names, topic in topics
            for row in topic.partitions]  # fmt: skip
    labels = ("cluster", "stream", "partition")
    about = "Unread messages of a partition"
    yield _gauge("topic_unread_messages", about, labels, ((key, row.unread) for key, row in rows))
    about = "Age of the newest read message of a partition with unread ones"
    yield _gauge("topic_lag_seconds", about, labels, ((key, row.seconds) for key, row in rows))
    yield _gauge("topic_partition_state", "1 for its state", (*labels, "state"), (
        ((*key, row.state), 1.0) for key, row in rows
    ))  # fmt: skip


def _of_skipped(slugs: Iterable[str]) -> Iterator[Metric]:
    """Yield the entries that Weir could not read; the cluster is "" for those of the site."""
    about = "Entries of Redis that could not be read"
    counter = CounterMetricFamily("weir_skipped_entries", about, labels=("cluster", "place"))
    for slug in slugs:
        for item in skipped_in(slug):
            counter.add_metric((slug, item.place), item.count)
    yield counter


def _of_audit_log() -> Iterator[Metric]:
    """Yield the result of the last verification of the audit log; the beat verifies hourly."""
    last = last_verification()
    if last.verified_at is None:
        return
    about = "1 if the last verification reported no fault"
    yield _gauge("audit_intact", about, (), [((), float(last.is_intact))])
    about = "When the audit log was verified (s since 1970)"
    yield _gauge("audit_verified_timestamp_seconds", about, (), [
        ((), last.verified_at.timestamp())
    ])  # fmt: skip


def _of_queues() -> Iterator[Metric]:
    """Yield the lengths of the task queues, and whether Redis responds."""
    reading = read_site(fresh=True)
    lengths = [((queue.name,), float(queue.length)) for queue in reading.queues]
    ages = [((queue.name,), queue.oldest_s or 0.0) for queue in reading.queues]
    up = 0.0 if reading.lost_ms is not None else 1.0
    yield _gauge("redis_up", "Whether Redis answers", (), [((), up)])
    yield _gauge("queue_length", "Tasks that wait for a worker", ("queue",), lengths)
    yield _gauge("queue_oldest_seconds", "Age of the oldest waiting task", ("queue",), ages)


def _of_processes(clusters: list[Cluster]) -> Iterator[Metric]:
    """Yield which processes of Weir send heartbeats, and the failures of supervised ones."""
    status = full_status(clusters)
    labels = ("process", "cluster")
    known = [row for row in status.processes if row.state != "unknown"]
    yield _gauge("process_up", "1 while heartbeats arrive", labels, (
        ((row.kind.name, row.cluster), float(row.state == "running")) for row in known
    ))  # fmt: skip
    yield _gauge("process_silent_seconds", "Time since the last heartbeat", labels, (
        ((row.kind.name, row.cluster), row.silent_s or 0.0) for row in known
    ))  # fmt: skip
    yield _gauge("process_failures", "Ends in a row", ("child",), (
        ((child.name,), float(child.failures)) for child in status.children
    ))  # fmt: skip


def _values(rows: list[ClusterGauges], figure: Figure) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the labels and the value of a figure, of each node or split node if it has several."""
    for row in rows:
        value = row.sample.get(figure.name)
        labelled = (
            {(str(index),): number for index, number in enumerate(value or ())}
            if figure.per
            else {(): value}
        )
        for labels, number in labelled.items():
            if number is not None:
                yield (row.cluster.slug, *labels), float(number) * figure.metric_factor


def _ages(rows: list[ClusterGauges], now: datetime) -> Iterator[tuple[tuple[str, ...], float]]:
    for row in rows:
        if row.cluster.last_sample_at is not None:
            yield (row.cluster.slug,), (now - row.cluster.last_sample_at).total_seconds()


def _gauge(
    name: str,
    about: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], float]],
) -> Metric:
    metric = GaugeMetricFamily(f"weir_{name}", about, labels=labels)
    for measured, value in values:
        metric.add_metric(measured, value)
    return metric
