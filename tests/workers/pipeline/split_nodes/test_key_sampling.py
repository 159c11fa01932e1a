"""Samples of keys: which queries and batches are sampled, and what a sample has."""

import base64
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from algorithms.partitioning.catalog import grouping_text
from controlplane.wire.key_samples import MAX_LABELS, MAX_RECORDS, KeySample
from controlplane.wire.language.registered import function
from controlplane.wire.log.values import LogEntry
from controlplane.wire.query_text import QueryText
from controlplane.wire.records.record_codec import encode_block
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.tables import compiled
from tests.workers.pipeline.split_nodes.test_dispatch import entry
from tests.workers.pipeline.split_nodes.test_grouping_states import PARTIAL, TASKS, query, table_of
from workers.pipeline.exchange.envelope import BatchHeader
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.split_nodes.dispatch import dispatch
from workers.pipeline.split_nodes.grouping_states import KeyRouter
from workers.pipeline.split_nodes.key_sampling import MAX_QUERIES, KeySampler

HEADER = BatchHeader(5, 1, None, None, 10_100, 300, has_backlog=False, split=0, nodes=2)


def samples_of(
    entries: dict[int, list[LogEntry]], table: CompiledTable, header: BatchHeader = HEADER
) -> dict[int, KeySample]:
    sampler = KeySampler.of(header, table)
    assert sampler is not None
    report = dispatch(entries, table, 2, {}, KeyRouter(table), sampler).envelopes[0][0].source
    found = [KeySample.from_bytes(base64.b64decode(text)) for text in report["key_samples"]]
    return {sample.query: sample for sample in found}


def test_a_sample_counts_keys_and_their_tasks() -> None:
    """A small batch is its own sample: car 1 has 60 records, the others one or two."""
    table = table_of(query(7), query(8, ""))
    cars = [1] * 60 + list(range(40))
    found = samples_of({1: [entry("5-0", *cars)]}, table)
    assert sorted(found) == [7, 8]
    for sample in found.values():
        assert (sample.batch, sample.split, sample.clock_ms, sample.elapsed_ms) == (
            5,
            0,
            10_100,
            300,
        )
        assert sample.records == sum(sample.counts) == sum(sample.task_records) == 100
        assert (sample.counts[0], sample.labels[0]) == (61, "1")
        assert len(sample.hashes) == len({*sample.hashes}) == 40
        assert len(sample.labels) == len(sample.tasks) == MAX_LABELS
        assert [sum(of_key.values()) for of_key in sample.tasks] == sample.counts[:MAX_LABELS]
        assert len(sample.task_records) == 3
    assert len(found[8].tasks[0]) == 1, "one task by the hash"
    assert len(found[7].tasks[0]) == 2, "two tasks share the hot key"
    assert found[7].hashes[0] == found[8].hashes[0]


def test_a_sample_is_a_part_of_a_large_batch() -> None:
    table = table_of(query(7))
    (sample,) = samples_of({1: [entry("5-0", *range(5_000))]}, table).values()
    assert (sample.records, sample.sampled) == (5_000, MAX_RECORDS)
    assert sum(sample.task_records) == 5_000
    again = samples_of({1: [entry("5-0", *range(5_000))]}, table)[7]
    assert again == sample, "a replay writes the same"


def test_streams_of_a_query_are_sampled_together() -> None:
    table = compiled(
        AssignStream(1, 0),
        AssignStream(2, 0),
        AddQuery(7, 0, 0, (1, 2), query(7).text, TASKS, PARTIAL, aggregator=1),
    )
    found = samples_of({1: [entry("5-0", 1, 1)], 2: [entry("5-0", 2)]}, table)
    assert (found[7].records, found[7].labels) == (3, ["1", "2"])
    assert list(found[7].streams) == [{1: 2}, {2: 1}]


@pytest.mark.parametrize(
    ("clock_ms", "elapsed_ms", "attempt", "is_due"),
    [(10_100, 300, 1, True), (10_900, 300, 1, False), (10_900, None, 1, True),
     (10_900, 1_500, 1, True), (10_100, 300, 2, False)],
)  # fmt: skip
def test_the_first_batch_of_a_second_is_sampled(
    clock_ms: int, elapsed_ms: int | None, attempt: int, is_due: bool
) -> None:
    header = replace(HEADER, clock_ms=clock_ms, elapsed_ms=elapsed_ms, attempt=attempt)
    assert (KeySampler.of(header, table_of(query(7))) is not None) is is_due


def test_only_queries_with_several_tasks_of_the_split_node_are_sampled() -> None:
    table = table_of(query(7, "", ()), query(8))
    sampler = KeySampler.of(HEADER, table)
    assert sampler is not None
    assert sampler.queries == (8,)
    assert KeySampler.of(replace(HEADER, split=1), table) is None


def test_many_queries_are_sampled_in_rotation() -> None:
    table = table_of(*(query(pk) for pk in range(1, 31)))
    seen: Counter[int] = Counter()
    for batch in range(60):
        sampler = KeySampler.of(replace(HEADER, batch=batch), table)
        assert sampler is not None
        assert len(sampler.queries) == MAX_QUERIES
        seen.update(sampler.queries)
    assert len(seen) == 30
    assert min(seen.values()) > 3


def test_labels_are_readable() -> None:
    columns = {"name": "string", "sum": "decimal(12, 3)", "flag": "bool"}
    specs = [*(ColumnSpec(*item) for item in columns.items())]
    specs.append(ColumnSpec("happened", "timestamp(ms)", nullable=False))
    schema = StreamSchema(tuple(specs), "happened")
    text = QueryText({"n": "count(*)"}, key=["name", "sum", "flag", "happened"])
    table = compiled(
        AssignStream(1, 0),
        SetSchema(1, schema),
        AddQuery(7, 0, 0, (1,), json.dumps(text.to_json()), TASKS, PARTIAL, aggregator=1),
    )
    moment = datetime(1970, 1, 1, 0, 30, 1, 500_000, tzinfo=UTC)
    rows: list[dict[str, Any]] = [
        {"name": "x" * 200, "sum": Decimal("12.500"), "flag": True, "happened": moment},
        *[{"name": None, "sum": None, "flag": None, "happened": moment.replace(microsecond=0)}] * 2,
    ]
    block = encode_block(pa.RecordBatch.from_pylist(rows, schema.arrow), "happened")
    (sample,) = samples_of(
        {1: [LogEntry("5-0", 3, block, newest_ms=0, mark_ms=None)]}, table
    ).values()
    assert sample.labels[0] == "null, null, null, 1970-01-01 00:30:01"
    assert sample.labels[1] == f"{'x' * 79}…"


def test_a_key_that_fails_or_is_computed_by_users_is_not_sampled() -> None:
    """Where its records need no task: split nodes do not call users' functions for a sample."""
    texts = [QueryText({"n": "count(*)"}, columns={"of": f"test_of_{kind}(car)"}, key=["of"])
             for kind in ("fault", "fine")]  # fmt: skip
    one_node = ((0, 0, 3),)
    table = table_of(
        AddQuery(1, 0, 0, (1,), json.dumps(texts[0].to_json()), TASKS),
        AddQuery(2, 0, 0, (1,), json.dumps(texts[1].to_json()), one_node),
        AddQuery(3, 0, 0, (1,), json.dumps(texts[1].to_json()), TASKS),
        query(4, "", one_node),
        query(5, grouping_text("shuffle")),
    )
    found = samples_of({1: [entry("5-0", 1, 2, 3)]}, table)
    assert sorted(found) == [3, 4, 5]
    assert sorted(found[3].labels) == ["1", "2", "3"]


@function(takes=("int",), gives="int", name="test_of_fault")
def of_fault(values: Any) -> Any:
    raise KeyError("no such shelf")


@function(takes=("int",), gives="int", name="test_of_fine")
def of_fine(values: Any) -> Any:
    return values
