"""A change is one trace, from its request to the batch in which it took effect."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from controlplane.background import ingestion
from controlplane.events import traces
from controlplane.integrations import otlp
from controlplane.models import Cluster, Proposal, RoutingVersion
from controlplane.processes.runtime.beats import now_ms
from controlplane.proposals import computation, decisions
from tests.controlplane.api.callers import get, post, scripted
from tests.support.cluster import actor, small_cluster, telemetry
from tests.support.destinations import RECEIVERS, list_destinations
from tests.support.execution import carried_out, scattered
from tests.support.receiver import Receiver, receiving
from tests.workers.tasks.test_worker import until

pytestmark = pytest.mark.django_db(transaction=True)
# The trace and the span of a caller.
TRACE, SPAN = "ab" * 16, "cd" * 8
CALLER: Final = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
QUERY: Final = {"name": "q", "streams": ["s0"], "text": {"aggregates": {"n": "count(*)"}}}


class Collector:
    """What a receiver of spans has, by the name of the span."""

    def __init__(self, receiver: Receiver, flush: Callable[[], bool]) -> None:
        self.receiver = receiver
        self.flush = flush

    def spans(self) -> dict[str, Span]:
        assert self.flush()
        found: list[Span] = []
        while not self.receiver.came.empty():
            headers, body = self.receiver.came.get()
            assert headers["authorization"] == "Bearer secret"
            message = ExportTraceServiceRequest.FromString(body.encode(errors="surrogateescape"))
            for resource in message.resource_spans:
                found += [span for scope in resource.scope_spans for span in scope.spans]
        return {span.name: span for span in found}


@pytest.fixture
def collector(
    redis_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Collector]:
    list_destinations(monkeypatch, RECEIVERS)
    with receiving() as receiver:
        settings.OTLP_URL, settings.OTLP_TOKEN = receiver.url, "secret"
        provider = otlp.start()
        yield Collector(receiver, provider.force_flush)
        traces.use(None)
        provider.shutdown()


def take_effect(cluster: Cluster, version: int) -> None:
    """Let a batch report a version."""
    emitted = now_ms()
    row = telemetry(7, emitted, version, read_ms=emitted - 300)
    ingestion.record(cluster, [row], ingestion.RelayPositions(telemetry="1-0"))


def test_a_query_is_traced_to_the_batch_that_reads_it(
    collector: Collector, celery_worker: None
) -> None:
    by = actor()
    cluster = small_cluster(by)
    answer = post(scripted(by), "/clusters/sf/queries", QUERY, **CALLER)
    assert answer.status_code == 201, answer.content
    placed = RoutingVersion.objects.exclude(traceparent="").exclude(published_at=None)
    until(placed.exists)
    cluster.refresh_from_db()
    take_effect(cluster, cluster.routing_version)
    spans: dict[str, Span] = {}
    # The worker ends its span after the commit.
    until(lambda: bool(spans.update(collector.spans())) or "weir.place" in spans)
    chain = [spans[name] for name in ("POST /api/v1/clusters/<slug>/queries", "weir.place",
                                      "routing version", "batch")]  # fmt: skip
    assert {span.trace_id.hex() for span in chain} == {TRACE}
    parents = [SPAN, *(span.span_id.hex() for span in chain)]
    assert [span.parent_span_id.hex() for span in chain] == parents[:-1]
    about = {row.key: row.value.int_value for row in chain[-1].attributes}
    assert (about["weir.batch"], about["weir.version"]) == (7, cluster.routing_version)
    assert chain[-1].end_time_unix_nano - chain[-1].start_time_unix_nano == 300 * 10**6
    assert {row.key for row in chain[0].attributes} >= {"http.route", "weir.request_id"}


def test_every_step_of_an_execution_is_of_the_trace_of_its_proposal(collector: Collector) -> None:
    """Steps follow from periodic tasks, which have no trace."""
    by = actor("approver")
    cluster = small_cluster(by)
    scattered(by, cluster)
    answer = post(scripted(by), "/clusters/sf/proposals", {"algorithm": "mms"}, **CALLER)
    assert answer.status_code == 202, answer.content
    proposal = Proposal.objects.get()
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    decisions.approve(by, proposal, proposal.seal)
    carried_out(proposal)
    versions = RoutingVersion.objects.filter(proposal=proposal)
    assert versions.exists()
    assert {row.traceparent.split("-")[1] for row in versions} == {TRACE}


def test_reads_are_not_traced_and_a_receiver_that_refuses_stops_nothing(
    collector: Collector,
) -> None:
    by = actor()
    small_cluster(by)
    assert get(scripted(by), "/clusters", **CALLER).status_code == 200
    assert collector.spans() == {}
    collector.receiver.answers = [500]
    for name in ("q1", "q2"):
        body = QUERY | {"name": name}
        assert post(scripted(by), "/clusters/sf/queries", body).status_code == 201
        seen = collector.spans()
    assert list(seen) == ["POST /api/v1/clusters/<slug>/queries"]


def test_without_a_receiver_nothing_is_recorded(redis_url: str) -> None:
    by = actor()
    cluster = small_cluster(by)
    assert post(scripted(by), "/clusters/sf/queries", QUERY, **CALLER).status_code == 201
    ingestion.record(cluster, [telemetry(1, now_ms())])
    assert traces.current() == ""
    assert {row.traceparent for row in RoutingVersion.objects.all()} == {""}
