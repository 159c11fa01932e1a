"""The data plane rides out a Redis that restarts or hangs, and repeats what a restart lost."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis

from controlplane.wire import dead_letters
from controlplane.wire.generation import Generation, write_generation
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.redis_clients import OutageProofRedis, connect_patiently
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.pipeline import Pipeline
from tests.support.redis_server import RedisServer
from tests.support.schemas import FAR_S, assigned
from tests.support.whole_results import read_windows
from workers.pipeline.engine.store import MemoryStore
from workers.pipeline.exchange import durability
from workers.pipeline.exchange.durability import BatchesLost
from workers.pipeline.sink import SinkWriter
from workers.pipeline.spark.connections import client_of, log_of, tables_of
from workers.pipeline.spark.query_runs import WritesLost
from workers.pipeline.split_nodes.source import LogReader

AWAY_S = 1.0
PUMPS = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("litres", "int64")),
    event_time="at",
    max_future_s=FAR_S,
)
COUNTS = QueryText({"v": "count(*)"}, window_s=60.0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of its own; the connections of this process to it are closed afterwards."""
    with RedisServer(tmp_path, fsync="always") as server:
        yield server
    for known in (client_of, log_of, tables_of):
        known.cache_clear()


@contextmanager
def outage(server: RedisServer, hang: bool) -> Iterator[None]:
    """Let Redis be away, or hang, at the start of the block and for a second."""
    server.kill() if not hang else server.send_signal(signal.SIGSTOP)

    def end() -> None:
        time.sleep(AWAY_S)
        server.send_signal(signal.SIGCONT) if hang else server.start()

    thread = threading.Thread(target=end)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize("hang", [False, True])
def test_commands_and_scripts_wait_for_redis(server: RedisServer, hang: bool) -> None:
    """A restarted Redis has no scripts: those of pipelines are loaded again."""
    client = connect_patiently(server.url, client=OutageProofRedis)
    script = client.register_script("return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])")
    assert script(keys=["a"], args=["x", 1]) == 1
    pipe = client.pipeline(transaction=False)
    script(keys=["a"], args=["y", 2], client=pipe)
    pipe.xadd("b", {"n": 1}, id="7-0")
    with outage(server, hang):
        assert pipe.execute() == [1, b"7-0"]
        assert script(keys=["a"], args=["z", 3]) == 1
    with outage(server, hang):
        assert client.hgetall("a") == {b"x": b"1", b"y": b"2", b"z": b"3"}
    assert client.xlen("b") == 1


def test_an_outage_that_lasts_ends_the_command(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.wire.redis_clients.OUTAGE_S", 0.5)
    client = connect_patiently(server.url, client=OutageProofRedis)
    pipe = client.pipeline()
    pipe.get("a")
    server.kill()
    with pytest.raises(redis.ConnectionError):
        client.get("a")
    with pytest.raises(redis.ConnectionError):
        pipe.execute()
    server.start()


class Counted:
    """A cluster of one node that counts the records of a stream, and the losses of its Redis."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.client = redis.Redis.from_url(server.url)
        self.pipeline = Pipeline(self.client, server.url, nodes=1)
        query = AddQuery(5, 0, 0, (1,), json.dumps(COUNTS.to_json()))
        self.pipeline.publish(*assigned([1], 1, PUMPS), query)

    def append(self, *litres: Any) -> None:
        """Append records; their times are valid if `litres` is a number."""
        rows = [{"at": 1_000 if n is not None else 10**14, "litres": n} for n in litres]
        with Producer(self.server.url, "c") as producer:
            producer.append({1: pa.RecordBatch.from_pylist(rows, PUMPS.arrow)})

    def counted(self) -> int:
        """Return the records in all windows."""
        windows = read_windows(self.client, "c", 5, computation_of(COUNTS, PUMPS.kinds))
        return sum(row.values["v"] for row in windows)

    def restart(self, size: int | None = None) -> None:
        """Restart Redis; `size`: the bytes of its file that it still has."""
        self.server.kill()
        if size is not None:
            with self.server.file.open("r+b") as file:
                file.truncate(size)
        self.server.start()


@pytest.fixture
def cluster(server: RedisServer) -> Counted:
    cluster = Counted(server)
    cluster.append(1, 2, None)
    cluster.pipeline.batch()
    assert cluster.counted() == 2
    return cluster


def before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen once, before a batch is committed."""
    commit, acts = SinkWriter.commit, [act]

    def wrapped(writer: SinkWriter, messages: Any, number: int) -> None:
        if acts:
            acts.pop()()
        commit(writer, messages, number)

    monkeypatch.setattr(SinkWriter, "commit", wrapped)


def test_a_restart_without_a_loss_repeats_nothing(
    cluster: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_commit(monkeypatch, cluster.restart)
    cluster.append(3, 4, None)
    assert cluster.pipeline.batch()["read"] == 3
    assert cluster.counted() == 4


@pytest.mark.parametrize("part", ["sink", "split"])
def test_writes_that_a_restart_lost_are_repeated(
    cluster: Counted, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Those of nodes, and the dead letters of split nodes."""
    sizes = []
    write, read = SinkWriter.write, LogReader.read

    def sized(original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            sizes.append(cluster.server.file.stat().st_size)
            return original(*arguments)

        return call

    if part == "sink":
        monkeypatch.setattr(SinkWriter, "write", sized(write))
    else:
        monkeypatch.setattr(LogReader, "read", sized(read))
    before_commit(monkeypatch, lambda: cluster.restart(sizes[0]))
    cluster.append(3, 4, None)
    before = {node: MemoryStore(store) for node, store in cluster.pipeline.stores.items()}
    with pytest.raises(WritesLost, match=f"{part}:0"):
        cluster.pipeline.batch()
    assert cluster.counted() == 4, "results are not in Redis"
    cluster.pipeline.stores = before
    assert cluster.pipeline.batch()["read"] == 3
    assert cluster.counted() == 4
    assert len(dead_letters.page(cluster.client, "c")) == 2


def test_a_part_during_which_redis_restarts_is_repeated(
    cluster: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark alone would not show whether its earlier writes are there."""
    mark = durability.mark_part

    def late(*arguments: Any) -> None:
        cluster.restart()
        mark(*arguments)

    monkeypatch.setattr("workers.pipeline.sink.mark_part", late)
    cluster.append(3)
    with pytest.raises(WritesLost, match="restarted while sink:0"):
        cluster.pipeline.batch()


def test_finished_batches_that_are_lost_end_the_driver_unless_they_are_repaired(
    cluster: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent compares the stores before the next driver starts."""
    monkeypatch.setattr(durability, "REPAIR_S", 0.5)
    cluster.append(3)
    size = cluster.server.file.stat().st_size
    cluster.pipeline.batch()
    batch = cluster.pipeline.offset["batch"]
    cluster.restart(size)
    with pytest.raises(BatchesLost, match=f"and {batch} was finished"):
        cluster.pipeline.batch()
    monkeypatch.setattr(durability, "REPAIR_S", 60.0)
    repair = threading.Timer(0.5, write_floor, (cluster.client, batch))
    repair.start()
    cluster.append(4)
    assert cluster.pipeline.batch()["batch"] == batch + 1
    repair.join()


def write_floor(client: "redis.Redis", batch: int) -> None:
    """Do what the agent does at last when it repairs a loss of Redis."""
    write_generation(client, "c", Generation("another", 1, batch))
