"""Cost of key groupings at a split node, against basic hashing (paper 001, section 6.4.4).

    python -m benchmarks.planners.grouping_overhead [--rounds 50] [--warm 10] [--records 200000]
        [--tasks 8]

Each round routes one micro-batch, by default of the largest size, of words of books with every key
grouping: the whole call of `dispatch`, from the blocks of the log to the envelopes of the nodes,
with the state of the grouping read from the offset and packed for the report. "at the split node":
basic hashing that the split node evaluates, like all other key groupings. "by key": basic hashing
as the pipeline does it, where every node computes the task of a key itself and no record carries
it. Overheads are medians over the rounds of ratios of processor time within a round; the order of
the groupings is drawn again in each round.
"""

import argparse
import csv
import gzip
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from algorithms.lab.datasets import data_folder, read_columns
from algorithms.lab.partitioning.real_workloads import WORDS_FILE
from algorithms.partitioning.catalog import GROUPINGS, grouping_text
from controlplane.wire.log.values import LogEntry
from controlplane.wire.query_text import QueryText
from controlplane.wire.records.record_codec import encode_block
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.route import task_ranges_of
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from controlplane.wire.schema import ColumnSpec, StreamSchema
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.split_nodes.dispatch import dispatch
from workers.pipeline.split_nodes.grouping_states import KeyRouter, StatePlan, StoredState

NODES: Final = 4
QUERY, STREAM = 7, 1
BY_KEY, AT_SPLIT = "key, by key", "key, at the split node"
# Demanded of frequency-aware hashing against basic hashing, and of rate-aware against plain panes.
BOUNDS: Final = {"frequency_aware": 0.17, "rate_aware": 0.04}
BLOCKS: Final = 10
BATCH_MS: Final = 2_000
SCHEMA: Final = StreamSchema(
    (
        ColumnSpec("read_at", "timestamp(ms)", nullable=False),
        ColumnSpec("word", "string"),
        ColumnSpec("length", "int64"),
    ),
    "read_at",
)


@dataclass
class Course:
    """A key grouping over the batches: its table, and its state in the offset."""

    table: CompiledTable
    stored: Mapping[int, StoredState] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, tasks: int) -> "Course":
        """Return the course of a query with this key grouping."""
        query = QueryText(
            {"n": "count(*)", "total": "sum(length)"}, key=["word"], window_s=32.0, slide_s=1.0
        )
        ranges = task_ranges_of([task % NODES for task in range(tasks)])
        actions: tuple[Action, ...] = (
            AssignStream(STREAM, 0),
            SetSchema(STREAM, SCHEMA),
            AddQuery(
                QUERY, 0, 0, (STREAM,), json.dumps(query.to_json()), ranges, text, aggregator=0
            ),
        )
        course = cls(CompiledTable(RoutingTable().apply(RoutingDelta(1, actions))))
        course._plan({}, 0)
        return course

    def seconds(self, entries: Mapping[int, Sequence[LogEntry]], now_ms: int) -> float:
        """Return how long the split node takes for a batch."""
        started = time.process_time()
        result = dispatch(entries, self.table, NODES, {}, KeyRouter(self.table, self.stored))
        elapsed = time.process_time() - started
        self._plan(result.envelopes[0][0].source.get("groupings", {}), now_ms)
        return elapsed

    def _plan(self, reports: Mapping[str, str], now_ms: int) -> None:
        after = {int(query): [packed] for query, packed in reports.items()}
        self.stored = StatePlan(self.stored, after, self.table, self.table, {}, now_ms).states()


def main() -> None:
    options = parse_options()
    words = _words(options.records * options.rounds)
    texts = {BY_KEY: "", AT_SPLIT: grouping_text("key", {"weighted": True})}
    texts |= {name: grouping_text(name) for name in GROUPINGS if name != "key"}
    courses = {name: Course.of(text, options.tasks) for name, text in texts.items()}
    rng = np.random.default_rng(options.seed)
    elapsed: dict[str, list[float]] = {name: [] for name in courses}
    for number in range(options.rounds):
        entries = {STREAM: _entries(words, number, options.records)}
        for name in rng.permutation(list(courses)).tolist():
            elapsed[name].append(courses[name].seconds(entries, (number + 1) * BATCH_MS))
    report({name: np.array(row[options.warm :]) for name, row in elapsed.items()}, options)


def report(elapsed: Mapping[str, Any], options: Any) -> None:
    """Print the median of each grouping, and what it adds to both kinds of basic hashing."""
    rounds = options.rounds - options.warm
    print(f"{options.records:,} records, {options.tasks} tasks, {rounds} rounds")
    for name, seconds in elapsed.items():
        over = [f"{np.median(seconds / elapsed[base]) - 1:+7.1%}" for base in (AT_SPLIT, BY_KEY)]
        per_record = np.median(seconds) / options.records * 1e9
        print(f"{name:24s} {per_record:7.0f} ns per record  {'  '.join(over)}")
    more = {
        "frequency_aware": np.median(elapsed["frequency_aware"] / elapsed[AT_SPLIT]) - 1,
        "rate_aware": np.median(elapsed["rate_aware"] / elapsed["panes"]) - 1,
    }
    for name, base in (("frequency_aware", AT_SPLIT), ("rate_aware", "panes")):
        print(f"{name} against {base}: {more[name]:+.1%} (demanded: at most {BOUNDS[name]:.0%})")


def _words(count: int) -> Any:
    """Return the words of the books in reading order, from the beginning again where they end."""
    with gzip.open(data_folder() / "words_books_vocab.csv.gz", "rt", newline="") as file:
        texts = {int(row["word_id"]): row["word"] for row in csv.DictReader(file)}
    numbers = np.resize(read_columns(data_folder() / WORDS_FILE, ("word_id",))["word_id"], count)
    known = pa.array([texts[number] for number in sorted(texts)])
    places = np.searchsorted(sorted(texts), numbers)
    return pa.DictionaryArray.from_arrays(places, known).dictionary_decode()


def _entries(words: Any, number: int, records: int) -> list[LogEntry]:
    """Return the blocks of a batch: the next records of the books, over two seconds."""
    result = []
    size = records // BLOCKS
    for block in range(BLOCKS):
        first = number * records + block * size
        times = number * BATCH_MS + (block * size + np.arange(size)) * BATCH_MS // records
        columns = [
            pa.array(times).cast(SCHEMA.arrow.field("read_at").type),
            words.slice(first, size),
            pa.array(np.arange(size)),
        ]
        data = encode_block(pa.RecordBatch.from_arrays(columns, schema=SCHEMA.arrow), "read_at")
        position = f"{(number + 1) * BATCH_MS}-{block}"
        result.append(LogEntry(position, size, data, newest_ms=int(times[-1]), mark_ms=None))
    return result


def parse_options(arguments: Sequence[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--warm", type=int, default=10, help="first rounds, which do not count")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
