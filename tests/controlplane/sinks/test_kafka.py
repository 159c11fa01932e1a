"""Topics of Kafka: settings, rows that are too large, older processes, and another broker."""

import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import Cluster, Sink
from controlplane.results.feed import FeedPlace
from controlplane.sinks import service
from controlplane.sinks.columns import ResultColumn, ResultTable, ValueType
from controlplane.sinks.destination import DestinationAway, RefusedByDestination, SinkContext
from controlplane.sinks.kinds import kafka
from controlplane.sinks.kinds.kafka import KafkaTopic, positions_topic
from controlplane.sinks.kinds.settings import KafkaSettings
from controlplane.sinks.process import SinkFollower
from controlplane.sinks.service import SinkSpec
from controlplane.sinks.status import statuses_of
from controlplane.wire.network.secrets import NoSecret
from tests.support.cluster import actor
from tests.support.kafka import running_kafka
from tests.support.sinks import Meters, ordered
from tests.support.topic_results import messages_in, results_in
from tests.support.topics import create_topic, running_broker, wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]
NOW = datetime(2026, 5, 1, tzinfo=UTC)
START = FeedPlace(0, b"")
TABLE = ResultTable(
    "q", 60_000, (ResultColumn("station", ValueType.TEXT, is_key=True),),
    (ResultColumn("note", ValueType.TEXT),), {},
)  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with running_broker() as address:
        yield address


def opened(broker: str, topic: str, uid: str, epoch: int = 1) -> KafkaTopic:
    context = SinkContext("sf", "out", uid, epoch, TABLE)
    return kafka.open_destination(
        KafkaSettings.model_validate({"servers": broker, "topic": topic}), context
    )


def row(number: int, note: str = "") -> tuple[Any, ...]:
    end = NOW + timedelta(minutes=1)
    return (NOW, end, f"s{number}", note, None, 1.0, True, NOW, number)


def stations(broker: str, topic: str) -> list[bytes]:
    return sorted(message.key() for message in messages_in(broker, topic))


def test_a_row_that_is_too_large_is_refused_and_the_next_is_written(broker: str) -> None:
    topic, uid = uuid.uuid4().hex, str(uuid.uuid4())
    create_topic(broker, topic, 2)
    destination = opened(broker, topic, uid)
    with pytest.raises(RefusedByDestination, match="size"):
        destination.write([row(1, "x" * 2_000_000)], START, FeedPlace(1, b""))
    assert destination.position() is None
    destination.write([row(2)], START, FeedPlace(2, b""))
    assert destination.position() == FeedPlace(2, b"")
    assert stations(broker, topic) == [b'{"station":"s2"}']
    # A position without rows, and a replay, which begins without a position.
    destination.write((), FeedPlace(2, b""), FeedPlace(3, b"\x01"))
    destination.close()
    again = opened(broker, topic, uid)
    assert again.position() == FeedPlace(3, b"\x01")
    again.close()
    replayed = opened(broker, topic, uid, epoch=2)
    assert replayed.position() is None
    replayed.close()


def test_a_process_that_wrote_the_sink_before_writes_nothing_more(broker: str) -> None:
    topic, uid = uuid.uuid4().hex, str(uuid.uuid4())
    create_topic(broker, topic, 2)
    older = opened(broker, topic, uid)
    older.write([row(1)], START, FeedPlace(1, b""))
    newer = opened(broker, topic, uid)
    with pytest.raises(DestinationAway, match="fenced by a newer"):
        older.write([row(2)], FeedPlace(1, b""), FeedPlace(2, b""))
    older.close()
    assert newer.position() == FeedPlace(1, b"")
    newer.write([row(3)], FeedPlace(1, b""), FeedPlace(3, b""))
    assert stations(broker, topic) == [b'{"station":"s1"}', b'{"station":"s3"}']
    newer.close()


def test_settings_are_checked_as_those_of_topics_that_are_read(
    broker: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    good = {"servers": broker, "topic": "t"}
    for change, field in (
        ({"servers": "broker"}, "servers"),
        ({"servers": "127.0.0.1:9092,8.8.8.8:9092"}, "servers"),
        ({"topic": "a topic"}, "topic"),
        ({"options": {"plugin.library.paths": "/tmp/x.so"}}, "options"),
        ({"secrets": {"sasl.username": "x"}}, "secrets"),
        ({"secrets": {"sasl.password": "No Name"}}, "secrets.sasl.password"),
        ({"format": "avro", "registry": "http://8.8.8.8/"}, "registry"),
        ({"format": "avro", "registry": "http://127.0.0.1:99999"}, "registry"),
        ({"format": "protobuf"}, "registry"),
    ):
        with pytest.raises(Invalid) as refusal:
            service.check(SinkSpec("out", "kafka", good | change))
        assert list(refusal.value.fields) == [f"settings.{field}"]
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN",
               "sasl.username": "weir"}  # fmt: skip
    more = {"options": options, "secrets": {"sasl.password": "shop-kafka"}}
    settings = KafkaSettings.model_validate(good | more)
    context = SinkContext("sf", "out", str(uuid.uuid4()), 1, TABLE)
    with pytest.raises(NoSecret, match="WEIR_SINK_SECRET_SHOP_KAFKA"):
        kafka.open_destination(settings, context)
    (tmp_path / "password").write_text("x")
    monkeypatch.setenv("WEIR_SINK_SECRET_SHOP_KAFKA_FILE", str(tmp_path / "password"))
    # The broker of the tests has no logins.
    with pytest.raises(DestinationAway, match=r"The brokers: .*SASL"):
        kafka.open_destination(settings, context)


class Killed(BaseException):
    """The end of a process."""


def _die(*_: Any) -> None:
    raise Killed


def _writes_all(follower: SinkFollower) -> bool:
    """Write what is due, also right after an error; return whether everything is written."""
    Sink.objects.update(retry_at=None)
    follower.step(lambda _: None)
    (status,) = statuses_of(Sink.objects.all())
    return not status.sink.error and status.waiting == 0


def test_the_cluster_of_librdkafka_has_the_results_once(operator: Actor, sf: Cluster) -> None:
    """With processes that end after a transaction and before they note it."""
    meters, draw = Meters.submitted(operator, sf, seed=8), random.Random(2)
    with running_kafka() as address:
        settings = {"servers": address, "topic": "readings"}
        spec = SinkSpec("out", "kafka", settings, start="oldest")
        sink = service.add(actor("admin"), meters.query, spec)
        # It creates topics that are asked for, and none by request.
        keeper = Producer({"bootstrap.servers": address, "log_level": 0})
        keeper.list_topics(
            positions_topic(KafkaSettings.model_validate(settings), str(sink.uid)), timeout=60
        )
        follower, kills = SinkFollower(sink.pk), 0
        for _ in range(6):
            meters.next()
            with pytest.MonkeyPatch.context() as patch:
                if draw.random() < 0.5:
                    patch.setattr(SinkFollower, "_count", _die)
                try:
                    follower.step(lambda _: None)
                except Killed:
                    follower, kills = SinkFollower(sink.pk), kills + 1
        meters.end()
        wait_until(partial(_writes_all, follower), "all is written", 240)
        assert kills > 0
        rows = results_in(address, "readings")
        names = ("window_start", "station", "open", "stream", "n", "total", "top")
        assert ordered(tuple(found[name] for name in names) for found in rows) == meters.expected()
