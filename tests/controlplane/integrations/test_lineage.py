"""Runs of queries reach a catalog of lineage once, in order, whatever it answers."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import jsonschema
import pytest
from django.utils import timezone

from controlplane.connections import redis_client
from controlplane.integrations import lineage
from controlplane.models import Cluster, Query, Stream
from tests.support.cluster import actor, small_cluster
from tests.support.destinations import RECEIVERS, list_destinations
from tests.support.receiver import Receiver, receiving

pytestmark = pytest.mark.django_db
_TEXT: Final = {"type": "string", "minLength": 1}
_URI: Final = {"type": "string", "format": "uri"}
_FACETS: Final = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {"_producer": _URI, "_schemaURL": _URI},
        "required": ["_producer", "_schemaURL"],
    },
}
_PLACE: Final = {
    "type": "object",
    "properties": {"namespace": _TEXT, "name": _TEXT, "facets": _FACETS},
    "required": ["namespace", "name"],
}
# What the schema of OpenLineage 2-0-2 requires of a run event.
RUN_EVENT: Final = {
    "type": "object",
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string", "format": "date-time"},
        "producer": _URI,
        "schemaURL": _URI,
        "run": {
            "type": "object",
            "properties": {"runId": {"type": "string", "format": "uuid"}, "facets": _FACETS},
            "required": ["runId"],
        },
        "job": _PLACE,
        "inputs": {"type": "array", "items": _PLACE},
        "outputs": {"type": "array", "items": _PLACE},
    },
    "required": ["eventTime", "producer", "schemaURL", "run", "job"],
    "additionalProperties": False,
}
NOW: Final = timezone.now()


@pytest.fixture
def catalog(redis_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    redis_client().delete(lineage.KEY)
    list_destinations(monkeypatch, RECEIVERS)
    with receiving() as receiver:
        settings.OPENLINEAGE_URL = receiver.url
        yield receiver


@pytest.fixture
def sf(redis_url: str) -> Cluster:
    cluster = small_cluster(actor())
    Query.objects.filter(cluster=cluster).delete()
    return cluster


def query(cluster: Cluster, name: str, placed_s: float | None, ended_s: float | None = None) -> int:
    """Create a query that was placed and ended so many seconds ago; return its id."""
    placed, ended = (
        None if seconds is None else NOW - timedelta(seconds=seconds)
        for seconds in (placed_s, ended_s)
    )
    row = Query.objects.create(
        cluster=cluster, name=name, text="{}", window_s=60, submitted_at=NOW, placed_at=placed,
        ended_at=ended, state="running" if ended is None else "ended",
    )  # fmt: skip
    row.streams.add(Stream.objects.filter(cluster=cluster).order_by("pk")[0])
    return row.pk


def received(catalog: Receiver) -> list[tuple[str, str]]:
    """Return type and job of each event that came, after a check by the schema."""
    events = []
    while not catalog.came.empty():
        event = json.loads(catalog.came.get()[1])
        jsonschema.validate(event, RUN_EVENT, format_checker=jsonschema.FormatChecker())
        events.append((event["eventType"], event["job"]["name"]))
    return events


def test_runs_start_and_end_once_in_order(catalog: Receiver, sf: Cluster) -> None:
    query(sf, "a", 300, 100)
    query(sf, "b", 200)
    query(sf, "never", None, 150)
    # Its transaction may not have ended.
    query(sf, "new", 1)
    assert lineage.send_events(NOW) == 3
    assert received(catalog) == [("START", "sf.a"), ("START", "sf.b"), ("COMPLETE", "sf.a")]
    assert lineage.send_events(NOW) == 0
    assert lineage.send_events(NOW + timedelta(seconds=60)) == 1
    assert received(catalog) == [("START", "sf.new")]


def test_a_run_has_one_id_its_streams_and_results(catalog: Receiver, sf: Cluster) -> None:
    stream = Stream.objects.filter(cluster=sf).order_by("pk")[0]
    query(sf, "a", 300, 100)
    Query.objects.update(state="failed")
    first, last = map(lineage.event_of, lineage.transitions(NOW))
    assert first["run"] == last["run"]
    assert last["eventType"] == "FAIL"
    (read,) = first["inputs"]
    assert read["name"] == f"sf.streams.{stream.name}"
    names = [column["name"] for column in stream.schema["columns"]]
    assert [field["name"] for field in read["facets"]["schema"]["fields"]] == names
    assert [output["name"] for output in first["outputs"]] == ["sf.results.a"]
    stream.source = {
        "servers": "kafka-1:9092,kafka-2:9092", "topic": "orders", "format": "json",
    }  # fmt: skip
    stream.save()
    (read,) = lineage.event_of(lineage.transitions(NOW)[0])["inputs"]
    assert (read["namespace"], read["name"]) == ("kafka://kafka-1:9092", "orders")
    stream.source = {"kind": "files", "url": "file:///srv/sales"}
    stream.save()
    (read,) = lineage.event_of(lineage.transitions(NOW)[0])["inputs"]
    assert read["name"] == f"sf.streams.{stream.name}"


@pytest.mark.parametrize(("status", "sent"), [(503, 0), (401, 0), (302, 0), (400, 2)])
def test_a_catalog_that_is_away_receives_later_what_one_that_rejects_does_not(
    catalog: Receiver, sf: Cluster, status: int, sent: int
) -> None:
    query(sf, "a", 300)
    query(sf, "b", 200)
    catalog.answers = [status]
    assert lineage.send_events(NOW) == sent
    received(catalog)
    assert lineage.send_events(NOW) == 2 - sent


def test_steps_are_bounded_and_lose_nothing(
    catalog: Receiver, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "BATCH", 2)
    for number in range(3):
        query(sf, f"q{number}", 100, 90)
    sent: list[tuple[str, str]] = []
    while lineage.send_events(NOW):
        sent += received(catalog)
    assert sorted(sent) == sorted(
        (kind, f"sf.q{number}") for kind in ("START", "COMPLETE") for number in range(3)
    )


def test_the_token_of_the_site_is_sent(catalog: Receiver, sf: Cluster, settings: Any) -> None:
    settings.OPENLINEAGE_TOKEN = "token-of-the-catalog"
    query(sf, "a", 300)
    assert lineage.send_events(NOW) == 1
    assert catalog.came.get()[0]["authorization"] == "Bearer token-of-the-catalog"


def test_a_value_of_another_kind_is_no_place(catalog: Receiver, sf: Cluster) -> None:
    query(sf, "a", 300)
    redis_client().hset(lineage.KEY, "placed_at", b"\xff")
    assert lineage.send_events(NOW) == 1
