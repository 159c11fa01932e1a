"""A topic on the page that declares a stream: listed, sampled, declared."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Stream
from tests.dashboard.conftest import browser_of
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


def test_a_topic_is_listed_sampled_and_declared(operator: Actor, sf: Cluster, broker: str) -> None:
    """Three clicks: the columns are those of its newest messages."""
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


def test_brokers_that_do_not_answer_and_wrong_names_are_shown_at_the_form(
    operator: Actor, sf: Cluster
) -> None:
    browser = browser_of(operator)
    answer = browser.post(NEW, {"servers": "nowhere", "action": "topics"})
    assert (answer.status_code, "is not host:port" in text(answer)) == (422, True)
    answer = browser.post(NEW, {"servers": "127.0.0.1:9", "action": "topics"})
    assert (answer.status_code, "The brokers do not respond" in text(answer)) == (409, True)
