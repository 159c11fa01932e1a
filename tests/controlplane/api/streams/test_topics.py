"""Streams that are topics: declared, listed, sampled, described, and how far they are read."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
import redis
from django.test import Client
from django.utils import timezone

from controlplane.alerts.evaluation import evaluate_all
from controlplane.cluster_spec.export import description_of
from controlplane.connections import redis_client
from controlplane.models import Alert, AuditEntry, Cluster, Policy, Stream
from controlplane.topology.rows import current_table
from controlplane.wire import keys
from controlplane.wire.topics import places
from tests.controlplane.api.callers import get, post
from tests.support.previews import answer_at_once
from tests.support.topics import TopicProducer, create_topic, running_broker

pytestmark = pytest.mark.django_db(transaction=True)
STREAMS: Final = "/clusters/sf/streams"
SCHEMA: Final[dict[str, Any]] = {
    "columns": [
        {"name": "at", "type": "timestamp(ms)", "nullable": False},
        {"name": "country", "type": "string"},
    ],
    "event_time": "at",
}
SOURCE: Final[dict[str, Any]] = {
    "servers": "127.0.0.1:9092", "topic": "orders",
    "options": {"security.protocol": "SASL_SSL", "sasl.username": "weir"},
    "secrets": {"sasl.password": "orders_password"},
}  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with running_broker() as address:
        create_topic(address, "orders", 3)
        producer = TopicProducer(address, "orders")
        for number in range(9):
            row = {"at": 1_700_000_000_000 + number, "country": "DE", "items": number}
            producer.send(number % 3, row, 1_700_000_000_000 + number)
        producer.send(0, None, 1_700_000_000_100)
        producer.flush()
        yield address


def declare(client: Client, source: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> Any:
    row = {"name": "orders", "schema": schema, "source": source}
    return post(client, STREAMS, {"streams": [row]})


def test_a_stream_is_declared_as_a_topic_and_described_alike(script: Client, sf: Cluster) -> None:
    """The routing table has it, a description repeats it, and no answer has a secret."""
    assert declare(script, SOURCE).status_code == 200
    found = get(script, f"{STREAMS}/orders").json()["source"]
    assert {name: found[name] for name in SOURCE} == SOURCE
    assert (found["start"], found["on_loss"]) == ("earliest", "stop")
    stream = Stream.objects.get(name="orders")
    assert current_table(sf.pk).sources[stream.pk].to_json() == SOURCE
    (part,) = [part for part in description_of(sf).streams if part.name == "orders"]
    assert part.source is not None
    assert part.source.model_dump(exclude_defaults=True) == SOURCE
    changed = SOURCE | {"on_loss": "skip"}
    assert declare(script, changed).json()[0]["source"]["on_loss"] == "skip"
    sf.refresh_from_db()
    assert current_table(sf.pk).sources[stream.pk].to_json() == changed
    row = {"name": "orders", "title": "All orders"}
    assert post(script, STREAMS, {"streams": [row]}).json()[0]["source"]["on_loss"] == "skip"
    assert AuditEntry.objects.filter(action="streams.register").count() == 4


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"topic": "a/b"}, "topic"),
        ({"servers": "broker"}, "servers"),
        ({"servers": "elsewhere.example:9092"}, "servers"),
        ({"start": "2026-01-01"}, "start"),
        ({"format": "xml"}, "format"),
        ({"format": "string", "metadata": {"at": "offset"}}, "metadata.at"),
        ({"offsets": {"first": 1}}, "offsets"),
        ({"options": {"ssl.key.location": "/etc/passwd"}}, "options"),
        ({"options": {"sasl.password": "plain"}}, "options"),
        ({"secrets": {"sasl.password": "../key"}}, "secrets"),
    ],
)
def test_a_wrong_source_is_refused_with_its_field(
    script: Client, change: dict[str, Any], field: str
) -> None:
    answer = declare(script, SOURCE | change)
    assert answer.status_code == 422
    assert f"source.{field}" in json.dumps(answer.json())
    assert not Stream.objects.filter(name="orders").exists()


def test_a_stream_is_declared_as_a_pattern_of_topics(script: Client, sf: Cluster) -> None:
    source = {"servers": "127.0.0.1:9092", "topic_pattern": "orders-.*"}
    assert declare(script, source).status_code == 200
    assert Stream.objects.get(name="orders").source == source
    (part,) = [part for part in description_of(sf).streams if part.name == "orders"]
    assert part.source is not None
    assert part.source.model_dump(exclude_defaults=True) == source
    answer = declare(script, source | {"topic": "orders"})
    assert (answer.status_code, "source.topic" in answer.content.decode()) == (422, True)


def test_too_many_topics_are_refused_when_they_are_listed(
    script: Client, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_at_once(monkeypatch)
    monkeypatch.setattr(places, "MOST_PARTITIONS", 2)
    for path in ("topics", "topics/sample"):
        row = {"servers": broker, "topic_pattern": "orders"}
        answer = post(script, f"/clusters/sf/{path}", row)
        assert answer.status_code == 422
        assert "source.topic_pattern" in answer.content.decode()


def test_a_topic_needs_an_event_time(script: Client) -> None:
    answer = declare(script, SOURCE, {"columns": SCHEMA["columns"]})
    assert (answer.status_code, "source.event_time" in answer.content.decode()) == (422, True)


def test_nobody_appends_to_a_topic_over_http(script: Client) -> None:
    declare(script, SOURCE)
    body = {"records": [{"at": 5, "country": "DE"}]}
    answer = post(script, f"{STREAMS}/orders/records", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "is_topic")


def test_topics_are_listed_and_sampled_before_a_stream_is_declared(
    script: Client, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest messages of every partition, and the schema that they suggest."""
    answer_at_once(monkeypatch)
    listed = post(script, "/clusters/sf/topics", {"servers": broker}).json()
    assert {"topic": "orders", "partitions": 3} in listed
    place = {"servers": broker, "topic": "orders"}
    sample = post(script, "/clusters/sf/topics/sample", place).json()
    assert sample["messages"][0]["text"] == ""
    assert json.loads(sample["messages"][1]["text"])["items"] == 8
    assert {message["partition"] for message in sample["messages"]} == {0, 1, 2}
    names = [column["name"] for column in sample["proposed"]["columns"]]
    assert names == ["at", "country", "items"]
    pattern = {"servers": broker, "topic_pattern": "ord.*s|none"}
    listed = post(script, "/clusters/sf/topics", pattern).json()
    assert listed == [{"topic": "orders", "partitions": 3}]
    sample = post(script, "/clusters/sf/topics/sample", pattern).json()
    assert {message["topic"] for message in sample["messages"]} == {"orders"}
    missing = post(script, "/clusters/sf/topics/sample", place | {"topic": "none"})
    assert (missing.status_code, "source.topic" in missing.content.decode()) == (422, True)


def test_a_secret_that_the_site_does_not_have_is_named_and_none_is_shown(
    script: Client, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_TOPIC_SECRET_OTHER", "hidden-value")
    place = {"servers": broker, "secrets": {"sasl.password": "absent"}}
    answer = post(script, "/clusters/sf/topics", place)
    assert answer.status_code == 422
    assert "WEIR_TOPIC_SECRET_ABSENT" in answer.content.decode()
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "X", "sasl.username": "u"}
    place |= {"secrets": {"sasl.password": "other"}, "options": options}
    answer = post(script, "/clusters/sf/topics", place)
    assert answer.status_code in {422, 503}
    assert "hidden-value" not in answer.content.decode()


def status(stream: Stream, error: str = "", **changed: object) -> dict[str, Any]:
    """Store what the pipeline stores of the topic of a stream, with one partition."""
    partition = {
        "partition": 0, "offset": 4, "first": 0, "end": 9, "unread": 5, "seconds": 1.5,
        "state": "read", "lost": 0, "line": "",
    } | changed  # fmt: skip
    row = {"clock_ms": 1_700_000_000_000, "error": error, "partitions": [partition]}
    redis_client().hset(keys.sources_key("sf"), str(stream.pk), json.dumps(row))
    return partition


def test_the_lag_of_each_partition_is_read_from_the_pipeline(
    script: Client, redis_client: "redis.Redis"
) -> None:
    """On the page of the API, in the list, and in metrics."""
    declare(script, SOURCE)
    path = f"{STREAMS}/orders/topic"
    assert get(script, path).status_code == 404
    assert get(script, f"{STREAMS}/orders").json()["lag_s"] is None
    partition = status(Stream.objects.get(name="orders"))
    found = get(script, path).json()
    split = Stream.objects.get(name="orders").split
    more = {"topic": "", "number": 0, "recent": 0.0, "split": split}
    assert found["partitions"] == [partition | more]
    assert (found["unread"], found["lag_s"], found["error"]) == (5, 1.5, "")
    streams = get(script, STREAMS).json()["streams"]
    (listed,) = [row for row in streams if row["name"] == "orders"]
    assert (listed["unread_records"], listed["lag_s"]) == (5, 1.5)
    metrics = script.get("/metrics").content.decode()
    for line in (
        'weir_topic_up{cluster="sf",stream="orders"} 1.0',
        'weir_topic_unread_messages{cluster="sf",partition="0",stream="orders"} 5.0',
        'weir_topic_lag_seconds{cluster="sf",partition="0",stream="orders"} 1.5',
        'weir_topic_partition_state{cluster="sf",partition="0",state="read",stream="orders"} 1.0',
    ):
        assert line in metrics


@pytest.mark.parametrize(
    ("changed", "detail"),
    [
        ({"seconds": 301.0}, "5 records are unread"),
        ({"state": "lost", "line": "the broker has deleted messages"}, "(partition 0)"),
        ({"state": "recreated", "line": "it was created again"}, "it was created again"),
        ({"state": "added", "line": "was added in the last hour"}, "was added in the last hour"),
        (
            {"state": "missing", "line": "does not exist any more", "topic": "orders-eu"},
            "does not exist any more (partition orders-eu-0)",
        ),
        ({"error": "no answer"}, "the source cannot be read: no answer"),
    ],
)
def test_a_topic_that_is_behind_or_has_changed_is_alerted(
    script: Client, redis_client: "redis.Redis", changed: dict[str, Any], detail: str
) -> None:
    """As long as the application should run; it clears by itself."""
    declare(script, SOURCE)
    stream = Stream.objects.get(name="orders")
    Policy.objects.create(cluster=stream.cluster, settings={"alert_hold_s": 0})
    status(stream, **changed)
    evaluate_all(timezone.now())
    assert not Alert.objects.filter(subject="topics").exists(), "nothing should run"
    Cluster.objects.update(desired="running", state="running")
    evaluate_all(timezone.now())
    alert = Alert.objects.get(subject="topics")
    assert (alert.state, alert.limit) == ("firing", 300)
    assert alert.detail.startswith("orders: ")
    assert detail in alert.detail
    status(stream)
    evaluate_all(timezone.now())
    alert.refresh_from_db()
    assert alert.state == "cleared"
