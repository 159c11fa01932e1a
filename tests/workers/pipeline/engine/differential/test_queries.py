"""Random queries over random streams, in random batches on random nodes, against DuckDB."""

import random
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.differential.data import (
    KINDS,
    nested,
    random_columns,
    random_times,
    seeds,
)
from tests.workers.pipeline.engine.differential.declared import Draw, tame_columns
from tests.workers.pipeline.engine.differential.duck import put_table, same
from tests.workers.pipeline.engine.differential.queries import (
    expected,
    found_windows,
    random_join,
    random_query,
)
from tests.workers.pipeline.engine.running import Running
from workers.pipeline.engine.evaluation.records import BlockRun, Records

SIDES: Sequence[str] = ("a.", "b.")
STREAMS, QUERIES, JOINS, AGGREGATES = (1, 2, 3), 5, 1, 12


def random_records(rng: random.Random) -> tuple[dict[str, Any], list[BlockRun]]:
    """Return columns of some blocks one behind the other, and the blocks.

    A block may be marked with newer event times than its own records have: those are late.
    """
    runs: list[BlockRun] = []
    columns = []
    for _ in range(rng.randint(1, 8)):
        count = rng.choice((1, 5, 40))
        part = random_columns(rng, count) | {"ts": random_times(rng, count)}
        newest = max(part["ts"].cast(pa.int64()).to_pylist())
        mark = rng.choice((None, newest - 2_000, newest - 500, newest + 200_000))
        runs.append(BlockRun(rng.choice(STREAMS), count, mark))
        columns.append(part)
    whole = {name: pa.concat_arrays([part[name] for part in columns]) for name in columns[0]}
    return whole, runs


def put_records(
    client: duckdb.DuckDBPyConnection, name: str, columns: dict[str, Any], runs: list[BlockRun]
) -> None:
    """Create a table of records with their stream, event time in ms and mark."""
    lengths = [run.records for run in runs]
    watermarks = [mark for run in runs for mark in [run.mark_ms] * run.records]
    known = columns | {
        "stream": pa.array(np.repeat([run.stream for run in runs], lengths)),
        "ms": columns["ts"].cast(pa.int64()),
        "mark": pa.array(watermarks, pa.int64()),
    }
    put_table(client, name, known, KINDS)


def run(
    rng: random.Random, running: Running, columns: dict[str, Any], runs: list[BlockRun]
) -> None:
    """Let the nodes take the blocks in random batches."""
    times = np.asarray(columns["ts"].cast(pa.int64()))
    table = pa.table(nested({name: one for name, one in columns.items() if name != "ts"}))
    first, at = 0, 0
    while at < len(runs):
        stop = rng.randint(at + 1, len(runs))
        count = sum(one.records for one in runs[at:stop])
        part, ts_ms = table.slice(first, count), times[first : first + count]
        running.take(Records.of(part, ts_ms, runs[at:stop], event_time="ts"))
        first, at = first + count, stop


def compare(found: dict[Any, list[Any]], wanted: dict[Any, list[Any]], about: Any) -> None:
    """Assert that two results agree."""
    assert found.keys() == wanted.keys(), about
    for place, values in wanted.items():
        for at, value in enumerate(values):
            assert same(found[place][at], value, 1e4), (about, place, at, found[place][at], value)


def random_queries(rng: random.Random) -> dict[int, tuple[QueryText, Computation]]:
    """Return queries over unions of streams, and joins."""
    texts = Draw(rng, tame_columns)
    paired = Draw(rng, lambda kind: [s + name for s in SIDES for name in tame_columns(kind)], SIDES)
    drawn = [random_query(rng, texts, AGGREGATES) for _ in range(QUERIES)]
    drawn += [random_join(rng, paired, texts, AGGREGATES // 2) for _ in range(JOINS)]
    return {at: (text, computation_of(text, KINDS)) for at, text in enumerate(drawn)}


@pytest.mark.parametrize("seed", seeds(25))
def test_queries_are_what_duckdb_says(seed: int, client: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(seed)
    columns, runs = random_records(rng)
    put_records(client, "records", columns, runs)
    queries = random_queries(rng)
    running = Running(
        {query: computation for query, (_, computation) in queries.items()},
        STREAMS, tasks=rng.choice((1, 3, 8)), nodes=rng.choice((1, 2)),
    )  # fmt: skip
    run(rng, running, columns, runs)
    checked = 0
    for query, (text, computation) in queries.items():
        try:
            wanted = expected(client, computation, "records")
        except duckdb.Error:
            # DuckDB cannot compute it either, or fails for records that it need not look at.
            continue
        checked += 1
        assert query not in running.faults, (text, running.faults[query])
        compare(found_windows(running.rows(query), computation), wanted, text)
    assert checked >= len(queries) / 2
