"""The gathering producer: what it acknowledges is in the log once, whatever happens meanwhile."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest
import redis

from controlplane.wire import keys, log
from controlplane.wire.batching import BatchingProducer
from controlplane.wire.errors import BadBlock, BufferFull, LogFull, Undelivered
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import START, AppendPosition, BacklogLimits, LogPosition
from controlplane.wire.producer import Producer
from controlplane.wire.records.record_codec import decode_block
from tests.support.kafka import running_kafka
from tests.support.lossy_proxy import losing_answers
from tests.support.redis_server import RedisServer, free_port
from tests.support.schemas import ALL_REPORTS, REPORTS

NOWHERE = f"redis://127.0.0.1:{free_port()}/0"


def reports(*cars: int) -> pa.RecordBatch:
    rows = [{"ts": 1000, "car": car, "x": 1, "y": 2, "speed": None} for car in cars]
    return pa.RecordBatch.from_pylist(rows, REPORTS.arrow)


def cars_in(client: "redis.Redis", stream: int) -> list[list[int | None]]:
    """Return the cars of each block of a stream."""
    read = RedisLog(client, "c").read_streams([stream], START, "+")
    return [decode_block(entry.block).records["car"].to_pylist() for entry in read.get(stream, [])]


def test_what_is_sent_within_the_linger_is_one_append(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """One block per stream, in the order of sending; flush does not wait for the linger."""
    with BatchingProducer(redis_server, "c", linger_ms=60_000, schemas=ALL_REPORTS) as producer:
        sent = [producer.send(1 + car % 2, reports(car)) for car in range(6)]
        assert producer.flush(10)
        assert len({future.result(0) for future in sent}) == 1
    assert redis_client.xlen(keys.index_key("c")) == 1
    assert (cars_in(redis_client, 1), cars_in(redis_client, 2)) == ([[0, 2, 4]], [[1, 3, 5]])


def test_it_goes_after_the_linger_by_itself(redis_client: "redis.Redis", redis_server: str) -> None:
    """Nobody has to flush; a callback tells of it."""
    told = Event()
    with BatchingProducer(redis_server, "c", linger_ms=1, schemas=ALL_REPORTS) as producer:
        producer.send(1, reports(7)).add_done_callback(lambda _: told.set())
        assert told.wait(10)
    assert cars_in(redis_client, 1) == [[7]]


def test_an_append_is_bounded_by_records(redis_client: "redis.Redis", redis_server: str) -> None:
    """And what is together goes before the linger ends."""
    with BatchingProducer(
        redis_server, "c", linger_ms=60_000, max_records=4, schemas=ALL_REPORTS
    ) as producer:
        sent = [producer.send(1, reports(car, car)) for car in range(4)]
        wait(sent, timeout=60)
    assert cars_in(redis_client, 1) == [[0, 0, 1, 1], [2, 2, 3, 3]]


def test_closing_sends_what_is_left(redis_client: "redis.Redis", redis_server: str) -> None:
    """And then nothing can be sent any more."""
    producer = BatchingProducer(redis_server, "c", linger_ms=60_000, schemas=ALL_REPORTS)
    sent = producer.send(1, reports(7))
    producer.close()
    assert sent.result(0)
    assert cars_in(redis_client, 1) == [[7]]
    with pytest.raises(Undelivered, match="closed"):
        producer.send(1, reports(8))


def test_a_bad_batch_is_refused_at_once(redis_server: str) -> None:
    """It does not spoil the append that others are in."""
    with (
        BatchingProducer(redis_server, "c", schemas=ALL_REPORTS) as producer,
        pytest.raises(BadBlock, match="stream 3"),
    ):
        producer.send(3, pa.RecordBatch.from_pylist([{"ts": 1}]))


def test_a_full_buffer_refuses_with_the_numbers() -> None:
    """While the log is away, memory is bounded."""
    one = reports(1)
    producer = BatchingProducer(
        NOWHERE, "c", buffer_bytes=3 * one.nbytes, max_block_s=0, schemas=ALL_REPORTS
    )
    for _ in range(3):
        producer.send(1, one)
    with pytest.raises(BufferFull) as refusal:
        producer.send(1, one)
    assert (refusal.value.size, refusal.value.held, refusal.value.limit) == (
        one.nbytes, 3 * one.nbytes, 3 * one.nbytes,
    )  # fmt: skip
    producer.close(timeout_s=0)


def test_a_full_buffer_makes_the_sender_wait(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """Until the log has taken something: a sender is slowed down, not stopped."""
    one = reports(1)
    with BatchingProducer(
        redis_server,
        "c",
        linger_ms=60_000,
        buffer_bytes=one.nbytes,
        max_block_s=30,
        schemas=ALL_REPORTS,
    ) as producer:
        first = producer.send(1, one)
        sent: list[Future[AppendPosition]] = []
        sender = Thread(target=lambda: sent.append(producer.send(1, one)))
        sender.start()
        sender.join(0.2)
        assert sender.is_alive(), "there was no room, and the first lingers"
        assert not first.done()
        producer.flush(10)
        sender.join(10)
        assert len(sent) == 1


def test_a_full_log_is_waited_for(redis_client: "redis.Redis", redis_server: str) -> None:
    """It goes on as soon as the pipeline has read; with no patience left the refusal is told."""
    with Producer(redis_server, "c", schemas=ALL_REPORTS) as other:
        other.append({1: reports(1)})
    limits = BacklogLimits(records=1)
    with (
        BatchingProducer(
            redis_server, "c", limits=limits, delivery_s=0, schemas=ALL_REPORTS
        ) as hasty,
        pytest.raises(LogFull),
    ):
        hasty.send(1, reports(2)).result(10)
    with BatchingProducer(redis_server, "c", limits=limits, schemas=ALL_REPORTS) as patient:
        sent = patient.send(1, reports(3))
        assert not patient.flush(0.2)
        pipeline = RedisLog(redis_client, "c")
        pipeline.mark_committed(pipeline.position_after(LogPosition(START, 0), 10))
        assert sent.result(10)
    assert [3] in cars_in(redis_client, 1)


def test_closing_a_producer_whose_log_is_away_tells_the_senders() -> None:
    """Nothing is silently dropped."""
    producer = BatchingProducer(NOWHERE, "c", linger_ms=0, max_records=1, schemas=ALL_REPORTS)
    sent = [producer.send(1, reports(car)) for car in range(3)]
    assert not producer.flush(0.05)
    producer.close(timeout_s=0)
    for future in sent:
        with pytest.raises(Undelivered, match=r"cannot be reached|it was not appended yet"):
            future.result(10)


def test_what_is_acknowledged_outlives_killed_servers_exactly_once(tmp_path: Path) -> None:
    """Redis is killed with -9 again and again while a thread sends; the order is kept, too."""
    with RedisServer(tmp_path, fsync="always") as server:
        rng = random.Random(3)
        with BatchingProducer(
            server.url, "c", linger_ms=1, max_records=20, schemas=ALL_REPORTS
        ) as producer:
            acknowledged: list[int] = []
            with _sending(producer, acknowledged) as sent:
                for _ in range(4):
                    reached = len(acknowledged) + rng.randint(50, 300)
                    while len(acknowledged) < reached:
                        sent.clear()
                        assert sent.wait(20)
                    server.kill()
                    server.start()
        with redis.Redis.from_url(server.url) as client:
            blocks = cars_in(client, 1)
    cars = [car for block in blocks for car in block]
    assert len(acknowledged) > 200
    assert set(acknowledged) <= set(cars), "acknowledged and not in the log"
    assert [car for car, n in Counter(cars).items() if n > 1] == []
    assert cars == sorted(car or 0 for car in cars)


def test_lost_answers_double_nothing(redis_client: "redis.Redis", redis_server: str) -> None:
    """The log has taken the append, and the connection ends before it can say so."""
    port = int(redis_server.rpartition(":")[2].partition("/")[0])
    with losing_answers(port, share=0.1) as proxy:
        url = f"redis://127.0.0.1:{proxy}/0"
        with BatchingProducer(
            url, "c", linger_ms=0, max_records=1, schemas=ALL_REPORTS
        ) as producer:
            sent = [producer.send(1, reports(car)) for car in range(40)]
            wait(sent, timeout=60)
    assert [future.result(0) for future in sent] == [
        entry.position for entry in RedisLog(redis_client, "c").read_streams([1], START, "+")[1]
    ]
    assert cars_in(redis_client, 1) == [[car] for car in range(40)]


@contextmanager
def _sending(producer: BatchingProducer, acknowledged: list[int]) -> Iterator[Event]:
    """Send car after car; the event is set with every acknowledgement."""
    stop, told = Event(), Event()

    def send() -> None:
        for car in range(10**9):
            if stop.is_set():
                return
            producer.send(1, reports(car)).add_done_callback(note(car))

    def note(car: int) -> Callable[["Future[AppendPosition]"], None]:
        def noted(future: "Future[AppendPosition]") -> None:
            future.result(0)
            acknowledged.append(car)
            told.set()

        return noted

    sender = Thread(target=send)
    sender.start()
    try:
        yield told
    finally:
        stop.set()
        sender.join(60)


def test_it_speaks_to_kafka_as_well(redis_client: "redis.Redis", redis_server: str) -> None:
    """The URL decides."""
    with running_kafka() as address:
        url = f"kafka://{address}/batched"
        with BatchingProducer(url, "c", schemas=ALL_REPORTS) as producer:
            sent = [producer.send(1, reports(car)) for car in range(50)]
        assert all(future.result(0) for future in sent)
        reader = log.open_log(url, "c", redis_server)
        end = reader.position_after(LogPosition(START, 0), 10**6)
        assert end.total == 50
        reader.close()
