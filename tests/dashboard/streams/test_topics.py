"""A topic on the page that declares a stream: listed, sampled, declared."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
import redis

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Stream
from controlplane.wire import keys
from tests.dashboard.conftest import browser_of
from tests.support.destinations import list_destinations
from tests.support.partitions import with_partitions
from tests.support.previews import answer_at_once
from tests.support.topics import TopicProducer, create_topic, running_broker

pytestmark = pytest.mark.django_db(transaction=True)
NEW: Final = "/clusters/sf/streams/new/"


@pytest.fixture
def broker() -> Iterator[str]:
    with running_broker() as address:
        create_topic(address, "orders", 2)
        producer = TopicProducer(address, "orders")
        for number in range(4):
            row = {"placed_at": "2026-03-01T10:00:00Z", "country": "DE", "items": number}
            producer.send(number % 2, row, 1_772_359_200_000)
        producer.flush()
        yield address


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_a_topic_is_listed_sampled_and_declared(
    operator: Actor, sf: Cluster, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three clicks: the columns are those of its newest messages."""
    answer_at_once(monkeypatch)
    browser = browser_of(operator)
    place = {"servers": broker, "topic": "orders", "start": "latest", "on_loss": "skip"}
    listed = text(browser.post(NEW, {"servers": broker, "action": "topics"}))
    assert "orders (2)" in listed
    sampled = text(browser.post(NEW, place | {"action": "topic"}))
    for part in ("placed_at", "country", "4 records of the sample", "messages of the topic orders"):
        assert part in sampled
    columns = {"column": ["1", "2"], "name-1": "placed_at", "type-1": "timestamp(ms)",
               "name-2": "country", "type-2": "string", "nullable-2": "1"}  # fmt: skip
    given = place | columns | {"stream": "orders", "action": "declare", "event_time": "placed_at"}
    answer = browser.post(NEW, given)
    assert answer.status_code == 302, text(answer)
    stream = Stream.objects.get(name="orders")
    assert stream.source == place


def test_all_topics_that_match_are_listed_sampled_and_declared(
    operator: Actor, sf: Cluster, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_at_once(monkeypatch)
    browser = browser_of(operator)
    create_topic(broker, "payments", 1)
    place = {"servers": broker, "topic_pattern": "ord.*", "start": "latest", "on_loss": "skip"}
    listed = text(browser.post(NEW, place | {"action": "topics"}))
    assert ("orders (2)" in listed, "payments (1)" in listed) == (True, False)
    sampled = text(browser.post(NEW, place | {"action": "topic"}))
    for part in ("orders-0", "orders-1", "placed_at", 'value="ord.*"'):
        assert part in sampled
    given = place | {"column": ["1"], "name-1": "placed_at", "type-1": "timestamp(ms)"}
    given |= {"stream": "orders", "action": "declare", "event_time": "placed_at"}
    answer = browser.post(NEW, given)
    assert answer.status_code == 302, text(answer)
    assert Stream.objects.get(name="orders").source == place


def test_lag_and_states_are_shown_in_the_list_and_on_the_page(
    operator: Actor, sf: Cluster, redis_client: "redis.Redis"
) -> None:
    browser = browser_of(operator)
    stream = sf.streams.order_by("pk")[0]
    source = {"servers": "127.0.0.1:9092", "topic": "orders"}
    Stream.objects.filter(pk=stream.pk).update(source=source)
    line = "was added in the last hour: keys may have moved between partitions"
    partition = {
        "partition": 7, "offset": 4, "first": 0, "end": 12_349, "unread": 12_345, "seconds": 61.25,
        "state": "added", "lost": 0, "line": line, "topic": "orders-eu",
    }  # fmt: skip
    row = {"clock_ms": 1_700_000_000_000, "error": "no broker answers", "partitions": [partition]}
    redis_client.hset(keys.sources_key("sf"), str(stream.pk), json.dumps(row))
    page = text(browser.get(f"/clusters/sf/streams/{stream.pk}/"))
    for part in (line, "orders-eu-7", "The source cannot be read", "no broker answers", "Browse"):
        assert part in page
    listed = text(browser.get("/clusters/sf/streams/"))
    assert "61.250 s" in listed
    assert "Unread, records" in listed


def test_a_partition_is_redirected_on_the_page_of_its_stream(operator: Actor, sf: Cluster) -> None:
    browser, stream = browser_of(operator), sf.streams.order_by("pk")[0]
    with_partitions(stream, {0: 1.0, 1: 1.0})
    other = 1 - stream.split
    path = f"/clusters/sf/streams/{stream.pk}/"
    page = text(browser.get(path))
    assert f'<option value="1">1: now split {other}</option>' in page
    assert "2 split nodes" in page
    browser.post(f"{path}redirect/", {"split": str(stream.split), "partition": "1"})
    stream.refresh_from_db()
    assert stream.partition_splits == {"1": stream.split}
    after = text(browser.get(path))
    assert f'partition 1: <b class="nowrap">split {other} → {stream.split}</b>' in after
    assert f'<option value="1">1: now split {stream.split}</option>' in after


def test_a_login_is_declared_in_the_form_by_names_of_secrets(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the format with its registry, which the list has: it gets a secret.

    What is left out is no part of the source.
    """
    given = {
        "servers": "127.0.0.1:9092", "topic": "orders", "start": "latest", "on_loss": "stop",
        "format": "avro", "registry": "http://127.0.0.1:9092", "envelope": "debezium",
        "security_protocol": "SASL_SSL", "sasl_mechanisms": "SCRAM-SHA-512",
        "sasl_username": "weir", "sasl_password": "orders", "ssl_ca": "ca",
        "registry_login": "registry", "column": ["1"], "name-1": "at", "type-1": "timestamp(ms)",
        "stream": "orders", "action": "declare", "event_time": "at",
    }  # fmt: skip
    browser = browser_of(operator)
    refused = text(browser.post(NEW, given))
    assert "is not in the list of the site" in refused
    assert "<option selected>SASL_SSL</option>" in refused
    given |= {"registry": "https://1.1.1.1/registry"}
    assert "is not in the list of the site" in text(browser.post(NEW, given))
    list_destinations(monkeypatch, "https://1.1.1.1:443")
    answer = browser.post(NEW, given)
    assert answer.status_code == 302, text(answer)
    assert Stream.objects.get(name="orders").source == {
        "servers": "127.0.0.1:9092", "topic": "orders", "start": "latest", "format": "avro",
        "registry": "https://1.1.1.1/registry", "envelope": "debezium",
        "options": {
            "security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "weir",
        },
        "secrets": {"sasl.password": "orders", "ssl.ca.pem": "ca", "registry": "registry"},
    }  # fmt: skip


def test_brokers_that_do_not_answer_and_wrong_names_are_shown_at_the_form(
    operator: Actor, sf: Cluster
) -> None:
    browser = browser_of(operator)
    answer = browser.post(NEW, {"servers": "nowhere", "action": "topics"})
    assert (answer.status_code, "is not host:port" in text(answer)) == (422, True)
    answer = browser.post(NEW, {"servers": "127.0.0.1:9", "action": "topics"})
    assert (answer.status_code, "The brokers do not respond" in text(answer)) == (409, True)
