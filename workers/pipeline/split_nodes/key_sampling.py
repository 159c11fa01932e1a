"""Samples of the keys that a split node routes (`wire.key_samples`).

A batch that a new second begins in is sampled: some queries with several tasks, drawn again each
time, and a random part of their records. Nothing depends on a sample: one that cannot be computed
is omitted.
"""

import base64
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.key_samples import MAX_LABEL_LENGTH, MAX_LABELS, MAX_RECORDS, KeySample
from controlplane.wire.language.tree import Call, Expression
from workers.pipeline.engine.evaluation.evaluator import Evaluator
from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.engine.hashing import Hashes, hash_rows
from workers.pipeline.engine.kernels import KERNELS
from workers.pipeline.exchange.envelope import BatchHeader
from workers.pipeline.routing.compiled_table import NO_LEADER, CompiledTable, Keyed
from workers.pipeline.routing.key_grouping import tasks_by_key

logger = logging.getLogger("weir.pipeline")

# Queries that are sampled in one batch, and the records of all their samples.
MAX_QUERIES: Final = 8
_RECORDS_OF_ALL: Final = 4 * MAX_RECORDS
_PERIOD_MS: Final = 1_000


class RoutedRecords(NamedTuple):
    """The hashes of the keys of records, and the task of each."""

    hashes: Hashes
    tasks: Int64s


class _Part(NamedTuple):
    """The records of a stream that a query reads: the columns of their key, and their tasks."""

    stream: int
    key: Sequence[Any]
    routed: RoutedRecords


@dataclass
class KeySampler:
    """Takes the samples of one split node in one batch."""

    header: BatchHeader
    table: CompiledTable
    queries: tuple[int, ...]
    _parts: dict[int, list[_Part]] = field(default_factory=dict)

    @classmethod
    def of(cls, header: BatchHeader, table: CompiledTable) -> "KeySampler | None":
        """Return a sampler of some queries; None if the batch is not sampled."""
        elapsed = header.elapsed_ms
        is_due = elapsed is None or (header.clock_ms - elapsed) // _PERIOD_MS < (
            header.clock_ms // _PERIOD_MS
        )
        # A batch that failed is tried again without.
        if not is_due or header.attempt > 1:
            return None
        streams = set(table.streams_of_split(header.split))
        queries = [q for q in table.split_queries if streams & {*table.table.queries[q].streams}]
        if len(queries) > MAX_QUERIES:
            # All split nodes choose alike: the rate of a query is the sum over them.
            drawn = sorted(queries, key=lambda query: _lot(header.batch, query))
            queries = sorted(drawn[:MAX_QUERIES])
        return cls(header, table, tuple(queries)) if queries else None

    def add(
        self, stream: int, evaluator: Evaluator, count: int, routed: Mapping[Keyed, RoutedRecords]
    ) -> None:
        """Take the records of a stream; `routed`: those that were assigned to tasks."""
        for query in self.queries:
            if stream not in self.table.table.queries[query].streams:
                continue
            try:
                keyed = self.table.keyed_reader(query, stream)
                tasks = routed.get(keyed) or _by_key(keyed, evaluator, count)
                if tasks is not None and count:
                    key = [evaluator.array(item) for item in keyed.key]
                    self._parts.setdefault(query, []).append(_Part(stream, key, tasks))
            except Exception:
                logger.exception("the keys of query %s are not sampled", query)

    def report(self) -> dict[str, Any]:
        """Return the samples as the report of the split node has them."""
        try:
            samples = [self._sample(query, parts) for query, parts in self._parts.items()]
        except Exception:
            logger.exception("no keys are sampled in batch %s", self.header.batch)
            samples = []
        texts = [base64.b64encode(sample.to_bytes()).decode() for sample in samples]
        return {"key_samples": texts} if texts else {}

    def _sample(self, query: int, parts: Sequence[_Part]) -> KeySample:
        header = self.header
        hashes = np.concatenate([part.routed.hashes for part in parts])
        tasks = np.concatenate([part.routed.tasks for part in parts])
        most = min(MAX_RECORDS, _RECORDS_OF_ALL // len(self._parts), len(hashes))
        rows = np.sort(_generator(header, query).choice(len(hashes), most, replace=False))
        keys, first, key_of, counts = np.unique(
            hashes[rows], return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")
        named = order[:MAX_LABELS]
        streams = np.repeat([part.stream for part in parts],
                            [len(part.routed.hashes) for part in parts])  # fmt: skip
        of_keys = [rows[key_of == key] for key in named]
        count = len(self.table.table.queries[query].owners())
        return KeySample(
            query, header.batch, header.split, header.clock_ms, header.elapsed_ms or 0,
            len(hashes), keys[order].tolist(), counts[order].tolist(),
            _labels(parts, rows[first[named]]),
            [_counted(tasks[places]) for places in of_keys],
            np.bincount(tasks, minlength=count).tolist(),
            [_counted(streams[places]) for places in of_keys],
        )  # fmt: skip


def _counted(values: Int64s) -> dict[int, int]:
    """Return how often each value occurs."""
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def _lot(batch: int, query: int) -> bytes:
    """Return a random rank of a query in a batch, the same at every split node."""
    return blake2b(f"{batch}-{query}".encode(), digest_size=8).digest()


def _generator(header: BatchHeader, query: int = 0) -> np.random.Generator:
    return np.random.default_rng((header.batch, header.split, query))


def _by_key(keyed: Keyed, evaluator: Evaluator, count: int) -> RoutedRecords | None:
    """Return the tasks of records that one node needs as a whole; None for users' functions.

    Split nodes do not call functions of users for a sample: a call may end the process.
    """
    if keyed.leader != NO_LEADER or any(_calls_users(item) for item in keyed.key):
        return None
    hashes = hash_rows([evaluator.array(item) for item in keyed.key], count)
    return RoutedRecords(hashes, tasks_by_key(hashes, len(keyed.owners)))


def _calls_users(expression: Expression) -> bool:
    if not isinstance(expression, Call):
        return False
    return expression.function not in KERNELS or any(
        _calls_users(argument) for argument in expression.arguments
    )


def _labels(parts: Sequence[_Part], rows: NDArray[np.int64]) -> list[str]:
    """Return the texts of the keys of some records, which are numbered over all parts."""
    stops = np.cumsum([len(part.routed.hashes) for part in parts])
    result = []
    for row in rows.tolist():
        place = int(np.searchsorted(stops, row, "right"))
        part = parts[place]
        offset = row - int(stops[place]) + len(part.routed.hashes)
        result.append(", ".join(_text(column[offset].as_py()) for column in part.key))
    return [text if len(text) <= MAX_LABEL_LENGTH else f"{text[:MAX_LABEL_LENGTH - 1]}…"
            for text in result]  # fmt: skip


def _text(value: Any) -> str:
    """Return a value of a key as text."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Decimal():
            text = f"{value:f}"
            return text.rstrip("0").rstrip(".") if "." in text else text
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S") + (
                f".{value.microsecond // 1000:03d}" if value.microsecond else ""
            )
        case bytes():
            return value.hex()
        case _:
            return str(value)
