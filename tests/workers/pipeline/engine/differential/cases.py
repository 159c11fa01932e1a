"""Random cases of the differential tests, each with streams and queries of its own numbers.

A case has three streams, the records of `data.py` in blocks, and queries over them; the event times
go on from block to block, so that some records are late by the log's own marks.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import duckdb
import pyarrow as pa

from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.types import type_name
from tests.support.schemas import FAR_S
from tests.workers.pipeline.engine.differential.data import COLUMNS, KINDS, nested, random_columns
from tests.workers.pipeline.engine.differential.declared import Draw, tame_columns
from tests.workers.pipeline.engine.differential.queries import random_join, random_query
from tests.workers.pipeline.engine.differential.test_queries import SIDES, STREAMS, put_records
from workers.pipeline.engine.evaluation.records import BlockRun

QUERIES, JOINS, AGGREGATES = 3, 1, 5
# Numbers of streams and queries from one case to the next.
_APART: Final = 10
_BASES: Final = (0, 86_400_000 * 19_782 - 3_000)


def _schema() -> StreamSchema:
    columns = nested({name: pa.array([], arrow) for name, (_, arrow) in COLUMNS.items()})
    time = pa.field("ts", pa.timestamp("ms", "UTC"), nullable=False)
    fields = [time, *(pa.field(name, column.type) for name, column in columns.items())]
    specs = tuple(ColumnSpec(one.name, type_name(one.type), one.nullable) for one in fields)
    return StreamSchema(specs, "ts", max_future_s=FAR_S, idle_after_s=FAR_S)


SCHEMA: Final = _schema()


@dataclass(frozen=True)
class Block:
    """Records of one stream: columns by name, and the same with structs as the log has them."""

    stream: int
    columns: Mapping[str, Any]
    mark_ms: int | None

    @property
    def records(self) -> Any:
        """Return the block as a table of the schema."""
        rest = {name: column for name, column in self.columns.items() if name != "ts"}
        return pa.table({"ts": self.columns["ts"], **nested(rest)})


@dataclass(frozen=True)
class Case:
    """Blocks in the order of their appends, and queries by number: text, streams, computation."""

    number: int
    blocks: Sequence[Block]
    queries: Mapping[int, tuple[QueryText, Computation]]

    @property
    def streams(self) -> tuple[int, ...]:
        """Return the numbers of the case's streams."""
        return tuple(stream + _APART * self.number for stream in STREAMS)

    def put(self, client: duckdb.DuckDBPyConnection) -> None:
        """Create DuckDB's table `records` of all blocks."""
        names = self.blocks[0].columns
        whole = {
            name: pa.concat_arrays([block.columns[name] for block in self.blocks]) for name in names
        }
        runs = [BlockRun(one.stream, len(one.columns["ts"]), one.mark_ms) for one in self.blocks]
        put_records(client, "records", whole, runs)


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = random.Random(seed)
    return Case(seed, list(_blocks(rng, seed)), dict(_queries(rng, seed)))


def _blocks(rng: random.Random, case: int) -> Iterator[Block]:
    now, newest = rng.choice(_BASES), dict[int, int]()
    for _ in range(rng.randint(3, 10)):
        count, stream = rng.choice((1, 5, 40)), rng.choice(STREAMS) + _APART * case
        times = []
        for _ in range(count):
            now += rng.randint(0, 300)
            times.append(now - rng.choice((0, 0, 0, rng.randint(0, 4_000))))
        columns = random_columns(rng, count) | {"ts": pa.array(times, pa.timestamp("ms", "UTC"))}
        yield Block(stream, columns, newest.get(stream))
        newest[stream] = max(*times, newest.get(stream, times[0]))


def _queries(rng: random.Random, case: int) -> Iterator[tuple[int, tuple[QueryText, Computation]]]:
    texts = Draw(rng, tame_columns)
    paired = Draw(rng, lambda kind: [s + name for s in SIDES for name in tame_columns(kind)], SIDES)
    drawn = [random_query(rng, texts, AGGREGATES) for _ in range(QUERIES)]
    drawn += [random_join(rng, paired, texts, AGGREGATES // 2) for _ in range(JOINS)]
    for at, text in enumerate(drawn):
        moved = replace(text, right=[stream + _APART * case for stream in text.right])
        yield _APART * case + at, (moved, computation_of(moved, KINDS))
