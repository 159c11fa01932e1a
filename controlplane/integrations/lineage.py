"""OpenLineage: the runs of queries, for a catalog that follows data from streams to results.

A query is a job with one run, from its placement to its end; its streams are the inputs, its
results the output. Events follow from the rows of queries, in the order of their times; Redis has
how far they were sent. So a catalog that is away receives them later, and some again if Redis
loses its data.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from time import monotonic
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from django.conf import settings
from django.db.models import Q

from controlplane.connections import redis_client
from controlplane.integrations import outbound
from controlplane.models import Query, Stream
from controlplane.wire.sources.kinds import source_from_json
from controlplane.wire.topics.source import TopicSource

logger = logging.getLogger(__name__)
KEY: Final = "weir:lineage"
# Events of one task, and its time.
BATCH: Final = 200
BUDGET_S: Final = 20.0
# A change is visible so long after the time in its row, at most.
SETTLED: Final = timedelta(seconds=30)
PRODUCER: Final = "urn:weir"
_SPEC: Final = "https://openlineage.io/spec"
_EVENT: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_JOB_TYPE: Final = f"{_SPEC}/facets/2-0-3/JobTypeJobFacet.json"
_COLUMNS: Final = f"{_SPEC}/facets/1-1-1/SchemaDatasetFacet.json"
_ENDS: Final = {Query.State.FAILED: "FAIL", Query.State.ENDED: "COMPLETE"}
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC), 0


class RunBoundary(NamedTuple):
    """The start or the end that an event reports; `column`: its time in the row of the query."""

    moment: datetime
    pk: int
    is_end: bool
    query: Query

    @property
    def column(self) -> str:
        """Return the name of the time."""
        return "ended_at" if self.is_end else "placed_at"


def send_events(now: datetime) -> int:
    """Send events that were not sent; return how many. Raises `RedisError`.

    An event that the catalog rejects is skipped; after other errors the rest waits.
    """
    sent, started = 0, monotonic()
    try:
        target, headers = outbound.resolved(settings.OPENLINEAGE_URL), _headers()
        for item in transitions(now):
            body = json.dumps(event_of(item)).encode()
            status, answer = outbound.post(target, headers, body)
            if status in outbound.REFUSALS:
                logger.error("the catalog rejects query %d: %d: %.200s", item.pk, status, answer)
            elif status >= HTTPStatus.MULTIPLE_CHOICES:
                raise outbound.AddressUnreachable(f"{status}: {answer[:200]}")
            redis_client().hset(KEY, item.column, f"{item.moment.isoformat()} {item.pk}")
            sent += 1
            if monotonic() - started > BUDGET_S:
                break
    except (outbound.AddressRejected, outbound.AddressUnreachable) as error:
        logger.warning("events of OpenLineage wait: %s", error)
    return sent


def transitions(now: datetime) -> list[RunBoundary]:
    """Return the next starts and ends of runs, at most `BATCH`, in the order of their times."""
    known = [*_after("placed_at", now), *_after("ended_at", now)]
    return sorted(known, key=lambda item: (item.moment, item.is_end, item.pk))[:BATCH]


def event_of(item: RunBoundary) -> dict[str, Any]:
    """Return a run event of OpenLineage."""
    query, cluster = item.query, item.query.cluster.slug
    namespace = _namespace()
    kind = {"processingType": "STREAMING", "integration": "WEIR", "jobType": "QUERY"}
    output = {"namespace": namespace, "name": f"{cluster}.results.{query.name}"}
    return {
        "eventType": _ENDS.get(Query.State(query.state), "ABORT") if item.is_end else "START",
        "eventTime": item.moment.isoformat(),
        "run": {"runId": str(uuid5(NAMESPACE_URL, f"{namespace}/{cluster}/{query.pk}"))},
        "job": {
            "namespace": namespace,
            "name": f"{cluster}.{query.name}",
            "facets": {"jobType": _facet(_JOB_TYPE, kind)},
        },
        "inputs": [_input(namespace, cluster, stream) for stream in query.streams.all()],
        "outputs": [output],
        "producer": PRODUCER,
        "schemaURL": _EVENT,
    }


def _after(column: str, now: datetime) -> Iterator[RunBoundary]:
    moment, pk = _sent_until(column)
    later = Q(**{f"{column}__gt": moment}) | Q(**{column: moment, "pk__gt": pk})
    rows = Query.objects.filter(later, **{f"{column}__lte": now - SETTLED})
    # A query that was never placed has no run.
    rows = rows.exclude(placed_at=None).select_related("cluster").prefetch_related("streams")
    for query in rows.order_by(column, "pk")[:BATCH]:
        yield RunBoundary(getattr(query, column), query.pk, column == "ended_at", query)


def _sent_until(column: str) -> tuple[datetime, int]:
    value: Any = redis_client().hget(KEY, column)
    try:
        text, pk = (value or b"").decode().split()
        return datetime.fromisoformat(text).astimezone(UTC), int(pk)
    except ValueError:
        return _FIRST


def _input(namespace: str, cluster: str, stream: Stream) -> dict[str, Any]:
    """Return a stream as a dataset: its topic or pattern, else the stream of its cluster."""
    columns = stream.schema.get("columns", ())
    fields = [{"name": column["name"], "type": column["type"]} for column in columns]
    facets = {"schema": _facet(_COLUMNS, {"fields": fields})}
    source = source_from_json(stream.source) if stream.source else None
    if isinstance(source, TopicSource):
        server = source.servers.partition(",")[0]
        return {"namespace": f"kafka://{server}", "name": source.name, "facets": facets}
    return {"namespace": namespace, "name": f"{cluster}.streams.{stream.name}", "facets": facets}


def _facet(schema: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": schema, **values}


def _namespace() -> str:
    origins = settings.CSRF_TRUSTED_ORIGINS
    return f"weir://{urlsplit(origins[0]).netloc if origins else 'weir'}"


def _headers() -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": "Weir-OpenLineage/1"}
    token = settings.OPENLINEAGE_TOKEN
    return headers | {"Authorization": f"Bearer {token}"} if token else headers
