"""Writing a batch twice leaves what writing it once leaves."""

from typing import Any

import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.blocks import KINDS
from controlplane.wire.forms import named, names_of
from controlplane.wire.layout import layout_of
from controlplane.wire.query import computation_of, mice
from controlplane.wire.results import has_results, read_results
from workers.pipeline.changes import by_query, pack
from workers.pipeline.report import NodeReport
from workers.pipeline.sink import expire_results, write_results, write_telemetry

MICE = computation_of(mice("speed", 60), KINDS)
(FORM, _, _) = names_of(layout_of(MICE))


def window(query: int, run: int, count: int, total: int) -> dict[str, Any]:
    """Return one window of stream 1, as a node keeps it."""
    numbers = {"s0": count, "s1": count, "s2": total, "s3": 1, "s4": total}
    place = {"query": query, "run": run, "task": 0, "stream": 1, "pane": 0, "k0": 1}
    return place | numbers


def changes(*windows: dict[str, Any]) -> dict[int, dict[str, list[bytes]]]:
    form = named(FORM)
    return by_query(pack([(FORM, form, pa.Table.from_pylist(list(windows), form.schema))]))


def report(batch: int, node: int = 0, split: tuple[int, ...] = ()) -> NodeReport:
    """Return what a node says of a batch."""
    return NodeReport(
        node=node, batch=batch, version=1, records=0, bytes=0, busy_ms=0.0, tasks=1,
        state_bytes=0, late=0, event_ms=None, split=list(split),
    )  # fmt: skip


def test_nodes_that_share_a_query_write_in_the_same_batch(redis_client: "redis.Redis") -> None:
    """In whatever order, and again: the tasks of all of them make the window."""
    for node in (2, 0, 1, 2):
        rows = changes(window(5, 0, node + 1, 10) | {"task": node})
        write_results(redis_client, "c", report(4, node, split=(5,)), rows)
    (found,) = read_results(redis_client, "c", 5)
    assert (found.count, found.mean) == (6, 5.0)
    assert has_results(redis_client, "c", [5, 6]) == {5}
    expire_results(redis_client, "c", [5])
    assert 0 < redis_client.ttl(keys.part_key("c", 5, 2)) <= 900


def test_replayed_batch_is_refused_and_later_words_win(redis_client: "redis.Redis") -> None:
    """The id is the batch number: a second append of the same batch fails harmlessly."""
    for _ in range(2):
        write_results(
            redis_client, "c", report(1), changes(window(5, 0, 2, 10), window(6, 0, 1, 1))
        )
    write_results(redis_client, "c", report(2), changes(window(5, 0, 3, 16)))
    assert redis_client.xlen(keys.result_key("c", 5)) == 2
    (found,) = read_results(redis_client, "c", 5)
    assert (found.count, found.mean, found.batch) == (3, 16 / 3, 2)


def test_runs_of_a_moved_query_add_up(redis_client: "redis.Redis") -> None:
    """A query moved without its state begins anew; together its runs hold each record once."""
    write_results(redis_client, "c", report(1), changes(window(5, 0, 2, 10)))
    write_results(redis_client, "c", report(2), changes(window(5, 1, 3, 20)))
    (found,) = read_results(redis_client, "c", 5)
    assert (found.count, found.n, found.mean, found.maximum) == (5, 5, 6.0, 20)


def test_departed_query_keeps_its_results_for_a_while(redis_client: "redis.Redis") -> None:
    """Readable after the end, and not for ever."""
    write_results(redis_client, "c", report(1), changes(window(5, 0, 2, 10)))
    expire_results(redis_client, "c", [5])
    assert has_results(redis_client, "c", [5, 6]) == {5}
    assert 0 < redis_client.ttl(keys.result_key("c", 5)) <= 900


def test_telemetry_row_of_a_batch_is_written_once(redis_client: "redis.Redis") -> None:
    """Latencies run from the append to the commit, weighted by records."""
    report = NodeReport(
        node=0, batch=3, version=7, records=4, bytes=100, busy_ms=1.0, tasks=2, state_bytes=10,
        late=0, event_ms=9, arrivals=[[900, 3], [400, 1]],
        sources=[{"split": 0, "streams": {"1": 5}, "bytes": 50, "read": 4, "start": "0-0",
                  "end": "900-0"}],
    )  # fmt: skip
    for _ in range(2):
        write_telemetry(redis_client, "c", [report], emitted_ms=1000)
    assert redis_client.xlen(keys.telemetry_key("c")) == 1
