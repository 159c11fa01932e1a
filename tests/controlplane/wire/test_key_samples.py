"""Samples of keys: written once per batch and split node, read in order, deleted with the query."""

from dataclasses import replace

import redis

from controlplane.wire import key_samples, keys
from controlplane.wire.key_samples import KeySample, forget, read, read_newest, write

SAMPLE = KeySample(
    query=7, batch=3, split=0, clock_ms=5_000, elapsed_ms=900, records=40,
    hashes=[2**64 - 1, 12, 0], counts=[5, 2, 1], labels=["Zürich", "null"],
    tasks=[{0: 3, 2: 2}, {1: 2}], task_records=[10, 20, 10],
    streams=({4: 5}, {4: 1, 9: 1}),
)  # fmt: skip


def test_bytes_hold_the_whole_sample() -> None:
    assert KeySample.from_bytes(SAMPLE.to_bytes()) == SAMPLE
    empty = replace(SAMPLE, hashes=[], counts=[], labels=[], tasks=[], streams=())
    assert KeySample.from_bytes(empty.to_bytes()) == empty
    assert (SAMPLE.sampled, empty.sampled) == (8, 0)


def test_samples_are_read_oldest_first(redis_client: "redis.Redis") -> None:
    later = replace(SAMPLE, batch=4, clock_ms=6_000)
    write(redis_client, "c", [replace(SAMPLE, split=1), SAMPLE, replace(SAMPLE, query=8)])
    write(redis_client, "c", [later])
    found = read(redis_client, "c", 7, 0)
    assert [(item.batch, item.split) for item in found] == [(3, 0), (3, 1), (4, 0)]
    assert found[0] == SAMPLE
    assert read(redis_client, "c", 7, 5_001) == [later]
    assert [item.query for item in read(redis_client, "c", 8, 0)] == [8]
    assert read(redis_client, "c", 9, 0) == []


def test_a_replay_writes_nothing_twice(redis_client: "redis.Redis") -> None:
    """Also where the first attempt wrote only a part, or a newer batch has been written."""
    write(redis_client, "c", [SAMPLE])
    write(redis_client, "c", [SAMPLE, replace(SAMPLE, split=1)])
    write(redis_client, "c", [replace(SAMPLE, batch=2)])
    assert [(item.batch, item.split) for item in read(redis_client, "c", 7, 0)] == [(3, 0), (3, 1)]


def test_the_newest_samples_of_several_queries_are_read_at_once(
    redis_client: "redis.Redis",
) -> None:
    write(redis_client, "c", [replace(SAMPLE, batch=batch) for batch in range(3, 8)])
    write(redis_client, "c", [replace(SAMPLE, query=8)])
    found = read_newest(redis_client, "c", [7, 8, 9], 2)
    assert {query: [row.batch for row in rows] for query, rows in found.items()} == {
        7: [6, 7], 8: [3],
    }  # fmt: skip
    assert read_newest(redis_client, "c", [], 2) == {}
    later = read_newest(redis_client, "c", [7, 8], 10, from_batch=5)
    assert {query: [row.batch for row in rows] for query, rows in later.items()} == {7: [5, 6, 7]}


def test_some_of_many_samples_are_read(redis_client: "redis.Redis") -> None:
    write(redis_client, "c", [replace(SAMPLE, batch=batch) for batch in range(1, 11)])
    assert [row.batch for row in read(redis_client, "c", 7, 0, most=4)] == [1, 4, 7, 10]
    assert [row.batch for row in read(redis_client, "c", 7, 0, most=9)] == [2, 4, 6, 8, 10]
    assert len(read(redis_client, "c", 7, 0, most=10)) == 10
    write(
        redis_client,
        "c",
        [replace(SAMPLE, query=8, batch=b, split=s) for b in range(6) for s in (0, 1)],
    )
    rows = read(redis_client, "c", 8, 0, most=6)
    assert [(row.batch, row.split) for row in rows] == [(b, s) for b in (1, 3, 5) for s in (0, 1)]


def test_memory_is_bounded(redis_client: "redis.Redis") -> None:
    for batch in range(1, key_samples.KEPT + 11):
        write(redis_client, "c", [replace(SAMPLE, batch=batch)])
    found = read(redis_client, "c", 7, 0)
    assert [found[0].batch, len(found)] == [11, key_samples.KEPT]
    assert 0 < redis_client.ttl(keys.key_samples_key("c", 7)) <= key_samples.KEPT_S


def test_samples_of_ended_queries_are_deleted(redis_client: "redis.Redis") -> None:
    write(redis_client, "c", [SAMPLE, replace(SAMPLE, query=8)])
    forget(redis_client, "c", [7])
    forget(redis_client, "c", [])
    assert read(redis_client, "c", 7, 0) == []
    assert len(read(redis_client, "c", 8, 0)) == 1
