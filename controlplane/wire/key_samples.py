"""Samples of the keys of queries, the input of reports on skewed keys.

A split node samples the records that it routes: which keys they have, and to which tasks they go.
Samples are measurements: no decision of the data plane depends on them, and a sample that cannot
be written is omitted.
"""

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import redis

from controlplane.wire import keys
from controlplane.wire.foreign.entries import EntryLocation, decoded, json_of, values_of

# A sample has so many records at most, and texts and tasks of so many of its keys.
MAX_RECORDS: Final = 1024
MAX_LABELS: Final = 32
MAX_LABEL_LENGTH: Final = 80
# Samples that are kept of a query, and how long the newest one is.
KEPT: Final = 600
KEPT_S: Final = 600
# Length of the head; the hashes and the counts of keys follow it.
_HEAD: Final = struct.Struct("<II")
_FIELD: Final = b"s"
_DUPLICATE: Final = "equal or smaller"


@dataclass(frozen=True, slots=True)
class KeySample:
    """The keys in a random sample of the records that a split node routed in one batch.

    `query`, `batch`, `split`: of the sample. `clock_ms`: when the batch was planned; `elapsed_ms`:
    since when the batch before was, 0 for the first. `records`: all records that the split node
    routed for the query in the batch. `hashes`, `counts`: the distinct keys of the sample and their
    records, the most frequent first. `labels`: texts of the first keys; `tasks`, `streams`: records
    of the sample by task and by stream, for the same keys. `task_records`: all records of the batch
    by task.
    """

    query: int
    batch: int
    split: int
    clock_ms: int
    elapsed_ms: int
    records: int
    hashes: Sequence[int]
    counts: Sequence[int]
    labels: Sequence[str]
    tasks: Sequence[Mapping[int, int]]
    task_records: Sequence[int]
    streams: Sequence[Mapping[int, int]] = ()

    @property
    def sampled(self) -> int:
        """Return the number of records in the sample."""
        return sum(self.counts)

    def to_bytes(self) -> bytes:
        """Return the sample as bytes."""
        head = [
            self.query, self.batch, self.split, self.clock_ms, self.elapsed_ms, self.records,
            list(self.labels), _pairs(self.tasks), list(self.task_records), _pairs(self.streams),
        ]  # fmt: skip
        text = json.dumps(head, separators=(",", ":")).encode()
        hashes = np.array(self.hashes, "<u8").tobytes()
        counts = np.array(self.counts, "<u4").tobytes()
        return b"".join((_HEAD.pack(len(text), len(self.hashes)), text, hashes, counts))

    @classmethod
    def from_bytes(cls, data: bytes) -> "KeySample":
        """Return the sample that `to_bytes` wrote."""
        size, distinct = _HEAD.unpack_from(data)
        offset = _HEAD.size + size
        head: list[Any] = json_of(data[_HEAD.size : offset])
        hashes = np.frombuffer(data, "<u8", distinct, offset)
        counts = np.frombuffer(data, "<u4", distinct, offset + hashes.nbytes)
        query, batch, split, clock_ms, elapsed_ms, records, labels, tasks, task_records = head[:9]
        return cls(
            query, batch, split, clock_ms, elapsed_ms, records, hashes.tolist(), counts.tolist(),
            labels, [dict(of_key) for of_key in tasks], task_records,
            tuple(dict(of_key) for of_key in head[9]),
        )  # fmt: skip


def _pairs(rows: Sequence[Mapping[int, int]]) -> list[list[list[int]]]:
    """Return mappings as lists of pairs: keys of JSON objects are texts."""
    return [[[name, records] for name, records in of_key.items()] for of_key in rows]


def write(client: "redis.Redis", cluster: str, samples: Iterable[KeySample]) -> None:
    """Store the samples of one batch; writing them again changes nothing."""
    pipe = client.pipeline(transaction=False)
    queries: dict[int, None] = {}
    for sample in sorted(samples, key=lambda item: (item.batch, item.split)):
        fields: dict[Any, Any] = {_FIELD: sample.to_bytes()}
        name = keys.key_samples_key(cluster, sample.query)
        # Redis refuses the number 0-0.
        number = f"{sample.batch}-{sample.split + 1}"
        pipe.xadd(name, fields, id=number, maxlen=KEPT, approximate=False)
        queries[sample.query] = None
    for query in queries:
        pipe.expire(keys.key_samples_key(cluster, query), KEPT_S)
    for outcome in pipe.execute(raise_on_error=False):
        if isinstance(outcome, Exception) and _DUPLICATE not in str(outcome):
            raise outcome


def read(
    client: "redis.Redis", cluster: str, query: int, since_ms: int, most: int = KEPT
) -> list[KeySample]:
    """Return the stored samples of a query that were planned since a time (ms), oldest first.

    Of more than `most` samples, those of evenly spread batches, the newest among them.
    """
    entries = cast("list[Any]", client.xrange(keys.key_samples_key(cluster, query)))
    # A batch has a sample of each split node, which belong together.
    batches = list(dict.fromkeys(number.split(b"-")[0] for number, _ in entries))
    kept = set(batches[:: -max(1, -(-len(entries) // most))])
    entries = [entry for entry in entries if entry[0].split(b"-")[0] in kept]
    samples = _samples(client, cluster, entries)
    return [sample for sample in samples if sample.clock_ms >= since_ms]


def _samples(client: "redis.Redis", cluster: str, entries: Sequence[Any]) -> list[KeySample]:
    samples = (
        decoded(
            client,
            cluster,
            EntryLocation.KEY_SAMPLES,
            KeySample.from_bytes,
            fields.get(_FIELD),
            number,
        )
        for number, fields in entries
    )
    return [sample for sample in samples if sample is not None]


def read_newest(
    client: "redis.Redis", cluster: str, queries: Sequence[int], count: int, from_batch: int = 0
) -> dict[int, list[KeySample]]:
    """Return the newest `count` samples of each query that has some, oldest first.

    `from_batch`: the number of the first batch whose samples are read. One round trip to Redis for
    all queries.
    """
    pipe = client.pipeline(transaction=False)
    for query in queries:
        pipe.xrevrange(keys.key_samples_key(cluster, query), min=str(from_batch), count=count)
    entries = zip(queries, values_of(pipe) if queries else (), strict=True)
    return {
        query: samples
        for query, rows in entries
        if isinstance(rows, list) and (samples := _samples(client, cluster, rows[::-1]))
    }


def forget(client: "redis.Redis", cluster: str, queries: Sequence[int]) -> None:
    """Delete the samples of queries that have ended."""
    if queries:
        client.delete(*(keys.key_samples_key(cluster, query) for query in queries))
