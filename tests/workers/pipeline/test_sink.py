"""Writing a batch twice leaves what writing it once leaves."""

import numpy as np
import redis

from controlplane.wire import keys
from controlplane.wire.results import has_results, read_results
from workers.pipeline.report import NodeReport
from workers.pipeline.sink import expire_results, write_results, write_telemetry
from workers.pipeline.windows import Rows


def row(query: int, run: int, window: int, count: int, total: int) -> list[int]:
    return [query, run, 1, window, 60_000, count, count, total, 1, total]


def rows(*values: list[int]) -> Rows:
    return np.array(values, np.int64)


def test_replayed_batch_is_refused_and_later_words_win(redis_client: "redis.Redis") -> None:
    """The id is the batch number: a second append of the same batch fails harmlessly."""
    for _ in range(2):
        write_results(redis_client, "c", 1, rows(row(5, 0, 0, 2, 10), row(6, 0, 0, 1, 1)))
    write_results(redis_client, "c", 2, rows(row(5, 0, 0, 3, 16)))
    assert redis_client.xlen(keys.result_key("c", 5)) == 2
    (window,) = read_results(redis_client, "c", 5)
    assert (window.count, window.mean, window.batch) == (3, 16 / 3, 2)


def test_runs_of_a_moved_query_add_up(redis_client: "redis.Redis") -> None:
    """A query moved without its state begins anew; together its runs hold each record once."""
    write_results(redis_client, "c", 1, rows(row(5, 0, 0, 2, 10)))
    write_results(redis_client, "c", 2, rows(row(5, 1, 0, 3, 20)))
    (window,) = read_results(redis_client, "c", 5)
    assert (window.count, window.n, window.mean, window.maximum) == (5, 5, 6.0, 20)


def test_departed_query_keeps_its_results_for_a_while(redis_client: "redis.Redis") -> None:
    """Readable after the end, and not for ever."""
    write_results(redis_client, "c", 1, rows(row(5, 0, 0, 2, 10)))
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
