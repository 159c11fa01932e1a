"""Browsing a source: read, decoded and filtered by a worker; one message written by a role."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.errors import Away, Conflict, Forbidden, Invalid
from controlplane.explain.drafts import preview as previews
from controlplane.explain.drafts.messages import BrowseChoice, browse, sample
from controlplane.models import AuditEntry, Cluster, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.topology import streams
from controlplane.topology.streams import StreamSpec
from controlplane.topology.topics.produce import produce
from controlplane.wire.network.destinations import LIST
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.database import ConnectedDatabase
from controlplane.wire.results.tables import create_tables
from controlplane.wire.topics.definitions import Definition, avro_body
from controlplane.wire.topics.registry import kept_registry, with_prefix
from tests.controlplane.api.callers import post, scripted
from tests.dashboard.conftest import browser_of
from tests.support.object_store import BUCKET, KEYS, REGION, running_store
from tests.support.previews import answer_at_once
from tests.support.registry import Registry, running_registry
from tests.support.topics import TopicProducer, create_topic, running_broker
from tests.workers.pipeline.sources.feeds import write_rows
from workers.preview import service

pytestmark = pytest.mark.django_db(transaction=True)
FORMATS: Final = ("json", "csv", "parquet")
START_MS: Final = 1_772_359_200_000
SCHEMA: Final[dict[str, Any]] = {
    "columns": [
        {"name": "at", "type": "timestamp(ms)", "nullable": False},
        {"name": "country", "type": "string"},
        {"name": "amount", "type": "decimal(12, 2)"},
    ],
    "event_time": "at",
}
AVRO: Final = json.dumps({"type": "record", "name": "Order", "fields": [
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "country", "type": ["null", "string"]},
    {"name": "amount", "type": {
        "type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
]})  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with running_broker() as address:
        for topic in ("orders", "avro", "changes", "empty"):
            create_topic(address, topic, 3)
        producer = TopicProducer(address, "orders")
        for number in range(30):
            country = "DE" if number % 5 == 0 else "ES"
            row = {"at": START_MS + number, "country": country, "amount": f"{number}.5"}
            producer.send(number % 3, row, START_MS + number)
        producer.send(0, b"{", START_MS + 100)
        producer.flush()
        yield address


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    kept_registry.cache_clear()
    with running_registry() as running:
        monkeypatch.setenv(LIST, f"{os.environ[LIST]} {running.url}")
        yield running


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_at_once(monkeypatch)


def declared(actor: Actor, cluster: Cluster, **source: Any) -> Stream:
    spec = StreamSpec("orders", schema=SCHEMA, source=source)
    return streams.register(actor, cluster, [spec])[0]


def test_messages_are_read_from_a_place_and_by_a_condition(
    operator: Actor, viewer: Actor, sf: Cluster, broker: str
) -> None:
    stream = declared(operator, sf, servers=broker, topic="orders")
    every = browse(operator, stream, BrowseChoice(limit=40))
    assert (len(every.messages), every.read) == (31, 31)
    newest = every.messages[0]
    assert (newest.text, newest.fault[:11], newest.partition) == ("{", "is not JSON", 0)
    found = browse(operator, stream, BrowseChoice("country = 'DE' and amount > 10"))
    numbers = [json.loads(message.text)["at"] - START_MS for message in found.messages]
    assert numbers == [25, 20, 15, 10]
    assert (found.read, found.matching) == (31, 4)
    first = browse(operator, stream, BrowseChoice(partition=1, offset=2, limit=3))
    assert [(row.partition, row.offset) for row in first.messages] == [(1, 4), (1, 3), (1, 2)]
    since = browse(operator, stream, BrowseChoice(since="2026-03-01T10:00:00.020Z", limit=40))
    times = [row.sent_at.microsecond // 1000 for row in since.messages]
    assert times == [100, *range(29, 19, -1)]
    for choice, field in (
        (BrowseChoice(topic="orders"), "topic"),
        (BrowseChoice("country >"), "where"), (BrowseChoice("missing = 1"), "where"),
        (BrowseChoice(offset=3), "partition"), (BrowseChoice(since="today"), "since"),
        (BrowseChoice(limit=1000), "limit"), (BrowseChoice(partition=7), "partition"),
    ):  # fmt: skip
        with pytest.raises(Invalid) as refusal:
            browse(operator, stream, choice)
        assert field in refusal.value.fields
    drafted = QuerySpec("q", ("orders",), QueryText({"n": "count(*)"}))
    windows = previews.preview(operator, sf, drafted).windows
    assert sum(window.values["n"] for window in windows) == 30
    with pytest.raises(Forbidden):
        browse(viewer, stream, BrowseChoice())
    with pytest.raises(Conflict, match="in the log of the cluster"):
        browse(operator, sf.streams.get(name="s0"), BrowseChoice())


def test_messages_of_a_pattern_are_read_of_all_topics_or_of_one(
    operator: Actor, sf: Cluster, broker: str
) -> None:
    """Each is shown with its topic."""
    create_topic(broker, "orders-eu", 1)
    producer = TopicProducer(broker, "orders-eu")
    producer.send(0, {"at": START_MS, "country": "FR", "amount": "1.5"}, START_MS + 200)
    producer.flush()
    stream = declared(operator, sf, servers=broker, topic_pattern="orders.*")
    every = browse(operator, stream, BrowseChoice("amount > 0", limit=40))
    assert [row.topic for row in every.messages] == ["orders-eu", *["orders"] * 30]
    one = browse(operator, stream, BrowseChoice(topic="orders-eu", partition=0, offset=0))
    assert [(row.topic, row.text[-6:]) for row in one.messages] == [("orders-eu", '"1.5"}')]
    with pytest.raises(Invalid) as refusal:
        browse(operator, stream, BrowseChoice(topic="payments"))
    text = "no topic that matches orders.* has the name payments"
    assert refusal.value.fields == {"topic": [text]}
    page = browser_of(operator).get(f"/clusters/sf/streams/{stream.pk}/messages/").content.decode()
    assert ('name="topic"' in page, "orders-eu-0" in page) == (True, True)


def source_of(kind: str, folder: Path) -> dict[str, Any]:
    """Return a source with 20 records and more, of which those of files have these columns."""
    if kind == "generator":
        start = "2026-03-01T00:00:00+00:00"
        return {"kind": kind, "start": start, "total": 1_000, "partitions": 2}
    rows = [{"at": START_MS + n, "country": "DE" if n % 5 == 0 else "ES", "amount": "1.50"}
            for n in range(20)]  # fmt: skip
    for part in range(2):
        write_rows(rows[part::2], folder / f"{part}.{kind}", kind)
    return {"kind": "files", "url": folder.as_uri(), "format": kind}


@pytest.mark.parametrize(
    ("kind", "where"),
    [("generator", "channel = 'Google'"), *((kind, "country = 'DE'") for kind in FORMATS)],
)
def test_records_of_every_kind_are_sampled_browsed_and_previewed(
    kind: str,
    where: str,
    operator: Actor,
    sf: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    """Before the pipeline reads them, from an offset and a time, and by a condition."""
    monkeypatch.setenv(LIST, f"{os.environ[LIST]} {tmp_path.as_uri()}")
    settings.RESULTS_URL = f"sqlite:///{tmp_path}-results"
    with closing(ConnectedDatabase(settings.RESULTS_URL)) as results:
        results.run(lambda cursor: create_tables(cursor, is_postgres=False))
    source = source_of(kind, tmp_path)
    proposed = sample(operator, sf, source).proposed
    columns = proposed.schema_json()["columns"]
    time = next(column for column in columns if column["name"] in {"at", "date_time"})
    schema = {
        "columns": [
            column | ({"type": "timestamp(ms)", "nullable": False} if column is time else {})
            for column in columns
        ],
        "event_time": time["name"],
    }
    spec = StreamSpec("orders", schema=schema, source=source)
    (stream,) = streams.register(operator, sf, [spec])
    found = browse(operator, stream, BrowseChoice(limit=20))
    assert len(found.messages) == 20
    assert {message.fault for message in found.messages} == {""}
    by_condition = browse(operator, stream, BrowseChoice(where, limit=200))
    assert 0 < by_condition.matching < by_condition.read
    first = browse(operator, stream, BrowseChoice(partition=0, offset=3, limit=2))
    assert [row.offset for row in first.messages] == [4, 3]
    assert not browse(operator, stream, BrowseChoice(since="2036-01-01T00:00Z")).messages
    windows = previews.preview(
        operator, sf, QuerySpec("q", ("orders",), QueryText({"n": "count(*)"}))
    )
    assert windows.records == by_condition.read
    page = browser_of(operator).get(f"/clusters/sf/streams/{stream.pk}/messages/")
    assert "of 20 records" in page.content.decode() or kind == "generator"


def test_rows_of_an_object_store_are_sampled_and_browsed(
    operator: Actor, sf: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.RESULTS_URL = f"sqlite:///{tmp_path}-results"
    with closing(ConnectedDatabase(settings.RESULTS_URL)) as results:
        results.run(lambda cursor: create_tables(cursor, is_postgres=False))
    place = {"url": f"s3://{BUCKET}/in", "region": REGION, "secrets": {"store": "lake"}}
    with running_store() as store:
        source = source_of("json", tmp_path) | place | {"endpoint": store.url}
        for path in tmp_path.iterdir():
            with store.files.open_output_stream(f"{BUCKET}/in/{path.name}") as stream:
                stream.write(path.read_bytes())
        monkeypatch.setenv(LIST, f"{os.environ[LIST]} s3://{BUCKET} {store.url}")
        monkeypatch.setenv("WEIR_TOPIC_SECRET_LAKE", ":".join(KEYS))
        columns = sample(operator, sf, source).proposed.columns
        assert [column.name for column in columns] == ["at", "country", "amount"]
        choice = BrowseChoice("country = 'DE'")
        found = browse(operator, declared(operator, sf, **source), choice)
        assert (found.matching, found.read) == (4, 20)


def test_avro_is_sampled_browsed_and_written_by_the_registry(
    operator: Actor, admin: Actor, sf: Cluster, broker: str, registry: Registry
) -> None:
    """Nobody writes until the stream names a role; the audit log has the place of a message."""
    number = registry.add("avro-value", AVRO)
    producer = TopicProducer(broker, "avro")
    row = {"at": START_MS, "country": "DE", "amount": 1}
    producer.send(0, with_prefix(number, avro_body(Definition((AVRO,)), row)), START_MS)
    producer.flush()
    source = {"servers": broker, "topic": "avro", "format": "avro", "registry": registry.url}
    found = sample(operator, sf, source)
    assert [column.name for column in found.proposed.columns] == ["at", "country", "amount"]
    stream = declared(operator, sf, **source)
    value = '{"at": 1772359200500, "country": "FR", "amount": "31.50"}'
    with pytest.raises(Conflict, match="lets nobody write"):
        produce(admin, stream, value)
    stream = declared(operator, sf, **source, produce="admin")
    with pytest.raises(Forbidden):
        produce(operator, stream, value)
    for wrong in ('{"at": 5}', "[]", "{", '{"at": "x", "country": null, "amount": 1}'):
        with pytest.raises(Invalid) as refusal:
            produce(admin, stream, wrong)
        assert "value" in refusal.value.fields
    place = produce(admin, stream, value, "c-1", 2)
    assert (place.partition, place.offset) == (2, 0)
    (message,) = browse(operator, stream, BrowseChoice("amount = 31.5")).messages
    assert (message.partition, message.offset, message.key, message.fault) == (2, 0, "c-1", "")
    assert json.loads(message.text) == {"at": START_MS + 500, "country": "FR", "amount": "31.50"}
    entry = AuditEntry.objects.get(action="topic.produce")
    assert (entry.object, entry.after["partition"], entry.after["offset"]) == ("orders", 2, 0)


def test_columns_are_proposed_of_whole_records_alone(
    operator: Actor, sf: Cluster, broker: str
) -> None:
    """Not of the text that a page shows, of changes that are skipped or of what is no record."""
    producer = TopicProducer(broker, "changes")
    row = {"at": START_MS, "text": "x" * 5_000, "price": 1.5}
    for number, message in enumerate(
        ({"op": "c", "after": row}, {"op": "d", "before": {"id": 1}}, b"{", None)
    ):
        producer.send(0, message, START_MS + number)
    producer.flush()
    source = {"servers": broker, "topic": "changes", "envelope": "debezium", "deletes": "skip"}
    found = sample(operator, sf, source)
    columns = {column.name: column.type for column in found.proposed.columns}
    assert columns == {"at": "int64", "text": "string", "price": "float64"}
    assert found.proposed.records == 1
    assert [bool(message.fault) for message in found.messages] == [True, True, True, False]
    assert len(found.messages[-1].text) == 4_000
    with pytest.raises(Conflict) as conflict:
        sample(operator, sf, source | {"topic": "empty"})
    assert conflict.value.code == "no_messages"
    with pytest.raises(Invalid) as refusal:
        sample(operator, sf, source | {"topic": "missing"})
    assert refusal.value.fields.keys() == {"source.topic"}


def test_a_preview_that_leaves_out_sources_is_partial(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of("generator", Path())
    schema = sample(operator, sf, source).proposed.schema_json()
    names = ("first", "second")
    specs = [StreamSpec(name, schema=schema, source=source) for name in names]
    streams.register(operator, sf, specs)
    query = QuerySpec("q", names, QueryText({"n": "count(*)"}))
    assert not previews.preview(operator, sf, query).is_partial
    monkeypatch.setattr(service, "MOST_SOURCES", 1)
    part = previews.preview(operator, sf, query)
    assert part.is_partial
    assert [bool(stream.records) for stream in part.streams] == [True, False]


def test_a_database_of_results_that_is_away_is_not_waited_for(
    operator: Actor, sf: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setenv(LIST, f"{os.environ[LIST]} {tmp_path.as_uri()}")
    settings.RESULTS_URL = "postgresql://127.0.0.1:9/none"
    stream = declared(operator, sf, **source_of("json", tmp_path))
    with pytest.raises(Away, match="index of files"):
        browse(operator, stream, BrowseChoice())


def test_messages_have_a_page_and_endpoints(operator: Actor, sf: Cluster, broker: str) -> None:
    stream = declared(operator, sf, servers=broker, topic="orders", produce="operator")
    browser, page = browser_of(operator), f"/clusters/sf/streams/{stream.pk}/messages/"
    answer = browser.get(page, {"where": "country = 'DE'", "live": "1"})
    text = answer.content.decode()
    assert "of 6 records that match" in text
    assert "weir:tick" in text
    assert "Write a message" in text
    wrong = browser.get(page, {"where": "country ="}).content.decode()
    assert "Nothing was read" in wrong
    value = '{"at": 1772359200600, "country": "IT", "amount": 1.25}'
    written = browser.post(
        f"/clusters/sf/streams/{stream.pk}/produce/",
        {"value": value, "partition": "1"},
        follow=True,
    )
    assert "Written to partition 1, offset 10." in written.content.decode()
    script: Client = scripted(operator)
    body = {"where": "country = 'IT'"}
    found = post(script, "/clusters/sf/streams/orders/messages", body).json()
    assert [message["text"] for message in found["messages"]] == [value]
    answer = post(script, "/clusters/sf/streams/orders/produce", {"value": value, "partition": 1})
    assert answer.json() == {"partition": 1, "offset": 11}
